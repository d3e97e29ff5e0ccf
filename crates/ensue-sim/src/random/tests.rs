//! The stream repeats, its concerns differ, its bounds hold.

use super::Random;

#[test]
fn a_stream_repeats_and_concerns_differ() {
    let draw = |seed, concern| {
        let mut random = Random::stream(seed, concern);
        [random.bits(), random.bits(), random.bits()]
    };
    assert_eq!(draw(7, "network"), draw(7, "network"));
    assert_ne!(draw(7, "network"), draw(7, "disk"));
    assert_ne!(draw(7, "network"), draw(8, "network"));
    assert_ne!(draw(0, "ab"), draw(0, "ba"));
}

#[test]
fn bounds_hold_and_both_ends_occur() {
    let mut random = Random::stream(1, "test");
    let mut seen = [0u32; 5];
    for _ in 0..10_000 {
        seen[random.between(0, 4) as usize] += 1;
        assert!(random.around_zero(3).abs() <= 3);
        assert!((10..=90).contains(&random.skewed(10, 90)));
        assert_eq!(random.weighted(&[0, 5, 0]), 1);
    }
    assert!(seen.iter().all(|&count| (1_700..2_300).contains(&count)), "{seen:?}");
    assert_eq!(random.below(0), 0);
}
