//! A stream of chance from a seed: SplitMix64.

use crate::balance::mix;

/// A stream of numbers, each of which follows from the seed.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of one concern of a seed.
    pub fn new(seed: u64, concern: u64) -> Self {
        Self(mix(seed ^ mix(concern)))
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True in so many of a thousand cases.
    pub fn permille(&mut self, chance: u64) -> bool {
        self.below(1000) < chance
    }
}
