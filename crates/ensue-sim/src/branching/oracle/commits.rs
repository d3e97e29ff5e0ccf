//! T6, T3: where transactions commit. Their state's parents are what its constraint allows, a merge joins what it read,
//! and neither a fork nor an abort happens without need.

use super::Judge;
use crate::branching::constraint::Condition;
use crate::branching::graph::{Place, States};
use crate::branching::property;
use crate::branching::rows::{Key, Row, effect};
use crate::branching::tale::{Anchor, Kind, Outcome, Step, Transaction};
use crate::oracle::Violation;
use std::collections::BTreeSet;

impl Judge<'_> {
    pub(super) fn commits(&self) -> Result<(), Violation> {
        for (index, transaction) in self.tale.transactions.iter().enumerate() {
            if let Some(&made) = self.graph.made.get(&index) {
                self.committed(transaction, made)?;
            }
            let is_aborted = transaction.kind == Kind::Single && transaction.outcome == Outcome::Aborted;
            if is_aborted && !self.has_late_states() {
                self.aborted(transaction)?;
            }
        }
        Ok(())
    }

    fn committed(&self, transaction: &Transaction, made: Place) -> Result<(), Violation> {
        let Some(parents) = &self.graph.nodes[made].parents else { return Ok(()) };
        let reads: BTreeSet<Place> =
            transaction.reads.iter().filter_map(|id| self.graph.place(*id)).collect();
        if transaction.kind == Kind::Merge {
            return match self.joins(transaction, &reads, parents) {
                Ok(()) => Ok(()),
                Err(why) => Err(self.misplaced(property::MERGED, &why, transaction, made)),
            };
        }
        let [parent] = parents.iter().copied().collect::<Vec<_>>()[..] else {
            return Err(self.misplaced(
                property::END,
                "is no merge and has several parents",
                transaction,
                made,
            ));
        };
        let read = reads.first().copied();
        if read.is_some_and(|read| !self.may_be_before(self.graph.nodes[read].id, parent)) {
            return Err(self.misplaced(property::END, "does not come after what it read", transaction, made));
        }
        let behind = transaction.begin.always(|condition| *condition == Condition::Ancestor);
        if behind && transaction.anchor.known().iter().any(|id| self.strays(*id, parent)) {
            return Err(self.misplaced(property::END, "does not come after its session", transaction, made));
        }
        let fails = |condition: &Condition| self.fails_at_end(transaction, condition, read, parent, made);
        if !transaction.end.holds(|condition| !fails(condition)) {
            let why = format!("commits where {} does not hold", transaction.end);
            return Err(self.misplaced(property::END, &why, transaction, made));
        }
        self.no_needless_fork(transaction, read.unwrap_or(parent), parent, made)
    }

    /// A merge joins the states that it read, or later ones on the same branches: nothing on the way wrote what it
    /// read.
    fn joins(
        &self,
        transaction: &Transaction,
        reads: &BTreeSet<Place>,
        parents: &BTreeSet<Place>,
    ) -> Result<(), String> {
        let id = |place: Place| self.graph.nodes[place].id;
        if let Some(&read) = reads.iter().find(|&&r| !parents.iter().any(|&p| self.may_be_before(id(r), p))) {
            return Err(format!("does not join {}", id(read)));
        }
        let (sure, _) = keys_read(transaction);
        for &parent in parents {
            let is_way = |&read: &Place| {
                self.may_be_before(id(read), parent) && !self.wrote_any(self.way(read, parent), &sure)
            };
            if !reads.iter().any(is_way) {
                return Err(format!("joins {}, past what it read", id(parent)));
            }
        }
        Ok(())
    }

    fn misplaced(
        &self,
        property: &'static str,
        why: &str,
        transaction: &Transaction,
        made: Place,
    ) -> Violation {
        let parents: Vec<String> = self.graph.nodes[made]
            .parents
            .iter()
            .flatten()
            .map(|&parent| format!("parent {}", self.portrait(parent)))
            .collect();
        let words = format!(
            "{} {why}\n{}\n{}\nanchor {:?}\n{}",
            self.graph.nodes[made].id,
            self.portrait(made),
            parents.join("\n"),
            transaction.anchor,
            self.story(transaction)
        );
        Violation::new(property, words)
    }

    /// States that surely lie on the way from one state to another, the first one left out.
    fn way(&self, from: Place, to: Place) -> Vec<Place> {
        let (first, last) = (&self.graph.nodes[from], &self.graph.nodes[to]);
        let between = last.ancestors.without(&first.ancestors);
        between.iter().filter(|&place| first.is_whole || place > from).collect()
    }

    fn wrote_any(&self, places: impl IntoIterator<Item = Place>, keys: &BTreeSet<Key>) -> bool {
        let rows = |place: Place| &self.graph.nodes[place].rows;
        places.into_iter().any(|place| keys.iter().any(|key| rows(place).contains_key(key)))
    }

    /// Whether a condition surely does not hold at the state behind which a transaction was committed.
    fn fails_at_end(
        &self,
        transaction: &Transaction,
        condition: &Condition,
        read: Option<Place>,
        parent: Place,
        made: Place,
    ) -> bool {
        let node = &self.graph.nodes[parent];
        let asked_us = transaction.ended.as_ref().map_or(u64::MAX, |step| step.asked_us);
        let children = || {
            let had = self.shown.by(transaction.datacenter, asked_us);
            let other = |child: &Place| *child != made && had.is_some_and(|had| had.has(*child));
            self.graph.children(parent).filter(other).count() as u64
        };
        match condition {
            Condition::Serializability => {
                let (sure, _) = keys_read(transaction);
                read.is_some_and(|read| self.wrote_any(self.way(read, parent), &sure))
            }
            Condition::SnapshotIsolation => {
                let keys = self.graph.nodes[made].rows.keys().cloned().collect();
                read.is_some_and(|read| self.wrote_any(self.way(read, parent), &keys))
            }
            Condition::NoBranching => children() > 0,
            // Where states were collected, several children may have become one.
            Condition::KBranching(k) => !self.has_ceilings && children() + 1 >= *k,
            Condition::State(ids) => !ids.contains(&node.id),
            Condition::Ancestor => transaction.anchor.known().iter().any(|id| self.strays(*id, parent)),
            Condition::Parent => match &transaction.anchor {
                Anchor::Exactly(ids) if !self.has_ceilings => !ids.contains(&node.id),
                Anchor::Exactly(_) | Anchor::Behind(_) => false,
            },
            Condition::Any | Condition::ReadCommitted => false,
        }
    }

    /// Whether a condition surely holds at a state after the read state.
    fn holds_at_end(&self, transaction: &Transaction, condition: &Condition, read: Place, at: Place) -> bool {
        let whole = self.graph.are_whole(&[read, at]);
        let way = || -> States { self.graph.nodes[at].ancestors.without(&self.graph.nodes[read].ancestors) };
        match condition {
            Condition::Any | Condition::ReadCommitted => true,
            Condition::Serializability => whole && !self.wrote_any(way().iter(), &keys_read(transaction).1),
            Condition::SnapshotIsolation => {
                whole && !self.wrote_any(way().iter(), &keys_written(transaction))
            }
            Condition::NoBranching => {
                let answered_us = transaction.ended.as_ref().map_or(u64::MAX, |step| step.answered_us);
                self.has_no_child(at, answered_us)
            }
            Condition::KBranching(k) => {
                let answered_us = transaction.ended.as_ref().map_or(u64::MAX, |step| step.answered_us);
                *k > 1 && self.has_no_child(at, answered_us)
            }
            // Whether these hold anywhere but at the read state is not for this check.
            Condition::State(_) | Condition::Ancestor | Condition::Parent => false,
        }
    }

    /// A transaction goes on to the highest state where its constraint holds: none of its site's children of where it
    /// stopped is one.
    fn no_needless_fork(
        &self,
        transaction: &Transaction,
        read: Place,
        parent: Place,
        made: Place,
    ) -> Result<(), Violation> {
        let Some(ended) = transaction.ended.as_ref().filter(|_| !self.has_late_states()) else {
            return Ok(());
        };
        let Some(had) = self.shown.by(transaction.datacenter, ended.asked_us) else { return Ok(()) };
        let fits = |child: &Place| {
            transaction.end.holds(|condition| self.holds_at_end(transaction, condition, read, *child))
        };
        let children = self.graph.children(parent).filter(|&child| child != made && had.has(child));
        match children.filter(fits).max() {
            None => Ok(()),
            Some(child) => {
                let why = format!("forks beside\n{}", self.portrait(child));
                Err(self.misplaced(property::FORKED, &why, transaction, made))
            }
        }
    }

    /// An abort needs that its constraint holds nowhere.
    fn aborted(&self, transaction: &Transaction) -> Result<(), Violation> {
        let (Some(ended), [read]) = (&transaction.ended, transaction.reads.as_slice()) else { return Ok(()) };
        let (Some(read), Some(had)) =
            (self.graph.place(*read), self.shown.by(transaction.datacenter, ended.asked_us))
        else {
            return Ok(());
        };
        let fits = |place: &Place| {
            self.graph.is_ancestor(read, *place)
                && transaction.end.holds(|condition| self.holds_at_end(transaction, condition, read, *place))
        };
        match had.iter().filter(fits).max() {
            None => Ok(()),
            Some(place) => {
                let words = format!(
                    "{} holds at\n{}\n{}",
                    transaction.end,
                    self.portrait(place),
                    self.story(transaction)
                );
                Err(Violation::new(property::ABORTED, words))
            }
        }
    }
}

/// The keys that a transaction surely read from its state, and those that it may have read.
fn keys_read(transaction: &Transaction) -> (BTreeSet<Key>, BTreeSet<Key>) {
    let (mut sure, mut own) = (BTreeSet::new(), BTreeSet::new());
    let mut possible: BTreeSet<Key> = transaction.looked.iter().cloned().collect();
    for step in transaction.steps.iter() {
        let Some(effect) = untold_effect(step) else { continue };
        possible.extend(effect.reads.iter().cloned());
        possible.extend(effect.writes.iter().map(|write| write.0.clone()));
        if step.done().is_none() {
            continue;
        }
        sure.extend(effect.reads.into_iter().filter(|key| !own.contains(key)));
        own.extend(effect.writes.into_iter().map(|write| write.0));
    }
    (sure, possible)
}

fn keys_written(transaction: &Transaction) -> BTreeSet<Key> {
    let effects = transaction.steps.iter().filter_map(untold_effect);
    effects.flat_map(|effect| effect.writes).map(|write| write.0).collect()
}

fn untold_effect(step: &Step) -> Option<crate::branching::rows::Effect> {
    effect(&step.args, &|_| Row::Untold)
}
