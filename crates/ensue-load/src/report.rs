//! Results: as tables for people, and as JSON for programs.
//!
//! Throughput is of operations that ended in the counted time; latencies are of those that were to begin in it. Failed
//! operations are in neither, and are listed by kind.

use crate::answer::Failures;
use crate::side::{Measured, failures_text};
use crate::tally::{Interval, Tally, quantile_us};
use crate::target::Target;
use crate::workload::Operation;
use hdrhistogram::Histogram;
use serde_json::{Value, json};
use std::fmt::Write;

/// Everything that a run has shown.
#[derive(Clone, Debug)]
pub struct Report {
    /// One for each store.
    pub outcomes: Vec<Outcome>,
    /// Over time; of a store alone.
    pub points: Vec<Point>,
    pub comparison: Option<Comparison>,
}

/// What one store has shown.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub name: String,
    pub seconds: f64,
    /// Each operation at each server, with what was asked there.
    pub rows: Vec<(String, String, Tally)>,
    pub total: Tally,
    pub failures: Failures,
    pub lag: Histogram<u64>,
    /// Of all servers, an operation.
    pub processor_us: Option<f64>,
}

/// A part of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// When it ended, from the beginning of the counted time.
    pub second: f64,
    pub rate: f64,
    pub p50_us: Option<f64>,
    pub p99_us: Option<f64>,
    pub p999_us: Option<f64>,
    pub failed: u64,
}

impl Point {
    pub fn new(interval: &Interval, seconds: f64) -> Point {
        Point {
            second: (interval.number + 1) as f64 * seconds,
            rate: interval.completed as f64 / seconds,
            p50_us: quantile_us(&interval.latency, 0.5),
            p99_us: quantile_us(&interval.latency, 0.99),
            p999_us: quantile_us(&interval.latency, 0.999),
            failed: interval.failed,
        }
    }
}

/// What one store has shown in one of its turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slice {
    pub rate: f64,
    pub p50_us: Option<f64>,
    pub p99_us: Option<f64>,
    pub processor_us: Option<f64>,
}

impl Slice {
    pub(crate) fn new(measured: &Measured, seconds: f64) -> Slice {
        let total = measured.sample.total();
        Slice {
            rate: total.completed as f64 / seconds,
            p50_us: quantile_us(&total.latency, 0.5),
            p99_us: quantile_us(&total.latency, 0.99),
            processor_us: processor_us(measured),
        }
    }
}

/// Ratios of turns beside each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    /// Nothing if there are none.
    pub fn of(ratios: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut sorted: Vec<f64> = ratios.into_iter().filter(|ratio| ratio.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let odd = sorted.len() % 2 == 1;
        let median = if odd { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 };
        Some(Spread { median, min, max })
    }
}

/// The first store beside the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    pub slices: Vec<(Slice, Slice)>,
    /// What is compared, with the ratios of the first to the second.
    pub ratios: Vec<(&'static str, Spread)>,
}

impl Comparison {
    /// Each turn of the first store is compared with the turn of the second beside it.
    pub fn new(slices: Vec<(Slice, Slice)>) -> Comparison {
        type Figure = fn(&Slice) -> Option<f64>;
        let figures: [(&'static str, Figure); 4] = [
            ("throughput", |slice| Some(slice.rate)),
            ("p50", |slice| slice.p50_us),
            ("p99", |slice| slice.p99_us),
            ("processor time an operation", |slice| slice.processor_us),
        ];
        let ratios = figures.iter().filter_map(|(name, figure)| {
            let pairs = slices.iter().filter_map(|(ours, theirs)| figure(ours).zip(figure(theirs)));
            Some((*name, Spread::of(pairs.map(|(ours, theirs)| ours / theirs))?))
        });
        let ratios = ratios.collect();
        Comparison { slices, ratios }
    }
}

impl Outcome {
    pub(crate) fn new(
        targets: &[Target],
        operations: &[Operation],
        measured: &Measured,
        seconds: f64,
    ) -> Outcome {
        let names = targets.iter().flat_map(|target| {
            operations.iter().map(move |operation| (target.to_string(), operation.to_string()))
        });
        let rows = names
            .zip(&measured.sample.cells)
            .map(|((site, operation), cell)| (site, operation, cell.clone()));
        let name: Vec<String> = targets.iter().map(Target::to_string).collect();
        Outcome {
            name: name.join(" "),
            seconds,
            rows: rows.collect(),
            total: measured.sample.total(),
            failures: measured.sample.failures.clone(),
            lag: measured.sample.lag.clone(),
            processor_us: processor_us(measured),
        }
    }

    pub fn rate(&self) -> f64 {
        self.total.completed as f64 / self.seconds
    }

    fn table(&self, out: &mut String) {
        put(out, &format!("{}, {:.1} s", self.name, self.seconds));
        let head = format!(
            "{:<22} {:>10} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>8}",
            "operation", "ended", "ops/s", "mean us", "p50", "p90", "p99", "p99.9", "max", "missed"
        );
        put(out, &head);
        let several = self.rows.iter().any(|(site, _, _)| *site != self.rows[0].0);
        let mut site_before = "";
        for (site, operation, tally) in &self.rows {
            if several && site != site_before {
                put(out, &format!("at {site}"));
                site_before = site;
            }
            put(out, &line(operation, tally, self.seconds));
        }
        if self.rows.len() > 1 {
            put(out, &line("all", &self.total, self.seconds));
        }
        if let (Some(p50), Some(p99)) = (quantile_us(&self.lag, 0.5), quantile_us(&self.lag, 0.99)) {
            let late = format!(
                "the generator was late by {p50:.0} us (p50), {p99:.0} us (p99); latencies contain it"
            );
            put(out, &late);
        }
        if let Some(processor_us) = self.processor_us {
            put(out, &format!("processor time of the servers: {processor_us:.2} us an operation"));
        }
        if self.failures.total() > 0 {
            put(out, &format!("FAILED {}: {}", self.failures.total(), failures_text(&self.failures)));
        }
    }

    fn json(&self) -> Value {
        let rows = self.rows.iter().map(|(site, operation, tally)| {
            let mut row = tally_json(tally, self.seconds);
            row["server"] = json!(site);
            row["operation"] = json!(operation);
            row
        });
        let failures = self.failures.iter().map(|(failure, count, example)| {
            json!({ "kind": failure.to_string(), "count": count, "example": example })
        });
        json!({
            "servers": self.name,
            "seconds": self.seconds,
            "operations": rows.collect::<Vec<Value>>(),
            "all": tally_json(&self.total, self.seconds),
            "failed": self.failures.total(),
            "failures": failures.collect::<Vec<Value>>(),
            "generator_late_us": { "p50": quantile_us(&self.lag, 0.5), "p99": quantile_us(&self.lag, 0.99) },
            "processor_us_per_operation": self.processor_us,
        })
    }
}

impl Report {
    pub fn failed(&self) -> u64 {
        self.outcomes.iter().map(|outcome| outcome.failures.total()).sum()
    }

    /// For people.
    pub fn table(&self) -> String {
        let mut out = String::new();
        for (place, outcome) in self.outcomes.iter().enumerate() {
            if place > 0 {
                out.push('\n');
            }
            outcome.table(&mut out);
        }
        if let Some(comparison) = &self.comparison {
            put(
                &mut out,
                &format!("\nthe first divided by the second, {} pairs of turns", comparison.slices.len()),
            );
            put(&mut out, &format!("{:<28} {:>8} {:>8} {:>8}", "", "median", "min", "max"));
            for (name, spread) in &comparison.ratios {
                let Spread { median, min, max } = spread;
                put(&mut out, &format!("{name:<28} {median:>8.2} {min:>8.2} {max:>8.2}"));
            }
        }
        out
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let points = self.points.iter().map(|point| {
            json!({
                "second": point.second, "ops_per_second": point.rate, "p50_us": point.p50_us,
                "p99_us": point.p99_us, "p999_us": point.p999_us, "failed": point.failed,
            })
        });
        let comparison = self.comparison.as_ref().map(|comparison| {
            let ratios = comparison.ratios.iter().map(|(name, spread)| {
                json!({ "of": name, "median": spread.median, "min": spread.min, "max": spread.max })
            });
            let slice = |slice: &Slice| {
                json!({
                    "ops_per_second": slice.rate, "p50_us": slice.p50_us, "p99_us": slice.p99_us,
                    "processor_us_per_operation": slice.processor_us,
                })
            };
            let slices = comparison.slices.iter().map(|(ours, theirs)| json!([slice(ours), slice(theirs)]));
            json!({ "ratios": ratios.collect::<Vec<Value>>(), "turns": slices.collect::<Vec<Value>>() })
        });
        json!({
            "stores": self.outcomes.iter().map(Outcome::json).collect::<Vec<Value>>(),
            "over_time": points.collect::<Vec<Value>>(),
            "comparison": comparison,
        })
    }
}

fn processor_us(measured: &Measured) -> Option<f64> {
    let ended = measured.sample.ended;
    measured.processor_ns.filter(|_| ended > 0).map(|ran_ns| ran_ns as f64 / 1e3 / ended as f64)
}

fn line(name: &str, tally: &Tally, seconds: f64) -> String {
    let latency = &tally.latency;
    let us = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.0}"));
    let shares =
        [0.5, 0.9, 0.99, 0.999].map(|share| format!(" {:>9}", us(quantile_us(latency, share)))).concat();
    let some = |value: f64| (!latency.is_empty()).then_some(value / 1e3);
    format!(
        "{name:<22} {:>10} {:>10.0} {:>9}{shares} {:>9} {:>8}",
        tally.completed,
        tally.completed as f64 / seconds,
        us(some(latency.mean())),
        us(some(latency.max() as f64)),
        tally.misses
    )
}

fn tally_json(tally: &Tally, seconds: f64) -> Value {
    let some = |value: f64| (!tally.latency.is_empty()).then_some(value / 1e3);
    let share = |share| quantile_us(&tally.latency, share);
    json!({
        "ended": tally.completed,
        "ops_per_second": tally.completed as f64 / seconds,
        "missed": tally.misses,
        "latency_us": {
            "mean": some(tally.latency.mean()), "min": some(tally.latency.min() as f64), "p50": share(0.5),
            "p90": share(0.9), "p99": share(0.99), "p999": share(0.999), "p9999": share(0.9999),
            "max": some(tally.latency.max() as f64),
        },
    })
}

fn put(out: &mut String, line: &str) {
    writeln!(out, "{line}").expect("a string takes all");
}
