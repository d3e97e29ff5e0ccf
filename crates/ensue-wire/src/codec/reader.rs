//! Takes integers, byte strings and lists off a body, within their bounds.
//!
//! Whatever the bytes are, it neither panics nor reserves memory for what they only announce.

use crate::error::{Excess, Malformed};
use crate::limits::{self, Bound};
use bytes::Bytes;

/// Items reserved for at once; a longer list grows as its items are read.
const ITEMS_RESERVED_MAX: usize = 1024;

pub(super) struct Reader<'a> {
    body: &'a Bytes,
    at: usize,
    items: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(body: &'a Bytes) -> Reader<'a> {
        Reader { body, at: 0, items: 0 }
    }

    /// Nothing may be left.
    pub(super) fn finish(self) -> Result<(), Malformed> {
        match self.remaining() {
            0 => Ok(()),
            count => Err(Malformed::Trailing { count }),
        }
    }

    pub(super) fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    pub(super) fn u16(&mut self) -> Result<u16, Malformed> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(super) fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(super) fn i64(&mut self) -> Result<i64, Malformed> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    pub(super) fn bool(&mut self) -> Result<bool, Malformed> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            value => Err(Malformed::UnknownKind { what: "truth value", value }),
        }
    }

    /// A length and that many bytes, as a part of a snapshot read of the body.
    pub(super) fn bytes(&mut self, bound: Bound) -> Result<Bytes, Malformed> {
        let length = self.length(bound)?;
        let start = self.at;
        self.take(length)?;
        Ok(self.body.slice(start..start + length))
    }

    /// The same, borrowed.
    pub(super) fn slice(&mut self, bound: Bound) -> Result<&'a [u8], Malformed> {
        let length = self.length(bound)?;
        self.take(length)
    }

    /// The same, as text.
    pub(super) fn text(&mut self, bound: Bound) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.slice(bound)?).map_err(|_| Malformed::NotText)
    }

    /// A count and that many items, each of which takes at least so many bytes.
    pub(super) fn list<T>(
        &mut self,
        bound: Bound,
        item_bytes_min: usize,
        mut item: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let count = self.length(bound)?;
        self.items = self.items.saturating_add(count);
        check(limits::ITEMS, self.items)?;
        let needed = count.saturating_mul(item_bytes_min);
        if needed > self.remaining() {
            return Err(Malformed::Truncated { needed, remaining: self.remaining() });
        }
        let mut list = Vec::with_capacity(count.min(ITEMS_RESERVED_MAX));
        for _ in 0..count {
            list.push(item(self)?);
        }
        Ok(list)
    }

    /// A 1 and the value, or a 0.
    pub(super) fn option<T>(
        &mut self,
        present: impl FnOnce(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Option<T>, Malformed> {
        if self.bool()? { present(self).map(Some) } else { Ok(None) }
    }

    fn length(&mut self, bound: Bound) -> Result<usize, Malformed> {
        let length = usize::try_from(self.u32()?).unwrap_or(usize::MAX);
        check(bound, length)?;
        Ok(length)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let remaining = self.remaining();
        match self.body[self.at..].first_chunk::<N>() {
            Some(bytes) => {
                self.at += N;
                Ok(*bytes)
            }
            None => Err(Malformed::Truncated { needed: N, remaining }),
        }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let remaining = self.remaining();
        match self.body[self.at..].get(..length) {
            Some(bytes) => {
                self.at += length;
                Ok(bytes)
            }
            None => Err(Malformed::Truncated { needed: length, remaining }),
        }
    }

    fn remaining(&self) -> usize {
        self.body.len() - self.at
    }
}

/// Refuses what is beyond its bound.
pub(super) fn check(bound: Bound, found: usize) -> Result<(), Malformed> {
    if found > bound.max { Err(Excess::of(bound, found).into()) } else { Ok(()) }
}
