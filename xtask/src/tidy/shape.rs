//! The form of a Rust file: a header that says what it is, functions that fit a screen, files that fit a head.
//!
//! The ratchet: what is longer stands in `xtask/tidy-exemptions.txt` with its reason, and a line there that is no
//! longer needed is a finding too, so the list only shrinks.

use super::Report;
use super::code::Source;
use super::tree::Tree;

pub const EXEMPTIONS: &str = "xtask/tidy-exemptions.txt";
pub const FUNCTION_LINES_MAX: usize = 70;
pub const FILE_LINES_MAX: usize = 800;

/// One line of the exemptions: `function <path> <name>: <reason>` or `file <path>: <reason>`.
struct Exemption {
    line: usize,
    what: String,
    used: bool,
}

pub fn check(tree: &Tree, sources: &[Source<'_>], report: &mut Report) {
    let mut exemptions = read_exemptions(tree.text(EXEMPTIONS).unwrap_or_default(), report);
    for source in sources {
        check_header(source, report);
        check_lengths(source, &mut exemptions, report);
    }
    for exemption in exemptions.iter().filter(|exemption| !exemption.used) {
        let message = format!("`{}` needs no exemption any more: delete this line", exemption.what);
        report.find(EXEMPTIONS, exemption.line, message);
    }
}

fn check_header(source: &Source<'_>, report: &mut Report) {
    if !source.lines.first().is_some_and(|line| line.raw.starts_with("//! ")) {
        let message = "no header: open the file with a `//!` line that says what arrives here, what it promises and \
                       what it does not do";
        report.find(source.path, 1, message);
    }
}

fn check_lengths(source: &Source<'_>, exemptions: &mut [Exemption], report: &mut Report) {
    let path = source.path;
    let mut exempt = |what: &str| {
        let found = exemptions.iter_mut().find(|exemption| exemption.what == what);
        found.is_some_and(|exemption| {
            exemption.used = true;
            true
        })
    };
    let lines = source.lines.len();
    if lines > FILE_LINES_MAX && !exempt(&format!("file {path}")) {
        let message = format!(
            "{lines} lines, more than {FILE_LINES_MAX}: move out what stands on its own, or add `file {path}: \
             <reason>` to {EXEMPTIONS}"
        );
        report.find(path, 1, message);
    }
    if source.is_test {
        return;
    }
    for function in source.functions() {
        let name = &function.name;
        if function.lines > FUNCTION_LINES_MAX && !exempt(&format!("function {path} {name}")) {
            let message = format!(
                "`{name}` has {} lines, more than {FUNCTION_LINES_MAX}: split it into named stages or pure leaves, or \
                 add `function {path} {name}: <reason>` to {EXEMPTIONS}",
                function.lines
            );
            report.find(path, function.line, message);
        }
    }
}

fn read_exemptions(text: &str, report: &mut Report) -> Vec<Exemption> {
    let mut exemptions = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match line.split_once(": ") {
            Some((what, reason)) if !reason.trim().is_empty() => {
                exemptions.push(Exemption { line: index + 1, what: what.into(), used: false });
            }
            _ => report.find(EXEMPTIONS, index + 1, "no reason: write `<what>: <one-line reason>`"),
        }
    }
    exemptions
}
