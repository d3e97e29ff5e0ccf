//! What the documents say of the rules is what there is, and scenarios open with their stories.

use ensue_sim::script::files;
use ensue_types::Rule;
use std::collections::BTreeSet;
use std::path::Path;

fn document(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    std::fs::read_to_string(path).expect("a document")
}

/// The rules that have a row with a seed, of one protocol at least: `| rule | protocol | worlds | first seed | ...`.
fn caught(document: &str) -> BTreeSet<&str> {
    let rows = document.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let first_seed = |rest: &str| rest.split('|').nth(3).and_then(|seed| seed.trim().parse::<u64>().ok());
    rows.filter(|(_, rest)| first_seed(rest).is_some()).map(|(name, _)| name).collect()
}

#[test]
fn every_rule_is_told_of() {
    let text = document("figures/broken-rules.md");
    let is_untold = |rule: &Rule| !text.contains(&format!("`{}`", rule.name()));
    let untold: Vec<_> = Rule::ALL.iter().filter(|rule| is_untold(rule)).map(|rule| rule.name()).collect();
    assert!(
        untold.is_empty(),
        "docs/figures/broken-rules.md says nothing of {untold:?}: which seed or which script sees it broken?"
    );
}

#[test]
fn the_rules_that_seeds_saw_are_counted() {
    let text = document("figures/broken-rules.md");
    let caught = caught(&text);
    let count = Rule::ALL.into_iter().filter(|rule| caught.contains(rule.name().as_str())).count();
    let expected = format!("Of {} rules, seeds detect {count} ", Rule::ALL.len());
    assert!(text.contains(&expected), "docs/figures/broken-rules.md should say: {expected}");
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

/// Before any number of a trap, a seed or a section of a paper: who does what, and what follows.
#[test]
fn scenarios_open_with_a_story_in_two_sentences() {
    const REFERENCES: [&str; 8] = ["Trap", "Seed", "Decision", "COPS", "Eiger", "Orbe", "POCC", "TARDiS"];
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    for path in files(&root).unwrap() {
        let text = std::fs::read_to_string(&path).expect("a scenario");
        let head = text.lines().map_while(|line| line.strip_prefix("# "));
        let story = head.take_while(|line| !REFERENCES.iter().any(|word| line.starts_with(word)));
        let story = story.collect::<Vec<_>>().join(" ");
        let ends = story.split_whitespace().filter(|word| word.ends_with(['.', ':', ';'])).count();
        assert!(
            ends >= 2 && story.ends_with(['.', ')']),
            "{}: tell the story first: {story}",
            path.display()
        );
        let is_wide = |line: &&str| line.starts_with('#') && line.chars().count() > 120;
        assert!(!text.lines().any(|line| is_wide(&line)), "{}: a comment is too wide", path.display());
    }
}
