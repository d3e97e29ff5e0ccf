//! What other datacenters are told of how far their streams are here, and the ceilings of branches with it.

use super::Keyspaces;
use crate::partition::cx::Cx;
use crate::partition::others::Others;
use ensue_types::{DatacenterId, LogicalTime, Position};
use ensue_wire::{Address, Message, StreamAcknowledge};

impl Keyspaces {
    pub(in crate::partition) fn send_acknowledgements(&self, cx: &mut Cx, others: &mut Others) {
        for datacenter in others.replication.take_due_acknowledgements(cx) {
            self.acknowledge(cx, others, datacenter);
        }
    }

    /// Tells a datacenter what has been received, synced and applied here.
    pub(crate) fn acknowledge(&self, cx: &mut Cx, others: &mut Others, datacenter: DatacenterId) {
        let Some(receiver) = others.replication.receiver(datacenter) else { return };
        let now = cx.promise();
        // Of who has written nothing there is nothing to say, and the receiver may not know that datacenter yet.
        let applied = others.replication.acknowledgements.applied_durably();
        let applied = applied.filter(|(_, _, position)| *position > Position(0)).collect();
        let acknowledge = StreamAcknowledge {
            incarnation: receiver.received().incarnation(),
            received: receiver.received(),
            synced: receiver.synced(),
            applied,
            end: cx.position,
            // No more is known of one that has failed: its time counts as told for ever.
            shown: others.replication.acknowledgements.shown_durably().min(now),
        };
        let to = Address::Partition { datacenter, partition: cx.id };
        // Every entry that is yet to come in the own stream has a higher stamp than this acknowledgement's time: what
        // waits for a decision or its turn may have drawn, or be given, one below the clock.
        let floor = match self.order.earliest() {
            // A part that was lost comes with the time of its decision, which is not known before it comes.
            _ if others.awaits_lost_parts(cx) => LogicalTime::ZERO,
            // Nor is what this directory lacks if it is an old copy.
            _ if !others.replication.may_close_time(datacenter) => LogicalTime::ZERO,
            Some(earliest) => now.min(LogicalTime(earliest.0.saturating_sub(1))),
            None => now,
        };
        cx.send_at(floor, to, Message::StreamAcknowledge(acknowledge));
        others.ahead.report_whether_ahead(cx, datacenter);
    }
}
