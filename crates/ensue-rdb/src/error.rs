//! Why bytes are no file of Redis, and where that was seen.

use std::io;
use thiserror::Error;

/// Why nothing more can be read.
#[derive(Debug, Error)]
pub enum RdbError {
    #[error("at byte {offset}: {damage}")]
    Damaged { offset: u64, damage: Damage },
    #[error("cannot be read at byte {offset}: {error}")]
    Io { offset: u64, error: io::Error },
}

impl RdbError {
    /// What is wrong with the bytes; nothing if they could not be read.
    pub fn damage(&self) -> Option<Damage> {
        match self {
            RdbError::Damaged { damage, .. } => Some(*damage),
            RdbError::Io { .. } => None,
        }
    }
}

/// What is wrong with the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Damage {
    #[error("the file does not begin as an RDB file does")]
    NotRdb,
    #[error("version {0} of the format is not known")]
    Version(u32),
    #[error("the file ends too early")]
    Truncated,
    #[error("a length is wrong")]
    Length,
    #[error("the type or opcode {0} is not known")]
    Type(u8),
    #[error("a compressed string does not expand to the length that it tells")]
    Compressed,
    #[error("a packed value is not as it tells")]
    Packed,
    #[error("it has more elements than are read of one value")]
    Elements,
    #[error("something that must be a number is none")]
    Number,
    #[error("a stream is not as it tells")]
    Stream,
    #[error("a value of the module {0} is not as values of modules are")]
    Module(crate::module::ModuleName),
    #[error("the checksum is wrong")]
    Checksum,
    #[error("this is no command of an append-only file")]
    NotCommand,
}
