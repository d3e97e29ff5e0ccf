//! Pointers on a small tree: what leads somewhere, and what does not.

use super::*;

const TRAPS: (&str, &str) = (
    CATALOGUE,
    "# Traps\n\n## 2. A\n\nWords of `nobody`.\n\nShown by: `02-a`,\n`crates/a/src/b.rs`.\n\nOf `nobody`.\n\n\
     ## 17. B\n\nShown by: `17-crash-*`.\n",
);
const RECORD: (&str, &str) = ("docs/decisions/0009-x.md", "# 9. X\n");
const SCENARIO: (&str, &str) = ("scenarios/traps/02-a.txt", "# A story. Trap 2.\n");
const CRASH: (&str, &str) = ("scenarios/traps/17-crash-now.txt", "# A story. Trap 17.\n");
const SOURCE: (&str, &str) = (
    "crates/a/src/b.rs",
    "//! B (traps 2 and 17), [decision 9](x); a decision.\n// Trap\n// 17: 3 trap 2.\n",
);

fn findings(files: &[(&str, &str)]) -> Vec<String> {
    let mut report = Report::default();
    check(&Tree::from_files(files), &mut report);
    report.findings.iter().map(|finding| finding.to_string()).collect()
}

/// The findings when one file is another one, or is added.
fn with(file: (&str, &str)) -> Vec<String> {
    let files = [TRAPS, RECORD, SCENARIO, CRASH, SOURCE];
    let rest = files.into_iter().filter(|other| other.0 != file.0);
    findings(&rest.chain([file]).collect::<Vec<_>>())
}

#[test]
fn pointers_are_read_in_lists_and_over_the_ends_of_lines() {
    let found: Vec<_> =
        pointers(SOURCE.1).iter().map(|found| (found.kind, found.number, found.line)).collect();
    let trap = |number, line| (Kind::Trap, number, line);
    assert_eq!(found, [trap(2, 1), trap(17, 1), (Kind::Decision, 9, 1), trap(17, 3), trap(2, 3)]);
}

#[test]
fn what_leads_somewhere_is_left_alone() {
    assert_eq!(with(SOURCE), Vec::<String>::new());
}

#[test]
fn what_leads_nowhere_is_found() {
    let found = with((SOURCE.0, "//! B (trap 3).\n//! Decisions 9, 10.\n"));
    assert_eq!(
        found,
        [
            "crates/a/src/b.rs:1: there is no trap 3 in docs/traps.md: add it",
            "crates/a/src/b.rs:2: there is no decision 10 in docs/decisions/: correct it",
        ]
    );
}

#[test]
fn an_entry_names_the_scenarios_that_point_to_it_and_files_that_exist() {
    let found = with(("scenarios/rules/b.txt", "# A story. Trap 2.\n"));
    assert_eq!(found, ["scenarios/rules/b.txt:1: trap 2 of docs/traps.md does not name `b`: add it"]);
    let found = with((CATALOGUE, "## 2. A\n\nShown by: `02-a`, `02-b`, `crates/c.rs`.\n\n## 17. B\n"));
    assert_eq!(
        found[..3],
        [
            "docs/traps.md:1: trap 2 names `02-b`, which is no scenario and no file: correct it",
            "docs/traps.md:1: trap 2 names `crates/c.rs`, which is no scenario and no file: correct it",
            "docs/traps.md:5: trap 17 names no file after `Shown by:`",
        ]
    );
}

#[test]
fn a_scenario_of_a_trap_says_which() {
    let found = with((SCENARIO.0, "# A story. Trap 17, decision 9.\n"));
    assert_eq!(
        found[..1],
        ["scenarios/traps/02-a.txt:1: its name begins with 2, and it does not say `Trap 2`",]
    );
}

#[test]
fn a_record_has_its_number_and_has_it_alone() {
    let found = with(("docs/decisions/0009-y.md", "# 8. Y\n"));
    assert_eq!(
        found,
        [
            "docs/decisions/0009-y.md:1: the title does not begin with `# 9. `, as the file's name does",
            "docs/decisions/0009-y.md:1: docs/decisions/0009-x.md has the same number: give this one the next that is \
             free",
        ]
    );
}
