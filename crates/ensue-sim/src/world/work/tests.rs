//! Prices make cores busy, and only as long as they say.

use super::{Prices, Processors, Work};
use crate::resp::{Answers, args};
use crate::rules::Rules;
use crate::world::options::Options;
use crate::world::shape::{Shape, Site};
use crate::world::{Happening, World};

#[test]
fn what_is_owed_is_paid_in_whole_microseconds_and_the_rest_is_carried_over() {
    let mut prices = Prices::FREE;
    prices.0[Work::Timer as usize] = 250;
    let mut processors = Processors::new(1, prices, 100);
    let input = ensue_node::Input::Timer;
    assert_eq!(processors.take(Site(0), &input), Work::Timer);
    assert_eq!((processors.lag_us(Site(0)), processors.begin_us(Site(0))), (2, 2));
    processors.take(Site(0), &input);
    assert_eq!(processors.begin_us(Site(0)), 3, "half a microsecond was left of the first");
    assert_eq!((processors.units()[Work::Timer as usize], processors.busy_us()), (2, vec![5]));
}

/// How long a client of a core waits for so many GETs that it sends one after the other.
fn gets_take_us(price: u64) -> u64 {
    let shape = Shape { replicas: 1, datacenters: 1, cores: 1, partitions: 1, one_process: true };
    let mut world = World::new(Options::calm(shape, 0, Rules::default()));
    while world.step(400_000).is_some() {}
    let mut prices = Prices::FREE;
    prices.0[Work::GetCommand as usize] = price;
    world.work = Some(Processors::new(1, prices, 1));
    let connection = world.connect(Site(0));
    let (begun_us, mut answers) = (world.now(), Answers::default());
    for _ in 0..10 {
        world.send(connection, vec![args("GET nothing")]);
        let mut is_answered = false;
        while !is_answered {
            if let Some(Happening::Answer { bytes, .. }) = world.step(u64::MAX) {
                answers.extend(&bytes);
                is_answered = answers.pop().expect("it is an answer").is_some();
            }
        }
    }
    world.now() - begun_us
}

#[test]
fn a_client_waits_as_long_as_its_commands_cost() {
    let (free, priced) = (gets_take_us(0), gets_take_us(1_000));
    // Both draw the same delays of the client's link.
    assert_eq!(priced - free, 10_000);
}
