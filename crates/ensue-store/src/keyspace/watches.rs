//! Keys that transactions watch, each with the number of its registration.
//!
//! The first change of a key removes its registration, so a transaction whose number is not registered any more knows
//! that the key may have changed. Numbers are never reused. Dropping a registration early is always safe: a transaction
//! is then repeated without need. Therefore the end of a transaction is not reported here, and the number of keys is
//! bounded: the oldest registrations are dropped first.

use ensue_types::LogicalTime;
use hashbrown::HashTable;
use std::collections::VecDeque;

/// Keys watched at a time: at most 4 MiB for each keyspace of a partition.
const WATCHES_MAX: usize = 65_536;

/// The watched keys, by their hashes: two keys of one hash are one here, which forgets a key too often and never too
/// seldom.
#[derive(Clone, Debug, Default)]
pub(super) struct Watches {
    of: HashTable<Watch>,
    /// In the order of their numbers; those that are gone stay here until their turn comes.
    queue: VecDeque<Watch>,
    latest: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Watch {
    hash: u64,
    number: u64,
    /// Whether the key was there: a row that expires is not written to.
    is_there: bool,
}

impl Watches {
    /// The number under which a key is watched. `at` is a time above all that the partition showed before it started.
    pub(super) fn watch(&mut self, hash: u64, is_there: bool, at: LogicalTime) -> u64 {
        if let Some(known) = self.of.find(hash, |watch| watch.hash == hash) {
            if known.is_there == is_there {
                return known.number;
            }
            self.on_change(hash);
        }
        self.latest = at.0.max(self.latest + 1);
        let watch = Watch { hash, number: self.latest, is_there };
        self.of.insert_unique(hash, watch, |watch| watch.hash);
        self.queue.push_back(watch);
        self.forget_oldest();
        self.latest
    }

    /// Whether nothing has happened to a key since it was watched under this number.
    pub(super) fn stands(&self, hash: u64, number: u64, is_there: bool) -> bool {
        self.of.find(hash, |watch| *watch == Watch { hash, number, is_there }).is_some()
    }

    /// Something is written to a key.
    pub(super) fn on_change(&mut self, hash: u64) {
        if let Ok(entry) = self.of.find_entry(hash, |watch| watch.hash == hash) {
            entry.remove();
        }
    }

    /// Everything is deleted: nothing happens to a key that is absent.
    pub(super) fn on_flush(&mut self) {
        self.of.retain(|watch| !watch.is_there);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// Something is written to all keys, or to unknown ones.
    pub(super) fn clear(&mut self) {
        self.of.clear();
        self.queue.clear();
    }

    /// Panics if a watch would never be forgotten, or a number was given that is yet to come.
    pub(super) fn check_invariants(&self) {
        for watch in &self.of {
            assert!(watch.number <= self.latest, "watch {} was given before {}", watch.number, self.latest);
        }
        let queued =
            self.queue.iter().filter(|watch| self.stands(watch.hash, watch.number, watch.is_there)).count();
        assert_eq!(queued, self.of.len(), "a watched key has no place among those to be forgotten, or two");
        assert!(self.of.len() <= WATCHES_MAX && self.queue.len() <= 2 * WATCHES_MAX, "watches have no bound");
    }

    /// Each watch is looked at once when it leaves the queue, which is never longer than twice the bound.
    fn forget_oldest(&mut self) {
        while self.of.len() > WATCHES_MAX || self.queue.len() > 2 * WATCHES_MAX {
            let Some(oldest) = self.queue.pop_front() else { return };
            if let Ok(entry) = self.of.find_entry(oldest.hash, |watch| *watch == oldest) {
                entry.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_ends_with_a_change_and_its_number_never_comes_again() {
        let mut watches = Watches::default();
        let first = watches.watch(1, true, LogicalTime(100));
        let other = watches.watch(2, false, LogicalTime(100));
        assert_ne!(first, other);
        assert_eq!(watches.watch(1, true, LogicalTime(300)), first, "nothing has changed");
        watches.on_change(1);
        assert!(!watches.stands(1, first, true));
        assert!(watches.stands(2, other, false));
        let again = watches.watch(1, true, LogicalTime(100));
        assert_ne!(again, first);
        assert!(watches.stands(1, again, true) && !watches.stands(1, again, false));
    }

    #[test]
    fn a_flush_ends_the_watches_of_keys_that_are_there() {
        let mut watches = Watches::default();
        let there = watches.watch(1, true, LogicalTime(100));
        let absent = watches.watch(2, false, LogicalTime(100));
        watches.on_flush();
        assert!(!watches.stands(1, there, true));
        assert!(watches.stands(2, absent, false));
        watches.check_invariants();
    }

    #[test]
    fn a_key_that_expired_unseen_is_watched_anew() {
        let mut watches = Watches::default();
        let there = watches.watch(1, true, LogicalTime(100));
        assert!(!watches.stands(1, there, false), "it has expired since");
        let gone = watches.watch(1, false, LogicalTime(200));
        assert_ne!(gone, there);
        assert!(watches.stands(1, gone, false) && !watches.stands(1, there, true));
    }

    #[test]
    fn the_oldest_are_forgotten_and_memory_is_bounded_however_often_keys_change() {
        let mut watches = Watches::default();
        let oldest = watches.watch(0, true, LogicalTime(1));
        for hash in 1..WATCHES_MAX as u64 {
            watches.watch(hash, true, LogicalTime(1));
        }
        assert!(watches.stands(0, oldest, true));
        let newest = watches.watch(WATCHES_MAX as u64, true, LogicalTime(1));
        assert!(!watches.stands(0, oldest, true));
        assert!(watches.stands(WATCHES_MAX as u64, newest, true));
        for _ in 0..3 * WATCHES_MAX {
            watches.on_change(7);
            watches.watch(7, true, LogicalTime(1));
        }
        watches.check_invariants();
    }
}
