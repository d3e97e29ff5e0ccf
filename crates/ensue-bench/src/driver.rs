//! Drives clients against an engine, in real time, or in a test's.
//!
//! A client sends its next operation a round trip after the last one was served, and the one thread serves what is due
//! in that order. It does nothing else meanwhile, so the operations of a busy engine are late, and clients wait for
//! them as they would.

use crate::engine::{self, Engine, Setting, Step};
use crate::load::{Keys, Mix, Operation, Random};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::{Duration, Instant};

/// How a run knows the time.
#[derive(Clone, Copy, Debug)]
pub enum Clock {
    /// The machine's.
    Real,
    /// Each look at it takes so long, so that no machine disturbs a run.
    Ticking(Duration),
}

/// One run.
#[derive(Clone, Debug)]
pub struct Run {
    pub setting: Setting,
    pub keys: Keys,
    pub mix: Mix,
    pub round_trip: Duration,
    /// Not counted: locks, branches and collections must have found their pace.
    pub warm_up: Duration,
    pub lasts: Duration,
    pub seed: u64,
    pub clock: Clock,
    /// Measure how long each step takes, which itself takes a while.
    pub times_steps: bool,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub clients: usize,
    pub seconds: f64,
    pub committed: u64,
    pub aborted: u64,
    pub merges: u64,
    /// The most that stood beside each other.
    pub leaves: usize,
    /// Operations of transactions that committed.
    pub useful_steps: u64,
    /// How many steps of each kind there were, and how long they took together; where they are measured.
    pub steps: BTreeMap<StepKind, (u64, Duration)>,
    /// What is kept at the end.
    pub states: usize,
    pub records: usize,
    /// From the first beginning of a transaction to its commit, in microseconds, sorted.
    pub latencies_us: Vec<u32>,
}

/// Kinds of operations as Table 3 of TARDiS has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StepKind {
    Begin,
    Get,
    Put,
    Commit,
}

impl Outcome {
    /// The share of clients' time that went to operations of transactions that committed, at a round trip each:
    /// without waiting, without what aborted.
    pub fn useful(&self, round_trip: Duration) -> f64 {
        self.useful_steps as f64 * round_trip.as_secs_f64() / (self.clients.max(1) as f64 * self.seconds)
    }

    /// Microseconds of a step of this kind, in the mean.
    pub fn step_us(&self, kind: StepKind) -> Option<f64> {
        let (count, took) = self.steps.get(&kind).filter(|(count, _)| *count > 0)?;
        Some(took.as_secs_f64() * 1e6 / *count as f64)
    }

    pub fn throughput(&self) -> f64 {
        self.committed as f64 / self.seconds
    }

    /// A latency that this share of the transactions did not exceed.
    pub fn latency_us(&self, share: f64) -> u32 {
        let place = (self.latencies_us.len() as f64 * share) as usize;
        self.latencies_us.get(place.min(self.latencies_us.len().saturating_sub(1))).copied().unwrap_or(0)
    }
}

struct Client {
    random: Random,
    operations: Vec<Operation>,
    next: usize,
    began_us: u64,
}

/// What is seen once a second while a run goes on.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub second: u64,
    pub committed: u64,
    pub states: usize,
    pub records: usize,
}

/// Runs to the end, and tells what is seen on the way.
pub fn run(run: &Run, mut each_second: impl FnMut(Sample)) -> Outcome {
    let mut engine = engine::new(&run.setting);
    let mut driver = Driver::new(run);
    let start = Instant::now();
    let (warm_us, end_us) = (micros(run.warm_up), micros(run.warm_up + run.lasts));
    let mut next_second = 1;
    let mut ticked = Duration::ZERO;
    loop {
        let now_us = micros(match run.clock {
            Clock::Real => start.elapsed(),
            Clock::Ticking(by) => {
                ticked += by;
                ticked
            }
        });
        if now_us >= end_us {
            break;
        }
        if now_us >= next_second * 1_000_000 {
            let figures = engine.store().metrics();
            let (states, records) = (figures.states, figures.records);
            each_second(Sample { second: next_second, committed: driver.all, states, records });
            next_second += 1;
        }
        driver.counts = now_us >= warm_us;
        driver.serve(engine.as_mut(), now_us);
    }
    let mut outcome = driver.outcome;
    let figures = engine.store().metrics();
    (outcome.states, outcome.records) = (figures.states, figures.records);
    outcome.seconds = run.lasts.as_secs_f64();
    outcome.latencies_us.sort_unstable();
    outcome
}

struct Driver<'a> {
    run: &'a Run,
    clients: Vec<Client>,
    /// Who is due when, in microseconds. The merger has the number behind the last client.
    due: BinaryHeap<Reverse<(u64, usize)>>,
    counts: bool,
    all: u64,
    outcome: Outcome,
}

impl<'a> Driver<'a> {
    fn new(run: &'a Run) -> Driver<'a> {
        let mut seeds = Random::new(run.seed);
        let mut clients = Vec::new();
        let mut due = BinaryHeap::new();
        for number in 0..run.setting.clients {
            let mut random = Random::new(seeds.next());
            let operations = run.keys.transaction(run.mix, &mut random);
            // They do not all begin at once.
            due.push(Reverse((random.below(micros(run.round_trip).max(1)), number)));
            clients.push(Client { random, operations, next: 0, began_us: 0 });
        }
        due.push(Reverse((0, run.setting.clients)));
        let outcome = Outcome { clients: run.setting.clients, ..Outcome::default() };
        Driver { run, clients, due, counts: false, all: 0, outcome }
    }

    /// Serves what is due first, if it is.
    fn serve(&mut self, engine: &mut dyn Engine, now_us: u64) {
        let Some(Reverse((due_us, number))) =
            self.due.peek().copied().filter(|Reverse((due, _))| *due <= now_us)
        else {
            return std::hint::spin_loop();
        };
        self.due.pop();
        let round_trip_us = micros(self.run.round_trip);
        if number == self.clients.len() {
            if engine.merge_step() && self.counts {
                self.outcome.merges += 1;
            }
            for (number, step) in engine.woken() {
                self.stepped(number, step, now_us);
            }
            self.outcome.leaves = self.outcome.leaves.max(engine.store().leaves().len());
            return self.due.push(Reverse((now_us + round_trip_us, number)));
        }
        let client = &mut self.clients[number];
        if client.next == 0 && client.began_us == 0 {
            client.began_us = due_us.max(1);
        }
        let operation = client.operations[client.next];
        let step = match self.run.times_steps {
            true => self.timed(engine, number, operation),
            false => engine.step(number, operation),
        };
        self.stepped(number, step, now_us);
        for (number, step) in engine.woken() {
            self.stepped(number, step, now_us);
        }
    }

    fn timed(&mut self, engine: &mut dyn Engine, number: usize, operation: Operation) -> Step {
        let before = Instant::now();
        let step = engine.step(number, operation);
        let took = before.elapsed();
        if self.counts {
            let kind = match operation {
                Operation::Begin => StepKind::Begin,
                Operation::Read(_) => StepKind::Get,
                Operation::Write(_) | Operation::Update(_) => StepKind::Put,
                Operation::Commit => StepKind::Commit,
            };
            let (count, sum) = self.outcome.steps.entry(kind).or_default();
            (*count, *sum) = (*count + 1, *sum + took);
        }
        step
    }

    fn stepped(&mut self, number: usize, step: Step, now_us: u64) {
        let client = &mut self.clients[number];
        match step {
            Step::Waits => return,
            Step::Aborted => {
                client.next = 0;
                self.outcome.aborted += u64::from(self.counts);
            }
            Step::Done => client.next += 1,
        }
        if client.next == client.operations.len() {
            let took_us = now_us.saturating_sub(client.began_us);
            let steps = client.operations.len() as u64;
            client.operations = self.run.keys.transaction(self.run.mix, &mut client.random);
            (client.next, client.began_us) = (0, 0);
            self.all += 1;
            if self.counts {
                self.outcome.committed += 1;
                self.outcome.useful_steps += steps;
                self.outcome.latencies_us.push(took_us as u32);
            }
        }
        self.due.push(Reverse((now_us + micros(self.run.round_trip), number)));
    }
}

fn micros(duration: Duration) -> u64 {
    duration.as_micros() as u64
}
