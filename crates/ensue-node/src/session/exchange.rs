//! What a session waits for: at most one exchange at a time, one struct for each of its states.
//!
//! - On an answer of the present exchange: the state is consumed by the step, which leaves the next state behind.
//! - On an answer of an earlier exchange, known by its sequence: nothing; its commands were answered with an error.
//! - On a timeout, a refusal or a broken link: the commands of the exchange get their error, what waits for it elsewhere is
//!   withdrawn, and the next ones begin.

use super::batch::Batch;
use super::cut::CutReading;
use super::failure::{Failure, Reason};
use super::merge::TokenMerge;
use super::parallel::Parallel;
use super::read::{FirstRound, SecondRound};
use super::replicas::ReplicaWait;
use super::shared::{Fetch, Share};
use super::survey::Survey;
use super::turn::Turn;
use super::write::WriteTransaction;
use crate::Trace;
use ensue_types::{CoreId, LogicalTime, PartitionId};
use ensue_wire::Message;

/// The state of what is outstanding.
#[derive(Clone, Debug, Default)]
pub(super) enum Exchange {
    #[default]
    None,
    Batch(Batch),
    FirstRound(Box<FirstRound>),
    SecondRound(Box<SecondRound>),
    Cut(Box<CutReading>),
    Transaction(Box<WriteTransaction>),
    Parallel(Box<Parallel>),
    Fetch(Fetch),
    Share(Share),
    Merge(Box<TokenMerge>),
    Replicas(Box<ReplicaWait>),
    Survey(Box<Survey>),
}

impl Exchange {
    /// Partitions whose answer is still missing.
    fn unanswered(&self) -> Vec<PartitionId> {
        match self {
            Exchange::None | Exchange::Survey(_) => Vec::new(),
            Exchange::Batch(batch) => vec![batch.partition],
            Exchange::FirstRound(round) => round.unanswered(),
            Exchange::SecondRound(round) => round.unanswered(),
            Exchange::Cut(cut) => vec![cut.first],
            Exchange::Transaction(transaction) => vec![transaction.coordinator],
            Exchange::Parallel(parallel) => parallel.unanswered(),
            Exchange::Fetch(fetch) => vec![fetch.partition],
            Exchange::Share(share) => vec![share.partition],
            Exchange::Merge(merge) => merge.unanswered(),
            Exchange::Replicas(wait) => wait.unanswered(),
        }
    }
}

impl Exchange {
    /// Partitions without which it comes to no end: those whose answers are missing, and those that they must ask. A
    /// write
    /// transaction that was begun is given its time: its coordinator goes on when a participant is back.
    fn needed(&self) -> Vec<PartitionId> {
        match self {
            Exchange::Cut(cut) => cut.needed.clone(),
            _ => self.unanswered(),
        }
    }
}

impl Turn<'_> {
    /// An answer that names this session.
    pub(super) fn on_answer(&mut self, sequence: u64, time: LogicalTime, message: Message) {
        let present = self.session.first_sequence..self.session.next_sequence;
        if self.session.is_idle() || !present.contains(&sequence) {
            return;
        }
        let share = (sequence - present.start) as usize;
        self.see(time);
        if let Message::Refused { reply, .. } = message {
            match std::mem::take(&mut self.session.exchange) {
                Exchange::Survey(survey) => survey.on_silence(self, share),
                exchange => {
                    self.session.exchange = exchange;
                    self.fail(&Failure::Refused(reply));
                }
            }
        } else {
            self.step_exchange(share, time, message);
        }
        self.advance();
    }

    fn step_exchange(&mut self, share: usize, time: LogicalTime, message: Message) {
        match std::mem::take(&mut self.session.exchange) {
            Exchange::Batch(batch) => batch.on_answer(self, message),
            Exchange::FirstRound(round) => round.on_answer(self, share, message),
            Exchange::SecondRound(round) => round.on_answer(self, share, message),
            Exchange::Cut(cut) => cut.on_answer(self, message),
            Exchange::Transaction(transaction) => transaction.on_answer(self, message),
            Exchange::Parallel(parallel) => parallel.on_answer(self, share, time, message),
            Exchange::Fetch(fetch) => fetch.on_answer(self, message),
            Exchange::Share(shared) => shared.on_answer(self, message),
            Exchange::Replicas(wait) => wait.on_answer(self, share, message),
            Exchange::Survey(survey) => survey.on_answer(self, share, message),
            Exchange::Merge(merge) => merge.on_answer(self, share, message),
            Exchange::None => self.unexpected(Exchange::None),
        }
    }

    /// An answer of another kind than was asked for: dropped, and told.
    pub(super) fn unexpected(&mut self, exchange: Exchange) {
        self.session.exchange = exchange;
        self.desk.trace(Trace::Refused { what: "an answer of another kind than was asked for" });
    }

    /// The time of the present exchange is over.
    pub(super) fn expire(&mut self) {
        match std::mem::take(&mut self.session.exchange) {
            Exchange::Merge(merge) if merge.is_waiting() => merge.on_timeout(self),
            Exchange::Replicas(wait) if wait.is_waiting() => wait.on_timeout(self),
            Exchange::Survey(survey) => survey.on_timeout(self),
            exchange => {
                let silent = exchange.unanswered().first().copied();
                self.session.exchange = exchange;
                self.fail_silent(silent.unwrap_or_default(), Reason::Timeout);
            }
        }
    }

    /// A core of this datacenter became unreachable.
    pub(super) fn on_link_down(&mut self, core: CoreId) {
        if let Exchange::Survey(_) = self.session.exchange {
            if let Exchange::Survey(survey) = std::mem::take(&mut self.session.exchange) {
                survey.on_link_down(self, core);
            }
            return self.advance();
        }
        let topology = &self.desk.config.topology;
        let lost = |partition: &PartitionId| topology.owner(topology.datacenter, *partition) == core;
        if let Some(partition) = self.session.exchange.needed().into_iter().find(lost) {
            self.fail_silent(partition, Reason::LinkDown);
            self.advance();
        }
    }

    /// The present exchange is over before all have answered: nobody shall wait for its sake.
    pub(super) fn withdraw(&mut self) {
        match std::mem::take(&mut self.session.exchange) {
            Exchange::Merge(merge) => drop(merge.end(self)),
            Exchange::Replicas(wait) => wait.withdraw(self),
            exchange => self.session.exchange = exchange,
        }
    }

    pub(super) fn fail_silent(&mut self, partition: PartitionId, reason: Reason) {
        let datacenter = self.desk.config.topology.datacenter;
        self.fail(&Failure::NoAnswer { datacenter, partition, reason });
    }
}
