//! The entry of a stream: one write of one partition, as it is logged at its origin, sent, and logged again elsewhere.
//!
//! An entry is encoded once, by the partition that accepted the write; every other place keeps and passes on the same
//! bytes. This file knows what an entry means; `layout` knows its bytes.

use bytes::Bytes;
use ensue_types::{Causes, KeyspaceId, OperationId, PartitionId, Position, Previous, RowEffect, Stamp};

/// One place of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Place in the stream of (origin datacenter, partition), within the origin's incarnation.
    pub position: Position,
    /// Arbitration order of the effects.
    pub stamp: Stamp,
    /// What must be visible in a datacenter before this entry, in the keyspace's protocol's own bytes.
    pub dependencies: Causes,
    pub change: Change,
    /// What each value and tombstone among the effects replaced where it was written, in their order; empty unless the
    /// keyspace's protocol asks for it.
    pub previous: Vec<Previous>,
}

/// What an entry changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Effects on rows of this partition. With a transaction, they are one part of it.
    Effects { keyspace: KeyspaceId, transaction: Option<OperationId>, effects: Vec<RowEffect> },
    /// A write transaction over several partitions was decided here; its identity is this very place. The parts stand
    /// in the streams of the participants, this partition's own part included if it is one of them. `begun_as` is the
    /// name that its own datacenter knew it by until then; format 6 and older have none.
    Transaction { keyspace: KeyspaceId, begun_as: Option<OperationId>, participants: Vec<PartitionId> },
    /// Every base value of the keyspace in this partition with a lower stamp is gone. Additions to counters do not go
    /// by stamp: `effects` deletes each counter that the flusher saw, with the additions it saw.
    Flush { keyspace: KeyspaceId, effects: Vec<RowEffect> },
    /// The first entry of an incarnation: of the one before, nothing after this position will ever come. The origin
    /// lost it with the power, and nobody who was asked had it.
    Lost { after: Position },
    /// A commit or a ceiling of a branching keyspace, in its own bytes.
    Branch { keyspace: KeyspaceId, note: Bytes },
}

impl Entry {
    /// The keyspace that the entry belongs to.
    pub fn keyspace(&self) -> KeyspaceId {
        match &self.change {
            Change::Effects { keyspace, .. }
            | Change::Transaction { keyspace, .. }
            | Change::Flush { keyspace, .. }
            | Change::Branch { keyspace, .. } => *keyspace,
            Change::Lost { .. } => KeyspaceId(0),
        }
    }
}
