//! The keys of a side, page by page. A key may come twice if the server's table changes meanwhile: none is remembered.

use super::answer;
use super::side::Side;
use crate::import::target::words;
use anyhow::anyhow;
use bytes::Bytes;

/// Keys that a step looks at.
const SCANNED: &str = "500";

pub(crate) struct Walk {
    pattern: Option<String>,
    /// Where the next step begins; nothing at the end.
    cursor: Option<Bytes>,
}

impl Walk {
    pub(crate) fn new(pattern: Option<&str>) -> Walk {
        Walk { pattern: pattern.map(String::from), cursor: Some(Bytes::from_static(b"0")) }
    }

    /// The keys of the next step, each once; nothing at the end.
    pub(crate) fn step(&mut self, side: &mut Side) -> anyhow::Result<Option<Vec<Bytes>>> {
        let Some(cursor) = self.cursor.take() else { return Ok(None) };
        let mut command = words!["SCAN", cursor, "COUNT", SCANNED];
        if let Some(pattern) = &self.pattern {
            command.extend(words!["MATCH", pattern.clone()]);
        }
        let reply = side.ask(command)?;
        let parts = answer::list(&reply).and_then(|parts| match parts {
            [cursor, keys] => Ok((answer::text(cursor), answer::texts(keys)?)),
            _ => Err(answer::unexpected(&reply)),
        });
        let (next, mut keys) = parts.map_err(|words| anyhow!("SCAN: {words}"))?;
        self.cursor = next.filter(|next| &next[..] != b"0");
        keys.sort_unstable();
        keys.dedup();
        Ok(Some(keys))
    }
}
