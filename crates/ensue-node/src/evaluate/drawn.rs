//! Columns of a large row, drawn by chance without a walk over the row.
//!
//! Arrives: how many are asked for, and whether they have to be different. Promises: each live column is drawn with the
//! same chance, the same ones whenever the evaluation is made again, and all of the row is observed. A row of which
//! most places are empty, or of which half is asked for, is left to who walks over it.

use super::{Evaluation, Halt, observe_row, present};
use crate::command::chance;
use ensue_store::cell::Content;
use ensue_store::compact::RowRef;
use ensue_store::row::{Gone, Kind};
use ensue_types::Column;
use std::collections::BTreeSet;

/// Of a row with more places than so many for each live column too many draws would find nothing.
const PLACES_A_COLUMN_MAX: usize = 16;
/// So many places are looked at for each column that is asked for, and for some more, before the row is walked over.
const TRIES_A_COLUMN: usize = 64;
const MORE_COLUMNS: usize = 16;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    pub count: usize,
    pub different: bool,
}

impl Evaluation<'_> {
    /// Live columns of a row of this kind, drawn by chance; nothing if the row has to be walked over for that.
    pub fn drawn(
        &mut self,
        key: &[u8],
        kind: Kind,
        draw: Draw,
    ) -> Result<Option<Vec<(Column, Content)>>, Halt> {
        let row = self.keyspace.row(key).filter(|row| row.is_large() && row.sole_kind() == Some(kind));
        if row.is_none_or(|row| self.view.time().is_some() && !row.is_newest(self.view)) {
            return Ok(None);
        }
        let seed = self.seed;
        let row = present(self.keyspace, &mut self.observed, key, self.view, self.at)?;
        let Some(RowRef::Whole(whole)) = row else { return Ok(Some(Vec::new())) };
        let (live, places) = (whole.live_count_at(kind, self.view)?, whole.places_count());
        if whole.latest_expired(self.view, self.at.ms())?.is_some() {
            return Ok(None);
        }
        let is_sparse = live * PLACES_A_COLUMN_MAX < places;
        if is_sparse || draw.different && draw.count > live / 2 {
            return Ok(None);
        }
        let (mut columns, mut known) = (Vec::with_capacity(draw.count), BTreeSet::new());
        for number in 0..((draw.count + MORE_COLUMNS) * TRIES_A_COLUMN) as u64 {
            if columns.len() == draw.count {
                break;
            }
            let place = (chance(seed, number) % places as u64) as usize;
            if draw.different && known.contains(&place) {
                continue;
            }
            let Some((column, cell)) = whole.cells_from(place, (1, 1)).0.next() else { continue };
            if column.is_beneath() {
                continue;
            }
            let content = cell.at(self.view).ok_or(Gone)?.state.content();
            if content != Content::Nothing {
                known.insert(place);
                columns.push((column.into_owned(), content));
            }
        }
        if columns.len() < draw.count {
            return Ok(None);
        }
        self.observed.look_up(live > 0);
        observe_row(&mut self.observed, RowRef::Whole(whole), self.view)?;
        Ok(Some(columns))
    }
}
