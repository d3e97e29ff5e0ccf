//! What of answers is shown, and what is asked of which key; the rest is tried by a server in the end-to-end tests.

use super::*;

fn row(kind: &str, bytes: i64) -> Row {
    Row { key: Bytes::from_static(b"k \xff"), kind: kind.into(), ttl_ms: -1, bytes }
}

fn words(asked: &[Args]) -> Vec<String> {
    asked.iter().map(|args| args.iter().map(|word| latin(word)).collect::<Vec<_>>().join("|")).collect()
}

#[test]
fn the_beginning_of_a_value_is_asked_for_by_its_type() {
    assert_eq!(words(&questions(&row("string", 1 << 30))), ["STRLEN|k ÿ", "GETRANGE|k ÿ|0|127"]);
    assert_eq!(words(&questions(&row("hash", 10))), ["HLEN|k ÿ", "HSCAN|k ÿ|0|COUNT|8"]);
    assert_eq!(words(&questions(&row("stream", 10))), ["XLEN|k ÿ", "XREVRANGE|k ÿ|+|-|COUNT|4"]);
    assert!(questions(&row("module", 10)).is_empty());
}

/// One element may be as long as a value may be.
#[test]
fn nothing_is_read_of_a_large_value_but_its_length() {
    for kind in ["hash", "list", "set", "zset", "stream"] {
        assert_eq!(questions(&row(kind, BROWSED_BYTES_MAX)).len(), 2, "{kind}");
        assert_eq!(questions(&row(kind, BROWSED_BYTES_MAX + 1)).len(), 1, "{kind}");
    }
}

#[test]
fn bytes_are_characters_and_long_ones_are_cut() {
    let reply = Reply::Array(vec![Reply::bulk(&b"\x00\xff"[..]), Reply::Integer(7), Reply::Nil]);
    assert_eq!(shown(&reply), json!(["\u{0}\u{ff}", 7, null]));
    assert_eq!(shown(&Reply::bulk(vec![b'x'; 1_000])).as_str().map(str::len), Some(SHOWN_BYTES));
    assert_eq!(shown(&Reply::error("NOPERM no")), json!({ "error": "NOPERM no" }));
}
