//! Transactions of sessions: what their decisions let go on.

use super::Executor;
use crate::partition::journal::Needed;
use crate::partition::transactions::Coordinated;
pub(in crate::partition) use crate::partition::transactions::coordinator::{Voting, VotingKind};
use crate::trace::{Trace, TransactionStep};
use ensue_store::record::Record;
use ensue_types::{Context, KeyspaceId, LogicalTime, OperationId, Part, Position, RequestId, Rule};
use ensue_wire::{Address, Decision, Message};
use std::collections::BTreeMap;

impl Executor<'_> {
    /// A session's write transaction begins.
    pub(crate) fn on_transact(
        &mut self,
        from: Address,
        request: RequestId,
        keyspace: KeyspaceId,
        context: Context,
        mut parts: Vec<Part>,
    ) {
        self.cx.advance_clock(context.time);
        if parts.len() == 1 && parts[0].partition == self.cx.id {
            let part = parts.remove(0);
            let (places, commands): (Vec<u32>, Vec<_>) = part.commands.into_iter().unzip();
            let commands = commands.into();
            let atomic = Some(places);
            let replies = Vec::new();
            let execution = crate::partition::execution::execute::Execution {
                from,
                request,
                keyspace,
                context,
                commands,
                replies,
                atomic,
                together: true,
                timed_out: false,
                since_us: self.cx.now.monotonic_us,
                used: Default::default(),
                served: None,
            };
            return self.execute_atomically(execution);
        }
        if let Some(reply) = self.keyspaces.write_refusal(self.cx, self.others, true) {
            return self.cx.send(from, Message::Refused { request, reply });
        }
        self.transactions.begun += 1;
        let number = self.transactions.begun;
        let transaction = self.cx.local_transaction(number);
        let record =
            Record::Begun { number, keyspace, context: context.causes.clone(), parts: parts.clone() };
        if Rule::LogBeforeAsking.holds() {
            self.cx.journal.log(&record);
        }
        self.cx.journal.note_needed(Needed::Begun(transaction));
        let participants = parts.iter().map(|part| part.partition).collect();
        let kind = VotingKind::Local { parts, context, session: Some((from, request)) };
        let voting = Voting { keyspace, participants, votes: BTreeMap::new(), kind };
        self.transactions.coordinated.insert(transaction, Coordinated::Voting(voting));
        self.cx.trace_step(transaction, TransactionStep::Begun);
        self.transactions.query_participants(self.cx, transaction, &|_| true);
    }

    /// The coordinator, which was away, counted no vote until `said_at`: nothing is decided.
    pub(crate) fn on_forget_vote(&mut self, transaction: OperationId, said_at: LogicalTime) {
        let Some(part) = self.transactions.replicated_parts.get_mut(&transaction) else { return };
        let voted_before = part.voted_at.is_some_and(|voted_at| voted_at <= said_at);
        let Some(work) = part.work.take_if(|_| voted_before && part.decision.is_none()) else { return };
        part.voted_at = None;
        self.keyspaces.order.remove(work);
        self.cx.journal.no_longer_needed(Needed::Prepared(transaction));
        self.cx.trace(Trace::VoteGivenBack { partition: self.cx.id, transaction });
        self.transactions.notify_again(self.cx, self.others, transaction);
        self.reads.snapshots.answer_reads(transaction);
        self.settle();
        self.read_what_is_answered();
    }

    /// The coordinator has decided, or told a reader so.
    pub(crate) fn on_commit(&mut self, transaction: OperationId, decision: Decision) {
        self.transactions.place_decided(self.cx, self.others, self.keyspaces, transaction, decision);
        self.reads.snapshots.answer_reads(transaction);
        self.settle();
        self.read_what_is_answered();
    }

    /// The log is synced up to here.
    pub(crate) fn on_decisions_synced(&mut self, synced: u64) {
        let durable =
            |first: Option<&(u64, OperationId, Option<Position>)>| first.is_some_and(|one| one.0 <= synced);
        let mut told = false;
        while durable(self.transactions.durable.decisions.front()) {
            let Some((_, transaction, _)) = self.transactions.durable.decisions.pop_front() else { break };
            self.visibility().announce(transaction);
            told = true;
        }
        if told {
            self.visibility().replicate();
            self.settle();
            self.read_what_is_answered();
        }
        while self.transactions.durable.repeats.front().is_some_and(|one| one.0 <= synced) {
            let Some((_, to, number)) = self.transactions.durable.repeats.pop_front() else { break };
            self.cx.send(to, Message::Repeated { number });
        }
        self.transactions.report_synced_parts(self.cx, synced);
        self.transactions.forget_completed(self.cx, synced);
    }

    /// The coordinator will never decide this: the part is given up.
    pub(crate) fn on_abandon(&mut self, transaction: OperationId) {
        if transaction.datacenter == self.cx.datacenter {
            if self.transactions.local_parts.get(&transaction).is_some_and(|part| part.decision.is_none()) {
                self.transactions.drop_local_part(self.cx, self.keyspaces, transaction);
                self.cx.trace(Trace::PartAbandoned { partition: self.cx.id, transaction });
            }
        } else if let Some(part) = self.transactions.replicated_parts.remove(&transaction) {
            let at = self.cx.tick();
            if let Some(work) = part.work {
                self.keyspaces.order.remove(work);
            }
            self.cx.journal.no_longer_needed(Needed::Prepared(transaction));
            self.cx.trace(Trace::PartAbandoned { partition: self.cx.id, transaction });
            self.visibility().mark_applied(part.origin, part.position.incarnation(), part.position, at);
        }
        self.reads.snapshots.answer_reads(transaction);
        self.settle();
        self.read_what_is_answered();
    }

    /// The coordinator says that a transaction of a dead datacenter is never shown. Whoever hears of a dead one
    /// declares it, too.
    pub(in crate::partition) fn on_discard(&mut self, transaction: OperationId) {
        self.keyspaces.declare_dead(self.cx, self.others, transaction.datacenter);
        let Some(part) = self.transactions.replicated_parts.remove(&transaction) else { return };
        if let Some(work) = part.work {
            self.keyspaces.order.remove(work);
        }
        self.cx.journal.no_longer_needed(Needed::Prepared(transaction));
        self.cx.trace(Trace::PartAbandoned { partition: self.cx.id, transaction });
        self.visibility().discard_entry(part.origin, part.position);
        self.reads.snapshots.answer_reads(transaction);
        self.settle();
        self.read_what_is_answered();
    }
}
