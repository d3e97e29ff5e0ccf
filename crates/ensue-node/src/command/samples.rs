//! One answer of each kind, for those who test how answers are read (`DEBUG PROTOCOL`).

use ensue_types::Reply;

/// The answer of this kind.
pub(crate) fn sample(kind: &[u8]) -> Option<Reply> {
    let counted = || (0..3).map(Reply::Integer).collect::<Vec<_>>();
    Some(match kind {
        b"string" => Reply::bulk("Hello World"),
        b"integer" => Reply::Integer(12345),
        b"double" => Reply::Double(3_141.0 / 1_000.0),
        b"bignum" => Reply::BigNumber("1234567999999999999999999999999999999".into()),
        b"null" => Reply::Nil,
        b"array" => Reply::Array(counted()),
        b"set" => Reply::Set(counted()),
        b"map" => {
            Reply::Map((0..3).map(|number| (Reply::Integer(number), Reply::Boolean(number == 1))).collect())
        }
        b"verbatim" => Reply::Verbatim("This is a verbatim\nstring".into()),
        b"true" => Reply::Boolean(true),
        b"false" => Reply::Boolean(false),
        _ => return None,
    })
}
