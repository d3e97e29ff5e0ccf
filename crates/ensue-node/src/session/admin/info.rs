//! `INFO`: metrics of the datacenter as lines, with the names that existing dashboards and clients look for.
//!
//! Metrics arrive put together over all cores and partitions. Those that Redis has a line for stand in its sections;
//! every other one stands in the section `Ensue` under its own name. Fields that mean nothing here are left out.

use super::latency;
use crate::cpu;
use crate::links::{self, Linked};
use crate::memory;
use crate::session::cx::Cx;
use crate::session::parameters::Parameters;
use crate::statistics;
use crate::{AppendFsync, NodeConfig};
use ensue_protocol::{Capabilities, Protocol, SnapshotReads};
use ensue_types::{Args, DatacenterId, Now, PartitionId};
use std::collections::BTreeMap;
use std::fmt::Write;

pub(crate) type Metrics = BTreeMap<String, i64>;

/// What partitions and cores have answered.
#[derive(Clone, Copy)]
pub(crate) struct Findings<'a> {
    pub(crate) metrics: &'a Metrics,
    pub(crate) linked: &'a BTreeMap<DatacenterId, Linked>,
}

/// A section: its name in lower case, its title, and whether it needs metrics.
struct Section {
    name: &'static str,
    title: &'static str,
    asks: bool,
}

const SECTIONS: [Section; 15] = [
    Section { name: "server", title: "Server", asks: false },
    Section { name: "clients", title: "Clients", asks: true },
    Section { name: "memory", title: "Memory", asks: true },
    Section { name: "persistence", title: "Persistence", asks: true },
    Section { name: "stats", title: "Stats", asks: true },
    Section { name: "replication", title: "Replication", asks: false },
    Section { name: "cpu", title: "CPU", asks: true },
    Section { name: "modules", title: "Modules", asks: false },
    Section { name: "commandstats", title: "Commandstats", asks: true },
    Section { name: "errorstats", title: "Errorstats", asks: true },
    Section { name: "latencystats", title: "Latencystats", asks: true },
    Section { name: "cluster", title: "Cluster", asks: false },
    Section { name: "keyspace", title: "Keyspace", asks: true },
    Section { name: "keyspaces", title: "Keyspaces", asks: true },
    Section { name: "ensue", title: "Ensue", asks: true },
];

/// The sections that `INFO` names, in lower case.
pub(crate) fn sections(args: &Args) -> Vec<String> {
    let mut names: Vec<String> =
        args[1..].iter().map(|name| String::from_utf8_lossy(name).to_ascii_lowercase()).collect();
    if names.is_empty() {
        names.push("default".to_owned());
    }
    let mut sections = Vec::new();
    for name in names {
        let left_out: &[&str] = match name.as_str() {
            "everything" => &[],
            "all" => &["modules"],
            "default" => &["commandstats", "latencystats"],
            _ => {
                sections.push(name);
                continue;
            }
        };
        let all = SECTIONS.iter().map(|section| section.name).filter(|name| !left_out.contains(name));
        sections.extend(all.map(String::from));
    }
    sections
}

/// Whether one of these sections needs metrics.
pub(crate) fn asks(sections: &[String]) -> bool {
    SECTIONS.iter().any(|section| section.asks && is_wanted(sections, section))
}

/// The lines of these sections.
pub(crate) fn text(cx: &Cx<'_>, sections: &[String], findings: Findings<'_>) -> String {
    let Findings { metrics, linked } = findings;
    let mut lines = Lines {
        config: &cx.core.config,
        parameters: &cx.core.parameters,
        protocols: &cx.core.protocols,
        now: cx.now,
        metrics,
        linked,
        text: String::new(),
    };
    for section in SECTIONS.iter().filter(|section| is_wanted(sections, section)) {
        if !lines.text.is_empty() {
            lines.text.push_str("\r\n");
        }
        lines.text.push_str("# ");
        lines.text.push_str(section.title);
        lines.text.push_str("\r\n");
        lines.section(section.name);
    }
    lines.text
}

fn is_wanted(sections: &[String], section: &Section) -> bool {
    sections.iter().any(|name| name == section.name)
}

struct Lines<'a> {
    config: &'a NodeConfig,
    parameters: &'a Parameters,
    protocols: &'a [Box<dyn Protocol>],
    now: Now,
    metrics: &'a Metrics,
    linked: &'a BTreeMap<DatacenterId, Linked>,
    text: String,
}

impl Lines<'_> {
    fn section(&mut self, name: &str) {
        match name {
            "server" => self.server(),
            "clients" => self.clients(),
            "memory" => self.memory(),
            "persistence" => self.persistence(),
            "stats" => self.stats(),
            "replication" => self.replication(),
            "cpu" => self.cpu(),
            "modules" => {}
            "commandstats" => self.command_statistics(),
            "errorstats" => self.error_statistics(),
            "latencystats" => self.latency_statistics(),
            "cluster" => self.line("cluster_enabled", 0),
            "keyspace" => self.keyspace(),
            "keyspaces" => self.keyspaces(),
            _ => self.ensue(),
        }
    }

    fn line(&mut self, name: &str, value: impl std::fmt::Display) {
        // Writing to a string cannot fail.
        let _ = write!(self.text, "{name}:{value}\r\n");
    }

    /// A number of bytes, and the same for people.
    fn bytes(&mut self, name: &str, bytes: i64) {
        self.line(name, bytes);
        let human = match bytes as f64 {
            bytes if bytes < KIB => format!("{bytes:.0}B"),
            bytes if bytes < KIB * KIB => format!("{:.2}K", bytes / KIB),
            bytes if bytes < KIB * KIB * KIB => format!("{:.2}M", bytes / KIB / KIB),
            bytes => format!("{:.2}G", bytes / KIB / KIB / KIB),
        };
        self.line(&format!("{name}_human"), human);
    }

    fn metric(&self, name: &str) -> i64 {
        self.metrics.get(name).copied().unwrap_or(0)
    }

    fn server(&mut self) {
        self.line("redis_version", REDIS_VERSION);
        self.line("server_name", "ensue");
        self.line("ensue_version", env!("CARGO_PKG_VERSION"));
        self.line("redis_mode", "standalone");
        self.line("server_time_usec", self.now.wall_ms.saturating_mul(1_000));
        // The process' clock begins with it.
        let uptime_s = self.now.monotonic_us / 1_000_000;
        self.line("uptime_in_seconds", uptime_s);
        self.line("uptime_in_days", uptime_s / SECONDS_A_DAY);
        for (name, value) in &self.config.info {
            self.line(name, value);
        }
    }

    fn clients(&mut self) {
        self.line("connected_clients", self.metric("connected_clients"));
        self.line("blocked_clients", self.metric("blocked_clients"));
        self.line("tracking_clients", self.metric("tracking_clients"));
        self.line("pubsub_clients", self.metric("pubsub_clients"));
        for name in BLOCKING {
            self.line(name, self.metric(name));
        }
    }

    fn memory(&mut self) {
        // Without an allocator that counts, what the rows are estimated to take is all that is known.
        let rows = self.metric("memory_bytes");
        let allocated = self.metric(memory::ALLOCATED);
        self.bytes("used_memory", if allocated > 0 { allocated } else { rows });
        if allocated > 0 {
            let resident = self.metric(memory::RESIDENT);
            self.bytes("used_memory_rss", resident);
            self.bytes("used_memory_peak", self.metric(memory::PEAK));
            self.line("used_memory_dataset", rows);
            self.line("mem_fragmentation_ratio", format!("{:.2}", resident as f64 / allocated as f64));
            self.line("mem_allocator", "jemalloc");
        }
        // Whatever takes memory counts, and what is deleted is freed at once.
        self.line("mem_not_counted_for_evict", 0);
        self.line("lazyfree_pending_objects", 0);
        self.line("lazyfreed_objects", 0);
        self.line("number_of_cached_scripts", self.metric("cached_scripts_max"));
        self.line("number_of_libraries", self.metric("libraries_max"));
        self.line("number_of_functions", self.metric("functions_max"));
        self.bytes("maxmemory", self.parameters.number("maxmemory"));
        self.line("maxmemory_policy", self.parameters.value("maxmemory-policy"));
    }

    fn persistence(&mut self) {
        self.line("loading", u8::from(self.metric("loading") > 0));
        let (asked, is_full) = (self.metric("checkpoints_asked") > 0, self.metric("disk_full") > 0);
        let status = if is_full { "err" } else { "ok" };
        self.line("rdb_bgsave_in_progress", u8::from(asked));
        self.line("rdb_last_save_time", self.metric("checkpointed_s_min"));
        self.line("rdb_last_bgsave_status", status);
        self.line("aof_enabled", 1);
        self.line("aof_rewrite_in_progress", u8::from(asked));
        self.line("aof_last_bgrewrite_status", status);
        self.line("aof_last_write_status", status);
        let appendfsync = match self.config.append_fsync {
            AppendFsync::Always => "always",
            AppendFsync::EverySecond => "everysec",
            AppendFsync::No => "no",
        };
        self.line("ensue_appendfsync", appendfsync);
    }

    fn stats(&mut self) {
        for name in STATS {
            self.line(name, self.metric(name));
        }
    }

    /// Zero until the kernel has counted something.
    fn cpu(&mut self) {
        for (name, metric) in [("used_cpu_sys", cpu::SYSTEM), ("used_cpu_user", cpu::USER)] {
            let us = self.metric(metric);
            self.line(name, format!("{:.6}", us as f64 / 1e6));
        }
    }

    /// By name, in its order. The time of a command is its share of that of the commands that were executed with it.
    fn command_statistics(&mut self) {
        let counted =
            |name: &'_ str| Some(name.strip_prefix(statistics::COMMAND)?.strip_suffix(":calls")?.to_owned());
        let names: Vec<String> = self.metrics.keys().filter_map(|name| counted(name)).collect();
        for name in names {
            let [calls, rejected, failed, ns] = ["calls", "rejected", "failed", "ns"]
                .map(|what| self.metric(&format!("{}{name}:{what}", statistics::COMMAND)));
            let usec_per_call = ns as f64 / 1e3 / calls.max(1) as f64;
            let line = format!(
                "calls={calls},usec={},usec_per_call={usec_per_call:.2},rejected_calls={rejected},failed_calls={failed}",
                ns / 1_000
            );
            self.line(&format!("{}{name}", statistics::COMMAND), line);
        }
    }

    /// By name, in its order: how long the shares of its calls took that are asked for.
    fn latency_statistics(&mut self) {
        if self.parameters.value("latency-tracking") != "yes" {
            return;
        }
        let shares = self.parameters.value("latency-tracking-info-percentiles").split(' ');
        let shares: Vec<&str> = shares.filter(|share| !share.is_empty()).collect();
        for (name, counts) in latency::histograms(self.metrics) {
            let took = |share: &&str| {
                let us = latency::percentile(&counts, share.parse().unwrap_or_default());
                format!("p{share}={us}.000")
            };
            let line = shares.iter().map(took).collect::<Vec<_>>().join(",");
            self.line(&format!("latency_percentiles_usec_{name}"), line);
        }
    }

    fn error_statistics(&mut self) {
        for (name, count) in self.metrics.iter().filter(|(name, _)| name.starts_with(statistics::ERROR)) {
            // Writing to a string cannot fail.
            let _ = write!(self.text, "{name}:count={count}\r\n");
        }
    }

    fn replication(&mut self) {
        // Every datacenter takes writes; to a client of Redis that is a master.
        self.line("role", "master");
        self.line("connected_slaves", 0);
        self.line("master_repl_offset", 0);
        let topology = &self.config.topology;
        self.line("ensue_datacenter", topology.datacenter);
        let name = |datacenter: DatacenterId| &topology.datacenters[usize::from(datacenter.0)].name;
        self.line("ensue_datacenter_name", name(topology.datacenter));
        let others: Vec<String> = topology.others().map(|datacenter| datacenter.to_string()).collect();
        self.line("ensue_other_datacenters", others.join(","));
        let names: Vec<&str> = topology.others().map(|other| name(other).as_str()).collect();
        self.line("ensue_other_datacenter_names", names.join(","));
        self.line("ensue_partitions", topology.partitions);
        let replicas = topology.replicas(topology.datacenter, PartitionId(0)).len().max(1);
        self.line("ensue_replicas", replicas);
        self.line("ensue_nodes", topology.datacenters[usize::from(topology.datacenter.0)].nodes.len());
    }

    fn keyspace(&mut self) {
        for keyspace in 0..self.config.protocols.len() {
            let keys = self.metric(&format!("keys_{keyspace}"));
            if keys > 0 {
                let expires = self.metric(&format!("expires_{keyspace}"));
                self.line(&format!("db{keyspace}"), format!("keys={keys},expires={expires},avg_ttl=0"));
            }
        }
    }

    /// What the protocol of each keyspace offers, and how many conflicts were seen where it looks for them: of the
    /// first keyspace, of those that hold keys, and of those with another protocol than the first.
    fn keyspaces(&mut self) {
        for (keyspace, protocol) in self.protocols.iter().enumerate() {
            let holds_keys = self.metric(&format!("keys_{keyspace}")) > 0;
            if keyspace == 0 || holds_keys || protocol.name() != self.protocols[0].name() {
                let mut line = offer(protocol.as_ref());
                if protocol.needs().previous_versions {
                    let conflicts = self.metric(&format!("conflicts_{keyspace}"));
                    line += &format!(",conflicts={conflicts}");
                }
                self.line(&format!("keyspace{keyspace}"), line);
            }
        }
    }

    /// Who is reached, and whether all is as it should be: a datacenter that replicates to nobody serves all the same.
    fn links(&mut self) {
        let topology = &self.config.topology;
        let shortcomings = {
            let partitions = usize::from(topology.partitions);
            links::shortcomings(topology, self.linked, partitions, |name| self.metric(name))
        };
        for (datacenter, linked) in self.linked {
            let Some(there) = topology.datacenters.get(usize::from(datacenter.0)) else { continue };
            self.line(&format!("ensue_link_{}", there.name), linked.state());
            self.line(&format!("ensue_link_{}_since", there.name), linked.since_s);
            if !linked.reason.is_empty() {
                self.line(&format!("ensue_link_{}_reason", there.name), &linked.reason);
            }
        }
        let serves = links::not_serving(|name| self.metric(name)).is_empty();
        self.line("ensue_serving", u8::from(serves));
        self.line("ensue_ready", u8::from(shortcomings.is_empty()));
        if !shortcomings.is_empty() {
            self.line("ensue_ready_reason", shortcomings.join("; "));
        }
    }

    fn ensue(&mut self) {
        for (keyspace, protocol) in self.config.protocols.iter().enumerate() {
            self.line(&format!("ensue_protocol_{keyspace}"), protocol);
        }
        self.links();
        for (name, value) in self.metrics {
            let elsewhere = name.starts_with("keys_")
                || name.starts_with("expires_")
                || name.starts_with(statistics::COMMAND)
                || name.starts_with(statistics::ERROR)
                || name.starts_with(statistics::HISTOGRAM)
                || name.starts_with(statistics::VISIBLE_AFTER)
                || matches!(
                    name.as_str(),
                    "connected_clients"
                        | "blocked_clients"
                        | "pubsub_clients"
                        | "memory_bytes"
                        | "loading"
                        | memory::ALLOCATED
                        | memory::RESIDENT
                        | memory::PEAK
                        | cpu::USER
                        | cpu::SYSTEM
                )
                || BLOCKING.contains(&name.as_str())
                || STATS.contains(&name.as_str());
            if !elsewhere {
                self.line(&format!("ensue_{name}"), value);
            }
        }
    }
}

/// A protocol and its capabilities, in the words of `docs/protocols.md`.
fn offer(protocol: &dyn Protocol) -> String {
    let Capabilities { snapshot_reads, write_transactions, causality, available } = protocol.capabilities();
    let snapshot_reads = match snapshot_reads {
        SnapshotReads::None => "none",
        SnapshotReads::OneRound => "one-round",
        SnapshotReads::TwoRounds => "two-rounds",
    };
    let said = |yes: bool| if yes { "yes" } else { "no" };
    format!(
        "protocol={},snapshot_reads={snapshot_reads},write_transactions={},causality={},available={}",
        protocol.name(),
        said(write_transactions),
        said(causality),
        said(available)
    )
}

/// Metrics that have a line of this name in `Clients`.
const BLOCKING: [&str; 2] = ["total_blocking_keys", "total_blocking_keys_on_nokey"];

/// Metrics that have a line of this name in `Stats`, present or not.
const STATS: [&str; 22] = [
    "total_connections_received",
    "total_commands_processed",
    "instantaneous_ops_per_sec",
    "keyspace_hits",
    "keyspace_misses",
    "expired_keys",
    "expired_subkeys",
    "evicted_keys",
    "evicted_clients",
    "acl_access_denied_auth",
    "acl_access_denied_cmd",
    "acl_access_denied_key",
    "acl_access_denied_channel",
    "acl_access_denied_db",
    "total_error_replies",
    "pubsub_channels",
    "pubsub_patterns",
    "pubsubshard_channels",
    "client_output_buffer_limit_disconnections",
    "tracking_total_keys",
    "tracking_total_items",
    "tracking_total_prefixes",
];

const SECONDS_A_DAY: u64 = 86_400;
const KIB: f64 = 1024.0;

/// The version of Redis whose commands and answers these are.
pub(crate) const REDIS_VERSION: &str = "7.2.4";
