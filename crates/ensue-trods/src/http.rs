//! What TRODS must know of HTTP/1.1: where heads end, how long bodies are, and how a request for a range is written.
//!
//! Nothing here is strict: what is not understood makes its exchange unprotected, and the server judges it.

mod chunked;
#[cfg(test)]
mod tests;

pub use chunked::ChunkScanner;

/// The head of a request for an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The head as the client sent it, with the empty line.
    pub head: Vec<u8>,
    /// Target and host: what names the object.
    pub object: Vec<u8>,
    /// Whether the connection is to be closed after the response.
    pub close: bool,
    /// Whether a header selects among variants or parts, so that the object's name is not all.
    pub selects: bool,
}

/// How the body of a response ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// After so many bytes.
    Length(u64),
    /// With the chunk of length 0.
    Chunked,
    /// With the connection.
    UntilClose,
}

/// The bytes of a partial response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first byte.
    pub first: u64,
    /// The byte after the last.
    pub end: u64,
    /// Length of the whole object.
    pub total: u64,
}

/// The head of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The head with the empty line.
    pub head: Vec<u8>,
    /// Status code.
    pub status: u16,
    /// How the body ends.
    pub body: Body,
    /// Whether the server closes after the body.
    pub close: bool,
    /// Which bytes of the object a partial response has.
    pub range: Option<Range>,
    /// When the object was changed, in the server's words.
    pub modified: Option<Vec<u8>>,
    /// Whether the body depends on headers of the request.
    pub varies: bool,
}

/// What a prefix of a stream is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head<T> {
    /// The head is not complete yet.
    Partial,
    /// A complete head.
    Complete(T),
    /// Nothing that is followed here.
    Other,
}

const END: &[u8] = b"\r\n\r\n";

/// Where the head at the start of `bytes` ends.
enum End {
    /// Not here.
    Missing,
    /// After so many bytes, with its empty line.
    At(usize),
    /// At a line that ends without carriage return: servers take it, and a gateway that waits for more would not.
    Loose,
}

fn head_end(bytes: &[u8]) -> End {
    let strict = bytes.windows(END.len()).position(|window| window == END).map(|at| at + END.len());
    let bare = |window: &[u8]| window.starts_with(b"\n\n") || window == b"\n\r\n";
    let loose = bytes.windows(3).position(bare).map(|at| at + 3);
    match (strict, loose) {
        (Some(strict), Some(loose)) if strict <= loose => End::At(strict),
        (Some(strict), None) => End::At(strict),
        (_, Some(_)) => End::Loose,
        (None, None) if bytes.ends_with(b"\n\n") => End::Loose,
        (None, None) => End::Missing,
    }
}

fn lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    head.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

/// Name and value of each header field.
fn fields(head: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    lines(head).skip(1).filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        Some((line[..colon].trim_ascii(), line[colon + 1..].trim_ascii()))
    })
}

fn field<'a>(head: &'a [u8], name: &str) -> Option<&'a [u8]> {
    fields(head).find(|(found, _)| found.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
}

fn number(bytes: &[u8]) -> Option<u64> {
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

fn lists(value: &[u8], word: &str) -> bool {
    value.split(|byte| *byte == b',').any(|part| part.trim_ascii().eq_ignore_ascii_case(word.as_bytes()))
}

/// Whether the connection ends after this message, by its version and its `Connection` header.
fn closes(head: &[u8], version_1_0: bool) -> bool {
    match field(head, "connection") {
        Some(value) if lists(value, "close") => true,
        Some(value) if lists(value, "keep-alive") => false,
        _ => version_1_0,
    }
}

/// Reads the request at the start of `bytes`.
#[must_use]
pub fn request(bytes: &[u8], bytes_max: usize) -> Head<Request> {
    let start = &bytes[..bytes.len().min(4)];
    if !b"GET ".starts_with(start) {
        return Head::Other;
    }
    let length = match head_end(bytes) {
        End::At(length) => length,
        End::Missing if bytes.len() < bytes_max => return Head::Partial,
        End::Missing | End::Loose => return Head::Other,
    };
    let head = &bytes[..length];
    let mut words = lines(head).next().unwrap_or_default().split(|byte| *byte == b' ');
    let (Some(_), Some(target), Some(version)) = (words.next(), words.next(), words.next()) else {
        return Head::Other;
    };
    let has_body = field(head, "content-length").is_some_and(|value| value != b"0")
        || field(head, "transfer-encoding").is_some()
        || field(head, "upgrade").is_some();
    // A part of a part would need its own arithmetic: such an exchange is passed through.
    if length > bytes_max || has_body || field(head, "range").is_some() {
        return Head::Other;
    }
    let mut object = target.to_vec();
    object.push(b' ');
    object.extend_from_slice(field(head, "host").unwrap_or_default());
    let selecting = ["cookie", "authorization", "if-none-match", "if-modified-since", "if-match"];
    Head::Complete(Request {
        object,
        close: closes(head, version == b"HTTP/1.0"),
        selects: selecting.iter().any(|name| field(head, name).is_some()),
        head: head.to_vec(),
    })
}

/// Reads the response at the start of `bytes`.
#[must_use]
pub fn response(bytes: &[u8], bytes_max: usize) -> Head<Response> {
    let start = &bytes[..bytes.len().min(7)];
    if !b"HTTP/1.".starts_with(start) {
        return Head::Other;
    }
    let length = match head_end(bytes) {
        End::At(length) => length,
        End::Missing if bytes.len() < bytes_max => return Head::Partial,
        End::Missing | End::Loose => return Head::Other,
    };
    let head = &bytes[..length];
    let mut words = lines(head).next().unwrap_or_default().split(|byte| *byte == b' ');
    let version_1_0 = words.next() == Some(b"HTTP/1.0");
    let Some(status) = words.next().and_then(number).and_then(|status| u16::try_from(status).ok()) else {
        return Head::Other;
    };
    if length > bytes_max || status < 200 {
        return Head::Other;
    }
    let body = match (field(head, "transfer-encoding"), field(head, "content-length")) {
        _ if matches!(status, 204 | 304) => Body::Length(0),
        (Some(coding), _) if coding.eq_ignore_ascii_case(b"chunked") => Body::Chunked,
        (Some(_), _) => return Head::Other,
        (None, Some(value)) => match number(value) {
            Some(length) => Body::Length(length),
            None => return Head::Other,
        },
        (None, None) => Body::UntilClose,
    };
    Head::Complete(Response {
        head: head.to_vec(),
        status,
        body,
        close: body == Body::UntilClose || closes(head, version_1_0),
        range: field(head, "content-range").and_then(content_range),
        modified: field(head, "last-modified").map(<[u8]>::to_vec),
        varies: field(head, "vary").is_some() || field(head, "content-encoding").is_some(),
    })
}

/// Whether two responses are to one object in one state, as far as their heads tell: then the bytes of one body may
/// follow those of the other.
#[must_use]
pub fn agree(one: &Response, other: &Response) -> bool {
    let both = one.modified.is_some() && other.modified.is_some();
    one.status == other.status && one.body == other.body && (!both || one.modified == other.modified)
}

/// The bytes of `bytes 7-99/100`; of `bytes */100` there are none, after the last.
fn content_range(value: &[u8]) -> Option<Range> {
    let value = value.strip_prefix(b"bytes ")?;
    let slash = value.iter().position(|byte| *byte == b'/')?;
    let total = number(&value[slash + 1..])?;
    let range = &value[..slash];
    if range == b"*" {
        return Some(Range { first: total, end: total, total });
    }
    let dash = range.iter().position(|byte| *byte == b'-')?;
    let end = number(&range[dash + 1..])?.checked_add(1)?;
    Some(Range { first: number(&range[..dash])?, end, total })
}

/// The request that fetches the same object from byte `first` on; from 0 on, it asks for no range.
#[must_use]
pub fn range_request(head: &[u8], first: u64, close: bool) -> Vec<u8> {
    let replaced = ["connection", "range", "if-range"];
    let mut out = lines(head).next().unwrap_or_default().to_vec();
    out.extend_from_slice(b"\r\n");
    for (name, value) in fields(head) {
        if !replaced.iter().any(|other| name.eq_ignore_ascii_case(other.as_bytes())) {
            out.extend_from_slice(name);
            out.extend_from_slice(b": ");
            out.extend_from_slice(value);
            out.extend_from_slice(b"\r\n");
        }
    }
    if first > 0 {
        out.extend_from_slice(format!("Range: bytes={first}-\r\n").as_bytes());
    }
    out.extend_from_slice(if close {
        b"Connection: close\r\n\r\n"
    } else {
        b"Connection: keep-alive\r\n\r\n"
    });
    out
}

/// The head of a request for an object, made of its name alone.
#[must_use]
pub fn request_of_object(object: &[u8]) -> Vec<u8> {
    let space = object.iter().position(|byte| *byte == b' ').unwrap_or(object.len());
    let host = object.get(space + 1..).unwrap_or_default();
    [b"GET ", &object[..space], b" HTTP/1.1\r\nHost: ", host, b"\r\n\r\n"].concat()
}

/// The head with blanks before its empty line, which clients ignore, so that it is `length` bytes long. `None` if it
/// is longer already.
#[must_use]
pub fn padded(head: &[u8], length: usize) -> Option<Vec<u8>> {
    let blanks = length.checked_sub(head.len())?;
    let (fields, end) = head.split_at_checked(head.len().checked_sub(END.len())?)?;
    let mut out = fields.to_vec();
    out.resize(fields.len() + blanks, b' ');
    out.extend_from_slice(end);
    Some(out)
}
