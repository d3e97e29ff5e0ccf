//! The report as it is printed, and as it is kept.

use super::*;

#[test]
fn it_tells_what_is_missing_and_survives_an_interruption() {
    let mut report = Report::default();
    report.count_key("hash");
    report.count_key("string");
    report.count_key("string");
    assert_eq!(report.text(Paint::off(), None), "3 keys: 1 hash, 2 string\neverything was carried over\n");
    report.count("commands", 7);
    report.lose("values of the module ReJSON-RL", shown(b"doc:1\xff"));
    report.lose("values of the module ReJSON-RL", shown(b"doc:2"));
    let expected = "3 keys: 1 hash, 2 string\n7 commands\nnot carried over:\n         \
        2 values of the module ReJSON-RL, such as \"doc:1\\xff\"\n";
    assert_eq!(report.text(Paint::off(), None), expected);
    assert_eq!(Report::from_json(&report.to_json()), Some(report));
}

#[test]
fn what_was_not_read_to_its_end_is_not_everything() {
    let mut report = Report::default();
    assert_eq!(report.text(Paint::off(), Some("7 bytes are missing")), "0 keys\n7 bytes are missing\n");
    report.lose("keys", "k");
    let said = report.text(Paint::off(), Some("7 bytes are missing"));
    assert!(said.starts_with("0 keys\n7 bytes are missing\nnot carried over:\n"), "{said}");
}
