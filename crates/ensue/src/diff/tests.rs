//! The command line, and which keyspaces are compared.

use super::*;
use clap::Parser;
use ensue_client::Reply;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: DiffArgs,
}

fn args(words: &[&str]) -> DiffArgs {
    Line::parse_from(["diff"].iter().chain(words)).args
}

/// Two sides, of which the one has keys in keyspace 1 and the other in keyspace 4.
fn pairs_of(words: &[&str]) -> anyhow::Result<Vec<(u64, u64)>> {
    let [mut left, mut right] = [("left", 1), ("right", 4)].map(|(name, number)| {
        let info = format!("db{number}:keys=1,expires=0\r\n");
        fake::side_with(name, &[("INFO keyspace", Reply::bulk(info))])
    });
    pairs(&args(words), &mut left, &mut right)
}

#[test]
fn keyspaces_are_those_with_keys_or_those_that_are_named() {
    assert_eq!(pairs_of(&["a:1", "b:2"]).unwrap(), [(1, 1), (4, 4)]);
    assert_eq!(pairs_of(&["a:1", "b:2", "--keyspaces", "0,7"]).unwrap(), [(0, 0), (7, 7)]);
    assert_eq!(pairs_of(&["redis://a:1/3", "redis://b:2"]).unwrap(), [(3, 3)]);
    assert_eq!(pairs_of(&["redis://a:1/3", "redis://b:2/0"]).unwrap(), [(3, 0)]);
    let error = pairs_of(&["redis://a:1/3", "b:2", "--keyspaces", "1"]).unwrap_err().to_string();
    assert!(error.contains("exclude each other"), "{error}");
}

#[test]
fn times_have_units() {
    assert_eq!(span("1s"), Ok(Duration::from_secs(1)));
    assert_eq!(span("250ms"), Ok(Duration::from_millis(250)));
    assert_eq!((span("2m"), span("0.5")), (Ok(Duration::from_secs(120)), Ok(Duration::from_millis(500))));
    for text in ["", "s", "1d", "-1s", "1s2", "1e99", "NaN"] {
        assert!(span(text).is_err(), "{text}");
    }
}

#[test]
fn what_is_not_given_is_as_the_guide_says() {
    let DiffArgs { rounds, pause, ttl_tolerance, show, changing_max, rate, .. } = args(&["a:1", "b:2"]);
    assert_eq!((rounds, pause, ttl_tolerance), (3, Duration::from_secs(1), Duration::from_secs(2)));
    assert_eq!((show, changing_max, rate), (10, 0, None));
    assert!(Line::try_parse_from(["diff", "a:1", "b:2", "--rate", "0"]).is_err());
}

#[test]
fn a_server_that_is_not_there_is_no_difference() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    assert_eq!(run(&args(&[&address, &address])).unwrap(), ExitCode::from(UNDECIDED));
}

#[test]
fn tls_that_would_not_be_used_is_refused() {
    let flags = ["--tls", "--cacert", "ca.pem"];
    let options = |left: &str, right: &str| options(&args(&[&[left, right], &flags[..]].concat()));
    let error = options("redis://a:1", "redis://b:2").unwrap_err().to_string();
    assert!(error.contains("rediss://"), "{error}");
    let are_encrypted =
        |left: &str, right: &str| options(left, right).unwrap().map(|options| options.tls.is_some());
    assert_eq!(are_encrypted("redis://a:1", "rediss://b:2"), [false, true]);
    assert_eq!(are_encrypted("a:1", "redis://b:2"), [true, false]);
}
