//! A stream with its groups, read by the commands that tell of it.

use crate::import::target::{Target, Words, words};
use bytes::Bytes;
use ensue_client::Reply;
use ensue_rdb::{Consumer, Group, Pending, Stream, StreamEntry};
use ensue_types::StreamId;
use std::time::{SystemTime, UNIX_EPOCH};

/// Entries that are read at once.
const PAGE: &str = "1000";

/// Reads a stream; the words of the server, or what it answered, where that cannot be.
pub(crate) fn read(target: &mut Target, keyspace: u8, key: &Bytes) -> anyhow::Result<Result<Stream, String>> {
    let mut reading = Reading { target, keyspace, key };
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64);
    match reading.stream(now_ms) {
        Ok(stream) => Ok(Ok(stream)),
        Err(Trouble::Answer(answer)) => Ok(Err(answer)),
        Err(Trouble::Target(error)) => Err(error),
    }
}

/// Why something is not read.
pub(super) enum Trouble {
    /// What the server says.
    Answer(String),
    Target(anyhow::Error),
}

/// A key that is being read.
pub(super) struct Reading<'a> {
    pub(super) target: &'a mut Target,
    pub(super) keyspace: u8,
    pub(super) key: &'a Bytes,
}

impl Reading<'_> {
    pub(super) fn ask(&mut self, command: Words) -> Result<Reply, Trouble> {
        let replies = self.target.run(self.keyspace, &[command]).map_err(Trouble::Target)?;
        match replies.into_iter().next() {
            Some(Reply::Error(answer)) => Err(Trouble::Answer(answer.into_owned())),
            Some(reply) => Ok(reply),
            None => Err(Trouble::Answer("no answer".into())),
        }
    }

    fn stream(&mut self, now_ms: u64) -> Result<Stream, Trouble> {
        let about = self.ask(words!["XINFO", "STREAM", self.key.clone()])?;
        let mut stream = Stream {
            entries: self.entries()?,
            last_id: id_field(&about, "last-generated-id")?,
            max_deleted_id: id_field(&about, "max-deleted-entry-id")?,
            entries_added: number_field(&about, "entries-added").unwrap_or_default(),
            groups: Vec::new(),
        };
        for about in list(self.ask(words!["XINFO", "GROUPS", self.key.clone()])?) {
            stream.groups.push(self.group(&about, now_ms)?);
        }
        Ok(stream)
    }

    fn entries(&mut self) -> Result<Vec<StreamEntry>, Trouble> {
        let mut entries: Vec<StreamEntry> = Vec::new();
        let mut begin = "-".to_string();
        loop {
            let page = list(self.ask(words!["XRANGE", self.key.clone(), begin, "+", "COUNT", PAGE])?);
            let Some(last) = page.last().and_then(entry) else { return Ok(entries) };
            begin = format!("({}", last.id);
            for reply in &page {
                let entry = entry(reply).ok_or_else(|| unexpected(reply))?;
                // Two datacenters may have given one id; a file has it once.
                if entries.last().is_none_or(|before| before.id < entry.id) {
                    entries.push(entry);
                }
            }
        }
    }

    fn group(&mut self, about: &Reply, now_ms: u64) -> Result<Group, Trouble> {
        let name = field(about, "name").and_then(text).ok_or_else(|| unexpected(about))?;
        let mut group = Group {
            last_id: id_field(about, "last-delivered-id")?,
            entries_read: number_field(about, "entries-read"),
            name: name.clone(),
            ..Group::default()
        };
        for about in list(self.ask(words!["XINFO", "CONSUMERS", self.key.clone(), name.clone()])?) {
            let consumer = field(&about, "name").and_then(text).ok_or_else(|| unexpected(&about))?;
            let since = |name| number_field(&about, name).map(|ms| now_ms.saturating_sub(ms));
            let (seen_ms, active_ms) = (since("idle").unwrap_or(now_ms), since("inactive"));
            group.consumers.push(Consumer { name: consumer, seen_ms, active_ms });
        }
        let mut begin = "-".to_string();
        loop {
            let command = words!["XPENDING", self.key.clone(), name.clone(), begin, "+", PAGE];
            let page: Vec<Reply> = list(self.ask(command)?);
            for reply in &page {
                group.pending.push(pending(reply, now_ms).ok_or_else(|| unexpected(reply))?);
            }
            match group.pending.last() {
                Some(last) if !page.is_empty() => begin = format!("({}", last.id),
                _ => return Ok(group),
            }
        }
    }
}

pub(super) fn unexpected(reply: &Reply) -> Trouble {
    Trouble::Answer(format!("an answer that was not expected: {reply:?}"))
}

pub(super) fn list(reply: Reply) -> Vec<Reply> {
    if let Reply::Array(items) = reply { items } else { Vec::new() }
}

/// What follows a name in a list of names and values.
fn field<'r>(reply: &'r Reply, name: &str) -> Option<&'r Reply> {
    let Reply::Array(items) = reply else { return None };
    let pair =
        items.chunks_exact(2).find(|pair| matches!(&pair[0], Reply::Bulk(text) if text == name.as_bytes()));
    pair.map(|pair| &pair[1])
}

pub(super) fn text(reply: &Reply) -> Option<Bytes> {
    if let Reply::Bulk(text) = reply { Some(text.clone()) } else { None }
}

fn number_field(reply: &Reply, name: &str) -> Option<u64> {
    match field(reply, name) {
        Some(Reply::Integer(number)) => u64::try_from(*number).ok(),
        _ => None,
    }
}

fn id_field(reply: &Reply, name: &str) -> Result<StreamId, Trouble> {
    field(reply, name).and_then(id).ok_or_else(|| unexpected(reply))
}

fn id(reply: &Reply) -> Option<StreamId> {
    let text = text(reply)?;
    let (ms, sequence) = std::str::from_utf8(&text).ok()?.split_once('-')?;
    Some(StreamId { ms: ms.parse().ok()?, sequence: sequence.parse().ok()? })
}

fn entry(reply: &Reply) -> Option<StreamEntry> {
    let Reply::Array(parts) = reply else { return None };
    let [name, Reply::Array(words)] = &parts[..] else { return None };
    let pair = |pair: &[Reply]| Some((text(&pair[0])?, text(&pair[1])?));
    let fields: Option<Vec<(Bytes, Bytes)>> = words.chunks_exact(2).map(pair).collect();
    Some(StreamEntry { id: id(name)?, fields: fields? })
}

fn pending(reply: &Reply, now_ms: u64) -> Option<Pending> {
    let Reply::Array(parts) = reply else { return None };
    let [name, consumer, Reply::Integer(idle_ms), Reply::Integer(deliveries)] = &parts[..] else {
        return None;
    };
    Some(Pending {
        id: id(name)?,
        consumer: text(consumer)?,
        delivered_ms: now_ms.saturating_sub(u64::try_from(*idle_ms).unwrap_or_default()),
        deliveries: u64::try_from(*deliveries).unwrap_or_default(),
    })
}
