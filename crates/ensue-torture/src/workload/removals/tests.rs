//! Renames and flushes of clients of a server that answers what it is told to, as the history has them, and as it is
//! judged.

use super::*;
use crate::recorder::Recorder;
use ensue_check::report::Overall;
use ensue_check::{History, check};
use ensue_client::Options;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

const NIL: &str = "$-1\r\n";
const OK: &str = "+OK\r\n";

/// A round on a server whose connections answer one command after another with these replies.
fn round(connections: &'static [&'static [&'static str]]) -> Round {
    let listener = TcpListener::bind("127.0.0.1:0").expect("some port is free");
    let options = Options::local(listener.local_addr().expect("it is bound").port());
    thread::spawn(move || {
        for replies in connections {
            let (mut output, _) = listener.accept().expect("somebody connects");
            let mut input = BufReader::new(output.try_clone().expect("it is open"));
            for reply in *replies {
                skip_command(&mut input);
                output.write_all(reply.as_bytes()).expect("it is open");
            }
        }
    });
    Round {
        number: 1,
        recorder: Recorder::new(1),
        places: vec![vec![options]],
        stop: AtomicBool::new(false),
        removals: Removals::default(),
        counters: Default::default(),
        errors: Default::default(),
        samples: Mutex::default(),
    }
}

fn skip_command(input: &mut impl BufRead) {
    let mut number = || {
        let mut line = String::new();
        input.read_line(&mut line).expect("it is open");
        let number = line[1..].trim_end().parse::<usize>().expect("a length");
        if line.starts_with('$') {
            input.read_exact(&mut vec![0; number + 2]).expect("as many bytes");
        }
        number
    };
    for _ in 0..number() {
        number();
    }
}

fn client<'a>(round: &'a Round, name: &str, keyspace: u8) -> Client<'a> {
    let session = round.recorder.session(name);
    Client::open_in(round, 0, session, keyspace).expect("the server listens")
}

fn is_clean(history: &History) -> bool {
    check(history, &ensue_check::Options::default()).overall() == Overall::Holds
}

/// Whoever renames a key, and then reads this under its new name and nothing under the old one in the end.
fn renamed(replies: &'static [&'static [&'static str]]) -> History {
    let round = round(replies);
    let target = round.register(0);
    let mut one = client(&round, "one", 0);
    one.rename("7", &target).expect("it is answered");
    one.read_many(&[target], false).expect("it is answered");
    client(&round, "final", 0).read_moved().expect("it is answered");
    round.recorder.into_history()
}

#[test]
fn a_rename_moves_what_was_read_under_the_old_name() {
    let history = renamed(&[&[OK, OK, "$1\r\n7\r\n"], &[NIL]]);
    let operations: Vec<usize> = history.transactions.iter().map(|one| one.operations.len()).collect();
    assert_eq!(operations, [1, 3, 1, 1]);
    assert!(is_clean(&history));
    assert!(!is_clean(&renamed(&[&[OK, OK, NIL], &[NIL]])), "the new name has nothing");
    assert!(!is_clean(&renamed(&[&[OK, OK, "$1\r\n7\r\n"], &["$1\r\n7\r\n"]])), "the old one still has it");
}

#[test]
fn a_rename_without_an_answer_was_done_if_its_value_is_read() {
    let round = round(&[&[OK, "-UNKNOWN no answer\r\n"], &["$1\r\n7\r\n", NIL]]);
    let target = round.register(0);
    client(&round, "one", 0).rename("7", &target).expect_err("nobody knows");
    let mut two = client(&round, "two", 0);
    (0..2).for_each(|_| two.read_many(std::slice::from_ref(&target), false).expect("it is answered"));
    assert!(!is_clean(&round.recorder.into_history()), "it is there, and then it is not");
}

/// A session writes a register, flushes, and reads this.
fn flushed(replies: &'static [&'static [&'static str]]) -> History {
    let round = round(replies);
    let register = round.flushed_registers()[2].clone();
    let mut one = client(&round, "one", FLUSHED_KEYSPACE);
    one.write_many(std::slice::from_ref(&register), &["a".to_owned()]).expect("it is answered");
    round.removals.flushes.store(true, Ordering::SeqCst);
    one.flush().expect("it is answered");
    one.read_many(&[register], false).expect("it is answered");
    round.recorder.into_history()
}

#[test]
fn what_was_flushed_is_gone_for_the_session_that_flushed() {
    assert!(is_clean(&flushed(&[&[OK, OK, OK, NIL]])));
    assert!(!is_clean(&flushed(&[&[OK, OK, OK, "$1\r\na\r\n"]])), "its own value is back");
}

#[test]
fn nothing_is_a_flush_only_after_one_was_sent() {
    let round = round(&[]);
    let register = round.flushed_registers()[0].clone();
    assert_eq!(round.nothing_of(&register), Value::ABSENT);
    round.removals.flushes.store(true, Ordering::SeqCst);
    assert_ne!(round.nothing_of(&register), Value::ABSENT);
    assert_eq!(round.nothing_of(&round.register(0)), Value::ABSENT);
}
