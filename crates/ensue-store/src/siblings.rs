//! The writes of one location that nothing has replaced, where a keyspace keeps them beside each other (COPS-CD,
//! section 5.3).
//!
//! A write says what it replaced at its writer. The siblings of a set of writes are those that none of the set
//! replaced, so they depend on the set alone: on no order of arrival, and on no repetition. One owner takes all writes
//! of a location in a datacenter, one after another, and each replaces whatever stands there: so a datacenter's later
//! write replaces its earlier ones, there are never more siblings than datacenters, and what was replaced is one
//! position a datacenter.
//!
//! The one with the highest stamp is the state's base, as without siblings; the others are here. It does not decide
//! what readers see of them: a handler does (`fold`), and its answer is kept until something changes.

use crate::cell::{Addition, Base, Content, Outcome, State, content_of};
use crate::fold::{Failed, Fold, Folded, Newest};
use bytes::Bytes;
use ensue_types::{DatacenterId, Effect, OperationId, Position, Previous, Rule, Seen, Source, Stamp};

/// How a location treats writes that did not know of each other.
#[derive(Clone, Copy, Debug)]
pub struct Conflicts<'a> {
    pub fold: &'a dyn Fold,
    /// What the write that is merged replaced at its writer, if it says so.
    pub previous: Option<&'a Previous>,
}

/// A value or tombstone beside the newest.
#[derive(Clone, Debug)]
pub struct Sibling {
    pub base: Base,
    /// Additions that it had taken into account.
    pub seen: Seen,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Siblings {
    /// Without the base, lowest stamp first.
    others: Vec<Sibling>,
    replaced: Replaced,
    /// What readers see of the base and these, if there are any.
    folded: Option<Bytes>,
    /// The handler made nothing of them, and `folded` is the last writer's.
    failed: Option<Failed>,
}

/// What writes merged here have replaced, wherever it was.
#[derive(Clone, Debug, Default)]
struct Replaced {
    /// The writes of each datacenter up to a position.
    through: Vec<(DatacenterId, Position)>,
    /// Whatever has a stamp up to this.
    forgotten: Stamp,
}

impl Replaced {
    fn is_empty(&self) -> bool {
        self.through.is_empty() && self.forgotten == Stamp::ZERO
    }

    fn add(&mut self, previous: &Previous, by: OperationId) {
        self.forgotten = self.forgotten.max(previous.forgotten());
        // A later effect of one write replaces its own: that is the write itself.
        for operation in previous.operations().iter().filter(|&&operation| operation != by) {
            match self.through.binary_search_by_key(&operation.datacenter, |(datacenter, _)| *datacenter) {
                Ok(at) => self.through[at].1 = self.through[at].1.max(operation.position),
                Err(at) => self.through.insert(at, (operation.datacenter, operation.position)),
            }
        }
    }

    fn covers(&self, operation: OperationId, stamp: Stamp) -> bool {
        let OperationId { datacenter, position, .. } = operation;
        stamp <= self.forgotten
            || self.through.iter().any(|&(one, through)| one == datacenter && position <= through)
    }
}

impl State {
    /// The values and tombstones beside the newest, lowest stamp first.
    pub fn siblings(&self) -> &[Sibling] {
        self.siblings.as_ref().map_or(&[], |siblings| &siblings.others)
    }

    /// What the writes merged here have replaced, as a write that replaced all of it would say it; nothing if that is
    /// nothing.
    pub fn replaced(&self) -> Option<Previous> {
        let replaced = self.siblings.as_ref().map(|siblings| &siblings.replaced)?;
        let Base { operation, .. } = self.base;
        let named = |&(datacenter, position): &(DatacenterId, Position)| OperationId {
            datacenter,
            incarnation: position.incarnation(),
            partition: operation.partition,
            position,
        };
        let operations = replaced.through.iter().map(named).collect();
        (!replaced.is_empty()).then_some(Previous::Several { operations, forgotten: replaced.forgotten })
    }

    /// Whether a write with this name and stamp was replaced by one that is here already.
    pub fn has_replaced(&self, operation: OperationId, stamp: Stamp) -> bool {
        self.siblings.as_ref().is_some_and(|siblings| siblings.replaced.covers(operation, stamp))
    }

    /// Whether a value stands here, be it one that readers do not see.
    pub fn holds_a_value(&self) -> bool {
        self.base.value.is_some() || self.siblings().iter().any(|sibling| sibling.base.value.is_some())
    }

    /// What readers see, if that is not the base alone.
    pub(crate) fn folded(&self) -> Option<Content> {
        let siblings = self.siblings.as_ref().filter(|siblings| !siblings.others.is_empty())?;
        Some(siblings.folded.clone().map_or(Content::Nothing, Content::Bytes))
    }

    /// Why the handler made nothing of what stands here, if it did not: readers see the last writer's.
    pub fn fold_failure(&self) -> Option<&str> {
        let siblings = self.siblings.as_ref().filter(|siblings| !siblings.others.is_empty())?;
        siblings.failed.as_ref().map(|failed| &*failed.0)
    }

    /// Merges an effect beside what it did not replace.
    pub(crate) fn merge_beside(
        &mut self,
        effect: &Effect,
        source: &Source,
        conflicts: Conflicts<'_>,
    ) -> Outcome {
        let outcome = match effect {
            Effect::Put { value, seen, .. } => self.stand_beside(Some(value), seen, source, conflicts),
            Effect::Delete { seen } | Effect::Remove { seen, .. } => {
                self.stand_beside(None, seen, source, conflicts)
            }
            Effect::Add { epoch_sum } => self.merge_addition(*epoch_sum, source),
        };
        self.fold(conflicts.fold, source.stamp);
        outcome
    }

    fn stand_beside(
        &mut self,
        value: Option<&Bytes>,
        seen: &Seen,
        source: &Source,
        conflicts: Conflicts<'_>,
    ) -> Outcome {
        let value = value.map(|value| Bytes::copy_from_slice(value));
        let (stamp, operation) = (source.stamp, source.operation);
        let base = Base { stamp, operation, dependencies: source.dependencies.clone(), value };
        let arrived = Sibling { base, seen: seen.clone() };
        let Siblings { others: mut all, mut replaced, .. } =
            self.siblings.take().map(|siblings| *siblings).unwrap_or_default();
        if !self.has_no_base() {
            let seen = self.counter.as_mut().map(|counter| std::mem::take(&mut counter.seen));
            all.push(Sibling { base: self.base.clone(), seen: seen.unwrap_or_default() });
        }
        if let Some(previous) = conflicts.previous {
            replaced.add(previous, operation);
        }
        let count = all.len();
        all.retain(|Sibling { base, .. }| !replaced.covers(base.operation, base.stamp));
        let mut changed = all.len() < count;
        match all.iter_mut().find(|sibling| sibling.base.operation == operation) {
            Some(same) => {
                changed |= same.base.value != arrived.base.value || same.seen != arrived.seen;
                *same = arrived;
            }
            None if replaced.covers(operation, stamp) => {}
            None => {
                changed = true;
                all.push(arrived);
            }
        }
        all.sort_by_key(|sibling| sibling.base.stamp);
        if let Some(newest) = all.pop() {
            self.base = newest.base;
            if self.counter.is_some() || !newest.seen.is_empty() {
                self.counter.get_or_insert_default().seen = newest.seen;
            }
        }
        if !Rule::KeepSiblings.holds() {
            all.clear();
        }
        if !all.is_empty() || !replaced.is_empty() {
            self.siblings = Some(Box::new(Siblings { others: all, replaced, ..Siblings::default() }));
        }
        if changed { Outcome::Won } else { Outcome::Lost }
    }

    /// Takes the values below a flush away; says whether there were any.
    pub(crate) fn hide_all_below(&mut self, flush: Stamp, fold: &dyn Fold) -> bool {
        let mut hidden = false;
        let others = self.siblings.iter_mut().flat_map(|siblings| &mut siblings.others);
        for base in others.map(|sibling| &mut sibling.base).chain([&mut self.base]) {
            if base.stamp < flush && base.value.is_some() {
                base.value = None;
                hidden = true;
            }
        }
        self.fold(fold, self.base.stamp);
        hidden
    }

    /// Asks the handler what readers see. Each sibling counts as it would be shown alone, additions included.
    fn fold(&mut self, fold: &dyn Fold, arrived: Stamp) {
        let Some(siblings) = self.siblings.as_mut().filter(|siblings| !siblings.others.is_empty()) else {
            return;
        };
        let none = Seen::new();
        let (seen, additions): (&Seen, &[Addition]) = match &self.counter {
            Some(counter) => (&counter.seen, &counter.additions),
            None => (&none, &[]),
        };
        let all =
            siblings.others.iter().map(|sibling| (&sibling.base, &sibling.seen)).chain([(&self.base, seen)]);
        let mut all: Vec<Folded> = all
            .map(|(base, seen)| {
                let value = match content_of(base.value.as_ref(), seen, additions) {
                    Content::Nothing => None,
                    Content::Bytes(bytes) => Some(bytes),
                    Content::Number(number) => Some(Bytes::from(number.to_string())),
                };
                Folded { stamp: base.stamp, value, deletes: base.value.is_none() }
            })
            .collect();
        if !Rule::HandlersAreGivenAnOrder.holds() {
            all.sort_by_key(|one| one.stamp == arrived);
        }
        let folded = match Rule::FoldsIgnoreTheOrder.holds() {
            true => fold.fold(&all),
            // Broken on purpose: whichever came last.
            false => Ok(all.iter().find(|one| one.stamp == arrived).and_then(|one| one.value.clone())),
        };
        (siblings.folded, siblings.failed) = match folded {
            Ok(folded) => (folded, None),
            Err(failed) => (Newest::of(&all), Some(failed)),
        };
    }
}

impl Siblings {
    /// Bytes of the values beside the newest, and of what is made of all of them.
    pub(crate) fn bytes(&self) -> u64 {
        let values = self.others.iter().filter_map(|sibling| sibling.base.value.as_ref());
        let failed = self.failed.as_ref().map_or(0, |failed| failed.0.len() as u64);
        values.chain(&self.folded).map(|value| value.len() as u64).sum::<u64>() + failed + BYTES
    }
}

/// Bytes counted for siblings beside their values, roughly.
const BYTES: u64 = 96;

#[cfg(test)]
mod tests;
