//! The command line of `cargo xtask fuzz`, and what is read from a fuzzer's words.

use super::{Figures, Wish};

fn parse(words: &[&str]) -> Option<Wish> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    Wish::parse(&words).ok()
}

#[test]
fn minutes_and_a_target() {
    assert_eq!(parse(&[]), Some(Wish { minutes: 10.0, target: None }));
    let both = Some(Wish { minutes: 0.5, target: Some("peer_port".into()) });
    assert_eq!(parse(&["--minutes", "0.5", "peer_port"]), both);
    assert_eq!(parse(&["--minutes"]), None);
    assert_eq!(parse(&["--minutes", "x"]), None);
    assert_eq!(parse(&["--hours", "1"]), None);
    assert_eq!(parse(&["a", "b"]), None);
}

#[test]
fn figures_of_a_run() {
    let mut figures = Figures::default();
    for line in [
        "#2\tINITED cov: 120 ft: 200 corp: 1/1b exec/s: 0 rss: 40Mb",
        "#2048\tpulse  cov: 3456 ft: 9000 corp: 99/3Kb exec/s: 1024 rss: 60Mb",
        "stat::number_of_executed_units: 51234",
    ] {
        figures.read_line(line);
    }
    assert_eq!(figures, Figures { executions: 51_234, covered: 3_456 });
}
