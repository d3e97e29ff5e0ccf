//! Lists: two elements never change places, whoever reads them, wherever and whenever.
//!
//! Each read says of its neighbours which stands first. All of that together must be an order.

use super::{Final, Violation, property};
use crate::oracle::history::{History, Sequence};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(history: &History, finals: &[Final]) -> Result<(), Violation> {
    let mut lists: BTreeMap<&str, BTreeMap<&str, BTreeSet<&str>>> = BTreeMap::new();
    for Sequence { key, elements } in
        history.sequences.iter().chain(finals.iter().flat_map(|one| &one.sequences))
    {
        let behind = lists.entry(key).or_default();
        for pair in elements.windows(2) {
            behind.entry(&pair[0]).or_default().insert(&pair[1]);
        }
    }
    for (key, behind) in &lists {
        let left = without_order(behind);
        if !left.is_empty() {
            let words = format!("of {key} no order has all that was read: {left:?}");
            return Err(Violation::new(property::SEQUENCE, words));
        }
    }
    Ok(())
}

/// The elements that are left when those are taken away, again and again, that nothing stands before.
fn without_order<'h>(behind: &BTreeMap<&'h str, BTreeSet<&'h str>>) -> Vec<&'h str> {
    let mut before: BTreeMap<&str, usize> = BTreeMap::new();
    for (&element, others) in behind {
        before.entry(element).or_default();
        others.iter().for_each(|&other| *before.entry(other).or_default() += 1);
    }
    let mut first: Vec<&str> = before.iter().filter(|(_, count)| **count == 0).map(|(&one, _)| one).collect();
    while let Some(element) = first.pop() {
        before.remove(element);
        for &other in behind.get(element).into_iter().flatten() {
            let count = before.get_mut(other).expect("counted above");
            *count -= 1;
            if *count == 0 {
                first.push(other);
            }
        }
    }
    before.into_keys().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(reads: &[&str]) -> bool {
        let sequence = |read: &&str| Sequence {
            key: "q".to_owned(),
            elements: read.split(' ').map(str::to_owned).collect(),
        };
        let mut history = History::of(1);
        history.sequences = reads.iter().map(sequence).collect();
        check(&history, &[]).is_ok()
    }

    #[test]
    fn elements_keep_their_places() {
        assert!(judged(&["a b c", "a c", "b d c", "d e"]));
        assert!(!judged(&["a b", "b a"]));
        assert!(!judged(&["a b", "b c", "c a"]));
    }
}
