//! Values as commands.

use super::*;
use ensue_rdb::{Consumer, Pending, StreamEntry};
use ensue_types::Score;

fn b(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn lines(content: &Content, deadline_ms: Option<u64>) -> Vec<String> {
    let commands = commands(&b("k"), content, deadline_ms, 1_000);
    let line = |words: Words| {
        words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect::<Vec<_>>()
    };
    commands.into_iter().map(|words| line(words).join(" ")).collect()
}

#[test]
fn each_type_has_its_command() {
    let pair = |name, value| (b(name), b(value));
    for (content, expected) in [
        (Value::Text(b("v")), vec!["SET k v PXAT 5"]),
        (Value::List(vec![b("a"), b("a")]), vec!["RPUSH k a a", "PEXPIREAT k 5"]),
        (Value::Set(vec![b("a")]), vec!["SADD k a", "PEXPIREAT k 5"]),
        (Value::Hash(vec![pair("f", "v")]), vec!["HSET k f v", "PEXPIREAT k 5"]),
        (Value::Sorted(vec![(Score::ONE, b("a"))]), vec!["ZADD k 1 a", "PEXPIREAT k 5"]),
        (Value::Set(vec![]), vec![]),
    ] {
        assert_eq!(lines(&Content::Value(content), Some(5)), expected);
    }
}

#[test]
fn large_values_come_in_pieces() {
    let many = Value::List((0..2_500).map(|number| b(&number.to_string())).collect());
    assert_eq!(lines(&Content::Value(many), None).len(), 3);
    let long = Value::Set(vec![Bytes::from(vec![b'x'; 700 << 10]); 3]);
    assert_eq!(lines(&Content::Value(long), None).len(), 3);
    let key = Bytes::from(vec![b'k'; 300 << 10]);
    let short = Content::Value(Value::Set(["a", "b", "c", "d"].map(b).into()));
    assert_eq!(commands(&key, &short, None, 1_000).len(), 2, "an entry has the key with each member");
}

#[test]
fn deadlines_of_fields_are_tried() {
    let field = |name, deadline_ms| ExpiringField { name: b(name), value: b("v"), deadline_ms };
    let fields = vec![field("a", None), field("b", Some(2_000)), field("c", Some(999))];
    assert_eq!(lines(&Content::Expiring(fields), None), ["HSET k a v b v", "HPEXPIREAT k 2000 FIELDS 1 b"]);
}

#[test]
fn a_stream_has_its_groups() {
    let id = |ms| StreamId { ms, sequence: 1 };
    let stream = Stream {
        entries: vec![StreamEntry { id: id(7), fields: vec![(b("f"), b("v"))] }],
        last_id: id(9),
        max_deleted_id: id(8),
        entries_added: 3,
        groups: vec![Group {
            name: b("g"),
            last_id: id(7),
            entries_read: Some(1),
            consumers: vec![Consumer { name: b("ann"), seen_ms: 0, active_ms: None }],
            pending: vec![Pending { id: id(7), consumer: b("ann"), delivered_ms: 77, deliveries: 2 }],
        }],
    };
    assert_eq!(
        lines(&Content::Stream(stream), None),
        [
            "XADD k 7-1 f v",
            "XSETID k 9-1 ENTRIESADDED 3 MAXDELETEDID 8-1",
            "XGROUP CREATE k g 7-1 ENTRIESREAD 1",
            "XGROUP CREATECONSUMER k g ann",
            "XCLAIM k g ann 0 7-1 TIME 77 RETRYCOUNT 2 JUSTID FORCE",
        ]
    );
    let empty = Stream { last_id: id(4), entries_added: 1, ..Stream::default() };
    assert_eq!(
        lines(&Content::Stream(empty), None),
        ["XADD k MAXLEN 0 4-1 x y", "XSETID k 4-1 ENTRIESADDED 1 MAXDELETEDID 0-0"]
    );
}
