//! ACL files: what they say, and what is said of wrong ones.

use super::*;
use crate::user::tests::Quick;

const FILE: &str = "user alice on allcommands allkeys &* >alice\n\
    user bob on -@all +@set +acl ~set* &* >bob\r\n\
    \n  \n\
    user carol off (+get ~rw*) (%W~w* +set)\n\
    user default on nopass ~* &* +@all\n";

#[test]
fn a_file_replaces_all_users() {
    let mut users = Users::new();
    users.set(b"old", &["on"], &mut Quick).expect("rules");
    let gone = users.load("users.acl", FILE.as_bytes(), &mut Quick).expect("a file");
    assert_eq!(gone.iter().map(|user| user.name().clone()).collect::<Vec<_>>(), ["old"]);
    let names = ["alice", "bob", "carol", "default"].map(Reply::bulk);
    assert_eq!(users.names(), Reply::Array(names.to_vec()));
    assert!(users.user(b"alice").expect("loaded").accepts(b"alice"));
    // What is saved is what is loaded, and those who stay as they were are the same.
    let (saved, version) = (users.save(), users.version());
    assert!(users.load("users.acl", &saved, &mut Quick).expect("a file").is_empty());
    assert_eq!((users.save(), users.version()), (saved, version));
}

#[test]
fn without_a_default_user_it_is_unrestricted() {
    let mut users = Users::new();
    users.set(b"default", &["off", "-@all"], &mut Quick).expect("rules");
    users.load("users.acl", b"user alice on", &mut Quick).expect("a file");
    assert!(users.default_user().allows_all() && users.default_user().is_on());
}

#[test]
fn all_errors_are_told_and_nothing_changes() {
    let mut users = Users::new();
    users.set(b"alice", &["on"], &mut Quick).expect("rules");
    let before = users.save();
    let text = "user alice on\nfoo\nuser bob +nope >a #b %Y~a +@nope\nuser\nuser alice off\nuser c (+get\n";
    let error = users.load("users.acl", text.as_bytes(), &mut Quick).expect_err("a wrong file");
    let unknown = "Unknown command or category name in ACL";
    let expected = [
        "users.acl:2 should start with user keyword followed by the username. ".to_owned(),
        format!("users.acl:3: Error in applying operation '+nope': {unknown}. "),
        format!("users.acl:3: {}. ", RuleError::PasswordHash),
        format!("users.acl:3: Error in applying operation '+@nope': {unknown}. "),
        "users.acl:4 should start with user keyword followed by the username. ".to_owned(),
        "WARNING: Duplicate user 'alice' found on line 5. ".to_owned(),
        "users.acl:6: Unmatched parenthesis in selector definition. ".to_owned(),
        "WARNING: ACL errors detected, no change to the previously active ACL rules was performed".to_owned(),
    ];
    assert_eq!(error.to_string(), expected.concat());
    assert_eq!(error.reply(), Reply::Error(format!("ERR {}", expected.concat()).into()));
    assert_eq!(users.save(), before);
}

#[test]
fn directives() {
    let mut users = Users::new();
    let directives = [(7, "alice on >a +@read ~*"), (9, "default on nopass ~* +@all")];
    users.load_directives("ensue.conf", &directives, &mut Quick).expect("directives");
    assert!(users.user(b"alice").expect("loaded").accepts(b"a"));
    let error =
        users.load_directives("ensue.conf", &[(7, "foo"), (9, "foo")], &mut Quick).expect_err("twice");
    assert!(error.to_string().starts_with("WARNING: Duplicate user 'foo' found on line 9. "), "{error}");
}

#[test]
fn where_channels_are_open_by_default_a_user_may_use_all_that_says_nothing_of_them() {
    let text =
        b"user a on +get (+set)\nuser b on resetchannels &x +get\nuser c reset on (resetchannels &y +set)\n";
    let mut users = Users::new();
    users.open_channels(true);
    users.load("users.acl", text, &mut Quick).expect("a right file");
    let saved = String::from_utf8(users.save()).expect("text");
    assert_eq!(
        saved,
        "user a on sanitize-payload &* -@all +get (&* -@all +set)\n\
         user b on sanitize-payload resetchannels &x -@all +get\n\
         user c on sanitize-payload &* -@all (resetchannels &y -@all +set)\n\
         user default on nopass sanitize-payload ~* &* +@all\n"
    );
    // Written down, it is the same whatever the default is.
    for opens in [false, true] {
        let mut others = Users::new();
        others.open_channels(opens);
        others.load("users.acl", saved.as_bytes(), &mut Quick).expect("a right file");
        assert_eq!(String::from_utf8(others.save()).expect("text"), saved);
    }
}
