//! Questions to all partitions and cores of the datacenter, for `INFO` and `CLIENT LIST`.
//!
//! They are answered for those who answer: whoever is silent is counted, and does not turn the answer into an error.

use super::client::Filter;
use super::exchange::Exchange;
use super::info::{self, Findings};
use super::turn::Turn;
use crate::links;
use bytes::Bytes;
use ensue_types::{CoreId, PartitionId, Reply};
use ensue_wire::{Address, CoreQuery, Message};
use std::collections::BTreeMap;

/// What the answers are for.
#[derive(Clone, Debug)]
pub(super) enum Purpose {
    /// These sections, in lower case; all if empty.
    Info(Vec<String>),
    ClientList(Filter),
}

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peer {
    Partition(PartitionId),
    Core(CoreId),
}

/// Waiting for `Surveyed` and `CoreAnswer` of everyone.
#[derive(Clone, Debug)]
pub(super) struct Survey {
    purpose: Purpose,
    /// Who has not answered yet: one a share.
    missing: Vec<Option<Peer>>,
    silent: i64,
    figures: BTreeMap<String, i64>,
    /// By core, so that the order of the answers does not show.
    texts: BTreeMap<CoreId, Bytes>,
}

impl Turn<'_> {
    pub(super) fn survey(&mut self, purpose: Purpose) {
        let topology = &self.desk.config.topology;
        let datacenter = topology.datacenter;
        let cores = topology.datacenters[usize::from(datacenter.0)].cores;
        let mut peers: Vec<Peer> = (0..cores).map(CoreId).map(Peer::Core).collect();
        if let Purpose::Info(_) = purpose {
            peers.extend((0..topology.partitions).map(PartitionId).map(Peer::Partition));
        }
        let query = match purpose {
            Purpose::Info(_) => CoreQuery::Figures,
            Purpose::ClientList(_) => CoreQuery::ClientList,
        };
        let missing = peers.iter().copied().map(Some).collect();
        let mut survey =
            Survey { purpose, missing, silent: 0, figures: BTreeMap::new(), texts: BTreeMap::new() };
        let reaches = |peer: &Peer| match *peer {
            Peer::Partition(partition) => self.reaches(partition),
            Peer::Core(core) => self.desk.links.reaches(self.desk.config.core, core),
        };
        let asked: Vec<bool> = peers.iter().map(reaches).collect();
        for (share, _) in asked.iter().enumerate().filter(|(_, asked)| !**asked) {
            survey.silence(share);
        }
        self.ask(1);
        self.begin_request(Exchange::Survey(Box::new(survey)), peers.len());
        for (share, peer) in peers.into_iter().enumerate().filter(|(share, _)| asked[*share]) {
            let request = self.request(share);
            match peer {
                Peer::Partition(partition) => self.send(partition, Message::Survey { request }),
                Peer::Core(core) => {
                    let time = self.session.context().time;
                    let message = Message::CoreQuery { request, query: query.clone() };
                    self.desk.send(Address::Core { datacenter, core }, time, message);
                }
            }
        }
    }
}

impl Survey {
    pub(super) fn on_answer(mut self: Box<Self>, turn: &mut Turn<'_>, share: usize, message: Message) {
        let (text, figures) = match message {
            Message::Surveyed { figures, .. } => (None, figures),
            Message::CoreAnswer { text, figures, .. } => (Some(text), figures),
            _ => return turn.unexpected(Exchange::Survey(self)),
        };
        if let Some(peer) = self.missing[share].take() {
            for (name, value) in figures {
                let sum = self.figures.entry(name).or_insert(0);
                *sum = sum.saturating_add(value);
            }
            if let (Peer::Core(core), Some(text)) = (peer, text) {
                self.texts.insert(core, text);
            }
        }
        self.go_on(turn);
    }

    /// One of them cannot answer.
    pub(super) fn on_silence(mut self: Box<Self>, turn: &mut Turn<'_>, share: usize) {
        self.silence(share);
        self.go_on(turn);
    }

    pub(super) fn on_timeout(mut self: Box<Self>, turn: &mut Turn<'_>) {
        for share in 0..self.missing.len() {
            self.silence(share);
        }
        self.go_on(turn);
    }

    pub(super) fn on_link_down(mut self: Box<Self>, turn: &mut Turn<'_>, lost: CoreId) {
        let topology = &turn.desk.config.topology;
        for share in 0..self.missing.len() {
            let core = match self.missing[share] {
                Some(Peer::Core(core)) => core,
                Some(Peer::Partition(partition)) => topology.owner(topology.datacenter, partition),
                None => continue,
            };
            if core == lost {
                self.silence(share);
            }
        }
        self.go_on(turn);
    }

    fn silence(&mut self, share: usize) {
        if self.missing[share].take().is_some() {
            self.silent += 1;
        }
    }

    fn go_on(self: Box<Self>, turn: &mut Turn<'_>) {
        if self.missing.iter().any(Option::is_some) {
            turn.session.exchange = Exchange::Survey(self);
            return;
        }
        let mut figures = self.figures;
        let text = match self.purpose {
            Purpose::Info(sections) => {
                figures.insert("silent_peers".to_owned(), self.silent);
                let texts: Vec<_> = self.texts.values().map(|text| String::from_utf8_lossy(text)).collect();
                let linked = links::gather(texts.iter().map(AsRef::as_ref));
                info::text(turn.desk, turn.now, &sections, Findings { figures: &figures, linked: &linked })
            }
            Purpose::ClientList(filter) => {
                let lines: Vec<u8> = self.texts.into_values().flatten().collect();
                filter.apply(&String::from_utf8_lossy(&lines))
            }
        };
        turn.answer(&[Reply::Verbatim(text.into())]);
    }
}
