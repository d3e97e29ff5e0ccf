//! HTTP/1.1. Whole requests and responses arrive; connections, pipelining and TLS are a shell's.
//!
//! On a request: `GET` and `HEAD` without a body are reads, all else is a write. The canonical form holds method,
//! target, version, and every header but the ignored ones, by name; so cookies and authorization make different
//! requests of different users.
//!
//! On a response: the removed headers go, everything else stays as it is, byte by byte. What is not HTTP stays whole.

use super::{Handler, Inspected, RequestError, push_part};
use crate::limits::HTTP_HEADERS_MAX;

/// Request headers that a response does not depend on.
pub const IGNORED_REQUEST_HEADERS: [&str; 3] = ["connection", "date", "keep-alive"];
/// Response headers that correct replicas disagree on. `Set-Cookie` is none of them: without it a login would not
/// work, so a response with a new cookie counts as a change unless the operator decides otherwise.
pub const REMOVED_RESPONSE_HEADERS: [&str; 6] =
    ["age", "connection", "date", "keep-alive", "server-timing", "x-request-id"];

/// The handler, with its lists of header names in lower case.
#[derive(Clone, Debug)]
pub struct HttpHandler {
    ignored: Vec<String>,
    removed: Vec<String>,
}

impl Default for HttpHandler {
    fn default() -> HttpHandler {
        HttpHandler::new(&IGNORED_REQUEST_HEADERS, &REMOVED_RESPONSE_HEADERS)
    }
}

impl HttpHandler {
    /// A handler that ignores these headers of requests and removes these of responses, in any case of letters.
    pub fn new(ignored: &[&str], removed: &[&str]) -> HttpHandler {
        let lower = |names: &[&str]| names.iter().map(|name| name.to_ascii_lowercase()).collect();
        HttpHandler { ignored: lower(ignored), removed: lower(removed) }
    }
}

impl Handler for HttpHandler {
    fn inspect(&self, request: &[u8]) -> Result<Inspected, RequestError> {
        // The parser passes over empty lines, which servers read in several ways.
        if matches!(request.first(), Some(b'\r' | b'\n')) {
            return Err(RequestError::Malformed("an empty line before a request"));
        }
        let mut headers = [httparse::EMPTY_HEADER; HTTP_HEADERS_MAX];
        let mut parsed = httparse::Request::new(&mut headers);
        let head = match parsed.parse(request) {
            Ok(httparse::Status::Complete(head)) => head,
            Ok(httparse::Status::Partial) => return Err(RequestError::Malformed("the header does not end")),
            Err(_) => return Err(RequestError::Malformed("this is no HTTP/1 header")),
        };
        let (method, target) = (parsed.method.unwrap_or_default(), parsed.path.unwrap_or_default());
        let has = |name: &str| parsed.headers.iter().any(|header| header.name.eq_ignore_ascii_case(name));
        // What follows would be no response of HTTP.
        if has("upgrade") {
            return Err(RequestError::ConnectionState("Upgrade".into()));
        }
        let has_body = has("content-length") || has("transfer-encoding");
        if !matches!(method, "GET" | "HEAD") || has_body {
            return Ok(Inspected::Write);
        }
        if request.len() > head {
            return Err(RequestError::Malformed("bytes follow a request without a body"));
        }
        let mut kept: Vec<(String, &[u8])> = parsed
            .headers
            .iter()
            .map(|header| (header.name.to_ascii_lowercase(), header.value))
            .filter(|(name, _)| !self.ignored.contains(name))
            .collect();
        // Stable: lines of one name keep their order, which means something.
        kept.sort_by(|one, other| one.0.cmp(&other.0));
        let mut canonical = Vec::with_capacity(request.len() + 64);
        push_part(&mut canonical, method.as_bytes());
        push_part(&mut canonical, target.as_bytes());
        // A response in chunks is none to HTTP/1.0.
        push_part(&mut canonical, &[parsed.version.unwrap_or_default()]);
        for (name, value) in kept {
            push_part(&mut canonical, name.as_bytes());
            push_part(&mut canonical, value);
        }
        Ok(Inspected::Read { canonical })
    }

    fn canonical_response(&self, response: Vec<u8>) -> Vec<u8> {
        let mut headers = [httparse::EMPTY_HEADER; HTTP_HEADERS_MAX];
        let mut parsed = httparse::Response::new(&mut headers);
        let Ok(httparse::Status::Complete(head)) = parsed.parse(&response) else { return response };
        let is_removed = |line: &[u8]| {
            let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
            self.removed.iter().any(|removed| name.eq_ignore_ascii_case(removed.as_bytes()))
        };
        if !parsed.headers.iter().any(|header| is_removed(header.name.as_bytes())) {
            return response;
        }
        let mut kept = Vec::with_capacity(response.len());
        for (place, line) in response[..head].split_inclusive(|byte| *byte == b'\n').enumerate() {
            if place == 0 || !is_removed(line) {
                kept.extend_from_slice(line);
            }
        }
        kept.extend_from_slice(&response[head..]);
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inspect(request: &str) -> Result<Inspected, RequestError> {
        HttpHandler::default().inspect(request.replace('\n', "\r\n").as_bytes())
    }

    fn response(text: &str) -> String {
        let bytes = text.replace('\n', "\r\n").into_bytes();
        String::from_utf8(HttpHandler::default().canonical_response(bytes)).unwrap().replace("\r\n", "\n")
    }

    #[test]
    fn a_get_without_a_body_is_a_read() {
        assert!(matches!(inspect("GET /a HTTP/1.1\nHost: x\n\n"), Ok(Inspected::Read { .. })));
        assert!(matches!(inspect("HEAD /a HTTP/1.1\nHost: x\n\n"), Ok(Inspected::Read { .. })));
        for write in
            ["POST /a HTTP/1.1\n\n", "PUT /a HTTP/1.1\n\n", "GET /a HTTP/1.1\nContent-Length: 1\n\nx"]
        {
            assert_eq!(inspect(write), Ok(Inspected::Write), "{write}");
        }
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for text in ["", "GET /a HTTP/1.1\nHost: x\n", "nothing\n\n", "GET / HTTP/1.1\n\nGET / HTTP/1.1\n\n"]
        {
            assert!(matches!(inspect(text), Err(RequestError::Malformed(_))), "{text:?}");
        }
        assert!(matches!(inspect("\nHEAD / HTTP/1.1\n\n"), Err(RequestError::Malformed(_))));
        for text in ["GET / HTTP/1.1\nUpgrade: websocket\n\n", "POST / HTTP/1.1\nUpgrade: websocket\n\n"] {
            assert_eq!(inspect(text), Err(RequestError::ConnectionState("Upgrade".into())));
        }
    }

    #[test]
    fn requests_are_one_if_they_differ_in_ignored_headers_and_case_and_order_only() {
        let one = inspect("GET /a HTTP/1.1\nHost: x\nDate: today\nCookie: me\n\n");
        assert_eq!(one, inspect("GET /a HTTP/1.1\ncookie: me\nhost: x\nConnection: close\n\n"));
        for other in [
            "GET /b HTTP/1.1\nHost: x\nCookie: me\n\n",
            "GET /a HTTP/1.1\nHost: x\nCookie: you\n\n",
            "GET /a HTTP/1.1\nHost: x\n\n",
            "HEAD /a HTTP/1.1\nHost: x\nCookie: me\n\n",
            "GET /a HTTP/1.0\nHost: x\nCookie: me\n\n",
        ] {
            assert_ne!(one, inspect(other), "a lying replica could exchange their responses: {other}");
        }
    }

    #[test]
    fn a_response_loses_its_date_and_nothing_else() {
        assert_eq!(
            response("HTTP/1.1 200 OK\nDate: now\nSet-Cookie: a\nETag: 1\n\nDate: stays"),
            "HTTP/1.1 200 OK\nSet-Cookie: a\nETag: 1\n\nDate: stays"
        );
        for whole in ["HTTP/1.1 200 OK\nETag: 1\n\nbody", "no HTTP at all", ""] {
            assert_eq!(response(whole), whole);
        }
    }

    #[test]
    fn the_operator_decides_which_headers_go() {
        let handler = HttpHandler::new(&["User-Agent"], &["Set-Cookie"]);
        let response =
            handler.canonical_response(b"HTTP/1.1 200 OK\r\nset-cookie: a\r\ndate: b\r\n\r\n".to_vec());
        assert_eq!(response, b"HTTP/1.1 200 OK\r\ndate: b\r\n\r\n");
        let one = handler.inspect(b"GET / HTTP/1.1\r\nUser-Agent: a\r\n\r\n");
        assert_eq!(one, handler.inspect(b"GET / HTTP/1.1\r\nuser-agent: b\r\n\r\n"));
    }
}
