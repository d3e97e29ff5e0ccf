//! Every way to control concurrency, on every load, with few clients and with many: which is best at what.

use crate::driver::{self, Clock, Outcome, Run};
use crate::engine::{Control, Setting, Terms};
use crate::load::{Access, Keys, Mix};
use std::fmt::Write;
use std::time::Duration;

/// What is measured.
#[derive(Clone, Debug)]
pub struct Contest {
    pub keys: u32,
    pub round_trip: Duration,
    pub lasts: Duration,
    /// Numbers of clients.
    pub clients: Vec<usize>,
    /// Leaves that branching runs have at most.
    pub leaves_max: usize,
    /// Commits of a client between two of its ceilings.
    pub ceiling_every: u64,
    pub seed: u64,
    pub clock: Clock,
}

/// One load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    pub mix: Mix,
    pub access: Access,
}

impl Load {
    pub const ALL: [Load; 4] = [
        Load { mix: Mix::ReadHeavy, access: Access::Uniform },
        Load { mix: Mix::WriteHeavy, access: Access::Uniform },
        Load { mix: Mix::ReadHeavy, access: Access::Zipfian },
        Load { mix: Mix::WriteHeavy, access: Access::Zipfian },
    ];

    pub fn name(self) -> &'static str {
        match (self.mix, self.access) {
            (Mix::ReadHeavy, Access::Uniform) => "read-heavy, uniform",
            (_, Access::Uniform) => "write-heavy, uniform",
            (Mix::ReadHeavy, Access::Zipfian) => "read-heavy, Zipfian",
            (_, Access::Zipfian) => "write-heavy, Zipfian",
        }
    }
}

/// One control on one load, with each number of clients.
#[derive(Clone, Debug)]
pub struct Series {
    pub load: Load,
    pub control: Control,
    pub outcomes: Vec<Outcome>,
}

impl Series {
    /// The outcome with the highest throughput.
    pub fn best(&self) -> &Outcome {
        let best = self.outcomes.iter().max_by(|a, b| a.throughput().total_cmp(&b.throughput()));
        best.expect("a contest has a number of clients")
    }
}

impl Contest {
    /// How many runs there are.
    pub fn runs(&self) -> usize {
        Load::ALL.len() * Control::ALL.len() * self.clients.len()
    }

    /// Runs all of it; `done` is told of each run. All controls take their turns with one number of clients before the
    /// next, so that a machine that grows slower does so for all.
    pub fn run(&self, mut done: impl FnMut(Load, Control, &Outcome)) -> Vec<Series> {
        let mut all = Vec::new();
        for load in Load::ALL {
            let keys = Keys::new(self.keys, load.access);
            let mut series: Vec<Series> =
                Control::ALL.map(|control| Series { load, control, outcomes: Vec::new() }).into();
            for clients in &self.clients {
                for series in &mut series {
                    let outcome = driver::run(&self.one(series.control, *clients, load.mix, &keys), |_| {});
                    done(load, series.control, &outcome);
                    series.outcomes.push(outcome);
                }
            }
            all.extend(series);
        }
        all
    }

    fn one(&self, control: Control, clients: usize, mix: Mix, keys: &Keys) -> Run {
        Run {
            setting: Setting {
                control,
                clients,
                keys: self.keys,
                leaves_max: self.leaves_max,
                ceiling_every: self.ceiling_every,
                terms: Terms::default(),
            },
            keys: keys.clone(),
            mix,
            round_trip: self.round_trip,
            warm_up: self.lasts / 4,
            lasts: self.lasts,
            seed: self.seed,
            clock: self.clock,
            times_steps: false,
        }
    }
}

/// The results as a table, each control at its best number of clients.
pub fn table(all: &[Series]) -> String {
    let mut out = String::from(
        "| load | control | best with | committed/s | of locking | p50 ms | p99 ms | aborted/committed | merges/s | leaves |\n\
         |---|---|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for series in all {
        let best = series.best();
        let same = all.iter().find(|other| other.load == series.load && other.control == Control::Locking);
        let locking = same.map_or(f64::NAN, |other| other.best().throughput());
        let ms = |us: u32| f64::from(us) / 1_000.0;
        let merging = series.control == Control::Branching;
        let only = |text: String| if merging { text } else { String::new() };
        writeln!(
            out,
            "| {} | {} | {} | {:.0} | {:.2} | {:.1} | {:.1} | {:.2} | {} | {} |",
            series.load.name(),
            series.control.name(),
            best.clients,
            best.throughput(),
            best.throughput() / locking,
            ms(best.latency_us(0.5)),
            ms(best.latency_us(0.99)),
            best.aborted as f64 / best.committed.max(1) as f64,
            only(format!("{:.0}", best.merges as f64 / best.seconds)),
            only(best.leaves.to_string()),
        )
        .expect("a string takes all");
    }
    out
}
