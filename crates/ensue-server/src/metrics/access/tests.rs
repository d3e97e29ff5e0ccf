//! Who is answered what, by where it comes from, the name that it calls, and whom it logs in as.

use super::super::tests::{Core, ready, serve_on};
use super::super::{MetricsPort, answer, http};
use super::*;
use crate::config::Config;

const ELSEWHERE: &str = "10.0.0.9:40000";
const HERE: &str = "127.0.0.1:40000";

/// The status of the answer to a request from there, with these further lines of its head.
fn status(port: &MetricsPort, from: &str, path: &str, lines: &str) -> String {
    let head = format!("GET {path} HTTP/1.1\r\n{lines}\r\n");
    let request = http::parse(head.as_bytes()).unwrap().unwrap();
    let answer = answer(&port.site, Asked { request: &request, from: from.parse().unwrap() });
    String::from_utf8(answer[9..12].to_vec()).unwrap()
}

/// `default` with `secret`, `default` with `wrong`, and `spy` with `secret`.
const SECRET: &str = "Host: localhost\r\nAuthorization: Basic ZGVmYXVsdDpzZWNyZXQ=\r\n";
const WRONG: &str = "Host: localhost\r\nAuthorization: basic ZGVmYXVsdDp3cm9uZw==\r\n";
const SPY: &str = "Host: localhost\r\nAuthorization: Basic c3B5OnNlY3JldA==\r\n";
const NOBODY: &str = "Host: localhost\r\n";

const ALL: [&str; 6] = ["/", "/gauges.js", "/metrics", "/v1/state", "/v1/bdbs", "/v1/bdbs/1/availability"];

#[test]
fn where_default_has_a_password_who_wants_figures_logs_in() {
    let core = Core::with_password(ready(), Some("secret"));
    let port = serve_on(&core, &Config::default());
    for from in [HERE, ELSEWHERE] {
        for path in ALL {
            for (lines, wanted) in [(NOBODY, "401"), (WRONG, "401"), (SPY, "403"), (SECRET, "200")] {
                assert_eq!(status(&port, from, path, lines), wanted, "{path} from {from} with {lines}");
            }
        }
        for path in ["/healthz", "/readyz"] {
            assert_eq!(status(&port, from, path, NOBODY), "200", "{path} from {from}");
        }
    }
}

#[test]
fn as_long_as_default_has_none_only_this_machine_is_answered() {
    let core = Core::start(ready());
    let port = serve_on(&core, &Config::default());
    for path in ALL {
        assert_eq!(status(&port, HERE, path, NOBODY), "200", "{path}");
        // Any password is right where none is needed.
        for lines in [NOBODY, SECRET] {
            assert_eq!(status(&port, ELSEWHERE, path, lines), "403", "{path}");
        }
    }
    assert_eq!(status(&port, ELSEWHERE, "/healthz", NOBODY), "200");
}

#[test]
fn the_operator_may_open_the_figures_to_everybody() {
    for password in [None, Some("secret")] {
        let core = Core::with_password(ready(), password);
        let config = Config { metrics_unauthenticated: true, ..Config::default() };
        let port = serve_on(&core, &config);
        for path in ALL {
            assert_eq!(status(&port, ELSEWHERE, path, NOBODY), "200", "{path}");
        }
    }
}

#[test]
fn why_it_is_not_ready_is_told_to_who_may_see_the_figures() {
    let not_ready = vec!["the link to oslo is down".to_owned()];
    let shown = ensue_node::Observation { not_ready, ..ensue_node::Observation::default() };
    let core = Core::with_password(Some(shown), Some("secret"));
    let port = serve_on(&core, &Config::default());
    for (lines, tells) in [(NOBODY, false), (SPY, false), (SECRET, true)] {
        let head = format!("GET /readyz HTTP/1.1\r\n{lines}\r\n");
        let request = http::parse(head.as_bytes()).unwrap().unwrap();
        let from = ELSEWHERE.parse().unwrap();
        let answer = String::from_utf8(answer(&port.site, Asked { request: &request, from })).unwrap();
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
        assert_eq!(answer.contains("oslo"), tells, "{answer}");
    }
}

/// A site whose name leads here for once cannot read what its visitors' browsers fetch.
#[test]
fn by_a_foreign_name_nobody_is_answered() {
    let core = Core::start(ready());
    let metrics_hosts = vec!["Metrics.Example.org".to_owned()];
    let port = serve_on(&core, &Config { metrics_hosts, ..Config::default() });
    for host in
        ["localhost:9121", "LOCALHOST", "127.0.0.1:9121", "[::1]:9121", "10.0.0.1", "metrics.example.org."]
    {
        assert_eq!(status(&port, HERE, "/v1/state", &format!("Host: {host}\r\n")), "200", "{host}");
    }
    for host in ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "example.org"] {
        for path in ALL {
            assert_eq!(status(&port, HERE, path, &format!("Host: {host}:9121\r\n")), "421", "{host}{path}");
        }
        assert_eq!(status(&port, HERE, "/healthz", &format!("Host: {host}\r\n")), "200", "{host}");
    }
    let every = serve_on(&core, &Config { metrics_hosts: vec!["*".into()], ..Config::default() });
    assert_eq!(status(&every, HERE, "/metrics", "Host: evil.example\r\n"), "200");
}
