//! Votes at the coordinator, from the first question to the decision, and those that say that it cannot be taken.
//!
//! Each step answers what it found; what becomes visible by that is `visibility`'s.

use super::Transactions;
use super::coordinator::{Announced, Arriving, Committing, Coordinated, Voting, VotingKind};
use crate::partition::cx::Cx;
use crate::partition::journal::Needed;
use crate::partition::others::Others;
use crate::trace::TransactionStep;
use ensue_store::entry::Change;
use ensue_store::record::Record;
use ensue_types::{
    Causes, Context, KeyspaceId, LogicalTime, OperationId, Part, PartitionId, Position, RequestId, Rule,
};
use ensue_wire::{Address, Decision};
use std::collections::BTreeMap;

/// What a vote met.
#[derive(Clone, Copy, Debug)]
pub(in crate::partition) enum Vote {
    /// It is of a partition that takes no part.
    OfStranger,
    Counted,
    /// It was the last one.
    Last,
    /// The transaction is decided; so, if that may be told.
    Decided(Option<Decision>),
    /// Nobody has been asked to vote on it yet.
    TooEarly,
    /// It is not known here.
    Unknown,
}

impl Transactions {
    /// A session's write transaction begins: it is logged, and every participant is asked to prepare.
    pub(crate) fn begin(
        &mut self,
        cx: &mut Cx,
        keyspace: KeyspaceId,
        context: Context,
        parts: Vec<Part>,
        session: (Address, RequestId),
    ) {
        self.begun += 1;
        let number = self.begun;
        let transaction = cx.local_transaction(number);
        let record =
            Record::Begun { number, keyspace, context: context.causes.clone(), parts: parts.clone() };
        if Rule::LogBeforeAsking.holds() {
            cx.journal.log(&record);
        }
        cx.journal.note_needed(Needed::Begun(transaction));
        let participants = parts.iter().map(|part| part.partition).collect();
        let kind = VotingKind::Local { parts, context, session: Some(session) };
        let voting = Voting { keyspace, participants, votes: BTreeMap::new(), kind };
        self.coordinated.insert(transaction, Coordinated::Voting(voting));
        cx.trace_step(transaction, TransactionStep::Begun);
        self.query_participants(cx, transaction, &|_| true);
    }

    /// A participant has prepared.
    pub(in crate::partition) fn take_vote(
        &mut self,
        partition: PartitionId,
        voted_at: LogicalTime,
        transaction: OperationId,
    ) -> Vote {
        match self.coordinated.get_mut(&transaction) {
            Some(Coordinated::Voting(voting)) => {
                if !voting.participants.contains(&partition) {
                    return Vote::OfStranger;
                }
                voting.votes.insert(partition, voted_at);
                let enough =
                    voting.votes.len() == voting.participants.len() || !Rule::DecideAfterEveryVote.holds();
                if enough { Vote::Last } else { Vote::Counted }
            }
            Some(Coordinated::Committing(committing)) => {
                // It has its part. Even one that has executed it is told: asked twice, it may have placed it once more.
                committing.again.remove(&partition);
                Vote::Decided(committing.announced.then_some(committing.decision))
            }
            Some(Coordinated::Arriving(_)) => Vote::TooEarly,
            None => Vote::Unknown,
        }
    }

    /// Every participant has voted: the transaction commits now. Whether that may be told at once.
    pub(crate) fn decide(&mut self, cx: &mut Cx, others: &mut Others, transaction: OperationId) -> bool {
        let Some(Coordinated::Voting(voting)) = self.coordinated.remove(&transaction) else {
            return false;
        };
        // Above every vote, and above every time at which a reader was told "not committed": the clock has seen both.
        let mut at = cx.tick();
        let Voting { keyspace, participants, kind, votes } = voting;
        if !Rule::KeepTheDenial.holds() {
            at = votes.values().max().map_or(at, |vote| vote.next());
        }
        if !Rule::CommitAboveEveryVote.holds() {
            at = votes.values().min().map_or(at, |vote| vote.next());
        }
        if Rule::all_hold() {
            // Otherwise a reader at a time before it, who was told that it had not committed, would be shown it later.
            let late = votes.iter().find(|(_, voted_at)| **voted_at >= at);
            assert!(late.is_none(), "{transaction} commits at {at}, and {late:?} has voted no earlier");
        }
        let committing = match kind {
            VotingKind::Local { parts, context, session } => {
                let committing =
                    self.decide_local(cx, others, transaction, at, (keyspace, participants), context);
                Committing { parts, session, ..committing }
            }
            VotingKind::Replicated { stamp } => {
                cx.journal.log(&Record::Decided { transaction, at, entry: None });
                let announced = Needed::Received(transaction.datacenter, transaction.position);
                cx.journal.needed_as(announced, Needed::Begun(transaction));
                let decision = Decision { at, operation: transaction, stamp };
                Committing::new(decision, keyspace, participants, Vec::new())
            }
        };
        let committing = Committing { is_fresh: true, ..committing };
        let local = transaction.datacenter == cx.datacenter;
        let place: Option<Position> = local.then_some(committing.decision.operation.position);
        self.coordinated.insert(transaction, Coordinated::Committing(committing));
        cx.trace_step(transaction, TransactionStep::Decided);
        self.note_decision(cx, transaction, place)
    }

    fn decide_local(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        transaction: OperationId,
        at: LogicalTime,
        (keyspace, participants): (KeyspaceId, Vec<PartitionId>),
        mut context: Context,
    ) -> Committing {
        let stamp = cx.stamp(at);
        let operation = cx.next_operation();
        let mut dependencies = others.dependencies(cx, keyspace, &mut context.causes, &[]);
        if !Rule::TransactionsCarryThePast.holds() {
            dependencies = Causes::Nothing;
        }
        let begun_as = Some(transaction);
        let change = Change::Transaction { keyspace, begun_as, participants: participants.clone() };
        let entry = others.replication.next_entry(cx, stamp, dependencies, change, Vec::new());
        cx.journal.log_decided(transaction, at, cx.position, &entry);
        others.replication.own_entry_applied(cx);
        context.time = context.time.max(at);
        others.replication.record_write(cx, keyspace, &mut context, operation, stamp);
        let decision = Decision { at, operation, stamp };
        self.names.insert(operation, transaction);
        Committing { context, ..Committing::new(decision, keyspace, participants, Vec::new()) }
    }

    /// The `Transaction` entry has arrived and its dependencies are met.
    pub(crate) fn note_announced(&mut self, transaction: OperationId, announced: Announced) {
        if let Some(arriving) = self.arriving(transaction) {
            arriving.announced = Some(announced);
        }
    }

    /// A part of it is never shown, as this participant says. It is told, too, if the transaction's own entry turns out
    /// to be nowhere. Whether that changes anything: the transaction is not voted on yet.
    pub(crate) fn note_part_unrecoverable(
        &mut self,
        transaction: OperationId,
        participant: PartitionId,
    ) -> bool {
        let Some(arriving) = self.arriving(transaction) else { return false };
        arriving.unrecoverable = true;
        arriving.notified.insert(participant);
        true
    }

    fn arriving(&mut self, transaction: OperationId) -> Option<&mut Arriving> {
        let fresh = || Coordinated::Arriving(Arriving::default());
        match self.coordinated.entry(transaction).or_insert_with(fresh) {
            Coordinated::Arriving(arriving) => Some(arriving),
            Coordinated::Voting(_) | Coordinated::Committing(_) => None,
        }
    }

    /// The participants of a transaction whose own entry waits for nothing more, and of which a part is known to be
    /// unrecoverable.
    pub(crate) fn unrecoverable_participants(&self, transaction: OperationId) -> Option<Vec<PartitionId>> {
        let Some(Coordinated::Arriving(arriving)) = self.coordinated.get(&transaction) else { return None };
        let announced = arriving.announced.as_ref().filter(|_| arriving.unrecoverable)?;
        Some(announced.participants.clone())
    }

    /// It is discarded.
    pub(crate) fn forget_coordinated(&mut self, transaction: OperationId) {
        self.coordinated.remove(&transaction);
    }

    /// The decision is durable, and may be told from here on: what it is, and which readers have asked for it.
    pub(crate) fn mark_announced(
        &mut self,
        transaction: OperationId,
    ) -> Option<(Decision, Vec<(Address, u64)>)> {
        let Some(Coordinated::Committing(committing)) = self.coordinated.get_mut(&transaction) else {
            return None;
        };
        committing.announced = true;
        Some((committing.decision, std::mem::take(&mut committing.checks)))
    }

    /// Goes on with all that the log has left open.
    pub(crate) fn resume_coordinated(&mut self, cx: &mut Cx) {
        let open: Vec<OperationId> = self.coordinated.keys().copied().collect();
        for transaction in open {
            self.repeat_decision(transaction, &|_| true);
            self.query_participants(cx, transaction, &|_| true);
        }
    }

    /// A participant has lost the end of its log: it is asked again for its votes, and given its parts again.
    pub(crate) fn repeat_to(&mut self, cx: &mut Cx, partition: PartitionId) {
        let give = Rule::GiveThePartBack.holds();
        let mut again = Vec::new();
        for (transaction, coordinated) in &mut self.coordinated {
            match coordinated {
                // Who takes no part has no vote, and is asked for none and told nothing.
                Coordinated::Voting(voting) => drop(voting.votes.remove(&partition)),
                Coordinated::Committing(committing) => committing.again.extend(give.then_some(partition)),
                Coordinated::Arriving(_) => continue,
            }
            again.push(*transaction);
        }
        for transaction in again {
            self.query_participants(cx, transaction, &|p| p == partition);
        }
    }
}
