//! The words of refusals, to the letter.

use super::*;
use crate::user::tests::{args, user};

#[track_caller]
fn check(rules: &str, words: &str, reply: &'static str, object: &str, reason: Reason) {
    let (user, args) = (user(rules), args(words));
    let spec = ensue_resp::lookup(&args[0]).expect("a known command");
    let call = Call { spec, args: &args, database: KeyspaceId(0) };
    let denied = user.check(&call).expect_err("it is denied");
    assert_eq!(denied.reply(b"alice", &call), Reply::error(reply));
    assert_eq!(denied.object(&call), object);
    assert_eq!(denied.reason(), reason);
}

#[test]
fn words_of_redis() {
    let no_command = "NOPERM User alice has no permissions to run the 'get' command";
    check("", "GET a", no_command, "get", Reason::Command);
    let no_subcommand = "NOPERM User alice has no permissions to run the 'config|set' command";
    check("+config|get", "CONFIG SET a b", no_subcommand, "config|set", Reason::Command);
    check("+get", "GET a", "NOPERM No permissions to access a key", "a", Reason::Key);
    check("+publish", "publish a b", "NOPERM No permissions to access a channel", "a", Reason::Channel);
    let no_database = "NOPERM No permissions to access a database";
    check("+get ~* resetdbs", "GET a", no_database, "0", Reason::Database);
    let no_pattern = "ERR BY option of SORT denied due to insufficient ACL permissions.";
    check("+sort ~a", "SORT a BY b*", no_pattern, "b*", Reason::Key);
}

#[test]
fn what_is_denied_later_says_more() {
    let pattern = Denied::Pattern { place: 1, option: PatternOption::By };
    let all = [
        Denied::Command,
        Denied::Database(KeyspaceId(0)),
        Denied::Key { place: 1 },
        Denied::Key { place: 2 },
        Denied::Channel { place: 1 },
        pattern,
    ];
    assert!(all.is_sorted());
}
