//! The simulator: clients, the machines of this crate, and a modelled replica group whose messages are lost, late and
//! doubled, and of whose replicas some lie.
//!
//! One seed draws the whole world: its shape (`shape.rs`), its faults, its clients and the order of events. The replica
//! group (`service.rs`) orders requests as one log, which is the model of a correct Byzantine-fault-tolerant engine;
//! each replica executes the log late and at its own pace. What liars do is in `liar.rs`. `prophecy.rs` and
//! `d_prophecy.rs` drive the machines of the two systems. What clients did and saw is a history, which the judge of
//! `ensue-check` judges; `spread.rs` checks what no history shows.
//!
//! Time is virtual. The same seed gives the same events, which a hash over them shows.

mod clients;
mod d_prophecy;
mod liar;
mod message;
mod prophecy;
mod queue;
mod service;
mod shape;
mod spread;

pub use liar::Lie;
pub use shape::Shape;

use crate::history::History;
use crate::history::judge::{self, HistoryError};
use crate::rule::Broken;
use crate::statistics::Statistics;
use std::fmt;

/// Which of the two systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// With trusted sketchers.
    Prophecy,
    /// Without trusted components.
    DProphecy,
}

/// What a seed does not decide.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Replicas that lie; as many as the group tolerates at most, if not given.
    pub liars: Option<usize>,
    /// The system; drawn if not given.
    pub system: Option<System>,
    /// The rule that does not hold.
    pub broken: Broken,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// The history of the clients is not delay-once linearizable.
    History(judge::Violation),
    /// The history cannot be judged: the simulator's own fault.
    Unjudged(HistoryError),
    /// Clients were not answered in the time that faults can account for.
    Stuck { unanswered: usize },
    /// So many fast reads in a row went to one replica.
    OneReplica { fast_reads: usize },
    /// So many fast reads in a row of a request that changed with each of them failed.
    WastedReads { fast_reads: usize },
    /// A replica that never lied is said to have.
    WronglyNamed { replica: String },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::History(violation) => violation.fmt(f),
            Violation::Unjudged(error) => write!(f, "the history cannot be judged: {error}"),
            Violation::Stuck { unanswered } => write!(f, "{unanswered} clients were never answered"),
            Violation::OneReplica { fast_reads } => {
                write!(
                    f,
                    "{fast_reads} fast reads in a row went to one replica, which a uniform choice does not do"
                )
            }
            Violation::WastedReads { fast_reads } => {
                write!(
                    f,
                    "{fast_reads} fast reads in a row failed on a request that always changes: not blacklisted"
                )
            }
            Violation::WronglyNamed { replica } => write!(f, "{replica} never lied, and is named as a liar"),
        }
    }
}

/// One seed's run.
#[derive(Clone, Debug)]
pub struct Report {
    /// What the seed drew.
    pub shape: Shape,
    /// What clients did and saw.
    pub history: History,
    /// Operations that were answered.
    pub operations: usize,
    /// Reads that one replica answered.
    pub fast_reads: usize,
    /// Reads, of all.
    pub reads: usize,
    /// Reads that were stale, and the most in a row of one object.
    pub stale_reads: usize,
    /// See `stale_reads`.
    pub stale_run_max: usize,
    /// The counts of the sketchers, of Prophecy.
    pub statistics: Vec<Statistics>,
    /// What went wrong.
    pub violations: Vec<Violation>,
    /// Of every event in its order.
    pub event_hash: u64,
}

/// What the driver of a system leaves.
struct Ran {
    history: History,
    fast_reads: usize,
    statistics: Vec<Statistics>,
    violations: Vec<Violation>,
    event_hash: u64,
}

/// Runs one seed.
pub fn run(seed: u64, options: &Options) -> Report {
    let shape = Shape::draw(seed, options);
    let mut ran = match shape.system {
        System::Prophecy => prophecy::run(&shape, options.broken),
        System::DProphecy => d_prophecy::run(&shape, options.broken),
    };
    let verdict = judge::judge(&ran.history);
    let verdict = verdict.unwrap_or_else(|error| {
        ran.violations.push(Violation::Unjudged(error));
        judge::Verdict::default()
    });
    ran.violations.extend(verdict.violations.into_iter().map(Violation::History));
    Report {
        shape,
        operations: ran.history.operations.iter().filter(|one| one.returned_us.is_some()).count(),
        history: ran.history,
        fast_reads: ran.fast_reads,
        reads: verdict.reads,
        stale_reads: verdict.stale_reads,
        stale_run_max: verdict.stale_run_max,
        statistics: ran.statistics,
        violations: ran.violations,
        event_hash: ran.event_hash,
    }
}

#[cfg(test)]
mod tests;
