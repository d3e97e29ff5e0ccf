//! `ensue bench branches`: branch on conflict against locking and optimistic control, in this process.

use crate::paint::Paint;
use anyhow::Context;
use ensue_bench::contest::{Contest, table};
use ensue_bench::driver::Clock;
use ensue_bench::plot;
use ensue_bench::soak::Soak;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Run interactive transactions on branches, under locks and optimistically, on the same storage code
#[derive(Debug, clap::Args)]
pub(crate) struct BranchesArgs {
    /// Numbers of clients to try
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "16,64,256,1024")]
    clients: Vec<usize>,
    /// Keys, each with a value of 100 bytes
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(10..))]
    keys: u32,
    /// Microseconds between an answer and the client's next operation being served
    #[arg(long, value_name = "N", default_value_t = 500)]
    round_trip_us: u64,
    /// Seconds that are counted, of each run; a quarter more goes before
    #[arg(long, value_name = "N", default_value_t = 3)]
    seconds: u64,
    /// Leaves that branching runs have at most: a transaction that might make more waits for a merge
    #[arg(long, value_name = "N", default_value_t = 128)]
    leaves: usize,
    /// Instead: a load of so many minutes with collection and as long without, and what is kept over time
    #[arg(long, value_name = "MINUTES")]
    soak: Option<u64>,
    /// Write the table into this markdown file, too, and a picture (.svg) beside it
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

/// Commits of a client between two of its ceilings, as in the paper.
const CEILING_EVERY: u64 = 1_000;
/// Clients of a soak.
const SOAK_CLIENTS: usize = 64;

pub(crate) fn run(args: &BranchesArgs) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(args.clients.iter().all(|clients| *clients > 0), "--clients takes numbers above zero");
    anyhow::ensure!(args.leaves > 0 && args.seconds > 0, "--leaves and --seconds take numbers above zero");
    match args.soak {
        Some(minutes) => soak(args, minutes),
        None => contest(args),
    }
}

fn contest(args: &BranchesArgs) -> anyhow::Result<ExitCode> {
    let contest = Contest {
        keys: args.keys,
        round_trip: Duration::from_micros(args.round_trip_us),
        lasts: Duration::from_secs(args.seconds),
        clients: args.clients.clone(),
        leaves_max: args.leaves,
        ceiling_every: CEILING_EVERY,
        seed: 1,
        clock: Clock::Real,
    };
    let (paint, runs) = (Paint::for_stdout(), contest.runs());
    let mut done = 0;
    let all = contest.run(|load, control, outcome| {
        done += 1;
        let place = paint.dim(&format!("{done:>3}/{runs}"));
        let rate = paint.bold(&format!("{:>8.0}/s", outcome.throughput()));
        println!(
            "{place} {:<22} {:<13} {:>5} clients {rate}  {} aborted",
            load.name(),
            control.name(),
            outcome.clients,
            outcome.aborted
        );
    });
    let table = table(&all);
    println!("\n{table}");
    if let Some(file) = &args.record {
        let head = format!(
            "# Branch on conflict, locking, and optimistic control\n\nEach control at its best number of \
             clients (of {:?}), {} s a run,\nround trip {} us, {} keys, at most {} leaves. \
             Measured by `ensue bench branches`;\n[branch-reference.md](../branch-reference.md) describes the \
             method.\n\n",
            args.clients, args.seconds, args.round_trip_us, args.keys, args.leaves
        );
        write(file, &(head + &table), &plot::contest(&all))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn soak(args: &BranchesArgs, minutes: u64) -> anyhow::Result<ExitCode> {
    let mut runs = Vec::new();
    for ceiling_every in [CEILING_EVERY, 0] {
        let soak = Soak {
            keys: args.keys,
            clients: SOAK_CLIENTS,
            round_trip: Duration::from_micros(args.round_trip_us),
            lasts: Duration::from_secs(60 * minutes),
            leaves_max: args.leaves,
            ceiling_every,
            seed: 1,
        };
        println!("{}", if ceiling_every > 0 { "with ceilings" } else { "without ceilings" });
        let samples = soak.run(|sample| {
            if sample.second % 5 == 0 {
                let (states, records) = (sample.states, sample.records);
                print!(
                    "\r{:>5} s {:>10} committed {states:>9} states {records:>9} versions",
                    sample.second, sample.committed
                );
                std::io::stdout().flush().ok();
            }
        });
        println!();
        runs.push(samples);
    }
    let mut table = String::from("| | second | committed | states | versions |\n|---|--:|--:|--:|--:|\n");
    for (name, samples) in ["with ceilings", "without"].into_iter().zip(&runs) {
        for place in [samples.len() / 4, samples.len() / 2, samples.len().saturating_sub(1)] {
            let Some(sample) = samples.get(place) else { continue };
            let (second, states, records) = (sample.second, sample.states, sample.records);
            table += &format!("| {name} | {second} | {} | {states} | {records} |\n", sample.committed);
        }
    }
    println!("\n{table}");
    if let Some(file) = &args.record {
        let head = format!(
            "# What branches keep, with ceilings and without\n\n{SOAK_CLIENTS} clients, write-heavy, Zipfian, {} \
             keys, a ceiling every {CEILING_EVERY} transactions of a client, at\nmost {} leaves. Measured by \
             `ensue bench branches --soak {minutes}`.\n\n",
            args.keys, args.leaves
        );
        write(file, &(head + &table), &plot::soak(&runs[0], &runs[1]))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn write(file: &Path, text: &str, picture: &str) -> anyhow::Result<()> {
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
    let beside = file.with_extension("svg");
    fs::write(&beside, picture).with_context(|| format!("cannot write {}", beside.display()))
}
