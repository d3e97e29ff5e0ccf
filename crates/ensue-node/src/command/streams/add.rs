//! Adding and removing entries.
//!
//! - *Ids.* A generated id is above every id of its datacenter, visible or not, and its second number contains the
//!   datacenter: no two datacenters generate the same id. An explicit id must be above every visible id.
//! - *The head* is written when the stream is made: adding an entry adds one column. What is removed is noted in a part
//!   of its own, so that removing entries does not bring a stream back that was deleted elsewhere.

use super::log::{Entry, From, Log};
use super::values::{Head, fields_bytes, fields_length};
use super::{id_reply, log, no_such_key, part_bytes};
use crate::evaluate::{Evaluation, Halt};
use bytes::Bytes;
use ensue_resp::CommandError;
use ensue_resp::request::{Kept, NewId, Trim};
use ensue_types::{DatacenterId, Reply, StreamId, StreamPart, limits};

/// In Redis, `~` removes whole nodes of entries, at most so many unless told.
const NODES_MAX: usize = 100;

/// What a head takes.
const HEAD_BYTES: usize = 40;

/// Ids are drawn so far apart that each datacenter has its own.
const STRIDE: u64 = limits::DATACENTERS_MAX as u64;

/// What `XADD` says of an entry.
pub(super) struct Added<'r> {
    pub id: NewId,
    pub fields: &'r [Bytes],
    pub trim: Option<Trim>,
    pub makes_stream: bool,
}

/// `XADD`.
pub(super) fn add(evaluation: &mut Evaluation<'_>, key: &Bytes, added: &Added<'_>) -> Result<Reply, Halt> {
    let node = evaluation.stream_node_entries();
    let log = log(evaluation, key)?;
    let (is_there, is_made) = (log.is_there(), log.is_made());
    let last = log.last_id()?;
    if !is_there && !added.makes_stream {
        return Ok(Reply::Nil);
    }
    let trimmed = added.trim.map_or(Ok(0), |trim| most_trimmed(&log, trim, node))?;
    let id = new_id(evaluation, key, added.id, last)?;
    let own = evaluation.writer_datacenter();
    // With what is trimmed, heads and the new entry itself.
    let others = trimmed.saturating_add(3).saturating_mul(part_bytes(key, 0, HEAD_BYTES));
    let others = others.saturating_add(bytes_to_make(evaluation, key, is_made)?);
    evaluation.check_room(others.saturating_add(part_bytes(key, 0, fields_length(added.fields))))?;
    evaluation.begin_write(key)?;
    make(evaluation, key, is_made)?;
    evaluation.put_part(key, &StreamPart::Entry(own, id), fields_bytes(added.fields));
    // By its length a stream is looked at again only if it has grown too long; the new entry itself may be too old.
    let may_trim = |trim: &Trim| trimmed > 0 || matches!(trim.keeps, Kept::From(_));
    if let Some(trim) = added.trim.filter(may_trim) {
        self::trim(evaluation, key, trim)?;
    }
    Ok(id_reply(id))
}

/// What it takes at most to make a stream, unless it is made.
pub(super) fn bytes_to_make(evaluation: &Evaluation<'_>, key: &Bytes, is_made: bool) -> Result<usize, Halt> {
    if is_made {
        return Ok(0);
    }
    let loose = evaluation.loose_parts(key)?;
    let loose: usize = loose.iter().map(|part| part_bytes(key, part.name().len(), 0)).sum();
    Ok(loose.saturating_add(part_bytes(key, 0, HEAD_BYTES)))
}

/// Makes a stream that is not made: it is there without entries, too, and has nothing of an earlier one. One that has
/// entries and is not made was deleted by who had not seen them.
pub(super) fn make(evaluation: &mut Evaluation<'_>, key: &Bytes, is_made: bool) -> Result<(), Halt> {
    if is_made {
        return Ok(());
    }
    for part in evaluation.loose_parts(key)? {
        evaluation.remove_part(key, &part);
    }
    let own = evaluation.writer_datacenter();
    evaluation.put_part(key, &StreamPart::Head(own), Head::default().bytes());
    Ok(())
}

/// The id of an entry that comes behind the last one.
fn new_id(evaluation: &Evaluation<'_>, key: &[u8], asked: NewId, last: StreamId) -> Result<StreamId, Halt> {
    let exhausted = "The stream has exhausted the last possible ID, unable to add more items";
    if last == StreamId::MAX {
        return Err(CommandError::Argument(exhausted).into());
    }
    let id = match asked {
        NewId::Given(id) => Some(id),
        NewId::DrawnAt(ms) if ms == last.ms => {
            last.sequence.checked_add(1).map(|sequence| StreamId { ms, sequence })
        }
        NewId::DrawnAt(ms) => Some(StreamId { ms, sequence: 0 }),
        NewId::Drawn => {
            // What is hidden here is not to be drawn again.
            let hidden = evaluation.hidden_parts(key)?.map(|parts| Log(parts).last_id()).transpose()?;
            let above = last.max(hidden.unwrap_or_default());
            let own = evaluation.writer_datacenter();
            let drawn = drawn(evaluation.at().ms(), above, own).ok_or(CommandError::Argument(exhausted))?;
            return Ok(drawn);
        }
    };
    id.filter(|id| *id > last).ok_or_else(|| {
        CommandError::Argument("The ID specified in XADD is equal or smaller than the target stream top item")
            .into()
    })
}

/// The lowest id of a datacenter at a time, or above another one.
fn drawn(now_ms: u64, above: StreamId, by: DatacenterId) -> Option<StreamId> {
    let own = u64::from(by.0) % STRIDE;
    if now_ms > above.ms {
        return Some(StreamId { ms: now_ms, sequence: own });
    }
    let next = above.sequence - above.sequence % STRIDE;
    let sequence = match next.checked_add(own)? {
        sequence if sequence > above.sequence => Some(sequence),
        sequence => sequence.checked_add(STRIDE),
    };
    match sequence {
        Some(sequence) => Some(StreamId { ms: above.ms, sequence }),
        None => Some(StreamId { ms: above.ms.checked_add(1)?, sequence: own }),
    }
}

/// `XDEL`.
pub(super) fn delete(evaluation: &mut Evaluation<'_>, key: &Bytes, ids: &[StreamId]) -> Result<Reply, Halt> {
    let log = log(evaluation, key)?;
    let mut doomed: Vec<Entry> = Vec::new();
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids.dedup();
    for id in ids {
        doomed.extend(log.find(id)?);
    }
    let highest = doomed.last().map(|entry| entry.id).unwrap_or_default();
    remove(evaluation, key, &doomed, highest)?;
    Ok(crate::command::integer(doomed.len()))
}

/// How many entries are trimmed at most.
fn most_trimmed(log: &Log<'_>, trim: Trim, node: usize) -> Result<usize, Halt> {
    let excess = match trim.keeps {
        Kept::Latest(count) => (log.length() + 1).saturating_sub(count),
        Kept::From(id) => log.count_to(id)?,
    };
    Ok(match trim.about {
        None | Some(Some(0)) => excess,
        Some(limit) => excess.min(limit.unwrap_or(node.saturating_mul(NODES_MAX))),
    })
}

/// `XTRIM`: how many entries were removed.
pub(super) fn trim(evaluation: &mut Evaluation<'_>, key: &Bytes, trim: Trim) -> Result<usize, Halt> {
    let node = evaluation.stream_node_entries();
    let log = log(evaluation, key)?;
    let (to, excess) = match trim.keeps {
        Kept::Latest(count) => (Some(StreamId::MAX), log.length().saturating_sub(count)),
        Kept::From(id) => (id.previous(), usize::MAX),
    };
    let (Some(to), true) = (to, excess > 0) else { return Ok(0) };
    let length = log.length();
    let most = match trim.about {
        None | Some(Some(0)) => excess,
        Some(limit) => excess.min(limit.unwrap_or(node.saturating_mul(NODES_MAX))),
    };
    let mut doomed = log.range([StreamId::MIN, to], Some(most), From::First)?;
    if trim.about.is_some() && doomed.len() < length {
        doomed.truncate(doomed.len() - doomed.len() % node);
    }
    remove(evaluation, key, &doomed, StreamId::MIN)?;
    Ok(doomed.len())
}

/// Removes entries that were seen. What was added stays known, and the highest of those that are named so.
fn remove(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    doomed: &[Entry],
    removed: StreamId,
) -> Result<(), Halt> {
    if doomed.is_empty() {
        return Ok(());
    }
    let own = evaluation.writer_datacenter();
    let log = log(evaluation, key)?;
    let (noted, known) = log.heads(own)?;
    let (last, is_made) = (log.last_id()?, log.is_made());
    let count = i64::try_from(doomed.len()).unwrap_or(i64::MAX);
    let head = Head { last, removed: known.removed.max(removed), past: noted.past.saturating_add(count) };
    evaluation.check_room((doomed.len() + 2).saturating_mul(part_bytes(key, 0, HEAD_BYTES)))?;
    evaluation.begin_write(key)?;
    make(evaluation, key, is_made)?;
    for entry in doomed {
        evaluation.remove_part(key, &entry.part());
    }
    evaluation.put_part(key, &StreamPart::Removals(own), head.bytes());
    Ok(())
}

/// `XSETID`.
pub(super) fn set_id(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    last: StreamId,
    (added, removed): (Option<i64>, Option<StreamId>),
) -> Result<Reply, Halt> {
    let own = evaluation.writer_datacenter();
    let log = log(evaluation, key)?;
    if !log.is_there() {
        return Err(no_such_key());
    }
    let (_, known) = log.heads(own)?;
    let length = i64::try_from(log.length()).unwrap_or(i64::MAX);
    if length > 0 && last < log.top()? {
        return Err(CommandError::Argument(
            "The ID specified in XSETID is smaller than the target stream top item",
        )
        .into());
    }
    if last < known.removed {
        return Err(CommandError::Argument(
            "The ID specified in XSETID is smaller than current max_deleted_entry_id",
        )
        .into());
    }
    if added.is_some_and(|added| added < length) {
        return Err(CommandError::Argument(
            "The entries_added specified in XSETID is smaller than the target stream length",
        )
        .into());
    }
    let past = added.map_or(known.past, |added| added - length);
    let removed = removed.filter(|id| *id > StreamId::MIN).unwrap_or(known.removed);
    // One head stands for all that are seen here.
    let others = log.0.between(&ensue_types::Section::Heads.names())?;
    evaluation.check_room((others.len() + 1) * part_bytes(key, 0, 0))?;
    evaluation.begin_write(key)?;
    for (part, _) in others.iter().filter(|(part, _)| *part != StreamPart::Head(own)) {
        evaluation.remove_part(key, part);
    }
    evaluation.put_part(key, &StreamPart::Head(own), Head { last, removed, past }.bytes());
    Ok(Reply::OK)
}
