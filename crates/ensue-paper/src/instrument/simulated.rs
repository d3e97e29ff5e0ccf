//! Simulated worlds: real nodes in virtual time, of any size, the same in every run of a seed.
//!
//! Without prices a world counts messages, dependencies, stale values and waits under clients that think. With prices
//! its cores take the time that their work costs, and throughput means something; see `ensue-compare` `trial.rs` for
//! what is idealised.

use super::{Effort, InstrumentError};
use crate::figure::Metric;
use ensue_compare::Contestant;
use ensue_compare::cost::Cost;
use ensue_compare::demand::{AppendFsync, Demand, Draw};
use ensue_compare::prices;
use ensue_compare::trial::{Findings, Trial};

pub const WORDS: &str =
    "the simulator: real nodes in virtual time, clients that think, the same numbers on every machine";
pub const PRICED_WORDS: &str = "the simulator: real nodes in virtual time, a core a partition, each input taking as many instructions as such \
     inputs take in the mean ([inputs.md](inputs.md)); sockets, kernels, encoding and disks are free, and cores are a \
     tenth as fast as those of today, with intervals ten times as long";

/// One world and its clients.
#[derive(Clone, Copy, Debug)]
pub struct SimulatedSetup {
    pub protocol: &'static str,
    pub cleaning: bool,
    pub datacenters: u8,
    pub partitions: u16,
    pub delay_ms: u64,
    /// How many of each there are for so many of the others.
    pub gets: u64,
    pub sets: u64,
    pub mgets: u64,
    pub mget_keys: usize,
    pub draw: Draw,
    pub keys: usize,
    pub value_bytes: usize,
    /// Of each core, in so many datacenters.
    pub clients: usize,
    pub asked: u8,
    /// Of a hundred operations on one key, so many are certainly on the client's own partition.
    pub local_percent: u64,
    pub writes_at_home: bool,
    pub think_ms: u64,
    pub heartbeat_ms: u64,
    pub stabilization_ms: u64,
    pub always_sync: bool,
    /// Whether work takes time, and whether messages, dependencies and stale values are counted.
    pub priced: bool,
    pub watches: bool,
    pub warmup_ms: u64,
    pub counted_ms: u64,
}

impl SimulatedSetup {
    /// Counts; nothing has a price.
    pub const COUNTED: SimulatedSetup = SimulatedSetup {
        protocol: "eventual",
        cleaning: true,
        datacenters: 2,
        partitions: 4,
        delay_ms: 1,
        gets: 1,
        sets: 1,
        mgets: 0,
        mget_keys: 4,
        draw: Draw::Uniform,
        keys: 10_000,
        value_bytes: 64,
        clients: 8,
        asked: u8::MAX,
        local_percent: 0,
        writes_at_home: false,
        think_ms: 10,
        heartbeat_ms: 10,
        stabilization_ms: 5,
        always_sync: false,
        priced: false,
        watches: true,
        warmup_ms: 4_000,
        counted_ms: 4_000,
    };

    /// Cores have all that they can do, and nothing is looked at but that.
    pub const PRICED: SimulatedSetup = SimulatedSetup {
        clients: 24,
        asked: 1,
        keys: 2_000,
        think_ms: 0,
        priced: true,
        watches: false,
        warmup_ms: 250,
        counted_ms: 150,
        ..SimulatedSetup::COUNTED
    };

    fn trial(&self, seed: u64, hurry: u64) -> Result<Trial, InstrumentError> {
        let demand = Demand {
            name: "paper",
            gets: self.gets,
            sets: self.sets,
            mgets: self.mgets,
            mget_keys: self.mget_keys,
            clients: self.clients,
            asked: self.asked,
            keys: self.keys,
            value_bytes: self.value_bytes,
            own_per_mille: 0,
            local_percent: self.local_percent,
            think_ms: self.think_ms,
            draw: self.draw,
            writes_at_home: self.writes_at_home,
            append_fsync: if self.always_sync { AppendFsync::Always } else { AppendFsync::EverySecond },
            heartbeat_ms: self.heartbeat_ms,
        };
        let prices = match self.priced {
            true => Some(prices::of(self.protocol).map_err(InstrumentError::World)?),
            false => None,
        };
        Ok(Trial {
            contestant: Contestant { protocol: self.protocol, dependency_cleaning: self.cleaning },
            demand,
            datacenters: self.datacenters,
            partitions: self.partitions,
            delay_us: 1_000 * self.delay_ms,
            stabilization_ms: self.stabilization_ms,
            seed,
            warmup_us: 1_000 * self.warmup_ms / hurry,
            counted_us: 1_000 * self.counted_ms / hurry,
            prices,
            watches: self.watches,
        })
    }
}

/// What a world has shown.
#[derive(Clone, Debug)]
pub struct Sample {
    pub setup: SimulatedSetup,
    pub findings: Findings,
}

impl Sample {
    fn cost(&self, figure: fn(&Cost) -> Option<f64>) -> Option<f64> {
        self.findings.cost.as_ref().and_then(figure)
    }

    fn rate(&self) -> f64 {
        self.findings.rate()
    }
}

pub const RATE: Metric<Sample> =
    Metric { name: "operations a virtual second", unit: "1/s", of: |sample| Some(sample.rate()) };
pub const PER_PARTITION: Metric<Sample> = Metric {
    name: "operations a virtual second, of each partition",
    unit: "1/s",
    of: |sample| Some(sample.rate() / f64::from(sample.setup.partitions)),
};
pub const RESPONSE_MS: Metric<Sample> =
    Metric { name: "mean response time", unit: "ms", of: |sample| Some(sample.findings.mean_ms()) };
pub const SEVERAL_MS: Metric<Sample> = Metric {
    name: "median response time of reads of several keys",
    unit: "ms",
    of: |sample| (!sample.findings.several_us.is_empty()).then(|| sample.findings.several_ms(50)),
};
pub const BUSY: Metric<Sample> = Metric {
    name: "share of their time that cores work",
    unit: "%",
    of: |sample| sample.setup.priced.then_some(100.0 * sample.findings.busy),
};
pub const DEPENDENCIES: Metric<Sample> =
    Metric { name: "dependencies an update", unit: "", of: |sample| sample.cost(Cost::dependencies) };
pub const CHECKS: Metric<Sample> = Metric {
    name: "messages of dependency checks an update",
    unit: "",
    of: |sample| sample.cost(|cost| Some(cost.messages()[0])),
};
pub const METADATA: Metric<Sample> = Metric {
    name: "metadata in updates",
    unit: "%",
    of: |sample| sample.cost(|cost| Some(cost.metadata_percent())),
};
pub const UPDATE_BYTES: Metric<Sample> = Metric {
    name: "bytes between datacenters an update",
    unit: "B",
    of: |sample| sample.cost(|cost| Some(cost.per_update(cost.counts.between_bytes))),
};
pub const TRAFFIC: Metric<Sample> = Metric {
    name: "traffic between datacenters",
    unit: "kB/s",
    of: |sample| {
        let bytes = sample.findings.cost.as_ref()?.counts.between_bytes as f64;
        Some(bytes * 1e3 / sample.findings.counted_us as f64)
    },
};
/// Of updates to other datacenters and of times, wherever they go.
pub const EXCHANGED: Metric<Sample> = Metric {
    name: "bytes of replication and stabilization an operation",
    unit: "B",
    of: |sample| {
        let counts = sample.findings.cost.as_ref()?.counts;
        // Times between datacenters are in both.
        let bytes = counts.between_bytes as f64 + counts.time_bytes as f64;
        Some(bytes / sample.findings.operations.max(1) as f64)
    },
};
pub const STALE: Metric<Sample> = Metric {
    name: "stale values of reads of one key",
    unit: "%",
    of: |sample| sample.cost(|cost| (cost.single_reads.of > 0).then(|| cost.single_reads.percent())),
};
pub const FRESHER: Metric<Sample> = Metric {
    name: "fresher versions beside a stale value",
    unit: "",
    of: |sample| sample.cost(|cost| (cost.single_reads.of > 0).then(|| cost.single_reads.fresher_versions())),
};
pub const STALE_SEVERAL: Metric<Sample> = Metric {
    name: "stale values of reads of several keys",
    unit: "%",
    of: |sample| {
        sample.cost(|cost| (cost.values_of_several.of > 0).then(|| cost.values_of_several.percent()))
    },
};
pub const WAITS: Metric<Sample> = Metric {
    name: "requests that wait for another datacenter",
    unit: "%",
    of: |sample| sample.cost(|cost| Some(cost.waited_percent())),
};
pub const WAIT_MS: Metric<Sample> =
    Metric { name: "mean wait of those that wait", unit: "ms", of: |sample| sample.cost(Cost::wait_ms) };

pub fn run(setup: &SimulatedSetup, seed: u64, effort: &Effort) -> Result<Sample, InstrumentError> {
    let findings = setup.trial(seed, effort.hurry)?.run().map_err(InstrumentError::World)?;
    Ok(Sample { setup: *setup, findings })
}
