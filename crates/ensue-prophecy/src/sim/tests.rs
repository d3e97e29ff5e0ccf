//! Many seeds are clean, each broken rule is seen, more liars than tolerated are seen, and a seed is one run.

use super::*;
use crate::rule::Rule;

fn first_violation(seeds: std::ops::Range<u64>, options: &Options) -> Option<(u64, Violation)> {
    seeds.into_iter().find_map(|seed| Some((seed, run(seed, options).violations.pop()?)))
}

#[test]
fn seeds_with_tolerated_liars_are_clean() {
    for system in [System::Prophecy, System::DProphecy] {
        let options = Options { system: Some(system), ..Options::default() };
        let (mut reads, mut fast_reads, mut stale_reads) = (0, 0, 0);
        for seed in 0..600 {
            let report = run(seed, &options);
            assert_eq!(report.violations, [], "{system:?}, seed {seed}: {:?}", report.shape);
            reads += report.reads;
            fast_reads += report.fast_reads;
            stale_reads += report.stale_reads;
        }
        assert!(fast_reads * 10 > reads, "{fast_reads} of {reads} reads were fast");
        assert!(stale_reads > 0, "liars and lagging replicas never got an old answer through");
    }
}

#[test]
fn one_liar_more_than_tolerated_is_seen() {
    for system in [System::Prophecy, System::DProphecy] {
        let mut seen = 0;
        for seed in 0..60 {
            let shape = Shape::draw(seed, &Options { system: Some(system), ..Options::default() });
            let faults = crate::replica_client::faults_max(shape.replicas);
            let liars = Some(if system == System::Prophecy { faults + 1 } else { 2 * faults + 1 });
            let report = run(seed, &Options { system: Some(system), liars, ..Options::default() });
            seen += usize::from(!report.violations.is_empty());
        }
        assert!(seen > 20, "{system:?}: {seen} of 60");
    }
}

#[test]
fn each_broken_rule_is_seen() {
    // That a read of a moving region enters the table takes more coincidences than so many seeds have; a test of the
    // sketcher brings them about.
    for rule in Rule::ALL.into_iter().filter(|rule| *rule != Rule::DistrustReadsOfMovingRegions) {
        let is_distributed = matches!(rule, Rule::WaitForSketchQuorum | Rule::CountExecutorBySketch);
        let system = if is_distributed { System::DProphecy } else { System::Prophecy };
        let options = Options { system: Some(system), liars: None, broken: Broken::rule(rule) };
        let found = first_violation(0..3_000, &options);
        assert!(found.is_some(), "{rule:?} is not missed");
    }
}

#[test]
fn the_same_seed_is_the_same_run() {
    for seed in 0..40 {
        let (one, other) = (run(seed, &Options::default()), run(seed, &Options::default()));
        assert_eq!(one.event_hash, other.event_hash);
        assert_eq!(one.history, other.history);
    }
    let hashes: std::collections::BTreeSet<u64> =
        (0..40).map(|seed| run(seed, &Options::default()).event_hash).collect();
    assert_eq!(hashes.len(), 40);
}

/// With f+1 equal answers to a replicated read, (2N+1)/3 sketches are too few, and N are enough (section 3.2).
#[test]
fn the_caveat_of_the_sketch_quorum() {
    use crate::replica_client::Quorums;
    let violates = |seeds: u64, quorums: fn(usize) -> Quorums| {
        (0..seeds).any(|seed| {
            let options = Options { system: Some(System::DProphecy), ..Options::default() };
            let shape = Shape::draw(seed, &options);
            let ran = d_prophecy::run_with(&shape, quorums(shape.replicas), Broken::none());
            !judge::judge(&ran.history).unwrap().violations.is_empty()
        })
    };
    assert!(!violates(400, Quorums::of_all));
    assert!(violates(2_000, |replicas| Quorums {
        replicated: Quorums::of_prophecy(replicas).replicated,
        ..Quorums::of_d_prophecy(replicas)
    }));
}
