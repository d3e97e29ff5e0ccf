//! Read transactions over several owners: Eiger's section 4, driven by what the protocol says of the first round.
//!
//! - Begin: `ReadFirst` to every owner of a key.
//! - When all answered: ask the protocol. Consistent: answer. Otherwise `ReadAt` the time it names, with the operations it names, to
//!   the owners it names.
//! - When the second round answered: answer. If an owner no longer knows that time, or the transaction was older than its
//!   timeout between the rounds, begin again (4.3; trap 6), a bounded number of times.
//! - The context takes over what the accepted shares saw, and every time that an answer carried (trap 3).
//!
//! A keyspace whose protocol has no snapshots reads in parallel instead (`parallel`), and one whose snapshots are cuts leaves
//! them to the first owner (`cut`).

use super::exchange::Exchange;
use super::failure::Failure;
use super::parallel::Then;
use super::plan::{Answers, Plan};
use super::turn::Turn;
use crate::Trace;
use ensue_protocol::{Again, Judgement, Share, SnapshotReads};
use ensue_types::{LogicalTime, Opaque, PartitionId, Reply, Rule, limits};
use ensue_wire::{FirstValues, Message};

/// A read transaction, over all its rounds.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    plan: Plan,
    then: Then,
    begun_us: u64,
    restarts: u32,
}

/// Waiting for `ReadFirstDone` of every part.
#[derive(Clone, Debug)]
pub(super) struct FirstRound {
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
pub(super) struct SecondRound {
    reading: Reading,
    answers: Answers,
    seen: Vec<Opaque>,
    /// The part that each share asks for, until it is answered.
    asked: Vec<Option<usize>>,
}

impl Turn<'_> {
    /// Reads the parts of a plan as of one moment, if the protocol of the keyspace can.
    pub(super) fn read(&mut self, plan: Plan, then: Then) {
        if plan.parts.is_empty() {
            let answers = plan.answers();
            return self.answer(&[plan.assemble(answers)]);
        }
        match self.desk.protocol(self.session.keyspace).capabilities().snapshot_reads {
            SnapshotReads::None => self.read_in_parallel(plan, then),
            SnapshotReads::OneRound if plan.parts.len() == 1 && self.partitions_are_snapshots() => {
                self.read_in_parallel(plan, then);
            }
            SnapshotReads::OneRound => self.read_cut(plan, then),
            SnapshotReads::TwoRounds => self.read_in_rounds(plan, then),
        }
    }

    fn partitions_are_snapshots(&self) -> bool {
        self.desk.protocol(self.session.keyspace).partitions_are_snapshots()
    }

    pub(super) fn read_in_rounds(&mut self, plan: Plan, then: Then) {
        self.begin_first_round(Reading { plan, then, begun_us: self.now.monotonic_us, restarts: 0 });
    }

    fn begin_first_round(&mut self, reading: Reading) {
        let parts = reading.plan.parts.len();
        let messages: Vec<_> = (0..parts)
            .map(|part| (reading.plan.parts[part].partition, reading.plan.commands_of(part)))
            .collect();
        let shares = (0..parts).map(|_| None).collect();
        self.begin_request(Exchange::FirstRound(Box::new(FirstRound { reading, shares })), parts);
        if self.is_refused(messages.iter().map(|(partition, _)| *partition)) {
            return;
        }
        for (share, (partition, commands)) in messages.into_iter().enumerate() {
            let request = self.request(share);
            self.send(partition, Message::ReadFirst { request, keyspace: self.session.keyspace, commands });
        }
    }

    fn restart(&mut self, reading: Reading) {
        let restarts = reading.restarts + 1;
        self.desk.trace(Trace::ReadRestarted { session: self.session.id });
        if restarts > limits::READ_RESTARTS_MAX {
            return self.fail(&Failure::Refused(TRY_AGAIN));
        }
        self.begin_first_round(Reading { restarts, begun_us: self.now.monotonic_us, ..reading });
    }

    /// What the shares of a read saw becomes part of the session's past.
    fn remember(&mut self, seen: Vec<Opaque>) {
        if !self.desk.config.rules.hold(Rule::RememberReads) {
            return;
        }
        let keyspace = self.session.keyspace;
        for seen in seen {
            if self.desk.protocol(keyspace).join(&mut self.session.context_mut().facts, &seen).is_err() {
                self.desk.trace(Trace::Refused {
                    what: "a share of a read saw facts that are not the protocol's",
                });
            }
        }
    }

    fn finish_reading(&mut self, reading: Reading, answers: Answers, seen: Vec<Opaque>) {
        self.remember(seen);
        self.finish(reading.plan, reading.then, answers);
    }
}

impl FirstRound {
    pub(super) fn unanswered(&self) -> Vec<PartitionId> {
        let parts = self.reading.plan.parts.iter().zip(&self.shares);
        parts.filter(|(_, share)| share.is_none()).map(|(part, _)| part.partition).collect()
    }

    pub(super) fn on_answer(mut self: Box<Self>, turn: &mut Turn<'_>, share: usize, message: Message) {
        let Message::ReadFirstDone { latest_valid, values, .. } = message else {
            return turn.unexpected(Exchange::FirstRound(self));
        };
        self.shares[share] = Some(FirstShare { latest_valid, values });
        if self.shares.iter().any(Option::is_none) {
            turn.session.exchange = Exchange::FirstRound(self);
            return;
        }
        self.judge(turn);
    }

    /// All have answered: do their values belong together?
    fn judge(self, turn: &mut Turn<'_>) {
        let shares: Vec<FirstShare> = self.shares.into_iter().flatten().collect();
        let again = read_again(turn, &self.reading.plan, &shares);
        let timeout_us = turn.desk.config.tuning.read_transaction_timeout_ms.saturating_mul(1_000);
        let is_late = turn.now.monotonic_us.saturating_sub(self.reading.begun_us) > timeout_us;
        let protocol = turn.desk.protocol(turn.session.keyspace);
        // What the values depend on may have been forgotten meanwhile, so they say nothing about each other.
        let says_nothing =
            protocol.needs().keeps_for_reads() && turn.desk.config.rules.hold(Rule::LateReadsBeginAgain);
        if is_late && (says_nothing || !again.is_empty()) {
            return turn.restart(self.reading);
        }
        if again.is_empty() {
            let (answers, seen) = accept(&self.reading.plan, shares, &again);
            return turn.finish_reading(self.reading, answers, seen);
        }
        SecondRound::begin(turn, self.reading, shares, again);
    }
}

/// What the protocol wants to be read again.
fn read_again(turn: &mut Turn<'_>, plan: &Plan, shares: &[FirstShare]) -> Vec<Again> {
    if !turn.desk.config.rules.hold(Rule::SecondRound) {
        // Broken on purpose: each share stands for itself, and a pending one is read at its own time.
        let pending = shares.iter().enumerate().filter(|(_, share)| share.values.is_none());
        let at_its_own =
            |(share, first): (usize, &FirstShare)| Again { share, at: first.latest_valid, with: Vec::new() };
        return pending.map(at_its_own).collect();
    }
    let nothing = Opaque::default();
    let judged: Vec<Share<'_>> = shares
        .iter()
        .zip(&plan.parts)
        .map(|(share, part)| Share {
            partition: part.partition,
            earliest: share.values.as_ref().map(|values| values.earliest_valid),
            latest: share.latest_valid,
            seen: share.values.as_ref().map_or(&nothing, |values| &values.seen),
        })
        .collect();
    match turn.desk.protocol(turn.session.keyspace).judge(&judged) {
        Judgement::Consistent => Vec::new(),
        Judgement::ReadAgain(again) => {
            again.iter().for_each(|again| turn.see(again.at));
            again
        }
    }
}

/// Takes over the values of all shares that are not read again.
fn accept(plan: &Plan, shares: Vec<FirstShare>, again: &[Again]) -> (Answers, Vec<Opaque>) {
    let mut answers = plan.answers();
    let mut seen = Vec::new();
    for (index, (share, part)) in shares.into_iter().zip(&plan.parts).enumerate() {
        if again.iter().any(|again| again.share == index) {
            continue;
        }
        if let Some(values) = share.values {
            answers.put_part(part, 0, values.replies);
            seen.push(values.seen);
        }
    }
    (answers, seen)
}

impl SecondRound {
    fn begin(turn: &mut Turn<'_>, reading: Reading, shares: Vec<FirstShare>, again: Vec<Again>) {
        turn.desk.trace(Trace::SecondRound { session: turn.session.id });
        let (answers, seen) = accept(&reading.plan, shares, &again);
        let asked: Vec<Option<usize>> = again.iter().map(|again| Some(again.share)).collect();
        let messages: Vec<_> = again
            .into_iter()
            .map(|Again { share, at, with }| {
                (reading.plan.parts[share].partition, reading.plan.commands_of(share), at, with)
            })
            .collect();
        let round = SecondRound { reading, answers, seen, asked };
        turn.begin_request(Exchange::SecondRound(Box::new(round)), messages.len());
        if turn.is_refused(messages.iter().map(|(partition, ..)| *partition)) {
            return;
        }
        for (share, (partition, commands, at, with)) in messages.into_iter().enumerate() {
            let (request, keyspace) = (turn.request(share), turn.session.keyspace);
            turn.send(partition, Message::ReadAt { request, keyspace, commands, at, with });
        }
    }

    pub(super) fn unanswered(&self) -> Vec<PartitionId> {
        self.asked.iter().flatten().map(|&part| self.reading.plan.parts[part].partition).collect()
    }

    pub(super) fn on_answer(mut self: Box<Self>, turn: &mut Turn<'_>, share: usize, message: Message) {
        let Message::ReadAtDone { values, .. } = message else {
            return turn.unexpected(Exchange::SecondRound(self));
        };
        let Some(values) = values else { return turn.restart(self.reading) };
        if let Some(part) = self.asked[share].take() {
            self.answers.put_part(&self.reading.plan.parts[part], 0, values.replies);
            self.seen.push(values.seen);
        }
        if self.asked.iter().any(Option::is_some) {
            turn.session.exchange = Exchange::SecondRound(self);
            return;
        }
        turn.finish_reading(self.reading, self.answers, self.seen);
    }
}

pub(super) const TRY_AGAIN: Reply =
    Reply::error("TRYAGAIN the values changed too often while they were being read together");
