//! An order against a sorted list.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn score(number: i32) -> Score {
    Score::new(f64::from(number)).expect("a number")
}

fn member((number, name): (i32, u16)) -> Scored {
    (score(number), Bytes::from(format!("{name:03}")))
}

/// Every place and every bound gives the same.
fn compare(
    list: &[Scored],
    len: usize,
    members: impl Fn(Range<usize>) -> Vec<Scored>,
    bound: impl Fn(&Scored) -> usize,
) {
    assert_eq!(len, list.len());
    assert_eq!(members(0..len), list);
    let step = len / 17 + 1;
    for start in (0..=len).step_by(step) {
        let end = len.min(start + start % 7);
        assert_eq!(members(start..end), list[start..end], "{start}..{end}");
    }
    for (place, member) in list.iter().enumerate().step_by(step) {
        assert_eq!(bound(member), place);
    }
    assert_eq!(bound(&(score(i32::MAX), Bytes::new())), len);
}

fn check(order: &Order, list: &[Scored]) {
    let bound = |bound: &Scored| order.partition_point(|score, name| (score, name) < (bound.0, &bound.1[..]));
    compare(list, order.len(), |places| order.members(places), bound);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn as_a_sorted_list(
        begun in prop::collection::btree_map(0_u16..700, -20_i32..20, 0..600),
        steps in prop::collection::vec((0_u16..700, prop::option::of(-20_i32..20)), 0..900),
        emptied_from in 0_u16..700,
    ) {
        let mut model: BTreeMap<u16, i32> = begun;
        let list = |model: &BTreeMap<u16, i32>| {
            let mut list: Vec<Scored> = model.iter().map(|(name, number)| member((*number, *name))).collect();
            list.sort();
            list
        };
        let mut order: Order = list(&model).into_iter().rev().collect();
        check(&order, &list(&model));
        let emptied = (emptied_from..700).map(|name| (name, None));
        for (name, number) in steps.into_iter().chain(emptied) {
            if let Some(before) = model.remove(&name) {
                order.remove(&member((before, name)));
            }
            if let Some(number) = number {
                order.insert(member((number, name)));
                model.insert(name, number);
            }
        }
        check(&order, &list(&model));
        // What is not there is not taken out.
        order.remove(&member((99, 1)));
        let mut left = list(&model);
        check(&order, &left);
        while !left.is_empty() {
            order.free_some(37);
            left.truncate(left.len().saturating_sub(37));
            check(&order, &left);
        }
        assert!(order.is_empty());
    }

    #[test]
    fn corrected_for_a_view(
        newest in prop::collection::btree_map(0_u16..300, -9_i32..9, 0..200),
        shown in prop::collection::btree_map(0_u16..300, prop::option::of(-12_i32..12), 0..40),
    ) {
        let order: Order = newest.iter().map(|(name, number)| member((*number, *name))).collect();
        let hidden = shown.keys().filter_map(|name| Some(member((*newest.get(name)?, *name)))).collect();
        let instead = shown.iter().filter_map(|(name, number)| Some(member(((*number)?, *name)))).collect();
        let corrected = Corrected::new(&order, hidden, instead);
        let mut model = newest.clone();
        for (name, number) in &shown {
            match number {
                Some(number) => drop(model.insert(*name, *number)),
                None => drop(model.remove(name)),
            }
        }
        let mut list: Vec<Scored> = model.iter().map(|(name, number)| member((*number, *name))).collect();
        list.sort();
        let bound =
            |bound: &Scored| corrected.partition_point(|score, name| (score, name) < (bound.0, &bound.1[..]));
        compare(&list, corrected.len(), |places| corrected.members(places), bound);
    }
}
