//! The compact layouts of small values in dumps: arrays of integers, lists of packed elements, and their predecessor.
//!
//! Each is one string of a dump. Lengths that they tell of themselves must agree with the bytes that are there.

use super::reader::{Malformed, Reader};
use bytes::Bytes;
use ensue_resp::number;

const END: u8 = 0xff;

/// A set of integers: the width of each in bytes, how many, and they themselves in ascending order.
pub(super) fn integers(bytes: &[u8]) -> Result<Vec<Bytes>, Malformed> {
    let mut reader = Reader::new(bytes);
    let (width, count) = (unsigned(&mut reader, 4)?, unsigned(&mut reader, 4)?);
    if !matches!(width, 2 | 4 | 8) || bytes.len() as u64 != 8 + width * count {
        return Err(Malformed);
    }
    (0..count).map(|_| Ok(number::i64_bytes(signed(&mut reader, width as usize)?))).collect()
}

/// A list of packed elements, each of which is followed by its own length, for readers from behind.
pub(super) fn packed(bytes: &[u8]) -> Result<Vec<Bytes>, Malformed> {
    let mut reader = Reader::new(bytes);
    let (total, count) = (unsigned(&mut reader, 4)?, unsigned(&mut reader, 2)?);
    if total != bytes.len() as u64 || bytes.last() != Some(&END) {
        return Err(Malformed);
    }
    let mut elements = Vec::new();
    loop {
        let first = reader.byte()?;
        if first == END {
            break;
        }
        let (element, taken) = packed_element(&mut reader, first)?;
        reader.bytes(match taken {
            0..=127 => 1,
            128..=16_382 => 2,
            16_383..=2_097_150 => 3,
            2_097_151..=268_435_454 => 4,
            _ => 5,
        })?;
        elements.push(element);
    }
    checked(&reader, elements, count)
}

/// One element, and how many bytes it took.
fn packed_element(reader: &mut Reader<'_>, first: u8) -> Result<(Bytes, usize), Malformed> {
    let low = |bits: u8| u64::from(first & ((1 << bits) - 1));
    let number = |value: i64, taken: usize| Ok((number::i64_bytes(value), taken));
    let (header, length) = match first {
        0..=0x7f => return number(i64::from(first), 1),
        0x80..=0xbf => (1, low(6)),
        0xc0..=0xdf => {
            let value = (low(5) << 8 | u64::from(reader.byte()?)) as i64;
            return number(if value >= 1 << 12 { value - (1 << 13) } else { value }, 2);
        }
        0xe0..=0xef => (2, low(4) << 8 | u64::from(reader.byte()?)),
        0xf0 => (5, unsigned(reader, 4)?),
        0xf1 => return number(signed(reader, 2)?, 3),
        0xf2 => return number(signed(reader, 3)?, 4),
        0xf3 => return number(signed(reader, 4)?, 5),
        0xf4 => return number(signed(reader, 8)?, 9),
        _ => return Err(Malformed),
    };
    let length = usize::try_from(length).map_err(|_| Malformed)?;
    Ok((Bytes::copy_from_slice(reader.bytes(length)?), header + length))
}

/// The predecessor: each element follows the length of the one before it.
pub(super) fn zipped(bytes: &[u8]) -> Result<Vec<Bytes>, Malformed> {
    let mut reader = Reader::new(bytes);
    let (total, _tail) = (unsigned(&mut reader, 4)?, unsigned(&mut reader, 4)?);
    let count = unsigned(&mut reader, 2)?;
    if total != bytes.len() as u64 || bytes.last() != Some(&END) {
        return Err(Malformed);
    }
    let mut elements = Vec::new();
    loop {
        match reader.byte()? {
            END => break,
            0xfe => {
                reader.bytes(4)?;
            }
            _ => {}
        }
        elements.push(zipped_element(&mut reader)?);
    }
    checked(&reader, elements, count)
}

fn zipped_element(reader: &mut Reader<'_>) -> Result<Bytes, Malformed> {
    let first = reader.byte()?;
    let length = match first >> 6 {
        0 => u64::from(first),
        1 => u64::from(first & 0x3f) << 8 | u64::from(reader.byte()?),
        2 => {
            let bytes = reader.bytes(4)?;
            bytes.iter().fold(0, |length, byte| length << 8 | u64::from(*byte))
        }
        _ => {
            let value = match first {
                0xc0 => signed(reader, 2)?,
                0xd0 => signed(reader, 4)?,
                0xe0 => signed(reader, 8)?,
                0xf0 => signed(reader, 3)?,
                0xfe => signed(reader, 1)?,
                0xf1..=0xfd => i64::from(first & 0x0f) - 1,
                _ => return Err(Malformed),
            };
            return Ok(number::i64_bytes(value));
        }
    };
    let length = usize::try_from(length).map_err(|_| Malformed)?;
    Ok(Bytes::copy_from_slice(reader.bytes(length)?))
}

/// The elements, if they are as many as was told; so many that two bytes do not hold them are not counted.
fn checked(reader: &Reader<'_>, elements: Vec<Bytes>, count: u64) -> Result<Vec<Bytes>, Malformed> {
    let is_counted = count == elements.len() as u64 || count == u64::from(u16::MAX);
    if is_counted && reader.is_at_end() { Ok(elements) } else { Err(Malformed) }
}

/// A number of so many bytes, the lowest first.
fn unsigned(reader: &mut Reader<'_>, width: usize) -> Result<u64, Malformed> {
    let bytes = reader.bytes(width)?;
    Ok(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

fn signed(reader: &mut Reader<'_>, width: usize) -> Result<i64, Malformed> {
    let unused = 64 - 8 * width as u32;
    Ok((unsigned(reader, width)? << unused) as i64 >> unused)
}
