//! Bounded counters: columns of a row, one a counter and one a share of it for each datacenter that has changed it.
//!
//! A counter is put once and never again, and its name says by which write, so a removal of it is final: whoever has
//! applied that refuses to change the counter, and shares that were written meanwhile are shares of nothing. A share is
//! therefore removed only together with its counter, or by its own datacenter when it knows that the counter is gone: a
//! share that was missing from a counter would be rights that come back. One counter of a row is shown, the latest.

use super::{Evaluation, Halt, is_live, observe_row, present};
use crate::command::text_of;
use bytes::Bytes;
use ensue_store::compact::RowRef;
use ensue_store::row::{Gone, Kind, Row};
use ensue_store::view::View;
use ensue_types::escrow::{counter_name, share_name, share_of};
use ensue_types::{Column, DatacenterId, Escrow, Source, Terms};

/// A counter as an evaluation sees it.
pub struct Held {
    pub counter: Escrow,
    name: Bytes,
    /// What the own datacenter has written and the view hides.
    hidden: Option<Source>,
}

impl Evaluation<'_> {
    /// The counter that a row shows, as the view shows it.
    pub fn escrow(&mut self, key: &[u8]) -> Result<Option<Held>, Halt> {
        self.escrow_with(key, DatacenterId::EVERY)
    }

    /// The same to be changed: with all that the own datacenter has done to it, seen or not.
    pub fn escrow_to_write(&mut self, key: &[u8]) -> Result<Option<Held>, Halt> {
        self.escrow_with(key, self.own_datacenter())
    }

    /// With what the view hides of this datacenter's share.
    fn escrow_with(&mut self, key: &[u8], own: DatacenterId) -> Result<Option<Held>, Halt> {
        let Some(row) = present(self.keyspace, &mut self.observed, key, self.view, self.at)? else {
            return Ok(None);
        };
        observe_row(&mut self.observed, row, self.view)?;
        let kind = row.kind_at(self.view, self.at.ms())?;
        self.observed.look_up(kind.is_some());
        if kind.is_some_and(|kind| kind != Kind::Bounded) {
            return Err(Halt::WrongType);
        }
        match row {
            RowRef::Whole(row) => Ok(held(row, self.view, own)?),
            RowRef::Compact(_) | RowRef::Packed(_) => Ok(None),
        }
    }

    /// The datacenter that evaluates.
    pub fn own_datacenter(&self) -> DatacenterId {
        let writer = self.writer.as_ref().map(|writer| writer.write.stamp.datacenter);
        writer.unwrap_or(self.keyspace.sites().own)
    }

    /// Whether the writer sees only what is stable.
    pub fn is_stable(&self) -> bool {
        self.writer.as_ref().is_some_and(|writer| writer.adder != writer.write.stamp.datacenter)
    }

    /// Makes a counter. The key shows none.
    pub fn put_counter(&mut self, key: &Bytes, terms: Terms) {
        let stamp = self.writer.as_ref().expect("only writes make counters").write.stamp;
        self.put(key, Column::Escrow(counter_name(stamp)), terms.to_bytes());
    }

    /// Writes the own share of a counter that has changed.
    pub fn put_share(&mut self, key: &Bytes, held: Held) {
        let own = self.own_datacenter();
        self.observed.continued.extend(held.hidden);
        self.put(key, Column::Escrow(share_name(&held.name, own)), held.counter.share());
    }

    /// Removes own shares of counters that are gone; says whether the row has a column of a counter left.
    pub fn clear_loose_shares(&mut self, key: &Bytes) -> bool {
        let own = self.own_datacenter();
        let Some(RowRef::Whole(row)) = self.keyspace.row(key) else { return false };
        let names = row.cells().filter(|(column, _)| matches!(column.as_ref(), Column::Escrow(_)));
        let has_counters = names.count() > 0;
        for column in loose_shares(row, own) {
            self.remove_column(key, column, View::Newest);
        }
        has_counters
    }
}

impl Held {
    /// Whether the own datacenter has changed the counter in a way that the view hides.
    pub fn hides_own(&self) -> bool {
        self.hidden.is_some()
    }
}

/// The counter that a view shows of a row, with its name.
pub fn shown_escrow(row: &Row, view: View<'_>) -> Option<(Bytes, Escrow)> {
    let held = held(row, view, DatacenterId::EVERY).ok()??;
    Some((held.name, held.counter))
}

fn held(row: &Row, view: View<'_>, own: DatacenterId) -> Result<Option<Held>, Gone> {
    let mut latest: Option<(Bytes, Terms)> = None;
    for (column, cell) in row.cells() {
        let Column::Escrow(name) = column.as_ref() else { continue };
        let is_later = latest.as_ref().is_none_or(|(latest, _)| latest < name);
        if share_of(name).is_some() || !is_later {
            continue;
        }
        let terms = text_of(cell.at(view).ok_or(Gone)?.state.content()).unwrap_or_default();
        if let Some(terms) = Terms::of_bytes(&terms) {
            latest = Some((name.clone(), terms));
        }
    }
    let Some((name, terms)) = latest else { return Ok(None) };
    let mut held = Held { counter: Escrow::new(terms), name, hidden: None };
    for (column, cell) in row.cells() {
        let Column::Escrow(share) = column.as_ref() else { continue };
        let Some((counter, of)) = share_of(share) else { continue };
        if *counter != held.name[..] {
            continue;
        }
        let shown = cell.at(view).ok_or(Gone)?.state;
        held.counter.join(&text_of(shown.content()).unwrap_or_default());
        if of == own && shown.newest() != cell.state().newest() {
            held.counter.join(&text_of(cell.state().content()).unwrap_or_default());
            held.hidden = cell.state().sources().last();
        }
    }
    Ok(Some(held))
}

/// The own shares of counters that are gone: their datacenter had each of them when it wrote its share. What is not
/// settled may come back, if what removed it is discarded.
fn loose_shares(row: &Row, own: DatacenterId) -> Vec<Column> {
    let is_loose = |column: &Column| match column {
        Column::Escrow(name) => share_of(name).is_some_and(|(counter, of)| {
            let counter = row.cell(&Column::Escrow(Bytes::copy_from_slice(counter)));
            of == own && counter.is_none_or(|one| one.unsettled() == 0 && !one.state().is_live())
        }),
        _ => false,
    };
    let live = row.cells().filter(|(column, cell)| is_loose(column) && is_live(cell, View::Newest));
    live.map(|(column, _)| column.into_owned()).collect()
}
