//! A core that is known to be away: what needs it is refused at once, and nothing of it is sent.

use super::*;

/// A world in which core 1, with the partitions 2 and 3, went away.
fn without_core_1(protocol: &str) -> World {
    let mut config = config();
    config.protocols[0] = protocol.into();
    let mut world = World::with(config);
    world.sessions.on_link_down(world.now, CoreId(1));
    world
}

const AWAY: &str =
    "is on a node that is down or cannot be reached: nothing was executed, try again when it is back|";

fn refused(partition: u16) -> String {
    format!("-UNAVAILABLE partition p{partition} of dc1 {AWAY}")
}

#[test]
fn commands_for_its_partitions_are_refused_at_once_and_others_are_not() {
    for protocol in ["eiger", "cops-gt", "pocc", "orbe-clock", "eventual"] {
        let mut world = without_core_1(protocol);
        assert_eq!(world.ask(&format!("GET {}", key(2, 0))), refused(2), "{protocol}");
        assert_eq!(world.ask(&format!("SET {} 1", key(3, 0))), refused(3), "{protocol}");
        assert_eq!(world.ask(&format!("MGET {} {}", key(0, 0), key(2, 0))), refused(2), "{protocol}");
        assert_eq!(world.ask("DBSIZE"), refused(2), "{protocol}");
        assert_eq!(world.ask("FLUSHDB"), refused(2), "{protocol}");
        assert_eq!(world.ask(&format!("RENAME {} {}", key(3, 0), key(0, 0))), refused(3), "{protocol}");
        world.send(&[&format!("GET {}", key(1, 0))]);
        world.executed(vec![bulk("v")]);
        assert_eq!(world.received(), "$1|v|", "{protocol}");
        assert_eq!(world.sessions.next_timer().map(|_| ()), Some(()), "the one exchange had a timer");
    }
}

#[test]
fn a_transaction_with_a_part_there_is_refused_before_any_part_is_sent() {
    let mut world = without_core_1("eiger");
    world.send(&["MULTI", &format!("SET {} 1", key(0, 0)), &format!("SET {} 1", key(2, 0)), "EXEC"]);
    assert!(world.sent.is_empty());
    assert_eq!(world.received(), format!("+OK|+QUEUED|+QUEUED|{}", refused(2)));
    assert_eq!(world.ask(&format!("MSET {} 1 {} 2", key(0, 0), key(3, 0))), refused(3));
}

#[test]
fn a_past_of_its_partitions_is_neither_merged_nor_waited_for() {
    let mut world = without_core_1("eiger");
    let token = super::causal::token(0, WALL_MS, &[(1, 2, 5)]);
    assert_eq!(world.ask(&format!("CAUSAL MERGE {token}")), refused(2));
    world.sessions.on_link_up(CoreId(1));
    world.send(&[&format!("SET {} 1", key(2, 0))]);
    let envelope = world.next();
    let context = Context { time: LogicalTime(9), causes: causes(&[(0, 2, 2)]) };
    let done = Message::Executed { request: request(&envelope), context, replies: vec![Reply::OK] };
    world.answer(&envelope, 1, done);
    world.received();
    world.sessions.on_link_down(world.now, CoreId(1));
    assert_eq!(world.ask("CAUSAL WAIT 2"), refused(2));
}

#[test]
fn what_was_executed_before_its_name_could_be_shared_is_not_called_refused() {
    let mut world = World::new();
    let name = key(2, 0);
    assert_eq!(world.ask(&format!("CAUSAL SESSION {name}")), "+OK|");
    world.send(&[&format!("SET {} 1", key(0, 0))]);
    let fetch = world.next();
    let fetched = Message::ContextFetched {
        request: request(&fetch),
        since: LogicalTime(1),
        context: Context::default(),
    };
    world.answer(&fetch, 1, fetched);
    world.sessions.on_link_down(world.now, CoreId(1));
    world.executed(vec![Reply::OK]);
    let received = world.received();
    assert!(received.starts_with("-UNKNOWN partition p2 of dc1 became unreachable"), "{received}");
}

#[test]
fn a_link_that_breaks_ends_a_read_through_another_core() {
    let mut config = config();
    config.protocols[0] = "orbe-clock".into();
    let mut world = World::with(config);
    world.send(&[&format!("MGET {} {}", key(0, 0), key(3, 0))]);
    assert_eq!(partition(&world.next()), 0, "the first partition asks the other");
    world.sessions.on_link_down(world.now, CoreId(1));
    world.drain();
    let received = world.received();
    assert!(received.starts_with("-UNAVAILABLE partition p3 of dc1 became unreachable"), "{received}");
}

#[test]
fn figures_are_those_of_who_can_be_asked() {
    let mut world = without_core_1("eiger");
    world.send(&["INFO keyspace"]);
    let asked: Vec<Address> = world.sent.iter().map(|envelope| envelope.to).collect();
    assert_eq!(asked.len(), 3, "core 0 and its two partitions: {asked:?}");
}
