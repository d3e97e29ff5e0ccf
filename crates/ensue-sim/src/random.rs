//! The simulator's own source of chance: xoshiro256** seeded by splitmix64, one stream a concern.
//!
//! Two streams of one seed share nothing, so that adding a draw to one concern leaves all the others as they were.

/// A stream of numbers that depends on nothing but its seed and its concern.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// The stream of one concern of a seed.
    pub fn stream(seed: u64, concern: &str) -> Random {
        let mut mixed = seed;
        for byte in concern.bytes() {
            mixed = splitmix(&mut mixed.wrapping_add(u64::from(byte).wrapping_mul(0x9e37_79b9)));
        }
        let state = [splitmix(&mut mixed), splitmix(&mut mixed), splitmix(&mut mixed), splitmix(&mut mixed)];
        Random { state }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        let result = self.state[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = self.state[1] << 17;
        self.state[2] ^= self.state[0];
        self.state[3] ^= self.state[1];
        self.state[1] ^= self.state[2];
        self.state[0] ^= self.state[3];
        self.state[2] ^= shifted;
        self.state[3] = self.state[3].rotate_left(45);
        result
    }

    /// A number below the bound; 0 if the bound is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// An index below the length.
    pub fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// A number between the two, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// A number between the two, both included, small ones as likely as large ones by order of magnitude.
    pub fn skewed(&mut self, low: u64, high: u64) -> u64 {
        let top = self.between(low, high);
        if self.chance(500) { self.between(low, top) } else { self.between(low, low + (top - low) / 16) }
    }

    /// A number between minus and plus the bound.
    pub fn around_zero(&mut self, bound: u64) -> i64 {
        self.below(2 * bound + 1) as i64 - bound as i64
    }

    /// True so many times in a thousand.
    pub fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }

    /// One of these.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.index(choices.len())]
    }

    /// An index, each as likely as its weight; the last one if all weights are 0.
    pub fn weighted(&mut self, weights: &[u64]) -> usize {
        let mut left = self.below(weights.iter().sum());
        for (index, &weight) in weights.iter().enumerate() {
            if left < weight {
                return index;
            }
            left -= weight;
        }
        weights.len() - 1
    }
}

fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests;
