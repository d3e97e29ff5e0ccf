//! The bytes of everything that is kept: entries, records, log batches and checkpoints, all little endian.
//!
//! Values arrive and bytes leave, or the other way. Decoders take any bytes at all: they never panic, never
//! allocate more than their input justifies, and refuse what no encoder writes, so that a value has one encoding.
//! Checksums are the business of the frames (`batch`, `checkpoint`); entries and records have none of their own.

mod arena;
pub mod batch;
pub mod checkpoint;
mod entry;
mod reader;
mod record;

pub use arena::EntryArena;
pub use entry::{
    decode_entry, effect_bytes_beside, encode_entry, encode_entry_into, encoded_effect_bytes,
    encoded_entry_bytes, encoded_previous_bytes, entry_position, previous_bytes,
};
pub(crate) use reader::{Reader, u16_at, u32_at, u64_at};
pub(crate) use record::{OWN, RECEIVED, received_prefix};
pub use record::{decode_record, encode_record};

/// Bytes that are not an encoding of what they should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    #[error("{what} at byte {at} needs {needed} bytes, {left} are left")]
    TooShort { what: &'static str, at: usize, needed: u64, left: usize },
    #[error("{bytes} bytes after the end of the {what}")]
    Trailing { what: &'static str, bytes: usize },
    #[error("{what} of format {format}; this version knows up to {known}")]
    UnknownFormat { what: &'static str, format: u16, known: u16 },
    #[error("{what} at byte {at} is {value}, which means nothing")]
    Unknown { what: &'static str, at: usize, value: u64 },
    #[error("checksum of the {what} does not match")]
    Checksum { what: &'static str },
}

#[cfg(test)]
pub(crate) mod tests;
