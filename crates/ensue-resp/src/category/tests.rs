//! Categories, against those of Redis 7.2.

use super::*;
use crate::command::lookup;

fn of(name: &str) -> String {
    let (name, subcommand) = name.split_once('|').map_or((name, None), |(name, sub)| (name, Some(sub)));
    of_spec(lookup(name.as_bytes()).expect("a known command"), subcommand).join(" ")
}

#[test]
fn as_redis_has_them() {
    for (name, expected) in [
        ("get", "@read @string @fast"),
        ("sort", "@write @set @sortedset @list @slow @dangerous"),
        ("sort_ro", "@read @set @sortedset @list @slow @dangerous"),
        ("eval_ro", "@slow @scripting"),
        ("wait", "@slow @blocking @connection"),
        ("role", "@admin @fast @dangerous"),
        ("waitaof", "@slow @blocking @connection"),
        ("lastsave", "@admin @fast @dangerous"),
        ("bgsave", "@admin @slow @dangerous"),
        ("bgrewriteaof", "@admin @slow @dangerous"),
        ("replicaof", "@admin @slow @dangerous"),
        ("slaveof", "@admin @slow @dangerous"),
        ("failover", "@admin @slow @dangerous"),
        ("asking", "@fast @connection"),
        ("script|debug", "@slow @scripting"),
        ("swapdb", "@keyspace @write @fast @dangerous"),
        ("client|id", "@slow @connection"),
        ("client|kill", "@admin @slow @dangerous @connection"),
        ("config|set", "@admin @slow @dangerous"),
        ("config|help", "@slow"),
        ("acl|whoami", "@slow"),
        ("acl|setuser", "@admin @slow @dangerous"),
        ("function|load", "@write @slow @scripting"),
        ("function|list", "@slow @scripting"),
        ("xgroup|create", "@write @stream @slow"),
        ("pubsub|help", "@slow"),
        ("causal|token", "@fast"),
        ("causal|discarded", "@read @admin @fast @dangerous"),
        ("debug", "@admin @slow @dangerous"),
        ("flushall", "@keyspace @write @slow @dangerous"),
        ("publish", "@pubsub @fast"),
    ] {
        assert_eq!(of(name), expected, "{name}");
    }
}

#[test]
fn names_and_members() {
    assert_eq!(named(b"HASH"), Some("@hash"));
    assert_eq!(named(b"@hash"), Some("@hash"));
    assert_eq!(named(b"@@hash"), None);
    assert_eq!(named(b"@"), None);
    let names = of_category(b"admin").expect("a category");
    assert!(names.iter().any(|name| name == "client|kill"));
    assert!(!names.iter().any(|name| name == "client|id"));
    for category in CATEGORIES {
        assert!(!of_category(category.as_bytes()).expect("a category").is_empty(), "{category}");
    }
}
