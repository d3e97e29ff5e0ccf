//! What was counted: latencies, completions, misses and failures, of each operation at each server.

use crate::answer::Failures;
use hdrhistogram::Histogram;

/// Longest latency that is told apart, in nanoseconds: an hour.
const LATENCY_NS_MAX: u64 = 3_600_000_000_000;
/// Decimal digits that are kept of a latency.
const DIGITS: u8 = 3;

/// An empty histogram of nanoseconds.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, DIGITS)
        .expect("the bounds are in order and three digits are few")
}

/// Adds a latency; what is longer than an hour counts as an hour.
pub fn record(histogram: &mut Histogram<u64>, nanoseconds: u64) {
    histogram.saturating_record(nanoseconds.max(1));
}

/// A latency that this share of all did not exceed, in microseconds; none if there is none.
pub fn quantile_us(histogram: &Histogram<u64>, share: f64) -> Option<f64> {
    (!histogram.is_empty()).then(|| histogram.value_at_quantile(share) as f64 / 1e3)
}

/// One operation at one server.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Of the operations that were to begin in the counted time and succeeded.
    pub latency: Histogram<u64>,
    /// Operations that ended in the counted time, and succeeded.
    pub completed: u64,
    /// Of those in `latency`: nothing was found.
    pub misses: u64,
}

impl Tally {
    pub fn new() -> Tally {
        Tally { latency: histogram(), completed: 0, misses: 0 }
    }

    pub fn merge(&mut self, other: &Tally) {
        self.latency.add(&other.latency).expect("all histograms have the same bounds");
        self.completed += other.completed;
        self.misses += other.misses;
    }
}

impl Default for Tally {
    fn default() -> Tally {
        Tally::new()
    }
}

/// What a thread, a slice or a run has counted.
#[derive(Clone, Debug)]
pub struct Sample {
    /// For each server, for each operation of the mix.
    pub cells: Vec<Tally>,
    pub failures: Failures,
    /// How late the generator itself was: from the intended start to the moment when the client was told of it. Only in
    /// open loops.
    pub lag: Histogram<u64>,
    /// When the last counted operation ended.
    pub last_ns: u64,
    /// Operations that ended at all, in the warm-up and failed ones too: what the servers' processor time was spent on.
    pub ended: u64,
}

impl Sample {
    pub fn new(cells: usize) -> Sample {
        Sample {
            cells: vec![Tally::new(); cells],
            failures: Failures::default(),
            lag: histogram(),
            last_ns: 0,
            ended: 0,
        }
    }

    pub fn merge(&mut self, other: &Sample) {
        for (cell, other) in self.cells.iter_mut().zip(&other.cells) {
            cell.merge(other);
        }
        self.failures.merge(&other.failures);
        self.lag.add(&other.lag).expect("all histograms have the same bounds");
        self.last_ns = self.last_ns.max(other.last_ns);
        self.ended += other.ended;
    }

    /// All operations at all servers.
    pub fn total(&self) -> Tally {
        let mut total = Tally::new();
        self.cells.iter().for_each(|cell| total.merge(cell));
        total
    }
}

/// What is known of a second, or of a slice, while a run goes on.
#[derive(Clone, Debug)]
pub struct Interval {
    pub number: u64,
    pub latency: Histogram<u64>,
    pub completed: u64,
    pub failed: u64,
}

impl Interval {
    pub fn new(number: u64) -> Interval {
        Interval { number, latency: histogram(), completed: 0, failed: 0 }
    }

    pub fn merge(&mut self, other: &Interval) {
        self.latency.add(&other.latency).expect("all histograms have the same bounds");
        self.completed += other.completed;
        self.failed += other.failed;
    }
}
