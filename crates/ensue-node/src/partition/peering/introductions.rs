//! Who the other datacenters' partitions are: this partition introduces itself and judges how others do.
//!
//! What an introduction shows is `peers::identity`'s; here is what follows from it.

use super::Peering;
use crate::partition::peers::Halt;
use crate::partition::peers::identity::Finding;
use crate::trace::Trace;
use bytes::Bytes;
use ensue_store::layout;
use ensue_store::record::Record;
use ensue_types::{DatacenterId, DirectoryId, LogicalTime, Position, Rule};
use ensue_wire::{Address, Introduction, Message, PeerStage};

impl Peering<'_> {
    /// The message with which everything between two datacenters begins.
    pub(in crate::partition) fn introduce(&mut self, datacenter: DatacenterId, asks: bool) {
        let received = self.others.replication.received(datacenter);
        let known = self.peers.identity.known(datacenter);
        let last = self.peers.identity.last_of(datacenter);
        let introduction = Introduction {
            directory: self.peers.identity.own(),
            stage: self.cx.stage(),
            known,
            received,
            last,
            proof: known.proof((datacenter, self.cx.id), received, last),
            applied: self.others.replication.applied_through(datacenter),
            end: self.cx.position,
            elsewhere: self.others.applied_elsewhere(datacenter),
            is_whole: self.peers.has_what_is_lacking(
                self.cx,
                self.others,
                self.durability.is_checkpointing(),
                datacenter,
            ),
            asks,
        };
        let to = Address::Partition { datacenter, partition: self.cx.id };
        self.cx.send(to, Message::Introduce(introduction));
    }

    /// A datacenter with an empty directory asks for a copy, or for more of it.
    pub(in crate::partition) fn on_copy_fetch(&mut self, joiner: DatacenterId, part: (u64, u64, bool)) {
        let lent = (&mut *self.cx, &*self.others, &mut *self.keyspaces);
        self.durability.on_copy_fetch(lent, (self.transactions, self.peers), joiner, part);
    }

    /// Introduces this partition, and requests the stream.
    pub(in crate::partition) fn greet(&mut self, datacenter: DatacenterId) {
        self.introduce(datacenter, false);
        if self.peers.identity.refusal(datacenter).is_none() {
            self.visibility().resume_stream(datacenter);
        }
        // One that is refused may wait for the dead.
        self.visibility().report_failed_again(datacenter);
    }

    /// Another datacenter's partition says who it is.
    pub(in crate::partition) fn on_introduce(
        &mut self,
        datacenter: DatacenterId,
        introduction: &Introduction,
    ) {
        if !self.others.replication.knows(datacenter) {
            return self.cx.trace(Trace::Refused { what: "an introduction of no datacenter" });
        }
        self.peers.keep_the_log_for(self.cx, self.others, datacenter, introduction);
        let finding = self.peers.check_introduction(self.cx, self.others, datacenter, introduction);
        match finding {
            Finding::Valid => {
                self.accept_peer(datacenter, introduction);
                self.answer_repeats();
                self.visibility().replicate();
            }
            Finding::Refuse(reason) => self.refuse_peer(datacenter, reason),
            Finding::Unsure(reason) => {
                self.refuse_peer(datacenter, reason);
                self.peers.identity.note_unsure(datacenter);
            }
            Finding::Short(reason) => return self.peers.halt(Halt::Short(reason)),
            Finding::Forked(reason) => return self.peers.halt(Halt::Forked(reason)),
        }
        if introduction.asks {
            self.greet(datacenter);
        }
    }

    /// Asks those again whose word about third datacenters is not verified yet.
    pub(in crate::partition) fn request_unverified(&mut self) {
        let unsure = self.peers.identity.unsure();
        if unsure.is_empty() || !self.peers.identity.take_request_due(self.cx) {
            return;
        }
        unsure.into_iter().for_each(|datacenter| self.introduce(datacenter, true));
    }

    /// This directory may be an old copy as long as somebody has not said how much of the own stream it has.
    pub(in crate::partition) fn hold_back(&mut self) {
        let wait_us = 1_000 * self.cx.config.tuning.proof_wait_ms;
        if wait_us == 0 || !Rule::HearAllBeforePromising.holds() {
            return;
        }
        let has_reported = |datacenter: &DatacenterId| self.peers.identity.has_reported(*datacenter);
        let unreported = self.others.living().filter(|datacenter| !has_reported(datacenter)).collect();
        let until_us = self.cx.now.monotonic_us.saturating_add(wait_us);
        self.others.replication.hold_back(self.cx.position, unreported, until_us);
    }

    /// Those that were declared dead, or said nothing for too long, are not waited for.
    pub(in crate::partition) fn hold_back_no_longer(&mut self) {
        let late = self.others.replication.overdue_reports(self.cx.now.monotonic_us);
        if !late.is_empty() {
            self.cx.trace(Trace::GoesOnUnproved { partition: self.cx.id, without: late.clone() });
        }
        let is_dead = |datacenter: &DatacenterId| self.others.failover.failed.contains(*datacenter);
        let dead: Vec<DatacenterId> = self.others.replication.unreported().filter(is_dead).collect();
        for datacenter in late.into_iter().chain(dead) {
            self.others.replication.note_reported(datacenter);
        }
    }

    /// The own entry that another datacenter has received was read from the log.
    pub(in crate::partition) fn compare_with(
        &mut self,
        datacenter: DatacenterId,
        received: Position,
        last: LogicalTime,
        read: &[(Position, Bytes)],
    ) {
        // Where the stream has a gap, the next entry is read; that says nothing of what stood there.
        let Some((position, bytes)) = read.first().filter(|(position, _)| *position == received) else {
            return;
        };
        if layout::decode_entry(bytes).is_ok_and(|entry| entry.stamp.time != last) {
            let reason = self.peers.identity.other_entry(self.cx, &self.cx.name_of(datacenter), *position);
            self.peers.halt(Halt::Forked(reason));
        }
    }

    /// The sender is who it was, and its claims agree with what is here.
    fn accept_peer(&mut self, datacenter: DatacenterId, theirs: &Introduction) {
        if let Some(sender) = self.others.replication.sender_mut(datacenter) {
            sender.on_introduced(theirs.received);
        }
        let was_refused = self.peers.identity.accept(datacenter);
        self.others.replication.note_reported(datacenter);
        if was_refused {
            self.cx.trace(Trace::PeerReadmitted { partition: self.cx.id, datacenter });
        }
        if theirs.stage != PeerStage::Serving {
            if theirs.stage == PeerStage::Joining && theirs.end == Position(0) {
                self.others.note_nothing_to_come(self.cx, datacenter);
            }
            self.peers.identity.note_absent(datacenter, theirs.stage);
            if let Some(sender) = self.others.replication.sender_mut(datacenter) {
                sender.on_link_down();
            }
            return;
        }
        let was_absent = self.peers.identity.note_present(datacenter);
        if self.peers.identity.known(datacenter) == DirectoryId::UNKNOWN {
            let last = self.peers.identity.last_of(datacenter);
            let directory = theirs.directory;
            self.others.note_met(datacenter);
            self.peers.identity.restore(datacenter, directory, last);
            if self.cx.journal.opened().is_some() {
                self.cx.journal.log(&Record::Peer { datacenter, directory, last });
            }
        }
        if (was_refused || was_absent) && !theirs.asks {
            self.greet(datacenter);
        }
    }

    /// Nothing is exchanged with a datacenter any more, until it introduces itself with what agrees.
    pub(in crate::partition) fn refuse_peer(&mut self, datacenter: DatacenterId, reason: String) {
        if !Rule::RefuseThePeerAlone.holds() {
            return self.peers.halt(Halt::Stopped(reason));
        }
        self.others.replication.stop_streams(datacenter);
        if self.peers.identity.refuse(datacenter, reason.clone()) {
            self.cx.trace(Trace::PeerRefused { partition: self.cx.id, datacenter, reason });
        }
    }

    /// Looks again at the refused datacenters that an operator readmitted.
    pub(crate) fn readmit(&mut self) {
        for datacenter in self.others.take_readmitted() {
            if self.peers.identity.readmit(datacenter) {
                self.cx.trace(Trace::PeerReadmitted { partition: self.cx.id, datacenter });
            }
            self.introduce(datacenter, true);
        }
    }

    /// Introduces this partition to those that have not answered, or whose answer may change.
    pub(in crate::partition) fn request_introductions(&mut self) {
        self.peers.identity.request_later(self.cx);
        let others: Vec<DatacenterId> = self.others.living().collect();
        others.into_iter().for_each(|datacenter| self.introduce(datacenter, true));
    }
}
