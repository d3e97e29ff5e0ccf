//! Patterns of keys, each rule by itself.

use super::*;

fn keys(rules: &str) -> Keys {
    let mut keys = Keys::default();
    rules.split(' ').for_each(|rule| keys.apply(rule.as_bytes()).expect(rule));
    keys
}

#[test]
fn one_pattern_must_allow_all() {
    let keys = keys("%R~a* %W~*b");
    assert!(keys.allows(b"ab", Access::READ_ONLY | Access::ACCESS));
    assert!(keys.allows(b"ab", Access::OVERWRITE | Access::UPDATE));
    assert!(!keys.allows(b"ab", Access::READ_WRITE | Access::ACCESS | Access::UPDATE));
    assert!(keys.allows(b"a", Access::READ_ONLY));
    assert!(!keys.allows(b"c", Access::READ_ONLY));
    assert!(!keys.allows_reading_all());
}

#[test]
fn all_is_one_rule() {
    assert!(keys("~foo %RW~*").allows_all());
    assert!(!keys("%R~*").allows_all());
    assert!(keys("%R~*").allows_reading_all());
    assert!(!keys("%W~*").allows_reading_all());
}

#[test]
fn patterns_are_bounded() {
    let mut keys = Keys::default();
    (0..PATTERNS_MAX).for_each(|nth| keys.apply(format!("~{nth}").as_bytes()).expect("fewer"));
    assert_eq!(keys.apply(b"~more"), Err(RuleError::TooManyPatterns));
    assert_eq!(keys.apply(b"%R~0"), Ok(()));
}
