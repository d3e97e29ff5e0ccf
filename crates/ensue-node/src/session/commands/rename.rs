//! RENAME: a snapshot read of the whole row, then one write transaction that deletes both keys and writes the new one.
//!
//! A write to the source between the two is lost with the source, as a later write to a deleted key survives: the
//! delete covers what was there when the transaction was evaluated. The deadline moves along.

use crate::command::dump::has_field_deadlines;
use crate::evaluate::{TOO_MUCH, effect_bytes};
use crate::session::failure::UNANSWERED;
use crate::session::plan::Plan;
use bytes::Bytes;
use ensue_resp::{CommandError, number};
use ensue_types::{Args, Column, Reply, limits, partition_of};

/// A RENAME whose source is being read.
#[derive(Clone, Debug)]
pub(crate) struct Renaming {
    source: Bytes,
    target: Bytes,
    /// `RENAMENX`.
    if_absent: bool,
}

impl Renaming {
    /// A RENAME in a keyspace that is spread over so many partitions, and the plan that reads its source.
    pub(crate) fn begin(spread: u16, args: &Args) -> (Renaming, Plan) {
        let (source, target) = (args[1].clone(), args[2].clone());
        let if_absent = args[0].len() > "rename".len();
        let owner = partition_of(&source, spread);
        let mut plan = Plan::exec(spread);
        for (name, options) in READS {
            let mut read = vec![Bytes::from_static(name), source.clone()];
            read.extend(options.iter().map(|option| Bytes::from_static(option)));
            plan.add_at(owner, false, read);
        }
        if if_absent {
            let exists = vec![Bytes::from_static(b"exists"), target.clone()];
            plan.add_at(partition_of(&target, spread), false, exists);
        }
        (Renaming { source, target, if_absent }, plan)
    }

    /// The source has been read: the plan that writes, or the answer if nothing is written.
    pub(crate) fn into_write(self, spread: u16, mut replies: Vec<Reply>) -> Result<Plan, Reply> {
        let Renaming { source, target, if_absent } = self;
        let is_taken = if if_absent { replies.pop() } else { None };
        let row = Row::new(replies)?;
        match is_taken {
            None if source == target => return Err(Reply::OK),
            None | Some(Reply::Integer(0)) => {}
            Some(error @ Reply::Error(_)) => return Err(error),
            Some(_) => return Err(Reply::Integer(0)),
        }
        // Part of it may be refused by one owner only when the other has moved its part: so it is refused here, as a
        // whole.
        let key = if source.len() > target.len() { &source } else { &target };
        let bytes = |value: &Bytes| effect_bytes(key, &Column::Text, value.len());
        if row.values.iter().map(bytes).sum::<usize>() > limits::ENTRY_BYTES_MAX {
            return Err(TOO_MUCH);
        }
        let source_owner = partition_of(&source, spread);
        let target_owner = partition_of(&target, spread);
        let del = Bytes::from_static(b"del");
        let mut plan = if if_absent { Plan::all_done(spread) } else { Plan::all_ok(spread) };
        plan.add_at(target_owner, true, vec![del.clone(), target.clone()]);
        plan.add_at(source_owner, true, vec![del, source]);
        let mut write = vec![Bytes::from_static(row.command), target.clone()];
        write.extend(row.values);
        plan.add_at(target_owner, true, write);
        if let Some(deadline_ms) = row.deadline_ms {
            let deadline = Bytes::from(deadline_ms.to_string());
            plan.add_at(target_owner, true, vec![Bytes::from_static(b"pexpireat"), target, deadline]);
        }
        Ok(plan)
    }
}

/// What is read of the source: commands, and what follows the key. All values but one are errors of a wrong type, and
/// are passed over.
const READS: [(&[u8], &[&[u8]]); 8] = [
    (b"type", &[]),
    (b"get", &[]),
    (b"hgetall", &[]),
    (b"smembers", &[]),
    (b"zrange", &[b"0", b"-1", b"withscores"]),
    (b"lrange", &[b"0", b"-1"]),
    (b"pexpiretime", &[]),
    // Of a stream, and of a hash for the deadlines of its fields. Last: where it does not fit, others do.
    (b"dump", &[]),
];

/// A row, as the command that writes it.
#[derive(Clone, Debug)]
struct Row {
    command: &'static [u8],
    values: Vec<Bytes>,
    deadline_ms: Option<i64>,
}

impl Row {
    fn new(replies: Vec<Reply>) -> Result<Row, Reply> {
        let Ok([kind, text, hash, set, scored, list, deadline, dump]) = <[Reply; 8]>::try_from(replies)
        else {
            return Err(UNANSWERED);
        };
        let kind = match kind {
            Reply::Status(kind) => kind,
            error @ Reply::Error(_) => return Err(error),
            _ => return Err(UNANSWERED),
        };
        let (command, value): (&'static [u8], Reply) = match &*kind {
            "none" => return Err(CommandError::NoSuchKey.reply()),
            "string" => (b"set", text),
            "hash" => match dump {
                Reply::Bulk(dump) if has_field_deadlines(&dump) => {
                    let without_deadline = Reply::Bulk(Bytes::from_static(b"0"));
                    (b"restore", Reply::Array(vec![without_deadline, Reply::Bulk(dump)]))
                }
                Reply::Bulk(_) => (b"hset", hash),
                error @ Reply::Error(_) => return Err(error),
                _ => return Err(UNANSWERED),
            },
            "stream" => match dump {
                Reply::Bulk(dump) => {
                    let without_deadline = Reply::Bulk(Bytes::from_static(b"0"));
                    (b"restore", Reply::Array(vec![without_deadline, Reply::Bulk(dump)]))
                }
                error @ Reply::Error(_) => return Err(error),
                _ => return Err(UNANSWERED),
            },
            "set" => (b"sadd", set),
            "zset" => (b"zadd", score_first(scored)),
            "list" => (b"rpush", list),
            // It has no dump either, and the error says why.
            "bcounter" => return Err(dump),
            _ => return Err(Reply::error("ERR RENAME does not know this type of value")),
        };
        let deadline_ms = match deadline {
            Reply::Integer(ms) if ms >= 0 => Some(ms),
            _ => None,
        };
        let mut values = Vec::new();
        flatten(value, &mut values)?;
        Ok(Row { command, values, deadline_ms })
    }
}

/// Members and scores in the order in which `ZADD` takes them.
fn score_first(members: Reply) -> Reply {
    match members {
        Reply::Pairs(pairs) => Reply::Pairs(pairs.into_iter().map(|(name, score)| (score, name)).collect()),
        other => other,
    }
}

/// The strings and numbers of an answer, in order.
fn flatten(reply: Reply, values: &mut Vec<Bytes>) -> Result<(), Reply> {
    match reply {
        Reply::Bulk(value) => values.push(value),
        Reply::Double(value) => values.push(number::f64_bytes(value)),
        Reply::Array(items) | Reply::Set(items) => {
            for item in items {
                flatten(item, values)?;
            }
        }
        Reply::Map(pairs) | Reply::Pairs(pairs) | Reply::Keyed(pairs) => {
            for (field, value) in pairs {
                flatten(field, values)?;
                flatten(value, values)?;
            }
        }
        error @ Reply::Error(_) => return Err(error),
        _ => return Err(UNANSWERED),
    }
    Ok(())
}
