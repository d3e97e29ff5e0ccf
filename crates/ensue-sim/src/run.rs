//! One run: a seed's world under its workload and faults, then quiescence, then the judgement.

mod settle;

use crate::event::Alarm;
use crate::faults::Faults;
use crate::marks::{Mark, Marks};
use crate::oracle::{self, Violation, property};
use crate::seed::Options;
use crate::workload::Workload;
use crate::world::{Happening, World};
use ensue_node::Trace;

/// No run lasts longer than this before it must come to rest, whatever its operations.
const BUSY_US_MAX: u64 = 120_000_000;
/// How often requests are looked at that should have been answered.
const WATCH_US: u64 = 100_000;

/// What became of a run.
#[derive(Clone, Debug)]
pub struct Report {
    pub options: Options,
    pub violation: Option<Violation>,
    pub marks: Marks,
    pub hash: u64,
    pub events: u64,
    pub operations: u64,
    pub virtual_us: u64,
}

/// Runs a world to its end.
pub fn run(options: Options, print: bool) -> Report {
    let mut world = World::new(options.clone());
    world.print = print;
    let mut workload = Workload::new(&mut world);
    let faults = Faults::new(&mut world);
    let mut run = Run { world, faults, marks: Marks::default() };
    let verdict = run.complete(&mut workload);
    Report {
        options,
        violation: verdict.err(),
        marks: run.marks,
        hash: run.world.audit.hash(),
        events: run.world.audit.events(),
        operations: workload.history.operations.len() as u64,
        virtual_us: run.world.now(),
    }
}

struct Run {
    world: World,
    faults: Faults,
    marks: Marks,
}

/// What may happen in one window of watching: thousands of times what a healthy world makes of it.
const HAPPENINGS_MAX: u64 = 5_000_000;

impl Run {
    fn complete(&mut self, workload: &mut Workload) -> Result<(), Violation> {
        while !workload.is_idle() && self.world.now() < BUSY_US_MAX {
            self.advance(workload, true)?;
        }
        workload.stop();
        self.world.heal_everything();
        let deadline = self.world.now() + self.patience_us();
        while !workload.is_idle() && self.world.now() < deadline {
            self.advance(workload, false)?;
        }
        self.settle(workload)
    }

    /// Lets the world go on for a while.
    fn advance(&mut self, workload: &mut Workload, faulty: bool) -> Result<(), Violation> {
        let until = self.world.now() + WATCH_US;
        let mut happened = 0;
        while let Some(happening) = self.world.step(until) {
            happened += 1;
            if happened > HAPPENINGS_MAX {
                return Err(Violation::new(property::PROGRESS, "the world talks without end"));
            }
            self.on_happening(workload, happening, faulty)?;
        }
        let patience = self.patience_us();
        match workload.overdue(&mut self.world, patience) {
            Some(violation) => Err(violation),
            None => Ok(()),
        }
    }

    /// A request at a running core is answered within this time, were it with an error.
    fn patience_us(&self) -> u64 {
        self.world.options.tuning.request_timeout_ms * 4_000 + 20_000_000
    }

    fn on_happening(
        &mut self,
        workload: &mut Workload,
        happening: Happening,
        faulty: bool,
    ) -> Result<(), Violation> {
        let world = &mut self.world;
        match happening {
            Happening::Answer { connection, bytes, .. } => {
                workload.on_answer(world, &mut self.marks, connection, &bytes)?;
            }
            Happening::Hangup { connection } => workload.on_hangup(world, connection),
            Happening::Trace { site, trace } => {
                let datacenter = world.options.shape.datacenter(site);
                if let Some(mark) = Mark::of_trace(&trace, datacenter) {
                    self.marks.add(mark);
                }
                if let Trace::PartitionStopped { partition, reason } = trace {
                    let words = format!("{datacenter} {partition}: {reason}");
                    return Err(Violation::new(property::STOPPED, words));
                }
            }
            Happening::Struck { process, aim } => {
                self.faults.on_struck(world, &mut self.marks, process, aim);
            }
            Happening::Alarm(alarm) => match alarm {
                Alarm::Client(index) => workload.on_alarm(world, index),
                Alarm::Fault if faulty => self.faults.on_alarm(world, workload, &mut self.marks),
                Alarm::Start(process) => world.start(process),
                Alarm::Heal(a, b) if faulty => world.heal(a, b),
                Alarm::HealDatacenters(a, b) if faulty => world.heal_datacenters(a, b),
                Alarm::Unlag(a, b) => world.network.lag(a, b, 0),
                _ => {}
            },
        }
        Ok(())
    }

    fn judge(&self, workload: &Workload, finals: &[oracle::Final]) -> Result<(), Violation> {
        oracle::judge(&workload.history, finals)
    }
}
