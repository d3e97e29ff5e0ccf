//! What each kind of work costs in each protocol, as `cargo xtask instructions` has counted it.
//!
//! The table is compiled in, so that a priced world needs no file; recorded anew, it is another table in the next
//! build.

use super::Contestant;
use super::demand::{Demand, Draw, READ_HEAVY};
use super::trial::Trial;
use ensue_sim::world::work::{Prices, Work};

const TABLE: &str = include_str!("../../../docs/figures/inputs.md");

/// The prices of a protocol; an error in words, if it was not counted.
pub fn of(protocol: &str) -> Result<Prices, String> {
    of_table(TABLE, protocol)
}

fn of_table(table: &str, protocol: &str) -> Result<Prices, String> {
    let mut rows = table.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |"));
    let names = table
        .lines()
        .find_map(|line| line.strip_prefix("| protocol | ")?.strip_suffix(" |"))
        .ok_or("docs/figures/inputs.md has no table")?;
    let row = rows
        .find_map(|row| row.strip_prefix(protocol)?.strip_prefix("` | "))
        .ok_or_else(|| format!("docs/figures/inputs.md has no prices of {protocol}"))?;
    let mut prices = Prices::FREE;
    for (name, price) in names.split(" | ").zip(row.split(" | ")) {
        let work = Work::ALL.into_iter().find(|work| work.name() == name);
        let work = work.ok_or_else(|| format!("{name} is no kind of work"))?;
        // What did not occur has no price.
        prices.0[work as usize] = match price {
            "" => 0,
            price => price.parse().map_err(|_| format!("{price} is no number of instructions"))?,
        };
    }
    Ok(prices)
}

/// The run of which the instructions are counted: every kind of work occurs, in two datacenters of four cores.
pub fn counted(protocol: &'static str) -> Trial {
    Trial {
        contestant: Contestant { protocol, dependency_cleaning: true },
        demand: Demand {
            name: "counted",
            gets: 8,
            sets: 4,
            mgets: 1,
            clients: 4,
            keys: 400,
            draw: Draw::Uniform,
            own_per_mille: 0,
            think_ms: 1,
            ..READ_HEAVY
        },
        datacenters: 2,
        partitions: 4,
        delay_us: 1_000,
        stabilization_ms: 5,
        seed: 1,
        warmup_us: 20_000,
        counted_us: 80_000,
        // They cost nothing, and are counted.
        prices: Some(Prices::FREE),
        watches: false,
    }
}

#[cfg(test)]
mod tests;
