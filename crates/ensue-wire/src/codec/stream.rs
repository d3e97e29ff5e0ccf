//! Layouts of replication streams. An entry is the log's own record and opaque here.

use super::reader::Reader;
use super::tag;
use super::writer::Writer;
use crate::error::Malformed;
use crate::limits;
use crate::message::{Introduction, Message, PeerStage, StreamAcknowledge};
use ensue_types::{DatacenterId, DatacenterSet, DirectoryId};

const ENTRY_BYTES_MIN: usize = 4;
const WATERMARK_BYTES: usize = 1 + 2 + 8;

pub(super) fn write(w: &mut Writer<'_>, message: &Message) {
    match message {
        Message::StreamResume { incarnation, received } => w.incarnation(*incarnation).position(*received),
        Message::StreamEntries { incarnation, first, entries } => {
            w.incarnation(*incarnation).position(*first).list(limits::ENTRIES, entries, |w, entry| {
                w.bytes(limits::ENTRY_BYTES, entry);
            })
        }
        Message::StreamAcknowledge(acknowledge) => write_acknowledge(w, acknowledge),
        Message::TailFetch { after } => w.position(*after),
        Message::TailFetched { after, received, entries } => {
            w.position(*after).position(*received).list(limits::ENTRIES, entries, |w, entry| {
                w.bytes(limits::ENTRY_BYTES, entry);
            })
        }
        Message::CopyFetch { copy, part, again } => w.u64(*copy).u64(*part).u8(u8::from(*again)),
        Message::Copied { copy, part, is_last, done, of, items } => {
            w.u64(*copy).u64(*part).u8(u8::from(*is_last)).u64(*done).u64(*of).list(
                limits::ITEMS,
                items,
                |w, item| {
                    w.bytes(limits::ENTRY_BYTES, item);
                },
            )
        }
        Message::CopyRefused { copy, cannot } => w.u64(*copy).u8(u8::from(*cannot)),
        Message::DatacenterFailed { datacenter, received, time, ended } => {
            w.u8(datacenter.0).position(*received).time(*time).option(ended.as_ref(), |w, failed| {
                w.u16(failed.0);
            })
        }
        Message::BranchFetch { keyspace, state, live } => {
            w.keyspace(*keyspace).u64(*state).list(limits::STATES, live, |w, state| {
                w.u64(*state);
            })
        }
        Message::BranchFetched { keyspace, rebuilt } => {
            w.keyspace(*keyspace).bytes(limits::ENTRY_BYTES, rebuilt)
        }
        Message::BranchLacking { keyspace, state, failed } => {
            w.keyspace(*keyspace).u64(*state).list(limits::FAILED, failed, |w, datacenter| {
                w.u8(datacenter.0);
            })
        }
        Message::Introduce(introduction) => write_introduction(w, introduction),
        Message::ClockAhead { ahead_ms } => w.u64(*ahead_ms),
        Message::Retiring { step } => w.u8(*step),
        Message::PassOn { origin, after } => w.u8(origin.0).position(*after),
        Message::PassedOn { origin, entries } => w.u8(origin.0).list(limits::ENTRIES, entries, |w, entry| {
            w.bytes(limits::ENTRY_BYTES, entry);
        }),
        other => unreachable!("no message of a stream: {:#06x}", tag::tag_of(other)),
    };
}

pub(super) fn read(r: &mut Reader<'_>, tag: u16) -> Result<Message, Malformed> {
    Ok(match tag {
        tag::STREAM_RESUME => {
            Message::StreamResume { incarnation: r.incarnation()?, received: r.position()? }
        }
        tag::STREAM_ENTRIES => Message::StreamEntries {
            incarnation: r.incarnation()?,
            first: r.position()?,
            entries: r.list(limits::ENTRIES, ENTRY_BYTES_MIN, |r| r.bytes(limits::ENTRY_BYTES))?,
        },
        tag::STREAM_ACKNOWLEDGE => Message::StreamAcknowledge(read_acknowledge(r)?),
        tag::TAIL_FETCH => Message::TailFetch { after: r.position()? },
        tag::TAIL_FETCHED => Message::TailFetched {
            after: r.position()?,
            received: r.position()?,
            entries: r.list(limits::ENTRIES, ENTRY_BYTES_MIN, |r| r.bytes(limits::ENTRY_BYTES))?,
        },
        tag::COPY_FETCH => Message::CopyFetch { copy: r.u64()?, part: r.u64()?, again: r.bool()? },
        tag::COPIED => Message::Copied {
            copy: r.u64()?,
            part: r.u64()?,
            is_last: r.bool()?,
            done: r.u64()?,
            of: r.u64()?,
            items: r.list(limits::ITEMS, ENTRY_BYTES_MIN, |r| r.bytes(limits::ENTRY_BYTES))?,
        },
        tag::COPY_REFUSED => Message::CopyRefused { copy: r.u64()?, cannot: r.bool()? },
        tag::DATACENTER_FAILED => Message::DatacenterFailed {
            datacenter: DatacenterId(r.u8()?),
            received: r.position()?,
            time: r.time()?,
            ended: r.option(|r| r.u16().map(DatacenterSet))?,
        },
        tag::BRANCH_FETCH => Message::BranchFetch {
            keyspace: r.keyspace()?,
            state: r.u64()?,
            live: r.list(limits::STATES, 8, Reader::u64)?,
        },
        tag::BRANCH_FETCHED => {
            Message::BranchFetched { keyspace: r.keyspace()?, rebuilt: r.bytes(limits::ENTRY_BYTES)? }
        }
        tag::BRANCH_LACKING => Message::BranchLacking {
            keyspace: r.keyspace()?,
            state: r.u64()?,
            failed: r.list(limits::FAILED, 1, |r| r.u8().map(DatacenterId))?,
        },
        tag::INTRODUCE => Message::Introduce(read_introduction(r)?),
        tag::CLOCK_AHEAD => Message::ClockAhead { ahead_ms: r.u64()? },
        tag::RETIRING => Message::Retiring { step: r.u8()? },
        tag::PASS_ON => Message::PassOn { origin: DatacenterId(r.u8()?), after: r.position()? },
        tag::PASSED_ON => Message::PassedOn {
            origin: DatacenterId(r.u8()?),
            entries: r.list(limits::ENTRIES, ENTRY_BYTES_MIN, |r| r.bytes(limits::ENTRY_BYTES))?,
        },
        tag => return Err(Malformed::UnknownMessage { tag }),
    })
}

fn write_acknowledge<'w, 'o>(
    w: &'w mut Writer<'o>,
    StreamAcknowledge { incarnation, received, synced, applied, end, shown }: &StreamAcknowledge,
) -> &'w mut Writer<'o> {
    w.incarnation(*incarnation).position(*received).position(*synced);
    w.list(limits::WATERMARKS, applied, |w, (origin, incarnation, position)| {
        w.u8(origin.0).incarnation(*incarnation).position(*position);
    });
    w.position(*end).time(*shown)
}

fn read_acknowledge(r: &mut Reader<'_>) -> Result<StreamAcknowledge, Malformed> {
    Ok(StreamAcknowledge {
        incarnation: r.incarnation()?,
        received: r.position()?,
        synced: r.position()?,
        applied: r.list(limits::WATERMARKS, WATERMARK_BYTES, |r| {
            Ok((DatacenterId(r.u8()?), r.incarnation()?, r.position()?))
        })?,
        end: r.position()?,
        shown: r.time()?,
    })
}

const FLAG_WHOLE: u8 = 1;
const FLAG_ASKS: u8 = 2;

fn write_introduction<'w, 'o>(w: &'w mut Writer<'o>, introduction: &Introduction) -> &'w mut Writer<'o> {
    let Introduction {
        directory,
        stage,
        known,
        received,
        last,
        proof,
        applied,
        end,
        elsewhere,
        is_whole,
        asks,
    } = introduction;
    write_directory(w, *directory);
    w.u8(match stage {
        PeerStage::Joining => 1,
        PeerStage::Recovering => 2,
        PeerStage::Serving => 3,
    });
    write_directory(w, *known).position(*received).time(*last).u64(*proof).position(*applied).position(*end);
    w.position(*elsewhere);
    w.u8(if *is_whole { FLAG_WHOLE } else { 0 } | if *asks { FLAG_ASKS } else { 0 })
}

fn read_introduction(r: &mut Reader<'_>) -> Result<Introduction, Malformed> {
    let directory = read_directory(r)?;
    let stage = match r.u8()? {
        1 => PeerStage::Joining,
        2 => PeerStage::Recovering,
        3 => PeerStage::Serving,
        value => return Err(Malformed::UnknownKind { what: "stage", value }),
    };
    let (known, received, last, proof) = (read_directory(r)?, r.position()?, r.time()?, r.u64()?);
    let (applied, end, elsewhere, flags) = (r.position()?, r.position()?, r.position()?, r.u8()?);
    if flags & !(FLAG_WHOLE | FLAG_ASKS) != 0 {
        return Err(Malformed::UnknownKind { what: "flags of an introduction", value: flags });
    }
    let (is_whole, asks) = (flags & FLAG_WHOLE != 0, flags & FLAG_ASKS != 0);
    Ok(Introduction {
        directory,
        stage,
        known,
        received,
        last,
        proof,
        applied,
        end,
        elsewhere,
        is_whole,
        asks,
    })
}

fn write_directory<'w, 'o>(w: &'w mut Writer<'o>, DirectoryId(id): DirectoryId) -> &'w mut Writer<'o> {
    w.u64(id as u64).u64((id >> 64) as u64)
}

fn read_directory(r: &mut Reader<'_>) -> Result<DirectoryId, Malformed> {
    let (low, high) = (r.u64()?, r.u64()?);
    Ok(DirectoryId(u128::from(high) << 64 | u128::from(low)))
}
