//! Who has no key gets no link, and a frame is taken once, whole, in its order.

use super::*;
use crate::prophecy::members::{Protocol, create};
use ensue_byzantine::keys::Member;
use std::net::TcpListener;
use std::thread;

fn secrets() -> Vec<Secret> {
    static MADE: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let number = MADE.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let directory = std::env::temp_dir().join(format!("ensue-link-{}-{number}", std::process::id()));
    let replica = |number: u16| (format!("r{number}"), SocketAddr::from(([127, 0, 0, 1], number)));
    create(&directory, Protocol::Redis, &(1..=4).map(replica).collect::<Vec<_>>(), 1).unwrap();
    let read = |name: &str| Secret::read(&directory.join(format!("{name}.secret"))).unwrap();
    let secrets = ["replica-1", "replica-2", "sketcher-1"].map(read).into();
    std::fs::remove_dir_all(directory).unwrap();
    secrets
}

fn replica(number: u32) -> Role {
    Role::Replica(Member(number))
}

type Accepted = thread::JoinHandle<io::Result<(Role, Vec<u8>)>>;

/// Accepts one link as a replica, and answers who came and the first frame.
fn accepting(secret: Secret) -> (SocketAddr, Accepted) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let accepted = thread::spawn(move || {
        let (role, _sealing, mut opening) = accept(listener.accept()?.0, &secret, |_| 100)?;
        Ok((role, opening.read()?))
    });
    (address, accepted)
}

#[test]
fn both_ends_know_whose_the_other_is() {
    let secrets = secrets();
    let (address, accepted) = accepting(secrets[0].clone());
    let (mut sealing, _opening) = connect(address, &secrets[2], replica(0), 100).unwrap();
    sealing.write(b"frame").unwrap();
    sealing.stream.flush().unwrap();
    let (role, frame) = accepted.join().unwrap().unwrap();
    assert_eq!((role, &frame[..]), (Role::Sketcher(Member(0)), &b"frame"[..]));
}

#[test]
fn a_replica_cannot_speak_as_another_one() {
    let secrets = secrets();
    let (address, accepted) = accepting(secrets[0].clone());
    let mut liar = secrets[1].clone();
    liar.role = Role::Sketcher(Member(0));
    assert!(connect(address, &liar, replica(0), 100).is_err());
    assert!(accepted.join().unwrap().is_err());

    let (address, accepted) = accepting(secrets[1].clone());
    assert!(connect(address, &secrets[2], replica(0), 100).is_err(), "another replica answers");
    assert!(accepted.join().unwrap().is_err());
}

#[test]
fn a_frame_that_was_changed_or_comes_again_or_is_too_long_ends_the_link() {
    let spoil: [fn(&mut Sealing); 3] = [
        |sealing| sealing.key[0] ^= 1,
        |sealing| sealing.count = 1,
        |sealing| sealing.write(&[0; 101]).unwrap(),
    ];
    for spoil in spoil {
        let secrets = secrets();
        let (address, accepted) = accepting(secrets[0].clone());
        let (mut sealing, _opening) = connect(address, &secrets[1], replica(0), 100).unwrap();
        spoil(&mut sealing);
        // The other end may be gone by now.
        let _ = sealing.write(b"frame").and_then(|()| sealing.stream.flush());
        assert_eq!(accepted.join().unwrap().unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }
}

#[test]
fn an_outbox_has_a_bound_and_an_end() {
    let outbox = Outbox::default();
    let long: Arc<[u8]> = vec![0; OUTBOX_BYTES_MAX / 2 - FRAME_BYTES].into();
    (0..3).for_each(|_| outbox.push(Arc::clone(&long)));
    assert_eq!(outbox.take().map(|frames| frames.len()), Some(2));
    outbox.push(long);
    outbox.close();
    assert_eq!(outbox.take(), None);
}

#[test]
fn a_greeting_has_one_time_limit_for_all_of_it() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let mut connecting = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (stream, _) = listener.accept().unwrap();
    connecting.write_all(b"b").unwrap();
    let mut greeting = Greeting { stream: &stream, until: Instant::now() };
    assert_eq!(greeting.read(&mut [0; 1]).unwrap_err().kind(), io::ErrorKind::TimedOut);
}

#[test]
fn a_member_has_a_number_of_links_and_no_more() {
    let links = Links::default();
    let mut held: Vec<Counted<'_>> =
        (0..LINKS_A_MEMBER_MAX).map(|_| links.count(replica(1)).unwrap()).collect();
    assert!(links.count(replica(1)).is_err());
    assert!(links.count(replica(2)).is_ok(), "another one is let in");
    held.pop();
    assert!(links.count(replica(1)).is_ok());
}

#[test]
fn who_hears_nothing_more_ends_the_link() {
    let secrets = secrets();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let theirs = secrets[0].clone();
    let accepted = thread::spawn(move || {
        let (_, _sealing, mut opening) = accept(listener.accept().unwrap().0, &theirs, |_| 100).unwrap();
        opening.set_silence_max(std::time::Duration::from_secs(30)).unwrap();
        opening.read().unwrap_err().kind()
    });
    let (_sealing, opening) = connect(address, &secrets[2], replica(0), 100).unwrap();
    drop(opening);
    assert_eq!(
        accepted.join().unwrap(),
        io::ErrorKind::UnexpectedEof,
        "also while its other end could write"
    );
}
