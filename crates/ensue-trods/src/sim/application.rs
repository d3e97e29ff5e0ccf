//! The server application: an ordinary HTTP/1.1 file server, which knows nothing of gateways.

use super::content::{Framing, Object};
use crate::balance::mix;

/// What an application answers that cannot serve at the moment.
pub const ILL_LINE: &str = "HTTP/1.1 503 No\r\n";
pub const ILL_BODY: &[u8] = b"try it again later, please";

/// How a server's answers look.
#[derive(Clone, Debug)]
pub struct Style {
    /// What stands in the header `Server`, whose length may differ between servers.
    pub name: String,
    /// Whether it serves ranges.
    pub ranges: bool,
    /// How often it answers that it cannot.
    pub ill_permille: u64,
}

/// One connection of the application.
#[derive(Debug, Default)]
pub struct Application {
    read: Vec<u8>,
    closed: bool,
}

impl Application {
    /// Takes bytes of the client; returns what to write, and whether to close after it.
    pub fn on_bytes(&mut self, bytes: &[u8], now: u64, style: &Style, objects: &[Object]) -> (Vec<u8>, bool) {
        self.read.extend_from_slice(bytes);
        let mut out = Vec::new();
        while let Some(at) = self.read.windows(4).position(|window| window == b"\r\n\r\n") {
            if self.closed {
                break;
            }
            let head = String::from_utf8_lossy(&self.read[..at + 4]).into_owned();
            self.read.drain(..at + 4);
            self.closed = respond(&head, now, style, objects, &mut out);
        }
        (out, self.closed)
    }
}

/// Appends the response; returns whether the connection is closed after it.
fn respond(head: &str, now: u64, style: &Style, objects: &[Object], out: &mut Vec<u8>) -> bool {
    let path = head.split(' ').nth(1).unwrap_or_default();
    let first = head
        .lines()
        .find_map(|line| line.strip_prefix("Range: bytes=")?.strip_suffix('-')?.parse::<u64>().ok())
        .filter(|_| style.ranges);
    let mut close = head.contains("Connection: close");
    let common = format!("Server: {}\r\nDate: {:012}\r\n", style.name, now / 1_000_000);
    let Some(object) = objects.iter().find(|object| object.path() == path) else {
        out.extend_from_slice(format!("HTTP/1.1 404 No\r\n{common}Content-Length: 0\r\n\r\n").as_bytes());
        return close;
    };
    if mix(now ^ object.number) % 1000 < style.ill_permille {
        out.extend_from_slice(
            format!("{ILL_LINE}{common}Content-Length: {}\r\n\r\n", ILL_BODY.len()).as_bytes(),
        );
        out.extend_from_slice(ILL_BODY);
        return close;
    }
    let total = object.bytes;
    match (object.framing, first) {
        (Framing::Length, Some(first)) if first >= total => {
            let text = format!(
                "HTTP/1.1 416 No\r\n{common}Content-Range: bytes */{total}\r\nContent-Length: 0\r\n\r\n"
            );
            out.extend_from_slice(text.as_bytes());
        }
        (Framing::Length, Some(first)) => {
            let (last, length) = (total - 1, total - first);
            let text = format!(
                "HTTP/1.1 206 Part\r\n{common}Content-Range: bytes {first}-{last}/{total}\r\n\
                 Content-Length: {length}\r\n\r\n"
            );
            out.extend_from_slice(text.as_bytes());
            out.extend_from_slice(&object.body()[usize::try_from(first).expect("an offset in memory")..]);
        }
        (Framing::Length, None) => {
            out.extend_from_slice(
                format!("HTTP/1.1 200 OK\r\n{common}Content-Length: {total}\r\n\r\n").as_bytes(),
            );
            out.extend_from_slice(&object.body());
        }
        (Framing::Chunked, _) => {
            out.extend_from_slice(
                format!("HTTP/1.1 200 OK\r\n{common}Transfer-Encoding: chunked\r\n\r\n").as_bytes(),
            );
            out.extend_from_slice(&object.chunked());
        }
        (Framing::UntilClose, _) => {
            out.extend_from_slice(format!("HTTP/1.1 200 OK\r\n{common}\r\n").as_bytes());
            out.extend_from_slice(&object.body());
            close = true;
        }
    }
    close
}
