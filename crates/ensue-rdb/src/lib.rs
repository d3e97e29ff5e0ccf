//! The files of Redis and Valkey: snapshots (RDB) and append-only files (AOF), and the dump of a single value.
//!
//! Bytes arrive from a [`BufRead`](std::io::BufRead) and become entries or commands one after the other: what is held
//! in memory is one value, whatever the length of the file. Lengths in the bytes are believed only as far as bytes
//! follow; whatever is no such file is an error with its offset. Values leave as a dump or as entries of a file. This
//! crate opens no file, knows no server, and deliberately decides nothing about what an entry means to Ensue.

pub mod aof;
pub mod dump;
pub mod error;
pub mod file;
pub mod manifest;
pub mod stream;
pub mod value;
pub mod writer;

mod checksum;
mod content;
mod layout;
mod lzf;
mod module;
mod packed;
mod packer;
mod reader;
mod text;

pub use aof::{AofItem, AofReader};
pub use error::{Damage, RdbError};
pub use file::{Entry, Item, RdbReader};
pub use manifest::Manifest;
pub use stream::{Consumer, Group, Pending, Stream, StreamEntry};
pub use value::{Content, Dated, ExpiringField, Value};
pub use writer::{FileVersion, RdbWriter};
