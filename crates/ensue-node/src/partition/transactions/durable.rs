//! What of a decided transaction is durable, and who may forget it (trap 17): the price of `everysec` and `no`.
//!
//! A transaction lives in several logs, and each may lose its tail alone. On a decision: it is synced before anybody
//! hears of it, whatever `appendfsync` says. On an executed part: the participant remembers it, and reports when it is
//! synced. On every part synced: the coordinator logs `Completed`, and when that is durable, tells the participants to
//! forget. Until then a participant that lost its part gets it back, and one that has it never executes it twice.

use super::{Coordinated, Transactions};
use crate::config::AppendFsync;
use crate::partition::cx::Cx;
use crate::partition::cx::words::OPERATIONS_A_MESSAGE;
use crate::partition::journal::Needed;
use crate::partition::keyspaces::Keyspaces;
use crate::partition::others::Others;
use ensue_types::{DatacenterId, OperationId, PartitionId, Position, Rule};
use ensue_wire::{Address, Message};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A part that its coordinator may still ask for.
#[derive(Clone, Copy, Debug)]
struct Executed {
    /// Of a local transaction, unless the part came back from another datacenter.
    name: Option<OperationId>,
    /// The coordinator has been told that it is synced.
    reported: bool,
}

/// Steps of transactions that wait for the log to be synced, and parts that a coordinator may still ask for.
#[derive(Clone, Debug, Default)]
pub(super) struct Durable {
    /// Decisions that nobody has heard of: the log's end after each, and its place in the own stream if it has one.
    decisions: VecDeque<(u64, OperationId, Option<Position>)>,
    /// Executed parts, by operation.
    executed: BTreeMap<OperationId, Executed>,
    /// The names that their coordinators know them by, those of local transactions.
    named: BTreeSet<OperationId>,
    /// Executed parts that are not synced, by the log's end after each.
    unsynced: VecDeque<(u64, OperationId)>,
    /// Completed transactions whose participants still remember them, by the log's end after each.
    completed: VecDeque<(u64, OperationId, Vec<PartitionId>)>,
    /// Who has asked to be told all again, and is told that this was all when the log is synced up to here.
    repeats: VecDeque<(u64, Address, u64)>,
}

impl Durable {
    pub fn has_executed(&self, operation: OperationId) -> bool {
        self.executed.contains_key(&operation)
    }

    /// Whether this partition's part of a local transaction of this name was executed.
    pub fn has_executed_named(&self, transaction: OperationId) -> bool {
        self.named.contains(&transaction)
    }

    /// Whether the coordinator of an executed part has been told that it is synced.
    pub(super) fn is_reported(&self, operation: OperationId) -> bool {
        self.executed.get(&operation).is_some_and(|executed| executed.reported)
    }

    fn executed(&mut self, operation: OperationId, name: Option<OperationId>, reported: bool) {
        self.named.extend(name);
        self.executed.insert(operation, Executed { name, reported });
    }

    pub fn len(&self) -> usize {
        self.decisions.len() + self.executed.len() + self.completed.len()
    }
}

impl Transactions {
    /// Whether this partition's part of a transaction was executed, and its coordinator may still ask for it.
    pub fn has_executed(&self, operation: OperationId) -> bool {
        self.durable.has_executed(operation)
    }

    /// The same of a local transaction, by its name.
    pub fn has_executed_named(&self, transaction: OperationId) -> bool {
        self.durable.has_executed_named(transaction)
    }

    /// The next decision that is durable and of which nobody has heard.
    pub fn next_synced_decision(&mut self, synced: u64) -> Option<OperationId> {
        let (_, transaction, _) = *self.durable.decisions.front().filter(|(end, ..)| *end <= synced)?;
        self.durable.decisions.pop_front();
        Some(transaction)
    }

    /// Who is to be told now that it has heard of everything again, and the number of its question.
    pub fn next_synced_repeat(&mut self, synced: u64) -> Option<(Address, u64)> {
        let (_, from, number) = *self.durable.repeats.front().filter(|(end, ..)| *end <= synced)?;
        self.durable.repeats.pop_front();
        Some((from, number))
    }

    /// Says that this was all, at once or after the last decision that nobody may hear of yet: it belongs to what must
    /// be told, for what follows it in its rows waits for it.
    pub fn finish_repeat(&mut self, cx: &mut Cx, from: Address, number: u64) {
        match self.durable.decisions.back() {
            Some(&(end, ..)) => self.durable.repeats.push_back((end, from, number)),
            None => cx.send(from, Message::Repeated { number }),
        }
    }

    /// Whether a decision waits for a sync.
    pub fn has_unsynced_decisions(&self) -> bool {
        !self.durable.decisions.is_empty()
    }

    /// The first place of the own stream that may not be sent.
    pub fn first_unsynced_decision(&self) -> Option<Position> {
        self.durable.decisions.iter().filter_map(|(_, _, position)| *position).min()
    }
}

impl Transactions {
    /// A decision was logged, or found in the log. Says whether it may be told at once.
    pub(crate) fn note_decision(
        &mut self,
        cx: &Cx,
        transaction: OperationId,
        position: Option<Position>,
    ) -> bool {
        let always = cx.config.append_fsync == AppendFsync::Always;
        if always || !Rule::SyncTheDecision.holds() {
            return true;
        }
        self.durable.decisions.push_back((cx.journal.log_end(), transaction, position));
        false
    }

    /// A part was executed: its record, or the one that `before` needed, is needed until the coordinator forgets.
    pub(crate) fn note_executed(
        &mut self,
        cx: &mut Cx,
        operation: OperationId,
        name: Option<OperationId>,
        before: Option<Needed>,
    ) {
        match before {
            Some(before) => cx.journal.needed_as(before, Needed::Executed(operation)),
            None => cx.journal.note_needed(Needed::Executed(operation)),
        }
        if cx.config.append_fsync == AppendFsync::Always {
            // The answer itself rests on the sync.
            self.durable.executed(operation, name, true);
        } else {
            // The record of it may be logged only after this.
            self.report_when_synced(operation, name, cx.journal.log_end() + 1);
        }
    }

    /// An executed part, which its coordinator hears of when the log is synced up to `end`.
    pub(crate) fn report_when_synced(&mut self, operation: OperationId, name: Option<OperationId>, end: u64) {
        self.durable.executed(operation, name, false);
        self.durable.unsynced.push_back((end, operation));
    }

    pub(in crate::partition) fn report_synced_parts(&mut self, cx: &mut Cx, synced: u64) {
        let mut reports: BTreeMap<PartitionId, Vec<OperationId>> = BTreeMap::new();
        let durable = &mut self.durable;
        while durable.unsynced.front().is_some_and(|(end, _)| *end <= synced) {
            let Some((_, operation)) = durable.unsynced.pop_front() else { break };
            if let Some(executed) = durable.executed.get_mut(&operation) {
                executed.reported = true;
                reports.entry(operation.partition).or_default().push(operation);
            }
        }
        cx.send_reports(reports);
    }

    /// After a link broke: reports again what the coordinators behind it may not have heard.
    pub(super) fn report_parts_again(&mut self, cx: &mut Cx, owns: &dyn Fn(PartitionId) -> bool) {
        let mut reports: BTreeMap<PartitionId, Vec<OperationId>> = BTreeMap::new();
        for (operation, executed) in &self.durable.executed {
            if executed.reported && owns(operation.partition) {
                reports.entry(operation.partition).or_default().push(*operation);
            }
        }
        cx.send_reports(reports);
    }

    /// A participant's parts are durable.
    pub(crate) fn on_parts_synced(&mut self, cx: &mut Cx, from: Address, operations: Vec<OperationId>) {
        let Address::Partition { partition, .. } = from else { return };
        for operation in operations {
            let name = self.name_of(operation, cx.datacenter);
            let coordinated = name.and_then(|name| self.coordinated.get_mut(&name));
            match (coordinated, name) {
                (Some(Coordinated::Committing(committing)), Some(transaction))
                    if committing.participants.contains(&partition) =>
                {
                    committing.synced.insert(partition);
                    self.complete_if_done(cx, transaction);
                }
                (Some(_), _) => {}
                (None, _) => {
                    self.orphans.remove(&(operation, partition));
                    self.forget_when_durable(cx, operation, partition);
                }
            }
        }
        self.forget_completed(cx, cx.journal.log_synced());
    }

    /// A participant reports its part of a transaction that is not coordinated here any more. That it was completed may
    /// have been read, after a restart, from the part of the log that is not synced: the participant is told when it
    /// is.
    fn forget_when_durable(&mut self, cx: &Cx, operation: OperationId, participant: PartitionId) {
        let end = cx.journal.log_end();
        let completed = &mut self.durable.completed;
        match completed.iter_mut().find(|(_, waits, _)| *waits == operation) {
            Some((.., participants)) if participants.contains(&participant) => {}
            Some((.., participants)) => participants.push(participant),
            None => completed.push_back((end, operation, vec![participant])),
        }
    }

    /// Every participant has its part durably: once the log says so durably, they may forget it.
    pub(super) fn note_completed(&mut self, cx: &Cx, operation: OperationId, participants: Vec<PartitionId>) {
        self.names.remove(&operation);
        let end = cx.journal.log_end();
        self.durable.completed.push_back((end, operation, participants));
    }

    /// These participants had their parts before this coordinator heard of the transaction in a directory that is
    /// filled: it asks them for nothing, and they may have reported while nothing was known here of it.
    pub(super) fn release_held(&mut self, cx: &Cx, operation: OperationId, participants: Vec<PartitionId>) {
        if !participants.is_empty() {
            self.durable.completed.push_back((cx.journal.log_end(), operation, participants));
        }
    }

    pub(in crate::partition) fn forget_completed(&mut self, cx: &mut Cx, synced: u64) {
        let mut forgotten: BTreeMap<PartitionId, Vec<OperationId>> = BTreeMap::new();
        let durable = &mut self.durable;
        while durable.completed.front().is_some_and(|(end, ..)| *end <= synced) {
            let Some((_, operation, participants)) = durable.completed.pop_front() else { break };
            for participant in participants {
                forgotten.entry(participant).or_default().push(operation);
            }
        }
        for (participant, operations) in forgotten {
            for chunk in operations.chunks(OPERATIONS_A_MESSAGE) {
                cx.send_local(participant, Message::PartsForgotten { operations: chunk.to_vec() });
            }
        }
    }

    /// The entries that would have named these transactions are lost: no part of them is ever shown, as their
    /// participants are told.
    pub(crate) fn abandon_lost(
        &mut self,
        cx: &mut Cx,
        origin: DatacenterId,
        (after, through): (Position, Position),
        word: impl Fn(OperationId) -> Message,
    ) {
        // Those that are voted on or decided have their entries here. Own ones have none before that, and are named
        // by their numbers, which may be above the places of the stream.
        let lost = |(transaction, coordinated): &(&OperationId, &Coordinated)| {
            matches!(coordinated, Coordinated::Arriving(_))
                && transaction.datacenter == origin
                && transaction.partition == cx.id
                && after < transaction.position
                && transaction.position <= through
        };
        let lost = self.coordinated.iter().filter(lost);
        let arriving: Vec<OperationId> = lost.map(|(transaction, _)| *transaction).collect();
        for transaction in arriving {
            if let Some(Coordinated::Arriving(arriving)) = self.coordinated.remove(&transaction) {
                for participant in arriving.notified {
                    let message = match arriving.unrecoverable {
                        true => Message::Discard { transaction },
                        false => word(transaction),
                    };
                    cx.send_local(participant, message);
                }
            }
        }
    }

    pub(in crate::partition) fn drop_local_part(
        &mut self,
        cx: &mut Cx,
        keyspaces: &mut Keyspaces,
        transaction: OperationId,
    ) {
        if let Some(part) = self.local_parts.remove(&transaction) {
            keyspaces.order.remove(part.work);
            cx.journal.no_longer_needed(Needed::Prepared(transaction));
        }
    }

    pub(crate) fn on_parts_forgotten(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        operations: &[OperationId],
    ) {
        others.drop_notifications(operations);
        for operation in operations {
            // One that is not synced cannot have been completed; the answer was to an earlier life.
            let durable = &mut self.durable;
            if durable.executed.get(operation).is_some_and(|executed| executed.reported) {
                let gone = durable.executed.remove(operation);
                if let Some(name) = gone.and_then(|gone| gone.name) {
                    durable.named.remove(&name);
                }
                cx.journal.no_longer_needed(Needed::Executed(*operation));
            }
        }
    }
}
