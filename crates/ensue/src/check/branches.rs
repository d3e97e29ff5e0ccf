//! `ensue check` of what was recorded on a keyspace with branches: judged by the oracle of simulated worlds.

use super::CheckArgs;
use crate::paint::Paint;
use anyhow::bail;
use ensue_sim::branching::record::Recording;
use std::process::ExitCode;

const VIOLATED: u8 = 1;
const UNDECIDED: u8 = 3;

/// Judges it and prints the verdict.
pub(super) fn run(args: &CheckArgs, recording: &Recording) -> anyhow::Result<ExitCode> {
    if args.to.is_some() || args.svg.is_some() || args.json || !args.properties.is_empty() {
        bail!("this is a recording of branches: it is judged as a whole, and has no other form");
    }
    let (history, paint) = (&recording.history, Paint::for_stdout());
    let commands: usize = history.operations.iter().map(|operation| operation.commands.len()).sum();
    println!(
        "{commands} commands on branches, {} sessions, {} datacenters\n",
        history.sessions.len(),
        recording.options.datacenters
    );
    let known = match recording.judge() {
        Ok(known) => known,
        Err(violation) => {
            println!("  branches  {} {violation}", paint.bad("violated"));
            return Ok(ExitCode::from(VIOLATED));
        }
    };
    let undecided = match (known.judged, recording.options.final_us) {
        (0, _) => Some("no answer could be compared"),
        (_, None) => Some("what became of the states in the end was not recorded"),
        _ => None,
    };
    println!(
        "  branches  {}; {} answers were compared with what must stand there, {} could not be",
        undecided.map_or_else(
            || paint.good("hold").to_string(),
            |why| format!("{}: {why}", paint.notable("undecided"))
        ),
        known.judged,
        known.untold
    );
    Ok(undecided.map_or(ExitCode::SUCCESS, |_| ExitCode::from(UNDECIDED)))
}
