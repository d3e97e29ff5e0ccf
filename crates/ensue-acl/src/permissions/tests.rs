//! Selectors as text.

use super::*;

#[test]
fn a_selector_is_read_as_it_is_written() {
    let selector = Permissions::of_selector(b"( ~a*  %R~b &c +@read -get db=2 )").expect("a selector");
    let text = selector.describe();
    assert_eq!(text, b"~a* %R~b resetchannels &c db=2 -@all +@read -get".to_vec());
    assert_eq!(Permissions::of_selector(&[&b"("[..], &text, b")"].concat()), Ok(selector));
    assert_eq!(Permissions::of_selector(b"()"), Ok(Permissions::default()));
}

#[test]
fn a_rule_that_would_end_the_selector_is_refused() {
    assert_eq!(Permissions::of_selector(b"(~a) )"), Err(RuleError::Syntax));
    assert_eq!(Permissions::of_selector(b"(+select|) )"), Err(RuleError::Syntax));
}
