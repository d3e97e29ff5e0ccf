//! Wires between sockets of the test's own.

use super::*;
use std::net::Ipv4Addr;

fn any_port() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

/// A wire to a listener of the test's own, with both ends of one connection through it.
fn connected() -> (Wire, TcpStream, TcpStream, SocketAddr) {
    let far_end = TcpListener::bind(any_port()).expect("a port");
    let near_port = TcpListener::bind(any_port()).expect("a port").local_addr().expect("its address");
    let wire = Wire::lay(near_port, far_end.local_addr().expect("its address")).expect("a wire");
    let near = TcpStream::connect(near_port).expect("the wire listens");
    let (far, _) = far_end.accept().expect("the wire connects");
    near.set_read_timeout(Some(Duration::from_millis(200))).expect("a timeout");
    far.set_read_timeout(Some(Duration::from_millis(200))).expect("a timeout");
    (wire, near, far, near_port)
}

#[test]
fn bytes_pass_both_ways() {
    let (_wire, mut near, mut far, _) = connected();
    let mut bytes = [0; 4];
    near.write_all(b"ping").expect("sent");
    far.read_exact(&mut bytes).expect("received");
    assert_eq!(&bytes, b"ping");
    far.write_all(b"pong").expect("sent");
    near.read_exact(&mut bytes).expect("received");
    assert_eq!(&bytes, b"pong");
}

#[test]
fn a_silent_direction_keeps_its_bytes_and_the_other_goes_on() {
    let (wire, mut near, mut far, _) = connected();
    let mut bytes = [0; 4];
    wire.silence(Way::Forward, true);
    near.write_all(b"ping").expect("sent");
    far.write_all(b"pong").expect("sent");
    near.read_exact(&mut bytes).expect("the other way is open");
    assert!(far.read_exact(&mut bytes).is_err(), "nothing passes a silent direction");
    wire.silence(Way::Forward, false);
    far.read_exact(&mut bytes).expect("what waited arrives");
    assert_eq!(&bytes, b"ping");
}

#[test]
fn a_severed_wire_closes_and_refuses_until_it_is_mended() {
    let (wire, mut near, _far, port) = connected();
    wire.sever(true);
    let mut bytes = [0; 1];
    assert!(matches!(near.read(&mut bytes), Ok(0) | Err(_)), "the connection is closed");
    let mut refused = TcpStream::connect(port).expect("the listener itself stays");
    refused.set_read_timeout(Some(Duration::from_secs(2))).expect("a timeout");
    assert!(matches!(refused.read(&mut bytes), Ok(0) | Err(_)), "and closed at once");
}
