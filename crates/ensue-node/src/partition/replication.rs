//! Streams from and to the other datacenters, and what of them has been applied.
//!
//! A stream is FIFO and survives disconnects: positions are dense, the receiver says where to go on, and drops what it
//! has. A sender holds nothing that the log does not hold; memory keeps a window of the log's tail.

pub(in crate::partition) mod acknowledgements;
pub(in crate::partition) mod ages;
pub(in crate::partition) mod applied;
pub(in crate::partition) mod delays;
pub(in crate::partition) mod held_back;
pub(in crate::partition) mod inbound;
pub(in crate::partition) mod lateness;
pub(in crate::partition) mod old_entries;
pub(in crate::partition) mod own;
pub(in crate::partition) mod progress;
pub(in crate::partition) mod receiver;
pub(in crate::partition) mod replicas;
pub(in crate::partition) mod sender;

use crate::config::NodeConfig;
use crate::partition::cx::{Cx, Protocols};
use acknowledgements::Acknowledgements;
use applied::{Applied, AppliedSet};
use ensue_types::{DatacenterId, PartitionId, Position};
use ensue_wire::Address;
use held_back::HeldBack;
use inbound::Inbound;
use lateness::Lateness;
use progress::Progress;
use receiver::Receiver;
use replicas::ReplicaWaits;
use sender::Sender;
use std::collections::{BTreeMap, BTreeSet};

/// A stream of which too much waits is asked to go on this often: an entry comes each time, and with it perhaps what
/// the others wait for.
const RESUME_FULL_US: u64 = 10_000_000;

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
    senders: BTreeMap<DatacenterId, Sender>,
    receivers: BTreeMap<DatacenterId, Receiver>,
    /// What is not said since the start, while somebody has not said what it has.
    held_back: Option<HeldBack>,
    /// Streams that brought something that could not be taken yet.
    paused: BTreeSet<DatacenterId>,
    /// When each of them was last asked to go on.
    resumed_us: BTreeMap<DatacenterId, u64>,
    /// Where each stream was at which time, the own one too; kept where pasts are times.
    progress: BTreeMap<DatacenterId, Progress>,
    keeps_progress: bool,
    /// When something was last sent to each datacenter.
    spoke_us: BTreeMap<DatacenterId, u64>,
    pub(in crate::partition) acknowledgements: Acknowledgements,
    replica_waits: ReplicaWaits,
    loss_counts: LossCounts,
    pub(in crate::partition) lateness: Lateness,
}

impl Replication {
    /// Every other datacenter, whether it lives or not.
    pub(in crate::partition) fn datacenters(&self) -> impl Iterator<Item = DatacenterId> {
        self.senders.keys().copied()
    }

    /// Whether this is the number of another datacenter.
    pub(in crate::partition) fn knows(&self, datacenter: DatacenterId) -> bool {
        self.senders.contains_key(&datacenter)
    }

    /// Whether there is no other datacenter.
    pub(in crate::partition) fn is_alone(&self) -> bool {
        self.senders.is_empty()
    }

    pub(in crate::partition) fn sender(&self, datacenter: DatacenterId) -> Option<&Sender> {
        self.senders.get(&datacenter)
    }

    pub(in crate::partition) fn sender_mut(&mut self, datacenter: DatacenterId) -> Option<&mut Sender> {
        self.senders.get_mut(&datacenter)
    }

    pub(in crate::partition) fn senders(&self) -> impl Iterator<Item = (DatacenterId, &Sender)> {
        self.senders.iter().map(|(datacenter, sender)| (*datacenter, sender))
    }

    /// The own stream goes on at `first`; the incarnation before ended where `lost` would have come next.
    pub(in crate::partition) fn begin_incarnation(&mut self, lost: Position, first: Position) {
        self.senders.values_mut().for_each(|sender| sender.on_incarnation(lost, first));
    }

    pub(in crate::partition) fn receiver(&self, datacenter: DatacenterId) -> Option<&Receiver> {
        self.receivers.get(&datacenter)
    }

    pub(in crate::partition) fn receiver_mut(&mut self, datacenter: DatacenterId) -> Option<&mut Receiver> {
        self.receivers.get_mut(&datacenter)
    }

    /// Up to where another datacenter's stream has been received; the beginning if it is none.
    pub(in crate::partition) fn received(&self, datacenter: DatacenterId) -> Position {
        self.receivers.get(&datacenter).map(Receiver::received).unwrap_or_default()
    }

    /// Up to where a datacenter's stream, also the own one, is applied without a gap.
    pub(in crate::partition) fn applied_through(&self, datacenter: DatacenterId) -> Position {
        self.applied.set(datacenter).map(|set| set.watermark).unwrap_or_default()
    }

    /// What was received up to here is durable.
    pub(in crate::partition) fn note_received_durably(
        &mut self,
        datacenter: DatacenterId,
        position: Position,
    ) {
        if let Some(receiver) = self.receivers.get_mut(&datacenter) {
            self.acknowledgements.note_received(datacenter, receiver, position);
        }
    }

    /// Takes nothing more of a stream until it has been asked, a little later, to go on from what is here.
    pub(in crate::partition) fn pause(&mut self, origin: DatacenterId) {
        self.paused.insert(origin);
    }

    /// Whether so much of a datacenter's stream waits here for what it depends on that no more of it is to be taken:
    /// the rest is in its log. That holds only while a datacenter is cut off from here; else what is waited for is on
    /// its way.
    pub(in crate::partition) fn is_full_of(&self, cx: &Cx, origin: DatacenterId) -> bool {
        self.inbound.waiting_bytes_of(origin) > cx.config.stream_waiting_bytes()
    }

    /// The streams that are to be asked to go on.
    pub(in crate::partition) fn take_paused(&mut self, cx: &Cx, is_cut_off: bool) -> BTreeSet<DatacenterId> {
        let now_us = cx.now.monotonic_us;
        let is_recent = |resumed_us: &u64| now_us < resumed_us.saturating_add(RESUME_FULL_US);
        let waits = |origin: &DatacenterId| {
            is_cut_off && self.is_full_of(cx, *origin) && self.resumed_us.get(origin).is_some_and(is_recent)
        };
        let (waiting, due): (BTreeSet<_>, BTreeSet<_>) =
            self.paused.iter().copied().partition(|origin| waits(origin));
        self.paused = waiting;
        self.resumed_us.extend(due.iter().map(|origin| (*origin, now_us)));
        due
    }

    /// Nothing is sent to a datacenter, and nothing asked of its stream, until it introduces itself again.
    pub(in crate::partition) fn stop_streams(&mut self, datacenter: DatacenterId) {
        if let Some(sender) = self.senders.get_mut(&datacenter) {
            sender.on_link_down();
        }
        self.paused.remove(&datacenter);
    }

    /// To whom an acknowledgement is to go at the end of this turn.
    pub(in crate::partition) fn take_due_acknowledgements(&mut self, cx: &Cx) -> BTreeSet<DatacenterId> {
        let interval_us = 1_000 * cx.config.tuning.acknowledge_interval_ms;
        let everyone = self.receivers.keys().copied();
        self.acknowledgements.take_due(cx.now.monotonic_us, interval_us, everyone)
    }

    /// When something was last sent to a datacenter.
    pub(in crate::partition) fn spoke_us(&self, datacenter: DatacenterId) -> Option<u64> {
        self.spoke_us.get(&datacenter).copied()
    }

    pub(in crate::partition) fn loss_counts(&self) -> LossCounts {
        self.loss_counts
    }

    /// An own entry came back from another datacenter.
    pub(in crate::partition) fn count_recovered(&mut self) {
        self.loss_counts.recovered += 1;
    }

    /// So many dependencies were on operations that were declared lost.
    pub(in crate::partition) fn count_lost_dependencies(&mut self, count: usize) {
        self.loss_counts.dependencies += count as u64;
    }

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
        for (datacenter, _, position) in self.acknowledgements.applied_durably() {
            let applied = self.applied_through(datacenter);
            assert!(
                position <= applied,
                "{position} of {datacenter} is durably applied, and {applied} at all"
            );
        }
        waits + in_flight + self.inbound.check_invariants()
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
            held_back: None,
            paused: BTreeSet::new(),
            resumed_us: BTreeMap::new(),
            progress: BTreeMap::new(),
            keeps_progress: protocols.iter().any(|protocol| protocol.needs().snapshot_vectors),
            spoke_us: BTreeMap::new(),
            acknowledgements: Default::default(),
            replica_waits: Default::default(),
            loss_counts: LossCounts::default(),
            lateness: Lateness::default(),
        }
    }
}
