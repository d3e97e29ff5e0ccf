//! A run that does not repeat is a violation, and a record keeps its head and gets a row.

use super::{RECORD_HEAD, Sum, differs, record, run_many};
use crate::cli::total::Total;
use crate::cli::{SimOptions, run_seed};
use crate::oracle::property;
use crate::rules::Rules;
use ensue_types::Rule;

#[test]
fn a_run_that_does_not_repeat_is_a_violation() {
    let one = run_seed(5, Rules::default(), None, false);
    let mut other = run_seed(5, Rules::default(), None, false);
    assert_eq!(differs(&one, &other), None);
    other.hash ^= 1;
    assert_eq!(differs(&one, &other).map(|violation| violation.property), Some(property::REPEATS));
}

#[test]
fn a_record_gets_a_row_for_each_soak() {
    let path = std::env::temp_dir().join(format!("ensue-soak-{}.md", std::process::id()));
    let sum = Sum { seeds: 12, protocols: [("eiger".to_owned(), 12)].into(), ..Sum::default() };
    let options = SimOptions { start: 40, commit: Some("abc".to_owned()), ..SimOptions::default() };
    for _ in 0..2 {
        record(&path, &sum, &options, 3.0, &["killed".to_owned()]).unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let row = "| abc | 12 | 40 | eiger 12 | 0 | 0 s | 3 s | none | killed |\n";
    assert_eq!(text, format!("{RECORD_HEAD}{row}{row}"));
}

/// Six seeds of a broken rule that shows in most: the exit code, the row of the record, and how many failures were
/// left.
fn broken_run(keep_going: bool) -> (i32, String, usize) {
    let name = format!("ensue-soak-{}-{keep_going}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join("soak.md");
    let options = SimOptions {
        seeds: Some(6),
        start: 1,
        threads: 1,
        record: Some(path.clone()),
        out: Some(directory.clone()),
        keep_going,
        ..SimOptions::default()
    };
    let code = run_many(&options, Rules::breaking(Rule::RememberReads), &mut Total::default());
    let text = std::fs::read_to_string(&path).unwrap();
    let left = std::fs::read_dir(&directory).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_dir());
    let left = left.count();
    std::fs::remove_dir_all(&directory).unwrap();
    (code, text.strip_prefix(RECORD_HEAD).unwrap().to_owned(), left)
}

#[test]
fn a_run_stops_at_a_failure_or_goes_on_and_counts() {
    let (code, row, left) = broken_run(false);
    assert_eq!((code, left), (1, 1));
    assert!(row.contains("| 1: seed "), "{row}");
    let (code, row, left) = broken_run(true);
    assert_eq!(code, 1);
    assert!(left > 1 && row.contains(&format!("| {left}: seed ")), "{left}: {row}");
    assert!(row.starts_with("| unknown | 6 | 1 |"), "{row}");
}
