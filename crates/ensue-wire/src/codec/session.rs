//! Layouts of what sessions and partitions say to each other about commands.

use super::reader::Reader;
use super::tag;
use super::writer::Writer;
use crate::error::Malformed;
use crate::message::{AtValues, FirstValues, Message};

pub(super) fn write(w: &mut Writer<'_>, message: &Message) {
    match message {
        Message::Execute { request, keyspace, context, commands, together } => w
            .request(*request)
            .keyspace(*keyspace)
            .context(context)
            .commands(commands)
            .u8(u8::from(*together)),
        Message::Executed { request, context, replies } => {
            w.request(*request).context(context).replies(replies)
        }
        Message::ExecutedInPart { request, context, replies, rest } => {
            w.request(*request).context(context).replies(replies).commands(rest)
        }
        Message::ReadFirst { request, keyspace, commands } => {
            w.request(*request).keyspace(*keyspace).commands(commands)
        }
        Message::ReadFirstDone { request, latest_valid, values } => {
            w.request(*request).time(*latest_valid).option(values.as_ref(), |w, values| {
                w.replies(&values.replies).time(values.earliest_valid).causes(&values.seen);
            })
        }
        Message::ReadAt { request, keyspace, commands, at, with } => {
            w.request(*request).keyspace(*keyspace).commands(commands).time(*at).operations(with)
        }
        Message::ReadAtDone { request, values } => {
            w.request(*request).option(values.as_ref(), |w, values| {
                w.replies(&values.replies).causes(&values.seen);
            })
        }
        Message::Transact { request, keyspace, context, parts } => {
            w.request(*request).keyspace(*keyspace).context(context).parts(parts)
        }
        Message::Transacted { request, context, replies } => {
            w.request(*request).context(context).placed_replies(replies)
        }
        Message::Refused { request, reply } => w.request(*request).reply(reply),
        other => unreachable!("no message of a session: {:#06x}", tag::tag_of(other)),
    };
}

pub(super) fn read(r: &mut Reader<'_>, tag: u16) -> Result<Message, Malformed> {
    Ok(match tag {
        tag::EXECUTE => Message::Execute {
            request: r.request()?,
            keyspace: r.keyspace()?,
            context: r.context()?,
            commands: r.commands()?,
            together: match r.u8()? {
                0 => false,
                1 => true,
                value => return Err(Malformed::UnknownKind { what: "together", value }),
            },
        },
        tag::EXECUTED => {
            Message::Executed { request: r.request()?, context: r.context()?, replies: r.replies()? }
        }
        tag::EXECUTED_IN_PART => Message::ExecutedInPart {
            request: r.request()?,
            context: r.context()?,
            replies: r.replies()?,
            rest: r.commands()?,
        },
        tag::READ_FIRST => {
            Message::ReadFirst { request: r.request()?, keyspace: r.keyspace()?, commands: r.commands()? }
        }
        tag::READ_FIRST_DONE => Message::ReadFirstDone {
            request: r.request()?,
            latest_valid: r.time()?,
            values: r.option(|r| {
                Ok(FirstValues { replies: r.replies()?, earliest_valid: r.time()?, seen: r.causes()? })
            })?,
        },
        tag::READ_AT => Message::ReadAt {
            request: r.request()?,
            keyspace: r.keyspace()?,
            commands: r.commands()?,
            at: r.time()?,
            with: r.operations()?,
        },
        tag::READ_AT_DONE => Message::ReadAtDone {
            request: r.request()?,
            values: r.option(|r| Ok(AtValues { replies: r.replies()?, seen: r.causes()? }))?,
        },
        tag::TRANSACT => Message::Transact {
            request: r.request()?,
            keyspace: r.keyspace()?,
            context: r.context()?,
            parts: r.parts()?,
        },
        tag::TRANSACTED => {
            Message::Transacted { request: r.request()?, context: r.context()?, replies: r.placed_replies()? }
        }
        tag::REFUSED => Message::Refused { request: r.request()?, reply: r.reply()? },
        tag => return Err(Malformed::UnknownMessage { tag }),
    })
}
