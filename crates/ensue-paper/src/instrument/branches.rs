//! Transactions on branches, under locks and optimistically, on the same storage code in this process, in real time.

use super::Effort;
use crate::figure::Metric;
use ensue_bench::driver::{self, Clock, Outcome, Run, StepKind};
use ensue_bench::{Access, Control, Keys, Mix, Setting, Terms};
use std::time::Duration;

pub const WORDS: &str = "transactions in this process (`ensue-bench`), one thread, the same storage code under every \
                         control; interactive clients, a round trip an operation";

/// One control and its clients.
#[derive(Clone, Copy, Debug)]
pub struct BranchSetup {
    pub control: Control,
    pub terms: Terms,
    pub mix: Mix,
    pub access: Access,
    pub keys: u32,
    pub clients: usize,
    pub round_trip_us: u64,
    pub leaves_max: usize,
    pub ceiling_every: u64,
    /// How much longer than another run it takes.
    pub times_longer: u32,
    pub times_steps: bool,
}

impl BranchSetup {
    pub const BASE: BranchSetup = BranchSetup {
        control: Control::Branching,
        terms: Terms { parent: false, snapshot: false },
        mix: Mix::ReadHeavy,
        access: Access::Uniform,
        keys: 100_000,
        clients: 256,
        round_trip_us: 500,
        leaves_max: 128,
        ceiling_every: 1_000,
        times_longer: 1,
        times_steps: false,
    };
}

#[derive(Clone, Debug)]
pub struct Sample {
    pub setup: BranchSetup,
    pub outcome: Outcome,
}

impl Sample {
    fn step_us(&self, kind: StepKind) -> Option<f64> {
        self.outcome.step_us(kind)
    }
}

pub const COMMITTED: Metric<Sample> = Metric {
    name: "committed transactions a second",
    unit: "1/s",
    of: |sample| Some(sample.outcome.throughput()),
};
pub const LATENCY_MS: Metric<Sample> = Metric {
    name: "median time of a transaction",
    unit: "ms",
    of: |sample| Some(f64::from(sample.outcome.latency_us(0.5)) / 1e3),
};
pub const ABORTS: Metric<Sample> = Metric {
    name: "aborts of a committed transaction",
    unit: "",
    of: |sample| Some(sample.outcome.aborted as f64 / sample.outcome.committed.max(1) as f64),
};
pub const USEFUL: Metric<Sample> = Metric {
    name: "useful share of clients' time",
    unit: "",
    of: |sample| Some(sample.outcome.useful(Duration::from_micros(sample.setup.round_trip_us))),
};
pub const STATES: Metric<Sample> =
    Metric { name: "states kept", unit: "", of: |sample| Some(sample.outcome.states as f64) };
pub const RECORDS: Metric<Sample> =
    Metric { name: "versions of keys kept", unit: "", of: |sample| Some(sample.outcome.records as f64) };
pub const BEGIN_US: Metric<Sample> =
    Metric { name: "begin", unit: "us", of: |sample| sample.step_us(StepKind::Begin) };
pub const GET_US: Metric<Sample> =
    Metric { name: "get", unit: "us", of: |sample| sample.step_us(StepKind::Get) };
pub const PUT_US: Metric<Sample> =
    Metric { name: "put", unit: "us", of: |sample| sample.step_us(StepKind::Put) };
pub const COMMIT_US: Metric<Sample> =
    Metric { name: "commit", unit: "us", of: |sample| sample.step_us(StepKind::Commit) };

pub fn run(setup: &BranchSetup, seed: u64, effort: &Effort) -> Sample {
    let lasts = effort.lasts * setup.times_longer;
    let run = Run {
        setting: Setting {
            control: setup.control,
            clients: setup.clients,
            keys: setup.keys,
            leaves_max: setup.leaves_max,
            ceiling_every: setup.ceiling_every,
            terms: setup.terms,
        },
        keys: Keys::new(setup.keys, setup.access),
        mix: setup.mix,
        round_trip: Duration::from_micros(setup.round_trip_us),
        warm_up: lasts / 4,
        lasts,
        seed,
        clock: Clock::Real,
        times_steps: setup.times_steps,
    };
    Sample { setup: *setup, outcome: driver::run(&run, |_| {}) }
}
