//! The shape of an answer to a client, independent of the protocol version that will carry it.

use bytes::Bytes;
use std::borrow::Cow;
use std::hash::{Hash, Hasher};

/// An answer. RESP2 and RESP3 encode the same value differently; commands do not care.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// A simple string such as `OK`.
    Status(Cow<'static, str>),
    /// An error: code, a space, then words, as in `ERR syntax error`. Without the leading dash.
    Error(Cow<'static, str>),
    Integer(i64),
    Bulk(Bytes),
    /// Text that RESP3 marks as readable by people (`INFO`, `CLIENT LIST`); a bulk string in RESP2.
    Verbatim(Bytes),
    Nil,
    /// The null of an aborted transaction: `*-1` in RESP2.
    NilArray,
    Array(Vec<Reply>),
    /// A map in RESP3, a flat array of keys and values in RESP2.
    Map(Vec<(Reply, Reply)>),
    /// An array of arrays of two in RESP3, a flat array in RESP2.
    Pairs(Vec<(Reply, Reply)>),
    /// A map in RESP3, an array of arrays of two in RESP2.
    Keyed(Vec<(Reply, Reply)>),
    /// A set in RESP3, an array in RESP2.
    Set(Vec<Reply>),
    Double(f64),
    /// The digits of a number that is too big for an integer; a bulk string in RESP2.
    BigNumber(Bytes),
    Boolean(bool),
}

impl Reply {
    pub const OK: Reply = Reply::Status(Cow::Borrowed("OK"));

    /// An error with fixed words.
    pub const fn error(words: &'static str) -> Reply {
        Reply::Error(Cow::Borrowed(words))
    }

    /// A bulk string of owned or static bytes.
    pub fn bulk(bytes: impl Into<Bytes>) -> Reply {
        Reply::Bulk(bytes.into())
    }

    pub fn is_error(&self) -> bool {
        matches!(self, Reply::Error(_))
    }

    /// About what it takes when it is encoded, to a client or to another node.
    pub fn encoded_bytes(&self) -> usize {
        FRAME_BYTES
            + match self {
                Reply::Status(words) | Reply::Error(words) => words.len(),
                Reply::Bulk(bytes) | Reply::Verbatim(bytes) | Reply::BigNumber(bytes) => bytes.len(),
                Reply::Array(items) | Reply::Set(items) => items.iter().map(Reply::encoded_bytes).sum(),
                Reply::Map(pairs) | Reply::Pairs(pairs) | Reply::Keyed(pairs) => {
                    pairs.iter().map(|(key, value)| key.encoded_bytes() + value.encoded_bytes()).sum()
                }
                Reply::Integer(_) | Reply::Nil | Reply::NilArray | Reply::Double(_) | Reply::Boolean(_) => 0,
            }
    }
}

/// A kind, a length or a number, and ends of lines.
const FRAME_BYTES: usize = 16;

/// Derived but for `Double`, which hashes as its bits: what is equal only as a number (0 and -0) may hash differently.
impl Hash for Reply {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Reply::Status(text) | Reply::Error(text) => text.hash(state),
            Reply::Integer(number) => number.hash(state),
            Reply::Bulk(bytes) | Reply::Verbatim(bytes) | Reply::BigNumber(bytes) => bytes.hash(state),
            Reply::Nil | Reply::NilArray => {}
            Reply::Array(items) | Reply::Set(items) => items.hash(state),
            Reply::Map(pairs) | Reply::Pairs(pairs) | Reply::Keyed(pairs) => pairs.hash(state),
            Reply::Double(number) => number.to_bits().hash(state),
            Reply::Boolean(truth) => truth.hash(state),
        }
    }
}
