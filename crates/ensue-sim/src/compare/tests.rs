//! Tests that the counters count: tiny runs of protocols that differ in what they do.

use super::load::Demand;
use super::stopwatch::Stopwatch;
use super::{Contestant, Span, clock, watch};
use crate::compare::cost::Cost;
use std::sync::atomic::{AtomicU64, Ordering};

const SPAN: Span = Span { warmup_us: 3_000_000, counted_us: 1_000_000 };

fn contestant(protocol: &'static str, dependency_cleaning: bool) -> Contestant {
    Contestant { protocol, dependency_cleaning }
}

fn cost(protocol: &'static str, dependency_cleaning: bool) -> Cost {
    watch(&contestant(protocol, dependency_cleaning), 1, Demand::default(), SPAN).unwrap()
}

#[test]
fn a_protocol_without_causality_costs_nothing_beyond_its_updates() {
    let cost = cost("eventual", true);
    assert!(cost.counts.updates > 100, "{cost:?}");
    assert_eq!((cost.counts.dependency_bytes, cost.counts.dependencies), (0, 0));
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
    assert_eq!(all.len(), ensue_protocol::NAMES.len() + 1);
    assert_eq!(all[0].protocol, super::BASE);
    let names: Vec<String> =
        Contestant::of(&["orbe-dm".to_owned()]).unwrap().iter().map(Contestant::name).collect();
    assert_eq!(names, ["eventual", "orbe-dm", "orbe-dm, no cleaning"]);
    assert!(Contestant::of(&["none".to_owned()]).is_err());
}
