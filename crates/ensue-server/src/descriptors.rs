//! The file descriptors of this process: as many as it may have, and how many clients they leave room for.
//!
//! A partition that cannot open a file stops, and a core that cannot accept a peer replicates nothing: so a node's
//! partitions and links come first, and its clients get what is left. It opens nothing itself.

use crate::bounds::{
    CORE_DESCRIPTORS, LINGERING_MAX, PARTITION_FILES_MAX, PROCESS_DESCRIPTORS_RESERVE, STRANGERS_MAX,
};
use crate::config::Cluster;
use crate::log;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use thiserror::Error;

/// The process may not have enough file descriptors for a node.
#[derive(Debug, Error)]
#[error(
    "a node here may have {share} file descriptors, and needs {needed} and one for each client: raise the hard limit (ulimit -Hn)"
)]
pub struct TooFew {
    share: usize,
    needed: usize,
}

/// Raises the soft limit of this process to the hard one, and says what each of its nodes may have.
pub(crate) fn share_of(nodes: usize) -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let limit = match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum,
        Err(error) => {
            log::verbose(format_args!("the number of file descriptors cannot be raised: {error}"));
            current
        }
    };
    let limit = limit.map_or(usize::MAX, |limit| limit as usize);
    limit.saturating_sub(PROCESS_DESCRIPTORS_RESERVE) / nodes
}

/// How many clients a node of this cluster has file descriptors for.
pub(crate) fn room(share: usize, cluster: &Cluster) -> Result<usize, TooFew> {
    let needed = needed(cluster);
    match share.saturating_sub(needed) {
        0 => Err(TooFew { share, needed }),
        room => Ok(room),
    }
}

/// How many of the clients that are wanted a node admits where there is room for so many.
pub(crate) fn clients_max(room: usize, wanted: usize) -> usize {
    if room < wanted {
        log::warning(format_args!(
            "maxclients is {room} instead of {wanted}: partitions and peers need the other file descriptors that a \
             node here may have (ulimit -Hn)"
        ));
    }
    room.min(wanted)
}

/// What a node opens at the most, clients apart.
fn needed(cluster: &Cluster) -> usize {
    let cores = usize::from(cluster.own_node().cores);
    let topology = cluster.topology();
    let own = &topology.datacenters[usize::from(cluster.own.0)].placement;
    let partitions = own.iter().filter(|&&core| cluster.is_own_core(cluster.own, core)).count();
    let of_a_core = cluster.peers().len() + STRANGERS_MAX + CORE_DESCRIPTORS;
    partitions * PARTITION_FILES_MAX + cores * of_a_core + LINGERING_MAX
}

#[cfg(test)]
mod tests;
