//! Puts and removals of one location, merged: a removal ends the puts that it had observed and nothing else, and of
//! those that are left the highest stamp is shown.
//!
//! Arrives: puts and removals, in any order and any number of times. Promises: the state depends on their set alone. A
//! put is *dominated* when a removal has observed it, when its datacenter has put something later, or when a put of
//! another datacenter names it as overwritten. Of those that are not, one is shown; a removal that had seen only this
//! one brings the next back, here as everywhere. There is at most one of each datacenter. What removals had observed,
//! and what puts have overwritten, is kept, and ends a put that comes late.
//!
//! All that is not shown is forgotten when the views of every datacenter show it, and what each had sent before that
//! has come (`Keyspace::collect`): a removal that comes then and covers what is shown covers the others too, because
//! its writer saw them or had forgotten them. It does not decide when that is.

use crate::cell::{Base, Outcome, State, covered, see};
use crate::siblings::Sibling;
use bytes::Bytes;
use ensue_types::{Observed, Rule, Seen, Source, Stamp};

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Undominated {
    /// Undominated puts below the shown one, at most one a datacenter, lowest stamp first.
    others: Vec<Sibling>,
    removed: Option<Removed>,
    /// The state's base is what is left of what was removed, and loses against anything that was not.
    is_gone: bool,
    /// Counts what has changed here, so that it is forgotten only when all of it is settled everywhere.
    changes: u32,
    /// Somebody is going to look whether all of it is settled everywhere.
    is_noted: bool,
}

/// What removals merged here had observed, and puts had overwritten of other datacenters.
#[derive(Clone, Debug)]
struct Removed {
    observed: Observed,
    /// The additions that they had taken into account.
    seen: Seen,
    /// The newest of each datacenter, the newest of all last. It had observed what those before it had.
    by: Vec<Source>,
}

impl Removed {
    fn add(&mut self, by: &Source) {
        let of = |known: &Source| known.stamp.datacenter == by.stamp.datacenter;
        match self.by.iter_mut().find(|known| of(known)) {
            Some(known) if known.stamp < by.stamp => *known = by.clone(),
            Some(_) => {}
            None => {
                // Mostly it is the only one.
                self.by.reserve_exact(1);
                self.by.push(by.clone());
            }
        }
        self.by.sort_by_key(|known| known.stamp);
    }
}

impl State {
    /// Puts that a removal of what is shown may bring back, lowest stamp first.
    pub fn undominated(&self) -> &[Sibling] {
        self.undominated.as_ref().map_or(&[], |undominated| &undominated.others)
    }

    /// What removals merged here had observed, and the additions that they ended; nothing if there were none. Of the
    /// removals, the newest of each datacenter, the newest of all last. A put that overwrites counts as one.
    pub fn removed(&self) -> Option<(&[Source], &Observed, &Seen)> {
        let removed = self.undominated.as_ref()?.removed.as_ref()?;
        Some((&removed.by, &removed.observed, &removed.seen))
    }

    /// How often its removals and undominated puts have changed, if it has any.
    pub(crate) fn changes(&self) -> Option<u32> {
        self.undominated.as_ref().map(|undominated| undominated.changes)
    }

    /// Which change of its removals and undominated puts was the last, and the highest stamp of all of them.
    pub(crate) fn last_change(&self) -> Option<(u32, Stamp)> {
        let undominated = self.undominated.as_ref()?;
        let newest = undominated.removed.as_ref().and_then(|removed| removed.by.last());
        let removed = newest.map_or(Stamp::ZERO, |newest| newest.stamp);
        let tombstone = if self.stands() { Stamp::ZERO } else { self.base.stamp };
        let highest = undominated.bases().last().map_or(Stamp::ZERO, |base| base.stamp);
        Some((undominated.changes, removed.max(tombstone).max(highest)))
    }

    /// The same, if nobody is going to look whether all of it is settled everywhere; now somebody is.
    pub(crate) fn note_undominated(&mut self) -> Option<(u32, Stamp)> {
        let was_noted = std::mem::replace(&mut self.undominated.as_mut()?.is_noted, true);
        self.last_change().filter(|_| !was_noted)
    }

    pub(crate) fn unnote_undominated(&mut self) {
        self.undominated.iter_mut().for_each(|undominated| undominated.is_noted = false);
    }

    /// Counts its changes on from those of the state that it replaces.
    pub(crate) fn change_after(&mut self, replaced: &State) {
        let changes = replaced.undominated.as_ref().map_or(0, |undominated| undominated.changes);
        if let Some(undominated) = &mut self.undominated {
            undominated.changes = undominated.changes.max(changes) + 1;
        }
    }

    /// Forgets removals and undominated puts: whatever comes from now on had all of them. So are additions that were
    /// removed: their epochs have ended, and nobody may go on from their sums.
    pub(crate) fn forget_undominated(&mut self) {
        let removed = self.undominated.take().and_then(|undominated| undominated.removed);
        if let (Some(removed), Some(counter)) = (removed, &mut self.counter) {
            counter.additions.retain(|addition| covered(&removed.seen, addition).1);
        }
    }

    /// Whether the base was put here and nothing has removed it.
    pub(crate) fn stands(&self) -> bool {
        !self.has_no_base() && !self.undominated.as_ref().is_some_and(|undominated| undominated.is_gone)
    }

    /// The stamps of what was put here and nothing has removed, shown or not.
    pub(crate) fn standing(&self) -> impl Iterator<Item = Stamp> + '_ {
        let base = self.stands().then_some(self.base.stamp);
        self.undominated().iter().map(|one| one.base.stamp).chain(base)
    }

    /// The removals that a reader has seen beside the base: something else might be shown without them. What they ended
    /// has lower stamps than they have.
    pub(crate) fn removals_shown(&self) -> impl Iterator<Item = &Source> {
        let below = if self.stands() { self.base.stamp } else { Stamp::ZERO };
        let all = self.removed().map_or(&[][..], |(by, ..)| by);
        all.iter().filter(move |by| by.stamp > below && by.stamp != self.base.stamp)
    }

    /// Merges a value that names what it overwrites of other datacenters.
    pub(crate) fn merge_overwriting(
        &mut self,
        over: &Observed,
        (value, seen): (&Bytes, &Seen),
        source: &Source,
        hold: impl Fn(&Bytes) -> Bytes,
    ) -> Outcome {
        let ended = self.end_overwritten(over, source);
        match self.merge_put(Some(value), seen, source, hold) {
            Outcome::Won => Outcome::Won,
            Outcome::Lost => ended,
        }
    }

    /// Merges a value, or that there is none.
    pub(crate) fn merge_put(
        &mut self,
        value: Option<&Bytes>,
        seen: &Seen,
        source: &Source,
        hold: impl Fn(&Bytes) -> Bytes,
    ) -> Outcome {
        let stamp = source.stamp;
        if self.removed().is_some_and(|(_, observed, _)| observed.covers(stamp)) {
            return Outcome::Lost;
        }
        if stamp == self.base.stamp && self.base.value.as_ref() == value && seen.is_empty() && self.stands() {
            return Outcome::Lost;
        }
        let is_older = match Rule::TiesByDatacenter.holds() {
            true => stamp < self.base.stamp,
            false => stamp.time < self.base.stamp.time,
        };
        let loses = self.stands() && is_older && Rule::LastWriterWins.holds();
        let is_of_the_same = self.base.stamp.datacenter == stamp.datacenter;
        let put = Sibling {
            base: Base {
                stamp,
                operation: source.operation,
                dependencies: source.dependencies.clone(),
                value: value.map(hold),
            },
            seen: seen.clone(),
        };
        let outcome = if loses { Outcome::Lost } else { Outcome::Won };
        match (self.stands(), is_of_the_same) {
            (false, _) => self.show(put),
            // The later of one datacenter had seen what the earlier had, by name unless that was forgotten there.
            (true, true) if loses => {}
            (true, true) => self.show(put),
            (true, false) => self.stand_against(put, loses),
        }
        outcome
    }

    /// A put meets one of another datacenter.
    fn stand_against(&mut self, put: Sibling, loses: bool) {
        let of = put.base.stamp.datacenter;
        let others = self.undominated.iter().flat_map(|undominated| &undominated.others);
        if let Some((at, same)) = others.enumerate().find(|(_, one)| one.base.stamp.datacenter == of) {
            if same.base.stamp > put.base.stamp {
                return;
            }
            self.undominated.iter_mut().for_each(|undominated| drop(undominated.others.remove(at)));
        }
        if loses {
            return self.add_undominated(put);
        }
        let seen = self.counter.as_ref().map(|counter| counter.seen.clone()).unwrap_or_default();
        self.add_undominated(Sibling { base: self.base.clone(), seen });
        self.show(put);
    }

    /// Merges a removal of what it had observed.
    pub(crate) fn merge_removal(&mut self, observed: &Observed, seen: &Seen, source: &Source) -> Outcome {
        let seen_before = self.counter.as_ref().map(|counter| counter.seen.clone());
        let before = (self.base.stamp, self.stands());
        let everything_older;
        let observed = if Rule::RemovalsSpareTheConcurrent.holds() {
            observed
        } else {
            everything_older = Observed::all_through(source.stamp.before());
            &everything_older
        };
        // What the same write had put here before is not observed by name: nobody else ever sees it.
        let ends = |stamp: Stamp| observed.covers(stamp) || stamp == source.stamp;
        self.end(ends, observed, source);
        self.cover_removed(seen);
        if !self.stands() {
            self.leave_tombstone();
        }
        let covers_more = seen_before.as_ref() != self.counter.as_ref().map(|counter| &counter.seen);
        let changed = before != (self.base.stamp, self.stands()) || covers_more;
        if changed { Outcome::Won } else { Outcome::Lost }
    }

    /// Nothing is left: the newest removal is what a reader sees, whatever came last. What it ended may come later, and
    /// leaves no trace of its own: a reader's past must not depend on the order of arrival.
    fn leave_tombstone(&mut self) {
        let Some(undominated) = &mut self.undominated else { return };
        undominated.is_gone = true;
        if let Some(newest) = undominated.removed.as_ref().and_then(|removed| removed.by.last()) {
            let Source { stamp, operation, dependencies } = newest.clone();
            self.base = Base { stamp, operation, dependencies, value: None };
        }
    }

    /// Takes the values below a flush away; says whether there were any. What had them still wins and loses by its
    /// stamp, so that it is the same whether it comes before the flush or after.
    pub(crate) fn hide_below(&mut self, flush: Stamp) -> bool {
        let undominated = self.undominated.iter_mut().flat_map(|undominated| undominated.bases_mut());
        let mut hidden = false;
        for base in undominated.chain([&mut self.base]).filter(|base| base.stamp < flush) {
            hidden |= base.value.take().is_some();
        }
        hidden
    }

    /// Ends what a put has overwritten of other datacenters. It may have come before.
    fn end_overwritten(&mut self, over: &Observed, by: &Source) -> Outcome {
        let before = (self.base.stamp, self.stands());
        let ended = self.end(|stamp| over.covers(stamp), over, by);
        // Every put of a hot location may name the same: that is no reason to keep it for ever.
        self.undominated.iter_mut().filter(|_| ended).for_each(|undominated| undominated.changes += 1);
        if !self.stands() {
            self.leave_tombstone();
        }
        if before != (self.base.stamp, self.stands()) { Outcome::Won } else { Outcome::Lost }
    }

    /// Ends puts, and remembers what was observed; says whether that is more than was known.
    fn end(&mut self, ends: impl Fn(Stamp) -> bool, observed: &Observed, by: &Source) -> bool {
        let is_ended = self.stands() && ends(self.base.stamp);
        let mut undominated = self.undominated.take().unwrap_or_default();
        let removed = undominated.removed.get_or_insert_with(|| Removed {
            observed: Observed::default(),
            seen: Seen::new(),
            by: Vec::new(),
        });
        let others = undominated.others.len();
        let mut is_more = is_ended;
        if Rule::RemovalsEndWhatTheySaw.holds() {
            is_more |= !removed.observed.includes(observed);
            removed.observed.join(observed);
        }
        removed.add(by);
        undominated.others.retain(|one| !ends(one.base.stamp));
        is_more |= others != undominated.others.len();
        let next = if is_ended { undominated.others.pop() } else { None };
        undominated.is_gone |= is_ended;
        self.undominated = Some(undominated);
        match next {
            Some(next) => self.show(next),
            None => {
                if is_ended {
                    self.base.value = None;
                }
                self.cover(Seen::new());
            }
        }
        is_more
    }

    /// The additions that a removal had taken into account are covered for every put.
    fn cover_removed(&mut self, seen: &Seen) {
        let undominated = self.undominated.get_or_insert_default();
        undominated.changes += 1;
        let removed = undominated.removed.iter_mut();
        removed.for_each(|removed| seen.iter().for_each(|sum| see(&mut removed.seen, *sum)));
        self.cover(Seen::new());
    }

    fn show(&mut self, put: Sibling) {
        self.base = put.base;
        self.undominated.iter_mut().for_each(|undominated| undominated.is_gone = false);
        if let Some(counter) = &mut self.counter {
            counter.seen.clear();
        }
        self.cover(put.seen);
    }

    /// What is shown covers these additions, and those that were removed.
    fn cover(&mut self, seen: Seen) {
        let removed = self.undominated.as_ref().and_then(|undominated| undominated.removed.as_ref());
        let removed = removed.map(|removed| removed.seen.as_slice()).unwrap_or_default();
        if self.counter.is_none() && seen.is_empty() && removed.is_empty() {
            return;
        }
        let covered = &mut self.counter.get_or_insert_default().seen;
        seen.iter().chain(removed).for_each(|sum| see(covered, *sum));
    }

    fn add_undominated(&mut self, put: Sibling) {
        if !Rule::KeepUndominatedPuts.holds() {
            return;
        }
        let undominated = self.undominated.get_or_insert_default();
        undominated.changes += 1;
        undominated.others.push(put);
        undominated.others.sort_by_key(|one| one.base.stamp);
    }
}

impl Undominated {
    pub(crate) fn bases(&self) -> impl Iterator<Item = &Base> {
        self.others.iter().map(|one| &one.base)
    }

    pub(crate) fn bases_mut(&mut self) -> impl Iterator<Item = &mut Base> {
        self.others.iter_mut().map(|one| &mut one.base)
    }

    /// The removals, for what they carry.
    pub(crate) fn removals_mut(&mut self) -> impl Iterator<Item = &mut Source> {
        self.removed.iter_mut().flat_map(|removed| &mut removed.by)
    }

    /// Bytes of it all, apart from what it carries.
    pub(crate) fn bytes(&self) -> u64 {
        let value = |base: &Base| base.value.as_ref().map_or(0, |value| value.len());
        let others: usize = self.bases().map(|base| size_of::<Sibling>() + value(base)).sum();
        let sizes = |removed: &Removed| size_of_val(removed.observed.puts()) + size_of_val(&removed.by[..]);
        (size_of::<Undominated>() + others + self.removed.as_ref().map_or(0, sizes)) as u64
    }

    /// Bytes of what the writes carry.
    pub(crate) fn dependency_bytes(&self) -> u64 {
        let by = self.removed.iter().flat_map(|removed| &removed.by);
        let all = self.bases().map(|base| &base.dependencies).chain(by.map(|by| &by.dependencies));
        all.flatten().map(|carried| carried.bytes()).sum()
    }
}

#[cfg(test)]
mod tests;
