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

/// A store that closes what is idle, or was restarted, had the next record fail.
#[test]
fn a_connection_that_was_closed_is_opened_again() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    let server = std::thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().expect("somebody connects");
            let read = std::io::Read::read(&mut stream, &mut [0; 1024]).expect("it asks");
            assert!(read > 0);
            std::io::Write::write_all(&mut stream, b"*1\r\n$1\r\na\r\n").expect("it reads");
        }
    });
    let mut asker =
        Asker { options: Options::local(port), connection: None, failed: None, lookups: Arc::default() };
    let get = || (Ticket(1), StoreOp::Get { key: key() });
    for _ in 0..2 {
        assert!(asker.ask(&[get()]).is_some());
    }
    server.join().expect("both were asked");
    assert!(asker.ask(&[get()]).is_none(), "nobody listens any more");
}
