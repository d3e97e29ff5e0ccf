//! What breaks in a run, as data: one file a kind of fault, and a plan that says which fault strikes when.
//!
//! A plan is drawn from the seed before the run begins and depends on nothing that happens in it: a fault may be taken
//! out and all others stay what they were. Each kind draws from streams of chance of its own. `Display` shows a plan as
//! one line a fault, and `Plan::parse` reads such lines.

mod plan;
pub mod text;

use crate::random::Random;
use crate::world::World;
use crate::world::options::Options;
use ensue_types::DatacenterId;
use std::fmt;
use text::Words;

pub use plan::{Plan, Planned};

/// What came of a fault that struck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// There was nothing to break: the process was down already, say.
    Nothing,
    /// It strikes if what it waits for happens.
    Aimed,
    Done,
    /// It is to be lifted after so many microseconds.
    Lasts(u64),
}

/// A kind of fault. A value of it says everything about one fault but when it strikes; `Display` shows it without the
/// name of its kind, and `parse` reads that.
pub trait Kind: fmt::Display + Sized {
    /// What its line begins with.
    const NAME: &'static str;
    /// How common it is among the others.
    const WEIGHT: u64;

    /// Whether worlds of this shape and with these options know it.
    fn possible(_options: &Options) -> bool {
        true
    }

    fn draw(random: &mut Random, options: &Options) -> Self;

    fn parse(words: &mut Words) -> Result<Self, String>;

    fn strike(&self, world: &mut World) -> Effect;

    /// What it did is over.
    fn lift(&self, _world: &mut World) {}
}

/// Lists every kind once: the modules, the enum, and what concerns all of them.
macro_rules! kinds {
    ($($module:ident :: $kind:ident,)*) => {
        $(mod $module;)*

        /// A fault of any kind.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Fault {
            $($kind($module::$kind),)*
        }

        $(pub use $module::$kind;)*

        /// The names of all kinds.
        pub const NAMES: [&str; [$($kind::NAME),*].len()] = [$($kind::NAME),*];

        impl Fault {
            /// The kinds that the options allow, with their weights.
            pub fn possible(options: &Options) -> Vec<(&'static str, u64)> {
                let all = [$(($kind::NAME, $kind::WEIGHT, $kind::possible(options))),*];
                all.into_iter().filter(|kind| kind.2).map(|kind| (kind.0, kind.1)).collect()
            }

            /// A fault of the kind of this name.
            pub fn draw(name: &str, random: &mut Random, options: &Options) -> Option<Fault> {
                match name {
                    $($kind::NAME => Some(Fault::$kind($kind::draw(random, options))),)*
                    _ => None,
                }
            }

            /// Reads what `Display` shows.
            pub fn parse(words: &mut Words) -> Result<Fault, String> {
                match words.word()? {
                    $($kind::NAME => Ok(Fault::$kind($kind::parse(words)?)),)*
                    other => Err(format!("there is no fault {other}")),
                }
            }

            pub fn name(&self) -> &'static str {
                match self {
                    $(Fault::$kind(_) => $kind::NAME,)*
                }
            }

            pub fn strike(&self, world: &mut World) -> Effect {
                match self {
                    $(Fault::$kind(fault) => fault.strike(world),)*
                }
            }

            pub fn lift(&self, world: &mut World) {
                match self {
                    $(Fault::$kind(fault) => fault.lift(world),)*
                }
            }
        }

        impl fmt::Display for Fault {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Fault::$kind(fault) => write!(f, "{} {fault}", $kind::NAME),)*
                }
            }
        }
    };
}

kinds! {
    cut_datacenters::CutDatacenters,
    cut_connection::CutConnection,
    isolate::Isolate,
    split::Split,
    flap::Flap,
    flap_datacenters::FlapDatacenters,
    mute::Mute,
    mute_connection::MuteConnection,
    unheard::Unheard,
    slow_link::SlowLink,
    delay_spike::DelaySpike,
    shuffle::Shuffle,
    narrow::Narrow,
    kill::Kill,
    kill_datacenter::KillDatacenter,
    kill_everything::KillEverything,
    crash_loop::CrashLoop,
    crash::Crash,
    power_loss::PowerLoss,
    restart::Restart,
    wire_version::WireVersion,
    other_settings::OtherSettings,
    pause::Pause,
    slow_core::SlowCore,
    clock_jump::ClockJump,
    clock_drift::ClockDrift,
    clock_back::ClockBack,
    wild_clock::WildClock,
    recover_clock::RecoverClock,
    lose_datacenter::LoseDatacenter,
    empty_directory::EmptyDirectory,
    empty_partition::EmptyPartition,
    old_copy::OldCopy,
    foreign_directory::ForeignDirectory,
    drop_client::DropClient,
    drop_clients::DropClients,
    failed_sync::FailedSync,
    failed_write::FailedWrite,
    failed_read::FailedRead,
    full_disk::FullDisk,
    bit_rot::BitRot,
    nonsense::Nonsense,
    cut_log::CutLog,
    move_replica::MoveReplica,
    learn_datacenter::LearnDatacenter,
    add_datacenter::AddDatacenter,
    retire_datacenter::RetireDatacenter,
    move_home::MoveHome,
}

/// The kinds that a world knows only where directories may be lost.
pub const OF_DIRECTORIES: [&str; 3] = [EmptyDirectory::NAME, OldCopy::NAME, ForeignDirectory::NAME];

/// The kind that strikes only in some of the worlds in which directories are lost on request.
pub const OF_PARTITIONS: [&str; 1] = [EmptyPartition::NAME];

/// The kinds that a world knows only where a datacenter is added, or removed.
pub const OF_GROWTH: [&str; 3] = [LearnDatacenter::NAME, AddDatacenter::NAME, RetireDatacenter::NAME];

/// The kinds that a world knows only where partitions have several replicas.
pub const OF_REPLICAS: [&str; 1] = [MoveReplica::NAME];

/// The kinds that a world knows only where homes move.
pub const OF_HOMES: [&str; 1] = [MoveHome::NAME];

/// The kind that strikes at a step of a transaction.
pub const AT_A_STEP: &str = Crash::NAME;

/// How long a fault lasts that ends by itself.
fn duration_us(random: &mut Random, options: &Options) -> u64 {
    random.skewed(200, 1_000 * options.faults.duration_ms_max)
}

fn draw_datacenter(random: &mut Random, options: &Options) -> DatacenterId {
    DatacenterId(random.below(u64::from(options.shape.datacenters)) as u8)
}

#[cfg(test)]
mod tests;
