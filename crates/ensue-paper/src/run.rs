//! The one runner: every line at every point of a figure, round by round.

use crate::figure::{Experiment, Figure, Metric, Sweep};
use crate::instrument::processes::Processes;
use crate::instrument::{Effort, InstrumentError, branches, simulated, sites};
use crate::papers::Paper;
use crate::record::{FigureRecord, Line, Panel, Spread};

/// What is told while a figure is run.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Runs that are over, of so many.
    pub done: usize,
    pub of: usize,
    /// The line and the point that come next.
    pub next: String,
}

/// Runs a figure to its end. `made` says on what.
pub fn run(
    paper: &Paper,
    figure: &Figure,
    effort: &Effort,
    made: &str,
    progress: impl FnMut(Progress),
) -> Result<FigureRecord, InstrumentError> {
    let panels = match &figure.experiment {
        Experiment::Processes(sweep, metrics) => {
            let mut processes = Processes::default();
            through(
                sweep,
                metrics,
                effort,
                effort.rounds,
                |setup, seed| processes.run(setup, seed, effort),
                progress,
            )?
        }
        // Worlds of one seed are the same in every run, and other seeds differ little.
        Experiment::Simulated(sweep, metrics) => {
            through(sweep, metrics, effort, 1, |setup, seed| simulated::run(setup, seed, effort), progress)?
        }
        Experiment::Sites(sweep, metrics) => {
            through(sweep, metrics, effort, 1, |setup, seed| sites::run(setup, seed, effort), progress)?
        }
        Experiment::Branches(sweep, metrics) => {
            let one = |setup: &_, seed| Ok(branches::run(setup, seed, effort));
            through(sweep, metrics, effort, effort.rounds, one, progress)?
        }
    };
    Ok(FigureRecord {
        paper: paper.name.into(),
        name: figure.name.into(),
        section: figure.section.into(),
        title: figure.title.into(),
        here: figure.here.into(),
        instrument: figure.experiment.instrument().into(),
        made: made.into(),
        axis: figure.experiment.axis().into(),
        panels,
    })
}

fn through<S: Copy, O>(
    sweep: &Sweep<S>,
    metrics: &[Metric<O>],
    effort: &Effort,
    rounds: usize,
    mut one: impl FnMut(&S, u64) -> Result<O, InstrumentError>,
    mut progress: impl FnMut(Progress),
) -> Result<Vec<Panel>, InstrumentError> {
    let points: Vec<usize> = (0..sweep.points.len())
        .filter(|&point| !effort.ends_only || is_end(point, sweep.points.len()))
        .collect();
    let of = points.len() * sweep.lines.len() * rounds;
    let mut done = 0;
    // Of each line, of each point, of each round.
    let mut samples: Vec<Vec<Vec<O>>> = sweep.lines.iter().map(|_| Vec::new()).collect();
    for &point in &points {
        samples.iter_mut().for_each(|of_line| of_line.push(Vec::new()));
        for round in 0..rounds {
            // Lines take turns, so that a machine that grows slower does so for all of them.
            for (line, of_line) in samples.iter_mut().enumerate() {
                let next = format!("{}, {} {}", sweep.lines[line].name, sweep.axis, sweep.points[point].name);
                progress(Progress { done, of, next });
                let sample = one(&sweep.setup(line, point), 1 + round as u64)?;
                if let Some(of_point) = of_line.last_mut() {
                    of_point.push(sample);
                }
                done += 1;
            }
        }
    }
    let names = || points.iter().map(|&point| sweep.points[point].name.to_owned());
    let panel = |metric: &Metric<O>| {
        let line = |(case, of_line): (&crate::figure::Case<S>, &Vec<Vec<O>>)| Line {
            name: case.name.into(),
            values: of_line.iter().map(|rounds| Spread::of(rounds.iter().filter_map(metric.of))).collect(),
        };
        Panel {
            metric: metric.name.into(),
            unit: metric.unit.into(),
            points: names().collect(),
            lines: sweep.lines.iter().zip(&samples).map(line).collect(),
        }
    };
    Ok(metrics.iter().map(panel).collect())
}

fn is_end(point: usize, points: usize) -> bool {
    point == 0 || point + 1 == points
}
