//! What goes with entries and heartbeats of other datacenters: their time.

use super::Others;
use crate::partition::cx::Cx;
use ensue_types::{DatacenterId, LogicalTime, Position, Rule, TimeVector};
use ensue_wire::{Address, Message};

impl Others {
    /// An entry with this stamp has been received: nothing below it follows.
    pub(in crate::partition) fn note_received(&mut self, origin: DatacenterId, time: LogicalTime) {
        let position = self.replication.received(origin);
        self.replication.note_progress(origin, position, time);
        self.stable_time.note_received(origin, position, time);
    }

    /// An entry with this stamp has been applied.
    pub(in crate::partition) fn note_applied(
        &mut self,
        origin: DatacenterId,
        position: Position,
        time: LogicalTime,
    ) {
        self.stable_time.note_applied(origin, position, self.replication.applied_through(origin), time);
        self.note_all_applied(origin);
    }

    /// Another datacenter has nothing to say but its time.
    pub(in crate::partition) fn on_heartbeat(
        &mut self,
        origin: DatacenterId,
        end: Position,
        time: LogicalTime,
    ) {
        let Some(receiver) = self.replication.receiver(origin) else { return };
        let order = Rule::HeartbeatsFollowEntries.holds();
        let (received, applied) = match order {
            true => (receiver.received(), self.replication.applied_through(origin)),
            false => (end, end),
        };
        self.stable_time.note_heartbeat(origin, (end, time), received, applied);
    }

    /// Whether everything that a datacenter stamped up to a time is here, as its acknowledgements say.
    pub(in crate::partition) fn has_all_until(&self, origin: DatacenterId, time: LogicalTime) -> bool {
        let received = self.replication.received(origin);
        self.replication.sender(origin).is_some_and(|sender| sender.has_ended_by(received, time))
    }

    /// A promise: the clock has passed whatever is logged, and what is stamped later lies above.
    pub(in crate::partition) fn send_heartbeat(&mut self, cx: &mut Cx, datacenter: DatacenterId) {
        if self.replication.knows(datacenter) && self.replication.may_close_time(datacenter) {
            cx.promise();
            self.stable_time.times.count_heartbeat();
            let message = Message::Heartbeat { end: cx.position };
            cx.send(Address::Partition { datacenter, partition: cx.id }, message);
        }
    }

    /// The link to a datacenter is down, which may be lost for good: what it is known to have said by then must outlive
    /// a restart.
    pub(in crate::partition) fn on_link_down(
        &mut self,
        cx: &mut Cx,
        datacenter: DatacenterId,
        is_serving: bool,
    ) {
        self.failover.failed.link_down(datacenter);
        cx.homes.on_link_down(datacenter);
        if let Some(sender) = self.replication.sender_mut(datacenter) {
            sender.on_link_down();
        }
        if is_serving {
            self.stable_time.times.close_times(cx);
        }
    }

    /// Whether there is nothing to wait for: it is here, or it was lost.
    pub(in crate::partition) fn is_settled_here(&self, cx: &Cx, times: &TimeVector) -> bool {
        self.stable_time.times.received().covers_but(cx.datacenter, times)
            || self.failover.discarded.loss_in(times).is_some()
    }
}
