//! Tests of what one change does to the pairs.

use super::*;

const ONE: DatacenterId = DatacenterId(0);
const TWO: DatacenterId = DatacenterId(1);
const THREE: DatacenterId = DatacenterId(2);

#[test]
fn a_change_holds_both_ways_and_for_no_other_pair() {
    let shaper = Shaper::default();
    shaper.shape(ONE, TWO, Shape::Cut);
    shaper.shape(TWO, THREE, Shape::DelayMs(40));
    assert!(shaper.is_cut(ONE, TWO) && shaper.is_cut(TWO, ONE));
    assert!(!shaper.is_cut(ONE, THREE) && !shaper.is_cut(TWO, THREE));
    assert_eq!(shaper.delay_us(THREE, TWO), 40_000);
    assert_eq!(shaper.delay_us(ONE, TWO), 0);
    shaper.shape(TWO, ONE, Shape::Heal);
    assert!(!shaper.is_cut(ONE, TWO));
}

#[test]
fn every_change_is_a_new_generation() {
    let shaper = Shaper::default();
    let before = shaper.generation();
    shaper.shape(ONE, TWO, Shape::Heal);
    assert_ne!(shaper.generation(), before);
}
