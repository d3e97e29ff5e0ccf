//! Patterns of channels, each rule by itself.

use super::*;

#[test]
fn a_pattern_is_compared_to_the_letter() {
    let mut channels = Channels::default();
    channels.add(b"news.*").expect("a pattern");
    channels.add(b"news.*").expect("the same");
    assert_eq!(channels.rules(), [b"&news.*".to_vec()]);
    assert!(channels.allows(Channel::Literal(b"news.a")));
    assert!(channels.allows(Channel::Pattern(b"news.*")));
    assert!(!channels.allows(Channel::Pattern(b"news.a")));
    channels.allow_all();
    assert!(channels.allows(Channel::Pattern(b"*")));
    assert_eq!(channels.add(b"x"), Err(RuleError::ChannelAfterAll));
    channels.reset();
    assert!(!channels.allows(Channel::Literal(b"news.a")));
}
