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

use crate::partition::cx::{Cx, coordinator_of};
use crate::partition::execution::Executor;
use crate::partition::journal::Needed;
use crate::partition::keyspaces::Keyspaces;
use crate::partition::others::Others;
use crate::partition::replication::Replication;
use crate::partition::transactions::{Coordinated, Transactions};
use crate::partition::visibility::Visibility;
use crate::trace::Trace;
use ensue_store::entry::{Change, Entry};
use ensue_store::layout;
use ensue_store::record::Record;
use ensue_types::{DatacenterId, Dependency, Extent, OperationId, PartitionId, Position, Rule};
use ensue_wire::{Address, Message};

/// Whether a write of this origin truly depends on this, of which it is known that it is gone or covers what is gone.
pub(in crate::partition) fn depends_on(origin: DatacenterId, gone: &Dependency) -> bool {
    gone.extent == Extent::Exact || gone.operation.datacenter == origin
}

impl Replication {
    /// At the coordinator: whether a transaction of a dead datacenter is never shown.
    pub(crate) fn is_transaction_gone(&self, transaction: OperationId) -> bool {
        let exact = Dependency { operation: transaction, extent: Extent::Exact };
        self.applied.gone(&exact).is_some()
    }
}

impl Others {
    /// An entry of a dead datacenter's stream is gone.
    pub(in crate::partition) fn take_gone(&mut self, cx: &Cx, entry: Entry) {
        let (origin, position) = (entry.stamp.datacenter, entry.position);
        self.replication.applied.discard(origin, position);
        let operation = cx.name_at(origin, position);
        self.failover.discarded.add_gone(operation, entry);
    }
}

impl Transactions {
    /// At the coordinator: everything of a dead datacenter's transaction is here but some parts.
    pub(crate) fn await_parts(
        &self,
        cx: &mut Cx,
        others: &Others,
        transaction: OperationId,
        owns: &dyn Fn(PartitionId) -> bool,
    ) {
        if !others.failover.dead.is_settled(transaction.datacenter) || !Rule::AwaitTheParts.holds() {
            return;
        }
        for participant in self.missing_parts(transaction).into_iter().filter(|p| owns(*p)) {
            cx.send_local(participant, Message::AwaitPart { transaction });
        }
    }
}

impl Visibility<'_> {
    /// All dependencies of an arrived entry have been answered, and one of them is gone.
    pub(in crate::partition) fn discard_arrived(&mut self, origin: DatacenterId, position: Position) {
        let Some(entry) = self.others.replication.intake.entry(origin, position) else { return };
        let operation = self.cx.name_at(origin, position);
        match &entry.change {
            Change::Effects { transaction: Some(transaction), .. } => {
                let transaction = *transaction;
                self.cx.send_local(coordinator_of(transaction), Message::PartGone { transaction });
            }
            Change::Transaction { participants, .. } => {
                let participants = participants.clone();
                self.discard_transaction(operation, &participants);
            }
            _ => self.discard_entry(origin, position),
        }
    }

    /// From here on an arrived entry is as if it had never been, and whoever depends on it is told.
    fn discard_entry(&mut self, origin: DatacenterId, position: Position) {
        let Some(entry) = self.others.replication.intake.entry(origin, position).cloned() else { return };
        let at = self.cx.tick();
        let bytes = layout::encode_entry(&entry);
        self.cx.journal.log(&Record::Discarded { datacenter: origin, entry: bytes });
        let time = entry.stamp.time;
        self.others.take_gone(self.cx, entry);
        self.cx.trace(Trace::Discarded {
            partition: self.cx.id,
            count: self.others.failover.discarded.len() as u64,
        });
        self.mark_applied(origin, position.incarnation(), position, at);
        self.others.note_applied(origin, position, time);
    }

    /// At the coordinator: none of the parts is ever shown, nor what depends on them.
    fn discard_transaction(&mut self, transaction: OperationId, participants: &[PartitionId]) {
        self.transactions.coordinated.remove(&transaction);
        self.discard_entry(transaction.datacenter, transaction.position);
        for &participant in participants {
            self.cx.send_local(participant, Message::Discard { transaction });
        }
    }

    /// At the coordinator: a part is never shown, so nothing of the transaction is.
    pub(in crate::partition) fn on_part_gone(&mut self, from: Address, transaction: OperationId) {
        let Address::Partition { partition: participant, .. } = from else { return };
        if self.others.replication.is_transaction_gone(transaction) {
            return self.cx.send_local(participant, Message::Discard { transaction });
        }
        if self.others.replication.applied.contains(transaction.datacenter, transaction.position) {
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
}

impl Transactions {
    /// The coordinator misses a part.
    pub(in crate::partition) fn on_await_part(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        keyspaces: &mut Keyspaces,
        transaction: OperationId,
    ) {
        let origin = transaction.datacenter;
        if self.replicated_parts.contains_key(&transaction) {
            return self.notify_again(cx, others, transaction);
        }
        keyspaces.declare_dead(cx, others, origin);
        if !others.failover.dead.is_settled(origin) {
            return others.failover.dead.await_end(transaction);
        }
        if !self.durable.has_executed(transaction) {
            cx.send_local(coordinator_of(transaction), Message::PartGone { transaction });
        }
    }
}

impl Visibility<'_> {
    /// A dead datacenter's stream has its end here: who waits for what stands after it waits no longer.
    pub(in crate::partition) fn end_stream(&mut self, datacenter: DatacenterId, end: Position) {
        let woken = self.others.replication.applied.end(datacenter, end);
        self.wake(woken);
        let nowhere = (end, Position(u64::MAX));
        self.transactions
            .abandon_lost(self.cx, datacenter, nowhere, |transaction| Message::Discard { transaction });
        for transaction in self.transactions.awaited_of(datacenter) {
            self.transactions.await_parts(self.cx, self.others, transaction, &|_| true);
        }
        for transaction in self.others.failover.dead.take_awaited(datacenter) {
            self.transactions.on_await_part(self.cx, self.others, self.keyspaces, transaction);
        }
    }
}

impl Executor<'_> {
    /// The coordinator says that a transaction of a dead datacenter is never shown. Whoever hears of a dead one declares it, too.
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
