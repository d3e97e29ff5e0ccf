//! Reads of one cut through several partitions, run by the first of them (Orbe, section 4.3; POCC, algorithm 2).
//!
//! - On `ReadSnapshot`: draw the cut, ask every partition for its slice, this one too.
//! - On the last slice: answer. On one whose versions are gone: draw a new cut, a bounded number of times.
//! - When the protocol has no cut, or a part has waited as long as the protocol lets it: two rounds, or the protocol's
//!   error.
//!
//! While a read is here its cut counts for what is folded (trap 35).

use super::Reads;
use crate::evaluate::Room;
use crate::partition::cx::Cx;
use crate::partition::failover::discarded::Discarded;
use crate::partition::others::Others;
use ensue_protocol::Late;
use ensue_types::{
    Args, Causes, Context, KeyspaceId, Part, PartitionId, Reply, RequestId, TimeVector, limits,
};
use ensue_wire::{Address, AtValues, Message, SnapshotOutcome};
use std::collections::{BTreeMap, BTreeSet};

/// Reads under way, by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct SnapshotReads {
    reads: BTreeMap<u64, SnapshotRead>,
    late: u64,
}

#[derive(Clone, Debug)]
struct SnapshotRead {
    from: Address,
    request: RequestId,
    keyspace: KeyspaceId,
    context: Context,
    parts: Vec<Part>,
    snapshot: TimeVector,
    unanswered: BTreeSet<PartitionId>,
    replies: Vec<(u32, Reply)>,
    /// What the slices so far have seen.
    seen: Vec<Causes>,
    since_us: u64,
    drawn: u32,
}

impl SnapshotReads {
    /// The cuts that are being read at.
    pub(crate) fn snapshots(&self) -> impl Iterator<Item = &TimeVector> {
        self.reads.values().map(|read| &read.snapshot)
    }

    /// Panics if a snapshot waits for no partition, or for one that has no part of it.
    pub(super) fn check_invariants(&self) -> usize {
        for (number, read) in &self.reads {
            assert!(!read.unanswered.is_empty(), "snapshot read {number} waits for no partition");
            let has_part =
                |partition: &PartitionId| read.parts.iter().any(|part| part.partition == *partition);
            assert!(read.unanswered.iter().all(has_part), "snapshot read {number} waits for a stranger");
        }
        self.reads.len()
    }

    pub(crate) fn len(&self) -> usize {
        self.reads.len()
    }

    /// Asks every partition for its slice of the cut.
    fn request_parts(&mut self, cx: &mut Cx, mut read: SnapshotRead) {
        let number = cx.number();
        read.unanswered = read.parts.iter().map(|part| part.partition).collect();
        read.replies.clear();
        read.seen.clear();
        read.drawn += 1;
        for part in &read.parts {
            read.request_part(cx, number, part);
        }
        self.reads.insert(number, read);
    }

    /// Snapshots since the start that came too late, and were read in two rounds or not at all.
    pub(in crate::partition) fn late_count(&self) -> u64 {
        self.late
    }

    /// The session reads by logical time, if it can, and otherwise tries again.
    fn read_in_two_rounds(&mut self, cx: &mut Cx, session: Address, request: RequestId) {
        self.late += 1;
        cx.send(session, Message::SnapshotRead { request, outcome: SnapshotOutcome::TooLate });
    }

    /// A core of this datacenter is reachable again: what it was asked meanwhile has not arrived.
    pub(in crate::partition) fn request_parts_again(
        &mut self,
        cx: &mut Cx,
        owns: &dyn Fn(PartitionId) -> bool,
    ) {
        for (number, read) in self.reads.clone() {
            let silent = |part: &&Part| owns(part.partition) && read.unanswered.contains(&part.partition);
            for part in read.parts.iter().filter(silent) {
                read.request_part(cx, number, part);
            }
        }
    }

    /// A partition that has stopped cannot read its slice: nobody can read the cut.
    pub(in crate::partition) fn on_part_refused(&mut self, cx: &mut Cx, number: u64, reply: Reply) {
        if let Some(read) = self.reads.remove(&number) {
            cx.send(read.from, Message::Refused { request: read.request, reply });
        }
    }

    /// Forgets reads whose sessions have long given up: their cuts must not hold up what is folded.
    pub(in crate::partition) fn drop_old_snapshot_reads(&mut self, cx: &Cx) {
        let oldest = cx.now.monotonic_us.saturating_sub(2_000 * cx.config.tuning.request_timeout_ms);
        self.reads.retain(|_, read| read.since_us >= oldest);
    }

    /// A core of this datacenter is unreachable: its slices will not come.
    pub(in crate::partition) fn fail_snapshot_reads(
        &mut self,
        cx: &mut Cx,
        owns: &dyn Fn(PartitionId) -> bool,
    ) {
        let lost = |(number, read): (&u64, &SnapshotRead)| {
            read.unanswered.iter().copied().find(|partition| owns(*partition)).map(|lost| (*number, lost))
        };
        let lost: Vec<(u64, PartitionId)> = self.reads.iter().filter_map(lost).collect();
        for (number, partition) in lost {
            let Some(read) = self.reads.remove(&number) else { continue };
            let words = format!(
                "UNAVAILABLE partition {partition} of {} became unreachable before it answered",
                cx.datacenter
            );
            cx.send(read.from, Message::Refused { request: read.request, reply: Reply::Error(words.into()) });
        }
    }
}

impl SnapshotRead {
    fn request_part(&self, cx: &mut Cx, number: u64, part: &Part) {
        let commands: Vec<Args> = part.commands.iter().map(|(_, args)| args.clone()).collect();
        let (keyspace, snapshot) = (self.keyspace, self.snapshot.clone());
        cx.send_local(
            part.partition,
            Message::ReadSnapshotPart { read: number, keyspace, snapshot, commands },
        );
    }

    fn answer(self, cx: &mut Cx, discarded: &Discarded) {
        let SnapshotRead { from, request, keyspace, mut context, replies, seen, .. } = self;
        for seen in seen {
            // A part of a snapshot read's causes are made by the same protocol, one partition further.
            if cx.protocol(keyspace).merge(&mut context.causes, &seen).is_err() {
                cx.trace(crate::Trace::Refused {
                    what: "a slice that saw facts that are not the protocol's",
                });
            }
        }
        discarded.strip_lost(cx, keyspace, &mut context.causes);
        context.time = context.time.max(cx.clock.latest());
        let outcome = SnapshotOutcome::Read { context, replies: Room::fit_all(replies) };
        cx.send(from, Message::SnapshotRead { request, outcome });
    }
}

impl Reads {
    pub(in crate::partition) fn on_read_snapshot(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        (from, request): (Address, RequestId),
        keyspace: KeyspaceId,
        mut context: Context,
        parts: Vec<Part>,
    ) {
        cx.advance_clock(context.time);
        if let Err(reply) = others.failover.discarded.reset_if_lost(cx, keyspace, &mut context.causes) {
            let outcome = SnapshotOutcome::TimedOut { context, reply };
            return cx.send(from, Message::SnapshotRead { request, outcome });
        }
        // A session that may be promoted is, before its cut is drawn.
        others.stable_time.times.select_version(cx, keyspace, &mut context.causes);
        let now = cx.promise();
        let Some(snapshot) = cx
            .protocol(keyspace)
            .snapshot_vector(&context.causes, &others.stable_time.times.stability(cx, now))
        else {
            return self.snapshot_reads.read_in_two_rounds(cx, from, request);
        };
        let read = SnapshotRead {
            from,
            request,
            keyspace,
            context,
            parts,
            snapshot,
            unanswered: BTreeSet::new(),
            replies: Vec::new(),
            seen: Vec::new(),
            since_us: cx.now.monotonic_us,
            drawn: 0,
        };
        self.snapshot_reads.request_parts(cx, read);
    }

    pub(in crate::partition) fn on_part_read(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        from: PartitionId,
        number: u64,
        values: Option<AtValues>,
    ) {
        let Some(read) = self.snapshot_reads.reads.get_mut(&number) else { return };
        let Some(values) = values else { return self.draw_again(cx, others, number) };
        if !read.unanswered.remove(&from) {
            return;
        }
        let part = read.parts.iter().find(|part| part.partition == from);
        let places = part.into_iter().flat_map(|part| &part.commands).map(|(place, _)| *place);
        read.replies.extend(places.zip(values.replies));
        read.seen.push(values.seen);
        if read.unanswered.is_empty() {
            let read = self.snapshot_reads.reads.remove(&number).expect("looked at above");
            read.answer(cx, &others.failover.discarded);
        }
    }

    /// Versions of the cut are gone.
    fn draw_again(&mut self, cx: &mut Cx, others: &Others, number: u64) {
        let Some(mut read) = self.snapshot_reads.reads.remove(&number) else { return };
        if read.drawn > limits::READ_RESTARTS_MAX {
            return self.snapshot_reads.read_in_two_rounds(cx, read.from, read.request);
        }
        if let Err(reply) =
            others.failover.discarded.reset_if_lost(cx, read.keyspace, &mut read.context.causes)
        {
            let outcome = SnapshotOutcome::TimedOut { context: read.context, reply };
            return cx.send(read.from, Message::SnapshotRead { request: read.request, outcome });
        }
        let now = cx.promise();
        let Some(snapshot) = cx
            .protocol(read.keyspace)
            .snapshot_vector(&read.context.causes, &others.stable_time.times.stability(cx, now))
        else {
            return self.snapshot_reads.read_in_two_rounds(cx, read.from, read.request);
        };
        read.snapshot = snapshot;
        self.snapshot_reads.request_parts(cx, read);
    }

    /// A part of a snapshot read has waited for other datacenters as long as the protocol lets it.
    pub(in crate::partition) fn on_part_late(&mut self, cx: &mut Cx, number: u64, missing: &str) {
        let Some(mut read) = self.snapshot_reads.reads.remove(&number) else { return };
        match cx.protocol(read.keyspace).snapshot_timed_out() {
            Late::TwoRounds => self.snapshot_reads.read_in_two_rounds(cx, read.from, read.request),
            Late::GiveUp => {
                self.blocked.count_given_up();
                let reply = cx.protocol(read.keyspace).timed_out(&mut read.context.causes, missing);
                let outcome = SnapshotOutcome::TimedOut { context: read.context, reply };
                cx.send(read.from, Message::SnapshotRead { request: read.request, outcome });
            }
        }
    }
}
