//! Starts a node: its directory, its sockets, then one thread a core.
//!
//! Everything that can fail for an operator's reason fails here, before a thread runs, with a typed error. A panic in
//! a core, or a core that loses its poll, is a broken invariant: the process ends, and says so.

use crate::audit::{AuditLog, Writer};
use crate::backup::Backups;
use crate::bounds::STOP_MS_MAX;
use crate::clients::Clients;
use crate::clock::{Clock, wall_ms};
use crate::config::{AuditTarget, Cluster, Config, ConfigError};
use crate::descriptors::{self, TooFew};
use crate::directory::{Directory, DirectoryError};
use crate::disk::Disk;
use crate::disk::syncer::Syncer;
use crate::errands::{Errands, Subjects};
use crate::inbox::{Inbox, Mail};
use crate::listener::{self, Admittance, Door, Listener};
use crate::log;
use crate::metrics::{self, MetricsPort};
use crate::peers::{Encryption, Peers, Stance};
use crate::pump::{Pump, State, WAKER};
use crate::scrubber::Scrubber;
use crate::secret::{self, SecretError};
use crate::settings;
use crate::shaper::Shaper;
use crate::tls::{Certificates, TlsError};
use crate::users::{self, UsersError};
use ensue_node::acl::Users;
use ensue_node::{BranchingOptions, Host, MemoryReport, NodeConfig, ReplicaOptions, TokenKey, Tuning};
use ensue_types::{Breaking, CoreId, Rule};
use ensue_wire::{
    CoreName, FLAG_SECRET, Hello, Identity, Keys, NONCE_BYTES, SETTINGS_BYTES_MAX, Settings,
    WIRE_VERSION_MAX, WIRE_VERSION_MIN, cluster_hash,
};
use mio::net::TcpListener;
use mio::{Poll, Waker};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use thiserror::Error;

/// What the nodes of one process share.
#[derive(Clone, Debug)]
pub struct Machine {
    pub clock: Clock,
    pub shaper: Arc<Shaper>,
    /// What the allocator says, if it says something.
    memory: Option<MemoryGauge>,
    /// Has the allocator give back what is free, if it can.
    purge: Option<fn()>,
    /// File descriptors that each node may have.
    descriptors: usize,
    /// Differs between two runs.
    boot: u32,
    boot_id: [u8; 16],
    /// What new directories draw their identities from.
    identity_seed: u128,
}

impl Machine {
    /// For so many nodes, which share what the process may have.
    pub fn of_this_process(nodes: usize) -> Machine {
        Machine {
            clock: Clock::starting_now(),
            shaper: Arc::default(),
            memory: None,
            purge: None,
            descriptors: descriptors::share_of(nodes),
            boot: (wall_ms() as u32) ^ std::process::id().rotate_left(16),
            boot_id: boot_id(),
            identity_seed: identity_seed(),
        }
    }
}

impl Machine {
    /// Its memory is known, and reported by `INFO memory`.
    pub fn with_memory(self, memory: MemoryGauge) -> Machine {
        Machine { memory: Some(memory), ..self }
    }

    /// Its allocator can be told to give back what is free: `MEMORY PURGE`.
    pub fn with_purge(self, purge: fn()) -> Machine {
        Machine { purge: Some(purge), ..self }
    }
}

/// Reads how much memory the process takes.
pub type MemoryGauge = fn() -> MemoryReport;

/// A random number.
fn identity_seed() -> u128 {
    let mut bytes = [0; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .expect("the kernel has random numbers as soon as it has started");
    u128::from_le_bytes(bytes)
}

/// The kernel's name for this boot. Without one every run counts as a boot of its own, which is the safe side.
fn boot_id() -> [u8; 16] {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: Vec<u8> = text.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
    let mut id = [0; 16];
    if digits.len() == 32 {
        for (byte, pair) in id.iter_mut().zip(digits.chunks(2)) {
            *byte = pair[0] << 4 | pair[1];
        }
    } else {
        id[..8].copy_from_slice(&wall_ms().to_le_bytes());
        id[8..12].copy_from_slice(&std::process::id().to_le_bytes());
    }
    id
}

/// Why a node did not start.
#[derive(Debug, Error)]
pub enum StartError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Users(#[from] UsersError),
    #[error(
        "the settings that peers compare have {bytes} bytes, {SETTINGS_BYTES_MAX} at most: `keyspace N conflicts` lines are too long"
    )]
    Settings { bytes: usize },
    #[error("cannot open the audit log: {0}")]
    AuditLog(io::Error),
    #[error(transparent)]
    Descriptors(#[from] TooFew),
    #[error("cannot listen for {whom} on {address}: {error}")]
    Listen { whom: &'static str, address: SocketAddr, error: io::Error },
    #[error("the address {host}:{port} for {whom} is not one of this machine: {error}")]
    Address { whom: &'static str, host: String, port: u16, error: io::Error },
    #[error(transparent)]
    Protocol(#[from] ensue_node::UnknownProtocol),
    #[error("the machine refuses what a core needs")]
    Machine(#[from] io::Error),
}

/// A node whose cores run.
#[derive(Debug)]
pub struct Running {
    cores: Vec<(Arc<Inbox>, JoinHandle<()>)>,
    metrics: Option<MetricsPort>,
    certificates: Option<Certificates>,
    audit: Option<(AuditLog, Writer)>,
    /// Reads the disk for as long as the cores run.
    _scrubber: Option<Scrubber>,
    /// Locked as long as the cores run.
    _directory: Directory,
}

/// Starts a node.
pub fn start(config: &Config, machine: &Machine) -> Result<Running, StartError> {
    log::set_format(config.log_format);
    let cluster = config.cluster()?;
    config.check_home_datacenters(&cluster)?;
    let room = descriptors::room(machine.descriptors, &cluster)?;
    let config = &Config { maxclients: descriptors::clients_max(room, config.maxclients), ..config.clone() };
    let settings = compared(config, &cluster)?;
    let keys = keys(config, &cluster)?;
    let certificates = Certificates::read(config)?;
    let users = users::read(config)?;
    let is_open = users.default_user().is_on() && users.default_user().is_nopass();
    let audit = AuditLog::start(&config.audit_log).map_err(StartError::AuditLog)?;
    let given = (users, token_keys(config)?);
    let directory = Directory::open(&config.dir, &cluster, &settings)?;
    let mut listener = Some(client_listener(config, certificates.as_ref(), is_open, room)?);
    let metrics = metrics::listen(config).map_err(|(address, error)| StartError::Listen {
        whom: "metrics",
        address,
        error,
    })?;
    let (polls, inboxes) = inboxes(&cluster, machine)?;
    let backups = backups(config, &directory, machine, &inboxes);
    let errands = Errands::start(subjects(config, machine, certificates.clone()), backups)?;
    let scrubber = scrubber(config, &directory)?;
    let found = directory.replicas()?;
    let (first_core, mut pumps) = (CoreId(cluster.own_node().first_core), Vec::new());
    for (index, poll) in polls.into_iter().enumerate() {
        let core = CoreId(first_core.0 + index as u16);
        let name = CoreName { datacenter: cluster.own, core };
        let node_config = node_config(config, &cluster, core, machine, given.clone());
        let (lease, found) = (config.replica_lease, found.clone());
        let options = ReplicaOptions { lease, found, ..ReplicaOptions::default() };
        let node = Host::new(node_config, &options, machine.clock.now())?;
        pumps.push(Pump {
            name,
            node,
            clock: machine.clock,
            poll,
            clients: Clients::new(first_core, !is_open, config.timeout_s, config.output_limits),
            peers: peers(
                config,
                &cluster,
                stance(config, &cluster, name, machine, (&settings, &keys, certificates.as_ref())),
                machine,
                &inboxes[index],
            )?,
            disk: disk(&directory, &cluster, name, &inboxes[index])?,
            errands: errands.clone(),
            audit: audit.as_ref().map(|(audit_log, _)| audit_log.clone()),
            memory: machine.memory.filter(|_| index == 0),
            scrubbed: scrubber.as_ref().filter(|_| index == 0).map(Scrubber::figures),
            listener: listener.take(),
            inboxes: inboxes.clone(),
            index,
            first_core,
            state: State::default(),
        });
    }
    let first = Arc::clone(&inboxes[0]);
    let metrics = metrics
        .map(|socket| {
            MetricsPort::start(socket, config, &cluster, machine.clock, (first, certificates.clone()))
        })
        .transpose()?;
    let mut cores = Vec::new();
    for (pump, inbox) in pumps.into_iter().zip(inboxes) {
        cores.push((inbox, spawn(pump, config.broken)?));
    }
    Ok(Running { cores, metrics, certificates, audit, _scrubber: scrubber, _directory: directory })
}

fn backups(config: &Config, directory: &Directory, machine: &Machine, inboxes: &[Arc<Inbox>]) -> Backups {
    let configuration = lines(&config.effective());
    Backups::new(directory.path().into(), configuration, machine.boot_id, inboxes.to_vec())
}

/// What reads the disk in the background, if anything is to.
fn scrubber(config: &Config, directory: &Directory) -> io::Result<Option<Scrubber>> {
    let rate = Some(config.scrub_bytes_per_second).filter(|rate| *rate > 0);
    rate.map(|rate| Scrubber::start(directory.path(), rate)).transpose()
}

/// What peers compare.
fn compared(config: &Config, cluster: &Cluster) -> Result<Settings, StartError> {
    let settings = settings::settings(config, cluster);
    match settings.text().len() {
        bytes if bytes > SETTINGS_BYTES_MAX => Err(StartError::Settings { bytes }),
        _ => Ok(settings),
    }
}

/// What sessions may have done elsewhere.
fn subjects(config: &Config, machine: &Machine, certificates: Option<Certificates>) -> Subjects {
    let (users_file, configuration) = (config.aclfile.clone(), config.file.clone());
    Subjects { users_file, configuration, certificates, purge: machine.purge }
}

/// For each core what it waits with, and what others send to.
fn inboxes(cluster: &Cluster, machine: &Machine) -> io::Result<(Vec<Poll>, Vec<Arc<Inbox>>)> {
    let (mut polls, mut inboxes) = (Vec::new(), Vec::new());
    for _ in cluster.own_cores() {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        machine.shaper.watch(Arc::clone(&waker));
        inboxes.push(Arc::new(Inbox::new(waker)));
        polls.push(poll);
    }
    Ok((polls, inboxes))
}

/// As a file has them.
fn lines(directives: &[(String, String)]) -> String {
    directives.iter().map(|(name, value)| format!("{name} {value}\n")).collect()
}

fn spawn(pump: Pump, broken: Option<Rule>) -> io::Result<JoinHandle<()>> {
    let name = pump.name;
    let thread_name = format!("{}-core{}", name.datacenter, name.core.0);
    thread::Builder::new().name(thread_name).spawn(move || {
        let _breaking = Breaking::only(broken);
        let result = catch_unwind(AssertUnwindSafe(|| pump.run()));
        match result {
            Ok(Ok(())) => {}
            Ok(Err(error)) => end_process(format_args!("{name} cannot wait for its sockets: {error}")),
            Err(_) => end_process(format_args!("{name} found a broken invariant (see the panic above)")),
        }
    })
}

fn end_process(reason: std::fmt::Arguments<'_>) -> ! {
    log::warning(format_args!("{reason}; the process ends, so that nothing untrue is answered"));
    std::process::abort()
}

/// `is_open`: nobody needs a password.
fn client_listener(
    config: &Config,
    certificates: Option<&Certificates>,
    is_open: bool,
    room: usize,
) -> Result<Listener, StartError> {
    let mut doors = Vec::new();
    if config.port != 0 {
        let sockets = listen(config, config.port)?;
        doors.extend(sockets.into_iter().map(|socket| Door { socket, certificates: None }));
    }
    if config.tls.port != 0 {
        let sockets = listen(config, config.tls.port)?;
        doors.extend(sockets.into_iter().map(|socket| Door { socket, certificates: certificates.cloned() }));
    }
    let admittance = Admittance {
        clients_max: config.maxclients,
        room,
        is_protected: config.protected_mode,
        is_open,
        keepalive_s: config.tcp_keepalive_s,
    };
    Ok(Listener::new(doors, admittance))
}

/// The sockets on this port, one an address of `bind`.
fn listen(config: &Config, port: u16) -> Result<Vec<TcpListener>, StartError> {
    let mut sockets = Vec::new();
    for word in &config.bind {
        let (optional, word) = match word.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, word.as_str()),
        };
        let ip = match word {
            "*" => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            "::*" => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            _ => word.parse().unwrap_or(IpAddr::V6(Ipv6Addr::LOCALHOST)),
        };
        let address = SocketAddr::new(ip, port);
        match listener::bind(address) {
            Ok(socket) => sockets.push(socket),
            // An address family or an interface that may be missing is; a port that is taken is a mistake all the same.
            Err(error) if optional && error.kind() != io::ErrorKind::AddrInUse => {
                log::verbose(format_args!("{address} is not there: {error}"));
            }
            Err(error) => return Err(StartError::Listen { whom: "clients", address, error }),
        }
    }
    Ok(sockets)
}

/// The keys of this node; says so where there are none and peers are elsewhere.
fn keys(config: &Config, cluster: &Cluster) -> Result<Keys, StartError> {
    let Some(path) = &config.cluster_secret else {
        if config.peer_unauthenticated && !config.tls.cluster && !cluster.peers().is_empty() {
            log::warning(format_args!(
                "`peer-unauthenticated yes`: WHOEVER REACHES THE PEER PORT IS BELIEVED, and can read, write and stop \
                 everything; give every node a `cluster-secret` (`ensue secret` makes them)"
            ));
        } else if !config.tls.cluster && cluster.peers().iter().any(|(_, _, host, _)| !is_this_machine(host))
        {
            log::warning(format_args!(
                "there is neither a `cluster-secret` nor `tls-cluster yes`, so peers of other machines are refused, and this node does not \
                 replicate to them; `ensue secret` makes one, `peer-unauthenticated yes` believes anybody"
            ));
        }
        return Ok(Keys::Open);
    };
    if secret::is_readable_by_others(path) {
        log::warning(format_args!(
            "{} can be read by others than its owner: whoever does can speak as {}",
            path.display(),
            cluster.own_datacenter().name
        ));
    }
    let names: Vec<String> = cluster.datacenters.iter().map(|datacenter| datacenter.name.clone()).collect();
    Ok(Keys::Secret(secret::read(path, &cluster.own_datacenter().name, &names)?))
}

/// By its looks: a name is looked up only when it is dialled.
fn is_this_machine(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

/// What a core says of itself to peers, and whom it believes.
fn stance(
    config: &Config,
    cluster: &Cluster,
    own: CoreName,
    machine: &Machine,
    (settings, keys, certificates): (&Settings, &Keys, Option<&Certificates>),
) -> Stance {
    let hello = Hello {
        wire_version_min: WIRE_VERSION_MIN,
        wire_version_max: WIRE_VERSION_MAX,
        cluster: cluster.name.clone(),
        datacenter: cluster.own_datacenter().name.clone(),
        core: own.core,
        boot: machine.boot,
        nonce: [0; NONCE_BYTES],
        flags: if *keys == Keys::Open { 0 } else { FLAG_SECRET },
    };
    let datacenters = cluster.datacenters.iter();
    let datacenters = datacenters.map(|datacenter| (datacenter.name.clone(), datacenter.cores())).collect();
    let identity = Identity { hello, settings: settings.clone(), keys: keys.clone(), datacenters };
    let unauthenticated = config.peer_unauthenticated;
    let encryption = Encryption::new(certificates, cluster);
    Stance { own, identity, topology: cluster.topology(), encryption, unauthenticated }
}

fn peers(
    config: &Config,
    cluster: &Cluster,
    stance: Stance,
    machine: &Machine,
    inbox: &Arc<Inbox>,
) -> Result<Peers, StartError> {
    let own = stance.own;
    let node = cluster.own_node();
    let port = node.port + own.core.0 - node.first_core;
    let host = config.peer_bind.as_ref().unwrap_or(&node.host);
    let unknown = |error| StartError::Address { whom: "peers", host: host.clone(), port, error };
    let mut addresses = (host.as_str(), port).to_socket_addrs().map_err(unknown)?;
    let address = addresses.next().ok_or_else(|| unknown(io::ErrorKind::AddrNotAvailable.into()))?;
    let socket =
        TcpListener::bind(address).map_err(|error| StartError::Listen { whom: "peers", address, error })?;
    let others = cluster.peers().into_iter();
    let others = others.map(|(datacenter, core, host, port)| (CoreName { datacenter, core }, host, port));
    let inbox = Arc::clone(inbox);
    let resolve: crate::peers::Resolve = Arc::new(move |resolved| inbox.post(Mail::Resolved(resolved)));
    Ok(Peers::new(others.collect(), stance, Arc::clone(&machine.shaper), socket, &resolve))
}

fn disk(directory: &Directory, cluster: &Cluster, core: CoreName, inbox: &Arc<Inbox>) -> io::Result<Disk> {
    let inbox = Arc::clone(inbox);
    let thread = format!("{}-sync{}", core.datacenter, core.core.0);
    let syncer = Syncer::start(thread, move |partition, done| inbox.post(Mail::Synced(partition, done)))?;
    let is_replicated = cluster.datacenters[usize::from(core.datacenter.0)].replicas > 1;
    Ok(Disk::new(directory.path().into(), syncer, is_replicated))
}

/// What seals tokens, from the file of the secret.
fn token_keys(config: &Config) -> Result<Vec<TokenKey>, SecretError> {
    config.cluster_secret.as_ref().map_or(Ok(Vec::new()), |path| secret::token_keys(path))
}

fn node_config(
    config: &Config,
    cluster: &Cluster,
    core: CoreId,
    machine: &Machine,
    (users, token_keys): (Users, Vec<TokenKey>),
) -> NodeConfig {
    NodeConfig {
        cluster: u128::from_le_bytes(cluster_hash(&cluster.name)),
        homes: config.homes(&cluster.topology()),
        home_reads: config.home_reads.clone(),
        topology: cluster.topology(),
        core,
        registry: &ensue_protocol::REGISTRY,
        protocols: config.protocols.clone(),
        handlers: config.handlers.iter().map(|named| named.handler.clone()).collect(),
        append_fsync: config.appendfsync,
        users,
        token_keys,
        has_users_file: config.aclfile.is_some(),
        audits: config.audit_log != AuditTarget::No,
        maxmemory_policy: config.maxmemory_policy.clone(),
        first_core: CoreId(cluster.own_node().first_core),
        node_cores: cluster.own_node().cores,
        maxmemory: config.maxmemory.div_ceil(u64::from(cluster.own_node().cores)),
        replication_backlog_max: config.replication_backlog_max,
        boot: machine.boot,
        boot_id: machine.boot_id,
        identity_seed: machine.identity_seed,
        first_start: config.first_start,
        directives: config.directives(),
        info: info(config, machine),
        tuning: tuning(config, cluster),
    }
}

fn tuning(config: &Config, cluster: &Cluster) -> Tuning {
    let merger = config.branch_merging_datacenter.as_ref();
    let merging_datacenter = merger.and_then(|name| cluster.topology().datacenter_named(name.as_bytes()));
    Tuning {
        branching: BranchingOptions { merging_datacenter, ..config.branching.clone() },
        heartbeat_interval_ms: config.heartbeat_interval_ms,
        stabilization_interval_ms: config.stabilization_interval_ms,
        request_timeout_ms: config.request_timeout_ms,
        home_wait_ms: config.home_wait_ms,
        messages_waiting_bytes: usize::try_from(config.message_wait_bytes).unwrap_or(usize::MAX),
        message_waits_ms: config.message_wait_ms,
        block_ms_max: config.block_threshold_ms,
        dependency_cleaning: config.dependency_cleaning,
        stop_writes_on_clock_ahead: config.stop_writes_on_clock_ahead,
        ..Tuning::default()
    }
}

/// What `INFO` says of the process.
fn info(config: &Config, machine: &Machine) -> Vec<(String, String)> {
    let path = |path: Option<std::path::PathBuf>| path.map(|p| p.display().to_string()).unwrap_or_default();
    let run_id: String = machine.boot_id.iter().map(|byte| format!("{byte:02x}")).collect();
    let lines = [
        ("os", format!("{} {}", std::env::consts::OS, std::env::consts::ARCH)),
        ("arch_bits", usize::BITS.to_string()),
        ("multiplexing_api", "epoll".into()),
        ("process_id", std::process::id().to_string()),
        ("run_id", format!("{run_id}{:08x}", machine.boot)),
        ("tcp_port", config.port.to_string()),
        ("tls_port", config.tls.port.to_string()),
        ("ensue_peer_authentication", peer_authentication(config).into()),
        ("executable", path(std::env::current_exe().ok())),
        ("config_file", path(config.file.clone())),
    ];
    lines.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
}

fn peer_authentication(config: &Config) -> &'static str {
    match (&config.cluster_secret, config.tls.cluster, config.peer_unauthenticated) {
        (Some(_), true, _) => "cluster-secret and certificates",
        (Some(_), false, _) => "cluster-secret",
        (None, true, _) => "certificates",
        (None, false, false) => "none, this machine only",
        (None, false, true) => "NONE, ANYBODY IS BELIEVED",
    }
}

impl Running {
    /// Lets no client in any more, and ends those that are connected when they have their answers.
    pub fn drain(&self) {
        self.metrics.iter().for_each(MetricsPort::drain);
        for (inbox, _) in &self.cores {
            inbox.post(Mail::Drain);
        }
    }

    /// Opens the audit log anew, and reads the certificates again, for connections that are made from now on. After an
    /// error what was there before stays.
    pub fn read_again(&self) {
        self.audit.iter().for_each(|(audit_log, _)| audit_log.open_again());
        match self.certificates.as_ref().map(Certificates::read_again) {
            None => log::notice("SIGHUP: there are no certificates to read again"),
            Some(Ok(())) => log::notice("the certificates were read again; new connections use them"),
            Some(Err(error)) => {
                log::warning(format_args!("the certificates stay as they were: {error}"));
            }
        }
    }

    /// Whether no client is left since.
    pub fn is_drained(&self) -> bool {
        self.cores.iter().all(|(inbox, thread)| inbox.is_drained() || thread.is_finished())
    }

    /// Asks every core to stop; [`Running::join`] waits for it.
    pub fn shutdown(&self) {
        for (inbox, _) in &self.cores {
            inbox.post(Mail::Shutdown);
        }
    }

    /// Waits until every core has stopped. False if one did not within the bound.
    pub fn join(self) -> bool {
        let until = Instant::now() + Duration::from_millis(STOP_MS_MAX);
        let wait_for = |is_finished: &dyn Fn() -> bool| {
            while !is_finished() {
                if Instant::now() > until {
                    return false;
                }
                thread::sleep(Duration::from_millis(5));
            }
            true
        };
        let has_stopped = self.cores.iter().all(|(_, thread)| wait_for(&|| thread.is_finished()));
        // The cores have handed over their records, and the thread ends with the last of its senders.
        let writer = self.audit.map(|(_, writer)| writer);
        has_stopped && writer.is_none_or(|writer| wait_for(&|| writer.is_finished()))
    }
}

#[cfg(test)]
mod tests;
