//! Figures of a partition, for `INFO` and `ensue status`: summed over partitions by name.

use crate::partition::Partition;
use crate::partition::cx::Cx;
use crate::partition::keyspaces::Keyspaces;
use crate::partition::others::Others;
use crate::partition::peers::Peers;
use crate::partition::recovery::recover::Stage;
use crate::partition::replication::Replication;
use ensue_store::view::View;
use ensue_types::{KeyspaceId, Position, limits};

/// Dead cells, and for each keyspace in use what it shows.
#[derive(Default)]
struct RowCounts {
    tombstones: u64,
    /// Values and tombstones that stand beside newer ones.
    conflicting: u64,
    shown: Vec<Shown>,
}

/// Rows that a keyspace shows, and those of them with a deadline.
struct Shown {
    keyspace: KeyspaceId,
    keys: u64,
    expires: u64,
}

impl Replication {
    /// How many entries have waited for long for writes of which datacenter, by figure.
    pub(in crate::partition) fn overdue(&self, cx: &Cx) -> Vec<(String, u64)> {
        let long_ago_us = cx.now.monotonic_us.saturating_sub(1_000 * limits::OVERDUE_MS);
        let waiting = self.intake.waiting_since(long_ago_us, &self.applied);
        let named = waiting.into_iter().filter_map(|(awaited, entries)| {
            // What an entry names is its origin's word.
            let awaited = cx.config.topology.datacenters.get(usize::from(awaited.0))?;
            Some((format!("overdue_for_{}_entries", awaited.name), entries as u64))
        });
        named.collect()
    }
}

impl Others {
    /// Whose time is refused by whom.
    fn survey_clocks(&self, cx: &Cx, add: &mut impl FnMut(&str, u64)) {
        add("clock_ahead", u64::from(self.is_ahead_by_most(cx)));
        for (by, ahead_ms) in self.refused_by() {
            let name = cx.name_of(by);
            add(&format!("refused_by_{name}_partitions"), 1);
            add(&format!("refused_by_{name}_ms"), ahead_ms);
        }
        for datacenter in self.ahead.refuses() {
            add(&format!("refuses_{}_partitions", cx.name_of(datacenter)), 1);
        }
    }
}

impl Peers {
    /// The figures of each other datacenter.
    fn survey_peers(&self, cx: &Cx, others: &Others, add: &mut impl FnMut(&str, u64)) {
        for (datacenter, sender) in &others.replication.senders {
            if others.failover.dead.contains(*datacenter) {
                continue;
            }
            let name = &cx.config.topology.datacenters[usize::from(datacenter.0)].name;
            add(&format!("refused_{name}_messages"), self.refused(*datacenter));
            add(&format!("lag_{name}_entries"), entries_between(sender.synced(), cx.position));
            add(&format!("unreceived_{name}_entries"), entries_between(sender.received(), cx.position));
            add(&format!("linked_{name}"), u64::from(sender.is_resumed()));
            add(
                &format!("refused_{name}_partitions"),
                u64::from(self.identity.refusal(*datacenter).is_some()),
            );
        }
    }
}

impl Keyspaces {
    /// Walks all rows: exact, and as slow as there are rows.
    fn count_rows(&self, cx: &mut Cx) -> RowCounts {
        let at = cx.promise();
        let mut counts = RowCounts::default();
        for (number, rows) in self.rows.iter().enumerate() {
            let mut shown = Shown { keyspace: KeyspaceId(number as u8), keys: 0, expires: 0 };
            for row in rows.rows() {
                let dead = row.all_cells().filter(|(_, cell)| cell.is_dead()).count() as u64;
                counts.tombstones += dead;
                let beside = row.all_cells().map(|(_, cell)| cell.state().siblings().len() as u64);
                counts.conflicting += beside.sum::<u64>();
                let deadline = row.deadline_at(View::Newest).ok().flatten();
                let expired = deadline.is_some_and(|deadline| deadline <= at.ms());
                if expired {
                    counts.tombstones += row.columns_count() as u64;
                } else if row.kind().is_some() {
                    shown.keys += 1;
                    shown.expires += u64::from(deadline.is_some());
                }
            }
            if shown.keys > 0 {
                counts.shown.push(shown);
            }
        }
        // Of branches, the keys that any of them has.
        for (&keyspace, branches) in &self.branching.keyspaces {
            let keys = branches.figures().keys as u64;
            counts.shown.extend((keys > 0).then_some(Shown { keyspace, keys, expires: 0 }));
        }
        counts
    }
}

impl Partition {
    /// The figures, by name; all can be added up over partitions.
    pub(crate) fn survey(&mut self) -> Vec<(String, i64)> {
        let mut figures: Vec<(String, i64)> = Vec::new();
        let mut add = |name: &str, value: u64| figures.push((name.to_owned(), value as i64));
        add("memory_bytes", self.keyspaces.memory_bytes());
        add("backlog_bytes", self.cx.journal.backlog_bytes());
        add("log_bytes", self.cx.journal.log_bytes());
        add("waiting_entries", self.others.replication.intake.len() as u64);
        self.others.replication.overdue(&self.cx).into_iter().for_each(|(name, entries)| add(&name, entries));
        add("open_dependency_checks", self.others.replication.intake.open_checks() as u64);
        add("dependency_waits", self.others.replication.intake.waited());
        add("transactions", self.transactions.len() as u64);
        add("waiting_reads", self.reads.snapshots.waiting_reads() as u64);
        add("reads", self.keyspaces.counts.reads);
        add("stale_reads", self.keyspaces.counts.stale);
        add("waiting_for_times", self.reads.waits.len() as u64);
        add("expired_keys", self.maintenance.collector.expired);
        add("reads_waited", self.reads.waits.waited);
        add("reads_waited_us", self.reads.waits.waited_us);
        add("reads_given_up", self.reads.waits.given_up);
        add("cuts", self.reads.cuts.len() as u64);
        add("older_cuts", self.reads.cuts.older);
        add("late_cuts", self.reads.cuts.late);
        add("heartbeats", self.others.stable_time.times.heartbeats);
        add("stabilization_rounds", self.others.stable_time.times.rounds);
        add("unsettled_versions", self.keyspaces.rows.iter().map(|rows| rows.versions() as u64).sum());
        add("dependency_bytes", self.keyspaces.rows.iter().map(|rows| rows.dependency_bytes()).sum());
        add("waiting_rows", self.keyspaces.order.len() as u64);
        add("cells", self.keyspaces.rows.iter().map(|rows| rows.cells()).sum());
        add("stopped", u64::from(!matches!(self.stage, Stage::Serving)));
        add("disk_full", u64::from(self.cx.is_out_of_room()));
        add("catching_up", u64::from(self.others.is_catching_up()));
        add("lost_tails", self.others.replication.applied.sets().map(|(_, set)| set.lost.len() as u64).sum());
        add("taken_back_entries", self.others.replication.losses.taken_back);
        add("lost_dependencies", self.others.replication.losses.dependencies);
        add("peer_refusals", self.peers.identity.refusals);
        for datacenter in self.others.failover.dead.datacenters() {
            let name = &self.cx.config.topology.datacenters[usize::from(datacenter.0)].name;
            add(&format!("dead_{name}_partitions"), 1);
            add(
                &format!("settled_{name}_partitions"),
                u64::from(self.others.failover.dead.is_settled(datacenter)),
            );
            add(
                &format!("parted_{name}_partitions"),
                u64::from(self.others.failover.discarded.knows(datacenter)),
            );
        }
        for (number, protocol) in self.cx.protocols.iter().enumerate() {
            if protocol.needs().previous_versions {
                add(&format!("conflicts_{number}"), self.keyspaces.conflict_log.count(number));
            }
        }
        if self.cx.protocols.iter().any(|protocol| protocol.needs().previous_versions) {
            add("unlisted_conflicts", self.keyspaces.conflict_log.forgotten());
        }
        add("discarded", self.others.failover.discarded.len() as u64);
        let counts = self.keyspaces.count_rows(&mut self.cx);
        add("tombstones", counts.tombstones);
        if self.cx.protocols.iter().any(|protocol| protocol.needs().siblings) {
            add("conflicting_values", counts.conflicting);
        }
        for shown in counts.shown {
            add(&format!("keys_{}", shown.keyspace.0), shown.keys);
            add(&format!("expires_{}", shown.keyspace.0), shown.expires);
        }
        self.others.survey_clocks(&self.cx, &mut add);
        self.peers.survey_peers(&self.cx, &self.others, &mut add);
        figures
    }
}

/// Entries after one place and up to another. Of an earlier incarnation only the last part is counted: how many entries
/// it had is not kept.
fn entries_between(after: Position, end: Position) -> u64 {
    let same = after.incarnation() == end.incarnation();
    if same { end.0.saturating_sub(after.0) } else { end.number() }
}
