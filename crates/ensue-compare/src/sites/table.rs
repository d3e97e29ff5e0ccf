//! The table of one to so many datacenters.

use super::Scale;
use crate::table::aligned;

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
    [
        scale.sites.to_string(),
        format!("{:.0}", scale.rate()),
        format!("{:.2}", scale.commit_ms(50)),
        format!("{:.2}", scale.commit_ms(99)),
        format!("{:.2}", scale.transaction_ms(50)),
        format!("{:.2}", scale.transaction_ms(99)),
        format!("{:.1}", scale.node_us()),
        format!("{:.0}", scale.capacity()),
        format!("{:.2}", scale.capacity() / one),
        scale.leaves.to_string(),
        scale.aborts.to_string(),
    ]
}
