//! What the pure crates never do: read a clock, draw a random number, depend on hash order, touch the machine, wait.
//!
//! Clippy bans the calls by type; this bans the names, so that no import slips through. Test code is free.

use super::Report;
use super::code::{Source, has_word};

pub const PURE_CRATES: [&str; 14] = [
    "ensue-types",
    "ensue-resp",
    "ensue-acl",
    "ensue-rdb",
    "ensue-wire",
    "ensue-protocol",
    "ensue-store",
    "ensue-branch",
    "ensue-script",
    "ensue-node",
    "ensue-byzantine",
    "ensue-prophecy",
    "ensue-trods",
    "ensue-replica",
];

const TIME: &str = "time is an argument: take `now: Now`";
const DISK: &str = "emit a disk operation as data";
const MACHINE: &str = "a shell does this: hand it in as an input or out as an output";
const ORDER: &str = "its order differs from run to run: take a BTreeMap, or hashbrown with `FixedState`";
const ENTROPY: &str = "randomness is an argument: take a seed, or derive it from ids";
const WAITING: &str = "run one input to completion and keep what waits in a state";
const PRINTING: &str = "emit a trace event";
const UNWRAP: &str = "return an error, or `expect` with the reason why it holds";

/// A name, and what to do instead.
const BANNED: [(&str, &str); 28] = [
    ("std::net", MACHINE),
    ("std::fs", DISK),
    ("std::thread", MACHINE),
    ("std::process", MACHINE),
    ("std::env", "configuration is an argument"),
    ("std::time", TIME),
    ("Instant", TIME),
    ("SystemTime", TIME),
    ("std::collections::HashMap", ORDER),
    ("std::collections::HashSet", ORDER),
    ("std::collections::hash_map", ORDER),
    ("std::collections::hash_set", ORDER),
    ("RandomState", ORDER),
    ("rand::", ENTROPY),
    ("getrandom::", ENTROPY),
    ("fastrand::", ENTROPY),
    ("thread_rng", ENTROPY),
    ("tokio::", WAITING),
    ("mio::", MACHINE),
    ("async fn", WAITING),
    ("async move", WAITING),
    (".await", WAITING),
    ("println!", PRINTING),
    ("eprintln!", PRINTING),
    ("print!", PRINTING),
    ("eprint!", PRINTING),
    ("dbg!", PRINTING),
    (".unwrap()", UNWRAP),
];

pub fn check(sources: &[Source<'_>], report: &mut Report) {
    for source in sources.iter().filter(|source| is_pure(source)) {
        for (index, line) in source.lines.iter().enumerate().filter(|(_, line)| !line.in_test) {
            find_banned(source.path, index, &line.code, report);
        }
        let imports = source.imports();
        for (index, path) in imports.iter().filter(|(index, _)| !source.lines[*index].in_test) {
            find_banned(source.path, *index, path, report);
        }
        check_hasher(source, report);
    }
}

fn is_pure(source: &Source<'_>) -> bool {
    source.path.starts_with("crates/") && PURE_CRATES.contains(&source.package())
}

fn find_banned(path: &str, index: usize, code: &str, report: &mut Report) {
    for (name, instead) in BANNED {
        if has_word(code, name) {
            report.find(path, index + 1, format!("`{name}` in a pure crate: {instead}"));
        }
    }
}

/// The default hasher of hashbrown draws a seed when the process starts; a file that names its maps names a fixed one.
fn check_hasher(source: &Source<'_>, report: &mut Report) {
    let names = |line: &str, word: &str| has_word(line, word);
    let fixed = source
        .lines
        .iter()
        .any(|line| names(&line.code, "FixedState") || names(&line.code, "BuildHasherDefault"));
    let imports = source.imports();
    let map = imports
        .iter()
        .map(|(index, path)| (*index, path.as_str()))
        .chain(source.lines.iter().enumerate().map(|(index, line)| (index, line.code.as_str())));
    for (index, code) in map {
        let seeded = names(code, "hashbrown::HashMap") || names(code, "hashbrown::HashSet");
        if seeded && !fixed && !source.lines[index].in_test {
            let message = "hashbrown with its default hasher, whose order differs from run to run: name `FixedState` of \
                           foldhash as the hasher here";
            report.find(source.path, index + 1, message);
        }
    }
}
