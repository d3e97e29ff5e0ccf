//! The configuration of one node: redis.conf syntax, every directive also a flag and an `ENSUE_` variable.
//!
//! Files, flags and variables arrive; a checked [`Config`] leaves, or an error that names the file and the line. A
//! flag wins over a variable, a variable over the file, the file over the default. It does not open sockets or
//! directories, and it never changes after the start.

pub mod cluster;
mod directive;
mod error;
pub(crate) mod rewrite;
mod source;
mod tls;
mod words;

pub use cluster::{Cluster, Datacenter, NodeLine, NodePlace, Replicas};
pub use error::{ConfigError, Origin};
pub use tls::{AuthClients, TlsOptions, TlsVersion};

use crate::log::{Format, Level};
use bytes::Bytes;
pub(crate) use directive::fsync_name;
use directive::{DIRECTIVES, PARAMETER};
use ensue_node::{AppendFsync, BranchingOptions, FirstStart, Handler, Home, OutputLimits, Topology, Tuning};
use ensue_protocol::Promises;
use ensue_types::{KeyspaceId, Rule, limits};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

/// Keys with a home, as the configuration names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedHome {
    pub keyspace: KeyspaceId,
    pub pattern: Bytes,
    /// By its name: which datacenters there are may be said later.
    pub datacenter: String,
}

/// A handler of conflicts, as the configuration names it.
#[derive(Clone, Debug)]
pub struct NamedHandler {
    /// `union`, or `lua` and a file.
    pub words: String,
    pub handler: Handler,
}

/// Everything that the server can be told.
#[derive(Clone, Debug)]
pub struct Config {
    /// Nodes of another cluster are refused at the handshake.
    pub cluster_name: String,
    /// The datacenter of this node, by name; empty means the first one.
    pub datacenter: String,
    /// Which of its datacenter's nodes this is.
    pub node: usize,
    /// Every node of the cluster; none means a cluster of this node alone.
    pub nodes: Vec<NodeLine>,
    pub partitions: u16,
    /// On how many nodes of its datacenter each partition is.
    pub replicas: Replicas,
    /// Owners of replicated partitions answer reads by a lease.
    pub replica_lease: bool,
    /// Cores of a node whose line does not say.
    pub cores: u16,
    /// Where clients are served without encryption; zero is nowhere.
    pub port: u16,
    /// Addresses on which clients are accepted; with a leading dash, an address that may be missing.
    pub bind: Vec<String>,
    /// Address on which peers are accepted; none means the host of this node's line.
    pub peer_bind: Option<String>,
    /// The keys by which peers prove which datacenter they speak for; none means that only this machine's are believed.
    pub cluster_secret: Option<PathBuf>,
    /// Peers of other machines are believed without a proof.
    pub peer_unauthenticated: bool,
    pub protected_mode: bool,
    /// Where metrics and readiness are served; zero is nowhere.
    pub metrics_port: u16,
    /// Address on which they are.
    pub metrics_bind: IpAddr,
    /// Whoever reaches that port may read the figures, from other machines too, without logging in.
    pub metrics_unauthenticated: bool,
    /// That port speaks TLS.
    pub metrics_tls: bool,
    /// Names by which browsers and monitors know this node, beside addresses and the hosts of `node` lines.
    pub metrics_hosts: Vec<String>,
    pub tls: TlsOptions,
    pub requirepass: Option<String>,
    /// What `user` lines say, without the word.
    pub users: Vec<String>,
    pub aclfile: Option<PathBuf>,
    /// Who may send `DEBUG`: `no` (nobody), `local` (this machine) or `yes`.
    pub enable_debug_command: String,
    pub maxclients: usize,
    /// Seconds after which an idle client is disconnected; zero is never.
    pub timeout_s: u64,
    /// What may wait for a client that does not read before it is disconnected.
    pub output_limits: OutputLimits,
    /// Bytes a core, and milliseconds, that messages of other datacenters may wait.
    pub message_wait_bytes: u64,
    pub message_wait_ms: u64,
    /// Seconds between probes of a silent client; zero is none.
    pub tcp_keepalive_s: u64,
    pub dir: PathBuf,
    pub loglevel: Level,
    pub log_format: Format,
    /// Where commands of operators are recorded.
    pub audit_log: AuditTarget,
    pub appendfsync: AppendFsync,
    /// How fast the disk is read in the background; zero is not at all.
    pub scrub_bytes_per_second: u64,
    /// What a partition does that starts with an empty directory.
    pub first_start: FirstStart,
    /// Bytes a node; zero is no bound.
    pub maxmemory: u64,
    /// Which rows are evicted beyond `maxmemory`, as Redis names it.
    pub maxmemory_policy: String,
    /// Bytes a partition.
    pub replication_backlog_max: u64,
    /// How often a silent partition tells the other datacenters its time.
    pub heartbeat_interval_ms: u64,
    /// How often the partitions of a datacenter agree on what all of them have received.
    pub stabilization_interval_ms: u64,
    /// How long a client waits for a partition.
    pub request_timeout_ms: u64,
    /// How long a read waits before its protocol does without.
    pub block_threshold_ms: u64,
    pub dependency_cleaning: bool,
    pub stop_writes_on_clock_ahead: bool,
    /// How keyspaces with branches behave; the datacenter that merges is named below.
    pub branching: BranchingOptions,
    /// The only datacenter in which branches are merged; none is every one.
    pub branch_merging_datacenter: Option<String>,
    /// The protocol of each keyspace, by name.
    pub protocols: Vec<String>,
    /// Who folds conflicting values of which keys.
    pub handlers: Vec<NamedHandler>,
    pub homes: Vec<NamedHome>,
    pub home_reads: Vec<KeyspaceId>,
    pub home_wait_ms: u64,
    /// Parameters of `CONFIG SET` that are no directives, with the values that they begin with.
    pub parameters: Vec<(&'static str, String)>,
    /// The rule that every core breaks on purpose; none but in a build for that (feature `breakable`).
    pub broken: Option<Rule>,
    /// The file that was read, for `INFO`.
    pub file: Option<PathBuf>,
}

/// `audit-log`: where commands of operators, and logins that failed, are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditTarget {
    /// Nowhere.
    No,
    /// Among the lines of the log, at whatever level.
    Log,
    /// In a file of their own.
    File(PathBuf),
}

impl Default for Config {
    fn default() -> Config {
        let tuning = Tuning::default();
        Config {
            cluster_name: "ensue".into(),
            datacenter: String::new(),
            node: 0,
            nodes: Vec::new(),
            partitions: 16,
            replicas: Replicas::default(),
            replica_lease: false,
            cores: 1,
            port: 6379,
            bind: vec!["127.0.0.1".into(), "-::1".into()],
            peer_bind: None,
            cluster_secret: None,
            peer_unauthenticated: false,
            protected_mode: true,
            metrics_port: 0,
            metrics_bind: IpAddr::V4(Ipv4Addr::LOCALHOST),
            metrics_unauthenticated: false,
            metrics_tls: false,
            metrics_hosts: Vec::new(),
            tls: TlsOptions::default(),
            requirepass: None,
            users: Vec::new(),
            aclfile: None,
            enable_debug_command: "no".into(),
            maxclients: 10_000,
            timeout_s: 0,
            output_limits: OutputLimits::default(),
            message_wait_bytes: limits::MESSAGES_WAITING_BYTES as u64,
            message_wait_ms: limits::MESSAGE_WAITS_MS,
            tcp_keepalive_s: 300,
            dir: PathBuf::from("./ensue-data"),
            loglevel: Level::Notice,
            log_format: Format::Text,
            audit_log: AuditTarget::No,
            appendfsync: AppendFsync::EverySecond,
            scrub_bytes_per_second: 4 << 20,
            first_start: FirstStart::Ask,
            maxmemory: 0,
            maxmemory_policy: "noeviction".into(),
            replication_backlog_max: 1 << 30,
            heartbeat_interval_ms: tuning.heartbeat_interval_ms,
            stabilization_interval_ms: tuning.stabilization_interval_ms,
            request_timeout_ms: tuning.request_timeout_ms,
            block_threshold_ms: tuning.block_ms_max,
            dependency_cleaning: tuning.dependency_cleaning,
            stop_writes_on_clock_ahead: true,
            branching: tuning.branching,
            branch_merging_datacenter: None,
            protocols: vec![DEFAULT_PROTOCOL.into(); usize::from(limits::KEYSPACES)],
            handlers: Vec::new(),
            homes: Vec::new(),
            home_reads: Vec::new(),
            home_wait_ms: tuning.home_wait_ms,
            parameters: Vec::new(),
            broken: None,
            file: None,
        }
    }
}

/// The protocol of a keyspace for which none is named.
pub const DEFAULT_PROTOCOL: &str = "eiger";

impl Config {
    /// Whether the metrics port is there and speaks TLS.
    pub(crate) fn serves_metrics_over_tls(&self) -> bool {
        self.metrics_port != 0 && self.metrics_tls
    }

    /// Reads the file if there is one, then the variables, then the flags (`--directive value…`), and checks the whole.
    ///
    /// `--config FILE` among the flags names the file too.
    pub fn load(
        file: Option<&Path>,
        flags: &[String],
        variables: impl Iterator<Item = (String, String)>,
    ) -> Result<Config, ConfigError> {
        let mut flags = source::from_flags(flags)?;
        let file = file.map(Path::to_path_buf).or(flags.file.take());
        let mut config = Config { file: file.clone(), ..Config::default() };
        let layers = [
            match &file {
                Some(path) => source::from_file(path)?,
                None => Vec::new(),
            },
            source::from_variables(variables)?,
            flags.settings,
        ];
        for directive in DIRECTIVES {
            let named = |layer: &&Vec<source::Setting>| layer.iter().any(|s| s.is_for(directive));
            // A layer replaces all lines of a directive that the layers below it have.
            let Some(layer) = layers.iter().rev().find(named) else { continue };
            for setting in layer.iter().filter(|setting| setting.is_for(directive)) {
                setting.apply(&mut config)?;
            }
        }
        // Each line of a parameter replaces that of its name alone.
        for setting in layers.iter().flatten().filter(|setting| setting.is_for(&PARAMETER)) {
            setting.apply(&mut config)?;
        }
        config.cluster()?;
        config.check_ports()?;
        config.check_times()?;
        config.check_handlers()?;
        config.check_homes()?;
        config.check_merging()?;
        Ok(config)
    }

    /// A node that no client can reach, or that must serve two kinds of clients on one port, is a mistake.
    fn check_ports(&self) -> Result<(), ConfigError> {
        match (self.port, self.tls.port) {
            (0, 0) => Err(ConfigError::NoPort),
            (port, tls_port) if port == tls_port => Err(ConfigError::OnePort { port }),
            _ => Ok(()),
        }
    }

    /// A handler that nobody would ask is a mistake.
    fn check_handlers(&self) -> Result<(), ConfigError> {
        for NamedHandler { handler, .. } in &self.handlers {
            let protocol = &self.protocols[usize::from(handler.keyspace.0)];
            let known = ensue_protocol::by_name(protocol, Default::default());
            if !known.is_some_and(|known| known.needs().siblings) {
                let (keyspace, protocol) = (handler.keyspace.0, protocol.clone());
                return Err(ConfigError::NoHandlers { keyspace, protocol });
            }
        }
        Ok(())
    }

    /// Homes are of keyspaces whose protocols can have them.
    fn check_homes(&self) -> Result<(), ConfigError> {
        for home in &self.homes {
            let keyspace = home.keyspace.0;
            let protocol = &self.protocols[usize::from(keyspace)];
            if Promises::of(protocol).is_some_and(|promises| !promises.may_have_homes()) {
                return Err(ConfigError::NoHomes { keyspace, protocol: protocol.clone() });
            }
        }
        match self.nodes.is_empty() {
            // Who has the configuration may still say which nodes there are.
            true => Ok(()),
            false => self.check_home_datacenters(&self.cluster()?),
        }
    }

    /// Homes are datacenters of the cluster.
    pub(crate) fn check_home_datacenters(&self, cluster: &Cluster) -> Result<(), ConfigError> {
        let is_known = |name: &str| cluster.datacenters.iter().any(|datacenter| datacenter.name == name);
        match self.homes.iter().find(|home| !is_known(&home.datacenter)) {
            Some(home) => {
                let (keyspace, datacenter) = (home.keyspace.0, home.datacenter.clone());
                Err(ConfigError::NoHome { keyspace, datacenter })
            }
            None => Ok(()),
        }
    }

    /// The homes as nodes are told.
    pub(crate) fn homes(&self, topology: &Topology) -> Vec<Home> {
        let home = |one: &NamedHome| {
            let NamedHome { keyspace, pattern, datacenter } = one;
            let datacenter = topology.datacenter_named(datacenter.as_bytes())?;
            Some(Home { keyspace: *keyspace, pattern: pattern.clone(), datacenter })
        };
        self.homes.iter().filter_map(home).collect()
    }

    fn check_merging(&self) -> Result<(), ConfigError> {
        let Some(name) = &self.branch_merging_datacenter else { return Ok(()) };
        match self.cluster()?.topology().datacenter_named(name.as_bytes()) {
            Some(_) => Ok(()),
            None => Err(ConfigError::NoMerger { datacenter: name.clone() }),
        }
    }

    fn check_times(&self) -> Result<(), ConfigError> {
        let (block_ms, request_ms) = (self.block_threshold_ms, self.request_timeout_ms);
        let most_ms = directive::block_threshold_ms_max(request_ms);
        match block_ms > most_ms {
            true => Err(ConfigError::BlockThreshold { block_ms, request_ms, most_ms }),
            false => Ok(()),
        }
    }

    /// Whether new users may use all channels: `acl-pubsub-default`.
    pub(crate) fn opens_channels(&self) -> bool {
        self.parameters.iter().any(|(name, value)| *name == "acl-pubsub-default" && value == "allchannels")
    }

    /// Whether a keyspace is one of branches.
    pub(crate) fn has_branches(&self) -> bool {
        let known = |name: &String| ensue_protocol::by_name(name, Default::default());
        self.protocols.iter().filter_map(known).any(|protocol| protocol.needs().branches)
    }

    pub(crate) fn branch_collection_name(&self) -> &'static str {
        directive::collection_name(self.branching.collection)
    }

    /// The cluster that the `node` lines describe, and this node's place in it.
    pub fn cluster(&self) -> Result<Cluster, ConfigError> {
        Cluster::new(self)
    }

    /// Every directive with its value, one line each, as a configuration file would have them; secrets are hidden.
    pub fn effective(&self) -> Vec<(String, String)> {
        let mut lines = Vec::new();
        for directive in DIRECTIVES {
            for value in (directive.show)(self) {
                let hidden = directive.secret && !value.is_empty();
                lines.push((directive.name.to_string(), if hidden { HIDDEN.into() } else { value }));
            }
        }
        lines.extend(self.parameters.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        lines
    }

    /// What `CONFIG GET` answers: one value a directive, and the names that Redis's tools ask for.
    pub fn directives(&self) -> Vec<(String, String)> {
        let mut answers: Vec<(String, String)> = Vec::new();
        for (name, value) in self.effective() {
            match answers.iter_mut().find(|(known, _)| *known == name) {
                Some((_, values)) => {
                    values.push_str("; ");
                    values.push_str(&value);
                }
                None => answers.push((name, value)),
            }
        }
        let is_free = |(name, _): &&(&str, &str)| self.parameters.iter().all(|(known, _)| known != name);
        answers.extend(COMPATIBLE.iter().filter(is_free).map(|&(name, value)| (name.into(), value.into())));
        answers.push(("proto-max-bulk-len".into(), limits::BULK_BYTES_MAX.to_string()));
        answers
    }
}

const HIDDEN: &str = "(hidden)";

/// Directives of Redis that have one meaning here, and no choice.
const COMPATIBLE: [(&str, &str); 5] = [
    ("cluster-enabled", "no"),
    ("io-threads", "1"),
    ("lazyfree-lazy-expire", "no"),
    ("replica-read-only", "no"),
    ("notify-keyspace-events", ""),
];

#[cfg(test)]
mod tests;
