//! The little of HTTP/1.1 that the metrics port speaks: the head of a `GET` comes in, a whole answer goes out.
//!
//! Bytes arrive, and a request leaves, or a refusal with its status. Nothing here has a socket. A request has no body,
//! and a connection one request: every answer says that it is the last.

use crate::bounds::METRICS_HEAD_BYTES_MAX;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::{Engine as _, alphabet};
use bytes::Bytes;
use std::fmt;
use std::fmt::Write;

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) path: String,
    /// The names and values after the question mark, decoded.
    pub(super) query: Vec<(String, String)>,
    /// By which name the client knows this machine, without the port.
    pub(super) host: String,
    /// It wants OpenMetrics, and not what came before it.
    pub(super) takes_openmetrics: bool,
    /// As whom it wants to be answered.
    pub(super) credentials: Option<Credentials>,
}

/// A user and a password.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Credentials {
    pub(super) user: Bytes,
    pub(super) password: Bytes,
}

/// Without the password.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

/// Why a request is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It is no HTTP.
    Malformed(&'static str),
    /// Another machine, while nobody needs a password.
    NotFromHere,
    /// Nobody logged in, or nobody whose password this is.
    Unauthenticated,
    /// Somebody who may not do that.
    Forbidden,
    /// By a name that is not one of this node.
    Misdirected,
    /// Too many passwords wait to be compared.
    Busy,
    /// A core that does not answer.
    Silent,
    NotFound,
    /// Another method than `GET`.
    Method,
    /// It did not come in time.
    Timeout,
    /// It has a body.
    Body,
    HeadTooLong,
    /// Another version than 1.0 and 1.1.
    Version,
    TooManyConnections,
}

impl Refusal {
    /// The line of the status, and what it says to people.
    pub(super) fn words(self) -> (&'static str, &'static str) {
        match self {
            Refusal::Malformed(why) => ("400 Bad Request", why),
            Refusal::NotFromHere => (
                "403 Forbidden",
                "only this machine is answered as long as the user 'default' has no password: set one, or \
                 'metrics-unauthenticated yes' where everybody who reaches this port may read the figures",
            ),
            Refusal::Unauthenticated => ("401 Unauthorized", "log in as a user of this node"),
            Refusal::Forbidden => ("403 Forbidden", "this user may not see that"),
            Refusal::Misdirected => (
                "421 Misdirected Request",
                "this node is not known by that name: use an address, or put the name into 'metrics-hosts'",
            ),
            Refusal::Busy => (UNAVAILABLE, "too many passwords wait to be compared, try again"),
            Refusal::Silent => (UNAVAILABLE, "the first core of this node does not answer"),
            Refusal::NotFound => (
                "404 Not Found",
                "there is /, /metrics, /healthz, /readyz, /v1/state, /v1/keys, /v1/conflicts and /v1/bdbs",
            ),
            Refusal::Method => ("405 Method Not Allowed", "there is only GET"),
            Refusal::Timeout => ("408 Request Timeout", "the request took too long"),
            Refusal::Body => ("413 Content Too Large", "a request has no body"),
            Refusal::HeadTooLong => ("431 Request Header Fields Too Large", "the head is too long"),
            Refusal::Version => ("505 HTTP Version Not Supported", "this is HTTP/1.1"),
            Refusal::TooManyConnections => ("503 Service Unavailable", "too many connections, try again"),
        }
    }

    pub(super) fn answer(self) -> Vec<u8> {
        let (status, words) = self.words();
        encode(status, TEXT, &format!("{words}\n"))
    }
}

pub(super) const OK: &str = "200 OK";
pub(super) const UNAVAILABLE: &str = "503 Service Unavailable";
pub(super) const TEXT: &str = "text/plain; charset=utf-8";

/// What a browser may do with any answer: what comes from this port it may use on a page of this port, and nothing that
/// stands in an answer is run, guessed to be something else, put into somebody's frame, or told to another site.
const GUARDS: &str = "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n\
    X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n";

/// An answer, which is the last of its connection.
pub(super) fn encode(status: &str, content_type: &str, body: &str) -> Vec<u8> {
    let mut answer = format!("HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n");
    match &status[..3] {
        "401" => answer.push_str("WWW-Authenticate: Basic realm=\"ensue\", charset=\"UTF-8\"\r\n"),
        "405" => answer.push_str("Allow: GET\r\n"),
        _ => {}
    }
    // Writing to a string cannot fail.
    let _ = write!(answer, "Content-Length: {}\r\n", body.len());
    answer.push_str(GUARDS);
    answer.push_str("Cache-Control: no-store\r\nConnection: close\r\n\r\n");
    answer.push_str(body);
    answer.into_bytes()
}

/// Reads the head of a request; nothing as long as its end is missing.
pub(super) fn parse(bytes: &[u8]) -> Result<Option<Request>, Refusal> {
    let Some(end) = bytes.windows(END.len()).position(|window| window == END) else {
        return if bytes.len() >= METRICS_HEAD_BYTES_MAX { Err(Refusal::HeadTooLong) } else { Ok(None) };
    };
    if end > METRICS_HEAD_BYTES_MAX {
        return Err(Refusal::HeadTooLong);
    }
    let head = std::str::from_utf8(&bytes[..end]).map_err(|_| Refusal::Malformed("the head is no text"))?;
    if head.replace("\r\n", "").contains(|letter: char| letter.is_control() && letter != '\t') {
        return Err(Refusal::Malformed("a control character stands in the head"));
    }
    let mut lines = head.split("\r\n");
    let (path, query, version) = request_line(lines.next().unwrap_or_default())?;
    let mut request = Request { path, query, ..Request::default() };
    let mut hosts = 0;
    for line in lines {
        let (name, value) = field(line)?;
        match name.to_ascii_lowercase().as_str() {
            "host" => {
                hosts += 1;
                request.host = host_of(value).into();
            }
            "accept" => request.takes_openmetrics |= value.contains("application/openmetrics-text"),
            "authorization" => request.credentials = Some(credentials(value)?),
            "content-length" if value == "0" => {}
            "content-length" | "transfer-encoding" => return Err(Refusal::Body),
            _ => {}
        }
    }
    match (version, hosts) {
        (_, 1) | (Version::OneZero, 0) => Ok(Some(request)),
        _ => Err(Refusal::Malformed("there must be one Host")),
    }
}

const END: &[u8] = b"\r\n\r\n";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    OneZero,
    OneOne,
}

type Query = Vec<(String, String)>;

fn request_line(line: &str) -> Result<(String, Query, Version), Refusal> {
    let words: Vec<&str> = line.split(' ').collect();
    let [method, target, version] = words[..] else {
        return Err(Refusal::Malformed("the first line is no request"));
    };
    if !is_token(method) {
        return Err(Refusal::Malformed("the method is no word"));
    }
    let version = match version {
        "HTTP/1.1" => Version::OneOne,
        "HTTP/1.0" => Version::OneZero,
        _ if version.starts_with("HTTP/") => return Err(Refusal::Version),
        _ => return Err(Refusal::Malformed("the first line is no request")),
    };
    if method != "GET" {
        return Err(Refusal::Method);
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    if !path.starts_with('/') {
        return Err(Refusal::Malformed("the target is no path"));
    }
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((decoded(name)?, decoded(value)?))
    });
    let query = pairs.collect::<Option<Query>>().ok_or(Refusal::Malformed("the query is badly escaped"))?;
    Ok((path.into(), query, version))
}

fn field(line: &str) -> Result<(&str, &str), Refusal> {
    let (name, value) = line.split_once(':').ok_or(Refusal::Malformed("a field has no colon"))?;
    match is_token(name) {
        true => Ok((name, value.trim_matches([' ', '\t']))),
        false => Err(Refusal::Malformed("the name of a field is no word")),
    }
}

/// Whether it is filled up at its end is of no account.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// `Basic`, and a name and a password in base 64. Of several lines the last one counts.
fn credentials(value: &str) -> Result<Credentials, Refusal> {
    let malformed = Refusal::Malformed("only basic authentication is spoken here");
    let (scheme, rest) = value.split_once(' ').ok_or(malformed)?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return Err(malformed);
    }
    let bytes = BASE64.decode(rest.trim_matches(' ')).map_err(|_| malformed)?;
    let colon = bytes.iter().position(|byte| *byte == b':').ok_or(malformed)?;
    let bytes = Bytes::from(bytes);
    Ok(Credentials { user: bytes.slice(..colon), password: bytes.slice(colon + 1..) })
}

/// As RFC 9110 has it.
fn is_token(word: &str) -> bool {
    let is_mark = |byte: u8| b"!#$%&'*+-.^_`|~".contains(&byte);
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || is_mark(byte))
}

/// `[::1]:9100` and `name:9100` without the port.
fn host_of(value: &str) -> &str {
    match value.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(rest),
        None => value.split(':').next().unwrap_or(value),
    }
}

/// Without `%41` and `+`; nothing if what follows a percent sign is no byte, or all of it no text.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let (high, low) = (digit(rest.next()?)?, digit(rest.next()?)?);
                (high * 16 + low) as u8
            }
            b'+' => b' ',
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests;
