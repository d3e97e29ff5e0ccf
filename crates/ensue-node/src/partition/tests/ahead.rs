//! Times that are too far ahead: who refuses one says so, and who is refused asks whether most clocks agree.

use super::{PARTITION, World, config};
use crate::config::DatacenterTopology;
use crate::{AppendFsync, Input, Trace};
use ensue_types::{CoreId, DatacenterId, LogicalTime, Position, SessionId};
use ensue_wire::{Address, Envelope, Message};

const HOURS_MS: u64 = 7_200_000;

/// A node of the first of so many datacenters, linked to all others.
fn world(datacenters: u8) -> World {
    let mut config = config(AppendFsync::EverySecond);
    let like = config.topology.datacenters[0].clone();
    config.topology.datacenters = (0..datacenters)
        .map(|number| DatacenterTopology { name: format!("dc{}", number + 1), ..like.clone() })
        .collect();
    let mut world = World::with(config);
    world.calm_down();
    for datacenter in (1..datacenters).map(DatacenterId) {
        world.give(Input::LinkUp { datacenter, core: CoreId(0) });
    }
    world.give(Input::TurnEnd);
    world.calm_down();
    world.sent.clear();
    world
}

fn hear(world: &mut World, from: u8, time: LogicalTime, message: Message) {
    let from = Address::Partition { datacenter: DatacenterId(from), partition: PARTITION };
    let to = Address::Partition { datacenter: DatacenterId(0), partition: PARTITION };
    world.give(Input::Message(Envelope { from, to, time, message }));
    world.give(Input::TurnEnd);
    world.calm_down();
}

/// Another datacenter says whether it refuses the time of this one.
fn told(world: &mut World, by: u8, ahead_ms: u64) {
    let time = LogicalTime::from_ms(world.now.wall_ms);
    hear(world, by, time, Message::ClockAhead { ahead_ms });
}

/// What a new client's write is answered.
fn write(world: &mut World) -> String {
    world.replies.clear();
    world.increment(SessionId(u64::from(world.answered) + 1));
    world.calm_down();
    String::from_utf8_lossy(&world.replies).into_owned()
}

#[test]
fn whoever_refuses_a_time_says_so_and_says_when_it_is_over() {
    let mut world = world(2);
    let said = |world: &mut World| {
        let sent = std::mem::take(&mut world.sent).into_iter();
        let ahead = sent.filter_map(|message| match message {
            Message::ClockAhead { ahead_ms } => Some(ahead_ms),
            _ => None,
        });
        ahead.collect::<Vec<_>>()
    };
    let far = LogicalTime::from_ms(world.now.wall_ms + HOURS_MS);
    hear(&mut world, 1, far, Message::Heartbeat { end: Position(0) });
    assert_eq!(said(&mut world), [HOURS_MS]);
    world.give(Input::LinkUp { datacenter: DatacenterId(1), core: CoreId(0) });
    world.give(Input::TurnEnd);
    world.calm_down();
    assert_eq!(said(&mut world), [HOURS_MS], "on each new link");
    let near = LogicalTime::from_ms(world.now.wall_ms + 59_000);
    hear(&mut world, 1, near, Message::Heartbeat { end: Position(0) });
    assert_eq!(said(&mut world), [0]);
    hear(&mut world, 1, near, Message::Heartbeat { end: Position(0) });
    assert_eq!(said(&mut world), [0; 0], "once");
}

#[test]
fn writes_are_refused_when_most_clocks_say_that_the_time_here_is_ahead() {
    let mut world = world(3);
    assert_eq!(write(&mut world), ":1\r\n");
    told(&mut world, 1, HOURS_MS);
    assert_eq!(write(&mut world), ":2\r\n", "one of three clocks may be behind");
    told(&mut world, 2, HOURS_MS);
    let refusal = write(&mut world);
    assert!(refusal.starts_with("-CLOCKAHEAD ") && refusal.contains("dc2 and dc3"), "{refusal}");
    let told_of = |trace: &&Trace| matches!(trace, Trace::TimeRefused { .. });
    assert_eq!(world.traces.iter().filter(told_of).count(), 2);
    told(&mut world, 1, 0);
    assert_eq!(write(&mut world), ":3\r\n");
}

/// A time of another that is just not too far ahead of this clock is so of clocks that show a little less.
#[test]
fn who_has_taken_a_time_that_the_others_take_in_a_moment_writes() {
    let mut world = world(3);
    let edge = LogicalTime::from_ms(world.now.wall_ms + 59_999);
    hear(&mut world, 1, edge, Message::Heartbeat { end: Position(0) });
    for by in 1..3 {
        told(&mut world, by, 60_300);
    }
    assert_eq!(write(&mut world), ":1\r\n", "three clocks that differ by 300 milliseconds");
    // Their word stands, and time goes on.
    world.now.wall_ms += 40_000;
    assert_eq!(write(&mut world), ":2\r\n");
    for by in 1..3 {
        told(&mut world, by, 60_300);
    }
    assert!(write(&mut world).starts_with("-CLOCKAHEAD "), "their clocks show 40 seconds less");
}

#[test]
fn of_two_datacenters_the_own_clock_decides_once_it_is_right() {
    let mut world = world(2);
    told(&mut world, 1, HOURS_MS);
    assert_eq!(write(&mut world), ":1\r\n", "nobody can know which clock is wrong");
    // It was this one: it is set right, and logical time stays.
    world.now.wall_ms -= HOURS_MS;
    assert!(write(&mut world).starts_with("-CLOCKAHEAD "));
    // A clock that was set back wrongly, while the others believe this datacenter, stops nobody.
    told(&mut world, 1, 0);
    assert_eq!(write(&mut world), ":2\r\n");
}
