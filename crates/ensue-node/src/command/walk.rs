//! Commands that walk: a partition's rows by slot, a large hash's, set's or sorted set's columns by theirs.
//!
//! Walks over rows take no part in snapshots and observe nothing. A cursor is a plain number that this module can
//! read again at any time, because nothing is remembered between two calls. What is there during a whole walk is
//! returned at least once: neither a row nor a column of a large row ever changes its slot before a restart, and with a
//! cursor of before one a walk begins anew. A row that is not large is returned whole.

use crate::command::fingerprint::Fingerprint;
use crate::command::{integer, name_of, text_of};
use crate::evaluate::{Evaluation, Halt};
use bytes::Bytes;
use ensue_resp::request::ScanOptions;
use ensue_resp::{glob, number};
use ensue_store::compact::RowRef;
use ensue_store::keyspace::Keyspace;
use ensue_store::row::Kind;
use ensue_types::Reply;

/// Rows and columns of a keyspace that are looked at one by one to count them.
const LOOKED_AT: usize = 10_000;

/// Whether the rows of a keyspace are too many, or too large, to be looked at one by one, and the counts that are kept
/// of them have to do.
pub(crate) fn is_counted(rows: &Keyspace) -> bool {
    rows.rows_count().max(rows.cells() as usize) > LOOKED_AT
}

/// `DBSIZE`: the rows of this partition that show something. Of many, those whose deadline has passed and that were not
/// deleted yet are counted too, and those that not every reader may see.
pub(super) fn size(evaluation: &Evaluation<'_>) -> Reply {
    if is_counted(evaluation.keyspace()) {
        return integer(evaluation.keyspace().shown_rows().rows as usize);
    }
    integer(evaluation.keyspace().rows().filter(|row| evaluation.visible_kind(*row).is_some()).count())
}

/// `KEYS`.
pub(super) fn keys(evaluation: &Evaluation<'_>, pattern: &[u8]) -> Reply {
    let rows = evaluation.keyspace().rows();
    let shown =
        rows.filter(|row| glob::matches(pattern, row.key()) && evaluation.visible_kind(*row).is_some());
    Reply::Array(shown.map(|row| Reply::Bulk(Bytes::copy_from_slice(row.key()))).collect())
}

/// `RANDOMKEY`: some shown row, each with about the same chance, and a number that is proportional to how many are
/// shown here, for who chooses among partitions.
pub(super) fn random_key(evaluation: &Evaluation<'_>) -> Reply {
    let rows = evaluation.keyspace().rows_count();
    let drawn = if rows <= DRAWS { draw_of_few(evaluation) } else { draw_of_many(evaluation, rows) };
    let Some((row, weight)) = drawn else { return Reply::Nil };
    Reply::Array(vec![Reply::Bulk(Bytes::copy_from_slice(row.key())), integer(weight)])
}

fn draw_of_few<'e>(evaluation: &'e Evaluation<'_>) -> Option<(RowRef<'e>, usize)> {
    let rows = evaluation.keyspace().rows();
    let shown: Vec<_> = rows.filter(|row| evaluation.visible_kind(*row).is_some()).collect();
    let place = chance(evaluation.seed, 0) % shown.len().max(1) as u64;
    Some((*shown.get(place as usize)?, shown.len() * DRAWS))
}

/// Draws rows, and takes the first one that is shown. How many of the drawn ones are says how many there are.
fn draw_of_many<'e>(evaluation: &'e Evaluation<'_>, rows: usize) -> Option<(RowRef<'e>, usize)> {
    let keyspace = evaluation.keyspace();
    let is_shown = |row: &RowRef<'_>| evaluation.visible_kind(*row).is_some();
    let draw = |number| keyspace.nth_row((chance(evaluation.seed, number) % rows as u64) as usize);
    let mut drawn = (0..DRAWS as u64).filter_map(draw).filter(is_shown);
    if let Some(first) = drawn.next() {
        return Some((first, rows * (1 + drawn.count())));
    }
    // Nearly all of them are hidden, as they are for a while after a flush: then those that are shown are looked for.
    let start = (chance(evaluation.seed, 0) % rows as u64) as usize;
    let found = keyspace.rows().skip(start).chain(keyspace.rows().take(start)).find(is_shown);
    found.map(|row| (row, 1))
}

/// A number for each draw of an evaluation with this seed.
pub(crate) fn chance(seed: u64, number: u64) -> u64 {
    Fingerprint::new().word(seed).word(number).finish()
}

/// How many rows `RANDOMKEY` looks at.
const DRAWS: usize = 32;

/// `SCAN` over this partition: the cursor says the slot to go on from, zero at the end. A step returns as many rows as
/// are asked for, and passes over ten times as many that show nothing.
pub(super) fn scan(evaluation: &Evaluation<'_>, options: &ScanOptions, type_name: Option<&Bytes>) -> Reply {
    let (mut shown, mut hidden) = (options.count.max(1), options.count.max(1).saturating_mul(HIDDEN_ROWS));
    let mut keys = Vec::new();
    let rows = evaluation.keyspace();
    for (slot, row) in rows.rows_with_slots(rows.slot_at(options.cursor)) {
        if shown == 0 || hidden == 0 {
            return page(rows.cursor_at(slot), keys);
        }
        let Some(kind) = evaluation.visible_kind(row) else {
            hidden -= 1;
            continue;
        };
        shown -= 1;
        let of_kind = type_name.is_none_or(|name| name.eq_ignore_ascii_case(kind.word().as_bytes()));
        if of_kind && matches(options, row.key()) {
            keys.push(Reply::Bulk(Bytes::copy_from_slice(row.key())));
        }
    }
    page(0, keys)
}

/// How many rows that show nothing a step of `SCAN` passes over, for each one that it is asked to return.
const HIDDEN_ROWS: usize = 10;

/// `HSCAN`, `SSCAN` and `ZSCAN`: the cursor says the slot to go on from, zero at the end.
pub(super) fn scan_columns(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    kind: Kind,
    options: &ScanOptions,
) -> Result<Reply, Halt> {
    let slot = evaluation.keyspace().slot_at(options.cursor);
    let (columns, next) = evaluation.columns_from(key, kind, slot, options.count.max(1))?;
    let mut shown = Vec::new();
    for (column, content) in columns {
        let name = name_of(column);
        if !matches(options, &name) {
            continue;
        }
        shown.push(Reply::Bulk(name));
        match kind {
            Kind::Hash => shown.push(Reply::Bulk(text_of(content).unwrap_or_default())),
            Kind::SortedSet => {
                let score = content.score().map(|score| number::f64_bytes(score.value()));
                shown.push(Reply::Bulk(score.unwrap_or_default()));
            }
            Kind::Text | Kind::Set | Kind::List | Kind::Stream | Kind::Bounded => {}
        }
    }
    Ok(page(next.map_or(0, |slot| evaluation.keyspace().cursor_at(slot)), shown))
}

fn matches(options: &ScanOptions, name: &[u8]) -> bool {
    options.pattern.as_ref().is_none_or(|pattern| glob::matches(pattern, name))
}

fn page(cursor: u64, items: Vec<Reply>) -> Reply {
    Reply::Array(vec![Reply::bulk(cursor.to_string()), Reply::Array(items)])
}
