//! Another partition of this datacenter has lost the end of its log.

use super::Peering;
use crate::partition::transactions::coordinator::Coordinated;
use ensue_types::{PartitionId, Rule};
use ensue_wire::{Address, Message};

impl Peering<'_> {
    /// A participant lost its tail: it is told again of all that it takes part in.
    pub(crate) fn on_repeat(&mut self, from: Address, number: u64) {
        let Address::Partition { partition, .. } = from else { return };
        if self.may_lose_with_a_sibling() && !self.all_have_told() {
            self.peers.identity.repeats.insert(partition, number);
            return;
        }
        self.lose_with_a_sibling();
        self.repeat(partition, number);
    }

    /// What was asked while somebody had not said how much it has, is answered when all have.
    pub(in crate::partition) fn answer_repeats(&mut self) {
        if !self.peers.identity.repeats.is_empty() && self.all_have_told() {
            let repeats = std::mem::take(&mut self.peers.identity.repeats);
            let datacenter = self.cx.datacenter;
            for (partition, number) in repeats {
                self.on_repeat(Address::Partition { datacenter, partition }, number);
            }
        }
    }

    /// Whether every other datacenter has said to this process how much it has of the own stream, and has no more than
    /// there is here. What one of them has must not be declared lost: it is taken back after another start.
    fn all_have_told(&self) -> bool {
        let has_told = |datacenter| self.peers.identity.has_told(datacenter);
        !Rule::HearAllBeforeLosing.holds() || self.others.living().all(has_told)
    }

    fn repeat(&mut self, partition: PartitionId, number: u64) {
        let from = Address::Partition { datacenter: self.cx.datacenter, partition };
        let give = Rule::GiveThePartBack.holds();
        let mut again = Vec::new();
        for (transaction, coordinated) in &mut self.transactions.coordinated {
            match coordinated {
                // Who takes no part has no vote, and is asked for none and told nothing.
                Coordinated::Voting(voting) => drop(voting.votes.remove(&partition)),
                Coordinated::Committing(committing) => committing.again.extend(give.then_some(partition)),
                Coordinated::Arriving(_) => continue,
            }
            again.push(*transaction);
        }
        for transaction in again {
            self.transactions.query_participants(self.cx, transaction, &|p| p == partition);
        }
        // A decision that nobody may hear of yet belongs to what must be told: what follows it in its rows waits for
        // it.
        match self.transactions.durable.decisions.back() {
            Some(&(end, ..)) => self.transactions.durable.repeats.push_back((end, from, number)),
            None => self.cx.send(from, Message::Repeated { number }),
        }
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
        if let Some(superblock) = &mut self.durability.superblock {
            superblock.incarnation = self.cx.incarnation;
            let marked = superblock.replace();
            self.durability.opening.push_back(marked.clone());
            if self.durability.opening.len() == 1 {
                self.cx.disk_ops.push_back(marked);
            }
        }
        let first = self.cx.position;
        self.others.replication.begin_incarnation(lost, first);
        self.visibility().replicate();
    }

    fn may_lose_with_a_sibling(&self) -> bool {
        let has_ended = self.cx.incarnation > self.peers.identity.read_in;
        !has_ended && !self.others.replication.is_alone() && Rule::LoseTailsTogether.holds()
    }
}
