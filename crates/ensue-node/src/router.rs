//! Address to core: where a partition or a core's sessions are, in whichever datacenter, and which links are up.
//!
//! Requests of sessions for a core of this datacenter that is away wait here until it is back or their time is over.
//! Whatever else is said over a link that is down is lost, and said again by whoever said it when the link is up.

use crate::config::NodeConfig;
use ensue_types::{CoreId, DatacenterId, Now};
use ensue_wire::{Address, Envelope};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Requests that may wait for one core.
const PARKED_MAX: usize = 16_384;

/// Placement is static, a view of the configuration; links come and go.
#[derive(Clone, Debug, Default)]
pub struct Router {
    up: BTreeSet<(DatacenterId, CoreId)>,
    parked: BTreeMap<CoreId, VecDeque<(u64, Envelope)>>,
}

impl Router {
    /// The core that an address stands for; nothing if the cluster has no such place, as a broken peer may say.
    pub fn locate(&self, config: &NodeConfig, address: Address) -> Option<(DatacenterId, CoreId)> {
        let datacenter = address.datacenter();
        let there = config.topology.datacenters.get(usize::from(datacenter.0))?;
        let core = match address {
            Address::Partition { partition, .. } => *there.placement.get(usize::from(partition.0))?,
            Address::Core { core, .. } => core,
        };
        (core.0 < there.cores).then_some((datacenter, core))
    }

    /// Keeps a session's request while its core is away; gives everything else back to be sent.
    pub fn park(
        &mut self,
        config: &NodeConfig,
        now: Now,
        core: CoreId,
        envelope: Envelope,
    ) -> Option<Envelope> {
        let ours = config.topology.datacenter;
        let from_session = matches!(envelope.from, Address::Core { .. });
        if !from_session || envelope.to.datacenter() != ours || self.up.contains(&(ours, core)) {
            return Some(envelope);
        }
        let parked = self.parked.entry(core).or_default();
        // Nobody waits for their answers any more, and they may be long.
        while parked.front().is_some_and(|(until_us, _)| *until_us <= now.monotonic_us) {
            parked.pop_front();
        }
        let until_us = now.monotonic_us + 1_000 * config.tuning.request_timeout_ms;
        parked.push_back((until_us, envelope));
        if parked.len() > PARKED_MAX {
            parked.pop_front();
        }
        None
    }

    /// A link is up: what waited for it, as far as anybody still waits for the answer.
    pub fn on_link_up(&mut self, now: Now, datacenter: DatacenterId, core: CoreId) -> Vec<Envelope> {
        self.up.insert((datacenter, core));
        let parked = self.parked.remove(&core).unwrap_or_default();
        parked
            .into_iter()
            .filter(|(until_us, _)| *until_us > now.monotonic_us)
            .map(|(_, envelope)| envelope)
            .collect()
    }

    pub fn on_link_down(&mut self, datacenter: DatacenterId, core: CoreId) {
        self.up.remove(&(datacenter, core));
    }
}

#[cfg(test)]
mod tests;
