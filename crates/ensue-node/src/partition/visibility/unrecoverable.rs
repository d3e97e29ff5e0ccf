//! What a dead datacenter took with it, for the protocols that name operations: its entries that depend on that are
//! discarded.
//!
//! When a dead datacenter's stream of a partition has its end here (`dead`), whatever stands after the end is nowhere.
//! An entry of the dead one is *gone* if it depends on what is nowhere, or on what is gone; so it is in every survivor,
//! since the streams are the same and dependencies point to lower stamps. A check is answered with what of it is gone,
//! and an entry whose dependencies have all been answered is shown, or discarded and listed.
//!
//! Of a datacenter that lives, or lived when the end was found, nothing is discarded: it has acknowledged what it
//! wrote, and shows it. It may name what is nowhere, if it had received and shown that and lost it with its power; that
//! is lost to it like a tail. So only the dead one's entries are discarded, and those of whoever had failed before its
//! end, which may have received what no survivor has.
//!
//! A session of the dead datacenter may have seen all of a stream up to a place that its dependencies name. A session
//! of another one had seen what is shown: where its folded context covers what is gone, it never met that
//! (`Applied::discards`).
//!
//! A transaction is gone as a whole, if its entry or one of its parts is. Its coordinator here asks those who have not
//! said that their parts are ready; whoever has the end of the stream and no part answers that it is gone.

use super::Visibility;
use crate::partition::cx::coordinator_of;
use crate::trace::Trace;
use ensue_store::entry::Change;
use ensue_store::layout;
use ensue_store::record::Record;
use ensue_types::{DatacenterId, DatacenterSet, OperationId, PartitionId, Position};
use ensue_wire::{Address, Message};

impl Visibility<'_> {
    /// All dependencies of an arrived entry have been answered, and one of them is gone.
    pub(in crate::partition) fn discard_arrived(&mut self, origin: DatacenterId, position: Position) {
        let Some(entry) = self.others.replication.inbound.entry(origin, position) else { return };
        let operation = self.cx.name_at(origin, position);
        match &entry.change {
            Change::Effects { transaction: Some(transaction), .. } => {
                let transaction = *transaction;
                self.cx.send_local(coordinator_of(transaction), Message::PartUnrecoverable { transaction });
            }
            Change::Transaction { participants, .. } => {
                let participants = participants.clone();
                self.discard_transaction(operation, &participants);
            }
            _ => self.discard_entry(origin, position),
        }
    }

    /// From here on an arrived entry is as if it had never been, and whoever depends on it is told.
    pub(in crate::partition) fn discard_entry(&mut self, origin: DatacenterId, position: Position) {
        let Some(entry) = self.others.replication.inbound.entry(origin, position).cloned() else { return };
        let at = self.cx.tick();
        let bytes = layout::encode_entry(&entry);
        self.cx.journal.log(&Record::Discarded { datacenter: origin, entry: bytes });
        let time = entry.stamp.time;
        self.others.take_unrecoverable(self.cx, entry);
        self.cx.trace(Trace::Discarded {
            partition: self.cx.id,
            count: self.others.failover.discarded.len() as u64,
        });
        self.mark_applied(origin, position.incarnation(), position, at);
        self.others.note_applied(origin, position, time);
    }

    /// At the coordinator: none of the parts is ever shown, nor what depends on them.
    fn discard_transaction(&mut self, transaction: OperationId, participants: &[PartitionId]) {
        self.transactions.forget_coordinated(transaction);
        self.discard_entry(transaction.datacenter, transaction.position);
        for &participant in participants {
            self.cx.send_local(participant, Message::Discard { transaction });
        }
    }

    /// At the coordinator: a part is never shown, so nothing of the transaction is.
    pub(in crate::partition) fn on_part_unrecoverable(&mut self, from: Address, transaction: OperationId) {
        let Address::Partition { partition: participant, .. } = from else { return };
        // Lost by its origin before that died: no other part of it is ever shown either.
        let set = self.others.replication.applied.set(transaction.datacenter);
        let is_lost = set.is_some_and(|set| set.is_lost(transaction.position));
        if is_lost || self.others.replication.is_transaction_unrecoverable(transaction) {
            return self.cx.send_local(participant, Message::Discard { transaction });
        }
        if self.others.replication.applied.contains(transaction.datacenter, transaction.position) {
            return; // It was decided since it was asked, and the participant has forgotten its part.
        }
        if self.transactions.note_part_unrecoverable(transaction, participant) {
            self.discard_when_announced(transaction);
        }
    }

    /// At the coordinator: whether a part of the transaction, whose own entry waits for nothing more, is known to be
    /// gone; then it is discarded.
    pub(crate) fn discard_when_announced(&mut self, transaction: OperationId) -> bool {
        let Some(participants) = self.transactions.unrecoverable_participants(transaction) else {
            return false;
        };
        self.discard_transaction(transaction, &participants);
        true
    }

    /// A dead datacenter's stream has its end here: who waits for what stands after it waits no longer.
    pub(in crate::partition) fn end_stream(
        &mut self,
        datacenter: DatacenterId,
        end: Position,
        failed: DatacenterSet,
    ) {
        let unblocked = self.others.replication.applied.end(datacenter, end, failed);
        self.unblock(unblocked);
        let nowhere = (end, Position(u64::MAX));
        self.transactions
            .abandon_lost(self.cx, datacenter, nowhere, |transaction| Message::Discard { transaction });
        for transaction in self.transactions.awaited_of(datacenter) {
            self.transactions.await_parts(self.cx, self.others, transaction, &|_| true);
        }
        self.transactions.discard_orphans(self.cx, datacenter);
        for transaction in self.others.failover.failed.take_awaited(datacenter) {
            self.transactions.on_await_part(self.cx, self.others, self.keyspaces, transaction);
        }
    }
}
