//! What is known of failed datacenters beside their streams and times: who lives, what survivors tell each other, and
//! what was discarded.

use super::Others;
use crate::partition::cx::Cx;
use crate::partition::failover::failed::{Have, state_hash};
use ensue_store::entry::{Change, Entry};
use ensue_types::{DatacenterId, LogicalTime, Position, Reply};
use ensue_wire::{Address, Envelope, Message};

impl Others {
    /// Whether a datacenter that was not declared dead is cut off from here.
    pub(in crate::partition) fn is_cut_off(&self) -> bool {
        let failed = &self.failover.failed;
        self.replication.datacenters().any(|other| !failed.contains(other) && !failed.is_linked(other))
    }

    /// The other datacenters that were not declared dead.
    pub(crate) fn living(&self) -> impl Iterator<Item = DatacenterId> {
        self.replication.datacenters().filter(|datacenter| !self.failover.failed.contains(*datacenter))
    }

    /// A hash of what was received of a datacenter, whether a link to it is up, and whether it was declared dead.
    pub(in crate::partition) fn state_of(&self, cx: &Cx, datacenter: DatacenterId) -> Reply {
        let received = self.replication.received(datacenter);
        let time = self.stable_time.times.received().at(datacenter);
        let state =
            state_hash([&cx.id.0.to_le_bytes()[..], &received.0.to_le_bytes(), &time.0.to_le_bytes()]);
        let linked = self.failover.failed.is_linked(datacenter);
        let flags =
            [linked, self.failover.failed.contains(datacenter)].map(|flag| Reply::Integer(i64::from(flag)));
        Reply::Array([Reply::bulk(format!("{state:016x}"))].into_iter().chain(flags).collect())
    }

    /// Of several the deaths are said first, and then how much there is of each: that counts only from who is known to
    /// know of all.
    pub(in crate::partition) fn report_all_failed_to(&self, cx: &mut Cx, survivor: DatacenterId) {
        let told = self.failover.failed.reported();
        let times = told.len().min(2);
        for datacenter in told.repeat(times) {
            self.report_failed_to(cx, survivor, datacenter);
        }
    }

    pub(in crate::partition) fn report_failed_to(
        &self,
        cx: &mut Cx,
        to: DatacenterId,
        datacenter: DatacenterId,
    ) {
        let Some(have) = self.have_of(datacenter) else { return };
        let to = Address::Partition { datacenter: to, partition: cx.id };
        let Have { received, time, ended } = have;
        cx.send(to, Message::DatacenterFailed { datacenter, received, time, ended });
    }

    pub(in crate::partition) fn have_of(&self, datacenter: DatacenterId) -> Option<Have> {
        let time = self.failover.failed.known_until(datacenter)?;
        let received = self.replication.receiver(datacenter)?.received();
        Some(Have { received, time, ended: self.failover.failed.end(datacenter).map(|end| end.failed) })
    }

    /// A survivor lacks the end of a dead datacenter's stream.
    pub(in crate::partition) fn on_pass_on(
        &mut self,
        cx: &mut Cx,
        to: DatacenterId,
        origin: DatacenterId,
        after: Position,
    ) {
        if !self.failover.failed.contains(origin) {
            return;
        }
        cx.journal.read_to_pass_on(to, origin, after);
        self.replication.read_old_entries(cx);
    }

    /// Whatever a dead datacenter still says is not heard; it is told what it is.
    pub(in crate::partition) fn is_from_the_dead(&self, cx: &mut Cx, envelope: &Envelope) -> bool {
        let from = envelope.from.datacenter();
        if !self.failover.failed.contains(from) {
            return false;
        }
        let is_told = matches!(
            envelope.message,
            Message::StreamResume { .. }
                | Message::TailFetch { .. }
                | Message::StreamEntries { .. }
                | Message::Introduce(_)
        );
        // It says that it has ended until it is answered, which rests on what is durable here.
        let has_ended = matches!(envelope.message, Message::DatacenterFailed { .. });
        if is_told || has_ended && self.failover.failed.is_reported(from) {
            self.report_failed_to(cx, from, from);
        }
        true
    }

    /// When nothing of a dead datacenter waits here any more, its time counts as applied for ever, too.
    pub(in crate::partition) fn note_all_applied(&mut self, datacenter: DatacenterId) {
        if self.failover.discarded.loss_of(datacenter).is_none() {
            return;
        }
        let applied = self.replication.applied_through(datacenter);
        if self.replication.receiver(datacenter).is_some_and(|receiver| receiver.received() <= applied) {
            self.stable_time.raise_applied(datacenter, LogicalTime::MAX);
        }
    }

    /// A checkpoint, or the log, names a discarded write.
    pub(in crate::partition) fn restore_discarded(&mut self, cx: &Cx, lost: DatacenterId, entry: Entry) {
        if lost == entry.stamp.datacenter && !cx.protocol(entry.keyspace()).goes_by_times() {
            return self.take_unrecoverable(cx, entry);
        }
        if let Change::Effects { transaction: Some(operation), .. } = entry.change {
            self.failover.discarded.add(lost, operation, entry);
        }
    }

    /// An entry of a dead datacenter's stream is gone.
    pub(in crate::partition) fn take_unrecoverable(&mut self, cx: &Cx, entry: Entry) {
        let (origin, position) = (entry.stamp.datacenter, entry.position);
        self.replication.applied.discard(origin, position);
        let operation = cx.name_at(origin, position);
        self.failover.discarded.add_unrecoverable(operation, entry);
    }
}
