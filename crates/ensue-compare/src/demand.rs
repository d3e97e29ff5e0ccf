//! What a comparison asks of every protocol: the loads by name, and what the command line changes of them.

pub use ensue_node::AppendFsync;
use ensue_sim::random::Random;

/// How keys are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    /// By the usual benchmark's exponent: some keys are asked for all the time.
    Zipfian,
    Uniform,
    /// COPS, section 6.3: each client has a group of so many keys, and chooses a group by a normal distribution of this
    /// variance, in thousandths, around its own. The groups stand in a circle.
    Groups {
        keys: usize,
        variance_milli: u64,
    },
}

/// What is asked of everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    pub name: &'static str,
    /// How many `GET`s there are for so many `SET`s and `MGET`s.
    pub gets: u64,
    pub sets: u64,
    pub mgets: u64,
    pub mget_keys: usize,
    /// Clients of each core that has some, and how many datacenters have some; the first ones.
    pub clients: usize,
    pub asked: u8,
    /// Keys that are written before; groups have their own number.
    pub keys: usize,
    pub value_bytes: usize,
    /// Of a thousand writes, so many are of a key of their own, for probes of visibility.
    pub own_per_mille: u64,
    /// Of a hundred operations on one key, so many are certainly on a partition of the client's core.
    pub local_percent: u64,
    /// How long a client thinks between an answer and its next question, in the mean.
    pub think_ms: u64,
    pub draw: Draw,
    /// A client only writes keys of the partition on the core that it talks to.
    pub writes_at_home: bool,
    pub append_fsync: AppendFsync,
    /// How often a silent partition tells its time.
    pub heartbeat_ms: u64,
}

/// Some keys are asked for all the time, so that what is read has often just been written.
pub const READ_HEAVY: Demand = Demand {
    name: "read-heavy",
    gets: 32,
    sets: 1,
    mgets: 1,
    mget_keys: 4,
    clients: 6,
    asked: u8::MAX,
    keys: 10_000,
    value_bytes: 64,
    own_per_mille: 100,
    local_percent: 0,
    think_ms: 10,
    draw: Draw::Zipfian,
    writes_at_home: false,
    append_fsync: AppendFsync::EverySecond,
    heartbeat_ms: 10,
};

/// As many writes as reads of one key.
const BALANCED: Demand = Demand { name: "balanced", gets: 1, ..READ_HEAVY };

/// Orbe's own experiment with cleaning (section 7.6): reads of all partitions for each write at home.
const SPREAD: Demand = Demand {
    name: "spread",
    gets: 8,
    draw: Draw::Uniform,
    writes_at_home: true,
    append_fsync: AppendFsync::Always,
    ..READ_HEAVY
};

/// All loads, the usual one first.
pub const LOADS: [Demand; 3] = [READ_HEAVY, BALANCED, SPREAD];

impl Default for Demand {
    fn default() -> Demand {
        READ_HEAVY
    }
}

impl Demand {
    pub fn by_name(name: &str) -> Option<Demand> {
        LOADS.into_iter().find(|demand| demand.name == name)
    }

    pub(super) fn think_us(&self, random: &mut Random) -> u64 {
        random.below(2_000 * self.think_ms)
    }

    /// The load in words.
    pub fn words(&self) -> String {
        let gets = match self.gets {
            1 => "one `GET`".to_owned(),
            gets => format!("{gets} `GET`s"),
        };
        let keys = match self.draw {
            Draw::Zipfian => "Zipfian keys",
            Draw::Uniform => "uniform keys",
            Draw::Groups { .. } => "keys of groups around each client",
        };
        let place = if self.writes_at_home { ", writes in the session's own partition only" } else { "" };
        let sync = match self.append_fsync {
            AppendFsync::Always => "each write synced before it is answered",
            AppendFsync::EverySecond => "writes synced every second",
            AppendFsync::No => "writes synced every thirty seconds",
        };
        let Demand { think_ms, heartbeat_ms, .. } = self;
        format!(
            "{gets} and one `MGET` of four keys for each `SET`; {keys}{place}; {think_ms} ms between an answer and the next \
             question in the mean; {sync}; heartbeats every {heartbeat_ms} ms"
        )
    }
}
