//! The shape of the cluster as the `node` lines say it: datacenters in order of appearance, their nodes, their cores.
//!
//! `node NAME HOST:PORT [cores N]`, one line a node: core `c` of the node accepts its peers on `PORT + c`. Every node
//! of the cluster must be given the same lines in the same order; the handshake refuses a peer that was not. Placement
//! is static: partition `p` is on core `p` modulo the number of cores of the datacenter.

use super::Config;
use super::directive::{name, number};
use super::error::ConfigError;
use crate::bounds::CORES_MAX;
use ensue_node::{DatacenterTopology, Topology};
use ensue_types::{CoreId, DatacenterId, limits};
use std::fmt;

/// One `node` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeLine {
    pub datacenter: String,
    pub host: String,
    /// Where the node's first core accepts peers.
    pub port: u16,
    /// None means the `cores` directive.
    pub cores: Option<u16>,
}

impl NodeLine {
    pub(super) fn parse(words: &[String]) -> Result<NodeLine, String> {
        let (datacenter, address, cores) = match words {
            [datacenter, address] => (datacenter, address, None),
            [datacenter, address, key, cores] if key == "cores" => (datacenter, address, Some(cores)),
            _ => return Err("write NAME HOST:PORT [cores N]".into()),
        };
        let (host, port) = address.rsplit_once(':').ok_or_else(|| format!("'{address}' has no port"))?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(format!("'{address}' has no host"));
        }
        Ok(NodeLine {
            datacenter: name(datacenter)?,
            host: host.into(),
            port: number(port, 1, 65_535)? as u16,
            cores: cores.map(|cores| number(cores, 1, CORES_MAX.into())).transpose()?.map(|n| n as u16),
        })
    }
}

impl fmt::Display for NodeLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        write!(f, "{} {host}:{}", self.datacenter, self.port)?;
        self.cores.map_or(Ok(()), |cores| write!(f, " cores {cores}"))
    }
}

/// `replicas N [DATACENTER:N ...]`: on how many of a datacenter's nodes each partition is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replicas {
    everywhere: u16,
    /// Where it is another number.
    named: Vec<(String, u16)>,
}

impl Default for Replicas {
    fn default() -> Replicas {
        Replicas { everywhere: 1, named: Vec::new() }
    }
}

impl Replicas {
    /// The same number in all datacenters.
    pub fn everywhere(count: u16) -> Result<Replicas, String> {
        Replicas::parse(&[count.to_string()])
    }

    pub(super) fn parse(words: &[String]) -> Result<Replicas, String> {
        let count = |word: &str| match word {
            "1" | "3" | "5" => Ok(word.as_bytes()[0].wrapping_sub(b'0').into()),
            other => Err(format!("'{other}' is not 1, 3 or 5")),
        };
        let mut replicas = Replicas { everywhere: count(&words[0])?, named: Vec::new() };
        for word in &words[1..] {
            let pair = word.rsplit_once(':').ok_or_else(|| format!("'{word}' is not DATACENTER:N"))?;
            replicas.named.push((name(pair.0)?, count(pair.1)?));
        }
        Ok(replicas)
    }

    pub fn of(&self, datacenter: &str) -> u16 {
        let named = self.named.iter().rfind(|(name, _)| name == datacenter);
        named.map_or(self.everywhere, |(_, count)| *count)
    }
}

impl fmt::Display for Replicas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.everywhere)?;
        self.named.iter().try_for_each(|(name, count)| write!(f, " {name}:{count}"))
    }
}

/// A node's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePlace {
    pub host: String,
    pub port: u16,
    pub cores: u16,
    /// The number of its first core, counted over the datacenter.
    pub first_core: u16,
}

impl NodePlace {
    pub fn has_core(&self, core: CoreId) -> bool {
        (self.first_core..self.first_core + self.cores).contains(&core.0)
    }
}

/// A datacenter and its nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datacenter {
    pub name: String,
    pub nodes: Vec<NodePlace>,
    /// On how many of the nodes each partition is.
    pub replicas: u16,
}

impl Datacenter {
    pub fn cores(&self) -> u16 {
        self.nodes.iter().map(|node| node.cores).sum()
    }

    /// The cores on which each partition is, if they are several: the one that is meant to own it, and then one on each
    /// of the nodes behind that one's.
    fn replicas(&self, partitions: u16) -> Vec<Vec<CoreId>> {
        if self.replicas == 1 {
            return Vec::new();
        }
        let of_one = |partition: u16| {
            let owner = CoreId(partition % self.cores());
            let first = self.nodes.iter().position(|node| node.has_core(owner)).unwrap_or(0);
            let behind = (1..usize::from(self.replicas)).map(|step| {
                let node = &self.nodes[(first + step) % self.nodes.len()];
                CoreId(node.first_core + partition % node.cores)
            });
            std::iter::once(owner).chain(behind).collect()
        };
        (0..partitions).map(of_one).collect()
    }
}

/// The whole cluster, and this node's place in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    pub name: String,
    pub partitions: u16,
    pub datacenters: Vec<Datacenter>,
    pub own: DatacenterId,
    pub node: usize,
}

impl Cluster {
    pub(super) fn new(config: &Config) -> Result<Cluster, ConfigError> {
        let fails = |reason: String| Err(ConfigError::Cluster { reason });
        let mut datacenters: Vec<Datacenter> = Vec::new();
        for line in node_lines(config) {
            let cores = line.cores.unwrap_or(config.cores);
            if usize::from(line.port) + usize::from(cores) > 65_536 {
                return fails(format!("node '{line}' has more cores than there are ports above its own"));
            }
            let index = datacenters.iter().position(|d| d.name == line.datacenter).unwrap_or_else(|| {
                let (name, replicas) = (line.datacenter.clone(), config.replicas.of(&line.datacenter));
                datacenters.push(Datacenter { name, nodes: Vec::new(), replicas });
                datacenters.len() - 1
            });
            let nodes = &mut datacenters[index].nodes;
            let first_core = nodes.last().map_or(0, |last| last.first_core + last.cores);
            if first_core + cores > CORES_MAX {
                return fails(format!("{} has more than {CORES_MAX} cores", line.datacenter));
            }
            nodes.push(NodePlace { host: line.host, port: line.port, cores, first_core });
        }
        if datacenters.len() > limits::DATACENTERS_MAX {
            return fails(format!("more than {} datacenters", limits::DATACENTERS_MAX));
        }
        for Datacenter { name, nodes, replicas } in &datacenters {
            if nodes.len() < usize::from(*replicas) {
                let nodes = nodes.len();
                return fails(format!(
                    "{name} has {nodes} nodes, and `replicas` asks for {replicas} of each partition"
                ));
            }
        }
        let own = match config.datacenter.as_str() {
            "" if datacenters.len() > 1 => {
                return fails("several datacenters and no `self` directive that says which is ours".into());
            }
            "" => 0,
            name => match datacenters.iter().position(|d| d.name == name) {
                Some(index) => index,
                None => return fails(format!("no `node` line is of our datacenter '{name}'")),
            },
        };
        if config.node >= datacenters[own].nodes.len() {
            return fails(format!("{} has no node {}", datacenters[own].name, config.node));
        }
        Ok(Cluster {
            name: config.cluster_name.clone(),
            partitions: config.partitions,
            datacenters,
            own: DatacenterId(own as u8),
            node: config.node,
        })
    }

    pub fn own_datacenter(&self) -> &Datacenter {
        &self.datacenters[usize::from(self.own.0)]
    }

    pub fn own_node(&self) -> &NodePlace {
        &self.own_datacenter().nodes[self.node]
    }

    /// The cores of this node, as the datacenter counts them.
    pub fn own_cores(&self) -> impl Iterator<Item = CoreId> + use<> {
        let node = self.own_node();
        (node.first_core..node.first_core + node.cores).map(CoreId)
    }

    pub fn is_own_core(&self, datacenter: DatacenterId, core: CoreId) -> bool {
        datacenter == self.own && self.own_node().has_core(core)
    }

    /// Every core of the cluster outside this node, with the host and port where it accepts peers.
    pub fn peers(&self) -> Vec<(DatacenterId, CoreId, String, u16)> {
        let mut peers = Vec::new();
        for (index, datacenter) in self.datacenters.iter().enumerate() {
            let id = DatacenterId(index as u8);
            for node in &datacenter.nodes {
                let cores = (node.first_core..node.first_core + node.cores).map(CoreId);
                for core in cores.filter(|&core| !self.is_own_core(id, core)) {
                    peers.push((id, core, node.host.clone(), node.port + core.0 - node.first_core));
                }
            }
        }
        peers
    }

    /// The same knowledge in the words of the core.
    pub fn topology(&self) -> Topology {
        let datacenters = self.datacenters.iter().map(|datacenter| {
            let cores = datacenter.cores();
            let placement = (0..self.partitions).map(|partition| CoreId(partition % cores)).collect();
            let replicas = datacenter.replicas(self.partitions);
            let nodes = datacenter.nodes.iter().map(|node| node.cores);
            let (name, nodes) = (datacenter.name.clone(), nodes.collect());
            DatacenterTopology { replicas, name, cores, nodes, placement }
        });
        Topology { datacenter: self.own, partitions: self.partitions, datacenters: datacenters.collect() }
    }
}

/// The lines, or the one line of a node that is alone.
fn node_lines(config: &Config) -> Vec<NodeLine> {
    if !config.nodes.is_empty() {
        return config.nodes.clone();
    }
    let datacenter = if config.datacenter.is_empty() { "dc1".into() } else { config.datacenter.clone() };
    // Nobody will dial it, but the port is taken all the same, so that adding a datacenter changes nothing here.
    let port = config.port.checked_add(10_000).unwrap_or_else(|| config.port - 10_000);
    vec![NodeLine { datacenter, host: "127.0.0.1".into(), port, cores: None }]
}

/// Checks the name of a protocol, so that a typing error is found before the start.
pub fn known_protocol(name: &str) -> Result<String, String> {
    if ensue_protocol::ALL_NAMES.contains(&name) {
        return Ok(name.into());
    }
    Err(format!("'{name}' is no protocol; there are {}", ensue_protocol::ALL_NAMES.join(", ")))
}
