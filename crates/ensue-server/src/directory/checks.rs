//! Whether the data in a folder was written under this configuration, as far as that must be, and what to do if not.
//!
//! What the bytes of the data mean must not change under them: names and numbers of datacenters, partitions, the
//! protocol of
//! each keyspace. Where partitions live may change if they are here. What only steers a running node may change: when
//! logs
//! are synced, who folds conflicting values, how branches are collected; that all nodes have it alike is the
//! handshake's
//! business.

use super::{CLUSTER, DATACENTER, DirectoryError, NUMBER, SHAPE, read_shape};
use crate::config::Cluster;
use crate::disk::folder_name;
use crate::fsck;
use crate::settings::{DATACENTERS, PARTITIONS, cores_of, protocol_of, replicas_of};
use ensue_store::recovery::is_unused;
use ensue_types::{PartitionId, limits};
use ensue_wire::{Settings, cluster_hash};
use std::path::Path;

/// Whether nothing was ever written here. A folder whose partitions hold data and that does not say what it is, is
/// damaged.
pub(super) fn is_new(path: &Path) -> Result<bool, DirectoryError> {
    let shape = path.join(SHAPE);
    let fails = |error| DirectoryError::Machine { path: path.into(), error };
    if shape.try_exists().map_err(fails)? {
        return Ok(false);
    }
    if path.try_exists().map_err(fails)? && fsck::holds_data(path).map_err(fails)? {
        return Err(DirectoryError::NoShape { path: shape });
    }
    Ok(true)
}

/// A datacenter with nothing of its own beside data of this cluster that nobody claims has been renamed.
pub(super) fn check_others(dir: &Path, path: &Path, cluster: &Cluster) -> Result<(), DirectoryError> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Ok(()) };
    let mut folders: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    folders.sort();
    let own_cluster = u128::from_le_bytes(cluster_hash(&cluster.name));
    for found in folders.into_iter().filter(|found| found != path) {
        // What cannot be read is no data of ours, as far as anybody can tell.
        let Ok(shape) = read_shape(&found) else { continue };
        let is_known = cluster.datacenters.iter().any(|known| known.name == shape.datacenter);
        let why = if shape.cluster != own_cluster {
            continue;
        } else if shape.number == cluster.own {
            format!("of this datacenter under the name '{}'", shape.datacenter)
        } else if !is_known {
            format!("of a datacenter '{}' that no `node` line names", shape.datacenter)
        } else {
            continue;
        };
        return Err(DirectoryError::Renamed { path: path.into(), found, why });
    }
    Ok(())
}

/// Compares what the data says with what the configuration says.
pub(super) fn check_shape(
    path: &Path,
    cluster: &Cluster,
    found: &Settings,
    expected: &Settings,
) -> Result<(), DirectoryError> {
    let other = |reason| Err(DirectoryError::Other { path: path.into(), reason });
    let differs = |name: &str| {
        let (data, configuration) = (found.value(name).unwrap_or(""), expected.value(name).unwrap_or(""));
        (data != configuration).then(|| (data.to_owned(), configuration.to_owned()))
    };
    for name in [CLUSTER, DATACENTER, NUMBER, PARTITIONS] {
        if let Some((data, configuration)) = differs(name) {
            return other(format!(
                "`{name}` is {data} in the data and {configuration} in the configuration, and it cannot change: put it back, \
                 or begin with an empty `dir`"
            ));
        }
    }
    if let Some((data, configuration)) = differs(DATACENTERS) {
        let (known, named): (Vec<&str>, Vec<&str>) =
            (data.split(' ').collect(), configuration.split(' ').collect());
        if !named.starts_with(&known) {
            return other(format!(
                "its datacenters are {data}, and the `node` lines name {configuration}: each keeps its name and its place, \
                 and new ones stand behind them"
            ));
        }
    }
    for keyspace in 0..usize::from(limits::KEYSPACES) {
        if let Some((data, configuration)) = differs(&protocol_of(keyspace)) {
            return other(format!(
                "keyspace {keyspace} was written under the protocol {data}, and the configuration says {configuration}: put \
                 `keyspace {keyspace} protocol {data}` back; for another protocol begin with an empty `dir` in all \
                 datacenters, and write the keys again"
            ));
        }
    }
    let own_replicas = replicas_of(&cluster.own_datacenter().name);
    if let Some((data, configuration)) = differs(&own_replicas) {
        let said = |count: &str| if count.is_empty() { "1".to_owned() } else { count.to_owned() };
        let (data, configuration) = (said(&data), said(&configuration));
        return other(format!(
            "its partitions have {data} replicas in the data and {configuration} in the configuration: put it back, or take a \
             backup, begin with an empty `dir` on all nodes of the datacenter, and restore"
        ));
    }
    let own_cores = cores_of(&cluster.own_datacenter().name);
    if let (Some((data, configuration)), Some(partition)) = (differs(&own_cores), missing(path, cluster)) {
        return other(format!(
            "{own_cores} were {data} and are {configuration} now, so that partition {partition} is this node's, and its data \
             is not here: put the `node` and `cores` lines back, or bring the folder of the partition from the node that had it"
        ));
    }
    Ok(())
}

/// A partition of this node that has nothing here.
fn missing(path: &Path, cluster: &Cluster) -> Option<PartitionId> {
    let topology = cluster.topology();
    let mut own = (0..cluster.partitions).map(PartitionId);
    own.find(|&partition| {
        let is_ours = cluster.is_own_core(cluster.own, topology.owner(cluster.own, partition));
        // The others have what an empty replica lacks.
        is_ours
            && !topology.is_replicated(cluster.own, partition)
            && fsck::list(&path.join(folder_name(partition))).map_or(true, |files| is_unused(&files))
    })
}
