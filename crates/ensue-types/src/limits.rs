//! Every bound of the system in one place, with the reason for each figure.

/// Keyspaces that `SELECT` can pick, as in Redis.
pub const KEYSPACES: u8 = 16;
/// Datacenters of a cluster.
pub const DATACENTERS_MAX: usize = 16;
/// Partitions of a cluster.
pub const PARTITIONS_MAX: u16 = 1024;

/// Longest bulk string of a client: 64 MiB.
pub const BULK_BYTES_MAX: usize = 64 << 20;
/// An argument that is longer, but not than this, is read past, so that its command has an answer: what Redis takes.
pub const BULK_BYTES_SKIPPED_MAX: usize = 512 << 20;
/// Most arguments of one command, as in Redis.
pub const ARGUMENTS_MAX: usize = 1 << 20;
/// Longest inline command, as in Redis.
pub const INLINE_BYTES_MAX: usize = 64 << 10;
/// Before `AUTH`, where a password is set: few and short arguments (the lesson of CVE-2021-32675).
pub const ARGUMENTS_BEFORE_AUTH_MAX: usize = 10;
pub const BULK_BYTES_BEFORE_AUTH_MAX: usize = 16 << 10;
/// Arguments of one command together: a user, a password as long as any argument, and a name.
pub const COMMAND_BYTES_BEFORE_AUTH_MAX: usize = BULK_BYTES_BEFORE_AUTH_MAX + (1 << 10);
/// Longest share of a bounded counter: what every datacenter has given every other one, in figures of 14 bytes.
pub const SHARE_BYTES_MAX: usize = 8 << 10;
/// Longest key: it must fit a log record beside its value.
pub const KEY_BYTES_MAX: usize = 1 << 20;

/// Commands of one connection that may wait for their answers before the connection is read again.
pub const COMMANDS_IN_FLIGHT_MAX: usize = 2048;
/// Bytes of such commands, after which no further one is taken.
pub const COMMAND_BYTES_IN_FLIGHT_MAX: usize = 64 << 20;
/// Bytes of answers that may wait for a slow client before its connection is read again and its session goes on.
pub const CLIENT_OUTPUT_PAUSE_BYTES: usize = 1 << 20;
/// Bytes of answers that may wait for a slow client before it is disconnected: the longest answer, and what was made
/// before it.
pub const CLIENT_OUTPUT_BYTES_MAX: usize = 256 << 20;
/// Longest answer to one command: a value of the longest, or two, and far below a frame between nodes.
pub const ANSWER_BYTES_MAX: usize = 128 << 20;
/// Bytes of answers that a session makes in one turn, the last of them not counted; then others have theirs.
pub const ANSWER_BYTES_PER_TURN: usize = 256 << 10;
/// Cells that a partition looks at or changes for one session before others have their turn: about a millisecond.
pub const CELLS_PER_TURN: usize = 4_096;
/// Commands queued by one `MULTI`.
pub const MULTI_COMMANDS_MAX: usize = 65_536;
/// Keys that one connection watches: what EXEC asks of them travels with the transaction.
pub const WATCHED_KEYS_MAX: usize = 4_096;
/// Scripts that a partition knows; the oldest are forgotten first, and clients send them again.
pub const SCRIPTS_MAX: usize = 1_024;
/// Bytes of their texts together.
pub const SCRIPT_TEXTS_BYTES_MAX: usize = 16 << 20;
/// Longest text of a script.
pub const SCRIPT_BYTES_MAX: usize = 1 << 20;
/// Bytes that the scripts of a partition hold while one runs: several of the longest values, and what is made of them.
pub const SCRIPT_MEMORY_BYTES_MAX: usize = 256 << 20;
/// Steps of a script that cannot pause, or of one where it cannot, before it is stopped: some tenths of a second in
/// which its core does nothing else.
pub const SCRIPT_STEPS_MAX: u64 = 5_000_000;
/// Steps after which a script pauses, and its core does what else there is: some hundredths of a second.
pub const SCRIPT_STEPS_TO_PAUSE: u64 = 250_000;
/// Steps of a script that pauses, before it is stopped: about a minute in which its partition does nothing else. One
/// that has written cannot be killed.
pub const SCRIPT_PAUSED_STEPS_MAX: u64 = 2_500_000_000;
/// Steps of one call of a Lua handler of conflicts: some hundredths of a second, while a write is merged.
pub const HANDLER_STEPS_MAX: u64 = 2_000_000;
/// Bytes that one call allocates, nothing of which is collected before it has ended.
pub const HANDLER_MEMORY_BYTES_MAX: usize = 64 << 20;
/// Bytes of all values that it is given, and of the one that it returns: of longer ones the last writer's is shown.
pub const HANDLER_VALUE_BYTES_MAX: usize = 1 << 20;
/// Longest text of such a handler.
pub const HANDLER_TEXT_BYTES_MAX: usize = 64 << 10;
/// Commands of a script, and bytes of them, that are told to who monitors or is told of changes. What goes beyond is
/// not shown; who is told of changes is told that everything has changed.
pub const CALLS_TOLD_MAX: usize = 10_000;
pub const CALLS_TOLD_BYTES_MAX: usize = 1 << 20;
/// Bytes of what sessions ask about pasts that they take over, waiting for one partition that reads its log; the last
/// may be longer.
pub const BUFFERED_BYTES_MAX: usize = 16 << 20;
/// The longest that a client may have `CAUSAL MERGE` and `CAUSAL WAIT` wait.
pub const CAUSAL_TIMEOUT_MS_MAX: u64 = 3_600_000;
/// An entry that waits for longer than this for what it depends on is told of, with whose writes it waits for: while
/// links are up that takes no second.
pub const OVERDUE_MS: u64 = 10_000;
/// Longest name of a channel, or pattern.
pub const CHANNEL_BYTES_MAX: usize = 64 << 10;
/// Channels and patterns to which the sessions of one core subscribe: every core of the cluster keeps their names.
pub const CHANNELS_MAX: usize = 1 << 20;
/// Bytes that those names take together, each with its share of the tables.
pub const CHANNELS_BYTES_MAX: usize = 64 << 20;
/// Bytes that a core keeps of messages which wait for what their publishers had seen, and how long each may wait.
pub const MESSAGES_WAITING_BYTES: usize = 64 << 20;
pub const MESSAGE_WAITS_MS: u64 = 10_000;
/// How long a partition that has started says nothing new to a datacenter while another one has not said how much of
/// the partition's stream it has. Links that can be made are up within a second or two of a start.
pub const PROOF_WAIT_MS: u64 = 5_000;
/// Patterns of keys with a home, of all keyspaces together.
pub const HOMES_MAX: usize = 1_024;
/// Requests of one core to one core of another datacenter, the home of their keys, that have no answer yet.
pub const HOME_REQUESTS_MAX: usize = 4_096;
/// Of these, commands that wait for something to pop or to read there: the others shall find room.
pub const HOME_WAITS_MAX: usize = 2_048;
/// How long such a command waits at the home until it is asked again. A home that does not notice that a datacenter
/// cannot hear it pops for it no longer than that.
pub const HOME_WAIT_ROUND_MS: u64 = 10_000;
/// Numbers between the oldest of them and the newest: a home remembers of each whether it was executed.
pub const HOME_REQUEST_NUMBERS_MAX: u64 = 1 << 18;
/// Bytes of requests that a core keeps until it has their answers, to send them again.
pub const HOME_REQUEST_BYTES_MAX: usize = 128 << 20;
/// Bytes of answers that a home keeps until it hears that they have arrived.
pub const HOME_ANSWER_BYTES_MAX: usize = 64 << 20;
/// How long a home waits for the past of a session, and a session for what it did at a home.
pub const HOME_WAIT_MS: u64 = 2_000;
/// Bytes of messages that may wait for a slow subscriber before it is disconnected, and as many for so long, as in
/// Redis.
pub const SUBSCRIBER_OUTPUT_BYTES_MAX: usize = 32 << 20;
pub const SUBSCRIBER_OUTPUT_SOFT_BYTES: usize = 8 << 20;
pub const SUBSCRIBER_OUTPUT_SOFT_S: u64 = 60;
/// Contexts that sessions share by name, of one partition: a few kilobytes each.
pub const SHARED_CONTEXTS_MAX: usize = 16_384;
/// A shared context that no step has used for so long is forgotten.
pub const SHARED_CONTEXT_UNUSED_MS_MAX: u64 = 3_600_000;

/// Longest frame between nodes: an entry with the largest value and room for the rest.
pub const FRAME_BYTES_MAX: usize = 192 << 20;
/// Longest entry of a stream, about: what one write changes. With what may go before it in a batch it fits into a
/// frame.
pub const ENTRY_BYTES_MAX: usize = 160 << 20;
/// Bytes of a stream sent and not yet acknowledged as received.
pub const STREAM_WINDOW_BYTES: usize = 4 << 20;
/// The same of the streams of all partitions of a datacenter, which may share one link.
pub const LINK_WINDOW_BYTES: usize = 256 << 20;
/// Bytes of received entries of one datacenter that wait for what they depend on, of all partitions of a datacenter.
pub const STREAM_WAITING_BYTES: usize = 512 << 20;
/// Bytes of the log that are read at once.
pub const LOG_READ_BYTES: usize = 1 << 20;
/// Entries of a stream in one message.
pub const STREAM_BATCH_ENTRIES: usize = 512;
/// Bytes of the log's tail that a partition keeps in memory for its streams.
pub const STREAM_MEMORY_BYTES: usize = 8 << 20;

/// Bytes of the disk that a partition keeps for itself: days of clock bounds, and the promises of thousands of
/// transactions.
pub const RESERVE_BYTES: usize = 1 << 20;
/// How often a partition whose disk is full looks for room.
pub const FULL_DISK_RETRY_US: u64 = 1_000_000;

/// Steps of one comparison of branches, a second or so in which its core does nothing else; of words that it keeps, 64
/// MiB.
pub const BRANCH_STEPS_MAX: u64 = 1 << 23;
/// Names of keys that an open transaction on a branch has read: what one of them is forgotten for would be overwritten.
pub const BRANCH_READ_BYTES_MAX: usize = 16 << 20;

/// Operations in a context before it folds into one watermark a stream.
pub const CONTEXT_OPERATIONS_MAX: usize = 64;
/// Longest token accepted from a client.
pub const TOKEN_BYTES_MAX: usize = 64 << 10;
/// Milliseconds since 1970 above which a time is no machine's, the year 6429: half of what a logical time can say, so
/// that whatever is counted
/// above it stays within the other half.
pub const LOGICAL_MS_MAX: u64 = 1 << 47;
/// A logical time further ahead of the wall clock than this is never adopted.
pub const CLOCK_AHEAD_MS_MAX: u64 = 60_000;
/// The clock is persisted this far ahead, so that a restart never shows a time again.
pub const CLOCK_PERSIST_AHEAD_MS: u64 = 500;

/// Eiger's transaction timeout: a read transaction older than this starts again (section 4.3).
pub const READ_TRANSACTION_TIMEOUT_MS: u64 = 2_000;
/// Old versions are kept this much longer than the timeout, for rounds in flight and clocks that differ.
pub const READ_MARK_MS: u64 = 2 * READ_TRANSACTION_TIMEOUT_MS;
/// A request to a partition that cannot be reached is answered with an error after this time.
pub const REQUEST_TIMEOUT_MS: u64 = 5_000;
/// Steps of a stream's progress in time that a partition keeps: the latest few seconds one by one, older ones coarsely.
pub const PROGRESS_STEPS_MAX: usize = 1_024;
/// How exactly the age of what another datacenter lacks is known, and how many steps of it are kept: after hours
/// without a link a step is a minute, and a partition keeps a few kilobytes for each datacenter.
pub const AGE_STEP_US: u64 = 10_000;
pub const AGE_STEPS_MAX: usize = 256;
/// Restarts of one read transaction before its client gets an error.
pub const READ_RESTARTS_MAX: u32 = 16;

/// Bytes of one log segment.
pub const SEGMENT_BYTES: u64 = 64 << 20;
