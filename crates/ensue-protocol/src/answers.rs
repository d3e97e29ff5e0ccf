//! What a protocol's answers are made of.

use crate::VisibilityPredicate;
use ensue_types::{Causes, Dependency, LogicalTime, OperationId, PartitionId, TimeVector};

/// What must have been applied or received in a datacenter before a past may be shown there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Past {
    /// These operations, applied.
    Operations(Vec<Dependency>),
    /// Everything that each other datacenter wrote up to these times, received by every partition.
    Times(TimeVector),
}

/// When a write from another datacenter may be merged into the rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Visibility {
    Now,
    /// After all of these have been applied in this datacenter.
    After(Vec<Dependency>),
}

/// Which versions a read of a session may return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The newest of those merged.
    Newest,
    /// The newest of those that this shows.
    Shown(VisibilityPredicate),
    /// The newest of those merged, for a read of one version: whatever is older at its place it replaces. What a read
    /// of several puts together must be whole: if this does not show all of it, what this shows. So it is for writes,
    /// which read more than they tell.
    NewestIfWhole(VisibilityPredicate),
    /// None yet: something that the session depends on has not been received.
    Wait,
}

impl Choice {
    /// Whether the session sees only what is stable.
    pub fn is_stable(&self) -> bool {
        matches!(self, Choice::Shown(_))
    }
}

/// One partition's share of a first round: it is valid from its earliest to its latest valid time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share<'a> {
    pub partition: PartitionId,
    /// Nothing if an undecided transaction covers a location: the partition promised only the latest valid time.
    pub earliest: Option<LogicalTime>,
    pub latest: LogicalTime,
    /// What its values make a session remember.
    pub seen: &'a Causes,
}

/// A share that must be read again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Again {
    /// Which of them.
    pub share: usize,
    /// What was visible then is shown.
    pub at: LogicalTime,
    /// And these operations, if they have come later.
    pub with: Vec<OperationId>,
}

/// What a read transaction of two rounds does after its first round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotCheck {
    /// The first round's values belong together.
    Consistent,
    /// These shares must be read again.
    ReadAgain(Vec<Again>),
}

/// What becomes of a snapshot that has waited as long as it may for its cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// It is read by logical time, in two rounds.
    TwoRounds,
    /// Its session gives up.
    GiveUp,
}
