//! The steps of a datacenter that is being removed, and what the others do at its end.

use super::Visibility;
use crate::partition::failover::discarded::GATHERER;
use crate::partition::failover::failed::Have;
use crate::partition::failover::retirement::{CLOSED, COMPLETE, EVERYTHING, SILENT};
use ensue_types::{DatacenterId, LogicalTime, PartitionId, Rule};
use ensue_wire::{Address, Message};

impl Visibility<'_> {
    /// Another partition of this datacenter says how far it is, partition 0 how far all are, or a datacenter says that
    /// it is being removed. Who hears of it within begins, too.
    pub(in crate::partition) fn on_retiring(&mut self, from: Address, step: u8) {
        let Address::Partition { datacenter, partition } = from else { return };
        if datacenter != self.cx.datacenter {
            return self.others.failover.retirement.note_other(datacenter);
        }
        self.others.begin_to_retire(self.cx);
        let retirement = &mut self.others.failover.retirement;
        if self.cx.id == GATHERER {
            retirement.note_report(partition, step, self.cx.config.topology.partitions);
        } else if partition == GATHERER {
            retirement.note_all(step);
        }
    }

    /// Comes to the next step, if it can, and says where it is. Everything is said again and again, at the pace of
    /// acknowledgements: somebody may have restarted.
    pub(in crate::partition) fn go_on_retiring(&mut self) {
        if !self.others.failover.retirement.is_begun() || self.others.is_catching_up() {
            return;
        }
        let interval_us = 1_000 * self.cx.config.tuning.acknowledge_interval_ms;
        if !self.others.failover.retirement.take_due(self.cx.now.monotonic_us, interval_us) {
            return;
        }
        let (step, partitions) = (self.retiring_step(), self.cx.config.topology.partitions);
        let retirement = &mut self.others.failover.retirement;
        retirement.note_step(step);
        if self.cx.id == GATHERER {
            retirement.note_report(GATHERER, step, partitions);
            let all = retirement.all();
            for partition in (1..partitions).map(PartitionId) {
                self.cx.send_local(partition, Message::Retiring { step: all });
            }
        } else {
            self.cx.send_local(GATHERER, Message::Retiring { step });
        }
        let is_over = step >= SILENT && self.others.failover.retirement.all() >= SILENT;
        for datacenter in self.others.living().collect::<Vec<_>>() {
            let to = Address::Partition { datacenter, partition: self.cx.id };
            self.cx.send(to, Message::Retiring { step });
            let is_due = is_over && !self.others.failover.retirement.is_acknowledged_by(datacenter);
            if is_due && self.others.replication.may_close_time(datacenter) {
                self.cx.promise();
                let (own, received) = (self.cx.datacenter, self.cx.position);
                let time = EVERYTHING;
                self.cx.send(to, Message::DatacenterFailed { datacenter: own, received, time, ended: None });
            }
        }
    }

    /// The last step whose conditions hold.
    fn retiring_step(&self) -> u8 {
        let (own, retirement) = (self.cx.datacenter, &self.others.failover.retirement);
        let is_durable = retirement.is_durable(self.cx.journal.log_synced());
        if !is_durable || !retirement.has_given() || self.transactions.has_open_of(own) {
            return 0;
        }
        // Of two the first goes first.
        let lives = |datacenter: &DatacenterId| !self.others.failover.failed.contains(*datacenter);
        let waits = retirement.others().filter(lives).any(|other| other < own);
        if retirement.all() < CLOSED || waits {
            return CLOSED;
        }
        let end = self.cx.position;
        let mut senders = self.others.living_senders();
        let have_all = senders.all(|sender| sender.applied(own).1 >= end);
        if !have_all && Rule::RetireWhenAllHaveIt.holds() {
            return CLOSED;
        }
        if retirement.all() < COMPLETE { COMPLETE } else { SILENT }
    }

    /// A datacenter says that its stream has ended, in good order, and the time. Who lacks something of it, since its
    /// own directory was lost, does not answer before it has that.
    pub(in crate::partition) fn on_retired(
        &mut self,
        datacenter: DatacenterId,
        said: Have,
        time: LogicalTime,
    ) {
        let lacks = self.others.replication.received(datacenter) < said.received;
        if said.time != EVERYTHING || lacks && Rule::RetireWhenAllHaveIt.holds() {
            return;
        }
        self.others.on_heartbeat(datacenter, said.received, time);
        self.keyspaces.declare_dead(self.cx, self.others, datacenter, said.time);
    }
}
