//! Layouts of what goes by vectors of times: cuts, heartbeats, and what is stable.

use super::reader::Reader;
use super::tag;
use super::writer::Writer;
use crate::error::Malformed;
use crate::limits;
use crate::message::{AtValues, Message, SnapshotOutcome};
use ensue_types::{DatacenterId, DatacenterSet};

const OUTCOME_READ: u8 = 0;
const OUTCOME_TOO_LATE: u8 = 1;
const OUTCOME_TIMED_OUT: u8 = 2;

pub(super) fn write(w: &mut Writer<'_>, message: &Message) {
    match message {
        Message::ReadSnapshot { request, keyspace, context, parts } => {
            w.request(*request).keyspace(*keyspace).context(context).parts(parts)
        }
        Message::SnapshotRead { request, outcome } => write_outcome(w.request(*request), outcome),
        Message::ReadSnapshotPart { read, keyspace, snapshot, commands } => {
            w.u64(*read).keyspace(*keyspace).times(snapshot).commands(commands)
        }
        Message::SnapshotPartRead { read, values } => w.u64(*read).option(values.as_ref(), |w, values| {
            w.replies(&values.replies).causes(&values.seen);
        }),
        Message::TimedOut { request, context, replies } => {
            w.request(*request).context(context).replies(replies)
        }
        Message::AwaitTimes { check, times, readers } => {
            w.u64(*check).times(times).option(readers.as_ref(), |w, keyspace| {
                w.keyspace(*keyspace);
            })
        }
        Message::StabilizationReport { received, floor, globally_stable }
        | Message::Stable { received, floor, globally_stable } => {
            w.times(received).times(floor).operations(globally_stable)
        }
        Message::Heartbeat { end } => w.position(*end),
        Message::AskTime => w,
        Message::Ended { datacenter, whole, failed, doubtful }
        | Message::Lost { datacenter, whole, failed, doubtful } => {
            w.u8(datacenter.0).time(*whole).u16(failed.0).option(doubtful.as_ref(), |w, doubtful| {
                w.time(*doubtful);
            })
        }
        Message::SnapshotPartLate { read, missing } => {
            w.u64(*read).bytes(limits::TEXT_BYTES, missing.as_bytes())
        }
        Message::SnapshotPartRefused { read, reply } => w.u64(*read).reply(reply),
        other => unreachable!("no message about times: {:#06x}", tag::tag_of(other)),
    };
}

pub(super) fn read(r: &mut Reader<'_>, tag: u16) -> Result<Message, Malformed> {
    Ok(match tag {
        tag::READ_SNAPSHOT => Message::ReadSnapshot {
            request: r.request()?,
            keyspace: r.keyspace()?,
            context: r.context()?,
            parts: r.parts()?,
        },
        tag::SNAPSHOT_READ => Message::SnapshotRead { request: r.request()?, outcome: read_outcome(r)? },
        tag::READ_SNAPSHOT_PART => Message::ReadSnapshotPart {
            read: r.u64()?,
            keyspace: r.keyspace()?,
            snapshot: r.times()?,
            commands: r.commands()?,
        },
        tag::SNAPSHOT_PART_READ => Message::SnapshotPartRead {
            read: r.u64()?,
            values: r.option(|r| Ok(AtValues { replies: r.replies()?, seen: r.causes()? }))?,
        },
        tag::TIMED_OUT => {
            Message::TimedOut { request: r.request()?, context: r.context()?, replies: r.replies()? }
        }
        tag::AWAIT_TIMES => {
            Message::AwaitTimes { check: r.u64()?, times: r.times()?, readers: r.option(Reader::keyspace)? }
        }
        tag::STABILIZATION_REPORT => Message::StabilizationReport {
            received: r.times()?,
            floor: r.times()?,
            globally_stable: r.operations()?,
        },
        tag::STABLE => {
            Message::Stable { received: r.times()?, floor: r.times()?, globally_stable: r.operations()? }
        }
        tag::HEARTBEAT => Message::Heartbeat { end: r.position()? },
        tag::ASK_TIME => Message::AskTime,
        tag::ENDED => Message::Ended {
            datacenter: DatacenterId(r.u8()?),
            whole: r.time()?,
            failed: DatacenterSet(r.u16()?),
            doubtful: r.option(|r| r.time())?,
        },
        tag::LOST => Message::Lost {
            datacenter: DatacenterId(r.u8()?),
            whole: r.time()?,
            failed: DatacenterSet(r.u16()?),
            doubtful: r.option(|r| r.time())?,
        },
        tag::SNAPSHOT_PART_LATE => {
            Message::SnapshotPartLate { read: r.u64()?, missing: r.text(limits::TEXT_BYTES)?.to_owned() }
        }
        tag::SNAPSHOT_PART_REFUSED => Message::SnapshotPartRefused { read: r.u64()?, reply: r.reply()? },
        tag => return Err(Malformed::UnknownMessage { tag }),
    })
}

fn write_outcome<'w, 'o>(w: &'w mut Writer<'o>, outcome: &SnapshotOutcome) -> &'w mut Writer<'o> {
    match outcome {
        SnapshotOutcome::Read { context, replies } => {
            w.u8(OUTCOME_READ).context(context).placed_replies(replies)
        }
        SnapshotOutcome::TooLate => w.u8(OUTCOME_TOO_LATE),
        SnapshotOutcome::TimedOut { context, reply } => w.u8(OUTCOME_TIMED_OUT).context(context).reply(reply),
    }
}

fn read_outcome(r: &mut Reader<'_>) -> Result<SnapshotOutcome, Malformed> {
    Ok(match r.u8()? {
        OUTCOME_READ => SnapshotOutcome::Read { context: r.context()?, replies: r.placed_replies()? },
        OUTCOME_TOO_LATE => SnapshotOutcome::TooLate,
        OUTCOME_TIMED_OUT => SnapshotOutcome::TimedOut { context: r.context()?, reply: r.reply()? },
        value => return Err(Malformed::UnknownKind { what: "outcome of a snapshot read", value }),
    })
}
