//! The six questions that every causally consistent store answers, as a trait, and one module a protocol.
//!
//! Everything else in the system is mechanism: a node asks these questions and never knows which protocol answers. What
//! a protocol remembers travels as opaque bytes of its own layout. Nothing here does I/O, and nothing here is stateful:
//! a protocol is a set of rules, the state is the session's context and the write's dependencies.

pub mod eiger;
pub mod eventual;
pub mod facts;

#[cfg(test)]
mod contract;

use ensue_types::{Dependency, LogicalTime, Opaque, OperationId, Rules};
use std::fmt;

/// The bytes of a context or of dependencies are not of this protocol's layout: a broken or foreign peer, or a forged
/// token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// When a write from another datacenter may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Now,
    /// After all of these have been applied in this datacenter.
    After(Vec<Dependency>),
}

/// How long one partition's share of a first round is valid: from its earliest to its latest valid time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// Nothing if an undecided transaction covers a location: the partition promised only the latest valid time.
    pub earliest: Option<LogicalTime>,
    pub latest: LogicalTime,
}

/// What a read transaction does after its first round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Snapshot {
    /// The first round's values belong together.
    Consistent,
    /// These shares must be read again, as of this time.
    ReadAgain { at: LogicalTime, shares: Vec<usize> },
}

/// What a protocol offers; what it lacks is refused by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Reads over several keys are of one moment.
    pub snapshot_reads: bool,
    /// Writes over several keys are atomic; without it they are plain parallel writes, and the docs say so.
    pub write_transactions: bool,
    /// Sessions carry their causal past: tokens mean something.
    pub causality: bool,
}

/// The six questions, in the order in which a value meets them.
pub trait Protocol: fmt::Debug + Send + Sync {
    /// The name in the configuration.
    fn name(&self) -> &'static str;

    fn capabilities(&self) -> Capabilities;

    /// Question 1, context: the session has read what these operations wrote.
    fn observe(&self, context: &mut Opaque, operations: &[OperationId]);

    /// Question 1, context: the session has written.
    fn wrote(&self, context: &mut Opaque, operation: OperationId);

    /// Question 1, context: the session takes over another's past: a token, a shared context, or what a share of a read saw.
    fn join(&self, context: &mut Opaque, other: &Opaque) -> Result<(), Malformed>;

    /// Question 1, context: what must have been applied somewhere before this past may be shown there.
    fn past(&self, context: &Opaque) -> Result<Vec<Dependency>, Malformed>;

    /// Question 2, dependencies: what a write of this session carries to the other datacenters. `observed` is what the write itself
    /// read in order to write; it is carried operation by operation and never folded, because the write may have drawn
    /// its time before other entries of those streams were logged.
    fn dependencies(&self, context: &Opaque, observed: &[OperationId]) -> Opaque;

    /// Question 3, visibility: when a datacenter may show a write that came from another one.
    fn verdict(&self, dependencies: &Opaque) -> Result<Verdict, Malformed>;

    /// Question 4, choice: whether a read may return a value whose location an undecided transaction covers.
    fn reads_past_undecided(&self) -> bool;

    /// Question 5, snapshot: whether the shares of a first round belong together, and if not, what to read again.
    fn snapshot(&self, shares: &[Validity]) -> Snapshot;

    /// Question 6, forgetting: whether versions overwritten while a read transaction runs are kept for its second round.
    fn keeps_old_versions(&self) -> bool;

    /// Question 6, forgetting: whether locations keep each write apart until all readers see it, because a read shows the newest
    /// version that its snapshot covers.
    fn keeps_versions(&self) -> bool;
}

/// The protocol of this name. `context_operations_max` bounds contexts of the list family; all `rules` hold outside the
/// simulator.
pub fn by_name(name: &str, context_operations_max: usize, rules: Rules) -> Option<Box<dyn Protocol>> {
    match name {
        "eventual" => Some(Box::new(eventual::Eventual)),
        "eiger" => Some(Box::new(eiger::Eiger::new(context_operations_max, rules))),
        _ => None,
    }
}

/// The names of all protocols, the default first.
pub const NAMES: [&str; 2] = ["eiger", "eventual"];
