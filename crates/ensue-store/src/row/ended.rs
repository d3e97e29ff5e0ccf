//! Removals of all columns of a row at once (`Column::Row`).

use super::Row;
use crate::cell::Cell;
use crate::columns::{Columns, Large};
use crate::counted::Counted;
use ensue_types::{Column, DatacenterId, LogicalTime, Observed, Over, Source};

/// The columns of a row that were ended together, and what is counted of the others before and after: what they take
/// depends on how many they are.
pub(crate) struct Ended {
    pub(crate) columns: Box<Large>,
    pub(crate) others: Vec<(Counted, Counted)>,
}

impl Row {
    /// Its columns, if it is large.
    pub(crate) fn large(&self) -> Option<&Large> {
        self.columns.large()
    }

    /// The removals of all columns, if nobody has forgotten them.
    pub fn ended(&self) -> Option<&Cell> {
        self.ended.as_deref()
    }

    /// The same: who removed, the newest last, and what they had observed.
    pub(crate) fn ended_by(&self) -> Option<(&[Source], &Observed)> {
        self.ended.as_ref()?.state().removed().map(|(by, observed, _)| (by, observed))
    }

    /// What such removals had observed of other datacenters than this one.
    pub(crate) fn ended_of_others(&self, datacenter: DatacenterId) -> Over {
        let (_, observed) = self.ended_by()?;
        let mut others = Observed::default();
        let puts = observed.puts().iter().filter(|put| put.datacenter != datacenter);
        puts.for_each(|put| others.see(*put));
        (!others.puts().is_empty()).then(|| Box::new(others))
    }

    /// Takes the columns out that this ends, if they are most of many: those that it does not end at once stay. All of
    /// them are from now on as they have been since this time.
    pub(crate) fn take_ended(&mut self, ended: &Observed, since: LogicalTime) -> Option<Ended> {
        let large = self.columns.large_mut()?;
        let taken = large.take_others(ended)?;
        let columns = match std::mem::take(&mut self.columns) {
            Columns::Large(large) => large,
            other => unreachable!("{other:?} is not large"),
        };
        (self.live, self.beneath) = Default::default();
        self.dated = None;
        // None of the row's versions is of a settled column.
        let unsettled: usize = taken.iter().map(|(_, cell, _)| cell.unsettled()).sum();
        self.unsettled -= unsettled as u32;
        let (mut names, mut before) = (Vec::new(), Vec::new());
        for (column, cell, counted) in taken {
            self.replace(&column, cell);
            names.push(column);
            before.push(counted);
        }
        let after = names.iter().map(|column| self.counted(column).unwrap_or_default());
        let others = before.into_iter().zip(after).collect();
        self.since = self.since.max(since);
        Some(Ended { columns, others })
    }

    /// The removals of all columns stand since a time at least: others have come before.
    pub(crate) fn ended_since(&mut self, since: LogicalTime) {
        if let Some(cell) = self.ended.as_deref_mut().filter(|cell| cell.since() < since) {
            *cell = Cell::of_state(since, cell.state().clone());
        }
    }

    /// Whether all that this ends was ended before.
    pub(crate) fn has_ended(&self, ended: &Observed) -> bool {
        self.ended_by().is_some_and(|(_, known)| known.includes(ended))
    }

    /// The columns of which a removal ends something, and none that come later.
    pub(crate) fn touched_by(&self, ended: &Observed) -> Vec<Column> {
        let is_touched = |cell: &Cell| cell.state().standing().any(|put| ended.covers(put));
        let touched = self.cells().filter(|(_, cell)| is_touched(cell));
        touched.map(|(column, _)| column.into_owned()).collect()
    }
}
