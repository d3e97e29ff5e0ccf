//! Layouts of what the sessions of cores say to each other about channels.

use super::reader::Reader;
use super::tag;
use super::writer::Writer;
use crate::error::Malformed;
use crate::limits;
use crate::message::{ChannelKind, Interest, Message};
use ensue_types::SessionId;

const KIND_CHANNEL: u8 = 1;
const KIND_PATTERN: u8 = 2;
const KIND_SHARD: u8 = 3;

/// The least that an item of each list takes.
const INTEREST_BYTES_MIN: usize = 1 + 4 + 4;
const PAST_BYTES_MIN: usize = 1 + 8 + 4;

pub(super) fn write(w: &mut Writer<'_>, message: &Message) {
    match message {
        Message::Interest { all, changes } => {
            w.u8(u8::from(*all)).list(limits::INTERESTS, changes, |w, Interest { kind, name, sessions }| {
                w.u8(number(*kind)).bytes(limits::CHANNEL_BYTES, name).u32(*sessions);
            })
        }
        Message::Publish { publisher, kind, channel, payload, past } => w
            .u64(publisher.0)
            .u8(number(*kind))
            .bytes(limits::CHANNEL_BYTES, channel)
            .bytes(limits::ARGUMENT_BYTES, payload)
            .list(limits::PASTS, past, |w, (keyspace, context)| {
                w.keyspace(*keyspace).context(context);
            }),
        other => unreachable!("no message about channels: {:#06x}", tag::tag_of(other)),
    };
}

pub(super) fn read(r: &mut Reader<'_>, tag: u16) -> Result<Message, Malformed> {
    Ok(match tag {
        tag::INTEREST => Message::Interest {
            all: match r.u8()? {
                0 => false,
                1 => true,
                value => return Err(Malformed::UnknownKind { what: "all", value }),
            },
            changes: r.list(limits::INTERESTS, INTEREST_BYTES_MIN, |r| {
                let kind = kind(r)?;
                Ok(Interest { kind, name: r.bytes(limits::CHANNEL_BYTES)?, sessions: r.u32()? })
            })?,
        },
        tag::PUBLISH => Message::Publish {
            publisher: SessionId(r.u64()?),
            kind: kind(r)?,
            channel: r.bytes(limits::CHANNEL_BYTES)?,
            payload: r.bytes(limits::ARGUMENT_BYTES)?,
            past: r.list(limits::PASTS, PAST_BYTES_MIN, |r| Ok((r.keyspace()?, r.context()?)))?,
        },
        tag => return Err(Malformed::UnknownMessage { tag }),
    })
}

fn number(kind: ChannelKind) -> u8 {
    match kind {
        ChannelKind::Channel => KIND_CHANNEL,
        ChannelKind::Pattern => KIND_PATTERN,
        ChannelKind::Shard => KIND_SHARD,
    }
}

fn kind(r: &mut Reader<'_>) -> Result<ChannelKind, Malformed> {
    match r.u8()? {
        KIND_CHANNEL => Ok(ChannelKind::Channel),
        KIND_PATTERN => Ok(ChannelKind::Pattern),
        KIND_SHARD => Ok(ChannelKind::Shard),
        value => Err(Malformed::UnknownKind { what: "kind of a channel", value }),
    }
}
