//! Transactions whose parts, votes and decisions let something become visible.

use super::Visibility;
use crate::partition::cx::coordinator_of;
use crate::partition::journal::Needed;
pub(in crate::partition) use crate::partition::transactions::coordinator::{
    Announced, Arriving, Voting, VotingKind,
};
use crate::partition::transactions::{Committing, Coordinated};
use crate::trace::{Trace, TransactionStep};
use ensue_store::record::Record;
use ensue_types::{KeyspaceId, LogicalTime, OperationId, Part, Rule};
use ensue_wire::{Address, Decision, Message};

impl Visibility<'_> {
    /// A participant has prepared. One that votes on a decided transaction has been away: it is told again.
    pub(crate) fn on_vote(&mut self, from: Address, voted_at: LogicalTime, transaction: OperationId) {
        let Address::Partition { partition, .. } = from else { return };
        match self.transactions.coordinated.get_mut(&transaction) {
            Some(Coordinated::Voting(voting)) => {
                if !voting.participants.contains(&partition) {
                    return self
                        .cx
                        .trace(Trace::Refused { what: "a vote of a partition that takes no part" });
                }
                voting.votes.insert(partition, voted_at);
                let enough =
                    voting.votes.len() == voting.participants.len() || !Rule::DecideAfterEveryVote.holds();
                if enough {
                    self.decide(transaction);
                }
            }
            Some(Coordinated::Committing(committing)) => {
                // It has its part. Even one that has executed it is told: asked twice, it may have placed it once more.
                committing.again.remove(&partition);
                if committing.announced {
                    let decision = committing.decision;
                    self.cx.send_local(partition, Message::Commit { transaction, decision });
                }
            }
            // A local transaction that was never decided: this log lost its beginning.
            None if transaction.datacenter == self.cx.datacenter => {
                self.cx.send(from, Message::Abandon { transaction });
            }
            Some(Coordinated::Arriving(_)) | None => {
                self.transactions.return_vote(self.cx, self.others, partition, transaction)
            }
        }
    }

    /// Every participant has voted: the transaction commits now.
    pub(crate) fn decide(&mut self, transaction: OperationId) {
        let Some(Coordinated::Voting(voting)) = self.transactions.coordinated.remove(&transaction) else {
            return;
        };
        // Above every vote, and above every time at which a reader was told "not committed": the clock has seen both.
        let mut at = self.cx.tick();
        let Voting { keyspace, participants, kind, votes } = voting;
        if !Rule::KeepTheDenial.holds() {
            at = votes.values().max().map_or(at, |vote| vote.next());
        }
        if !Rule::CommitAboveEveryVote.holds() {
            at = votes.values().min().map_or(at, |vote| vote.next());
        }
        let committing = match kind {
            VotingKind::Local { parts, context, session } => {
                let committing = self.transactions.decide_local(
                    self.cx,
                    self.others,
                    transaction,
                    at,
                    (keyspace, participants),
                    context,
                );
                Committing { parts, session, ..committing }
            }
            VotingKind::Replicated { stamp } => {
                self.cx.journal.log(&Record::Decided { transaction, at, entry: None });
                let announced = Needed::Received(transaction.datacenter, transaction.position);
                self.cx.journal.needed_as(announced, Needed::Begun(transaction));
                let decision = Decision { at, operation: transaction, stamp };
                Committing::new(decision, keyspace, participants, Vec::new())
            }
        };
        let local = transaction.datacenter == self.cx.datacenter;
        let place = local.then_some(committing.decision.operation.position);
        self.transactions.coordinated.insert(transaction, Coordinated::Committing(committing));
        self.cx.trace_step(transaction, TransactionStep::Decided);
        if self.transactions.note_decision(self.cx, transaction, place) {
            self.announce(transaction);
        }
    }

    /// The `Transaction` entry has arrived and its dependencies are met.
    pub(crate) fn on_announced(&mut self, transaction: OperationId, announced: Announced) {
        let fresh = || Coordinated::Arriving(Arriving::default());
        if let Coordinated::Arriving(arriving) =
            self.transactions.coordinated.entry(transaction).or_insert_with(fresh)
        {
            arriving.announced = Some(announced);
        }
        if !self.discard_when_announced(transaction) {
            self.transactions.prepare_when_complete(self.cx, transaction);
            self.transactions.await_parts(self.cx, self.others, transaction, &|_| true);
        }
    }

    /// The coordinator asks for a vote.
    pub(crate) fn on_prepare(&mut self, transaction: OperationId, keyspace: KeyspaceId, part: Option<Part>) {
        self.prepare(transaction, keyspace, part, None);
    }

    /// A part, or one that was lost and whose decision is known: it stands at the time of that, also after a restart.
    pub(crate) fn prepare(
        &mut self,
        transaction: OperationId,
        keyspace: KeyspaceId,
        part: Option<Part>,
        decided: Option<LogicalTime>,
    ) {
        if self.cx.is_replicated(transaction).is_some() {
            return self.prepare_replicated(transaction);
        }
        if self.transactions.durable.has_executed_named(transaction) {
            // Given back though it was not lost. The decision follows, and is answered.
            return;
        }
        let prepared = self.transactions.local_parts.contains_key(&transaction);
        if prepared && Rule::PrepareOnce.holds() {
            return self.cx.vote_again(transaction);
        }
        let Some(part) = part else { return };
        let at = decided.unwrap_or_else(|| self.cx.tick());
        let record = Record::Prepared { transaction, keyspace, at, part: part.clone() };
        self.cx.journal.log(&record);
        self.transactions.await_decision(self.cx, self.keyspaces, transaction, keyspace, part, at);
        self.cx.trace_step(transaction, TransactionStep::Voted);
        self.cx.send_local(coordinator_of(transaction), Message::Vote { transaction });
    }

    fn prepare_replicated(&mut self, transaction: OperationId) {
        let Some(part) = self.transactions.replicated_parts.get(&transaction) else {
            // Applied before, and the coordinator has not heard of it. Or it is yet to come again, and then it
            // notifies.
            if self.transactions.durable.has_executed(transaction) {
                self.cx.notify_again(transaction);
            }
            return;
        };
        let mut early = None;
        if part.work.is_none() {
            let (origin, position, keyspace) = (part.origin, part.position, part.keyspace);
            let at = self.cx.tick();
            let empty = Part { partition: self.cx.id, commands: Vec::new() };
            self.cx.journal.log(&Record::Prepared { transaction, keyspace, at, part: empty });
            if Rule::PartsWaitForTheDecision.holds() {
                self.transactions.await_replicated_decision(
                    self.others,
                    self.keyspaces,
                    transaction,
                    origin,
                    position,
                    at,
                );
            } else {
                early = Some((origin, position, at));
            }
            self.cx.trace_step(transaction, TransactionStep::Voted);
        }
        self.cx.send_local(coordinator_of(transaction), Message::Vote { transaction });
        if let Some((origin, position, at)) = early {
            self.apply_entry(origin, position, at);
        }
    }

    /// Tells everybody concerned of a decision that is durable now.
    pub(in crate::partition) fn announce(&mut self, transaction: OperationId) {
        let Some(Coordinated::Committing(committing)) = self.transactions.coordinated.get_mut(&transaction)
        else {
            return;
        };
        let Committing { decision, checks, announced, .. } = committing;
        let decision = *decision;
        *announced = true;
        for (from, check) in std::mem::take(checks) {
            self.cx.send(from, Message::CommitChecked { check, transaction, decision: Some(decision) });
        }
        self.transactions.query_participants(self.cx, transaction, &|_| true);
        let replicated = transaction.datacenter != self.cx.datacenter;
        if replicated
            && !self.others.replication.applied.contains(transaction.datacenter, transaction.position)
        {
            // From here on a reader is led to the transaction by its participants, so dependents may be shown.
            let (incarnation, position) = (transaction.incarnation, transaction.position);
            self.mark_applied(transaction.datacenter, incarnation, position, decision.at);
        }
    }
}
