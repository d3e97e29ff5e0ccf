//! The parts of a stream: a row whose columns stand in the order of their names.
//!
//! Of a large row the store keeps the order, and places are found in it in logarithmic time; the columns of another one
//! are taken as a whole. Every look at a stream depends on all of it.

use super::{Evaluation, Halt, observe_row, present};
use crate::command::text_of;
use bytes::Bytes;
use ensue_store::compact::RowRef;
use ensue_store::order::Corrected;
use ensue_store::row::{Gone, Kind, Row};
use ensue_store::view::View;
use ensue_types::{Column, DatacenterId, StreamPart};
use std::ops::Range;

/// The parts of one stream, as an evaluation sees them.
pub struct Parts<'e>(Names<'e>);

enum Names<'e> {
    Kept { row: &'e Row, order: Corrected<'e>, view: View<'e> },
    Taken(Vec<(Bytes, Bytes)>),
}

impl Parts<'_> {
    pub fn len(&self) -> usize {
        match &self.0 {
            Names::Kept { order, .. } => order.len(),
            Names::Taken(parts) => parts.len(),
        }
    }

    /// A stream without any is not there.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The places of the parts with these names.
    pub fn places(&self, names: &Range<Vec<u8>>) -> Range<usize> {
        let before = |bound: &[u8]| match &self.0 {
            Names::Kept { order, .. } => order.partition_point(|_, name| name < bound),
            Names::Taken(parts) => parts.partition_point(|(name, _)| &name[..] < bound),
        };
        let start = before(&names.start);
        start..before(&names.end).max(start)
    }

    /// The parts of these places, with their values.
    pub fn at(&self, places: Range<usize>) -> Result<Vec<(StreamPart, Bytes)>, Halt> {
        let mut found = Vec::with_capacity(places.len());
        match &self.0 {
            Names::Taken(parts) => {
                let part = |(name, value): &(Bytes, Bytes)| Some((StreamPart::of(name)?, value.clone()));
                found.extend(parts[places].iter().filter_map(part));
            }
            Names::Kept { .. } if places.is_empty() => {}
            Names::Kept { row, order, view } => {
                for (_, name) in order.members(places) {
                    let Some(part) = StreamPart::of(&name) else { continue };
                    let cell = row.cell(&Column::Stream(name)).ok_or(Gone)?;
                    let content = cell.at(*view).ok_or(Gone)?.state.content();
                    found.push((part, text_of(content).unwrap_or_default()));
                }
            }
        }
        Ok(found)
    }

    /// The parts with these names.
    pub fn between(&self, names: &Range<Vec<u8>>) -> Result<Vec<(StreamPart, Bytes)>, Halt> {
        self.at(self.places(names))
    }

    /// The value of a part, if it is there.
    pub fn value(&self, part: &StreamPart) -> Result<Option<Bytes>, Halt> {
        let name = part.name();
        match &self.0 {
            Names::Taken(parts) => {
                let at = parts.binary_search_by(|(known, _)| known.cmp(&name));
                Ok(at.ok().map(|at| parts[at].1.clone()))
            }
            Names::Kept { row, view, .. } => {
                let Some(cell) = row.cell(&Column::Stream(name)) else { return Ok(None) };
                Ok(text_of(cell.at(*view).ok_or(Gone)?.state.content()))
            }
        }
    }
}

impl Evaluation<'_> {
    /// The parts of a stream.
    pub fn parts(&mut self, key: &[u8]) -> Result<Parts<'_>, Halt> {
        self.keyspace.keep_order(key);
        // What may be taken back stands for nothing.
        if let Some(writer) = self.writer.as_ref().filter(|writer| writer.kept.is_none()) {
            self.keyspace.observe(key, &writer.write);
        }
        let is_kept = self.keeps_order(key, Kind::Stream);
        let Some(row) = present(self.keyspace, &mut self.observed, key, self.view, self.at)? else {
            return Ok(Parts(Names::Taken(Vec::new())));
        };
        observe_row(&mut self.observed, row, self.view)?;
        let kind = row.kind_at(self.view, self.at.ms())?;
        self.observed.look_up(kind.is_some());
        if kind.is_some_and(|kind| kind != Kind::Stream) {
            return Err(Halt::WrongType);
        }
        match row {
            RowRef::Whole(row) if kind.is_some() => Ok(Parts(names_of(row, self.view, is_kept)?)),
            _ => Ok(Parts(Names::Taken(Vec::new()))),
        }
    }

    /// The parts that are left of a stream which is not there, in a row that shows nothing else.
    pub fn loose_parts(&self, key: &[u8]) -> Result<Vec<StreamPart>, Halt> {
        let Some(RowRef::Whole(row)) = self.keyspace.row(key) else { return Ok(Vec::new()) };
        if row.kind_at(self.view, self.at.ms())?.is_some() {
            return Ok(Vec::new());
        }
        let is_kept = row.sole_kind() == Some(Kind::Stream) && row.keeps_order();
        let loose = Parts(names_of(row, self.view, is_kept)?);
        Ok(loose.at(0..loose.len())?.into_iter().map(|(part, _)| part).collect())
    }

    /// The parts that the newest state of a row has, if the view hides some of that. They are not looked at: only what
    /// must not be named again is taken from them.
    pub fn hidden_parts(&self, key: &[u8]) -> Result<Option<Parts<'_>>, Halt> {
        let Some(RowRef::Whole(row)) = self.keyspace.row(key) else { return Ok(None) };
        if row.is_newest(self.view) {
            return Ok(None);
        }
        let is_kept = row.sole_kind() == Some(Kind::Stream) && row.keeps_order();
        names_of(row, View::Newest, is_kept).map(|names| Some(Parts(names)))
    }

    /// The datacenter that writes.
    pub fn writer_datacenter(&self) -> DatacenterId {
        self.writer.as_ref().expect("only writes ask who writes").write.stamp.datacenter
    }

    pub fn put_part(&mut self, key: &Bytes, part: &StreamPart, value: Bytes) {
        self.put(key, Column::Stream(part.name()), value);
    }

    /// How many entries of a stream are trimmed at once where it is told that about is enough; what reads trims none.
    pub fn stream_node_entries(&self) -> usize {
        self.writer.as_ref().map_or(usize::MAX, |writer| writer.node_entries)
    }

    /// Removes a part that was seen.
    pub fn remove_part(&mut self, key: &Bytes, part: &StreamPart) {
        self.remove_column(key, Column::Stream(part.name()), self.view);
    }
}

fn names_of<'e>(row: &'e Row, view: View<'e>, is_kept: bool) -> Result<Names<'e>, Halt> {
    if let Some(order) = is_kept.then(|| row.ordered(view)).flatten() {
        return Ok(Names::Kept { row, order, view });
    }
    let mut parts = Vec::new();
    for (column, cell) in row.cells_in_order() {
        let Column::Stream(name) = column.as_ref() else { continue };
        let state = cell.at(view).ok_or(Gone)?.state;
        if state.is_live() {
            parts.push((name.clone(), text_of(state.content()).unwrap_or_default()));
        }
    }
    Ok(Names::Taken(parts))
}
