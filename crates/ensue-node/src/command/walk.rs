//! Commands that walk: a partition's rows by slot, a large hash's or set's columns by theirs.
//!
//! Walks over rows take no part in snapshots and observe nothing. A cursor is a plain number that this module can
//! read again at any time, because nothing is remembered between two calls. What is there during a whole walk is
//! returned at least once: neither a row nor a column of a large row ever changes its slot before a restart. A row that
//! is not large is returned whole.

use crate::command::fingerprint::Fingerprint;
use crate::command::{integer, name_of, text_of};
use crate::evaluate::{Evaluation, Halt};
use bytes::Bytes;
use ensue_resp::glob;
use ensue_resp::request::ScanOptions;
use ensue_store::row::Kind;
use ensue_types::Reply;

/// `DBSIZE`: the rows of this partition that show something.
pub(super) fn size(evaluation: &Evaluation<'_>) -> Reply {
    integer(evaluation.keyspace().rows().filter(|row| evaluation.visible_kind(*row).is_some()).count())
}

/// `KEYS`.
pub(super) fn keys(evaluation: &Evaluation<'_>, pattern: &[u8]) -> Reply {
    let rows = evaluation.keyspace().rows();
    let shown =
        rows.filter(|row| glob::matches(pattern, row.key()) && evaluation.visible_kind(*row).is_some());
    Reply::Array(shown.map(|row| Reply::Bulk(Bytes::copy_from_slice(row.key()))).collect())
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
    match behind.chain(before).find(|row| evaluation.visible_kind(*row).is_some()) {
        Some(row) => Reply::Bulk(Bytes::copy_from_slice(row.key())),
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
            keys.push(Reply::Bulk(Bytes::copy_from_slice(row.key())));
        }
    }
    page(next.map_or(0, |slot| slot as u64), keys)
}

/// `HSCAN` and `SSCAN`: the cursor is the slot to go on from, zero at the end.
pub(super) fn scan_columns(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    kind: Kind,
    options: &ScanOptions,
) -> Result<Reply, Halt> {
    let slot = usize::try_from(options.cursor).unwrap_or(usize::MAX);
    let (columns, next) = evaluation.columns_from(key, kind, slot, options.count.max(1))?;
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
    Ok(page(next.map_or(0, |slot| slot as u64), shown))
}

fn matches(options: &ScanOptions, name: &[u8]) -> bool {
    options.pattern.as_ref().is_none_or(|pattern| glob::matches(pattern, name))
}

fn page(cursor: u64, items: Vec<Reply>) -> Reply {
    Reply::Array(vec![Reply::bulk(cursor.to_string()), Reply::Array(items)])
}
