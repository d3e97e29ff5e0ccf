//! The buckets in which histograms are shown: powers of two of a unit, of which a node counts more than are shown.

/// Powers of two of a unit, each of which bounds a bucket; what a node counts above them is in the last one.
pub(super) type Powers = std::ops::RangeInclusive<usize>;

/// Of microseconds: from 4 µs to 16.8 s.
pub(super) const COMMAND_POWERS: Powers = 2..=24;
/// Of milliseconds: from 1 ms to 65.5 s.
pub(super) const DELAY_POWERS: Powers = 0..=16;
/// More powers than a node counts.
const POWERS_MAX: usize = 64;

/// The bound of each bucket in seconds, the last one infinite, and what is in the bucket and not in the one before.
pub(super) fn buckets(powers: Powers, unit_s: f64, of_power: impl Fn(usize) -> u64) -> Vec<(f64, u64)> {
    let mut buckets = Vec::new();
    let mut next = 0;
    for power in powers {
        let count = (next..=power).map(&of_power).sum();
        buckets.push(((1_u64 << power) as f64 * unit_s, count));
        next = power + 1;
    }
    buckets.push((f64::INFINITY, (next..POWERS_MAX).map(&of_power).sum()));
    buckets
}
