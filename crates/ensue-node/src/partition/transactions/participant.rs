//! The participant: it prepares, remembers its vote, and executes its part at the time that the coordinator decides.

use super::Transactions;
use crate::evaluate::Changes;
use crate::partition::cx::{Cx, coordinator_of};
use crate::partition::execution::Executor;
use crate::partition::journal::Needed;
use crate::partition::keyspaces::order::{Moment, WorkId};
use crate::partition::keyspaces::{Keyspaces, Work};
use crate::partition::others::Others;
use crate::partition::visibility::Visibility;
use crate::trace::{Trace, TransactionStep};
use ensue_protocol::Choice;
use ensue_store::cell::Write;
use ensue_store::entry::Change;
use ensue_store::record::Record;
use ensue_types::{DatacenterId, KeyspaceId, LogicalTime, Opaque, OperationId, Part, Position, Rule};
use ensue_wire::{Decision, Message};

/// This partition's part of a local transaction, voted for and not yet executed.
#[derive(Clone, Debug)]
pub(crate) struct LocalPart {
    pub keyspace: KeyspaceId,
    pub part: Part,
    pub work: WorkId,
    pub decision: Option<Decision>,
}

/// This partition's part of a replicated transaction, arrived and not yet applied.
#[derive(Clone, Debug)]
pub(crate) struct ReplicatedPart {
    pub origin: DatacenterId,
    pub position: Position,
    pub keyspace: KeyspaceId,
    /// Its place in the rows, once it has voted.
    pub work: Option<WorkId>,
    pub voted_at: Option<LogicalTime>,
    pub decision: Option<Decision>,
}

impl Transactions {
    /// Puts a local part into its rows, undecided from its vote on. Also what recovery does with a vote it finds.
    pub(crate) fn await_decision(
        &mut self,
        cx: &Cx,
        keyspaces: &mut Keyspaces,
        transaction: OperationId,
        keyspace: KeyspaceId,
        part: Part,
        at: LogicalTime,
    ) {
        let rows = cx.rows_of(keyspace, part.commands.iter().map(|(_, args)| args));
        let work = keyspaces.order.insert(Moment::first_of(at), false, rows, Work::LocalPart(transaction));
        let part = LocalPart { keyspace, part, work, decision: None };
        self.local_parts.insert(transaction, part);
    }

    /// Puts a replicated part into its rows, undecided from its vote on.
    pub(crate) fn await_replicated_decision(
        &mut self,
        others: &Others,
        keyspaces: &mut Keyspaces,
        transaction: OperationId,
        origin: DatacenterId,
        position: Position,
        at: LogicalTime,
    ) {
        let rows = others.replication.intake.rows(origin, position);
        let work =
            keyspaces.order.insert(Moment::first_of(at), false, rows, Work::ReplicatedPart(origin, position));
        if let Some(part) = self.replicated_parts.get_mut(&transaction) {
            part.work = Some(work);
            part.voted_at = Some(at);
        }
    }

    pub(crate) fn notify_again(&mut self, cx: &mut Cx, others: &Others, transaction: OperationId) {
        let Some(part) = self.replicated_parts.get(&transaction) else { return };
        if others.replication.intake.is_gone(part.origin, part.position) {
            return cx.send_local(coordinator_of(transaction), Message::PartGone { transaction });
        }
        // A notice says that the part has no place in its rows, so that no vote of before is counted after it.
        if part.work.is_some() && Rule::GiveTheVoteBack.holds() {
            cx.vote_again(transaction);
        } else if part.work.is_some() {
            cx.send_local(coordinator_of(transaction), Message::Notify { transaction });
            cx.vote_again(transaction);
        } else if others.replication.intake.is_ready(part.origin, part.position) {
            cx.send_local(coordinator_of(transaction), Message::Notify { transaction });
        }
    }

    /// Gives a part its time. It is executed when its turn comes.
    pub(crate) fn place_decided(
        &mut self,
        cx: &mut Cx,
        others: &Others,
        keyspaces: &mut Keyspaces,
        transaction: OperationId,
        decision: Decision,
    ) {
        cx.observe(decision.at);
        if self.durable.has_executed(decision.operation) {
            // Executed before, here or in a life whose entry came back; the coordinator has not heard of it.
            self.drop_local_part(cx, keyspaces, transaction);
            return cx.tell_again(transaction);
        }
        self.place_unvoted(others, keyspaces, transaction, decision.at);
        let work = if let Some(part) = self.local_parts.get_mut(&transaction) {
            let first = part.decision.replace(decision).is_none();
            first.then_some(part.work)
        } else if let Some(part) = self.replicated_parts.get_mut(&transaction) {
            let first = part.decision.replace(decision).is_none();
            part.work.filter(|_| first)
        } else {
            // Executed long ago, or lost. What is lost comes again, from the coordinator or by its stream.
            if !Rule::GiveThePartBack.holds() {
                cx.tell_again(transaction);
            }
            return;
        };
        if let Some(work) = work {
            keyspaces.order.decide(work, Moment { time: decision.at, drawn_by: coordinator_of(transaction) });
        }
    }

    /// A decision reached a part that has no place in its rows: the vote came from an earlier life.
    fn place_unvoted(
        &mut self,
        others: &Others,
        keyspaces: &mut Keyspaces,
        transaction: OperationId,
        at: LogicalTime,
    ) {
        let Some(part) = self.replicated_parts.get(&transaction) else { return };
        if part.work.is_none() {
            let (origin, position) = (part.origin, part.position);
            self.await_replicated_decision(others, keyspaces, transaction, origin, position, at);
        }
    }

    /// The part's turn has come.
    pub(crate) fn execute_local_part(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        keyspaces: &mut Keyspaces,
        transaction: OperationId,
    ) {
        let Some(mut part) = self.local_parts.remove(&transaction) else { return };
        let decision = part.decision.take().expect("only decided work has its turn");
        let Decision { at, operation, stamp } = decision;
        let (places, commands): (Vec<u32>, Vec<_>) = part.part.commands.into_iter().unzip();
        let keyspace = part.keyspace;
        let write = Write { stamp, at, operation, dependencies: None };
        let (replies, Changes { effects, previous }, mut observed) =
            keyspaces.evaluate_all(cx, keyspace, write, commands, &Choice::Newest);
        let seen = others.facts_of(cx, keyspace, observed.sources.clone());
        // What has a higher stamp came after the decision, and is met only by a part that was lost and is executed
        // again. It may depend on this transaction, or claim to: the transaction does not depend on it.
        observed.sources.retain(|source| source.stamp < stamp);
        let read = others.to_carry(cx, keyspace, cx.observed(observed.sources));
        let dependencies = cx.protocol(keyspace).dependencies(&Opaque::default(), &read);
        keyspaces.carry(keyspace, &effects, stamp, &dependencies);
        let change = Change::Effects { keyspace, transaction: Some(operation), effects };
        let entry = others.replication.next_entry(cx, stamp, dependencies, change, previous);
        cx.journal.log_decided(transaction, at, cx.position, &entry);
        self.note_executed(cx, operation, Some(transaction), Some(Needed::Prepared(transaction)));
        others.replication.own_entry_applied(cx);
        cx.trace_step(transaction, TransactionStep::Committed);
        cx.send_committed(transaction, places.into_iter().zip(replies).collect(), seen);
    }
}

impl Visibility<'_> {
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
                self.cx.tell_again(transaction);
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
}

impl Executor<'_> {
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
}
