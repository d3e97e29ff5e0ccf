//! Names become numbers once, and a session that ended is not continued.

use super::*;

#[test]
fn the_same_name_is_the_same_number() {
    let mut builder = Builder::new();
    let first = builder.write("x", Some("1"));
    let second = builder.write("x", Some("1"));
    assert_eq!(first, second);
    assert_ne!(builder.read("x", None), builder.read("x", Some("(absent)")));
}

#[test]
fn after_its_end_a_name_is_another_session() {
    let mut builder = Builder::new();
    builder.end_session("a");
    let first = builder.session("a");
    assert_eq!(builder.session("a"), first);
    builder.end_session("a");
    let second = builder.session("a");
    assert_ne!(first, second);
    let history = builder.finish();
    assert_eq!(history.session_name(first), "a");
    assert_eq!(history.session_name(second), "a#2");
}
