//! Commands on hashes: rows whose columns are fields.
//!
//! Fields merge one by one, so writes to different fields in different datacenters all stay. Counters in fields are
//! in `counter`, walks over a large hash in `walk`.

use crate::command::draw::{self, Drawn};
use crate::command::fields::undated_bytes;
use crate::command::{bulk_or_nil, flag, integer, leave_no_empty_row, name_of, text_of};
use crate::evaluate::{Evaluation, Halt};
use bytes::Bytes;
use ensue_resp::request::HashPart;
use ensue_store::cell::Content;
use ensue_store::row::Kind;
use ensue_types::{Column, Reply};

/// `HSET`: answers how many fields are new.
pub(super) fn set(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    fields: &[(Bytes, Bytes)],
) -> Result<Reply, Halt> {
    let mut added = 0;
    check_room(evaluation, key, fields)?;
    for (name, value) in fields {
        let column = Column::Field(name.clone());
        if !evaluation.has_content(key, &column)? {
            added += 1;
        }
        evaluation.begin_write(key)?;
        put(evaluation, key, name, value);
    }
    Ok(integer(added))
}

/// A value without a deadline.
fn put(evaluation: &mut Evaluation<'_>, key: &Bytes, name: &Bytes, value: &Bytes) {
    evaluation.put(key, Column::Field(name.clone()), value.clone());
    evaluation.remove_field_deadline(key, name);
}

fn check_room(evaluation: &Evaluation<'_>, key: &Bytes, fields: &[(Bytes, Bytes)]) -> Result<(), Halt> {
    let bytes = |(name, value): &(Bytes, Bytes)| undated_bytes(evaluation, key, name, value.len());
    evaluation.check_room_of(key, fields.len(), fields.iter().map(bytes).sum())
}

/// `HMSET`: looks at the first field only, for the kind of the row.
pub(super) fn set_blindly(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    fields: &[(Bytes, Bytes)],
) -> Result<Reply, Halt> {
    if let Some((name, _)) = fields.first() {
        evaluation.content(key, &Column::Field(name.clone()))?;
        check_room(evaluation, key, fields)?;
        evaluation.begin_write(key)?;
    }
    for (name, value) in fields {
        put(evaluation, key, name, value);
    }
    Ok(Reply::OK)
}

/// `HSETNX`.
pub(super) fn set_new(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    name: &Bytes,
    value: &Bytes,
) -> Result<Reply, Halt> {
    let column = Column::Field(name.clone());
    if evaluation.has_content(key, &column)? {
        return Ok(Reply::Integer(0));
    }
    evaluation.check_room(undated_bytes(evaluation, key, name, value.len()))?;
    evaluation.begin_write(key)?;
    put(evaluation, key, name, value);
    Ok(Reply::Integer(1))
}

/// `HGET`.
pub(super) fn get(evaluation: &mut Evaluation<'_>, key: &Bytes, name: &Bytes) -> Result<Reply, Halt> {
    Ok(bulk_or_nil(evaluation.content(key, &Column::Field(name.clone()))?))
}

/// `HMGET`.
pub(super) fn get_many(evaluation: &mut Evaluation<'_>, key: &Bytes, names: &[Bytes]) -> Result<Reply, Halt> {
    let values = names.iter().map(|name| get(evaluation, key, name));
    Ok(Reply::Array(values.collect::<Result<_, _>>()?))
}

/// `HGETALL`, `HKEYS`, `HVALS`.
pub(super) fn get_all(evaluation: &mut Evaluation<'_>, key: &Bytes, part: HashPart) -> Result<Reply, Halt> {
    let columns = evaluation.columns(key, Kind::Hash)?.into_iter();
    Ok(match part {
        HashPart::Fields => Reply::Array(columns.map(|(column, _)| Reply::Bulk(name_of(column))).collect()),
        HashPart::Values => Reply::Array(columns.map(|(_, content)| bulk_or_nil(content)).collect()),
        HashPart::FieldsAndValues => {
            let pair = |(column, content)| (Reply::Bulk(name_of(column)), bulk_or_nil(content));
            Reply::Map(columns.map(pair).collect())
        }
    })
}

/// `HDEL`: answers how many were there.
pub(super) fn delete(evaluation: &mut Evaluation<'_>, key: &Bytes, names: &[Bytes]) -> Result<Reply, Halt> {
    let mut deleted = 0;
    let bytes = |name: &Bytes| undated_bytes(evaluation, key, name, 0);
    evaluation.check_room_of(key, names.len(), names.iter().map(bytes).sum())?;
    for name in names {
        if evaluation.delete(key, Column::Field(name.clone()))? {
            evaluation.remove_field_deadline(key, name);
            deleted += 1;
        }
    }
    if deleted > 0 {
        leave_no_empty_row(evaluation, key, Kind::Hash);
    }
    Ok(integer(deleted))
}

/// `HEXISTS`.
pub(super) fn exists(evaluation: &mut Evaluation<'_>, key: &Bytes, name: &Bytes) -> Result<Reply, Halt> {
    Ok(flag(evaluation.content(key, &Column::Field(name.clone()))? != Content::Nothing))
}

/// `HLEN`.
pub(super) fn length(evaluation: &mut Evaluation<'_>, key: &Bytes) -> Result<Reply, Halt> {
    Ok(integer(evaluation.count(key, Kind::Hash)?))
}

/// `HSTRLEN`.
pub(super) fn field_length(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    name: &Bytes,
) -> Result<Reply, Halt> {
    let content = evaluation.content(key, &Column::Field(name.clone()))?;
    Ok(integer(text_of(content).unwrap_or_default().len()))
}

/// `HRANDFIELD`.
pub(super) fn random(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    count: Option<i64>,
    with_values: bool,
) -> Result<Reply, Halt> {
    let named = |(column, content)| (Reply::Bulk(name_of(column)), bulk_or_nil(content));
    Ok(match draw::some_of(evaluation, key, Kind::Hash, count)? {
        Drawn::One(field) => field.map_or(Reply::Nil, |field| named(field).0),
        Drawn::Several(fields) if with_values => Reply::Pairs(fields.into_iter().map(named).collect()),
        Drawn::Several(fields) => Reply::Array(fields.into_iter().map(|field| named(field).0).collect()),
    })
}
