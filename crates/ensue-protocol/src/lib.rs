//! The six questions that every causally consistent store answers, as a trait, and one module a protocol.
//!
//! Everything else in the system is mechanism: a node asks these questions and never knows which protocol answers. What
//! a protocol remembers travels as opaque bytes of its own layout. Nothing here does I/O, and nothing here is stateful:
//! a protocol is a set of rules, the state is the session's context and the write's dependencies.
//!
//! Two halves of the family share a mechanism each. The lists and matrices (`eiger`, `cops`, `cops-gt`, `cops-cd`, `orbe-dm`, `orbe-clock`) name
//! operations, and a write waits where it arrives (`facts`, `lists`). The vectors (`cure`, `pocc`, `ha-pocc`) name times, a write is merged
//! where it arrives, and a read chooses (`vector`). `log` and `eventual` name nothing. `tardis` names states: its keyspaces are
//! not made of rows, and what these questions do not ask is asked of the states themselves.

pub mod anchor;
pub mod cops;
pub mod cops_cd;
pub mod cops_gt;
pub mod cure;
pub mod eiger;
pub mod eventual;
pub mod facts;
pub mod ha_pocc;
pub mod lists;
pub mod log;
pub mod orbe_clock;
pub mod orbe_dm;
pub mod pocc;
mod standing;
pub mod tardis;
mod times;
pub mod vector;

#[cfg(test)]
mod contract;

pub use standing::{Loss, Sight, Standing};
pub use times::map_times;

use ensue_types::{
    DatacenterId, Dependency, LogicalTime, Opaque, OperationId, PartitionId, Reply, Rules, Source, TimeVector,
};
use std::fmt;

/// The bytes of a context or of dependencies are not of this protocol's layout: a broken or foreign peer, or a forged
/// token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// What must be here before a past may be shown here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Past {
    /// These operations, applied.
    Operations(Vec<Dependency>),
    /// Everything that each other datacenter wrote up to these times, received by every partition.
    Times(TimeVector),
}

/// When a write from another datacenter may be merged into the rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Now,
    /// After all of these have been applied in this datacenter.
    After(Vec<Dependency>),
}

/// Which versions a read of a session may return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The newest of those merged.
    Newest,
    /// The newest of those that this shows.
    Shown(Sight),
    /// The newest of those merged, for a read of one version: whatever is older at its place it replaces. What a read of several puts
    /// together must be whole: if this does not show all of it, what this shows. So it is for writes, which read more than they
    /// tell.
    NewestIfWhole(Sight),
    /// None yet: something that the session depends on has not been received.
    Wait,
}

impl Choice {
    /// Whether the session sees only what is stable.
    pub fn is_stable(&self) -> bool {
        matches!(self, Choice::Shown(_))
    }
}

/// One partition's share of a first round: it is valid from its earliest to its latest valid time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share<'a> {
    pub partition: PartitionId,
    /// Nothing if an undecided transaction covers a location: the partition promised only the latest valid time.
    pub earliest: Option<LogicalTime>,
    pub latest: LogicalTime,
    /// What its values make a session remember.
    pub seen: &'a Opaque,
}

/// A share that must be read again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Again {
    /// Which of them.
    pub share: usize,
    /// What was visible then is shown.
    pub at: LogicalTime,
    /// And these operations, if they have come later.
    pub with: Vec<OperationId>,
}

/// What a read transaction of two rounds does after its first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The first round's values belong together.
    Consistent,
    /// These shares must be read again.
    ReadAgain(Vec<Again>),
}

/// What becomes of a snapshot that has waited too long for its cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Late {
    /// It is read at this older cut.
    OlderCut(TimeVector),
    /// It is read by logical time, in two rounds.
    TwoRounds,
    /// Its session gives up.
    GiveUp,
}

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
    /// Rows keep every version for as long as anybody may read without it: until it is below the floor where there are cuts, else
    /// for as long as a read transaction may take.
    pub versions: bool,
    /// Snapshots, or what stable sessions see, are cuts by times.
    pub cuts: bool,
    /// A partition without writes tells the other datacenters its time.
    pub heartbeats: bool,
    /// Writes carry what they replaced at their writer (Orbe's item dependency timestamp, section 3.4; COPS-CD's previous version).
    /// Elsewhere they are merged after it, and those that meet something else are counted as conflicts. Which one stays is no
    /// question of this: the last writer.
    pub previous_versions: bool,
    /// Values that nothing has replaced stand beside each other, and readers see what a handler makes of them (COPS-CD, section 5.3). Only
    /// with `previous_versions`, and without `versions`.
    pub siblings: bool,
    /// All keys of a keyspace are in its first partition: what a datacenter writes is one stream.
    pub one_stream: bool,
    /// The keyspace is no rows but states that fork and merge. Only with `one_stream`.
    pub branches: bool,
    /// How often, in milliseconds, the partitions of a datacenter learn what all of them have received, and what all datacenters have.
    pub stabilization_ms: Option<u64>,
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
        self.versions && !self.cuts
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

/// The six questions, in the order in which a value meets them. What only one half of the family is asked has an answer
/// here that fits the other half.
pub trait Protocol: fmt::Debug + Send + Sync {
    /// The name in the configuration.
    fn name(&self) -> &'static str;

    fn capabilities(&self) -> Capabilities;

    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Question 1, context: the session has read what these writes made.
    fn observe(&self, context: &mut Opaque, sources: &[Source]);

    /// Question 1, context: whether a session must remember what every datacenter has durably applied.
    fn remembers_settled(&self) -> bool;

    /// Question 1, context: the session has read what these writes made, and need not remember them. They may still say how
    /// late it is.
    fn pass_over(&self, _context: &mut Opaque, _settled: &[Source]) {}

    /// Question 1, context: the session has written. What the write itself read was observed before.
    fn wrote(&self, context: &mut Opaque, write: &Source);

    /// Question 1, context: the session takes over another's past: a token, a shared context, or what a share of a read saw.
    fn join(&self, context: &mut Opaque, other: &Opaque) -> Result<(), Malformed>;

    /// Question 1, context: the session meets the past that its name is shared under, which holds what it gave along before.
    fn meet(&self, context: &mut Opaque, shared: &Opaque) -> Result<(), Malformed> {
        self.join(context, shared)
    }

    /// Question 1, context: what must be here before this past may be shown here.
    fn past(&self, context: &Opaque) -> Result<Past, Malformed>;

    /// Question 1, context: times of dead datacenters that this past took over and that its own times cover: who
    /// knows what was lost says
    /// whether they hold something of it.
    fn doubted(&self, context: &Opaque) -> TimeVector {
        if self.goes_by_times() { vector::known(context).doubted } else { TimeVector::default() }
    }

    /// Question 2, dependencies: what a write of this session carries to the other datacenters. `observed` is what the write itself
    /// read in order to write; it is carried operation by operation and never folded, because the write may have drawn
    /// its time before other entries of those streams were logged.
    fn dependencies(&self, context: &Opaque, observed: &[Source]) -> Opaque;

    /// Question 3, visibility: when a datacenter may merge a write that came from another one.
    fn verdict(&self, operation: OperationId, dependencies: &Opaque) -> Result<Verdict, Malformed>;

    /// Question 4, choice: whether a read may return a value whose location an undecided transaction covers. Without write
    /// transactions over several partitions there is none.
    fn reads_past_undecided(&self) -> bool {
        true
    }

    /// Question 4, choice: which versions a read of this session may return here, now. May change the session's mode.
    fn choose(&self, _context: &mut Opaque, _standing: &Standing<'_>) -> Choice {
        Choice::Newest
    }

    /// Question 4, choice: whether everything that a partition shows at one moment is a snapshot: then a read of several of its
    /// keys needs no cut.
    fn partitions_are_snapshots(&self) -> bool {
        true
    }

    /// Question 4, choice: whether a version is among those.
    fn shows(&self, _sight: &Sight, _source: &Source) -> bool {
        true
    }

    /// Question 4, choice: up to when a write of this datacenter that carries this proves everything stable: it was shown to all at once
    /// because it depends on nothing else, and so it must be again after a restart.
    fn proves_stable(&self, _dependencies: &Opaque) -> TimeVector {
        TimeVector::default()
    }

    /// Question 4, choice: how long a read may wait, in milliseconds.
    fn patience_ms(&self) -> u64 {
        0
    }

    /// Question 4, choice: a read has waited that long. What its client is told, and what becomes of the session.
    fn give_up(&self, _context: &mut Opaque, missing: &str) -> Reply {
        Reply::Error(
            format!("BLOCKED this session depends on updates that have not arrived: {missing}").into(),
        )
    }

    /// Question 4, choice: whether a past is times, so that a loss is met as a loss of times.
    fn goes_by_times(&self) -> bool {
        false
    }

    /// Question 4, choice: whether a write of this origin that carries this may depend on what was lost.
    fn depends_on_lost(&self, origin: DatacenterId, dependencies: &Opaque, loss: &Loss) -> bool {
        self.goes_by_times() && vector::depends_on_lost(origin, dependencies, loss)
    }

    /// Question 4, choice: a session meets a loss. If it may have seen what is discarded with it, what its client is told, once: it is a
    /// new session from here.
    fn part_from_lost(&self, context: &mut Opaque, loss: &Loss) -> Result<(), Reply> {
        if self.goes_by_times() { vector::part_from_lost(context, loss) } else { Ok(()) }
    }

    /// Question 4, choice: the past that leaves a partition which has discarded what was lost holds nothing more that may be missing.
    fn past_the_loss(&self, context: &mut Opaque, loss: &Loss) {
        if self.goes_by_times() {
            vector::past_the_loss(context, loss);
        }
    }

    /// Question 5, snapshot: whether a cut may show what is discarded with a loss.
    fn shows_lost(&self, cut: &TimeVector, loss: &Loss) -> bool {
        self.goes_by_times() && vector::shows_lost(cut, loss)
    }

    /// Question 5, snapshot: whether the shares of a first round belong together, and if not, what to read again.
    fn judge(&self, _shares: &[Share<'_>]) -> Judgement {
        Judgement::Consistent
    }

    /// Question 5, snapshot: the cut that a snapshot of this session is read at, drawn by the first partition asked.
    fn cut(&self, _context: &Opaque, _standing: &Standing<'_>) -> TimeVector {
        TimeVector::default()
    }

    /// Question 5, snapshot: whether a partition has everything that such a cut may show.
    fn serves(&self, _cut: &TimeVector, _standing: &Standing<'_>) -> bool {
        true
    }

    /// Question 5, snapshot: what becomes of one that has waited too long.
    fn late(&self, _context: &Opaque, _standing: &Standing<'_>) -> Late {
        Late::GiveUp
    }

    /// Question 6, forgetting: whether versions overwritten while a read transaction runs are kept for its second round.
    fn keeps_old_versions(&self) -> bool;

    /// Question 6, forgetting: a write is about to carry this past. What of it every datacenter has durably applied, as far as the
    /// partition that takes the write knows, need not be carried.
    fn forget(&self, _context: &mut Opaque, _is_everywhere: &dyn Fn(&OperationId) -> bool) {}

    /// Question 6, forgetting: the lowest cut that a read which begins now may have; versions that it shows need not be told
    /// apart any more.
    fn floor(&self, _standing: &Standing<'_>) -> TimeVector {
        TimeVector::default()
    }
}

/// The protocol of this name; all `rules` hold outside the simulator.
pub fn by_name(name: &str, options: Options, rules: Rules) -> Option<Box<dyn Protocol>> {
    Some(match name {
        "cops" => Box::new(cops::Cops::new(options, rules)),
        "cops-gt" => Box::new(cops_gt::CopsGt::new(options, rules)),
        "cops-cd" => Box::new(cops_cd::new(options, rules)),
        "cure" => Box::new(cure::Cure::new(options, rules)),
        "eiger" => Box::new(eiger::Eiger::new(options, rules)),
        "eventual" => Box::new(eventual::Eventual),
        "ha-pocc" => Box::new(ha_pocc::HaPocc::new(options, rules)),
        "log" => Box::new(log::Log::new(rules)),
        "orbe-clock" => Box::new(orbe_clock::OrbeClock::new(options, rules)),
        "orbe-dm" => Box::new(orbe_dm::OrbeDm::new(options, rules)),
        "pocc" => Box::new(pocc::Pocc::new(options, rules)),
        tardis::NAME => Box::new(tardis::Tardis),
        _ => return None,
    })
}

/// The names of all protocols.
pub const ALL_NAMES: [&str; NAMES.len() + 1] = {
    let mut names = [tardis::NAME; NAMES.len() + 1];
    let mut place = 0;
    while place < NAMES.len() {
        names[place] = NAMES[place];
        place += 1;
    }
    names
};

/// The names of all protocols whose keyspaces are rows, the default first. The one whose keyspaces are states is `tardis::NAME`.
pub const NAMES: [&str; 11] = [
    "eiger",
    "eventual",
    "log",
    "cops",
    "cops-gt",
    "cops-cd",
    "orbe-dm",
    "orbe-clock",
    "cure",
    "pocc",
    "ha-pocc",
];
