//! Names between others, by several authors.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn author(datacenter: u8, time: u64, number: u32) -> Author {
    let stamp =
        Stamp { time: LogicalTime(time), datacenter: DatacenterId(datacenter), partition: PartitionId(3) };
    Author { stamp, number }
}

fn between(list: &[Bytes], place: usize, author: Author) -> Option<Bytes> {
    let name = |place: usize| list.get(place).map(|name| &name[..]);
    name_between(place.checked_sub(1).and_then(name), name(place), author)
}

fn put(list: &mut Vec<Bytes>, place: usize, author: Author) {
    let name = between(list, place, author).expect("there is room");
    list.insert(place, name);
    assert!(list.is_sorted());
}

#[test]
fn names_do_not_grow_with_a_queue() {
    let mut list = Vec::new();
    for number in 0..200_000_u64 {
        // Two datacenters take turns at both ends, and what was pushed is popped.
        let datacenter = (number / 3 % 2) as u8;
        let time = (1 << 60) + number * (1 << 26);
        let place = if number % 5 == 0 { 0 } else { list.len() };
        put(&mut list, place, author(datacenter, time, 1));
        if list.len() > 10 {
            list.remove(if number % 2 == 0 { 0 } else { list.len() - 1 });
        }
    }
    let longest = list.iter().map(Bytes::len).max();
    assert!(longest <= Some(28), "{longest:?}");
}

#[test]
fn one_datacenter_goes_on_with_its_run() {
    let mut list = Vec::new();
    for time in 1..=3 {
        for number in 1..=3 {
            let at_end = list.len();
            put(&mut list, at_end, author(0, time << 20, number));
            put(&mut list, 0, author(0, time << 20, number + 10));
        }
    }
    let runs: BTreeSet<Stamp> =
        list.iter().flat_map(|name| Path::of(Some(name)).map(|waypoint| waypoint.run)).collect();
    assert_eq!(runs.len(), 1);
}

#[test]
fn a_clock_that_went_back_begins_a_run() {
    let mut list = Vec::new();
    put(&mut list, 0, author(0, 500, 1));
    put(&mut list, 1, author(0, 400, 1));
    put(&mut list, 0, author(0, 300, 1));
    put(&mut list, 3, author(0, 450, 1));
    assert_eq!(list.len(), 4);
}

#[test]
fn there_is_room_between_two_until_names_are_long() {
    let mut list = Vec::new();
    put(&mut list, 0, author(0, 1, 1));
    put(&mut list, 1, author(0, 2, 1));
    let mut place = 1;
    let most = (3..).find(|&time| {
        let Some(name) = between(&list, place, author(0, time, 1)) else { return true };
        list.insert(place, name);
        place += (time % 2) as usize;
        false
    });
    assert!(most.is_some_and(|most| most > 300), "{most:?}");
    assert!(list.iter().all(|name| name.len() <= NAME_BYTES_MAX));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn anywhere_between_two_there_is_room(
        steps in prop::collection::vec((0_u8..3, any::<prop::sample::Index>(), prop::bool::weighted(0.2)), 1..150),
    ) {
        let mut list: Vec<Bytes> = Vec::new();
        let mut all = BTreeSet::new();
        for (time, (datacenter, place, removes)) in steps.into_iter().enumerate() {
            if removes && !list.is_empty() {
                list.remove(place.index(list.len()));
                continue;
            }
            let place = place.index(list.len() + 1);
            let name = between(&list, place, author(datacenter, time as u64, 0)).expect("there is room");
            prop_assert!(all.insert(name.clone()), "used twice");
            list.insert(place, name);
            prop_assert!(list.is_sorted());
        }
    }

    #[test]
    fn no_bytes_make_it_panic(
        before in prop::option::of(prop::collection::vec(any::<u8>(), 0..40)),
        after in prop::option::of(prop::collection::vec(any::<u8>(), 0..40)),
    ) {
        let name = name_between(before.as_deref(), after.as_deref(), author(1, 7, 0));
        if let Some(name) = name {
            prop_assert!(before.is_none_or(|before| before < name));
            prop_assert!(after.is_none_or(|after| name < after));
        }
    }

    /// Two datacenters put runs at one place of the same list, each forwards or backwards and after the other's past.
    #[test]
    fn runs_do_not_interleave(
        common in prop::collection::vec((0_u8..3, any::<prop::sample::Index>()), 0..12),
        place in any::<prop::sample::Index>(),
        forwards in any::<[bool; 2]>(),
        lengths in [1_usize..8, 1..8],
    ) {
        let mut list: Vec<Bytes> = Vec::new();
        for (time, (datacenter, place)) in common.into_iter().enumerate() {
            let place = place.index(list.len() + 1);
            put(&mut list, place, author(datacenter, time as u64, 0));
        }
        let place = place.index(list.len() + 1);
        let mut merged: Vec<(Bytes, Option<usize>)> = list.iter().map(|name| (name.clone(), None)).collect();
        for datacenter in 0..2 {
            let mut own = list.clone();
            let mut at = place;
            for number in 0..lengths[datacenter] {
                let name = between(&own, at, author(datacenter as u8, 100 + number as u64, 0)).expect("room");
                own.insert(at, name.clone());
                merged.push((name, Some(datacenter)));
                at += usize::from(forwards[datacenter]);
            }
        }
        merged.sort();
        let mut turns: Vec<Option<usize>> = merged.into_iter().map(|(_, whose)| whose).collect();
        prop_assert!(turns.iter().take(place).all(Option::is_none));
        turns.dedup();
        prop_assert!(turns.iter().filter(|whose| **whose == Some(0)).count() <= 1);
        prop_assert!(turns.iter().filter(|whose| **whose == Some(1)).count() <= 1);
    }
}
