//! Tests of who is let in.

use super::*;
use std::io::Read;

#[test]
fn loopback_is_recognised_in_both_families() {
    for address in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
        assert!(is_loopback(address.parse().unwrap()), "{address}");
    }
    for address in ["10.0.0.1", "::2", "::ffff:10.0.0.1", "0.0.0.0"] {
        assert!(!is_loopback(address.parse().unwrap()), "{address}");
    }
}

#[test]
fn no_two_sessions_of_a_datacenter_have_one_number() {
    let mut numbers: Vec<u64> = [0, 1, CORES_MAX - 1, 0, 1].map(|core| next_session(CoreId(core)).0).into();
    assert!(numbers[0] < numbers[3] && numbers[3] < 1 << 40, "the first node has small ones");
    assert!((1 << 40..2 << 40).contains(&numbers[1]) && (1 << 40..2 << 40).contains(&numbers[4]));
    assert!(numbers.iter().all(|number| *number < 1 << 53));
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 5);
}

#[test]
fn one_client_too_many_is_told_so() {
    let socket = TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    let admittance =
        Admittance { clients_max: 1, room: 100, is_protected: true, is_open: true, keepalive_s: 300 };
    let mut listener = Listener::new(vec![Door { socket, certificates: None }], admittance);
    let _first = std::net::TcpStream::connect(address).unwrap();
    let mut second = std::net::TcpStream::connect(address).unwrap();
    let (mut admitted, mut refused) = (Vec::new(), Vec::new());
    listener.on_ready();
    listener.accept(0, &mut admitted, &mut refused);
    assert_eq!((admitted.len(), refused.len()), (1, 1));
    assert_eq!(listener.next_us(), None);
    refused.clear();
    let mut words = String::new();
    second.read_to_string(&mut words).unwrap();
    assert_eq!(words, "-ERR max number of clients reached\r\n");
    admitted.clear();
    let _third = std::net::TcpStream::connect(address).unwrap();
    listener.on_ready();
    listener.accept(0, &mut admitted, &mut refused);
    assert_eq!(admitted.len(), 1, "a seat that was left is free again");
}

#[test]
fn all_addresses_of_both_families_can_have_one_port() {
    let v4 = bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = v4.local_addr().unwrap().port();
    match bind(SocketAddr::new("::1".parse().unwrap(), port)) {
        Ok(v6) => {
            let address = v6.local_addr().unwrap();
            let _client = std::net::TcpStream::connect(address).unwrap();
            assert!(rustix::net::sockopt::ipv6_v6only(&v6).unwrap());
        }
        // A machine without IPv6.
        Err(error) => assert_ne!(error.kind(), io::ErrorKind::AddrInUse, "{error}"),
    }
}
