//! Small recordings, and files that are none.

use super::har::{HarError, Recording};
use super::*;

fn entry(url: &str, method: &str, status: u64, content: &str) -> String {
    format!(
        r#"{{"request": {{"method": "{method}", "url": "{url}"}}, "response": {{"status": {status},
        "headers": [{{"name": "Date", "value": "now"}}, {{"name": "ETag", "value": "1"}}], "content": {content}}}}}"#
    )
}

fn har(entries: &[String]) -> String {
    let title = "https://www.site.example/start";
    format!(r#"{{"log": {{"pages": [{{"title": "{title}"}}], "entries": [{}]}}}}"#, entries.join(","))
}

fn summary(entries: &[String]) -> Summary {
    let recording = Recording::parse(har(entries).as_bytes()).unwrap();
    let own = recording.page_hosts();
    let mut study = Study::new();
    for exchange in recording.reads() {
        let exchange = exchange.unwrap();
        let is_first_party = own.iter().any(|host| exchange.is_of(host));
        study.add(exchange.url, is_first_party, &exchange.sketched(true).unwrap()).unwrap();
    }
    study.summary()
}

#[test]
fn reads_of_a_recording_are_counted_by_party() {
    let text = |text: &str| format!(r#"{{"text": "{text}"}}"#);
    let base64 = r#"{"text": "aGVsbG8=", "encoding": "base64"}"#;
    let summary = summary(&[
        entry("https://img.site.example/a", "GET", 200, &text("hello")),
        entry("https://img.site.example/a", "GET", 200, base64),
        entry("https://img.site.example/a", "GET", 200, &text("other")),
        entry("https://img.site.example/a", "GET", 304, &text("other")),
        entry("https://img.site.example/a", "POST", 200, &text("x")),
        entry("https://img.site.example/a", "GET", 0, &text("x")),
        entry("https://ads.example:8080/b", "GET", 200, &text("b")),
        entry("https://notsite.example/c", "GET", 200, &text("c")),
    ]);
    let first = &summary.urls[0];
    assert_eq!((first.requests, first.transitions, first.is_first_party), (4, 2, true));
    assert_eq!(summary.repeated(1, Some(false)).len(), 2);
    assert_eq!(summary.fast_requests(), 1);
    let table = table(&summary, 1);
    assert!(table.starts_with("6 reads of 3 URLs; 16.7 % would have been served fast"), "{table}");
    assert!(table.contains("| https://img.site.example/a | 4 | 2 | 66.7 % |"), "{table}");
    assert!(svg(&summary, 1).starts_with("<svg"));
    assert!(svg(&Study::new().summary(), 1).ends_with("</svg>\n"));
}

#[test]
fn what_is_no_recording_is_refused_with_the_place() {
    let error = |text: &str| Recording::parse(text.as_bytes()).unwrap_err();
    assert!(matches!(error("{"), HarError::Json(_)));
    assert!(matches!(error("{}"), HarError::NoEntries));
    assert!(matches!(error(r#"{"log": {"entries": 7}}"#), HarError::NoEntries));
    let recording = Recording::parse(br#"{"log": {"entries": [{}, 7]}}"#).unwrap();
    let errors: Vec<String> = recording.reads().map(|read| read.unwrap_err().to_string()).collect();
    assert_eq!(errors, ["entry 0 has no request.method", "entry 1 has no request.method"]);
    let bad = har(&[entry("https://a.example/", "GET", 200, r#"{"text": "%", "encoding": "base64"}"#)]);
    let recording = Recording::parse(bad.as_bytes()).unwrap();
    let exchange = recording.reads().next().unwrap().unwrap();
    assert!(matches!(exchange.sketched(false), Err(HarError::Content(_))));
    assert!(matches!(Recording::read(std::path::Path::new("/no such file")), Err(HarError::Io(_))));
}
