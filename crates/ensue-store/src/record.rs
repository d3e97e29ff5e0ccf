//! The record of a partition's log: everything a partition must know again after a crash.
//!
//! Only `Own` and `Received` carry data that other datacenters see; the rest are steps of transactions and clocks.

use bytes::Bytes;
use ensue_types::{
    Causes, DatacenterId, DatacenterSet, DirectoryId, HomeMove, Incarnation, KeyspaceId, LogicalTime,
    OperationId, Part, Position, TimeVector,
};

/// One record of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// An entry of this partition's own stream, applied here. `entry` is its encoding, as the streams send it.
    Own { entry: Bytes },
    /// This partition coordinates a local write transaction, the `number`th of this incarnation. It holds the whole
    /// write set, so that a logged transaction can always be completed (trap 17).
    Begun { number: u64, keyspace: KeyspaceId, context: Causes, parts: Vec<Part> },
    /// This partition voted for its part of a local write transaction, at this logical time.
    Prepared { transaction: OperationId, keyspace: KeyspaceId, at: LogicalTime, part: Part },
    /// This coordinator decided a write transaction, local or replicated: it is visible here from this time on. Of a
    /// local one, `entry` is the `Transaction` entry of this partition's stream, whose position names it from now on.
    Decided { transaction: OperationId, at: LogicalTime, entry: Option<Bytes> },
    /// Every participant reported that its part is durable: nothing will be asked about this transaction again.
    Completed { transaction: OperationId },
    /// An entry of another datacenter's stream arrived, in order; it is kept but may not be visible yet.
    Received { origin: DatacenterId, incarnation: Incarnation, entry: Bytes },
    /// A received entry became visible here, at this logical time.
    Applied { origin: DatacenterId, incarnation: Incarnation, position: Position, at: LogicalTime },
    /// What is known of the other datacenters' time: what has been received here, and by every partition.
    Times { received: TimeVector, stable: TimeVector },
    /// A datacenter was declared dead: nothing more is taken from it. Everything that it wrote up to this time was here
    /// then.
    Dead { datacenter: DatacenterId, time: LogicalTime },
    /// A dead datacenter's stream is here up to its end, and with it everything that it wrote up to this time. `failed`
    /// had been declared dead before the end was found, itself among them. Logged again when every survivor has it.
    Ended { datacenter: DatacenterId, whole: LogicalTime, failed: DatacenterSet, everywhere: bool },
    /// All partitions of this datacenter have a dead one's streams up to their ends. It took with it what it wrote
    /// after `whole`; of what is here, nothing before `doubtful` may depend on that, but what those in `failed` wrote.
    Lost { datacenter: DatacenterId, whole: LogicalTime, doubtful: LogicalTime, failed: DatacenterSet },
    /// This datacenter is being removed and takes no more writes. Checkpoints hold it; in a copy that another one takes
    /// it says nothing, for it names the datacenter.
    Retiring { datacenter: DatacenterId },
    /// A home of keys moves, as far as this partition knows; checkpoints hold it.
    HomeMoved { moved: HomeMove },
    /// A write that was discarded with a dead datacenter; checkpoints hold it. The entry's transaction names it.
    Discarded { datacenter: DatacenterId, entry: Bytes },
    /// The directory of another datacenter's partition, as this one has known it since they first met; checkpoints
    /// hold it. `last` is
    /// the time of the last entry received from it, zero for none.
    Peer { datacenter: DatacenterId, directory: DirectoryId, last: LogicalTime },
    /// A state of a branching keyspace that was sent whole, in the keyspace's own bytes.
    Rebuilt { keyspace: KeyspaceId, rebuilt: Bytes },
    /// The clock shows no time at or above this before a new bound is logged.
    ClockBound { bound: LogicalTime },
}
