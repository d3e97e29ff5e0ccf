//! Every bound of this crate, with its unit and its reason.

/// Entries of one history table. At 44 bytes an entry this is 11.8 GB, beyond what the paper considers.
pub const TABLE_ENTRIES_MAX: usize = 1 << 28;
/// Entries of one set of the history table: a lookup reads at most so many sketches, which lie side by side.
pub const TABLE_WAYS: usize = 16;
/// Replaced responses whose sketches are remembered, to tell an old answer from a wrong one: 44 bytes each, 2.9 MB.
pub const RETIRED_ENTRIES: usize = 1 << 16;
/// Requests that wait for a free session. Beyond it a client is refused, which it can retry; a longer queue only adds
/// latency.
pub const WAITING_REQUESTS_MAX: usize = 4_096;
/// Sessions with the replica group, each with one request at a time. The paper's experiments had 40.
pub const SESSIONS_MAX: usize = 4_096;
/// Replicas of one group. Each tolerated fault costs three, and the paper measured up to 13.
pub const REPLICAS_MAX: usize = 64;
/// Bytes of a request: what HTTP servers commonly accept of a request with its headers and a small body.
pub const REQUEST_BYTES_MAX: usize = 1 << 20;
/// Bytes of a response; a longer fast answer is treated as none, and if enough replicas have a longer one the request
/// is refused, so that a lying replica cannot fill memory.
pub const RESPONSE_BYTES_MAX: usize = 16 << 20;
/// Header lines of one HTTP message, as many as common servers accept.
pub const HTTP_HEADERS_MAX: usize = 100;
/// Microseconds that the sketcher waits for a fast answer before it issues the request as a replicated one. The paper
/// measured 0.3 ms for a fast read; a hundred times that is not reached by a replica that works.
pub const FAST_PATIENCE_US: u64 = 30_000;
/// Microseconds between two transmissions of a replicated request that has no accepted answer.
pub const RETRANSMIT_US: u64 = 100_000;
/// Microseconds after which a replicated request without an accepted answer is given up. Its session is one of few.
pub const CALL_PATIENCE_US: u64 = 10_000_000;
/// Bytes of a response that the study cuts into chunks; whether it changed is seen by all of it.
pub const STUDY_RESPONSE_BYTES_MAX: usize = 8 << 20;
/// Different URLs of one study.
pub const STUDY_URLS_MAX: usize = 1_000_000;
/// Chunks of one response of the study, in expectation: 64 KB of sketches.
pub const STUDY_CHUNKS_MAX: usize = 4_096;
