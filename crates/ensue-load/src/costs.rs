//! Two stores side by side, operation by operation: the processor time of each, and the latency of hand-overs.
//!
//! The stores take turns within each operation, so that what disturbs the machine disturbs both. Figures are medians of
//! turns, ratios are of neighbouring turns. Keys are removed after each operation, so that none finds what another left
//! behind. It judges nothing.

use crate::error::LoadError;
use crate::report::{Slice, Spread};
use crate::run::{Plan, remove_keys, require_processes, run};
use crate::workload::Workload;
use std::fmt::Write;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct Costs {
    /// Stores, keys, clients and turns. Its workload and its pipeline are those of the operations.
    pub plan: Plan,
    pub operations: Vec<Workload>,
    pub pipelines: Vec<usize>,
    /// Numbers of pairs that hand over.
    pub pairs: Vec<usize>,
}

/// One thing that was measured at both stores: medians, and the ratio of the first to the second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    pub ours: f64,
    pub theirs: f64,
    pub ratio: Spread,
}

/// One operation under one load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    pub processor_us: Option<Figure>,
    pub p50_us: Option<Figure>,
    pub p99_us: Option<Figure>,
    pub failed: u64,
}

/// One operation, with a cell for each pipeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub name: String,
    pub cells: Vec<Cell>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    pub rows: Vec<Row>,
    /// A cell for each number of pairs.
    pub hand_overs: Vec<Cell>,
}

/// What the stores are called in a table.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    pub ours: &'a str,
    pub theirs: &'a str,
}

impl Figure {
    fn of(slices: &[(Slice, Slice)], figure: fn(&Slice) -> Option<f64>) -> Option<Figure> {
        let pairs: Vec<(f64, f64)> =
            slices.iter().filter_map(|(ours, theirs)| figure(ours).zip(figure(theirs))).collect();
        Some(Figure {
            ours: Spread::of(pairs.iter().map(|(ours, _)| *ours))?.median,
            theirs: Spread::of(pairs.iter().map(|(_, theirs)| *theirs))?.median,
            ratio: Spread::of(pairs.iter().map(|(ours, theirs)| ours / theirs))?,
        })
    }
}

/// Measures everything. `progress` is told what comes next, and how much of how much there has been.
pub fn measure(costs: &Costs, mut progress: impl FnMut(&str, usize, usize)) -> Result<Results, LoadError> {
    require_processes(&costs.plan)?;
    let of = costs.operations.len() * costs.pipelines.len() + costs.pairs.len();
    let mut done = 0;
    let mut next = |name: &str| {
        progress(name, done, of);
        done += 1;
    };
    let mut rows = Vec::new();
    for workload in &costs.operations {
        let mut cells = Vec::new();
        for pipeline in &costs.pipelines {
            next(&format!("{}, pipeline of {pipeline}", workload.name));
            cells.push(cell(&Plan {
                workload: workload.clone(),
                pipeline: *pipeline,
                ..costs.plan.clone()
            })?);
        }
        rows.push(Row { name: workload.name.clone(), cells });
    }
    let mut hand_overs = Vec::new();
    for pairs in &costs.pairs {
        next(&format!("handover, {pairs} pairs"));
        let workload = "handover".parse::<Workload>()?;
        hand_overs.push(cell(&Plan { workload, pipeline: 1, clients: *pairs, ..costs.plan.clone() })?);
    }
    Ok(Results { rows, hand_overs })
}

fn cell(plan: &Plan) -> Result<Cell, LoadError> {
    let report = run(plan, |_| {})?;
    remove_keys(plan)?;
    let slices = report.comparison.as_ref().map_or([].as_slice(), |comparison| &comparison.slices);
    Ok(Cell {
        processor_us: Figure::of(slices, |slice| slice.processor_us),
        p50_us: Figure::of(slices, |slice| slice.p50_us),
        p99_us: Figure::of(slices, |slice| slice.p99_us),
        failed: report.failed(),
    })
}

impl Results {
    pub fn failed(&self) -> u64 {
        self.rows.iter().flat_map(|row| &row.cells).chain(&self.hand_overs).map(|cell| cell.failed).sum()
    }

    /// A table of the processor time, in microseconds an operation.
    pub fn processor_table(&self, pipelines: &[usize], names: Names<'_>) -> String {
        let Names { ours, theirs } = names;
        let head = pipelines.iter().map(|pipeline| format!(" P{pipeline}: {ours} | {theirs} | ratio |"));
        let mut out = format!("| operation |{}\n|---|", head.collect::<String>());
        out += &"--:|--:|--:|".repeat(pipelines.len());
        out.push('\n');
        for Row { name, cells } in &self.rows {
            let cells = cells.iter().map(|cell| cell.shown(cell.processor_us, 2)).collect::<String>();
            writeln!(out, "| `{name}` |{cells}").expect("a string takes all");
        }
        out
    }

    /// A table of the hand-overs, in microseconds.
    pub fn hand_over_table(&self, pairs: &[usize], names: Names<'_>) -> String {
        let Names { ours, theirs } = names;
        let head = ["p50", "p99", "processor"].map(|name| format!(" {name}: {ours} | {theirs} | ratio |"));
        let mut out = format!("| pairs |{}\n|--:|{}\n", head.concat(), "--:|--:|--:|".repeat(head.len()));
        for (pairs, cell) in pairs.iter().zip(&self.hand_overs) {
            let cells = [(cell.p50_us, 0), (cell.p99_us, 0), (cell.processor_us, 2)];
            let cells = cells.map(|(figure, digits)| cell.shown(figure, digits)).concat();
            writeln!(out, "| {pairs} |{cells}").expect("a string takes all");
        }
        out
    }
}

impl Cell {
    fn shown(&self, figure: Option<Figure>, digits: usize) -> String {
        let failed = if self.failed > 0 { format!(", {} failed", self.failed) } else { String::new() };
        match figure {
            None => format!(" - | - | -{failed} |"),
            Some(Figure { ours, theirs, ratio: Spread { median, min, max } }) => {
                format!(" {ours:.digits$} | {theirs:.digits$} | {median:.2} ({min:.2} to {max:.2}){failed} |")
            }
        }
    }
}
