//! Elements that are handed to clients which wait: each is counted once, and ends when the pop is answered.

use super::fake::{Fake, Habits, Pops};
use super::runs::{done, failures, plan};
use crate::answer::Failure;
use crate::error::LoadError;
use crate::pace::{Arrivals, Pace};
use crate::run::{Bound, Plan, run};
use std::time::Duration;

#[test]
fn every_element_arrives_at_the_client_that_waits() {
    for (mix, pipeline) in [("handover", 1), ("handover", 8), ("handover=1,get=3,set=1", 4)] {
        let fake = Fake::start(Habits::default());
        let report = done(&Plan { pipeline, ..plan(&fake, mix) });
        assert_eq!(failures(&report), [], "{mix}");
        let total = &report.outcomes[0].total;
        assert_eq!((total.completed, total.latency.len(), total.misses), (2_000, 2_000, 0), "{mix}");
    }
}

#[test]
fn an_element_that_is_pushed_and_not_popped_is_not_handed_over() {
    let fake = Fake::start(Habits { pops: Pops::Forgotten, ..Habits::default() });
    let (bound, drain) = (Bound::Time(Duration::from_millis(300)), Duration::from_millis(100));
    let report = done(&Plan { bound, drain, ..plan(&fake, "handover") });
    assert_eq!((failures(&report), report.outcomes[0].total.completed), (vec![(Failure::Unanswered, 4)], 0));
}

#[test]
fn a_server_that_lets_nobody_wait_fails_with_what_it_says() {
    let fake = Fake::start(Habits { pops: Pops::Refused, ..Habits::default() });
    let report = done(&plan(&fake, "handover"));
    assert_eq!(failures(&report), [(Failure::Error("NOWAIT".into()), 4)]);
    assert!(report.table().contains("NOWAIT pops that wait are refused"));
    let fake = Fake::start(Habits { lacks: &["BLPOP"], ..Habits::default() });
    let error = run(&plan(&fake, "handover"), |_| {}).expect_err("nobody can wait");
    assert!(matches!(error, LoadError::Unsupported { command: "BLPOP", .. }));
}

#[test]
fn a_push_that_is_refused_fails_and_the_next_is_handed_over() {
    for pipeline in [1, 8] {
        let fake = Fake::start(Habits { refuse_every: Some(4), ..Habits::default() });
        let report = done(&Plan { pipeline, ..plan(&fake, "handover") });
        assert_eq!(failures(&report), [(Failure::Error("OOM".into()), 500)]);
        assert_eq!(report.outcomes[0].total.latency.len(), 1_500);
    }
}

#[test]
fn elements_of_a_connection_that_breaks_are_counted_once() {
    let fake = Fake::start(Habits { hang_up_after: Some(500), ..Habits::default() });
    let pace = Pace::Open { rate: 4_000.0, arrivals: Arrivals::Constant };
    let report = done(&Plan { pace, bound: Bound::Operations(1_000), ..plan(&fake, "handover") });
    let outcome = &report.outcomes[0];
    assert!(outcome.failures.total() >= 500);
    assert_eq!(outcome.total.latency.len() + outcome.failures.total(), 1_000);
}

#[test]
fn two_stores_that_are_one_do_not_take_each_other_s_elements() {
    let fake = Fake::start(Habits::default());
    let against = vec![fake.url().parse().unwrap()];
    let bound = Bound::Time(Duration::from_millis(600));
    let report = done(&Plan { against, bound, ..plan(&fake, "handover") });
    assert_eq!((report.failed(), report.comparison.expect("they took turns").slices.len()), (0, 3));
}
