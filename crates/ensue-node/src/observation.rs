//! What a node shows of itself to whoever watches it: the same metrics as `INFO`, as values.
//!
//! Asked for by an input and answered by an output, once each partition and core has told what it has, or is silent.
//! Names are those of `INFO` without `ensue_`; what they mean to a monitoring system is the shell's work.

use crate::config::Topology;
use crate::links::{self, Linked};
use ensue_types::DatacenterId;
use std::collections::BTreeMap;

/// Of whom the metrics are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The cores of one node, and their partitions. The core that is asked is the first of its node.
    Node,
    /// Everything that `INFO` shows.
    Datacenter,
}

/// How a datacenter is reached from here.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObservedLink {
    pub datacenter: String,
    /// Links between cores that there should be, and how many of them are up or refused.
    pub links: u32,
    pub up: u32,
    pub refused: u32,
}

/// What was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Observation {
    pub metrics: BTreeMap<String, i64>,
    pub links: Vec<ObservedLink>,
    /// Why some keys are not answered; nothing if all are.
    pub not_serving: Vec<String>,
    /// The same, and why something is not replicated.
    pub not_ready: Vec<String>,
}

impl Observation {
    pub(crate) fn new(
        topology: &Topology,
        partitions: usize,
        metrics: BTreeMap<String, i64>,
        linked: &BTreeMap<DatacenterId, Linked>,
    ) -> Observation {
        let metric = |name: &str| metrics.get(name).copied().unwrap_or(0);
        let not_serving = links::not_serving(metric);
        let not_ready = links::shortcomings(topology, linked, partitions, metric);
        let links = linked.iter().filter_map(|(datacenter, linked)| {
            let there = topology.datacenters.get(usize::from(datacenter.0))?;
            let Linked { links, up, refused, .. } = *linked;
            Some(ObservedLink { datacenter: there.name.clone(), links, up, refused })
        });
        let links = links.collect();
        Observation { links, not_serving, not_ready, metrics }
    }

    /// The value of a metric; 0 if there is none.
    pub fn metric(&self, name: &str) -> i64 {
        self.metrics.get(name).copied().unwrap_or(0)
    }
}
