//! Layouts of what cores of two datacenters say to each other about commands at the home of their keys.

use super::reader::Reader;
use super::tag;
use super::writer::Writer;
use crate::error::Malformed;
use crate::message::{HomeOutcome, HomeRequest, Message};

const EXECUTED: u8 = 1;
const REFUSED: u8 = 2;
const FORGOTTEN: u8 = 3;
const WITHDRAWN: u8 = 4;

pub(super) fn write(w: &mut Writer<'_>, message: &Message) {
    match message {
        Message::HomeReady { boot } => w.u32(*boot),
        Message::HomeRequest(request) => w
            .u32(request.boot)
            .u64(request.number)
            .u32(request.home_boot)
            .u64(request.below)
            .keyspace(request.keyspace)
            .context(&request.context)
            .u8(u8::from(request.transaction))
            .u64(request.waits_ms)
            .u8(u8::from(request.abandoned))
            .commands(&request.commands),
        Message::HomeAnswer { boot, number, outcome } => {
            let w = w.u32(*boot).u64(*number);
            match outcome {
                HomeOutcome::Executed { context, reply } => w.u8(EXECUTED).context(context).reply(reply),
                HomeOutcome::Refused { reply } => w.u8(REFUSED).reply(reply),
                HomeOutcome::Forgotten => w.u8(FORGOTTEN),
                HomeOutcome::Withdrawn => w.u8(WITHDRAWN),
            }
        }
        other => unreachable!("no message about homes: {:#06x}", tag::tag_of(other)),
    };
}

pub(super) fn read(r: &mut Reader<'_>, tag: u16) -> Result<Message, Malformed> {
    Ok(match tag {
        tag::HOME_READY => Message::HomeReady { boot: r.u32()? },
        tag::HOME_REQUEST => Message::HomeRequest(HomeRequest {
            boot: r.u32()?,
            number: r.u64()?,
            home_boot: r.u32()?,
            below: r.u64()?,
            keyspace: r.keyspace()?,
            context: r.context()?,
            transaction: flag(r, "transaction")?,
            waits_ms: r.u64()?,
            abandoned: flag(r, "abandoned request")?,
            commands: r.commands()?,
        }),
        tag::HOME_ANSWER => Message::HomeAnswer {
            boot: r.u32()?,
            number: r.u64()?,
            outcome: match r.u8()? {
                EXECUTED => HomeOutcome::Executed { context: r.context()?, reply: r.reply()? },
                REFUSED => HomeOutcome::Refused { reply: r.reply()? },
                FORGOTTEN => HomeOutcome::Forgotten,
                WITHDRAWN => HomeOutcome::Withdrawn,
                value => return Err(Malformed::UnknownKind { what: "outcome at home", value }),
            },
        },
        tag => return Err(Malformed::UnknownMessage { tag }),
    })
}

fn flag(r: &mut Reader<'_>, what: &'static str) -> Result<bool, Malformed> {
    match r.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        value => Err(Malformed::UnknownKind { what, value }),
    }
}
