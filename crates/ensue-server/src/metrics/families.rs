//! Which metric of a node is shown under which name: one row each.
//!
//! A row whose name has `{}` is one of several of a kind: of peers, of keyspaces. What is not in the tables has code of
//! its own in `page`: commands, delays, links.

/// How a figure is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// As it is.
    Count,
    Bytes,
    /// Milliseconds, shown as seconds.
    Ms,
    /// Microseconds, shown as seconds.
    Us,
}

/// Whether a figure only rises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
}

/// One metric.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    /// Among the figures of a node.
    pub(super) from: &'static str,
    /// Without `ensue_`, and without the suffixes that the unit and the kind give it.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) shown: Shown,
    pub(super) help: &'static str,
}

const fn count(from: &'static str, name: &'static str, help: &'static str) -> Row {
    Row { from, name, kind: Kind::Counter, shown: Shown::Count, help }
}

const fn gauge(from: &'static str, name: &'static str, help: &'static str) -> Row {
    Row { from, name, kind: Kind::Gauge, shown: Shown::Count, help }
}

impl Shown {
    /// The suffix that the unit gives a name.
    pub(super) const fn suffix(self) -> &'static str {
        match self {
            Shown::Count => "",
            Shown::Bytes => "_bytes",
            Shown::Ms | Shown::Us => "_seconds",
        }
    }
}

impl Kind {
    /// The suffix that the kind gives a name, after that of the unit.
    pub(super) const fn suffix(self) -> &'static str {
        match self {
            Kind::Counter => "_total",
            Kind::Gauge => "",
        }
    }
}

impl Row {
    const fn shown(mut self, shown: Shown) -> Row {
        self.shown = shown;
        self
    }
}

/// Figures of the node as a whole.
pub(super) const PLAIN: &[Row] = &[
    gauge("connected_clients", "connected_clients", "Client connections"),
    gauge("blocked_clients", "blocked_clients", "Clients that wait in a blocking command"),
    gauge("pubsub_clients", "subscribed_clients", "Clients that subscribe to a channel"),
    gauge(
        "tracking_clients",
        "tracking_clients",
        "Clients that are told what changes of what they have read",
    ),
    count("total_connections_received", "connections_received", "Connections accepted from clients"),
    count("total_commands_processed", "commands_received", "Commands taken from clients"),
    count("keyspace_hits", "keyspace_hits", "Keys that reads have found"),
    count("keyspace_misses", "keyspace_misses", "Keys that reads have not found"),
    count("expired_keys", "expired_keys", "Keys removed because their time was over"),
    count("evicted_keys", "evicted_keys", "Keys removed because memory was short"),
    count("reads", "reads", "Reads of keys"),
    count("stale_reads", "stale_reads", "Reads that showed an older version than the newest one here"),
    count("reads_waited", "blocked_reads", "Reads that had to wait for a time"),
    count("reads_waited_us", "blocked_reads_wait", "Time that reads have waited for a time").shown(Shown::Us),
    count("reads_given_up", "blocked_reads_given_up", "Reads whose wait for a time was given up"),
    gauge("waiting_reads", "waiting_reads", "Reads that wait for an undecided transaction"),
    gauge("waiting_for_times", "waiting_for_times", "Reads and merged tokens that wait for a time"),
    gauge("waiting_pops", "waiting_pops", "Blocking pops that wait for an element"),
    gauge("waiting_rows", "waiting_rows", "Keys on which commands wait for their turn"),
    gauge("waiting_entries", "waiting_entries", "Received entries that wait for their dependencies"),
    gauge("open_dependency_checks", "open_dependency_checks", "Questions to other partitions, unanswered"),
    count("dependency_waits", "dependency_waits", "Received entries that had to wait for a dependency"),
    gauge("transactions", "open_transactions", "Write transactions that are not finished"),
    gauge("cuts", "open_snapshot_reads", "Reads at a snapshot that are not finished"),
    count("late_cuts", "late_snapshot_reads", "Reads at a snapshot that a partition could not serve"),
    count("heartbeats", "heartbeats", "Heartbeats sent to other datacenters"),
    count(
        "stabilization_rounds",
        "stabilization_rounds",
        "Rounds in which the partitions agree on a stable time",
    ),
    gauge("unsettled_versions", "versions", "Versions kept beside the newest settled value of a location"),
    gauge("cells", "cells", "Columns of all rows"),
    gauge(
        "ended_columns",
        "ended_columns",
        "Columns that were removed with their rows and are not freed yet",
    ),
    gauge("tombstones", "tombstones", "Deleted columns that cannot be forgotten yet"),
    gauge("conflicting_values", "conflicting_values", "Values that stand beside each other, unresolved"),
    count("unlisted_conflicts", "unlisted_conflicts", "Conflicts that the list of conflicts has no room for"),
    gauge("discarded", "discarded_writes", "Writes discarded with a datacenter that was declared dead"),
    gauge("lost_tails", "lost_tails", "Ends of streams that were lost with a log"),
    count("taken_back_entries", "recovered_entries", "Own entries that came back from other datacenters"),
    count("lost_dependencies", "lost_dependencies", "Dependencies on writes that were declared lost"),
    count("peer_refusals", "peer_refusals", "Refusals of another datacenter's directory"),
    gauge("backlog_bytes", "replication_backlog", "Log that not every other datacenter has synced")
        .shown(Shown::Bytes),
    gauge("log_bytes", "log", "Log on the disk").shown(Shown::Bytes),
    count("scrubbed_bytes", "scrubbed", "Bytes that were read of the disk in the background")
        .shown(Shown::Bytes),
    count("scrub_rounds", "scrub_rounds", "How often the whole disk was read in the background"),
    gauge("damaged_files", "damaged_files", "Files on the disk that do not match their checksums"),
    count("log_syncs", "log_syncs", "Syncs of the log begun since the start"),
    count("checkpoints", "checkpoints", "Checkpoints finished since the start"),
    count("pubsub_published", "messages_published", "Messages published by clients"),
    count("pubsub_received", "messages_received", "Messages received from other cores"),
    count("pubsub_delivered", "messages_delivered", "Messages delivered, once for each subscriber"),
    gauge("pubsub_waiting", "messages_waiting", "Messages that wait for what their publishers had seen"),
    count(
        "client_output_buffer_limit_disconnections",
        "slow_subscribers",
        "Clients disconnected because they did not read what they subscribe to",
    ),
    gauge(
        "home_requests_waiting",
        "home_requests_waiting",
        "Commands sent to the home of their keys, unanswered",
    ),
    gauge("home_requests_executing", "home_requests_executing", "Commands of other datacenters at work here"),
    gauge(
        "replica_votes_missing",
        "replica_votes_missing",
        "Replicas that partitions led by this node lack: silent, or without a vote yet",
    ),
    gauge(
        "replica_fragile_partitions",
        "replica_fragile_partitions",
        "Partitions led by this node that would stop if one more of their replicas were lost",
    ),
    gauge(
        "replica_lag_entries_max",
        "replica_lag_entries",
        "Entries that the replica lacks that is furthest behind, of partitions led by this node",
    ),
    gauge("silent_peers", "silent_partitions", "Cores and partitions that did not answer for this page"),
];

/// Figures of a kind, under one name with a label: the name, the label, its help, how they are shown, and for each
/// value of the label the figure that has it.
pub(super) struct Labelled {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    pub(super) kind: Kind,
    pub(super) shown: Shown,
    pub(super) help: &'static str,
    pub(super) values: &'static [(&'static str, &'static str)],
}

pub(super) const LABELLED: &[Labelled] = &[
    Labelled {
        name: "memory",
        label: "kind",
        kind: Kind::Gauge,
        shown: Shown::Bytes,
        help: "Memory by what it is for; rows, dependencies, messages and home_answers are part of allocated",
        values: &[
            ("allocated", "allocated_bytes"),
            ("allocated_peak", "allocated_bytes_peak"),
            ("resident", "resident_bytes"),
            ("rows", "memory_bytes"),
            ("dependencies", "dependency_bytes"),
            ("messages", "pubsub_waiting_bytes"),
            ("home_answers", "home_answers_kept_bytes"),
        ],
    },
    Labelled {
        name: "cpu",
        label: "mode",
        kind: Kind::Counter,
        shown: Shown::Us,
        help: "Processor time of the process",
        values: &[("user", "cpu_user_us"), ("system", "cpu_system_us")],
    },
    Labelled {
        name: "partitions",
        label: "state",
        kind: Kind::Gauge,
        shown: Shown::Count,
        help: "Partitions of this node that are in a state in which they serve not at all, or not as they should",
        values: &[
            ("stopped", "stopped"),
            ("loading", "loading"),
            ("joining", "joining"),
            ("rejoin", "rejoin"),
            ("catching_up", "catching_up"),
            ("declared_dead", "declared_dead"),
            ("retiring", "retiring"),
            ("retired", "retired"),
            ("disk_full", "disk_full"),
            ("clock_ahead", "clock_ahead"),
        ],
    },
    Labelled {
        name: "messages_dropped",
        label: "reason",
        kind: Kind::Counter,
        shown: Shown::Count,
        help: "Published messages that were dropped",
        values: &[
            ("late", "pubsub_dropped_late"),
            ("full", "pubsub_dropped_full"),
            ("lost", "pubsub_dropped_lost"),
            ("link", "pubsub_dropped_link"),
        ],
    },
];

/// Figures of each other datacenter, with the label `peer`.
pub(super) const OF_PEERS: &[Row] = &[
    gauge(
        "unreceived_{}_entries",
        "replication_unreceived_entries",
        "Own entries that the peer has not received",
    ),
    gauge(
        "unreceived_{}_ms_max",
        "replication_unreceived",
        "Age of the oldest own entry that the peer has not received",
    )
    .shown(Shown::Ms),
    gauge("lag_{}_entries", "replication_unsynced_entries", "Own entries that the peer has not synced"),
    gauge(
        "lag_{}_ms_max",
        "replication_unsynced",
        "Age of the oldest own entry that the peer has not synced",
    )
    .shown(Shown::Ms),
    gauge(
        "behind_{}_entries",
        "replication_behind_entries",
        "Entries of the peer, known and not visible here",
    ),
    gauge(
        "behind_{}_ms_max",
        "replication_behind",
        "How long ago the first entry of the peer that is not visible here was known",
    )
    .shown(Shown::Ms),
    gauge(
        "overdue_for_{}_entries",
        "overdue_entries",
        "Entries that have waited long for writes of the peer",
    ),
    gauge("linked_{}", "replicating_partitions", "Partitions of this node whose stream to the peer runs"),
    gauge(
        "ahead_{}_ms_max",
        "peer_time_ahead",
        "Time in the peer's last message, less this machine's clock then",
    )
    .shown(Shown::Ms),
    count("refused_{}_messages", "refused_messages", "Messages of the peer that cannot be valid"),
    gauge("refused_{}_partitions", "refused_partitions", "Partitions that refuse the peer's directory"),
    gauge("refuses_{}_partitions", "time_refused_partitions", "Partitions that refuse the peer's time"),
    gauge("refused_by_{}_partitions", "time_refused_by_partitions", "Partitions whose time the peer refuses"),
    gauge(
        "dead_{}_partitions",
        "declared_dead_partitions",
        "Partitions for which the peer was declared dead",
    ),
    gauge(
        "retiring_{}_partitions",
        "peer_retiring_partitions",
        "Partitions that know that the peer is being removed",
    ),
    gauge(
        "retired_{}_partitions",
        "peer_retired_partitions",
        "Partitions that know that the peer was removed, and that they have everything of it",
    ),
    gauge(
        "settled_{}_partitions",
        "dead_settled_partitions",
        "Partitions for which the peer is dead, or was removed, and the end of its stream is agreed",
    ),
];

/// Replicas of this node, by what they are to their groups, with the label `role`.
pub(super) const OF_ROLES: &[Row] =
    &[gauge("replica_{}_partitions", "replica_partitions", "Replicas on this node, by their role")];

pub(super) const ROLES: [&str; 7] =
    ["leader", "follower", "learner", "recovering", "leaderless", "starting", "stopped"];

/// Figures of each keyspace that has them, with the label `keyspace`.
pub(super) const OF_KEYSPACES: &[Row] = &[
    gauge("keys_{}", "keys", "Keys"),
    gauge("expires_{}", "keys_with_deadline", "Keys that expire"),
    count("conflicts_{}", "conflicts", "Conflicting writes seen, where the protocol looks for them"),
    count("failed_folds_{}", "failed_folds", "Conflicts of which the handler failed"),
    gauge("branch_states_{}", "branch_states", "States kept of a keyspace with branches"),
    gauge("branch_leaves_{}", "branch_leaves", "Branches of a keyspace: states that no other one follows"),
    gauge("branch_waiting_{}", "branch_commits_waiting", "Commits that wait for the states below them"),
];
