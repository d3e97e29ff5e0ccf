//! What stands on a page, line by line.

use super::*;
use std::collections::BTreeSet;

fn title() -> Title {
    let peers = vec!["dc2".into(), "dc3".into()];
    Title { datacenter: "dc1".into(), node: 2, peers, keyspaces: 16, started_s: 1_700_000_000.5 }
}

fn observation(metrics: &[(&str, i64)]) -> Arc<Observation> {
    let metrics = metrics.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    let link = |name: &str, up| ObservedLink { datacenter: name.into(), links: 4, up, refused: 1 };
    let links = vec![link("dc2", 4), link("dc3", 1)];
    Arc::new(Observation {
        metrics,
        links,
        not_ready: vec!["the link to dc3".into()],
        ..Observation::default()
    })
}

#[track_caller]
fn check(page: &str, lines: &[&str]) {
    for line in lines {
        assert!(page.lines().any(|one| one == *line), "no line '{line}' in\n{page}");
    }
}

#[test]
fn figures_have_their_units_their_kinds_and_their_labels() {
    let page = openmetrics(
        &title(),
        observation(&[
            ("connected_clients", 3),
            ("reads_waited_us", 1_500_000),
            ("log_bytes", 4_096),
            ("unreceived_dc2_ms_max", 250),
            ("ahead_dc3_ms_max", -40),
            ("conflicts_1", 7),
            ("rejoin", 2),
            ("replica_leader_partitions", 3),
            ("replica_stopped_partitions", 0),
            ("replica_votes_missing", 1),
            ("errorstat_WRONGTYPE", 5),
            ("errorstat_A\"B", 1),
            ("cpu_user_us", 2_000_000),
        ]),
    );
    check(
        &page,
        &[
            "ensue_node_info{version=\"0.1.0\",datacenter=\"dc1\",node=\"2\"} 1",
            "ensue_start_time_seconds 1700000000.5",
            "ensue_serving 1",
            "ensue_ready 0",
            "# TYPE ensue_connected_clients gauge",
            "ensue_connected_clients 3",
            "# TYPE ensue_blocked_reads_wait_seconds counter",
            "# UNIT ensue_blocked_reads_wait_seconds seconds",
            "ensue_blocked_reads_wait_seconds_total 1.5",
            "ensue_log_bytes 4096",
            "ensue_replication_unreceived_seconds{peer=\"dc2\"} 0.25",
            "ensue_peer_time_ahead_seconds{peer=\"dc3\"} -0.04",
            "ensue_conflicts_total{keyspace=\"1\"} 7",
            "ensue_partitions{state=\"rejoin\"} 2",
            "ensue_partitions{state=\"stopped\"} 0",
            "ensue_error_replies_total{error=\"WRONGTYPE\"} 5",
            "ensue_error_replies_total{error=\"A\\\"B\"} 1",
            "ensue_cpu_seconds_total{mode=\"user\"} 2.0",
            "ensue_replica_partitions{role=\"leader\"} 3",
            "ensue_replica_partitions{role=\"stopped\"} 0",
            "ensue_replica_votes_missing 1",
            "ensue_link_up{peer=\"dc2\"} 1",
            "ensue_link_up{peer=\"dc3\"} 0",
            "ensue_links{peer=\"dc3\",state=\"down\"} 2",
            "ensue_links{peer=\"dc3\",state=\"refused\"} 1",
            "# EOF",
        ],
    );
    // What nobody has told is not shown as nothing.
    assert!(!page.contains("ensue_discarded_writes"), "{page}");
    assert!(!page.contains("role=\"follower\""), "{page}");
    assert!(!page.contains("peer=\"dc3\"} 0.25"), "{page}");
}

#[test]
fn commands_are_counted_by_their_groups_and_their_times_add_up() {
    let page = openmetrics(
        &title(),
        observation(&[
            ("cmdstat_get:calls", 10),
            ("cmdstat_get:failed", 1),
            ("cmdstat_get:ns", 3_000),
            ("cmdstat_hset:calls", 4),
            ("cmdstat_hget:calls", 5),
            ("cmdstat_hget:rejected", 2),
            ("histogram_hget:0", 1),
            ("histogram_hget:3", 2),
            ("histogram_hset:2", 1),
            ("histogram_hset:31", 1),
            ("cmdstat_client|id:calls", 6),
        ]),
    );
    let group = |name: &str| ensue_resp::lookup(name.as_bytes()).map_or("", |spec| spec.group);
    let (string, hash, connection) = (group("get"), group("hget"), group("client"));
    check(
        &page,
        &[
            &format!("ensue_commands_total{{group=\"{string}\"}} 10"),
            &format!("ensue_commands_failed_total{{group=\"{string}\"}} 1"),
            &format!("ensue_commands_total{{group=\"{hash}\"}} 9"),
            &format!("ensue_commands_rejected_total{{group=\"{hash}\"}} 2"),
            &format!("ensue_commands_total{{group=\"{connection}\"}} 6"),
            &format!("ensue_command_duration_seconds_sum{{group=\"{string}\"}} 0.000003"),
            &format!("ensue_command_duration_seconds_count{{group=\"{hash}\"}} 5"),
            &format!("ensue_command_duration_seconds_bucket{{le=\"0.000004\",group=\"{hash}\"}} 2"),
            &format!("ensue_command_duration_seconds_bucket{{le=\"0.000008\",group=\"{hash}\"}} 4"),
            &format!("ensue_command_duration_seconds_bucket{{le=\"16.777216\",group=\"{hash}\"}} 4"),
            &format!("ensue_command_duration_seconds_bucket{{le=\"+Inf\",group=\"{hash}\"}} 5"),
        ],
    );
}

#[test]
fn delays_are_a_histogram_of_each_peer() {
    let page = openmetrics(
        &title(),
        observation(&[
            ("visible_dc2_delay_ms", 1_500),
            ("visible_after_dc2:0", 2),
            ("visible_after_dc2:10", 1),
            ("visible_after_dc2:17", 1),
        ]),
    );
    check(
        &page,
        &[
            "# TYPE ensue_visibility_delay_seconds histogram",
            "ensue_visibility_delay_seconds_sum{peer=\"dc2\"} 1.5",
            "ensue_visibility_delay_seconds_count{peer=\"dc2\"} 4",
            "ensue_visibility_delay_seconds_bucket{le=\"0.001\",peer=\"dc2\"} 2",
            "ensue_visibility_delay_seconds_bucket{le=\"0.512\",peer=\"dc2\"} 2",
            "ensue_visibility_delay_seconds_bucket{le=\"1.024\",peer=\"dc2\"} 3",
            "ensue_visibility_delay_seconds_bucket{le=\"65.536\",peer=\"dc2\"} 3",
            "ensue_visibility_delay_seconds_bucket{le=\"+Inf\",peer=\"dc2\"} 4",
            "ensue_visibility_delay_seconds_count{peer=\"dc3\"} 0",
        ],
    );
}

#[test]
fn no_name_stands_in_the_tables_twice() {
    let plain = PLAIN.iter().chain(OF_PEERS).chain(OF_KEYSPACES).chain(OF_ROLES);
    let names: Vec<_> = plain.clone().map(|row| (row.name, row.shown)).collect();
    let sources: BTreeSet<_> = plain.map(|row| row.from).collect();
    assert_eq!(sources.len(), names.len());
    let full = |(name, shown): &(&str, Shown)| format!("{name}{}", shown.suffix());
    let distinct: BTreeSet<_> = names.iter().map(full).collect();
    assert_eq!(distinct.len(), names.len());
}

#[test]
fn the_older_format_has_the_same_figures_and_counters_keep_their_suffix() {
    let page = "# HELP ensue_reads Reads of keys\n# TYPE ensue_reads counter\nensue_reads_total 3\n\
        # HELP ensue_log_bytes Log\n# TYPE ensue_log_bytes gauge\n# UNIT ensue_log_bytes bytes\nensue_log_bytes 5\n\
        # EOF\n";
    let expected = "# HELP ensue_reads_total Reads of keys\n# TYPE ensue_reads_total counter\nensue_reads_total 3\n\
        # HELP ensue_log_bytes Log\n# TYPE ensue_log_bytes gauge\nensue_log_bytes 5\n";
    assert_eq!(classic(page), expected);
}
