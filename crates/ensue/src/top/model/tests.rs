//! Two texts of `INFO`, and what follows from them.

use super::*;

const S: Duration = Duration::from_secs(1);

fn info(lines: &[&str]) -> String {
    format!("# Server\r\n{}\r\n", lines.join("\r\n"))
}

fn board() -> Board {
    Board::new(["dc1/0", "dc2/0"].map(String::from))
}

fn figures(board: &Board) -> &Figures {
    board.servers()[0].figures().unwrap()
}

#[test]
fn one_answer_has_sums_and_no_rates() {
    let mut board = board();
    assert_eq!(board.servers()[0].condition, Condition::Asked);
    let text = info(&[
        "uptime_in_seconds:90",
        "server_time_usec:1700000100000000",
        "ensue_datacenter_name:dc1",
        "ensue_other_datacenter_names:dc2,dc3",
        "ensue_serving:1",
        "ensue_ready:0",
        "ensue_ready_reason:the link to dc3 is down: connection refused",
        "connected_clients:4",
        "blocked_clients:1",
        "used_memory:1048576",
        "used_memory_rss:2097152",
        "db0:keys=3,expires=0,avg_ttl=0",
        "db7:keys=4,expires=4,avg_ttl=0",
        "dbsize:9",
        "keyspace0:protocol=eiger,conflicts=5",
        "keyspace7:protocol=pocc,conflicts=2",
        "ensue_conflicting_values:1",
        "ensue_waiting_entries:10",
        "ensue_waiting_reads:20",
        "ensue_waiting_for_times:30",
        "ensue_waiting_rows:40",
        "cmdstat_get:calls=100,usec=50,usec_per_call=0.50,rejected_calls=1,failed_calls=2",
        "cmdstat_set:calls=300,usec=350,usec_per_call=1.10,rejected_calls=0,failed_calls=0",
        "cmdstat_client|id:calls=7,usec=7,usec_per_call=1.00,rejected_calls=0,failed_calls=0",
        "ensue_link_dc2:up",
        "ensue_link_dc2_since:1700000000",
        "ensue_link_dc3:down",
        "ensue_unreceived_dc3_entries:6",
        "ensue_unreceived_dc3_ms_max:1500",
        "ensue_behind_dc2_entries:2",
        "ensue_behind_dc2_ms_max:40",
    ]);
    board.on_answer(0, S, Ok(text));
    let figures = figures(&board);
    assert_eq!((figures.datacenter.as_str(), figures.is_serving, figures.is_ready), ("dc1", true, false));
    assert_eq!(figures.reason, "the link to dc3 is down: connection refused");
    assert_eq!((figures.keys, figures.conflicts, figures.conflicting_values), (7, 7, 1));
    assert_eq!((figures.operations, figures.conflicts_per_s), (None, None));
    assert_eq!((figures.allocated_bytes, figures.resident_bytes, figures.clients), (1 << 20, 2 << 20, 4));
    assert_eq!(figures.waiting, Waiting { entries: 10, reads: 50, keys: 40, clients: 1 });
    assert_eq!(figures.waiting.all(), 101);
    let string = ensue_resp::lookup(b"get").unwrap().group;
    let first = &figures.groups[0];
    assert_eq!((first.name.as_str(), first.calls, first.errors, first.mean_us), (string, 400, 3, Some(1.0)));
    assert_eq!(figures.groups.len(), 2);
    let [dc2, dc3] = &figures.links[..] else { panic!("{:?}", figures.links) };
    assert_eq!((dc2.peer.as_str(), dc2.state.as_str(), dc2.since), ("dc2", "up", Some(100 * S)));
    assert_eq!((dc2.behind_entries, dc2.behind), (2, Duration::from_millis(40)));
    assert_eq!((dc3.state.as_str(), dc3.since), ("down", None));
    assert_eq!((dc3.unreceived_entries, dc3.unreceived), (6, Duration::from_millis(1_500)));
}

/// The lines of a server that has executed so many commands.
fn after(uptime_s: u64, gets: i64, get_us: i64, hsets: i64, conflicts: i64) -> String {
    info(&[
        &format!("uptime_in_seconds:{uptime_s}"),
        &format!("cmdstat_get:calls={gets},usec={get_us},usec_per_call=1.00,rejected_calls=0,failed_calls=0"),
        &format!("cmdstat_hset:calls={hsets},usec=1,usec_per_call=1.00,rejected_calls=0,failed_calls=0"),
        &format!("keyspace0:protocol=eiger,conflicts={conflicts}"),
    ])
}

#[test]
fn rates_are_those_between_two_answers_and_the_busiest_group_is_first() {
    let mut board = board();
    board.on_answer(0, S, Ok(after(1, 1_000, 1_000, 10, 3)));
    board.on_answer(0, 3 * S, Ok(after(3, 1_100, 1_200, 510, 4)));
    let figures = figures(&board);
    assert_eq!((figures.operations, figures.conflicts_per_s), (Some(300.0), Some(0.5)));
    let groups: Vec<_> =
        figures.groups.iter().map(|group| (group.calls_per_s, group.calls, group.mean_us)).collect();
    // The mean is that of the commands between; of hashes nobody counted any time.
    assert_eq!(groups, [(Some(250.0), 510, Some(0.0)), (Some(50.0), 1_100, Some(2.0))]);
}

#[test]
fn counters_that_went_back_have_no_rate() {
    for later in [after(3, 10, 10, 10, 0), after(0, 2_000, 2_000, 20, 9)] {
        let mut board = board();
        board.on_answer(0, S, Ok(after(1, 1_000, 1_000, 10, 3)));
        board.on_answer(0, 3 * S, Ok(later.clone()));
        assert_eq!(figures(&board).operations, None, "{later}");
        assert_eq!(figures(&board).conflicts_per_s, None, "{later}");
    }
    let mut board = board();
    board.on_answer(0, S, Ok(after(1, 1_000, 1_000, 10, 3)));
    board.on_answer(0, S, Ok(after(1, 1_001, 1_000, 10, 3)));
    assert_eq!(figures(&board).operations, None, "no time has passed");
}

#[test]
fn a_silent_server_shows_nothing_old_and_since_when_it_is_silent() {
    let mut board = board();
    board.on_answer(0, S, Ok(after(1, 1_000, 1_000, 10, 3)));
    board.on_answer(0, 2 * S, Err("connection refused".into()));
    board.on_answer(0, 9 * S, Err("timed out".into()));
    let server = &board.servers()[0];
    assert_eq!(server.condition, Condition::Silent { reason: "timed out".into(), since: 2 * S });
    assert!(server.figures().is_none());
    board.on_answer(0, 10 * S, Ok(after(10, 9_000, 1_000, 10, 3)));
    assert_eq!(board.servers()[0].condition, Condition::Answers);
    assert_eq!(figures(&board).operations, None, "the gap is no second");
    // Whoever is not on the board changes nothing.
    board.on_answer(2, S, Ok(String::new()));
    assert_eq!(board.servers()[1].condition, Condition::Asked);
}

#[test]
fn nonsense_is_nothing() {
    let mut board = board();
    let lines =
        ["ensue_serving:yes", "db0:keys=many", "cmdstat_get:calls", "cmdstat_nothing:calls=1", "nocolon"];
    board.on_answer(0, S, Ok(info(&lines)));
    let figures = figures(&board);
    assert_eq!((figures.is_serving, figures.keys, figures.links.len()), (false, 0, 0));
    assert_eq!(figures.groups.iter().map(|group| group.calls).sum::<i64>(), 1);
}

#[test]
fn a_peer_that_was_declared_dead_is_not_merely_down() {
    let mut board = board();
    let lines = ["ensue_other_datacenter_names:dc2", "ensue_link_dc2:down", "ensue_dead_dc2_partitions:2"];
    board.on_answer(0, S, Ok(info(&lines)));
    assert_eq!(figures(&board).links[0].state, "dead");
    for state in ["retiring", "retired"] {
        let field = format!("ensue_{state}_dc2_partitions:2");
        board.on_answer(0, S, Ok(info(&[lines[0], lines[1], &field])));
        assert_eq!(figures(&board).links[0].state, state);
    }
}

#[test]
fn arrows_stop_at_the_ends() {
    let mut board = board();
    board.choose(-1);
    assert_eq!(board.chosen(), 0);
    board.choose(5);
    assert_eq!(board.chosen(), 1);
    let mut empty = Board::new([]);
    empty.choose(1);
    assert_eq!(empty.chosen(), 0);
}
