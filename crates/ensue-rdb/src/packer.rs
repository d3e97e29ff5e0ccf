//! A packed list, as it is written: see `packed`, which reads it.

use ensue_resp::number;

pub(crate) struct Packer {
    bytes: Vec<u8>,
    count: usize,
}

/// The length in bytes, and the number of elements.
const HEADER_BYTES: usize = 6;
const END: u8 = 0xff;

impl Packer {
    pub(crate) fn new() -> Packer {
        Packer { bytes: vec![0; HEADER_BYTES], count: 0 }
    }

    pub(crate) fn push_integer(&mut self, value: i64) {
        let begin = self.bytes.len();
        let bytes = value.to_le_bytes();
        let (code, width) = match value {
            0..=0x7f => (value as u8, 0),
            _ if i16::try_from(value).is_ok() => (0xf1, 2),
            _ if (-(1 << 23)..1 << 23).contains(&value) => (0xf2, 3),
            _ if i32::try_from(value).is_ok() => (0xf3, 4),
            _ => (0xf4, 8),
        };
        self.bytes.push(code);
        self.bytes.extend_from_slice(&bytes[..width]);
        self.end_element(begin);
    }

    pub(crate) fn push_text(&mut self, text: &[u8]) {
        if let Some(value) = number::parse_i64(text) {
            return self.push_integer(value);
        }
        let begin = self.bytes.len();
        match text.len() {
            short @ 0..=0x3f => self.bytes.push(0x80 | short as u8),
            middle @ 0x40..=0xfff => {
                self.bytes.extend_from_slice(&[0xe0 | (middle >> 8) as u8, middle as u8]);
            }
            long => {
                self.bytes.push(0xf0);
                self.bytes.extend_from_slice(&(long as u32).to_le_bytes());
            }
        }
        self.bytes.extend_from_slice(text);
        self.end_element(begin);
    }

    /// An element is followed by its length in groups of seven bits, of which all but the first have the upper bit.
    fn end_element(&mut self, begin: usize) {
        let taken = self.bytes.len() - begin;
        let groups: usize = match taken {
            0..=127 => 1,
            128..=16_382 => 2,
            16_383..=2_097_150 => 3,
            2_097_151..=268_435_454 => 4,
            _ => 5,
        };
        for group in (0..groups).rev() {
            let bits = (taken >> (7 * group)) as u8 & 0x7f;
            self.bytes.push(if group + 1 == groups { bits } else { bits | 0x80 });
        }
        self.count += 1;
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.bytes.push(END);
        let total = self.bytes.len() as u32;
        self.bytes[..4].copy_from_slice(&total.to_le_bytes());
        let count = u16::try_from(self.count).unwrap_or(u16::MAX);
        self.bytes[4..HEADER_BYTES].copy_from_slice(&count.to_le_bytes());
        self.bytes
    }
}
