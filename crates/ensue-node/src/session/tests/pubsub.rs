//! Channels: who is told what, and when a message of another datacenter is handed out.

use super::*;
use ensue_types::{Breaking, Dependency, Extent, KeyspaceId, Rule};
use ensue_wire::{ChannelKind, CoreName, Interest};

const FAR: CoreName = CoreName { datacenter: DatacenterId(1), core: CoreId(0) };

fn world() -> World {
    let mut world = World::new();
    world.sessions.on_peer_up(CoreName { datacenter: DatacenterId(0), core: CoreId(1) });
    world.sessions.on_peer_up(FAR);
    world
}

/// The sessions of a core of another datacenter say this.
fn far(world: &mut World, message: Message) {
    let from = Address::Core { datacenter: FAR.datacenter, core: FAR.core };
    let to = Address::Core { datacenter: DatacenterId(0), core: CoreId(0) };
    world.sessions.on_message(world.now, Envelope { from, to, time: LogicalTime::ZERO, message });
    world.drain();
}

fn published(publisher: u64, payload: &'static str, operations: &[(u8, u16, u64)]) -> Message {
    let context = Context { time: LogicalTime::from_ms(WALL_MS), causes: causes(operations) };
    let past = if operations.is_empty() { Vec::new() } else { vec![(KeyspaceId(0), context)] };
    let (publisher, kind) = (SessionId(publisher), ChannelKind::Channel);
    Message::Publish { publisher, kind, channel: "news".into(), payload: payload.into(), past }
}

fn met(world: &mut World, envelope: &Envelope, unrecoverable: Vec<Dependency>) {
    let Message::CheckDependencies { check, .. } = envelope.message else { panic!("{:?}", envelope.message) };
    world.answer(envelope, 1, Message::DependenciesMet { check, unrecoverable });
}

fn payloads(world: &mut World) -> Vec<String> {
    let pushed = std::mem::take(&mut world.pushed);
    pushed.iter().map(|(_, text)| text.split('|').nth(6).expect("a payload").to_owned()).collect()
}

fn subscribe(world: &mut World) {
    world.send(&["SUBSCRIBE news"]);
    assert_eq!(world.received(), "*3|$9|subscribe|$4|news|:1|");
    world.sent.clear();
}

fn dropped(world: &World) -> (u64, u64, u64) {
    let messages = world.sessions.core.counters.messages;
    (messages.dropped_late, messages.dropped_full, messages.dropped_lost)
}

#[test]
fn a_subscribed_connection_of_resp2_only_subscribes() {
    let mut world = world();
    world.send(&["SUBSCRIBE a b", "GET k", "PING", "PING hi", "UNSUBSCRIBE", "PING", "UNSUBSCRIBE"]);
    assert_eq!(
        world.received(),
        "*3|$9|subscribe|$1|a|:1|*3|$9|subscribe|$1|b|:2|\
         -ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this \
         context|*2|$4|pong|$0||*2|$4|pong|$2|hi|*3|$11|unsubscribe|$1|a|:1|*3|$11|unsubscribe|$1|b|:0|+PONG|\
         *3|$11|unsubscribe|$-1|:0|"
    );
    assert_eq!(world.answered, 7, "each command has one answer, of however many frames");
    world.send(&["PSUBSCRIBE a*", "RESET", "PING"]);
    assert_eq!(world.received(), "*3|$10|psubscribe|$2|a*|:1|+RESET|+PONG|");
    assert_eq!(world.sessions.core.channels.clients(), 0);
}

#[test]
fn a_subscribed_connection_of_resp3_goes_on() {
    let mut world = world();
    world.send(&["HELLO 3"]);
    world.received();
    world.send(&["SUBSCRIBE a", "PING", "PUBLISH a x"]);
    assert_eq!(world.received(), ">3|$9|subscribe|$1|a|:1|+PONG|:1|>3|$7|message|$1|a|$1|x|");
    world.send(&["SSUBSCRIBE a", "SPUBLISH a y", "SUNSUBSCRIBE"]);
    let received = world.received();
    assert!(received.ends_with(":1|>3|$8|smessage|$1|a|$1|y|>3|$12|sunsubscribe|$1|a|:0|"), "{received}");
}

#[test]
fn the_other_cores_are_told_and_what_they_say_is_counted() {
    let mut world = world();
    subscribe(&mut world);
    let near = Address::Core { datacenter: DatacenterId(0), core: CoreId(1) };
    let interest = |kind, name: &'static str| vec![Interest { kind, name: name.into(), sessions: 3 }];
    let message = Message::Interest { all: true, changes: interest(ChannelKind::Pattern, "n*") };
    let to = Address::Core { datacenter: DatacenterId(0), core: CoreId(0) };
    world.sessions.on_message(world.now, Envelope { from: near, to, time: LogicalTime::ZERO, message });
    far(&mut world, Message::Interest { all: true, changes: interest(ChannelKind::Channel, "news") });
    world.send(&["UNSUBSCRIBE", "PUBLISH news rain", "PUBSUB NUMPAT", "PUBSUB CHANNELS"]);
    assert!(world.received().ends_with(":3|:1|*0|"), "who is elsewhere is not counted");
    let to: Vec<Address> = world.sent.iter().map(|envelope| envelope.to).collect();
    let there = Address::Core { datacenter: FAR.datacenter, core: FAR.core };
    assert_eq!(to, [near, there, near, there], "that nobody subscribes here any more, then the message");
    world.sessions.on_peer_down(world.now, FAR);
    world.sent.clear();
    world.send(&["PUBLISH news snow"]);
    assert_eq!(world.sent.len(), 1);
}

#[test]
fn a_message_carries_the_past_of_every_keyspace_to_other_datacenters() {
    let mut world = world();
    far(
        &mut world,
        Message::Interest {
            all: true,
            changes: vec![Interest { kind: ChannelKind::Channel, name: "news".into(), sessions: 1 }],
        },
    );
    world.send(&[&format!("GET {}", key(0, 0))]);
    let envelope = world.next();
    let context = Context { time: LogicalTime(77), causes: causes(&[(0, 0, 4)]) };
    let done = Message::Executed {
        request: request(&envelope),
        context: context.clone(),
        replies: vec![Reply::Nil],
    };
    world.answer(&envelope, 77, done);
    world.send(&["SELECT 1", "PUBLISH news rain"]);
    assert!(world.received().ends_with("+OK|:0|"));
    let Message::Publish { past, .. } = world.next().message else { panic!("a message") };
    assert_eq!(past, [(KeyspaceId(0), context)]);
}

#[test]
fn messages_of_a_publisher_wait_for_its_past_and_keep_their_order() {
    let mut world = world();
    subscribe(&mut world);
    far(&mut world, published(1, "first", &[(1, 2, 5), (1, 3, 1)]));
    far(&mut world, published(1, "same", &[(1, 2, 5), (1, 3, 1)]));
    far(&mut world, published(1, "none", &[]));
    far(&mut world, published(2, "other", &[]));
    assert_eq!(payloads(&mut world), ["other"]);
    let (two, three) = (world.next(), world.next());
    assert!(world.sent.is_empty(), "the partitions are asked about the first one");
    met(&mut world, &three, Vec::new());
    assert_eq!(payloads(&mut world), [""; 0]);
    met(&mut world, &two, Vec::new());
    assert_eq!(payloads(&mut world), ["first", "same", "none"]);
    assert!(world.sessions.core.checks.is_empty() && world.sessions.next_timer().is_none());
    assert!(world.sessions.deliveries.metrics().is_empty());
}

#[test]
fn without_the_rule_a_message_comes_before_what_its_publisher_had_seen() {
    let _breaking = Breaking::only(Some(Rule::MessagesWaitForTheirPast));
    let mut world = world();
    subscribe(&mut world);
    far(&mut world, published(1, "early", &[(1, 2, 5)]));
    assert_eq!(payloads(&mut world), ["early"]);
}

#[test]
fn a_message_that_waits_for_too_long_is_dropped_and_the_next_one_asked_about() {
    let mut world = world();
    subscribe(&mut world);
    far(&mut world, published(1, "first", &[(1, 2, 5)]));
    world.pass_ms(5_000);
    far(&mut world, published(1, "second", &[(1, 2, 5), (1, 3, 1)]));
    world.sent.clear();
    world.pass_ms(200);
    assert_eq!(world.sent.len(), 1, "the question may have been lost");
    world.sent.clear();
    world.pass_ms(4_800);
    assert_eq!(dropped(&world), (1, 0, 0));
    let (withdrawn, two, three) = (world.next(), world.next(), world.next());
    assert!(
        matches!(&withdrawn.message, Message::CheckDependencies { dependencies, .. } if dependencies.is_empty())
    );
    met(&mut world, &two, Vec::new());
    met(&mut world, &three, Vec::new());
    assert_eq!(payloads(&mut world), ["second"]);
}

#[test]
fn a_message_whose_past_is_lost_or_impossible_is_dropped() {
    let mut world = world();
    subscribe(&mut world);
    far(&mut world, published(1, "lost", &[(1, 2, 5)]));
    far(&mut world, published(1, "next", &[(1, 2, 6)]));
    let asked = world.next();
    let Message::CheckDependencies { dependencies, .. } = &asked.message else { panic!("a question") };
    let lost = vec![Dependency { operation: dependencies[0].operation, extent: Extent::Exact }];
    met(&mut world, &asked, lost);
    assert_eq!(dropped(&world), (0, 0, 1));
    let asked = world.next();
    met(&mut world, &asked, Vec::new());
    assert_eq!(payloads(&mut world), ["next"]);
    far(&mut world, published(1, "nowhere", &[(1, 9, 5)]));
    assert_eq!((dropped(&world), payloads(&mut world).len()), ((0, 0, 2), 0));
}

#[test]
fn messages_that_wait_take_no_more_than_their_share() {
    let mut config = config();
    config.tuning.messages_waiting_bytes = 800;
    let mut world = World::with(config);
    subscribe(&mut world);
    far(&mut world, published(1, "first", &[(1, 2, 5)]));
    far(&mut world, published(1, "second", &[(1, 2, 5)]));
    far(&mut world, published(2, "third", &[(1, 2, 5)]));
    assert_eq!(dropped(&world), (0, 1, 0));
    let asked = world.next();
    met(&mut world, &asked, Vec::new());
    assert_eq!(payloads(&mut world), ["first", "second"]);
    far(&mut world, published(2, "fourth", &[(1, 2, 5)]));
    assert_eq!(dropped(&world), (0, 1, 0), "there is room again");
}

#[test]
fn what_is_published_in_a_multi_follows_its_writes() {
    let mut world = world();
    let key = key(0, 0);
    world.send(&["MULTI", "PUBLISH news rain", &format!("SET {key} 1"), "SUBSCRIBE a", "DISCARD"]);
    let received = world.received();
    assert!(received.contains("-ERR SUBSCRIBE inside MULTI is refused"), "{received}");
    world.send(&["MULTI", "PUBLISH news rain", &format!("SET {key} 1"), "EXEC"]);
    assert_eq!(world.received(), "+OK|+QUEUED|+QUEUED|");
    assert_eq!(world.sessions.core.counters.messages.published, 0);
    let envelope = world.next();
    let (request, context) = (request(&envelope), Context::default());
    world.answer(&envelope, 1, Message::Transacted { request, context, replies: vec![(0, Reply::OK)] });
    assert_eq!(world.received(), "*2|:0|+OK|");
    assert_eq!(world.sessions.core.counters.messages.published, 1);
}

#[test]
fn a_client_that_leaves_subscribes_to_nothing() {
    let mut world = world();
    subscribe(&mut world);
    world.leave();
    let told = world.sent.iter().filter(|envelope| matches!(envelope.message, Message::Interest { .. }));
    assert_eq!(told.count(), 2);
    far(&mut world, published(1, "late", &[]));
    assert!(world.pushed.is_empty());
}

#[test]
fn a_client_that_is_sent_away_hears_nothing_more() {
    let mut world = world();
    subscribe(&mut world);
    world.sessions.with(world.now, CLIENT, |turn| turn.close());
    world.drain();
    let told = world.sent.iter().filter(|envelope| matches!(envelope.message, Message::Interest { .. }));
    assert_eq!(told.count(), 2, "its connection may stay until it has read all");
    far(&mut world, published(1, "late", &[]));
    assert!(world.pushed.is_empty());
}

/// What a session has not seen by then it may publish without a past: after `RESET`, for one.
#[test]
fn what_has_no_past_comes_behind_what_waits_of_the_same_publisher() {
    let mut world = World::with(NodeConfig { protocols: vec!["cure".to_owned(); 3], ..config() });
    world.send(&["HELLO 3", "SUBSCRIBE news"]);
    world.received();
    world.send(&[&format!("GET {}", key(0, 0))]);
    let read = world.next();
    let mut seen = ensue_types::TimeVector::default();
    seen.raise(DatacenterId(1), LogicalTime::from_ms(WALL_MS));
    let causes = ensue_types::Vector { times: seen, ..Default::default() }.into();
    let context = Context { time: LogicalTime::from_ms(WALL_MS), causes };
    let done = Message::Executed { request: request(&read), context, replies: vec![Reply::Nil] };
    world.answer(&read, 1, done);
    world.received();
    world.send(&["PUBLISH news first", "RESET", "HELLO 3", "SUBSCRIBE news", "PUBLISH news second"]);
    assert!(payloads(&mut world).is_empty() && !world.received().contains("second"));
}
