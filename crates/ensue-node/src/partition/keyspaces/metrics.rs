//! Metrics of the rows.

use super::Keyspaces;
use crate::command;
use crate::partition::cx::Cx;
use ensue_store::compact::RowRef;
use ensue_store::keyspace::{Keyspace, ShownRows};
use ensue_store::view::View;
use ensue_types::{KeyspaceId, LogicalTime};

impl Keyspaces {
    /// Of a keyspace with few rows, as they are at this moment; of one with many, as they are counted: with rows whose
    /// deadline has passed and that were not deleted yet, and with what not every reader may see.
    pub(in crate::partition) fn count_rows(&self, cx: &mut Cx) -> RowCounts {
        let at = cx.promise();
        let mut counts = RowCounts::default();
        for (number, rows) in self.keyspaces.iter().enumerate() {
            let mut shown = Shown { keyspace: KeyspaceId(number as u8), keys: 0, expires: 0 };
            if command::is_counted(rows) {
                let ShownRows { rows: keys, dated, dead, beside, .. } = rows.shown_rows();
                (shown.keys, shown.expires) = (keys, dated);
                counts.tombstones += dead;
                counts.conflicting += beside;
            } else {
                counts.add(&mut shown, rows, at);
            }
            if shown.keys > 0 {
                counts.shown.push(shown);
            }
        }
        // Of branches, the keys that any of them has.
        for (keyspace, branches) in self.branching.each() {
            let keys = branches.metrics().keys as u64;
            counts.shown.extend((keys > 0).then_some(Shown { keyspace, keys, expires: 0 }));
        }
        counts
    }
}

/// Dead cells, and for each keyspace in use what it shows.
#[derive(Default)]
pub(in crate::partition) struct RowCounts {
    pub(in crate::partition) tombstones: u64,
    /// Values and tombstones that stand beside newer ones.
    pub(in crate::partition) conflicting: u64,
    pub(in crate::partition) shown: Vec<Shown>,
}

impl RowCounts {
    /// Walks all rows of a keyspace.
    fn add(&mut self, shown: &mut Shown, rows: &Keyspace, at: LogicalTime) {
        for row in rows.rows() {
            if let RowRef::Whole(row) = row {
                let dead = row.all_cells().filter(|(_, cell)| cell.is_dead()).count() as u64;
                self.tombstones += dead;
                let beside = row.all_cells().map(|(_, cell)| cell.state().siblings().len() as u64);
                self.conflicting += beside.sum::<u64>();
            }
            let deadline = row.deadline_at(View::Newest).ok().flatten();
            let expired = deadline.is_some_and(|deadline| deadline <= at.ms());
            if expired {
                self.tombstones += row.columns_count() as u64;
            } else if row.kind().is_some() {
                shown.keys += 1;
                shown.expires += u64::from(deadline.is_some());
            }
        }
    }
}

/// Rows that a keyspace shows, and those of them with a deadline.
pub(in crate::partition) struct Shown {
    pub(in crate::partition) keyspace: KeyspaceId,
    pub(in crate::partition) keys: u64,
    pub(in crate::partition) expires: u64,
}
