//! The participant: it prepares, remembers its vote, and executes its part at the time that the coordinator decides.

use super::Transactions;
use crate::evaluate::Changes;
use crate::partition::cx::{Cx, coordinator_of};
use crate::partition::journal::Needed;
use crate::partition::keyspaces::Keyspaces;
use crate::partition::keyspaces::scripts::Refusals;
use crate::partition::order::{Moment, WorkId};
use crate::partition::others::Others;
use crate::partition::work::Work;
use crate::trace::TransactionStep;
use ensue_protocol::Choice;
use ensue_store::cell::Write;
use ensue_store::entry::Change;
use ensue_types::{Causes, DatacenterId, KeyspaceId, LogicalTime, OperationId, Part, Position, Rule};
use ensue_wire::{Decision, Message};

/// This partition's part of a local transaction, voted for and not yet executed.
#[derive(Clone, Debug)]
pub(super) struct LocalPart {
    pub keyspace: KeyspaceId,
    pub part: Part,
    pub work: WorkId,
    pub decision: Option<Decision>,
}

/// This partition's part of a replicated transaction, arrived and not yet applied.
#[derive(Clone, Debug)]
pub(super) struct ReplicatedPart {
    pub origin: DatacenterId,
    pub position: Position,
    pub keyspace: KeyspaceId,
    /// Its place in the rows, once it has voted.
    pub work: Option<WorkId>,
    pub voted_at: Option<LogicalTime>,
    pub decision: Option<Decision>,
}

impl Transactions {
    /// A part of a replicated transaction has arrived.
    pub(crate) fn note_arrived(
        &mut self,
        transaction: OperationId,
        (origin, position): (DatacenterId, Position),
        keyspace: KeyspaceId,
    ) {
        let part = ReplicatedPart { origin, position, keyspace, work: None, voted_at: None, decision: None };
        self.replicated_parts.insert(transaction, part);
    }

    /// Where a part of a replicated transaction came, and of which keyspace; nothing if none waits here.
    pub(crate) fn arrived_part(
        &self,
        transaction: OperationId,
    ) -> Option<((DatacenterId, Position), KeyspaceId)> {
        let part = self.replicated_parts.get(&transaction)?;
        Some(((part.origin, part.position), part.keyspace))
    }

    /// Whether that part has its place in the rows: it has voted.
    pub(crate) fn has_place(&self, transaction: OperationId) -> bool {
        self.replicated_parts.get(&transaction).is_some_and(|part| part.work.is_some())
    }

    /// Whether a part of a local transaction waits here, decided or not.
    pub(crate) fn has_local_part(&self, transaction: OperationId) -> bool {
        self.local_parts.contains_key(&transaction)
    }

    /// Whether the coordinator of that has not decided, as far as is known here.
    pub(crate) fn is_undecided_local(&self, transaction: OperationId) -> bool {
        self.local_parts.get(&transaction).is_some_and(|part| part.decision.is_none())
    }

    /// A part of a replicated transaction is applied.
    pub(crate) fn forget_arrived(&mut self, transaction: OperationId) {
        self.replicated_parts.remove(&transaction);
    }

    /// A part of a replicated transaction will not be applied: it leaves its place, and its vote is needed no more.
    /// Answers where it came.
    pub(crate) fn drop_arrived(
        &mut self,
        cx: &mut Cx,
        keyspaces: &mut Keyspaces,
        transaction: OperationId,
    ) -> Option<(DatacenterId, Position)> {
        let part = self.replicated_parts.remove(&transaction)?;
        if let Some(work) = part.work {
            keyspaces.order.remove(work);
        }
        cx.journal.no_longer_needed(Needed::Prepared(transaction));
        Some((part.origin, part.position))
    }

    /// The coordinator, which was away, counted no vote until `said_at`. Whether the part has given its vote back.
    pub(crate) fn take_back_vote(
        &mut self,
        cx: &mut Cx,
        keyspaces: &mut Keyspaces,
        transaction: OperationId,
        said_at: LogicalTime,
    ) -> bool {
        let Some(part) = self.replicated_parts.get_mut(&transaction) else { return false };
        let voted_before = part.voted_at.is_some_and(|voted_at| voted_at <= said_at);
        let Some(work) = part.work.take_if(|_| voted_before && part.decision.is_none()) else { return false };
        part.voted_at = None;
        keyspaces.order.remove(work);
        cx.journal.no_longer_needed(Needed::Prepared(transaction));
        true
    }

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
        let rows = others.replication.inbound.rows(origin, position);
        let work =
            keyspaces.order.insert(Moment::first_of(at), false, rows, Work::ReplicatedPart(origin, position));
        if let Some(part) = self.replicated_parts.get_mut(&transaction) {
            part.work = Some(work);
            part.voted_at = Some(at);
        }
    }

    pub(crate) fn notify_again(&mut self, cx: &mut Cx, others: &Others, transaction: OperationId) {
        let Some(part) = self.replicated_parts.get(&transaction) else { return };
        if others.replication.inbound.is_unrecoverable(part.origin, part.position) {
            return cx.send_local(coordinator_of(transaction), Message::PartUnrecoverable { transaction });
        }
        // A notice says that the part has no place in its rows, so that no vote of before is counted after it.
        if part.work.is_some() && Rule::GiveTheVoteBack.holds() {
            cx.vote_again(transaction);
        } else if part.work.is_some() {
            cx.send_local(coordinator_of(transaction), Message::Notify { transaction });
            cx.vote_again(transaction);
        } else if others.replication.inbound.is_ready(part.origin, part.position) {
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
        cx.advance_clock(decision.at);
        if self.durable.has_executed(decision.operation) {
            // Executed before, here or in a life whose entry came back; the coordinator has not heard of it.
            self.drop_local_part(cx, keyspaces, transaction);
            return cx.notify_again(transaction);
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
                cx.notify_again(transaction);
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
            keyspaces.evaluate_all(cx, keyspace, write, commands, (&Choice::Newest, &Refusals::default()));
        cx.statistics.count_lookups(observed.hits, observed.misses);
        let seen = others.causes_of(cx, keyspace, observed.sources.clone());
        // What has a higher stamp came after the decision, and is met only by a part that was lost and is executed
        // again. It may depend on this transaction, or claim to: the transaction does not depend on it.
        observed.sources.retain(|source| source.stamp < stamp);
        let read = others.split_settled(cx, keyspace, cx.observed(observed.sources));
        let carried = others.to_carry(cx, keyspace, &read, Vec::new());
        let dependencies = cx.protocol(keyspace).dependencies(&Causes::Nothing, &carried);
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
