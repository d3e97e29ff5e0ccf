//! One spelling a number.

use super::*;
use proptest::prelude::*;

#[test]
fn integers() {
    for good in ["0", "7", "-7", "10", "9223372036854775807", "-9223372036854775808"] {
        assert_eq!(parse_i64(good.as_bytes()), good.parse().ok(), "{good}");
    }
    let bad = ["", "-", "-0", "+1", "01", "-01", " 1", "1 ", "1a", "00", "9223372036854775808"];
    for bad in bad.into_iter().chain(["-9223372036854775809", "99999999999999999999", "--1", "\u{661}"]) {
        assert_eq!(parse_i64(bad.as_bytes()), None, "{bad}");
    }
}

#[test]
fn cursors_are_loose() {
    let parse = |text: &str| parse_cursor(text.as_bytes());
    assert_eq!(parse("18446744073709551615"), Some(u64::MAX));
    assert_eq!(parse("18446744073709551616"), None);
    assert_eq!(parse("01"), Some(1));
    assert_eq!(parse("+1"), Some(1));
    assert_eq!(parse("-1"), Some(u64::MAX));
    assert_eq!(parse(""), Some(0));
    for bad in ["x", " 1", "1 ", "-", "+"] {
        assert_eq!(parse(bad), None, "{bad}");
    }
}

#[test]
fn decimals() {
    let infinite = CommandError::IncrementNotFinite;
    let parse = |text: &str| parse_decimal(text.as_bytes(), infinite.clone()).map(|value| value.to_string());
    for (text, value) in [
        ("0.1", "0.1"),
        (".5", "0.5"),
        ("5.", "5"),
        ("+5", "5"),
        ("-1.5e3", "-1500"),
        ("1e-20", "0"),
        ("0.10000000000000000555", "0.1"),
        ("1.000000000000000000000000000e-2147483648", "0"),
        ("1.00000000000000000000e-00000001", "0.1"),
    ] {
        assert_eq!(parse(text).as_deref(), Ok(value), "{text}");
    }
    let long = "0".repeat(300);
    for text in ["", "x", "nan", "0x10", " 1", "1 ", "1e", "-", ".", "1_0", &long] {
        assert_eq!(parse(text), Err(CommandError::NotFloat), "{text}");
    }
    for text in ["inf", "-inf", "infinity", "1e400", "1e22", "1e2147483647"] {
        assert_eq!(parse(text), Err(infinite.clone()), "{text}");
    }
}

proptest! {
    #[test]
    fn integers_come_back(value: i64) {
        let text = i64_bytes(value);
        prop_assert_eq!(&text, &value.to_string());
        prop_assert_eq!(parse_i64(&text), Some(value));
    }

    #[test]
    fn only_the_canonical_text_is_a_number(text in "[-+0-9 ]{0,21}") {
        if let Some(value) = parse_i64(text.as_bytes()) {
            prop_assert_eq!(value.to_string(), text);
        }
    }

    #[test]
    fn decimals_do_not_panic(text in "[-+0-9.eE]{0,40}") {
        let _ = parse_decimal(text.as_bytes(), CommandError::NotFinite);
    }
}
