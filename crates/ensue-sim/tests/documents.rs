//! What the documents say of the rules is what there is.

use ensue_types::Rule;
use std::collections::BTreeSet;
use std::path::Path;

fn document(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    std::fs::read_to_string(path).expect("a document")
}

/// The rules that have a row with a seed, of one protocol at least.
fn caught(document: &str) -> BTreeSet<&str> {
    let rows = document.lines().filter(|line| !line.contains("not caught"));
    rows.filter_map(|line| line.strip_prefix("| `")?.split_once('`')).map(|(name, _)| name).collect()
}

#[test]
fn every_rule_is_told_of() {
    let text = document("simulator.md");
    let is_untold = |rule: &Rule| !text.contains(&format!("`{}`", rule.name()));
    let untold: Vec<_> = Rule::ALL.iter().filter(|rule| is_untold(rule)).map(|rule| rule.name()).collect();
    assert!(
        untold.is_empty(),
        "docs/simulator.md says nothing of {untold:?}: which seed or which script sees it broken?"
    );
}

#[test]
fn the_rules_that_seeds_saw_are_counted() {
    let text = document("simulator.md");
    let caught = caught(&text);
    let count = Rule::ALL.into_iter().filter(|rule| caught.contains(rule.name().as_str())).count();
    let expected = format!("{count} of the {} rules", Rule::ALL.len());
    for name in ["simulator.md", "trust.md"] {
        assert!(document(name).contains(&expected), "docs/{name} should say: {expected}");
    }
}

#[test]
fn the_traps_name_rules_that_exist() {
    let text = document("traps.md").split_whitespace().collect::<Vec<_>>().join(" ");
    let names: BTreeSet<String> = Rule::ALL.iter().map(|rule| rule.name().to_string()).collect();
    let mut named = 0;
    let lists = text.split(". Rule").skip(1).filter_map(|rest| rest.split_once('.'));
    for (list, _) in lists {
        for name in list.split('`').skip(1).step_by(2) {
            assert!(names.contains(name), "docs/traps.md names the rule `{name}`, and there is none");
            named += 1;
        }
    }
    assert!(named >= 60, "only {named} rules found in docs/traps.md");
}
