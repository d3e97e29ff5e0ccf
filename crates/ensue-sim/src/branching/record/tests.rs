//! Small recordings as JSON lines, right ones and the same with one thing wrong each.

use super::*;
use crate::branching::property as branch_property;

/// Two datacenters fork from one state, one of them merges, both are read in the end. The last commit of session 2 was
/// never answered.
const RECORDED: &str = include_str!("forked.jsonl");

fn recording(text: &str) -> Recording {
    Recording::read(&mut text.as_bytes()).unwrap()
}

#[test]
fn what_is_right_is_right_and_judged() {
    let known = recording(RECORDED).judge().unwrap();
    assert!(known.judged >= 12, "{known:?}");
}

/// What is violated where each of these is another in every line.
#[track_caller]
fn wrong(changes: &[(&str, &str)]) -> &'static str {
    let mut text = RECORDED.to_owned();
    for (known, other) in changes {
        assert!(text.contains(known), "{known}");
        text = text.replace(known, other);
    }
    recording(&text).judge().expect_err("something is wrong").property
}

/// What is wrong, what is another in every line for that, and what is violated.
type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str);

#[test]
fn each_broken_guarantee_is_found() {
    let seen: [Case<'_>; 11] = [
        ("a read of another branch", &[(r#"["v3","v4"]"#, r#"["v5","v4"]"#)], branch_property::ISOLATION),
        ("half of a transaction", &[(r#"["v3","v4"]"#, r#"["v3",null]"#)], branch_property::ISOLATION),
        (
            "a merge that reads an old value",
            &[(r#"["v5","v3"]"#, r#"["v5","v1"]"#)],
            branch_property::ISOLATION,
        ),
        (
            "a session that leaves its branch",
            &[(r#"[1310,"2.0"]"#, r#"[1310,"1.0"]"#), ("v3\",\"v4\"]", "v1\",null]")],
            branch_property::BEGIN,
        ),
        (
            "a merge without an ancestor",
            &[
                (r#"["3.1",["2.1","2.0"]"#, r#"["3.1",["2.1"]"#),
                (r#"[9030,["v4"]]"#, "[9030,[null]]"),
                (r#"[9130,["v4"]]"#, "[9130,[null]]"),
                (r#"[9010,["3.1"]]"#, r#"[9010,["3.1","2.0"]]"#),
                (r#"[9110,["3.1"]]"#, r#"[9110,["3.1","2.0"]]"#),
            ],
            branch_property::MERGED,
        ),
        (
            "a commit beside what it read",
            &[(r#"["2.0",["1.0"],["r0","r1"]"#, r#"["2.0",["0.0"],["r0","r1"]"#)],
            branch_property::END,
        ),
        ("two states of one name", &[(r#"[1230,"2.1"]"#, r#"[1230,"2.0"]"#)], branch_property::REPLICAS),
        (
            "parents that differ between datacenters",
            &[(r#"[9120,[["3.1",["2.1","2.0"]"#, r#"[9120,[["3.1",["2.1"]"#)],
            branch_property::REPLICAS,
        ),
        (
            "leaves that differ between datacenters",
            &[(r#"[9110,["3.1"]]"#, r#"[9110,["3.1","2.0"]]"#)],
            branch_property::LEAVES,
        ),
        (
            "values that differ between datacenters",
            &[(r#"[9130,["v4"]]"#, r#"[9130,["v3"]]"#)],
            branch_property::ISOLATION,
        ),
        (
            "a state that is missing without a reason",
            &[(r#"[1320,["v3","v4"]]"#, r#"[1320,{"error":"NOSTATE 1.0 x"}]"#)],
            branch_property::COLLECTED,
        ),
    ];
    for (what, changes, expected) in seen {
        assert_eq!(wrong(changes), expected, "{what}");
    }
}

/// The whole state is gone from the end, in every datacenter alike: only what was acknowledged says so.
#[test]
fn a_lost_commit_is_found() {
    let (before, _) = RECORDED.split_once("{\"session\":3").unwrap();
    let last = |session: u32, datacenter: u32, at: u32| {
        let log = r#"[["2.1",["1.0"],["r0","t2"],[]],["2.0",["1.0"],["r0","r1"],[]],["1.0",["0.0"],["r0","t1"],[]]]"#;
        let commands = r#"[["BRANCH","LIST"],["BRANCH","LOG","COUNT","0"]]"#;
        let asked =
            format!(r#""session":{session},"datacenter":{datacenter},"asked":{at},"commands":{commands}"#);
        format!("{{{asked},\"answers\":[[{at},[\"2.1\",\"2.0\"]],[{at},{log}]]}}\n")
    };
    let text = format!("{before}{}{}", last(3, 0, 9000), last(4, 1, 9100));
    let ended = format!("{text}{{\"event\":\"end\",\"operations\":9}}\n");
    let property = recording(&ended).judge().unwrap_err().property;
    assert!([property::LOST, branch_property::LEAVES].contains(&property), "{property}");
    let unseen =
        RECORDED.replace(r#"[9040,["v2"]]"#, "[9040,[null]]").replace(r#"[9140,["v2"]]"#, "[9140,[null]]");
    assert!(recording(&unseen).judge().is_err());
    // Without an end nobody knows what would have come.
    let cut = recording(&text);
    assert_eq!(cut.options.final_us, None);
}

#[test]
fn datacenters_are_compared_in_the_end() {
    // Nobody is told of what this key is: only that it differs.
    let differ = RECORDED
        .replace(r#"["BRANCH","GET","t1","3.1"]"#, r#"["BRANCH","CONFLICTS","3.1"]"#)
        .replace(r#"[9040,["v2"]]"#, "[9040,[]]")
        .replace(r#"[9140,["v2"]]"#, "[9140,[]]");
    recording(&differ).judge().unwrap();
    let digest = RECORDED
        .replace(r#"["BRANCH","GET","t1","3.1"]"#, r#"["BRANCH","DIGEST","LEAVES"]"#)
        .replace(r#"[9040,["v2"]]"#, r#"[9040,"aa"]"#);
    let same = digest.replace(r#"[9140,["v2"]]"#, r#"[9140,"aa"]"#);
    recording(&same).judge().unwrap();
    let differ = digest.replace(r#"[9140,["v2"]]"#, r#"[9140,"bb"]"#);
    assert_eq!(recording(&differ).judge().unwrap_err().property, property::CONVERGENCE);
    let lines: Vec<&str> = RECORDED.lines().filter(|line| !line.contains(r#""session":4"#)).collect();
    let silent = lines.join("\n").replace(r#""operations":9"#, r#""operations":8"#);
    assert_eq!(recording(&silent).judge().unwrap_err().property, property::CONVERGENCE);
}

/// The commit that was never answered happened after all, and everybody sees it.
#[test]
fn a_commit_of_unknown_outcome_may_have_happened() {
    let merge = r#"["3.1",["2.1","2.0"],["r0","t3"],[{"status":"leaf"}"#;
    let child = r#"["4.0",["3.1"],["r1","t4"],[{"status":"leaf"}]],"#;
    let happened =
        RECORDED.replace(&format!("[{merge}"), &format!("[{child}{}", merge.replace("leaf", "fork")));
    // What datacenter 1 told before that is as it was.
    let earlier = r#"[5050,[["4.0",["3.1"],["r1","t4"],[{"status":"leaf"}]],["#;
    let happened = happened.replace(earlier, "[5050,[[");
    let happened = happened
        .replace(r#"[9010,["3.1"]]"#, r#"[9010,["4.0"]]"#)
        .replace(r#"[9110,["3.1"]]"#, r#"[9110,["4.0"]]"#);
    let happened =
        happened.replace(r#""r1","3.1"]"#, r#""r1","4.0"]"#).replace(r#""t1","3.1"]"#, r#""t1","4.0"]"#);
    let seen = happened
        .replace(r#"[9030,["v4"]]"#, r#"[9030,["v9"]]"#)
        .replace(r#"[9130,["v4"]]"#, r#"[9130,["v9"]]"#);
    recording(&seen).judge().unwrap();
    // If it happened, then all of it.
    assert_eq!(recording(&happened).judge().unwrap_err().property, branch_property::ISOLATION);
}

#[test]
fn what_is_written_is_read_again() {
    let known = recording(RECORDED);
    let written = |recording: &Recording| {
        let mut bytes = Vec::new();
        recording.write(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    assert_eq!(written(&recording(&written(&known))), written(&known));
    assert!(written(&known).starts_with(FIRST));
    let mut odd =
        Recording::new(BranchOptions { datacenters: 3, places_ceilings: true, ..BranchOptions::default() });
    odd.history.session();
    // Another one said something first.
    let session = odd.history.session();
    let commands = vec![vec![bytes::Bytes::from_static(b"\xff\x00")], crate::resp::args("GET x")];
    let operation = odd.asked(session, DatacenterId(2), 7, commands);
    odd.options.restarted = vec![DatacenterId(1)];
    let items =
        vec![Answer::Nil, Answer::Integer(-3), Answer::Error("ERR no".into()), Answer::Bulk(vec![0xfe])];
    odd.answered(operation, 8, Answer::Array(items));
    let again = recording(&written(&odd));
    assert_eq!(again.history.said, odd.history.said);
    assert_eq!(again.history.sessions, [vec![0]]);
    assert_eq!(again.history.operations[0].commands, odd.history.operations[0].commands);
    assert_eq!(again.history.operations[0].outcome, Outcome::Unknown);
    assert_eq!(again.options.restarted, [DatacenterId(1)]);
    assert!(again.options.places_ceilings);
}

#[test]
fn what_is_no_such_history_is_refused() {
    let first = RECORDED.lines().next().unwrap();
    for text in [
        "",
        r#"{"event":"history","version":1}"#,
        &first.replace(r#""version":1"#, r#""version":2"#),
        &format!("{first}\n{{\"session\":1}}"),
        &format!("{first}\n{{\"event\":\"end\",\"operations\":3}}"),
        &RECORDED.replace(r#""session":2"#, r#""session":7"#),
    ] {
        let mut text = text.as_bytes();
        assert!(text.is_empty() || Recording::read(&mut text).is_err());
    }
}
