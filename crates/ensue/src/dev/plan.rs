//! Which node of a dev cluster listens where: pure arithmetic on the flags.
//!
//! With `--port 7001`: node `k` (from 0) of datacenter `i` (from 0) serves clients on `7001 + 100 k + i`; cores accept
//! peers from `17001` on, `--cores` ports a node, all first nodes before all second ones; the admin port is `18000`;
//! with `--tls`, clients are served over TLS 40 above their port, and metrics are 70 above it.

use super::DevArgs;
use crate::certificates::{Authority, node_names, node_stem};
use anyhow::{Context, ensure};
use ensue_server::admin::ADMIN_PORT_OFFSET;
use ensue_server::config::{AuthClients, NodeLine, Replicas, TlsOptions};
use ensue_server::log::Level;
use ensue_server::{Config, DatacenterId, Shape, Shaper, secret};
use std::path::PathBuf;

const PEER_PORT_OFFSET: u16 = 10_000;
const NODE_PORT_STRIDE: u16 = 100;
/// Above the ports for clients of the most datacenters, and below those of the next nodes.
const METRICS_PORT_OFFSET: u16 = 70;
/// The same, and below those of metrics.
const TLS_PORT_OFFSET: u16 = 40;
/// A cluster for trying things out need not renew them soon.
const CERTIFICATE_DAYS: u32 = 365;

/// A dev cluster.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    args: DevArgs,
    template: Config,
}

/// `1=pocc` as the directive of a server.
fn keyspace_flag(words: &str) -> anyhow::Result<[String; 4]> {
    let (keyspace, protocol) =
        words.split_once('=').with_context(|| format!("--keyspace {words}: write N=NAME, as in 1=pocc"))?;
    Ok(["--keyspace", keyspace, "protocol", protocol].map(String::from))
}

/// `1:cart:*=union`, or `1:cart:*=lua FILE`, as the directive of a server.
fn conflicts_flag(words: &str) -> anyhow::Result<Vec<String>> {
    let parts = words.split_once(':').and_then(|(keyspace, rest)| Some((keyspace, rest.rsplit_once('=')?)));
    let (keyspace, (pattern, handler)) = parts
        .with_context(|| format!("--conflicts {words}: write N:PATTERN=HANDLER, as in 1:cart:*=union"))?;
    let handler = handler.split_once(' ').map_or(vec![handler], |(lua, file)| vec![lua, file]);
    let words = ["--keyspace", keyspace, "conflicts", pattern].into_iter().chain(handler);
    Ok(words.map(String::from).collect())
}

/// `branch-leaves-max=128` as the directive of a server.
fn directive_flag(words: &str) -> anyhow::Result<Vec<String>> {
    let (directive, value) = words
        .split_once('=')
        .with_context(|| format!("--set {words}: write DIRECTIVE=VALUE, as in branch-leaves-max=128"))?;
    let values = value.split_whitespace().map(String::from);
    Ok(std::iter::once(format!("--{directive}")).chain(values).collect())
}

impl Plan {
    pub(super) fn new(args: &DevArgs) -> anyhow::Result<Plan> {
        let peers = u16::from(args.datacenters) * args.nodes * args.cores;
        ensure!(
            peers < ADMIN_PORT_OFFSET - PEER_PORT_OFFSET,
            "{} datacenters of {} nodes of {} cores are more than a dev cluster has ports for",
            args.datacenters,
            args.nodes,
            args.cores
        );
        let mut plan = Plan { args: args.clone(), template: Config::default() };
        ensure!(
            args.replicas <= args.nodes,
            "{} replicas of each partition need as many nodes in a datacenter: give `--nodes {0}`",
            args.replicas
        );
        let replicas =
            Replicas::everywhere(args.replicas).map_err(|why| anyhow::anyhow!("--replicas: {why}"))?;
        let flags = ["--appendfsync", args.appendfsync.as_str(), "--loglevel", args.loglevel.as_str()];
        let mut flags: Vec<String> = flags.into_iter().map(String::from).collect();
        for keyspace in
            (0..Config::default().protocols.len()).map(|number| format!("{number}={}", args.protocol))
        {
            flags.extend(keyspace_flag(&keyspace)?);
        }
        for keyspace in &args.keyspaces {
            flags.extend(keyspace_flag(keyspace)?);
        }
        for handler in &args.conflicts {
            flags.extend(conflicts_flag(handler)?);
        }
        for directive in &args.directives {
            flags.extend(directive_flag(directive)?);
        }
        let defaults = Config::load(None, &flags, std::iter::empty())?;
        plan.template = Config {
            cluster_name: "dev".into(),
            nodes: plan.node_lines(),
            partitions: args.partitions,
            replicas,
            bind: vec!["127.0.0.1".into()],
            dir: args.dir.clone(),
            // Many nodes share what one process, or one user, may open.
            maxclients: 1_000,
            ..defaults
        };
        Ok(plan)
    }

    pub(super) fn loglevel(&self) -> Level {
        self.template.loglevel
    }

    /// The names of the datacenters, in order.
    pub(super) fn names(&self) -> Vec<String> {
        (1..=self.args.datacenters).map(|number| format!("dc{number}")).collect()
    }

    /// Every node as `dc1/0`, with its client port.
    pub(super) fn addresses(&self) -> Vec<(String, u16)> {
        let mut addresses = Vec::new();
        for (datacenter, name) in self.names().iter().enumerate() {
            for node in 0..self.args.nodes {
                addresses.push((format!("{name}/{node}"), self.client_port(datacenter as u16, node)));
            }
        }
        addresses
    }

    pub(super) fn client_port(&self, datacenter: u16, node: u16) -> u16 {
        self.args.port + NODE_PORT_STRIDE * node + datacenter
    }

    /// Where a node serves its metrics; zero is nowhere.
    pub(super) fn metrics_port(&self, datacenter: u16, node: u16) -> u16 {
        match self.args.directives.iter().any(|words| words.starts_with("metrics-port=")) {
            true => self.template.metrics_port,
            false => self.client_port(datacenter, node) + METRICS_PORT_OFFSET,
        }
    }

    fn peer_port(&self, datacenter: u16, node: u16) -> u16 {
        let before = node * u16::from(self.args.datacenters) + datacenter;
        self.args.port + PEER_PORT_OFFSET + before * self.args.cores
    }

    fn node_lines(&self) -> Vec<NodeLine> {
        let mut lines = Vec::new();
        for (datacenter, name) in self.names().iter().enumerate() {
            for node in 0..self.args.nodes {
                lines.push(NodeLine {
                    datacenter: name.clone(),
                    host: "127.0.0.1".into(),
                    port: self.peer_port(datacenter as u16, node),
                    cores: Some(self.args.cores),
                });
            }
        }
        lines
    }

    /// The configurations of a datacenter's nodes.
    pub(super) fn configs(&self, datacenter: usize) -> Vec<Config> {
        let name = self.names()[datacenter].clone();
        let has_secret = !self.template.peer_unauthenticated;
        // Nodes share a directory as long as no two of them have the same partition.
        let dir = |node: u16| match self.args.replicas {
            1 => self.template.dir.clone(),
            _ => self.template.dir.join(format!("node{node}")),
        };
        let config = |node: u16| Config {
            dir: dir(node),
            datacenter: name.clone(),
            cluster_secret: has_secret.then(|| secret::path_of(&self.secrets(), &name)),
            node: usize::from(node),
            port: self.client_port(datacenter as u16, node),
            metrics_port: self.metrics_port(datacenter as u16, node),
            tls: self.tls(datacenter as u16, node),
            ..self.template.clone()
        };
        (0..self.args.nodes).map(config).collect()
    }

    /// Where a node serves clients over TLS; zero is nowhere.
    pub(super) fn tls_port(&self, datacenter: u16, node: u16) -> u16 {
        if self.args.tls {
            self.client_port(datacenter, node) + TLS_PORT_OFFSET
        } else {
            self.template.tls.port
        }
    }

    fn tls(&self, datacenter: u16, node: u16) -> TlsOptions {
        let template = self.template.tls.clone();
        if !self.args.tls {
            return template;
        }
        let stem = node_stem(&self.names()[usize::from(datacenter)], node);
        let file = |name: String| Some(self.certificates().join(name));
        TlsOptions {
            port: self.tls_port(datacenter, node),
            certificate: file(format!("{stem}.pem")),
            key: file(format!("{stem}.key")),
            authorities: file("ca.pem".into()),
            cluster: true,
            // Whoever tries things out has a certificate only if they want to.
            clients: AuthClients::Optional,
            ..template
        }
    }

    /// Where certificates are.
    pub(super) fn certificates(&self) -> PathBuf {
        self.args.dir.join("certificates")
    }

    /// Makes the certificates of all nodes, and one of a client, where they are wanted.
    pub(super) fn make_certificates(&self) -> anyhow::Result<()> {
        if !self.args.tls {
            return Ok(());
        }
        let authority = Authority::open(&self.certificates(), &self.template.cluster_name)?;
        let hosts = ["localhost", "127.0.0.1"].map(String::from);
        for datacenter in self.names() {
            for node in 0..self.args.nodes {
                let cluster = &self.template.cluster_name;
                let names = node_names(cluster, &datacenter, node, self.args.nodes, &hosts);
                authority.issue(&node_stem(&datacenter, node), names, CERTIFICATE_DAYS)?;
            }
        }
        authority.issue("client", vec!["client".into()], CERTIFICATE_DAYS)?;
        Ok(())
    }

    /// Where the keys of the datacenters are.
    pub(super) fn secrets(&self) -> PathBuf {
        self.args.dir.join("secrets")
    }

    /// Gives every link the delay of the command line.
    pub(super) fn shape(&self, shaper: &Shaper) {
        for one in 0..self.args.datacenters {
            for other in one + 1..self.args.datacenters {
                shaper.shape(DatacenterId(one), DatacenterId(other), Shape::DelayMs(self.args.delay));
            }
        }
    }
}

#[cfg(test)]
mod tests;
