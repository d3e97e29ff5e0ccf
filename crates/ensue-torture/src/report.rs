//! What a run tells: a line a round while it goes, and a summary that can be kept.

use crate::Args;
use crate::fault::{Means, Weather};
use crate::judge::BranchCounts;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{IsTerminal, Write, stdout};
use std::time::{Duration, Instant};

/// What became of one round.
#[derive(Debug)]
pub struct RoundReport {
    pub number: u64,
    pub weather: Weather,
    /// Transactions in the history, final reads included.
    pub transactions: u64,
    /// Those of unknown outcome, and how many of them were seen later.
    pub unknown: (u64, u64),
    /// Answers that were errors, and connections that broke.
    pub errors: u64,
    pub samples: Vec<String>,
    /// What clients of branches did.
    pub branches: BranchCounts,
    pub faults: BTreeMap<&'static str, u64>,
    pub took: Duration,
    pub violation: Option<String>,
}

/// The whole run.
#[derive(Debug)]
pub struct Report {
    began: Instant,
    rounds: u64,
    transactions: u64,
    unknown: (u64, u64),
    branches: BranchCounts,
    errors: u64,
    faults: BTreeMap<&'static str, u64>,
    violation: Option<String>,
    colours: bool,
}

impl Report {
    /// Says what the machine allows, because what it does not allow is not tested.
    pub fn begin(args: &Args, means: Means) -> Report {
        let said = |possible| if possible { "yes" } else { "NO, so these faults are left out" };
        println!("seed {}, protocol {}, appendfsync {}", args.seed, protocol(args), args.appendfsync);
        println!("  kills and errors at the N-th system call (strace): {}", said(means.strace));
        println!("  packets dropped by the kernel (network namespaces): {}", said(means.namespaces));
        println!("  a full disk (a small file system in memory):        {}", said(means.small_disk));
        Report {
            began: Instant::now(),
            rounds: 0,
            transactions: 0,
            unknown: (0, 0),
            branches: BranchCounts::default(),
            errors: 0,
            faults: BTreeMap::new(),
            violation: None,
            colours: stdout().is_terminal(),
        }
    }

    pub fn add(&mut self, round: RoundReport) {
        self.rounds += 1;
        self.transactions += round.transactions;
        self.errors += round.errors;
        self.branches.commands += round.branches.commands;
        self.branches.judged += round.branches.judged;
        self.unknown.0 += round.unknown.0;
        self.unknown.1 += round.unknown.1;
        for (name, count) in &round.faults {
            *self.faults.entry(name).or_insert(0) += count;
        }
        let faults: Vec<String> =
            round.faults.iter().map(|(name, count)| format!("{count} {name}")).collect();
        let verdict =
            if round.violation.is_none() { self.colour(32, "ok") } else { self.colour(31, "VIOLATED") };
        println!(
            "round {:>3}  {verdict}  {:<10} {:>7} transactions, {:>6} on branches, {:>4} errors, {:>4.1} s: {}",
            round.number,
            format!("{:?}", round.weather).to_lowercase(),
            round.transactions,
            round.branches.commands,
            round.errors,
            round.took.as_secs_f64(),
            faults.join(", ")
        );
        if let Some(violation) = round.violation {
            round.samples.iter().for_each(|sample| println!("    {sample}"));
            self.violation = Some(violation);
        }
    }

    fn colour(&self, code: u8, words: &str) -> String {
        if self.colours { format!("\x1b[{code}m{words}\x1b[0m") } else { words.to_owned() }
    }

    /// Prints the summary, and keeps it where asked. True if nothing was violated.
    pub fn finish(self, args: &Args) -> Result<bool> {
        println!(
            "\n{} rounds, {} transactions of recorded clients, {} errors answered or connections lost, {:.0} s",
            self.rounds,
            self.transactions,
            self.errors,
            self.began.elapsed().as_secs_f64()
        );
        let (unknown, seen) = self.unknown;
        println!(
            "of {unknown} transactions nobody knows whether they were done; {seen} were seen, and judged as done"
        );
        println!(
            "{} commands on branches; {} answers were compared with what must stand there",
            self.branches.commands, self.branches.judged
        );
        for (name, count) in &self.faults {
            println!("{count:>8}  {name}");
        }
        match &self.violation {
            None => println!("{}", self.colour(32, "no promise was broken")),
            Some(words) => println!("{}\n{words}", self.colour(31, "VIOLATED")),
        }
        if let Some(path) = &args.record {
            let mut file = File::options().create(true).append(true).open(path);
            let file = file.as_mut().map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
            let faults: Vec<String> =
                self.faults.iter().map(|(name, count)| format!("{name} {count}")).collect();
            writeln!(
                file,
                "| {} | {} | {} | {} | {:.0} s | {} | {} | {} | {} |",
                args.seed,
                protocol(args),
                args.appendfsync,
                args.broken.as_deref().unwrap_or("none"),
                self.began.elapsed().as_secs_f64(),
                self.rounds,
                self.transactions,
                faults.join(", "),
                if self.violation.is_some() { "violated" } else { "clean" }
            )
            .with_context(|| format!("writing {}", path.display()))?;
        }
        Ok(self.violation.is_none())
    }
}

fn protocol(args: &Args) -> &str {
    args.protocol.as_deref().unwrap_or("default")
}
