//! Reads over several owners at one snapshot vector, in one round: for protocols whose partitions run them
//! (`partition/reads/snapshot_reads.rs`).
//!
//! - Send: `ReadSnapshot` with all parts to the owner of the first key, who chooses the snapshot vector.
//! - On the values: the session's past includes them; answer.
//! - Too late: by logical time, in two rounds (`read`), where the protocol can; otherwise the client tries again.
//! - Timed out: every command gets the protocol's error, and the session is what the protocol made of it.

use super::read::Reading;
use super::{Exchange, TRY_AGAIN};
use crate::session::cx::Cx;
use crate::session::failure::Failure;
use crate::session::plan::Plan;
use crate::session::step::Step;
use ensue_types::PartitionId;
use ensue_wire::{Message, SnapshotOutcome};

/// Waiting for `SnapshotRead`.
#[derive(Clone, Debug)]
pub(crate) struct SnapshotRead {
    plan: Plan,
}

impl SnapshotRead {
    pub(crate) fn begin(cx: &mut Cx<'_>, plan: Plan) -> Step<Exchange> {
        cx.begin_request(1);
        if let Some(failure) = cx.refusal(plan.parts().iter().map(|part| part.partition)) {
            return Step::Failed(failure);
        }
        let read = SnapshotRead { plan };
        let message = Message::ReadSnapshot {
            request: cx.request(0),
            keyspace: cx.keyspace(),
            context: cx.contexts.own().clone(),
            parts: read.plan.parts().to_vec(),
        };
        cx.send(read.first(), message);
        Step::Waits(Exchange::Snapshot(Box::new(read)))
    }

    /// The partition that runs it.
    pub(crate) fn first(&self) -> PartitionId {
        self.plan.parts()[0].partition
    }

    /// All partitions that are read.
    pub(crate) fn needed(&self) -> Vec<PartitionId> {
        self.plan.parts().iter().map(|part| part.partition).collect()
    }

    pub(crate) fn on_answer(self: Box<Self>, cx: &mut Cx<'_>, message: Message) -> Step<Exchange> {
        let Message::SnapshotRead { outcome, .. } = message else {
            return cx.unexpected(Exchange::Snapshot(self));
        };
        match outcome {
            SnapshotOutcome::Read { context, replies } => {
                cx.contexts.replace(cx.keyspace(), context);
                let mut answers = self.plan.answers();
                replies.into_iter().for_each(|(piece, reply)| answers.put(piece, reply));
                Step::Gathered(self.plan, answers)
            }
            SnapshotOutcome::TooLate if cx.protocol().needs().second_rounds => Reading::begin(cx, self.plan),
            SnapshotOutcome::TooLate => Step::Failed(Failure::Refused(TRY_AGAIN)),
            SnapshotOutcome::TimedOut { context, reply } => {
                cx.contexts.replace(cx.keyspace(), context);
                Step::Failed(Failure::Refused(reply))
            }
        }
    }
}
