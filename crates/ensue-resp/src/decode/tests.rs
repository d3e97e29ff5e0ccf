//! Answers out of bytes: what we encode comes back, the cuts do not matter, and garbage is refused.

use super::*;
use crate::{ProtocolVersion, encode};
use proptest::prelude::*;

fn decode_all(pieces: &[&[u8]]) -> (Vec<Reply>, Option<ParseError>) {
    let mut decoder = Decoder::new();
    let mut buffer = BytesMut::new();
    let mut replies = Vec::new();
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            match decoder.next(&mut buffer) {
                Ok(Some(reply)) => replies.push(reply),
                Ok(None) => break,
                Err(error) => return (replies, Some(error)),
            }
        }
    }
    (replies, None)
}

#[track_caller]
fn check(bytes: &str, expected: Reply) {
    let (replies, error) = decode_all(&[bytes.as_bytes()]);
    assert_eq!((replies, error), (vec![expected], None), "{bytes:?}");
}

#[test]
fn every_kind() {
    check("+OK\r\n", Reply::OK);
    check("+PONG\r\n", Reply::Status("PONG".into()));
    check("-ERR x\r\n", Reply::Error("ERR x".into()));
    check("!5\r\nERR x\r\n", Reply::Error("ERR x".into()));
    check(":-12\r\n", Reply::Integer(-12));
    check("$5\r\na\r\nbc\r\n", Reply::bulk("a\r\nbc"));
    check("=6\r\ntxt:hi\r\n", Reply::Verbatim(Bytes::from("hi")));
    check("(123456789012345678901\r\n", Reply::bulk("123456789012345678901"));
    check("$-1\r\n", Reply::Nil);
    check("_\r\n", Reply::Nil);
    check("*-1\r\n", Reply::NilArray);
    check("*2\r\n:1\r\n*0\r\n", Reply::Array(vec![Reply::Integer(1), Reply::Array(vec![])]));
    check(">1\r\n+message\r\n", Reply::Array(vec![Reply::Status("message".into())]));
    check("~1\r\n:1\r\n", Reply::Set(vec![Reply::Integer(1)]));
    check("%1\r\n+a\r\n:1\r\n", Reply::Map(vec![(Reply::Status("a".into()), Reply::Integer(1))]));
    check(",1.5\r\n", Reply::Double(1.5));
    check(",-inf\r\n", Reply::Double(f64::NEG_INFINITY));
    check("#t\r\n", Reply::Boolean(true));
}

#[test]
fn garbage() {
    let error = |bytes: &str| decode_all(&[bytes.as_bytes()]).1;
    assert_eq!(error("PONG\r\n"), Some(ParseError::UnexpectedReplyType { got: b'P' }));
    assert_eq!(error(":x\r\n"), Some(ParseError::InvalidReplyLine));
    assert_eq!(error(":1\n"), Some(ParseError::InvalidReplyLine));
    assert_eq!(error("#x\r\n"), Some(ParseError::InvalidReplyLine));
    assert_eq!(error("$-2\r\n"), Some(ParseError::InvalidBulkLength));
    assert_eq!(error("=3\r\nabc\r\n"), Some(ParseError::InvalidBulkLength));
    assert_eq!(error("*99999999999\r\n"), Some(ParseError::InvalidMultibulkLength));
    assert_eq!(error(&format!("+{}", "a".repeat(70_000))), Some(ParseError::InvalidReplyLine));
    assert_eq!(error("*268435456\r\n:1\r\n"), None);
}

#[test]
fn the_depth_is_bounded() {
    let nested = |depth: usize| format!("{}:1\r\n", "*1\r\n".repeat(depth));
    assert!(matches!(decode_all(&[nested(DEPTH_MAX).as_bytes()]).0[..], [Reply::Array(_)]));
    assert_eq!(decode_all(&[nested(DEPTH_MAX + 1).as_bytes()]).1, Some(ParseError::ReplyTooDeep));
}

fn any_reply() -> impl Strategy<Value = Reply> {
    let leaf = prop_oneof![
        Just(Reply::OK),
        Just(Reply::Nil),
        "[a-z ]{0,8}".prop_map(|words| Reply::Error(words.into())),
        any::<i64>().prop_map(Reply::Integer),
        any::<bool>().prop_map(Reply::Boolean),
        (-1e9..1e9_f64).prop_map(Reply::Double),
        prop::collection::vec(any::<u8>(), 0..12).prop_map(Reply::bulk),
        prop::collection::vec(any::<u8>(), 0..12).prop_map(|bytes| Reply::Verbatim(bytes.into())),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Reply::Array),
            prop::collection::vec(inner.clone(), 0..4).prop_map(Reply::Set),
            prop::collection::vec((inner.clone(), inner), 0..3).prop_map(Reply::Map),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(replies in prop::collection::vec(any_reply(), 0..4)) {
        let mut bytes = Vec::new();
        for reply in &replies {
            encode(reply, ProtocolVersion::Resp3, &mut bytes);
        }
        let pieces: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(decode_all(&[&bytes]), (replies.clone(), None));
        prop_assert_eq!(decode_all(&pieces), (replies, None));
    }

    #[test]
    fn a_cut_answer_is_left_alone(reply in any_reply(), place in any::<prop::sample::Index>()) {
        let mut bytes = Vec::new();
        encode(&reply, ProtocolVersion::Resp2, &mut bytes);
        let mut buffer = BytesMut::from(&bytes[..place.index(bytes.len())]);
        let before = buffer.clone();
        prop_assert_eq!(decode(&mut buffer), Ok(None));
        prop_assert_eq!(buffer, before);
    }

    #[test]
    fn garbage_does_not_panic(bytes in "[-+:$*%~>,#=!(_0-9a\r\n]{0,60}") {
        let single: Vec<&[u8]> = bytes.as_bytes().chunks(1).collect();
        let (cut, whole) = (decode_all(&single), decode_all(&[bytes.as_bytes()]));
        // Doubles that are no number differ from themselves, so the texts are compared.
        prop_assert_eq!(format!("{cut:?}"), format!("{whole:?}"));
    }
}
