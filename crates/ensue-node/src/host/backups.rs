//! Copies of what the disks of several nodes hold: a session asks another node through the core that it is of, and what
//! a replica is to its group at that moment is told beside the files.
//!
//! A question goes to one core of the node, whose host has it done as an errand of its own and sends back the answer.
//! Nothing is repeated: a session whose question or answer is lost is told that it took too long.

use super::{Host, Led};
use crate::errand::backup;
use crate::node::boot_id_of;
use crate::{Errand, ErrandDone, Input, Output, Trace};
use ensue_types::{Args, CoreId, Now, PartitionId, Reply, SessionId};
use ensue_wire::{CoreName, Message};
use std::collections::BTreeMap;

/// Whose errands those are that are done for other nodes: no client's.
pub(super) const RELAYED: SessionId = SessionId(u64::MAX);
/// Questions that wait for an errand at most; who asked the oldest ones has long been told that it took too long.
const RELAYED_MAX: usize = 256;

/// Errands that are done for other nodes.
#[derive(Debug, Default)]
pub(super) struct Relayed {
    last: u64,
    waiting: BTreeMap<u64, (CoreName, u64)>,
}

/// What a replica on this core is to its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    pub partition: PartitionId,
    /// The term that it has promised to be in; unknown until it has read its directory.
    pub term: Option<u64>,
    /// If its partition lives here.
    pub leads: Option<Leading>,
}

/// What is told of a partition where it lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leading {
    /// The nodes that have votes.
    pub voters: Vec<usize>,
    /// What its superblock has in the place of the machine's boot, once it is this one's.
    pub boot_id: [u8; 16],
}

impl Host {
    /// What the replicas of this core are to their groups; nothing if partitions are not replicated.
    pub fn standings(&self) -> Option<Vec<Standing>> {
        let standing = |(partition, replica): (PartitionId, &ensue_replica::Replica)| {
            // Who has votes is not known while that changes.
            let report = replica.report().filter(|report| !report.changes);
            let topology = &self.seat.config.topology;
            let node = |core| topology.node_of(topology.datacenter, CoreId(core));
            let leading = |(report, led): (ensue_replica::Report, &Led)| {
                let voters = report.members.iter().filter(|member| member.votes);
                let voters = voters.filter_map(|member| node(member.node)).collect();
                Leading { voters, boot_id: boot_id_of(led.epoch) }
            };
            // One that still reads may not have cut off what its last owner did not finish.
            let led = self.leads.get(&partition).filter(|_| self.read.contains(&partition));
            let leads = report.zip(led).map(leading);
            Standing { partition, term: replica.term(), leads }
        };
        self.seat.is_replicated.then(|| self.replicas.iter().map(standing).collect())
    }

    /// A partition without replicas that has not read its log yet: its files may end with what is not part of it.
    pub fn reading(&self) -> Option<PartitionId> {
        let topology = &self.seat.config.topology;
        let mut own = (0..topology.partitions)
            .map(PartitionId)
            .filter(|partition| topology.owner(topology.datacenter, *partition) == self.own.core);
        own.find(|partition| !self.seat.is_replicated && !self.read.contains(partition))
    }

    /// A partition has read its log, or refuses it.
    pub(super) fn note_read(&mut self, output: &Output) {
        if let Output::Trace(
            Trace::PartitionReady { partition, .. }
            | Trace::PartitionStopped { partition, .. }
            | Trace::TailLost { partition },
        ) = output
        {
            self.read.insert(*partition);
        }
    }

    /// A session of this core wants something of another node.
    pub(super) fn ask_elsewhere(&mut self, (session, errand): (SessionId, u64), core: CoreId, words: Args) {
        let to = CoreName { datacenter: self.own.datacenter, core };
        let number = self.asked.note(session, errand);
        if self.linked.contains(&to) {
            self.send(to, Message::BackupAsk { number, words });
        } else {
            // It comes back as if that node had said it, so that nothing is answered within the question.
            let message = Message::BackupTold { number, reply: backup::NOT_REACHED };
            self.send(self.own, message);
        }
    }

    pub(super) fn on_backup_ask(&mut self, from: CoreName, number: u64, words: &Args) {
        match backup::errand(words) {
            Ok(errand) => {
                self.relayed.last += 1;
                self.relayed.waiting.insert(self.relayed.last, (from, number));
                if self.relayed.waiting.len() > RELAYED_MAX {
                    self.relayed.waiting.pop_first();
                }
                let (number, errand) = (self.relayed.last, Errand::Backup(errand));
                self.outputs.push_back(Output::Errand { session: RELAYED, number, errand });
            }
            Err(reply) => self.send(from, Message::BackupTold { number, reply }),
        }
    }

    pub(super) fn on_relayed_done(&mut self, number: u64, done: ErrandDone) {
        if let Some((to, number)) = self.relayed.waiting.remove(&number) {
            self.send(to, Message::BackupTold { number, reply: backup::reply(done) });
        }
    }

    pub(super) fn on_backup_told(&mut self, now: Now, number: u64, reply: Reply) {
        if let Some((session, number)) = self.asked.answered(number) {
            let done = ErrandDone::BackupTold(reply);
            self.node.on_input(now, Input::ErrandDone { session, number, done });
        }
    }
}

#[cfg(test)]
mod tests;
