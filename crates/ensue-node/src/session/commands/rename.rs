//! RENAME: a snapshot read of the whole row, then one write transaction that deletes both keys and writes the new one.
//!
//! A write to the source between the two is lost with the source, as a later write to a deleted key survives: the
//! delete covers what was there when the transaction was evaluated. The deadline moves along.

use crate::evaluate::{TOO_MUCH, effect_bytes};
use crate::session::failure::UNANSWERED;
use crate::session::plan::Plan;
use bytes::Bytes;
use ensue_resp::CommandError;
use ensue_types::{Args, Column, Reply, limits, partition_of};

/// A RENAME whose source is being read.
#[derive(Clone, Debug)]
pub(crate) struct Renaming {
    source: Bytes,
    target: Bytes,
}

impl Renaming {
    /// A RENAME in a keyspace that is spread over so many partitions, and the plan that reads its source.
    pub(crate) fn begin(spread: u16, args: &Args) -> (Renaming, Plan) {
        let (source, target) = (args[1].clone(), args[2].clone());
        let owner = partition_of(&source, spread);
        let mut plan = Plan::exec(spread);
        for name in READS {
            plan.add_at(owner, false, vec![Bytes::from_static(name), source.clone()]);
        }
        (Renaming { source, target }, plan)
    }

    /// The source has been read: the plan that writes, or the answer if nothing is written.
    pub(crate) fn into_write(self, spread: u16, replies: Vec<Reply>) -> Result<Plan, Reply> {
        let row = Row::new(replies)?;
        let Renaming { source, target } = self;
        if source == target {
            return Err(Reply::OK);
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
        let mut plan = Plan::all_ok(spread);
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

/// What is read of the source. Two of the three values are errors of a wrong type, and are passed over.
const READS: [&[u8]; 5] = [b"type", b"get", b"hgetall", b"smembers", b"pexpiretime"];

/// A row, as the command that writes it.
#[derive(Clone, Debug)]
struct Row {
    command: &'static [u8],
    values: Vec<Bytes>,
    deadline_ms: Option<i64>,
}

impl Row {
    fn new(replies: Vec<Reply>) -> Result<Row, Reply> {
        let Ok([kind, text, hash, set, deadline]) = <[Reply; 5]>::try_from(replies) else {
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
            "hash" => (b"hset", hash),
            "set" => (b"sadd", set),
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

/// The bulk strings of an answer, in order.
fn flatten(reply: Reply, values: &mut Vec<Bytes>) -> Result<(), Reply> {
    match reply {
        Reply::Bulk(value) => values.push(value),
        Reply::Array(items) | Reply::Set(items) => {
            for item in items {
                flatten(item, values)?;
            }
        }
        Reply::Map(pairs) => {
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
