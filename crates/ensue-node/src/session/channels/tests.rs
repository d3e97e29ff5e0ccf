//! Who is handed what, and what cores tell each other.

use super::*;
use ensue_types::CoreId;

const HERE: DatacenterId = DatacenterId(0);

fn core(datacenter: u8, core: u16) -> CoreName {
    CoreName { datacenter: DatacenterId(datacenter), core: CoreId(core) }
}

fn subscribe(channels: &mut Channels, session: u64, kind: ChannelKind, name: &'static str) {
    channels.subscribe(SessionId(session), ProtocolVersion::Resp2, kind, &name.into());
}

fn interest(kind: ChannelKind, name: &'static str, sessions: u32) -> Interest {
    Interest { kind, name: name.into(), sessions }
}

#[test]
fn another_datacenter_is_told_only_of_the_first_subscriber_and_the_last() {
    let mut channels = Channels::default();
    let (near, far) = (core(0, 1), core(1, 0));
    assert!(channels.on_link_up(near).is_empty() && channels.on_link_up(far).is_empty());
    let news = |sessions| vec![interest(ChannelKind::Channel, "news", sessions)];
    subscribe(&mut channels, 1, ChannelKind::Channel, "news");
    assert_eq!(channels.take_changes(HERE), [(near, news(1)), (far, news(1))]);
    subscribe(&mut channels, 2, ChannelKind::Channel, "news");
    subscribe(&mut channels, 2, ChannelKind::Channel, "news");
    assert_eq!(channels.take_changes(HERE), [(near, news(2))]);
    channels.forget(SessionId(1));
    assert_eq!(channels.take_changes(HERE), [(near, news(1))]);
    assert_eq!(channels.on_link_up(core(1, 1)), news(1), "a new link is told everything");
    channels.forget(SessionId(2));
    assert_eq!(channels.take_changes(HERE).len(), 3);
    assert!(channels.take_changes(HERE).is_empty());
    assert_eq!(channels.subscribers.bytes(), 0);
}

#[test]
fn a_core_is_a_target_as_long_as_it_wants_something_and_is_linked() {
    let mut channels = Channels::default();
    let there = core(1, 0);
    let changes = vec![interest(ChannelKind::Channel, "news", 2), interest(ChannelKind::Pattern, "n*", 3)];
    assert!(channels.on_interest(there, true, changes.clone()));
    assert_eq!(channels.targets(ChannelKind::Channel, b"news"), [(there, 5)]);
    assert_eq!(channels.targets(ChannelKind::Channel, b"new"), [(there, 3)]);
    assert_eq!(channels.targets(ChannelKind::Shard, b"news"), [], "shard channels are apart");
    assert!(channels.on_interest(there, false, vec![interest(ChannelKind::Pattern, "n*", 0)]));
    assert_eq!(channels.targets(ChannelKind::Channel, b"news"), [(there, 2)]);
    assert!(channels.on_interest(there, true, vec![interest(ChannelKind::Channel, "other", 1)]));
    assert_eq!(channels.targets(ChannelKind::Channel, b"news"), [], "what was said before no longer counts");
    channels.on_link_down(there);
    assert_eq!(channels.targets(ChannelKind::Channel, b"other"), []);
}

#[test]
fn no_more_is_kept_of_a_core_than_it_may_have() {
    let mut channels = Channels::default();
    let filling = "x".repeat(limits::CHANNEL_BYTES_MAX - 8);
    let long = |number: usize| Bytes::from(format!("{number:08}{filling}"));
    let fits = limits::CHANNELS_BYTES_MAX / bytes_of(&long(0));
    let said = |number| Interest { kind: ChannelKind::Shard, name: long(number), sessions: 1 };
    assert!(channels.on_interest(core(1, 0), true, (0..fits).map(said).collect()));
    assert!(!channels.on_interest(core(1, 0), false, vec![said(fits)]));
    assert!(channels.targets(ChannelKind::Shard, &long(fits)).is_empty());
    let first = Interest { sessions: 0, ..said(0) };
    assert!(channels.on_interest(core(1, 0), false, vec![first, said(fits)]));
    assert_eq!(channels.targets(ChannelKind::Shard, &long(fits)).len(), 1);
    assert!(!channels.has_room(ChannelKind::Channel, &(0..=fits).map(long).collect::<Vec<_>>()));
    assert!(channels.has_room(ChannelKind::Channel, &[long(0)]));
}

#[test]
fn frames_go_to_the_channel_first_and_then_to_each_pattern() {
    let mut channels = Channels::default();
    subscribe(&mut channels, 1, ChannelKind::Pattern, "n*");
    subscribe(&mut channels, 1, ChannelKind::Channel, "news");
    channels.subscribe(SessionId(2), ProtocolVersion::Resp3, ChannelKind::Channel, &"news".into());
    let frames = channels.frames(ChannelKind::Channel, &"news".into(), &"rain".into());
    let texts: Vec<(u64, String)> = frames
        .iter()
        .map(|(session, bytes)| (session.0, String::from_utf8_lossy(bytes).replace("\r\n", "|")))
        .collect();
    assert_eq!(
        texts,
        [
            (1, "*3|$7|message|$4|news|$4|rain|".to_owned()),
            (2, ">3|$7|message|$4|news|$4|rain|".to_owned()),
            (1, "*4|$8|pmessage|$2|n*|$4|news|$4|rain|".to_owned()),
        ]
    );
}

#[test]
fn each_channel_of_a_datacenter_is_counted_by_its_first_core() {
    let mut channels = Channels::default();
    subscribe(&mut channels, 1, ChannelKind::Channel, "news");
    let news = vec![interest(ChannelKind::Channel, "news", 1)];
    assert!(channels.on_interest(core(0, 0), true, news.clone()));
    assert_eq!(channels.counted(core(0, 1), ChannelKind::Channel), 0);
    assert_eq!(channels.sessions_of(HERE, ChannelKind::Channel, b"news"), 2);
    channels.on_link_down(core(0, 0));
    assert!(channels.on_interest(core(1, 0), true, news));
    assert_eq!(channels.counted(core(0, 1), ChannelKind::Channel), 1, "another datacenter counts for itself");
    assert_eq!(channels.sessions_of(HERE, ChannelKind::Channel, b"news"), 1);
    assert_eq!(channels.known(HERE, ChannelKind::Channel, Some(b"x*")).len(), 0);
}
