//! Everything about one world, as data: shape, bounds, delays, clocks, faults and workload.
//!
//! A seed draws it, a script sets it by name, and `Display` prints every option.

use super::shape::{Shape, Site};
use crate::random::Random;
use crate::rules::Rules;
use ensue_node::{AppendFsync, Handler, Home, NodeConfig, ReplicaOptions, Tuning};
use ensue_protocol::{Promises, Registration};
use ensue_types::{DatacenterId, KeyspaceId, limits};
use std::collections::BTreeMap;
use std::fmt;

/// Delays of connections, in microseconds.
#[derive(Clone, Debug)]
pub struct LinkOptions {
    /// Least and most within a datacenter.
    pub local_us: (u64, u64),
    /// From one datacenter to another, by their numbers; the way back may take another time.
    pub delay_us: Vec<Vec<u64>>,
    pub jitter_us: u64,
    /// Times in a thousand that a message between datacenters takes twice as long, of these four times, and so on: a
    /// heavy tail, up to 64 times.
    pub tail: u64,
}

/// Least and most times of disk work, in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct DiskOptions {
    pub append_us: (u64, u64),
    pub sync_us: (u64, u64),
}

/// How wrong clocks are.
#[derive(Clone, Copy, Debug)]
pub struct ClockOptions {
    /// No clock begins further from true time than this.
    pub skew_ms: u64,
    /// No clock is further from true time than this.
    pub bound_ms: u64,
    pub drift_ppm: u64,
    pub jump_ms: u64,
    /// A wild clock is ahead by this much at most; 0 if there is none.
    pub wild_ms: u64,
    /// A datacenter with a wild clock may be given times that the others believe.
    pub recovers: bool,
}

/// Which kinds of faults there are, and how often.
#[derive(Clone, Debug, Default)]
pub struct FaultOptions {
    /// Mean time between two faults of a kind, by the kind's name.
    pub intervals_ms: Vec<(&'static str, u64)>,
    /// A fault that ends lasts this long at most.
    pub duration_ms_max: u64,
    /// None strikes after this time.
    pub until_us: u64,
    /// A datacenter may be lost for good.
    pub loses_datacenter: bool,
    /// Directories of a datacenter may be lost, exchanged, or replaced by old copies.
    pub loses_directories: bool,
    /// The last datacenter is added while clients work: at first nobody knows it.
    pub joins: bool,
    /// The last datacenter is removed in good order while clients work.
    pub retires: bool,
    /// Homes of keys move while clients work.
    pub moves_homes: bool,
}

/// The keyspace of the clients of keys with a home.
pub(crate) const HOME_KEYSPACE: u8 = 7;

/// What clients do.
#[derive(Clone, Debug, Default)]
pub struct WorkloadOptions {
    pub clients: usize,
    pub operations: u64,
    pub think_us_max: u64,
    /// Times in a thousand that a client sends several requests at once.
    pub pipeline: u64,
    /// Times in a thousand that a client moves to another core, with its token.
    pub move_rate: u64,
    pub merge_rate: u64,
    pub merge_timeout_ms: u64,
    /// Times in a thousand that a client publishes; then every datacenter has somebody who subscribes.
    pub publish_rate: u64,
    /// Whether every datacenter has a client that keeps what it has read until it is told of a change.
    pub caches: bool,
    /// Whether some clients give their session a name, and go on under it on their next connection.
    pub named: bool,
    /// Times in a thousand that a client of a keyspace with branches places a ceiling.
    pub ceiling_rate: u64,
    /// Keys of each class.
    pub keys: usize,
    /// Weights of the operations, in the order of `workload::mix::KINDS`, then `FOLD_KINDS`.
    pub mix: Vec<u64>,
    /// Only these steps are taken, each not before its time. Nothing: all are taken, after thinking.
    pub kept: Option<Kept>,
}

/// Steps of clients, by the numbers of both, and when they are taken.
pub type Kept = BTreeMap<(usize, u64), u64>;

/// Everything about one run.
#[derive(Clone, Debug)]
pub struct Options {
    pub seed: u64,
    pub protocol: &'static Registration,
    pub rules: Rules,
    pub shape: Shape,
    /// Patterns of keys and their handlers of conflicts, of all keyspaces; only protocols that fold ask for them.
    pub handlers: Vec<(String, String)>,
    /// Patterns of keys and their homes, of all keyspaces.
    pub homes: Vec<(String, DatacenterId)>,
    pub append_fsync: AppendFsync,
    pub tuning: Tuning,
    pub links: LinkOptions,
    pub disk: DiskOptions,
    pub clock: ClockOptions,
    /// Longest turn: inputs that come within it share one `TurnEnd`.
    pub turn_us_max: u64,
    pub faults: FaultOptions,
    pub workload: WorkloadOptions,
}

impl Options {
    /// A node of this world, as it first starts.
    pub fn node(&self, site: Site) -> NodeConfig {
        let Options { shape, protocol, .. } = self;
        let protocols = vec![protocol.name.to_owned(); usize::from(limits::KEYSPACES)];
        let topology = shape.topology(shape.datacenter(site));
        NodeConfig {
            handlers: self.handlers(),
            homes: self.homes(),
            append_fsync: self.append_fsync,
            replication_backlog_max: 1 << 30,
            tuning: self.tuning.clone(),
            ..NodeConfig::new(topology, shape.core(site), std::slice::from_ref(protocol), protocols)
        }
    }

    /// What its replicas are told, if it has any: bounds of a seed, so that journals change and copies are sent.
    pub fn replica_options(&self) -> ReplicaOptions {
        let random = &mut Random::stream(self.seed, "replicas of options");
        let tuning = ensue_node::ReplicaTuning {
            journal_bytes: random.skewed(2_000, 1 << 20),
            appended_bytes: random.skewed(4_000, 4 << 20),
            held_bytes: random.skewed(500, 1 << 20) as usize,
            chunk_bytes: random.skewed(500, 1 << 20) as u32,
            message_bytes: random.skewed(500, 1 << 20),
            ..ensue_node::ReplicaTuning::default()
        };
        ReplicaOptions { lease: random.chance(300), tuning, found: Vec::new() }
    }

    /// A calm world for scripts: equal delays, true clocks, no faults, the usual bounds with shorter intervals.
    pub fn calm(shape: Shape, delay_us: u64, rules: Rules) -> Options {
        let count = usize::from(shape.datacenters);
        let tuning = Tuning {
            collect_interval_ms: 20,
            acknowledge_interval_ms: 5,
            request_timeout_ms: 2_000,
            ..Tuning::default()
        };
        Options {
            seed: 1,
            protocol: &ensue_protocol::REGISTRY[0],
            rules,
            shape,
            handlers: Vec::new(),
            homes: Vec::new(),
            append_fsync: AppendFsync::EverySecond,
            tuning,
            links: LinkOptions {
                local_us: (20, 20),
                delay_us: vec![vec![delay_us; count]; count],
                jitter_us: 0,
                tail: 0,
            },
            disk: DiskOptions { append_us: (1, 1), sync_us: (200, 200) },
            clock: ClockOptions {
                skew_ms: 0,
                bound_ms: 0,
                drift_ppm: 0,
                jump_ms: 0,
                wild_ms: 0,
                recovers: false,
            },
            turn_us_max: 0,
            faults: FaultOptions::default(),
            workload: WorkloadOptions::default(),
        }
    }

    /// Whether something of another datacenter may come later than this, were it only once in many runs: only a world
    /// without faults, with small delays and good clocks, says no.
    pub fn may_wait(&self, limit_ms: u64) -> bool {
        let most_us = self.links.delay_us.iter().flatten().max().copied().unwrap_or(0);
        let links_us = most_us + self.links.jitter_us + self.links.local_us.1;
        let way_ms = (links_us + self.turn_us_max + self.disk.sync_us.1) / 1_000 + 1;
        let tuning = &self.tuning;
        let rounds_ms = tuning.heartbeat_interval_ms + tuning.stabilization_interval_ms + way_ms;
        let calm = self.faults.intervals_ms.is_empty()
            && !self.faults.loses_datacenter
            && !self.faults.loses_directories
            && !self.faults.joins
            && !self.faults.retires
            && self.links.tail == 0
            && self.clock.bound_ms <= 5
            && tuning.stream_window_bytes >= 64 << 10;
        self.shape.datacenters > 1 && !(calm && 3 * rounds_ms + 2 * self.clock.bound_ms < limit_ms)
    }

    /// The handlers of conflicts, as nodes are told.
    pub fn handlers(&self) -> Vec<Handler> {
        let keyspaces = (0..limits::KEYSPACES).map(KeyspaceId);
        let all = keyspaces.flat_map(|keyspace| self.handlers.iter().map(move |one| (keyspace, one)));
        let handler = |(keyspace, (pattern, name)): (KeyspaceId, &(String, String))| {
            let fold = super::handlers::by_name(name)?;
            Some(Handler { keyspace, pattern: pattern.clone().into(), fold })
        };
        all.filter_map(handler).collect()
    }

    /// The homes of keys, as nodes are told.
    pub fn homes(&self) -> Vec<Home> {
        let keyspaces = (0..limits::KEYSPACES).map(KeyspaceId);
        let all = keyspaces.flat_map(|keyspace| self.homes.iter().map(move |one| (keyspace, one)));
        let home = |(keyspace, (pattern, datacenter)): (KeyspaceId, &(String, DatacenterId))| Home {
            keyspace,
            pattern: pattern.clone().into(),
            datacenter: *datacenter,
        };
        all.map(home).collect()
    }

    /// The datacenter that is added while clients work.
    pub fn joiner(&self) -> Option<DatacenterId> {
        self.faults.joins.then(|| DatacenterId(self.shape.datacenters - 1))
    }

    /// The datacenter that is removed in good order while clients work.
    pub fn retiree(&self) -> Option<DatacenterId> {
        self.faults.retires.then(|| DatacenterId(self.shape.datacenters - 1))
    }

    /// What the protocol promises.
    pub fn promises(&self) -> Promises {
        self.protocol.promises
    }

    /// Whether the power fails. A partition that may have lost its tail waits for every datacenter, so there is no
    /// power failure under `everysec` and `no` where a datacenter is lost for good: it is the operator who gives that
    /// one up.
    pub fn power_may_fail(&self) -> bool {
        let loses_one = self.faults.loses_datacenter || self.faults.joins && self.may_lack_copies();
        self.append_fsync == AppendFsync::Always || !loses_one
    }

    /// Whether an empty directory may not be filled by a copy: one that is added is given up then.
    pub fn may_lack_copies(&self) -> bool {
        self.promises().branches
    }

    /// A datacenter that does not recover is given up: see `power_may_fail`.
    pub fn may_lose_directories(&self) -> bool {
        self.append_fsync == AppendFsync::Always || self.faults.loses_datacenter
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed            {}", self.seed)?;
        writeln!(f, "cluster         {}", self.shape)?;
        writeln!(f, "protocol        {}", self.protocol.name)?;
        match self.rules.broken() {
            Some(rule) => writeln!(f, "broken rule     {}", rule.name())?,
            None => writeln!(f, "broken rule     none")?,
        }
        writeln!(f, "appendfsync     {:?}", self.append_fsync)?;
        writeln!(f, "tuning          {:?}", self.tuning)?;
        writeln!(f, "links           {:?}", self.links)?;
        writeln!(f, "disk            {:?}", self.disk)?;
        writeln!(f, "clock           {:?}", self.clock)?;
        writeln!(f, "turn_us_max     {}", self.turn_us_max)?;
        writeln!(f, "faults          {:?}", self.faults)?;
        write!(f, "workload        {:?}", self.workload)
    }
}
