//! Which columns of a row go when it is deleted, or overwritten by another kind of value.
//!
//! A row and a view arrive, columns leave: those that are live, but for shares of bounded counters that must outlive it
//! (`escrow`).

use super::is_live;
use bytes::Bytes;
use ensue_store::compact::RowRef;
use ensue_store::view::View;
use ensue_types::Column;
use ensue_types::escrow::share_of;
use std::collections::BTreeSet;

/// The live columns of a row that may be removed together: all but shares whose counters are not among them.
pub(super) fn removable(row: RowRef<'_>, view: View<'_>) -> Vec<Column> {
    let mut columns = live_columns(row, view);
    let is_counter = |column: &Column| matches!(column, Column::Escrow(name) if share_of(name).is_none());
    if !columns.iter().any(|column| matches!(column, Column::Escrow(_))) {
        return columns;
    }
    let counters: BTreeSet<Column> = columns.iter().filter(|column| is_counter(column)).cloned().collect();
    columns.retain(|column| match column {
        Column::Escrow(name) => share_of(name)
            .is_none_or(|(counter, _)| counters.contains(&Column::Escrow(Bytes::copy_from_slice(counter)))),
        _ => true,
    });
    columns
}

fn live_columns(row: RowRef<'_>, view: View<'_>) -> Vec<Column> {
    let row = match row {
        RowRef::Whole(row) => row,
        RowRef::Compact(row) => {
            let deadline = row.deadline().map(|_| Column::Deadline);
            return if row.at(view).is_ok() {
                [Column::Text].into_iter().chain(deadline).collect()
            } else {
                Vec::new()
            };
        }
        RowRef::Packed(row) => {
            let shown = row.columns().filter(|(_, settled)| settled.at(view).is_ok());
            return shown.map(|(column, _)| column).collect();
        }
    };
    if row.is_spent() {
        let deadlines = row.field_deadlines().chain([Column::Deadline]);
        let live = |column: &Column| row.cell(column).is_some_and(|cell| is_live(&cell, view));
        return deadlines.filter(live).collect();
    }
    row.all_cells().filter(|(_, cell)| is_live(cell, view)).map(|(column, _)| column.into_owned()).collect()
}
