//! Values in every layout that Redis and Valkey have written since version 1 of the format.

use crate::error::{Damage, RdbError};
use crate::reader::{Budget, Reader};
use crate::stream;
use crate::value::{Content, ExpiringField, Value};
use crate::{layout, module, packed};
use bytes::Bytes;
use ensue_resp::number;
use ensue_types::Score;
use std::io::BufRead;

/// Who wrote a file: one number means two layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writer {
    Redis,
    Valkey,
}

/// A value in this layout.
pub(crate) fn read(
    reader: &mut Reader<impl BufRead>,
    layout: u8,
    writer: Writer,
) -> Result<Content, RdbError> {
    Ok(match layout {
        layout::STREAM | layout::STREAM_2 | layout::STREAM_3 => {
            Content::Stream(stream::read(reader, layout)?)
        }
        layout::MODULE => Content::Module { name: module::skip_value(reader)?.to_string() },
        layout::JOB_OF_KEYDB => job_of_keydb(reader)?,
        layout::HASH_OF_VALKEY if writer == Writer::Valkey => expiring_of_valkey(reader)?,
        layout::HASH_EXPIRING | layout::HASH_EXPIRING_EARLY => expiring(reader, layout)?,
        layout::HASH_EXPIRING_PACKED | layout::HASH_EXPIRING_PACKED_EARLY => expiring_packed(reader, layout)?,
        _ => Content::Value(read_value(reader, layout)?),
    })
}

/// A value in one of the layouts whose values a dump of Ensue can hold.
pub(crate) fn read_value(reader: &mut Reader<impl BufRead>, layout: u8) -> Result<Value, RdbError> {
    Ok(match layout {
        layout::TEXT => Value::Text(reader.text()?),
        layout::LIST => Value::List(reader.texts()?),
        layout::SET => Value::Set(reader.texts()?),
        layout::HASH => Value::Hash(reader.pairs()?),
        layout::SORTED | layout::SORTED_AS_TEXT => sorted(reader, layout == layout::SORTED)?,
        layout::SET_OF_INTEGERS => Value::Set(whole(reader, packed::integers)?),
        layout::LIST_ZIPPED => Value::List(whole(reader, packed::zipped)?),
        layout::SET_PACKED => Value::Set(whole(reader, packed::packed)?),
        layout::HASH_ZIPMAP => Value::Hash(whole(reader, packed::zipmap)?),
        layout::HASH_ZIPPED => {
            Value::Hash(whole(reader, |text, budget| pairs(packed::zipped(text, budget)?))?)
        }
        layout::HASH_PACKED => {
            Value::Hash(whole(reader, |text, budget| pairs(packed::packed(text, budget)?))?)
        }
        layout::SORTED_ZIPPED => {
            Value::Sorted(whole(reader, |text, budget| scored(packed::zipped(text, budget)?))?)
        }
        layout::SORTED_PACKED => {
            Value::Sorted(whole(reader, |text, budget| scored(packed::packed(text, budget)?))?)
        }
        layout::LIST_OF_ZIPPED | layout::LIST_OF_PACKED => list(reader, layout)?,
        unknown => return Err(reader.damaged(Damage::Type(unknown))),
    })
}

/// A value that is one string.
fn whole<T>(
    reader: &mut Reader<impl BufRead>,
    unpack: impl FnOnce(&[u8], &mut Budget) -> Result<T, Damage>,
) -> Result<T, RdbError> {
    let text = reader.text()?;
    unpack(&text, reader.budget()).map_err(|damage| reader.damaged(damage))
}

/// A list as Redis keeps it: nodes of several elements, or of one large one.
fn list(reader: &mut Reader<impl BufRead>, layout: u8) -> Result<Value, RdbError> {
    const PLAIN: u64 = 1;
    let nodes = reader.length()?;
    let mut values = Vec::new();
    for _ in 0..nodes {
        let is_plain = layout == layout::LIST_OF_PACKED && reader.length()? == PLAIN;
        match (is_plain, layout) {
            (true, _) => values.push(reader.text()?),
            (false, layout::LIST_OF_PACKED) => values.extend(whole(reader, packed::packed)?),
            (false, _) => values.extend(whole(reader, packed::zipped)?),
        }
    }
    Ok(Value::List(values))
}

fn pairs(texts: Vec<Bytes>) -> Result<Vec<(Bytes, Bytes)>, Damage> {
    if texts.len() % 2 != 0 {
        return Err(Damage::Packed);
    }
    Ok(texts.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect())
}

fn scored(texts: Vec<Bytes>) -> Result<Vec<(Score, Bytes)>, Damage> {
    let member = |(name, score): (Bytes, Bytes)| {
        let score = number::parse_score(&score).and_then(Score::new).ok_or(Damage::Number)?;
        Ok((score, name))
    };
    pairs(texts)?.into_iter().map(member).collect()
}

fn sorted(reader: &mut Reader<impl BufRead>, is_binary: bool) -> Result<Value, RdbError> {
    let count = reader.length()?;
    let mut members = Vec::new();
    for _ in 0..count {
        let name = reader.text()?;
        let score = if is_binary { reader.double()? } else { reader.double_as_text()? };
        let score = Score::new(score).ok_or_else(|| reader.damaged(Damage::Number))?;
        members.push((score, name));
    }
    Ok(Value::Sorted(members))
}

/// A hash of Redis with deadlines of fields: each is told from the earliest one on, less one.
fn expiring(reader: &mut Reader<impl BufRead>, layout: u8) -> Result<Content, RdbError> {
    let earliest_ms = if layout == layout::HASH_EXPIRING { Some(reader.unsigned(8)?) } else { None };
    let count = reader.length()?;
    let mut fields = Vec::new();
    for _ in 0..count {
        let told = reader.length()?;
        let deadline_ms = match (told, earliest_ms) {
            (0, _) => None,
            (told, None) => Some(told),
            (told, Some(earliest_ms)) => {
                let sum = earliest_ms.checked_add(told - 1);
                Some(sum.ok_or_else(|| reader.damaged(Damage::Number))?)
            }
        };
        fields.push(ExpiringField { name: reader.text()?, value: reader.text()?, deadline_ms });
    }
    Ok(Content::Expiring(fields))
}

/// The same of few fields: three elements each, the third being the deadline, or zero.
fn expiring_packed(reader: &mut Reader<impl BufRead>, layout: u8) -> Result<Content, RdbError> {
    if layout == layout::HASH_EXPIRING_PACKED {
        let _earliest_ms = reader.unsigned(8)?;
    }
    let texts = whole(reader, packed::packed)?;
    if texts.len() % 3 != 0 {
        return Err(reader.damaged(Damage::Packed));
    }
    let field = |parts: &[Bytes]| {
        let deadline_ms = number::parse_i64(&parts[2]).and_then(|ms| u64::try_from(ms).ok())?;
        let (name, value) = (parts[0].clone(), parts[1].clone());
        Some(ExpiringField { name, value, deadline_ms: Some(deadline_ms).filter(|ms| *ms != 0) })
    };
    let fields: Option<Vec<ExpiringField>> = texts.chunks_exact(3).map(field).collect();
    fields.map(Content::Expiring).ok_or_else(|| reader.damaged(Damage::Number))
}

/// A hash of Valkey 9: the deadline stands behind the value, and is negative where there is none.
fn expiring_of_valkey(reader: &mut Reader<impl BufRead>) -> Result<Content, RdbError> {
    let count = reader.length()?;
    let mut fields = Vec::new();
    for _ in 0..count {
        let (name, value) = (reader.text()?, reader.text()?);
        fields.push(ExpiringField { name, value, deadline_ms: u64::try_from(reader.signed(8)?).ok() });
    }
    Ok(Content::Expiring(fields))
}

/// Read past as a value of a module: the script, when it begins and how often it runs, its keys and arguments.
fn job_of_keydb(reader: &mut Reader<impl BufRead>) -> Result<Content, RdbError> {
    reader.skip_text()?;
    reader.skip(16)?;
    for _ in 0..2 {
        for _ in 0..reader.length()? {
            reader.skip_text()?;
        }
    }
    Ok(Content::Module { name: "KEYDB.CRON".into() })
}
