//! The table of one to so many datacenters.

use super::{Scale, percentile};
use crate::compare::table::aligned;

const COLUMNS: [&str; 11] = [
    "datacenters",
    "tx/s",
    "commit ms",
    "p99",
    "transaction ms",
    "p99",
    "node µs/tx",
    "capacity tx/s",
    "of one",
    "leaves",
    "aborts",
];

/// A row for each number of datacenters; the first is what the others are compared with.
pub fn table(scales: &[Scale]) -> String {
    let one = scales.first().map_or(1.0, Scale::capacity);
    let cells: Vec<[String; 11]> = scales.iter().map(|scale| cells(scale, one)).collect();
    aligned(COLUMNS, &cells)
}

fn cells(scale: &Scale, one: f64) -> [String; 11] {
    let ms = |times: &[u64], percent| format!("{:.2}", percentile(times, percent) as f64 / 1e3);
    [
        scale.sites.to_string(),
        format!("{:.0}", scale.rate()),
        ms(&scale.commit_us, 50),
        ms(&scale.commit_us, 99),
        ms(&scale.transaction_us, 50),
        ms(&scale.transaction_us, 99),
        format!("{:.1}", scale.node_us()),
        format!("{:.0}", scale.capacity()),
        format!("{:.2}", scale.capacity() / one),
        scale.leaves.to_string(),
        scale.aborts.to_string(),
    ]
}
