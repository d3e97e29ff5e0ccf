//! The oracle sees what is wrong, and nothing where nothing is: small histories as text.

use super::judge;
use crate::branching::options::BranchOptions;
use crate::branching::property;
use crate::oracle::history::{History, Outcome, PowerLost};
use crate::oracle::property as common;
use crate::resp::Answer;
use crate::resp::args;
use ensue_types::{DatacenterId, PartitionId};

/// Two transactions that conflict, from the same state, and what two datacenters tell of it. A line is a session, its
/// datacenter, a command and its answer.
const FORKED: &str = "\
0 0 BRANCH BEGIN => 0.0
0 0 SET r0 v1 => +OK
0 0 SET t1 v2 => +OK
0 0 BRANCH COMMIT => 1.0
0 0 BRANCH BEGIN => 1.0
1 0 BRANCH BEGIN ANY => 1.0
0 0 GET r0 => v1
0 0 SET r0 v3 => +OK
0 0 INCRBY c0 2 => 2
1 0 GET r0 => v1
1 0 SET r0 v4 => +OK
1 0 INCRBY c0 3 => 3
0 0 BRANCH COMMIT => 2.0
1 0 BRANCH COMMIT => 3.0
1 0 BRANCH SESSION => [anchor [3.0]]
0 0 BRANCH LOG COUNT 0 => [[3.0 [1.0] [c0 r0] [leaf]] [2.0 [1.0] [c0 r0] [leaf]] [1.0 [0.0] [r0 t1] [fork]] [0.0 [] [] []]]
0 0 BRANCH LIST => [3.0 2.0]
0 0 BRANCH FORKPOINTS 3.0 2.0 => [[1.0 -1]]
0 0 BRANCH CONFLICTS 3.0 2.0 => [c0 r0]
2 1 BRANCH MERGE => [3.0 2.0]
2 1 GET r0 => v4
2 1 SET c0 5 => +OK
2 1 BRANCH COMMIT => 4.1
2 1 BRANCH LOG COUNT 0 => [[4.1 [3.0 2.0] [c0] [leaf merge]] [3.0 [1.0] [c0 r0] []] [2.0 [1.0] [c0 r0] []] [1.0 [0.0] [r0 t1] [fork]] [0.0 [] [] []]]
2 1 BRANCH GET c0 4.1 2.0 => [5 2]
2 1 BRANCH DIFF 2.0 3.0 => [[c0 2 3] [r0 v3 v4]]
2 1 BRANCH LIST => [4.1]
";

/// Answers as `Answer` shows them, without quotes: `+OK`, numbers after `INCRBY` and in fork points, bulks.
fn answer(command: &str, words: &mut std::iter::Peekable<std::vec::IntoIter<String>>) -> Answer {
    let word = words.next().unwrap();
    match word.as_str() {
        "[" => {
            let mut items = Vec::new();
            while words.peek().is_some_and(|word| word != "]") {
                items.push(answer(command, words));
            }
            words.next();
            Answer::Array(items)
        }
        "nil" => Answer::Nil,
        word => {
            if let Some(status) = word.strip_prefix('+') {
                return Answer::Status(status.to_owned());
            }
            if let Some(error) = word.strip_prefix('-').filter(|error| error.starts_with(char::is_alphabetic))
            {
                let rest: Vec<String> = words.by_ref().collect();
                return Answer::Error(format!("{error} {}", rest.join(" ")));
            }
            let is_number = command.starts_with("INCRBY") || command.starts_with("BRANCH FORKPOINTS");
            match word.parse() {
                Ok(number) if is_number => Answer::Integer(number),
                _ => Answer::Bulk(word.as_bytes().to_vec()),
            }
        }
    }
}

fn history(text: &str) -> History {
    let mut history = History::of(1);
    for (line, text) in text.lines().enumerate() {
        let (asked, answered) = text.split_once(" => ").unwrap();
        let mut parts = asked.splitn(3, ' ');
        let session: usize = parts.next().unwrap().parse().unwrap();
        let datacenter = DatacenterId(parts.next().unwrap().parse().unwrap());
        let command = parts.next().unwrap();
        while history.sessions.len() <= session {
            history.session();
        }
        let at = line as u64 * 10;
        let index = history.invoke(session, datacenter, at, vec![args(command)], Vec::new());
        let spaced = answered.replace('[', " [ ").replace(']', " ] ");
        let words: Vec<String> = spaced.split_whitespace().map(str::to_owned).collect();
        let answer = answer(command, &mut words.into_iter().peekable());
        history.said.insert(index, vec![(at + 5, answer)]);
        history.operations[index].answered_us = at + 5;
        history.operations[index].outcome = Outcome::Done;
    }
    history
}

fn options() -> BranchOptions {
    BranchOptions { datacenters: 2, ..BranchOptions::default() }
}

#[test]
fn what_is_right_is_right() {
    let known = judge(&history(FORKED), &options()).unwrap();
    assert!(known.judged >= 15, "{known:?}");
    assert_eq!(known.untold, 0);
}

/// What the oracle says once a line is another one.
#[track_caller]
fn wrong(line: &str, other: &str) -> &'static str {
    assert!(FORKED.contains(line), "{line}");
    judge(&history(&FORKED.replacen(line, other, 1)), &options()).unwrap_err().property
}

#[test]
fn each_wrong_answer_is_seen() {
    let seen = [
        ("1 0 GET r0 => v1", "1 0 GET r0 => nil", property::ISOLATION),
        ("1 0 GET r0 => v1", "1 0 GET r0 => v3", property::ISOLATION),
        ("INCRBY c0 3 => 3", "INCRBY c0 3 => 5", property::ISOLATION),
        ("2 1 GET r0 => v4", "2 1 GET r0 => v3", property::MERGED),
        ("2 1 BRANCH MERGE => [3.0 2.0]", "2 1 BRANCH MERGE => [3.0 1.0]", property::MERGED),
        ("[1.0 -1]", "[1.0 -2]", property::FORK_POINTS),
        ("[1.0 -1]", "[1.0 -1] [0.0 -1]", property::FORK_POINTS),
        ("=> [c0 r0]\n", "=> [r0]\n", property::CONFLICTS),
        ("0 0 BRANCH LIST => [3.0 2.0]", "0 0 BRANCH LIST => [2.0]", property::LEAVES),
        ("0 0 BRANCH LIST => [3.0 2.0]", "0 0 BRANCH LIST => [3.0 2.0 1.0]", property::LEAVES),
        ("[5 2]", "[5 3]", property::ISOLATION),
        ("[[c0 2 3] [r0 v3 v4]]", "[[r0 v3 v4]]", property::ISOLATION),
        ("[anchor [3.0]]", "[anchor [2.0]]", property::ANCHOR),
        ("1 0 BRANCH BEGIN ANY => 1.0", "1 0 BRANCH BEGIN ANY => 0.0", property::ISOLATION),
        ("0 0 BRANCH BEGIN => 1.0", "0 0 BRANCH BEGIN STATE 0.0 => 1.0", property::BEGIN),
        ("1 0 BRANCH COMMIT => 3.0", "1 0 BRANCH COMMIT NO-BRANCHING => 3.0", property::END),
        ("1 0 BRANCH COMMIT => 3.0", "1 0 BRANCH COMMIT READ-COMMITTED => 3.0", property::FORKED),
        ("0 0 BRANCH COMMIT => 2.0", "0 0 BRANCH COMMIT => -ABORT no state", property::ABORTED),
        (
            "0 0 BRANCH LIST",
            "0 0 BRANCH GET r0 1.0 => -COLLECTED 1.0 is gone\n0 0 BRANCH LIST",
            property::COLLECTED,
        ),
        ("2 1 BRANCH LIST", "2 1 BRANCH GET r0 1.0 => -NOSTATE 1.0\n2 1 BRANCH LIST", property::COLLECTED),
        ("[c0 r0] []] [2.0 [1.0]", "[c0 r0] []] [2.0 [0.0]", property::REPLICAS),
        ("1 0 BRANCH COMMIT => 3.0", "1 0 BRANCH COMMIT => 2.0", property::REPLICAS),
    ];
    for (line, other, expected) in seen {
        assert_eq!(wrong(line, other), expected, "{other}");
    }
}

#[test]
fn a_transaction_goes_past_nothing_that_it_has_read() {
    let text = "\
0 0 BRANCH BEGIN => 0.0
0 0 SET r0 v1 => +OK
0 0 BRANCH COMMIT => 1.0
0 0 BRANCH BEGIN => 1.0
0 0 GET READ => ANSWER
0 0 SET r1 v2 => +OK
1 0 BRANCH BEGIN ANY => 1.0
1 0 SET r0 v3 => +OK
1 0 BRANCH COMMIT => 2.0
0 0 BRANCH COMMIT END => 3.0
0 0 BRANCH LOG COUNT 0 => [[3.0 [2.0] [r1] [leaf]] [2.0 [1.0] [r0] []] [1.0 [0.0] [r0] []] [0.0 [] [] []]]
";
    let read = text.replace("READ", "r0").replace("ANSWER", "v1");
    let violation = judge(&history(&read.replace(" END", "")), &options()).unwrap_err();
    assert_eq!(violation.property, property::END);
    judge(&history(&read.replace("END", "SNAPSHOT-ISOLATION")), &options()).unwrap();
    let other = text.replace("READ", "r2").replace("ANSWER", "nil");
    judge(&history(&other.replace(" END", "")), &options()).unwrap();
}

#[test]
fn nothing_begins_above_a_ceiling_or_at_an_older_state() {
    let above = "0 0 BRANCH CEILING 2.0 => +OK\n3 0 BRANCH BEGIN STATE 1.0 => 1.0\n";
    let violation = judge(&history(&format!("{FORKED}{above}")), &options()).unwrap_err();
    assert_eq!(violation.property, property::CEILING);
    let older = "3 0 BRANCH BEGIN ANY => 1.0\n";
    let violation = judge(&history(&format!("{FORKED}{older}")), &options()).unwrap_err();
    assert_eq!(violation.property, property::NEWEST);
    let aborted = "3 0 BRANCH BEGIN ANY => -ABORT no state\n";
    let violation = judge(&history(&format!("{FORKED}{aborted}")), &options()).unwrap_err();
    assert_eq!(violation.property, property::ABORTED);
}

#[test]
fn what_was_acknowledged_is_before_a_leaf_in_the_end() {
    let end = FORKED.lines().count() as u64 * 10;
    let options = BranchOptions { final_us: Some(end), ..options() };
    let lost = format!("{FORKED}4 0 BRANCH LIST => [3.0]\n");
    let violation = judge(&history(&lost), &options).unwrap_err();
    assert!([common::LOST, property::LEAVES].contains(&violation.property), "{violation}");
    let unseen = format!("{FORKED}4 1 BRANCH LIST => [4.1]\n4 1 BRANCH GET t1 4.1 => [nil]\n");
    let violation = judge(&history(&unseen), &options).unwrap_err();
    assert_eq!(violation.property, property::ISOLATION);
    let there = format!("{FORKED}4 1 BRANCH LIST => [4.1]\n4 1 BRANCH GET t1 4.1 => [v2]\n");
    judge(&history(&there), &options).unwrap();
}

/// Seed 70006193 of `tardis`: what a power failure took before anybody else had it never was, and nobody gave it up.
#[test]
fn what_the_power_took_need_not_be_given_up() {
    let text = "\
0 0 SET t1 v1 => +OK
0 0 BRANCH LOG COUNT 0 => [[1.0 [0.0] [t1] [leaf]] [0.0 [] [] []]]
1 1 BRANCH CONFLICTS 0.0 1.0 => -COLLECTED 1.0 is not kept
";
    let mut history = history(text);
    assert_eq!(judge(&history, &options()).unwrap_err().property, property::COLLECTED);
    let lost = |since_us| {
        let (datacenter, partition) = (DatacenterId(0), PartitionId(0));
        PowerLost { datacenter, partition, since_us, at_us: 18, is_whole: false }
    };
    history.power_losses = vec![lost(16)];
    assert!(judge(&history, &options()).is_err(), "it was synced before");
    history.power_losses = vec![lost(0)];
    judge(&history, &options()).unwrap();
}

/// Seed 77009714 of `tardis`: two datacenters merged the same, and one was asked for the other's merge before that
/// arrived.
#[test]
fn a_name_of_an_equal_merge_may_be_missing() {
    let text = format!(
        "{FORKED}\
0 0 BRANCH LOG COUNT 1 => [[8.0 [3.0 1.0] [] [leaf merge]]]
1 1 BRANCH LOG COUNT 1 => [[8.1 [3.0 1.0] [] [leaf merge]]]
0 0 BRANCH CONFLICTS 8.1 => -NOSTATE 8.1 has not arrived here
"
    );
    judge(&history(&text), &options()).unwrap();
    let violation = judge(&history(&text.replace("8.1", "8.0")), &options()).unwrap_err();
    assert_eq!(violation.property, property::COLLECTED);
}

/// Seed 51 of `tardis`: a session was sent on from a datacenter that then lost the state at which it stood.
#[test]
fn a_session_whose_state_the_power_took_goes_on_from_what_is_left() {
    let text = "\
0 0 SET t1 v1 => +OK
0 0 BRANCH SESSION => [anchor [1.0] transaction none reads [] begin ANCESTOR end SERIALIZABILITY]
0 1 SET t2 v2 => +OK
0 1 BRANCH SESSION => [anchor [1.1] transaction none reads [] begin ANCESTOR end SERIALIZABILITY]
0 1 BRANCH LOG COUNT 0 => [[1.1 [0.0] [t2] [leaf]] [0.0 [] [] []]]
";
    let mut history = history(text);
    assert_eq!(judge(&history, &options()).unwrap_err().property, property::END);
    let (datacenter, partition) = (DatacenterId(0), PartitionId(0));
    history.power_losses = vec![PowerLost { datacenter, partition, since_us: 0, at_us: 18, is_whole: false }];
    judge(&history, &options()).unwrap();
}

/// Seed 70005540 of `tardis`: a session whose transaction was over was told so when it asked for a merge. From there on
/// the oracle had heard nothing of it, and missed its ceiling.
#[test]
fn a_merge_that_was_refused_leaves_no_doubt() {
    let text = "\
0 0 SET t1 v1 => +OK
0 0 SET t2 v2 => +OK
0 0 BRANCH LOG COUNT 0 => [[2.0 [1.0] [t2] [leaf]] [1.0 [0.0] [t1] []] [0.0 [] [] []]]
0 0 BRANCH MERGE => -NOTRANSACTION the transaction is over
0 0 BRANCH CEILING 2.0 => +OK
1 1 BRANCH CEILING 2.0 => +OK
1 1 BRANCH CONFLICTS 1.0 2.0 => -COLLECTED 1.0 is not kept
";
    judge(&history(text), &options()).unwrap();
    let without = text.replace("0 0 BRANCH CEILING 2.0 => +OK\n", "");
    assert_eq!(judge(&history(&without), &options()).unwrap_err().property, property::COLLECTED);
}

/// Seed 70002881 of `tardis`: the disk failed behind the transaction, whose answers were withheld; it was kept all the
/// same, and all of it.
#[test]
fn what_nobody_knows_of_was_done_in_a_transaction_that_was() {
    let unknown = "-STOPPED partition p0 has stopped; it is not known whether a write was kept";
    let text = format!(
        "\
0 0 BRANCH BEGIN => 0.0
0 0 SET c0 24 => +OK
0 0 SET c0 29 => {unknown}
0 0 SET t1 v1 => {unknown}
0 0 BRANCH COMMIT => {unknown}
1 0 BRANCH LOG COUNT 0 => [[1.0 [0.0] [c0 t1] [leaf]] [0.0 [] [] []]]
1 0 BRANCH GET c0 1.0 => [29]
"
    );
    judge(&history(&text), &options()).unwrap();
    let violation = judge(&history(&text.replace("[29]", "[24]")), &options()).unwrap_err();
    assert_eq!(violation.property, property::ISOLATION);
    let refused = text.replacen(unknown, "-ERR nothing was executed", 1);
    assert!(judge(&history(&refused), &options()).is_err());
}

/// Seed 5007 of `tardis`: the second addition is answered as what finds nothing to delete is, and stands there all the
/// same.
#[test]
fn a_counter_that_comes_to_nothing_was_written() {
    let text = "\
0 0 BRANCH BEGIN => 0.0
0 0 INCRBY c0 3 => 3
0 0 INCRBY c0 -3 => 0
0 0 BRANCH COMMIT => 1.0
0 0 BRANCH LOG COUNT 0 => [[1.0 [0.0] [c0] [leaf]] [0.0 [] [] []]]
0 0 BRANCH GET c0 1.0 => [0]
";
    judge(&history(text), &options()).unwrap();
    let violation = judge(&history(&text.replace("=> [0]", "=> [3]")), &options()).unwrap_err();
    assert_eq!(violation.property, property::ISOLATION);
}
