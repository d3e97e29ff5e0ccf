//! Streams to and from the other datacenters, and who has what: resume, acknowledge, send, `CAUSAL WAIT`.

use super::Replication;
use super::progress::Progress;
use crate::partition::Partition;
use crate::partition::cx::Cx;
use crate::partition::keyspaces::Keyspaces;
use crate::partition::others::Others;
use crate::partition::transactions::Transactions;
use crate::partition::visibility::Visibility;
use bytes::Bytes;
use ensue_store::entry::{Change, Entry};
use ensue_store::layout;
use ensue_types::{
    DatacenterId, Dependency, Extent, LogicalTime, OperationId, Position, RequestId, Rule, SessionId,
    TimeVector, limits,
};
use ensue_types::{Opaque, Previous, Stamp};
use ensue_wire::{Address, Message, StreamAcknowledge};
use std::collections::BTreeMap;

/// Sessions that wait until enough datacenters have their past: one wait a session, which asks for one thing at a time.
pub(crate) type ReplicaWaits = BTreeMap<(Address, SessionId), ReplicaWait>;

/// What one of them waits for.
#[derive(Clone, Debug)]
pub(crate) struct ReplicaWait {
    request: RequestId,
    wanted: Wanted,
    datacenters: u8,
    since_us: u64,
}

/// A session's past in this partition: operations, or all that each datacenter wrote up to a time.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub dependencies: Vec<Dependency>,
    pub times: TimeVector,
}

impl Transactions {
    /// The last position that may be sent: a decision leaves when it is durable.
    pub(in crate::partition) fn stream_end(&self, cx: &Cx) -> Position {
        self.first_unsynced_decision().map_or(cx.position, |first| Position(first.0 - 1))
    }
}

impl Replication {
    /// A stream has come to this place, with an entry of this time.
    pub(in crate::partition) fn note_progress(
        &mut self,
        origin: DatacenterId,
        position: Position,
        time: LogicalTime,
    ) {
        if self.keeps_progress {
            let before = || Progress::after(Position(position.0.saturating_sub(1)));
            self.progress.entry(origin).or_insert_with(before).come(position, time);
        }
    }

    /// Entries went to a datacenter: they carry the time as a heartbeat does.
    fn spoke(&mut self, datacenter: DatacenterId, now_us: u64) {
        self.spoke_us.insert(datacenter, now_us);
    }

    /// Encodes an entry at the next position of the own stream, which it takes.
    pub(crate) fn next_entry(
        &mut self,
        cx: &mut Cx,
        stamp: Stamp,
        dependencies: Opaque,
        change: Change,
        previous: Vec<Previous>,
    ) -> Bytes {
        cx.position = cx.position.next();
        self.note_progress(cx.datacenter, cx.position, stamp.time);
        layout::encode_entry(&Entry { position: cx.position, stamp, dependencies, change, previous })
    }
}

impl Replication {
    fn send_streams(&mut self, cx: &mut Cx, end: Position) {
        let window = cx.config.tuning.stream_window_bytes;
        // At the end of most turns nobody does.
        let wanting = self.senders.iter().filter(|(_, sender)| sender.wants(end, window).is_some());
        let wanting: Vec<DatacenterId> = wanting.map(|(datacenter, _)| *datacenter).collect();
        for datacenter in wanting {
            while self.send_batch(cx, datacenter, end) {}
        }
    }

    /// Sends one batch; says whether another may follow.
    pub(crate) fn send_batch(&mut self, cx: &mut Cx, datacenter: DatacenterId, end: Position) -> bool {
        let tuning = &cx.config.tuning;
        let (window, batch) = (tuning.stream_window_bytes, tuning.stream_batch_entries);
        let Some(sender) = self.senders.get_mut(&datacenter) else { return false };
        let Some(first) = sender.wants(end, window) else { return false };
        let mut entries = Vec::new();
        let mut position = first;
        while entries.len() < batch && sender.wants(end, window) == Some(position) {
            let Some(entry) = cx.journal.entry_in_memory(position) else { break };
            let next = self.applied.next(cx.datacenter, position);
            sender.sent(position, next, entry.len());
            entries.push(entry);
            if next != position.next() {
                break;
            }
            position = next;
        }
        if entries.is_empty() {
            sender.reading = true;
            cx.journal.read_entries_from(datacenter, first);
            return false;
        }
        let to = Address::Partition { datacenter, partition: cx.id };
        let incarnation = first.incarnation();
        self.spoke(datacenter, cx.now.monotonic_us);
        cx.send(to, Message::StreamEntries { incarnation, first, entries });
        true
    }

    /// Entries of the log that memory no longer holds have been read for a datacenter that lags.
    pub(in crate::partition) fn on_entries_read(
        &mut self,
        cx: &mut Cx,
        datacenter: DatacenterId,
        read: Vec<(Position, bytes::Bytes)>,
        end: Position,
    ) {
        let Some(sender) = self.senders.get_mut(&datacenter) else { return };
        sender.reading = false;
        let Some(mut next) = sender.wants(end, usize::MAX) else { return };
        let first = next;
        let mut entries = Vec::new();
        for (position, entry) in read.into_iter().filter(|(position, _)| *position <= end) {
            if position == next {
                let after = self.applied.next(cx.datacenter, position);
                sender.sent(position, after, entry.len());
                entries.push(entry);
                next = position.next();
            }
        }
        if !entries.is_empty() {
            let to = Address::Partition { datacenter, partition: cx.id };
            let incarnation = first.incarnation();
            cx.send(to, Message::StreamEntries { incarnation, first, entries });
        }
        self.send_streams(cx, end);
    }

    /// What each datacenter wrote in this partition up to a time.
    fn written_through(&self, cx: &Cx, times: &TimeVector) -> impl Iterator<Item = Dependency> {
        times.entries().filter(|(_, time)| *time != LogicalTime::ZERO).filter_map(|(datacenter, time)| {
            let position = match (self.progress.get(&datacenter), self.receivers.get(&datacenter)) {
                (Some(progress), _) => progress.through(time),
                // All of it came before the last restart.
                (None, Some(receiver)) => receiver.received(),
                (None, None) => cx.position,
            };
            let (incarnation, partition) = (position.incarnation(), cx.id);
            let operation = OperationId { datacenter, incarnation, partition, position };
            (position != Position(0)).then_some(Dependency { operation, extent: Extent::Through })
        })
    }
}

impl Others {
    /// What every living datacenter has durably need not be kept for any of them.
    pub(in crate::partition) fn let_go_of_received(&mut self, cx: &mut Cx) {
        for origin in cx.journal.retained_of() {
            let of = |sender: &crate::partition::replication::sender::Sender| sender.applied(origin).1;
            let durable = match Rule::KeepForTheOthers.holds() {
                true => self.living_senders().map(of).min(),
                false => self.replication.senders.get(&origin).map(of),
            };
            let received = self
                .replication
                .receivers
                .get(&origin)
                .map(|receiver| receiver.received())
                .unwrap_or_default();
            // Alone, nobody else will want it.
            cx.journal.durable_everywhere(origin, durable.unwrap_or(received), received);
        }
    }

    /// The other datacenters that were not declared dead, as the own stream sees them.
    pub(in crate::partition) fn living_senders(
        &self,
    ) -> impl Iterator<Item = &crate::partition::replication::sender::Sender> {
        self.replication
            .senders
            .iter()
            .filter(|(datacenter, _)| !self.failover.dead.contains(**datacenter))
            .map(|(_, sender)| sender)
    }

    /// The position that every other datacenter has synced: below it, the log need not be kept for the streams.
    pub(in crate::partition) fn synced_everywhere(&self, cx: &Cx) -> Position {
        if !Rule::KeepUntilSynced.holds() {
            return cx.position;
        }
        self.living_senders().map(|sender| sender.synced()).min().unwrap_or(cx.position)
    }

    pub(in crate::partition) fn on_await_replicas(
        &mut self,
        cx: &mut Cx,
        from: Address,
        request: RequestId,
        wanted: Wanted,
        datacenters: u8,
    ) {
        if self.refuse_lost_past(cx, from, request, &wanted) {
            return;
        }
        let (since_us, has) = (cx.now.monotonic_us, self.replicas(cx, &wanted));
        if has >= datacenters {
            self.replication.replica_waits.remove(&(from, request.session));
            return cx.send(from, Message::ReplicasReached { request, datacenters: has });
        }
        let wait = ReplicaWait { request, wanted, datacenters, since_us };
        self.replication.replica_waits.insert((from, request.session), wait);
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
        self.replication.replica_waits.remove(&(from, request.session));
        let datacenters = self.replicas(cx, wanted);
        cx.send(from, Message::ReplicasReached { request, datacenters });
    }

    /// What was lost with a dead datacenter no other holds; says whether that is so.
    fn refuse_lost_past(&mut self, cx: &mut Cx, from: Address, request: RequestId, wanted: &Wanted) -> bool {
        let Some(reply) = self.failover.discarded.lost_past(cx, &wanted.times) else {
            return false;
        };
        self.replication.replica_waits.remove(&(from, request.session));
        cx.send(from, Message::Refused { request, reply });
        true
    }

    pub(in crate::partition) fn answer_replica_waits(&mut self, cx: &mut Cx) {
        if self.replication.replica_waits.is_empty() {
            return;
        }
        // Older than any wait may be: its session has certainly given up.
        let oldest = cx.now.monotonic_us.saturating_sub(1_000 * limits::CAUSAL_TIMEOUT_MS_MAX);
        for ((from, session), wait) in std::mem::take(&mut self.replication.replica_waits) {
            if self.refuse_lost_past(cx, from, wait.request, &wait.wanted) {
                continue;
            }
            let datacenters = self.replicas(cx, &wait.wanted);
            if datacenters >= wait.datacenters {
                cx.send(from, Message::ReplicasReached { request: wait.request, datacenters });
            } else if wait.since_us >= oldest {
                self.replication.replica_waits.insert((from, session), wait);
            }
        }
    }

    /// How many datacenters, this one included, have durably applied all of this. None, as far as is known here, while some of
    /// it has not even been received.
    pub(crate) fn replicas(&self, cx: &Cx, wanted: &Wanted) -> u8 {
        if !self.stable_time.times.received.covers_but(cx.datacenter, &wanted.times) {
            return 0;
        }
        let mut dependencies = wanted.dependencies.clone();
        dependencies.extend(self.replication.written_through(cx, &wanted.times));
        let has = |sender: &crate::partition::replication::sender::Sender, dependency: &Dependency| {
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
        let here = u8::from(dependencies.iter().all(durable));
        let elsewhere =
            self.living_senders().filter(|sender| dependencies.iter().all(|d| has(sender, d))).count();
        here + elsewhere as u8
    }
}

impl Visibility<'_> {
    /// Sends what the windows have room for, up to the last position that may be sent.
    pub(crate) fn replicate(&mut self) {
        let end = self.transactions.stream_end(self.cx);
        self.others.replication.send_streams(self.cx, end);
    }
}

impl Keyspaces {
    /// Tells a datacenter what has been received, synced and applied here.
    pub(crate) fn acknowledge(&self, cx: &mut Cx, others: &mut Others, datacenter: DatacenterId) {
        let Some(receiver) = others.replication.receivers.get(&datacenter) else { return };
        let acknowledge = StreamAcknowledge {
            incarnation: receiver.received().incarnation(),
            received: receiver.received(),
            synced: receiver.synced(),
            applied: others.replication.acknowledgements.applied_durably().collect(),
            end: cx.position,
        };
        let to = Address::Partition { datacenter, partition: cx.id };
        // Every entry that is yet to come in the own stream has a higher stamp than this acknowledgement's time: what
        // waits for a decision or its turn may have drawn, or be given, one below the clock.
        let now = cx.promise();
        let floor = match self.order.earliest() {
            // A part that was lost comes with the time of its decision, which is not known before it comes.
            _ if others.awaits_lost_parts(cx) => LogicalTime::ZERO,
            Some(earliest) => now.min(LogicalTime(earliest.0.saturating_sub(1))),
            None => now,
        };
        cx.send_at(floor, to, Message::StreamAcknowledge(acknowledge));
        others.ahead.say_whether_ahead(cx, datacenter);
    }
}

impl Visibility<'_> {
    /// Tells a datacenter where its stream shall go on.
    pub(in crate::partition) fn resume_stream(&mut self, datacenter: DatacenterId) {
        if self.others.failover.dead.contains(datacenter) {
            // From itself nothing is taken any more.
            return self.settle_stream(datacenter);
        }
        let Some(receiver) = self.others.replication.receivers.get(&datacenter) else { return };
        let received = receiver.received();
        let incarnation = received.incarnation();
        let to = Address::Partition { datacenter, partition: self.cx.id };
        self.cx.send(to, Message::StreamResume { incarnation, received });
        self.keyspaces.acknowledge(self.cx, self.others, datacenter);
    }
}

impl Partition {
    pub(in crate::partition) fn on_stream_resume(&mut self, datacenter: DatacenterId, received: Position) {
        if received > self.cx.position {
            return self.refuse_claim(datacenter, received);
        }
        let from = if Rule::ResumeWhereItStopped.holds() { received } else { self.cx.position };
        // One that has what was declared lost is sent the declaration, and stops at it.
        let next = self.others.replication.applied.next(self.cx.datacenter, from);
        if let Some(sender) = self.others.replication.senders.get_mut(&datacenter) {
            sender.on_resume(from, next);
        }
        // It may have lost its tail: it needs to know where this stream ends.
        self.keyspaces.acknowledge(&mut self.cx, &mut self.others, datacenter);
        self.visibility().replicate();
    }

    /// A datacenter acknowledges, or wants to go on behind, what was never sent. When it introduced itself it had
    /// less: it is wrong.
    fn refuse_claim(&mut self, datacenter: DatacenterId, received: Position) {
        let name = self.cx.name_of(datacenter);
        let reason = format!(
            "{name} says that it has received this partition's stream up to position {received}, which ends at {}",
            self.cx.position
        );
        self.refuse_peer(datacenter, reason);
    }

    pub(in crate::partition) fn on_stream_acknowledge(
        &mut self,
        datacenter: DatacenterId,
        acknowledge: &StreamAcknowledge,
        clock: LogicalTime,
    ) {
        let Some(sender) = self.others.replication.senders.get_mut(&datacenter) else { return };
        if acknowledge.received > self.cx.position {
            return self.refuse_claim(datacenter, acknowledge.received);
        }
        sender.on_acknowledge(acknowledge, clock);
        self.others.let_go_of_received(&mut self.cx);
        self.others.note_end(&self.cx, datacenter, acknowledge.end, clock);
        self.others.answer_replica_waits(&mut self.cx);
        self.visibility().replicate();
    }
}
