//! What keeps a core busy: every input of a node is one kind of work, and a kind may have a price in instructions.
//!
//! Arrives: an input, before its node takes it, and a price for each kind. Promises: a world with prices lets a core
//! take its inputs one after the other, each for as long as its price says, and what a node answers leaves when that
//! time is over. A price is a mean: an input costs the same however much it carries beyond its units. Nothing here
//! draws by chance or reads a clock.

use crate::world::shape::Site;
use ensue_node::{Host, Input};
use ensue_types::{Args, Now};
use ensue_wire::Message;
use std::hint::black_box;

macro_rules! works {
    ($($work:ident $name:literal $measured:ident,)*) => {
        /// A kind of input.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Work {
            $($work,)*
        }

        impl Work {
            pub const ALL: [Work; [$($name),*].len()] = [$(Work::$work),*];

            /// As a table of prices names it, which is also how its function is named.
            pub fn name(self) -> &'static str {
                match self {
                    $(Work::$work => $name,)*
                }
            }

            /// Gives the input to the node in a function of its own, which a tool that counts instructions finds by
            /// name.
            pub fn give(self, node: &mut Host, now: Now, input: Input) {
                match self {
                    $(Work::$work => $measured(node, now, input),)*
                }
            }
        }

        $(
            #[inline(never)]
            fn $measured(node: &mut Host, now: Now, input: Input) {
                node.on_input(now, input);
                // Functions with the same body would be made one.
                black_box(Work::$work);
            }
        )*
    };
}

works! {
    GetCommand "get-command" measured_get_command,
    SetCommand "set-command" measured_set_command,
    OtherCommand "other-command" measured_other_command,
    GetExecution "get-execution" measured_get_execution,
    SetExecution "set-execution" measured_set_execution,
    OtherExecution "other-execution" measured_other_execution,
    Answer "answer" measured_answer,
    ReadPart "read-part" measured_read_part,
    ReadPartDone "read-part-done" measured_read_part_done,
    Transaction "transaction" measured_transaction,
    Entries "entry" measured_entry,
    Acknowledgement "acknowledgement" measured_acknowledgement,
    Check "check" measured_check,
    CheckAnswer "check-answer" measured_check_answer,
    Times "times" measured_times,
    Disk "disk" measured_disk,
    Timer "timer" measured_timer,
    TurnEnd "turn-end" measured_turn_end,
    Other "other" measured_other,
}

impl Work {
    /// What an input is, and of how many units: commands of a request, entries of a stream, otherwise one.
    pub fn of(input: &Input) -> (Work, u64) {
        match input {
            Input::ClientCommands { commands, .. } => {
                of_commands(commands, [Work::GetCommand, Work::SetCommand, Work::OtherCommand])
            }
            Input::Message(envelope) | Input::PeerMessage { envelope, .. } => {
                Work::of_message(&envelope.message)
            }
            Input::Disk { .. } => (Work::Disk, 1),
            Input::Timer => (Work::Timer, 1),
            Input::TurnEnd => (Work::TurnEnd, 1),
            _ => (Work::Other, 1),
        }
    }

    fn of_message(message: &Message) -> (Work, u64) {
        match message {
            Message::Execute { commands, .. } => {
                of_commands(commands, [Work::GetExecution, Work::SetExecution, Work::OtherExecution])
            }
            Message::Executed { .. } | Message::ExecutedInPart { .. } | Message::Transacted { .. } => {
                (Work::Answer, 1)
            }
            Message::ReadFirst { .. }
            | Message::ReadAt { .. }
            | Message::ReadSnapshot { .. }
            | Message::ReadSnapshotPart { .. } => (Work::ReadPart, 1),
            Message::ReadFirstDone { .. }
            | Message::ReadAtDone { .. }
            | Message::SnapshotRead { .. }
            | Message::SnapshotPartRead { .. } => (Work::ReadPartDone, 1),
            Message::Transact { .. }
            | Message::Prepare { .. }
            | Message::Vote { .. }
            | Message::Commit { .. }
            | Message::Committed { .. }
            | Message::Notify { .. }
            | Message::CommitCheck { .. }
            | Message::CommitChecked { .. }
            | Message::PartsSynced { .. }
            | Message::PartsForgotten { .. } => (Work::Transaction, 1),
            Message::StreamEntries { entries, .. } => (Work::Entries, entries.len() as u64),
            Message::StreamAcknowledge(_) => (Work::Acknowledgement, 1),
            Message::CheckDependencies { .. } => (Work::Check, 1),
            Message::DependenciesMet { .. } => (Work::CheckAnswer, 1),
            Message::Heartbeat { .. }
            | Message::AskTime
            | Message::AwaitTimes { .. }
            | Message::StabilizationReport { .. }
            | Message::Stable { .. } => (Work::Times, 1),
            _ => (Work::Other, 1),
        }
    }
}

/// Commands that come together count as what the first of them is.
fn of_commands(commands: &[Args], [get, set, other]: [Work; 3]) -> (Work, u64) {
    let work = match commands.first().and_then(|command| command.first()) {
        Some(name) if name.eq_ignore_ascii_case(b"GET") => get,
        Some(name) if name.eq_ignore_ascii_case(b"SET") => set,
        _ => other,
    };
    (work, commands.len().max(1) as u64)
}

/// Instructions of one unit of each kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prices(pub [u64; Work::ALL.len()]);

impl Prices {
    pub const FREE: Prices = Prices([0; Work::ALL.len()]);

    pub fn of(&self, work: Work) -> u64 {
        self.0[work as usize]
    }
}

/// The cores of a world as processors of one speed.
#[derive(Clone, Debug)]
pub struct Processors {
    prices: Prices,
    instructions_per_us: u64,
    /// Units of work that nodes were given.
    units: [u64; Work::ALL.len()],
    cores: Vec<Processor>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Processor {
    /// Instructions that the core has yet to execute; less than a microsecond's are carried over.
    owed: u64,
    busy_us: u64,
}

impl Processors {
    /// So many cores, each of which executes so many instructions a microsecond.
    pub fn new(cores: usize, prices: Prices, instructions_per_us: u64) -> Processors {
        Processors {
            prices,
            instructions_per_us: instructions_per_us.max(1),
            units: [0; Work::ALL.len()],
            cores: vec![Processor::default(); cores],
        }
    }

    /// A core takes an input.
    pub(super) fn take(&mut self, site: Site, input: &Input) -> Work {
        let (work, units) = Work::of(input);
        self.units[work as usize] += units;
        self.cores[site.0].owed += units * self.prices.of(work);
        work
    }

    /// How much later than now what the core has just computed is there.
    pub(super) fn lag_us(&self, site: Site) -> u64 {
        self.cores[site.0].owed / self.instructions_per_us
    }

    /// The core begins what it owes: for so long it takes nothing else.
    pub(super) fn begin_us(&mut self, site: Site) -> u64 {
        let core = &mut self.cores[site.0];
        let busy_us = core.owed / self.instructions_per_us;
        core.owed %= self.instructions_per_us;
        core.busy_us += busy_us;
        busy_us
    }

    /// Units of each kind of work, over all cores.
    pub fn units(&self) -> [u64; Work::ALL.len()] {
        self.units
    }

    /// How long each core was busy.
    pub fn busy_us(&self) -> Vec<u64> {
        self.cores.iter().map(|core| core.busy_us).collect()
    }
}

#[cfg(test)]
mod tests;
