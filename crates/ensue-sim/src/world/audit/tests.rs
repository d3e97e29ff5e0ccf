//! The hash is fixed, and every part of what is hashed counts.

use super::Audit;
use crate::world::event::{ConnectionId, Event};
use crate::world::shape::Site;
use std::hash::Hash;

fn hash_of(what: &impl Hash) -> u64 {
    let mut audit = Audit::default();
    audit.event(7, 3, what);
    audit.hash()
}

/// Whatever the machine: the lengths and the variant count as 64 bits.
#[test]
fn the_hash_is_fixed() {
    let what = (5_u8, -1_i64, Some(7_u16), "text", [1_u8, 2, 3].as_slice());
    assert_eq!(hash_of(&what), 0x6c3e6d0055133150);
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
