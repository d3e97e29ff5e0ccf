//! Counters of a round: every addition to one is another power of two, so that each count says exactly which additions
//! it contains. A counter whose bits are used up is followed by the next.

use super::COUNTERS;
use crate::random::Random;
use std::sync::{Mutex, PoisonError};

/// Additions to one counter: their sum is a number of 64 bits with a sign.
const BITS: u32 = 60;

/// How many additions each slot has had.
#[derive(Debug, Default)]
pub struct Counters {
    used: Mutex<[u64; COUNTERS]>,
}

impl Counters {
    /// A counter of a slot, and what to add to it.
    pub(super) fn addition(&self, slot: usize) -> (String, i64) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let number = used[slot];
        used[slot] += 1;
        (name(slot, number / u64::from(BITS)), 1 << (number % u64::from(BITS)))
    }

    /// A counter of a slot, mostly the latest.
    pub(super) fn one(&self, slot: usize, random: &mut Random) -> String {
        let generations = self.generations(slot);
        let before = if random.percent(70) { 0 } else { random.index(generations) };
        name(slot, (generations - 1 - before) as u64)
    }

    /// All that there were.
    pub(super) fn all(&self) -> Vec<String> {
        let of = |slot| (0..self.generations(slot)).map(move |generation| name(slot, generation as u64));
        (0..COUNTERS).flat_map(of).collect()
    }

    fn generations(&self, slot: usize) -> usize {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used[slot].div_ceil(u64::from(BITS)).max(1) as usize
    }
}

fn name(slot: usize, generation: u64) -> String {
    format!("c{slot}.{generation}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_counter_is_added_the_same_twice_and_all_are_read_at_the_end() {
        let counters = Counters::default();
        assert_eq!(counters.all(), ["c0.0", "c1.0"]);
        let additions: Vec<(String, i64)> = (0..150).map(|_| counters.addition(1)).collect();
        assert!(additions.iter().all(|(_, amount)| amount.count_ones() == 1 && *amount > 0));
        let different: BTreeSet<_> = additions.iter().collect();
        assert_eq!(different.len(), additions.len());
        assert_eq!(counters.all(), ["c0.0", "c1.0", "c1.1", "c1.2"]);
        let mut random = Random::stream(1, "readers");
        let read: BTreeSet<String> = (0..100).map(|_| counters.one(1, &mut random)).collect();
        assert_eq!(read.len(), 3);
    }
}
