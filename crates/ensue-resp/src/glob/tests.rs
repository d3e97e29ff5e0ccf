//! Patterns with the meaning that Redis gives them.

use super::*;
use proptest::prelude::*;

#[track_caller]
fn check(pattern: &str, yes: &[&str], no: &[&str]) {
    for text in yes {
        assert!(matches(pattern.as_bytes(), text.as_bytes()), "{pattern} should match {text}");
    }
    for text in no {
        assert!(!matches(pattern.as_bytes(), text.as_bytes()), "{pattern} should not match {text}");
    }
}

#[test]
fn elements() {
    check("", &[""], &["a"]);
    check("abc", &["abc"], &["ab", "abcd", "ABC", ""]);
    check("a?c", &["abc", "a?c"], &["ac", "abbc"]);
    check("*", &["", "a", "abc"], &[]);
    check("a*", &["a", "abc"], &["", "ba"]);
    check("*c", &["c", "abc", "cc"], &["", "cb"]);
    check("a*b*c", &["abc", "axbxc", "abbcc"], &["acb", "ab"]);
    check("**a**", &["a", "bab"], &["", "b"]);
    check("h[ae]llo", &["hello", "hallo"], &["hillo", "hllo"]);
    check("h[^e]llo", &["hallo"], &["hello"]);
    check("h[a-c]llo", &["hbllo"], &["hdllo"]);
    check("[c-a]", &["b"], &["d"]);
    check("[^a-c]", &["d"], &["b"]);
    check("\\*", &["*"], &["a", "\\*"]);
    check("[\\]]", &["]"], &["\\"]);
    check("a\\", &["a\\"], &["a"]);
}

#[test]
fn odd_classes() {
    check("[]", &[], &["", "a", "]"]);
    check("[^]", &["a", "]"], &[""]);
    check("[abc", &["a", "c"], &["d", "[abc"]);
    check("[", &[], &["[", "a"]);
    check("[a-", &["a", "-"], &["b"]);
    check("[a-]", &["a", "]", "_"], &["b", "-"]);
    check("[\\", &["\\"], &["a"]);
}

#[test]
fn a_hostile_pattern_ends() {
    let pattern = "a*".repeat(20_000) + "b";
    let text = "a".repeat(100_000);
    assert!(!matches(pattern.as_bytes(), text.as_bytes()));
    let pattern = "*".to_owned() + &"a".repeat(30_000) + "b";
    assert!(!matches(pattern.as_bytes(), "a".repeat(1 << 20).as_bytes()));
    assert!(!matches(&vec![b'*'; PATTERN_BYTES_MAX + 1], b"a"));
    assert!(matches(&vec![b'*'; PATTERN_BYTES_MAX], b"a"));
}

/// The meaning, as short as it can be said.
fn model(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern, text) {
        ([], text) => text.is_empty(),
        ([b'*', rest @ ..], text) => (0..=text.len()).any(|skip| model(rest, &text[skip..])),
        (_, []) => false,
        ([b'?', rest @ ..], [_, text @ ..]) => model(rest, text),
        ([first, rest @ ..], [byte, text @ ..]) => first == byte && model(rest, text),
    }
}

proptest! {
    #[test]
    fn as_the_model_says(pattern in "[ab?*]{0,8}", text in "[ab]{0,10}") {
        prop_assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), model(pattern.as_bytes(), text.as_bytes()));
    }

    #[test]
    fn any_bytes(pattern in prop::collection::vec(any::<u8>(), 0..20), text in prop::collection::vec(any::<u8>(), 0..20)) {
        matches(&pattern, &text);
    }
}
