//! Keyspaces with branches in several simulated datacenters: what one more costs those that are there.

use super::{Effort, InstrumentError};
use crate::figure::Metric;
use ensue_compare::Span;
use ensue_compare::cli::{reading_ns, thread_ns};
use ensue_compare::sites::{self, Scale};
use ensue_sim::stopwatch::Stopwatch;

pub const WORDS: &str = "the simulator: a keyspace with branches in one, two and three datacenters (`ensue compare --sites`); \
                         throughput is in virtual time, capacity is of the processor time that the nodes took";

/// How many datacenters.
#[derive(Clone, Copy, Debug)]
pub struct SitesSetup {
    pub sites: u8,
}

#[derive(Clone, Debug)]
pub struct Sample {
    pub scale: Scale,
}

pub const RATE: Metric<Sample> =
    Metric { name: "transactions a virtual second", unit: "1/s", of: |sample| Some(sample.scale.rate()) };
pub const CAPACITY: Metric<Sample> = Metric {
    name: "transactions a second, if each datacenter had one core",
    unit: "1/s",
    of: |sample| Some(sample.scale.capacity()),
};
pub const LATENCY_MS: Metric<Sample> = Metric {
    name: "median time of a transaction",
    unit: "ms",
    of: |sample| Some(sample.scale.transaction_ms(50)),
};

pub fn run(setup: &SitesSetup, seed: u64, effort: &Effort) -> Result<Sample, InstrumentError> {
    let span = Span { warmup_us: 1_000_000 / effort.hurry, counted_us: 10_000_000 / effort.hurry };
    let stopwatch = Stopwatch::new(thread_ns, reading_ns());
    let scale = sites::run(setup.sites, seed, span, stopwatch).map_err(InstrumentError::World)?;
    Ok(Sample { scale })
}
