//! Runs the world whose inputs are counted: `cargo xtask instructions --inputs` runs it under valgrind.
//!
//! Arrives: a protocol. Promises: what it prints are the kinds of work with their units, one a line; the same in every
//! run.

use ensue_compare::prices;
use ensue_sim::world::work::Work;
use std::process::ExitCode;

fn main() -> ExitCode {
    let word = std::env::args().nth(1).unwrap_or_default();
    let Some(protocol) = ensue_protocol::NAMES.into_iter().find(|name| *name == word) else {
        // Without a protocol it lists them.
        ensue_protocol::NAMES.iter().for_each(|name| println!("{name}"));
        return ExitCode::SUCCESS;
    };
    match prices::counted(protocol).run() {
        Ok(findings) => {
            let units = findings.units.unwrap_or_default();
            Work::ALL.iter().zip(units).for_each(|(work, units)| println!("{}\t{units}", work.name()));
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
