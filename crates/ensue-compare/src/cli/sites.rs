//! `ensue compare --sites`: a branching keyspace in one datacenter, in two, in three, with a table and a picture.

use super::{CompareOptions, made_by, median, reading_ns, thread_ns, written_record};
use crate::Span;
use crate::sites::{SITES_MAX, Scale, chart, run as scale_of, table};
use ensue_sim::stopwatch::Stopwatch;

/// Virtual time before anything is counted.
const WARMUP_US: u64 = 5_000_000;
const SEED: u64 = 1;

/// The exit code: 0 all is well, 1 something failed, 2 the command line makes no sense.
pub fn run(options: &CompareOptions) -> i32 {
    let span = Span { warmup_us: WARMUP_US, counted_us: 1_000_000 * options.seconds };
    let mut rounds: Vec<Vec<Scale>> = Vec::new();
    for round in 1..=options.rounds {
        let stopwatch = Stopwatch::new(thread_ns, reading_ns());
        match (1..=SITES_MAX).map(|sites| scale_of(sites, SEED, span, stopwatch)).collect() {
            Ok(scales) => rounds.push(scales),
            Err(why) => {
                eprintln!("{why}");
                return 1;
            }
        }
        eprintln!("processor time: {round} of {}", options.rounds);
    }
    let scales = medians(rounds);
    println!("{}", table::table(&scales));
    let made_by = made_by(options.commit.as_deref());
    let (seconds, rounds) = (options.seconds, options.rounds);
    let text = format!(
        "{made_by} Only node time and capacity depend on it.\n\n{seconds} virtual seconds are counted, in each of {rounds} rounds.\n\n{}\n{LEGEND}",
        table::table(&scales)
    );
    let title = "A branching keyspace in more datacenters";
    match written_record(options, title, &text, &chart::svg(title, &scales)) {
        Ok(()) => 0,
        Err(why) => {
            eprintln!("{why}");
            1
        }
    }
}

/// All rounds show the same but for the processor time: of that the median.
fn medians(mut rounds: Vec<Vec<Scale>>) -> Vec<Scale> {
    let mut scales = rounds.pop().unwrap_or_default();
    for (index, scale) in scales.iter_mut().enumerate() {
        let others = rounds.iter().map(|round| round[index].spent_ns as f64);
        scale.spent_ns = median(others.chain([scale.spent_ns as f64]).collect()) as u64;
    }
    scales
}

/// What the columns mean.
pub const LEGEND: &str = include_str!("sites/legend.md");
