//! Hashes with deadlines of fields, as Redis 7.4 writes them.
//!
//! ```text
//! plain:  the earliest deadline u64 | number of fields | for each: 0, or its deadline beyond the earliest and 1 more |
//!         name | value
//! packed: the earliest deadline u64 | a listpack of names, values and deadlines, 0 for none
//! ```

use super::reader::{Malformed, Reader};
use super::{Dated, Value, packed as listpack, write_length, write_text};
use ensue_resp::number;

pub(super) fn write(out: &mut Vec<u8>, fields: &[Dated]) {
    let earliest = fields.iter().filter_map(|(.., deadline)| *deadline).min().unwrap_or_default();
    out.extend_from_slice(&earliest.to_le_bytes());
    write_length(out, fields.len());
    for (name, value, deadline) in fields {
        let beyond = deadline.map_or(0, |deadline| deadline.saturating_sub(earliest).saturating_add(1));
        write_length(out, usize::try_from(beyond).unwrap_or(usize::MAX));
        write_text(out, name);
        write_text(out, value);
    }
}

pub(super) fn plain(reader: &mut Reader<'_>) -> Result<Vec<Dated>, Malformed> {
    let earliest = earliest(reader)?;
    let count = reader.length()?;
    let mut fields = Vec::new();
    for _ in 0..count {
        let beyond = reader.length()?;
        let deadline = match beyond.checked_sub(1) {
            None => None,
            Some(beyond) => Some(earliest.checked_add(beyond).ok_or(Malformed)?),
        };
        fields.push((reader.text()?, reader.text()?, deadline));
    }
    Ok(fields)
}

pub(super) fn packed(reader: &mut Reader<'_>) -> Result<Vec<Dated>, Malformed> {
    earliest(reader)?;
    let texts = listpack::packed(&reader.text()?)?;
    if texts.len() % 3 != 0 {
        return Err(Malformed);
    }
    let mut fields = Vec::with_capacity(texts.len() / 3);
    for field in texts.chunks_exact(3) {
        let deadline = number::parse_i64(&field[2]).and_then(|ms| u64::try_from(ms).ok()).ok_or(Malformed)?;
        fields.push((field[0].clone(), field[1].clone(), Some(deadline).filter(|ms| *ms > 0)));
    }
    Ok(fields)
}

/// A hash with deadlines, or one without any.
pub(super) fn value(fields: Vec<Dated>) -> Value {
    match fields.iter().any(|(.., deadline)| deadline.is_some()) {
        true => Value::DatedHash(fields),
        false => Value::Hash(fields.into_iter().map(|(name, value, _)| (name, value)).collect()),
    }
}

fn earliest(reader: &mut Reader<'_>) -> Result<u64, Malformed> {
    let bytes = reader.bytes(size_of::<u64>())?;
    Ok(u64::from_le_bytes(bytes.try_into().map_err(|_| Malformed)?))
}
