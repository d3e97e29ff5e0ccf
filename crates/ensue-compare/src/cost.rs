//! What one protocol cost and showed in one run.

use super::load::Load;
use super::reads::{self, Share};
use ensue_sim::world::traffic::{Counts, Traffic};

/// Everything but processor time.
#[derive(Clone, Debug)]
pub struct Cost {
    pub counts: Counts,
    /// Reads of one key, and values read by reads of several.
    pub single_reads: Share,
    pub values_of_several: Share,
    /// Requests that partitions got, and those that had to wait for another datacenter, and for how long in all.
    pub requests: u64,
    pub waited: u64,
    pub waited_us: u64,
    /// From the write's answer until somebody without a past saw it, less the link's delay: in order.
    pub delays_us: Vec<u64>,
    /// Updates that were looked for in vain.
    pub unfound: usize,
}

impl Cost {
    pub fn of(load: Load, traffic: Traffic) -> Cost {
        let (single_reads, values_of_several) = reads::judge(&load.reads, &load.acknowledged, &traffic);
        let (delays_us, unfound) = load.visibility();
        let mut delays_us = delays_us.to_vec();
        delays_us.sort_unstable();
        Cost {
            counts: traffic.counts,
            single_reads,
            values_of_several,
            requests: load.requests(),
            waited: load.figure("reads_waited"),
            waited_us: load.figure("reads_waited_us"),
            delays_us,
            unfound,
        }
    }

    pub fn per_update(&self, number: u64) -> f64 {
        number as f64 / self.counts.updates.max(1) as f64
    }

    /// Bytes of metadata an update: dependencies, and what was replaced.
    pub fn bytes(&self) -> [f64; 2] {
        [self.counts.dependency_bytes, self.counts.previous_bytes].map(|bytes| self.per_update(bytes))
    }

    /// Messages an update: checks of dependencies, times within a datacenter, and either between datacenters.
    pub fn messages(&self) -> [f64; 3] {
        let Counts { checks, times, .. } = &self.counts;
        [checks.within, times.within, checks.between + times.between].map(|number| self.per_update(number))
    }

    /// Of the bytes of updates, so many of a hundred describe their pasts.
    pub fn metadata_percent(&self) -> f64 {
        100.0 * (self.counts.dependency_bytes + self.counts.previous_bytes) as f64
            / self.counts.update_bytes.max(1) as f64
    }

    /// Dependencies an update, where they are a list.
    pub fn dependencies(&self) -> Option<f64> {
        let all_are_lists = self.counts.lists == self.counts.updates;
        all_are_lists.then(|| self.per_update(self.counts.dependencies))
    }

    /// So many of a hundred delays are not longer than this, in milliseconds.
    pub fn delay_ms(&self, percent: usize) -> Option<f64> {
        percentile(&self.delays_us, percent).map(|us| us as f64 / 1e3)
    }

    /// Of a hundred.
    pub fn waited_percent(&self) -> f64 {
        100.0 * self.waited as f64 / self.requests.max(1) as f64
    }

    /// The mean.
    pub fn wait_ms(&self) -> Option<f64> {
        (self.waited > 0).then(|| self.waited_us as f64 / 1e3 / self.waited as f64)
    }
}

/// Of ascending numbers, the first that so many of a hundred do not exceed.
pub fn percentile(ascending: &[u64], percent: usize) -> Option<u64> {
    let index = (ascending.len() * percent).div_ceil(100).max(1) - 1;
    ascending.get(index).copied()
}
