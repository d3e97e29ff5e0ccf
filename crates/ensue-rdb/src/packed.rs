//! The compact layouts of small values: arrays of integers, lists of packed elements, and what went before those.
//!
//! Each is one string of a dump or a file. Lengths that they tell of themselves must agree with the bytes that are
//! there, and their elements with what a value may take.

use crate::Damage;
use crate::error::RdbError;
use crate::reader::{Budget, ELEMENT_BYTES, Reader};
use bytes::Bytes;
use ensue_resp::number;

const END: u8 = 0xff;

/// A set of integers: the width of each in bytes, how many, and they themselves in ascending order.
pub(crate) fn integers(bytes: &[u8], budget: &mut Budget) -> Result<Vec<Bytes>, Damage> {
    let mut reader = Reader::new(bytes, 0, Budget::new(0));
    let (width, count) = (reader.unsigned(4)?, reader.unsigned(4)?);
    if !matches!(width, 2 | 4 | 8) || bytes.len() as u64 != 8 + width * count {
        return Err(Damage::Packed);
    }
    let element = |_| {
        budget.take(ELEMENT_BYTES)?;
        Ok(number::i64_bytes(reader.signed(width as usize)?))
    };
    (0..count).map(element).collect()
}

/// A list of packed elements, each of which is followed by its own length, for readers from behind.
pub(crate) fn packed(bytes: &[u8], budget: &mut Budget) -> Result<Vec<Bytes>, Damage> {
    packed_of(bytes, ELEMENT_BYTES, budget)
}

/// The same, where an element takes at least so many bytes.
pub(crate) fn packed_of(bytes: &[u8], each: usize, budget: &mut Budget) -> Result<Vec<Bytes>, Damage> {
    let mut reader = Reader::new(bytes, 0, Budget::new(0));
    let (total, count) = (reader.unsigned(4)?, reader.unsigned(2)?);
    if total != bytes.len() as u64 || bytes.last() != Some(&END) {
        return Err(Damage::Packed);
    }
    let mut elements = Vec::new();
    loop {
        let first = reader.byte()?;
        if first == END {
            break;
        }
        budget.take(each)?;
        let (element, taken) = packed_element(&mut reader, first)?;
        reader.skip(match taken {
            0..=127 => 1,
            128..=16_382 => 2,
            16_383..=2_097_150 => 3,
            2_097_151..=268_435_454 => 4,
            _ => 5,
        })?;
        elements.push(element);
    }
    checked(&mut reader, elements, count)
}

/// One element, and how many bytes it took.
fn packed_element(reader: &mut Reader<&[u8]>, first: u8) -> Result<(Bytes, usize), Damage> {
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
        0xf0 => (5, reader.unsigned(4)?),
        0xf1 => return number(reader.signed(2)?, 3),
        0xf2 => return number(reader.signed(3)?, 4),
        0xf3 => return number(reader.signed(4)?, 5),
        0xf4 => return number(reader.signed(8)?, 9),
        _ => return Err(Damage::Packed),
    };
    let length = usize::try_from(length).map_err(|_| Damage::Packed)?;
    Ok((Bytes::from(reader.bytes(length)?), header + length))
}

/// The predecessor: each element follows the length of the one before it.
pub(crate) fn zipped(bytes: &[u8], budget: &mut Budget) -> Result<Vec<Bytes>, Damage> {
    let mut reader = Reader::new(bytes, 0, Budget::new(0));
    let (total, _tail) = (reader.unsigned(4)?, reader.unsigned(4)?);
    let count = reader.unsigned(2)?;
    if total != bytes.len() as u64 || bytes.last() != Some(&END) {
        return Err(Damage::Packed);
    }
    let mut elements = Vec::new();
    loop {
        match reader.byte()? {
            END => break,
            0xfe => {
                reader.skip(4)?;
            }
            _ => {}
        }
        budget.take(ELEMENT_BYTES)?;
        elements.push(zipped_element(&mut reader)?);
    }
    checked(&mut reader, elements, count)
}

fn zipped_element(reader: &mut Reader<&[u8]>) -> Result<Bytes, Damage> {
    let first = reader.byte()?;
    let length = match first >> 6 {
        0 => u64::from(first),
        1 => u64::from(first & 0x3f) << 8 | u64::from(reader.byte()?),
        2 => reader.array::<4>()?.iter().fold(0, |length, byte| length << 8 | u64::from(*byte)),
        _ => {
            let value = match first {
                0xc0 => reader.signed(2)?,
                0xd0 => reader.signed(4)?,
                0xe0 => reader.signed(8)?,
                0xf0 => reader.signed(3)?,
                0xfe => reader.signed(1)?,
                0xf1..=0xfd => i64::from(first & 0x0f) - 1,
                _ => return Err(Damage::Packed),
            };
            return Ok(number::i64_bytes(value));
        }
    };
    let length = usize::try_from(length).map_err(|_| Damage::Packed)?;
    Ok(Bytes::from(reader.bytes(length)?))
}

/// The elements, if they are as many as was told; so many that two bytes do not hold them are not counted.
fn checked(reader: &mut Reader<&[u8]>, elements: Vec<Bytes>, count: u64) -> Result<Vec<Bytes>, Damage> {
    let is_counted = count == elements.len() as u64 || count == u64::from(u16::MAX);
    if is_counted && reader.is_at_end()? { Ok(elements) } else { Err(Damage::Packed) }
}

/// What went before both for hashes: names and values, each behind its length.
pub(crate) fn zipmap(bytes: &[u8], budget: &mut Budget) -> Result<Vec<(Bytes, Bytes)>, Damage> {
    let mut reader = Reader::new(bytes, 0, Budget::new(0));
    let count = reader.byte()?;
    let mut pairs = Vec::new();
    while let Some(length) = zipmap_length(&mut reader)? {
        budget.take(2 * ELEMENT_BYTES)?;
        let name = reader.bytes(length)?;
        let length = zipmap_length(&mut reader)?.ok_or(Damage::Packed)?;
        let unused = reader.byte()?;
        let value = reader.bytes(length)?;
        reader.skip(u64::from(unused))?;
        pairs.push((Bytes::from(name), Bytes::from(value)));
    }
    let is_counted = count >= ZIPMAP_LONG || usize::from(count) == pairs.len();
    if is_counted && reader.is_at_end()? { Ok(pairs) } else { Err(Damage::Packed) }
}

/// Nothing at the end.
fn zipmap_length(reader: &mut Reader<&[u8]>) -> Result<Option<usize>, Damage> {
    match reader.byte()? {
        END => Ok(None),
        ZIPMAP_LONG => usize::try_from(reader.unsigned(4)?).map(Some).map_err(|_| Damage::Packed),
        short => Ok(Some(usize::from(short))),
    }
}

const ZIPMAP_LONG: u8 = 254;

/// Whatever is wrong with bytes that are one string is wrong with the packed value.
impl From<RdbError> for Damage {
    fn from(_: RdbError) -> Damage {
        Damage::Packed
    }
}
