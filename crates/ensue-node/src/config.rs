//! What a node is told before it starts: where it stands in the cluster, and how it shall behave.
//!
//! Plain values. Reading them from files, flags and the environment is the server's work.

use crate::handlers::Handler;
use crate::homes::Home;
use ensue_acl::Users;
use ensue_branch::Collection;
use ensue_protocol::Registry;
use ensue_store::row::LARGE;
use ensue_types::{CoreId, DatacenterId, KeyspaceId, PartitionId, limits};
use std::fmt;
use std::ops::Range;

/// The static shape of the cluster, the same knowledge on every core.
#[derive(Clone, Debug)]
pub struct Topology {
    /// The datacenter of this core.
    pub datacenter: DatacenterId,
    /// Partitions of the keyspace, the same number in every datacenter.
    pub partitions: u16,
    /// For each datacenter its name and which of its cores owns each partition.
    pub datacenters: Vec<DatacenterTopology>,
}

/// One datacenter's share of the topology.
#[derive(Clone, Debug)]
pub struct DatacenterTopology {
    pub name: String,
    /// Cores of all its nodes together.
    pub cores: u16,
    /// How many of them each node has, in order.
    pub nodes: Vec<u16>,
    /// The core that owns each partition, by partition number; the one that is meant to, if it is replicated.
    pub placement: Vec<CoreId>,
    /// The cores on which each partition is replicated, by partition number, the one that is meant to own it first;
    /// none if no partition is.
    pub replicas: Vec<Vec<CoreId>>,
}

impl Topology {
    /// The name of a datacenter, as the configuration has it.
    pub fn name_of(&self, datacenter: DatacenterId) -> String {
        let named = self.datacenters.get(usize::from(datacenter.0));
        named.map_or_else(|| datacenter.to_string(), |datacenter| datacenter.name.clone())
    }

    /// The core that owns a partition in a datacenter.
    pub fn owner(&self, datacenter: DatacenterId, partition: PartitionId) -> CoreId {
        self.datacenters[usize::from(datacenter.0)].placement[usize::from(partition.0)]
    }

    /// The cores on which a partition is replicated in a datacenter; none if it is not.
    pub fn replicas(&self, datacenter: DatacenterId, partition: PartitionId) -> &[CoreId] {
        let there = self.datacenters.get(usize::from(datacenter.0));
        there.and_then(|there| there.replicas.get(usize::from(partition.0))).map_or(&[], Vec::as_slice)
    }

    pub fn is_replicated(&self, datacenter: DatacenterId, partition: PartitionId) -> bool {
        !self.replicas(datacenter, partition).is_empty()
    }

    /// The core of a node on which a partition may be replicated, if the datacenter has such a node.
    pub fn core_on(&self, datacenter: DatacenterId, node: usize, partition: PartitionId) -> Option<CoreId> {
        let cores = self.cores_of(datacenter, node)?;
        let configured = self.replicas(datacenter, partition).iter().find(|core| cores.contains(&core.0));
        let any = CoreId(cores.start + partition.0 % (cores.end - cores.start).max(1));
        Some(configured.copied().unwrap_or(any))
    }

    /// The node that a core is of.
    pub fn node_of(&self, datacenter: DatacenterId, core: CoreId) -> Option<usize> {
        let nodes = 0..self.datacenters.get(usize::from(datacenter.0))?.nodes.len();
        nodes.into_iter().find(|node| self.cores_of(datacenter, *node).is_some_and(|of| of.contains(&core.0)))
    }

    fn cores_of(&self, datacenter: DatacenterId, node: usize) -> Option<Range<u16>> {
        let nodes = &self.datacenters.get(usize::from(datacenter.0))?.nodes;
        let count = *nodes.get(node)?;
        let first = nodes[..node].iter().sum::<u16>();
        Some(first..first + count)
    }

    /// The datacenter of this name.
    pub fn datacenter_named(&self, name: &[u8]) -> Option<DatacenterId> {
        let place = self.datacenters.iter().position(|datacenter| datacenter.name.as_bytes() == name)?;
        Some(DatacenterId(place as u8))
    }

    /// Every datacenter but this core's.
    pub fn others(&self) -> impl Iterator<Item = DatacenterId> + '_ {
        (0..self.datacenters.len() as u8).map(DatacenterId).filter(|&d| d != self.datacenter)
    }
}

/// When the log is synced, as Redis names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AppendFsync {
    /// Before outputs leave.
    Always,
    /// Once a second, in the background.
    #[default]
    EverySecond,
    /// Every thirty seconds, and when a checkpoint ends.
    No,
}

/// What a partition does that starts with an empty directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FirstStart {
    /// It serves when every other datacenter has said that it knows no earlier directory of it.
    #[default]
    Ask,
    /// It serves at once: an operator says that there was none.
    Alone,
}

/// Bounds that the simulator shrinks to make rare paths common.
#[derive(Clone, Debug)]
pub struct Tuning {
    pub read_transaction_timeout_ms: u64,
    pub read_mark_ms: u64,
    pub request_timeout_ms: u64,
    pub context_operations_max: usize,
    pub stream_window_bytes: usize,
    pub stream_batch_entries: usize,
    /// Bytes of received entries of one datacenter, of all partitions of a datacenter together, that may wait for what
    /// they depend on before nothing more is taken of its stream.
    pub stream_waiting_bytes: usize,
    pub stream_memory_bytes: usize,
    pub segment_bytes: u64,
    /// What the changes of one write take in the log, at most.
    pub entry_bytes_max: usize,
    /// Log bytes since the last checkpoint that make the next one begin.
    pub checkpoint_bytes: u64,
    /// Kept free on the disk, a partition, for what must still be logged when it is full.
    pub reserve_bytes: usize,
    /// How often tombstones that can no longer matter are looked for.
    pub collect_interval_ms: u64,
    /// How often a changed applied position is told to every datacenter.
    pub acknowledge_interval_ms: u64,
    /// How often a partition that has nothing to send tells every datacenter its time: below it nothing will follow.
    pub heartbeat_interval_ms: u64,
    /// How often the partitions of a datacenter agree on what all of them have: the stable snapshot.
    pub stabilization_interval_ms: u64,
    /// How long a read may wait for what another datacenter has yet to send before its protocol does without.
    pub block_ms_max: u64,
    /// Whether sessions forget what every datacenter has applied, where their protocol leaves the choice (Orbe, section
    /// 6).
    pub dependency_cleaning: bool,
    /// How long a partition that has started holds back what it writes, and its time, for those that have not said how
    /// much of its stream they have; 0 is not at all.
    pub proof_wait_ms: u64,
    pub clock_ahead_ms_max: u64,
    /// Local writes are refused while most clocks say that this datacenter's time is too far ahead.
    pub stop_writes_on_clock_ahead: bool,
    pub clock_persist_ahead_ms: u64,
    /// `appendfsync no` still syncs this often, so that the streams can be forgotten.
    pub relaxed_sync_interval_ms: u64,
    /// What a session may take before others have their turn: bytes of its answers, and cells that one partition
    /// looks at or changes
    /// for it.
    pub turn_answer_bytes: usize,
    pub turn_cells: usize,
    /// Columns of a row beyond which it is kept as a large one.
    pub row_columns_max: u16,
    /// Steps of a script that does not pause, before it is stopped; those after which it pauses; those of one that
    /// pauses, before it is stopped; and how long a pause is at the least.
    pub script_steps: u64,
    pub script_steps_to_pause: u64,
    pub script_paused_steps: u64,
    pub script_pause_us: u64,
    /// Bytes that a core keeps of messages of other datacenters that wait for what their publishers had seen, and how
    /// long each may wait.
    pub messages_waiting_bytes: usize,
    pub message_waits_ms: u64,
    /// How long a home waits for the past of a session, and a session for what it did at a home.
    pub home_wait_ms: u64,
    /// How long a command waits at a home for somebody elsewhere until it is asked again.
    pub home_round_ms: u64,
    pub branching: BranchingOptions,
}

/// How keyspaces with branches behave.
#[derive(Clone, Debug)]
pub struct BranchingOptions {
    pub collection: Collection,
    /// States that came in, after which ceilings are placed on all leaves; 0 is never.
    pub ceiling_every: u64,
    /// States of a keyspace beyond which local commits are refused.
    pub states_max: usize,
    /// Leaves beyond which no local commit forks.
    pub leaves_max: usize,
    /// The only datacenter in which branches are merged.
    pub merging_datacenter: Option<DatacenterId>,
    /// A transaction that was not used for this long is over.
    pub transaction_timeout_ms: u64,
}

impl Default for BranchingOptions {
    fn default() -> BranchingOptions {
        BranchingOptions {
            collection: Collection::Pessimistic,
            ceiling_every: 1_000,
            states_max: 100_000,
            leaves_max: 1_000,
            merging_datacenter: None,
            transaction_timeout_ms: 60_000,
        }
    }
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            read_transaction_timeout_ms: limits::READ_TRANSACTION_TIMEOUT_MS,
            read_mark_ms: limits::READ_MARK_MS,
            request_timeout_ms: limits::REQUEST_TIMEOUT_MS,
            context_operations_max: limits::CONTEXT_OPERATIONS_MAX,
            stream_window_bytes: limits::STREAM_WINDOW_BYTES,
            stream_batch_entries: limits::STREAM_BATCH_ENTRIES,
            stream_waiting_bytes: limits::STREAM_WAITING_BYTES,
            stream_memory_bytes: limits::STREAM_MEMORY_BYTES,
            segment_bytes: limits::SEGMENT_BYTES,
            entry_bytes_max: limits::ENTRY_BYTES_MAX,
            checkpoint_bytes: 4 * limits::SEGMENT_BYTES,
            reserve_bytes: limits::RESERVE_BYTES,
            collect_interval_ms: 1_000,
            acknowledge_interval_ms: 50,
            heartbeat_interval_ms: 10,
            stabilization_interval_ms: 5,
            block_ms_max: 500,
            dependency_cleaning: true,
            proof_wait_ms: limits::PROOF_WAIT_MS,
            clock_ahead_ms_max: limits::CLOCK_AHEAD_MS_MAX,
            stop_writes_on_clock_ahead: true,
            clock_persist_ahead_ms: limits::CLOCK_PERSIST_AHEAD_MS,
            relaxed_sync_interval_ms: 30_000,
            turn_answer_bytes: limits::ANSWER_BYTES_PER_TURN,
            turn_cells: limits::CELLS_PER_TURN,
            row_columns_max: LARGE as u16,
            script_steps: limits::SCRIPT_STEPS_MAX,
            script_steps_to_pause: limits::SCRIPT_STEPS_TO_PAUSE,
            script_paused_steps: limits::SCRIPT_PAUSED_STEPS_MAX,
            script_pause_us: 0,
            messages_waiting_bytes: limits::MESSAGES_WAITING_BYTES,
            message_waits_ms: limits::MESSAGE_WAITS_MS,
            home_wait_ms: limits::HOME_WAIT_MS,
            home_round_ms: limits::HOME_WAIT_ROUND_MS,
            branching: BranchingOptions::default(),
        }
    }
}

/// Which rows are evicted when memory is short, as Redis names it, in its order.
pub const POLICIES: [&str; 8] = [
    "volatile-lru",
    "volatile-lfu",
    "volatile-random",
    "volatile-ttl",
    "allkeys-lru",
    "allkeys-lfu",
    "allkeys-random",
    "noeviction",
];

/// A key by which tokens are known as those of a cluster.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TokenKey(pub [u8; 32]);

/// Not the key: what is printed for debugging ends in logs.
impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenKey(..)")
    }
}

/// What may change while a partition serves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings<'a> {
    /// Bytes that its rows may take; 0 is no bound.
    pub(crate) memory: u64,
    /// What is beyond that is evicted at once, since an operator has lowered the bound, and not only as data grows.
    pub(crate) shrinks: bool,
    /// Which rows are evicted beyond that, one of `POLICIES`.
    pub(crate) policy: &'a str,
    /// Entries of a stream that are trimmed together; 0 is the default.
    pub(crate) stream_node_entries: usize,
    /// How many other datacenters must follow for writes to be taken.
    pub(crate) followers: u64,
    /// By how many seconds these may lag.
    pub(crate) follower_lag_s: u64,
    /// Commands are refused after so many milliseconds of a script; 0 is never.
    pub(crate) busy_after_ms: u64,
    /// Deadlines are looked at by time, and not only after a command has found nothing under a name.
    pub(crate) expires_actively: bool,
}

/// Everything a core's node needs to know.
#[derive(Clone)]
pub struct NodeConfig {
    /// Names the cluster: data of another one is refused. A hash of its configured name.
    pub cluster: u128,
    pub topology: Topology,
    pub core: CoreId,
    /// The protocol of each keyspace, by its name in the registry.
    pub protocols: Vec<String>,
    /// The protocols that there are: `ensue_protocol::REGISTRY`, or others.
    pub registry: Registry,
    /// Who folds conflicting values, by patterns of keys; the first that matches. Without one, the last writer's stays.
    pub handlers: Vec<Handler>,
    /// Where commands on keys are executed, by patterns of keys; the first that matches. Without one: everywhere.
    pub homes: Vec<Home>,
    /// Keyspaces whose keys with a home are read there, too.
    pub home_reads: Vec<KeyspaceId>,
    /// What seals tokens, the first one, and what they may be sealed with; the same in the whole cluster.
    pub token_keys: Vec<TokenKey>,
    pub append_fsync: AppendFsync,
    /// Who may do what.
    pub users: Users,
    /// There is a file of users, which a session can have read and written.
    pub has_users_file: bool,
    /// Commands of operators are recorded (`Output::Audit`).
    pub audits: bool,
    /// The first core of this node.
    pub first_core: CoreId,
    /// Cores of this node, which share its memory.
    pub node_cores: u16,
    /// Bytes of rows that this core's partitions may hold before local writes are refused; 0 is no bound.
    pub maxmemory: u64,
    /// Which rows are evicted beyond that, one of `POLICIES`.
    pub maxmemory_policy: String,
    /// Bytes of log not yet synced everywhere, a partition, before local writes are refused.
    pub replication_backlog_max: u64,
    /// Differs between two runs of the process, so that late answers to an earlier run are dropped.
    pub boot: u32,
    /// Identifies this boot of the machine: a log without a clean mark is complete only within one boot.
    pub boot_id: [u8; 16],
    /// Random, drawn anew for each start: what the directories that this start finds empty are identified by.
    pub identity_seed: u128,
    pub first_start: FirstStart,
    /// Answers to `CONFIG GET`, and lines of `INFO` that only the process knows.
    pub directives: Vec<(String, String)>,
    pub info: Vec<(String, String)>,
    pub tuning: Tuning,
}

/// Names the core only: the rest never changes, and a password does not belong into a log.
impl fmt::Debug for NodeConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeConfig({} core {})", self.topology.datacenter, self.core.0)
    }
}

impl NodeConfig {
    /// Bytes of the entries of one datacenter's stream that may wait in one partition.
    pub(crate) fn stream_waiting_bytes(&self) -> u64 {
        (self.tuning.stream_waiting_bytes / usize::from(self.topology.partitions.max(1))) as u64
    }

    /// Bytes of the stream of one partition that may be sent to a datacenter and not yet acknowledged as received.
    pub(crate) fn stream_window_bytes(&self) -> usize {
        let share = limits::LINK_WINDOW_BYTES / usize::from(self.topology.partitions.max(1));
        self.tuning.stream_window_bytes.min(share)
    }

    /// A core of a cluster that serves from its first start on, to everybody, without bounds.
    pub fn new(topology: Topology, core: CoreId, registry: Registry, protocols: Vec<String>) -> NodeConfig {
        NodeConfig {
            cluster: 1,
            topology,
            core,
            protocols,
            registry,
            handlers: Vec::new(),
            homes: Vec::new(),
            home_reads: Vec::new(),
            token_keys: Vec::new(),
            append_fsync: AppendFsync::default(),
            users: Users::new(),
            has_users_file: false,
            audits: false,
            first_core: core,
            node_cores: 1,
            maxmemory: 0,
            maxmemory_policy: "noeviction".into(),
            replication_backlog_max: 0,
            boot: 1,
            boot_id: [0; 16],
            identity_seed: 1,
            first_start: FirstStart::Alone,
            directives: Vec::new(),
            info: Vec::new(),
            tuning: Tuning::default(),
        }
    }

    /// Whether `DEBUG` is answered to anybody at all.
    pub fn allows_debug(&self) -> bool {
        self.directives.iter().any(|(name, value)| name == "enable-debug-command" && value != "no")
    }

    /// Partitions that this core owns for good.
    pub fn own_partitions(&self) -> impl Iterator<Item = PartitionId> + '_ {
        let local = &self.topology.datacenters[usize::from(self.topology.datacenter.0)];
        (0..self.topology.partitions)
            .map(PartitionId)
            .filter(|p| local.placement[usize::from(p.0)] == self.core)
            .filter(|p| !self.topology.is_replicated(self.topology.datacenter, *p))
    }

    /// Partitions of which this core has a replica.
    pub fn replicated_partitions(&self) -> impl Iterator<Item = PartitionId> + '_ {
        let here = self.topology.datacenter;
        (0..self.topology.partitions)
            .map(PartitionId)
            .filter(move |p| self.topology.replicas(here, *p).contains(&self.core))
    }

    /// The protocol name of a keyspace.
    pub fn protocol(&self, keyspace: KeyspaceId) -> &str {
        &self.protocols[usize::from(keyspace.0)]
    }
}
