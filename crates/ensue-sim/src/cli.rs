//! The `sim` subcommand: many seeds, one seed, a script, or the table of broken rules.
//!
//! The only part of the crate that knows threads and real time; neither reaches a simulated world.

mod breaks;
mod exhaust;
mod many;

use crate::faults::Plan;
use crate::oracle::{Violation, property};
use crate::run::{Report, run as run_world};
use crate::seed::Options;
use ensue_types::{Rule, Rules};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Once;

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
    /// Break the rule of this name.
    pub broken: Option<String>,
    /// Break these rules in turn, all of them if none is named, and say how soon each is caught.
    pub breaks: Option<Vec<String>>,
    /// Print each event of a seed, one line.
    pub trace: bool,
    /// Threads; 0 means one a core.
    pub threads: usize,
    /// Visit every state of the tiny world of this name, or of all of them.
    pub exhaust: Option<Option<String>>,
    /// Visit no more states of one tiny world than this.
    pub states_max: u64,
}

/// Runs the subcommand. The exit code: 0 all is well, 1 a violation, 2 the command line makes no sense.
pub fn run(options: &SimOptions) -> i32 {
    let rules = match &options.broken {
        None => Rules::default(),
        Some(name) => match find_rule(name) {
            Some(rule) => Rules::breaking(rule),
            None => return unknown_rule(name),
        },
    };
    quiet_panics();
    if let Some(name) = &options.exhaust {
        return exhaust::run(name.as_deref(), rules, options.states_max);
    }
    if let Some(names) = &options.breaks {
        return breaks::table(options, names);
    }
    if let Some(path) = &options.scenario {
        return crate::script::run_files(path, options.broken.is_some().then_some(rules), options.trace);
    }
    match (options.seed, options.seeds) {
        (Some(seed), _) => one(seed, rules, options.trace),
        (None, seeds) => many::run_many(options, rules, seeds.unwrap_or(100)),
    }
}

/// Runs one seed; a panic of a node is a violation like any other.
pub fn run_seed(seed: u64, rules: Rules, print: bool) -> Report {
    let options = Options::draw(seed, rules);
    match catch_unwind(AssertUnwindSafe(|| run_world(options.clone(), print))) {
        Ok(report) => report,
        Err(payload) => {
            let words = payload
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()))
                .unwrap_or_default();
            let place = last_panic();
            Report {
                plan: Plan::draw(&options),
                options,
                violation: Some(Violation::new(property::PANIC, format!("{words}\nat {place}"))),
                marks: Default::default(),
                hash: 0,
                events: 0,
                operations: 0,
                virtual_us: 0,
            }
        }
    }
}

/// The line that replays a seed.
pub fn replay_line(report: &Report) -> String {
    let broken = report.options.rules.broken().map(|rule| format!(" --break {}", rule.name()));
    format!("ensue sim --seed {}{}", report.options.seed, broken.unwrap_or_default())
}

fn one(seed: u64, rules: Rules, trace: bool) -> i32 {
    println!("{}", Options::draw(seed, rules));
    let report = run_seed(seed, rules, trace);
    print!("{}", report.plan.until(report.virtual_us));
    println!("operations      {}", report.operations);
    println!("events          {}", report.events);
    println!("virtual time    {:.3} s", report.virtual_us as f64 / 1e6);
    print!("{}", report.marks);
    println!("event hash      {:016x}", report.hash);
    match &report.violation {
        None => 0,
        Some(violation) => {
            println!("VIOLATION       {violation}");
            1
        }
    }
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

thread_local! {
    static LAST_PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Panics of nodes are reported as violations, not printed.
fn quiet_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(|info| {
            let place = info.location().map(ToString::to_string).unwrap_or_default();
            LAST_PANIC.with(|last| last.replace(place));
        }));
    });
}

fn last_panic() -> String {
    LAST_PANIC.with(|last| last.borrow().clone())
}
