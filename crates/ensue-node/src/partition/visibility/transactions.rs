//! Transactions whose parts, votes and decisions let something become visible.

use super::Visibility;
use crate::partition::cx::coordinator_of;
use crate::partition::transactions::Announced;
use crate::partition::transactions::votes::Vote;
use crate::trace::{Trace, TransactionStep};
use ensue_store::record::Record;
use ensue_types::{KeyspaceId, LogicalTime, OperationId, Part, Rule};
use ensue_wire::{Address, Message};

impl Visibility<'_> {
    /// A participant has prepared. One that votes on a decided transaction has been away: it is told again.
    pub(crate) fn on_vote(&mut self, from: Address, voted_at: LogicalTime, transaction: OperationId) {
        let Address::Partition { partition, .. } = from else { return };
        match self.transactions.take_vote(partition, voted_at, transaction) {
            Vote::OfStranger => {
                self.cx.trace(Trace::Refused { what: "a vote of a partition that takes no part" })
            }
            Vote::Counted => {}
            Vote::Last => self.decide(transaction),
            Vote::Decided(None) => {}
            Vote::Decided(Some(decision)) => {
                self.cx.send_local(partition, Message::Commit { transaction, decision });
            }
            // A local transaction that was never decided: this log lost its beginning.
            Vote::Unknown if transaction.datacenter == self.cx.datacenter => {
                self.cx.send(from, Message::Abandon { transaction });
            }
            Vote::TooEarly | Vote::Unknown => {
                self.transactions.return_vote(self.cx, self.others, partition, transaction)
            }
        }
    }

    fn decide(&mut self, transaction: OperationId) {
        if self.transactions.decide(self.cx, self.others, transaction) {
            self.announce(transaction);
        }
    }

    /// The `Transaction` entry has arrived and its dependencies are met.
    pub(crate) fn on_announced(&mut self, transaction: OperationId, announced: Announced) {
        self.transactions.note_announced(transaction, announced);
        if !self.discard_when_announced(transaction) {
            self.transactions.prepare_when_complete(self.cx, transaction);
            self.transactions.await_parts(self.cx, self.others, transaction, &|_| true);
        }
    }

    /// A participant has its part already. If all have, the transaction is decided without them.
    pub(crate) fn on_part_held(&mut self, from: Address, transaction: OperationId) {
        if self.transactions.on_part_held(self.cx, from, transaction) {
            self.decide(transaction);
        }
    }

    /// The coordinator, whose directory is filled, asks where the part is.
    pub(crate) fn on_find_part(&mut self, transaction: OperationId, time: LogicalTime) {
        self.transactions.on_find_part(self.cx, self.others, transaction, time);
    }

    /// The coordinator asks for a part that does not come.
    pub(crate) fn on_await_part(&mut self, transaction: OperationId) {
        self.transactions.on_await_part(self.cx, self.others, self.keyspaces, transaction);
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
        if self.transactions.has_executed_named(transaction) {
            // Given back though it was not lost. The decision follows, and is answered.
            return;
        }
        let prepared = self.transactions.has_local_part(transaction);
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
        let Some(((origin, position), keyspace)) = self.transactions.arrived_part(transaction) else {
            // Applied before, and the coordinator has not heard of it. Or it is yet to come again, and then it
            // notifies.
            if self.transactions.has_executed(transaction) {
                self.cx.notify_again(transaction);
            }
            return;
        };
        let mut early = None;
        if !self.transactions.has_place(transaction) {
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
        let Some((decision, checks)) = self.transactions.mark_announced(transaction) else { return };
        for (from, check) in checks {
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
        // At once, if nobody had to vote.
        self.transactions.complete_if_done(self.cx, transaction);
    }
}
