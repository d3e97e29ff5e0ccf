//! Address to core: where a partition or a core's sessions are, in whichever datacenter.

use crate::config::NodeConfig;
use ensue_types::{CoreId, DatacenterId};
use ensue_wire::Address;

/// Placement is static: the router is a view of the configuration.
#[derive(Debug, Default)]
pub struct Router;

impl Router {
    /// The core that an address stands for.
    pub fn locate(&self, config: &NodeConfig, address: Address) -> (DatacenterId, CoreId) {
        match address {
            Address::Partition { datacenter, partition } => {
                (datacenter, config.topology.owner(datacenter, partition))
            }
            Address::Core { datacenter, core } => (datacenter, core),
        }
    }
}
