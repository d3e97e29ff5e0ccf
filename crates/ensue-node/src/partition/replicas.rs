//! Streams to and from the other datacenters, and who has what: resume, acknowledge, send, `CAUSAL WAIT`.

use super::Partition;
use ensue_types::{
    DatacenterId, Dependency, Extent, LogicalTime, OperationId, Position, RequestId, Rule, SessionId,
    TimeVector, limits,
};
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

impl Partition {
    /// Tells a datacenter where its stream shall go on.
    pub(super) fn resume_stream(&mut self, datacenter: DatacenterId) {
        if self.dead.contains(datacenter) {
            // From itself nothing is taken any more.
            return self.settle_stream(datacenter);
        }
        let Some(receiver) = self.receivers.get(&datacenter) else { return };
        let received = receiver.received();
        let incarnation = received.incarnation();
        let to = Address::Partition { datacenter, partition: self.id };
        self.send(to, Message::StreamResume { incarnation, received });
        self.acknowledge(datacenter);
    }

    pub(super) fn on_stream_resume(&mut self, datacenter: DatacenterId, received: Position) {
        if received > self.position {
            return self.refuse_claim(datacenter, received);
        }
        let from = if self.config.rules.hold(Rule::ResumeWhereItStopped) { received } else { self.position };
        // One that has what was declared lost is sent the declaration, and stops at it.
        let next = self.applied.next(self.datacenter, from);
        if let Some(sender) = self.senders.get_mut(&datacenter) {
            sender.on_resume(from, next);
        }
        // It may have lost its tail: it needs to know where this stream ends.
        self.acknowledge(datacenter);
        self.send_streams();
    }

    /// A datacenter acknowledges, or wants to go on behind, what was never sent. When it introduced itself it had
    /// less: it is wrong.
    fn refuse_claim(&mut self, datacenter: DatacenterId, received: Position) {
        let name = self.name_of(datacenter);
        let reason = format!(
            "{name} says that it has received this partition's stream up to position {received}, which ends at {}",
            self.position
        );
        self.refuse_peer(datacenter, reason);
    }

    pub(super) fn on_stream_acknowledge(
        &mut self,
        datacenter: DatacenterId,
        acknowledge: &StreamAcknowledge,
        clock: LogicalTime,
    ) {
        let Some(sender) = self.senders.get_mut(&datacenter) else { return };
        if acknowledge.received > self.position {
            return self.refuse_claim(datacenter, acknowledge.received);
        }
        sender.on_acknowledge(acknowledge, clock);
        self.let_go_of_received();
        self.note_end(datacenter, acknowledge.end, clock);
        self.answer_replica_waits();
        self.send_streams();
    }

    /// What every living datacenter has durably need not be kept for any of them.
    pub(super) fn let_go_of_received(&mut self) {
        for origin in self.persistence.retained_of() {
            let of = |sender: &crate::stream::sender::Sender| sender.applied(origin).1;
            let durable = match self.config.rules.hold(Rule::KeepForTheOthers) {
                true => self.living_senders().map(of).min(),
                false => self.senders.get(&origin).map(of),
            };
            let received =
                self.receivers.get(&origin).map(|receiver| receiver.received()).unwrap_or_default();
            // Alone, nobody else will want it.
            self.persistence.durable_everywhere(origin, durable.unwrap_or(received), received);
        }
    }

    /// The other datacenters that were not declared dead, as the own stream sees them.
    pub(crate) fn living_senders(&self) -> impl Iterator<Item = &crate::stream::sender::Sender> {
        self.senders
            .iter()
            .filter(|(datacenter, _)| !self.dead.contains(**datacenter))
            .map(|(_, sender)| sender)
    }

    /// Sends what the windows have room for.
    pub(crate) fn send_streams(&mut self) {
        let (end, window) = (self.stream_end(), self.config.tuning.stream_window_bytes);
        // At the end of most turns nobody does.
        let wanting = self.senders.iter().filter(|(_, sender)| sender.wants(end, window).is_some());
        let wanting: Vec<DatacenterId> = wanting.map(|(datacenter, _)| *datacenter).collect();
        for datacenter in wanting {
            while self.send_batch(datacenter) {}
        }
    }

    /// Sends one batch; says whether another may follow.
    fn send_batch(&mut self, datacenter: DatacenterId) -> bool {
        let tuning = &self.config.tuning;
        let (window, batch) = (tuning.stream_window_bytes, tuning.stream_batch_entries);
        let end = self.stream_end();
        let Some(sender) = self.senders.get_mut(&datacenter) else { return false };
        let Some(first) = sender.wants(end, window) else { return false };
        let mut entries = Vec::new();
        let mut position = first;
        while entries.len() < batch && sender.wants(end, window) == Some(position) {
            let Some(entry) = self.persistence.entry_in_memory(position) else { break };
            let next = self.applied.next(self.datacenter, position);
            sender.sent(position, next, entry.len());
            entries.push(entry);
            if next != position.next() {
                break;
            }
            position = next;
        }
        if entries.is_empty() {
            sender.reading = true;
            self.persistence.read_entries_from(datacenter, first);
            return false;
        }
        let to = Address::Partition { datacenter, partition: self.id };
        let incarnation = first.incarnation();
        self.times.spoke(datacenter, self.now.monotonic_us);
        self.send(to, Message::StreamEntries { incarnation, first, entries });
        true
    }

    /// Entries of the log that memory no longer holds have been read for a datacenter that lags.
    pub(super) fn on_entries_read(&mut self, datacenter: DatacenterId, read: Vec<(Position, bytes::Bytes)>) {
        let end = self.stream_end();
        let Some(sender) = self.senders.get_mut(&datacenter) else { return };
        sender.reading = false;
        let Some(mut next) = sender.wants(end, usize::MAX) else { return };
        let first = next;
        let mut entries = Vec::new();
        for (position, entry) in read.into_iter().filter(|(position, _)| *position <= end) {
            if position == next {
                let after = self.applied.next(self.datacenter, position);
                sender.sent(position, after, entry.len());
                entries.push(entry);
                next = position.next();
            }
        }
        if !entries.is_empty() {
            let to = Address::Partition { datacenter, partition: self.id };
            let incarnation = first.incarnation();
            self.send(to, Message::StreamEntries { incarnation, first, entries });
        }
        self.send_streams();
    }

    /// Tells a datacenter what has been received, synced and applied here.
    pub(super) fn acknowledge(&mut self, datacenter: DatacenterId) {
        let Some(receiver) = self.receivers.get(&datacenter) else { return };
        let acknowledge = StreamAcknowledge {
            incarnation: receiver.received().incarnation(),
            received: receiver.received(),
            synced: receiver.synced(),
            applied: self.persistence.applied_durably().collect(),
            end: self.position,
        };
        let to = Address::Partition { datacenter, partition: self.id };
        // Every entry that is yet to come in the own stream has a higher stamp than this acknowledgement's time: what
        // waits for a decision or its turn may have drawn, or be given, one below the clock.
        let now = self.promise();
        let floor = match self.order.earliest() {
            // A part that was lost comes with the time of its decision, which is not known before it comes.
            _ if self.awaits_lost_parts() => LogicalTime::ZERO,
            Some(earliest) => now.min(LogicalTime(earliest.0.saturating_sub(1))),
            None => now,
        };
        self.send_at(floor, to, Message::StreamAcknowledge(acknowledge));
        self.say_whether_ahead(datacenter);
    }

    /// The last position that may be sent: a decision leaves when it is durable.
    fn stream_end(&self) -> Position {
        self.transactions.first_unsynced_decision().map_or(self.position, |first| Position(first.0 - 1))
    }

    /// The position that every other datacenter has synced: below it, the log need not be kept for the streams.
    pub(crate) fn synced_everywhere(&self) -> Position {
        if !self.config.rules.hold(Rule::KeepUntilSynced) {
            return self.position;
        }
        self.living_senders().map(|sender| sender.synced()).min().unwrap_or(self.position)
    }

    pub(super) fn on_await_replicas(
        &mut self,
        from: Address,
        request: RequestId,
        wanted: Wanted,
        datacenters: u8,
    ) {
        if self.refuse_lost_past(from, request, &wanted) {
            return;
        }
        let (since_us, has) = (self.now.monotonic_us, self.replicas(&wanted));
        if has >= datacenters {
            self.replica_waits.remove(&(from, request.session));
            return self.send(from, Message::ReplicasReached { request, datacenters: has });
        }
        let wait = ReplicaWait { request, wanted, datacenters, since_us };
        self.replica_waits.insert((from, request.session), wait);
    }

    /// The session's wait is over, or it is withdrawn: then this asks about nothing.
    pub(super) fn on_count_replicas(&mut self, from: Address, request: RequestId, wanted: &Wanted) {
        if self.refuse_lost_past(from, request, wanted) {
            return;
        }
        self.replica_waits.remove(&(from, request.session));
        let datacenters = self.replicas(wanted);
        self.send(from, Message::ReplicasReached { request, datacenters });
    }

    /// What was lost with a dead datacenter no other holds; says whether that is so.
    fn refuse_lost_past(&mut self, from: Address, request: RequestId, wanted: &Wanted) -> bool {
        let Some(reply) = self.lost_past(&wanted.times) else { return false };
        self.replica_waits.remove(&(from, request.session));
        self.send(from, Message::Refused { request, reply });
        true
    }

    pub(super) fn answer_replica_waits(&mut self) {
        if self.replica_waits.is_empty() {
            return;
        }
        // Older than any wait may be: its session has certainly given up.
        let oldest = self.now.monotonic_us.saturating_sub(1_000 * limits::CAUSAL_TIMEOUT_MS_MAX);
        for ((from, session), wait) in std::mem::take(&mut self.replica_waits) {
            if self.refuse_lost_past(from, wait.request, &wait.wanted) {
                continue;
            }
            let datacenters = self.replicas(&wait.wanted);
            if datacenters >= wait.datacenters {
                self.send(from, Message::ReplicasReached { request: wait.request, datacenters });
            } else if wait.since_us >= oldest {
                self.replica_waits.insert((from, session), wait);
            }
        }
    }

    /// How many datacenters, this one included, have durably applied all of this. None, as far as is known here, while some of
    /// it has not even been received.
    pub(super) fn replicas(&self, wanted: &Wanted) -> u8 {
        if !self.times.received.covers_but(self.datacenter, &wanted.times) {
            return 0;
        }
        let mut dependencies = wanted.dependencies.clone();
        dependencies.extend(self.written_through(&wanted.times));
        let has = |sender: &crate::stream::sender::Sender, dependency: &Dependency| {
            debug_assert!(matches!(dependency.extent, Extent::Exact | Extent::Through));
            let (_, position) = sender.applied(dependency.operation.datacenter);
            position >= dependency.operation.position
        };
        let durable = |dependency: &Dependency| {
            let wanted = dependency.operation;
            self.persistence
                .applied_durably()
                .any(|(origin, _, position)| origin == wanted.datacenter && position >= wanted.position)
        };
        let here = u8::from(dependencies.iter().all(durable));
        let elsewhere =
            self.living_senders().filter(|sender| dependencies.iter().all(|d| has(sender, d))).count();
        here + elsewhere as u8
    }

    /// What each datacenter wrote in this partition up to a time.
    fn written_through<'a>(&'a self, times: &'a TimeVector) -> impl Iterator<Item = Dependency> + 'a {
        times.entries().filter(|(_, time)| *time != LogicalTime::ZERO).filter_map(|(datacenter, time)| {
            let position = match (self.times.progress.get(&datacenter), self.receivers.get(&datacenter)) {
                (Some(progress), _) => progress.through(time),
                // All of it came before the last restart.
                (None, Some(receiver)) => receiver.received(),
                (None, None) => self.position,
            };
            let (incarnation, partition) = (position.incarnation(), self.id);
            let operation = OperationId { datacenter, incarnation, partition, position };
            (position != Position(0)).then_some(Dependency { operation, extent: Extent::Through })
        })
    }
}
