//! The `sim` subcommand: many seeds, one seed, a script, or the table of broken rules.
//!
//! The only part of the crate that knows threads and real time; neither reaches a simulated world.

mod breaks;
mod failure;
mod hashes;
mod many;
mod total;

use crate::protocols;
use crate::rules::{NOT_BREAKABLE, Rules};
use crate::run::{Report, run as run_world, to_screen};
use crate::world::options::Options;
use ensue_types::Rule;
use std::path::PathBuf;
use total::Total;

/// What the command line says.
#[derive(Clone, Debug, Default)]
pub struct SimOptions {
    /// Run so many seeds from `start` on.
    pub seeds: Option<u64>,
    /// Run this seed and tell everything about it.
    pub seed: Option<u64>,
    /// Run this script, or every script of this directory.
    pub scenario: Option<PathBuf>,
    pub start: u64,
    /// Run seeds for so long, or until `seeds` of them are done.
    pub minutes: Option<u64>,
    /// Many seeds do not end with the first that fails.
    pub keep_going: bool,
    /// Add a row about a run of many seeds to this file, under the name of this commit. Of broken rules it is the whole
    /// page.
    pub record: Option<PathBuf>,
    pub commit: Option<String>,
    /// Every seed with this protocol instead of the one that it draws; scripts only with it. `each` is all of them in
    /// turn.
    pub protocol: Option<String>,
    /// In each seed a datacenter is lost for good.
    pub losing: bool,
    /// In each seed directories of a datacenter are lost, exchanged, or replaced by old copies.
    pub losing_directories: bool,
    /// In each seed the last datacenter is added while clients work.
    pub joining: bool,
    /// In each seed the last datacenter is removed while clients work.
    pub retiring: bool,
    /// In each seed keys have a home, which moves while clients work.
    pub moving_homes: bool,
    /// Partitions are on three cores each.
    pub replicas: bool,
    /// In each seed clocks run far ahead, and operators give their datacenters other times.
    pub wild_clocks: bool,
    /// Break the rule of this name.
    pub broken: Option<String>,
    /// Break these rules in turn, all of them if none is named, and say how soon each is caught.
    pub breaks: Option<Vec<String>>,
    /// Compare the event hashes of every protocol with those of this file, or write it where it is missing.
    pub hashes: Option<PathBuf>,
    /// Print each event of a seed, one line.
    pub trace: bool,
    /// Threads; 0 means one a core.
    pub threads: usize,
    /// Where a failing run leaves its directory; `ensue-sim-failures` if nothing is said.
    pub out: Option<PathBuf>,
    /// A failing run is shrunk for at most so long; 0 is not at all.
    pub shrink_seconds: u64,
}

/// Runs the subcommand. The exit code: 0 all is well, 1 a violation, 2 the command line makes no sense.
pub fn run(options: &SimOptions) -> i32 {
    run_counted(options, &mut Total::default())
}

fn run_counted(options: &SimOptions, total: &mut Total) -> i32 {
    if options.breaks.is_some() && !Rule::BREAKABLE {
        eprintln!("{NOT_BREAKABLE}");
        return 2;
    }
    let rules = match rules_without(options.broken.as_deref()) {
        Ok(rules) => rules,
        Err(code) => return code,
    };
    if let Some(path) = &options.hashes {
        return hashes::run(path, options);
    }
    if options.protocol.as_deref() == Some(EACH) && options.seed.is_none() {
        return each_protocol(options);
    }
    if let Some(Err(why)) = options.protocol.as_deref().map(protocols::find) {
        eprintln!("{why}");
        return 2;
    }
    if let Some(names) = &options.breaks {
        return breaks::table(options, names);
    }
    if let Some(path) = &options.scenario {
        let rules = options.broken.is_some().then_some(rules);
        return crate::script::run_files(path, rules, options.protocol.as_deref(), options.trace);
    }
    match (options.seed, options.seeds) {
        (Some(seed), _) => one(seed, rules, options),
        (None, _) => many::run_many(options, rules, total),
    }
}

/// Stands for every protocol, one after the other.
const EACH: &str = "each";

/// The same with each protocol; ends with the first that fails. All together must have shown what they are meant to.
fn each_protocol(options: &SimOptions) -> i32 {
    let mut total = Total::default();
    for protocol in ensue_protocol::NAMES {
        let one = SimOptions { protocol: Some(protocol.to_owned()), ..options.clone() };
        let code = run_counted(&one, &mut total);
        if code != 0 {
            return code;
        }
    }
    let missing: Vec<String> = total.missing(options).iter().map(ToString::to_string).collect();
    if missing.is_empty() {
        return 0;
    }
    println!("never happened with any protocol: {}", missing.join(", "));
    1
}

/// Runs one seed, with the protocol that it draws unless another is named.
pub fn run_seed(seed: u64, rules: Rules, protocol: Option<&str>, print: bool) -> Report {
    run_world(options_of(seed, rules, protocol, &SimOptions::default()), print.then(to_screen))
}

/// Runs one seed as the command line says.
fn run_as(seed: u64, rules: Rules, options: &SimOptions, print: bool) -> Report {
    let drawn = options_of(seed, rules, options.protocol.as_deref(), options);
    run_world(drawn, print.then(to_screen))
}

fn options_of(seed: u64, rules: Rules, protocol: Option<&str>, options: &SimOptions) -> Options {
    let drawn = match protocol {
        Some(protocol) => Options::draw_with(seed, rules, protocol),
        None => Options::draw(seed, rules),
    };
    let drawn = if options.wild_clocks { drawn.wild_clocks() } else { drawn };
    let drawn = if options.losing { drawn.losing() } else { drawn };
    let drawn = if options.losing_directories { drawn.losing_directories() } else { drawn };
    let drawn = if options.joining { drawn.joining() } else { drawn };
    let drawn = if options.retiring { drawn.retiring() } else { drawn };
    let drawn = if options.moving_homes { drawn.moving_homes() } else { drawn };
    if options.replicas { drawn.replicated() } else { drawn }
}

/// The line that replays a seed.
pub fn replay_line(report: &Report) -> String {
    let options = &report.options;
    let protocol = options.says_protocol().then(|| format!(" --protocol {}", options.protocol.name));
    let broken = options.rules.broken().map(|rule| format!(" --break {}", rule.name()));
    let losing = match (options.says_losing(), options.says_losing_directories()) {
        (_, true) => " --losing-directories",
        (true, false) => " --losing",
        (false, false) => "",
    };
    let replicas = if options.says_replicated() { " --replicas" } else { "" };
    let joining = if options.says_joining() { " --joining" } else { "" };
    let retiring = if options.says_retiring() { " --retiring" } else { "" };
    let moving = if options.says_moving_homes() { " --moving-homes" } else { "" };
    let wild = if options.says_wild_clocks() { " --wild-clocks" } else { "" };
    let (protocol, broken) = (protocol.unwrap_or_default(), broken.unwrap_or_default());
    let growth = format!("{joining}{retiring}{moving}");
    format!("ensue sim --seed {}{protocol}{wild}{losing}{growth}{replicas}{broken}", options.seed)
}

fn one(seed: u64, rules: Rules, options: &SimOptions) -> i32 {
    let protocol = options.protocol.as_deref();
    println!("{}", options_of(seed, rules, protocol, options));
    let report = run_as(seed, rules, options, options.trace);
    print!("{}", report.plan.until(report.virtual_us));
    println!("operations      {}", report.operations);
    println!("stale reads     {}", report.stale_reads);
    println!("events          {}", report.events);
    println!("virtual time    {:.3} s", report.virtual_us as f64 / 1e6);
    print!("{}", report.marks.table(&[report.options.promises()]));
    println!("event hash      {:016x}", report.hash);
    failure::tell(&report, options);
    i32::from(report.violation.is_some())
}

/// All rules but the one of this name. The error, which was told, is the exit code.
pub fn rules_without(broken: Option<&str>) -> Result<Rules, i32> {
    let Some(name) = broken else { return Ok(Rules::default()) };
    if !Rule::BREAKABLE {
        eprintln!("{NOT_BREAKABLE}");
        return Err(2);
    }
    find_rule(name).map(Rules::breaking).ok_or_else(|| unknown_rule(name))
}

fn find_rule(name: &str) -> Option<Rule> {
    Rule::ALL.into_iter().find(|rule| rule.name() == *name)
}

fn unknown_rule(name: &str) -> i32 {
    eprintln!("there is no rule {name}; the rules are:");
    for rule in Rule::ALL {
        eprintln!("  {}", rule.name());
    }
    2
}
