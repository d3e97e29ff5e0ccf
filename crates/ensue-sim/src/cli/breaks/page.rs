//! The page of broken rules: the table of seeds, the scripts of each rule, and what no seed shows.

use super::places::{self, Worlds};
use super::{Row, is_caught};
use crate::script::{Break, Script, files};
use ensue_types::Rule;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

pub(super) const HEAD: &str = "\
| rule | protocol | worlds | first seed | seen as | seen by |
|---|---|---|--:|---|---|";

/// One row of the table of seeds.
pub(super) fn line(row: &Row) -> String {
    let place = &row.place;
    let caught = match &row.caught {
        Some(caught) => format!("{} | {} | {}", caught.seed, caught.property, caught.witnesses),
        None => format!("none of {} | |", place.seeds),
    };
    format!("| `{}` | `{}` | {} | {caught} |", place.rule.name(), place.protocol, place.worlds)
}

/// The scripts that fail without a rule, by the rule's name. The error names the first that does not do what it says.
pub(super) fn scripts(folder: &Path, rules: &[Rule]) -> Result<BTreeMap<String, Vec<String>>, String> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in files(folder).map_err(|error| format!("{}: {error}", folder.display()))? {
        let told = |why: String| format!("{}: {why}", path.display());
        let text = std::fs::read_to_string(&path).map_err(|error| told(error.to_string()))?;
        let mut script = Script::parse(&text).map_err(told)?;
        script.breaks.retain(|Break { rule, .. }| rules.contains(rule));
        if script.breaks.is_empty() {
            continue;
        }
        script.check(false).map_err(told)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        for Break { rule, .. } in &script.breaks {
            found.entry(rule.name()).or_default().push(name.clone());
        }
    }
    Ok(found)
}

pub(super) fn page(
    commit: &str,
    rules: &[Rule],
    rows: &[Row],
    scripts: &BTreeMap<String, Vec<String>>,
) -> String {
    let by_seeds = rules.iter().filter(|rule| is_caught(**rule, rows)).count();
    let by_scripts = rules.iter().filter(|rule| scripts.contains_key(&rule.name())).count();
    let neither: Vec<Rule> = rules
        .iter()
        .copied()
        .filter(|rule| !is_caught(*rule, rows) && !scripts.contains_key(&rule.name()))
        .collect();
    let mut page = format!("# Broken rules\n\nWritten at commit `{commit}` by\n\n{INTRODUCTION}");
    let _ = writeln!(
        page,
        "Of {} rules, seeds detect {by_seeds} and scripts {by_scripts}; {} neither seeds nor scripts.\n",
        rules.len(),
        neither.len()
    );
    page.push_str("## Seeds\n\n");
    page.push_str(SEEDS);
    let _ = writeln!(page, "{HEAD}");
    rows.iter().for_each(|row| {
        let _ = writeln!(page, "{}", line(row));
    });
    page.push_str("\n## What seeds do not show, and why\n\n");
    page.push_str("Of the rows above without a seed; without a word, the reason is not known.\n\n");
    page.push_str("| rule | not shown under | why | shown by |\n|---|---|---|---|\n");
    for rule in rules {
        unseen(&mut page, *rule, rows, scripts);
    }
    page.push_str(
        "\n## Scripts\n\nEach fails without its rule; the command above has played all of them.\n\n",
    );
    page.push_str("| rule | scripts |\n|---|---|\n");
    for rule in rules.iter().filter(|rule| scripts.contains_key(&rule.name())) {
        let names: Vec<String> = scripts[&rule.name()].iter().map(|name| format!("`{name}`")).collect();
        let _ = writeln!(page, "| `{}` | {} |", rule.name(), names.join(", "));
    }
    page
}

fn unseen(page: &mut String, rule: Rule, rows: &[Row], scripts: &BTreeMap<String, Vec<String>>) {
    let missed = rows.iter().filter(|row| row.place.rule == rule && row.caught.is_none());
    let under: Vec<String> = missed
        .map(|row| match row.place.worlds {
            Worlds::Drawn => format!("`{}`", row.place.protocol),
            worlds => format!("`{}` {worlds}", row.place.protocol),
        })
        .collect();
    if under.is_empty() {
        return;
    }
    let mut by = Vec::new();
    if is_caught(rule, rows) {
        by.push("seeds elsewhere".to_owned());
    }
    if scripts.contains_key(&rule.name()) {
        by.push("scripts".to_owned());
    }
    by.extend(places::tests(rule).map(|path| format!("`{path}`")));
    let by = if by.is_empty() { "**nothing**".to_owned() } else { by.join(", ") };
    let why = places::why_unseen(rule).unwrap_or_default();
    let _ = writeln!(page, "| `{}` | {} | {why} | {by} |", rule.name(), under.join(", "));
}

const INTRODUCTION: &str =
    "    cargo breakable sim --breaks --record docs/figures/broken-rules.md --commit COMMIT

Others of this kind:

    cargo breakable sim --breaks RULE,RULE --seeds N            only these rules, at most N seeds each
    cargo breakable sim --breaks RULE --protocol NAME --seeds N the same under another protocol
    cargo breakable sim --scenario scenarios --break RULE       which scripts fail without the rule

`cargo breakable` builds a second binary, in its own directory, in which `Rule::X.holds()` can be false
([decision 22](../decisions/0022-rules-are-compiled-away.md)). Every other binary rejects `--break`.

";

const SEEDS: &str = "\
A row is a rule, disabled in worlds of one protocol, drawn or with the option named (which worlds a rule has, and how
many seeds are looked through, is in `crates/ensue-sim/src/cli/breaks/places.rs`). *First seed* is the first from 1 on
in which a violation is detected. A seed that fails with every rule kept does not count.

*Seen as* is the violated property, with its number in [trust.md](../trust.md) where it has one. *Seen by*: the oracle,
which knows the true causal order; the checker, which knows only what clients did and saw; or both. A run in which more
than twenty million events happen ends as a violation: some broken rules make a world in which every answer is followed
by the next request at once.

";
