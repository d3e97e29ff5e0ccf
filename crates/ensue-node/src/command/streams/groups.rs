//! Groups of consumers: their positions, and the entries that they deliver.
//!
//! Each datacenter that advances a group writes a cursor of its own, with all positions that it knows. A reader merges
//! the cursors by maximum. One cursor is therefore enough for the group to exist.

use super::add::{bytes_to_make, make};
use super::log::{Counts, From, Log, merge};
use super::read::entries_reply;
use super::values::{Consumer, Cursor, Pending};
use super::{error, log, part_bytes, text};
use crate::command::{flag, integer, leave_no_empty_row};
use crate::evaluate::{Evaluation, Halt};
use bytes::Bytes;
use ensue_resp::CommandError;
use ensue_resp::request::{GroupChange, GroupRead, GroupStart};
use ensue_store::row::Kind;
use ensue_types::{DatacenterId, Reply, Section, StreamId, StreamPart};

/// `XGROUP`.
pub(super) fn change(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    group: &Bytes,
    change: &GroupChange,
) -> Result<Reply, Halt> {
    let own = evaluation.writer_datacenter();
    let log = log(evaluation, key)?;
    let makes_stream = matches!(change, GroupChange::Create { makes_stream: true, .. });
    if !log.is_there() && !makes_stream {
        return Err(no_stream());
    }
    let cursor = log.cursor(group)?;
    match (change, cursor) {
        (GroupChange::Create { .. }, Some(_)) => {
            Err(Halt::Error(Reply::error("BUSYGROUP Consumer Group name already exists")))
        }
        (GroupChange::Create { start, .. }, None) => create(evaluation, key, group, *start),
        (GroupChange::Destroy, None) => Ok(integer(0)),
        (GroupChange::Destroy, Some(_)) => destroy(evaluation, key, group),
        (_, None) => Err(no_group_of_key(group, key)),
        (GroupChange::Set(start), Some(_)) => {
            let cursor = log.begun(*start, own)?;
            let others = log.0.between(&Section::Cursors(group).names())?;
            let own = StreamPart::Cursor(group.clone(), own);
            evaluation.check_room((others.len() + 1) * part_bytes(key, group.len(), cursor.bytes().len()))?;
            evaluation.begin_write(key)?;
            // What others have passed is not passed any more, as far as it is seen here.
            for (part, _) in others.iter().filter(|(part, _)| *part != own) {
                evaluation.remove_part(key, part);
            }
            evaluation.put_part(key, &own, cursor.bytes());
            Ok(Reply::OK)
        }
        (GroupChange::CreateConsumer(name), Some(_)) => {
            let is_new = log.consumer(group, name)?.is_none();
            if is_new {
                evaluation.check_room(part_bytes(key, group.len() + name.len(), 16))?;
                evaluation.begin_write(key)?;
                put_consumer(evaluation, key, (group, name), Consumer::default());
            }
            Ok(flag(is_new))
        }
        (GroupChange::DeleteConsumer(name), Some(_)) => delete_consumer(evaluation, key, group, name),
    }
}

/// Makes a group, and the stream, too, if it is not there.
fn create(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    group: &Bytes,
    start: GroupStart,
) -> Result<Reply, Halt> {
    let own = evaluation.writer_datacenter();
    let log = log(evaluation, key)?;
    let (is_made, cursor) = (log.is_made(), log.begun(start, own)?);
    // Of one that was destroyed by who had not seen all that was written for it.
    let earlier = log.0.between(&Section::Group(group).names())?;
    let bytes = earlier.iter().map(|(part, _)| part_bytes(key, part.name().len(), 0)).sum::<usize>();
    let bytes = bytes.saturating_add(bytes_to_make(evaluation, key, is_made)?);
    evaluation.check_room(bytes.saturating_add(part_bytes(key, group.len(), cursor.bytes().len())))?;
    evaluation.begin_write(key)?;
    make(evaluation, key, is_made)?;
    for (part, _) in &earlier {
        evaluation.remove_part(key, part);
    }
    evaluation.put_part(key, &StreamPart::Cursor(group.clone(), own), cursor.bytes());
    Ok(Reply::OK)
}

fn destroy(evaluation: &mut Evaluation<'_>, key: &Bytes, group: &Bytes) -> Result<Reply, Halt> {
    let doomed = log(evaluation, key)?.0.between(&Section::Group(group).names())?;
    remove_parts(evaluation, key, doomed.iter().map(|(part, _)| part))?;
    Ok(integer(1))
}

/// Removes a consumer with all that is pending for it.
fn delete_consumer(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    group: &Bytes,
    name: &Bytes,
) -> Result<Reply, Halt> {
    let log = log(evaluation, key)?;
    if log.consumer(group, name)?.is_none() {
        return Ok(integer(0));
    }
    let mut doomed = log.0.between(&Section::Pending(group).names())?;
    doomed.retain(|(_, value)| Pending::of(value).consumer == *name);
    let consumer = StreamPart::Consumer(group.clone(), name.clone());
    let parts = doomed.iter().map(|(part, _)| part).chain(std::iter::once(&consumer));
    remove_parts(evaluation, key, parts)?;
    Ok(integer(doomed.len()))
}

/// Removes parts that were seen.
pub(super) fn remove_parts<'p>(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    parts: impl Iterator<Item = &'p StreamPart> + Clone,
) -> Result<(), Halt> {
    evaluation.check_room(parts.clone().map(|part| part_bytes(key, part.name().len(), 0)).sum())?;
    evaluation.begin_write(key)?;
    for part in parts {
        evaluation.remove_part(key, part);
    }
    // Where another datacenter has removed the rest, nothing may be left.
    leave_no_empty_row(evaluation, key, Kind::Stream);
    Ok(())
}

/// `XREADGROUP`: of each stream what is delivered, or nothing.
pub(in crate::command) fn read(evaluation: &mut Evaluation<'_>, read: &GroupRead) -> Result<Reply, Halt> {
    for (key, _) in &read.streams {
        if log(evaluation, key)?.cursor(&read.group)?.is_none() {
            return Err(no_group_to_read(&read.group, key));
        }
    }
    let mut found = Vec::new();
    for (key, behind) in &read.streams {
        let entries = match behind {
            None => deliver(evaluation, key, read)?,
            Some(behind) => Some(history(evaluation, key, read, *behind)?),
        };
        found.extend(entries.map(|entries| (Reply::Bulk(key.clone()), entries)));
    }
    Ok(if found.is_empty() { Reply::NilArray } else { Reply::Keyed(found) })
}

/// Delivers what comes behind the group's cursor; nothing if there is none.
fn deliver(evaluation: &mut Evaluation<'_>, key: &Bytes, read: &GroupRead) -> Result<Option<Reply>, Halt> {
    let GroupRead { group, consumer, .. } = read;
    let log = log(evaluation, key)?;
    let mut cursor = log.cursor(group)?.unwrap_or_default();
    let known = log.consumer(group, consumer)?;
    let mut entries = Vec::new();
    for source in log.sources()? {
        if let Some(from) = cursor.position(source).next() {
            entries.extend(log.range_of(source, [from, StreamId::MAX], read.count, From::First)?);
        }
    }
    merge(&mut entries, read.count, From::First);
    let counts = log.counts()?;
    for entry in &entries {
        cursor.pass(&counts, entry.source, entry.id);
    }
    let now_ms = evaluation.at().ms();
    if entries.is_empty() {
        if known.is_none() {
            evaluation.check_room(part_bytes(key, group.len() + consumer.len(), 16))?;
            evaluation.begin_write(key)?;
            put_consumer(evaluation, key, (group, consumer), Consumer { seen_ms: now_ms, active_ms: 0 });
        }
        return Ok(None);
    }
    let pending = Pending { delivered_ms: now_ms, deliveries: 1, consumer: consumer.clone() };
    let bytes = part_bytes(key, group.len(), 16 + consumer.len());
    let others = part_bytes(key, group.len() + consumer.len(), cursor.bytes().len());
    evaluation.check_room(entries.len().saturating_mul(bytes).saturating_add(2 * others))?;
    evaluation.begin_write(key)?;
    if !read.acknowledged {
        for entry in &entries {
            let part = StreamPart::Pending(group.clone(), entry.id);
            evaluation.put_part(key, &part, pending.bytes());
        }
    }
    put_cursor(evaluation, key, group, &cursor);
    put_consumer(evaluation, key, (group, consumer), Consumer { seen_ms: now_ms, active_ms: now_ms });
    Ok(Some(entries_reply(&entries)))
}

/// What is pending for a consumer behind an id: it is delivered once more.
fn history(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    read: &GroupRead,
    behind: StreamId,
) -> Result<Reply, Halt> {
    let GroupRead { group, consumer, .. } = read;
    let log = log(evaluation, key)?;
    let known = log.consumer(group, consumer)?;
    let Some(from) = behind.next() else { return Ok(Reply::Array(Vec::new())) };
    let count = read.count.unwrap_or(usize::MAX);
    let (mut replies, mut again) = (Vec::new(), Vec::new());
    for (id, pending) in log.pending(group, [from, StreamId::MAX], |one| one.consumer == *consumer, count)? {
        match log.find(id)?.into_iter().next() {
            Some(entry) => {
                replies.push(entry.reply());
                again.push((id, Pending { deliveries: pending.deliveries + 1, ..pending }));
            }
            None => replies.push(Reply::Array(vec![super::id_reply(id), Reply::NilArray])),
        }
    }
    let now_ms = evaluation.at().ms();
    let bytes = part_bytes(key, group.len() + consumer.len(), 16 + consumer.len());
    evaluation.check_room((again.len() + 1).saturating_mul(bytes))?;
    evaluation.begin_write(key)?;
    for (id, pending) in again {
        let pending = Pending { delivered_ms: now_ms, ..pending };
        evaluation.put_part(key, &StreamPart::Pending(group.clone(), id), pending.bytes());
    }
    if known.is_none() {
        put_consumer(evaluation, key, (group, consumer), Consumer { seen_ms: now_ms, active_ms: 0 });
    }
    Ok(Reply::Array(replies))
}

pub(super) fn put_cursor(evaluation: &mut Evaluation<'_>, key: &Bytes, group: &Bytes, cursor: &Cursor) {
    let own = evaluation.writer_datacenter();
    evaluation.put_part(key, &StreamPart::Cursor(group.clone(), own), cursor.bytes());
}

pub(super) fn put_consumer(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    (group, name): (&Bytes, &Bytes),
    consumer: Consumer,
) {
    let seen_ms = match consumer.seen_ms {
        0 => evaluation.at().ms(),
        seen_ms => seen_ms,
    };
    let consumer = Consumer { seen_ms, ..consumer };
    // Only who is told of changes wants to know whether it was there.
    if evaluation.written_count().is_some() {
        let known = log(evaluation, key).and_then(|log| log.consumer(group, name));
        let is_new = matches!(known, Ok(None));
        evaluation.note_consumer(is_new);
    }
    evaluation.put_part(key, &StreamPart::Consumer(group.clone(), name.clone()), consumer.bytes());
}

/// Of a key that is there.
pub(in crate::command) fn no_group_of_key(group: &[u8], key: &[u8]) -> Halt {
    let (group, key) = (text(group), text(key));
    error(format!("NOGROUP No such consumer group '{group}' for key name '{key}'"))
}

pub(in crate::command) fn no_group_to_read(group: &[u8], key: &[u8]) -> Halt {
    let (group, key) = (text(group), text(key));
    error(format!("NOGROUP No such key '{key}' or consumer group '{group}' in XREADGROUP with GROUP option"))
}

pub(in crate::command) fn no_stream() -> Halt {
    CommandError::Argument(
        "The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option \
         to create an empty stream automatically.",
    )
    .into()
}

impl Cursor {
    /// Passes an entry, as Redis counts: an entry below the last one is not counted.
    fn pass(&mut self, counts: &Counts, source: DatacenterId, id: StreamId) {
        let position = self.positions.entry(source).or_default();
        *position = (*position).max(id);
        if id > self.last {
            self.entries_read = match self.entries_read {
                Some(read) if !counts.is_fragmented_from(id) => Some(read + 1),
                _ => counts.entries_up_to(id),
            };
            self.last = id;
        }
    }
}

/// Groups, as a log knows them.
impl Log<'_> {
    /// Where a group is, if it is there.
    pub fn cursor(&self, group: &[u8]) -> Result<Option<Cursor>, Halt> {
        let cursors = self.0.between(&Section::Cursors(group).names())?;
        Ok(cursors.into_iter().map(|(_, value)| Cursor::of(&value)).reduce(Cursor::join))
    }

    pub fn consumer(&self, group: &Bytes, name: &Bytes) -> Result<Option<Consumer>, Halt> {
        let value = self.0.value(&StreamPart::Consumer(group.clone(), name.clone()))?;
        Ok(value.map(|value| Consumer::of(&value)))
    }

    /// Where a group is that begins there.
    fn begun(&self, start: GroupStart, own: DatacenterId) -> Result<Cursor, Halt> {
        let GroupStart { behind, entries_read } = start;
        if let Some(id) = behind {
            return Ok(Cursor { last: id, base: id, entries_read, ..Cursor::default() });
        }
        // It has passed what is here, and nothing that is yet to arrive.
        let mut cursor = Cursor { last: self.last_id()?, entries_read, ..Cursor::default() };
        for source in self.sources()? {
            cursor.positions.insert(source, self.last_of(source)?);
        }
        // Nothing of this datacenter is yet to arrive.
        cursor.positions.insert(own, cursor.last);
        Ok(cursor)
    }

    /// What is pending with ids from one to another, so many at most of those that are wanted.
    pub fn pending(
        &self,
        group: &[u8],
        [from, to]: [StreamId; 2],
        mut is_wanted: impl FnMut(&Pending) -> bool,
        count: usize,
    ) -> Result<Vec<(StreamId, Pending)>, Halt> {
        let mut found = Vec::new();
        if from > to {
            return Ok(found);
        }
        let places = self.0.places(&Section::Pending(group).names_between(from, to));
        for start in places.clone().step_by(STEP) {
            for (part, value) in self.0.at(start..places.end.min(start + STEP))? {
                let StreamPart::Pending(_, id) = part else { continue };
                let pending = Pending::of(&value);
                if found.len() == count {
                    return Ok(found);
                }
                if is_wanted(&pending) {
                    found.push((id, pending));
                }
            }
        }
        Ok(found)
    }
}

/// So many pending entries are taken at once.
const STEP: usize = 256;
