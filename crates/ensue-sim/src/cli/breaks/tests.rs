//! Every rule is broken somewhere, and the page says of each what shows it.

use super::places::{Worlds, places};
use super::{Catch, Row, page};
use crate::cli::run_seed;
use crate::oracle::agreement::Witnesses;
use crate::rules::Rules;
use crate::script::{Script, files};
use ensue_types::Rule;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

#[test]
fn every_rule_has_a_place_under_a_protocol_that_exists() {
    for rule in Rule::ALL {
        let places = places(rule);
        assert!(!places.is_empty());
        for place in &places {
            crate::protocols::find(place.protocol).unwrap();
            assert!(place.seeds > 0);
        }
        let distinct: BTreeSet<String> =
            places.iter().map(|place| format!("{} {}", place.protocol, place.worlds)).collect();
        assert_eq!(distinct.len(), places.len(), "{} stands twice in one kind of worlds", rule.name());
    }
}

/// What a seed shows today another draw may hide tomorrow.
#[test]
fn every_rule_has_a_script_or_a_test() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut named = BTreeSet::new();
    for path in files(&folder).unwrap() {
        let script = Script::parse(&std::fs::read_to_string(path).unwrap()).unwrap();
        named.extend(script.breaks.into_iter().map(|broken| broken.rule));
    }
    for rule in Rule::ALL.into_iter().filter(|rule| !named.contains(rule)) {
        let test = super::places::tests(rule).unwrap_or_else(|| panic!("{} has neither", rule.name()));
        let text = std::fs::read_to_string(folder.join("..").join(test)).unwrap();
        assert!(text.contains(&format!("Rule::{rule:?}")), "{test} does not break {}", rule.name());
    }
}

/// No script shows it, and no small world: readers wait for no decision's sync (decision 40).
#[test]
fn a_clock_that_does_not_pass_what_it_promised_is_seen_soon() {
    let is_seen = |seed| {
        let rules = Rules::breaking(Rule::TickPastPromises);
        run_seed(seed, rules, Some("eiger"), false).violation.is_some()
    };
    assert!((1..=10).any(is_seen));
}

#[test]
fn the_page_says_what_shows_a_rule_and_what_does_not() {
    let row = |rule, first: Option<u64>| {
        let caught = |seed| Catch { seed, property: "P8 and so on", witnesses: Witnesses::Both };
        Row { place: places(rule)[0], caught: first.map(caught) }
    };
    let rules = [Rule::ApplyOnce, Rule::RefuseWhenFull, Rule::TheDeadStop];
    let rows =
        [row(Rule::ApplyOnce, Some(12)), row(Rule::RefuseWhenFull, None), row(Rule::TheDeadStop, None)];
    let scripts = BTreeMap::from([("refuse-when-full".to_owned(), vec!["a-script".to_owned()])]);
    let page = page::page("abc", &rules, &rows, &scripts);
    assert!(
        page.contains("Of 3 rules, seeds detect 1 and scripts 1; 1 neither seeds nor scripts."),
        "{page}"
    );
    assert!(page.contains("| `apply-once` | `eiger` |  | 12 | P8 and so on | both |\n"), "{page}");
    assert!(page.contains("| `refuse-when-full` | `eiger` |  | none of 60 | | |\n"), "{page}");
    assert!(page.contains("| `refuse-when-full` | `a-script` |\n"), "{page}");
    let nothing =
        page.lines().find(|line| line.starts_with("| `the-dead-stop` | `eiger` `--losing` | no seed"));
    assert!(nothing.is_some_and(|line| line.ends_with("| **nothing** |")), "{page}");
    assert_eq!(rows[2].place.worlds, Worlds::Losing);
}
