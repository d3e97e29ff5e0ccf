//! What a comparison asks of every protocol: the loads by name, and what the command line changes of them.

pub use ensue_node::AppendFsync;
use ensue_sim::random::Random;

/// How keys are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    /// By the usual benchmark's exponent: some keys are asked for all the time.
    Zipfian,
    Uniform,
}

/// What is asked of everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    pub name: &'static str,
    /// How many `GET`s there are for each `SET`.
    pub gets: u64,
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
const READ_HEAVY: Demand = Demand {
    name: "read-heavy",
    gets: 32,
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
