//! Client-side caching at the session: what is noted, who is told what, and what partitions are asked for.

use super::*;
use ensue_types::KeyspaceId;

fn changed(world: &mut World, key: Option<&str>, writer: Option<SessionId>) {
    let key = key.map(|key| Bytes::copy_from_slice(key.as_bytes()));
    let message =
        Message::Changed { keyspace: KeyspaceId(0), key, event: Bytes::from_static(b"set"), writer };
    let from = Address::Partition { datacenter: DatacenterId(0), partition: PartitionId(0) };
    let to = Address::Core { datacenter: DatacenterId(0), core: CoreId(0) };
    world.sessions.on_message(world.now, Envelope { from, to, time: LogicalTime::ZERO, message });
    world.sessions.on_quiet();
    world.drain();
}

fn told(world: &mut World) -> String {
    std::mem::take(&mut world.pushed).into_iter().map(|(_, text)| text).collect()
}

/// Whether the partitions of the datacenter were told to report changes, and nothing else was sent.
fn reports(world: &mut World) -> Vec<bool> {
    let wanted = |envelope: &Envelope| match envelope.message {
        Message::ReportChanges { wanted } => wanted,
        ref other => panic!("{other:?}"),
    };
    world.sent.drain(..).map(|envelope| wanted(&envelope)).collect()
}

fn tracking(options: &str) -> World {
    let mut world = World::new();
    world.ask("HELLO 3");
    world.send(&[&format!("CLIENT TRACKING ON{options}")]);
    assert_eq!(world.received(), "+OK|");
    assert_eq!(reports(&mut world), [true; 4]);
    world
}

/// Reads a key of partition 0, which is answered.
fn read(world: &mut World, key: &str) {
    world.send(&[&format!("GET {key}")]);
    world.executed(vec![bulk("value")]);
    world.received();
}

#[test]
fn partitions_report_as_long_as_somebody_wants_to_know() {
    let mut world = tracking("");
    world.sessions.on_link_up(CoreId(1));
    world.drain();
    assert_eq!(reports(&mut world), [true; 2], "those of the core that is linked again");
    world.send(&["CLIENT TRACKING OFF"]);
    assert_eq!(reports(&mut world), [false; 4]);
    world.send(&["CLIENT TRACKING ON"]);
    world.sent.clear();
    world.leave();
    assert_eq!(reports(&mut world), [false; 4]);
    world.sessions.core.set_parameters(&[("notify-keyspace-events", "AK".to_owned())]);
    world.drain();
    assert_eq!(reports(&mut world), [true; 4]);
}

#[test]
fn what_changes_before_the_answer_is_told_behind_it_again() {
    let mut world = tracking("");
    let key = key(0, 0);
    world.send(&[&format!("GET {key}")]);
    changed(&mut world, Some(&key), None);
    let news = format!(">2|$10|invalidate|*1|$2|{key}|");
    assert_eq!(told(&mut world), news);
    world.executed(vec![bulk("old")]);
    assert_eq!(world.received(), format!("$3|old|{news}"));
    changed(&mut world, Some(&key), None);
    assert_eq!(told(&mut world), "", "it does not count as read");
}

/// As by `FLUSHALL`, a lost link, or another owner of some partition: the answer is read before or after it.
#[test]
fn a_change_of_everything_before_the_answer_is_told_behind_it_again() {
    let mut world = tracking("");
    let key = key(0, 0);
    world.send(&[&format!("GET {key}")]);
    changed(&mut world, None, None);
    assert_eq!(told(&mut world), ">2|$10|invalidate|_|");
    world.executed(vec![bulk("old")]);
    assert_eq!(world.received(), format!("$3|old|>2|$10|invalidate|*1|$2|{key}|"));
}

#[test]
fn a_lost_link_counts_as_a_change_of_everything() {
    let mut world = tracking("");
    read(&mut world, &key(0, 0));
    world.sessions.on_link_down(world.now, CoreId(1));
    world.drain();
    assert_eq!(told(&mut world), ">2|$10|invalidate|_|");
    changed(&mut world, None, None);
    assert_eq!(told(&mut world), ">2|$10|invalidate|_|");
}

#[test]
fn options() {
    let (one, other) = (key(0, 0), key(0, 1));
    let news = |key: &str| format!(">2|$10|invalidate|*1|$2|{key}|");
    let mut world = tracking(&format!(" BCAST PREFIX {one}"));
    changed(&mut world, Some(&one), None);
    changed(&mut world, Some(&other), None);
    assert_eq!(told(&mut world), news(&one));

    let mut world = tracking(" OPTIN");
    read(&mut world, &one);
    assert_eq!(world.ask("CLIENT CACHING YES"), "+OK|");
    read(&mut world, &other);
    changed(&mut world, Some(&one), None);
    changed(&mut world, Some(&other), None);
    assert_eq!(told(&mut world), news(&other));

    let mut world = tracking(" OPTOUT");
    assert_eq!(world.ask("CLIENT CACHING NO"), "+OK|");
    read(&mut world, &one);
    read(&mut world, &other);
    changed(&mut world, Some(&one), None);
    changed(&mut world, Some(&other), None);
    assert_eq!(told(&mut world), news(&other));

    let mut world = tracking(" NOLOOP");
    read(&mut world, &one);
    changed(&mut world, Some(&one), Some(CLIENT));
    assert_eq!(told(&mut world), "");
}

#[test]
fn keys_that_change_together_are_told_by_prefix() {
    let mut world = tracking(" BCAST PREFIX foo PREFIX bar");
    for key in ["foo1", "bar1", "foo2", "other"] {
        let (key, event) = (Some(Bytes::from(key)), Bytes::from_static(b"set"));
        let message = Message::Changed { keyspace: KeyspaceId(0), key, event, writer: None };
        let from = Address::Partition { datacenter: DatacenterId(0), partition: PartitionId(0) };
        let to = Address::Core { datacenter: DatacenterId(0), core: CoreId(0) };
        world.sessions.on_message(world.now, Envelope { from, to, time: LogicalTime::ZERO, message });
    }
    world.sessions.on_quiet();
    world.drain();
    assert_eq!(
        told(&mut world),
        ">2|$10|invalidate|*1|$4|bar1|>2|$10|invalidate|*2|$4|foo1|$4|foo2|",
        "a message for each prefix"
    );
}

#[test]
fn beyond_the_bound_keys_are_given_up() {
    let mut world = tracking("");
    world.sessions.core.set_parameters(&[("tracking-table-max-keys", "1".to_owned())]);
    read(&mut world, &key(0, 0));
    read(&mut world, &key(0, 1));
    assert!(told(&mut world).starts_with(">2|$10|invalidate|*1|$2|k"), "one of both");
    world.sessions.core.set_parameters(&[("tracking-table-max-keys", "0".to_owned())]);
    read(&mut world, &key(0, 2));
    assert_eq!(told(&mut world), "", "0 is no bound");
    world.sessions.core.set_parameters(&[("tracking-table-max-keys", "1".to_owned())]);
    world.drain();
    assert!(told(&mut world).starts_with(">2|$10|invalidate|*1|$"), "at once");
}

#[test]
fn keys_are_given_up_in_turn() {
    let mut world = tracking("");
    world.sessions.core.set_parameters(&[("tracking-table-max-keys", "2".to_owned())]);
    let mut names: Vec<String> = (0..3).map(|number| key(0, number)).collect();
    names.sort();
    let mut let_go = std::collections::BTreeSet::new();
    for number in 0..9 {
        read(&mut world, &names[number % 3]);
        let_go.insert(told(&mut world));
    }
    let_go.remove("");
    assert_eq!(let_go.len(), 3, "not always the lowest one: {let_go:?}");
}

#[test]
fn of_a_client_that_has_stopped_nothing_is_told() {
    let mut world = tracking("");
    let one = key(0, 0);
    read(&mut world, &one);
    world.send(&["CLIENT TRACKING OFF"]);
    world.sent.clear();
    changed(&mut world, Some(&one), None);
    assert_eq!(told(&mut world), "");
    world.received();
    world.send(&["CLIENT TRACKING ON"]);
    world.sent.clear();
    let mut metrics = world.sessions.core.tracking.metrics().into_iter();
    assert!(metrics.all(|(name, count)| name == "tracking_clients" || count == 0), "nobody was left");
}

#[test]
fn a_client_of_resp2_has_another_one_told() {
    const OTHER: SessionId = SessionId(8);
    let mut world = World::new();
    world.sessions.on_connected(world.now, OTHER, "10.0.0.1:5001".into(), "10.0.0.2:6379".into());
    world.send(&["CLIENT TRACKING ON REDIRECT 8"]);
    assert_eq!(world.received(), "+OK|");
    world.sent.clear();
    let key = key(0, 0);
    read(&mut world, &key);
    changed(&mut world, Some(&key), None);
    assert_eq!(told(&mut world), "", "it has subscribed to nothing, and would take it for an answer");
    let (channel, version) =
        (Bytes::from_static(b"__redis__:invalidate"), ensue_resp::ProtocolVersion::Resp2);
    world.sessions.core.channels.subscribe(OTHER, version, ensue_wire::ChannelKind::Channel, &channel);
    read(&mut world, &key);
    changed(&mut world, Some(&key), None);
    let text = format!("*3|$7|message|$20|__redis__:invalidate|*1|$2|{key}|");
    assert_eq!(std::mem::take(&mut world.pushed), [(OTHER, text)]);
    world.sessions.on_gone(world.now, OTHER);
    world.drain();
    assert!(world.ask("CLIENT TRACKINGINFO").contains("broken_redirect"));
}

#[test]
fn who_stops_or_redirects_elsewhere_is_told_nothing_of_the_client_before() {
    const OTHER: SessionId = SessionId(8);
    const THIRD: SessionId = SessionId(9);
    let mut world = tracking("");
    for id in [OTHER, THIRD] {
        world.sessions.on_connected(world.now, id, "10.0.0.1:5001".into(), "10.0.0.2:6379".into());
    }
    for options in ["ON REDIRECT 8", "OFF", "ON REDIRECT 8", "OFF", "ON REDIRECT 9"] {
        world.send(&[&format!("CLIENT TRACKING {options}")]);
    }
    assert_eq!(world.received(), "+OK|".repeat(5));
    world.sessions.on_gone(world.now, OTHER);
    world.drain();
    assert_eq!(std::mem::take(&mut world.pushed), []);
    world.sessions.on_gone(world.now, THIRD);
    world.drain();
    let broken = ">2|$21|tracking-redir-broken|:9|".to_owned();
    assert_eq!(std::mem::take(&mut world.pushed), [(CLIENT, broken)]);
    world.send(&["CLIENT TRACKING OFF"]);
    assert!(world.sessions.core.tracking.redirects_nothing(), "what is known of it goes with it");
}

#[test]
fn who_is_told_for_another_one_is_told_as_its_protocol_has_it() {
    const OTHER: SessionId = SessionId(8);
    let mut world = tracking("");
    world.sessions.on_connected(world.now, OTHER, "10.0.0.1:5001".into(), "10.0.0.2:6379".into());
    world.sessions.core.tracking.set_version(OTHER, ensue_resp::ProtocolVersion::Resp3);
    world.send(&["CLIENT TRACKING ON REDIRECT 8"]);
    world.received();
    world.sent.clear();
    let key = key(0, 0);
    read(&mut world, &key);
    changed(&mut world, Some(&key), None);
    assert_eq!(std::mem::take(&mut world.pushed), [(OTHER, format!(">2|$10|invalidate|*1|$2|{key}|"))]);
}

#[test]
fn of_a_script_the_keys_are_noted_that_it_has_read() {
    let mut world = tracking("");
    let (one, other) = (key(0, 0), key(0, 1));
    world.sessions.core.scripts.insert(&Bytes::from("return"));
    world.send(&[&format!("EVAL return 2 {one} {other}")]);
    let request = request(&world.sent[0]);
    let commands = [format!("GET {one}"), format!("SET {other} 1")]
        .map(|line| line.split(' ').map(|word| Bytes::from(word.to_owned())).collect())
        .to_vec();
    let mut called = |commands, all| {
        let message = Message::Called { request, keyspace: KeyspaceId(0), commands, all, denied: Vec::new() };
        let from = Address::Partition { datacenter: DatacenterId(0), partition: PartitionId(0) };
        let to = Address::Core { datacenter: DatacenterId(0), core: CoreId(0) };
        world.sessions.on_message(world.now, Envelope { from, to, time: LogicalTime::ZERO, message });
        world.drain();
        told(&mut world)
    };
    assert_eq!(called(commands, true), "");
    assert_eq!(called(Vec::new(), false), ">2|$10|invalidate|_|", "it has called more than can be told");
    changed(&mut world, Some(&other), None);
    assert_eq!(told(&mut world), "");
    changed(&mut world, Some(&one), None);
    assert_eq!(told(&mut world), format!(">2|$10|invalidate|*1|$2|{one}|"));
}

#[test]
fn refusals() {
    let mut world = World::new();
    let mut check = |command: &str, expected: &str| {
        let answer = world.ask(command);
        assert!(answer.starts_with(expected), "{command}: {answer}");
    };
    check("CLIENT TRACKING ON PREFIX a", "-ERR PREFIX option requires BCAST mode to be enabled|");
    check("CLIENT TRACKING ON OPTIN OPTOUT", "-ERR You can't use both OPTIN mode and OPTOUT mode|");
    check("CLIENT TRACKING ON BCAST OPTIN", "-ERR OPTIN and OPTOUT are not compatible with BCAST|");
    check("CLIENT TRACKING ON REDIRECT 99", "-ERR The client ID you want redirect to does not exist|");
    check(
        "CLIENT TRACKING ON BCAST PREFIX a PREFIX ab",
        "-ERR Prefix 'a' overlaps with another provided prefix 'ab'.",
    );
    check(
        "CLIENT TRACKING ON BCAST PREFIX z PREFIX ab PREFIX m PREFIX a",
        "-ERR Prefix 'a' overlaps with another provided prefix 'ab'.",
    );
    let many: String = (1_000..2_001).map(|number| format!(" PREFIX p{number}")).collect();
    check(&format!("CLIENT TRACKING ON BCAST{many}"), "-ERR a client is told of at most 1000 prefixes|");
    check("CLIENT TRACKING MAYBE", "-ERR syntax error|");
    check("CLIENT CACHING YES", "-ERR CLIENT CACHING can be called only when");
    check("CLIENT GETREDIR", ":-1|");
    check("CLIENT TRACKINGINFO", "*6|$5|flags|*1|$3|off|$8|redirect|:-1|$8|prefixes|*0|");
}

#[test]
fn of_its_own_change_a_client_is_not_told_if_it_has_read_it_since() {
    let key = key(0, 0);
    let news = format!(">2|$10|invalidate|*1|$2|{key}|");
    let transact = |world: &mut World, commands: [&str; 2]| {
        let lines = commands.map(|command| format!("{command} {key}"));
        world.send(&["MULTI", &lines[0], &lines[1], "EXEC"]);
        let envelope = world.next();
        let replies = vec![(0, bulk("1")), (1, bulk("1"))];
        let done = Message::Transacted { request: request(&envelope), context: Context::default(), replies };
        world.answer(&envelope, 1, done);
        world.received();
    };
    let mut world = tracking("");
    transact(&mut world, ["INCR", "GET"]);
    changed(&mut world, Some(&key), Some(CLIENT));
    assert_eq!(told(&mut world), "", "what it has read is its own change");
    changed(&mut world, Some(&key), None);
    assert_eq!(told(&mut world), news, "it is told of those of others");
    transact(&mut world, ["GET", "INCR"]);
    changed(&mut world, Some(&key), Some(CLIENT));
    assert_eq!(told(&mut world), news, "it has changed what it had read");
    transact(&mut world, ["INCR", "GET"]);
    world.send(&[&format!("INCR {key}")]);
    world.executed(vec![Reply::Integer(2)]);
    world.received();
    changed(&mut world, Some(&key), Some(CLIENT));
    assert_eq!(told(&mut world), news, "a later command may have changed it");
}

#[test]
fn who_is_told_of_all_keys_has_the_empty_prefix() {
    let mut world = tracking(" BCAST");
    assert!(world.ask("CLIENT TRACKINGINFO").ends_with("|$8|prefixes|*1|$0||"));
    let mut world = tracking("");
    assert!(world.ask("CLIENT TRACKINGINFO").ends_with("|$8|prefixes|*0|"));
}
