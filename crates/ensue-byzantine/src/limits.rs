//! Every bound of this crate, with its unit and its reason.

/// Replicas of one group: each vote is sent to all others, so that messages grow with the square.
pub const REPLICAS_MAX: usize = 64;
/// Clients of one group, each of which has sessions.
pub const CLIENTS_MAX: usize = 64;
/// Sessions of one client: as many as a sketcher may have.
pub const SESSIONS_MAX: u32 = 4_096;
/// Bytes of a request: as many as a sketcher lets through.
pub const REQUEST_BYTES_MAX: usize = 1 << 20;
/// Bytes of an answer: as many as a sketcher accepts.
pub const ANSWER_BYTES_MAX: usize = 16 << 20;
/// Bytes of an answer with the byte in front of it that says what came of its request.
pub const ANSWER_KEPT_BYTES_MAX: usize = ANSWER_BYTES_MAX + 1;
/// Bytes of the answers that a replica keeps for sessions that ask again; of more, the oldest are forgotten.
pub const ANSWERS_BYTES_MAX: usize = 256 << 20;
/// Requests of one block. A hundred share the cost of an agreement, and one more adds little.
pub const BLOCK_REQUESTS_MAX: usize = 128;
/// Bytes of a block but for its last request: four of the largest requests.
pub const BLOCK_BYTES_MAX: usize = 4 << 20;
/// Bytes of requests that wait to be in a block; of more, new ones are dropped, and their clients send them again.
pub const POOL_BYTES_MAX: usize = 64 << 20;
/// Requests in the order that are not executed yet. A replica with more takes no further part until it has fewer, and
/// is given the blocks that it missed.
pub const UNEXECUTED_MAX: usize = 4_096;
/// Bytes of them, with the same effect: a block more than that are in memory.
pub const UNEXECUTED_BYTES_MAX: usize = 64 << 20;
/// Rounds ahead of its own from which a replica keeps votes: the timeouts of so many rounds take an hour. Proposals
/// are kept of the next one.
pub const ROUNDS_AHEAD_MAX: u32 = 128;
/// Proposals that are kept of one proposer in one round. A correct one makes one.
pub const PROPOSALS_A_ROUND_MAX: usize = 2;
/// Messages of one sender that are held for a height that has not begun. What is dropped is sent again.
pub const HELD_MESSAGES_MAX: usize = 256;
/// Proposals among them, which are long.
pub const HELD_PROPOSALS_MAX: usize = 2;
/// Blocks that a replica sends to one that lags, in answer to one message.
pub const CATCH_UP_BLOCKS: u64 = 16;
/// Bytes of them, but for the last one.
pub const CATCH_UP_BYTES_MAX: usize = 8 << 20;
/// Microseconds that a proposal may take in the first round, and what each further round adds.
pub const PROPOSE_US: u64 = 500_000;
/// Microseconds that votes may take in the first round, and what each further round adds.
pub const VOTE_US: u64 = 250_000;
/// Microseconds after which the votes and proposals of a height that is not decided are sent again, by everyone.
pub const REPEAT_US: u64 = 400_000;
/// Microseconds between two messages that say how far a replica is.
pub const STATUS_US: u64 = 300_000;
/// Microseconds between two questions for blocks, when others are seen to be ahead.
pub const ASK_US: u64 = 20_000;
/// Heights after which another replica proposes, though the present one does so in time: a proposer that leaves out
/// the requests of a client delays them for so long.
pub const HEIGHTS_A_PROPOSER: u64 = 64;
