//! Pending entries: delivered to a consumer of a group and not acknowledged. Each is a part of its own.

use super::groups::{put_consumer, put_cursor, remove_parts};
use super::log::{Entry, Log};
use super::values::{Consumer, Cursor, Pending};
use super::{error, id_reply, log, part_bytes, text};
use crate::command::integer;
use crate::evaluate::{Evaluation, Halt};
use bytes::Bytes;
use ensue_resp::request::{Claim, ClaimTime, PendingRange};
use ensue_types::{Reply, Section, StreamId, StreamPart};
use std::collections::BTreeMap;

/// `XAUTOCLAIM` looks at so many times as many as it claims.
const LOOKED_AT: usize = 10;

/// What `XAUTOCLAIM` asks for.
pub(super) struct Idle<'r> {
    pub key: &'r Bytes,
    pub group: &'r Bytes,
    pub consumer: &'r Bytes,
    pub idle_ms_min: u64,
    pub from: StreamId,
    pub count: usize,
    pub only_ids: bool,
}

/// `XACK`.
pub(super) fn acknowledge(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    group: &Bytes,
    ids: &[StreamId],
) -> Result<Reply, Halt> {
    let log = log(evaluation, key)?;
    if log.cursor(group)?.is_none() {
        return Ok(integer(0));
    }
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids.dedup();
    let mut doomed = Vec::new();
    for id in ids {
        let part = StreamPart::Pending(group.clone(), id);
        if log.0.value(&part)?.is_some() {
            doomed.push(part);
        }
    }
    if !doomed.is_empty() {
        remove_parts(evaluation, key, doomed.iter())?;
    }
    Ok(integer(doomed.len()))
}

/// A log with this group, and where the group is.
fn with_group<'e>(
    evaluation: &'e mut Evaluation<'_>,
    key: &Bytes,
    group: &Bytes,
) -> Result<(Log<'e>, Cursor), Halt> {
    let log = log(evaluation, key)?;
    match log.cursor(group)? {
        Some(cursor) => Ok((log, cursor)),
        None => Err(no_group(group, key)),
    }
}

pub(in crate::command) fn no_group(group: &[u8], key: &[u8]) -> Halt {
    let (key, group) = (text(key), text(group));
    error(format!("NOGROUP No such key '{key}' or consumer group '{group}'"))
}

/// `XPENDING` of a group.
pub(super) fn summary(evaluation: &mut Evaluation<'_>, key: &Bytes, group: &Bytes) -> Result<Reply, Halt> {
    let (log, _) = with_group(evaluation, key, group)?;
    let all = log.pending(group, [StreamId::MIN, StreamId::MAX], |_| true, usize::MAX)?;
    let (Some((first, _)), Some((last, _))) = (all.first(), all.last()) else {
        return Ok(Reply::Array(vec![integer(0), Reply::Nil, Reply::Nil, Reply::NilArray]));
    };
    let mut consumers: BTreeMap<&Bytes, u64> = BTreeMap::new();
    for (_, pending) in &all {
        *consumers.entry(&pending.consumer).or_default() += 1;
    }
    let consumers = consumers.into_iter().map(|(name, count)| {
        Reply::Array(vec![Reply::Bulk(name.clone()), Reply::Bulk(Bytes::from(count.to_string()))])
    });
    let consumers = Reply::Array(consumers.collect());
    Ok(Reply::Array(vec![integer(all.len()), id_reply(*first), id_reply(*last), consumers]))
}

/// `XPENDING` of a range.
pub(super) fn list(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    group: &Bytes,
    range: &PendingRange,
) -> Result<Reply, Halt> {
    let now_ms = evaluation.at().ms();
    let (log, _) = with_group(evaluation, key, group)?;
    let is_wanted = |pending: &Pending| {
        range.consumer.as_ref().is_none_or(|consumer| *consumer == pending.consumer)
            && now_ms.saturating_sub(pending.delivered_ms) >= range.idle_ms_min
    };
    let found = log.pending(group, [range.from, range.to], is_wanted, range.count)?;
    let reply = |(id, pending): (StreamId, Pending)| {
        let idle = now_ms.saturating_sub(pending.delivered_ms);
        let numbers = [idle, pending.deliveries].map(number);
        Reply::Array([vec![id_reply(id), Reply::Bulk(pending.consumer)], numbers.to_vec()].concat())
    };
    Ok(Reply::Array(found.into_iter().map(reply).collect()))
}

/// `XCLAIM`.
pub(super) fn claim(evaluation: &mut Evaluation<'_>, claim: &Claim) -> Result<Reply, Halt> {
    let now_ms = evaluation.at().ms();
    let (log, cursor) = with_group(evaluation, &claim.key, &claim.group)?;
    let mut taken = Taken::default();
    for &id in &claim.ids {
        let pending = log.0.value(&StreamPart::Pending(claim.group.clone(), id))?;
        let entry = log.find(id)?.into_iter().next();
        let (mut pending, entry) = match (pending, entry) {
            (Some(_), None) => {
                taken.gone.push(id);
                continue;
            }
            (Some(value), Some(entry)) => (Pending::of(&value), entry),
            (None, Some(entry)) if claim.forced => {
                (Pending { delivered_ms: 0, deliveries: 1, consumer: Bytes::new() }, entry)
            }
            (None, _) => continue,
        };
        if now_ms.saturating_sub(pending.delivered_ms) < claim.idle_ms_min {
            continue;
        }
        pending.delivered_ms = match claim.delivered {
            ClaimTime::AgoMs(ago) => now_ms.saturating_sub(ago),
            ClaimTime::AtMs(at) => at.min(now_ms),
        };
        pending.deliveries = match claim.deliveries {
            Some(deliveries) => deliveries,
            None => pending.deliveries + u64::from(!claim.only_ids),
        };
        taken.claimed.push((entry, pending));
    }
    let moved =
        claim.last.filter(|last| *last > cursor.last).map(|last| Cursor { last, base: last, ..cursor });
    let whose = Whose { key: &claim.key, group: &claim.group, consumer: &claim.consumer };
    let claimed = take(evaluation, &whose, taken, moved)?;
    Ok(claimed_reply(&claimed, claim.only_ids))
}

/// `XAUTOCLAIM`.
pub(super) fn claim_idle(evaluation: &mut Evaluation<'_>, wanted: &Idle<'_>) -> Result<Reply, Halt> {
    let now_ms = evaluation.at().ms();
    let (log, _) = with_group(evaluation, wanted.key, wanted.group)?;
    let looked_at = wanted.count.saturating_mul(LOOKED_AT);
    let all = [wanted.from, StreamId::MAX];
    let mut seen = log.pending(wanted.group, all, |_| true, looked_at.saturating_add(1))?.into_iter();
    let mut taken = Taken::default();
    for (id, mut pending) in seen.by_ref().take(looked_at) {
        match log.find(id)?.into_iter().next() {
            None => taken.gone.push(id),
            Some(_) if now_ms.saturating_sub(pending.delivered_ms) < wanted.idle_ms_min => {}
            Some(entry) => {
                pending.delivered_ms = now_ms;
                pending.deliveries += u64::from(!wanted.only_ids);
                taken.claimed.push((entry, pending));
            }
        }
        if taken.gone.len() + taken.claimed.len() == wanted.count {
            break;
        }
    }
    let next = seen.next().map_or(StreamId::MIN, |(id, _)| id);
    let gone = taken.gone.iter().copied().map(id_reply).collect();
    let whose = Whose { key: wanted.key, group: wanted.group, consumer: wanted.consumer };
    let claimed = take(evaluation, &whose, taken, None)?;
    let claimed = claimed_reply(&claimed, wanted.only_ids);
    Ok(Reply::Array(vec![id_reply(next), claimed, Reply::Array(gone)]))
}

/// What a consumer takes over.
#[derive(Default)]
struct Taken {
    claimed: Vec<(Entry, Pending)>,
    /// Pending entries that were removed from the stream.
    gone: Vec<StreamId>,
}

struct Whose<'r> {
    key: &'r Bytes,
    group: &'r Bytes,
    consumer: &'r Bytes,
}

fn take(
    evaluation: &mut Evaluation<'_>,
    whose: &Whose<'_>,
    taken: Taken,
    moved: Option<Cursor>,
) -> Result<Vec<Entry>, Halt> {
    let Whose { key, group, consumer } = *whose;
    let now_ms = evaluation.at().ms();
    let known = log(evaluation, key)?.consumer(group, consumer)?;
    let count = taken.claimed.len() + taken.gone.len() + 2;
    evaluation.check_room(count.saturating_mul(part_bytes(
        key,
        group.len() + consumer.len(),
        64 + consumer.len(),
    )))?;
    evaluation.begin_write(key)?;
    for id in taken.gone {
        evaluation.remove_part(key, &StreamPart::Pending(group.clone(), id));
    }
    if let Some(cursor) = moved {
        put_cursor(evaluation, key, group, &cursor);
    }
    if !taken.claimed.is_empty() || known.is_none() {
        let active_ms = if taken.claimed.is_empty() { 0 } else { now_ms };
        put_consumer(evaluation, key, (group, consumer), Consumer { seen_ms: now_ms, active_ms });
    }
    let mut entries = Vec::with_capacity(taken.claimed.len());
    for (entry, pending) in taken.claimed {
        let pending = Pending { consumer: consumer.clone(), ..pending };
        evaluation.put_part(key, &StreamPart::Pending(group.clone(), entry.id), pending.bytes());
        entries.push(entry);
    }
    Ok(entries)
}

fn claimed_reply(entries: &[Entry], only_ids: bool) -> Reply {
    let reply = |entry: &Entry| if only_ids { id_reply(entry.id) } else { entry.reply() };
    Reply::Array(entries.iter().map(reply).collect())
}

pub(super) fn number(value: u64) -> Reply {
    Reply::Integer(i64::try_from(value).unwrap_or(i64::MAX))
}

impl Log<'_> {
    /// How many are pending in a group.
    pub fn pending_count(&self, group: &[u8]) -> usize {
        self.0.places(&Section::Pending(group).names()).len()
    }
}
