//! The categories of commands, which access rules and `COMMAND LIST FILTERBY ACLCAT` name.
//!
//! A row of the table and perhaps a subcommand arrive, the names of categories leave, as Redis 7.2 sorts its commands;
//! its table of commands is the source. Commands that Redis does not have are sorted by what they do. It does not know
//! users, nor what they may do.

use crate::command::{CommandSpec, Flags, Route, TABLE};

/// All categories, in the order of Redis.
pub const CATEGORIES: [&str; 21] = [
    "@keyspace",
    "@read",
    "@write",
    "@set",
    "@sortedset",
    "@list",
    "@hash",
    "@string",
    "@bitmap",
    "@hyperloglog",
    "@geo",
    "@stream",
    "@pubsub",
    "@admin",
    "@fast",
    "@slow",
    "@blocking",
    "@dangerous",
    "@connection",
    "@transaction",
    "@scripting",
];

/// The category of that name, with its sign or without, in any case.
pub fn named(name: &[u8]) -> Option<&'static str> {
    let name = name.strip_prefix(b"@").unwrap_or(name);
    CATEGORIES.into_iter().find(|known| known.as_bytes()[1..].eq_ignore_ascii_case(name))
}

/// The commands of a category, named with its sign or without; nothing if there is no such category.
pub fn of_category(category: &[u8]) -> Option<Vec<String>> {
    let category = named(category)?;
    let mut names = Vec::new();
    for spec in &TABLE {
        if !spec.is_container() {
            names.extend(of_spec(spec, None).contains(&category).then(|| spec.name.to_owned()));
            continue;
        }
        let members = spec.subcommands.iter().filter(|sub| of_spec(spec, Some(sub)).contains(&category));
        names.extend(members.map(|subcommand| spec.full_name(subcommand)));
    }
    Some(names)
}

/// The categories of a command itself: of a container only what Redis gives it, for its subcommands have their own.
pub fn of_command(spec: &CommandSpec) -> Vec<&'static str> {
    if spec.is_container() { vec!["@slow"] } else { of_spec(spec, None) }
}

/// The categories of a command or of one of its subcommands, in the order of Redis.
pub fn of_spec(spec: &CommandSpec, subcommand: Option<&str>) -> Vec<&'static str> {
    let flags = flags_of(spec, subcommand);
    let (name, group) = (spec.name, spec.group);
    let (admin, is_script) = (flags.contains(Flags::ADMIN), spec.route == Route::Script);
    let is_sort = matches!(name, "sort" | "sort_ro");
    let waits = matches!(name, "wait" | "waitaof");
    let is_generic = group == "generic" && !is_sort && !waits;
    let all = [
        (is_generic || spec.route == Route::AllPartitions || name == "swapdb", "@keyspace"),
        (flags.contains(Flags::READONLY) && !is_script, "@read"),
        (flags.contains(Flags::WRITE), "@write"),
        (group == "set" || is_sort, "@set"),
        (group == "sorted-set" || is_sort, "@sortedset"),
        (group == "list" || is_sort, "@list"),
        (group == "hash", "@hash"),
        (group == "string", "@string"),
        (group == "bitmap", "@bitmap"),
        (group == "hyperloglog", "@hyperloglog"),
        (group == "geo", "@geo"),
        (group == "stream", "@stream"),
        (group == "pubsub" && subcommand != Some("help"), "@pubsub"),
        (admin, "@admin"),
        (flags.contains(Flags::FAST), "@fast"),
        (!flags.contains(Flags::FAST), "@slow"),
        (flags.contains(Flags::BLOCKING) || waits, "@blocking"),
        (admin || flags.contains(Flags::DANGEROUS), "@dangerous"),
        (
            group == "connection" || waits || matches!(name, "asking" | "command" | "readonly" | "readwrite"),
            "@connection",
        ),
        (group == "transactions", "@transaction"),
        (group == "scripting", "@scripting"),
    ];
    all.iter().filter(|(applies, _)| *applies).map(|(_, name)| *name).collect()
}

/// Whether a command or subcommand is one of an operator: of the category `@admin`, or one that clears whole keyspaces.
pub fn is_administrative(spec: &CommandSpec, subcommand: Option<&str>) -> bool {
    let clears = Flags::DANGEROUS.union(Flags::WRITE);
    let flags = flags_of(spec, subcommand);
    flags.contains(Flags::ADMIN) || spec.route == Route::AllPartitions && flags.contains(clears)
}

/// The flags that decide the categories: where a subcommand does more or less than its container says.
fn flags_of(spec: &CommandSpec, subcommand: Option<&str>) -> Flags {
    const DOES_NOTHING: Flags =
        Flags::ADMIN.union(Flags::DANGEROUS).union(Flags::WRITE).union(Flags::READONLY).union(Flags::DENYOOM);
    let flags = spec.flags;
    match (spec.name, subcommand.unwrap_or_default()) {
        (_, "help") | ("acl", "cat" | "genpass" | "whoami") => flags.without(DOES_NOTHING),
        ("client", "kill" | "list" | "no-evict" | "pause" | "unblock" | "unpause")
        | ("causal", "backup" | "dead" | "home" | "move" | "readmit" | "retire")
        | ("lastsave" | "role", _) => flags | Flags::ADMIN,
        ("causal", "conflicts") => flags | Flags::READONLY,
        ("causal", "discarded") => flags | Flags::ADMIN | Flags::READONLY,
        ("function", "delete" | "flush" | "load" | "restore") | ("move" | "swapdb", _) => {
            flags | Flags::WRITE
        }
        ("lolwut", _) => flags | Flags::READONLY,
        _ => flags,
    }
}

#[cfg(test)]
mod tests;
