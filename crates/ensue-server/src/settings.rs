//! What must be equal on all nodes, by name: compared in the handshake with every peer, and with the data at a start.
//!
//! How a thing is written here is what a refusal shows, so it is what people write in a configuration. What may differ
//! from node to node does not stand here.

use crate::config::{Cluster, Config, fsync_name};
use ensue_store::superblock::FORMAT;
use ensue_types::KeyspaceId;
pub(crate) use ensue_wire::handshake::DATACENTERS;
use ensue_wire::handshake::OF_A_DATACENTER;
use ensue_wire::{Scope, Settings};

pub(crate) const PARTITIONS: &str = "partitions";
pub(crate) const LOG_FORMAT: &str = "log-format";

/// The setting that says how many cores the nodes of a datacenter have, in order, and so which partition is where.
pub(crate) fn cores_of(datacenter: &str) -> String {
    format!("{}{datacenter}", OF_A_DATACENTER[0])
}

/// The same of a datacenter whose partitions are replicated, on nodes of equally many cores: there may be more of them
/// later, to which replicas move.
pub(crate) fn cores_of_each(datacenter: &str) -> String {
    format!("{}{datacenter}", OF_A_DATACENTER[1])
}

/// The setting that says on how many nodes of a datacenter each partition is, if on several.
pub(crate) fn replicas_of(datacenter: &str) -> String {
    format!("{}{datacenter}", OF_A_DATACENTER[2])
}

/// The setting that says which protocol a keyspace has.
pub(crate) fn protocol_of(keyspace: usize) -> String {
    format!("keyspace {keyspace} protocol")
}

/// Everything that must be equal, as this node has it.
pub(crate) fn settings(config: &Config, cluster: &Cluster) -> Settings {
    let mut settings = Settings::default();
    settings.add(Scope::Cluster, LOG_FORMAT, FORMAT.to_string());
    settings.add(Scope::Cluster, PARTITIONS, cluster.partitions.to_string());
    let names: Vec<&str> = cluster.datacenters.iter().map(|datacenter| datacenter.name.as_str()).collect();
    settings.add(Scope::Cluster, DATACENTERS, names.join(" "));
    for datacenter in &cluster.datacenters {
        let cores: Vec<String> = datacenter.nodes.iter().map(|node| node.cores.to_string()).collect();
        match &cores[..] {
            [first, others @ ..] if datacenter.replicas > 1 && others.iter().all(|other| other == first) => {
                settings.add(Scope::Cluster, cores_of_each(&datacenter.name), first);
            }
            _ => settings.add(Scope::Cluster, cores_of(&datacenter.name), cores.join(" ")),
        }
        if datacenter.replicas > 1 {
            settings.add(Scope::Cluster, replicas_of(&datacenter.name), datacenter.replicas.to_string());
        }
    }
    for (keyspace, protocol) in config.protocols.iter().enumerate() {
        settings.add(Scope::Cluster, protocol_of(keyspace), protocol);
        let handlers = handlers_of(config, KeyspaceId(keyspace as u8));
        if !handlers.is_empty() {
            settings.add(Scope::Cluster, format!("keyspace {keyspace} conflicts"), handlers.join(", "));
        }
        let homes = homes_of(config, KeyspaceId(keyspace as u8));
        if !homes.is_empty() {
            settings.add(Scope::Cluster, format!("keyspace {keyspace} home"), homes.join(", "));
        }
        if config.home_reads.contains(&KeyspaceId(keyspace as u8)) {
            settings.add(Scope::Cluster, format!("keyspace {keyspace} home-reads"), "yes");
        }
    }
    if config.has_branches() {
        let collection = config.branch_collection_name();
        settings.add(Scope::Cluster, "branch-collection", collection);
        let merger = config.branch_merging_datacenter.as_deref().unwrap_or("");
        settings.add(Scope::Cluster, "branch-merging-datacenter", merger);
    }
    settings.add(Scope::Datacenter, "appendfsync", fsync_name(config.appendfsync));
    settings
}

/// In the order in which they are tried. A pattern is quoted, so that two lists never look the same.
fn handlers_of(config: &Config, keyspace: KeyspaceId) -> Vec<String> {
    let all = config.handlers.iter().map(|named| &named.handler);
    let handlers = all.filter(|handler| handler.keyspace == keyspace);
    handlers.map(|one| format!("\"{}\" {}", one.pattern.escape_ascii(), one.fold.identity())).collect()
}

/// As handlers: in the order in which they are tried.
fn homes_of(config: &Config, keyspace: KeyspaceId) -> Vec<String> {
    let homes = config.homes.iter().filter(|home| home.keyspace == keyspace);
    homes.map(|one| format!("\"{}\" {}", one.pattern.escape_ascii(), one.datacenter)).collect()
}
