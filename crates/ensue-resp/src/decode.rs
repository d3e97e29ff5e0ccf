//! From the bytes of a server to answers: the client's side of the protocol, in both versions.
//!
//! Bytes arrive in a buffer, cut anyhow; whole answers leave, their bulk strings as slices of the buffer. It promises
//! to look at each element once however the answer was cut, to build nothing before the answer is whole, and to
//! refuse an answer that nests deeper than ours do. Pushes come out as arrays and big numbers as bulk strings; it
//! does not decode attributes or streamed aggregates, which no server of ours sends.

use crate::{ParseError, number};
use bytes::{Bytes, BytesMut};
use ensue_types::{Reply, limits};
use std::borrow::Cow;

/// The deepest nesting of aggregates that is read.
pub const DEPTH_MAX: usize = 16;
/// Longest bulk string that is read: as much as any Redis server sends.
pub const REPLY_BULK_BYTES_MAX: usize = 512 << 20;
/// Most elements of one aggregate.
pub const REPLY_ELEMENTS_MAX: usize = 1 << 28;

/// Takes a whole answer off the front of the buffer, or nothing if it has not arrived.
///
/// Begins anew at each call; a [`Decoder`] remembers how far it came.
pub fn decode(buffer: &mut BytesMut) -> Result<Option<Reply>, ParseError> {
    Decoder::new().next(buffer)
}

/// What is known of the answer at the front of a buffer. One a connection.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    /// Bytes of the answer that have been looked at.
    position: usize,
    /// For every aggregate that is open at this position: the elements still missing.
    open: Vec<usize>,
}

impl Decoder {
    /// A decoder for a connection that has received nothing yet.
    pub fn new() -> Decoder {
        Decoder::default()
    }

    /// Takes the next whole answer off the front of the buffer, or nothing if it has not arrived.
    ///
    /// The caller may append to the buffer between two calls and must not change it otherwise.
    pub fn next(&mut self, buffer: &mut BytesMut) -> Result<Option<Reply>, ParseError> {
        if !self.measure(buffer)? {
            return Ok(None);
        }
        let bytes = buffer.split_to(self.position).freeze();
        self.position = 0;
        Builder { bytes: &bytes, position: 0 }.value(0).map(Some)
    }

    /// Moves over whole elements until the answer ends.
    fn measure(&mut self, bytes: &[u8]) -> Result<bool, ParseError> {
        loop {
            let Some((header, length)) = read_header(&bytes[self.position..])? else { return Ok(false) };
            let after = self.position + length;
            match header {
                Header::Bulk { length, .. } => {
                    if bytes.len() < after + length + TERMINATOR_BYTES {
                        return Ok(false);
                    }
                    self.position = after + length + TERMINATOR_BYTES;
                }
                Header::Aggregate { elements, .. } if elements > 0 => {
                    if self.open.len() == DEPTH_MAX {
                        return Err(ParseError::ReplyTooDeep);
                    }
                    self.open.push(elements);
                    self.position = after;
                    continue;
                }
                _ => self.position = after,
            }
            if self.close_complete() {
                return Ok(true);
            }
        }
    }

    /// Counts one whole element and closes every aggregate that it completes; true if the answer is whole.
    fn close_complete(&mut self) -> bool {
        while let Some(missing) = self.open.last_mut() {
            *missing -= 1;
            if *missing > 0 {
                return false;
            }
            self.open.pop();
        }
        true
    }
}

/// The first line of an element.
enum Header<'a> {
    Status(&'a [u8]),
    Error(&'a [u8]),
    /// A number too big for an integer.
    BigNumber(&'a [u8]),
    Integer(i64),
    Double(f64),
    Boolean(bool),
    Nil,
    NilArray,
    Bulk {
        kind: BulkKind,
        length: usize,
    },
    Aggregate {
        kind: AggregateKind,
        elements: usize,
    },
}

#[derive(Clone, Copy)]
enum BulkKind {
    Plain,
    Verbatim,
    Error,
}

#[derive(Clone, Copy)]
enum AggregateKind {
    Array,
    Set,
    Map,
}

/// Reads the line at the front of the bytes; also says how long it is. Nothing if it has not arrived whole.
fn read_header(bytes: &[u8]) -> Result<Option<(Header<'_>, usize)>, ParseError> {
    let Some(&kind) = bytes.first() else { return Ok(None) };
    if !b"+-:$*_%~>,#=!(".contains(&kind) {
        return Err(ParseError::UnexpectedReplyType { got: kind });
    }
    let window = &bytes[..bytes.len().min(limits::INLINE_BYTES_MAX)];
    let Some(end) = window.iter().position(|&byte| byte == b'\n') else {
        let endless = bytes.len() >= limits::INLINE_BYTES_MAX;
        return if endless { Err(ParseError::InvalidReplyLine) } else { Ok(None) };
    };
    let Some((b'\r', line)) = bytes[1..end].split_last() else {
        return Err(ParseError::InvalidReplyLine);
    };
    Ok(Some((header_of(kind, line)?, end + 1)))
}

fn header_of(kind: u8, line: &[u8]) -> Result<Header<'_>, ParseError> {
    Ok(match kind {
        b'+' => Header::Status(line),
        b'-' => Header::Error(line),
        b'(' => Header::BigNumber(line),
        b':' => Header::Integer(number::parse_i64(line).ok_or(ParseError::InvalidReplyLine)?),
        b',' => Header::Double(parse_double(line).ok_or(ParseError::InvalidReplyLine)?),
        b'_' => Header::Nil,
        b'#' => match line {
            b"t" => Header::Boolean(true),
            b"f" => Header::Boolean(false),
            _ => return Err(ParseError::InvalidReplyLine),
        },
        b'$' if line == b"-1" => Header::Nil,
        b'*' if line == b"-1" => Header::NilArray,
        b'$' => Header::Bulk { kind: BulkKind::Plain, length: bulk_length(line, 0)? },
        b'!' => Header::Bulk { kind: BulkKind::Error, length: bulk_length(line, 0)? },
        b'=' => Header::Bulk { kind: BulkKind::Verbatim, length: bulk_length(line, VERBATIM_FORMAT_BYTES)? },
        b'%' => Header::Aggregate { kind: AggregateKind::Map, elements: 2 * element_count(line)? },
        b'~' => Header::Aggregate { kind: AggregateKind::Set, elements: element_count(line)? },
        _ => Header::Aggregate { kind: AggregateKind::Array, elements: element_count(line)? },
    })
}

fn bulk_length(line: &[u8], length_min: usize) -> Result<usize, ParseError> {
    number::parse_i64(line)
        .and_then(|length| usize::try_from(length).ok())
        .filter(|length| (length_min..=REPLY_BULK_BYTES_MAX).contains(length))
        .ok_or(ParseError::InvalidBulkLength)
}

fn element_count(line: &[u8]) -> Result<usize, ParseError> {
    number::parse_i64(line)
        .and_then(|count| usize::try_from(count).ok())
        .filter(|&count| count <= REPLY_ELEMENTS_MAX)
        .ok_or(ParseError::InvalidMultibulkLength)
}

fn parse_double(line: &[u8]) -> Option<f64> {
    std::str::from_utf8(line).ok()?.parse().ok()
}

/// Turns the bytes of a whole answer, already measured, into values.
struct Builder<'a> {
    bytes: &'a Bytes,
    position: usize,
}

impl Builder<'_> {
    /// The depth was bounded when the answer was measured, so the recursion is.
    fn value(&mut self, depth: usize) -> Result<Reply, ParseError> {
        debug_assert!(depth <= DEPTH_MAX, "measured before");
        let bytes = self.bytes;
        let (header, length) = read_header(&bytes[self.position..])?.ok_or(ParseError::InvalidReplyLine)?;
        let start = self.position + length;
        self.position = start;
        Ok(match header {
            Header::Status(b"OK") => Reply::OK,
            Header::Status(line) => Reply::Status(owned_text(line)),
            Header::Error(line) => Reply::Error(owned_text(line)),
            Header::BigNumber(line) => Reply::Bulk(bytes.slice_ref(line)),
            Header::Integer(value) => Reply::Integer(value),
            Header::Double(value) => Reply::Double(value),
            Header::Boolean(value) => Reply::Boolean(value),
            Header::Nil => Reply::Nil,
            Header::NilArray => Reply::NilArray,
            Header::Bulk { kind, length } => {
                self.position += length + TERMINATOR_BYTES;
                let content = bytes.slice(start..start + length);
                match kind {
                    BulkKind::Plain => Reply::Bulk(content),
                    BulkKind::Verbatim => Reply::Verbatim(content.slice(VERBATIM_FORMAT_BYTES..)),
                    BulkKind::Error => Reply::Error(owned_text(&content)),
                }
            }
            Header::Aggregate { kind, elements } => self.aggregate(kind, elements, depth + 1)?,
        })
    }

    fn aggregate(&mut self, kind: AggregateKind, elements: usize, depth: usize) -> Result<Reply, ParseError> {
        if let AggregateKind::Map = kind {
            let mut pairs = Vec::with_capacity(elements / 2);
            for _ in 0..elements / 2 {
                pairs.push((self.value(depth)?, self.value(depth)?));
            }
            return Ok(Reply::Map(pairs));
        }
        let mut items = Vec::with_capacity(elements);
        for _ in 0..elements {
            items.push(self.value(depth)?);
        }
        Ok(match kind {
            AggregateKind::Set => Reply::Set(items),
            _ => Reply::Array(items),
        })
    }
}

fn owned_text(line: &[u8]) -> Cow<'static, str> {
    Cow::Owned(String::from_utf8_lossy(line).into_owned())
}

/// `\r\n`.
const TERMINATOR_BYTES: usize = 2;
/// `txt:` or `mkd:` before the text of a verbatim string.
const VERBATIM_FORMAT_BYTES: usize = 4;

#[cfg(test)]
mod tests;
