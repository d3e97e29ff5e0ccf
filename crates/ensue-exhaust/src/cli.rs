//! `ensue sim --exhaust`: every interleaving of the tiny worlds, with what was visited and how long it took.

use crate::{Case, Census, case, explore};
use ensue_sim::rules::Rules;
use std::io::{IsTerminal, Write, stderr};
use std::time::Instant;

/// Visits the case of this name, or all. The exit code: 1 if a violation was found, or if something was left out.
pub fn run(name: Option<&str>, rules: Rules, states_max: u64) -> i32 {
    let cases = case::named(name);
    if cases.is_empty() {
        eprintln!("there is no such case; the cases are:");
        case::named(None).iter().for_each(|case| eprintln!("  {:<24} {}", case.name, case.words));
        return 2;
    }
    println!(
        "{:<24} {:>10} {:>12} {:>9} {:>10} {:>6} {:>8}",
        "case", "states", "transitions", "ends", "executions", "depth", "seconds"
    );
    let mut good = true;
    let mut states = 0;
    for case in cases {
        let started = Instant::now();
        let census = explore(case, rules, states_max, &mut |census| progress(case, census, started));
        clear_line();
        print_line(case, &census, started.elapsed().as_secs_f64());
        good &= census.complete && census.found.is_none();
        states += census.states;
    }
    println!("{states} states");
    i32::from(!good)
}

/// On a terminal, a line that is overwritten. How many states there are nobody knows before the end.
fn progress(case: &Case, census: &Census, started: Instant) {
    if stderr().is_terminal() {
        let rate = census.states as f64 / started.elapsed().as_secs_f64();
        let Census { states, ends, .. } = census;
        let _ = write!(
            stderr(),
            "\r\x1b[K\x1b[36m{}\x1b[0m {states} states, {rate:.0}/s, {ends} ends judged",
            case.name
        );
    }
}

fn clear_line() {
    if stderr().is_terminal() {
        let _ = write!(stderr(), "\r\x1b[K");
    }
}

fn print_line(case: &Case, census: &Census, seconds: f64) {
    println!(
        "{:<24} {:>10} {:>12} {:>9} {:>10.2e} {:>6} {:>8.1}",
        case.name, census.states, census.transitions, census.ends, census.executions, census.depth, seconds
    );
    if let Some(found) = &census.found {
        println!("VIOLATION {}", found.violation);
        found.steps.iter().enumerate().for_each(|(number, step)| println!("{:>4}  {step}", number + 1));
    } else if !census.complete {
        println!("not complete: the bound on states was reached");
    }
}
