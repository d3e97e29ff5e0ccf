//! A large value, read page by page.

use super::answer::{self, unexpected};
use super::kind::Kind;
use crate::import::target::{Words, words};
use bytes::Bytes;
use ensue_client::Reply;

/// Bytes of a string in a page.
pub(crate) const STRING_BYTES: u64 = 1 << 20;
/// Elements in a page; a server may return some more of what it reads by a cursor.
const ELEMENTS: u64 = 1_000;

/// Where in a value its next page begins.
pub(crate) struct Pages {
    kind: Kind,
    key: Bytes,
    next: Option<Begin>,
}

enum Begin {
    Place(u64),
    Cursor(Bytes),
    Id(Bytes),
}

impl Pages {
    pub(crate) fn new(kind: Kind, key: Bytes) -> Pages {
        let next = match kind {
            Kind::Stream => Begin::Id(Bytes::from_static(b"-")),
            _ if kind.has_cursor() => Begin::Cursor(Bytes::from_static(b"0")),
            _ => Begin::Place(0),
        };
        Pages { kind, key, next: Some(next) }
    }

    /// What reads the next page; nothing at the end.
    pub(crate) fn command(&self) -> Option<Words> {
        let key = self.key.clone();
        Some(match (&self.kind, self.next.as_ref()?) {
            (Kind::String, Begin::Place(begin)) => {
                words!["GETRANGE", key, begin.to_string(), (begin + STRING_BYTES - 1).to_string()]
            }
            (Kind::List, Begin::Place(begin)) => {
                words!["LRANGE", key, begin.to_string(), (begin + ELEMENTS - 1).to_string()]
            }
            (Kind::Hash, Begin::Cursor(cursor)) => {
                words!["HSCAN", key, cursor.clone(), "COUNT", ELEMENTS.to_string()]
            }
            (Kind::Set, Begin::Cursor(cursor)) => {
                words!["SSCAN", key, cursor.clone(), "COUNT", ELEMENTS.to_string()]
            }
            (_, Begin::Cursor(cursor)) => words!["ZSCAN", key, cursor.clone(), "COUNT", ELEMENTS.to_string()],
            (_, Begin::Id(id)) => words!["XRANGE", key, id.clone(), "+", "COUNT", ELEMENTS.to_string()],
            // Bounded counters and what only its server knows: one page.
            (kind, Begin::Place(_)) => kind.whole(&key),
        })
    }

    /// What the page holds. The next command asks for the one behind it.
    pub(crate) fn take(&mut self, reply: Reply) -> Result<Reply, String> {
        let begin = self.next.take();
        if let Reply::Error(words) = &reply {
            return Err(words.to_string());
        }
        match begin {
            Some(Begin::Place(begin)) => {
                let (length, whole) = match (&self.kind, &reply) {
                    (Kind::String, Reply::Bulk(bytes)) => (bytes.len() as u64, STRING_BYTES),
                    (Kind::List, page) => (answer::list(page)?.len() as u64, ELEMENTS),
                    _ => (0, 1),
                };
                self.next = (length == whole).then_some(Begin::Place(begin + whole));
                Ok(reply)
            }
            Some(Begin::Cursor(_)) => {
                let Reply::Array(parts) = reply else { return Err(unexpected(&reply)) };
                let parts = <[Reply; 2]>::try_from(parts);
                let Ok([cursor, page]) = parts else { return Err("an answer that is no page".into()) };
                let cursor = answer::text(&cursor).ok_or_else(|| unexpected(&cursor))?;
                self.next = (&cursor[..] != b"0").then_some(Begin::Cursor(cursor));
                Ok(page)
            }
            Some(Begin::Id(_)) => {
                let entries = answer::list(&reply)?;
                if entries.len() as u64 == ELEMENTS {
                    let last = entries.last().map(answer::entry).transpose()?;
                    self.next = last.and_then(|(id, _)| following(&id)).map(Begin::Id);
                }
                Ok(reply)
            }
            None => Ok(reply),
        }
    }
}

/// The lowest id behind another one. Old servers know no ranges that exclude their ends.
fn following(id: &[u8]) -> Option<Bytes> {
    let (ms, sequence) = std::str::from_utf8(id).ok()?.split_once('-')?;
    let (ms, sequence): (u64, u64) = (ms.parse().ok()?, sequence.parse().ok()?);
    let (ms, sequence) = match sequence.checked_add(1) {
        Some(sequence) => (ms, sequence),
        None => (ms.checked_add(1)?, 0),
    };
    Some(Bytes::from(format!("{ms}-{sequence}")))
}

#[cfg(test)]
mod tests;
