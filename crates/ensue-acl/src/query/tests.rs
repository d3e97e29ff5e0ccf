//! The answers of `ACL CAT`, `DRYRUN` and `GENPASS`.

use super::*;
use crate::user::tests::{Quick, args};

fn holds(reply: &Reply, name: &str) -> bool {
    let Reply::Array(all) = reply else { panic!("an array") };
    all.contains(&Reply::bulk(name.to_owned()))
}

#[test]
fn cat() {
    assert!(holds(&categories(), "keyspace") && holds(&categories(), "connection"));
    assert!(holds(&members(b"transaction"), "multi") && holds(&members(b"SCRIPTING"), "function|list"));
    assert!(!holds(&members(b"keyspace"), "set"));
    assert_eq!(members(b"NON_EXISTS"), Reply::error("ERR Unknown category 'NON_EXISTS'"));
    assert_eq!(members(b"@read"), Reply::error("ERR Unknown category '@read'"));
}

#[test]
fn dryrun() {
    let mut users = Users::new();
    users.set(b"u", &["+@all", "-config|set", "~v*"], &mut Quick).expect("rules");
    let run = |name: &[u8], words: &str| dry_run(&users, name, &args(words), KeyspaceId(0));
    assert_eq!(run(b"u", "SET v v"), Reply::OK);
    let arity = Reply::error("ERR wrong number of arguments for 'set' command");
    assert_eq!(run(b"u", "SET v"), arity);
    assert_eq!(run(b"no", "GET v"), Reply::error("ERR User 'no' not found"));
    assert_eq!(run(b"u", "no v"), Reply::error("ERR Command 'no' not found"));
    assert_eq!(run(b"u", "GET x"), Reply::bulk("User u has no permissions to access the 'x' key"));
    let denied = Reply::bulk("User u has no permissions to run the 'config|set' command");
    assert_eq!(run(b"u", "CONFIG SET a b"), denied);
}

#[test]
fn passwords_are_made_of_random_bytes() {
    let random = std::array::from_fn(|at| 0x10_u8.wrapping_add(at as u8));
    assert_eq!(genpass(5, &random), Reply::bulk("10"));
    assert_eq!(genpass(32, &random), Reply::bulk("10111213"));
    assert_eq!(genpass_bits(None), Ok(256));
    assert_eq!(genpass_bits(Some(b"4096")), Ok(4_096));
    let words = "ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096";
    for wrong in [&b"-236"[..], b"5000", b"0"] {
        assert_eq!(genpass_bits(Some(wrong)), Err(Reply::error(words)));
    }
    assert_eq!(genpass_bits(Some(b"x")), Err(Reply::error("ERR value is not an integer or out of range")));
}

#[test]
fn how_much_of_the_log() {
    assert_eq!([None, Some(&b"2"[..]), Some(b"-2")].map(log_count), [Ok(10), Ok(2), Ok(0)]);
    assert_eq!(log_count(Some(b"x")), Err(Reply::error("ERR value is not an integer or out of range")));
}
