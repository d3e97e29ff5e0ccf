//! What a replica is told before it starts.

/// One replica of a partition.
#[derive(Clone, Debug)]
pub struct Config {
    /// The node of this replica, by its number in the datacenter.
    pub node: u16,
    /// The nodes that may have a replica of the partition, this one too. Which of them do is what the group agrees on;
    /// the first one here that does leads when it can.
    pub nodes: Vec<u16>,
    /// Those whose replicas begin the group.
    pub founders: Vec<u16>,
    /// Nothing is acknowledged before it is durable (`appendfsync always`).
    pub always: bool,
    /// A leader answers reads without asking the others, for as long as they have promised to elect no other one. That
    /// rests on clocks: they may not run more than twice as fast as another.
    pub lease: bool,
    /// Identifies this boot of the machine: what was written and not synced is there within one boot only.
    pub boot_id: [u8; 16],
    /// Random, drawn anew for each start.
    pub seed: u64,
    pub tuning: Tuning,
}

impl Config {
    /// Stands for what the configuration says of who may have a replica and who begins: nodes that are told different
    /// things, as during a rolling restart, know it.
    pub fn plan(&self) -> u64 {
        plan(&self.nodes, &self.founders)
    }

    /// The other nodes that may have a replica.
    pub(crate) fn others(&self) -> impl Iterator<Item = u16> + '_ {
        self.nodes.iter().copied().filter(|node| *node != self.node)
    }

    /// How long after it was asked a confirmed leader is the only one: half of what the others have promised.
    pub(crate) fn lease_us(&self) -> u64 {
        self.tuning.election_ticks as u64 * self.tuning.tick_us / 2
    }
}

/// Bounds that a simulator shrinks to make rare paths common.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// The unit of time of elections.
    pub tick_us: u64,
    pub heartbeat_ticks: usize,
    /// A replica that has not heard of its leader for as many ticks, or up to twice as many, stands for election.
    pub election_ticks: usize,
    /// Journals are given up for a new one at this length, or when so many bytes were appended to files.
    pub journal_bytes: u64,
    pub appended_bytes: u64,
    /// Memory of entries that are held for who lags.
    pub held_bytes: usize,
    /// Bytes of a file that are asked for at a time.
    pub chunk_bytes: u32,
    /// Entries that travel in one message.
    pub message_bytes: u64,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            tick_us: 20_000,
            heartbeat_ticks: 2,
            election_ticks: 12,
            journal_bytes: 1 << 20,
            appended_bytes: 16 << 20,
            held_bytes: 8 << 20,
            chunk_bytes: 1 << 20,
            message_bytes: 1 << 20,
        }
    }
}

/// The node of a member, by its name in the group.
pub(crate) fn node_of(id: u64) -> u16 {
    (id & 0xffff).wrapping_sub(1) as u16
}

/// The name of a node's replica that was admitted at this entry; 0 is one of those that began the group.
pub(crate) fn id_of(node: u16, admitted: u64) -> u64 {
    admitted << 16 | (u64::from(node) + 1)
}

/// Stands for the nodes that may have a replica, in their order, and for those that begin.
pub fn plan(nodes: &[u16], founders: &[u16]) -> u64 {
    let numbers = nodes.iter().chain([&u16::MAX]).chain(founders);
    numbers.fold(0, |sum, node| mix(sum ^ (u64::from(*node) + 1)))
}

/// A number in which each bit depends on all bits of `value` (SplitMix64).
pub(crate) fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
