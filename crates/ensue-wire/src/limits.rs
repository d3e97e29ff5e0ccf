//! Every bound of a message, with the reason for each figure. Reader and writer keep the same ones.
//!
//! Sizes that a client or the store can feel come from `ensue_types::limits`. The codec checks layout only: whether a
//! partition, a keyspace or a datacenter of that number exists is the question of whoever routes the message.

use ensue_types::limits::{
    ARGUMENTS_MAX, BULK_BYTES_MAX, CHANNEL_BYTES_MAX, CHANNELS_MAX, CONTEXT_OPERATIONS_MAX, DATACENTERS_MAX,
    FRAME_BYTES_MAX, HOMES_MAX, KEY_BYTES_MAX, KEYSPACES, PARTITIONS_MAX, STREAM_BATCH_ENTRIES,
};

/// A bound and the words for what it bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    pub what: &'static str,
    pub max: usize,
}

/// The body of a frame.
pub const FRAME: Bound = Bound { what: "bytes in a frame", max: FRAME_BYTES_MAX };
/// Items of all lists of one message together. An item takes up to ten times its bytes on the wire once it is decoded,
/// and this bounds what a frame of empty items can make of that.
pub const ITEMS: Bound = Bound { what: "items in a message", max: 8 << 20 };

/// One argument, as long as a client may send it.
pub const ARGUMENT_BYTES: Bound = Bound { what: "bytes in an argument", max: BULK_BYTES_MAX };
pub const ARGUMENTS: Bound = Bound { what: "arguments of a command", max: ARGUMENTS_MAX };
/// Commands of one message: a multi-key command becomes one a key, so as many as a command has arguments.
pub const COMMANDS: Bound = Bound { what: "commands in a message", max: ARGUMENTS_MAX };
/// One for each command.
pub const REPLIES: Bound = Bound { what: "replies in a message", max: ARGUMENTS_MAX };
/// One part a partition.
pub const PARTS: Bound = Bound { what: "parts of a transaction", max: PARTITIONS_MAX as usize };

/// A string inside a reply; the frame bounds it in the end.
pub const REPLY_BYTES: Bound = Bound { what: "bytes in a reply", max: FRAME_BYTES_MAX };
/// A status or an error. Errors quote what the client sent, and quote it shortened.
pub const TEXT_BYTES: Bound = Bound { what: "bytes in a status or an error", max: 64 << 10 };
/// Items of one array, set or map.
pub const REPLY_ITEMS: Bound = Bound { what: "items in a reply", max: ITEMS.max };
/// Arrays, maps and sets within each other. Commands nest three deep; the reader recurses, so this bounds its stack.
pub const NESTING: Bound = Bound { what: "levels of nested replies", max: 16 };

/// What a session depends on: a watermark for every stream of the largest cluster takes less than a tenth of this.
pub const CONTEXT_BYTES: Bound = Bound { what: "bytes in a context", max: 8 << 20 };
/// What a context names one by one, and four incarnations of every stream of the largest cluster.
pub const DEPENDENCIES: Bound = Bound {
    what: "dependencies in a message",
    max: CONTEXT_OPERATIONS_MAX + 4 * DATACENTERS_MAX * PARTITIONS_MAX as usize,
};
/// A shared context's name, bounded like a key.
pub const NAME_BYTES: Bound = Bound { what: "bytes in a context's name", max: KEY_BYTES_MAX };

/// A channel's name or a pattern, as long as a client may give it.
pub const CHANNEL_BYTES: Bound = Bound { what: "bytes in a channel's name", max: CHANNEL_BYTES_MAX };
/// Far more than are said at once.
pub const INTERESTS: Bound = Bound { what: "channels in a message", max: CHANNELS_MAX };
/// One past a keyspace.
pub const PASTS: Bound = Bound { what: "pasts in a message", max: KEYSPACES as usize };

/// Lines of `INFO` and of `CLIENT LIST` about one core.
pub const ANSWER_BYTES: Bound = Bound { what: "bytes in a core's answer", max: 64 << 20 };
/// A message between replicas, which may hold one entry of any length.
pub const REPLICA_BYTES: Bound = Bound { what: "bytes between replicas", max: FRAME_BYTES_MAX };
pub const METRICS: Bound = Bound { what: "metrics in a message", max: 4096 };
pub const METRIC_NAME_BYTES: Bound = Bound { what: "bytes in a figure's name", max: 256 };

/// Entries of a stream in one message: room for a sender of a later release that batches more.
pub const ENTRIES: Bound = Bound { what: "entries in a message", max: 16 * STREAM_BATCH_ENTRIES };
/// One entry; the frame bounds it in the end.
pub const ENTRY_BYTES: Bound = Bound { what: "bytes in an entry", max: FRAME_BYTES_MAX };
/// States that a site has while it asks for one that it lacks.
pub const STATES: Bound = Bound { what: "states in a message", max: 1 << 20 };
/// Those that a survivor knows to be dead.
pub const FAILED: Bound = Bound { what: "failed datacenters in a message", max: DATACENTERS_MAX };
/// Watermarks of an acknowledgement: sixteen incarnations of every origin.
pub const WATERMARKS: Bound = Bound { what: "watermarks in a message", max: 16 * DATACENTERS_MAX };
/// One time a datacenter.
pub const TIMES: Bound = Bound { what: "times in a vector", max: DATACENTERS_MAX };
/// One for each configured pattern.
pub const HOMES: Bound = Bound { what: "homes in a message", max: HOMES_MAX };
