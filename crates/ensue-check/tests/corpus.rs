//! Every history of the corpus is judged as its manifest says.

use ensue_check::agreement;
use ensue_check::format::Format;
use ensue_check::history::History;
use ensue_check::{Options, Property, Verdict, draw, explain};
use std::path::Path;

fn read(path: &Path) -> History {
    let format = match path.extension().and_then(|extension| extension.to_str()) {
        Some("plume") => Format::Plume,
        _ => Format::Jsonl,
    };
    let text = std::fs::read(path).expect("the manifest names files that are there");
    format.read(&mut text.as_slice()).expect("it is a history")
}

/// What is violated, and with a question mark what is undecided, in the order of the properties.
fn judged(path: &Path) -> String {
    let history = read(path);
    let report = ensue_check::check(&history, &Options::default());
    for (property, violation) in report.violations() {
        let lines = explain::lines(&history, violation);
        assert!(!violation.summary.is_empty() && !lines.is_empty(), "{property} is explained");
        assert!(draw::svg(&history, property.title(), violation).ends_with("</svg>\n"));
    }
    let named = report.verdicts.iter().filter_map(|(property, verdict)| match verdict {
        Verdict::Violated(_) => Some(property.name().to_string()),
        Verdict::Undecided(_) => Some(format!("?{}", property.name())),
        Verdict::Holds | Verdict::NotApplicable(_) => None,
    });
    named.collect::<Vec<String>>().join(", ")
}

/// The same, as the manifest says.
fn expected(line: &str) -> String {
    let rank = |name: &&str| {
        let plain = name.trim_start_matches('?');
        let property =
            Property::from_name(plain).unwrap_or_else(|| panic!("no property is called `{plain}`"));
        Property::ALL.iter().position(|of| *of == property)
    };
    let mut names: Vec<&str> = line.split(", ").filter(|name| *name != "-").collect();
    names.sort_by_key(rank);
    names.join(", ")
}

#[test]
fn the_fast_checker_judges_the_corpus_as_its_manifest_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/histories");
    let manifest = std::fs::read_to_string(folder.join("manifest.txt")).expect("the manifest is there");
    let lines: Vec<&str> = manifest.lines().filter(|line| !line.starts_with('#')).collect();
    let files = std::fs::read_dir(&folder).expect("the folder is there").count();
    assert_eq!(files, lines.len() + 1, "every history has a line in the manifest");
    let mut wrong = Vec::new();
    for line in lines {
        let (name, verdict) = line.split_once(": ").expect("a line is a name and a verdict");
        let judged = judged(&folder.join(name));
        if judged != expected(verdict) {
            wrong.push(format!("{name}: judged `{judged}`, expected `{}`", expected(verdict)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The reference judges what stands in a history. That something was left out of it, or asked nowhere, is the fast
/// checker's to say.
const NOT_IN_THE_HISTORY: [&str; 3] = [
    "undecided-no-final-read-somewhere.jsonl",
    "undecided-half-final-read.jsonl",
    "undecided-all-left-out.jsonl",
];

#[test]
fn the_reference_agrees_on_the_corpus() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/histories");
    let manifest = std::fs::read_to_string(folder.join("manifest.txt")).expect("the manifest is there");
    let mut wrong = Vec::new();
    for line in manifest.lines().filter(|line| !line.starts_with('#')) {
        let (name, _) = line.split_once(": ").expect("a line is a name and a verdict");
        for (property, fast, reference) in agreement::disagreements(&read(&folder.join(name))) {
            let is_left_open = NOT_IN_THE_HISTORY.contains(&name) && matches!(fast, Verdict::Undecided(_));
            if !is_left_open {
                wrong.push(format!("{name}: {property}: {fast:?}, and the reference says {reference:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
