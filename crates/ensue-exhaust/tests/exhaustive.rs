//! Tiny worlds, every interleaving: some are visited whole, and a broken rule is found by the search.

use ensue_exhaust::case::Speaker;
use ensue_exhaust::{Case, Census, case, explore};
use ensue_sim::rules::Rules;
use ensue_types::Rule;

const STATES_MAX: u64 = 60_000;

fn case_of(name: &str) -> Case {
    *case::named(Some(name))[0]
}

fn explored(case: &Case, rules: Rules) -> Census {
    explore(case, rules, STATES_MAX, &mut |_| {})
}

#[test]
fn small_worlds_are_visited_whole_and_nothing_is_wrong() {
    let quiet_album = Case { breaks: 0, ..case_of("album") };
    const ONE_WRITE: &[Speaker] = &[Speaker { datacenter: 0, core: 0, says: &["SET x"] }];
    let one_write_and_a_crash = Case { clients: ONE_WRITE, ..case_of("album-crash") };
    for case in [quiet_album, case_of("chain"), one_write_and_a_crash] {
        let census = explored(&case, Rules::default());
        assert!(census.found.is_none(), "{}: {:#?}", case.name, census.found);
        assert!(census.complete && census.ends > 1, "{}: {census:?}", case.name);
        assert!(census.executions > census.states as f64, "orders are many more than states: {census:?}");
    }
}

#[test]
fn two_searches_visit_the_same() {
    let once = explored(&case_of("chain"), Rules::default());
    let again = explored(&case_of("chain"), Rules::default());
    assert_eq!((once.states, once.transitions, once.ends), (again.states, again.transitions, again.ends));
}

#[test]
fn the_search_finds_what_a_broken_rule_does() {
    for (name, rule) in [
        ("album", Rule::WaitForDependencies),
        ("chain", Rule::WaitForEveryPart),
        ("album-crash", Rule::RememberReceivedPosition),
        ("participant-dies", Rule::CompleteAfterCrash),
    ] {
        let census = explored(&case_of(name), Rules::breaking(rule));
        let found =
            census.found.unwrap_or_else(|| panic!("{name} does not notice that {} is broken", rule.name()));
        assert!(!found.steps.is_empty());
    }
}
