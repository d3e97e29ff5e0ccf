//! Queries to all partitions and cores of the datacenter, for `INFO`, `CLIENT LIST` and `CONFIG RESETSTAT`.
//!
//! They are answered for those who answer: whoever is silent is counted, and does not turn the answer into an error.

use super::filter::Filter;
use super::info::{self, Findings, Metrics};
use super::latency;
use super::order::Gathering;
use crate::links;
use crate::session::cx::Cx;
use crate::session::step::Step;
use bytes::{Bytes, BytesMut};
use ensue_types::{Args, CoreId, PartitionId, Reply};
use ensue_wire::{Address, CoreQuery, Message};
use std::collections::BTreeMap;

/// What the answers are for.
#[derive(Clone, Debug)]
pub(crate) enum Purpose {
    /// These sections, in lower case; all if empty.
    Info(Vec<String>),
    ClientList(Filter),
    /// `LATENCY HISTOGRAM` of these commands, in lower case; of all if empty.
    Histogram(Vec<String>),
    /// `CONFIG RESETSTAT`.
    ResetStatistics,
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
        let cores = topology.datacenters[usize::from(datacenter.0)].cores;
        let mut peers: Vec<Peer> = (0..cores).map(CoreId).map(Peer::Core).collect();
        if let Purpose::Info(_) | Purpose::Histogram(_) = purpose {
            peers.extend((0..topology.partitions).map(PartitionId).map(Peer::Partition));
        }
        let core_query = match &purpose {
            Purpose::Info(_) | Purpose::Histogram(_) => CoreQuery::Metrics,
            Purpose::ClientList(_) => CoreQuery::ClientList,
            Purpose::ResetStatistics => CoreQuery::ResetStatistics,
            Purpose::Order(words, _) => CoreQuery::Order(words.clone()),
        };
        let missing: Vec<Option<Peer>> = peers.iter().copied().map(Some).collect();
        let mut query =
            ClusterQuery { purpose, missing, silent: 0, metrics: Metrics::new(), texts: BTreeMap::new() };
        cx.requests.ask(1);
        cx.begin_request(peers.len());
        for (share, peer) in peers.into_iter().enumerate() {
            if !cx.core.reaches_core(peer.core(cx)) {
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
                let sum = self.metrics.entry(name).or_insert(0);
                *sum = sum.saturating_add(value);
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

    fn silence(&mut self, share: usize) {
        if self.missing[share].take().is_some() {
            self.silent += 1;
        }
    }

    fn continue_or_answer(self: Box<Self>, cx: &mut Cx<'_>) -> Step<Box<ClusterQuery>> {
        if self.missing.iter().any(Option::is_some) {
            return Step::Waits(self);
        }
        let ClusterQuery { purpose, mut metrics, silent, texts, .. } = *self;
        let text = match purpose {
            Purpose::Histogram(names) => return Step::answer(latency::histogram(&metrics, &names)),
            Purpose::ResetStatistics if silent > 0 => return Step::answer(NOT_RESET),
            Purpose::ResetStatistics => return Step::answer(Reply::OK),
            Purpose::Order(..) if silent > 0 => return Step::answer(NOT_CARRIED_OUT),
            Purpose::Order(_, gathering) => {
                let replies: Vec<Reply> = texts.into_values().filter_map(decoded).collect();
                return Step::answer(gathering.answer(cx, &replies));
            }
            Purpose::Info(sections) => {
                metrics.insert("silent_peers".to_owned(), silent);
                let texts: Vec<_> = texts.values().map(|text| String::from_utf8_lossy(text)).collect();
                let linked = links::gather(texts.iter().map(AsRef::as_ref));
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
}
