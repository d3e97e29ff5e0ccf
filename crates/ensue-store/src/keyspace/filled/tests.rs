//! Against a plain set of numbers.

use super::Filled;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Slots of a few blocks, most of them far from each other.
fn slots() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(prop_oneof![0..200_usize, 4_000..4_300_usize, 0..60_000_usize], 0..300)
}

proptest! {
    #[test]
    fn the_same_as_a_set(toggled in slots(), asked in slots()) {
        let mut filled = Filled::default();
        let mut expected = BTreeSet::new();
        for slot in toggled {
            if expected.insert(slot) {
                filled.insert(slot);
            } else {
                expected.remove(&slot);
                filled.remove(slot);
            }
        }
        for slot in asked {
            prop_assert_eq!(filled.contains(slot), expected.contains(&slot));
            prop_assert_eq!(filled.next(slot), expected.range(slot..).next().copied());
        }
        for (place, slot) in expected.iter().enumerate() {
            prop_assert_eq!(filled.nth(place), Some(*slot));
        }
        prop_assert_eq!(filled.nth(expected.len()), None);
    }
}
