//! Where a message of the Redis protocol or of HTTP/1.1 ends. Bodies are not looked into.
//!
//! On an HTTP message with a length and chunks, with two lengths, or with another coding of its transfer than chunks:
//! refuse it, since two readers may find two ends.

use crate::limits::HTTP_HEAD_MAX;
use ensue_prophecy::limits::HTTP_HEADERS_MAX;

/// What cannot be cut into messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct Unreadable(pub(super) &'static str);

/// Where a reply of the Redis protocol ends, when all of it is there.
pub(super) fn redis_reply_end(bytes: &[u8]) -> Result<Option<usize>, Unreadable> {
    let mut place = 0;
    let mut values = 1_u64;
    while values > 0 {
        let Some(line) = bytes[place..].windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
        let line = &bytes[place..place + line];
        let (kind, rest) = line.split_first().ok_or(Unreadable("an empty line is no reply"))?;
        place += line.len() + 2;
        values -= 1;
        match kind {
            b'+' | b'-' | b':' | b'_' | b'#' | b',' | b'(' => {}
            b'$' | b'=' | b'!' => {
                if let Some(length) = redis_length(rest)? {
                    place += usize::try_from(length).map_err(|_| Unreadable("too long"))?.saturating_add(2);
                    if place > bytes.len() {
                        return Ok(None);
                    }
                }
            }
            b'*' | b'~' | b'>' => values += redis_length(rest)?.unwrap_or(0),
            // What belongs to an attribute is followed by the value itself.
            b'%' => values += 2 * redis_length(rest)?.unwrap_or(0),
            b'|' => values += 2 * redis_length(rest)?.unwrap_or(0) + 1,
            _ => return Err(Unreadable("an unknown kind of reply")),
        }
    }
    Ok(Some(place))
}

fn redis_length(digits: &[u8]) -> Result<Option<u64>, Unreadable> {
    let text = std::str::from_utf8(digits).map_err(|_| Unreadable("a length is a number"))?;
    match text.parse::<i64>() {
        Ok(-1) => Ok(None),
        // More than a response may have is not waited for.
        Ok(length) => match u32::try_from(length) {
            Ok(length) => Ok(Some(u64::from(length))),
            Err(_) => Err(Unreadable("a length is out of bounds")),
        },
        Err(_) => Err(Unreadable("a length is a number")),
    }
}

/// What is known of an HTTP request so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HttpRequest {
    /// The header does not end.
    Begun,
    /// The body does not end, and the client may wait to be told to send it.
    Headed { expects_continue: bool },
    /// It ends here.
    Whole { end: usize, keeps: bool, is_head: bool },
}

pub(super) fn http_request(bytes: &[u8]) -> Result<HttpRequest, Unreadable> {
    // The parser passes over empty lines, which servers read in several ways.
    if matches!(bytes.first(), Some(b'\r' | b'\n')) {
        return Err(Unreadable("an empty line before a request"));
    }
    let mut headers = [httparse::EMPTY_HEADER; HTTP_HEADERS_MAX];
    let mut parsed = httparse::Request::new(&mut headers);
    let head = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(head)) => head,
        Ok(httparse::Status::Partial) if bytes.len() <= HTTP_HEAD_MAX => return Ok(HttpRequest::Begun),
        Ok(httparse::Status::Partial) => return Err(Unreadable("the header is too long")),
        Err(_) => return Err(Unreadable("this is no HTTP/1 request")),
    };
    let (is_head, is_later) = (parsed.method == Some("HEAD"), parsed.version == Some(1));
    let keeps = keeps_open(is_later, parsed.headers);
    let end = match body(parsed.headers)? {
        Body::Absent => Some(head),
        Body::Length(length) => whole(bytes, head, length),
        Body::Chunks => chunks_end(bytes, head)?,
    };
    Ok(match end {
        Some(end) => HttpRequest::Whole { end, keeps, is_head },
        None => HttpRequest::Headed { expects_continue: has_word(parsed.headers, "expect", "100-continue") },
    })
}

/// What is known of an HTTP response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HttpResponse {
    /// It does not end here.
    Begun,
    /// These bytes are a response that another one follows, such as 100 Continue.
    Interim { end: usize },
    /// It ends here, and the connection can be used again.
    Whole { end: usize, keeps: bool },
    /// It ends with its connection.
    UntilClose,
}

pub(super) fn http_response(bytes: &[u8], to_head: bool) -> Result<HttpResponse, Unreadable> {
    let mut headers = [httparse::EMPTY_HEADER; HTTP_HEADERS_MAX];
    let mut parsed = httparse::Response::new(&mut headers);
    let head = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(head)) => head,
        Ok(httparse::Status::Partial) if bytes.len() <= HTTP_HEAD_MAX => return Ok(HttpResponse::Begun),
        Ok(httparse::Status::Partial) => return Err(Unreadable("the header is too long")),
        Err(_) => return Err(Unreadable("this is no HTTP/1 response")),
    };
    let keeps = keeps_open(parsed.version == Some(1), parsed.headers);
    let code = parsed.code.unwrap_or_default();
    if code == 101 {
        return Err(Unreadable("another protocol begins"));
    }
    if (100..200).contains(&code) {
        return Ok(HttpResponse::Interim { end: head });
    }
    let is_empty = to_head || matches!(code, 204 | 304);
    let end = match body(parsed.headers)? {
        _ if is_empty => Some(head),
        Body::Absent => return Ok(HttpResponse::UntilClose),
        Body::Length(length) => whole(bytes, head, length),
        Body::Chunks => chunks_end(bytes, head)?,
    };
    Ok(end.map_or(HttpResponse::Begun, |end| HttpResponse::Whole { end, keeps }))
}

enum Body {
    Absent,
    Length(usize),
    Chunks,
}

fn body(headers: &[httparse::Header<'_>]) -> Result<Body, Unreadable> {
    let mut length = None;
    let mut has_chunks = false;
    for header in headers {
        if header.name.eq_ignore_ascii_case("transfer-encoding") {
            if has_chunks || !header.value.eq_ignore_ascii_case(b"chunked") {
                return Err(Unreadable("an unknown transfer coding"));
            }
            has_chunks = true;
        } else if header.name.eq_ignore_ascii_case("content-length") {
            let is_number = !header.value.is_empty() && header.value.iter().all(u8::is_ascii_digit);
            let text = std::str::from_utf8(header.value).ok().filter(|_| is_number);
            let parsed = text.and_then(|text| text.parse::<usize>().ok());
            let parsed = parsed.ok_or(Unreadable("a length is a number"))?;
            if length.replace(parsed).is_some() {
                return Err(Unreadable("a message has one length"));
            }
        }
    }
    match (length, has_chunks) {
        (Some(_), true) => Err(Unreadable("a message has a length or chunks")),
        (Some(length), false) => Ok(Body::Length(length)),
        (None, true) => Ok(Body::Chunks),
        (None, false) => Ok(Body::Absent),
    }
}

fn whole(bytes: &[u8], head: usize, length: usize) -> Option<usize> {
    head.checked_add(length).filter(|end| *end <= bytes.len())
}

fn chunks_end(bytes: &[u8], head: usize) -> Result<Option<usize>, Unreadable> {
    let mut place = head;
    loop {
        let (used, size) = match httparse::parse_chunk_size(&bytes[place..]) {
            Ok(httparse::Status::Complete(parsed)) => parsed,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => return Err(Unreadable("this is no chunk")),
        };
        place += used;
        if size == 0 {
            break;
        }
        let size = usize::try_from(size).map_err(|_| Unreadable("a chunk is too long"))?;
        let Some(end) = place.checked_add(size).and_then(|end| end.checked_add(2)) else {
            return Err(Unreadable("a chunk is too long"));
        };
        if end > bytes.len() {
            return Ok(None);
        }
        if &bytes[end - 2..end] != b"\r\n" {
            return Err(Unreadable("a chunk does not end where it says"));
        }
        place = end;
    }
    // Lines of a trailer, and an empty one.
    loop {
        let Some(line) = bytes[place..].windows(2).position(|pair| pair == b"\r\n") else {
            return if bytes.len() - place > HTTP_HEAD_MAX {
                Err(Unreadable("the trailer is too long"))
            } else {
                Ok(None)
            };
        };
        place += line + 2;
        if line == 0 {
            return Ok(Some(place));
        }
    }
}

fn keeps_open(is_later: bool, headers: &[httparse::Header<'_>]) -> bool {
    if is_later {
        !has_word(headers, "connection", "close")
    } else {
        has_word(headers, "connection", "keep-alive")
    }
}

fn has_word(headers: &[httparse::Header<'_>], name: &str, word: &str) -> bool {
    let of_name = headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
    let mut words = of_name.flat_map(|header| header.value.split(|byte| *byte == b','));
    words.any(|found| found.trim_ascii().eq_ignore_ascii_case(word.as_bytes()))
}

#[cfg(test)]
mod tests;
