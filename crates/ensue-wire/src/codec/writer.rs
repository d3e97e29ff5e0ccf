//! Appends integers, byte strings and lists within their bounds.
//!
//! The first excess sticks: from then on nothing is appended, and `finish` takes back what was. So the code that lists
//! the fields of a message reads as its layout, with no error handling in between.

use crate::error::{Excess, Unsendable};
use crate::limits::{self, Bound};

pub(super) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    items: usize,
    refused: Option<Unsendable>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>) -> Writer<'a> {
        let start = out.len();
        Writer { out, start, items: 0, refused: None }
    }

    /// The verdict on everything written.
    pub(super) fn finish(self) -> Result<(), Unsendable> {
        match self.refused {
            None => Ok(()),
            Some(error) => {
                self.out.truncate(self.start);
                Err(error)
            }
        }
    }

    pub(super) fn u8(&mut self, value: u8) -> &mut Self {
        self.raw(&[value])
    }

    pub(super) fn u16(&mut self, value: u16) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }

    pub(super) fn u32(&mut self, value: u32) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }

    pub(super) fn u64(&mut self, value: u64) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }

    pub(super) fn i64(&mut self, value: i64) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }

    /// A length and that many bytes.
    pub(super) fn bytes(&mut self, bound: Bound, bytes: &[u8]) -> &mut Self {
        self.length(bound, bytes.len()).raw(bytes)
    }

    /// A count and that many items.
    pub(super) fn list<T>(
        &mut self,
        bound: Bound,
        list: &[T],
        mut item: impl FnMut(&mut Self, &T),
    ) -> &mut Self {
        self.items = self.items.saturating_add(list.len());
        self.check(limits::ITEMS, self.items);
        self.length(bound, list.len());
        for value in list {
            if self.refused.is_some() {
                break;
            }
            item(self, value);
        }
        self
    }

    /// A 1 and the value, or a 0.
    pub(super) fn option<T>(&mut self, value: Option<&T>, present: impl FnOnce(&mut Self, &T)) -> &mut Self {
        match value {
            None => self.u8(0),
            Some(value) => {
                present(self.u8(1), value);
                self
            }
        }
    }

    /// Remembers an excess, if it is one and the first.
    pub(super) fn check(&mut self, bound: Bound, found: usize) -> bool {
        if found > bound.max && self.refused.is_none() {
            self.refused = Some(Excess::of(bound, found).into());
        }
        self.refused.is_none()
    }

    fn length(&mut self, bound: Bound, length: usize) -> &mut Self {
        // Every bound is below 2^32, which a test asserts: a length that does not fit is beyond its bound.
        self.check(bound, length);
        self.u32(u32::try_from(length).unwrap_or(u32::MAX))
    }

    fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        let body_bytes = (self.out.len() - self.start).saturating_add(bytes.len());
        if self.check(limits::FRAME, body_bytes) {
            self.out.extend_from_slice(bytes);
        }
        self
    }
}
