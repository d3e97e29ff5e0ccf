//! A value and its bytes are two forms of the same: each becomes the other, and nothing else does.

use super::lists::tests::any_lists;
use super::*;
use crate::{DatacenterId, Extent, Incarnation, OperationId, PartitionId, Position, TimeVector};
use proptest::collection::vec;
use proptest::prelude::*;

fn any_set() -> impl Strategy<Value = Vec<Dependency>> {
    let dependency = (0..3u8, 0..5u16, 1..3u16, 1..40u64, any::<bool>()).prop_map(|(d, p, i, n, through)| {
        let incarnation = Incarnation(i);
        let position = Position(Position::before(incarnation).0 + n);
        let (datacenter, partition) = (DatacenterId(d), PartitionId(p));
        let operation = OperationId { datacenter, incarnation, partition, position };
        Dependency { operation, extent: if through { Extent::Through } else { Extent::Exact } }
    });
    vec(dependency, 0..6).prop_map(|more| {
        let mut set = Vec::new();
        dependency_set::add(&mut set, more, usize::MAX);
        set
    })
}

fn any_times() -> impl Strategy<Value = TimeVector> {
    vec((0..4u64).prop_map(LogicalTime), 0..4).prop_map(TimeVector::from_iter)
}

fn any_vector() -> impl Strategy<Value = Vector> {
    (any::<bool>(), any_times(), any_times(), any_times()).prop_map(|(stable, times, abandoned, doubted)| {
        let mode = if stable { Mode::Stable } else { Mode::Plain };
        Vector { mode, times, abandoned, doubted }
    })
}

fn any_anchor() -> impl Strategy<Value = Anchor> {
    let text = || vec(any::<u8>(), 0..4);
    (any::<bool>(), vec(any::<u64>(), 0..4), text(), text(), any_set())
        .prop_map(|(open, states, begin, end, operations)| Anchor { open, states, begin, end, operations })
}

fn any_causes() -> impl Strategy<Value = Causes> {
    let matrix = (0..3u64, any_set())
        .prop_map(|(time, elements)| TimedMatrix { time: LogicalTime(time), elements }.into());
    let extension = (EXTENSION.., vec(any::<u8>(), 0..9))
        .prop_map(|(first, rest)| Causes::Extension(Opaque([vec![first], rest].concat())));
    prop_oneof![
        any_set().prop_map(Causes::from),
        any_vector().prop_map(Causes::from),
        matrix,
        any_lists().prop_map(Causes::from),
        any_anchor().prop_map(Causes::from),
        extension,
    ]
}

proptest! {
    #[test]
    fn a_value_survives_its_bytes(causes in any_causes()) {
        let bytes = causes.encode();
        prop_assert_eq!(causes.encoded_bytes(), bytes.len());
        prop_assert_eq!(causes.is_empty(), bytes.is_empty());
        prop_assert_eq!(Causes::decode(&bytes), Ok(causes));
    }

    #[test]
    fn bytes_survive_their_value(family in 0..7u8, rest in vec(prop_oneof![0..3u8, any::<u8>()], 0..60)) {
        let bytes = [vec![family], rest].concat();
        if let Ok(causes) = Causes::decode(&bytes) {
            prop_assert_eq!(causes.encode(), bytes);
        }
    }

    #[test]
    fn no_part_of_a_vector_is_one(vector in any_vector()) {
        let bytes = Causes::from(vector.clone()).encode();
        let without_doubts = Causes::from(Vector { doubted: TimeVector::ZERO, ..vector }).encoded_bytes();
        for end in (1..bytes.len()).filter(|end| *end != without_doubts) {
            prop_assert_eq!(Causes::decode(&bytes[..end]), Err(Malformed), "{} bytes", end);
        }
    }

    /// A write's time and what it carries are one past.
    #[test]
    fn a_write_is_taken_over_like_its_whole_past(
        own in any_vector(), carried in any_vector(), d in 0..4u8, time in 1..5u64
    ) {
        let time = if time == 4 { Vector::FINAL } else { LogicalTime(time) };
        let mut whole = carried.clone();
        whole.times.raise(DatacenterId(d), time);
        let (mut one, mut other) = (own.clone(), own);
        prop_assert_eq!(one.take_over(&whole), other.take_over_write(&carried, DatacenterId(d), time));
        prop_assert_eq!(one, other);
    }
}

#[test]
fn what_no_encoding_makes_is_refused() {
    for garbage in [
        &[0][..],
        &[1],
        &[1, 0],
        &[2, 2, 0, 0],
        &[2, 0, 0, 0],
        &[2, 1, 0, 0, 0],
        &[2, 0, 0, 0, 9],
        &[2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[3, 0, 0, 0, 0, 0, 0, 0, 0],
        &[3, 1, 0, 0, 0, 0, 0, 0, 0, 1],
        &[4, 0, 0],
        &[4, 0x80, 0, 0],
        &[5, 0, 0, 0, 0, 0, 0],
        &[6, 1],
        &[63],
    ] {
        assert_eq!(Causes::decode(garbage), Err(Malformed), "{garbage:?}");
    }
}

/// More are cut off when it is sent, the lowest first.
#[test]
fn a_session_of_a_branching_keyspace_has_room_for_64_states() {
    let anchor = |states: std::ops::Range<u64>| Anchor { states: states.collect(), ..Anchor::default() };
    let own = anchor(0..60);
    assert!(own.has_room_for(&anchor(58..64)) && !own.has_room_for(&anchor(58..65)));
    assert_eq!(Causes::from(anchor(0..65)).states().map(|anchor| anchor.states.len()), Ok(64));
}
