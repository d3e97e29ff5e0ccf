//! Reading entries.

use super::log::{Entry, From};
use super::{id_reply, log};
use crate::evaluate::{Evaluation, Halt};
use bytes::Bytes;
use ensue_resp::request::StreamRead;
use ensue_types::{Reply, StreamId};

/// `XRANGE` and `XREVRANGE`.
pub(super) fn range(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    ids: [StreamId; 2],
    count: Option<usize>,
    reverse: bool,
) -> Result<Reply, Halt> {
    let log = log(evaluation, key)?;
    if !log.is_there() {
        return Ok(Reply::Array(Vec::new()));
    }
    if count == Some(0) {
        return Ok(Reply::NilArray);
    }
    let side = if reverse { From::Last } else { From::First };
    Ok(entries_reply(&log.range(ids, count, side)?))
}

/// `XREAD`: of each stream what comes behind an id, or nothing.
pub(in crate::command) fn read(evaluation: &mut Evaluation<'_>, read: &StreamRead) -> Result<Reply, Halt> {
    let mut found = Vec::new();
    for (key, behind) in &read.streams {
        let log = log(evaluation, key)?;
        // Nothing is behind the last one now.
        let Some(from) = behind.and_then(StreamId::next) else { continue };
        let entries = log.range([from, StreamId::MAX], read.count, From::First)?;
        if !entries.is_empty() {
            found.push((Reply::Bulk(key.clone()), entries_reply(&entries)));
        }
    }
    Ok(if found.is_empty() { Reply::NilArray } else { Reply::Keyed(found) })
}

/// The last id of each stream.
pub(super) fn latest(evaluation: &mut Evaluation<'_>, keys: &[Bytes]) -> Result<Reply, Halt> {
    let mut ids = Vec::with_capacity(keys.len());
    for key in keys {
        ids.push(id_reply(log(evaluation, key)?.last_id()?));
    }
    Ok(Reply::Array(ids))
}

pub(super) fn entries_reply(entries: &[Entry]) -> Reply {
    Reply::Array(entries.iter().map(Entry::reply).collect())
}
