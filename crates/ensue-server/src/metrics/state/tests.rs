//! The object that the page is drawn from: its shape, its units, and names that are data.

use super::*;

fn title() -> Title {
    let peers = vec!["dc2".into(), "dc3".into(), "dc4".into()];
    Title { datacenter: "dc1".into(), node: 2, peers, keyspaces: 16, started_s: 1_700_000_000.5 }
}

fn observation(metrics: &[(&str, i64)]) -> Observation {
    let metrics = metrics.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    let link = |name: &str, up, refused| ObservedLink { datacenter: name.into(), links: 4, up, refused };
    let links = vec![link("dc2", 4, 0), link("dc3", 1, 1)];
    Observation {
        metrics,
        links,
        not_ready: vec!["the link to dc3 is partial".into()],
        ..Observation::default()
    }
}

#[test]
fn a_node_its_peers_and_its_keyspaces_are_one_object_with_the_names_and_units_of_the_metrics() {
    let observation = observation(&[
        ("connected_clients", 3),
        ("reads_waited_us", 1_500_000),
        ("log_bytes", 4_096),
        ("memory_bytes", 77),
        ("unreceived_dc2_ms_max", 250),
        ("ahead_dc3_ms_max", -40),
        ("keys_1", 9),
        ("conflicts_1", 7),
        ("rejoin", 2),
        ("replica_leader_partitions", 3),
        ("replica_stopped_partitions", 0),
        ("cmdstat_get:calls", 10),
        ("cmdstat_get:failed", 1),
        ("cmdstat_set:ns", 3_000),
        ("errorstat_WRONGTYPE", 5),
    ]);
    let state = state(&title(), &observation, 12.5, false);
    let at = |pointer: &str| state.pointer(pointer).cloned().unwrap_or(Value::Null);
    let string = ensue_resp::lookup(b"get").map_or("", |spec| spec.group);
    for (pointer, expected) in [
        ("/version".to_owned(), json!(env!("CARGO_PKG_VERSION"))),
        ("/datacenter".into(), json!("dc1")),
        ("/node".into(), json!(2)),
        ("/start_time_seconds".into(), json!(1_700_000_000.5)),
        ("/observed_seconds".into(), json!(12.5)),
        ("/serving".into(), json!(true)),
        ("/ready".into(), json!(false)),
        ("/reasons".into(), json!(["the link to dc3 is partial"])),
        ("/figures/connected_clients".into(), json!(3)),
        ("/figures/blocked_reads_wait_seconds_total".into(), json!(1.5)),
        ("/figures/log_bytes".into(), json!(4_096)),
        // What nobody has told is not shown as nothing.
        ("/figures/discarded_writes".into(), Value::Null),
        ("/memory_bytes/rows".into(), json!(77)),
        ("/cpu_seconds_total/user".into(), json!(0.0)),
        ("/partitions/rejoin".into(), json!(2)),
        ("/replica_partitions".into(), json!({ "leader": 3, "stopped": 0 })),
        ("/messages_dropped_total/late".into(), json!(0)),
        ("/error_replies_total".into(), json!({ "WRONGTYPE": 5 })),
        ("/keyspaces".into(), json!([{ "keyspace": 1, "figures": { "keys": 9, "conflicts_total": 7 } }])),
        (
            format!("/commands/{string}"),
            json!({ "executed": 10, "failed": 1, "rejected": 0, "duration_seconds": 0.000003 }),
        ),
        ("/peers/0/name".into(), json!("dc2")),
        ("/peers/0/link".into(), json!("up")),
        ("/peers/0/figures".into(), json!({ "replication_unreceived_seconds": 0.25 })),
        ("/peers/1/link".into(), json!("partial")),
        ("/peers/1/links".into(), json!(4)),
        ("/peers/1/links_up".into(), json!(1)),
        ("/peers/1/links_refused".into(), json!(1)),
        ("/peers/1/figures/peer_time_ahead_seconds".into(), json!(-0.04)),
        ("/peers/2/link".into(), json!("unknown")),
    ] {
        assert_eq!(at(&pointer), expected, "{pointer} of {state:#}");
    }
}

#[test]
fn whoever_drains_is_not_ready_and_still_serves() {
    let ready = Observation::default();
    assert_eq!(state(&title(), &ready, 0.0, false)["ready"], json!(true));
    let draining = state(&title(), &ready, 0.0, true);
    assert_eq!(draining["reasons"], json!(["this node is shutting down"]));
    assert_eq!((&draining["ready"], &draining["serving"]), (&json!(false), &json!(true)));
}

#[test]
fn a_link_has_the_words_of_info() {
    let link = |up, refused| ObservedLink { datacenter: "dc2".into(), links: 2, up, refused };
    let words = [link(2, 0), link(1, 1), link(1, 0), link(0, 1), link(0, 0)].map(|link| link_state(&link));
    assert_eq!(words, ["up", "partial", "partial", "refused", "down"]);
}

#[test]
fn delays_are_counted_by_bucket_and_the_last_one_has_no_bound() {
    let delays = delays(
        &observation(&[
            ("visible_dc2_delay_ms", 1_500),
            ("visible_after_dc2:0", 2),
            ("visible_after_dc2:10", 1),
            ("visible_after_dc2:17", 1),
        ]),
        "dc2",
    );
    assert_eq!((&delays["sum"], &delays["count"]), (&json!(1.5), &json!(4)));
    let buckets = delays["buckets"].as_array().unwrap();
    let filled: Vec<&Value> = buckets.iter().filter(|bucket| bucket[1] != 0).collect();
    assert_eq!(filled, [&json!([0.001, 2]), &json!([1.024, 1]), &json!([null, 1])]);
}

/// Scripts choose the first words of errors, and what stands there must not end a string of the object.
#[test]
fn words_that_others_choose_are_escaped() {
    let word = "</script>\"\\\n\u{1}ü";
    let observation = observation(&[(&format!("errorstat_{word}"), 1)]);
    let title = Title { datacenter: word.into(), ..title() };
    let text = state(&title, &observation, 0.0, false).to_string();
    assert!(!text.contains(|letter: char| letter.is_control()), "{text}");
    let read: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(read["datacenter"], json!(word));
    assert_eq!(read["error_replies_total"], json!({ word: 1 }));
}

#[test]
fn names_are_those_of_the_metrics_page() {
    let mut metrics: Vec<(String, i64)> = PLAIN.iter().map(|row| (row.from.to_owned(), 1)).collect();
    metrics.extend(OF_PEERS.iter().map(|row| (row.from.replace("{}", "dc2"), 1)));
    metrics.extend(OF_KEYSPACES.iter().map(|row| (row.from.replace("{}", "0"), 1)));
    let metrics: Vec<(&str, i64)> = metrics.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let observation = observation(&metrics);
    let page = super::super::page::openmetrics(&title(), std::sync::Arc::new(observation.clone()));
    let state = state(&title(), &observation, 0.0, false);
    let on_page = |name: &str| {
        let begins = [format!("ensue_{name} "), format!("ensue_{name}{{")];
        page.lines().any(|line| begins.iter().any(|begin| line.starts_with(begin)))
    };
    for pointer in ["/figures", "/peers/0/figures", "/keyspaces/0/figures"] {
        let figures = state.pointer(pointer).and_then(Value::as_object).unwrap();
        assert!(!figures.is_empty());
        for name in figures.keys() {
            assert!(on_page(name), "{name} of {pointer} is not in\n{page}");
        }
    }
    for labelled in LABELLED {
        let name = full_name(labelled.name, labelled.shown, labelled.kind);
        assert!(on_page(&name) && state[&name].is_object(), "{name}");
    }
}
