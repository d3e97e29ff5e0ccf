//! The own stream to other datacenters, as far as each has it: what is sent and sent again, and who waits for that.

use super::Replication;
use super::progress::Progress;
use super::sender::Sender;
use crate::partition::cx::Cx;
use bytes::Bytes;
use ensue_store::entry::{Change, Entry};
use ensue_types::{
    Causes, DatacenterId, Dependency, Extent, LogicalTime, OperationId, Position, Previous, RequestId,
    SessionId, Stamp, TimeVector, limits,
};
use ensue_wire::{Address, Message};
use std::collections::BTreeMap;

/// Sessions that wait until enough datacenters have their past: one wait a session, which asks for one thing at a time.
pub(crate) type ReplicaWaits = BTreeMap<(Address, SessionId), ReplicaWait>;

/// What one of them waits for.
#[derive(Clone, Debug)]
pub(crate) struct ReplicaWait {
    pub request: RequestId,
    pub wanted: Wanted,
    pub datacenters: u8,
    /// This one has to be among them.
    pub here: bool,
    pub since_us: u64,
}

/// A session's past in this partition: operations, or all that each datacenter wrote up to a time.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub dependencies: Vec<Dependency>,
    pub times: TimeVector,
}

impl Replication {
    /// A session waits until enough datacenters have its past.
    pub(in crate::partition) fn await_replicas(&mut self, from: Address, wait: ReplicaWait) {
        self.replica_waits.insert((from, wait.request.session), wait);
    }

    /// A session waits for that no more.
    pub(in crate::partition) fn forget_replica_wait(&mut self, from: Address, session: SessionId) {
        self.replica_waits.remove(&(from, session));
    }

    /// Nor does any session behind this address.
    pub(in crate::partition) fn forget_replica_waits_of(&mut self, from: Address) {
        self.replica_waits.retain(|(asker, _), _| *asker != from);
    }

    /// How many sessions wait.
    pub(in crate::partition) fn replica_wait_count(&self) -> usize {
        self.replica_waits.len()
    }

    /// All that wait, to be looked at again: whoever still waits is put back.
    pub(in crate::partition) fn take_replica_waits(&mut self) -> ReplicaWaits {
        std::mem::take(&mut self.replica_waits)
    }

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
        dependencies: Causes,
        change: Change,
        previous: Vec<Previous>,
    ) -> Bytes {
        cx.position = cx.position.next();
        self.note_progress(cx.datacenter, cx.position, stamp.time);
        cx.journal.encode(&Entry { position: cx.position, stamp, dependencies, change, previous })
    }

    pub(in crate::partition) fn send_streams(&mut self, cx: &mut Cx, end: Position) {
        let window = cx.config.stream_window_bytes();
        // At the end of most turns nobody does.
        let wants =
            |datacenter, sender: &Sender| sender.wants(self.end_for(datacenter, end), window).is_some();
        let wanting = self.senders.iter().filter(|(datacenter, sender)| wants(**datacenter, sender));
        let wanting: Vec<DatacenterId> = wanting.map(|(datacenter, _)| *datacenter).collect();
        for datacenter in wanting {
            while self.send_batch(cx, datacenter, end) {}
        }
    }

    /// Sends one batch; says whether another may follow.
    pub(crate) fn send_batch(&mut self, cx: &mut Cx, datacenter: DatacenterId, end: Position) -> bool {
        let tuning = &cx.config.tuning;
        let (window, batch) = (cx.config.stream_window_bytes(), tuning.stream_batch_entries);
        let end = self.end_for(datacenter, end);
        let Some(sender) = self.senders.get_mut(&datacenter) else { return false };
        let Some(first) = sender.wants(end, window) else { return false };
        let left = (end.0 - first.0).saturating_add(1);
        let mut entries = Vec::with_capacity(batch.min(usize::try_from(left).unwrap_or(batch)));
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
            // What is read at once is not to be read again for the most part.
            if !sender.has_room_for(limits::LOG_READ_BYTES, window) {
                return false;
            }
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
        read: Vec<(Position, Bytes)>,
        end: Position,
    ) {
        let (end_here, window) = (self.end_for(datacenter, end), cx.config.stream_window_bytes());
        let Some(sender) = self.senders.get_mut(&datacenter) else { return };
        sender.reading = false;
        let Some(mut next) = sender.wants(end_here, usize::MAX) else { return };
        let mut first = next;
        let mut entries = Vec::new();
        for (position, entry) in read.into_iter().filter(|(position, _)| *position <= end_here) {
            if position == next && sender.has_room(window) {
                let after = self.applied.next(cx.datacenter, position);
                sender.sent(position, after, entry.len());
                entries.push(entry);
                next = position.next();
            }
        }
        // One read may bring more small entries than a message may have.
        for entries in entries.chunks(cx.config.tuning.stream_batch_entries).map(<[Bytes]>::to_vec) {
            let (to, incarnation) =
                (Address::Partition { datacenter, partition: cx.id }, first.incarnation());
            let after = Position(first.0 + entries.len() as u64);
            cx.send(to, Message::StreamEntries { incarnation, first, entries });
            first = after;
        }
        self.send_streams(cx, end);
    }

    /// What each datacenter wrote in this partition up to a time.
    pub(in crate::partition) fn written_through(
        &self,
        cx: &Cx,
        times: &TimeVector,
    ) -> impl Iterator<Item = Dependency> {
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
