//! Real servers under load: each protocol is a cluster of `ensue dev`, and clients are connections.
//!
//! Clusters of all lines run at the same time and take turns. What counts first is the processor time of the servers,
//! because it is little disturbed by what else the machine does: throughput a processor second is what one processor
//! would do if it did nothing else, replication and all datacenters included.

use super::cluster::{Cluster, Kind};
use super::{Effort, InstrumentError};
use crate::figure::Metric;
use ensue_load::cpu;
use ensue_load::pace::Pace;
use ensue_load::report::Outcome;
use ensue_load::run::{self, Bound, Plan, Preload};
use ensue_load::tally::quantile_us;
use ensue_load::target::Target;
use ensue_load::workload::Workload;
use std::thread;
use std::time::Duration;

pub const WORDS: &str = "real servers on this machine (`ensue dev`, one core a datacenter), under the load generator of \
                         `ensue bench`, one round a turn; processor time is that of all servers of the cluster";

/// One cluster and its load.
#[derive(Clone, Copy, Debug)]
pub struct ProcessSetup {
    pub protocol: &'static str,
    pub cleaning: bool,
    pub datacenters: u8,
    /// Of each datacenter, all on one core.
    pub partitions: u16,
    pub delay_ms: u32,
    /// Datacenters whose servers have clients.
    pub asked: u8,
    /// A mix, or a named workload, of `ensue bench`.
    pub load: &'static str,
    /// If not as the workload says.
    pub access: Option<&'static str>,
    pub value: Option<&'static str>,
    /// Keys of a read, keys of a write, columns of a key.
    pub columns: Option<[&'static str; 3]>,
    pub keys: u64,
    /// Connections in all, and operations that each has under way.
    pub clients: usize,
    pub pipeline: usize,
    /// Keys that one operation is about.
    pub keys_of_one: u32,
}

impl ProcessSetup {
    pub const BASE: ProcessSetup = ProcessSetup {
        protocol: "eventual",
        cleaning: true,
        datacenters: 2,
        partitions: 4,
        delay_ms: 1,
        asked: 1,
        load: "set=1,get=1",
        access: None,
        value: None,
        columns: None,
        keys: 16_384,
        clients: 32,
        pipeline: 1,
        keys_of_one: 1,
    };

    fn kind(&self) -> Kind {
        let ProcessSetup { protocol, cleaning, datacenters, partitions, delay_ms, .. } = *self;
        Kind { protocol, cleaning, datacenters, partitions, delay_ms }
    }

    /// The workload as the load generator takes it.
    pub fn workload(&self) -> Result<Workload, InstrumentError> {
        let mut workload: Workload = self.load.parse()?;
        if let Some(access) = self.access {
            workload.access = access.parse()?;
        }
        if let Some(value) = self.value {
            workload.sizes = value.parse()?;
        }
        if let Some([read, written, per_key]) = self.columns {
            workload.columns.keys_read = read.parse()?;
            workload.columns.keys_written = written.parse()?;
            workload.columns.per_key = per_key.parse()?;
        }
        Ok(workload)
    }
}

/// What a turn of a cluster has shown.
#[derive(Clone, Debug)]
pub struct Sample {
    pub setup: ProcessSetup,
    pub outcome: Outcome,
    /// Of all servers, from before the turn until replication has come to rest.
    pub processor_ns: u64,
}

impl Sample {
    fn operations(&self) -> f64 {
        self.outcome.total.completed as f64
    }

    fn latency_ms(&self, share: f64) -> Option<f64> {
        quantile_us(&self.outcome.total.latency, share).map(|us| us / 1e3)
    }
}

pub const PER_PROCESSOR: Metric<Sample> = Metric {
    name: "operations a processor second",
    unit: "1/s",
    of: |sample| Some(sample.operations() * 1e9 / sample.processor_ns as f64),
};
pub const KEYS_PER_PROCESSOR: Metric<Sample> = Metric {
    name: "keys a processor second",
    unit: "1/s",
    of: |sample| {
        let keys = sample.operations() * f64::from(sample.setup.keys_of_one);
        Some(keys * 1e9 / sample.processor_ns as f64)
    },
};
pub const PROCESSOR_US: Metric<Sample> = Metric {
    name: "processor time an operation",
    unit: "us",
    of: |sample| Some(sample.processor_ns as f64 / 1e3 / sample.operations()),
};
pub const RATE: Metric<Sample> =
    Metric { name: "operations a second", unit: "1/s", of: |sample| Some(sample.outcome.rate()) };
pub const DELAY_MS: Metric<Sample> = Metric {
    name: "time between a client's operations",
    unit: "ms",
    of: |sample| Some(sample.setup.clients as f64 * 1e3 / sample.outcome.rate()),
};
pub const P50: Metric<Sample> = Metric { name: "p50", unit: "ms", of: |sample| sample.latency_ms(0.5) };
pub const P90: Metric<Sample> = Metric { name: "p90", unit: "ms", of: |sample| sample.latency_ms(0.9) };
pub const P95: Metric<Sample> = Metric { name: "p95", unit: "ms", of: |sample| sample.latency_ms(0.95) };
pub const P99: Metric<Sample> = Metric { name: "p99", unit: "ms", of: |sample| sample.latency_ms(0.99) };
pub const P999: Metric<Sample> = Metric { name: "p99.9", unit: "ms", of: |sample| sample.latency_ms(0.999) };

/// The clusters of a figure.
#[derive(Default)]
pub struct Processes {
    clusters: Vec<Cluster>,
}

/// More of them are ended before the next one starts.
const CLUSTERS_MAX: usize = 4;
/// After a turn replication comes to rest; what is new replicates for longer.
const REST: Duration = Duration::from_millis(200);
const FILLED_REST: Duration = Duration::from_millis(600);
const DRAIN: Duration = Duration::from_secs(5);

impl Processes {
    pub fn run(
        &mut self,
        setup: &ProcessSetup,
        seed: u64,
        effort: &Effort,
    ) -> Result<Sample, InstrumentError> {
        let workload = setup.workload()?;
        let keys = workload.access.keys(setup.clients as u64).unwrap_or(setup.keys);
        // Loads that differ in what they ask alone have the same keys.
        let signature = format!("{:?} {} {:?} {keys}", workload.families(), workload.sizes, workload.columns);
        let cluster = self.cluster(setup.kind(), effort)?;
        let (prefix, is_filled) = cluster.prefix(signature);
        let target =
            |port: u16| Target { host: "127.0.0.1".into(), port, user: None, password: None, database: 0 };
        let mut plan = Plan {
            targets: cluster.ports().take(usize::from(setup.asked)).map(target).collect(),
            against: Vec::new(),
            pids: vec![cluster.pid()],
            against_pids: Vec::new(),
            workload,
            keys: setup.keys,
            prefix,
            clients: setup.clients,
            pipeline: setup.pipeline,
            threads: 1,
            pace: Pace::Closed,
            warm_up: Duration::ZERO,
            bound: Bound::Time(effort.lasts),
            slice: effort.lasts,
            drain: DRAIN,
            preload: Preload::None,
            resp: 2,
            seed,
        };
        if !is_filled {
            // A short turn that is not looked at: the keys are written, and the cluster finds its pace.
            let fill = Plan { preload: Preload::First, bound: Bound::Time(effort.lasts / 4), ..plan.clone() };
            run::run(&fill, |_| {})?;
            thread::sleep(FILLED_REST);
        }
        plan.seed += 1;
        let before_ns = cpu::processor_ns(&plan.pids)?;
        let mut report = run::run(&plan, |_| {})?;
        thread::sleep(REST);
        let processor_ns = cpu::processor_ns(&plan.pids)?.saturating_sub(before_ns).max(1);
        let outcome = report.outcomes.remove(0);
        if let Some((failure, count, example)) = outcome.failures.iter().next() {
            return Err(InstrumentError::Failed(setup.protocol, count, format!("{failure} {example}")));
        }
        Ok(Sample { setup: *setup, outcome, processor_ns })
    }

    fn cluster(&mut self, kind: Kind, effort: &Effort) -> Result<&mut Cluster, InstrumentError> {
        let place = match self.clusters.iter().position(|cluster| cluster.kind == kind) {
            Some(place) => place,
            None => {
                if self.clusters.len() == CLUSTERS_MAX {
                    self.clusters.remove(0);
                }
                self.clusters.push(Cluster::start(kind, effort)?);
                self.clusters.len() - 1
            }
        };
        Ok(&mut self.clusters[place])
    }
}
