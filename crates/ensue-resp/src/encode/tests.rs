//! Every kind of answer in both versions.

use super::*;
use bytes::Bytes;

#[track_caller]
fn check(reply: Reply, resp2: &str, resp3: &str) {
    for (version, expected) in [(ProtocolVersion::Resp2, resp2), (ProtocolVersion::Resp3, resp3)] {
        let mut out = Vec::new();
        encode(&reply, version, &mut out);
        assert_eq!(out.escape_ascii().to_string(), expected.escape_default().to_string(), "{version:?}");
    }
}

fn one() -> Reply {
    Reply::Integer(1)
}

#[test]
fn every_kind() {
    check(Reply::OK, "+OK\r\n", "+OK\r\n");
    check(Reply::error("ERR syntax error"), "-ERR syntax error\r\n", "-ERR syntax error\r\n");
    check(Reply::Integer(i64::MIN), ":-9223372036854775808\r\n", ":-9223372036854775808\r\n");
    check(Reply::bulk("hello worlds"), "$12\r\nhello worlds\r\n", "$12\r\nhello worlds\r\n");
    check(Reply::bulk(""), "$0\r\n\r\n", "$0\r\n\r\n");
    check(Reply::Verbatim(Bytes::from("hi")), "$2\r\nhi\r\n", "=6\r\ntxt:hi\r\n");
    check(Reply::Nil, "$-1\r\n", "_\r\n");
    check(Reply::NilArray, "*-1\r\n", "_\r\n");
    check(Reply::Array(vec![one(), Reply::Nil]), "*2\r\n:1\r\n$-1\r\n", "*2\r\n:1\r\n_\r\n");
    check(Reply::Array(vec![]), "*0\r\n", "*0\r\n");
    check(Reply::Map(vec![(Reply::bulk("a"), one())]), "*2\r\n$1\r\na\r\n:1\r\n", "%1\r\n$1\r\na\r\n:1\r\n");
    check(Reply::Set(vec![one()]), "*1\r\n:1\r\n", "~1\r\n:1\r\n");
    check(Reply::Double(1.5), "$3\r\n1.5\r\n", ",1.5\r\n");
    check(Reply::Double(f64::NEG_INFINITY), "$4\r\n-inf\r\n", ",-inf\r\n");
    check(Reply::Double(f64::NAN), "$3\r\nnan\r\n", ",nan\r\n");
    check(Reply::Double(1e300), "$6\r\n1e+300\r\n", ",1e+300\r\n");
    check(Reply::Double(0.0), "$1\r\n0\r\n", ",0\r\n");
    let pairs = vec![(Reply::bulk("a"), Reply::Double(0.5)), (Reply::bulk("b"), one())];
    check(
        Reply::Pairs(pairs),
        "*4\r\n$1\r\na\r\n$3\r\n0.5\r\n$1\r\nb\r\n:1\r\n",
        "*2\r\n*2\r\n$1\r\na\r\n,0.5\r\n*2\r\n$1\r\nb\r\n:1\r\n",
    );
    let big = "12345678901234567890";
    check(Reply::BigNumber(big.into()), &format!("$20\r\n{big}\r\n"), &format!("({big}\r\n"));
    check(Reply::Boolean(true), ":1\r\n", "#t\r\n");
    check(Reply::Boolean(false), ":0\r\n", "#f\r\n");
}

#[test]
fn a_line_cannot_be_broken() {
    check(Reply::Error("ERR a\r\n+OK".into()), "-ERR a  +OK\r\n", "-ERR a  +OK\r\n");
    check(Reply::Status("a\nb".into()), "+a b\r\n", "+a b\r\n");
}

#[test]
fn versions_by_number() {
    assert_eq!(ProtocolVersion::from_number(2), Some(ProtocolVersion::Resp2));
    assert_eq!(ProtocolVersion::from_number(3).map(ProtocolVersion::number), Some(3));
    assert_eq!(ProtocolVersion::from_number(4), None);
}
