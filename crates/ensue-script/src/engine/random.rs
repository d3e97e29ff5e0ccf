//! The numbers of `math.random`: those of Redis, from where the caller of a run has them begin.

use std::sync::atomic::{AtomicU64, Ordering};

const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const INCREMENT: u64 = 0xB;
const MASK: u64 = (1 << 48) - 1;
const LOW: u64 = 0x330E;
/// What numbers are divided by: all but the largest of 31 bits.
const DIVISOR: u64 = i32::MAX as u64;

/// A generator of 48 bits, as `lrand48` of C is one.
#[derive(Debug, Default)]
pub struct Random(AtomicU64);

impl Random {
    /// As a run begins: with what its caller drew.
    pub fn begin(&self, seed: u64) {
        self.seed((seed ^ seed >> 32) as u32 as i32);
    }

    pub fn seed(&self, seed: i32) {
        self.0.store(u64::from(seed as u32) << 16 | LOW, Ordering::Relaxed);
    }

    /// The next number, from 0 to below 1.
    pub fn next(&self) -> f64 {
        let state = self.0.load(Ordering::Relaxed).wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT) & MASK;
        self.0.store(state, Ordering::Relaxed);
        ((state >> 17) % DIVISOR) as f64 / DIVISOR as f64
    }
}
