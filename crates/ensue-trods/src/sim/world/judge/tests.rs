//! Of what the judge excuses, and of what it does not.

use super::*;
use crate::config::Rules;
use crate::packet::{Flags, Packet};
use crate::seq::Seq;
use crate::sim::plan::{Harm, Plan};
use crate::sim::world::SERVICE;

/// The first seed whose world has so many clients and no faults, with this harm in place of its own.
fn plan(mode: Mode, clients: usize, harm: Harm) -> Plan {
    let mut plans = (1..).map(|seed| Plan::of_seed(seed, mode));
    let fits = |plan: &Plan| plan.clients.len() == clients && plan.faults.is_empty();
    Plan { harm, ..plans.find(fits).expect("one of three worlds has so many") }
}

fn world(plan: &Plan) -> World<'_> {
    let mut world = World::new(plan, 1, Rules::ALL);
    // What became of the clients is what a test says.
    world.peers.iter_mut().for_each(|peer| peer.aborted = true);
    world
}

fn broken() -> Option<Trouble> {
    Some(Trouble::Broken("nothing came".to_string()))
}

#[test]
fn a_client_is_excused_only_if_a_stranger_moved_its_own_connection() {
    for (stranger_permille, moved, excused) in
        [(10, Some(1), true), (10, Some(0), false), (0, Some(1), false)]
    {
        let harm = Harm { fail_permille: 10, stranger_permille, ..Harm::default() };
        let plan = plan(Mode::Kv, 2, harm);
        let mut world = world(&plan);
        world.moved.extend(moved.map(|index: usize| world.peers[index].end));
        world.peers[1].failure = broken();
        assert_eq!(world.failure().is_none(), excused, "{stranger_permille} {moved:?}");
    }
}

/// The gateway takes a packet of the client itself for one of another server's connection: nobody but it is to blame.
#[test]
fn what_a_client_itself_sends_excuses_nothing() {
    let harm = Harm { stranger_permille: 10, ..Harm::default() };
    let plan = plan(Mode::Kv, 1, harm);
    let end = World::new(&plan, 1, Rules::ALL).peers[0].end;
    let packet = |seq: u32, ack: u32, flags| {
        let mut packet = Packet::acknowledgment(end, SERVICE, Seq(seq), Seq(ack));
        packet.flags = flags;
        packet.build()
    };
    for is_strange in [false, true] {
        let mut world = world(&plan);
        let host = world.balancer.pick(end).expect("all servers live");
        let answers =
            world.hosts[host].on_packet(plan.start_us, packet(1000, 0, Flags::SYN), &plan.objects).packets;
        let first = Packet::parse(&answers[0]).expect("SYN and ACK").seq.plus(1);
        world.reach_service(packet(1001, first.0, Flags::ACK), is_strange);
        assert_eq!(world.hosts[host].gateway.counters().came_back, 0);
        assert_eq!(world.moved.len(), 0);
        world.reach_service(packet(1001, first.plus(1 << 20).0, Flags::ACK), is_strange);
        assert_eq!(world.hosts[host].gateway.counters().came_back, 1);
        assert_eq!(world.moved.contains(&end), is_strange);
    }
}

#[test]
fn a_connection_that_leaks_does_not_hide_behind_another_one() {
    let plan = plan(Mode::Kv, 2, Harm::default());
    let mut world = world(&plan);
    let (dead, living) = (world.peers[0].end, world.peers[1].end);
    world.peers[1].aborted = false;
    let syn = |end| {
        let mut syn = Packet::acknowledgment(end, SERVICE, Seq(1000), Seq(0));
        syn.flags = Flags::SYN;
        syn.build()
    };
    let host = &mut world.hosts[0];
    host.on_packet(plan.start_us, syn(dead), &plan.objects);
    assert!(host.holds(dead) && host.gateway.connections() == 1);
    // A gateway that has forgotten the dead client's connection, and knows one that is the living client's.
    std::mem::swap(&mut host.gateway, &mut World::new(&plan, 1, Rules::ALL).hosts[0].gateway);
    host.on_packet(plan.start_us, syn(living), &plan.objects);
    assert!(host.holds(dead) && host.gateway.connections() == 1);
    assert_eq!(world.leftover(), Some("1 connections are still known".to_string()));
}

#[test]
fn only_two_answers_at_one_offset_are_mixed() {
    let answers = [b"first answer, and more".to_vec(), b"other reply is longer than that".to_vec()];
    for (received, joined) in [
        // From one into the other and back, at any place; the second one may not have arrived whole.
        (&b"first reply is longer than that"[..], true),
        (b"first reply is lo", true),
        (b"other answer, and more", true),
        (b"first answer, and morethan that", true),
        // The bytes of the second answer are shifted by one, or of nobody, or return to the first answer.
        (b"first  reply is longer than that", false),
        (b"first r?ply", false),
        (b"first reply isand more", false),
        (b"first answer, and morethan that, and more", false),
        // What is one answer is not wrong for that reason.
        (b"first answer", false),
    ] {
        assert_eq!(is_joined(received, &answers), joined, "{}", String::from_utf8_lossy(received));
    }
}

#[test]
fn an_answer_is_known_as_it_is_and_as_timestamps_hold_it() {
    let plan = plan(Mode::Ts, 1, Harm { ill_permille: 10, ..Harm::default() });
    let object = plan.objects.iter().find(|object| object.bytes > 0).expect("one of eight");
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", object.bytes);
    let answer = [head.as_bytes(), &object.body()].concat();
    assert!(is_of(&answer, object) && !is_of(head.as_bytes(), object));
    assert!(is_of(b"HTTP/1.1 503 No\r\n\r\n", object) && !is_of(b"HTTP/1.1 404 No\r\n\r\n", object));
    let lengths: Vec<usize> = as_shown(&answer).iter().map(Vec::len).collect();
    assert_eq!(lengths, [answer.len(), 8 * UNIT_BYTES + answer.len() - head.len()]);
}
