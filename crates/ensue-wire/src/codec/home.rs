//! Layouts of what is said about homes of keys: by cores of two datacenters about commands there, and by partitions
//! about homes that move.

use super::reader::Reader;
use super::tag;
use super::writer::Writer;
use crate::error::Malformed;
use crate::limits;
use crate::message::{HomeOutcome, HomeRequest, Message};
use ensue_types::{DatacenterId, HomeMove, HomeStep};

const EXECUTED: u8 = 1;
const REFUSED: u8 = 2;
const FORGOTTEN: u8 = 3;
const WITHDRAWN: u8 = 4;

/// The smallest move of a home, and a stream in it.
const MOVED_BYTES_MIN: usize = 26;
const STREAM_BYTES: usize = 9;

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
        Message::HomeMoves { asks, moves } => {
            w.u8(u8::from(*asks)).list(limits::HOMES, moves, |w, moved| write_moved(w, moved))
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
        tag::HOME_MOVES => Message::HomeMoves {
            asks: flag(r, "question for homes")?,
            moves: r.list(limits::HOMES, MOVED_BYTES_MIN, read_moved)?,
        },
        tag => return Err(Malformed::UnknownMessage { tag }),
    })
}

fn write_moved(w: &mut Writer<'_>, moved: &HomeMove) {
    w.keyspace(moved.keyspace)
        .bytes(limits::NAME_BYTES, &moved.pattern)
        .u8(moved.configured.0)
        .u64(moved.version)
        .u8(moved.from.0)
        .u8(moved.home.0)
        .u8(moved.step.number())
        .u8(u8::from(moved.is_claimed))
        .list(limits::FAILED, &moved.applied, |w, (datacenter, position)| {
            w.u8(datacenter.0).position(*position);
        })
        .times(&moved.times);
}

fn read_moved(r: &mut Reader<'_>) -> Result<HomeMove, Malformed> {
    Ok(HomeMove {
        keyspace: r.keyspace()?,
        pattern: r.bytes(limits::NAME_BYTES)?,
        configured: DatacenterId(r.u8()?),
        version: r.u64()?,
        from: DatacenterId(r.u8()?),
        home: DatacenterId(r.u8()?),
        step: read_step(r)?,
        is_claimed: flag(r, "claim of a home")?,
        applied: r.list(limits::FAILED, STREAM_BYTES, |r| Ok((DatacenterId(r.u8()?), r.position()?)))?,
        times: r.times()?,
    })
}

fn read_step(r: &mut Reader<'_>) -> Result<HomeStep, Malformed> {
    let value = r.u8()?;
    HomeStep::of_number(value).ok_or(Malformed::UnknownKind { what: "step of a home", value })
}

fn flag(r: &mut Reader<'_>, what: &'static str) -> Result<bool, Malformed> {
    match r.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        value => Err(Malformed::UnknownKind { what, value }),
    }
}
