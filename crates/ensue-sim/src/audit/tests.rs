use super::Audit;
use crate::event::{Alarm, ConnectionId, Event};
use crate::shape::{ProcessId, Site};
use std::hash::Hash;

fn hash_of(what: &impl Hash) -> u64 {
    let mut audit = Audit::default();
    audit.event(7, 3, what);
    audit.hash()
}

#[test]
fn the_hash_of_an_event_is_fixed() {
    let answer =
        Event::Answer { connection: ConnectionId(5), bytes: b"$5\r\nvalue\r\n".to_vec(), answered: 1 };
    assert_eq!(hash_of(&answer), 0x11e52d8de5c626a1);
    assert_eq!(hash_of(&Event::Alarm(Alarm::Start(ProcessId(2)))), 0xd2a62fe1191aefbc);
}

#[test]
fn every_part_of_an_event_counts() {
    let answer = |connection, bytes: &[u8], answered| {
        hash_of(&Event::Answer { connection: ConnectionId(connection), bytes: bytes.to_vec(), answered })
    };
    let hashes = [
        answer(5, b"+OK\r\n", 1),
        answer(6, b"+OK\r\n", 1),
        answer(5, b"+OK\r\n\0", 1),
        answer(5, b"+KO\r\n", 1),
        answer(5, b"+OK\r\n", 2),
        hash_of(&Event::Reconnect { a: Site(1), b: Site(2) }),
        hash_of(&Event::Reconnect { a: Site(2), b: Site(1) }),
        hash_of(&Event::Hangup { connection: ConnectionId(5) }),
    ];
    let different: std::collections::BTreeSet<u64> = hashes.into_iter().collect();
    assert_eq!(different.len(), hashes.len());
}

#[test]
fn the_order_and_the_time_of_events_count() {
    let run = |events: &[(u64, u64)]| {
        let mut audit = Audit::default();
        events.iter().for_each(|&(at, alarm)| audit.event(at, 0, &alarm));
        audit.hash()
    };
    assert_ne!(run(&[(1, 10), (1, 11)]), run(&[(1, 11), (1, 10)]));
    assert_ne!(run(&[(1, 10), (1, 11)]), run(&[(1, 10), (2, 11)]));
    assert_ne!(run(&[(0, 0)]), run(&[(0, 0), (0, 0)]));
}
