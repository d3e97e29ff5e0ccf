//! Nothing names a protocol outside the crate that holds them, the configuration, the command line, and tests.
//!
//! The names are those that the modules of `ensue-protocol` register. Comments may name them: they explain.

use super::Report;
use super::code::Source;
use std::collections::BTreeSet;

/// Parts of names that are words of the language too, or say nothing alone.
const ORDINARY: [&str; 7] = ["eventual", "log", "ha", "gt", "cd", "dm", "clock"];

pub fn check(sources: &[Source<'_>], report: &mut Report) {
    let registered = registered(sources);
    for source in sources.iter().filter(|source| !may_name_protocols(source)) {
        for (index, line) in source.lines.iter().enumerate().filter(|(_, line)| !line.in_test) {
            for name in &registered {
                if parts(&line.text).any(|part| part.eq_ignore_ascii_case(name)) {
                    let message = format!(
                        "names the protocol `{name}`: ask the protocol through its trait, or move this to ensue-protocol"
                    );
                    report.find(source.path, index + 1, message);
                }
            }
        }
    }
}

/// The parts of all names that are registered.
fn registered(sources: &[Source<'_>]) -> BTreeSet<String> {
    let modules = sources.iter().filter(|source| source.package() == "ensue-protocol");
    let pairs = modules.flat_map(|source| source.lines.windows(2));
    let names = pairs.filter_map(|pair| {
        let (line, next) = (&pair[0], &pair[1]);
        let name = next.text.trim().strip_prefix("name: \"")?.strip_suffix("\",")?;
        let is_registered =
            !line.in_test && line.code.trim_end().ends_with(": Registration = Registration {");
        is_registered.then(|| name.to_owned())
    });
    let parts = names.flat_map(|name| name.split('-').map(str::to_owned).collect::<Vec<_>>());
    parts.filter(|part| !ORDINARY.contains(&part.as_str())).collect()
}

fn may_name_protocols(source: &Source<'_>) -> bool {
    let path = source.path;
    let whole = !path.starts_with("crates/")
        || matches!(
            source.package(),
            "ensue-protocol"
                | "ensue-sim"
                | "ensue-compare"
                | "ensue-exhaust"
                | "ensue"
                | "ensue-bench"
                | "ensue-load"
                | "ensue-paper"
        );
    let config =
        path == "crates/ensue-server/src/config.rs" || path.starts_with("crates/ensue-server/src/config/");
    whole || config
}

/// The words of a line, with `snake_case` and `CamelCase` taken apart.
fn parts(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_ascii_alphanumeric()).flat_map(|word| {
        let mut starts: Vec<usize> = (0..word.len())
            .filter(|&at| {
                at == 0
                    || (word.as_bytes()[at].is_ascii_uppercase()
                        && word.as_bytes()[at - 1].is_ascii_lowercase())
            })
            .collect();
        starts.push(word.len());
        (1..starts.len()).map(move |at| &word[starts[at - 1]..starts[at]])
    })
}
