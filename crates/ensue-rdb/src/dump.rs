//! A dump: what `DUMP` answers and `RESTORE` takes, as Redis 7.2 writes a value into its files.
//!
//! A value is a byte that names its layout, the layout, two bytes with the version of the format, and eight with a
//! checksum of all before. One layout of each type is written, the plain one; all of these types are read. Numbers
//! in the bytes of others are bounded by the bytes that are there before anything is made of them.

use crate::checksum::checksum;
use crate::content::Writer;
use crate::error::RdbError;
use crate::reader::{Budget, Reader};
use crate::stream::Stream;
use crate::value::{Content, ExpiringField, Value};
use crate::writer::{self, FileVersion};
use crate::{content, layout, text};
use bytes::Bytes;
use ensue_types::limits;
use std::collections::BTreeSet;

/// The version of the format that is written, but for what it does not have.
const VERSION: u16 = 11;
/// The version that has deadlines of fields, and the highest that is read: that of Redis 7.4.
const VERSION_MAX: u16 = 12;
/// The version and the checksum.
const FOOTER_BYTES: usize = 10;

/// Why bytes are no dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumpError {
    /// It is too short, of a later version, or its checksum is wrong.
    Footer,
    /// The value in it is none.
    Value,
    /// A file of the version that is written cannot hold it: it has deadlines of fields.
    TooNew,
    /// It holds something else than libraries.
    NotLibrary,
}

impl From<RdbError> for DumpError {
    fn from(_: RdbError) -> DumpError {
        DumpError::Value
    }
}

/// The dump of a value.
pub fn write(value: &Value) -> Bytes {
    let mut out = vec![text::layout_of(value)];
    text::write_value(&mut out, value);
    let is_dated = matches!(value, Value::DatedHash(_));
    sealed(out, if is_dated { VERSION_MAX } else { VERSION })
}

/// The dump of a stream.
pub fn write_stream(stream: &Stream) -> Bytes {
    let mut out = vec![writer::stream_layout(FileVersion::Eleven)];
    writer::write_stream(&mut out, stream, FileVersion::Eleven);
    sealed(out, VERSION)
}

/// Whether a dump is of a hash with deadlines of fields.
pub fn has_field_deadlines(dump: &[u8]) -> bool {
    dump.first() == Some(&layout::HASH_EXPIRING)
}

/// What was dumped.
#[derive(Clone, Debug, PartialEq)]
pub enum Dumped {
    Value(Value),
    Stream(Stream),
}

/// The value of a dump, however strange: it takes no more than a write may.
pub fn read(dump: &[u8]) -> Result<Dumped, DumpError> {
    read_within(dump, Budget::new(limits::ENTRY_BYTES_MAX))
}

/// The value of a dump that was made by a server of our own: what it held before may be more than one write.
pub fn read_own(dump: &[u8]) -> Result<Dumped, DumpError> {
    read_within(dump, Budget::new(usize::MAX))
}

fn read_within(dump: &[u8], budget: Budget) -> Result<Dumped, DumpError> {
    let mut reader = Reader::new(opened(dump)?, limits::ENTRY_BYTES_MAX, budget);
    let layout = reader.byte()?;
    let value = match content::read(&mut reader, layout, Writer::Redis)? {
        Content::Value(value) => value,
        Content::Stream(stream) if is_in_order(&stream) && reader.is_at_end()? => {
            return Ok(Dumped::Stream(stream));
        }
        Content::Expiring(fields) if fields.iter().any(|field| field.deadline_ms.is_some()) => {
            Value::DatedHash(fields.into_iter().map(ExpiringField::into_dated).collect())
        }
        Content::Expiring(fields) => {
            Value::Hash(fields.into_iter().map(|field| (field.name, field.value)).collect())
        }
        Content::Stream(_) | Content::Module { .. } => return Err(DumpError::Value),
    };
    let (count, is_distinct) = match &value {
        Value::Text(_) => (1, true),
        Value::List(values) => (values.len(), true),
        Value::Set(members) => (members.len(), are_distinct(members.iter())),
        Value::Hash(pairs) => (pairs.len(), are_distinct(pairs.iter().map(|(name, _)| name))),
        Value::DatedHash(fields) => (fields.len(), are_distinct(fields.iter().map(|(name, ..)| name))),
        Value::Sorted(members) => (members.len(), are_distinct(members.iter().map(|(_, name)| name))),
    };
    if count == 0 || !is_distinct || !reader.is_at_end()? {
        return Err(DumpError::Value);
    }
    Ok(Dumped::Value(value))
}

/// Whether entries and what is pending have ids in their order, none above the last one of the stream, and groups and
/// consumers have names of their own.
fn is_in_order(stream: &Stream) -> bool {
    let entries = stream.entries.windows(2).all(|pair| pair[0].id < pair[1].id)
        && stream.entries.last().is_none_or(|last| last.id <= stream.last_id)
        && stream.entries.iter().all(|entry| !entry.fields.is_empty());
    let groups = stream.groups.iter().all(|group| {
        let known: BTreeSet<&Bytes> = group.consumers.iter().map(|consumer| &consumer.name).collect();
        are_distinct(group.consumers.iter().map(|consumer| &consumer.name))
            && group.pending.windows(2).all(|pair| pair[0].id < pair[1].id)
            && group.pending.iter().all(|pending| known.contains(&pending.consumer))
    });
    entries && groups && are_distinct(stream.groups.iter().map(|group| &group.name))
}

fn are_distinct<'v>(names: impl Iterator<Item = &'v Bytes>) -> bool {
    let mut names: Vec<&Bytes> = names.collect();
    names.sort_unstable();
    names.windows(2).all(|pair| pair[0] != pair[1])
}

/// A dump without the version and the checksum, which are right.
pub(crate) fn opened(dump: &[u8]) -> Result<&[u8], DumpError> {
    let body_bytes = dump.len().checked_sub(FOOTER_BYTES).ok_or(DumpError::Footer)?;
    let (body, footer) = dump.split_at(body_bytes);
    let version = u16::from_le_bytes([footer[0], footer[1]]);
    let told = u64::from_le_bytes(footer[2..].try_into().map_err(|_| DumpError::Footer)?);
    // Zero says that whoever wrote it makes no checksums.
    if version > VERSION_MAX || (told != 0 && told != checksum(&dump[..body_bytes + 2])) {
        return Err(DumpError::Footer);
    }
    Ok(body)
}

/// A dump of libraries of functions.
pub fn write_libraries<'t>(texts: impl Iterator<Item = &'t Bytes>) -> Bytes {
    let mut out = Vec::new();
    for text in texts {
        out.push(layout::LIBRARY);
        text::write_text(&mut out, text);
    }
    sealed(out, VERSION)
}

/// The texts of the libraries in a dump.
pub fn read_libraries(dump: &[u8]) -> Result<Vec<Bytes>, DumpError> {
    let mut reader =
        Reader::new(opened(dump)?, limits::ENTRY_BYTES_MAX, Budget::new(limits::ENTRY_BYTES_MAX));
    let mut texts = Vec::new();
    while !reader.is_at_end()? {
        match (reader.byte(), reader.text()) {
            (Ok(layout::LIBRARY), Ok(text)) => texts.push(text),
            _ => return Err(DumpError::NotLibrary),
        }
    }
    Ok(texts)
}

fn sealed(mut out: Vec<u8>, version: u16) -> Bytes {
    out.extend_from_slice(&version.to_le_bytes());
    let sum = checksum(&out);
    out.extend_from_slice(&sum.to_le_bytes());
    out.into()
}

#[cfg(test)]
mod tests;
