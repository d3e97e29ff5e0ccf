//! `DEBUG POPULATE`: strings for a test, written as a client would write them, so many at once.

use crate::session::plan::Plan;
use bytes::Bytes;
use ensue_resp::number;
use ensue_types::{Reply, limits};

/// Strings, and bytes of their values, that one step writes.
const STEP: u64 = 512;
const STEP_BYTES: usize = 4 << 20;

/// What is left to be written.
#[derive(Clone, Debug)]
pub(crate) struct Populating {
    next: u64,
    count: u64,
    prefix: Bytes,
    /// Of each value; 0 is as long as its words.
    size: usize,
}

impl Populating {
    /// Reads `<count> [<prefix>] [<size>]`.
    pub(crate) fn new(words: &[Bytes]) -> Result<Populating, Reply> {
        let number = |word: &Bytes| number::parse_i64(word).and_then(|number| u64::try_from(number).ok());
        let count = number(&words[0]).ok_or(NOT_POSITIVE)?;
        let prefix = words.get(1).cloned().unwrap_or(Bytes::from_static(b"key"));
        let size = words.get(2).map_or(Some(0), number).ok_or(NOT_POSITIVE)?;
        let size = usize::try_from(size).ok().filter(|size| *size <= limits::BULK_BYTES_MAX);
        Ok(Populating { next: 0, count, prefix, size: size.ok_or(TOO_LONG)? })
    }

    /// The next strings, each of which is written unless it is there; nothing when all are.
    pub(crate) fn next_step(&mut self, spread: u16) -> Option<Plan> {
        let spec = ensue_resp::lookup(b"setnx").filter(|_| self.next < self.count)?;
        let mut plan = Plan::single(spread);
        let (end, mut bytes) = (self.count.min(self.next + STEP), 0);
        while self.next < end && bytes < STEP_BYTES {
            let key = [&self.prefix[..], b":", self.next.to_string().as_bytes()].concat();
            let mut value = format!("value:{}", self.next).into_bytes();
            if self.size > 0 {
                value.resize(self.size, 0);
            }
            bytes += value.len();
            plan.add(spec, vec![Bytes::from_static(b"setnx"), key.into(), value.into()]);
            self.next += 1;
        }
        Some(plan)
    }
}

const NOT_POSITIVE: Reply = Reply::error("ERR value is out of range, must be positive");
const TOO_LONG: Reply = Reply::error("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
