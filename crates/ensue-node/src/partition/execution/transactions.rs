//! Transactions of sessions: what their decisions let go on.

use super::Executor;
use super::execute::may_grow;
use crate::trace::Trace;
use ensue_types::{Context, KeyspaceId, LogicalTime, OperationId, Part, RequestId, Stamp};
use ensue_wire::{Address, Decision, Message};

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
        let all = parts.iter().flat_map(|part| &part.commands).map(|(_, args)| args);
        if let Some(reply) = self.cx.home_refusal(keyspace, all) {
            return self.cx.send(from, Message::Refused { request, reply });
        }
        let grows = parts.iter().flat_map(|part| &part.commands).any(|(_, args)| may_grow(args));
        if grows {
            self.keyspaces.make_room(self.cx, self.others);
        }
        if let Some(reply) = self.keyspaces.write_refusal(self.cx, self.others, grows) {
            return self.cx.send(from, Message::Refused { request, reply });
        }
        self.transactions.begin(self.cx, keyspace, context, parts, (from, request));
    }

    /// The coordinator, which was away, counted no vote until `said_at`: nothing is decided.
    pub(crate) fn on_forget_vote(&mut self, transaction: OperationId, said_at: LogicalTime) {
        if !self.transactions.take_back_vote(self.cx, self.keyspaces, transaction, said_at) {
            return;
        }
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

    /// The coordinator's copy has the transaction. What came here beside this partition's copy is committed now; in
    /// any other directory the part is none of that transaction.
    pub(crate) fn on_transaction_over(&mut self, transaction: OperationId) {
        if !self.others.is_filled() || !self.transactions.awaits_decision(self.others, transaction) {
            return;
        }
        let at = self.cx.tick();
        let stamp = Stamp { time: at, datacenter: transaction.datacenter, partition: transaction.partition };
        self.on_commit(transaction, Decision { at, operation: transaction, stamp });
    }

    /// The log is synced up to here.
    pub(crate) fn on_decisions_synced(&mut self, synced: u64) {
        let mut told = false;
        while let Some(transaction) = self.transactions.next_synced_decision(synced) {
            self.visibility().announce(transaction);
            told = true;
        }
        if told {
            self.visibility().replicate();
            self.settle();
            self.read_what_is_answered();
        }
        while let Some((to, number)) = self.transactions.next_synced_repeat(synced) {
            self.cx.send(to, Message::Repeated { number });
        }
        self.transactions.report_synced_parts(self.cx, synced);
        self.transactions.forget_completed(self.cx, synced);
    }

    /// The coordinator will never decide this: the part is given up.
    pub(crate) fn on_abandon(&mut self, transaction: OperationId) {
        if transaction.datacenter == self.cx.datacenter {
            if self.transactions.is_undecided_local(transaction) {
                self.transactions.drop_local_part(self.cx, self.keyspaces, transaction);
                self.cx.trace(Trace::PartAbandoned { partition: self.cx.id, transaction });
            }
        } else if let Some((origin, position)) =
            self.transactions.drop_arrived(self.cx, self.keyspaces, transaction)
        {
            let at = self.cx.tick();
            self.cx.trace(Trace::PartAbandoned { partition: self.cx.id, transaction });
            self.visibility().mark_applied(origin, position.incarnation(), position, at);
        }
        self.reads.snapshots.answer_reads(transaction);
        self.settle();
        self.read_what_is_answered();
    }

    /// The coordinator says that a transaction of a dead datacenter is never shown. Whoever hears of a dead one
    /// declares it, too.
    pub(in crate::partition) fn on_discard(&mut self, transaction: OperationId) {
        self.keyspaces.declare_dead(self.cx, self.others, transaction.datacenter, LogicalTime::ZERO);
        let Some((origin, position)) = self.transactions.drop_arrived(self.cx, self.keyspaces, transaction)
        else {
            return;
        };
        self.cx.trace(Trace::PartAbandoned { partition: self.cx.id, transaction });
        self.visibility().discard_entry(origin, position);
        self.reads.snapshots.answer_reads(transaction);
        self.settle();
        self.read_what_is_answered();
    }
}
