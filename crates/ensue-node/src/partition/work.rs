//! Work on its way through a partition: commands of a session, and whatever waits for its turn in its rows.

use crate::config::Tuning;
use bytes::Bytes;
use ensue_types::{Args, Context, DatacenterId, KeyspaceId, OperationId, Position, Reply, RequestId};
use ensue_wire::Address;
use std::collections::VecDeque;

/// Work that waits for its turn in its rows.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    /// A command of a session, or the commands of a `MULTI` over this partition alone.
    Commands(Box<Execution>),
    /// This partition's part of a local write transaction.
    LocalPart(OperationId),
    /// This partition's part of a replicated write transaction, at this place of its origin's stream.
    ReplicatedPart(DatacenterId, Position),
    /// A replicated write of this partition alone.
    Entry(DatacenterId, Position),
}

/// A batch on its way through this partition.
#[derive(Clone, Debug)]
pub(crate) struct Execution {
    pub from: Address,
    pub request: RequestId,
    pub keyspace: KeyspaceId,
    pub context: Context,
    pub commands: VecDeque<Args>,
    pub replies: Vec<Reply>,
    /// All commands are one write at one logical time, each with its place: a `MULTI` over this partition alone.
    pub atomic: Option<Vec<u32>>,
    /// All commands are of one moment: none is left for another turn.
    pub together: bool,
    /// The session has given up waiting for its past on the way.
    pub timed_out: bool,
    /// When it came: its client waits since then.
    pub since_us: u64,
    pub used: Used,
    /// Its first command is a pop that has waited, and is offered something.
    pub served: Option<Served>,
}

/// What a pop that waits is offered.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    /// Its place among those that wait.
    pub id: u64,
    /// Where there is something.
    pub key: Bytes,
}

/// What a batch has used of its session's turn.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Used {
    /// Looked at or changed.
    pub(in crate::partition) cells: usize,
    /// Of answers.
    pub(in crate::partition) bytes: usize,
}

impl Used {
    pub(in crate::partition) fn is_up(self, tuning: &Tuning) -> bool {
        self.cells >= tuning.turn_cells || self.bytes >= tuning.turn_answer_bytes
    }
}

pub(in crate::partition) const FORGOTTEN: Reply =
    Reply::error("TRYAGAIN the state of that moment is no longer known");
