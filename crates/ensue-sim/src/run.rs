//! One run: a seed's world under its workload and faults, then quiescence, then the judgement.

mod branches;
mod counts;
mod coverage;
mod discarded;
mod homes;
mod panics;
mod past_reads;
mod settle;
pub mod trial;

pub use panics::caught;

use crate::branching::clients::BranchClients;
use crate::faults::{self, Effect, Plan};
use crate::oracle::agreement;
use crate::oracle::history::{History, OperationIndex};
use crate::oracle::staleness::StaleReads;
use crate::oracle::{self, Final, Violation, property};
use crate::workload::Workload;
use crate::workload::clients::Clients;
use crate::world::event::Alarm;
use crate::world::marks::{Mark, Marks};
use crate::world::options::Options;
use crate::world::{Happening, World};
use ensue_node::Trace;
use ensue_types::DatacenterId;
use past_reads::PastReads;
use std::collections::BTreeMap;
use std::io::{BufWriter, Write};

/// No run lasts longer than this before it must come to rest, whatever its operations.
const BUSY_US_MAX: u64 = 120_000_000;
/// The checker judges beside the oracle each such seed, and every run in which a rule is broken: it would take a sixth
/// of the time of all runs.
const BOTH_EVERY: u64 = 10;
/// How often requests are looked at that should have been answered.
const WATCH_US: u64 = 100_000;

/// The operations of each step of each client.
pub type Taken = BTreeMap<(usize, u64), Vec<OperationIndex>>;

/// What became of a run.
#[derive(Clone, Debug)]
pub struct Report {
    pub options: Options,
    /// The faults that were planned; those after the end of the run never struck.
    pub plan: Plan,
    pub violation: Option<Violation>,
    pub history: History,
    /// What was read in the end; nothing if the run did not come so far.
    pub finals: Vec<Final>,
    pub taken: Taken,
    pub stale_reads: StaleReads,
    pub marks: Marks,
    /// Of all events.
    pub hash: u64,
    /// Of what clients were answered, and when.
    pub answers_hash: u64,
    pub events: u64,
    pub operations: u64,
    pub virtual_us: u64,
}

/// Where the events of a run are shown.
pub type Sink = Box<dyn Write>;

/// Standard output, for people.
pub fn to_screen() -> Sink {
    Box::new(BufWriter::new(std::io::stdout()))
}

/// Runs a seed's world to its end, under the faults that the seed plans.
pub fn run(options: Options, trace: Option<Sink>) -> Report {
    let plan = Plan::draw(&options);
    run_plan(options, plan, trace)
}

/// Runs a world to its end under these faults. A panic of a node is a violation like any other.
pub fn run_plan(options: Options, plan: Plan, trace: Option<Sink>) -> Report {
    let _breaking = options.rules.enter();
    let mut world = World::new(options.clone());
    world.trace = trace;
    let branches = options.promises().branches;
    let mut asking = match branches {
        true => Asking::OfBranches(Box::new(BranchClients::new(&mut world))),
        false => Asking::Plain(Box::new(Workload::new(&mut world))),
    };
    let mut run = Run {
        world,
        plan,
        marks: Marks::default(),
        finals: Vec::new(),
        stale_reads: StaleReads::default(),
        past_reads: PastReads::default(),
        seal: None,
    };
    run.order_fault(0);
    let complete = || match &mut asking {
        Asking::OfBranches(clients) => {
            run.busy(&mut **clients)?;
            run.settle_branches(clients)
        }
        Asking::Plain(workload) => {
            run.busy(&mut **workload)?;
            run.settle(workload)
        }
    };
    let mut verdict =
        panics::caught(complete).unwrap_or_else(|words| Err(Violation::new(property::PANIC, words)));
    if run.world.is_endless() {
        // Whatever else is wrong follows from that: nothing happened any more.
        verdict = Err(Violation::new(property::PROGRESS, "the world talks without end"));
    }
    run.marks.join(&run.world.marks);
    let (history, taken) = match asking {
        Asking::OfBranches(clients) => clients.into_taken(),
        Asking::Plain(workload) => (workload.history, workload.taken),
    };
    let Seal { hash, answers_hash, events, virtual_us } = run.seal.unwrap_or_else(|| Seal::of(&run.world));
    Report {
        options,
        plan: run.plan,
        violation: verdict.err(),
        marks: run.marks,
        hash,
        answers_hash,
        events,
        operations: history.operations.len() as u64,
        virtual_us,
        history,
        finals: run.finals,
        stale_reads: run.stale_reads,
        taken,
    }
}

/// Whose clients they are.
enum Asking {
    Plain(Box<Workload>),
    OfBranches(Box<BranchClients>),
}

struct Run {
    world: World,
    plan: Plan,
    marks: Marks,
    finals: Vec<Final>,
    stale_reads: StaleReads,
    past_reads: PastReads,
    seal: Option<Seal>,
}

/// What a run is told apart by.
#[derive(Clone, Copy, Debug)]
struct Seal {
    hash: u64,
    answers_hash: u64,
    events: u64,
    virtual_us: u64,
}

impl Seal {
    fn of(world: &World) -> Seal {
        Seal {
            hash: world.audit.hash(),
            answers_hash: world.answers.hash(),
            events: world.audit.events(),
            virtual_us: world.now(),
        }
    }
}

impl Run {
    /// Whatever is asked from now on does not count among the events of the run.
    fn seal(&mut self) {
        self.seal = Some(Seal::of(&self.world));
    }

    /// Clients ask, under faults; at last everything is healed, and those who wait are answered.
    fn busy(&mut self, clients: &mut dyn Clients) -> Result<(), Violation> {
        while !clients.is_idle() && self.world.now() < BUSY_US_MAX {
            self.advance(clients, true)?;
            self.world.look_after_the_sick();
        }
        clients.stop();
        self.world.heal_everything();
        let deadline = self.world.now() + self.patience_us();
        while !clients.is_idle() && self.world.now() < deadline {
            self.advance(clients, false)?;
        }
        Ok(())
    }

    /// Lets the world go on for a while.
    fn advance(&mut self, clients: &mut dyn Clients, faulty: bool) -> Result<(), Violation> {
        let until = self.world.now() + WATCH_US;
        while let Some(happening) = self.world.step(until) {
            self.on_happening(clients, happening, faulty)?;
        }
        let patience = self.patience_us();
        match clients.overdue(&mut self.world, patience) {
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
        clients: &mut dyn Clients,
        happening: Happening,
        faulty: bool,
    ) -> Result<(), Violation> {
        let world = &mut self.world;
        clients.on_power_losses(world);
        match happening {
            Happening::Answer { connection, bytes, .. } => {
                clients.on_answer(world, &mut self.marks, connection, &bytes)?;
            }
            Happening::Hangup { connection } => clients.on_hangup(world, connection),
            Happening::Trace { site, trace, is_excused } => {
                let datacenter = world.options.shape.datacenter(site);
                if let Some(mark) = Mark::of_trace(&trace, datacenter) {
                    self.marks.add(mark);
                }
                return if is_excused { Ok(()) } else { Err(unexcused(datacenter, &trace)) };
            }
            Happening::WentOn { site, partition } => {
                let words = format!("{} {partition}", world.options.shape.datacenter(site));
                return Err(Violation::new(property::WENT_ON, words));
            }
            Happening::ServesTheRest { site, partition } => {
                let words = format!("{} {partition}", world.options.shape.datacenter(site));
                return Err(Violation::new(property::SERVES_THE_REST, words));
            }
            Happening::Struck { aim } => {
                self.marks.add(Mark::Crash { step: aim.step, remote: aim.remote });
                self.marks.add(Mark::Fault(faults::AT_A_STEP));
            }
            Happening::Alarm(alarm) => match alarm {
                Alarm::Client(index) => clients.on_alarm(world, index),
                Alarm::Fault(number) if faulty => self.strike(number),
                // After the end of the faults nothing is left to lift.
                Alarm::FaultEnds(number) if faulty => {
                    if let Some(planned) = self.plan.faults.get(number) {
                        planned.fault.lift(world);
                    }
                }
                Alarm::Start(process) => world.start(process),
                Alarm::Ask(connection) => world.ask_again(connection),
                _ => {}
            },
        }
        Ok(())
    }

    /// The faults of a plan strike one after another; each orders the next.
    fn order_fault(&mut self, number: usize) {
        if let Some(planned) = self.plan.faults.get(number) {
            self.world.alarm(planned.at_us, Alarm::Fault(number));
        }
    }

    fn strike(&mut self, number: usize) {
        let Some(planned) = self.plan.faults.get(number) else { return };
        let effect = planned.fault.strike(&mut self.world);
        if !matches!(effect, Effect::Nothing | Effect::Aimed) {
            self.marks.add(Mark::Fault(planned.fault.name()));
        }
        if let Effect::Lasts(time_us) = effect {
            self.world.alarm(self.world.now() + time_us, Alarm::FaultEnds(number));
        }
        self.order_fault(number + 1);
    }

    fn judge(&mut self, workload: &mut Workload) -> Result<(), Violation> {
        workload.history.kept = self.world.staleness.kept(&workload.history);
        let options = &self.world.options;
        match options.seed % BOTH_EVERY == 0 || options.rules.broken().is_some() {
            true => agreement::judge(&workload.history, &self.finals)?,
            false => oracle::judge(&workload.history, &self.finals)?,
        }
        workload.judge_homes(&self.world)?;
        workload.judge_caches(&self.finals)?;
        if let Some(words) = self.world.said.taken_back() {
            return Err(Violation::new(property::TAKEN_BACK, words));
        }
        self.stale_reads = self.world.staleness.judge(&workload.history)?;
        if self.stale_reads.stale > 0 {
            self.marks.add(Mark::StaleRead);
        }
        Ok(())
    }
}

/// A partition stops, or refuses writes, only if its disk gave it a reason to.
pub(crate) fn unexcused(datacenter: DatacenterId, trace: &Trace) -> Violation {
    match trace {
        Trace::PartitionStopped { partition, reason } => {
            Violation::new(property::STOPPED, format!("{datacenter} {partition}: {reason}"))
        }
        other => Violation::new(property::AVAILABILITY, format!("{datacenter}: without a reason: {other:?}")),
    }
}
