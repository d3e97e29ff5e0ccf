//! Bytes of a dump or a file, read from the front.
//!
//! Nothing is allocated because a length says so: what is kept grows as bytes arrive.

use crate::error::{Damage, RdbError};
use crate::{checksum, lzf};
use bytes::Bytes;
use ensue_resp::number;
use std::io::{BufRead, ErrorKind};

/// What is left to read, and what is known of what was read.
#[derive(Debug)]
pub(crate) struct Reader<R> {
    source: R,
    offset: u64,
    /// The checksum of what was read, if it is wanted.
    sum: Option<u64>,
    /// Bytes that compressed strings may still become.
    expanded_max: usize,
    budget: Budget,
}

/// What the elements of a value may still take: one of two bytes takes many times as much as soon as it stands by
/// itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    bytes: usize,
}

impl Budget {
    pub(crate) fn new(bytes: usize) -> Budget {
        Budget { bytes }
    }

    /// One more element, which takes at least so many bytes.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), Damage> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or(Damage::Elements)?;
        Ok(())
    }
}

/// What an element takes at least: less than half of what a write of it counts, since two may be written as one.
pub(crate) const ELEMENT_BYTES: usize = 40;

/// How long something is, or how a string stands there instead.
enum Length {
    Plain(u64),
    Encoded(u8),
}

impl<R: BufRead> Reader<R> {
    pub(crate) fn new(source: R, expanded_max: usize, budget: Budget) -> Reader<R> {
        Reader { source, offset: 0, sum: None, expanded_max, budget }
    }

    /// One that makes the checksum of what it reads.
    pub(crate) fn summing(source: R, expanded_max: usize, budget: Budget) -> Reader<R> {
        Reader { source, offset: 0, sum: Some(0), expanded_max, budget }
    }

    pub(crate) fn into_source(self) -> R {
        self.source
    }

    /// Bytes read so far.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    pub(crate) fn sum(&self) -> Option<u64> {
        self.sum
    }

    /// What compressed strings and elements may become from here on.
    pub(crate) fn begin_value(&mut self, expanded_max: usize, budget: Budget) {
        (self.expanded_max, self.budget) = (expanded_max, budget);
    }

    pub(crate) fn budget(&mut self) -> &mut Budget {
        &mut self.budget
    }

    fn element(&mut self) -> Result<Bytes, RdbError> {
        self.budget.take(ELEMENT_BYTES).map_err(|damage| self.damaged(damage))?;
        self.text()
    }

    pub(crate) fn damaged(&self, damage: Damage) -> RdbError {
        RdbError::Damaged { offset: self.offset, damage }
    }

    pub(crate) fn is_at_end(&mut self) -> Result<bool, RdbError> {
        Ok(self.arrived()?.is_empty())
    }

    /// The next bytes that are there, none at the end.
    fn arrived(&mut self) -> Result<&[u8], RdbError> {
        // Asked twice, since the borrow of the first answer would last for the whole function.
        loop {
            match self.source.fill_buf() {
                Ok(_) => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(RdbError::Io { offset: self.offset, error }),
            }
        }
        self.source.fill_buf().map_err(|error| RdbError::Io { offset: self.offset, error })
    }

    /// Passes up to so many of the next bytes on, as they arrive; returns how many.
    fn pass(&mut self, count: usize, take: impl FnOnce(&[u8])) -> Result<usize, RdbError> {
        let (offset, sum) = (self.offset, self.sum);
        let bytes = self.arrived()?;
        let bytes = &bytes[..count.min(bytes.len())];
        if bytes.is_empty() && count > 0 {
            return Err(RdbError::Damaged { offset, damage: Damage::Truncated });
        }
        take(bytes);
        let sum = sum.map(|sum| checksum::extended(sum, bytes));
        let count = bytes.len();
        self.source.consume(count);
        self.sum = sum;
        self.offset += count as u64;
        Ok(count)
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Result<Vec<u8>, RdbError> {
        let mut bytes = Vec::new();
        while bytes.len() < count {
            self.pass(count - bytes.len(), |some| {
                if bytes.is_empty() {
                    bytes.reserve_exact(some.len());
                }
                bytes.extend_from_slice(some);
            })?;
        }
        Ok(bytes)
    }

    pub(crate) fn skip(&mut self, count: u64) -> Result<(), RdbError> {
        let mut left = count;
        while left > 0 {
            left -= self.pass(usize::try_from(left).unwrap_or(usize::MAX), |_| ())? as u64;
        }
        Ok(())
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], RdbError> {
        let mut array = [0; N];
        let mut filled = 0;
        while filled < N {
            filled +=
                self.pass(N - filled, |some| array[filled..filled + some.len()].copy_from_slice(some))?;
        }
        Ok(array)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, RdbError> {
        Ok(self.array::<1>()?[0])
    }

    fn any_length(&mut self) -> Result<Length, RdbError> {
        let first = self.byte()?;
        Ok(match first >> 6 {
            0 => Length::Plain(u64::from(first)),
            1 => Length::Plain(u64::from(first & 0x3f) << 8 | u64::from(self.byte()?)),
            3 => Length::Encoded(first & 0x3f),
            _ if first == 0x81 => Length::Plain(u64::from_be_bytes(self.array()?)),
            _ if first == 0x80 => Length::Plain(u64::from(u32::from_be_bytes(self.array()?))),
            _ => return Err(self.damaged(Damage::Length)),
        })
    }

    /// A number of things that follow.
    pub(crate) fn length(&mut self) -> Result<u64, RdbError> {
        match self.any_length()? {
            Length::Plain(length) => Ok(length),
            Length::Encoded(_) => Err(self.damaged(Damage::Length)),
        }
    }

    fn size(&mut self) -> Result<usize, RdbError> {
        let length = self.length()?;
        usize::try_from(length).map_err(|_| self.damaged(Damage::Length))
    }

    pub(crate) fn text(&mut self) -> Result<Bytes, RdbError> {
        let encoding = match self.any_length()? {
            Length::Plain(length) => {
                let length = usize::try_from(length).map_err(|_| self.damaged(Damage::Length))?;
                return Ok(Bytes::from(self.bytes(length)?));
            }
            Length::Encoded(encoding) => encoding,
        };
        let number = match encoding {
            0 => i64::from(i8::from_le_bytes(self.array()?)),
            1 => i64::from(i16::from_le_bytes(self.array()?)),
            2 => i64::from(i32::from_le_bytes(self.array()?)),
            3 => return self.compressed(),
            _ => return Err(self.damaged(Damage::Length)),
        };
        Ok(number::i64_bytes(number))
    }

    /// Reads past a string.
    pub(crate) fn skip_text(&mut self) -> Result<(), RdbError> {
        match self.any_length()? {
            Length::Plain(length) => self.skip(length),
            Length::Encoded(encoding @ 0..=2) => self.skip(1 << encoding),
            Length::Encoded(3) => {
                let (packed, _length) = (self.length()?, self.length()?);
                self.skip(packed)
            }
            Length::Encoded(_) => Err(self.damaged(Damage::Length)),
        }
    }

    fn compressed(&mut self) -> Result<Bytes, RdbError> {
        let (packed, length) = (self.size()?, self.size()?);
        let packed = self.bytes(packed)?;
        let left = self.expanded_max.checked_sub(length);
        self.expanded_max = left.ok_or_else(|| self.damaged(Damage::Compressed))?;
        let expanded = lzf::expand(&packed, length).map_err(|damage| self.damaged(damage))?;
        Ok(Bytes::from(expanded))
    }

    /// Strings, and before them how many.
    pub(crate) fn texts(&mut self) -> Result<Vec<Bytes>, RdbError> {
        let count = self.length()?;
        let mut texts = Vec::new();
        for _ in 0..count {
            texts.push(self.element()?);
        }
        Ok(texts)
    }

    /// Pairs of strings, and before them how many pairs.
    pub(crate) fn pairs(&mut self) -> Result<Vec<(Bytes, Bytes)>, RdbError> {
        let count = self.length()?;
        let mut pairs = Vec::new();
        for _ in 0..count {
            pairs.push((self.element()?, self.element()?));
        }
        Ok(pairs)
    }

    pub(crate) fn double(&mut self) -> Result<f64, RdbError> {
        Ok(f64::from_le_bytes(self.array()?))
    }

    /// A number in digits, as old versions wrote scores.
    pub(crate) fn double_as_text(&mut self) -> Result<f64, RdbError> {
        match self.byte()? {
            253 => Err(self.damaged(Damage::Number)),
            254 => Ok(f64::INFINITY),
            255 => Ok(f64::NEG_INFINITY),
            length => {
                let digits = self.bytes(usize::from(length))?;
                number::parse_score(&digits).ok_or_else(|| self.damaged(Damage::Number))
            }
        }
    }

    /// A number of so many bytes, the lowest first.
    pub(crate) fn unsigned(&mut self, width: usize) -> Result<u64, RdbError> {
        let mut value = 0;
        for at in 0..width {
            value |= u64::from(self.byte()?) << (8 * at);
        }
        Ok(value)
    }

    pub(crate) fn signed(&mut self, width: usize) -> Result<i64, RdbError> {
        let unused = 64 - 8 * width as u32;
        Ok((self.unsigned(width)? << unused) as i64 >> unused)
    }
}
