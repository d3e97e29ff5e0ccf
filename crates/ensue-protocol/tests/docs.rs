//! The tables and lists of `docs/protocols.md` and `docs/protocol-design.md` say what the protocols register.

use ensue_protocol::{Capabilities, NAMES, SnapshotReads, find};

const PAGE: &str = include_str!("../../../docs/protocols.md");
const DESIGN: &str = include_str!("../../../docs/protocol-design.md");

/// The cells of the rows of the first table below a heading, without the first two lines.
fn table(page: &str, heading: &str) -> Vec<Vec<String>> {
    let (_, below) = page.split_once(&format!("\n{heading}\n")).expect("the heading is there");
    let rows =
        below.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    rows.skip(2).map(cells).collect()
}

/// The name of a row: what stands between the first two backticks.
fn name(row: &[String]) -> &str {
    row[0].split('`').nth(1).unwrap_or_default()
}

#[test]
fn what_each_offers_is_what_it_registers() {
    let rows = table(PAGE, "## What each offers");
    assert_eq!(rows.iter().map(|row| name(row)).collect::<Vec<_>>(), NAMES);
    for row in rows {
        let Capabilities { snapshot_reads, write_transactions, causality, available } =
            find(name(&row)).expect("its name is known").capabilities;
        let snapshots = match snapshot_reads {
            SnapshotReads::None => "none",
            SnapshotReads::OneRound => "one round",
            SnapshotReads::TwoRounds => "two rounds",
        };
        assert!(row[1].starts_with(snapshots), "{row:?}");
        for (cell, is_offered) in row[2..5].iter().zip([write_transactions, causality, available]) {
            let said = cell.trim_matches('*');
            assert!(said.starts_with(if is_offered { "yes" } else { "no" }), "{row:?}");
        }
    }
}

/// The bold names of the list below a heading, up to the next one: `- **`a`, `b`**` names two protocols.
fn listed<'a>(page: &'a str, heading: &str) -> Vec<&'a str> {
    let (_, below) = page.split_once(&format!("\n{heading}\n")).expect("the heading is there");
    let section = below.split("\n#").next().unwrap_or_default();
    section.split("**").skip(1).step_by(2).flat_map(|bold| bold.split('`').skip(1).step_by(2)).collect()
}

#[test]
fn every_protocol_stands_in_every_list() {
    let lists = [
        (PAGE, "## Choosing one"),
        (PAGE, "### What they cost"),
        (DESIGN, "## The six questions"),
        (DESIGN, "## The papers, and where we differ"),
    ];
    for (page, heading) in lists {
        let listed = listed(page, heading);
        for name in NAMES.into_iter().filter(|name| *name != "eventual" || !heading.contains("papers")) {
            assert!(listed.contains(&name), "{name} is missing below {heading}");
        }
    }
}
