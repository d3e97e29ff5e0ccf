//! Queries to all partitions and cores of the datacenter, for `INFO`, `CLIENT LIST`, `CONFIG RESETSTAT` and whoever
//! watches a node.
//!
//! They are answered for those who answer: whoever is silent is counted, and does not turn the answer into an error.

use super::filter::Filter;
use super::info::{self, Findings, Metrics};
use super::latency;
use super::memory;
use super::order::Gathering;
use crate::links::{self, Linked};
use crate::observation::{Observation, Scope};
use crate::session::cx::Cx;
use crate::session::step::Step;
use crate::statistics;
use bytes::{Bytes, BytesMut};
use ensue_types::{Args, CoreId, DatacenterId, PartitionId, Reply};
use ensue_wire::{Address, CoreQuery, Message};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// What the answers are for.
#[derive(Clone, Debug)]
pub(crate) enum Purpose {
    /// These sections, in lower case; all if empty.
    Info(Vec<String>),
    ClientList(Filter),
    /// `LATENCY HISTOGRAM` of these commands, in lower case; of all if empty.
    Histogram(Vec<String>),
    Memory(memory::Question),
    /// `CONFIG RESETSTAT`.
    ResetStatistics,
    /// The answer is an output of its own, and no command's.
    Observation(Scope),
    /// Every core does this.
    Order(Args, Gathering),
}

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peer {
    Partition(PartitionId),
    Core(CoreId),
}

/// Waiting for `MetricsAnswer` and `CoreAnswer` of everyone.
#[derive(Clone, Debug)]
pub(crate) struct ClusterQuery {
    purpose: Purpose,
    /// Who has not answered yet: one a share.
    missing: Vec<Option<Peer>>,
    /// How many of those were partitions.
    partitions: usize,
    silent: i64,
    metrics: Metrics,
    /// By core, so that the order of the answers does not show.
    texts: BTreeMap<CoreId, Bytes>,
}

/// `INFO [section ...]`.
pub(crate) fn info(cx: &mut Cx<'_>, args: &Args) -> Step<Box<ClusterQuery>> {
    let sections = info::sections(args);
    if info::asks(&sections) {
        return ClusterQuery::begin(cx, Purpose::Info(sections));
    }
    let (metrics, linked) = (&Metrics::new(), &BTreeMap::new());
    let text = info::text(cx, &sections, Findings { metrics, linked });
    Step::answer(Reply::Verbatim(text.into()))
}

impl ClusterQuery {
    pub(crate) fn begin(cx: &mut Cx<'_>, purpose: Purpose) -> Step<Box<ClusterQuery>> {
        let topology = &cx.core.config.topology;
        let datacenter = topology.datacenter;
        let first = cx.core.config.core.0;
        let cores = match purpose {
            Purpose::Observation(Scope::Node) => first..first + cx.core.config.node_cores,
            _ => 0..topology.datacenters[usize::from(datacenter.0)].cores,
        };
        let mut peers: Vec<Peer> = cores.clone().map(CoreId).map(Peer::Core).collect();
        let asks_partitions = matches!(
            purpose,
            Purpose::Info(_) | Purpose::Histogram(_) | Purpose::Memory(_) | Purpose::Observation(_)
        );
        if asks_partitions {
            let all = (0..topology.partitions).map(PartitionId);
            let lives_here = |partition: &PartitionId| cores.contains(&cx.core.owner(*partition).0);
            peers.extend(all.filter(lives_here).map(Peer::Partition));
        }
        let core_query = match &purpose {
            Purpose::Info(_) | Purpose::Histogram(_) | Purpose::Memory(_) | Purpose::Observation(_) => {
                CoreQuery::Metrics
            }
            Purpose::ClientList(_) => CoreQuery::ClientList,
            Purpose::ResetStatistics => CoreQuery::ResetStatistics,
            Purpose::Order(words, _) => CoreQuery::Order(words.clone()),
        };
        let missing: Vec<Option<Peer>> = peers.iter().copied().map(Some).collect();
        let partitions = peers.iter().filter(|peer| matches!(peer, Peer::Partition(_))).count();
        let (silent, metrics, texts) = (0, Metrics::new(), BTreeMap::new());
        let mut query = ClusterQuery { purpose, missing, partitions, silent, metrics, texts };
        cx.requests.ask(1);
        cx.begin_request(peers.len());
        for (share, peer) in peers.into_iter().enumerate() {
            if !peer.is_reached(cx) {
                query.silence(share);
                continue;
            }
            let request = cx.request(share);
            match peer {
                Peer::Partition(partition) => cx.send(partition, Message::MetricsQuery { request }),
                Peer::Core(core) => {
                    let (to, time) = (Address::Core { datacenter, core }, cx.contexts.own().time);
                    cx.core.send(to, time, Message::CoreQuery { request, query: core_query.clone() });
                }
            }
        }
        Step::Waits(Box::new(query))
    }

    pub(crate) fn on_answer(
        mut self: Box<Self>,
        cx: &mut Cx<'_>,
        share: usize,
        message: Message,
    ) -> Step<Box<ClusterQuery>> {
        let (text, metrics) = match message {
            Message::MetricsAnswer { metrics, .. } => (None, metrics),
            Message::CoreAnswer { text, metrics, .. } => (Some(text), metrics),
            _ => return cx.unexpected(self),
        };
        if let Some(peer) = self.missing[share].take() {
            for (name, value) in metrics {
                add(&mut self.metrics, name, value);
            }
            if let (Peer::Core(core), Some(text)) = (peer, text) {
                self.texts.insert(core, text);
            }
        }
        self.continue_or_answer(cx)
    }

    /// One of them cannot answer.
    pub(crate) fn on_silence(mut self: Box<Self>, cx: &mut Cx<'_>, share: usize) -> Step<Box<ClusterQuery>> {
        self.silence(share);
        self.continue_or_answer(cx)
    }

    pub(crate) fn on_timeout(mut self: Box<Self>, cx: &mut Cx<'_>) -> Step<Box<ClusterQuery>> {
        for share in 0..self.missing.len() {
            self.silence(share);
        }
        self.continue_or_answer(cx)
    }

    pub(crate) fn on_link_down(
        mut self: Box<Self>,
        cx: &mut Cx<'_>,
        lost: CoreId,
    ) -> Step<Box<ClusterQuery>> {
        for share in 0..self.missing.len() {
            if self.missing[share].is_some_and(|peer| peer.core(cx) == lost) {
                self.silence(share);
            }
        }
        self.continue_or_answer(cx)
    }

    /// A partition does not live any more where it was asked.
    pub(crate) fn on_partition_moved(
        mut self: Box<Self>,
        cx: &mut Cx<'_>,
        moved: PartitionId,
    ) -> Step<Box<ClusterQuery>> {
        for share in 0..self.missing.len() {
            if self.missing[share] == Some(Peer::Partition(moved)) {
                self.silence(share);
            }
        }
        self.continue_or_answer(cx)
    }

    fn silence(&mut self, share: usize) {
        if self.missing[share].take().is_some() {
            self.silent += 1;
        }
    }

    fn continue_or_answer(self: Box<Self>, cx: &mut Cx<'_>) -> Step<Box<ClusterQuery>> {
        if self.missing.iter().any(Option::is_some) {
            return Step::Waits(self);
        }
        let ClusterQuery { purpose, mut metrics, silent, texts, partitions, .. } = *self;
        let text = match purpose {
            Purpose::Histogram(names) => return Step::answer(latency::histogram(&metrics, &names)),
            Purpose::Memory(question) => {
                metrics.insert("silent_peers".to_owned(), silent);
                let bound = cx.core.parameters.number("maxmemory");
                return Step::answer(memory::answer(question, &metrics, bound));
            }
            Purpose::ResetStatistics if silent > 0 => return Step::answer(NOT_RESET),
            Purpose::ResetStatistics => return Step::answer(Reply::OK),
            Purpose::Order(..) if silent > 0 => return Step::answer(NOT_CARRIED_OUT),
            Purpose::Order(_, gathering) => {
                let replies: Vec<Reply> = texts.into_values().filter_map(decoded).collect();
                return Step::answer(gathering.answer(cx, &replies));
            }
            Purpose::Observation(_) => {
                metrics.insert("silent_peers".to_owned(), silent);
                let linked = gather_links(&texts);
                let topology = &cx.core.config.topology;
                let observation = Box::new(Observation::new(topology, partitions, metrics, &linked));
                let session = cx.requests.session();
                cx.core.show(session, observation);
                return Step::Ready;
            }
            Purpose::Info(sections) => {
                metrics.insert("silent_peers".to_owned(), silent);
                let linked = gather_links(&texts);
                info::text(cx, &sections, Findings { metrics: &metrics, linked: &linked })
            }
            Purpose::ClientList(filter) => {
                let lines: Vec<u8> = texts.into_values().flatten().collect();
                filter.apply(&String::from_utf8_lossy(&lines))
            }
        };
        Step::answer(Reply::Verbatim(text.into()))
    }
}

/// Adds what one partition or core has; the largest, or the smallest, counts of what cannot be added up.
fn add(metrics: &mut Metrics, name: String, value: i64) {
    let is_free_text = name.starts_with(statistics::ERROR);
    let is_largest = name.ends_with(statistics::LARGEST) && !is_free_text;
    let is_smallest = name.ends_with(statistics::SMALLEST) && !is_free_text;
    match metrics.entry(name) {
        Entry::Vacant(vacant) => {
            vacant.insert(value);
        }
        Entry::Occupied(mut known) if is_largest => *known.get_mut() = value.max(*known.get()),
        Entry::Occupied(mut known) if is_smallest => *known.get_mut() = value.min(*known.get()),
        Entry::Occupied(mut known) => *known.get_mut() = known.get().saturating_add(value),
    }
}

/// Puts together what the cores have said of their links.
fn gather_links(texts: &BTreeMap<CoreId, Bytes>) -> BTreeMap<DatacenterId, Linked> {
    let texts: Vec<_> = texts.values().map(|text| String::from_utf8_lossy(text)).collect();
    links::gather(texts.iter().map(AsRef::as_ref))
}

/// What a core has answered to an order.
fn decoded(text: Bytes) -> Option<Reply> {
    ensue_resp::decode(&mut BytesMut::from(&text[..])).ok().flatten()
}

const NOT_CARRIED_OUT: Reply = Reply::error(
    "UNAVAILABLE a core of this datacenter did not answer: it may not have done this, try again",
);

const NOT_RESET: Reply = Reply::error(
    "UNAVAILABLE a core of this datacenter did not answer: its statistics may not have been reset, try again",
);

impl Peer {
    /// The core that answers for it.
    fn core(self, cx: &Cx<'_>) -> CoreId {
        match self {
            Peer::Core(core) => core,
            Peer::Partition(partition) => cx.core.owner(partition),
        }
    }

    /// Whether it can be asked: a partition that moves is on a core that is reached, and nobody is there yet.
    fn is_reached(self, cx: &Cx<'_>) -> bool {
        match self {
            Peer::Core(core) => cx.core.reaches_core(core),
            Peer::Partition(partition) => cx.core.reaches(partition),
        }
    }
}
