//! Tests of TLS over real sockets, which give and take little at a time.

use super::*;
use crate::temporary::Temporary;
use crate::tls::tests::{Authority, certificates};
use crate::tls::{Certificates, server_name};
use mio::net::TcpListener;
use std::time::{Duration, Instant};

/// Both ends of a connection.
fn pair(dialling: &Certificates, accepting: &Certificates) -> (Transport, Transport) {
    let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let far = loop {
        match listener.accept() {
            Ok((far, _)) => break far,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    };
    let name = server_name("ensue", "dc2").unwrap();
    let near = Transport::dial(near, &dialling.for_peers().unwrap().dialling, name).unwrap();
    (near, Transport::accept(far, &accepting.for_peers().unwrap().accepting).unwrap())
}

/// What a read came to: bytes, nothing yet, the end, or an error.
fn read(transport: &mut Transport, into: &mut Vec<u8>) -> io::Result<bool> {
    let mut scratch = [0; 10_000];
    match transport.read(&mut scratch) {
        Ok(length) => {
            into.extend_from_slice(&scratch[..length]);
            Ok(length == 0)
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(error),
    }
}

/// Tries until something is so; a test that waits for ever has failed.
fn until(mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < end, "it never became so");
    }
}

fn two_datacenters() -> (Temporary, Temporary, Certificates, Certificates) {
    let authority = Authority::new();
    let (here, there) = (Temporary::new(), Temporary::new());
    let dialling = certificates(authority.issue(here.path(), &["dc1.ensue"]));
    let accepting = certificates(authority.issue(there.path(), &["dc2.ensue"]));
    (here, there, dialling, accepting)
}

#[test]
fn megabytes_go_both_ways_through_sockets_that_take_little_at_a_time() {
    let (_here, _there, dialling, accepting) = two_datacenters();
    let (mut near, mut far) = pair(&dialling, &accepting);
    let sent: Vec<u8> = (0..5_000_000_u32).map(|number| (number % 251) as u8).collect();
    let (mut written, mut there, mut back) = ([0; 2], Vec::new(), Vec::new());
    until(|| {
        for (transport, written) in [&mut near, &mut far].into_iter().zip(&mut written) {
            match transport.write(&sent[*written..]) {
                Ok(length) => *written += length,
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
            transport.flush().unwrap();
        }
        assert!(!read(&mut far, &mut there).unwrap() && !read(&mut near, &mut back).unwrap());
        there.len() == sent.len() && back.len() == sent.len()
    });
    assert!(there == sent && back == sent);
    assert!(!near.is_handshaking() && !far.is_handshaking());
    assert!(near.certificate().is_some() && far.certificate().is_some());
}

#[test]
fn a_read_that_emptied_the_connection_says_so_and_no_other() {
    let (_here, _there, dialling, accepting) = two_datacenters();
    let (mut near, mut far) = pair(&dialling, &accepting);
    let mut nothing = Vec::new();
    until(|| {
        read(&mut near, &mut nothing).unwrap();
        read(&mut far, &mut nothing).unwrap();
        !near.is_handshaking() && !far.is_handshaking()
    });
    assert_eq!(near.write(b"twelve bytes").unwrap(), 12);
    let mut scratch = [0; 8];
    until(|| match far.read(&mut scratch) {
        Ok(length) => {
            assert_eq!(length, 8);
            true
        }
        Err(_) => false,
    });
    assert!(!far.has_emptied(8, 8), "four bytes were decrypted and not read");
    assert_eq!(far.read(&mut scratch).unwrap(), 4);
    assert!(!far.has_emptied(4, 8), "this read did not look at the socket, which may hold more by now");
    assert_eq!(far.read(&mut scratch).unwrap_err().kind(), io::ErrorKind::WouldBlock);
}

#[test]
fn a_farewell_is_the_end_and_so_is_a_socket_that_closes_without_one() {
    let (_here, _there, dialling, accepting) = two_datacenters();
    for farewell in [true, false] {
        let (mut near, mut far) = pair(&dialling, &accepting);
        let (mut here, mut there) = (Vec::new(), Vec::new());
        near.write_all(b"last words").unwrap();
        until(|| {
            read(&mut near, &mut here).unwrap();
            read(&mut far, &mut there).unwrap();
            near.flush().unwrap();
            there.len() == 10
        });
        // Whoever closes with something unread resets the connection, and may take the last words along.
        read(&mut near, &mut here).unwrap();
        match farewell {
            true => drop(near.into_socket()),
            false => drop(near),
        }
        until(|| read(&mut far, &mut there).unwrap());
        assert_eq!(there, b"last words");
    }
}

/// Errors of both sides of a handshake.
fn refusals(dialling: &Certificates, accepting: &Certificates) -> [Option<String>; 2] {
    let (mut near, mut far) = pair(dialling, accepting);
    let mut refusals = [None, None];
    let mut nothing = Vec::new();
    until(|| {
        for (transport, refusal) in [&mut near, &mut far].into_iter().zip(&mut refusals) {
            if refusal.is_none() {
                *refusal = read(transport, &mut nothing).err().map(|error| error.to_string());
            }
        }
        refusals.iter().all(Option::is_some)
    });
    refusals
}

#[test]
fn a_certificate_of_another_authority_another_name_or_another_time_is_refused() {
    let (here, there, dialling, accepting) = two_datacenters();
    let foreign = certificates(Authority::new().issue(here.path(), &["dc1.ensue"]));
    let is_told = |refusals: [Option<String>; 2], words: &str| {
        assert!(refusals.iter().flatten().any(|why| why.contains(words)), "{words}: {refusals:?}");
    };
    is_told(refusals(&foreign, &accepting), "invalid peer certificate");
    is_told(refusals(&dialling, &foreign), "invalid peer certificate");
    let authority = Authority::new();
    let dialling = certificates(authority.issue(here.path(), &["dc1.ensue"]));
    let misnamed = certificates(authority.issue(there.path(), &["dc3.ensue"]));
    is_told(refusals(&dialling, &misnamed), "not valid for name");
    let expired = certificates(authority.issue_until(there.path(), &["dc2.ensue"], 2020));
    is_told(refusals(&dialling, &expired), "expired");
}

#[test]
fn what_is_no_tls_is_an_error() {
    let (_here, _there, dialling, accepting) = two_datacenters();
    let (near, mut far) = pair(&dialling, &accepting);
    let mut plain = near.into_socket();
    plain.write_all(b"*1\r\n$4\r\nPING\r\n").unwrap();
    let mut nothing = Vec::new();
    until(|| read(&mut far, &mut nothing).is_err());
    assert!(nothing.is_empty());
}
