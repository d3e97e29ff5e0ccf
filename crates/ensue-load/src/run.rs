//! A whole run: connect, write the keys, warm up, measure; one store for a time, or two in turns.

use crate::error::LoadError;
use crate::pace::Pace;
use crate::report::{Comparison, Outcome, Point, Report, Slice};
use crate::side::{self, Measured, Side};
use crate::tally::Interval;
use crate::target::Target;
use crate::worker::{Budget, Window, Work};
use crate::workload::Workload;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Where keys are written before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preload {
    None,
    /// At the first address; the others are datacenters of the same store and receive them.
    First,
    Each,
}

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    Time(Duration),
    Operations(u64),
}

/// What is to be run.
#[derive(Clone, Debug)]
pub struct Plan {
    pub targets: Vec<Target>,
    /// Another store, which is measured in turns with the first.
    pub against: Vec<Target>,
    /// Processes of the servers, where they are not to be found by asking.
    pub pids: Vec<u32>,
    pub against_pids: Vec<u32>,
    pub workload: Workload,
    pub keys: u64,
    pub prefix: String,
    pub clients: usize,
    /// Operations that a client has under way at most.
    pub pipeline: usize,
    pub threads: usize,
    pub pace: Pace,
    pub warm_up: Duration,
    pub bound: Bound,
    /// How long each store has its turn.
    pub slice: Duration,
    /// How long answers are waited for at the end.
    pub drain: Duration,
    pub preload: Preload,
    pub resp: u8,
    pub seed: u64,
}

/// What is told while a run goes on.
#[derive(Clone, Debug)]
pub enum Progress {
    /// The keys are being written.
    Preload { keys: u64 },
    /// A second of one store alone; how many there will be, if that is known.
    Second { interval: Interval, seconds: f64, of: Option<u64> },
    /// A turn of each store.
    Pair { number: u64, of: u64, ours: f64, theirs: f64 },
}

/// The share of a turn that is not counted: the stores find their pace again.
const LEAD_IN: u32 = 10;
/// What is reported together.
const INTERVAL: Duration = Duration::from_secs(1);
const SHORT_INTERVAL: Duration = Duration::from_millis(100);
/// Runs of fewer seconds are reported in short intervals.
const SHORT_RUN: Duration = Duration::from_secs(4);
/// The longest that a run of so many operations may take.
const OPERATIONS_TIMEOUT: Duration = Duration::from_secs(24 * 3_600);

impl Plan {
    /// The number of keys that are there when the run begins.
    pub fn keys(&self) -> u64 {
        self.workload.access.keys(self.clients.max(1) as u64).unwrap_or(self.keys).max(1)
    }
}

/// Runs it to its end.
pub fn run(plan: &Plan, mut progress: impl FnMut(Progress)) -> Result<Report, LoadError> {
    let base = Instant::now();
    let mut ours = Side::open(plan, &plan.targets, &plan.pids, base)?;
    let mut theirs = match plan.against.as_slice() {
        [] => None,
        against => Some(Side::open(plan, against, &plan.against_pids, base)?),
    };
    if plan.preload != Preload::None {
        progress(Progress::Preload { keys: plan.keys() });
    }
    ours.preload(plan.preload)?;
    match (&mut theirs, plan.bound) {
        (None, _) => alone(plan, &mut ours, progress),
        (Some(_), Bound::Operations(_)) => Err(LoadError::TurnsOfOperations),
        (Some(theirs), Bound::Time(lasts)) => {
            theirs.preload(plan.preload)?;
            in_turns(plan, lasts, &mut ours, theirs, progress)
        }
    }
}

/// Fails where the processor time of a store cannot be measured.
pub fn require_processes(plan: &Plan) -> Result<(), LoadError> {
    for (targets, pids) in [(&plan.targets, &plan.pids), (&plan.against, &plan.against_pids)] {
        let target = targets.first().filter(|_| pids.is_empty());
        if let (Some(target), true) = (target, side::found_pids(targets, plan.resp)?.is_empty()) {
            return Err(LoadError::NoProcess { target: Box::new(target.clone()) });
        }
    }
    Ok(())
}

/// Removes the keys that were written before a run, at both stores.
pub fn remove_keys(plan: &Plan) -> Result<(), LoadError> {
    let stores = [&plan.targets, &plan.against];
    stores.iter().filter_map(|targets| targets.first()).try_for_each(|target| side::remove_keys(plan, target))
}

fn alone(plan: &Plan, side: &mut Side, mut progress: impl FnMut(Progress)) -> Result<Report, LoadError> {
    let (work, lasts, of_seconds) = match plan.bound {
        Bound::Time(lasts) => (Work::Mix, lasts, Some(lasts)),
        Bound::Operations(count) => (Work::Count(Arc::new(Budget::new(count))), OPERATIONS_TIMEOUT, None),
    };
    let interval = if lasts < SHORT_RUN { SHORT_INTERVAL } else { INTERVAL };
    let window = window(plan, side.now_ns(), plan.warm_up, lasts, work, 0, interval);
    let of = of_seconds.map(|lasts| (lasts.as_nanos() / interval.as_nanos()) as u64);
    let mut series: BTreeMap<u64, Interval> = BTreeMap::new();
    let measured = side.run(&window, |arrived| {
        let number = arrived.number;
        series.entry(number).or_insert_with(|| Interval::new(number)).merge(&arrived);
        let interval = series[&number].clone();
        progress(Progress::Second { interval, seconds: window.interval_ns as f64 / 1e9, of });
    })?;
    let seconds = match plan.bound {
        Bound::Time(lasts) => lasts.as_secs_f64(),
        Bound::Operations(_) => measured.sample.last_ns.saturating_sub(window.counted_ns).max(1) as f64 / 1e9,
    };
    // A last part of an interval is no figure of a whole one.
    let whole = (seconds / interval.as_secs_f64() + 1e-9) as u64;
    let series = series.into_values().filter(|interval| interval.number < whole);
    let points = series.map(|part| Point::new(&part, interval.as_secs_f64())).collect();
    Ok(Report { outcomes: vec![outcome(plan, side, &measured, seconds)], points, comparison: None })
}

fn in_turns(
    plan: &Plan,
    lasts: Duration,
    ours: &mut Side,
    theirs: &mut Side,
    mut progress: impl FnMut(Progress),
) -> Result<Report, LoadError> {
    let of = (lasts.as_nanos() / (2 * plan.slice.as_nanos()).max(1)).max(1) as u64;
    let warming = plan.warm_up.as_nanos().div_ceil((2 * plan.slice.as_nanos()).max(1)) as u64;
    let (mut slices, mut sums): (Vec<(Slice, Slice)>, [Option<Measured>; 2]) = (Vec::new(), [None, None]);
    for number in 0..warming + of {
        let mut pair = [None, None];
        // Who begins changes, so that a machine that grows slower does not do so for one of them.
        for place in if number % 2 == 0 { [0, 1] } else { [1, 0] } {
            let side = if place == 0 { &mut *ours } else { &mut *theirs };
            let lead_in = plan.slice / LEAD_IN;
            let lasts = plan.slice - lead_in;
            let window = window(plan, side.now_ns(), lead_in, lasts, Work::Mix, number, plan.slice);
            let measured = side.run(&window, |_| {})?;
            pair[place] = Some(Slice::new(&measured, lasts.as_secs_f64()));
            if number >= warming {
                add(&mut sums[place], measured);
            }
        }
        let [Some(our_slice), Some(their_slice)] = pair else { continue };
        if number >= warming {
            let (ours, theirs) = (our_slice.rate, their_slice.rate);
            progress(Progress::Pair { number: number - warming + 1, of, ours, theirs });
            slices.push((our_slice, their_slice));
        }
    }
    let seconds = (plan.slice - plan.slice / LEAD_IN).as_secs_f64() * of as f64;
    let sides = [&*ours, &*theirs].into_iter().zip(&sums);
    let outcomes =
        sides.filter_map(|(side, sum)| Some(outcome(plan, side, sum.as_ref()?, seconds))).collect();
    let comparison = Comparison::new(slices);
    Ok(Report { outcomes, points: Vec::new(), comparison: Some(comparison) })
}

fn add(sum: &mut Option<Measured>, measured: Measured) {
    match sum {
        None => *sum = Some(measured),
        Some(sum) => {
            sum.sample.merge(&measured.sample);
            sum.processor_ns = sum.processor_ns.zip(measured.processor_ns).map(|(sum, more)| sum + more);
        }
    }
}

fn window(
    plan: &Plan,
    begin_ns: u64,
    warm_up: Duration,
    lasts: Duration,
    work: Work,
    number: u64,
    interval: Duration,
) -> Window {
    let counted_ns = begin_ns + warm_up.as_nanos() as u64;
    Window {
        begin_ns,
        counted_ns,
        end_ns: counted_ns + lasts.as_nanos() as u64,
        drain_ns: plan.drain.as_nanos() as u64,
        work,
        pace: plan.pace,
        number,
        interval_ns: interval.as_nanos().max(1) as u64,
    }
}

fn outcome(plan: &Plan, side: &Side, measured: &Measured, seconds: f64) -> Outcome {
    Outcome::new(&side.targets, plan.workload.operations(), measured, seconds)
}
