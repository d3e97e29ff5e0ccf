//! A datacenter is added to the others while clients work.
//!
//! At first no process has it in its configuration. They are restarted one by one with the longer list, in any order
//! and beside other faults, and the datacenter is started at some time: before, in between or after. Processes are
//! linked whose lists have both.

use super::World;
use super::retiring::Retiring;
use crate::world::shape::{ProcessId, Site};

/// A datacenter that is added, or removed.
#[derive(Debug, Default)]
pub(super) struct Growth {
    /// One that is to be added has not been started yet.
    awaits_joiner: bool,
    pub(super) retiring: Retiring,
}

impl World {
    /// Every process starts for the first time; one datacenter does not, if it is to be added, and nobody knows it.
    pub(super) fn begin(&mut self) {
        let shape = self.options.shape;
        let processes = || (0..shape.processes()).map(ProcessId);
        if let Some(joiner) = self.options.joiner() {
            self.growth.awaits_joiner = true;
            self.await_first_copy(joiner);
            let others = processes().filter(|process| shape.datacenter_of(*process) != joiner);
            others.for_each(|process| self.processes[process.0].known = shape.datacenters - 1);
        }
        processes().for_each(|process| self.start(process));
    }

    /// Whether a process is of a datacenter that has not been added yet.
    pub(super) fn is_not_there_yet(&self, id: ProcessId) -> bool {
        self.growth.awaits_joiner && self.options.joiner() == Some(self.options.shape.datacenter_of(id))
    }

    /// Whether both processes have the other one's datacenter in their configuration.
    pub(super) fn know_each_other(&self, a: Site, b: Site) -> bool {
        let shape = self.options.shape;
        let knows = |a, b| shape.datacenter(b).0 < self.processes[shape.process(a).0].known;
        knows(a, b) && knows(b, a)
    }

    /// A process is killed, and starts with the longer list. False if it has it.
    pub fn learn(&mut self, id: ProcessId) -> bool {
        let all = self.options.shape.datacenters;
        if self.processes[id.0].known == all {
            return false;
        }
        let was_alive = self.processes[id.0].alive;
        self.kill(id);
        self.processes[id.0].known = all;
        if was_alive {
            self.start(id);
        }
        true
    }

    pub(super) fn let_everybody_know(&mut self) {
        for process in (0..self.processes.len()).map(ProcessId) {
            self.learn(process);
        }
    }

    /// The new datacenter is started. False if it is there.
    pub fn add_joiner(&mut self) -> bool {
        let Some(joiner) = self.options.joiner().filter(|_| self.growth.awaits_joiner) else { return false };
        self.growth.awaits_joiner = false;
        self.await_first_copy(joiner);
        for process in self.options.shape.processes_of(joiner) {
            self.start(process);
        }
        true
    }
}
