//! What a figure is made of: where it stands, what is run, and what the paper says of it.

use crate::claim::Claim;
use crate::instrument::branches::BranchSetup;
use crate::instrument::processes::ProcessSetup;
use crate::instrument::simulated::SimulatedSetup;
use crate::instrument::sites::SitesSetup;
use crate::instrument::{branches, processes, simulated, sites};

/// A figure or a table of a paper, or a panel of one.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// As the command line has it: `F9a` is a panel of `F9`.
    pub name: &'static str,
    pub section: &'static str,
    pub title: &'static str,
    /// How the experiment here differs from the paper's, beyond the machine.
    pub here: &'static str,
    pub experiment: Experiment,
    pub claims: &'static [Claim],
}

/// What is run, by which instrument.
#[derive(Clone, Copy, Debug)]
pub enum Experiment {
    Processes(Sweep<ProcessSetup>, &'static [Metric<processes::Sample>]),
    Simulated(Sweep<SimulatedSetup>, &'static [Metric<simulated::Sample>]),
    Branches(Sweep<BranchSetup>, &'static [Metric<branches::Sample>]),
    Sites(Sweep<SitesSetup>, &'static [Metric<sites::Sample>]),
}

/// A setup for each line at each point: the base, changed by the line and then by the point.
#[derive(Clone, Copy, Debug)]
pub struct Sweep<S: 'static> {
    /// What is changed along the points.
    pub axis: &'static str,
    pub base: S,
    pub lines: &'static [Case<S>],
    pub points: &'static [Case<S>],
}

/// One of several, by name, and what it changes.
#[derive(Clone, Copy, Debug)]
pub struct Case<S: 'static> {
    pub name: &'static str,
    pub change: fn(S) -> S,
}

/// What is read off a sample; nothing where it has no meaning.
#[derive(Clone, Copy, Debug)]
pub struct Metric<O: 'static> {
    pub name: &'static str,
    pub unit: &'static str,
    pub of: fn(&O) -> Option<f64>,
}

impl<S: Copy> Sweep<S> {
    pub fn setup(&self, line: usize, point: usize) -> S {
        (self.points[point].change)((self.lines[line].change)(self.base))
    }
}

impl Experiment {
    /// The names of its lines, of its points and of its metrics.
    pub fn names(&self) -> [Vec<&'static str>; 3] {
        match self {
            Experiment::Processes(sweep, metrics) => names(sweep, metrics),
            Experiment::Simulated(sweep, metrics) => names(sweep, metrics),
            Experiment::Branches(sweep, metrics) => names(sweep, metrics),
            Experiment::Sites(sweep, metrics) => names(sweep, metrics),
        }
    }

    pub fn axis(&self) -> &'static str {
        match self {
            Experiment::Processes(sweep, _) => sweep.axis,
            Experiment::Simulated(sweep, _) => sweep.axis,
            Experiment::Branches(sweep, _) => sweep.axis,
            Experiment::Sites(sweep, _) => sweep.axis,
        }
    }

    /// Whether it runs in virtual time.
    pub fn is_simulated(&self) -> bool {
        matches!(self, Experiment::Simulated(..) | Experiment::Sites(..))
    }

    /// The instrument, as a page says it.
    pub fn instrument(&self) -> &'static str {
        match self {
            Experiment::Processes(..) => processes::WORDS,
            Experiment::Simulated(sweep, _) if sweep.base.priced => simulated::PRICED_WORDS,
            Experiment::Simulated(..) => simulated::WORDS,
            Experiment::Branches(..) => branches::WORDS,
            Experiment::Sites(..) => sites::WORDS,
        }
    }
}

fn names<S, O>(sweep: &Sweep<S>, metrics: &[Metric<O>]) -> [Vec<&'static str>; 3] {
    [
        sweep.lines.iter().map(|case| case.name).collect(),
        sweep.points.iter().map(|case| case.name).collect(),
        metrics.iter().map(|metric| metric.name).collect(),
    ]
}
