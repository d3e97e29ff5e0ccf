//! Whole runs against servers that behave, stall, refuse and hang up. Nothing is asserted of speed but what a stall
//! forces.

use super::fake::{Fake, Habits};
use crate::answer::Failure;
use crate::error::LoadError;
use crate::pace::{Arrivals, Pace};
use crate::picture;
use crate::report::Report;
use crate::run::{Bound, Plan, Preload, Progress, run};
use crate::tally::quantile_us;
use std::time::Duration;

const STALL: Duration = Duration::from_millis(100);
/// So long that a busy machine does not delay anything by as much.
const LONG_STALL: Duration = Duration::from_millis(1_000);

pub(super) fn plan(fake: &Fake, workload: &str) -> Plan {
    Plan {
        targets: vec![fake.url().parse().unwrap()],
        against: Vec::new(),
        pids: Vec::new(),
        against_pids: Vec::new(),
        workload: workload.parse().unwrap(),
        keys: 100,
        prefix: "t:".into(),
        clients: 4,
        pipeline: 1,
        threads: 2,
        pace: Pace::Closed,
        warm_up: Duration::ZERO,
        bound: Bound::Operations(2_000),
        slice: Duration::from_millis(100),
        drain: Duration::from_secs(5),
        preload: Preload::First,
        resp: 2,
        seed: 1,
    }
}

pub(super) fn done(plan: &Plan) -> Report {
    run(plan, |_| {}).unwrap()
}

pub(super) fn failures(report: &Report) -> Vec<(Failure, u64)> {
    report.outcomes[0].failures.iter().map(|(failure, count, _)| (failure.clone(), count)).collect()
}

#[test]
fn every_workload_runs_without_a_failure_and_without_a_miss() {
    let mixes = ["get=1,set=1", "mget:5=1,mset:3=1", "ycsb-a", "ycsb-c", "ycsb-d", "ycsb-e", "ycsb-f"];
    for workload in
        mixes.into_iter().chain(["eiger", "facebook", "facebook-transactions", "cops", "cops-1-4"])
    {
        let fake = Fake::start(Habits::default());
        let plan = Plan { pipeline: 3, bound: Bound::Operations(300), ..plan(&fake, workload) };
        let report = done(&plan);
        assert_eq!(failures(&report), [], "{workload}");
        let outcome = &report.outcomes[0];
        assert_eq!((outcome.total.completed, outcome.total.latency.len()), (300, 300), "{workload}");
        // A record whose insertion is under way may be looked for.
        if workload != "ycsb-d" {
            assert_eq!(outcome.total.misses, 0, "{workload}");
        }
    }
}

/// Of each type: what the longest list, stream and so on may be, whatever the number of operations is.
#[test]
fn values_stay_small_however_many_operations_there_are() {
    for (mix, of, most) in [
        // Every 64th push trims to 64, in the mean; a list that was never trimmed would have about 1,500 elements.
        ("lpush", 'L', 900),
        ("lpush=1,lpop=1,lrange=1", 'L', 300),
        ("zadd,zincrby,zrange", 'Z', 64),
        ("xadd=9,xrange=1", 'X', 100),
        ("pfadd", 'P', 256),
        ("setbit", 'S', 64),
        ("eval,incrbyfloat,incr", 'E', 0),
        ("set=2,del=1,expire=1", 'S', 0),
    ] {
        let fake = Fake::start(Habits::default());
        let plan = Plan { keys: 4, pipeline: 8, bound: Bound::Operations(6_000), ..plan(&fake, mix) };
        let report = done(&plan);
        assert_eq!(failures(&report), [], "{mix}");
        assert_eq!(report.outcomes[0].total.completed, 6_000, "{mix}");
        let largest = fake.largest().get(&of).copied().unwrap_or_default();
        assert!(largest <= most, "{mix}: {largest}");
        if !mix.contains("pop") && !mix.contains("del") {
            assert_eq!(report.outcomes[0].total.misses, 0, "{mix}");
        }
    }
}

#[test]
fn what_is_popped_deleted_or_gone_is_missed() {
    for (mix, there) in [("del", 4), ("lpop", 4 * 10)] {
        let fake = Fake::start(Habits::default());
        let plan = Plan { keys: 4, bound: Bound::Operations(1_000), ..plan(&fake, mix) };
        let report = done(&plan);
        assert_eq!(failures(&report), [], "{mix}");
        assert_eq!(report.outcomes[0].total.misses, 1_000 - there, "{mix}");
    }
    let fake = Fake::start(Habits::default());
    let report = done(&Plan { preload: Preload::None, ..plan(&fake, "lrange,zrange,xrange,expire") });
    assert_eq!((failures(&report), report.outcomes[0].total.misses), (vec![], 2_000));
}

#[test]
fn keys_are_written_before_and_none_if_not_wanted() {
    let fake = Fake::start(Habits::default());
    done(&Plan { bound: Bound::Operations(1), ..plan(&fake, "get,read") });
    assert_eq!((fake.strings(), fake.hashes()), (100, 100));
    let fake = Fake::start(Habits::default());
    let report = done(&Plan { preload: Preload::None, bound: Bound::Operations(50), ..plan(&fake, "get") });
    assert_eq!((fake.strings(), report.outcomes[0].total.misses), (0, 50));
}

#[test]
fn a_stall_shows_in_the_p99_of_an_open_loop_and_hides_in_a_closed_one() {
    // 2,000 a second: one stall of 100 ms is waited for by about 200 of 2,000 arrivals.
    let stall = Habits { stall: Some((600, STALL)), ..Habits::default() };
    let open = |arrivals| {
        let fake = Fake::start(stall.clone());
        let pace = Pace::Open { rate: 2_000.0, arrivals };
        let bound = Bound::Time(Duration::from_secs(1));
        let report = done(&Plan { pace, bound, preload: Preload::None, ..plan(&fake, "get") });
        assert_eq!(failures(&report), []);
        let total = report.outcomes.into_iter().next().unwrap().total;
        assert!((1_700..2_300).contains(&total.latency.len()), "{}", total.latency.len());
        quantile_us(&total.latency, 0.99).unwrap()
    };
    // The arrivals of the first tenth of the stall are more than one of a hundred, and wait for nine tenths of it.
    for arrivals in [Arrivals::Constant, Arrivals::Poisson] {
        let p99_us = open(arrivals);
        assert!(p99_us >= 0.6 * STALL.as_micros() as f64, "{arrivals:?}: {p99_us} us");
    }
    // In a closed loop four operations see it, whatever the number of operations.
    let fake = Fake::start(Habits { stall: Some((600, LONG_STALL)), ..Habits::default() });
    let total = &done(&Plan { preload: Preload::None, ..plan(&fake, "get") }).outcomes[0].total;
    let stalled = total.latency.count_between(LONG_STALL.as_nanos() as u64 * 9 / 10, u64::MAX >> 8);
    assert!((1..=4).contains(&stalled), "{stalled}");
}

#[test]
fn what_is_sent_late_by_a_full_connection_counts_from_its_intended_start() {
    // One connection, one operation at a time: all that is due in the stall queues in the client.
    let fake = Fake::start(Habits { stall: Some((1, STALL)), ..Habits::default() });
    let pace = Pace::Open { rate: 1_000.0, arrivals: Arrivals::Constant };
    let bound = Bound::Operations(50);
    let report = done(&Plan { clients: 1, pace, bound, preload: Preload::None, ..plan(&fake, "get") });
    let latency = &report.outcomes[0].total.latency;
    // The last is due 49 ms after the first, whose stall ends 51 ms later.
    assert_eq!(latency.len(), 50);
    assert!(latency.min() >= 40_000_000, "{}", latency.min());
    assert!(latency.max() >= STALL.as_nanos() as u64);
}

#[test]
fn the_warm_up_is_cut_off() {
    let fake = Fake::start(Habits { stall: Some((1, LONG_STALL)), ..Habits::default() });
    let (warm_up, bound) = (Duration::from_millis(300), Bound::Operations(500));
    let report = done(&Plan { warm_up, bound, preload: Preload::None, ..plan(&fake, "get") });
    let outcome = &report.outcomes[0];
    // Those that saw the stall began before.
    let stalled = outcome.total.latency.count_between(LONG_STALL.as_nanos() as u64 * 9 / 10, u64::MAX >> 8);
    assert_eq!((outcome.total.latency.len(), stalled), (500, 0));
}

#[test]
fn refusals_are_counted_by_kind_and_are_no_latencies() {
    let fake = Fake::start(Habits { refuse_every: Some(4), ..Habits::default() });
    let report = done(&Plan { preload: Preload::None, ..plan(&fake, "set") });
    assert_eq!(failures(&report), [(Failure::Error("OOM".into()), 500)]);
    assert_eq!(report.outcomes[0].total.latency.len(), 1_500);
    assert!(report.table().contains("FAILED 500: 500 times error OOM (OOM command not allowed)"));
    assert_eq!(report.json()["stores"][0]["failures"][0]["count"], 500);
}

#[test]
fn a_refused_preload_ends_the_run() {
    let fake = Fake::start(Habits { refuse_every: Some(4), ..Habits::default() });
    let error = run(&plan(&fake, "get"), |_| {}).expect_err("keys are missing");
    assert!(matches!(&error, LoadError::Preload(text) if text.contains("25 times error OOM")), "{error}");
}

#[test]
fn closed_connections_are_counted_and_what_is_due_on_them_is_not_sent() {
    let fake = Fake::start(Habits { hang_up_after: Some(500), ..Habits::default() });
    let pace = Pace::Open { rate: 4_000.0, arrivals: Arrivals::Constant };
    let bound = Bound::Operations(1_000);
    let report = done(&Plan { pace, bound, preload: Preload::None, ..plan(&fake, "get") });
    let outcome = &report.outcomes[0];
    let failed: u64 = outcome.failures.total();
    // None of a thousand is lost from the books.
    assert_eq!(outcome.total.latency.len() + failed, 1_000);
    let kinds: Vec<Failure> = failures(&report).into_iter().map(|(failure, _)| failure).collect();
    assert!(kinds.contains(&Failure::Closed) && kinds.contains(&Failure::NotSent), "{kinds:?}");
}

#[test]
fn what_is_never_answered_is_a_failure() {
    let fake = Fake::start(Habits { stall: Some((10, Duration::from_secs(3_600))), ..Habits::default() });
    let (bound, drain) = (Bound::Time(Duration::from_millis(300)), Duration::from_millis(100));
    let report = done(&Plan { bound, drain, preload: Preload::None, ..plan(&fake, "get") });
    assert_eq!(failures(&report), [(Failure::Unanswered, 4)]);
}

#[test]
fn a_scan_needs_sorted_sets() {
    let fake = Fake::start(Habits { lacks: &["ZADD"], ..Habits::default() });
    let error = run(&plan(&fake, "ycsb-e"), |_| {}).expect_err("it cannot scan");
    assert!(
        matches!(&error, LoadError::Unsupported { command: "ZADD", operation, .. } if operation == "scan")
    );
    assert_eq!(fake.hashes(), 0, "nothing was written");
}

#[test]
fn several_servers_are_told_apart() {
    let fakes = [Fake::start(Habits::default()), Fake::start(Habits::default())];
    let targets = fakes.iter().map(|fake| fake.url().parse().unwrap()).collect();
    let report = done(&Plan { targets, preload: Preload::Each, ..plan(&fakes[0], "get=1,set=1") });
    let rows = &report.outcomes[0].rows;
    let sites: Vec<&str> = rows.iter().map(|(site, _, _)| site.as_str()).collect();
    assert_eq!(sites, [fakes[0].url(), fakes[0].url(), fakes[1].url(), fakes[1].url()]);
    assert!(rows.iter().all(|(_, _, tally)| tally.completed > 0 && tally.misses == 0));
    assert!(fakes.iter().all(|fake| fake.strings() == 100));
}

#[test]
fn two_stores_take_turns_and_give_ratios() {
    let fakes = [Fake::start(Habits::default()), Fake::start(Habits::default())];
    let against = vec![fakes[1].url().parse().unwrap()];
    let (bound, warm_up) = (Bound::Time(Duration::from_millis(800)), Duration::from_millis(200));
    let own = std::process::id();
    let plan =
        Plan { against, bound, warm_up, pids: vec![own], against_pids: vec![own], ..plan(&fakes[0], "get") };
    let mut pairs = Vec::new();
    let seen = |progress| {
        if let Progress::Pair { number, of, .. } = progress {
            pairs.push((number, of));
        }
    };
    let report = run(&plan, seen).unwrap();
    assert_eq!(pairs, [(1, 4), (2, 4), (3, 4), (4, 4)]);
    let comparison = report.comparison.as_ref().unwrap();
    assert_eq!(comparison.slices.len(), 4);
    let names: Vec<&str> = comparison.ratios.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["throughput", "p50", "p99", "processor time an operation"]);
    assert!(
        comparison
            .ratios
            .iter()
            .all(|(_, spread)| spread.min <= spread.median && spread.median <= spread.max)
    );
    assert_eq!((report.outcomes.len(), report.failed()), (2, 0));
    assert!(picture::svg(&report).contains("4 turns"));
    let by_number = Plan { bound: Bound::Operations(1), ..plan };
    assert!(matches!(run(&by_number, |_| {}), Err(LoadError::TurnsOfOperations)));
}

#[test]
fn a_store_that_hangs_up_in_its_turn_is_reported_with_its_failures() {
    let fakes = [
        Fake::start(Habits { hang_up_after: Some(50), ..Habits::default() }),
        Fake::start(Habits::default()),
    ];
    let against = vec![fakes[1].url().parse().unwrap()];
    let bound = Bound::Time(Duration::from_millis(600));
    let report = done(&Plan { against, bound, preload: Preload::None, ..plan(&fakes[0], "get") });
    assert!((1..=4).contains(&report.outcomes[0].failures.total()));
    assert!(report.outcomes[0].failures.iter().all(|(failure, _, _)| *failure == Failure::Closed));
    assert_eq!((report.outcomes[1].failures.total(), report.comparison.unwrap().slices.len()), (0, 3));
    assert!(report.outcomes[1].total.completed > 0);
}

#[test]
fn nobody_there() {
    let fake = Fake::start(Habits::default());
    let targets = vec!["redis://127.0.0.1:1".parse().unwrap()];
    let error = run(&Plan { targets, ..plan(&fake, "get") }, |_| {}).expect_err("the port is closed");
    assert!(matches!(&error, LoadError::Connect { target, .. } if target.port == 1), "{error}");
}
