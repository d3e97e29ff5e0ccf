//! Which part of a large module may name which, as `arrows` does for crates: one table a module.
//!
//! A part is a file or a folder directly below the module. What is not in the table fails, and so does a cycle, a row
//! or an arrow that nobody needs, a method outside of the part that has its type, a field that another part could
//! change, and a conductor that grows beyond its bounds. Tests may name everything.

use super::Report;
use super::code::{Source, has_word};
use super::tree::Tree;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// A module that is made of parts.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Its path in its crate, as `crate::session`.
    pub module: &'static str,
    /// Its folder; the file of the same name beside it, or the `lib.rs` of a whole crate, is its root, which may name
    /// every part.
    pub folder: &'static str,
    /// `None`: the parts are layers, and whoever needs several stands above them.
    pub conductor: Option<Conductor>,
    /// A part, and which others it may name.
    pub rows: &'static [(&'static str, &'static [&'static str])],
    /// Structs whose fields other parts may see: values that parts pass to each other, and loans of several parts. All
    /// others keep their fields to themselves, but those that are parts of a part. `None`: nothing is said of fields.
    pub plain: Option<&'static [&'static str]>,
}

/// The one type that knows the order of things.
#[derive(Clone, Copy, Debug)]
pub struct Conductor {
    pub name: &'static str,
    pub fields_max: usize,
    pub methods_max: usize,
}

/// What steps of a session may use, beside its surroundings.
const SESSION_STEP: &[&str] = &["contexts", "cx", "failure", "plan", "step"];

pub const TABLES: &[Table] = &[SESSION, PARTITION, SIMULATOR];

const SESSION: Table = Table {
    module: "crate::session",
    folder: "crates/ensue-node/src/session",
    conductor: Some(Conductor { name: "Turn", fields_max: 2, methods_max: 32 }),
    rows: &[
        ("access", &[]),
        ("audited", &[]),
        ("channels", &[]),
        ("contexts", &[]),
        ("failure", &[]),
        ("home_requests", &[]),
        ("home_serving", &[]),
        ("home_waits", &[]),
        ("known_scripts", &[]),
        ("latency", &[]),
        ("links", &[]),
        ("monitor", &[]),
        ("output", &[]),
        ("parameters", &[]),
        ("pause", &["plan"]),
        ("put_back", &[]),
        ("reply_buffer", &[]),
        ("slow_log", &[]),
        ("tracking", &[]),
        ("timers", &[]),
        ("write_marks", &[]),
        ("plan", &["failure"]),
        ("requests", &["timers", "write_marks"]),
        (
            "core_state",
            &[
                "access",
                "audited",
                "channels",
                "home_requests",
                "home_serving",
                "known_scripts",
                "latency",
                "links",
                "output",
                "parameters",
                "pause",
                "slow_log",
                "timers",
                "tracking",
            ],
        ),
        ("called", &["core_state", "monitor"]),
        ("inquiry", &["core_state"]),
        ("step", &["failure", "plan"]),
        ("cx", &["contexts", "core_state", "failure", "requests", "step"]),
        (
            "homes",
            &["contexts", "core_state", "cx", "failure", "home_requests", "home_waits", "put_back", "step"],
        ),
        (
            "commands",
            &[
                "access",
                "contexts",
                "cx",
                "failure",
                "homes",
                "plan",
                "put_back",
                "slow_log",
                "step",
                "write_marks",
            ],
        ),
        ("transactions", SESSION_STEP),
        ("causal", &["contexts", "cx", "failure", "inquiry", "plan", "step"]),
        ("pubsub", &["core_state", "cx", "inquiry", "step"]),
        (
            "admin",
            &[
                "access",
                "core_state",
                "cx",
                "failure",
                "latency",
                "output",
                "parameters",
                "pause",
                "plan",
                "reply_buffer",
                "step",
                "tracking",
            ],
        ),
        ("exchange", &["admin", "causal", "commands", "cx", "failure", "homes", "step", "transactions"]),
        (
            "connection",
            &[
                "admin",
                "audited",
                "causal",
                "channels",
                "commands",
                "contexts",
                "exchange",
                "failure",
                "homes",
                "reply_buffer",
                "requests",
                "timers",
                "transactions",
            ],
        ),
        (
            "begin",
            &[
                "access",
                "admin",
                "causal",
                "commands",
                "connection",
                "cx",
                "homes",
                "monitor",
                "pause",
                "plan",
            ],
        ),
        (
            "turn",
            &[
                "access",
                "admin",
                "audited",
                "begin",
                "causal",
                "commands",
                "connection",
                "core_state",
                "cx",
                "exchange",
                "failure",
                "homes",
                "output",
                "pause",
                "plan",
                "pubsub",
                "reply_buffer",
                "requests",
                "step",
                "transactions",
            ],
        ),
    ],
    plain: Some(&[
        // What every part is lent, of this session and of its core.
        "CoreState",
        "Cx",
        // What the conductor deals out to the parts.
        "Parts",
        "Session",
        // What was asked, and what is answered.
        "Activity",
        "Asked",
        "Check",
        "Counted",
        "Findings",
        "Kill",
        "Options",
        "Group",
        "Published",
        "Publisher",
        "Reconnected",
        "Running",
        "Sender",
        "Token",
        // What was counted.
        "Counters",
        "Messages",
    ]),
};

const SIMULATOR: Table = Table {
    module: "crate",
    folder: "crates/ensue-sim/src",
    conductor: None,
    rows: &[
        ("protocols", &[]),
        ("random", &[]),
        ("resp", &[]),
        ("rules", &[]),
        ("stopwatch", &[]),
        ("oracle", &["random", "resp"]),
        ("world", &["oracle", "random", "resp", "rules", "stopwatch"]),
        ("faults", &["random", "world"]),
        ("workload", &["oracle", "random", "resp", "world"]),
        ("branching", &["oracle", "random", "resp", "workload", "world"]),
        ("seed", &["branching", "faults", "oracle", "protocols", "random", "rules", "workload", "world"]),
        ("run", &["branching", "faults", "oracle", "resp", "rules", "workload", "world"]),
        ("shrink", &["faults", "oracle", "rules", "run", "world"]),
        ("script", &["faults", "protocols", "random", "resp", "rules", "run", "workload", "world"]),
        ("cli", &["oracle", "protocols", "rules", "run", "script", "shrink", "world"]),
    ],
    plain: None,
};

/// In the order of decision 23: each part names some of those above it.
const PARTITION: Table = Table {
    module: "crate::partition",
    folder: "crates/ensue-node/src/partition",
    conductor: Some(Conductor { name: "Partition", fields_max: 9, methods_max: 45 }),
    rows: &[
        ("json", &[]),
        ("order", &[]),
        ("journal", &[]),
        ("work", &[]),
        ("cx", &["journal", "json", "order"]),
        ("replication", &["cx", "journal", "order"]),
        ("stable_time", &["cx"]),
        ("failover", &["cx"]),
        ("others", &["cx", "failover", "journal", "replication", "stable_time"]),
        ("branching", &["cx", "work"]),
        (
            "keyspaces",
            &["branching", "cx", "failover", "journal", "json", "order", "others", "stable_time", "work"],
        ),
        ("reads", &["cx", "failover", "keyspaces", "order", "others", "stable_time", "work"]),
        ("transactions", &["cx", "journal", "keyspaces", "order", "others", "work"]),
        (
            "visibility",
            &[
                "branching",
                "cx",
                "failover",
                "journal",
                "keyspaces",
                "others",
                "replication",
                "transactions",
                "work",
            ],
        ),
        ("execution", &["cx", "keyspaces", "order", "others", "reads", "transactions", "visibility", "work"]),
        ("peers", &["cx", "failover", "others"]),
        ("persistence", &["cx", "journal", "keyspaces", "others", "peers", "transactions"]),
        (
            "peering",
            &[
                "cx",
                "journal",
                "keyspaces",
                "others",
                "peers",
                "persistence",
                "replication",
                "transactions",
                "visibility",
            ],
        ),
        (
            "recovery",
            &[
                "branching",
                "cx",
                "failover",
                "journal",
                "others",
                "peering",
                "peers",
                "persistence",
                "replication",
            ],
        ),
        ("stage", &["recovery"]),
        ("maintenance", &["cx", "keyspaces", "others", "peers", "reads", "transactions"]),
    ],
    plain: Some(&[
        // What every part is lent.
        "Cx",
        // Loans of several parts, for one step.
        "Executor",
        "Metrics",
        "Peering",
        "Visibility",
        // Work, and its place among other work.
        "Execution",
        "Moment",
        "Served",
        "Used",
        // What a log began, and what a checkpoint holds of a stream.
        "AppliedSet",
        "Begun",
        "Open",
        // What messages say, and what those wait for that sent them.
        "Announced",
        "Answered",
        "AwaitedTimes",
        "Batch",
        "CommitCheck",
        "FirstRead",
        "Have",
        "Known",
        "ReplicaWait",
        "SecondRead",
        "SnapshotPart",
        "StreamEnd",
        "Unblocked",
        "Wait",
        "Wanted",
        // What was counted, or is answered.
        "LossCounts",
        "Refusals",
        "RowCounts",
        "Shown",
    ]),
};

/// One part names another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Arrow {
    from: String,
    to: String,
    path: String,
    line: usize,
}

pub fn check(tree: &Tree, sources: &[Source<'_>], report: &mut Report) {
    for table in TABLES.iter().filter(|table| tree.has(table.folder)) {
        check_table(table, sources, report);
    }
}

fn check_table(table: &Table, sources: &[Source<'_>], report: &mut Report) {
    check_rows(table, sources, report);
    let arrows = arrows(table, sources, report);
    for arrow in &arrows {
        let Some(allowed) = allowed(table, &arrow.from) else { continue };
        if !allowed.contains(&arrow.to.as_str()) {
            let remedy = match table.conductor {
                Some(conductor) => format!("return what happened and let `{}` go on", conductor.name),
                None => "move what both need below them".to_owned(),
            };
            let message =
                format!("`{}` may not name `{}`: take it as an argument, or {remedy}", arrow.from, arrow.to);
            report.find(&arrow.path, arrow.line, message);
        }
    }
    for (from, allowed) in table.rows {
        for to in *allowed {
            if !arrows.iter().any(|arrow| arrow.from == *from && arrow.to == *to) {
                let message =
                    format!("`{from}` of `{}` names nothing of `{to}`: delete the arrow", table.module);
                report.find(FILE, 1, message);
            }
        }
    }
    // A layer may add methods to a type of a lower one; a part may not.
    if table.conductor.is_some() {
        check_owners(table, sources, report);
    }
    if let Some(plain) = table.plain {
        check_fields(table, plain, sources, report);
    }
    let edges = |from: &str| allowed(table, from).unwrap_or_default().to_vec();
    if let Some(cycle) = cycle(table.rows.iter().map(|(part, _)| *part), edges) {
        let message = format!("the parts of `{}` name each other: {}", table.module, cycle.join(" -> "));
        report.find(FILE, 1, message);
    }
    if let Some(conductor) = table.conductor {
        check_conductor(table, conductor, sources, report);
    }
}

fn check_conductor(table: &Table, conductor: Conductor, sources: &[Source<'_>], report: &mut Report) {
    let Conductor { name, fields_max, methods_max } = conductor;
    let (file, fields, methods) = count(table, name, sources);
    if fields > fields_max || methods > methods_max {
        let message = format!(
            "`{name}` has {fields} fields and {methods} methods, more than {fields_max} and {methods_max}: give the \
             part that owns the state what it needs, and go on by what it returns"
        );
        report.find(&file, 1, message);
    }
}

/// Every part has a row, and every row a part.
fn check_rows(table: &Table, sources: &[Source<'_>], report: &mut Report) {
    let mut parts = BTreeMap::new();
    for source in sources.iter().filter(|source| !source.is_test) {
        if let Some(part) = modules(table, source.path).first() {
            parts.entry(*part).or_insert(source.path);
        }
    }
    for (part, path) in &parts {
        if allowed(table, part).is_none() {
            report.find(path, 1, format!("`{part}` has no row in the table of `{}` in {FILE}", table.module));
        }
    }
    for (part, _) in table.rows.iter().filter(|(part, _)| !parts.contains_key(part)) {
        report.find(FILE, 1, format!("`{}` has no part `{part}`: delete its row", table.module));
    }
}

/// A type's methods stand in the part that has the type: what calls them names that part, and no other.
fn check_owners(table: &Table, sources: &[Source<'_>], report: &mut Report) {
    let own = |source: &&Source<'_>| !source.is_test && !modules(table, source.path).is_empty();
    let mut owners: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for source in sources.iter().filter(own) {
        for line in source.lines.iter().filter(|line| !line.in_test) {
            if let Some(name) = declared(&line.code) {
                owners.entry(name).or_default().insert(modules(table, source.path)[0]);
            }
        }
    }
    for source in sources.iter().filter(own) {
        let part = modules(table, source.path)[0];
        for (index, line) in source.lines.iter().enumerate().filter(|(_, line)| !line.in_test) {
            let Some(name) = type_of_impl(&line.code) else { continue };
            let Some(owners) = owners.get(name).filter(|owners| !owners.contains(part)) else { continue };
            let owners: Vec<&str> = owners.iter().copied().collect();
            let message =
                format!("methods of `{name}` belong to `{}`, which has the type", owners.join("` or `"));
            report.find(source.path, index + 1, message);
        }
    }
}

/// A field that another part can see is one of a plain value, or a part of its part, which keeps its own fields.
fn check_fields(table: &Table, plain: &[&str], sources: &[Source<'_>], report: &mut Report) {
    let own = || sources.iter().filter(|source| !source.is_test && !modules(table, source.path).is_empty());
    let lines = |source: &Source<'_>| {
        let lines = source.lines.iter().enumerate().filter(|(_, line)| !line.in_test);
        lines.map(|(index, line)| (index, line.code.clone())).collect::<Vec<_>>()
    };
    let mut structs = BTreeSet::new();
    for source in own() {
        let declares =
            |code: &String| has_word(code, "struct").then(|| declared(code).map(String::from)).flatten();
        structs.extend(lines(source).iter().filter_map(|(_, code)| declares(code)));
    }
    let mut needed = BTreeSet::new();
    for source in own() {
        let depth = modules(table, source.path).len();
        let mut current: Option<String> = None;
        for (index, code) in lines(source) {
            if !code.starts_with([' ', '}', ')']) {
                let is_seen = is_seen(&code, depth);
                current = declared(&code).filter(|_| is_seen && has_word(&code, "struct")).map(String::from);
            }
            let Some(name) = &current else { continue };
            let Some((field, of)) = seen_field(&code, depth) else { continue };
            if plain.contains(&name.as_str()) {
                needed.insert(name.clone());
            } else if !structs.contains(of) {
                let message = format!(
                    "other parts can change `{field}` of `{name}`: make it private, with a method named for what they \
                     do with it; or, if it is a plain value, say so in {FILE}"
                );
                report.find(source.path, index + 1, message);
            }
        }
    }
    for name in plain.iter().filter(|name| !needed.contains(**name)) {
        report.find(
            FILE,
            1,
            format!("no field of `{name}` is seen by other parts: delete it from the plain values"),
        );
    }
}

/// Whether a declaration in a file so deep below its module is seen by other parts.
fn is_seen(code: &str, depth: usize) -> bool {
    match code.trim_start().strip_prefix("pub") {
        None => false,
        Some(rest) if rest.starts_with(' ') => true,
        Some(rest) if rest.starts_with("(crate)") => true,
        Some(rest) if rest.starts_with("(super)") => depth == 1,
        // A path with as many modules as the table's own has reaches every part, a longer one does not.
        Some(rest) => rest
            .strip_prefix("(in ")
            .and_then(|path| path.split(')').next())
            .is_some_and(|path| path.split("::").count() <= 2),
    }
}

/// The name of a field that other parts see, and the type that it is of, without the borrow.
fn seen_field(code: &str, depth: usize) -> Option<(&str, &str)> {
    let is_field = code.starts_with("    pub") && !code.starts_with("     ") && is_seen(code, depth);
    let (before, of) = code.split_once(": ").filter(|_| is_field)?;
    let name = before.rsplit(' ').next()?;
    let of = of.strip_prefix('&').map_or(of, |of| of.split_once(' ').map_or(of, |(_, of)| of));
    let of = of.strip_prefix("mut ").unwrap_or(of).trim_end_matches(',');
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    name.chars().all(is_word).then_some((name, of.split('<').next().unwrap_or(of)))
}

/// The type that a line at the left margin declares.
fn declared(code: &str) -> Option<&str> {
    let code = match code.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.strip_prefix(' ')?,
        None => code,
    };
    let rest = code.strip_prefix("struct ").or_else(|| code.strip_prefix("enum "))?;
    rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

fn allowed(table: &Table, part: &str) -> Option<&'static [&'static str]> {
    table.rows.iter().find(|(name, _)| *name == part).map(|(_, allowed)| *allowed)
}

/// The file that declares the parts.
fn root(table: &Table) -> String {
    match table.module {
        "crate" => format!("{}/lib.rs", table.folder),
        _ => format!("{}.rs", table.folder),
    }
}

/// The modules of a file below the table's: `commands::batch` for `commands/batch.rs`; none elsewhere.
fn modules<'a>(table: &Table, path: &'a str) -> Vec<&'a str> {
    if path == root(table) {
        return Vec::new();
    }
    let below = path.strip_prefix(table.folder).and_then(|rest| rest.strip_prefix('/'));
    below.and_then(|rest| rest.strip_suffix(".rs")).map(|rest| rest.split('/').collect()).unwrap_or_default()
}

/// Every arrow between two parts. What stands in the root is named by nobody: the root knows all parts.
fn arrows(table: &Table, sources: &[Source<'_>], report: &mut Report) -> Vec<Arrow> {
    let mut arrows = Vec::new();
    for source in sources.iter().filter(|source| !source.is_test) {
        let own = modules(table, source.path);
        let Some(from) = own.first() else { continue };
        for (line, path) in paths(source) {
            let Some(to) = part_of(table, &own, &path).filter(|to| to != from) else { continue };
            if allowed(table, &to).is_some() {
                arrows.push(Arrow { from: (*from).into(), to, path: source.path.into(), line });
            } else {
                let message = format!(
                    "`{from}` names `{to}` of the root of `{}`, which knows every part: move it into a part",
                    table.module
                );
                report.find(source.path, line, message);
            }
        }
    }
    arrows.sort();
    arrows.dedup();
    arrows
}

/// Every path in code that begins with `crate::` or `super::`, and the line where it stands, counted from 1.
fn paths(source: &Source<'_>) -> BTreeSet<(usize, String)> {
    let mut paths: BTreeSet<(usize, String)> = BTreeSet::new();
    let is_code = |index: &usize| !source.lines[*index].in_test;
    let imports = source.imports();
    paths.extend(imports.into_iter().filter(|(i, _)| is_code(i)).map(|(i, path)| (i + 1, path)));
    for (index, line) in source.lines.iter().enumerate().filter(|(_, line)| !line.in_test) {
        let word = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        let words = line.code.split(|c: char| !word(c));
        let rooted = words.filter(|path| path.starts_with("crate::") || path.starts_with("super::"));
        paths.extend(rooted.map(|path| (index + 1, path.to_owned())));
    }
    paths
}

/// The part that a path names from within these modules, if it names one, or what it names of the root.
fn part_of(table: &Table, own: &[&str], path: &str) -> Option<String> {
    let names: Vec<&str> = path.split("::").map(str::trim).collect();
    let below = if names.first() == Some(&"crate") {
        let root: Vec<&str> = table.module.split("::").collect();
        names.strip_prefix(root.as_slice())?
    } else {
        let up = names.iter().take_while(|name| **name == "super").count();
        if up == 0 || up != own.len() {
            return None;
        }
        &names[up..]
    };
    below.first().filter(|name| !name.is_empty()).map(|name| (*name).to_owned())
}

/// A way from a part back to itself, if there is one.
fn cycle<'a>(
    parts: impl Iterator<Item = &'a str>,
    edges: impl Fn(&str) -> Vec<&'a str>,
) -> Option<Vec<&'a str>> {
    let mut done = BTreeSet::new();
    for part in parts {
        let mut way: Vec<(&str, Vec<&str>)> = vec![(part, edges(part))];
        while let Some((at, rest)) = way.last_mut() {
            let Some(next) = rest.pop() else {
                done.insert(*at);
                way.pop();
                continue;
            };
            if let Some(begin) = way.iter().position(|(name, _)| *name == next) {
                return Some(way[begin..].iter().map(|(name, _)| *name).chain([next]).collect());
            }
            if !done.contains(next) {
                way.push((next, edges(next)));
            }
        }
    }
    None
}

/// The file of the conductor, its fields, and its methods in all files of the module.
fn count(table: &Table, conductor: &str, sources: &[Source<'_>]) -> (String, usize, usize) {
    let root = root(table);
    let (mut file, mut fields, mut methods) = (root.clone(), 0, 0);
    let own = |source: &&Source<'_>| {
        !source.is_test && (source.path == root || !modules(table, source.path).is_empty())
    };
    for source in sources.iter().filter(own) {
        for (index, line) in source.lines.iter().enumerate().filter(|(_, line)| !line.in_test) {
            let is_struct = has_word(&line.code, &format!("struct {conductor}"));
            if !is_struct && !is_impl(&line.code, conductor) {
                continue;
            }
            let Some(last) = source.last_line_of_item(index) else { continue };
            let body = &source.lines[index + 1..last.max(index + 1)];
            let items = body.iter().filter(|line| {
                line.code.starts_with("    ") && !line.code.starts_with("     ") && !line.in_test
            });
            if is_struct {
                file = source.path.into();
                fields += items.filter(|line| line.code.contains(": ")).count();
            } else {
                methods += items.filter(|line| has_word(&line.code, "fn")).count();
            }
        }
    }
    (file, fields, methods)
}

/// Whether a line begins the methods of a type, and not a trait for it.
fn is_impl(code: &str, name: &str) -> bool {
    type_of_impl(code) == Some(name)
}

/// The type whose methods a line begins, if it is not a trait for it.
fn type_of_impl(code: &str) -> Option<&str> {
    let rest = code.strip_prefix("impl")?;
    let rest = if rest.starts_with('<') { rest.split_once("> ").map_or("", |(_, rest)| rest) } else { rest };
    if has_word(rest, "for") {
        return None;
    }
    rest.trim_start().split(['<', ' ']).next()?.rsplit("::").next()
}

/// What `cargo xtask parts` prints: for each table its conductor, and which part names which, in how many places.
pub fn describe(tree: &Tree) -> String {
    let sources = Source::all(tree);
    let mut text = String::new();
    for table in TABLES {
        let head = match table.conductor {
            Some(Conductor { name, .. }) => {
                let (file, fields, methods) = count(table, name, &sources);
                format!("{}: `{name}` in {file}, {fields} fields, {methods} methods", table.module)
            }
            None => format!("{} of {}: layers", table.module, table.folder),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{head}");
        let arrows = arrows(table, &sources, &mut Report::default());
        let mut named: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
        for arrow in &arrows {
            *named.entry(&arrow.from).or_default().entry(&arrow.to).or_default() += 1;
        }
        for (part, _) in table.rows {
            let others = named.get(part).into_iter().flatten();
            let others: Vec<String> = others.map(|(to, count)| format!("{to} {count}")).collect();
            let _ = writeln!(text, "  {part:14} -> {}", others.join(", "));
        }
    }
    text
}

const FILE: &str = "xtask/src/tidy/parts.rs";

#[cfg(test)]
mod tests;
