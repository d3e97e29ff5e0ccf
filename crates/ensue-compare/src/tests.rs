//! Tests that the counters count: tiny runs of protocols that differ in what they do.

use super::demand::{Demand, LOADS};
use super::table::{Row, Throughput, table};
use super::{Contestant, Span, chart, clock, watch};
use crate::cost::Cost;
use ensue_sim::stopwatch::Stopwatch;
use std::sync::atomic::{AtomicU64, Ordering};

const SPAN: Span = Span { warmup_us: 3_000_000, counted_us: 1_000_000 };

fn contestant(protocol: &'static str, dependency_cleaning: bool) -> Contestant {
    Contestant { protocol, dependency_cleaning }
}

fn cost(protocol: &'static str, dependency_cleaning: bool) -> Cost {
    cost_of(protocol, dependency_cleaning, Demand::default())
}

fn cost_of(protocol: &'static str, dependency_cleaning: bool, demand: Demand) -> Cost {
    watch(&contestant(protocol, dependency_cleaning), 1, demand, SPAN).unwrap()
}

#[test]
fn a_protocol_without_causality_costs_nothing_beyond_its_updates() {
    let cost = cost("eventual", true);
    assert!(cost.counts.updates > 100, "{cost:?}");
    assert_eq!((cost.counts.dependency_bytes, cost.counts.dependencies), (0, 0));
    assert_eq!(cost.counts.previous_bytes, 0);
    assert_eq!((cost.counts.checks, cost.counts.times), Default::default());
    assert!(cost.counts.all.between > 2 * cost.counts.updates);
    assert!(cost.single_reads.of > 1_000 && cost.values_of_several.of > 500, "{cost:?}");
    assert_eq!((cost.single_reads.stale, cost.waited, cost.unfound), (0, 0, 0));
    assert!(!cost.delays_us.is_empty());
}

#[test]
fn lists_are_checked_and_fewer_of_them_where_they_are_cleaned() {
    let (cleaned, all) = (cost("orbe-dm", true), cost("orbe-dm", false));
    assert!(all.counts.questions > 0 && all.counts.dependencies > all.counts.updates, "{all:?}");
    // Every question was within a datacenter, and all but those on their way were answered.
    assert_eq!(all.counts.checks.between, 0);
    let answers = all.counts.checks.within - all.counts.questions;
    assert!(answers.abs_diff(all.counts.questions) < 50, "{:?}", all.counts);
    assert!(cleaned.counts.dependencies < all.counts.dependencies);
    assert!(cleaned.counts.questions < all.counts.questions);
    assert_eq!(all.counts.times, Default::default());
    // Almost every key was there before: an operation of 16 bytes, and what it is.
    assert!(all.counts.previous_bytes > 12 * all.counts.updates, "{:?}", all.counts);
    assert!(all.counts.previous_bytes <= 17 * all.counts.updates, "{:?}", all.counts);
}

#[test]
fn cleaning_leaves_next_to_nothing_to_check_where_reads_are_spread_and_writes_are_at_home() {
    let spread = Demand::by_name("spread").unwrap();
    let (cleaned, all) = (cost_of("orbe-dm", true, spread), cost_of("orbe-dm", false, spread));
    assert!(cleaned.counts.updates > 100, "{cleaned:?}");
    assert!(10 * cleaned.counts.questions < all.counts.questions, "{cleaned:?} {all:?}");
    assert!(cleaned.counts.dependency_bytes < all.counts.dependency_bytes / 2, "{cleaned:?} {all:?}");
}

#[test]
fn loads_differ_in_what_they_ask() {
    let [read_heavy, balanced, _] = LOADS.map(|demand| cost_of("eventual", true, demand));
    let gets_each = |cost: &Cost| cost.single_reads.of / cost.counts.updates;
    assert!(gets_each(&read_heavy) >= 25 && gets_each(&balanced) <= 1, "{read_heavy:?} {balanced:?}");
    assert_eq!(Demand::by_name("read-heavy"), Some(Demand::default()));
    assert_eq!(Demand::by_name("other"), None);
}

#[test]
fn table_and_picture_have_a_line_for_each_row() {
    let throughput = Throughput { median: 0.5, least: 0.4, most: 0.6 };
    let name = "a protocol".to_owned();
    let row = Row { name, cost: cost("eventual", true), node_us: 2.0, throughput };
    let text = table(std::slice::from_ref(&row));
    assert_eq!(text.lines().count(), 3);
    assert!(text.lines().last().unwrap().starts_with("| a protocol |       0.50 | 0.40–0.60 |"), "{text}");
    let picture = chart::svg("a title", &[("one", vec![row.clone()]), ("two", vec![row.clone(), row])]);
    assert_eq!(picture.matches(">a protocol</text>").count(), 3);
    assert_eq!(picture.matches("<rect").count(), picture.matches("/>").count());
    assert!(!picture.contains("NaN") && picture.ends_with("</svg>\n"));
}

#[test]
fn what_waits_until_it_is_stable_is_late_and_stale() {
    let (late, soon) = (cost("cure", true), cost("pocc", true));
    assert!(late.counts.times.within > 0 && late.counts.times.between > 0);
    assert_eq!((late.dependencies(), late.counts.checks), (None, Default::default()));
    assert!(late.delay_ms(50) > soon.delay_ms(50), "{:?} {:?}", late.delay_ms(50), soon.delay_ms(50));
    assert!(late.single_reads.stale > 0 && soon.single_reads.stale == 0);
    assert!(soon.waited > 0 && soon.waited_us > 0);
}

#[test]
fn a_stopwatch_reads_its_clock_around_each_call_of_a_node() {
    static TICKS: AtomicU64 = AtomicU64::new(0);
    // Each reading is one nanosecond later, so that each call takes one.
    let tick = || TICKS.fetch_add(1, Ordering::Relaxed);
    let spent =
        clock(&contestant("eventual", true), 1, Demand::default(), SPAN, Stopwatch::new(tick, 0)).unwrap();
    // A request, its answer, and the ends of turns: some calls each.
    assert!((2.0..40.0).contains(&spent), "{spent}");
}

#[test]
fn the_base_comes_first_and_unknown_names_are_refused() {
    let all = Contestant::of(&[]).unwrap();
    assert_eq!(all.len(), ensue_protocol::NAMES.len() + 2);
    assert_eq!(all[0].protocol, super::BASE);
    let names: Vec<String> =
        Contestant::of(&["orbe-dm".to_owned()]).unwrap().iter().map(Contestant::name).collect();
    assert_eq!(names, ["eventual", "orbe-dm", "orbe-dm, no cleaning"]);
    assert!(Contestant::of(&["none".to_owned()]).is_err());
}
