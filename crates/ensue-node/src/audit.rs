//! What is recorded of an operator's command: who sent it, what it was, and what came of it.
//!
//! Plain values that leave a node as `Output::Audit`; writing them to a file is the server's work. No secret is in
//! them: a session masks passwords before it makes one.

use bytes::Bytes;
use ensue_types::{KeyspaceId, SessionId};

/// A command of an operator, or a login that failed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Audit {
    /// The name of the user; empty where nobody had logged in.
    pub user: Bytes,
    /// The address of the client, `IP:PORT`.
    pub address: String,
    /// The number that `CLIENT ID` answers.
    pub client: SessionId,
    /// How the client has called itself (`CLIENT SETNAME`); empty if it has not.
    pub client_name: Bytes,
    pub keyspace: KeyspaceId,
    /// The command and its arguments, cut to `AUDITED_WORDS_MAX` words of `AUDITED_WORD_BYTES_MAX` bytes.
    pub words: Vec<Bytes>,
    /// Arguments beyond those.
    pub left_out: usize,
    pub outcome: AuditOutcome,
}

/// What came of a command.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AuditOutcome {
    Done,
    /// The user may not run it.
    Refused,
    /// The code of the error, such as `ERR`. The rest of an error may repeat arguments.
    Failed(String),
}

/// Words of a command that are recorded.
pub const AUDITED_WORDS_MAX: usize = 32;
/// Bytes of each of them.
pub const AUDITED_WORD_BYTES_MAX: usize = 128;
