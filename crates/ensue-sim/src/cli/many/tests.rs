//! A run that does not repeat is a violation, and a record keeps its head and gets a row.

use super::{RECORD_HEAD, Sum, differs, record};
use crate::cli::{SimOptions, run_seed};
use crate::oracle::property;
use ensue_types::Rules;

#[test]
fn a_run_that_does_not_repeat_is_a_violation() {
    let one = run_seed(5, Rules::default(), false);
    let mut other = run_seed(5, Rules::default(), false);
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
