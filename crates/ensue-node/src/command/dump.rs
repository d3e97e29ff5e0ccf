//! The format of a dump: what `DUMP` answers and `RESTORE` takes, as Redis 7.2 writes a value into its files.
//!
//! A value is a byte that names its layout, the layout, two bytes with the version of the format, and eight with a
//! checksum of all before. One layout of each type is written, the plain one; those that Redis writes of small values
//! are read, too (`packed`), and compressed strings (`lzf`). Numbers in the bytes of others are bounded by the bytes
//! that are there before anything is made of them.

mod checksum;
mod dated;
mod lzf;
mod packed;
mod reader;

use crate::evaluate::Scored;
use bytes::Bytes;
use checksum::checksum;
use ensue_resp::number;
use ensue_types::{Reply, Score};
use reader::{Malformed, Reader};

/// A value as a whole.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(Bytes),
    List(Vec<Bytes>),
    Set(Vec<Bytes>),
    Hash(Vec<(Bytes, Bytes)>),
    /// A hash with deadlines of fields, in milliseconds since 1970.
    DatedHash(Vec<Dated>),
    Sorted(Vec<Scored>),
}

/// A field, its value and its deadline.
pub(super) type Dated = (Bytes, Bytes, Option<u64>);

/// The version of the format that is written, but for what it does not have.
const VERSION: u16 = 11;
/// The version that has deadlines of fields, and the highest that is read: that of Redis 7.4.
const VERSION_MAX: u16 = 12;
/// The version and the checksum.
const FOOTER_BYTES: usize = 10;

/// The layouts that are read; those with a name of a type alone are written.
mod layout {
    pub(super) const TEXT: u8 = 0;
    pub(super) const LIST: u8 = 1;
    pub(super) const SET: u8 = 2;
    pub(super) const SORTED_AS_TEXT: u8 = 3;
    pub(super) const HASH: u8 = 4;
    pub(super) const SORTED: u8 = 5;
    pub(super) const LIST_ZIPPED: u8 = 10;
    pub(super) const SET_OF_INTEGERS: u8 = 11;
    pub(super) const SORTED_ZIPPED: u8 = 12;
    pub(super) const HASH_ZIPPED: u8 = 13;
    pub(super) const LIST_OF_ZIPPED: u8 = 14;
    pub(super) const HASH_PACKED: u8 = 16;
    pub(super) const SORTED_PACKED: u8 = 17;
    pub(super) const LIST_OF_PACKED: u8 = 18;
    pub(super) const SET_PACKED: u8 = 20;
    pub(super) const HASH_DATED: u8 = 24;
    pub(super) const HASH_DATED_PACKED: u8 = 25;
    pub(super) const LIBRARY: u8 = 245;
}

/// The dump of a value.
pub(super) fn write(value: &Value) -> Bytes {
    let mut out = Vec::new();
    match value {
        Value::Text(text) => {
            out.push(layout::TEXT);
            write_text(&mut out, text);
        }
        Value::List(values) => write_all(&mut out, layout::LIST, values),
        Value::Set(members) => write_all(&mut out, layout::SET, members),
        Value::Hash(pairs) => {
            out.push(layout::HASH);
            write_length(&mut out, pairs.len());
            for (name, value) in pairs {
                write_text(&mut out, name);
                write_text(&mut out, value);
            }
        }
        Value::DatedHash(fields) => {
            out.push(layout::HASH_DATED);
            dated::write(&mut out, fields);
            return sealed(out, VERSION_MAX);
        }
        Value::Sorted(members) => {
            out.push(layout::SORTED);
            write_length(&mut out, members.len());
            // Redis writes the highest first, so that it can insert each at the front.
            for (score, name) in members.iter().rev() {
                write_text(&mut out, name);
                out.extend_from_slice(&score.value().to_le_bytes());
            }
        }
    }
    sealed(out, VERSION)
}

fn write_all(out: &mut Vec<u8>, layout: u8, values: &[Bytes]) {
    out.push(layout);
    write_length(out, values.len());
    values.iter().for_each(|value| write_text(out, value));
}

fn write_length(out: &mut Vec<u8>, length: usize) {
    match length {
        0..=0x3f => out.push(length as u8),
        0x40..=0x3fff => out.extend_from_slice(&(length as u16 | 0x4000).to_be_bytes()),
        _ => match u32::try_from(length) {
            Ok(length) => {
                out.push(0x80);
                out.extend_from_slice(&length.to_be_bytes());
            }
            Err(_) => {
                out.push(0x81);
                out.extend_from_slice(&(length as u64).to_be_bytes());
            }
        },
    }
}

/// A string; a short integer stands as a number, as Redis writes it.
fn write_text(out: &mut Vec<u8>, text: &[u8]) {
    let short = if text.len() <= INTEGER_DIGITS { number::parse_i64(text) } else { None };
    match short.and_then(|number| i32::try_from(number).ok()) {
        Some(number) => match (i8::try_from(number), i16::try_from(number)) {
            (Ok(number), _) => out.extend_from_slice(&[0xc0, number as u8]),
            (_, Ok(number)) => {
                out.push(0xc1);
                out.extend_from_slice(&number.to_le_bytes());
            }
            _ => {
                out.push(0xc2);
                out.extend_from_slice(&number.to_le_bytes());
            }
        },
        None => {
            write_length(out, text.len());
            out.extend_from_slice(text);
        }
    }
}

/// Longer texts are written as such.
const INTEGER_DIGITS: usize = 11;

/// Whether a dump is of a hash with deadlines of fields.
pub(crate) fn has_field_deadlines(dump: &[u8]) -> bool {
    dump.first() == Some(&layout::HASH_DATED)
}

/// The value of a dump, or Redis' error.
pub(super) fn read(dump: &[u8]) -> Result<Value, Reply> {
    read_value(&mut Reader::new(opened(dump)?)).map_err(|Malformed| BAD_FORMAT)
}

/// A dump without the version and the checksum, which are right.
fn opened(dump: &[u8]) -> Result<&[u8], Reply> {
    let body_bytes = dump.len().checked_sub(FOOTER_BYTES).ok_or(WRONG_CHECKSUM)?;
    let (body, footer) = dump.split_at(body_bytes);
    let version = u16::from_le_bytes([footer[0], footer[1]]);
    let told = u64::from_le_bytes(footer[2..].try_into().map_err(|_| WRONG_CHECKSUM)?);
    // Zero says that whoever wrote it makes no checksums.
    if version > VERSION_MAX || (told != 0 && told != checksum(&dump[..body_bytes + 2])) {
        return Err(WRONG_CHECKSUM);
    }
    Ok(body)
}

/// A dump of libraries of functions.
pub(crate) fn write_libraries<'t>(texts: impl Iterator<Item = &'t Bytes>) -> Bytes {
    let mut out = Vec::new();
    for text in texts {
        out.push(layout::LIBRARY);
        write_text(&mut out, text);
    }
    sealed(out, VERSION)
}

/// The texts of the libraries in a dump.
pub(crate) fn read_libraries(dump: &[u8]) -> Result<Vec<Bytes>, Reply> {
    let mut reader = Reader::new(opened(dump)?);
    let mut texts = Vec::new();
    while !reader.is_at_end() {
        match (reader.byte(), reader.text()) {
            (Ok(layout::LIBRARY), Ok(text)) => texts.push(text),
            _ => return Err(Reply::error("ERR given type is not a function")),
        }
    }
    Ok(texts)
}

fn sealed(mut out: Vec<u8>, version: u16) -> Bytes {
    out.extend_from_slice(&version.to_le_bytes());
    out.extend_from_slice(&checksum(&out).to_le_bytes());
    out.into()
}

fn read_value(reader: &mut Reader<'_>) -> Result<Value, Malformed> {
    let layout = reader.byte()?;
    let value = match layout {
        layout::TEXT => Value::Text(reader.text()?),
        layout::LIST => Value::List(reader.texts()?),
        layout::SET => Value::Set(reader.texts()?),
        layout::HASH => Value::Hash(pairs(reader.pairs()?)?),
        layout::SORTED | layout::SORTED_AS_TEXT => sorted(reader, layout == layout::SORTED)?,
        layout::SET_OF_INTEGERS => Value::Set(packed::integers(&reader.text()?)?),
        layout::LIST_ZIPPED => Value::List(packed::zipped(&reader.text()?)?),
        layout::SET_PACKED => Value::Set(packed::packed(&reader.text()?)?),
        layout::HASH_ZIPPED => Value::Hash(pairs(packed::zipped(&reader.text()?)?)?),
        layout::HASH_PACKED => Value::Hash(pairs(packed::packed(&reader.text()?)?)?),
        layout::HASH_DATED => dated::value(dated::plain(reader)?),
        layout::HASH_DATED_PACKED => dated::value(dated::packed(reader)?),
        layout::SORTED_ZIPPED => scored(packed::zipped(&reader.text()?)?)?,
        layout::SORTED_PACKED => scored(packed::packed(&reader.text()?)?)?,
        layout::LIST_OF_ZIPPED | layout::LIST_OF_PACKED => list(reader, layout)?,
        _ => return Err(Malformed),
    };
    let (count, is_distinct) = match &value {
        Value::Text(_) => (1, true),
        Value::List(values) => (values.len(), true),
        Value::Set(members) => (members.len(), are_distinct(members.iter())),
        Value::Hash(pairs) => (pairs.len(), are_distinct(pairs.iter().map(|(name, _)| name))),
        Value::DatedHash(fields) => (fields.len(), are_distinct(fields.iter().map(|(name, ..)| name))),
        Value::Sorted(members) => (members.len(), are_distinct(members.iter().map(|(_, name)| name))),
    };
    if count == 0 || !is_distinct || !reader.is_at_end() {
        return Err(Malformed);
    }
    Ok(value)
}

fn are_distinct<'v>(names: impl Iterator<Item = &'v Bytes>) -> bool {
    let mut names: Vec<&Bytes> = names.collect();
    names.sort_unstable();
    names.windows(2).all(|pair| pair[0] != pair[1])
}

/// A list as Redis keeps it: nodes of several elements, or of one large one.
fn list(reader: &mut Reader<'_>, layout: u8) -> Result<Value, Malformed> {
    const PLAIN: u64 = 1;
    let nodes = reader.length()?;
    let mut values = Vec::new();
    for _ in 0..nodes {
        let is_plain = layout == layout::LIST_OF_PACKED && reader.length()? == PLAIN;
        let node = reader.text()?;
        match (is_plain, layout) {
            (true, _) => values.push(node),
            (false, layout::LIST_OF_PACKED) => values.extend(packed::packed(&node)?),
            (false, _) => values.extend(packed::zipped(&node)?),
        }
    }
    Ok(Value::List(values))
}

fn pairs(texts: Vec<Bytes>) -> Result<Vec<(Bytes, Bytes)>, Malformed> {
    if texts.len() % 2 != 0 {
        return Err(Malformed);
    }
    Ok(texts.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect())
}

fn scored(texts: Vec<Bytes>) -> Result<Value, Malformed> {
    let member = |(name, score): (Bytes, Bytes)| {
        let score = number::parse_score(&score).and_then(Score::new).ok_or(Malformed)?;
        Ok((score, name))
    };
    Ok(Value::Sorted(pairs(texts)?.into_iter().map(member).collect::<Result<_, _>>()?))
}

fn sorted(reader: &mut Reader<'_>, is_binary: bool) -> Result<Value, Malformed> {
    let count = reader.length()?;
    let mut members = Vec::new();
    for _ in 0..count {
        let name = reader.text()?;
        let score = if is_binary { reader.double()? } else { reader.double_as_text()? };
        members.push((Score::new(score).ok_or(Malformed)?, name));
    }
    Ok(Value::Sorted(members))
}

const WRONG_CHECKSUM: Reply = Reply::error("ERR DUMP payload version or checksum are wrong");
const BAD_FORMAT: Reply = Reply::error("ERR Bad data format");

#[cfg(test)]
mod tests;
