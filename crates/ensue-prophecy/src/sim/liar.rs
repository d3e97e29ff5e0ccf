//! What lying replicas answer. They know all that is in the log, and each other.

use super::message::reply_of;
use crate::history::{INITIAL, ObjectId, Value};
use crate::random::Random;
use crate::table::Sequence;
use std::collections::BTreeMap;

/// The first value that nobody ever writes.
const INVENTED: u64 = 1 << 40;

/// A way of lying. A seed has one for all its liars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// Values that nobody wrote, another one each time.
    Invent,
    /// Values that were replaced.
    Lag,
    /// Nothing at all.
    Silence,
    /// Any of these, and the truth, by chance: to each caller something else.
    Equivocate,
    /// All the same value that nobody wrote.
    InventTogether,
    /// All the same replaced value.
    LagTogether,
}

impl Lie {
    /// All ways.
    pub const ALL: [Lie; 6] =
        [Lie::Invent, Lie::Lag, Lie::Silence, Lie::Equivocate, Lie::InventTogether, Lie::LagTogether];
    /// Those in which liars agree, which only more liars than tolerated can use.
    pub const TOGETHER: [Lie; 2] = [Lie::InventTogether, Lie::LagTogether];
}

/// What the liars know.
#[derive(Debug)]
pub(super) struct Liars {
    lie: Lie,
    random: Random,
    /// All values of each object, in their order, each with its place in it.
    past: BTreeMap<ObjectId, Vec<(Sequence, Value)>>,
}

impl Liars {
    pub(super) fn new(lie: Lie, seed: u64) -> Liars {
        Liars { lie, random: Random::stream(seed, "liars"), past: BTreeMap::new() }
    }

    /// This was ordered.
    pub(super) fn learn(&mut self, object: ObjectId, value: Value, sequence: Sequence) {
        self.past.entry(object).or_insert_with(|| vec![(Sequence(0), INITIAL)]).push((sequence, value));
    }

    /// What a liar answers to a read at this place, which all liars name alike; nothing if it is silent.
    pub(super) fn answer(&mut self, object: ObjectId, place: Sequence) -> Option<Vec<u8>> {
        let past: Vec<Value> = match self.past.get(&object) {
            Some(past) => past.iter().filter(|(at, _)| *at <= place).map(|(_, value)| *value).collect(),
            None => vec![INITIAL],
        };
        let lie = match self.lie {
            Lie::Equivocate => self.random.pick(&[Lie::Invent, Lie::Lag, Lie::Silence, Lie::LagTogether]),
            lie => lie,
        };
        let value = match lie {
            Lie::Silence => return None,
            Lie::Invent => Value(INVENTED + self.random.below(1 << 20)),
            Lie::InventTogether => Value(INVENTED + past.len() as u64),
            Lie::Lag => past[self.random.index(past.len())],
            Lie::LagTogether | Lie::Equivocate => past[past.len().saturating_sub(2)],
        };
        Some(reply_of(value))
    }
}
