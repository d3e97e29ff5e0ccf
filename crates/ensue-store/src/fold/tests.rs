//! Each handler is a function of a set: no order, no repetition and no grouping changes what it makes.

use super::{Folded, NAMES, by_name};
use bytes::Bytes;
use ensue_types::{LogicalTime, Stamp};
use proptest::prelude::*;
use std::collections::BTreeMap;

const VALUES: [&str; 16] = [
    "",
    "a",
    "b,a",
    "a,b",
    "3",
    "20",
    "2e1",
    "20.0",
    "-1.5",
    "x\ny",
    "y\nx",
    "x\nx",
    "n,",
    ",",
    "no number",
    "99999999999999999999999999",
];

fn sibling(time: u64, value: Option<&str>) -> Folded {
    let stamp = Stamp { time: LogicalTime(time), ..Stamp::ZERO };
    Folded {
        stamp,
        value: value.map(|value| Bytes::copy_from_slice(value.as_bytes())),
        deletes: value.is_none(),
    }
}

/// Writes by their stamps, a few of them deletes.
fn writes() -> impl Strategy<Value = Vec<Folded>> {
    let value = prop_oneof![1 => Just(None), 5 => proptest::sample::select(&VALUES[..]).prop_map(Some)];
    let writes = proptest::collection::btree_map(1_u64..40, value, 1..6);
    writes.prop_map(|map: BTreeMap<u64, Option<&str>>| {
        map.iter().map(|(&time, &value)| sibling(time, value)).collect()
    })
}

proptest! {
    #[test]
    fn order_and_repetition_mean_nothing(
        (writes, order) in writes().prop_flat_map(|writes| {
            let places = proptest::collection::vec(0..writes.len(), 0..4);
            let all: Vec<usize> = (0..writes.len()).collect();
            let order = (Just(all), places).prop_map(|(all, more)| [all, more].concat()).prop_shuffle();
            (Just(writes), order)
        })
    ) {
        for name in NAMES {
            let handler = by_name(name).expect("built in");
            prop_assert_eq!(handler.name(), name);
            let shuffled: Vec<Folded> = order.iter().map(|&place| writes[place].clone()).collect();
            prop_assert_eq!(handler.fold(&writes), handler.fold(&shuffled), "{}", name);
        }
    }

    #[test]
    fn a_fold_of_folds_is_the_fold_of_all((one, other) in (writes(), writes())) {
        // A stamp names one write.
        let other: Vec<Folded> =
            other.into_iter().filter(|new| one.iter().all(|known| known.stamp != new.stamp)).collect();
        prop_assume!(!other.is_empty());
        for name in NAMES {
            let handler = by_name(name).expect("built in");
            let folded = |writes: &[Folded]| Folded {
                stamp: writes.iter().map(|write| write.stamp).max().unwrap_or_default(),
                value: handler.fold(writes).expect("built in"),
                deletes: writes.iter().all(|write| write.deletes),
            };
            let parts = handler.fold(&[folded(&one), folded(&other)]);
            prop_assert_eq!(parts, handler.fold(&[one.clone(), other.clone()].concat()), "{}", name);
        }
    }
}

fn fold(name: &str, values: &[Option<&str>]) -> Option<String> {
    let siblings: Vec<Folded> =
        values.iter().enumerate().map(|(time, value)| sibling(1 + time as u64, *value)).collect();
    let folded = by_name(name).expect("built in").fold(&siblings).expect("built in");
    folded.map(|value| String::from_utf8(value.to_vec()).expect("text"))
}

/// What was added since a delete counts with the values that were put beside it, and not twice.
#[test]
fn additions_since_a_delete_are_no_value_beside_one_that_was_put() {
    let deleted = Folded { deletes: true, ..sibling(1, Some("1")) };
    let put = sibling(2, Some("11"));
    for name in ["max", "min", "union", "concat-sorted"] {
        let handler = by_name(name).expect("built in");
        let fold = |siblings: &[Folded]| handler.fold(siblings).expect("built in");
        assert_eq!(fold(&[deleted.clone(), put.clone()]).as_deref(), Some(&b"11"[..]), "{name}");
        assert_eq!(fold(std::slice::from_ref(&deleted)).as_deref(), Some(&b"1"[..]), "{name}");
    }
}

#[test]
fn what_each_handler_makes() {
    let of = |name, values: &[&str]| {
        let values: Vec<Option<&str>> = values.iter().copied().map(Some).collect();
        fold(name, &values).expect("values make a value")
    };
    assert_eq!(of("newest", &["b", "a"]), "a");
    assert_eq!(of("union", &["tea,milk", "eggs,milk"]), "eggs,milk,tea");
    assert_eq!(of("union", &["", "milk"]), "milk");
    assert_eq!(of("concat-sorted", &["8pm", "10pm"]), "10pm\n8pm");
    assert_eq!(of("concat-sorted", &["a\na", "b\na"]), "a\na\nb");
    assert_eq!(of("max", &["9", "10", "-3"]), "10");
    assert_eq!(of("min", &["9", "10", "-3"]), "-3");
}

#[test]
fn the_same_value_twice_stays_as_it_is() {
    for name in NAMES {
        assert_eq!(fold(name, &[Some("b,a\nb"), Some("b,a\nb")]).as_deref(), Some("b,a\nb"), "{name}");
    }
}

#[test]
fn what_is_no_number_gives_way_to_any_number() {
    for name in ["max", "min"] {
        assert_eq!(fold(name, &[Some("zz"), Some("7"), Some("")]).as_deref(), Some("7"), "{name}");
    }
    let words = [Some("pear"), Some("apple")];
    assert_eq!(fold("max", &words).as_deref(), Some("pear"));
    assert_eq!(fold("min", &words).as_deref(), Some("apple"));
}

#[test]
fn a_delete_beside_a_value_counts_only_for_the_newest() {
    for name in NAMES {
        let newest = name == "newest";
        assert_eq!(fold(name, &[Some("7"), None]).as_deref(), (!newest).then_some("7"), "{name}");
        assert_eq!(fold(name, &[None, Some("7")]).as_deref(), Some("7"), "{name}");
        assert_eq!(fold(name, &[None, None]), None, "{name}");
    }
}
