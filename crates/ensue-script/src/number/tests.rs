//! Text of numbers against what the `printf` of C writes.

use super::{general, truncated};

#[test]
fn numbers_are_written_as_c_does() {
    for (value, digits, text) in [
        (0.0, 17, "0"),
        (-0.0, 17, "-0"),
        (1.5, 17, "1.5"),
        (3.1, 17, "3.1000000000000001"),
        (1e15, 17, "1000000000000000"),
        (12_345_678_901_234_567_890.0, 17, "1.2345678901234567e+19"),
        (1e16, 17, "10000000000000000"),
        (1e17, 17, "1e+17"),
        (0.0001, 14, "0.0001"),
        (0.00001, 14, "1e-05"),
        (9_007_199_254_740_992.0, 14, "9.007199254741e+15"),
        (100.0, 14, "100"),
        (0.1 + 0.2, 14, "0.3"),
        (1e300, 14, "1e+300"),
        (f64::INFINITY, 14, "inf"),
        (99_999_999_999_999.9, 14, "1e+14"),
    ] {
        assert_eq!(general(value, digits), text, "{value:?} with {digits} digits");
    }
}

#[test]
fn integers_are_truncated_and_wrap_to_the_smallest() {
    for (value, integer) in [
        (3.99, 3),
        (-3.99, -3),
        (1e300, i64::MIN),
        (-1e300, i64::MIN),
        (f64::NAN, i64::MIN),
        (9_223_372_036_854_775_808.0, i64::MIN),
        (-9_223_372_036_854_775_808.0, i64::MIN),
    ] {
        assert_eq!(truncated(value), integer, "{value:?}");
    }
}
