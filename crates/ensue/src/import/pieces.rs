//! A value as the plain commands that make it, large ones in pieces, so that no command is too long for one entry.

use super::target::{Words, words};
use bytes::Bytes;
use ensue_rdb::{Content, Dated, ExpiringField, Group, Stream, Value};
use ensue_resp::number;
use ensue_types::StreamId;

/// Elements of one command, and bytes of them, each with the key, as an entry has them; a single element may be longer.
const PIECE_ELEMENTS: usize = 1_000;
const PIECE_BYTES: usize = 1 << 20;

/// The commands that make the value of a key, where it does not exist.
pub(crate) fn commands(key: &Bytes, content: &Content, deadline_ms: Option<u64>, now_ms: u64) -> Vec<Words> {
    let mut commands = Vec::new();
    match content {
        Content::Value(Value::Text(text)) => {
            let mut command = words!["SET", key.clone(), text.clone()];
            if let Some(ms) = deadline_ms {
                command.extend(words!["PXAT", ms.to_string()]);
            }
            return vec![command];
        }
        Content::Value(Value::List(values)) => pieces(&mut commands, "RPUSH", key, singles(values)),
        Content::Value(Value::Set(members)) => pieces(&mut commands, "SADD", key, singles(members)),
        Content::Value(Value::Hash(pairs)) => {
            let pairs = pairs.iter().map(|(name, value)| vec![name.clone(), value.clone()]);
            pieces(&mut commands, "HSET", key, pairs);
        }
        Content::Value(Value::DatedHash(fields)) => {
            let field = |(name, value, deadline_ms): &Dated| ExpiringField {
                name: name.clone(),
                value: value.clone(),
                deadline_ms: *deadline_ms,
            };
            expiring(&mut commands, key, &fields.iter().map(field).collect::<Vec<_>>(), now_ms);
        }
        Content::Value(Value::Sorted(members)) => {
            let pairs =
                members.iter().map(|(score, name)| vec![number::f64_bytes(score.value()), name.clone()]);
            pieces(&mut commands, "ZADD", key, pairs);
        }
        Content::Expiring(fields) => expiring(&mut commands, key, fields, now_ms),
        Content::Stream(stream) => stream_commands(&mut commands, key, stream),
        Content::Module { .. } => {}
    }
    if let (Some(ms), false) = (deadline_ms, commands.is_empty()) {
        commands.push(words!["PEXPIREAT", key.clone(), ms.to_string()]);
    }
    commands
}

fn singles(values: &[Bytes]) -> impl Iterator<Item = Words> + '_ {
    values.iter().map(|value| vec![value.clone()])
}

fn pieces(commands: &mut Vec<Words>, name: &'static str, key: &Bytes, elements: impl Iterator<Item = Words>) {
    let mut piece = words![name, key.clone()];
    let (mut count, mut bytes) = (0, 0);
    for element in elements {
        let taken: usize = key.len() + element.iter().map(Bytes::len).sum::<usize>();
        if count > 0 && (count == PIECE_ELEMENTS || bytes + taken > PIECE_BYTES) {
            commands.push(std::mem::replace(&mut piece, words![name, key.clone()]));
            (count, bytes) = (0, 0);
        }
        count += 1;
        bytes += taken;
        piece.extend(element);
    }
    if count > 0 {
        commands.push(piece);
    }
}

/// Fields whose deadline has passed are left out, as Redis does where it meets them.
fn expiring(commands: &mut Vec<Words>, key: &Bytes, fields: &[ExpiringField], now_ms: u64) {
    let live = || fields.iter().filter(|field| field.deadline_ms.is_none_or(|ms| ms > now_ms));
    pieces(commands, "HSET", key, live().map(|field| vec![field.name.clone(), field.value.clone()]));
    for field in live() {
        if let Some(ms) = field.deadline_ms {
            let (key, name) = (key.clone(), field.name.clone());
            commands.push(words!["HPEXPIREAT", key, ms.to_string(), "FIELDS", "1", name]);
        }
    }
}

fn stream_commands(commands: &mut Vec<Words>, key: &Bytes, stream: &Stream) {
    for entry in &stream.entries {
        let mut command = words!["XADD", key.clone(), entry.id.to_string()];
        command.extend(entry.fields.iter().flat_map(|(name, value)| [name.clone(), value.clone()]));
        commands.push(command);
    }
    if stream.entries.is_empty() {
        // An entry that is removed at once makes the stream.
        let id = stream.last_id.max(StreamId { ms: 0, sequence: 1 });
        commands.push(words!["XADD", key.clone(), "MAXLEN", "0", id.to_string(), "x", "y"]);
    }
    let (last, deleted) = (stream.last_id.to_string(), stream.max_deleted_id.to_string());
    let added = stream.entries_added.to_string();
    commands.push(words!["XSETID", key.clone(), last, "ENTRIESADDED", added, "MAXDELETEDID", deleted]);
    stream.groups.iter().for_each(|group| group_commands(commands, key, group));
}

fn group_commands(commands: &mut Vec<Words>, key: &Bytes, group: &Group) {
    let (key, name) = (key.clone(), group.name.clone());
    let mut command = words!["XGROUP", "CREATE", key.clone(), name.clone(), group.last_id.to_string()];
    if let Some(count) = group.entries_read {
        command.extend(words!["ENTRIESREAD", count.to_string()]);
    }
    commands.push(command);
    for consumer in &group.consumers {
        commands.push(words!["XGROUP", "CREATECONSUMER", key.clone(), name.clone(), consumer.name.clone()]);
    }
    for pending in &group.pending {
        let mut command = words!["XCLAIM", key.clone(), name.clone(), pending.consumer.clone(), "0"];
        let (time, count) = (pending.delivered_ms.to_string(), pending.deliveries.to_string());
        command.extend(words![pending.id.to_string(), "TIME", time, "RETRYCOUNT", count, "JUSTID", "FORCE"]);
        commands.push(command);
    }
}

#[cfg(test)]
mod tests;
