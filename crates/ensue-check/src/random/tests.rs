//! The generator is judged by the reference: a correct store has no violation, and each defect shows as what it is.

use super::*;
use crate::property::Property;
use crate::reference::{Finding, judge};
use std::collections::BTreeMap;

const SEEDS: u64 = 300;

/// In how many of the seeds each property fails.
fn violations(answers: Answers) -> BTreeMap<Property, u64> {
    let mut counts = BTreeMap::new();
    for seed in 0..SEEDS {
        // Whatever is too large for the reference counts as no violation.
        let findings = judge(&history_with(seed, answers)).map(|judgement| judgement.findings);
        for (property, finding) in findings.unwrap_or_default() {
            *counts.entry(property).or_default() += u64::from(finding == Finding::InNone);
        }
    }
    counts
}

#[test]
fn the_same_seed_is_the_same_history() {
    assert_eq!(history(7), history(7));
    assert_ne!(history(7), history(8));
}

#[test]
fn a_correct_store_keeps_every_property() {
    assert!(violations(Answers::CorrectStore).values().all(|&count| count == 0));
}

#[test]
fn each_defect_shows() {
    use Property::*;
    for (defect, property) in [
        (Defect::IgnoresDependencies, CausalConvergent),
        (Defect::ArrivalOrder, CausalConvergent),
        (Defect::StampsBelowThePast, Causal),
        (Defect::TearsTransactions, ReadAtomic),
        (Defect::ReadsElsewhere, MonotonicReads),
        (Defect::ForgetsTokens, ReadYourWrites),
        (Defect::WrongValue, ReadIntegrity),
        (Defect::Miscounts, Counters),
        (Defect::AppliesFailures, ReadIntegrity),
        (Defect::LosesWrites, Convergence),
    ] {
        let counts = violations(Answers::StoreWith(defect));
        assert!(counts.get(&property).is_some_and(|&count| count > 0), "{defect:?}: {counts:?}");
    }
}

#[test]
fn guesswork_breaks_and_keeps_every_property() {
    let counts = violations(Answers::Guessed);
    for property in Property::DEFAULT {
        let broken = counts.get(&property).copied().unwrap_or(0);
        assert!((SEEDS / 100..SEEDS * 9 / 10).contains(&broken), "{property:?}: {counts:?}");
    }
}
