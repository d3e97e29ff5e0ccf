//! Operations on memory, and what answers of a server mean.

use super::*;
use ensue_trods::packet::Endpoint;
use ensue_trods::seq::Seq;
use std::net::Ipv4Addr;

fn key() -> Key {
    let end = |last, port| Endpoint { address: Ipv4Addr::new(10, 0, 0, last), port };
    Key { client: end(9, 4000), service: end(1, 80) }
}

fn put(record: &[u8]) -> StoreOp {
    StoreOp::Put { key: key(), exchange: Seq(7), record: record.to_vec() }
}

#[test]
fn memory_keeps_the_first_record_of_an_exchange() {
    let mut memory = Memory::default();
    assert_eq!(memory.carry_out(put(b"one")), StoreOutcome::Stored);
    assert_eq!(memory.carry_out(put(b"two")), StoreOutcome::Exists(b"one".to_vec()));
    assert_eq!(memory.carry_out(StoreOp::Get { key: key() }), StoreOutcome::Found(vec![b"one".to_vec()]));
    assert_eq!(memory.carry_out(StoreOp::Delete { key: key(), exchange: Seq(7) }), StoreOutcome::Deleted);
    assert_eq!(memory.carry_out(StoreOp::Get { key: key() }), StoreOutcome::Found(Vec::new()));
}

#[test]
fn answers_of_a_server_are_outcomes() {
    let bulk = |text: &'static str| Reply::Bulk(text.as_bytes().into());
    let read = |op: &StoreOp, replies: Vec<Reply>| outcome(op, &mut replies.into_iter());
    let one = Reply::Integer(1);
    assert_eq!(read(&put(b"a"), vec![one.clone(), bulk("a"), one.clone()]), StoreOutcome::Stored);
    assert_eq!(
        read(&put(b"a"), vec![Reply::Integer(0), bulk("b"), one.clone()]),
        StoreOutcome::Exists(b"b".to_vec())
    );
    let get = StoreOp::Get { key: key() };
    assert_eq!(
        read(&get, vec![Reply::Array(vec![bulk("a"), bulk("b")])]),
        StoreOutcome::Found(vec![b"a".to_vec(), b"b".to_vec()])
    );
    assert_eq!(read(&get, vec![Reply::Error("ERR no".into())]), StoreOutcome::Failed);
    assert_eq!(read(&get, Vec::new()), StoreOutcome::Failed);
    assert_eq!(read(&put(b"a"), vec![one.clone(), bulk("a")]), StoreOutcome::Failed);
}

#[test]
fn lookups_leave_room_for_records() {
    let (sender, _receiver) = sync_channel(STORE_QUEUE_MAX);
    let asking = Asking { sender, lookups: Arc::new(AtomicUsize::new(0)) };
    let get = || StoreOp::Get { key: key() };
    for _ in 0..STORE_LOOKUPS_MAX {
        assert_eq!(asking.begin(Ticket(1), get()), None);
    }
    assert_eq!(asking.begin(Ticket(1), get()), Some(StoreOutcome::Failed));
    assert_eq!(asking.begin(Ticket(1), put(b"a")), None);
}
