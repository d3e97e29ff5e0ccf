//! What a protocol offers, and what it needs of a node: values, since none of it changes while a node runs.

/// How several keys are read as of one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotReads {
    /// They are not: plain parallel reads.
    None,
    /// In at most two rounds, the second by logical time or by explicit versions (Eiger, section 4; COPS, section 4.6).
    TwoRounds,
    /// By a cut that the first partition draws, in one round (Orbe, section 4.3; POCC, section 5.2).
    OneRound,
}

/// What a protocol offers; what it lacks is refused by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    pub snapshot_reads: SnapshotReads,
    /// Writes over several keys are atomic.
    pub write_transactions: bool,
    /// Sessions carry their causal past: tokens mean something.
    pub causality: bool,
    /// A datacenter serves its sessions whatever becomes of the others.
    pub available: bool,
}

/// What a protocol wants of the node beside the streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Rows keep every version for as long as anybody may read without it: until it is below the floor where there
    /// are cuts, else for as long as a read transaction may take.
    pub versions: bool,
    /// Snapshots, or what stable sessions see, are cuts by times.
    pub snapshot_vectors: bool,
    /// A partition without writes tells the other datacenters its time.
    pub heartbeats: bool,
    /// Writes carry what they replaced at their writer (Orbe's item dependency timestamp, section 3.4; COPS-CD's
    /// previous version). Elsewhere they are merged after it, and those that meet something else are counted as
    /// conflicts. Which one stays is no question of this: the last writer.
    pub previous_versions: bool,
    /// Values that nothing has replaced stand beside each other, and readers see what a handler makes of them
    /// (COPS-CD, section 5.3). Only with `previous_versions`, and without `versions`.
    pub siblings: bool,
    /// All keys of a keyspace are in its first partition: what a datacenter writes is one stream.
    pub one_stream: bool,
    /// The keyspace is no rows but states that fork and merge. Only with `one_stream`.
    pub branches: bool,
    /// How often, in milliseconds, the partitions of a datacenter learn what all of them have received, and what all
    /// datacenters have.
    pub stabilization_ms: Option<u64>,
    /// A session remembers also what every datacenter has durably applied.
    pub remembers_settled: bool,
    /// A read of a location that an undecided transaction covers asks the coordinator (Eiger, section 5.4). Without
    /// write transactions over several partitions there is none.
    pub queries_coordinator: bool,
    /// Versions overwritten while a read transaction runs are kept for its second round.
    pub second_rounds: bool,
    /// What a session has written may be hidden from others of its datacenter until it is stable.
    pub hides_own_writes: bool,
    /// What a partition shows at one moment is no snapshot: several of its keys are read at a snapshot vector, too.
    pub vectors_in_one_partition: bool,
    /// How long, in milliseconds, a read may wait.
    pub patience_ms: u64,
}

/// What the configuration says of a protocol.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Operations in a context before it folds, for those that list them.
    pub context_operations_max: usize,
    pub datacenters: usize,
    /// Dependencies that every datacenter has applied are not remembered (Orbe, section 6).
    pub dependency_cleaning: bool,
    pub heartbeat_ms: u64,
    pub stabilization_ms: u64,
    /// How long a read may wait before its session falls back.
    pub block_ms: u64,
    /// How long a client may wait for an answer.
    pub request_timeout_ms: u64,
    /// How far back a snapshot may lie.
    pub snapshot_age_ms: u64,
}

impl Needs {
    /// Whether versions and dependencies are kept for read transactions of two rounds, and for nobody else.
    pub fn keeps_for_reads(&self) -> bool {
        self.versions && !self.snapshot_vectors
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            context_operations_max: 64,
            datacenters: 3,
            dependency_cleaning: true,
            heartbeat_ms: 10,
            stabilization_ms: 5,
            block_ms: 500,
            request_timeout_ms: 5_000,
            snapshot_age_ms: 5_000,
        }
    }
}

/// What a protocol says of itself.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// The name in the configuration.
    pub name: &'static str,
    pub capabilities: Capabilities,
    pub needs: Needs,
}
