//! One number for what a partition shows: equal in two datacenters exactly if they show the same, but for chance.
//!
//! A keyspace and a logical time arrive. The sum does not depend on the order of rows, nor on tombstones, stamps,
//! hidden columns or how a counter is held. It reads every row and observes nothing.

use crate::command::fingerprint::Fingerprint;
use crate::evaluate::{shown_escrow, shown_kind};
use ensue_store::cell::Content;
use ensue_store::compact::RowRef;
use ensue_store::keyspace::Keyspace;
use ensue_store::row::Kind;
use ensue_store::view::View;
use ensue_types::{Column, LogicalTime};

/// The digest of all that is shown at a time.
pub(crate) fn digest(keyspace: &Keyspace, at: LogicalTime) -> u64 {
    let mut sum: u64 = 0;
    for row in keyspace.rows() {
        if let Some(kind) = shown_kind(row, at, View::At(at)) {
            sum = sum.wrapping_add(row_digest(row, kind, at));
        }
    }
    sum
}

fn row_digest(row: RowRef<'_>, kind: Kind, at: LogicalTime) -> u64 {
    let key = Fingerprint::new().part(row.key());
    let mut sum: u64 = 0;
    if let Ok(Some(deadline_ms)) = row.deadline_at(View::At(at)) {
        sum = key.word(3).word(deadline_ms).finish();
    }
    let row = row.whole();
    let expired = row.expired_fields(View::At(at), at.ms()).unwrap_or_default();
    let names = row.field_deadlines().filter(|_| kind == Kind::Hash);
    for column in names {
        let Column::FieldDeadline(name) = column else { continue };
        let deadline = row.field_deadline_at(&name, View::At(at)).ok().flatten();
        if let Some(deadline_ms) = deadline.filter(|ms| *ms > at.ms()) {
            sum = sum.wrapping_add(key.word(7).part(&name).word(deadline_ms).finish());
        }
    }
    for (column, cell) in row.cells().filter(|(column, _)| Kind::of(column) == Some(kind)) {
        if matches!(column.as_ref(), Column::Field(name) if expired.contains_key(name)) {
            continue;
        }
        let Some(shown) = cell.at(View::At(at)) else { continue };
        let named = match column.as_ref() {
            Column::Text | Column::Deadline | Column::Row => key.word(0),
            Column::Field(name) => key.word(1).part(name),
            Column::Member(name) => key.word(2).part(name),
            Column::Scored(name) => key.word(4).part(name),
            Column::Element(name) => key.word(5).part(name),
            Column::Stream(name) => key.word(6).part(name),
            // Above, if it counts.
            Column::FieldDeadline(_) => continue,
            // Below, with what was done to it.
            Column::Escrow(_) => continue,
        };
        let whole = match shown.state.content() {
            Content::Nothing => continue,
            Content::Bytes(value) => named.part(&value),
            // As text, because a number that a client has read and written back is the same number.
            Content::Number(number) => named.part(number.to_string().as_bytes()),
        };
        sum = sum.wrapping_add(whole.finish());
    }
    if let Some((name, counter)) = shown_escrow(&row, View::At(at)).filter(|_| kind == Kind::Bounded) {
        sum = sum.wrapping_add(key.word(8).part(&name).part(&counter.share()).finish());
    }
    sum
}
