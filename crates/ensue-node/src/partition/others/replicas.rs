//! Who waits until other datacenters have what it wrote, and how far these are.

use super::Others;
use crate::partition::cx::Cx;
use crate::partition::replication::replicas::{ReplicaWait, Wanted};
use crate::partition::replication::sender::Sender;
use bytes::Bytes;
use ensue_types::{DatacenterId, Dependency, Extent, Position, Reply, RequestId, Rule, limits};
use ensue_wire::{Address, Message};

impl Others {
    /// What every living datacenter has durably need not be kept for any of them.
    pub(in crate::partition) fn release_received(&mut self, cx: &mut Cx) {
        for origin in cx.journal.retained_of() {
            let of = |sender: &Sender| sender.applied(origin).1;
            let durable = match Rule::KeepForTheOthers.holds() {
                true => self.living_senders().map(of).min(),
                false => self.replication.sender(origin).map(of),
            };
            let received = self.replication.received(origin);
            // Alone, nobody else will want it.
            cx.journal.durable_at_all(origin, durable.unwrap_or(received), received);
        }
    }

    /// The other datacenters that were not declared dead, as the own stream sees them.
    pub(in crate::partition) fn living_senders(&self) -> impl Iterator<Item = &Sender> {
        let lives = |datacenter| !self.failover.failed.contains(datacenter);
        self.replication.senders().filter(move |(datacenter, _)| lives(*datacenter)).map(|(_, sender)| sender)
    }

    /// How many other datacenters are linked, and have received all that was written here but in the last so many
    /// milliseconds.
    pub(in crate::partition) fn followers(&self, cx: &Cx, lag_ms_max: u64) -> u64 {
        let follows = |sender: &&Sender| {
            sender.is_resumed() && self.replication.lag_ms(cx, sender.received()) <= lag_ms_max
        };
        self.living_senders().filter(follows).count() as u64
    }

    /// Whether one is linked, serves, and has received all that was written here but in the last so many milliseconds.
    pub(in crate::partition) fn is_followed_by(
        &self,
        cx: &Cx,
        datacenter: DatacenterId,
        lag_ms_max: u64,
    ) -> bool {
        let sender = self.replication.sender(datacenter).filter(|sender| sender.is_resumed());
        sender.is_some_and(|sender| self.replication.lag_ms(cx, sender.received()) <= lag_ms_max)
    }

    /// The position that every other datacenter has synced and applied: below it, the log need not be kept for the
    /// streams. What one has not applied is not in the copy that it gives to an empty directory.
    pub(in crate::partition) fn synced_by_all(&self, cx: &Cx) -> Position {
        if !Rule::KeepUntilSynced.holds() {
            return cx.position;
        }
        let has = |sender: &Sender| match Rule::KeepWhatCopiesLack.holds() {
            true => sender.synced().min(sender.applied(cx.datacenter).1),
            false => sender.synced(),
        };
        self.living_senders().map(has).min().unwrap_or(cx.position)
    }

    pub(in crate::partition) fn on_await_replicas(
        &mut self,
        cx: &mut Cx,
        from: Address,
        request: RequestId,
        wanted: Wanted,
        (datacenters, here): (u8, bool),
    ) {
        if self.refuse_lost_past(cx, from, request, &wanted) {
            return;
        }
        let since_us = cx.now.monotonic_us;
        let wait = ReplicaWait { request, wanted, datacenters, here, since_us };
        match self.is_reached(cx, &wait) {
            Some(reached) => {
                self.replication.forget_replica_wait(from, request.session);
                cx.send(from, reached);
            }
            None => self.replication.await_replicas(from, wait),
        }
    }

    /// The session's wait is over, or it is withdrawn: then this asks about nothing.
    pub(in crate::partition) fn on_count_replicas(
        &mut self,
        cx: &mut Cx,
        from: Address,
        request: RequestId,
        wanted: &Wanted,
    ) {
        if self.refuse_lost_past(cx, from, request, wanted) {
            return;
        }
        self.replication.forget_replica_wait(from, request.session);
        let (datacenters, here) = self.replicas(cx, wanted);
        cx.send(from, Message::ReplicasReached { request, datacenters, here });
    }

    /// What was lost with a dead datacenter no other holds; says whether that is so.
    fn refuse_lost_past(&mut self, cx: &mut Cx, from: Address, request: RequestId, wanted: &Wanted) -> bool {
        let Some(reply) = self.failover.discarded.lost_past(cx, &wanted.times) else {
            return false;
        };
        self.replication.forget_replica_wait(from, request.session);
        cx.send(from, Message::Refused { request, reply });
        true
    }

    pub(in crate::partition) fn answer_replica_waits(&mut self, cx: &mut Cx) {
        if self.replication.replica_wait_count() == 0 {
            return;
        }
        // Older than any wait may be: its session has certainly given up.
        let oldest = cx.now.monotonic_us.saturating_sub(1_000 * limits::CAUSAL_TIMEOUT_MS_MAX);
        for ((from, _), wait) in self.replication.take_replica_waits() {
            if self.refuse_lost_past(cx, from, wait.request, &wait.wanted) {
                continue;
            }
            match self.is_reached(cx, &wait) {
                Some(reached) => cx.send(from, reached),
                None if wait.since_us >= oldest => self.replication.await_replicas(from, wait),
                None => {}
            }
        }
    }

    /// The answer to a session that waits, if it waits no longer.
    fn is_reached(&self, cx: &Cx, wait: &ReplicaWait) -> Option<Message> {
        let (datacenters, here) = self.replicas(cx, &wait.wanted);
        let is_reached = datacenters >= wait.datacenters && (here || !wait.here);
        is_reached.then_some(Message::ReplicasReached { request: wait.request, datacenters, here })
    }

    /// How many datacenters, this one included, have durably applied all of this, and whether this one is among them.
    /// None, as far as is known here, while some of it has not even been received.
    pub(crate) fn replicas(&self, cx: &Cx, wanted: &Wanted) -> (u8, bool) {
        if !self.stable_time.times.received().covers_but(cx.datacenter, &wanted.times) {
            return (0, false);
        }
        let mut dependencies = wanted.dependencies.clone();
        dependencies.extend(self.replication.written_through(cx, &wanted.times));
        let has = |sender: &Sender, dependency: &Dependency| {
            debug_assert!(matches!(dependency.extent, Extent::Exact | Extent::Through));
            let (_, position) = sender.applied(dependency.operation.datacenter);
            position >= dependency.operation.position
        };
        let durable = |dependency: &Dependency| {
            let wanted = dependency.operation;
            self.replication
                .acknowledgements
                .applied_durably()
                .any(|(origin, _, position)| origin == wanted.datacenter && position >= wanted.position)
        };
        let here = dependencies.iter().all(durable);
        let elsewhere =
            self.living_senders().filter(|sender| dependencies.iter().all(|d| has(sender, d))).count();
        (u8::from(here) + elsewhere as u8, here)
    }

    /// Where the first own entry stands that some datacenter has not synced.
    pub(in crate::partition) fn move_stream_floor(&self, cx: &mut Cx) {
        let synced = self.synced_by_all(cx);
        cx.journal.move_stream_floor(synced, cx.position);
    }

    /// How far third datacenters have applied the stream of this one, as they said.
    pub(in crate::partition) fn applied_elsewhere(&self, origin: DatacenterId) -> Position {
        let thirds = self.living().filter(|third| *third != origin);
        let applied =
            thirds.filter_map(|third| self.replication.sender(third)).map(|third| third.applied(origin).1);
        applied.max().unwrap_or_default()
    }

    /// The refused datacenters that an operator wants to be looked at again.
    pub(in crate::partition) fn take_readmitted(&mut self) -> Vec<DatacenterId> {
        std::mem::take(&mut self.readmitted)
    }

    /// An operator wants a refused datacenter to be looked at again, which follows when this command is done.
    pub(in crate::partition) fn execute_readmit(&mut self, cx: &Cx, name: &Bytes) -> Reply {
        let Some(datacenter) = cx.config.topology.datacenter_named(name) else {
            return Reply::error("ERR there is no datacenter of this name");
        };
        self.readmitted.push(datacenter);
        Reply::OK
    }
}
