//! Tests of dates and of the throttle's arithmetic.

use super::*;

#[test]
fn timestamps_are_dates() {
    assert_eq!(Timestamp(0).to_string(), "1970-01-01T00:00:00.000Z");
    assert_eq!(Timestamp(951_782_400_000).to_string(), "2000-02-29T00:00:00.000Z");
    assert_eq!(Timestamp(1_795_238_400_123).to_string(), "2026-11-21T05:20:00.123Z");
    assert_eq!(Timestamp(4_107_542_399_999).to_string(), "2100-02-28T23:59:59.999Z");
}

#[test]
fn a_throttle_counts_what_it_holds_back() {
    set_level(Level::Warning);
    let mut throttle = Throttle::default();
    throttle.warning(0, "first");
    throttle.warning(10, "second");
    assert_eq!(throttle.held_back, 1);
    throttle.warning(1_000_000, "third");
    assert_eq!(throttle.held_back, 0);
}

#[test]
fn a_line_is_text_or_an_object() {
    assert_eq!(
        line(Format::Text, Timestamp(0), Level::Notice, "a b"),
        "1970-01-01T00:00:00.000Z notice  a b\n"
    );
    assert_eq!(
        line(Format::Json, Timestamp(0), Level::Warning, "a \"b\"\nc"),
        "{\"time\":\"1970-01-01T00:00:00.000Z\",\"level\":\"warning\",\"message\":\"a \\\"b\\\"\\nc\"}\n"
    );
}
