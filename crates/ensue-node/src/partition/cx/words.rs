//! What several parts say in the same words, and to whom.

use super::{Cx, coordinator_of};
use bytes::Bytes;
use ensue_types::{Causes, DatacenterId, LogicalTime, OperationId, PartitionId, Position, Reply, Rule};
use ensue_wire::{Address, Message};
use std::collections::BTreeMap;

/// The code of that answer.
pub(in crate::partition) const DECLARED_DEAD: &str = "DECLAREDDEAD";

/// What a datacenter answers that was removed in good order.
pub(in crate::partition) const RETIRED: &str = "RETIRED";

/// The last step of a datacenter that is being removed (`retirement`): sessions are answered no more.
pub(in crate::partition) const SILENT: u8 = 3;

/// The words of a datacenter without which the others go on.
pub(in crate::partition) const ENDED: [&str; 2] = [DECLARED_DEAD, RETIRED];

/// Operations named in one message.
pub(in crate::partition) const OPERATIONS_A_MESSAGE: usize = 1024;

impl Cx {
    /// Answers with the entries read, as many as fit into one message.
    pub(in crate::partition) fn pass_on(
        &mut self,
        to: DatacenterId,
        origin: DatacenterId,
        read: Vec<(Position, Bytes)>,
    ) {
        let most = self.config.tuning.stream_batch_entries;
        let entries = read.into_iter().map(|(_, entry)| entry).take(most).collect();
        self.send(
            Address::Partition { datacenter: to, partition: self.id },
            Message::PassedOn { origin, entries },
        );
    }

    /// What everybody is answered from here on.
    pub(in crate::partition) fn word_of_death(&self, by: &str) -> String {
        let own = &self.config.topology.datacenters[usize::from(self.datacenter.0)].name;
        format!(
            "{DECLARED_DEAD} {own} was declared dead, says {by}: the others go on without it and take nothing from it, \
             so that nothing is read or written here any more. Use another datacenter; stop the nodes of {own} and put \
             their data away"
        )
    }

    /// What a datacenter that is being removed answers to writes.
    pub(in crate::partition) fn retiring(&self) -> Reply {
        let own = self.name_of(self.datacenter);
        let words = format!(
            "RETIRING {own} is being removed and takes no more writes; reads are answered until the others have \
             everything. Nothing was executed: use another datacenter"
        );
        Reply::Error(words.into())
    }

    /// What everybody is answered when the own datacenter was removed.
    pub(in crate::partition) fn word_of_retirement(&self) -> String {
        let own = self.name_of(self.datacenter);
        format!(
            "{RETIRED} {own} was removed: the others have everything that was written here, and go on without it. Use \
             another datacenter; the nodes of {own} may be stopped, and their data holds nothing that the others lack"
        )
    }

    /// Asks a datacenter what it has beyond the end of this log.
    pub(in crate::partition) fn request_tail(&mut self, datacenter: DatacenterId) {
        let to = Address::Partition { datacenter, partition: self.id };
        let after = self.position;
        self.send(to, Message::TailFetch { after });
    }

    pub(crate) fn vote_again(&mut self, transaction: OperationId) {
        self.send_local(coordinator_of(transaction), Message::Vote { transaction });
    }

    pub(crate) fn send_committed(
        &mut self,
        transaction: OperationId,
        replies: Vec<(u32, Reply)>,
        seen: Causes,
    ) {
        let message = Message::Committed { transaction, replies, seen };
        self.send_local(coordinator_of(transaction), message);
    }

    pub(crate) fn notify_again(&mut self, transaction: OperationId) {
        if Rule::TellAgainWhatIsDone.holds() {
            self.send_committed(transaction, Vec::new(), Causes::Nothing);
        }
    }

    pub(in crate::partition) fn send_reports(&mut self, reports: BTreeMap<PartitionId, Vec<OperationId>>) {
        for (coordinator, operations) in reports {
            for chunk in operations.chunks(OPERATIONS_A_MESSAGE) {
                self.send_local(coordinator, Message::PartsSynced { operations: chunk.to_vec() });
            }
        }
    }

    /// Another partition of this datacenter may have no link to anybody who knows.
    pub(in crate::partition) fn report_own_failure(&mut self) {
        let (own, datacenter) = (self.id, self.datacenter);
        let others =
            (0..self.config.topology.partitions).map(PartitionId).filter(|partition| *partition != own);
        for partition in others {
            let to = Address::Partition { datacenter, partition };
            let message = Message::DatacenterFailed {
                datacenter,
                received: Position(0),
                time: LogicalTime::ZERO,
                ended: None,
            };
            self.send_refusal(to, message);
        }
    }
}
