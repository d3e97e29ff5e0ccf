//! Address to core: where a partition or a core's sessions are, in whichever datacenter.
//!
//! What is said over a link that is down is lost, and said again by whoever said it when the link is up. Sessions ask
//! nothing of
//! a core that is away: they know which are (`session/links.rs`).

use crate::config::NodeConfig;
use crate::placement::Placement;
use ensue_types::{CoreId, DatacenterId};
use ensue_wire::Address;

/// The core that an address stands for; nothing if the cluster has no such place, as a broken peer may say. A partition
/// is where the configuration puts it, or with its leader.
pub(crate) fn locate(
    config: &NodeConfig,
    placement: &Placement,
    address: Address,
) -> Option<(DatacenterId, CoreId)> {
    let datacenter = address.datacenter();
    let there = config.topology.datacenters.get(usize::from(datacenter.0))?;
    let core = match address {
        Address::Partition { partition, .. } if partition.0 < config.topology.partitions => {
            placement.owner(&config.topology, datacenter, partition)
        }
        Address::Partition { .. } => return None,
        Address::Core { core, .. } => core,
    };
    (core.0 < there.cores).then_some((datacenter, core))
}
