//! What is sent to a server, and what its answers mean.

use super::*;
use crate::diff::fake::{side, side_with};

fn ok() -> Reply {
    Reply::Status("OK".into())
}

#[test]
fn what_a_server_does_not_know_is_found_out() {
    let probes = [("PEXPIRETIME ensue:diff:no such key", Reply::Integer(-2))];
    let mut answers = vec![("SELECT 3", ok()), ("DBSIZE", Reply::Integer(5)), probes[0].clone()];
    let mut old = side_with("left", &answers);
    assert_eq!(old.enter(3).unwrap(), 5);
    assert_eq!(old.knows(), Knows { deadlines: true, field_deadlines: false });
    answers.push(("HPEXPIRETIME ensue:diff:no such key FIELDS 1 f", Reply::Error("NOPERM no".into())));
    let mut new = side_with("left", &answers);
    new.enter(3).unwrap();
    assert_eq!(new.knows(), Knows { deadlines: true, field_deadlines: true });
}

#[test]
fn a_server_that_answers_later_is_waited_for() {
    let mut times = 0;
    let mut patient = side("left", move |command| {
        times += usize::from(command == "DBSIZE");
        if times == 1 { Reply::Error("LOADING not yet".into()) } else { Reply::Integer(7) }
    });
    assert_eq!(patient.ask(words!["DBSIZE"]).unwrap(), Reply::Integer(7));
}

#[test]
fn an_error_names_the_side_and_the_command() {
    let mut right = side_with("right", &[("SELECT 0", ok())]);
    let error = right.enter(0).unwrap_err().to_string();
    assert_eq!(error, "the right server answers to DBSIZE: ERR unknown command 'DBSIZE'");
}

#[test]
fn keyspaces_are_those_that_are_listed_and_those_that_have_keys() {
    let mut current = 0;
    let mut listing = side("left", move |command| match command.split_once(' ') {
        Some(("INFO", _)) => Reply::bulk("# Keyspace\r\ndb0:keys=1,expires=0\r\ndb17:keys=2,expires=0\r\n"),
        Some(("SELECT", number)) => {
            current = number.parse().unwrap();
            if current < 8 { ok() } else { Reply::Error("ERR DB index is out of range".into()) }
        }
        _ => Reply::Integer(i64::from(current == 5 || current >= 8)),
    });
    assert_eq!(listing.keyspaces().unwrap(), BTreeSet::from([0, 5, 17]));
}

#[test]
fn answers_come_in_order_over_several_windows() {
    let mut echo = side("left", |command| Reply::bulk(command.to_string()));
    let commands: Vec<Words> = (0..1_234).map(|number| words!["GET", number.to_string()]).collect();
    let mut places = Vec::new();
    echo.each(&commands, |place, reply| {
        assert_eq!(reply, Reply::bulk(format!("GET {place}")));
        places.push(place);
    })
    .unwrap();
    assert_eq!(places, (0..1_234).collect::<Vec<_>>());
}
