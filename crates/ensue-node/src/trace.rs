//! What happens inside, as one event enum: logs, counters, the simulator's marks and its hash all read these.

use ensue_types::{DatacenterId, KeyspaceId, OperationId, PartitionId, Position, SessionId};

/// An event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Trace {
    /// The replica of a partition on this core was elected: the partition lives here.
    Leads {
        partition: PartitionId,
        term: u64,
    },
    LeadsNoMore {
        partition: PartitionId,
    },
    /// The partition has no replica here any more.
    ReplicaDismissed {
        partition: PartitionId,
    },
    /// A replica goes on, and says what an operator is to know.
    ReplicaTroubled {
        partition: PartitionId,
        words: String,
    },
    /// A replica cannot go on, and says why; the others do.
    ReplicaStopped {
        partition: PartitionId,
        reason: String,
    },
    /// A partition has read its log and answers commands.
    PartitionReady {
        partition: PartitionId,
        records: u64,
    },
    /// A partition stopped, and why; it answers commands with an error.
    PartitionStopped {
        partition: PartitionId,
        reason: String,
    },
    /// The disk is full: writes are refused, and what other datacenters send waits.
    DiskFull {
        partition: PartitionId,
    },
    /// There is room again, and everything goes on.
    RoomAgain {
        partition: PartitionId,
    },
    /// The end of a log was torn by a crash and has been cut.
    TornTail {
        partition: PartitionId,
        bytes: u64,
    },
    /// A partition started without knowing that its log is whole: it asks the other datacenters.
    TailLost {
        partition: PartitionId,
    },
    /// Own entries that this log had lost came back from another datacenter.
    TailRecovered {
        partition: PartitionId,
        entries: u64,
    },
    /// A datacenter's stream ended after this position when it lost its tail: the rest of that incarnation is lost.
    DeclaredLost {
        partition: PartitionId,
        origin: DatacenterId,
        after: Position,
    },
    /// The directory is new: the other datacenters are asked whether an earlier one was lost.
    Joining {
        partition: PartitionId,
    },
    /// An earlier directory was lost, and not all that it held can be had again: nothing is served.
    CannotRejoin {
        partition: PartitionId,
        reason: String,
    },
    /// An earlier directory was lost: all that it held is taken from the other datacenters.
    Rejoining {
        partition: PartitionId,
    },
    /// An earlier directory was lost, and logs lack some of what it held: a copy of another datacenter's is taken.
    CopyBegun {
        partition: PartitionId,
        donor: DatacenterId,
    },
    /// The copy broke off, and nothing of it is kept.
    CopyGivenUp {
        partition: PartitionId,
        donor: DatacenterId,
    },
    /// The directory holds the copy.
    Copied {
        partition: PartitionId,
        donor: DatacenterId,
    },
    /// Nothing is exchanged with a datacenter any more: something about it is wrong.
    PeerRefused {
        partition: PartitionId,
        datacenter: DatacenterId,
        reason: String,
    },
    /// A refused datacenter has introduced itself in order, or an operator wants it looked at again.
    PeerReadmitted {
        partition: PartitionId,
        datacenter: DatacenterId,
    },
    /// What was written since the start, and times, go out, though these datacenters have not said whether the
    /// directory is an old copy.
    GoesOnUnproved {
        partition: PartitionId,
        without: Vec<DatacenterId>,
    },
    /// Something depends on an operation that was declared lost: there is nothing to wait for.
    DependsOnLost {
        partition: PartitionId,
        operation: OperationId,
    },
    /// A datacenter was declared dead: nothing more is taken from it.
    DeclaredDead {
        partition: PartitionId,
        datacenter: DatacenterId,
    },
    /// The own datacenter is being removed: no write is taken any more.
    Retiring {
        partition: PartitionId,
    },
    /// All that anybody has of a dead datacenter's stream is here.
    StreamSettled {
        partition: PartitionId,
        datacenter: DatacenterId,
        end: Position,
    },
    /// What may depend on what a dead datacenter took with it was discarded: so many writes so far.
    Discarded {
        partition: PartitionId,
        count: u64,
    },
    /// A part of a transaction that no decision will ever reach was given up.
    PartAbandoned {
        partition: PartitionId,
        transaction: OperationId,
    },
    /// A part voted for lost its place: its coordinator waits again for what the transaction depends on.
    VoteGivenBack {
        partition: PartitionId,
        transaction: OperationId,
    },
    /// A replicated write had to wait for dependencies.
    DependencyWaited {
        partition: PartitionId,
        origin: DatacenterId,
        position: Position,
    },
    /// A write of another datacenter became visible at a partition.
    Applied {
        partition: PartitionId,
        origin: DatacenterId,
        position: Position,
    },
    /// An entry arrived that had been received before.
    DuplicateDropped {
        partition: PartitionId,
        origin: DatacenterId,
        position: Position,
    },
    /// A read transaction needed its second round.
    SecondRound {
        session: SessionId,
    },
    /// A read transaction had to start again.
    ReadRestarted {
        session: SessionId,
    },
    /// A read asked a coordinator about an undecided transaction.
    CommitCheck {
        partition: PartitionId,
        transaction: OperationId,
    },
    /// A read passed over a transaction that nobody had seen.
    PassedOver {
        partition: PartitionId,
    },
    /// A part of a transaction lost arbitration on at least one location.
    LosingWrite {
        partition: PartitionId,
        transaction: OperationId,
    },
    /// A step of a write transaction was taken at this partition: where the simulator aims its crashes.
    TransactionStep {
        partition: PartitionId,
        transaction: OperationId,
        step: TransactionStep,
    },
    /// A command has removed all columns of a row by one effect.
    RowRemoved {
        partition: PartitionId,
    },
    /// Tombstones that can no longer matter were removed.
    TombstonesCollected {
        partition: PartitionId,
        count: u64,
    },
    /// A checkpoint is durable.
    Checkpointed {
        partition: PartitionId,
        number: u64,
    },
    /// Another datacenter says that it refuses this one's time, which is so far ahead of its clock; with 0 it takes
    /// it again.
    TimeRefused {
        partition: PartitionId,
        by: DatacenterId,
        ahead_ms: u64,
    },
    /// A handler of conflicts made nothing of values that a write met: the last writer's is shown.
    HandlerFailed {
        partition: PartitionId,
        keyspace: KeyspaceId,
        handler: String,
        why: String,
    },
    /// A peer or a clock did something that is not allowed; what came of it was dropped.
    Refused {
        what: &'static str,
    },
    /// A script writes a line into the log, at a level from 0 (debug) to 3 (warning).
    ScriptLogged {
        partition: PartitionId,
        level: u8,
        text: String,
    },
}

/// The five message points of a write transaction (section 5), at its origin and elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TransactionStep {
    /// The coordinator logged it (origin), or a part arrived (elsewhere).
    Begun,
    /// A participant prepared and voted.
    Voted,
    /// The coordinator decided.
    Decided,
    /// A participant committed its part.
    Committed,
    /// The coordinator heard from every participant.
    Completed,
}
