//! Streams from and to the other datacenters, and what of them has been applied.
//!
//! A stream is FIFO and survives disconnects: positions are dense, the receiver says where to go on, and drops what it
//! has. A sender holds nothing that the log does not hold; memory keeps a window of the log's tail.

pub(in crate::partition) mod acknowledgements;
pub(in crate::partition) mod applied;
pub(in crate::partition) mod inbound;
pub(in crate::partition) mod old_entries;
pub(in crate::partition) mod own;
pub(in crate::partition) mod progress;
pub(in crate::partition) mod receiver;
pub(in crate::partition) mod replicas;
pub(in crate::partition) mod sender;

use crate::config::NodeConfig;
use crate::partition::cx::Protocols;
use acknowledgements::Acknowledgements;
use applied::{Applied, AppliedSet};
use ensue_types::{DatacenterId, PartitionId, Position};
use ensue_wire::Address;
use inbound::Inbound;
use progress::Progress;
use receiver::Receiver;
use replicas::ReplicaWaits;
use sender::Sender;
use std::collections::{BTreeMap, BTreeSet};

/// Who waits for an operation to be applied here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiter {
    /// A received entry.
    Entry(DatacenterId, Position),
    /// A dependency check that came from elsewhere: who asked, and its number there.
    Ask(Address, u64),
}

/// What lost tails have cost since the start, for `INFO`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LossCounts {
    /// Own entries that came back from other datacenters.
    pub recovered: u64,
    /// Dependencies on operations that were declared lost.
    pub dependencies: u64,
}

/// Streams from and to the other datacenters, and what of them has been applied.
#[derive(Clone, Debug)]
pub(crate) struct Replication {
    pub(in crate::partition) applied: Applied<Waiter>,
    pub(in crate::partition) inbound: Inbound,
    pub(in crate::partition) senders: BTreeMap<DatacenterId, Sender>,
    pub(in crate::partition) receivers: BTreeMap<DatacenterId, Receiver>,
    /// Streams that brought something that could not be taken yet.
    pub(in crate::partition) paused: BTreeSet<DatacenterId>,
    /// Where each stream was at which time, the own one too; kept where pasts are times.
    progress: BTreeMap<DatacenterId, Progress>,
    keeps_progress: bool,
    /// When something was last sent to each datacenter.
    pub(in crate::partition) spoke_us: BTreeMap<DatacenterId, u64>,
    pub(in crate::partition) acknowledgements: Acknowledgements,
    pub(in crate::partition) replica_waits: ReplicaWaits,
    pub(in crate::partition) loss_counts: LossCounts,
}

impl Replication {
    /// Panics if a stream contradicts itself. Answers at how many entries and waits it looked.
    pub(in crate::partition) fn check_invariants(&self) -> usize {
        let waits = self.applied.check_invariants();
        let in_flight: usize = self.senders.values().map(Sender::check_invariants).sum();
        self.receivers.values().for_each(Receiver::check_invariants);
        for (origin, receiver) in &self.receivers {
            let applied = self.applied.set(*origin).map(AppliedSet::highest).unwrap_or_default();
            let received = receiver.received();
            assert!(applied <= received, "{applied} of {origin} is applied and only {received} received");
        }
        waits + in_flight
    }

    pub(in crate::partition) fn new(
        id: PartitionId,
        config: &NodeConfig,
        protocols: &Protocols,
    ) -> Replication {
        let others: Vec<DatacenterId> = config.topology.others().collect();
        Replication {
            applied: Applied::new(id),
            inbound: Inbound::default(),
            senders: others.iter().map(|&d| (d, Sender::default())).collect(),
            receivers: others.iter().map(|&d| (d, Receiver::default())).collect(),
            paused: BTreeSet::new(),
            progress: BTreeMap::new(),
            keeps_progress: protocols.iter().any(|protocol| protocol.needs().snapshot_vectors),
            spoke_us: BTreeMap::new(),
            acknowledgements: Default::default(),
            replica_waits: Default::default(),
            loss_counts: LossCounts::default(),
        }
    }
}
