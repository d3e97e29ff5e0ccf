//! What a dead datacenter took with it, for the protocols that name operations: its entries that depend on that are discarded.
//!
//! When a dead datacenter's stream of a partition has its end here (`dead`), whatever stands after the end is nowhere. An entry of the
//! dead one is *gone* if it depends on what is nowhere, or on what is gone; so it is in every survivor, since the streams are the
//! same and dependencies point to lower stamps. A check is answered with what of it is gone, and an entry whose dependencies have all
//! been answered is shown, or discarded and listed. What others have written cannot depend on it, for nobody has shown it.
//!
//! A session of the dead datacenter may have seen all of a stream up to a place that its dependencies name. A session of another one
//! had seen what is shown: where its folded context covers what is gone, it never met that (`depends_on`).
//!
//! A transaction is gone as a whole, if its entry or one of its parts is. Its coordinator here asks those who have not said that their
//! parts are ready; whoever has the end of the stream and no part answers that it is gone.

use super::Partition;
use crate::trace::Trace;
use crate::transaction::Coordinated;
use ensue_store::entry::{Change, Entry};
use ensue_store::layout;
use ensue_store::record::Record;
use ensue_types::{DatacenterId, Dependency, Extent, OperationId, PartitionId, Position, Rule};
use ensue_wire::{Address, Message};

/// Whether a write of this origin truly depends on this, of which it is known that it is gone or covers what is gone.
pub(super) fn depends_on(origin: DatacenterId, gone: &Dependency) -> bool {
    gone.extent == Extent::Exact || gone.operation.datacenter == origin
}

impl Partition {
    /// A dead datacenter's stream has its end here: who waits for what stands after it waits no longer.
    pub(super) fn end_stream(&mut self, datacenter: DatacenterId, end: Position) {
        for woken in self.applied.end(datacenter, end) {
            self.wake(woken);
        }
        let nowhere = (end, Position(u64::MAX));
        self.abandon_lost(datacenter, nowhere, |transaction| Message::Discard { transaction });
        for transaction in self.transactions.awaited_of(datacenter) {
            self.await_parts(transaction, &|_| true);
        }
        for transaction in self.dead.take_awaited(datacenter) {
            self.on_await_part(transaction);
        }
    }

    /// All dependencies of an arrived entry have been answered, and one of them is gone.
    pub(super) fn discard_arrived(&mut self, origin: DatacenterId, position: Position) {
        let Some(entry) = self.intake.entry(origin, position) else { return };
        let operation = self.name_at(origin, position);
        match &entry.change {
            Change::Effects { transaction: Some(transaction), .. } => {
                let transaction = *transaction;
                self.send_local(Self::coordinator_of(transaction), Message::PartGone { transaction });
            }
            Change::Transaction { participants, .. } => {
                let participants = participants.clone();
                self.discard_transaction(operation, &participants);
            }
            _ => self.discard_entry(origin, position),
        }
    }

    /// The name of the entry at this place of a stream.
    pub(super) fn name_at(&self, origin: DatacenterId, position: Position) -> OperationId {
        OperationId { datacenter: origin, incarnation: position.incarnation(), partition: self.id, position }
    }

    /// From here on an arrived entry is as if it had never been, and whoever depends on it is told.
    fn discard_entry(&mut self, origin: DatacenterId, position: Position) {
        let Some(entry) = self.intake.entry(origin, position).cloned() else { return };
        let at = self.tick();
        let bytes = layout::encode_entry(&entry);
        self.persistence.log(&Record::Discarded { datacenter: origin, entry: bytes });
        let time = entry.stamp.time;
        self.take_gone(entry);
        self.trace(Trace::Discarded { partition: self.id, count: self.discarded.len() as u64 });
        self.mark_applied(origin, position.incarnation(), position, at);
        self.note_applied(origin, position, time);
    }

    /// An entry of a dead datacenter's stream is gone.
    pub(super) fn take_gone(&mut self, entry: Entry) {
        let (origin, position) = (entry.stamp.datacenter, entry.position);
        self.applied.discard(origin, position);
        let operation = self.name_at(origin, position);
        self.discarded.add_gone(operation, entry);
    }

    /// At the coordinator: none of the parts is ever shown, nor what depends on them.
    fn discard_transaction(&mut self, transaction: OperationId, participants: &[PartitionId]) {
        self.transactions.coordinated.remove(&transaction);
        self.discard_entry(transaction.datacenter, transaction.position);
        for &participant in participants {
            self.send_local(participant, Message::Discard { transaction });
        }
    }

    /// At the coordinator: everything of a dead datacenter's transaction is here but some parts.
    pub(crate) fn await_parts(&mut self, transaction: OperationId, owns: &dyn Fn(PartitionId) -> bool) {
        if !self.dead.is_settled(transaction.datacenter) || !self.config.rules.hold(Rule::AwaitTheParts) {
            return;
        }
        for participant in self.transactions.missing_parts(transaction).into_iter().filter(|p| owns(*p)) {
            self.send_local(participant, Message::AwaitPart { transaction });
        }
    }

    /// The coordinator misses a part.
    pub(super) fn on_await_part(&mut self, transaction: OperationId) {
        let origin = transaction.datacenter;
        if self.transactions.replicated_parts.contains_key(&transaction) {
            return self.notify_again(transaction);
        }
        self.declare_dead(origin);
        if !self.dead.is_settled(origin) {
            return self.dead.await_end(transaction);
        }
        if !self.transactions.durable.has_executed(transaction) {
            self.send_local(Self::coordinator_of(transaction), Message::PartGone { transaction });
        }
    }

    /// At the coordinator: a part is never shown, so nothing of the transaction is.
    pub(super) fn on_part_gone(&mut self, from: Address, transaction: OperationId) {
        let Address::Partition { partition: participant, .. } = from else { return };
        if self.is_transaction_gone(transaction) {
            return self.send_local(participant, Message::Discard { transaction });
        }
        if self.applied.contains(transaction.datacenter, transaction.position) {
            return; // It was decided since it was asked, and the participant has forgotten its part.
        }
        let fresh = || Coordinated::Arriving(Default::default());
        let coordinated = self.transactions.coordinated.entry(transaction).or_insert_with(fresh);
        if let Coordinated::Arriving(arriving) = coordinated {
            arriving.gone = true;
            // It is told, too, if the transaction's own entry turns out to be nowhere.
            arriving.notified.insert(participant);
            self.discard_when_announced(transaction);
        }
    }

    /// At the coordinator: whether a part of the transaction, whose own entry waits for nothing more, is known to be gone; then it is
    /// discarded.
    pub(crate) fn discard_when_announced(&mut self, transaction: OperationId) -> bool {
        let Some(Coordinated::Arriving(arriving)) = self.transactions.coordinated.get(&transaction) else {
            return false;
        };
        let Some(announced) = arriving.announced.as_ref().filter(|_| arriving.gone) else { return false };
        let participants = announced.participants.clone();
        self.discard_transaction(transaction, &participants);
        true
    }

    /// At the coordinator: whether a transaction of a dead datacenter is never shown.
    pub(crate) fn is_transaction_gone(&self, transaction: OperationId) -> bool {
        let exact = Dependency { operation: transaction, extent: Extent::Exact };
        self.applied.gone(&exact).is_some()
    }

    /// The coordinator says that a transaction of a dead datacenter is never shown. Whoever hears of a dead one declares it, too.
    pub(super) fn on_discard(&mut self, transaction: OperationId) {
        self.declare_dead(transaction.datacenter);
        let Some(part) = self.transactions.replicated_parts.remove(&transaction) else { return };
        if let Some(work) = part.work {
            self.order.remove(work);
        }
        self.persistence.no_longer_needed(super::Needed::Prepared(transaction));
        self.trace(Trace::PartAbandoned { partition: self.id, transaction });
        self.discard_entry(part.origin, part.position);
        self.answer_reads(transaction);
        self.settle();
        self.read_what_is_answered();
    }
}
