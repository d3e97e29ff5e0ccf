//! Metrics of a partition, for `INFO`, `ensue status` and `/metrics`: summed over partitions by name, but for the
//! largest of those whose names end in `_max`, and the smallest of those that end in `_min`.

use super::Maintenance;
use crate::partition::cx::Cx;
use crate::partition::keyspaces::Keyspaces;
use crate::partition::others::Others;
use crate::partition::peers::Peers;
use crate::partition::reads::Reads;
use crate::partition::transactions::Transactions;

/// All that has metrics.
pub(in crate::partition) struct Metrics<'a> {
    pub(in crate::partition) cx: &'a mut Cx,
    pub(in crate::partition) others: &'a Others,
    pub(in crate::partition) keyspaces: &'a Keyspaces,
    pub(in crate::partition) reads: &'a Reads,
    pub(in crate::partition) transactions: &'a Transactions,
    pub(in crate::partition) maintenance: &'a Maintenance,
    pub(in crate::partition) peers: &'a Peers,
    /// Syncs of the log, and checkpoints.
    pub(in crate::partition) written: (u64, u64),
}

impl Metrics<'_> {
    /// The datacenters that were declared dead, and how far that has come here.
    fn add_failed(&self, add: &mut impl FnMut(&str, u64)) {
        for datacenter in self.others.failover.failed.datacenters() {
            let name = &self.cx.config.topology.datacenters[usize::from(datacenter.0)].name;
            let how = if self.others.failover.failed.is_retired(datacenter) { "retired" } else { "dead" };
            add(&format!("{how}_{name}_partitions"), 1);
            add(
                &format!("settled_{name}_partitions"),
                u64::from(self.others.failover.failed.is_settled(datacenter)),
            );
            add(
                &format!("parted_{name}_partitions"),
                u64::from(self.others.failover.discarded.knows(datacenter)),
            );
        }
    }

    /// The datacenters that are being removed: this one, and others as they say.
    fn add_retiring(&self, add: &mut impl FnMut(&str, u64)) {
        let retirement = &self.others.failover.retirement;
        add("retiring", u64::from(retirement.is_begun()));
        for datacenter in retirement.others().filter(|other| !self.others.failover.failed.contains(*other)) {
            add(&format!("retiring_{}_partitions", self.cx.name_of(datacenter)), 1);
        }
    }

    /// What the partition has done by itself.
    fn add_done(&self, add: &mut impl FnMut(&str, u64)) {
        add("expired_keys", self.maintenance.collector.expired);
        add("expired_subkeys", self.maintenance.collector.expired_fields);
        add("rights_given", self.maintenance.balancer.given);
    }

    /// What was done about the log.
    fn add_written(&self, add: &mut impl FnMut(&str, u64)) {
        let (syncs, checkpoints) = self.written;
        add("log_syncs", syncs);
        add("checkpoints", checkpoints);
        add("checkpoints_asked", u64::from(self.cx.saving.is_pending()));
        add("checkpointed_s_min", self.cx.saving.ended_s());
    }

    /// The metrics, by name.
    pub(in crate::partition) fn all(&mut self, is_serving: bool) -> Vec<(String, i64)> {
        let mut metrics: Vec<(String, i64)> = Vec::new();
        let mut add = |name: &str, value: u64| metrics.push((name.to_owned(), value as i64));
        add("memory_bytes", self.keyspaces.memory_bytes());
        add("backlog_bytes", self.cx.journal.backlog_bytes());
        add("log_bytes", self.cx.journal.log_bytes());
        self.add_written(&mut add);
        add("waiting_entries", self.others.replication.inbound.len() as u64);
        self.others.replication.overdue(self.cx).into_iter().for_each(|(name, entries)| add(&name, entries));
        add("open_dependency_checks", self.others.replication.inbound.open_checks() as u64);
        add("dependency_waits", self.others.replication.inbound.waited());
        add("transactions", self.transactions.len() as u64);
        self.reads.add_waiting(&mut add);
        let (reads, stale_reads) = self.keyspaces.counts.get();
        add("reads", reads);
        add("stale_reads", stale_reads);
        self.add_done(&mut add);
        self.keyspaces.add_counts(&mut add);
        let (waited, waited_us, abandoned) = self.reads.blocked.counts();
        add("reads_waited", waited);
        add("reads_waited_us", waited_us);
        add("reads_given_up", abandoned);
        add("cuts", self.reads.snapshot_reads.len() as u64);
        add("late_cuts", self.reads.snapshot_reads.late_count());
        let (heartbeats, rounds) = self.others.stable_time.times.counts();
        add("heartbeats", heartbeats);
        add("stabilization_rounds", rounds);
        add("unsettled_versions", self.keyspaces.each().map(|rows| rows.versions() as u64).sum());
        add("dependency_bytes", self.keyspaces.each().map(|rows| rows.dependency_bytes()).sum());
        add("waiting_rows", self.keyspaces.order.len() as u64);
        add("cells", self.keyspaces.each().map(|rows| rows.cells()).sum());
        add("stopped", u64::from(!is_serving));
        add("disk_full", u64::from(self.cx.is_out_of_room()));
        add("catching_up", u64::from(self.others.is_catching_up()));
        add("lost_tails", self.others.replication.applied.sets().map(|(_, set)| set.lost.len() as u64).sum());
        add("taken_back_entries", self.others.replication.loss_counts().recovered);
        add("lost_dependencies", self.others.replication.loss_counts().dependencies);
        add("peer_refusals", self.peers.identity.refusals());
        self.add_failed(&mut add);
        self.add_retiring(&mut add);
        for (number, protocol) in self.cx.protocols.iter().enumerate() {
            if protocol.needs().previous_versions {
                add(&format!("conflicts_{number}"), self.keyspaces.conflict_log.count(number));
            }
            if protocol.needs().siblings {
                add(&format!("failed_folds_{number}"), self.keyspaces.conflict_log.failures(number));
            }
        }
        if self.cx.protocols.iter().any(|protocol| protocol.needs().previous_versions) {
            add("unlisted_conflicts", self.keyspaces.conflict_log.forgotten());
        }
        add("discarded", self.others.failover.discarded.len() as u64);
        let counts = self.keyspaces.count_rows(self.cx);
        add("tombstones", counts.tombstones);
        if self.cx.protocols.iter().any(|protocol| protocol.needs().siblings) {
            add("conflicting_values", counts.conflicting);
        }
        for shown in counts.shown {
            add(&format!("keys_{}", shown.keyspace.0), shown.keys);
            add(&format!("expires_{}", shown.keyspace.0), shown.expires);
        }
        self.cx.statistics.metrics().into_iter().for_each(|(name, value)| add(&name, value as u64));
        self.others.add_clock_metrics(self.cx, &mut add);
        self.others.replication.add_delays(self.cx, &mut add);
        self.keyspaces.branching.add_metrics(&mut add);
        self.peers.add_peer_metrics(self.cx, self.others, &mut add);
        metrics
    }
}
