//! Every bound of access control: how much a user may hold, what a password costs, what is remembered.
//!
//! What goes beyond a bound is refused by name where an operator asks for it, and dropped, oldest first, where it is a
//! cache or a log.

/// Users that there may be.
pub const USERS_MAX: usize = 10_000;
/// Bytes of a user's name.
pub const NAME_BYTES_MAX: usize = 1_024;
/// Passwords of one user: each may cost one Argon2 at every wrong attempt.
pub const PASSWORDS_MAX: usize = 16;
/// Passwords that the rules of one `ACL SETUSER` may name.
pub const PASSWORDS_NAMED_MAX: usize = 2 * PASSWORDS_MAX;
/// Selectors of one user beside the root.
pub const SELECTORS_MAX: usize = 64;
/// Patterns of keys, and as many of channels, in one set of permissions.
pub const PATTERNS_MAX: usize = 4_096;
/// First arguments, as in `+select|0`, in one set of permissions.
pub const FIRST_ARGS_MAX: usize = 256;

/// Memory of one Argon2id in KiB, as OWASP advises for two passes: 20 to 30 ms of one core.
pub const ARGON2_MEMORY_KIB: u32 = 19_456;
/// Passes over that memory.
pub const ARGON2_PASSES: u32 = 2;
/// Lanes of it.
pub const ARGON2_LANES: u32 = 1;
/// Memory in KiB that a verifier from a file may ask for at most.
pub const ARGON2_MEMORY_KIB_MAX: u32 = 256 << 10;
/// Passes that one may ask for at most.
pub const ARGON2_PASSES_MAX: u32 = 16;
/// Lanes that one may ask for at most.
pub const ARGON2_LANES_MAX: u32 = 16;
/// Bytes of the text of a verifier.
pub const VERIFIER_BYTES_MAX: usize = 512;

/// Pairs of a user and a password that are remembered as proven.
pub const PROVEN_MAX: usize = 1_024;

/// Entries of the log unless `acllog-max-len` says otherwise.
pub const LOG_ENTRIES_DEFAULT: usize = 128;
/// Entries of the log that are shown unless told.
pub const LOG_ENTRIES_SHOWN: usize = 10;
/// Latest entries among which an equal one is looked for.
pub const LOG_ENTRIES_COMPARED: usize = 10;
/// How long after an entry an equal one still counts with it.
pub const LOG_GROUPING_MS: u64 = 60_000;
/// Bytes of an object or a name in the log; the rest is cut off, for who is refused chooses them.
pub const LOG_TEXT_BYTES_MAX: usize = 1_024;

/// Bits of a password that `ACL GENPASS` makes unless told.
pub const GENPASS_BITS_DEFAULT: usize = 256;
/// The most that it makes.
pub const GENPASS_BITS_MAX: usize = 4_096;
