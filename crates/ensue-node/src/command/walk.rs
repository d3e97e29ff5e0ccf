//! Commands that walk: a partition's rows by slot, a hash's or a set's columns by the hash of their names.
//!
//! Walks over rows take no part in snapshots and observe nothing. A cursor is a plain number that this module can
//! read again at any time, because nothing is remembered between two calls. What is there during a whole walk is
//! returned at least once: rows never change their slot, and a name never changes its hash.

use crate::command::fingerprint::Fingerprint;
use crate::command::{integer, name_of, text_of};
use crate::evaluate::{Evaluation, Halt};
use bytes::Bytes;
use ensue_resp::glob;
use ensue_resp::request::ScanOptions;
use ensue_store::cell::Content;
use ensue_store::row::Kind;
use ensue_types::{Column, Reply};

/// Rows with at most this many columns are returned whole.
const COLUMNS_WHOLE_MAX: usize = 512;
/// A walk over a row ends after about this many steps however small `COUNT` is, since each step looks at all of it.
const COLUMN_STEPS_MAX: usize = 128;

/// `DBSIZE`: the rows of this partition that show something.
pub(super) fn size(evaluation: &Evaluation<'_>) -> Reply {
    integer(evaluation.keyspace().rows().filter(|row| evaluation.visible_kind(row).is_some()).count())
}

/// `KEYS`.
pub(super) fn keys(evaluation: &Evaluation<'_>, pattern: &[u8]) -> Reply {
    let rows = evaluation.keyspace().rows();
    let shown =
        rows.filter(|row| glob::matches(pattern, row.key()) && evaluation.visible_kind(row).is_some());
    Reply::Array(shown.map(|row| Reply::Bulk(row.key().clone())).collect())
}

/// `RANDOMKEY`: the first shown row from a slot on that the logical time picks.
pub(super) fn random_key(evaluation: &Evaluation<'_>) -> Reply {
    let keyspace = evaluation.keyspace();
    let count = keyspace.rows_count();
    if count == 0 {
        return Reply::Nil;
    }
    let start = (Fingerprint::new().word(evaluation.at().0).finish() % count as u64) as usize;
    let (behind, _) = keyspace.rows_from(start, usize::MAX);
    let (before, _) = keyspace.rows_from(0, start);
    match behind.chain(before).find(|row| evaluation.visible_kind(row).is_some()) {
        Some(row) => Reply::Bulk(row.key().clone()),
        None => Reply::Nil,
    }
}

/// `SCAN` over this partition: the cursor is the slot to go on from, zero at the end.
pub(super) fn scan(evaluation: &Evaluation<'_>, options: &ScanOptions, type_name: Option<&Bytes>) -> Reply {
    let slot = usize::try_from(options.cursor).unwrap_or(usize::MAX);
    let (rows, next) = evaluation.keyspace().rows_from(slot, options.count.max(1));
    let mut keys = Vec::new();
    for row in rows {
        let Some(shown) = evaluation.visible_kind(row) else { continue };
        let of_kind = type_name.is_none_or(|name| name.eq_ignore_ascii_case(shown.word().as_bytes()));
        if of_kind && matches(options, row.key()) {
            keys.push(Reply::Bulk(row.key().clone()));
        }
    }
    page(next.map_or(0, |slot| slot as u64), keys)
}

/// `HSCAN` and `SSCAN`: the cursor is the hash of the name to go on from, zero at the end.
pub(super) fn scan_columns(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    kind: Kind,
    options: &ScanOptions,
) -> Result<Reply, Halt> {
    let columns = evaluation.columns(key, kind)?;
    let (columns, next) = columns_from(columns, options.cursor, options.count.max(1));
    let mut shown = Vec::new();
    for (column, content) in columns {
        let name = name_of(column);
        if !matches(options, &name) {
            continue;
        }
        shown.push(Reply::Bulk(name));
        if kind == Kind::Hash {
            shown.push(Reply::Bulk(text_of(content).unwrap_or_default()));
        }
    }
    Ok(page(next, shown))
}

type Columns = Vec<(Column, Content)>;

/// The columns from a cursor on, about `count` of them, and the next cursor. Names with one hash stay together.
fn columns_from(columns: Columns, cursor: u64, count: usize) -> (Columns, u64) {
    let whole = columns.len() <= COLUMNS_WHOLE_MAX;
    let count = count.max(columns.len() / COLUMN_STEPS_MAX);
    let hashed = columns.into_iter().map(|column| (name_hash(&column.0), column));
    let mut rest: Vec<_> = hashed.filter(|(hash, _)| *hash >= cursor).collect();
    if whole || rest.len() <= count {
        return (rest.into_iter().map(|(_, column)| column).collect(), 0);
    }
    let (_, (last, _), _) = rest.select_nth_unstable_by_key(count - 1, |(hash, _)| *hash);
    let last = *last;
    let before = rest.len();
    rest.retain(|(hash, _)| *hash <= last);
    let next = if rest.len() < before { last + 1 } else { 0 };
    (rest.into_iter().map(|(_, column)| column).collect(), next)
}

/// 48 bits, so that clients that keep cursors in floating point keep them whole.
fn name_hash(column: &Column) -> u64 {
    let name: &[u8] = match column {
        Column::Field(name) | Column::Member(name) => name,
        Column::Text | Column::Deadline => &[],
    };
    Fingerprint::new().part(name).finish() >> 16
}

fn matches(options: &ScanOptions, name: &[u8]) -> bool {
    options.pattern.as_ref().is_none_or(|pattern| glob::matches(pattern, name))
}

fn page(cursor: u64, items: Vec<Reply>) -> Reply {
    Reply::Array(vec![Reply::bulk(cursor.to_string()), Reply::Array(items)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_walk_over_a_large_row_shows_every_column_once_in_pages() {
        let field = |number: usize| Column::Field(Bytes::from(format!("field{number}")));
        let columns: Columns =
            (0..2_000).map(|number| (field(number), Content::Bytes(Bytes::new()))).collect();
        let (mut cursor, mut pages, mut shown) = (0, 0, BTreeSet::new());
        loop {
            let (page, next) = columns_from(columns.clone(), cursor, 100);
            assert!(page.len() >= 100 || next == 0, "a page of {}", page.len());
            assert!(page.len() <= 110, "a page of {}: names with one hash are few", page.len());
            for (column, _) in page {
                assert!(shown.insert(format!("{column:?}")), "{column:?} twice");
            }
            pages += 1;
            if next == 0 {
                break;
            }
            cursor = next;
        }
        assert_eq!((shown.len(), pages), (2_000, 20));
        assert_eq!(columns_from(columns[..COLUMNS_WHOLE_MAX].to_vec(), 0, 1).0.len(), COLUMNS_WHOLE_MAX);
    }
}
