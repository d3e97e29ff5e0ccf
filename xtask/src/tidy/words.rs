//! Words that do not stay: unfinished work, file names that say nothing, stray blanks, traces of one machine.

use super::Report;
use super::code::{Source, has_word};
use super::tree::Tree;

// Written in two halves, so that this file passes its own check.
const UNFINISHED_WORDS: [&str; 3] = [concat!("FIX", "ME"), concat!("X", "XX"), concat!("HA", "CK")];
const UNFINISHED_MACROS: [&str; 2] = ["todo!", "unimplemented!"];
const EMPTY_NAMES: [&str; 4] = ["helper", "helpers", "util", "utils"];

/// A trace of one machine or one network, and whether it counts only where a path begins.
const LEAKS: [(&str, bool); 10] = [
    (concat!("/wo", "rk/"), true),
    (concat!("/tmp/", "target-"), true),
    (concat!("/ro", "ot/"), true),
    (concat!("index.", "crates", ".io"), false),
    (concat!("static.", "crates", ".io"), false),
    (concat!("pypi.", "org/simple"), false),
    (concat!("files.", "pythonhosted", ".org"), false),
    (concat!("registry.", "npmjs.org"), false),
    (concat!("proxy.", "golang.org"), false),
    (concat!("--index", "-url"), false),
];
/// What Cargo itself writes for the public registry.
pub(super) const LOCK_SOURCE: &str =
    concat!("source = \"registry+https://github.com/rust-lang/crates", ".io-index\"");

/// Characters of a line of a document or a comment. The pages of `FIGURES` are written by commands, and have wide
/// tables; the byte layouts in comments are tables, too.
const COLUMNS_MAX: usize = 120;
const FIGURES: &str = "docs/figures/";

pub fn check(tree: &Tree, sources: &[Source<'_>], report: &mut Report) {
    for (path, text) in tree.files() {
        check_name(path, report);
        check_text(path, text, report);
    }
    for source in sources {
        for (index, line) in source.lines.iter().enumerate() {
            for name in UNFINISHED_MACROS.into_iter().filter(|name| has_word(&line.code, name)) {
                report.find(
                    source.path,
                    index + 1,
                    format!("`{name}` does not merge: finish it, or return a typed error"),
                );
            }
        }
    }
}

fn check_name(path: &str, report: &mut Report) {
    let (stem, ending) = path.rsplit('/').next().and_then(|name| name.split_once('.')).unwrap_or_default();
    if !matches!(ending, "rs" | "py" | "js") {
        return;
    }
    if stem.split('_').any(|part| EMPTY_NAMES.contains(&part)) {
        report.find(path, 1, format!("`{stem}` says nothing: name the file after the thing in it"));
    }
    if path.ends_with("/mod.rs") {
        report.find(path, 1, "mod.rs: name the file after its module, beside the folder of that name");
    }
}

fn check_text(path: &str, text: &str, report: &mut Report) {
    let is_prose = path.ends_with(".md");
    let is_code = [".rs", ".py", ".js", ".sh", ".toml", "/run"].iter().any(|end| path.ends_with(end));
    for (index, line) in text.lines().enumerate() {
        let mut find = |message: String| report.find(path, index + 1, message);
        if path.ends_with("Cargo.lock") {
            if line.starts_with("source = ") && line != LOCK_SOURCE {
                find("a package from elsewhere than the public registry: take it from there".into());
            }
            continue;
        }
        if is_code {
            for word in UNFINISHED_WORDS.into_iter().filter(|word| has_word(line, word)) {
                find(format!("`{word}` does not merge: finish it, or open an issue and delete the mark"));
            }
        }
        let is_comment =
            path.ends_with(".rs") && line.trim_start().starts_with("//") && !line.contains(" | ");
        let is_document = is_prose && !path.starts_with(FIGURES);
        if (is_comment || is_document) && line.chars().count() > COLUMNS_MAX {
            find(format!("{} columns, more than {COLUMNS_MAX}: break the line", line.chars().count()));
        }
        if is_prose || path.ends_with(".rs") {
            if line.contains('\t') {
                find("a tab: write blanks, or `\\t` inside a string".into());
            }
            if line.ends_with([' ', '\t']) {
                find("blanks at the end of the line: delete them".into());
            }
        }
        for leak in LEAKS.into_iter().filter(|&(trace, begins)| leaks(line, trace, begins)) {
            find(format!("`{}` belongs to one machine or network: delete it, or make it relative", leak.0));
        }
    }
}

fn leaks(line: &str, trace: &str, begins_path: bool) -> bool {
    let continues = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '~' | '}' | '*');
    line.match_indices(trace)
        .any(|(at, _)| !begins_path || !line[..at].chars().next_back().is_some_and(continues))
}
