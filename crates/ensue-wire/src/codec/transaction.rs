//! Layouts of what the participants of a write transaction say to each other.

use super::reader::Reader;
use super::tag;
use super::writer::Writer;
use crate::error::Malformed;
use crate::message::Message;

pub(super) fn write(w: &mut Writer<'_>, message: &Message) {
    match message {
        Message::Prepare { transaction, keyspace, part } => {
            w.operation(*transaction).keyspace(*keyspace).option(part.as_ref(), |w, part| {
                w.part(part);
            })
        }
        Message::Vote { transaction } => w.operation(*transaction),
        Message::Commit { transaction, decision } => w.operation(*transaction).decision(decision),
        Message::Committed { transaction, replies, seen } => {
            w.operation(*transaction).placed_replies(replies).causes(seen)
        }
        Message::Notify { transaction } => w.operation(*transaction),
        Message::CommitCheck { check, transaction, at, waits } => {
            w.u64(*check).operation(*transaction).time(*at).u8(u8::from(*waits))
        }
        Message::CommitUnannounced { check, transaction, at } => {
            w.u64(*check).operation(*transaction).time(*at)
        }
        Message::CommitChecked { check, transaction, decision } => {
            w.u64(*check).operation(*transaction).option(decision.as_ref(), |w, decision| {
                w.decision(decision);
            })
        }
        Message::PartsSynced { operations } | Message::PartsForgotten { operations } => {
            w.operations(operations)
        }
        Message::Abandon { transaction }
        | Message::PartUnrecoverable { transaction }
        | Message::AwaitPart { transaction }
        | Message::Discard { transaction }
        | Message::ForgetVote { transaction }
        | Message::PartHeld { transaction }
        | Message::TransactionOver { transaction } => w.operation(*transaction),
        Message::FindPart { transaction, time } => w.operation(*transaction).time(*time),
        Message::FillQuery => w,
        Message::FillAnswer { fills } => w.u8(u8::from(*fills)),
        Message::Repeat { number } | Message::Repeated { number } => w.u64(*number),
        other => unreachable!("no message of a transaction: {:#06x}", tag::tag_of(other)),
    };
}

pub(super) fn read(r: &mut Reader<'_>, tag: u16) -> Result<Message, Malformed> {
    Ok(match tag {
        tag::PREPARE => Message::Prepare {
            transaction: r.operation()?,
            keyspace: r.keyspace()?,
            part: r.option(Reader::part)?,
        },
        tag::VOTE => Message::Vote { transaction: r.operation()? },
        tag::COMMIT => Message::Commit { transaction: r.operation()?, decision: r.decision()? },
        tag::COMMITTED => Message::Committed {
            transaction: r.operation()?,
            replies: r.placed_replies()?,
            seen: r.causes()?,
        },
        tag::NOTIFY => Message::Notify { transaction: r.operation()? },
        tag::COMMIT_CHECK => Message::CommitCheck {
            check: r.u64()?,
            transaction: r.operation()?,
            at: r.time()?,
            waits: r.bool()?,
        },
        tag::COMMIT_UNANNOUNCED => {
            Message::CommitUnannounced { check: r.u64()?, transaction: r.operation()?, at: r.time()? }
        }
        tag::COMMIT_CHECKED => Message::CommitChecked {
            check: r.u64()?,
            transaction: r.operation()?,
            decision: r.option(Reader::decision)?,
        },
        tag::PARTS_SYNCED => Message::PartsSynced { operations: r.operations()? },
        tag::PARTS_FORGOTTEN => Message::PartsForgotten { operations: r.operations()? },
        tag::ABANDON => Message::Abandon { transaction: r.operation()? },
        tag::PART_UNRECOVERABLE => Message::PartUnrecoverable { transaction: r.operation()? },
        tag::AWAIT_PART => Message::AwaitPart { transaction: r.operation()? },
        tag::DISCARD => Message::Discard { transaction: r.operation()? },
        tag::FORGET_VOTE => Message::ForgetVote { transaction: r.operation()? },
        tag::FIND_PART => Message::FindPart { transaction: r.operation()?, time: r.time()? },
        tag::PART_HELD => Message::PartHeld { transaction: r.operation()? },
        tag::TRANSACTION_OVER => Message::TransactionOver { transaction: r.operation()? },
        tag::FILL_QUERY => Message::FillQuery,
        tag::FILL_ANSWER => Message::FillAnswer { fills: r.bool()? },
        tag::REPEAT => Message::Repeat { number: r.u64()? },
        tag::REPEATED => Message::Repeated { number: r.u64()? },
        tag => return Err(Malformed::UnknownMessage { tag }),
    })
}
