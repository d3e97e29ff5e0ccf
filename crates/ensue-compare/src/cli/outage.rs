//! `ensue compare --cut`: every protocol through an outage of a datacenter's links, with a table and a picture.

use super::{CompareOptions, made_by, written_record};
use crate::Contestant;
use crate::outage::{Course, Outage, chart, run as course_of, table};

const CUT_MAX: u64 = 600;
/// Virtual seconds before the cut and after it.
const BEFORE: u64 = 10;
const AFTER: u64 = 30;
const SEED: u64 = 1;

/// The exit code: 0 all is well, 1 something failed, 2 the command line makes no sense.
pub fn run(options: &CompareOptions, contestants: &[Contestant], cut: u64) -> i32 {
    if !(1..=CUT_MAX).contains(&cut) {
        eprintln!("not between 1 and {CUT_MAX} seconds of a cut: {cut}");
        return 2;
    }
    let outage = Outage { before: BEFORE, cut, after: AFTER };
    let mut courses: Vec<Course> = Vec::new();
    for contestant in contestants {
        match course_of(contestant, SEED, outage) {
            Ok(course) => courses.push(course),
            Err(why) => {
                eprintln!("{}: {why}", contestant.name());
                return 1;
            }
        }
        eprintln!("{}: {} virtual seconds", contestant.name(), outage.seconds());
    }
    let words = format!(
        "The links of one of three datacenters are cut after {BEFORE} s, for {cut} s, and {AFTER} s follow."
    );
    println!("{words}\n\n{}", table::table(&courses));
    let made_by = made_by(options.commit.as_deref());
    let text =
        format!("{made_by} No number depends on it.\n\n{words}\n\n{}\n{LEGEND}", table::table(&courses));
    let picture = chart::svg("A datacenter's links cut under load", &courses);
    match written_record(options, "A link cut under load", &text, &picture) {
        Ok(()) => 0,
        Err(why) => {
            eprintln!("{why}");
            1
        }
    }
}

/// What the columns mean.
pub const LEGEND: &str = include_str!("outage/legend.md");
