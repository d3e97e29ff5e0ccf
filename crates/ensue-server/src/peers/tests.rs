//! Tests of the sockets of links, both dialled and accepted.

use super::*;
use ensue_node::DatacenterTopology;
use ensue_types::CoreId;
use ensue_wire::{Hello, Settings, WIRE_VERSION_MAX, WIRE_VERSION_MIN};
use mio::Poll;
use rustix::net::sockopt;

const DIALS: CoreName = CoreName { datacenter: DatacenterId(0), core: CoreId(0) };
const ACCEPTS: CoreName = CoreName { datacenter: DatacenterId(1), core: CoreId(0) };

fn peers(own: CoreName, listener: TcpListener, other: CoreName, port: u16) -> Peers {
    let name = |number: u8| format!("dc{}", number + 1);
    let hello = Hello {
        wire_version_min: WIRE_VERSION_MIN,
        wire_version_max: WIRE_VERSION_MAX,
        cluster: "test".into(),
        datacenter: name(own.datacenter.0),
        core: own.core,
        boot: 1,
        nonce: [0; 32],
        flags: 0,
    };
    let datacenters = (0..2).map(|number| (name(number), 1)).collect();
    let there = |number| DatacenterTopology {
        replicas: Vec::new(),
        name: name(number),
        cores: 1,
        nodes: vec![1],
        placement: vec![CoreId(0)],
    };
    let topology =
        Topology { datacenter: own.datacenter, partitions: 1, datacenters: (0..2).map(there).collect() };
    let identity = Identity { hello, settings: Settings::default(), keys: Keys::Open, datacenters };
    let stance = Stance { own, identity, topology, encryption: None, unauthenticated: false };
    let resolve: Resolve = Arc::new(|resolved| panic!("{resolved:?} needs no looking up"));
    Peers::new(vec![(other, "127.0.0.1".into(), port)], stance, Arc::default(), listener, &resolve)
}

fn check_link(peers: &Peers) {
    let [link] = &peers.links.values().collect::<Vec<_>>()[..] else { panic!("{} links", peers.links.len()) };
    let stream = link.stream.socket();
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

#[test]
fn without_a_secret_only_this_machine_is_believed() {
    let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let mut peers = peers(ACCEPTS, listener, DIALS, 0);
    let believed = |peers: &Peers| {
        ["127.0.0.1", "::1", "::ffff:127.0.0.2", "10.0.0.1", "::ffff:10.0.0.1", "2001:db8::1"]
            .map(|ip| peers.believes(ip.parse().unwrap()))
    };
    assert_eq!(believed(&peers), [true, true, true, false, false, false]);
    peers.believes_others = true;
    assert_eq!(believed(&peers), [true; 6]);
}
