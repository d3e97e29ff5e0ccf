//! A stream of chance from a seed: SplitMix64.

use crate::config::mix;

/// A stream of numbers, each of which follows from the seed.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64, concern: u64) -> Random {
        Random(mix(seed ^ mix(concern)))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    /// True in so many of a thousand cases.
    pub(crate) fn permille(&mut self, chance: u64) -> bool {
        self.next() % 1_000 < chance
    }
}
