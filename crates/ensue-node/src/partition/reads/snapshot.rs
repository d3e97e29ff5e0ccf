//! Reads at logical times: both rounds of a read transaction, and reads that meet an undecided transaction (Eiger 4,
//! 5.4).
//!
//! A read never waits for a writer: it asks the coordinator of each undecided transaction that may come before its time
//! whether it did, and the coordinator answers at once. A transaction that did, but that nobody has been told of yet,
//! is not waited for either: what was there before it is read, unless some of what is read is newer than its commit
//! time.

use crate::partition::cx::{Cx, coordinator_of};
use crate::partition::keyspaces::snapshot::{FirstRead, SecondRead};
use crate::partition::order::RowName;
use crate::partition::work::Execution;
use ensue_types::{Args, KeyspaceId, LogicalTime, OperationId, PartitionId};
use ensue_wire::Message;
use std::collections::BTreeMap;

/// Reads that wait for coordinators.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshots {
    waiting: BTreeMap<u64, WaitingRead>,
}

#[derive(Clone, Debug)]
struct WaitingRead {
    at: LogicalTime,
    /// Transactions whose coordinators have not answered.
    unanswered: Vec<OperationId>,
    /// When the first of those commits that nobody has been told of.
    unannounced: Option<LogicalTime>,
    /// It waits for those, too.
    waits: bool,
    since_us: u64,
    read: Read,
}

/// A read that all coordinators have answered.
#[derive(Clone, Debug)]
pub(in crate::partition) struct Answered {
    pub(in crate::partition) at: LogicalTime,
    pub(in crate::partition) unannounced: Option<LogicalTime>,
    pub(in crate::partition) waits: bool,
    pub(in crate::partition) read: Read,
}

#[derive(Clone, Debug)]
pub(in crate::partition) enum Read {
    /// The first command of a session's batch.
    Batch(Box<Execution>),
    First(FirstRead),
    Second(SecondRead),
}

impl Read {
    /// The commands that are read now.
    pub(in crate::partition) fn commands(&self) -> (KeyspaceId, &[Args]) {
        match self {
            Read::Batch(execution) => {
                let first = execution.commands.as_slices().0;
                (execution.keyspace, &first[..first.len().min(1)])
            }
            Read::First(read) => (read.keyspace, &read.commands),
            Read::Second(read) => (read.keyspace, &read.commands),
        }
    }

    pub(in crate::partition) fn rows(&self, cx: &Cx) -> Vec<RowName> {
        let (keyspace, commands) = self.commands();
        cx.rows_of(keyspace, commands)
    }
}

impl Snapshots {
    /// A read at a time waits for the coordinators of these transactions, each of which was asked under one number.
    pub(in crate::partition) fn wait(
        &mut self,
        cx: &Cx,
        check: u64,
        at: LogicalTime,
        unanswered: Vec<OperationId>,
        waits: bool,
        read: Read,
    ) {
        let since_us = cx.now.monotonic_us;
        let waiting = WaitingRead { at, unanswered, unannounced: None, waits, since_us, read };
        self.waiting.insert(check, waiting);
    }

    /// One of the transactions that a read was asked about commits at this time, and nobody else has been told.
    pub(in crate::partition) fn note_unannounced(&mut self, check: u64, commits_at: LogicalTime) {
        if let Some(waiting) = self.waiting.get_mut(&check) {
            let first = waiting.unannounced.map_or(commits_at, |first| first.min(commits_at));
            waiting.unannounced = Some(first);
        }
    }

    /// Panics if a read waits for nobody: nobody would resume it.
    pub(super) fn check_invariants(&self) -> usize {
        for (check, waiting) in &self.waiting {
            assert!(!waiting.unanswered.is_empty(), "read {check} waits for no coordinator");
        }
        self.waiting.len()
    }

    /// The time at which a read is that waits under this number.
    pub(in crate::partition) fn time_of(&self, check: u64) -> Option<LogicalTime> {
        self.waiting.get(&check).map(|waiting| waiting.at)
    }

    /// One of the coordinators has answered a read.
    pub(in crate::partition) fn answer_read(&mut self, check: u64, transaction: OperationId) {
        if let Some(waiting) = self.waiting.get_mut(&check) {
            waiting.unanswered.retain(|unanswered| *unanswered != transaction);
        }
    }

    /// A read that waits for nobody any more.
    pub(in crate::partition) fn take_answered(&mut self) -> Option<Answered> {
        let mut answered = self.waiting.iter().filter(|(_, waiting)| waiting.unanswered.is_empty());
        let check = *answered.next()?.0;
        let WaitingRead { at, unannounced, waits, read, .. } = self.waiting.remove(&check)?;
        Some(Answered { at, unannounced, waits, read })
    }

    /// A transaction was decided by its coordinator's own message: nobody needs to hear of it again.
    pub(crate) fn answer_reads(&mut self, transaction: OperationId) {
        for waiting in self.waiting.values_mut() {
            waiting.unanswered.retain(|unanswered| *unanswered != transaction);
        }
    }

    /// Asks the coordinators on another core again, after the link to it broke.
    pub(in crate::partition) fn repeat_commit_checks(
        &mut self,
        cx: &mut Cx,
        owns: &dyn Fn(PartitionId) -> bool,
    ) {
        let mut again = Vec::new();
        for (&check, waiting) in &self.waiting {
            for &transaction in waiting.unanswered.iter().filter(|t| owns(coordinator_of(**t))) {
                again.push((check, transaction, waiting.at, waiting.waits));
            }
        }
        for (check, transaction, at, waits) in again {
            let message = Message::CommitCheck { check, transaction, at, waits };
            cx.send_local(coordinator_of(transaction), message);
        }
    }

    /// Gives up reads whose sessions have long given up.
    pub(in crate::partition) fn forget_old_reads(&mut self, cx: &Cx) {
        let oldest = cx.now.monotonic_us.saturating_sub(2_000 * cx.config.tuning.request_timeout_ms);
        self.waiting.retain(|_, waiting| waiting.since_us >= oldest);
    }

    pub(in crate::partition) fn waiting_reads(&self) -> usize {
        self.waiting.len()
    }
}
