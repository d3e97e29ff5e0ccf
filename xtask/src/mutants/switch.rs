//! Every change of a file written into it at once, each behind a condition: `if mutant(17) { a - b } else { a + b }`.
//!
//! Only expressions are wrapped, so what is changed inside another change is in both of its branches, and an operator
//! that is exchanged keeps its operands, whatever binds closer: `a && b && c` becomes `(a || b) && c`. Comments bracket
//! each condition with its branch, so that an error of the compiler leads to the number that caused it.

use super::site::{Guard, Kind, Site};
use std::ops::Range;

/// The variable that says which change is on.
pub(super) const VARIABLE: &str = "ENSUE_MUTANT";

/// The variable that names the file that a run without a change writes the numbers into whose places it comes to.
pub(super) const REACHED: &str = "ENSUE_MUTANTS_REACHED";

/// What every copy of the tree gets in its lowest crate. Once it is known which change is on, a question costs a
/// comparison: it is asked everywhere, and what judges must not be slow.
pub(super) const FUNCTION: &str = "
static MUTANT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(u32::MAX);

#[inline]
pub fn mutant(number: u32) -> bool {
    match MUTANT.load(std::sync::atomic::Ordering::Relaxed) {
        u32::MAX => mutant_unknown(number),
        on => on == number,
    }
}

#[cold]
#[inline(never)]
fn mutant_unknown(number: u32) -> bool {
    use std::sync::OnceLock;
    static LIST: OnceLock<Option<std::sync::Mutex<(std::fs::File, std::collections::BTreeSet<u32>)>>> = OnceLock::new();
    let list = LIST.get_or_init(|| {
        let path = std::env::var_os(\"ENSUE_MUTANTS_REACHED\")?;
        Some(std::sync::Mutex::new((std::fs::File::create(path).ok()?, std::collections::BTreeSet::new())))
    });
    if let Some(list) = list {
        let mut list = list.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if list.1.insert(number) {
            use std::io::Write;
            writeln!(list.0, \"{number}\").expect(\"the list of what is reached can be written\");
        }
        return false;
    }
    let on = std::env::var(\"ENSUE_MUTANT\").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    MUTANT.store(on, std::sync::atomic::Ordering::Relaxed);
    on == number
}
";

/// The text with all sites written anew.
pub(super) fn write(text: &str, sites: &[Site]) -> String {
    stretch(text, 0..text.len(), sites)
}

/// A part of the text with the sites in it; the others among `sites` lie outside.
fn stretch(text: &str, range: Range<usize>, sites: &[Site]) -> String {
    let mut written = String::new();
    let mut at = range.start;
    for (index, site) in sites.iter().enumerate() {
        // A site inside the one before is written with it.
        if site.range.start >= at && site.range.end <= range.end {
            written += &text[at..site.range.start];
            written += &site_anew(text, site, &sites[index + 1..]);
            at = site.range.end;
        }
    }
    written + &text[at..range.end]
}

fn site_anew(text: &str, site: &Site, inner: &[Site]) -> String {
    let part = |from: usize, to: usize| stretch(text, from..to, inner);
    let Range { start, end } = site.range;
    let original = part(start, end);
    match &site.kind {
        Kind::Body(choices) => {
            let returns = choices.iter().map(|(number, value)| branch(*number, &format!("return {value};")));
            returns.collect::<String>() + &original
        }
        Kind::Guard { present, choices } => guard(present.then_some(&original), choices),
        Kind::Binary { operator, choices } => {
            let (left, right) = (part(start, operator.start), part(operator.end, end));
            chosen(choices.iter().map(|(n, other)| (*n, format!("{left}{other}{right}"))), &original)
        }
        Kind::Unary { operator, number } => {
            chosen([(*number, part(operator.end, end))].into_iter(), &original)
        }
        Kind::Struct { choices } => {
            let without = |field: &Range<usize>| part(start, field.start) + &part(field.end, end);
            chosen(choices.iter().map(|(n, field)| (*n, without(field))), &original)
        }
    }
}

/// An expression that is one of these, or else the original.
fn chosen(choices: impl Iterator<Item = (u32, String)>, original: &str) -> String {
    let branches: Vec<String> = choices.map(|(number, other)| branch(number, &other)).collect();
    format!("({} else {{ {original} }})", branches.join(" else "))
}

fn branch(number: u32, then: &str) -> String {
    format!("/*{{{number}*/if {} {{ {then} }}/*{number}}}*/", is_on(number))
}

fn guard(original: Option<&String>, choices: &[(u32, Guard)]) -> String {
    let terms = choices.iter().map(|&(number, guard)| match guard {
        Guard::True => format!("/*{{{number}*/{} ||/*{number}}}*/ ", is_on(number)),
        Guard::False => format!("/*{{{number}*/!{} &&/*{number}}}*/ ", is_on(number)),
    });
    // `&&` binds closer than `||`: what is true goes first.
    let (mut any, mut all) = (String::new(), String::new());
    for (term, (_, guard)) in terms.zip(choices) {
        match guard {
            Guard::True => any += &term,
            Guard::False => all += &term,
        }
    }
    match original {
        Some(original) => format!("({any}{all}({original}))"),
        None => format!(" if {any}{all}true"),
    }
}

fn is_on(number: u32) -> String {
    format!("::ensue_types::mutant({number})")
}

/// The numbers whose brackets are the closest around this stretch of a written text.
pub(super) fn around(written: &str, stretch: &Range<usize>) -> Option<u32> {
    let brackets = brackets(written);
    let holding =
        brackets.iter().filter(|(range, _)| range.start <= stretch.start && stretch.end <= range.end);
    holding.min_by_key(|(range, _)| range.len()).map(|(_, number)| *number)
}

/// The number whose bracket begins the last before this place.
pub(super) fn before(written: &str, place: usize) -> Option<u32> {
    let brackets = brackets(written);
    let earlier = brackets.iter().filter(|(range, _)| range.start <= place);
    earlier.max_by_key(|(range, _)| range.start).map(|(_, number)| *number)
}

fn brackets(written: &str) -> Vec<(Range<usize>, u32)> {
    let mut found = Vec::new();
    for (start, _) in written.match_indices("/*{") {
        let digits = written[start + 3..].split("*/").next().unwrap_or_default();
        let Ok(number) = digits.parse::<u32>() else { continue };
        let end = written[start..].find(&format!("/*{number}}}*/")).map(|length| start + length);
        found.extend(end.map(|end| (start..end, number)));
    }
    found
}
