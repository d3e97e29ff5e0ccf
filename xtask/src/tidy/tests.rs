//! Each check on a small tree: what it finds, and what it leaves alone.

use super::code::{Function, Source};
use super::*;

/// The findings of one check on a tree, as they are printed.
fn check_with(files: &[(&str, &str)], run: impl Fn(&Tree, &[Source<'_>], &mut Report)) -> Vec<String> {
    let tree = Tree::from_files(files);
    let sources = Source::all(&tree);
    let mut report = Report::default();
    run(&tree, &sources, &mut report);
    report.findings.sort();
    report.findings.dedup();
    report.findings.iter().map(|finding| finding.to_string()).collect()
}

#[track_caller]
fn expect(findings: &[String], expected: &[&str]) {
    assert_eq!(findings.len(), expected.len(), "{findings:#?}");
    for (finding, start) in findings.iter().zip(expected) {
        assert!(finding.starts_with(start), "{finding}\ndoes not begin with\n{start}");
    }
}

fn function_of(lines: usize) -> String {
    format!("//! A file.\n\nfn long() {{\n{}}}\n", "    work();\n".repeat(lines - 2))
}

#[test]
fn comments_and_strings_are_taken_apart() {
    let text =
        "let a = \"// not {\"; // a { comment\nlet b = '{'; let c: &'a str = r#\"}\"#; /* } /* } */ */ d\n";
    let source = Source::new("a.rs", text);
    assert_eq!(source.lines[0].code.trim_end(), "let a = \"        \";");
    assert_eq!(source.lines[0].text.trim_end(), "let a = \"// not {\";");
    assert_eq!(source.lines[1].code, "let b = ' '; let c: &'a str = r#\" \"#;                 d");
    assert_eq!(source.lines.len(), 2);
}

#[test]
fn escaped_quotes_do_not_end_a_literal() {
    let source = Source::new("a.rs", "f('\\'', b'\\\\', \"\\\"{\", br\"\\\", '\\u{1F}') }\n");
    assert_eq!(source.lines[0].code, "f('  ', b'  ', \"   \", br\" \", '      ') }");
}

#[test]
fn a_function_runs_to_its_closing_brace() {
    let text = "trait T {\n    fn declared(&self, a: [u8; 4]) -> u8;\n}\npub(crate) const fn short() {}\n\
                fn wide(\n    f: fn(u8) -> u8,\n) -> u8 {\n    if a {\n    }\n    b\n}\n";
    let functions = Source::new("a.rs", text).functions();
    let function = |name: &str, line, lines| Function { name: name.into(), line, lines };
    assert_eq!(functions, [function("short", 4, 1), function("wide", 5, 7)]);
}

#[test]
fn test_items_and_test_files_are_known() {
    let tree = Tree::from_files(&[
        (
            "crates/a/src/lib.rs",
            "//! A.\nfn a() {}\n#[cfg(test)]\nmod inline {\n    fn b() {}\n}\nfn c() {}\n",
        ),
        ("crates/a/src/b.rs", "//! B.\n#[cfg(test)]\nmod contract;\n"),
        ("crates/a/src/b/contract.rs", "//! C.\n"),
        ("crates/a/src/b/contract/deep.rs", "//! C.\n"),
        ("crates/a/src/b/other.rs", "//! D.\n#[cfg(not(test))]\nfn d() {}\n"),
        ("crates/a/src/tests.rs", "//! T.\n"),
        ("crates/a/tests/all.rs", "//! T.\n"),
    ]);
    let sources = Source::all(&tree);
    let tests: Vec<&str> = sources.iter().filter(|source| source.is_test).map(|source| source.path).collect();
    assert_eq!(
        tests,
        [
            "crates/a/src/b/contract.rs",
            "crates/a/src/b/contract/deep.rs",
            "crates/a/src/tests.rs",
            "crates/a/tests/all.rs"
        ]
    );
    let lib = sources.iter().find(|source| source.path == "crates/a/src/lib.rs").expect("it is in the tree");
    let in_test: Vec<bool> = lib.lines.iter().map(|line| line.in_test).collect();
    assert_eq!(in_test, [false, false, true, true, true, true, false]);
}

#[test]
fn a_file_opens_with_a_header() {
    let files =
        [("crates/a/src/lib.rs", "fn main() {}\n"), ("crates/a/src/b.rs", "//! What it is.\n"), ("c.rs", "")];
    expect(&check_with(&files, shape::check), &["c.rs:1: no header", "crates/a/src/lib.rs:1: no header"]);
}

#[test]
fn a_function_fits_a_screen_or_is_exempted() {
    let (fits, long) = (function_of(70), function_of(71));
    let found = check_with(&[("a.rs", &fits), ("b.rs", &long), ("x/tests.rs", &long)], shape::check);
    expect(&found, &["b.rs:3: `long` has 71 lines, more than 70"]);

    let exempt = (shape::EXEMPTIONS, "# Reasons.\nfunction b.rs long: one match, read as a table\n");
    expect(&check_with(&[("b.rs", &long), exempt], shape::check), &[]);
}

#[test]
fn an_exemption_has_a_reason_and_a_use() {
    let exempt = (shape::EXEMPTIONS, "function a.rs gone: it was long\nfile b.rs:\n");
    let found = check_with(&[("a.rs", "//! A.\n"), exempt], shape::check);
    expect(
        &found,
        &[
            "xtask/tidy-exemptions.txt:1: `function a.rs gone` needs no exemption",
            "xtask/tidy-exemptions.txt:2: no reason",
        ],
    );
}

#[test]
fn a_file_has_a_ceiling() {
    let long = format!("//! A.\n{}", "//\n".repeat(800));
    expect(&check_with(&[("a.rs", &long)], shape::check), &["a.rs:1: 801 lines, more than 800"]);
    let exempt = (shape::EXEMPTIONS, "file a.rs: generated from the table of commands\n");
    expect(&check_with(&[("a.rs", &long), exempt], shape::check), &[]);
}

#[test]
fn the_code_map_is_the_tree() {
    let crates =
        [("crates/ensue-a/Cargo.toml", ""), ("crates/ensue-b/Cargo.toml", ""), ("xtask/Cargo.toml", "")];
    let map = "# A\n### `ensue-a`\nText.\n**Invariant:** it does no I/O.\n### `ensue-gone`\n**Invariant:** none.\n\
               ### `xtask`\n## Next\n**Invariant:** of no crate.\n";
    let mut files = crates.to_vec();
    files.push((map::MAP, map));
    expect(
        &check_with(&files, |tree, _, report| map::check(tree, report)),
        &[
            "ARCHITECTURE.md:1: the code map lacks `ensue-b`",
            "ARCHITECTURE.md:5: there is no crate `ensue-gone`",
            "ARCHITECTURE.md:7: `xtask` has 0 lines that begin with `**Invariant:**`",
        ],
    );
    let mut report = Report::default();
    map::check(&Tree::from_files(&crates), &mut report);
    assert_eq!((report.findings.len(), report.warnings.len()), (0, 1));
}

#[track_caller]
fn check_purity(path: &str, text: &str, expected: &[&str]) {
    expect(&check_with(&[(path, text)], |_, sources, report| purity::check(sources, report)), expected);
}

#[test]
fn a_pure_crate_names_nothing_of_the_machine() {
    let text = "//! std::fs in a comment.\nuse std::{fmt, fs, collections::{BTreeMap, HashMap}};\nlet a = \"std::net\";\n\
                let t = Instant::now();\nx.unwrap();\nx.unwrap_or(1);\nasync fn f() {}\n";
    check_purity(
        "crates/ensue-node/src/a.rs",
        text,
        &[
            "crates/ensue-node/src/a.rs:2: `std::collections::HashMap` in a pure crate",
            "crates/ensue-node/src/a.rs:2: `std::fs` in a pure crate",
            "crates/ensue-node/src/a.rs:4: `Instant` in a pure crate",
            "crates/ensue-node/src/a.rs:5: `.unwrap()` in a pure crate",
            "crates/ensue-node/src/a.rs:7: `async fn` in a pure crate",
        ],
    );
    check_purity("crates/ensue-server/src/a.rs", text, &[]);
    check_purity("crates/ensue-node/src/a/tests.rs", text, &[]);
}

#[test]
fn an_import_over_several_lines_is_seen() {
    let text = "//! A.\nuse std::{\n    collections::{\n        HashSet,\n    },\n    fmt,\n};\nlet strand = operand::new();\n";
    check_purity(
        "crates/ensue-wire/src/a.rs",
        text,
        &["crates/ensue-wire/src/a.rs:2: `std::collections::HashSet`"],
    );
}

#[test]
fn hashbrown_takes_a_fixed_hasher() {
    let path = "crates/ensue-store/src/a.rs";
    check_purity(
        path,
        "//! A.\nuse hashbrown::HashMap;\n",
        &["crates/ensue-store/src/a.rs:2: hashbrown with its default"],
    );
    check_purity(
        path,
        "//! A.\nuse foldhash::fast::FixedState;\nuse hashbrown::{HashMap, HashTable};\n",
        &[],
    );
}

#[test]
fn only_some_crates_name_a_protocol() {
    let text = "//! Eiger in a comment.\nfn eiger_read() {}\nlet a = \"orbe-clock\";\nstruct HaPocc;\nfn secure(copse: u8) {}\n\
                #[cfg(test)]\nmod tests {\n    use cops;\n}\n";
    let register = |name| {
        format!(
            "//! A.\npub const REGISTRATION: Registration = Registration {{\n    name: \"{name}\",\n}};\n"
        )
    };
    let registered = ["eiger", "orbe-clock", "ha-pocc", "cops", "log"].map(register).concat();
    let files = |path| [("crates/ensue-protocol/src/all.rs", registered.clone()), (path, text.to_owned())];
    let check = |path| {
        let files = files(path);
        let files = files.each_ref().map(|(path, text)| (*path, text.as_str()));
        check_with(&files, |_, sources, report| protocol_names::check(sources, report))
    };
    expect(
        &check("crates/ensue-node/src/a.rs"),
        &[
            "crates/ensue-node/src/a.rs:2: names the protocol `eiger`",
            "crates/ensue-node/src/a.rs:3: names the protocol `orbe`",
            "crates/ensue-node/src/a.rs:4: names the protocol `pocc`",
        ],
    );
    for path in
        ["crates/ensue-protocol/src/a.rs", "crates/ensue-server/src/config.rs", "crates/ensue/src/main.rs"]
    {
        expect(&check(path), &[]);
    }
    assert_eq!(check("crates/ensue-server/src/pump.rs").len(), 3);
}

#[test]
fn a_manifest_names_its_dependencies() {
    let text = "[package]\nname = \"a\"\n[dependencies]\nbytes.workspace = true\nlog = { version = \"1\", features = [\n  \
                \"std = 1\",\n] }\nmine = { package = \"theirs\", version = \"1\" } # why\n[target.'cfg(unix)'.dev-dependencies]\n\
                libc = \"1\"\n[dependencies.mio]\nversion = \"1\"\n[lints]\nworkspace = true\n";
    let found: Vec<(String, usize)> = manifest::dependencies(text)
        .into_iter()
        .map(|dependency| (dependency.name, dependency.line))
        .collect();
    let expected = [("bytes", 4), ("log", 5), ("theirs", 8), ("libc", 10), ("mio", 11)];
    assert_eq!(found, expected.map(|(name, line)| (name.to_string(), line)));
}

#[test]
fn arrows_point_one_way() {
    let files = [
        ("crates/ensue-types/Cargo.toml", "[dependencies]\nbytes = \"1\"\n"),
        (
            "crates/ensue-store/Cargo.toml",
            "[dependencies]\nensue-types.workspace = true\nensue-node.workspace = true\n",
        ),
        ("crates/ensue-node/Cargo.toml", "[dependencies]\nensue-store.workspace = true\n"),
        ("crates/ensue-new/Cargo.toml", ""),
        ("crates/ensue/Cargo.toml", "[dependencies]\nensue-new.workspace = true\n"),
    ];
    expect(
        &check_with(&files, |tree, _, report| arrows::check(tree, report)),
        &[
            "crates/ensue-new/Cargo.toml:1: `ensue-new` has no row",
            "crates/ensue-store/Cargo.toml:3: `ensue-store` may not depend on `ensue-node`",
        ],
    );
}

#[test]
fn a_dependency_is_on_the_list() {
    let tree = Tree::from_files(&[
        (
            "crates/ensue-types/Cargo.toml",
            "[dependencies]\nbytes = \"1\"\n[dev-dependencies]\nrand = \"1\"\n",
        ),
        ("crates/ensue/Cargo.toml", "[dependencies]\nensue-types.workspace = true\n"),
        (dependencies::ALLOWED, "# Why.\nbytes: shared slices\nclap: options\nmio:\n"),
    ]);
    let mut report = Report::default();
    dependencies::check(&tree, &mut report);
    report.findings.sort();
    let findings: Vec<String> = report.findings.iter().map(Finding::to_string).collect();
    expect(
        &findings,
        &[
            "crates/ensue-types/Cargo.toml:4: `rand` is not on the list",
            "xtask/dependencies.txt:4: no reason",
        ],
    );
    assert_eq!(report.warnings.len(), 1);
    assert_eq!(report.warnings[0].to_string(), "xtask/dependencies.txt:3: no member uses `clap`");
}

#[test]
fn unfinished_work_does_not_merge() {
    let text = format!(
        "//! A.\n// {}: later\nfn a() {{ todo!() }}\nlet b = \"todo!\"; // SETXXX\n",
        concat!("FIX", "ME")
    );
    let found = check_with(&[("a.rs", &text), ("a.md", &text)], words::check);
    let fixme = format!("a.rs:2: `{}` does not merge", concat!("FIX", "ME"));
    expect(&found, &[&fixme, "a.rs:3: `todo!` does not merge"]);
}

#[test]
fn a_file_is_named_after_what_is_in_it() {
    let files = [
        ("a/mod.rs", "//! A.\n"),
        ("a/disk_utils.rs", "//! A.\n"),
        ("a/futile.rs", "//! A.\n"),
        ("helper.py", ""),
    ];
    expect(
        &check_with(&files, words::check),
        &[
            "a/disk_utils.rs:1: `disk_utils` says nothing",
            "a/mod.rs:1: mod.rs",
            "helper.py:1: `helper` says nothing",
        ],
    );
}

#[test]
fn no_tabs_and_no_blanks_at_the_end() {
    let files = [("a.rs", "//! A. \n\tb\n"), ("a.md", "ok\n\tcode\n"), ("Makefile", "\tc\n")];
    expect(
        &check_with(&files, words::check),
        &["a.md:2: a tab", "a.rs:1: blanks at the end", "a.rs:2: a tab"],
    );
}

#[test]
fn nothing_names_one_machine() {
    let text = format!("see {}\nsee docs{}\n", concat!("/wo", "rk/main"), concat!("/wo", "rk/main"));
    let found = check_with(&[("docs/a.md", &text)], words::check);
    expect(&found, &["docs/a.md:1: `"]);
    let lock = format!("{}\nsource = \"registry+https://elsewhere\"\n", words::LOCK_SOURCE);
    expect(&check_with(&[("Cargo.lock", &lock)], words::check), &["Cargo.lock:2: a package from elsewhere"]);
}

#[test]
fn lines_of_documents_and_comments_end_where_a_terminal_does() {
    let (fits, long) = ("é".repeat(120), "é".repeat(121));
    let text = format!("{fits}\n{long}\n");
    let source = format!("//! {fits}\nlet a = \"{long}\";\n// a | {long}\n");
    let files = [("docs/a.md", &text), ("docs/figures/b.md", &text), ("a.csv", &text), ("a.rs", &source)];
    let files = files.map(|(path, text)| (path, text.as_str()));
    let found = ["a.rs:1: 124 columns, more than 120", "docs/a.md:2: 121 columns, more than 120"];
    expect(&check_with(&files, words::check), &found);
}

#[test]
fn links_lead_somewhere() {
    let text = "[a](b.md) [c](../README.md#top) [d](https://example.org/x) [e](#here) ![f](none.png)\n`[g](no.md)`\n\
                ```\n[h](no.md)\n```\n[i]: gone.md\n[j](decisions) [k](../../outside.md)\n";
    let files = [
        ("README.md", "[l](docs/a.md)\n"),
        ("docs/a.md", text),
        ("docs/b.md", ""),
        ("docs/decisions/1.md", ""),
    ];
    expect(
        &check_with(&files, |tree, _, report| links::check(tree, report)),
        &[
            "docs/a.md:1: the link to `none.png` leads nowhere",
            "docs/a.md:6: the link to `gone.md` leads nowhere",
            "docs/a.md:7: the link to `../../outside.md` leads nowhere",
        ],
    );
}

#[test]
fn an_old_name_is_refused_in_code_of_its_crates() {
    let files = [
        (
            "crates/ensue-node/src/a.rs",
            "//! A desk.\nfn a(desk: u8) {} // a desk\nlet washdesk = \"desk\";\n",
        ),
        ("crates/ensue-check/src/a.rs", "//! A.\nfn a(desk: u8) {}\n"),
    ];
    let found = check_with(&files, |_, sources, report| old_names::check(sources, report));
    expect(&found, &["crates/ensue-node/src/a.rs:2: `desk` is an old name: write `evaluation`"]);
}
