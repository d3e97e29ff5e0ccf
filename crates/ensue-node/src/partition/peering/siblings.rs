//! Another partition of this datacenter has lost the end of its log.

use super::Peering;
use ensue_types::{PartitionId, Position, Rule};
use ensue_wire::Address;

impl Peering<'_> {
    /// A participant lost its tail: it is told again of all that it takes part in.
    pub(crate) fn on_repeat(&mut self, from: Address, number: u64) {
        let Address::Partition { partition, .. } = from else { return };
        if self.may_lose_with_a_sibling() && !self.all_have_reported() {
            self.peers.identity.keep_repeat(partition, number);
            return;
        }
        self.lose_with_a_sibling();
        self.repeat(partition, number);
    }

    /// What was asked while somebody had not said how much it has, is answered when all have.
    pub(in crate::partition) fn answer_repeats(&mut self) {
        if self.peers.identity.has_repeats() && self.all_have_reported() {
            let repeats = self.peers.identity.take_repeats();
            let datacenter = self.cx.datacenter;
            for (partition, number) in repeats {
                self.on_repeat(Address::Partition { datacenter, partition }, number);
            }
        }
    }

    /// Whether every other datacenter has said to this process how much it has of the own stream, and has no more than
    /// there is here. What one of them has must not be declared lost: it is taken back after another start.
    fn all_have_reported(&self) -> bool {
        let has_reported = |datacenter| self.peers.identity.has_reported(datacenter);
        !Rule::HearAllBeforeLosing.holds() || self.others.living().all(has_reported)
    }

    fn repeat(&mut self, partition: PartitionId, number: u64) {
        let from = Address::Partition { datacenter: self.cx.datacenter, partition };
        self.transactions.repeat_to(self.cx, partition);
        self.transactions.finish_repeat(self.cx, from, number);
    }

    /// Another partition of this datacenter has lost the end of its log. If that was an old copy of a directory, this
    /// partition runs on one, too, unless nobody has noticed because nobody has received what is missing. Others may
    /// have received what depends on it: it is declared lost. One incarnation is enough for one start.
    fn lose_with_a_sibling(&mut self) {
        if !self.may_lose_with_a_sibling() {
            return;
        }
        let lost = self.cx.position.next();
        self.visibility().end_incarnation();
        self.keyspaces.branching.branches_live_on(self.cx);
        // Before anything of it is appended, and so before anything of it leaves: a power failure may take the log's
        // end, and an incarnation is never begun twice.
        self.durability.begin_incarnation(self.cx);
        let first = self.cx.position;
        self.others.replication.begin_incarnation(lost, first);
        self.visibility().replicate();
    }

    /// The siblings of a datacenter that is new ask each other when they begin, and stay in their first incarnation:
    /// nothing that could be lost was written yet.
    fn may_lose_with_a_sibling(&self) -> bool {
        let is_unwritten = self.others.is_new() && self.cx.position == Position(0);
        !is_unwritten
            && !self.peers.identity.has_ended_incarnation(self.cx)
            && !self.others.replication.is_alone()
            && Rule::LoseTailsTogether.holds()
    }
}
