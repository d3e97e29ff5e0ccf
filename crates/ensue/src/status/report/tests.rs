//! Tests of the table from made-up fields.

use super::*;

fn row(name: &str, port: u16, fields: &[(&str, &str)], digest: &str) -> Row {
    let fields = fields.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    Row { name: name.into(), port, seen: Ok(Seen { fields, digest: digest.into() }) }
}

#[test]
fn every_node_has_a_line() {
    let report = Report {
        rows: vec![
            row(
                "dc1/0",
                7001,
                &[
                    ("db0", "keys=3,expires=0"),
                    ("ensue_lag_dc2_entries", "5"),
                    ("ensue_linked_dc2", "0"),
                    ("ensue_backlog_bytes", "20480"),
                ],
                "ab",
            ),
            row(
                "dc2/0",
                7002,
                &[
                    ("ensue_waiting_entries", "2"),
                    ("ensue_overdue_for_dc3_entries", "1"),
                    ("ensue_lag_dc1_entries", "0"),
                ],
                "cd",
            ),
            Row { name: "dc3/0".into(), port: 7003, seen: Err("cannot connect".into()) },
        ],
        links: vec!["dc1-dc2=cut,40ms".into(), "dc1-dc3=whole,40ms".into()],
    };
    let text = report.text(Paint::off());
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[1].contains("dc2:5(no link)") && lines[1].contains("20 kB") && lines[1].contains(" 3 "),
        "{text}"
    );
    assert!(lines[2].contains("entries:2 overdue(dc3):1") && lines[2].ends_with("cd"), "{text}");
    assert!(lines[3].contains("unreachable: cannot connect"), "{text}");
    assert!(text.contains("dc1-dc2 cut  dc1-dc3 40ms") && text.contains("digests differ"), "{text}");
}

#[test]
fn a_datacenter_that_was_declared_dead_is_said_to_be() {
    let fields = [("ensue_serving", "0"), ("ensue_declared_dead", "2"), ("ensue_ready", "0")];
    let report = Report { rows: vec![row("dc3/0", 1, &fields, "")], links: vec![] };
    assert!(report.text(Paint::off()).contains("declared dead: serves nothing"));
}

#[test]
fn a_datacenter_that_is_removed_is_said_to_be_by_itself_and_the_others() {
    let said = |fields: &[(&'static str, &'static str)]| {
        let all = [&[("ensue_serving", "2"), ("ensue_link_dc3", "down")], fields].concat();
        Report { rows: vec![row("dc1/0", 1, &all, "")], links: vec![] }.text(Paint::off())
    };
    for (fields, words) in [
        (&[("ensue_retiring", "2")][..], "retiring: takes no writes"),
        (&[("ensue_retired", "2"), ("ensue_retiring", "0")], "retired: its nodes may be stopped"),
        (&[("ensue_link_dc3", "up"), ("ensue_retiring_dc3_partitions", "1")], "serving, dc3 retiring"),
        (&[("ensue_retired_dc3_partitions", "2")], "serving, dc3 retired"),
        (&[("ensue_retired_dc2_partitions", "2")], "UNREPLICATED"),
    ] {
        let text = said(fields);
        assert!(text.contains(words), "{fields:?}: {text}");
    }
}

#[test]
fn who_does_not_serve_is_said_to_clients_and_operators() {
    let fields = [("ensue_serving", "0"), ("ensue_ready", "0"), ("ensue_catching_up", "1")];
    let row = row("dc1/0", 7001, &fields, "");
    assert_eq!(row.readiness().0, 1);
    let text = Report { rows: vec![row], links: vec![] }.text(Paint::off());
    assert!(text.contains("TAILLOST: 1 partitions wait"), "{text}");
}

#[test]
fn equal_digests_are_said_to_be() {
    let report = Report { rows: vec![row("a", 1, &[], "x"), row("b", 2, &[], "x")], links: vec![] };
    assert!(report.text(Paint::off()).contains("all digests are equal"));
}

#[test]
fn who_serves_without_replicating_is_plain() {
    let info = |dc2: &'static str, dc3: &'static str| {
        [
            ("ensue_link_dc2", dc2),
            ("ensue_link_dc2_since", "1000"),
            ("ensue_link_dc2_reason", "partitions: 2 here, 4 there"),
            ("ensue_link_dc3", dc3),
            ("ensue_ready", "0"),
            ("ensue_serving", "1"),
            ("ensue_ready_reason", "the link to dc2 is refused"),
            ("server_time_usec", "1300000000"),
        ]
    };
    let text = |fields: &[(&str, &str)]| {
        let row = row("dc1/0", 7001, fields, "x");
        (row.readiness(), Report { rows: vec![row], links: vec![] }.text(Paint::off()))
    };
    let (verdict, shown) = text(&info("refused", "up"));
    assert_eq!(verdict, (2, "dc1/0: not ready: the link to dc2 is refused".into()));
    assert!(shown.contains("serving, no link to dc2"), "{shown}");
    assert!(shown.contains("the link to dc2 is refused for 5 min: partitions: 2 here, 4 there"), "{shown}");
    assert!(text(&info("refused", "down")).1.contains("serving UNREPLICATED"));
    let mut ready = info("up", "up");
    ready[4].1 = "1";
    let (verdict, shown) = text(&ready);
    assert!(verdict.0 == 0 && !shown.contains("UNREPLICATED") && !shown.contains("no link"), "{shown}");
}

#[test]
fn damage_on_a_disk_is_said_loudly() {
    let fields = [("ensue_ready", "1"), ("ensue_damaged_files", "2"), ("ensue_damaged_files_of_p3", "2")];
    let report = Report { rows: vec![row("dc1/0", 1, &fields, "")], links: vec![] };
    let text = report.text(Paint::off());
    assert!(text.contains("dc1/0: DAMAGE on the disk of partition 3, in 2 files"), "{text}");
}
