//! Groups of replicas under all faults.

use super::{Plan, Report, run};
use ensue_types::{Breaking, Rule};
use std::panic::catch_unwind;

fn plan(seed: u64) -> Plan {
    Plan {
        seed,
        replicas: if seed % 4 == 3 { 5 } else { 3 },
        spares: 0,
        always: seed % 2 == 0,
        lease: seed % 3 == 0,
        crashes: true,
        power: true,
        directories: true,
        cuts: true,
        lasts_us: 30_000_000,
    }
}

fn run_all(plans: impl Iterator<Item = Plan>) -> Report {
    let mut sum = Report::default();
    for plan in plans {
        let report = run(plan).unwrap_or_else(|words| panic!("{words}\n{plan:?}"));
        sum.acknowledged += report.acknowledged;
        sum.leaders += report.leaders;
        sum.epochs += report.epochs;
        sum.transfers += report.transfers;
        sum.confirmed += report.confirmed;
        sum.moves += report.moves;
    }
    sum
}

#[test]
fn a_group_without_faults_has_one_leader_and_loses_nothing() {
    let quiet = Plan { crashes: false, power: false, directories: false, cuts: false, ..plan(8) };
    let report = run(quiet).expect("nothing happens");
    // The first one, and then the one that is meant to lead.
    assert!(report.leaders <= 2 && report.epochs == 0, "{report:?}");
    assert!(report.acknowledged > 500 && report.confirmed > 50, "{report:?}");
}

#[test]
fn nothing_acknowledged_is_lost_by_crashes_cuts_and_lost_directories() {
    let plans = (0..30).map(|seed| Plan { power: false, ..plan(seed) });
    let report = run_all(plans);
    assert_eq!(report.epochs, 0);
    assert!(report.leaders > 100 && report.transfers > 100 && report.confirmed > 500, "{report:?}");
}

#[test]
fn nothing_synced_is_lost_by_power_failures() {
    let plans = (0..30).map(|seed| Plan { always: true, ..plan(seed) });
    assert_eq!(run_all(plans).epochs, 0);
}

/// The same with two nodes more, between which replicas move.
fn moving(seed: u64) -> Plan {
    Plan { spares: 2, ..plan(seed) }
}

#[test]
fn replicas_move_without_faults_and_nothing_is_lost() {
    let quiet = |seed| Plan { crashes: false, power: false, directories: false, cuts: false, ..moving(seed) };
    let report = run_all((0..6).map(quiet));
    assert!(report.moves > 20 && report.epochs == 0, "{report:?}");
}

#[test]
fn replicas_move_under_all_faults_and_nothing_is_lost() {
    let report = run_all((0..40).map(moving));
    assert!(report.moves > 40, "{report:?}");
}

/// Seeds that have found something.
#[test]
fn seeds_that_found_something_stay_clean() {
    // 1382: the power failed before the first journal of a new member was durable.
    // 1417: a change of members was lost with the power of a majority, and those of before were gone.
    // 1714: that the change had been left behind was lost with the power of all that knew it, and those of before were
    // gone.
    // 2375: a replica was admitted twice, and took the name that the group had forgotten.
    run_all([1_382, 1_417, 1_714, 2_375].into_iter().map(plan));
    // 60102: what others had committed was so in the journal before its bytes were durable, and the power failed.
    run_all([60_102].into_iter().map(moving));
    // 5032: what was appended behind a truncation had that one committed in the journal before it was durable.
    run_all([5_032].into_iter().map(plan));
}

#[test]
fn what_power_failures_of_a_majority_may_have_taken_is_said_to_be() {
    let plans = (0..60).map(|seed| Plan { always: false, ..plan(seed) });
    assert!(run_all(plans).epochs > 0);
}

/// More worlds than a gate has time for: `FIRST=1000 SEEDS=9000 cargo test -p ensue-replica soak -- --ignored`.
#[test]
#[ignore = "takes minutes"]
fn soak() {
    let seeds: u64 = std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(1_000);
    let first: u64 = std::env::var("FIRST").ok().and_then(|first| first.parse().ok()).unwrap_or(1_000);
    run_all((first..first + seeds).map(plan));
}

/// The same of replicas that move.
#[test]
#[ignore = "takes minutes"]
fn soak_of_moves() {
    let seeds: u64 = std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(1_000);
    let first: u64 = std::env::var("FIRST").ok().and_then(|first| first.parse().ok()).unwrap_or(1_000);
    run_all((first..first + seeds).map(moving));
}

/// The first seed whose world shows that a rule is broken: by what it finds, or by what the consensus engine finds.
fn first_seen(rule: Rule, plan: impl Fn(u64) -> Plan + std::panic::RefUnwindSafe) -> Option<u64> {
    let _broken = Breaking::only(Some(rule));
    (0..SEEDS_OF_A_RULE).find(|&seed| !matches!(catch_unwind(|| run(plan(seed))), Ok(Ok(_))))
}

const SEEDS_OF_A_RULE: u64 = 200;

#[test]
fn every_rule_of_replicas_is_seen_when_it_is_broken() {
    let always = |seed| Plan { always: true, ..plan(seed) };
    let relaxed = |seed| Plan { always: false, ..plan(seed) };
    let seen = [
        (Rule::OwnersAskTheOthers, first_seen(Rule::OwnersAskTheOthers, plan)),
        (Rule::OwnersBeginWithEverything, first_seen(Rule::OwnersBeginWithEverything, plan)),
        (
            Rule::ReplicasSyncBeforeTheyAcknowledge,
            first_seen(Rule::ReplicasSyncBeforeTheyAcknowledge, always),
        ),
        (Rule::ReplicasWithoutPowerAreSuspended, first_seen(Rule::ReplicasWithoutPowerAreSuspended, relaxed)),
        (Rule::TakeAwayWhatIsCommitted, first_seen(Rule::TakeAwayWhatIsCommitted, plan)),
    ];
    for (rule, seed) in seen {
        assert!(seed.is_some(), "{} is broken, and nothing is seen", rule.name());
    }
}
