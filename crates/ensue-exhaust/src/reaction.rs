//! What a core does when something happens to it, remembered: the same core in the same state, at the same time, does
//! the same again.
//!
//! Most orders of events differ in what happens at different cores, so each core meets the same few situations in very
//! many of them.

use super::machine::{Effects, Machine, Shared};
use super::print::{self, Print};
use ensue_node::Input;
use ensue_types::{Now, PartitionId};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::cell::{RefCell, RefMut};
use std::fmt;
use std::sync::Arc;

/// A core and its disks take some kilobytes, and each reaction keeps one of them.
const REMEMBERED_MAX: usize = 40_000;

/// What happens to a core.
#[derive(Debug, Hash)]
pub enum Cause {
    Input(Input),
    /// The oldest operation of this partition's disk is carried out.
    Disk(PartitionId),
}

/// What comes of it.
#[derive(Clone)]
pub struct Reaction {
    pub machine: Shared,
    pub effects: Arc<Effects>,
}

/// The reactions seen so far; all are forgotten when they become too many.
#[derive(Default)]
pub struct Reactions(RefCell<HashMap<Print, Reaction, FixedState>>);

impl Reactions {
    /// What the core does.
    pub fn of(&self, shared: &Shared, now: Now, cause: Cause) -> Reaction {
        let situation = print::of_parts(&(shared.print, now.monotonic_us, now.wall_ms, &cause));
        if let Some(known) = self.remembered().get(&situation) {
            return known.clone();
        }
        let mut machine = Machine::clone(&shared.machine);
        let mut effects = Effects::default();
        match cause {
            Cause::Input(input) => machine.give(now, input, &mut effects),
            Cause::Disk(partition) => machine.run_disk(now, partition, &mut effects),
        }
        let reaction = Reaction { machine: Shared::new(machine), effects: Arc::new(effects) };
        let mut remembered = self.remembered();
        if remembered.len() >= REMEMBERED_MAX {
            remembered.clear();
        }
        remembered.insert(situation, reaction.clone());
        reaction
    }

    fn remembered(&self) -> RefMut<'_, HashMap<Print, Reaction, FixedState>> {
        self.0.borrow_mut()
    }
}

impl fmt::Debug for Reactions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} reactions", self.remembered().len())
    }
}
