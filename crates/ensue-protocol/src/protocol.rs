//! What every protocol answers: twelve methods under the names of the six questions, and two that say what it is.
//!
//! The first three questions (context, dependencies, visibility) are about what is remembered, and have the answers
//! of the family unless a protocol differs. The last three (choice, snapshot, forgetting) are about what is read; a
//! protocol whose writes wait where they arrive has the answers that stand here.

use crate::{
    Capabilities, Choice, Family, Late, Malformed, Needs, Past, Profile, Share, SnapshotCheck,
    StabilityState, Visibility, VisibilityPredicate,
};
use ensue_types::{Causes, OperationId, Reply, Source, TimeVector};
use std::fmt;

/// The six questions, in the order in which a value meets them.
pub trait Protocol: fmt::Debug + Send + Sync {
    /// Its name, what it offers its clients, and what it needs of a node.
    fn profile(&self) -> &Profile;

    /// How it remembers: the layout of contexts and dependencies, and what is done with them.
    fn family(&self) -> &dyn Family;

    /// 1, context: the session has read what these writes made. What is settled, every datacenter has durably
    /// applied: the session need not remember it, but it may still say how late the session is.
    fn record_reads(&self, context: &mut Causes, read: &[Source], settled: &[Source]) {
        self.family().record_reads(context, read, settled);
    }

    /// 1, context: the session has written. What the write itself read was recorded before.
    fn record_write(&self, context: &mut Causes, write: &Source) {
        self.family().record_write(context, write);
    }

    /// 2, dependencies: what a write of this session carries to the other datacenters. `observed` is what the write
    /// itself read in order to write; it is carried operation by operation and never folded, because the write may
    /// have drawn its time before other entries of those streams were logged.
    fn dependencies(&self, context: &Causes, observed: &[Source]) -> Causes {
        self.family().dependencies(context, observed)
    }

    /// 3, visibility: when a datacenter may merge a write that came from another one.
    fn visibility(&self, operation: OperationId, dependencies: &Causes) -> Result<Visibility, Malformed> {
        self.family().visibility(operation, dependencies)
    }

    /// 4, choice: which versions a read of this session may return here, now. May change the session's mode.
    fn choose(&self, _context: &mut Causes, _state: &StabilityState<'_>) -> Choice {
        Choice::Newest
    }

    /// 4, choice: whether a version is among those.
    fn is_visible(&self, _predicate: &VisibilityPredicate, _source: &Source) -> bool {
        true
    }

    /// 4, choice: a read has waited as long as it may. What its client is told, and what becomes of the session.
    fn timed_out(&self, _context: &mut Causes, missing: &str) -> Reply {
        Reply::Error(
            format!("BLOCKED this session depends on updates that have not arrived: {missing}").into(),
        )
    }

    /// 5, snapshot: the snapshot vector of this session, drawn by the first partition asked. None if the snapshot is
    /// read by logical time, in two rounds.
    fn snapshot_vector(&self, _context: &Causes, _state: &StabilityState<'_>) -> Option<TimeVector> {
        Some(TimeVector::default())
    }

    /// 5, snapshot: what becomes of a snapshot that has waited for its vector as long as it may.
    fn snapshot_timed_out(&self) -> Late {
        Late::GiveUp
    }

    /// 5, snapshot: whether the shares of a first round belong together, and if not, what to read again.
    fn check_snapshot(&self, _shares: &[Share<'_>]) -> SnapshotCheck {
        SnapshotCheck::Consistent
    }

    /// 6, forgetting: a write is about to carry this past. What of it every datacenter has durably applied, as far as
    /// the partition that takes the write knows, need not be carried.
    fn forget(&self, _context: &mut Causes, _is_globally_stable: &dyn Fn(&OperationId) -> bool) {}

    /// 6, forgetting: the lowest snapshot vector that a read which begins now may have; versions at or below it need
    /// not be told apart any more.
    fn floor(&self, _state: &StabilityState<'_>) -> TimeVector {
        TimeVector::default()
    }
}

/// What a node asks beside the questions.
impl dyn Protocol + '_ {
    pub fn name(&self) -> &'static str {
        self.profile().name
    }

    pub fn capabilities(&self) -> Capabilities {
        self.profile().capabilities
    }

    pub fn needs(&self) -> Needs {
        self.profile().needs
    }

    /// See `Family::past`.
    pub fn past(&self, context: &Causes) -> Result<Past, Malformed> {
        self.family().past(context)
    }

    /// See `Family::merge`.
    pub fn merge(&self, context: &mut Causes, other: &Causes) -> Result<(), Malformed> {
        self.family().merge(context, other)
    }

    /// See `Family::merge_shared`.
    pub fn merge_shared(&self, context: &mut Causes, shared: &Causes) -> Result<(), Malformed> {
        self.family().merge_shared(context, shared)
    }

    /// See `Family::has_all`.
    pub fn has_all(&self, vector: &TimeVector, state: &StabilityState<'_>) -> bool {
        self.family().has_all(vector, state)
    }
}
