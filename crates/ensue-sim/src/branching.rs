//! Keyspaces with branches in simulated worlds: the clients that branch and merge, and the oracle that judges what they
//! were answered by a reference store that keeps every state whole.
//!
//! World, network, disks, clocks and faults are those of every other protocol; only who asks and who judges differ.

pub mod clients;
pub mod constraint;
pub mod draw;
pub mod graph;
pub mod id;
pub mod options;
pub mod oracle;
pub mod record;
pub mod rest;
pub mod rows;
pub mod tale;

/// What is violated; `docs/oracle.md` says how each is checked.
pub mod property {
    pub const ISOLATION: &str = "T1 a read does not return what stands at its state";
    pub const MERGED: &str = "T3 a merge does not read, or join, what its states say";
    pub const REPLICAS: &str = "T4 two things are told of one state";
    pub const COLLECTED: &str = "T5 a state is missing that nobody gave up";
    pub const CEILING: &str = "T5 a transaction begins above a ceiling of its site";
    pub const BEGIN: &str = "T6 a transaction begins where its constraint does not hold";
    pub const END: &str = "T6 a transaction commits where its constraint does not hold";
    pub const ABORTED: &str = "T6 a transaction is aborted though its constraint holds somewhere";
    pub const NEWEST: &str = "T6 a transaction does not begin at the newest state that it may";
    pub const FORKED: &str = "T6 a transaction forks where it need not";
    pub const ANCHOR: &str = "T6 a session does not stand where it was";
    pub const FORK_POINTS: &str = "T3 fork points do not add up";
    pub const CONFLICTS: &str = "T3 conflicting keys are not those that two branches wrote";
    pub const LEAVES: &str = "T4 leaves are not the newest states";
    pub const BOUND: &str = "T5 states or records stay for ever";
}
