//! Results as a picture: latency by percentile, and both over time.

use crate::report::{Outcome, Point, Report};
use crate::tally::quantile_us;
use ensue_plot::{COLOURS, Line, Panel, draw};

/// How many nines a percentile has, with its name: the axis of latency by percentile.
const PERCENTILES: [(f64, &str); 5] = [(0.0, "0"), (1.0, "90"), (2.0, "99"), (3.0, "99.9"), (4.0, "99.99 %")];
/// Points between two nines.
const STEPS: u32 = 20;

/// Latency by percentile of each store; and over time or over turns, throughput and percentiles.
pub fn svg(report: &Report) -> String {
    let panels = [
        latency(report),
        rates(report),
        quantiles(report, "p50, us", Figure::P50),
        quantiles(report, "p99, us", Figure::P99),
    ];
    draw("operations a second and latency", &panels)
}

#[derive(Clone, Copy)]
enum Figure {
    P50,
    P99,
}

fn latency(report: &Report) -> Panel<'_> {
    let lines =
        report.outcomes.iter().enumerate().map(|(place, outcome)| line(place, outcome, percentiles(outcome)));
    let below = PERCENTILES.iter().map(|(nines, name)| (*nines, (*name).to_string()));
    Panel { title: "latency by percentile, us", lines: lines.collect(), below: below.collect() }
}

fn percentiles(outcome: &Outcome) -> Vec<(f64, f64)> {
    let last = PERCENTILES.len() as u32 - 1;
    let nines = (0..=last * STEPS).map(|step| f64::from(step) / f64::from(STEPS));
    nines
        .filter_map(|nines| Some((nines, quantile_us(&outcome.total.latency, 1.0 - 0.1f64.powf(nines))?)))
        .collect()
}

fn rates(report: &Report) -> Panel<'_> {
    let points = |point: &Point| Some((point.second, point.rate));
    let rates: [Vec<(f64, f64)>; 2] = match &report.comparison {
        None => [report.points.iter().filter_map(points).collect(), Vec::new()],
        Some(comparison) => {
            let pairs = || comparison.slices.iter().enumerate().map(|(at, pair)| ((at + 1) as f64, pair));
            [
                pairs().map(|(at, (ours, _))| (at, ours.rate)).collect(),
                pairs().map(|(at, (_, theirs))| (at, theirs.rate)).collect(),
            ]
        }
    };
    over_time(report, "operations a second", rates)
}

fn quantiles<'a>(report: &'a Report, title: &'a str, figure: Figure) -> Panel<'a> {
    let lines = match &report.comparison {
        None => {
            let of = |point: &Point| match figure {
                Figure::P50 => point.p50_us,
                Figure::P99 => point.p99_us,
            };
            let points = report.points.iter().filter_map(|point| Some((point.second, of(point)?)));
            [points.collect(), Vec::new()]
        }
        Some(comparison) => {
            let of = |slice: &crate::report::Slice| match figure {
                Figure::P50 => slice.p50_us,
                Figure::P99 => slice.p99_us,
            };
            let pairs = || comparison.slices.iter().enumerate().map(|(at, pair)| ((at + 1) as f64, pair));
            [
                pairs().filter_map(|(at, (ours, _))| Some((at, of(ours)?))).collect(),
                pairs().filter_map(|(at, (_, theirs))| Some((at, of(theirs)?))).collect(),
            ]
        }
    };
    over_time(report, title, lines)
}

fn over_time<'a>(report: &'a Report, title: &'a str, points: [Vec<(f64, f64)>; 2]) -> Panel<'a> {
    let last = points.iter().flatten().map(|point| point.0).fold(1.0, f64::max);
    let unit = if report.comparison.is_some() { "turns" } else { "s" };
    let lines = report.outcomes.iter().enumerate().zip(points);
    let lines = lines.map(|((place, outcome), points)| line(place, outcome, points)).collect();
    let below =
        (0..=4).map(|quarter| last * f64::from(quarter) / 4.0).map(|at| (at, format!("{at:.0} {unit}")));
    Panel { title, lines, below: below.collect() }
}

fn line(place: usize, outcome: &Outcome, points: Vec<(f64, f64)>) -> Line<'_> {
    Line { name: &outcome.name, colour: COLOURS[place % COLOURS.len()], points }
}
