//! What is left still fails, is small, and holds when the rule that was broken holds.

use super::{minimise, shrink};
use crate::faults::Plan;
use crate::oracle::property;
use crate::rules::Rules;
use crate::run::trial::Trial;
use crate::script::{Break, Script};
use crate::world::options::Kept;
use ensue_types::Rule;

#[test]
fn pieces_are_left_out_until_each_one_matters() {
    let left = minimise((0..100).collect(), |items| items.contains(&17) && items.contains(&64));
    assert_eq!(left, [17, 64]);
    assert!(minimise((0..100).collect(), |_: &[i32]| true).is_empty());
    assert_eq!(minimise(vec![1, 2, 3], |_| false), [1, 2, 3]);
}

/// The first seed in whose world the oracle sees what is wrong, made small from the beginning for the sake of time;
/// shrinks it, and plays what is left. What only the checker sees, at the end of many writes, does not get as small.
fn check(rule: Rule) {
    let rules = Rules::breaking(rule);
    let (trial, failed) = (1..200)
        .map(|seed| {
            let mut trial = Trial::new(seed);
            ["operations=120", "clients=4"].iter().for_each(|setting| trial.set(setting).unwrap());
            trial.plan = Plan::draw(&trial.options(rules));
            let report = trial.run(rules, None);
            (trial, report)
        })
        .find(|(_, report)| {
            report.violation.as_ref().is_some_and(|seen| seen.property != property::DISAGREEMENT)
        })
        .expect("no seed of the first two hundred fails");
    let mut runs = 0;
    let mut go_on = || {
        runs += 1;
        runs <= 400
    };
    let shrunk = shrink(trial, &failed, &mut go_on).expect("a run fails again");
    let (before, after) = (failed.history.operations.len(), shrunk.report.history.operations.len());
    assert!(after * 4 <= before, "{after} of {before} operations are left:\n{}", shrunk.script());
    // What is left out is a step, whatever the number of commands that it sends together.
    let steps = shrunk.trial.kept.as_ref().map_or(usize::MAX, Kept::len);
    assert!(steps <= 20, "{steps} steps are left:\n{}", shrunk.script());
    assert!(shrunk.trial.plan.faults.len() <= 5, "{}", shrunk.script());
    let script = Script::parse(&shrunk.script()).expect("a shrunk world is a script");
    assert_eq!(script.trial.as_ref(), Some(&shrunk.trial));
    assert_eq!(script.breaks, [Break { rule, protocols: Vec::new() }]);
    let why = script.play(rules, false).expect_err("the script fails as the seed did");
    let property = shrunk.report.violation.as_ref().map(|violation| violation.property).unwrap_or_default();
    assert!(why.starts_with(property), "{why}");
    assert_eq!(script.play(Rules::default(), false), Ok(()), "the script holds with the rule");
}

#[test]
fn a_stale_read_shrinks() {
    check(Rule::WaitForDependencies);
}

#[test]
fn a_torn_snapshot_shrinks() {
    check(Rule::SecondRound);
}

#[test]
fn a_difference_after_the_end_shrinks() {
    check(Rule::LastWriterWins);
}
