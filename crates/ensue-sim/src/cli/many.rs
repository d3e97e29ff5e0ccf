//! Many seeds on all cores: a progress line, the first failure in the order of seeds, and the marks.

use super::{SimOptions, failure, run_seed};
use crate::marks::Marks;
use crate::run::Report;
use ensue_types::Rules;
use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// From this many seeds on every required mark must have been hit.
const SEEDS_FOR_MARKS: u64 = 1_000;

#[derive(Default)]
struct Sum {
    marks: Marks,
    seeds: u64,
    operations: u64,
    events: u64,
    virtual_us: u64,
    failed: Option<Report>,
}

pub(super) fn threads(options: &SimOptions) -> usize {
    match options.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    }
}

pub(super) fn run_many(options: &SimOptions, rules: Rules, seeds: u64) -> i32 {
    let next = AtomicU64::new(options.start);
    let end = options.start + seeds;
    let sum = Mutex::new(Sum::default());
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads(options) {
            scope.spawn(|| worker(&next, end, rules, &sum, began));
        }
    });
    let sum = match sum.into_inner() {
        Ok(sum) => sum,
        Err(poisoned) => poisoned.into_inner(),
    };
    if std::io::stderr().is_terminal() {
        eprintln!();
    }
    report(&sum, options, seeds, began)
}

fn worker(next: &AtomicU64, end: u64, rules: Rules, sum: &Mutex<Sum>, began: Instant) {
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= end {
            return;
        }
        let one = run_seed(seed, rules, false);
        let Ok(mut sum) = sum.lock() else { return };
        sum.marks.join(&one.marks);
        sum.seeds += 1;
        sum.operations += one.operations;
        sum.events += one.events;
        sum.virtual_us += one.virtual_us;
        if one.violation.is_some() {
            // The others finish the seeds below this one, so that the first failure is the same every time.
            next.fetch_max(end, Ordering::Relaxed);
            if sum.failed.as_ref().is_none_or(|failed| failed.options.seed > seed) {
                sum.failed = Some(one);
            }
        }
        if std::io::stderr().is_terminal() && sum.seeds % 20 == 0 {
            let rate = sum.seeds as f64 / began.elapsed().as_secs_f64();
            eprint!("\r{} seeds, {rate:.1} seeds/s, {} operations ", sum.seeds, sum.operations);
            let _ = std::io::stderr().flush();
        }
    }
}

fn report(sum: &Sum, options: &SimOptions, seeds: u64, began: Instant) -> i32 {
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{} seeds, {} operations, {} events, {:.0} s of virtual time in {seconds:.1} s",
        sum.seeds,
        sum.operations,
        sum.events,
        sum.virtual_us as f64 / 1e6
    );
    if let Some(report) = &sum.failed {
        println!("seed            {}", report.options.seed);
        failure::tell(report, options);
        return 1;
    }
    print!("{}", sum.marks);
    let missing = sum.marks.missing();
    if seeds >= SEEDS_FOR_MARKS && !missing.is_empty() {
        println!("never happened: {}", missing.iter().map(|m| m.to_string()).collect::<Vec<_>>().join(", "));
        return 1;
    }
    0
}
