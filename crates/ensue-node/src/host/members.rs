//! The replicas of a core, and which of them may have something to say.

use ensue_replica::{Output, Replica};
use ensue_types::PartitionId;
use std::collections::{BTreeMap, BTreeSet};

/// A core may have hundreds of replicas, and an input is for one of them: only those that were given something are
/// asked what they say.
#[derive(Default)]
pub(super) struct Members {
    replicas: BTreeMap<PartitionId, Replica>,
    /// Those that were given something since they were last asked.
    given: BTreeSet<PartitionId>,
}

impl Members {
    pub(super) fn insert(&mut self, partition: PartitionId, replica: Replica) {
        self.replicas.insert(partition, replica);
        self.given.insert(partition);
    }

    pub(super) fn remove(&mut self, partition: PartitionId) {
        self.replicas.remove(&partition);
        self.given.remove(&partition);
    }

    pub(super) fn has(&self, partition: PartitionId) -> bool {
        self.replicas.contains_key(&partition)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.replicas.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (PartitionId, &Replica)> {
        self.replicas.iter().map(|(partition, replica)| (*partition, replica))
    }

    /// A replica that is to be given something.
    pub(super) fn give(&mut self, partition: PartitionId) -> Option<&mut Replica> {
        let replica = self.replicas.get_mut(&partition)?;
        self.given.insert(partition);
        Some(replica)
    }

    /// Gives all of them something.
    pub(super) fn give_each(&mut self, give: impl FnMut(&mut Replica)) {
        self.given.extend(self.replicas.keys());
        self.replicas.values_mut().for_each(give);
    }

    /// The replicas that were given something since, in the order of their partitions.
    pub(super) fn take_given(&mut self) -> BTreeSet<PartitionId> {
        std::mem::take(&mut self.given)
    }

    /// The next output of one of them: it says all that it has before another one is asked.
    pub(super) fn next_output(&mut self, partition: PartitionId) -> Option<Output> {
        self.replicas.get_mut(&partition)?.next_output()
    }
}
