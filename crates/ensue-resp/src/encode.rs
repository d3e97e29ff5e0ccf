//! From an answer to the bytes of either protocol version.
//!
//! An answer arrives, its bytes are appended to the caller's buffer. Every answer can be written in both versions:
//! what RESP2 has no type for is written in the nearest one, as Redis does. It does not bound the depth: answers are
//! built by us.

use crate::number;
use ensue_types::Reply;

/// The version that `HELLO` chose for a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProtocolVersion {
    /// What a connection speaks until it says otherwise.
    #[default]
    Resp2,
    /// With maps, sets, doubles, booleans and a null of its own.
    Resp3,
}

impl ProtocolVersion {
    /// The version of this number, if there is one.
    pub fn from_number(number: i64) -> Option<ProtocolVersion> {
        match number {
            2 => Some(ProtocolVersion::Resp2),
            3 => Some(ProtocolVersion::Resp3),
            _ => None,
        }
    }

    /// The number that `HELLO` takes and answers.
    pub fn number(self) -> i64 {
        match self {
            ProtocolVersion::Resp2 => 2,
            ProtocolVersion::Resp3 => 3,
        }
    }
}

/// Appends the bytes of an answer.
pub fn encode(reply: &Reply, version: ProtocolVersion, out: &mut Vec<u8>) {
    let resp3 = version == ProtocolVersion::Resp3;
    match reply {
        Reply::Status(words) => write_line(b'+', words, out),
        Reply::Error(words) => write_line(b'-', words, out),
        Reply::Integer(value) => write_integer(*value, out),
        Reply::Bulk(bytes) => write_bulk(bytes, out),
        Reply::Verbatim(bytes) if resp3 => write_verbatim(bytes, out),
        Reply::Verbatim(bytes) => write_bulk(bytes, out),
        Reply::Nil | Reply::NilArray if resp3 => out.extend_from_slice(b"_\r\n"),
        Reply::Nil => out.extend_from_slice(b"$-1\r\n"),
        Reply::NilArray => out.extend_from_slice(b"*-1\r\n"),
        Reply::Array(items) => write_items(b'*', items, version, out),
        Reply::Set(items) => write_items(if resp3 { b'~' } else { b'*' }, items, version, out),
        Reply::Map(pairs) => write_map(pairs, version, out),
        Reply::Pairs(pairs) => write_pairs(pairs, version, out),
        Reply::Keyed(pairs) => write_keyed(pairs, version, out),
        Reply::Double(value) if resp3 => {
            out.push(b',');
            number::write_f64(*value, out);
            out.extend_from_slice(b"\r\n");
        }
        Reply::Double(value) => {
            let mut text = Vec::new();
            number::write_f64(*value, &mut text);
            write_bulk(&text, out);
        }
        Reply::BigNumber(digits) if resp3 => {
            out.push(b'(');
            out.extend_from_slice(digits);
            out.extend_from_slice(b"\r\n");
        }
        Reply::BigNumber(digits) => write_bulk(digits, out),
        Reply::Boolean(value) if resp3 => out.extend_from_slice(if *value { b"#t\r\n" } else { b"#f\r\n" }),
        Reply::Boolean(value) => write_integer(i64::from(*value), out),
    }
}

/// Appends the bytes of what a client is told without having asked: a push, or in RESP2 an array.
pub fn encode_push(items: &[Reply], version: ProtocolVersion, out: &mut Vec<u8>) {
    let kind = if version == ProtocolVersion::Resp3 { b'>' } else { b'*' };
    write_items(kind, items, version, out);
}

/// Appends a command as a client sends it: an array of bulk strings.
pub fn encode_command<A: AsRef<[u8]>>(args: &[A], out: &mut Vec<u8>) {
    write_header(b'*', args.len(), out);
    for argument in args {
        write_bulk(argument.as_ref(), out);
    }
}

fn write_items(kind: u8, items: &[Reply], version: ProtocolVersion, out: &mut Vec<u8>) {
    write_header(kind, items.len(), out);
    for item in items {
        encode(item, version, out);
    }
}

fn write_map(pairs: &[(Reply, Reply)], version: ProtocolVersion, out: &mut Vec<u8>) {
    match version {
        ProtocolVersion::Resp2 => write_header(b'*', pairs.len() * 2, out),
        ProtocolVersion::Resp3 => write_header(b'%', pairs.len(), out),
    }
    for (key, value) in pairs {
        encode(key, version, out);
        encode(value, version, out);
    }
}

fn write_pairs(pairs: &[(Reply, Reply)], version: ProtocolVersion, out: &mut Vec<u8>) {
    let resp3 = version == ProtocolVersion::Resp3;
    write_header(b'*', if resp3 { pairs.len() } else { pairs.len() * 2 }, out);
    for (first, second) in pairs {
        if resp3 {
            write_header(b'*', 2, out);
        }
        encode(first, version, out);
        encode(second, version, out);
    }
}

fn write_keyed(pairs: &[(Reply, Reply)], version: ProtocolVersion, out: &mut Vec<u8>) {
    if version == ProtocolVersion::Resp3 {
        return write_map(pairs, version, out);
    }
    write_header(b'*', pairs.len(), out);
    for (first, second) in pairs {
        write_header(b'*', 2, out);
        encode(first, version, out);
        encode(second, version, out);
    }
}

fn write_header(kind: u8, number: usize, out: &mut Vec<u8>) {
    out.push(kind);
    number::write_u64(number as u64, out);
    out.extend_from_slice(b"\r\n");
}

fn write_integer(value: i64, out: &mut Vec<u8>) {
    out.push(b':');
    number::write_i64(value, out);
    out.extend_from_slice(b"\r\n");
}

fn write_bulk(bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(bytes.len() + BULK_FRAME_BYTES_MAX);
    write_header(b'$', bytes.len(), out);
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

fn write_verbatim(bytes: &[u8], out: &mut Vec<u8>) {
    write_header(b'=', bytes.len() + VERBATIM_FORMAT.len(), out);
    out.extend_from_slice(VERBATIM_FORMAT);
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// A line may hold a client's own bytes: an end of line among them would let it forge an answer.
fn write_line(kind: u8, words: &str, out: &mut Vec<u8>) {
    out.push(kind);
    let start = out.len();
    out.extend_from_slice(words.as_bytes());
    for byte in &mut out[start..] {
        if matches!(*byte, b'\r' | b'\n') {
            *byte = b' ';
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// Marks the text of a verbatim string as plain.
const VERBATIM_FORMAT: &[u8] = b"txt:";
/// `$`, twenty digits, and two ends of line.
const BULK_FRAME_BYTES_MAX: usize = 25;

#[cfg(test)]
mod tests;
