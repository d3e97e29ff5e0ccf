//! What a location covers of additions, by name or as those of every datacenter.

use super::{Addition, Cell, Counter};
use ensue_types::{DatacenterId, Decimal, Rule, Seen, SeenSum, Stamp};

/// How much of a datacenter's sum a base covers that had seen these, and whether there is an addition that it does not
/// cover.
pub(crate) fn covered(seen: &Seen, addition: &Addition) -> (Decimal, bool) {
    let own = seen.iter().find(|s| s.datacenter == addition.datacenter);
    let every = seen.iter().find(|s| s.datacenter == DatacenterId::EVERY);
    if every.is_some_and(|every| addition.stamp <= every.stamp) && Rule::BaseCoversSeenAdditions.holds() {
        return (addition.epoch_sum.sum, false);
    }
    match own {
        Some(_) if !Rule::BaseCoversSeenAdditions.holds() => (Decimal::ZERO, true),
        // The base had seen a later addition, or a later epoch, than has arrived here by itself.
        Some(own) if (own.epoch_sum.epoch, own.stamp) >= (addition.epoch_sum.epoch, addition.stamp) => {
            (addition.epoch_sum.sum, false)
        }
        Some(own) if own.epoch_sum.epoch == addition.epoch_sum.epoch => (own.epoch_sum.sum, true),
        _ => (Decimal::ZERO, true),
    }
}

/// Whether a base that had seen these covers an addition only as one of every datacenter's.
pub(super) fn covers_unnamed(seen: &Seen, addition: &Addition) -> bool {
    let every = seen.iter().any(|s| s.datacenter == DatacenterId::EVERY && addition.stamp <= s.stamp);
    let latest = (addition.epoch_sum.epoch, addition.stamp);
    let names = |s: &SeenSum| s.datacenter == addition.datacenter && (s.epoch_sum.epoch, s.stamp) >= latest;
    every && !seen.iter().any(names)
}

/// The stamp up to which additions of every datacenter are covered, if none is covered by name.
pub(crate) fn of_every(seen: &Seen) -> Option<Stamp> {
    match seen[..] {
        [SeenSum { datacenter: DatacenterId::EVERY, stamp, .. }] => Some(stamp),
        _ => None,
    }
}

impl Counter {
    /// The stamp up to which additions of every datacenter are covered, if none is known or covered by name.
    pub(crate) fn covered_unnamed(&self) -> Option<Stamp> {
        of_every(&self.seen).filter(|_| self.additions.is_empty())
    }
}

impl Cell {
    /// Notes that its value covers additions without a name, unless that is known.
    pub(crate) fn note_covering(&mut self) -> bool {
        let Some(counter) = self.state.counter.as_deref_mut() else { return false };
        counter.covered_unnamed().is_some() && !std::mem::replace(&mut counter.is_noted, true)
    }

    pub(crate) fn unnote_covering(&mut self) {
        self.state.counter.iter_mut().for_each(|counter| counter.is_noted = false);
    }

    /// Forgets which additions its value covers, where none of them is known.
    pub(crate) fn forget_covered(&mut self) {
        self.state.counter = None;
    }
}
