//! Who is told to come here, and who is not.

use super::*;
use ensue_node::ObservedLink;

fn request(query: &[(&str, &str)]) -> Request {
    let query = query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Request { query, ..Request::default() }
}

fn observation(metrics: &[(&str, i64)], up: u32) -> Observation {
    let metrics = metrics.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    let links = vec![ObservedLink { datacenter: "dc2".into(), links: 2, up, refused: 0 }];
    Observation { metrics, links, ..Observation::default() }
}

#[test]
fn the_database_is_known_by_the_name_of_the_request_and_by_those_of_its_nodes() {
    let database = Database { name: "shop".into(), hosts: vec!["10.0.0.1".into(), "a".into()], port: 6379 };
    let shown = databases(&database, &Request { host: "db.example".into(), ..Request::default() });
    let endpoint = &shown[0]["endpoints"][0];
    assert_eq!((&shown[0]["uid"], &shown[0]["name"]), (&json!(1), &json!("shop")));
    assert_eq!(endpoint["dns_name"], "db.example");
    assert_eq!(endpoint["addr"], json!(["10.0.0.1", "a", "db.example"]));
    assert_eq!(endpoint["port"], 6379);
    // A name is data, not JSON.
    let odd = databases(&database, &Request { host: "\"}]".into(), ..Request::default() });
    assert_eq!(
        serde_json::from_str::<Value>(&odd.to_string()).unwrap()[0]["endpoints"][0]["dns_name"],
        "\"}]"
    );
    assert_eq!(databases(&database, &Request::default())[0]["endpoints"][0]["dns_name"], "10.0.0.1");
}

#[test]
fn lag_is_only_looked_at_if_it_is_asked_for() {
    let tolerance = |query: &[(&str, &str)]| tolerance_ms(&request(query));
    assert_eq!(tolerance(&[]), Ok(None));
    assert_eq!(tolerance(&[("extend_check", "lag")]), Ok(Some(100)));
    let named = [("extend_check", "lag"), ("availability_lag_tolerance_ms", "5000")];
    assert_eq!(tolerance(&named), Ok(Some(5_000)));
    assert_eq!(tolerance(&[("availability_lag_tolerance", "7"), ("extend_check", "lag")]), Ok(Some(7)));
    for (name, value) in [
        ("extend_check", "all"),
        ("availability_lag_tolerance_ms", "-1"),
        ("availability_lag_tolerance_ms", "x"),
        ("availability_lag_tolerance", ""),
    ] {
        let refused = tolerance(&[("extend_check", "lag"), (name, value)]).expect_err("it is refused");
        assert_eq!((refused.status, refused.code), ("400 Bad Request", "invalid_param"), "{name}={value}");
    }
}

#[test]
fn only_a_peer_that_is_reached_can_be_late() {
    let peers = ["dc2".to_owned()];
    let late = |up, behind_ms| late(&observation(&[("behind_dc2_ms_max", behind_ms)], up), &peers, 100);
    assert_eq!(late(2, 100), Vec::<String>::new());
    assert_eq!(late(2, 101), ["101 ms behind dc2, and 100 are tolerated"]);
    assert_eq!(late(1, 9_999), Vec::<String>::new());
}

#[test]
fn who_takes_no_writes_is_not_available() {
    assert_eq!(shortcomings(&observation(&[], 0)), Vec::<String>::new());
    let full = observation(&[("disk_full", 3)], 2);
    assert_eq!(shortcomings(&full), ["3 partitions take no writes: their disk is full"]);
    let stopped = Observation { not_serving: vec!["1 partitions do not serve".into()], ..full };
    assert_eq!(shortcomings(&stopped).len(), 2);
}
