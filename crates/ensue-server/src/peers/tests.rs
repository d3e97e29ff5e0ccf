//! Tests of the sockets of links, both dialled and accepted.

use super::*;
use ensue_types::CoreId;
use ensue_wire::{WIRE_VERSION_MAX, WIRE_VERSION_MIN};
use mio::Poll;
use rustix::net::sockopt;

const DIALS: CoreName = CoreName { datacenter: DatacenterId(0), core: CoreId(0) };
const ACCEPTS: CoreName = CoreName { datacenter: DatacenterId(1), core: CoreId(0) };

fn peers(own: CoreName, listener: TcpListener, other: CoreName, port: u16) -> Peers {
    let hello = Hello {
        wire_version_min: WIRE_VERSION_MIN,
        wire_version_max: WIRE_VERSION_MAX,
        cluster: [7; 16],
        datacenter: own.datacenter,
        core: own.core,
        boot: 1,
        partitions: 1,
        datacenters: 2,
        secret_proof: None,
    };
    let resolve: Resolve = Arc::new(|resolved| panic!("{resolved:?} needs no looking up"));
    Peers::new(vec![(other, "127.0.0.1".into(), port)], hello, Arc::default(), listener, &resolve)
}

fn check_link(peers: &Peers) {
    let [link] = &peers.links.values().collect::<Vec<_>>()[..] else { panic!("{} links", peers.links.len()) };
    let stream = &link.stream;
    assert!(stream.nodelay().unwrap() && sockopt::socket_keepalive(stream).unwrap());
    assert_eq!(sockopt::tcp_user_timeout(stream).unwrap(), 10_000);
    assert_eq!(sockopt::tcp_keepidle(stream).unwrap(), Duration::from_secs(5));
    assert_eq!(sockopt::tcp_keepintvl(stream).unwrap(), Duration::from_secs(2));
    assert_eq!(sockopt::tcp_keepcnt(stream).unwrap(), 3);
}

#[test]
fn a_link_whose_other_side_fell_silent_ends_in_time() {
    let listen = || TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let (here, there) = (listen(), listen());
    let port = there.local_addr().unwrap().port();
    let poll = Poll::new().unwrap();
    let mut dialling = peers(DIALS, here, ACCEPTS, port);
    let mut accepting = peers(ACCEPTS, there, DIALS, 0);
    dialling.tend(0, poll.registry(), &mut VecDeque::new());
    while accepting.links.is_empty() {
        accepting.on_listener_ready();
        accepting.tend(0, poll.registry(), &mut VecDeque::new());
    }
    check_link(&dialling);
    check_link(&accepting);
}
