//! The registry: changes, versions and answers.

use super::*;
use crate::rule_error::RuleError;
use crate::user::tests::Quick;

#[test]
fn a_wrong_rule_changes_nothing() {
    let mut users = Users::new();
    let version = users.version();
    let error = users.set(b"alice", &["on", "%Y~foo"], &mut Quick).expect_err("a wrong rule");
    assert_eq!(error.reply(), Reply::error("ERR Error in ACL SETUSER modifier '%Y~foo': Syntax error"));
    assert!(users.user(b"alice").is_none());
    assert_eq!(users.version(), version);
    users.set(b"alice", &["on", "+get"], &mut Quick).expect("rules");
    let before = users.list();
    let error = users.set(b"alice", &["off", "+nope"], &mut Quick).expect_err("a wrong rule");
    let expected = "ERR Error in ACL SETUSER modifier '+nope': Unknown command or category name in ACL";
    assert_eq!(error.reply(), Reply::error(expected));
    assert_eq!(users.list(), before);
    let error = users.set(b"alice", &["on", "(+PING", "(+SELECT", "(+DEL"], &mut Quick).expect_err("open");
    let expected = "ERR Unmatched parenthesis in acl selector starting at '(+PING'.";
    assert_eq!(error.reply(), Reply::error(expected));
    let error = users.set(b"alice", &["(+PING", "(+SELECT", ")"], &mut Quick).expect_err("wrong");
    let expected = "ERR Error in ACL SETUSER modifier '(+PING (+SELECT )': Syntax error";
    assert_eq!(error.reply(), Reply::error(expected));
    for name in [&b"a a"[..], b"a\0", b""] {
        assert_eq!(users.set(name, &["on"], &mut Quick).err(), Some(SetError::Name));
    }
    assert_eq!(SetError::Name.reply(), Reply::error("ERR Usernames can't contain spaces or null characters"));
    let error = SetError::Rule { rule: b"a\r\nb".to_vec(), error: RuleError::Syntax };
    assert_eq!(error.reply(), Reply::error("ERR Error in ACL SETUSER modifier 'a  b': Syntax error"));
}

#[test]
fn a_session_knows_when_its_user_is_stale() {
    let mut users = Users::new();
    let first = users.set(b"alice", &["on"], &mut Quick).expect("rules");
    assert!(users.is_current(&first));
    users.set(b"bob", &["on"], &mut Quick).expect("rules");
    assert!(users.is_current(&first));
    let version = users.version();
    let second = users.set(b"alice", &["off"], &mut Quick).expect("rules");
    assert!(users.version() > version);
    assert!(!users.is_current(&first) && users.is_current(&second));
    assert!(first.is_on() && !second.is_on());
    let version = users.version();
    assert_eq!(users.delete(&["alice", "nobody"]).expect("not default").len(), 1);
    assert!(users.version() > version && !users.is_current(&second));
    let again = users.set(b"alice", &["off"], &mut Quick).expect("rules");
    assert!(users.is_current(&again) && !users.is_current(&second));
}

#[test]
fn the_default_user_stays() {
    let mut users = Users::new();
    users.set(b"bob", &["on"], &mut Quick).expect("rules");
    let refused = users.delete(&["bob", "default"]).expect_err("default");
    assert_eq!(refused, Reply::error("ERR The 'default' user cannot be removed"));
    assert_eq!(users.names(), Reply::Array(vec![Reply::bulk("bob"), Reply::bulk("default")]));
    assert!(users.default_user().allows_all());
    assert_eq!(users.describe(b"nobody"), Reply::Nil);
    assert!(matches!(users.describe(b"bob"), Reply::Map(_)));
    users.set(b"default", &["off", "-@all"], &mut Quick).expect("rules");
    assert!(!users.default_user().is_on());
}
