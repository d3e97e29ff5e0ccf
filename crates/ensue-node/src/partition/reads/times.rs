//! What partitions tell each other of the times that they have and want: heartbeats, and the rounds of stabilization.

use super::Reads;
use crate::partition::cx::Cx;
use crate::partition::keyspaces::Keyspaces;
use crate::partition::others::Others;
use crate::partition::stable_time::times::GATHERER;
use ensue_types::{DatacenterId, LogicalTime, Rule, TimeVector};
use ensue_wire::{Address, Message};

impl Reads {
    /// Tells the others the time, and partition 0 what has been received, if it is time to.
    pub(in crate::partition) fn report_times(
        &self,
        cx: &mut Cx,
        others: &mut Others,
        keyspaces: &mut Keyspaces,
    ) {
        let now_us = cx.now.monotonic_us;
        if others.stable_time.times.are_heartbeats_due(now_us) {
            self.send_heartbeats(cx, others, now_us);
        }
        if others.stable_time.times.begin_round(now_us) {
            self.report_stabilization(cx, others, keyspaces);
        }
    }

    /// To those that have heard nothing for an interval. The next are due when the first of them will not have.
    fn send_heartbeats(&self, cx: &mut Cx, others: &mut Others, now_us: u64) {
        let interval_us = 1_000 * cx.config.tuning.heartbeat_interval_ms;
        let mut next_us = now_us + interval_us;
        let mut silent: Vec<DatacenterId> = Vec::new();
        for (datacenter, _) in others.replication.senders().filter(|(_, sender)| sender.is_resumed()) {
            match others.replication.spoke_us(datacenter) {
                Some(spoke_us) if spoke_us + interval_us > now_us => {
                    next_us = next_us.min(spoke_us + interval_us)
                }
                _ => silent.push(datacenter),
            }
        }
        others.stable_time.times.next_heartbeats_at(next_us);
        silent.into_iter().for_each(|datacenter| others.send_heartbeat(cx, datacenter));
        self.request_times(cx, others);
    }

    /// Asks the datacenters that reads here wait for to move past what is waited for: their clocks may be behind (trap
    /// 39).
    fn request_times(&self, cx: &mut Cx, others: &Others) {
        let wanted = self.blocked.wanted_times(cx);
        for (datacenter, time) in wanted.entries() {
            let behind = time > others.stable_time.times.received().at(datacenter)
                || time > others.stable_time.times.applied().at(datacenter);
            if behind && !others.failover.failed.contains(datacenter) && others.replication.knows(datacenter)
            {
                cx.send_at(time, Address::Partition { datacenter, partition: cx.id }, Message::AskTime);
            }
        }
    }

    /// What this partition has received, and what it may still read.
    fn report_stabilization(&self, cx: &mut Cx, others: &mut Others, keyspaces: &mut Keyspaces) {
        let now = cx.promise();
        let received = others.stable_time.times.received().clone();
        let floor = self.own_floor(cx, others, now);
        keyspaces.forget_after_reads(cx, others);
        let globally_stable = others.stable_time.globally_stable.own_partition(cx);
        cx.send_local(GATHERER, Message::StabilizationReport { received, floor, globally_stable });
        others.stable_time.times.report_proven(cx);
        if cx.id == GATHERER {
            others.stable_time.notify_stable(cx);
        }
    }

    /// The lowest cut that is read at from here, or may be.
    pub(in crate::partition) fn own_floor(&self, cx: &Cx, others: &Others, now: LogicalTime) -> TimeVector {
        let stability = others.stable_time.times.stability(cx, now);
        let versioned = cx.protocols.iter().filter(|protocol| protocol.needs().snapshot_vectors);
        let lowest = versioned.map(|protocol| protocol.floor(&stability)).reduce(|mut lowest, floor| {
            lowest.meet(&floor);
            lowest
        });
        let mut floor = lowest.unwrap_or_default();
        if Rule::FoldBelowEveryCut.holds() {
            self.snapshot_reads.snapshots().for_each(|snapshot| floor.meet(snapshot));
        }
        floor
    }
}
