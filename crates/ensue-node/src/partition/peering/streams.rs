//! What the streams of other datacenters bring, and how far they have this one's.
//!
//! On an entry that is the next one: log it, and find out what it waits for (`visibility`). On anything else that
//! cannot be: refuse it, count it, and take nothing more of the stream until it has been asked to go on.

use super::Peering;
use crate::partition::replication::receiver::Arrival;
use crate::trace::Trace;
use bytes::Bytes;
use ensue_branch::Rebuilt;
use ensue_store::entry::Change;
use ensue_store::layout;
use ensue_store::record::Record;
use ensue_types::{DatacenterId, Incarnation, KeyspaceId, LogicalTime, Position, Rule};
use ensue_wire::StreamAcknowledge;

impl Peering<'_> {
    pub(in crate::partition) fn on_stream_entries(
        &mut self,
        origin: DatacenterId,
        first: Position,
        entries: Vec<Bytes>,
    ) {
        if self.cx.is_out_of_room() {
            return self.others.replication.pause(origin);
        }
        let is_cut_off = self.others.is_cut_off();
        let mut position = first;
        for bytes in entries {
            // One is always taken: should what waits here wait for what follows, it comes in the end.
            let is_full =
                is_cut_off && position > first && self.others.replication.is_full_of(self.cx, origin);
            if is_full || !self.take_entry(origin, position, bytes) {
                self.others.replication.acknowledgements.acknowledge_soon(origin);
                return self.others.replication.pause(origin);
            }
            position = position.next();
        }
        self.others.replication.acknowledgements.acknowledge_soon(origin);
    }

    /// Takes one entry of a stream, if it is the next one; says whether the stream may go on.
    pub(in crate::partition) fn take_entry(
        &mut self,
        origin: DatacenterId,
        position: Position,
        bytes: Bytes,
    ) -> bool {
        let Some(receiver) = self.others.replication.receiver_mut(origin) else { return false };
        let received = receiver.received();
        match receiver.judge(position) {
            Arrival::Next => {}
            Arrival::Duplicate => {
                self.cx.trace(Trace::DuplicateDropped { partition: self.cx.id, origin, position });
                if Rule::ApplyOnce.holds() {
                    return true;
                }
            }
            Arrival::Gap => match after_a_loss(origin, position, &bytes) {
                Some(after) if after == received => {}
                Some(after) if after < received => {
                    self.refuse_loss(origin, after, received);
                    return false;
                }
                _ => return false,
            },
        }
        self.receive(origin, position.incarnation(), position, bytes)
    }

    /// The origin declared lost, without asking here, what this datacenter has: it was recovered without it. What is
    /// here can never be everywhere again, and nothing that follows fits to it.
    fn refuse_loss(&mut self, origin: DatacenterId, after: Position, received: Position) {
        let name = self.cx.name_of(origin);
        self.refuse_peer(origin, format!(
            "{name} was recovered without this datacenter (`ensue recover --without`) and declared lost what is here: \
             its stream ends after position {after}, and was received here up to {received}. Say CAUSAL DEAD for one \
             of the two, on the other, and put its data away"
        ));
    }

    /// Takes one entry; says whether the stream may go on.
    fn receive(
        &mut self,
        origin: DatacenterId,
        incarnation: Incarnation,
        position: Position,
        bytes: Bytes,
    ) -> bool {
        let Ok(entry) = layout::decode_entry(&bytes) else {
            self.refuse_from(origin, "a stream entry that cannot be read");
            return false;
        };
        if let Err(what) =
            self.transactions.check_entry(self.cx, self.others, self.keyspaces, origin, position, &entry)
        {
            self.refuse_from(origin, what);
            return false;
        }
        // A stamp too far ahead pauses its stream; it is never skipped (trap 31).
        if !self.cx.advance_clock_to_peer(entry.stamp.time) {
            return false;
        }
        self.cx.journal.log_received(origin, incarnation, position, &bytes);
        let receiver = self.others.replication.receiver_mut(origin).expect("looked up by the caller");
        receiver.received_at(position);
        self.others.replication.note_arrival(self.cx.now, origin);
        let stamp = entry.stamp;
        self.peers.identity.note_received(origin, stamp.time);
        self.visibility().arrive(origin, incarnation, entry);
        // After what it brought is merged: a read that this lets go on must see it.
        self.others.note_received(origin, stamp.time);
        true
    }
}

/// Where the stream ended before this entry, if it is the first after a loss.
fn after_a_loss(origin: DatacenterId, position: Position, bytes: &Bytes) -> Option<Position> {
    let entry = layout::decode_entry(bytes).ok()?;
    let life = position.incarnation();
    let begins_incarnation = position == Position::before(life).next();
    match entry.change {
        Change::Lost { after } if begins_incarnation && after.incarnation() < life => {
            (entry.position == position && entry.stamp.datacenter == origin).then_some(after)
        }
        _ => None,
    }
}

impl Peering<'_> {
    /// Entries of a dead datacenter's stream. Only who was asked may speak for it, and only until its end is here.
    pub(in crate::partition) fn on_passed_on(
        &mut self,
        from: DatacenterId,
        origin: DatacenterId,
        entries: Vec<Bytes>,
    ) {
        if !self.others.failover.failed.may_pass_on(origin, from) {
            return self
                .cx
                .trace(Trace::Refused { what: "entries of another's stream that were not asked for" });
        }
        if self.cx.is_out_of_room() {
            return self.others.replication.pause(origin);
        }
        let before = self.others.replication.receiver(origin).map(|receiver| receiver.received());
        // Who has said how much it has, and that it is more than there is here, may have been asked.
        let holds = self.others.failover.failed.heard(origin, from).map(|have| have.received);
        if holds <= before {
            return self.cx.trace(Trace::Refused { what: "entries passed on by who was not asked for them" });
        }
        for bytes in entries {
            let Ok(position) = layout::entry_position(&bytes) else {
                self.cx.trace(Trace::Refused { what: "an entry passed on that cannot be read" });
                break;
            };
            if !self.take_entry(origin, position, bytes) {
                break;
            }
        }
        match self.others.replication.receiver(origin).map(|receiver| receiver.received()) == before {
            // It is asked for again a little later.
            true => self.others.replication.pause(origin),
            false => self.visibility().settle_stream(origin),
        }
    }
}

impl Peering<'_> {
    pub(in crate::partition) fn on_branch_fetched(
        &mut self,
        from: DatacenterId,
        keyspace: KeyspaceId,
        bytes: Bytes,
    ) {
        let Ok(rebuilt) = Rebuilt::decode(bytes.clone()) else {
            return self.refuse_from(from, "a state of a branching keyspace that cannot be read");
        };
        let site = rebuilt.id.site();
        let was_asked = self.keyspaces.branching.is_asked(keyspace, rebuilt.id)
            && (from == site || self.others.failover.failed.contains(site));
        if !was_asked {
            return; // Or it is an answer that comes twice.
        }
        if !self.keyspaces.branching.is_branching(keyspace) {
            return;
        }
        let offered = self.keyspaces.branching.branches(keyspace).accept(&rebuilt);
        self.keyspaces.branching.note_fetched(keyspace, rebuilt.id);
        if !offered.applied.is_empty() {
            self.cx.journal.log(&Record::Rebuilt { keyspace, rebuilt: bytes });
        }
        self.visibility().take_offered(keyspace, offered);
    }
}

impl Peering<'_> {
    pub(in crate::partition) fn on_stream_resume(&mut self, datacenter: DatacenterId, received: Position) {
        if received > self.cx.position {
            return self.refuse_claim(datacenter, received);
        }
        let from = if Rule::ResumeWhereItStopped.holds() { received } else { self.cx.position };
        // One that has what was declared lost is sent the declaration, and stops at it.
        let next = self.others.replication.applied.next(self.cx.datacenter, from);
        if let Some(sender) = self.others.replication.sender_mut(datacenter) {
            sender.on_resume(from, next);
        }
        // It may have lost its tail: it needs to know where this stream ends.
        self.keyspaces.acknowledge(self.cx, self.others, datacenter);
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
        let Some(sender) = self.others.replication.sender_mut(datacenter) else { return };
        if acknowledge.received > self.cx.position {
            return self.refuse_claim(datacenter, acknowledge.received);
        }
        sender.on_acknowledge(acknowledge, clock);
        self.others.replication.note_arrival(self.cx.now, datacenter);
        self.others.release_received(self.cx);
        self.others.note_end(self.cx, datacenter, acknowledge.end, clock);
        self.others.answer_replica_waits(self.cx);
        self.visibility().replicate();
    }
}
