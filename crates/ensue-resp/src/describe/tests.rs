//! What `COMMAND` answers, against the shapes that Redis 7.0.15 gives.

use super::*;
use crate::{ProtocolVersion, encode};

fn ask(words: &str) -> Reply {
    let args: Vec<Bytes> = words.split(' ').map(|word| Bytes::copy_from_slice(word.as_bytes())).collect();
    command(&args)
}

fn resp3(reply: &Reply) -> String {
    let mut out = Vec::new();
    encode(reply, ProtocolVersion::Resp3, &mut out);
    String::from_utf8_lossy(&out).replace("\r\n", " ")
}

#[track_caller]
fn check(words: &str, expected: &str) {
    assert_eq!(resp3(&ask(words)), expected);
}

#[test]
fn a_row_has_the_bytes_of_redis() {
    check(
        "COMMAND INFO get nope",
        "*2 *10 $3 get :2 ~2 +readonly +fast :1 :1 :1 ~3 +@read +@string +@fast ~0 ~1 %3 $5 flags ~2 +RO +access \
         $12 begin_search %2 $4 type $5 index $4 spec %1 $5 index :1 $9 find_keys %2 $4 type $5 range $4 spec %3 \
         $7 lastkey :0 $7 keystep :1 $5 limit :0 *0 _ ",
    );
}

#[test]
fn every_row_has_ten_elements() {
    let Reply::Array(rows) = ask("COMMAND") else { panic!("not an array") };
    assert_eq!(rows.len(), TABLE.len());
    for row in &rows {
        assert!(matches!(row, Reply::Array(elements) if elements.len() == 10));
    }
    assert_eq!(ask("COMMAND COUNT"), Reply::Integer(rows.len() as i64));
    assert_eq!(ask("COMMAND INFO"), Reply::Array(rows));
}

#[test]
fn docs() {
    let Reply::Map(entries) = ask("COMMAND DOCS GET nope config|get client") else { panic!("not a map") };
    let names: Vec<String> = entries.iter().map(|(name, _)| resp3(name)).collect();
    assert_eq!(names, ["$3 get ", "$10 config|get ", "$6 client "]);
    let get = resp3(&entries[0].1);
    assert!(
        get.starts_with("%4 $7 summary $19 The value of a key. $5 since $5 1.0.0 $5 group $6 string "),
        "{get}"
    );
    assert!(resp3(&entries[2].1).contains("$11 subcommands %18 $14 client|caching %3 "));
}

#[test]
fn list() {
    check("COMMAND LIST FILTERBY PATTERN HSET*", "*3 $4 hset $6 hsetex $6 hsetnx ");
    check("COMMAND LIST FILTERBY ACLCAT transaction", "*5 $7 discard $4 exec $5 multi $7 unwatch $5 watch ");
    check("COMMAND LIST FILTERBY ACLCAT nope", "*0 ");
    check("COMMAND LIST FILTERBY PATTERN client|s*", "*2 $14 client|setinfo $14 client|setname ");
    check(
        "COMMAND LIST FILTERBY PATTERN config*",
        "*6 $6 config $10 config|get $11 config|help $16 config|resetstat $14 config|rewrite $10 config|set ",
    );
    check("COMMAND LIST FILTERBY MODULE nope", "*0 ");
    for words in ["FOO", "FILTERBY", "FILTERBY FOO x"] {
        check(&format!("COMMAND LIST {words}"), "-ERR syntax error ");
    }
}

#[test]
fn get_keys() {
    check("COMMAND GETKEYS MSET a 1 b 2", "*2 $1 a $1 b ");
    check("COMMAND GETKEYSANDFLAGS GET a", "*1 *2 $1 a ~2 +RO +access ");
    check("COMMAND GETKEYSANDFLAGS", "-ERR wrong number of arguments for 'command|getkeysandflags' command ");
    check(
        "COMMAND GETKEYSANDFLAGS LMOVE a b LEFT RIGHT",
        "*2 *2 $1 a ~3 +RW +access +delete *2 $1 b ~2 +RW +insert ",
    );
    check("COMMAND GETKEYSANDFLAGS SORT a STORE b", "*2 *2 $1 a ~2 +RO +access *2 $1 b ~2 +OW +update ");
    check("COMMAND GETKEYS EVAL x 0", "*0 ");
    check("COMMAND GETKEYS EVAL x 2 a", "-ERR Number of keys can't be greater than number of args ");
    check("COMMAND GETKEYS NOPE a", "-ERR Invalid command specified ");
    check("COMMAND GETKEYS SCAN 0", "-ERR The command has no key arguments ");
    check("COMMAND GETKEYS GET a b", "-ERR Invalid number of arguments specified for command ");
    check("COMMAND GETKEYS PING", "-ERR wrong number of arguments for 'command|getkeys' command ");
}

#[test]
fn bad_subcommands() {
    check("COMMAND FOO", "-ERR unknown subcommand 'FOO'. Try COMMAND HELP. ");
    check("COMMAND COUNT x", "-ERR wrong number of arguments for 'command|count' command ");
}
