//! `XINFO`: a stream, its groups and their consumers.

use super::groups::no_group_of_key;
use super::log::{Counts, From, Log};
use super::pending::number;
use super::read::entries_reply;
use super::values::{Consumer, Cursor, Pending};
use super::{id_reply, log, no_such_key};
use crate::command::integer;
use crate::evaluate::{Evaluation, Halt};
use bytes::Bytes;
use ensue_types::{Reply, Section, StreamId, StreamPart};

/// A group by its name, and where it is.
pub(super) type Group = (Bytes, Cursor);

/// `XINFO STREAM`.
pub(super) fn stream(evaluation: &mut Evaluation<'_>, key: &Bytes) -> Result<Reply, Halt> {
    let log = there(evaluation, key)?;
    let mut told = basics(&log)?;
    told.push(named("groups", integer(log.groups()?.len())));
    let entry = |entry: Option<super::log::Entry>| entry.map_or(Reply::Nil, |entry| entry.reply());
    told.push(named("first-entry", entry(log.first()?)));
    told.push(named("last-entry", entry(log.last()?)));
    Ok(Reply::Map(told))
}

/// `XINFO STREAM FULL`, with so many entries and pending ones; zero is all.
pub(super) fn full(evaluation: &mut Evaluation<'_>, key: &Bytes, count: usize) -> Result<Reply, Halt> {
    let log = there(evaluation, key)?;
    let count = if count == 0 { usize::MAX } else { count };
    let mut told = basics(&log)?;
    let entries = log.range([StreamId::MIN, StreamId::MAX], Some(count), From::First)?;
    told.push(named("entries", entries_reply(&entries)));
    let counts = log.counts()?;
    let mut groups = Vec::new();
    for (name, cursor) in log.groups()? {
        let pending = log.pending(&name, [StreamId::MIN, StreamId::MAX], |_| true, usize::MAX)?;
        let all = pending.iter().take(count).map(|(id, one)| {
            let words = vec![id_reply(*id), Reply::Bulk(one.consumer.clone())];
            Reply::Array([words, vec![number(one.delivered_ms), number(one.deliveries)]].concat())
        });
        let mut group = vec![named("name", Reply::Bulk(name.clone()))];
        group.extend(progress(&counts, &cursor));
        group.push(named("pel-count", integer(pending.len())));
        group.push(named("pending", Reply::Array(all.collect())));
        let consumers = log.consumers(&name)?.into_iter();
        let consumers = consumers.map(|(consumer, times)| full_consumer(&consumer, times, &pending, count));
        group.push(named("consumers", Reply::Array(consumers.collect())));
        groups.push(Reply::Map(group));
    }
    told.push(named("groups", Reply::Array(groups)));
    Ok(Reply::Map(told))
}

fn full_consumer(name: &Bytes, times: Consumer, pending: &[(StreamId, Pending)], count: usize) -> Reply {
    let own = || pending.iter().filter(|(_, one)| one.consumer == *name);
    let listed = own()
        .take(count)
        .map(|(id, one)| Reply::Array(vec![id_reply(*id), number(one.delivered_ms), number(one.deliveries)]));
    Reply::Map(vec![
        named("name", Reply::Bulk(name.clone())),
        named("seen-time", number(times.seen_ms)),
        named("active-time", if times.active_ms == 0 { Reply::Integer(-1) } else { number(times.active_ms) }),
        named("pel-count", integer(own().count())),
        named("pending", Reply::Array(listed.collect())),
    ])
}

/// `XINFO GROUPS`.
pub(super) fn groups(evaluation: &mut Evaluation<'_>, key: &Bytes) -> Result<Reply, Halt> {
    let log = there(evaluation, key)?;
    let counts = log.counts()?;
    let mut groups = Vec::new();
    for (name, cursor) in log.groups()? {
        let mut group = vec![
            named("name", Reply::Bulk(name.clone())),
            named("consumers", integer(log.0.places(&Section::Consumers(&name).names()).len())),
            named("pending", integer(log.pending_count(&name))),
        ];
        group.extend(progress(&counts, &cursor));
        groups.push(Reply::Map(group));
    }
    Ok(Reply::Array(groups))
}

/// `XINFO CONSUMERS`.
pub(super) fn consumers(evaluation: &mut Evaluation<'_>, key: &Bytes, group: &Bytes) -> Result<Reply, Halt> {
    let now_ms = evaluation.at().ms();
    let log = there(evaluation, key)?;
    if log.cursor(group)?.is_none() {
        return Err(no_group_of_key(group, key));
    }
    let pending = log.pending(group, [StreamId::MIN, StreamId::MAX], |_| true, usize::MAX)?;
    let consumers = log.consumers(group)?.into_iter().map(|(name, times)| {
        let own = pending.iter().filter(|(_, one)| one.consumer == name).count();
        let since = |ms: u64| number(now_ms.saturating_sub(ms));
        let inactive = if times.active_ms == 0 { Reply::Integer(-1) } else { since(times.active_ms) };
        Reply::Map(vec![
            named("name", Reply::Bulk(name)),
            named("pending", integer(own)),
            named("idle", since(times.seen_ms)),
            named("inactive", inactive),
        ])
    });
    Ok(Reply::Array(consumers.collect()))
}

fn there<'e>(evaluation: &'e mut Evaluation<'_>, key: &Bytes) -> Result<Log<'e>, Halt> {
    let log = log(evaluation, key)?;
    if log.is_there() { Ok(log) } else { Err(no_such_key()) }
}

/// What both forms of `XINFO STREAM` begin with. Of the tree that Redis keeps there is none here.
fn basics(log: &Log<'_>) -> Result<Vec<(Reply, Reply)>, Halt> {
    let length = log.length();
    let first = log.first()?.map(|entry| entry.id).unwrap_or_default();
    Ok(vec![
        named("length", integer(length)),
        named("radix-tree-keys", integer(length.div_ceil(NODE))),
        named("radix-tree-nodes", integer(length.div_ceil(NODE) + 1)),
        named("last-generated-id", id_reply(log.last_id()?)),
        named("max-deleted-entry-id", id_reply(log.head()?.removed)),
        named("entries-added", Reply::Integer(log.entries_added()?)),
        named("recorded-first-entry-id", id_reply(first)),
    ])
}

fn progress(counts: &Counts, cursor: &Cursor) -> [(Reply, Reply); 3] {
    let known = |count: Option<u64>| count.map_or(Reply::Nil, number);
    [
        named("last-delivered-id", id_reply(cursor.last)),
        named("entries-read", known(cursor.entries_read)),
        named("lag", known(counts.lag(cursor.last, cursor.entries_read))),
    ]
}

fn named(name: &'static str, value: Reply) -> (Reply, Reply) {
    (Reply::bulk(name), value)
}

/// Redis keeps about so many entries under one key of its tree.
const NODE: usize = 100;

impl Log<'_> {
    /// All groups, in the order of their names.
    pub fn groups(&self) -> Result<Vec<Group>, Halt> {
        let all = self.0.places(&Section::Groups.names());
        let mut groups = Vec::new();
        let mut place = all.start;
        while place < all.end {
            let Some((part, _)) = self.0.at(place..place + 1)?.pop() else { break };
            let (StreamPart::Cursor(group, _)
            | StreamPart::Consumer(group, _)
            | StreamPart::Pending(group, _)) = part
            else {
                break;
            };
            groups.extend(self.cursor(&group)?.map(|cursor| (group.clone(), cursor)));
            place = self.0.places(&Section::Group(&group).names()).end.max(place + 1);
        }
        groups.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Ok(groups)
    }

    /// The consumers of a group, in the order of their names.
    pub fn consumers(&self, group: &[u8]) -> Result<Vec<(Bytes, Consumer)>, Halt> {
        let parts = self.0.between(&Section::Consumers(group).names())?;
        let consumer = |(part, value): (StreamPart, Bytes)| match part {
            StreamPart::Consumer(_, name) => Some((name, Consumer::of(&value))),
            _ => None,
        };
        Ok(parts.into_iter().filter_map(consumer).collect())
    }
}
