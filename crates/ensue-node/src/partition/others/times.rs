//! What goes with entries and heartbeats of other datacenters: their time.

use super::Others;
use crate::partition::cx::Cx;
use crate::partition::stable_time::times::PendingTime;
use ensue_types::{DatacenterId, LogicalTime, Position, Rule, TimeVector};
use ensue_wire::{Address, Message};

impl Others {
    /// An entry with this stamp has been received: nothing below it follows.
    pub(in crate::partition) fn note_received(&mut self, origin: DatacenterId, time: LogicalTime) {
        let position =
            self.replication.receivers.get(&origin).map(|receiver| receiver.received()).unwrap_or_default();
        self.replication.note_progress(origin, position, time);
        let mut rose = self.stable_time.times.received.raise(origin, time);
        let reached =
            self.stable_time.times.unreceived.get_mut(&origin).and_then(|waiting| waiting.reached(position));
        rose |= reached.is_some_and(|time| self.stable_time.times.received.raise(origin, time));
        self.stable_time.times_rose |= rose;
    }

    /// An entry with this stamp has been applied.
    pub(in crate::partition) fn note_applied(
        &mut self,
        origin: DatacenterId,
        position: Position,
        time: LogicalTime,
    ) {
        self.stable_time.times.note_logged(time);
        let watermark = self.replication.applied.set(origin).map(|set| set.watermark).unwrap_or_default();
        // Above the watermark something is missing that may have a lower stamp.
        let mut rose = watermark == position && self.stable_time.times.applied.raise(origin, time);
        let reached =
            self.stable_time.times.unapplied.get_mut(&origin).and_then(|waiting| waiting.reached(watermark));
        rose |= reached.is_some_and(|time| self.stable_time.times.applied.raise(origin, time));
        self.stable_time.times_rose |= rose;
        self.note_all_applied(origin);
    }

    /// Another datacenter has nothing to say but its time.
    pub(in crate::partition) fn on_heartbeat(
        &mut self,
        origin: DatacenterId,
        end: Position,
        time: LogicalTime,
    ) {
        let Some(receiver) = self.replication.receivers.get(&origin) else { return };
        let pending = PendingTime { end, time };
        let order = Rule::HeartbeatsFollowEntries.holds();
        let (received, applied) = match order {
            true => (
                receiver.received(),
                self.replication.applied.set(origin).map(|set| set.watermark).unwrap_or_default(),
            ),
            false => (end, end),
        };
        let times = &mut self.stable_time.times;
        let mut rose = false;
        for (here, vector, waiting) in [
            (received, &mut times.received, &mut times.unreceived),
            (applied, &mut times.applied, &mut times.unapplied),
        ] {
            if here >= end {
                rose |= vector.raise(origin, time);
            } else {
                waiting.entry(origin).or_default().add(pending);
            }
        }
        self.stable_time.times_rose |= rose;
    }

    /// A promise: the clock has passed whatever is logged, and what is stamped later lies above.
    pub(in crate::partition) fn send_heartbeat(&mut self, cx: &mut Cx, datacenter: DatacenterId) {
        if self.replication.senders.contains_key(&datacenter) {
            cx.promise();
            self.stable_time.times.heartbeats += 1;
            let message = Message::Heartbeat { end: cx.position };
            cx.send(Address::Partition { datacenter, partition: cx.id }, message);
        }
    }

    /// Whether there is nothing to wait for: it is here, or it was lost.
    pub(in crate::partition) fn is_settled_here(&self, cx: &Cx, times: &TimeVector) -> bool {
        self.stable_time.times.received.covers_but(cx.datacenter, times)
            || self.failover.discarded.loss_in(times).is_some()
    }
}
