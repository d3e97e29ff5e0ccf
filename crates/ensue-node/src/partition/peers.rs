//! The same partition in the other datacenters: who it is, and what of its words is not taken.

pub(in crate::partition) mod buffered;
pub(in crate::partition) mod identity;
pub(in crate::partition) mod lost_directory;

use crate::partition::cx::Cx;
use crate::partition::others::Others;
use buffered::Buffered;
use ensue_types::DatacenterId;
use identity::Identity;
use std::collections::BTreeMap;

/// Why a partition cannot go on.
#[derive(Clone, Debug)]
pub(in crate::partition) enum Halt {
    Stopped(String),
    /// The end of the own log was lost though it was taken for whole, as when a file system is mounted again after an
    /// error: the next start recovers it from the other datacenters.
    Short(String),
    /// The directory is not the datacenter's newest, and was written to: it must not be served by a next start either.
    Forked(String),
    /// The others go on without this datacenter: what it would write from here on nobody would take.
    Dead(String),
}

/// What is known of the same partition in the other datacenters, and what of their words is not taken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Peers {
    /// Which directories this partition and its peers run on, and which peers are refused.
    pub(in crate::partition) identity: Identity,
    /// Messages that came before the log was read.
    pub(in crate::partition) buffered: Buffered,
    /// Why the partition cannot go on, found in what peers said: the conductor ends it when the step is done.
    halt: Option<Halt>,
    /// What datacenters said that was refused, by who said it.
    refused: BTreeMap<DatacenterId, u64>,
}

impl Peers {
    /// What a peer said in this step shows that the partition cannot go on.
    pub(in crate::partition) fn halt(&mut self, halt: Halt) {
        self.halt = Some(halt);
    }

    pub(in crate::partition) fn take_halt(&mut self) -> Option<Halt> {
        self.halt.take()
    }

    /// Something that a datacenter said was refused.
    pub(crate) fn count_refused(&mut self, cx: &Cx, from: DatacenterId) {
        // The names of those that there are not would be as many as somebody likes.
        if usize::from(from.0) < cx.config.topology.datacenters.len() {
            *self.refused.entry(from).or_default() += 1;
        }
    }

    /// The metrics of each other datacenter.
    pub(in crate::partition) fn add_peer_metrics(
        &self,
        cx: &Cx,
        others: &Others,
        add: &mut impl FnMut(&str, u64),
    ) {
        for (datacenter, sender) in others.replication.senders() {
            if others.failover.failed.contains(datacenter) {
                continue;
            }
            let name = &cx.config.topology.datacenters[usize::from(datacenter.0)].name;
            add(&format!("refused_{name}_messages"), self.refused(datacenter));
            add(&format!("lag_{name}_entries"), sender.synced().entries_to(cx.position));
            add(&format!("unreceived_{name}_entries"), sender.received().entries_to(cx.position));
            add(&format!("lag_{name}_ms_max"), others.replication.lag_ms(cx, sender.synced()));
            add(&format!("unreceived_{name}_ms_max"), others.replication.lag_ms(cx, sender.received()));
            others.replication.add_lateness_of(cx, datacenter, add);
            add(&format!("linked_{name}"), u64::from(sender.is_resumed()));
            add(
                &format!("refused_{name}_partitions"),
                u64::from(self.identity.refusal(datacenter).is_some()),
            );
        }
    }
}

impl Peers {
    /// How often this datacenter was refused.
    pub(crate) fn refused(&self, from: DatacenterId) -> u64 {
        self.refused.get(&from).copied().unwrap_or(0)
    }
}
