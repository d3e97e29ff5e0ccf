//! What a key of a branching keyspace holds: a whole row, as one value. It is the unit of conflict.
//!
//! ```text
//! column*    column: kind u8 (0 text, 1 deadline, 2 field, 3 member, 4 scored member, 5 element,
//!            6 part of a stream, 7 a field's deadline, 8 bytes) | name u32 length, bytes | value u32 length, bytes
//! ```
//!
//! Columns stand in their order. A command is evaluated on rows made from such values, and the rows that it changed are
//! made values again.

use crate::command::{streams, text_of};
use bytes::{Buf, BufMut, Bytes};
use ensue_store::cell::Write;
use ensue_store::compact::RowRef;
use ensue_store::keyspace::Keyspace;
use ensue_store::view::View;
use ensue_types::{Column, Effect, FieldDeadline, LogicalTime, OperationId, Reply, RowEffect, Stamp};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Puts a value into a row of its own.
pub(super) fn load(rows: &mut Keyspace, key: &Bytes, value: &Bytes) {
    let stamp = Stamp { time: LogicalTime(1), ..Stamp::ZERO };
    let write = Write { stamp, at: stamp.time, operation: OperationId::default(), dependencies: None };
    for (column, value) in columns(value) {
        let value = match (&column, value.clone().try_get_u64_le()) {
            (Column::FieldDeadline(_), Ok(ms)) => FieldDeadline { ms, of: write.operation }.to_bytes(),
            _ => value,
        };
        let effect = Effect::Put { value, seen: Vec::new(), over: None };
        rows.apply(&RowEffect { key: key.clone(), column, effect }, None, &write);
    }
}

/// What a row holds; nothing if it shows nothing. Also tells which columns there are.
pub(super) fn save(rows: &Keyspace, key: &[u8]) -> (Option<Bytes>, Vec<Column>) {
    let mut out = Vec::new();
    let mut columns = Vec::new();
    let mut has_content = false;
    let row = rows.row(key).map(RowRef::whole);
    let cells = row.iter().flat_map(|row| {
        let deadline = row.cell(&Column::Deadline).map(|cell| (Cow::Owned(Column::Deadline), cell));
        row.cells_in_order().chain(deadline)
    });
    for (column, cell) in cells.filter(|(_, cell)| cell.state().is_live()) {
        let (kind, name): (u8, &[u8]) = match column.as_ref() {
            Column::Text => (0, &[]),
            Column::Deadline => (1, &[]),
            Column::Field(name) => (2, name),
            Column::Member(name) => (3, name),
            Column::Scored(name) => (4, name),
            Column::Element(name) => (5, name),
            Column::Stream(name) => (6, name),
            Column::FieldDeadline(name) => (7, name),
            // No command makes one here, and nobody removes whole rows of a branch.
            Column::Escrow(_) | Column::Row => continue,
        };
        has_content |= !column.is_deadline();
        let deadline = |name: &Bytes| row.as_ref()?.field_deadline_at(name, View::Newest).ok()?;
        let value = match column.as_ref() {
            // One of a value that is no longer there ends here.
            Column::FieldDeadline(name) => match deadline(name) {
                Some(ms) => Bytes::copy_from_slice(&ms.to_le_bytes()),
                None => continue,
            },
            _ => text_of(cell.state().content()).unwrap_or_default(),
        };
        out.put_u8(kind);
        for part in [name, &value] {
            out.put_u32_le(u32::try_from(part.len()).expect("limits.rs bounds every length far below 4 GiB"));
            out.extend_from_slice(part);
        }
        columns.push(column.into_owned());
    }
    (has_content.then(|| Bytes::from(out)), columns)
}

/// The columns of a value. What cannot be read ends it: values are made by `save` alone.
fn columns(value: &Bytes) -> impl Iterator<Item = (Column, Bytes)> {
    let mut from = value.clone();
    std::iter::from_fn(move || {
        if from.is_empty() {
            return None;
        }
        let kind = from.get_u8();
        let name = part(&mut from)?;
        let value = part(&mut from)?;
        let column = match kind {
            0 => Column::Text,
            1 => Column::Deadline,
            2 => Column::Field(name),
            3 => Column::Member(name),
            4 => Column::Scored(name),
            5 => Column::Element(name),
            6 => Column::Stream(name),
            7 => Column::FieldDeadline(name),
            _ => return None,
        };
        Some((column, value))
    })
}

fn part(from: &mut Bytes) -> Option<Bytes> {
    let length = from.try_get_u32_le().ok()? as usize;
    (from.len() >= length).then(|| from.split_to(length))
}

/// Whether a value shows anything at a time.
pub(super) fn is_shown(value: &Bytes, now_ms: u64) -> bool {
    let deadline = columns(value).find(|(column, _)| *column == Column::Deadline);
    let is_over = deadline.is_some_and(|(_, deadline)| has_passed(&deadline, now_ms));
    let expired = expired_fields(value, now_ms);
    let shows = |(column, _): (Column, Bytes)| match &column {
        Column::Field(name) => !expired.contains(name),
        _ => !column.is_deadline(),
    };
    !is_over && columns(value).any(shows)
}

fn has_passed(deadline: &Bytes, now_ms: u64) -> bool {
    deadline.clone().try_get_u64_le().is_ok_and(|ms| ms <= now_ms)
}

/// The fields whose deadlines have passed.
fn expired_fields(value: &Bytes, now_ms: u64) -> BTreeSet<Bytes> {
    let expired = |(column, deadline): (Column, Bytes)| match column {
        Column::FieldDeadline(name) if has_passed(&deadline, now_ms) => Some(name),
        _ => None,
    };
    columns(value).filter_map(expired).collect()
}

/// A value as it is told to a client: a string, a map of fields or of scores, a set of members, the elements of a list,
/// or the entries of a stream, each datacenter's together.
pub(super) fn reply(value: Option<&Bytes>, now_ms: u64) -> Reply {
    let Some(value) = value.filter(|value| is_shown(value, now_ms)) else { return Reply::Nil };
    let mut fields = Vec::new();
    let mut members = Vec::new();
    let mut elements = Vec::new();
    let expired = expired_fields(value, now_ms);
    for (column, value) in columns(value) {
        match column {
            Column::Text => return Reply::Bulk(value),
            Column::Deadline | Column::FieldDeadline(_) | Column::Escrow(_) | Column::Row => {}
            Column::Field(name) if expired.contains(&name) => {}
            Column::Field(name) => fields.push((Reply::Bulk(name), Reply::Bulk(value))),
            Column::Member(name) => members.push(Reply::Bulk(name)),
            Column::Scored(name) => fields.push((Reply::Bulk(name), Reply::Bulk(value))),
            Column::Element(_) => elements.push(Reply::Bulk(value)),
            Column::Stream(name) => elements.extend(streams::entry_reply(&name, value)),
        }
    }
    match (fields.is_empty(), elements.is_empty()) {
        (_, false) => Reply::Array(elements),
        (true, true) => Reply::Set(members),
        (false, true) => Reply::Map(fields),
    }
}

/// The word of `TYPE` for a value.
pub(super) fn kind_word(value: &Bytes) -> &'static str {
    let first = columns(value).find(|(column, _)| *column != Column::Deadline);
    match first {
        Some((Column::Field(_), _)) => "hash",
        Some((Column::Member(_), _)) => "set",
        Some((Column::Scored(_), _)) => "zset",
        Some((Column::Element(_), _)) => "list",
        Some((Column::Stream(_), _)) => "stream",
        _ => "string",
    }
}
