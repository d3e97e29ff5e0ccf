//! Bytes of a dump, read from the front.

use super::lzf;
use bytes::Bytes;
use ensue_resp::number;
use ensue_types::limits;

/// The bytes are no dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// What is left to read.
pub(super) struct Reader<'b> {
    rest: &'b [u8],
    /// Bytes that compressed strings may still become.
    expanded_max: usize,
}

/// How long something is, or how a string stands there instead.
enum Length {
    Plain(u64),
    Encoded(u8),
}

impl<'b> Reader<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Reader<'b> {
        Reader { rest: bytes, expanded_max: limits::ENTRY_BYTES_MAX }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn bytes(&mut self, count: usize) -> Result<&'b [u8], Malformed> {
        let (bytes, rest) = self.rest.split_at_checked(count).ok_or(Malformed)?;
        self.rest = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.bytes(N)?.try_into().map_err(|_| Malformed)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    fn any_length(&mut self) -> Result<Length, Malformed> {
        let first = self.byte()?;
        Ok(match first >> 6 {
            0 => Length::Plain(u64::from(first)),
            1 => Length::Plain(u64::from(first & 0x3f) << 8 | u64::from(self.byte()?)),
            3 => Length::Encoded(first & 0x3f),
            _ if first == 0x80 => Length::Plain(u64::from(u32::from_be_bytes(self.array()?))),
            _ if first == 0x81 => Length::Plain(u64::from_be_bytes(self.array()?)),
            _ => return Err(Malformed),
        })
    }

    /// A number of things that follow.
    pub(super) fn length(&mut self) -> Result<u64, Malformed> {
        match self.any_length()? {
            Length::Plain(length) => Ok(length),
            Length::Encoded(_) => Err(Malformed),
        }
    }

    pub(super) fn text(&mut self) -> Result<Bytes, Malformed> {
        let encoding = match self.any_length()? {
            Length::Plain(length) => {
                let length = usize::try_from(length).map_err(|_| Malformed)?;
                return Ok(Bytes::copy_from_slice(self.bytes(length)?));
            }
            Length::Encoded(encoding) => encoding,
        };
        let number = match encoding {
            0 => i64::from(i8::from_le_bytes(self.array()?)),
            1 => i64::from(i16::from_le_bytes(self.array()?)),
            2 => i64::from(i32::from_le_bytes(self.array()?)),
            3 => return self.compressed(),
            _ => return Err(Malformed),
        };
        Ok(number::i64_bytes(number))
    }

    fn compressed(&mut self) -> Result<Bytes, Malformed> {
        let (bytes, length) = (self.length()?, self.length()?);
        let bytes = self.bytes(usize::try_from(bytes).map_err(|_| Malformed)?)?;
        let length = usize::try_from(length).map_err(|_| Malformed)?;
        self.expanded_max = self.expanded_max.checked_sub(length).ok_or(Malformed)?;
        lzf::expand(bytes, length).map(Bytes::from)
    }

    /// Strings, and before them how many. Each takes a byte at the least.
    pub(super) fn texts(&mut self) -> Result<Vec<Bytes>, Malformed> {
        let count = self.length()?;
        self.some_texts(count)
    }

    /// Pairs of strings, and before them how many pairs.
    pub(super) fn pairs(&mut self) -> Result<Vec<Bytes>, Malformed> {
        let count = self.length()?.checked_mul(2).ok_or(Malformed)?;
        self.some_texts(count)
    }

    fn some_texts(&mut self, count: u64) -> Result<Vec<Bytes>, Malformed> {
        if count > self.rest.len() as u64 {
            return Err(Malformed);
        }
        (0..count).map(|_| self.text()).collect()
    }

    pub(super) fn double(&mut self) -> Result<f64, Malformed> {
        Ok(f64::from_le_bytes(self.array()?))
    }

    /// A number in digits, as old versions wrote scores.
    pub(super) fn double_as_text(&mut self) -> Result<f64, Malformed> {
        match self.byte()? {
            253 => Err(Malformed),
            254 => Ok(f64::INFINITY),
            255 => Ok(f64::NEG_INFINITY),
            length => number::parse_score(self.bytes(usize::from(length))?).ok_or(Malformed),
        }
    }
}
