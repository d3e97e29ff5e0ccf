//! Whether an answer is one to what was asked, and what else is to be done; and the kinds of failures.

use crate::workload::Operation;
use bytes::Bytes;
use ensue_types::Reply;
use std::collections::BTreeMap;
use std::fmt;

/// Why an operation has no result.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// The server answered with an error of this code.
    Error(String),
    /// The answer is of a kind that the command never has.
    Unexpected(&'static str),
    /// The connection was closed or broke.
    Closed,
    /// The bytes were no answer.
    Unreadable,
    /// Sent, and not answered within the time that a run waits at its end.
    Unanswered,
    /// Due in an open loop, and never sent: its connection was full or lost.
    NotSent,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Error(code) => write!(f, "error {code}"),
            Failure::Unexpected(kind) => write!(f, "unexpected answer: {kind}"),
            Failure::Closed => f.write_str("connection closed"),
            Failure::Unreadable => f.write_str("unreadable answer"),
            Failure::Unanswered => f.write_str("not answered"),
            Failure::NotSent => f.write_str("not sent"),
        }
    }
}

/// Failures by kind, each with the first text that a server gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures(BTreeMap<Failure, (u64, String)>);

impl Failures {
    pub fn add(&mut self, failure: Failure, count: u64, example: &str) {
        if count > 0 {
            let entry = self.0.entry(failure).or_insert_with(|| (0, example.into()));
            entry.0 += count;
        }
    }

    pub fn merge(&mut self, other: &Failures) {
        for (failure, (count, example)) in &other.0 {
            self.add(failure.clone(), *count, example);
        }
    }

    pub fn total(&self) -> u64 {
        self.0.values().map(|(count, _)| count).sum()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Failure, u64, &str)> {
        self.0.iter().map(|(failure, (count, example))| (failure, *count, example.as_str()))
    }
}

/// What an answer means to an operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    Fine,
    /// There is nothing under this key.
    Miss,
    /// The keys of records, which are now to be read.
    Found(Vec<Bytes>),
    Failed(Failure, String),
}

/// Judges one answer. `last` says whether it is the last of its round, `second` that the round is the second one.
pub fn judge(operation: Operation, second: bool, last: bool, reply: Reply) -> Verdict {
    if let Some(text) = error_in(&reply) {
        let (failure, text) = failure_of(text);
        return Verdict::Failed(failure, text);
    }
    let fine = |is_fine: bool| if is_fine { Verdict::Fine } else { unexpected(&reply) };
    match (operation, &reply) {
        (Operation::Get | Operation::HGet | Operation::LPop, Reply::Nil) => Verdict::Miss,
        (Operation::Get | Operation::HGet | Operation::LPop | Operation::XAdd, _) => {
            fine(matches!(reply, Reply::Bulk(_)))
        }
        (Operation::Del | Operation::Expire, Reply::Integer(0)) => Verdict::Miss,
        (Operation::IncrByFloat | Operation::ZIncrBy, _) => {
            fine(matches!(reply, Reply::Bulk(_) | Reply::Double(_)))
        }
        (Operation::LRange | Operation::ZRange | Operation::XRange, Reply::Array(items)) => {
            if items.is_empty() { Verdict::Miss } else { Verdict::Fine }
        }
        (Operation::LPush, Reply::Status(_)) => fine(last && reply == Reply::OK),
        (Operation::Set | Operation::MSet(_), _) => fine(reply == Reply::OK),
        (Operation::MGet(count), Reply::Array(items)) if items.len() == usize::from(count) => {
            let missing = items.contains(&Reply::Nil);
            if missing { Verdict::Miss } else { Verdict::Fine }
        }
        (Operation::Scan, Reply::Array(items)) if !second => {
            let keys = items.iter().filter_map(|item| match item {
                Reply::Bulk(key) => Some(key.clone()),
                _ => None,
            });
            Verdict::Found(keys.collect())
        }
        (Operation::ReadModifyWrite, Reply::Integer(_)) if second => Verdict::Fine,
        (Operation::Read | Operation::ReadModifyWrite | Operation::Scan, _) => match &reply {
            Reply::Map(pairs) if pairs.is_empty() => Verdict::Miss,
            Reply::Array(items) if items.is_empty() => Verdict::Miss,
            Reply::Map(_) | Reply::Array(_) => Verdict::Fine,
            _ => unexpected(&reply),
        },
        (Operation::ColumnsRead | Operation::ColumnsWriteAtomic, _) => {
            fine(if last { matches!(reply, Reply::Array(_)) } else { matches!(reply, Reply::Status(_)) })
        }
        (
            Operation::Incr
            | Operation::HSet
            | Operation::SAdd
            | Operation::Del
            | Operation::Expire
            | Operation::SetBit
            | Operation::LPush
            | Operation::ZAdd
            | Operation::PfAdd
            | Operation::Eval
            | Operation::HandOver
            | Operation::Update
            | Operation::Insert
            | Operation::ColumnsWrite,
            _,
        ) => fine(matches!(reply, Reply::Integer(_))),
        (Operation::MGet(_) | Operation::LRange | Operation::ZRange | Operation::XRange, _) => {
            unexpected(&reply)
        }
    }
}

/// The first error of an answer, or of the answers of a transaction in it.
pub fn error_in(reply: &Reply) -> Option<&str> {
    match reply {
        Reply::Error(text) => Some(text),
        Reply::Array(items) => items.iter().find_map(error_in),
        _ => None,
    }
}

/// An error of a server by its code, with its text.
pub fn failure_of(text: &str) -> (Failure, String) {
    let code = text.split(' ').next().unwrap_or_default();
    (Failure::Error(code.into()), text.into())
}

fn unexpected(reply: &Reply) -> Verdict {
    let kind = match reply {
        Reply::Status(_) => "status",
        Reply::Error(_) => "error",
        Reply::Integer(_) => "integer",
        Reply::Bulk(_) | Reply::Verbatim(_) | Reply::BigNumber(_) => "bulk string",
        Reply::Nil | Reply::NilArray => "nil",
        Reply::Array(_) => "array",
        Reply::Map(_) => "map",
        Reply::Pairs(_) => "array of pairs",
        Reply::Keyed(_) => "map of keys",
        Reply::Set(_) => "set",
        Reply::Double(_) => "double",
        Reply::Boolean(_) => "boolean",
    };
    Verdict::Failed(Failure::Unexpected(kind), String::new())
}
