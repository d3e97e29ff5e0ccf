//! Tests of both ways to print, against what redis-cli prints.

use super::*;

fn nested() -> Reply {
    Reply::Array(vec![
        Reply::bulk("a \"b\"\n\u{1}"),
        Reply::Integer(7),
        Reply::Array(vec![Reply::Nil, Reply::OK]),
        Reply::Array(vec![]),
    ])
}

fn text(print: fn(&Reply, &mut Vec<u8>), reply: &Reply) -> String {
    let mut out = Vec::new();
    print(reply, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn people_get_numbers_quotes_and_kinds() {
    let expected = "1) \"a \\\"b\\\"\\n\\x01\"\n2) (integer) 7\n3) 1) (nil)\n   2) OK\n4) (empty array)\n";
    assert_eq!(text(for_people, &nested()), expected);
    assert_eq!(text(for_people, &Reply::error("ERR no")), "(error) ERR no\n");
    let map = Reply::Map(vec![(Reply::bulk("k"), Reply::Integer(1))]);
    assert_eq!(text(for_people, &map), "1# \"k\" => (integer) 1\n");
}

#[test]
fn programs_get_values_alone() {
    assert_eq!(text(raw, &nested()), "a \"b\"\n\u{1}\n7\n\nOK\n\n");
    assert_eq!(text(raw, &Reply::bulk("x")), "x\n");
}
