//! The table of parts on a small module: what it finds, and what it leaves alone.

use super::*;

const TABLE: Table = Table {
    module: "crate::house",
    folder: "crates/a/src/house",
    conductor: Some(Conductor { name: "Host", fields_max: 1, methods_max: 2 }),
    rows: &[
        ("ground", &[]),
        ("kitchen", &["ground"]),
        ("cellar", &["ground"]),
        ("host", &["cellar", "kitchen"]),
    ],
    plain: None,
};

const GROUND: (&str, &str) = ("crates/a/src/house/ground.rs", "//! G.\npub struct Floor;\n");
const KITCHEN: (&str, &str) =
    ("crates/a/src/house/kitchen.rs", "//! K.\nmod stove;\nuse super::ground::Floor;\n");
const STOVE: (&str, &str) =
    ("crates/a/src/house/kitchen/stove.rs", "//! S.\nuse super::Pan;\nuse crate::house::ground;\n");
const CELLAR: (&str, &str) =
    ("crates/a/src/house/cellar.rs", "//! C.\nfn f() {\n    super::ground::walk();\n}\n");
const HOST: (&str, &str) = (
    "crates/a/src/house/host.rs",
    "//! H.\nuse super::{cellar, kitchen::{self, Pan}};\npub struct Host<'a> {\n    kitchen: &'a Pan,\n}\n\
     impl<'a> Host<'a> {\n    fn new() {}\n}\nimpl Host<'_> {\n    pub(super) fn serve() {\n        fn inner() {}\n    }\n}\n\
     impl Drop for Host<'_> {\n    fn drop(&mut self) {}\n}\n",
);
const ROOT: (&str, &str) =
    ("crates/a/src/house.rs", "//! R.\nmod ground;\nuse kitchen::Pan;\npub struct Door;\n");

fn findings(table: &Table, files: &[(&str, &str)]) -> Vec<String> {
    let tree = Tree::from_files(files);
    let mut report = Report::default();
    check_table(table, &Source::all(&tree), &mut report);
    report.findings.sort();
    report.findings.iter().map(|finding| finding.to_string()).collect()
}

/// The findings when one file of the house is another one.
fn with(file: (&str, &str)) -> Vec<String> {
    let files = [ROOT, GROUND, KITCHEN, STOVE, CELLAR, HOST];
    let files = files.map(|old| if old.0 == file.0 { file } else { old });
    let added = (!files.contains(&file)).then_some(file);
    findings(&TABLE, &files.into_iter().chain(added).collect::<Vec<_>>())
}

#[track_caller]
fn expect(found: &[String], starts: &[&str]) {
    assert_eq!(found.len(), starts.len(), "{found:#?}");
    for (found, start) in found.iter().zip(starts) {
        assert!(found.starts_with(start), "{found}\ndoes not begin with\n{start}");
    }
}

#[test]
fn a_house_in_order_is_left_alone() {
    expect(&with(ROOT), &[]);
}

#[test]
fn a_part_names_no_sibling_by_any_path() {
    let uses = "//! S.\nuse crate::house::ground;\nuse super::super::{\n    cellar::Bottle,\n    ground::Floor,\n};\n";
    expect(
        &with((STOVE.0, uses)),
        &["crates/a/src/house/kitchen/stove.rs:3: `kitchen` may not name `cellar`: take it as an argument"],
    );
    let inline = "//! C.\nuse super::ground;\nfn f() {\n    let pan = crate::house::kitchen::Pan::new(); // kitchen\n}\n";
    expect(&with((CELLAR.0, inline)), &["crates/a/src/house/cellar.rs:4: `cellar` may not name `kitchen`"]);
}

#[test]
fn methods_stand_with_their_type() {
    let foreign = "//! S.\nuse super::Pan;\nuse crate::house::ground;\nimpl ground::Floor {\n    fn sweep() {}\n}\n\
                   impl Clone for ground::Floor {\n}\nenum Fire {\n}\nimpl Fire {\n}\n";
    expect(
        &with((STOVE.0, foreign)),
        &["crates/a/src/house/kitchen/stove.rs:4: methods of `Floor` belong to `ground`, which has the type"],
    );
}

#[test]
fn tests_and_comments_name_what_they_like() {
    let tested = "//! C. `super::kitchen`\nuse super::ground;\n#[cfg(test)]\nmod tests {\n    use crate::house::kitchen;\n}\n";
    expect(&with((CELLAR.0, tested)), &[]);
    let file = ("crates/a/src/house/cellar/tests.rs", "//! T.\nuse crate::house::kitchen::Pan;\n");
    expect(&with(file), &[]);
}

#[test]
fn nobody_names_the_root() {
    let named = "//! C.\nuse super::ground;\nuse crate::house::Door;\nuse super::*;\n";
    expect(
        &with((CELLAR.0, named)),
        &[
            "crates/a/src/house/cellar.rs:3: `cellar` names `Door` of the root of `crate::house`",
            "crates/a/src/house/cellar.rs:4: `cellar` names `*` of the root",
        ],
    );
}

#[test]
fn the_table_has_a_row_a_part_and_no_arrow_too_many() {
    let attic = ("crates/a/src/house/attic.rs", "//! A.\n");
    expect(&with(attic), &["crates/a/src/house/attic.rs:1: `attic` has no row"]);
    expect(
        &with((CELLAR.0, "//! C.\n")),
        &["xtask/src/tidy/parts.rs:1: `cellar` of `crate::house` names nothing of `ground`"],
    );
    expect(
        &findings(&TABLE, &[ROOT, GROUND, KITCHEN, STOVE, HOST]),
        &[
            "xtask/src/tidy/parts.rs:1: `cellar` of `crate::house` names nothing of `ground`",
            "xtask/src/tidy/parts.rs:1: `crate::house` has no part `cellar`",
        ],
    );
}

#[test]
fn a_table_with_a_cycle_fails() {
    const ROWS: &[(&str, &[&str])] = &[
        ("ground", &["host"]),
        ("kitchen", &["ground"]),
        ("cellar", &["ground"]),
        ("host", &["cellar", "kitchen"]),
    ];
    let ground = (GROUND.0, "//! G.\nuse super::host::Host;\n");
    expect(
        &findings(&Table { rows: ROWS, ..TABLE }, &[ROOT, ground, KITCHEN, STOVE, CELLAR, HOST]),
        &[
            "xtask/src/tidy/parts.rs:1: the parts of `crate::house` name each other: ground -> host -> kitchen -> ground",
        ],
    );
}

#[test]
fn a_conductor_has_its_bounds_wherever_its_methods_stand() {
    let kitchen = format!("{}impl super::host::Host<'_> {{\n    fn cook() {{}}\n}}\n", KITCHEN.1);
    expect(
        &with((KITCHEN.0, &kitchen)),
        &[
            "crates/a/src/house/host.rs:1: `Host` has 1 fields and 3 methods, more than 1 and 2",
            "crates/a/src/house/kitchen.rs:4: `kitchen` may not name `host`",
            "crates/a/src/house/kitchen.rs:4: methods of `Host` belong to `host`, which has the type",
        ],
    );
    let host = format!("{}impl Host<'_> {{\n    fn third() {{}}\n}}\n", HOST.1);
    expect(
        &with((HOST.0, &host)),
        &["crates/a/src/house/host.rs:1: `Host` has 1 fields and 3 methods, more than 1 and 2"],
    );
}

#[test]
fn a_crate_of_layers_has_no_conductor() {
    const LAYERS: Table = Table {
        module: "crate",
        folder: "crates/b/src",
        conductor: None,
        rows: &[("ground", &[]), ("roof", &["ground"])],
        plain: None,
    };
    let root = ("crates/b/src/lib.rs", "//! R.\npub mod ground;\npub mod roof;\npub use roof::Tile;\n");
    let ground = ("crates/b/src/ground.rs", "//! G.\n");
    let roof = ("crates/b/src/roof.rs", "//! R.\nuse crate::ground;\n");
    expect(&findings(&LAYERS, &[root, ground, roof]), &[]);
    let ground = ("crates/b/src/ground/floor.rs", "//! F.\nuse crate::roof::Chimney;\n");
    expect(
        &findings(&LAYERS, &[root, ground, roof]),
        &[
            "crates/b/src/ground/floor.rs:2: `ground` may not name `roof`: take it as an argument, or move what both",
        ],
    );
}

#[test]
fn every_table_of_the_tree_describes_its_conductor() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let text = describe(&Tree::read(root).expect("the tree can be read"));
    for table in TABLES {
        let Some(Conductor { name, .. }) = table.conductor else { continue };
        let line = text.lines().find(|line| line.starts_with(&format!("{}: `{name}`", table.module)));
        assert!(line.is_some_and(|line| !line.contains(" 0 methods")), "{text}");
    }
}

#[test]
fn a_field_that_another_part_could_change_is_refused_but_of_a_plain_value() {
    let table = Table {
        module: "crate::house",
        folder: "crates/a/src/house",
        conductor: None,
        rows: &[("kitchen", &[]), ("pantry", &[])],
        plain: Some(&["Letter"]),
    };
    let kitchen = (
        "crates/a/src/house/kitchen.rs",
        "//! K.\nmod stove;\npub(crate) struct Kitchen {\n    pub(in crate::house) stove: Stove,\n\
         \x20   pub(in crate::house) pots: Vec<Stove>,\n    pub(super) lids: u8,\n    spoons: u8,\n}\n\
         pub struct Letter {\n    pub words: String,\n}\nstruct Own {\n    pub lid: u8,\n}\n\
         fn f() {\n    let pub_ = Kitchen { lids: 1 };\n}\n",
    );
    let stove = (
        "crates/a/src/house/kitchen/stove.rs",
        "//! S.\npub(super) struct Oven {\n    pub hot: bool,\n}\npub(in crate::house) struct Stove {\n\
         \x20   pub(super) fire: u8,\n    pub(in crate::house::kitchen) ash: u8,\n    pub wood: &'static mut u8,\n}\n",
    );
    let pantry = ("crates/a/src/house/pantry.rs", "//! P.\n");
    let root = ("crates/a/src/house.rs", "//! R.\nmod kitchen;\nmod pantry;\n");
    expect(
        &findings(&table, &[root, kitchen, stove, pantry]),
        &[
            "crates/a/src/house/kitchen.rs:5: other parts can change `pots` of `Kitchen`",
            "crates/a/src/house/kitchen.rs:6: other parts can change `lids` of `Kitchen`",
            "crates/a/src/house/kitchen/stove.rs:8: other parts can change `wood` of `Stove`",
        ],
    );
    let unneeded = Table { plain: Some(&["Letter", "Stamp"]), ..table };
    let found = findings(&unneeded, &[root, kitchen, stove, pantry]);
    expect(&found[3..], &["xtask/src/tidy/parts.rs:1: no field of `Stamp` is seen by other parts"]);
}
