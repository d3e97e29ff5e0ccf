//! Tiny worlds, every interleaving: some are visited whole, and a broken rule is found by the search.

use ensue_sim::exhaust::{Case, case, explore};
use ensue_types::{Rule, Rules};

const STATES_MAX: u64 = 60_000;

fn case_of(name: &str) -> Case {
    *case::named(Some(name))[0]
}

#[test]
fn small_worlds_are_visited_whole_and_nothing_is_wrong() {
    let quiet_album = Case { breaks: 0, ..case_of("album") };
    for case in [quiet_album, case_of("chain")] {
        let census = explore(&case, Rules::default(), STATES_MAX);
        assert!(census.found.is_none(), "{}: {:#?}", case.name, census.found);
        assert!(census.complete && census.ends > 1, "{}: {census:?}", case.name);
        assert!(census.executions > census.states as f64, "orders are many more than states: {census:?}");
    }
}

#[test]
fn two_searches_visit_the_same() {
    let once = explore(&case_of("chain"), Rules::default(), STATES_MAX);
    let again = explore(&case_of("chain"), Rules::default(), STATES_MAX);
    assert_eq!((once.states, once.transitions, once.ends), (again.states, again.transitions, again.ends));
}

#[test]
fn the_search_finds_what_a_broken_rule_does() {
    for (name, rule) in [
        ("album", Rule::WaitForDependencies),
        ("chain", Rule::WaitForEveryPart),
        ("transaction-elsewhere", Rule::TickPastPromises),
    ] {
        let census = explore(&case_of(name), Rules::breaking(rule), STATES_MAX);
        let found =
            census.found.unwrap_or_else(|| panic!("{name} does not notice that {} is broken", rule.name()));
        assert!(!found.steps.is_empty());
    }
}
