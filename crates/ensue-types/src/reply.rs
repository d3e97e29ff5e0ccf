//! The shape of an answer to a client, independent of the protocol version that will carry it.

use bytes::Bytes;
use std::borrow::Cow;

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
    /// A set in RESP3, an array in RESP2.
    Set(Vec<Reply>),
    Double(f64),
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
}
