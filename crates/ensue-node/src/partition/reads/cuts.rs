//! Reads of one cut through several partitions, run by the first of them (Orbe, section 4.3; POCC, algorithm 2).
//!
//! - On `ReadCut`: draw the cut, ask every partition for its slice, this one too.
//! - On the last slice: answer. On one whose versions are gone: draw a new cut, a bounded number of times.
//! - When a slice has waited as long as the protocol lets it: an older cut, or two rounds, or the protocol's error.
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
use ensue_wire::{Address, AtValues, CutOutcome, Message};
use std::collections::{BTreeMap, BTreeSet};

/// Reads under way, by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cuts {
    reads: BTreeMap<u64, CutRead>,
    pub(in crate::partition) older: u64,
    pub(in crate::partition) late: u64,
}

#[derive(Clone, Debug)]
struct CutRead {
    from: Address,
    request: RequestId,
    keyspace: KeyspaceId,
    context: Context,
    parts: Vec<Part>,
    cut: TimeVector,
    unanswered: BTreeSet<PartitionId>,
    replies: Vec<(u32, Reply)>,
    /// What the slices so far have seen.
    seen: Vec<Causes>,
    since_us: u64,
    drawn: u32,
    older: bool,
}

impl Cuts {
    /// The cuts that are being read at.
    pub(crate) fn cuts(&self) -> impl Iterator<Item = &TimeVector> {
        self.reads.values().map(|read| &read.cut)
    }

    pub(crate) fn len(&self) -> usize {
        self.reads.len()
    }

    /// Asks every partition for its slice of the cut.
    fn ask_slices(&mut self, cx: &mut Cx, mut read: CutRead) {
        let number = cx.number();
        read.unanswered = read.parts.iter().map(|part| part.partition).collect();
        read.replies.clear();
        read.seen.clear();
        read.drawn += 1;
        for part in &read.parts {
            read.ask_slice(cx, number, part);
        }
        self.reads.insert(number, read);
    }

    /// A core of this datacenter is reachable again: what it was asked meanwhile has not arrived.
    pub(in crate::partition) fn ask_slices_again(&mut self, cx: &mut Cx, owns: &dyn Fn(PartitionId) -> bool) {
        for (number, read) in self.reads.clone() {
            let silent = |part: &&Part| owns(part.partition) && read.unanswered.contains(&part.partition);
            for part in read.parts.iter().filter(silent) {
                read.ask_slice(cx, number, part);
            }
        }
    }

    /// A partition that has stopped cannot read its slice: nobody can read the cut.
    pub(in crate::partition) fn on_slice_refused(&mut self, cx: &mut Cx, number: u64, reply: Reply) {
        if let Some(read) = self.reads.remove(&number) {
            cx.send(read.from, Message::Refused { request: read.request, reply });
        }
    }

    /// Forgets reads whose sessions have long given up: their cuts must not hold up what is folded.
    pub(in crate::partition) fn forget_old_cuts(&mut self, cx: &Cx) {
        let oldest = cx.now.monotonic_us.saturating_sub(2_000 * cx.config.tuning.request_timeout_ms);
        self.reads.retain(|_, read| read.since_us >= oldest);
    }

    /// A core of this datacenter is unreachable: its slices will not come.
    pub(in crate::partition) fn fail_cuts(&mut self, cx: &mut Cx, owns: &dyn Fn(PartitionId) -> bool) {
        let lost = |(number, read): (&u64, &CutRead)| {
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

impl CutRead {
    fn ask_slice(&self, cx: &mut Cx, number: u64, part: &Part) {
        let commands: Vec<Args> = part.commands.iter().map(|(_, args)| args.clone()).collect();
        let (keyspace, cut) = (self.keyspace, self.cut.clone());
        cx.send_local(part.partition, Message::ReadSlice { read: number, keyspace, cut, commands });
    }

    fn answer(self, cx: &mut Cx, discarded: &Discarded) {
        let CutRead { from, request, keyspace, mut context, replies, seen, .. } = self;
        for seen in seen {
            // A slice's causes are made by the same protocol, one partition further.
            if cx.protocol(keyspace).merge(&mut context.causes, &seen).is_err() {
                cx.trace(crate::Trace::Refused {
                    what: "a slice that saw facts that are not the protocol's",
                });
            }
        }
        discarded.strip_lost(cx, keyspace, &mut context.causes);
        context.time = context.time.max(cx.clock.latest());
        let outcome = CutOutcome::Read { context, replies: Room::fit_all(replies) };
        cx.send(from, Message::CutRead { request, outcome });
    }
}

impl Reads {
    pub(in crate::partition) fn on_read_cut(
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
            let outcome = CutOutcome::TimedOut { context, reply };
            return cx.send(from, Message::CutRead { request, outcome });
        }
        // A session that may be promoted is, before its cut is drawn.
        others.stable_time.times.select_version(cx, keyspace, &mut context.causes);
        let now = cx.promise();
        let cut = cx
            .protocol(keyspace)
            .snapshot_vector(&context.causes, &others.stable_time.times.stability(cx, now));
        let read = CutRead {
            from,
            request,
            keyspace,
            context,
            parts,
            cut,
            unanswered: BTreeSet::new(),
            replies: Vec::new(),
            seen: Vec::new(),
            since_us: cx.now.monotonic_us,
            drawn: 0,
            older: false,
        };
        self.cuts.ask_slices(cx, read);
    }

    pub(in crate::partition) fn on_slice_read(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        from: PartitionId,
        number: u64,
        values: Option<AtValues>,
    ) {
        let Some(read) = self.cuts.reads.get_mut(&number) else { return };
        let Some(values) = values else { return self.draw_again(cx, others, number) };
        if !read.unanswered.remove(&from) {
            return;
        }
        let part = read.parts.iter().find(|part| part.partition == from);
        let places = part.into_iter().flat_map(|part| &part.commands).map(|(place, _)| *place);
        read.replies.extend(places.zip(values.replies));
        read.seen.push(values.seen);
        if read.unanswered.is_empty() {
            let read = self.cuts.reads.remove(&number).expect("looked at above");
            read.answer(cx, &others.failover.discarded);
        }
    }

    /// Versions of the cut are gone.
    fn draw_again(&mut self, cx: &mut Cx, others: &Others, number: u64) {
        let Some(mut read) = self.cuts.reads.remove(&number) else { return };
        if read.drawn > limits::READ_RESTARTS_MAX {
            self.cuts.late += 1;
            let outcome = CutOutcome::TooLate;
            return cx.send(read.from, Message::CutRead { request: read.request, outcome });
        }
        if let Err(reply) =
            others.failover.discarded.reset_if_lost(cx, read.keyspace, &mut read.context.causes)
        {
            let outcome = CutOutcome::TimedOut { context: read.context, reply };
            return cx.send(read.from, Message::CutRead { request: read.request, outcome });
        }
        let now = cx.promise();
        read.cut = cx
            .protocol(read.keyspace)
            .snapshot_vector(&read.context.causes, &others.stable_time.times.stability(cx, now));
        self.cuts.ask_slices(cx, read);
    }

    /// A slice has waited for other datacenters as long as the protocol lets it.
    pub(in crate::partition) fn on_slice_late(
        &mut self,
        cx: &mut Cx,
        others: &Others,
        number: u64,
        missing: &str,
    ) {
        let Some(mut read) = self.cuts.reads.remove(&number) else { return };
        let now = cx.promise();
        let outcome = match cx
            .protocol(read.keyspace)
            .snapshot_timed_out(&read.context.causes, &others.stable_time.times.stability(cx, now))
        {
            Late::OlderCut(cut) if !read.older => {
                self.cuts.older += 1;
                (read.cut, read.older) = (cut, true);
                return self.cuts.ask_slices(cx, read);
            }
            Late::OlderCut(_) | Late::TwoRounds => {
                self.cuts.late += 1;
                CutOutcome::TooLate
            }
            Late::GiveUp => {
                self.waits.given_up += 1;
                let reply = cx.protocol(read.keyspace).timed_out(&mut read.context.causes, missing);
                CutOutcome::TimedOut { context: read.context, reply }
            }
        };
        cx.send(read.from, Message::CutRead { request: read.request, outcome });
    }
}
