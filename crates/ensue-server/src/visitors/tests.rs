//! A session has its turns until all is answered, and is gone then, or when the node ends it.

use super::*;
use bytes::Bytes;
use ensue_types::CoreId;
use std::sync::mpsc::{Receiver, channel};

fn visit(
    visitors: &mut Visitors,
    count: usize,
    inputs: &mut VecDeque<Input>,
) -> (SessionId, Receiver<Vec<u8>>) {
    let (answers, answered) = channel();
    let (from, to) = ("10.0.0.9:5".parse().unwrap(), "10.0.0.1:9121".parse().unwrap());
    let commands = vec![vec![Bytes::from("PING")]; count];
    let session = crate::listener::next_session(CoreId(0));
    visitors.admit(session, Visit { from, to, commands, answers }, inputs);
    let Some(Input::VisitorConnected { session, address, .. }) = inputs.pop_front() else { panic!() };
    assert_eq!(address, "10.0.0.9:5");
    assert!(
        matches!(inputs.pop_front(), Some(Input::ClientCommands { commands, .. }) if commands.len() == count)
    );
    (session, answered)
}

#[test]
fn who_wants_a_turn_has_it_and_all_answers_come_at_once() {
    let (mut visitors, mut inputs) = (Visitors::default(), VecDeque::new());
    let (session, answered) = visit(&mut visitors, 3, &mut inputs);
    visitors.reply(session, b"+A\r\n", (1, true), &mut inputs);
    assert!(
        matches!(inputs.pop_front(), Some(Input::ClientCommands { commands, .. }) if commands.is_empty())
    );
    visitors.reply(session, b"+B\r\n", (1, false), &mut inputs);
    assert!(inputs.is_empty() && answered.try_recv().is_err() && visitors.has(session));
    visitors.reply(session, b"+C\r\n", (1, true), &mut inputs);
    assert_eq!(answered.try_recv().unwrap(), b"+A\r\n+B\r\n+C\r\n");
    assert!(matches!(inputs.pop_front(), Some(Input::ClientGone { .. })));
    assert!(inputs.is_empty() && !visitors.has(session));
}

#[test]
fn who_asks_nothing_waits_for_nothing() {
    let (mut visitors, mut inputs) = (Visitors::default(), VecDeque::new());
    let (session, answered) = visit(&mut visitors, 0, &mut inputs);
    assert!(answered.try_recv().unwrap().is_empty() && !visitors.has(session));
}

#[test]
fn who_is_ended_gets_what_there_is() {
    let (mut visitors, mut inputs) = (Visitors::default(), VecDeque::new());
    let (one, first) = visit(&mut visitors, 2, &mut inputs);
    let (_, second) = visit(&mut visitors, 2, &mut inputs);
    visitors.reply(one, b"+A\r\n", (1, false), &mut inputs);
    visitors.end(one, &mut inputs);
    assert_eq!(first.try_recv().unwrap(), b"+A\r\n");
    visitors.end_all(&mut inputs);
    assert!(second.try_recv().unwrap().is_empty());
    assert_eq!(inputs.len(), 2);
}
