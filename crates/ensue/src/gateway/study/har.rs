//! HAR 1.2: what a browser recorded, as JSON. Bad files give errors that say where.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ensue_prophecy::handler::Handler;
use ensue_prophecy::handler::http::HttpHandler;
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes of one recording. It is held in memory, as JSON, while it is read.
const HAR_BYTES_MAX: u64 = 1 << 30;

/// Why a recording cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum HarError {
    #[error("cannot be read")]
    Io(#[from] std::io::Error),
    #[error("is longer than {HAR_BYTES_MAX} bytes")]
    TooLong,
    #[error("is no JSON")]
    Json(#[from] serde_json::Error),
    #[error("is no HAR recording: it has no list log.entries")]
    NoEntries,
    #[error("entry {entry} has no {field}")]
    Missing { entry: usize, field: &'static str },
    #[error("the content of {0} is no base64")]
    Content(String),
}

/// A recording.
#[derive(Debug)]
pub(super) struct Recording {
    pages: Vec<Value>,
    entries: Vec<Value>,
}

/// A read request with its response.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchange<'a> {
    pub(super) url: &'a str,
    status: u64,
    response: &'a Value,
}

impl Recording {
    pub(super) fn read(path: &Path) -> Result<Recording, HarError> {
        let mut bytes = Vec::new();
        File::open(path)?.take(HAR_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > HAR_BYTES_MAX {
            return Err(HarError::TooLong);
        }
        Recording::parse(&bytes)
    }

    /// Some browsers begin the file with a byte order mark.
    pub(super) fn parse(bytes: &[u8]) -> Result<Recording, HarError> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let mut har: Value = serde_json::from_slice(bytes)?;
        let mut list = |name: &str| har.pointer_mut(name).map(Value::take);
        let pages = list("/log/pages");
        let Some(Value::Array(entries)) = list("/log/entries") else { return Err(HarError::NoEntries) };
        let pages = if let Some(Value::Array(pages)) = pages { pages } else { Vec::new() };
        Ok(Recording { pages, entries })
    }

    /// The hosts of the pages whose titles are URLs, as browsers make them.
    pub(super) fn page_hosts(&self) -> Vec<String> {
        let titles = self.pages.iter().filter_map(|page| page.get("title")?.as_str());
        titles.filter_map(host).map(|host| host.trim_start_matches("www.").to_string()).collect()
    }

    /// The requests that a sketcher would take for reads and that were answered, in the order of the file.
    pub(super) fn reads(&self) -> impl Iterator<Item = Result<Exchange<'_>, HarError>> {
        self.entries.iter().enumerate().filter_map(|(entry, value)| Exchange::of(entry, value).transpose())
    }
}

impl<'a> Exchange<'a> {
    fn of(entry: usize, value: &'a Value) -> Result<Option<Exchange<'a>>, HarError> {
        let missing = |field| HarError::Missing { entry, field };
        let text = |path, field| value.pointer(path).and_then(Value::as_str).ok_or(missing(field));
        let (method, url) =
            (text("/request/method", "request.method")?, text("/request/url", "request.url")?);
        let response = value.get("response").ok_or(missing("response"))?;
        let status = response.get("status").and_then(Value::as_u64).ok_or(missing("response.status"))?;
        let has_body = value.pointer("/request/postData").is_some_and(|body| !body.is_null());
        // Status 0 stands for a request that was cut off or answered by the browser.
        let is_read = method == "GET" && !has_body && status != 0;
        Ok(is_read.then_some(Exchange { url, status, response }))
    }

    /// Whether the URL's host is this one or below it.
    pub(super) fn is_of(&self, own: &str) -> bool {
        host(self.url).is_some_and(|host| {
            host.strip_suffix(own).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        })
    }

    /// The bytes that stand for the response: status and body, and headers if they are wanted.
    pub(super) fn sketched(&self, with_headers: bool) -> Result<Vec<u8>, HarError> {
        let mut out = format!("HTTP/1.1 {:03} -\r\n", self.status).into_bytes();
        let headers = self.response.get("headers").and_then(Value::as_array);
        for header in headers.into_iter().flatten().filter(|_| with_headers) {
            let part = |name: &str| header.get(name).and_then(Value::as_str).unwrap_or_default();
            // HTTP/2 has names that HTTP/1 has not, such as `:status`.
            if !part("name").starts_with(':') {
                out.extend_from_slice(format!("{}: {}\r\n", part("name"), part("value")).as_bytes());
            }
        }
        out.extend_from_slice(b"\r\n");
        let content = self.response.get("content");
        let part = |name: &str| content.and_then(|content| content.get(name)).and_then(Value::as_str);
        let text = part("text").unwrap_or_default();
        if part("encoding") == Some("base64") {
            let body = STANDARD.decode(text).map_err(|_| HarError::Content(self.url.into()))?;
            out.extend_from_slice(&body);
        } else {
            out.extend_from_slice(text.as_bytes());
        }
        Ok(HttpHandler::default().canonical_response(out))
    }
}

/// The host of a URL, without its port.
fn host(url: &str) -> Option<&str> {
    let rest = url.split_once("://")?.1;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    host.split(':').next().filter(|host| !host.is_empty())
}
