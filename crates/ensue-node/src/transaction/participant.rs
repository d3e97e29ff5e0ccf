//! The participant: it prepares, remembers its vote, and executes its part at the time that the coordinator decides.

use crate::evaluate::Changes;
use crate::order::{Moment, WorkId};
use crate::partition::{Needed, Partition, Work};
use crate::trace::{Trace, TransactionStep};
use ensue_protocol::Choice;
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

impl Partition {
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
        if self.is_replicated(transaction).is_some() {
            return self.prepare_replicated(transaction);
        }
        if self.transactions.durable.has_executed_named(transaction) {
            // Given back though it was not lost. The decision follows, and is answered.
            return;
        }
        let prepared = self.transactions.local_parts.contains_key(&transaction);
        if prepared && self.config.rules.hold(Rule::PrepareOnce) {
            return self.vote_again(transaction);
        }
        let Some(part) = part else { return };
        let at = decided.unwrap_or_else(|| self.tick());
        let record = Record::Prepared { transaction, keyspace, at, part: part.clone() };
        self.persistence.log(&record);
        self.await_decision(transaction, keyspace, part, at);
        self.trace_step(transaction, TransactionStep::Voted);
        self.send_local(Self::coordinator_of(transaction), Message::Vote { transaction });
    }

    /// Puts a local part into its rows, undecided from its vote on. Also what recovery does with a vote it finds.
    pub(crate) fn await_decision(
        &mut self,
        transaction: OperationId,
        keyspace: KeyspaceId,
        part: Part,
        at: LogicalTime,
    ) {
        let rows = self.rows_of(keyspace, part.commands.iter().map(|(_, args)| args));
        let work = self.order.insert(Moment::first_of(at), false, rows, Work::LocalPart(transaction));
        let part = LocalPart { keyspace, part, work, decision: None };
        self.transactions.local_parts.insert(transaction, part);
    }

    fn prepare_replicated(&mut self, transaction: OperationId) {
        let Some(part) = self.transactions.replicated_parts.get(&transaction) else {
            // Applied before, and the coordinator has not heard of it. Or it is yet to come again, and then it notifies.
            if self.transactions.durable.has_executed(transaction) {
                self.tell_again(transaction);
            }
            return;
        };
        let mut early = None;
        if part.work.is_none() {
            let (origin, position, keyspace) = (part.origin, part.position, part.keyspace);
            let at = self.tick();
            let empty = Part { partition: self.id, commands: Vec::new() };
            self.persistence.log(&Record::Prepared { transaction, keyspace, at, part: empty });
            if self.config.rules.hold(Rule::PartsWaitForTheDecision) {
                self.await_replicated_decision(transaction, origin, position, at);
            } else {
                early = Some((origin, position, at));
            }
            self.trace_step(transaction, TransactionStep::Voted);
        }
        self.send_local(Self::coordinator_of(transaction), Message::Vote { transaction });
        if let Some((origin, position, at)) = early {
            self.apply_entry(origin, position, at);
        }
    }

    /// Puts a replicated part into its rows, undecided from its vote on.
    pub(crate) fn await_replicated_decision(
        &mut self,
        transaction: OperationId,
        origin: DatacenterId,
        position: Position,
        at: LogicalTime,
    ) {
        let rows = self.intake.rows(origin, position);
        let work =
            self.order.insert(Moment::first_of(at), false, rows, Work::ReplicatedPart(origin, position));
        if let Some(part) = self.transactions.replicated_parts.get_mut(&transaction) {
            part.work = Some(work);
            part.voted_at = Some(at);
        }
    }

    pub(crate) fn vote_again(&mut self, transaction: OperationId) {
        self.send_local(Self::coordinator_of(transaction), Message::Vote { transaction });
    }

    pub(crate) fn notify_again(&mut self, transaction: OperationId) {
        let Some(part) = self.transactions.replicated_parts.get(&transaction) else { return };
        if self.intake.is_gone(part.origin, part.position) {
            return self.send_local(Self::coordinator_of(transaction), Message::PartGone { transaction });
        }
        // A notice says that the part has no place in its rows, so that no vote of before is counted after it.
        if part.work.is_some() && self.config.rules.hold(Rule::GiveTheVoteBack) {
            self.vote_again(transaction);
        } else if part.work.is_some() {
            self.send_local(Self::coordinator_of(transaction), Message::Notify { transaction });
            self.vote_again(transaction);
        } else if self.intake.is_ready(part.origin, part.position) {
            self.send_local(Self::coordinator_of(transaction), Message::Notify { transaction });
        }
    }

    /// The coordinator, which was away, counted no vote until `said_at`: nothing is decided.
    pub(crate) fn on_forget_vote(&mut self, transaction: OperationId, said_at: LogicalTime) {
        let Some(part) = self.transactions.replicated_parts.get_mut(&transaction) else { return };
        let voted_before = part.voted_at.is_some_and(|voted_at| voted_at <= said_at);
        let Some(work) = part.work.take_if(|_| voted_before && part.decision.is_none()) else { return };
        part.voted_at = None;
        self.order.remove(work);
        self.persistence.no_longer_needed(Needed::Prepared(transaction));
        self.trace(Trace::VoteGivenBack { partition: self.id, transaction });
        self.notify_again(transaction);
        self.answer_reads(transaction);
        self.settle();
        self.read_what_is_answered();
    }

    /// The coordinator has decided, or told a reader so.
    pub(crate) fn on_commit(&mut self, transaction: OperationId, decision: Decision) {
        self.place_decided(transaction, decision);
        self.answer_reads(transaction);
        self.settle();
        self.read_what_is_answered();
    }

    /// Gives a part its time. It is executed when its turn comes.
    pub(crate) fn place_decided(&mut self, transaction: OperationId, decision: Decision) {
        self.observe(decision.at);
        if self.transactions.durable.has_executed(decision.operation) {
            // Executed before, here or in a life whose entry came back; the coordinator has not heard of it.
            self.drop_local_part(transaction);
            return self.tell_again(transaction);
        }
        self.place_unvoted(transaction, decision.at);
        let work = if let Some(part) = self.transactions.local_parts.get_mut(&transaction) {
            let first = part.decision.replace(decision).is_none();
            first.then_some(part.work)
        } else if let Some(part) = self.transactions.replicated_parts.get_mut(&transaction) {
            let first = part.decision.replace(decision).is_none();
            part.work.filter(|_| first)
        } else {
            // Executed long ago, or lost. What is lost comes again, from the coordinator or by its stream.
            if !self.config.rules.hold(Rule::GiveThePartBack) {
                self.tell_again(transaction);
            }
            return;
        };
        if let Some(work) = work {
            self.order
                .decide(work, Moment { time: decision.at, drawn_by: Self::coordinator_of(transaction) });
        }
    }

    /// A decision reached a part that has no place in its rows: the vote came from an earlier life.
    fn place_unvoted(&mut self, transaction: OperationId, at: LogicalTime) {
        let Some(part) = self.transactions.replicated_parts.get(&transaction) else { return };
        if part.work.is_none() {
            let (origin, position) = (part.origin, part.position);
            self.await_replicated_decision(transaction, origin, position, at);
        }
    }

    /// The part's turn has come.
    pub(crate) fn execute_local_part(&mut self, transaction: OperationId) {
        let Some(mut part) = self.transactions.local_parts.remove(&transaction) else { return };
        let decision = part.decision.take().expect("only decided work has its turn");
        let Decision { at, operation, stamp } = decision;
        let (places, commands): (Vec<u32>, Vec<_>) = part.part.commands.into_iter().unzip();
        let keyspace = part.keyspace;
        let (replies, Changes { effects, previous }, mut observed) =
            self.evaluate_all(keyspace, stamp, at, operation, commands, &Choice::Newest);
        let seen = self.facts_of(keyspace, observed.sources.clone());
        // What has a higher stamp came after the decision, and is met only by a part that was lost and is executed again.
        // It may depend on this transaction, or claim to: the transaction does not depend on it.
        observed.sources.retain(|source| source.stamp < stamp);
        let read = self.to_carry(keyspace, self.observed(observed.sources));
        let dependencies = self.protocol(keyspace).dependencies(&Opaque::default(), &read);
        self.carry(keyspace, &effects, stamp, &dependencies);
        let change = Change::Effects { keyspace, transaction: Some(operation), effects };
        let entry = self.next_entry(stamp, dependencies, change, previous);
        self.persistence.log_decided(transaction, at, self.position, &entry);
        self.note_executed(operation, Some(transaction), Some(Needed::Prepared(transaction)));
        self.own_entry_applied();
        self.trace_step(transaction, TransactionStep::Committed);
        self.send_committed(transaction, places.into_iter().zip(replies).collect(), seen);
    }

    fn tell_again(&mut self, transaction: OperationId) {
        if self.config.rules.hold(Rule::TellAgainWhatIsDone) {
            self.send_committed(transaction, Vec::new(), Opaque::default());
        }
    }

    pub(crate) fn send_committed(
        &mut self,
        transaction: OperationId,
        replies: Vec<(u32, ensue_types::Reply)>,
        seen: Opaque,
    ) {
        let message = Message::Committed { transaction, replies, seen };
        self.send_local(Self::coordinator_of(transaction), message);
    }
}
