//! Rights to change bounded counters: to whom a datacenter gives some by itself, and to whom it does not.

use super::expiries::{alone, pass_ms};
use super::pops::Clients;
use super::{World, config};
use crate::AppendFsync;
use ensue_types::SessionId;

const CLIENT: SessionId = SessionId(7);

/// What the own datacenter may take from the counter.
fn down(world: &mut World) -> String {
    let answer = world.words(CLIENT, "BGET stock RIGHTS");
    let (_, from) = answer.split_once("down|").expect("an answer with rights");
    from.split('|').next().unwrap_or_default().to_owned()
}

fn stocked(mut world: World) -> World {
    world.connect(CLIENT);
    world.replies.clear();
    assert_eq!(world.words(CLIENT, "BCREATE stock 10 MIN 0"), ":1|");
    assert_eq!(down(&mut world), ":10");
    world
}

#[test]
fn who_has_few_is_given_some_in_time_and_nobody_who_is_dead() {
    let mut world = World::with(config(AppendFsync::Always));
    world.calm_down();
    let mut world = stocked(world);
    pass_ms(&mut world, 1_000);
    assert_eq!(down(&mut world), ":5", "half of the difference");
    pass_ms(&mut world, 5_000);
    assert_eq!(down(&mut world), ":5", "once");
    // Five are left, of which the other one has been given no part.
    assert_eq!(world.words(CLIENT, "BDECRBY stock 5"), ":5|");
    assert!(
        world.words(CLIENT, "BDECRBY stock 1").starts_with("-SPENT 0 rights"),
        "the others are given away"
    );
    assert_eq!(world.words(CLIENT, "BINCRBY stock 20"), ":25|");
    pass_ms(&mut world, 1_000);
    assert_eq!(down(&mut world), ":13");

    // The row was large before, and is so still.
    let mut world = World::with(config(AppendFsync::Always));
    world.calm_down();
    world.connect(CLIENT);
    for number in 0..200 {
        world.words(CLIENT, &format!("HINCRBY stock f{number} 1"));
    }
    world.words(CLIENT, "DEL stock");
    let mut world = stocked(world);
    world.node.check_invariants();
    pass_ms(&mut world, 1_000);
    assert_eq!(down(&mut world), ":5", "in a large row, too");

    let mut world = stocked(alone(|_| ()));
    pass_ms(&mut world, 5_000);
    assert_eq!(down(&mut world), ":10", "the other datacenter is dead");
}

/// Where versions are kept, a row that is written so often is never settled.
#[test]
fn rights_move_while_the_counter_changes() {
    for protocol in ["eiger", "cure", "pocc", "ha-pocc", "orbe-clock"] {
        let mut clients = Clients::new(protocol);
        assert_eq!(clients.ask(9, "BCREATE stock 1000 MIN 0"), ":1|", "{protocol}");
        for number in 1..=50 {
            assert_eq!(clients.ask(9, "BDECRBY stock 1"), format!(":{}|", 1_000 - number), "{protocol}");
            clients.pass_ms(20);
        }
        let rights = clients.ask(9, "BGET stock RIGHTS");
        let down =
            rights.split_once("down|:").and_then(|(_, rest)| rest.split('|').next()?.parse::<u32>().ok());
        assert!(down.is_some_and(|down| (400..600).contains(&down)), "{protocol}: {rights}");
    }
}
