//! Read transactions over several owners: Eiger's section 4, driven by what the protocol says of the first round.
//!
//! - Begin: `ReadFirst` to every owner of a key.
//! - When all answered: ask the protocol. Consistent: answer. Otherwise `ReadAt` the time it names, with the operations
//!   it names, to the owners it names.
//! - When the second round answered: answer. If an owner no longer knows that time, or the transaction was older than
//!   its timeout between the rounds, begin again (4.3; trap 6), a bounded number of times.
//! - The context takes over what the accepted shares saw, and every time that an answer carried (trap 3).
//!
//! A keyspace whose protocol has no snapshots reads in parallel instead, and one that reads at a snapshot vector leaves
//! that to the first owner (`snapshot_read`).

use super::{Exchange, TRY_AGAIN};
use crate::Trace;
use crate::session::cx::Cx;
use crate::session::failure::Failure;
use crate::session::plan::{Answers, Plan};
use crate::session::step::Step;
use ensue_protocol::{Again, Share, SnapshotCheck};
use ensue_types::{Causes, LogicalTime, PartitionId, Rule, limits};
use ensue_wire::{FirstValues, Message};

/// A read transaction, over all its rounds.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    plan: Plan,
    begun_us: u64,
    restarts: u32,
}

/// Waiting for `ReadFirstDone` of every part.
#[derive(Clone, Debug)]
pub(crate) struct FirstRound {
    reading: Reading,
    shares: Vec<Option<FirstShare>>,
}

#[derive(Clone, Debug)]
struct FirstShare {
    latest_valid: LogicalTime,
    values: Option<FirstValues>,
}

/// Waiting for `ReadAtDone` of the parts that are read again.
#[derive(Clone, Debug)]
pub(crate) struct SecondRound {
    reading: Reading,
    answers: Answers,
    seen: Vec<Causes>,
    /// The part that each share asks for, until it is answered.
    asked: Vec<Option<usize>>,
}

impl Reading {
    /// Reads the parts of a plan in rounds.
    pub(crate) fn begin(cx: &mut Cx<'_>, plan: Plan) -> Step<Exchange> {
        Reading { plan, begun_us: cx.now.monotonic_us, restarts: 0 }.first_round(cx)
    }

    fn first_round(self, cx: &mut Cx<'_>) -> Step<Exchange> {
        let parts = self.plan.parts();
        cx.begin_request(parts.len());
        if let Some(failure) = cx.refusal(parts.iter().map(|part| part.partition)) {
            return Step::Failed(failure);
        }
        for (share, part) in parts.iter().enumerate() {
            let (request, keyspace) = (cx.request(share), cx.keyspace());
            let commands = self.plan.commands_of(share);
            cx.send(part.partition, Message::ReadFirst { request, keyspace, commands });
        }
        let shares = parts.iter().map(|_| None).collect();
        Step::Waits(Exchange::FirstRound(Box::new(FirstRound { reading: self, shares })))
    }

    fn restart(self, cx: &mut Cx<'_>) -> Step<Exchange> {
        let restarts = self.restarts + 1;
        cx.core.trace(Trace::ReadRestarted { session: cx.requests.session() });
        if restarts > limits::READ_RESTARTS_MAX {
            return Step::Failed(Failure::Refused(TRY_AGAIN));
        }
        Reading { restarts, begun_us: cx.now.monotonic_us, ..self }.first_round(cx)
    }

    /// What the shares of the read saw becomes part of the session's past.
    fn finish(self, cx: &mut Cx<'_>, answers: Answers, seen: Vec<Causes>) -> Step<Exchange> {
        if Rule::RememberReads.holds() {
            for seen in seen {
                let protocol = cx.core.protocol(cx.contexts.selected());
                if protocol.merge(cx.contexts.causes_mut(), &seen).is_err() {
                    let what = "a share of a read saw facts that are not the protocol's";
                    cx.core.trace(Trace::Refused { what });
                }
            }
        }
        Step::Gathered(self.plan, answers)
    }
}

impl FirstRound {
    pub(crate) fn unanswered(&self) -> Vec<PartitionId> {
        let parts = self.reading.plan.parts().iter().zip(&self.shares);
        parts.filter(|(_, share)| share.is_none()).map(|(part, _)| part.partition).collect()
    }

    pub(crate) fn on_answer(
        mut self: Box<Self>,
        cx: &mut Cx<'_>,
        share: usize,
        message: Message,
    ) -> Step<Exchange> {
        let Message::ReadFirstDone { latest_valid, values, .. } = message else {
            return cx.unexpected(Exchange::FirstRound(self));
        };
        self.shares[share] = Some(FirstShare { latest_valid, values });
        if self.shares.iter().any(Option::is_none) {
            return Step::Waits(Exchange::FirstRound(self));
        }
        self.check_consistency(cx)
    }

    /// All have answered: do their values belong together?
    fn check_consistency(self, cx: &mut Cx<'_>) -> Step<Exchange> {
        let shares: Vec<FirstShare> = self.shares.into_iter().flatten().collect();
        let again = read_again(cx, &self.reading.plan, &shares);
        let timeout_us = cx.core.config.tuning.read_transaction_timeout_ms.saturating_mul(1_000);
        let is_late = cx.now.monotonic_us.saturating_sub(self.reading.begun_us) > timeout_us;
        // What the values depend on may have been forgotten meanwhile, so they say nothing about each other.
        let says_nothing = cx.protocol().needs().keeps_for_reads() && Rule::LateReadsBeginAgain.holds();
        if is_late && (says_nothing || !again.is_empty()) {
            return self.reading.restart(cx);
        }
        if again.is_empty() {
            let (answers, seen) = accept(&self.reading.plan, shares, &again);
            return self.reading.finish(cx, answers, seen);
        }
        SecondRound::begin(cx, self.reading, shares, again)
    }
}

/// What the protocol wants to be read again.
fn read_again(cx: &mut Cx<'_>, plan: &Plan, shares: &[FirstShare]) -> Vec<Again> {
    if !Rule::SecondRound.holds() {
        // Broken on purpose: each share stands for itself, and a pending one is read at its own time.
        let pending = shares.iter().enumerate().filter(|(_, share)| share.values.is_none());
        let at_its_own =
            |(share, first): (usize, &FirstShare)| Again { share, at: first.latest_valid, with: Vec::new() };
        return pending.map(at_its_own).collect();
    }
    let nothing = Causes::Nothing;
    let judged: Vec<Share<'_>> = shares
        .iter()
        .zip(plan.parts())
        .map(|(share, part)| Share {
            partition: part.partition,
            earliest: share.values.as_ref().map(|values| values.earliest_valid),
            latest: share.latest_valid,
            seen: share.values.as_ref().map_or(&nothing, |values| &values.seen),
        })
        .collect();
    match cx.protocol().check_snapshot(&judged) {
        SnapshotCheck::Consistent => Vec::new(),
        SnapshotCheck::ReadAgain(again) => {
            again.iter().for_each(|again| cx.contexts.observe(again.at));
            again
        }
    }
}

/// Takes over the values of all shares that are not read again.
fn accept(plan: &Plan, shares: Vec<FirstShare>, again: &[Again]) -> (Answers, Vec<Causes>) {
    let mut answers = plan.answers();
    let mut seen = Vec::new();
    for (index, (share, part)) in shares.into_iter().zip(plan.parts()).enumerate() {
        if again.iter().any(|again| again.share == index) {
            continue;
        }
        if let Some(values) = share.values {
            answers.put_part(part, values.replies);
            seen.push(values.seen);
        }
    }
    (answers, seen)
}

impl SecondRound {
    fn begin(
        cx: &mut Cx<'_>,
        reading: Reading,
        shares: Vec<FirstShare>,
        again: Vec<Again>,
    ) -> Step<Exchange> {
        cx.core.trace(Trace::SecondRound { session: cx.requests.session() });
        let (answers, seen) = accept(&reading.plan, shares, &again);
        let asked: Vec<Option<usize>> = again.iter().map(|again| Some(again.share)).collect();
        let partition = |part: usize| reading.plan.parts()[part].partition;
        cx.begin_request(again.len());
        if let Some(failure) = cx.refusal(again.iter().map(|again| partition(again.share))) {
            return Step::Failed(failure);
        }
        for (share, Again { share: part, at, with }) in again.into_iter().enumerate() {
            let (request, keyspace) = (cx.request(share), cx.keyspace());
            let commands = reading.plan.commands_of(part);
            cx.send(partition(part), Message::ReadAt { request, keyspace, commands, at, with });
        }
        Step::Waits(Exchange::SecondRound(Box::new(SecondRound { reading, answers, seen, asked })))
    }

    pub(crate) fn unanswered(&self) -> Vec<PartitionId> {
        self.asked.iter().flatten().map(|&part| self.reading.plan.parts()[part].partition).collect()
    }

    pub(crate) fn on_answer(
        mut self: Box<Self>,
        cx: &mut Cx<'_>,
        share: usize,
        message: Message,
    ) -> Step<Exchange> {
        let Message::ReadAtDone { values, .. } = message else {
            return cx.unexpected(Exchange::SecondRound(self));
        };
        let Some(values) = values else { return self.reading.restart(cx) };
        if let Some(part) = self.asked[share].take() {
            self.answers.put_part(&self.reading.plan.parts()[part], values.replies);
            self.seen.push(values.seen);
        }
        if self.asked.iter().any(Option::is_some) {
            return Step::Waits(Exchange::SecondRound(self));
        }
        self.reading.finish(cx, self.answers, self.seen)
    }
}
