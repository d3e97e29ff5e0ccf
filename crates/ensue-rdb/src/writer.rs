//! An RDB file, written entry by entry.
//!
//! Values are written in the plain layouts, which every Redis since 5.0 and every Valkey reads; the version of the file
//! says which one may. Keys must come once each: Redis refuses a file that has one twice.

use crate::dump::{self, DumpError};
use crate::packer::Packer;
use crate::stream::{Group, SAME_FIELDS, Stream, StreamEntry, id_bytes};
use crate::value::{Content, Value};
use crate::{checksum, layout, text};
use ensue_types::StreamId;
use std::io::{self, Write};

/// The version that a file says it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileVersion {
    /// Redis 5.0 and later. Streams lose how many entries were added and deleted, and libraries are left out.
    Nine,
    /// Redis 7.0 and later.
    Ten,
    /// Redis 7.2 and later. Streams keep when a consumer was last given something.
    Eleven,
}

/// Writes a file.
#[derive(Debug)]
pub struct RdbWriter<W> {
    out: W,
    version: FileVersion,
    sum: u64,
    database: Option<u64>,
    written: u64,
}

/// A node of a stream has about so many bytes and entries, as Redis is configured by default.
const NODE_BYTES: usize = 4_096;
const NODE_ENTRIES: usize = 100;

impl<W: Write> RdbWriter<W> {
    /// Writes what a file begins with.
    pub fn new(out: W, version: FileVersion) -> io::Result<RdbWriter<W>> {
        let mut writer = RdbWriter { out, version, sum: 0, database: None, written: 0 };
        let magic: &[u8] = match version {
            FileVersion::Nine => b"REDIS0009",
            FileVersion::Ten => b"REDIS0010",
            FileVersion::Eleven => b"REDIS0011",
        };
        writer.put(magic)?;
        Ok(writer)
    }

    /// Bytes written so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Something that the writer tells of itself.
    pub fn aux(&mut self, name: &str, value: &str) -> io::Result<()> {
        let mut bytes = vec![layout::AUX];
        text::write_text(&mut bytes, name.as_bytes());
        text::write_text(&mut bytes, value.as_bytes());
        self.put(&bytes)
    }

    /// A library of functions; whether the version has those.
    pub fn library(&mut self, text: &[u8]) -> io::Result<bool> {
        if self.version == FileVersion::Nine {
            return Ok(false);
        }
        let mut bytes = vec![layout::LIBRARY];
        text::write_text(&mut bytes, text);
        self.put(&bytes)?;
        Ok(true)
    }

    /// A key with its value. Whether it was written: values of modules and empty ones are not.
    pub fn entry(
        &mut self,
        database: u64,
        key: &[u8],
        deadline_ms: Option<u64>,
        content: &Content,
    ) -> io::Result<bool> {
        let mut bytes = Vec::new();
        match content {
            // No version that is written has deadlines of fields.
            Content::Value(Value::DatedHash(_)) => return Ok(false),
            Content::Value(value) => {
                begin(&mut bytes, deadline_ms, text::layout_of(value), key);
                text::write_value(&mut bytes, value);
            }
            Content::Stream(stream) => {
                begin(&mut bytes, deadline_ms, stream_layout(self.version), key);
                write_stream(&mut bytes, stream, self.version);
            }
            Content::Expiring(_) | Content::Module { .. } => return Ok(false),
        }
        self.select(database)?;
        self.put(&bytes)?;
        Ok(true)
    }

    /// A key with the dump of its value.
    pub fn dumped(
        &mut self,
        database: u64,
        key: &[u8],
        deadline_ms: Option<u64>,
        dump: &[u8],
    ) -> io::Result<Result<(), DumpError>> {
        let (layout, value) = match dump::opened(dump) {
            Ok([layout::HASH_EXPIRING, ..]) => return Ok(Err(DumpError::TooNew)),
            Ok([layout, value @ ..]) => (*layout, value),
            Ok([]) => return Ok(Err(DumpError::Value)),
            Err(error) => return Ok(Err(error)),
        };
        let mut bytes = Vec::new();
        begin(&mut bytes, deadline_ms, layout, key);
        self.select(database)?;
        self.put(&bytes)?;
        self.put(value)?;
        Ok(Ok(()))
    }

    /// Ends the file, and returns where it was written to.
    pub fn finish(mut self) -> io::Result<W> {
        self.put(&[layout::END])?;
        self.out.write_all(&self.sum.to_le_bytes())?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn select(&mut self, database: u64) -> io::Result<()> {
        if self.database != Some(database) {
            self.database = Some(database);
            let mut bytes = vec![layout::DATABASE];
            text::write_length(&mut bytes, database);
            self.put(&bytes)?;
        }
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sum = checksum::extended(self.sum, bytes);
        self.written += bytes.len() as u64;
        self.out.write_all(bytes)
    }
}

/// The layout in which a version has streams.
pub(crate) fn stream_layout(version: FileVersion) -> u8 {
    match version {
        FileVersion::Nine => layout::STREAM,
        FileVersion::Ten => layout::STREAM_2,
        FileVersion::Eleven => layout::STREAM_3,
    }
}

/// A stream, as a version has it.
pub(crate) fn write_stream(out: &mut Vec<u8>, stream: &Stream, version: FileVersion) {
    let nodes = nodes(&stream.entries);
    text::write_length(out, nodes.len() as u64);
    for (first, list) in &nodes {
        write_raw(out, &id_bytes(*first));
        write_raw(out, list);
    }
    text::write_length(out, stream.entries.len() as u64);
    write_id(out, stream.last_id);
    if version > FileVersion::Nine {
        write_id(out, stream.entries.first().map_or(StreamId::MIN, |entry| entry.id));
        write_id(out, stream.max_deleted_id);
        text::write_length(out, stream.entries_added);
    }
    text::write_length(out, stream.groups.len() as u64);
    stream.groups.iter().for_each(|group| write_group(out, group, version));
}

fn write_group(out: &mut Vec<u8>, group: &Group, version: FileVersion) {
    write_raw(out, &group.name);
    write_id(out, group.last_id);
    if version > FileVersion::Nine {
        // Minus one says that it is not known.
        text::write_length(out, group.entries_read.unwrap_or(u64::MAX));
    }
    text::write_length(out, group.pending.len() as u64);
    for pending in &group.pending {
        out.extend_from_slice(&id_bytes(pending.id));
        out.extend_from_slice(&pending.delivered_ms.to_le_bytes());
        text::write_length(out, pending.deliveries);
    }
    text::write_length(out, group.consumers.len() as u64);
    for consumer in &group.consumers {
        write_raw(out, &consumer.name);
        out.extend_from_slice(&consumer.seen_ms.to_le_bytes());
        if version == FileVersion::Eleven {
            out.extend_from_slice(&consumer.active_ms.unwrap_or(u64::MAX).to_le_bytes());
        }
        let own: Vec<StreamId> =
            group.pending.iter().filter(|one| one.consumer == consumer.name).map(|one| one.id).collect();
        text::write_length(out, own.len() as u64);
        own.iter().for_each(|id| out.extend_from_slice(&id_bytes(*id)));
    }
}

/// What stands before a value.
fn begin(out: &mut Vec<u8>, deadline_ms: Option<u64>, layout: u8, key: &[u8]) {
    if let Some(ms) = deadline_ms {
        out.push(layout::DEADLINE_MS);
        out.extend_from_slice(&ms.to_le_bytes());
    }
    out.push(layout);
    text::write_text(out, key);
}

/// A string that never stands as a number.
fn write_raw(out: &mut Vec<u8>, text: &[u8]) {
    text::write_length(out, text.len() as u64);
    out.extend_from_slice(text);
}

fn write_id(out: &mut Vec<u8>, id: StreamId) {
    text::write_length(out, id.ms);
    text::write_length(out, id.sequence);
}

/// The nodes of a stream, each with the id that its entries are told from.
fn nodes(entries: &[StreamEntry]) -> Vec<(StreamId, Vec<u8>)> {
    let mut nodes = Vec::new();
    let mut rest = entries;
    while let [first, ..] = rest {
        let mut bytes = 0;
        let fits = |entry: &&StreamEntry| {
            bytes += entry.fields.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
            bytes <= NODE_BYTES
        };
        // Differences of ids must stand as signed numbers.
        let is_near = |entry: &&StreamEntry| i64::try_from(entry.id.ms.wrapping_sub(first.id.ms)).is_ok();
        let count = rest.iter().take(NODE_ENTRIES).take_while(is_near).take_while(fits).count().max(1);
        nodes.push((first.id, node(first, &rest[..count])));
        rest = &rest[count..];
    }
    nodes
}

fn node(first: &StreamEntry, entries: &[StreamEntry]) -> Vec<u8> {
    let mut list = Packer::new();
    list.push_integer(entries.len() as i64);
    list.push_integer(0);
    list.push_integer(first.fields.len() as i64);
    first.fields.iter().for_each(|(name, _)| list.push_text(name));
    list.push_integer(0);
    for entry in entries {
        let is_same = entry.fields.iter().map(|(name, _)| name).eq(first.fields.iter().map(|(name, _)| name));
        list.push_integer(if is_same { SAME_FIELDS } else { 0 });
        list.push_integer(entry.id.ms.wrapping_sub(first.id.ms) as i64);
        list.push_integer(entry.id.sequence.wrapping_sub(first.id.sequence) as i64);
        let mut elements = 3 + entry.fields.len();
        if !is_same {
            list.push_integer(entry.fields.len() as i64);
            elements += 1 + entry.fields.len();
        }
        for (name, value) in &entry.fields {
            if !is_same {
                list.push_text(name);
            }
            list.push_text(value);
        }
        list.push_integer(elements as i64);
    }
    list.finish()
}

#[cfg(test)]
mod tests;
