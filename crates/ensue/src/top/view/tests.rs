//! What stands on the terminal, letter by letter, for a board that the test fills.

use super::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

const S: Duration = Duration::from_secs(1);

fn drawn(board: &Board, columns: u16, rows: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| draw(frame, board, 10 * S)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y| (0..columns).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..rows).map(line).collect()
}

fn answer(operations: u64, link: &str) -> String {
    let lines = [
        format!("uptime_in_seconds:{operations}"),
        "server_time_usec:1700000100000000".into(),
        "ensue_datacenter_name:dc1".into(),
        "ensue_other_datacenter_names:dc2".into(),
        "ensue_serving:1".into(),
        format!("ensue_ready:{}", u8::from(link == "up")),
        if link == "up" {
            String::new()
        } else {
            "ensue_ready_reason:the link to dc2 is down: cut\u{7}".into()
        },
        "connected_clients:4".into(),
        "used_memory:20971520".into(),
        "used_memory_rss:31457280".into(),
        "db0:keys=123,expires=0,avg_ttl=0".into(),
        "keyspace0:conflicts=5".into(),
        "ensue_waiting_entries:6".into(),
        format!("ensue_link_dc2:{link}"),
        "ensue_link_dc2_since:1700000000".into(),
        "ensue_unreceived_dc2_entries:34".into(),
        "ensue_unreceived_dc2_ms_max:12500".into(),
        format!("cmdstat_get:calls={operations},usec={operations},rejected_calls=0,failed_calls=1"),
    ];
    lines.join("\r\n")
}

fn board(link: &str) -> Board {
    let mut board = Board::new(["dc1/0", "dc2/0"].map(String::from));
    board.on_answer(0, S, Ok(answer(100, link)));
    board.on_answer(0, 2 * S, Ok(answer(350, link)));
    board.on_answer(1, 4 * S, Err("connection refused".into()));
    board
}

/// The words of a line, without its borders.
fn words(line: &str) -> Vec<&str> {
    line.split(['│', ' ']).filter(|word| !word.is_empty()).collect()
}

#[test]
fn servers_stand_above_and_links_and_commands_of_the_chosen_one_below() {
    for columns in [100, 140] {
        let lines = drawn(&board("up"), columns, 24);
        let text = lines.join("\n");
        assert_eq!(
            words(&lines[2]),
            ["dc1/0", "dc1", "ready", "250", "123", "20", "MiB", "30", "MiB", "4", "6", "5"],
            "{text}"
        );
        assert_eq!(words(&lines[3]), ["dc2/0", "no", "answer", "6", "s"], "{text}");
        assert!(text.contains("dc1/0: entries waiting 6, reads 0, keys 0, blocked clients 0"), "{text}");
        let link = lines.iter().find(|line| words(line).starts_with(&["dc2", "up"])).expect(&text);
        assert!(link.contains("100 s") && link.contains("34, 12 s") && link.contains(" -"), "{text}");
        let group = ensue_resp::lookup(b"get").unwrap().group;
        let commands = lines.iter().find(|line| line.contains("1.0 µs")).expect(&text);
        let at = words(commands).iter().position(|word| *word == group).expect(&text);
        assert_eq!(words(commands)[at..], [group, "250", "350", "1", "1.0", "µs"], "{text}");
        assert_eq!(lines[23], " arrows choose a datacenter   q ends", "{text}");
    }
}

#[test]
fn what_is_wrong_is_said_and_no_control_character_of_it_reaches_the_terminal() {
    let text = drawn(&board("down"), 100, 24).join("\n");
    assert!(text.contains(" dc1/0: the link to dc2 is down: cut"), "{text}");
    assert!(!text.contains('\u{7}'), "{text}");
    assert!(text.contains("serving"), "{text}");
    let mut board = board("up");
    board.choose(1);
    let text = drawn(&board, 100, 24).join("\n");
    assert!(text.contains(" dc2/0: connection refused") && !text.contains("links of"), "{text}");
}

#[test]
fn the_chosen_server_is_marked() {
    let mut terminal = Terminal::new(TestBackend::new(100, 24)).unwrap();
    let mut board = board("up");
    board.choose(1);
    terminal.draw(|frame| draw(frame, &board, 10 * S)).unwrap();
    let is_marked = |y| terminal.backend().buffer()[(2, y)].modifier.contains(Modifier::REVERSED);
    assert_eq!([is_marked(2), is_marked(3)], [false, true]);
}

#[test]
fn a_terminal_of_any_size_is_drawn_on() {
    for (columns, rows) in [(1, 1), (10, 3), (20, 8), (80, 24), (300, 100)] {
        assert_eq!(drawn(&board("down"), columns, rows).len(), usize::from(rows));
    }
    assert_eq!(drawn(&Board::new([]), 80, 24).len(), 24);
}

#[test]
fn numbers_are_short() {
    assert_eq!([count(99_999), count(250_000), count(12_345_678)], ["99999", "250 k", "12 M"]);
    assert_eq!(
        [bytes(512), bytes(20 << 10), bytes(20 << 20), bytes(20 << 30)],
        ["512 B", "20 KiB", "20 MiB", "20 GiB"]
    );
    let spans = [40, 5_000, 180_000, 7_200_000, 864_000_000].map(|ms| span(Duration::from_millis(ms)));
    assert_eq!(spans, ["40 ms", "5 s", "3 min", "2 h", "10 days"]);
    assert_eq!([per_second(None), per_second(Some(0.25)), per_second(Some(1234.4))], ["-", "0.2", "1234"]);
}
