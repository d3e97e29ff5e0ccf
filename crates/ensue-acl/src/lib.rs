//! Access control as Redis 7.2 has it: users, what each may do, and who was refused what.
//!
//! Rules of `ACL SETUSER` and commands of sessions arrive; users, and whether one may execute a command, leave. The
//! meaning is that of the Redis documentation on ACL and of its `ACL` commands; what differs is said in the modules:
//! passwords are kept as Argon2id (`verifier`), and a user may be confined to databases (`databases`). It deliberately
//! has no clock, no source of randomness and no file: time, salts, keys and texts are arguments. It knows no session.

pub mod call;
pub mod channels;
pub mod commands;
pub mod databases;
pub mod denied;
pub mod hashing;
pub mod keys;
pub mod limits;
pub mod log;
pub mod permissions;
pub mod proven;
pub mod query;
pub mod rule_error;
mod rules;
pub mod user;
pub mod users;
pub mod verifier;

pub use call::Call;
pub use channels::Channel;
pub use denied::Denied;
pub use hashing::{Hasher, Immediate, Prepared, Unhashed, Work, needs_hashing};
pub use log::{Context, Log, Reason, Refusal, RefusalCounts};
pub use permissions::Permissions;
pub use proven::Proven;
pub use rule_error::{RuleError, SetError};
pub use user::{DEFAULT_USER, User, UserVersion};
pub use users::{LoadError, Users};
pub use verifier::{Salt, Verifier, verifier};

#[cfg(test)]
mod model;
