//! Layouts of what the sessions of cores say to each other about channels, and partitions to cores about changes.

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
const KIND_MONITOR: u8 = 4;

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
        Message::ReportChanges { wanted } => w.u8(u8::from(*wanted)),
        Message::Changed { keyspace, key, event, writer } => {
            w.keyspace(*keyspace).u8(u8::from(key.is_some()));
            if let Some(key) = key {
                w.bytes(limits::ARGUMENT_BYTES, key);
            }
            w.bytes(limits::CHANNEL_BYTES, event).u8(u8::from(writer.is_some()));
            match writer {
                Some(writer) => w.u64(writer.0),
                None => w,
            }
        }
        Message::Called { request, keyspace, commands, all, denied } => {
            w.request(*request).keyspace(*keyspace).commands(commands).u8(u8::from(*all)).commands(denied)
        }
        Message::Runs { request } => w.request(*request),
        other => unreachable!("no message about channels: {:#06x}", tag::tag_of(other)),
    };
}

pub(super) fn read(r: &mut Reader<'_>, tag: u16) -> Result<Message, Malformed> {
    Ok(match tag {
        tag::INTEREST => Message::Interest {
            all: flag(r)?,
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
        tag::REPORT_CHANGES => Message::ReportChanges { wanted: flag(r)? },
        tag::CHANGED => {
            let keyspace = r.keyspace()?;
            let key = if flag(r)? { Some(r.bytes(limits::ARGUMENT_BYTES)?) } else { None };
            let event = r.bytes(limits::CHANNEL_BYTES)?;
            let writer = if flag(r)? { Some(SessionId(r.u64()?)) } else { None };
            Message::Changed { keyspace, key, event, writer }
        }
        tag::CALLED => Message::Called {
            request: r.request()?,
            keyspace: r.keyspace()?,
            commands: r.commands()?,
            all: flag(r)?,
            denied: r.commands()?,
        },
        tag::RUNS => Message::Runs { request: r.request()? },
        tag => return Err(Malformed::UnknownMessage { tag }),
    })
}

fn flag(r: &mut Reader<'_>) -> Result<bool, Malformed> {
    match r.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        value => Err(Malformed::UnknownKind { what: "yes or no", value }),
    }
}

fn number(kind: ChannelKind) -> u8 {
    match kind {
        ChannelKind::Channel => KIND_CHANNEL,
        ChannelKind::Pattern => KIND_PATTERN,
        ChannelKind::Shard => KIND_SHARD,
        ChannelKind::Monitor => KIND_MONITOR,
    }
}

fn kind(r: &mut Reader<'_>) -> Result<ChannelKind, Malformed> {
    match r.u8()? {
        KIND_CHANNEL => Ok(ChannelKind::Channel),
        KIND_PATTERN => Ok(ChannelKind::Pattern),
        KIND_SHARD => Ok(ChannelKind::Shard),
        KIND_MONITOR => Ok(ChannelKind::Monitor),
        value => Err(Malformed::UnknownKind { what: "kind of a channel", value }),
    }
}
