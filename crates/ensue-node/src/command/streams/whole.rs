//! Streams as a whole: copied part by part, and dumped and restored in the format of Redis.
//!
//! A copy has the logs of all datacenters as they are, and groups that stand in each where they stood. A dump has one
//! log: a group that has passed an entry, and not one below it that arrived later, stands below both in it, so that it
//! may be given an entry twice and passes over none.

use super::log::{From, Log};
use super::values::{Consumer, Cursor, Head, Pending, fields_bytes, fields_of};
use super::{log, part_bytes};
use crate::evaluate::{Evaluation, Halt};
use bytes::Bytes;
use ensue_rdb as rdb;
use ensue_types::{Reply, StreamId, StreamPart};

/// A part and what it holds.
type Part = (StreamPart, Bytes);

/// All parts of a stream.
pub(in crate::command) fn parts(evaluation: &mut Evaluation<'_>, key: &[u8]) -> Result<Vec<Part>, Halt> {
    let Log(parts) = log(evaluation, key)?;
    parts.at(0..parts.len())
}

/// Makes a row a stream of these parts and nothing else.
pub(in crate::command) fn write(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    parts: Vec<Part>,
) -> Result<(), Halt> {
    let bytes: usize =
        parts.iter().map(|(part, value)| part_bytes(key, part.name().len(), value.len())).sum();
    evaluation.check_room(bytes.saturating_add(evaluation.bytes_to_clear(key)))?;
    evaluation.begin_write(key)?;
    evaluation.clear_row(key, |_| true)?;
    for (part, value) in parts {
        evaluation.put_part(key, &part, value);
    }
    Ok(())
}

/// A stream as Redis dumps it.
pub(in crate::command) fn dumped(evaluation: &mut Evaluation<'_>, key: &[u8]) -> Result<rdb::Stream, Halt> {
    const ALL: [StreamId; 2] = [StreamId::MIN, StreamId::MAX];
    let log = log(evaluation, key)?;
    let entries = log.range(ALL, None, From::First)?;
    if entries.windows(2).any(|pair| pair[0].id == pair[1].id) {
        return Err(Halt::Error(TWICE));
    }
    let mut groups = Vec::new();
    for (name, cursor) in log.groups()? {
        let is_passed_over =
            |entry: &&super::log::Entry| entry.id <= cursor.last && entry.id > cursor.position(entry.source);
        let passed_over = entries.iter().find(is_passed_over);
        let last_id = passed_over.map_or(cursor.last, |entry| entry.id.previous().unwrap_or_default());
        let pending = log.pending(&name, ALL, |_| true, usize::MAX)?.into_iter();
        let pending = pending.map(|(id, Pending { delivered_ms, deliveries, consumer })| rdb::Pending {
            id,
            consumer,
            delivered_ms,
            deliveries,
        });
        let consumers = log.consumers(&name)?.into_iter();
        let consumers = consumers.map(|(name, Consumer { seen_ms, active_ms })| rdb::Consumer {
            name,
            seen_ms,
            active_ms: Some(active_ms).filter(|ms| *ms > 0),
        });
        groups.push(rdb::Group {
            last_id,
            entries_read: cursor.entries_read.filter(|_| passed_over.is_none()),
            consumers: consumers.collect(),
            pending: pending.collect(),
            name,
        });
    }
    let fields = |value: &Bytes| {
        let fields = fields_of(value);
        fields.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
    };
    Ok(rdb::Stream {
        last_id: log.last_id()?,
        max_deleted_id: log.head()?.removed,
        entries_added: u64::try_from(log.entries_added()?).unwrap_or(0),
        groups,
        entries: entries
            .iter()
            .map(|entry| rdb::StreamEntry { id: entry.id, fields: fields(&entry.value) })
            .collect(),
    })
}

/// Makes a row this stream and nothing else; all of its entries are of this datacenter's log.
pub(in crate::command) fn restore(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    stream: rdb::Stream,
) -> Result<(), Halt> {
    let own = evaluation.writer_datacenter();
    let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let past = count(stream.entries_added).saturating_sub(count(stream.entries.len() as u64));
    let head = Head { last: stream.last_id, removed: stream.max_deleted_id, past };
    let mut parts = vec![(StreamPart::Head(own), head.bytes())];
    for group in stream.groups {
        let last = group.last_id;
        let cursor = Cursor { last, base: last, entries_read: group.entries_read, ..Cursor::default() };
        parts.push((StreamPart::Cursor(group.name.clone(), own), cursor.bytes()));
        for rdb::Consumer { name, seen_ms, active_ms } in group.consumers {
            let consumer = Consumer { seen_ms, active_ms: active_ms.unwrap_or(0) };
            parts.push((StreamPart::Consumer(group.name.clone(), name), consumer.bytes()));
        }
        for rdb::Pending { id, consumer, delivered_ms, deliveries } in group.pending {
            let pending = Pending { delivered_ms, deliveries, consumer };
            parts.push((StreamPart::Pending(group.name.clone(), id), pending.bytes()));
        }
    }
    for entry in stream.entries {
        let fields: Vec<Bytes> = entry.fields.into_iter().flat_map(|(name, value)| [name, value]).collect();
        parts.push((StreamPart::Entry(own, entry.id), fields_bytes(&fields)));
    }
    write(evaluation, key, parts)
}

const TWICE: Reply = Reply::error(
    "ERR two datacenters have added an entry with the same id to this stream, which no dump can hold: it can be copied \
     with COPY",
);
