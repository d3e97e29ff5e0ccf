//! Nothing names a protocol outside the crate that holds them, the configuration, the command line, and tests.
//!
//! Comments may: they explain. `eventual` and `log` are words of the language too, so they are not looked for.

use super::Report;
use super::code::Source;

const PROTOCOLS: [&str; 6] = ["eiger", "cops", "orbe", "cure", "pocc", "tardis"];

pub fn check(sources: &[Source<'_>], report: &mut Report) {
    for source in sources.iter().filter(|source| !may_name_protocols(source)) {
        for (index, line) in source.lines.iter().enumerate().filter(|(_, line)| !line.in_test) {
            for name in PROTOCOLS {
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

fn may_name_protocols(source: &Source<'_>) -> bool {
    let path = source.path;
    let whole = !path.starts_with("crates/")
        || matches!(source.package(), "ensue-protocol" | "ensue-sim" | "ensue" | "ensue-bench");
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
