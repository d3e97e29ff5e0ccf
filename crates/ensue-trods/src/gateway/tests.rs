//! One gateway and single packets: what hostile or unlucky peers send, and what a store that fails leaves behind.

use super::*;
use crate::config::{Mode, Objects, Rules};
use crate::limits::{BODY_BYTES_MAX, BROKEN_US, IDLE_US_MAX, OPENING_US_MAX, UNCONFIRMED_US_MAX};
use crate::output::Verdict;
use crate::packet::{Endpoint, Timestamps};
use crate::record::{Path, Record};
use crate::seq::Seq;
use crate::store::StoreOp;
use core::net::Ipv4Addr;

const CLIENT: Endpoint = Endpoint { address: Ipv4Addr::new(203, 0, 113, 1), port: 4000 };
const SERVICE: Endpoint = Endpoint { address: Ipv4Addr::new(192, 0, 2, 1), port: 80 };
const LOCAL: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const GET: &[u8] = b"GET /film HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
const KEEP: &[u8] = b"GET /film HTTP/1.1\r\nHost: a\r\n\r\n";
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n";
/// Sequence numbers of the first bytes of client and server.
const C: Seq = Seq(1001);
const S: Seq = Seq(7_000_001);

struct Rig {
    trods: Trods,
    now: Now,
    to_server: Vec<Packet>,
    to_client: Vec<Packet>,
    ops: Vec<(Ticket, StoreOp)>,
    stamp: Option<Timestamps>,
}

fn packet(from: Endpoint, to: Endpoint, seq: Seq, ack: Seq, flags: Flags, payload: &[u8]) -> Packet {
    let mut packet = Packet::acknowledgment(from, to, seq, ack);
    packet.flags = flags;
    packet.payload = payload.to_vec();
    packet
}

impl Rig {
    fn new(mode: Mode) -> Self {
        let config = Config {
            mode,
            ports: vec![80],
            local_address: LOCAL,
            cluster_key: [7; 32],
            epoch_us: 600_000_000,
            objects: Objects::new(vec![b"/film a".to_vec(), b"/other a".to_vec()]).expect("two"),
            streams: false,
            rules: Rules::ALL,
        };
        let stamp = mode.stamps().then_some(Timestamps { value: 9, echo: 0 });
        Self {
            trods: Trods::new(config),
            now: Now(3_000_000_000),
            to_server: Vec::new(),
            to_client: Vec::new(),
            ops: Vec::new(),
            stamp,
        }
    }

    fn drain(&mut self, from: Side, given: &[u8]) {
        (self.to_server, self.to_client, self.ops) = Default::default();
        while let Some(output) = self.trods.next_output() {
            let (side, bytes) = match output {
                Output::Verdict(Verdict::Accept) => (from.other(), given.to_vec()),
                Output::Verdict(Verdict::Replace(bytes)) => (from.other(), bytes),
                Output::Inject { side, bytes } => (side, bytes),
                Output::Store { ticket, op } => {
                    self.ops.push((ticket, op));
                    continue;
                }
                Output::Verdict(Verdict::Drop) | Output::ApplicationFailed => continue,
            };
            let packet = Packet::parse(&bytes).expect("a gateway sends whole packets");
            match side {
                Side::Server => self.to_server.push(packet),
                Side::Client => self.to_client.push(packet),
            }
        }
    }

    fn give(&mut self, side: Side, mut packet: Packet) {
        packet.options.timestamps = packet.options.timestamps.or(self.stamp);
        let bytes = packet.build();
        self.trods.on_packet(self.now, side, &bytes);
        self.drain(side, &bytes);
    }

    fn client(&mut self, seq: Seq, ack: Seq, flags: Flags, payload: &[u8]) {
        self.give(Side::Client, packet(CLIENT, SERVICE, seq, ack, flags, payload));
    }

    /// A packet of the server to an end of this machine or to the client.
    fn server_to(&mut self, end: Endpoint, seq: Seq, ack: Seq, flags: Flags, payload: &[u8]) {
        self.give(Side::Server, packet(SERVICE, end, seq, ack, flags, payload));
    }

    fn server(&mut self, seq: Seq, ack: Seq, flags: Flags, payload: &[u8]) {
        self.server_to(CLIENT, seq, ack, flags, payload);
    }

    /// The outcome of the operation that was wanted last.
    fn store(&mut self, outcome: StoreOutcome) {
        let (ticket, op) = self.ops.pop().expect("an operation");
        self.trods.on_store(self.now, op.key(), ticket, outcome);
        self.drain(Side::Client, &[]);
    }

    fn tick(&mut self, us: u64) {
        self.now.0 += us;
        self.trods.on_tick(self.now);
        self.drain(Side::Client, &[]);
    }

    fn shown(&self) -> &Packet {
        self.to_client.last().expect("a packet for the client")
    }

    /// Opens a connection; returns the number of the server's first byte, as the client sees it.
    fn open(&mut self) -> Seq {
        self.client(C.minus(1), Seq(0), Flags::SYN, b"");
        self.server(S.minus(1), C, Flags::SYN.with(Flags::ACK), b"");
        let first = self.shown().seq.plus(1);
        if let Some(shown) = self.shown().options.timestamps {
            self.stamp = Some(Timestamps { value: 9, echo: shown.value });
        }
        self.client(C, first, Flags::ACK, b"");
        first
    }

    /// Opens a connection, on which the client asks and the response begins; its record is saved.
    fn download(&mut self, request: &[u8], head: &[u8]) -> Seq {
        let first = self.open();
        self.client(C, first, Flags::ACK, request);
        let end = C.plus(request.len() as u64);
        self.server(S, end, Flags::ACK, &[head, b"body"].concat());
        first
    }

    /// A packet of the client to a server that does not know it, and the records that the store has.
    fn found(&mut self, packet: Packet, records: Vec<Vec<u8>>) {
        self.give(Side::Client, packet);
        if !self.ops.is_empty() {
            self.store(StoreOutcome::Found(records));
        }
    }
}

/// The number of the server's first byte that every server of the cluster shows.
fn first_shown(mode: Mode) -> Seq {
    Rig::new(mode).open()
}

fn record(response_seq: Seq, request: &[u8], head: &[u8]) -> Record {
    let path = Path { segment_size: 1460, window_scale: Some(7), sack: true };
    Record { path, request_seq: C, response_seq, request: request.to_vec(), head: head.to_vec() }
}

fn is_syn(packet: &Packet) -> bool {
    packet.has(Flags::SYN)
}

#[test]
fn without_a_record_only_a_connection_at_its_start_is_set_up() {
    let first = first_shown(Mode::Kv);
    let asked = |ack| packet(CLIENT, SERVICE, C, ack, Flags::ACK, GET);
    let mut rig = Rig::new(Mode::Kv);
    rig.found(asked(first), Vec::new());
    assert!(is_syn(&rig.to_server[0]) && rig.to_server[0].source.address == LOCAL);
    assert_eq!(rig.to_server[0].options.segment_size, Some(1220));
    // In the middle of a body, and one byte too far.
    for ack in [first.plus(5_000_000), first.plus(1), first.minus(1)] {
        let mut rig = Rig::new(Mode::Kv);
        rig.found(asked(ack), Vec::new());
        assert_eq!((rig.to_server.len(), rig.trods.counters().lost), (0, 1));
    }
    // Bytes out of order are a response whose record the store forgot.
    let mut sacked = asked(first);
    sacked.options.sacks = vec![(first.plus(1448), first.plus(2896))];
    let mut rig = Rig::new(Mode::Kv);
    rig.found(sacked, Vec::new());
    assert_eq!(rig.to_server, []);
}

#[test]
fn a_record_that_cannot_be_read_is_not_taken_for_none() {
    let first = first_shown(Mode::Kv);
    let mut bytes = record(first, GET, OK).encode();
    bytes[0] += 1;
    let mut rig = Rig::new(Mode::Kv);
    rig.found(packet(CLIENT, SERVICE, C, first, Flags::ACK, GET), vec![bytes]);
    assert_eq!((rig.to_server.len(), rig.trods.counters().lost), (0, 1));
}

#[test]
fn a_record_is_found_behind_those_of_older_connections() {
    let first = first_shown(Mode::Kv);
    let older = |at: u32| Record { request_seq: Seq(at << 20), ..record(first, GET, OK) }.encode();
    let mut records: Vec<_> = (1..30).map(older).collect();
    records.push(record(first, GET, OK).encode());
    let mut rig = Rig::new(Mode::Kv);
    let ack = first.plus(OK.len() as u64 + 100);
    rig.found(packet(CLIENT, SERVICE, C, ack, Flags::ACK, GET), records);
    assert!(is_syn(&rig.to_server[0]));
    let near = rig.to_server[0].source;
    rig.server_to(near, S.minus(1), rig.to_server[0].seq.plus(1), Flags::SYN.with(Flags::ACK), b"");
    let request = String::from_utf8_lossy(&rig.to_server[0].payload).into_owned();
    assert!(request.contains("Range: bytes=99-"), "{request}");
}

/// The next exchange begins where the last one ended, which its record says.
#[test]
fn a_later_exchange_is_set_up_only_at_the_end_of_the_last() {
    let first = first_shown(Mode::Kv);
    let next = C.plus(KEEP.len() as u64);
    let end = first.plus(OK.len() as u64 + 1000);
    for (ack, set_up) in [(end, true), (end.plus(1), false)] {
        let mut rig = Rig::new(Mode::Kv);
        rig.found(
            packet(CLIENT, SERVICE, next, ack, Flags::ACK, KEEP),
            vec![record(first, KEEP, OK).encode()],
        );
        assert_eq!(rig.to_server.len(), usize::from(set_up), "{ack}");
    }
}

#[test]
fn the_record_of_an_idle_connection_stays() {
    let mut rig = Rig::new(Mode::Kv);
    let first = rig.download(KEEP, OK);
    rig.store(StoreOutcome::Stored);
    let end = C.plus(KEEP.len() as u64);
    rig.server(S.plus(OK.len() as u64 + 4), end, Flags::ACK, &[0; 996]);
    rig.client(end, first.plus(OK.len() as u64 + 1000), Flags::ACK, b"");
    rig.tick(3_000_000_000);
    assert_eq!((rig.trods.connections(), rig.ops.len()), (0, 0));
}

#[test]
fn a_body_without_a_length_is_protected_below_a_gibibyte() {
    let head = b"HTTP/1.1 200 OK\r\n\r\n";
    let mut rig = Rig::new(Mode::Kv);
    rig.trods.config.streams = true;
    let first = rig.download(GET, head);
    rig.store(StoreOutcome::Stored);
    let end = C.plus(GET.len() as u64);
    for (far, expected) in [(BODY_BYTES_MAX - 100, C), (BODY_BYTES_MAX + 100, end)] {
        rig.server(S.plus(far), end, Flags::ACK, b"x");
        assert_eq!(rig.shown().ack, C);
        rig.client(end, first.plus(far + 1), Flags::ACK, b"");
        assert_eq!(rig.ops.len(), usize::from(expected == end), "the record is deleted");
        rig.server(S.plus(far + 1), end, Flags::ACK, b"x");
        assert_eq!(rig.shown().ack, expected, "the request is acknowledged");
    }
    assert_eq!(rig.trods.counters().unprotected, 1);
}

#[test]
fn chunks_are_not_believed_to_be_alike_unless_it_is_said() {
    for streams in [false, true] {
        let mut rig = Rig::new(Mode::Kv);
        rig.trods.config.streams = streams;
        rig.download(GET, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        assert_eq!(rig.ops.len(), usize::from(streams));
        assert_eq!(rig.to_client.len(), usize::from(!streams));
    }
}

#[test]
fn what_is_no_chunk_makes_a_response_unprotected() {
    let mut rig = Rig::new(Mode::Kv);
    rig.trods.config.streams = true;
    let first = rig.download(GET, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    rig.store(StoreOutcome::Stored);
    let (at, ack) = (S.plus(51), C.plus(GET.len() as u64));
    assert_eq!(rig.shown().payload.len(), 51);
    rig.server(at, ack, Flags::ACK.with(Flags::FIN), b"\n0123456789abcffffffffffffffffff");
    assert!(rig.shown().has(Flags::FIN) && rig.shown().seq == first.plus(51));
}

#[test]
fn a_reset_counts_only_where_the_client_would_send_it() {
    let mut rig = Rig::new(Mode::Kv);
    rig.download(GET, OK);
    rig.store(StoreOutcome::Stored);
    let end = C.plus(GET.len() as u64);
    for seq in [Seq(77), C.plus(1), end.plus(1), end.plus(1 << 30)] {
        rig.client(seq, Seq(0), Flags::RST, b"");
        assert_eq!((rig.to_server.len(), rig.ops.len(), rig.trods.connections()), (0, 0, 1), "{seq}");
    }
    // A closed socket answers with the acknowledgment that it was shown, and that of the request is held back.
    rig.client(C, Seq(0), Flags::RST, b"");
    assert!(rig.to_server[0].has(Flags::RST));
    assert_eq!(rig.to_server[0].seq, end);
    assert!(matches!(rig.ops[..], [(_, StoreOp::Delete { .. })]));
    assert_eq!(rig.trods.connections(), 0);
}

#[test]
fn connections_that_were_passed_through_are_forgotten_when_they_are_over() {
    let mut rig = Rig::new(Mode::Kv);
    let first = rig.open();
    rig.client(C, first, Flags::ACK, b"POST / HTTP/1.0\r\n\r\n");
    let end = C.plus(19);
    rig.server(S, end, Flags::ACK.with(Flags::FIN), b"answer");
    assert_eq!(rig.shown().payload, b"answer");
    rig.client(end, first.plus(7), Flags::ACK.with(Flags::FIN), b"");
    rig.server(S.plus(7), end.plus(1), Flags::ACK, b"");
    assert_eq!(rig.trods.connections(), 1);
    rig.tick(5_000_000);
    assert_eq!(rig.trods.connections(), 0);
}

#[test]
fn a_reset_of_the_server_ends_what_was_passed_through() {
    let mut rig = Rig::new(Mode::Kv);
    let first = rig.open();
    rig.client(C, first, Flags::ACK, b"POST / HTTP/1.0\r\n\r\n");
    // A reset at another place is the server's TCP to judge.
    rig.client(C.plus(5), first, Flags::RST, b"");
    assert_eq!((rig.to_server.len(), rig.trods.connections()), (1, 1));
    rig.server(S, C.plus(19), Flags::RST, b"");
    assert!(rig.shown().has(Flags::RST));
    rig.tick(5_000_000);
    assert_eq!(rig.trods.connections(), 0);
}

#[test]
fn a_flood_of_syns_takes_no_room() {
    let mut rig = Rig::new(Mode::Kv);
    let first = rig.open();
    for number in 0..u32::try_from(CONNECTIONS_MAX).expect("65536") {
        let from = Endpoint { address: Ipv4Addr::from(0x0b00_0000 + number), port: 9 };
        rig.give(Side::Client, packet(from, SERVICE, Seq(1), Seq(0), Flags::SYN, b""));
        assert_eq!(rig.to_server.len(), 1);
    }
    assert_eq!(rig.trods.connections(), CONNECTIONS_MAX);
    let from = Endpoint { port: 99, ..CLIENT };
    rig.give(Side::Client, packet(from, SERVICE, C.minus(1), Seq(0), Flags::SYN, b""));
    rig.give(Side::Server, packet(SERVICE, from, S.minus(1), C, Flags::SYN.with(Flags::ACK), b""));
    assert!(is_syn(rig.shown()));
    // The one that was open before still is.
    rig.client(C, first, Flags::ACK, GET);
    assert_eq!(rig.to_server[0].payload, GET);
    rig.tick(OPENING_US_MAX + 1);
    assert_eq!((rig.trods.connections(), rig.trods.openings.len()), (1, 0));
}

#[test]
fn recoveries_that_nobody_confirms_are_few_and_short() {
    let mut rig = Rig::new(Mode::Ts);
    let isn = |end| crate::isn::initial(&[7; 32], end, SERVICE, 5);
    let mark = crate::stamp::UNITS[0] as u32;
    let ask = |port: u16| {
        let end = Endpoint { port, ..CLIENT };
        let mut asked = packet(end, SERVICE, C, isn(end).plus(9000), Flags::ACK, GET);
        asked.options.timestamps = Some(Timestamps { value: 9, echo: 1 << 25 | mark << 20 | 15 << 16 });
        asked
    };
    for port in 0..u16::try_from(RECOVERIES_MAX).expect("4096") {
        rig.give(Side::Client, ask(2000 + port));
        let syn = rig.to_server.pop().expect("a connection to the application");
        rig.server_to(syn.source, S.minus(1), syn.seq.plus(1), Flags::SYN.with(Flags::ACK), b"");
    }
    rig.give(Side::Client, ask(1999));
    assert_eq!((rig.to_server.len(), rig.trods.counters().ignored), (0, 1));
    rig.tick(UNCONFIRMED_US_MAX + 1);
    assert_eq!((rig.trods.connections(), rig.trods.recovering), (0, 0));
    assert!(rig.to_server[0].has(Flags::RST));
}

#[test]
fn a_strangers_packet_takes_no_connection_away() {
    let mut rig = Rig::new(Mode::Kv);
    let first = rig.download(GET, OK);
    rig.store(StoreOutcome::Stored);
    let end = C.plus(GET.len() as u64);
    let far = end.plus(1 << 29);
    // An acknowledgment of what was never sent, with a sequence number that was guessed.
    rig.client(far, first.plus(1 << 28), Flags::ACK, GET);
    assert_eq!((rig.to_server.len(), rig.ops.len(), rig.trods.counters().came_back), (0, 0, 0));
    // A SYN: the client, if it is one, is told where the connection stands.
    rig.client(far, Seq(0), Flags::SYN, b"");
    assert_eq!((rig.to_server.len(), rig.shown().ack), (0, C));
    rig.server(S.plus(OK.len() as u64 + 4), end, Flags::ACK, b"more");
    assert_eq!(rig.shown().payload, b"more");
    // It resets what it does not know, and begins anew.
    rig.client(C, Seq(0), Flags::RST, b"");
    rig.client(far, Seq(0), Flags::SYN, b"");
    assert!(is_syn(&rig.to_server[0]));
}

/// In mode `hybrid`, another server may have answered with a record before the client echoed anything of it.
#[test]
fn a_recovery_in_setup_looks_for_a_record() {
    let first = first_shown(Mode::Hybrid);
    for found in [false, true] {
        let mut rig = Rig::new(Mode::Hybrid);
        rig.stamp = Some(Timestamps { value: 9, echo: 1 << 25 });
        let ill = b"HTTP/1.1 503 No\r\nContent-Length: 9\r\n\r\n";
        let records = if found { vec![record(first, GET, ill).encode()] } else { Vec::new() };
        rig.found(packet(CLIENT, SERVICE, C, first, Flags::ACK, GET), records);
        let syn = rig.to_server.pop().expect("a connection to the application");
        rig.server_to(syn.source, S.minus(1), syn.seq.plus(1), Flags::SYN.with(Flags::ACK), b"");
        let end = rig.to_server[0].payload_end();
        rig.server_to(syn.source, S, end, Flags::ACK, &[OK, b"body"].concat());
        // The response of this server's application is not the one that the record promised.
        assert_eq!(rig.to_client.is_empty(), found);
    }
}

/// A client keeps the newest timestamp that it sees, and this one does not hold what the client's own would.
#[test]
fn a_connection_that_is_not_open_shows_no_timestamp_but_that_of_its_syn() {
    let mut rig = Rig::new(Mode::Ts);
    rig.client(C.minus(1), Seq(0), Flags::SYN, b"");
    rig.server(S.minus(1), C, Flags::SYN.with(Flags::ACK), b"");
    assert!(rig.shown().options.timestamps.is_some());
    rig.server(S, C, Flags::ACK, b"");
    assert_eq!((rig.shown().ack, rig.shown().options.timestamps), (C, None));
}

/// What is passed through has no record, so a connection that is moved by a guess is lost.
#[test]
fn a_connection_that_is_passed_through_moves_only_with_its_next_packet() {
    let mut rig = Rig::new(Mode::Ts);
    let first = rig.open();
    rig.client(C, first, Flags::ACK, b"POST / HTTP/1.0\r\n\r\n");
    let end = C.plus(19);
    rig.server(S, end, Flags::ACK, b"some");
    let index = |rig: &Rig| rig.shown().options.timestamps.expect("stamped").value >> 25;
    let before = index(&rig);
    rig.client(end.plus(500), first.plus(1 << 28), Flags::ACK, b"");
    assert_eq!((rig.to_server.len(), rig.trods.counters().came_back), (0, 0));
    // Nor does the echo of a stranger's reset change the timestamps that the client is shown.
    let mut reset = packet(CLIENT, SERVICE, end.plus(500), Seq(0), Flags::RST, b"");
    reset.options.timestamps = Some(Timestamps { value: 9, echo: (before + 40) << 25 });
    rig.give(Side::Client, reset);
    rig.server(S.plus(4), end, Flags::ACK, b"more");
    assert_eq!(index(&rig), before);
    rig.client(end, first.plus(1 << 28), Flags::ACK, b"");
    assert_eq!(rig.trods.counters().came_back, 1);
}

/// The server's TCP may have bytes of a download that its application left; they are of no other connection.
#[test]
fn what_is_left_of_a_broken_connection_meets_no_other() {
    let mut rig = Rig::new(Mode::Kv);
    rig.download(GET, OK);
    rig.store(StoreOutcome::Stored);
    let end = C.plus(GET.len() as u64);
    let next = S.plus(OK.len() as u64 + 4);
    rig.server(next, end, Flags::ACK.with(Flags::FIN), b"");
    assert_eq!((rig.to_client.len(), rig.to_server[0].seq), (0, end));
    assert!(rig.to_server[0].has(Flags::RST));
    rig.client(Seq(9_000_000), Seq(0), Flags::SYN, b"");
    assert_eq!((rig.to_server.len(), rig.trods.connections()), (0, 1));
    rig.tick(2_000_000);
    assert_eq!(rig.trods.connections(), 0);
    rig.client(Seq(9_000_000), Seq(0), Flags::SYN, b"");
    assert!(is_syn(&rig.to_server[0]));
    rig.server(next, end, Flags::ACK, b"old");
    assert_eq!((rig.to_client.len(), rig.to_server.len()), (0, 1));
    assert_eq!((rig.to_server[0].seq, rig.to_server[0].flags), (end, Flags::RST));
    rig.server(S.minus(1), Seq(9_000_001), Flags::SYN.with(Flags::ACK), b"");
    assert!(is_syn(rig.shown()));
}

/// Of what the server's TCP gets, the last packet of the client may be lost; it believes a reset only where it is.
#[test]
fn a_connection_that_breaks_is_reset_wherever_its_server_is() {
    let mut rig = Rig::new(Mode::Kv);
    let first = rig.open();
    rig.client(C, first, Flags::ACK, KEEP);
    // FIN of an application that has not read the request.
    rig.server(S, C, Flags::ACK.with(Flags::FIN), b"");
    let resets: Vec<Seq> = rig.to_server.iter().map(|packet| packet.seq).collect();
    assert_eq!(resets, [C.plus(KEEP.len() as u64), C]);
    assert!(rig.to_server.iter().all(|packet| packet.has(Flags::RST)));
}

/// A client's TCP believes a reset only at the number that it waits for, which the server's TCP has from the client.
#[test]
fn a_reset_that_is_passed_stands_where_the_client_is() {
    let mut rig = Rig::new(Mode::Kv);
    let first = rig.open();
    rig.client(C, first, Flags::ACK, b"POST / HTTP/1.0\r\n\r\n");
    rig.server(S, C.plus(19), Flags::ACK, &[0; 1000]);
    for (seq, shown) in [(S.plus(300), 300), (S.plus(1000), 1000), (S.plus(5000), 1000), (S.minus(9), 1000)] {
        rig.server(seq, C.plus(19), Flags::RST.with(Flags::ACK), b"");
        assert_eq!((rig.shown().seq, rig.shown().flags.has(Flags::RST)), (first.plus(shown), true));
    }
}

/// A server's TCP that has a connection of which the gateway knows nothing answers the next SYN in its own terms.
#[test]
fn a_connection_that_is_forgotten_ends_at_the_server() {
    let mut rig = Rig::new(Mode::Kv);
    rig.open();
    rig.tick(IDLE_US_MAX + 1);
    assert_eq!((rig.to_server.len(), rig.trods.connections()), (1, 0));
    assert_eq!((rig.to_server[0].seq, rig.to_server[0].source), (C, CLIENT));
    assert!(rig.to_server[0].has(Flags::RST));
    // Nothing answered this one.
    rig.client(C.minus(1), Seq(0), Flags::SYN, b"");
    rig.tick(OPENING_US_MAX + 1);
    assert_eq!((rig.to_server.len(), rig.trods.connections()), (0, 0));
    // The client says that it is done, and has not the server's FIN; or has it, and the server's TCP is done, too.
    for acknowledged in [false, true] {
        let first = rig.open();
        rig.client(C, first, Flags::ACK.with(Flags::FIN), b"");
        rig.server(S, C.plus(1), Flags::ACK.with(Flags::FIN), b"");
        if acknowledged {
            rig.client(C.plus(1), first.plus(1), Flags::ACK, b"");
        }
        rig.client(Seq(9_000_000), Seq(0), Flags::SYN, b"");
        let seqs: Vec<Seq> = rig.to_server.iter().map(|packet| packet.seq).collect();
        if acknowledged {
            assert_eq!(seqs, [Seq(9_000_000)]);
        } else {
            assert_eq!(seqs, [C.plus(1), Seq(9_000_000)]);
            assert!(rig.to_server[0].has(Flags::RST));
        }
        rig.server(Seq(0), Seq(9_000_001), Flags::RST.with(Flags::ACK), b"");
        rig.tick(BROKEN_US + 1);
        assert_eq!(rig.trods.connections(), 0);
    }
}

#[test]
fn a_syn_takes_an_opening_connection_if_the_server_answers_it() {
    for (answered, other) in [(C, Seq(9_000_001)), (Seq(9_000_001), C)] {
        let mut rig = Rig::new(Mode::Kv);
        rig.client(C.minus(1), Seq(0), Flags::SYN, b"");
        rig.client(Seq(9_000_000), Seq(0), Flags::SYN, b"");
        assert!(is_syn(&rig.to_server[0]));
        rig.server(S.minus(1), answered, Flags::SYN.with(Flags::ACK), b"");
        let first = rig.shown().seq.plus(1);
        rig.client(other, first, Flags::ACK, GET);
        assert_eq!(rig.to_server, []);
        rig.client(answered, first, Flags::ACK, GET);
        assert_eq!(rig.to_server[0].payload, GET);
    }
}

#[test]
fn the_head_of_one_response_is_not_joined_to_another() {
    let failed = b"HTTP/1.1 503 No\r\nContent-Length: 1000\r\n\r\n";
    let longer = b"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n";
    let dated = b"HTTP/1.1 200 OK\r\nDate: 3\r\nContent-Length: 1000\r\n\r\n";
    for (head, joined) in [(&failed[..], false), (longer, false), (dated, true)] {
        let mut rig = Rig::new(Mode::Kv);
        let first = rig.download(GET, OK);
        rig.store(StoreOutcome::Exists(record(first, GET, head).encode()));
        assert_eq!(rig.to_client.len(), usize::from(joined), "{}", String::from_utf8_lossy(head));
        assert_eq!(rig.trods.counters().lost, u64::from(!joined));
    }
}

#[test]
fn heads_of_servers_that_differ_by_some_bytes_have_one_length_in_timestamps() {
    let mut marks = Vec::new();
    for server in ["a", "a longer name of the very same server, which says its version, too"] {
        let mut rig = Rig::new(Mode::Ts);
        let head = format!("HTTP/1.1 200 OK\r\nServer: {server}\r\nContent-Length: 1000\r\n\r\n");
        rig.download(GET, head.as_bytes());
        let body = rig.shown().payload.windows(4).position(|window| window == b"body");
        marks.push((body, rig.shown().options.timestamps.map(|stamps| stamps.value & 0x01ff_ffff)));
    }
    assert_eq!(marks[0].0, Some(512));
    assert_eq!(marks[0], marks[1]);
}

#[test]
fn an_echo_of_another_servers_response_moves_the_connection_to_it() {
    let mut rig = Rig::new(Mode::Ts);
    let first = rig.download(GET, OK);
    let end = C.plus(GET.len() as u64);
    let shown = rig.shown().options.timestamps.expect("stamped").value;
    for (echo, moves) in [(shown, false), (shown & !(31 << 20) | 16 << 20, true)] {
        let mut acknowledged = packet(CLIENT, SERVICE, end, first.plus(600), Flags::ACK, b"");
        rig.server(S.plus(OK.len() as u64 + 4), end, Flags::ACK, &[0; 200]);
        acknowledged.options.timestamps = Some(Timestamps { value: 10, echo });
        rig.give(Side::Client, acknowledged);
        assert_eq!(rig.trods.counters().came_back, u64::from(moves));
    }
}

#[test]
fn timestamps_set_up_only_what_they_can_protect() {
    let first = first_shown(Mode::Ts);
    let plain = b"GET /film HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n";
    for (request, set_up) in [(GET, true), (KEEP, false), (&plain[..], false)] {
        let mut rig = Rig::new(Mode::Ts);
        rig.stamp = Some(Timestamps { value: 9, echo: 1 << 25 });
        rig.client(C, first, Flags::ACK, request);
        assert_eq!(rig.to_server.len(), usize::from(set_up), "{}", String::from_utf8_lossy(request));
    }
}

#[test]
fn an_answer_to_what_is_no_whole_request_passes_with_its_end() {
    let requests: [&[u8]; 3] = [b"GET / HTTP/1.0\n\n", b"GET /\r\n", b"GET / HTTP/1.1\r\nHo"];
    for request in requests {
        let mut rig = Rig::new(Mode::Kv);
        let first = rig.open();
        rig.client(C, first, Flags::ACK, request);
        assert_eq!(rig.to_server[0].payload, request);
        let end = C.plus(request.len() as u64);
        rig.server(S, end, Flags::ACK.with(Flags::FIN), b"an answer");
        assert_eq!(rig.shown().payload, b"an answer");
        assert!(rig.shown().has(Flags::FIN));
        assert_eq!(rig.shown().ack, end);
    }
}

/// A server that sends less than was asked for is asked for the whole, of which the client's part is discarded.
#[test]
fn a_part_that_is_not_the_rest_is_not_taken_for_it() {
    let mut rig = Rig::new(Mode::Kv);
    let first = first_shown(Mode::Kv);
    let ack = first.plus(OK.len() as u64 + 100);
    rig.found(packet(CLIENT, SERVICE, C, ack, Flags::ACK, GET), vec![record(first, GET, OK).encode()]);
    let mut answers: [&[u8]; 2] =
        [b"HTTP/1.1 206 P\r\nContent-Range: bytes 99-599/1000\r\nContent-Length: 501\r\n\r\n", OK];
    for (round, answer) in answers.iter_mut().enumerate() {
        let syn = rig.to_server.pop().expect("a connection to the application");
        assert!(is_syn(&syn));
        rig.server_to(syn.source, S.minus(1), syn.seq.plus(1), Flags::SYN.with(Flags::ACK), b"");
        let request = rig.to_server[0].clone();
        assert_eq!(String::from_utf8_lossy(&request.payload).contains("Range"), round == 0);
        let body: Vec<u8> = (0..200_u8).collect();
        rig.server_to(syn.source, S, request.payload_end(), Flags::ACK, &[answer, &body[..]].concat());
    }
    assert_eq!((rig.shown().seq, rig.shown().payload[0]), (ack, 100));
}
