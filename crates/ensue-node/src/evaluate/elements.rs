//! Elements of a list: rows whose columns stand in the order of their names.
//!
//! Of a large row the store keeps the order, and places are found in it in logarithmic time; the columns of another one
//! stand in their order, and are counted. Every look at a list depends on all of it.

use super::{Evaluation, Halt, observe_row, present};
use crate::command::text_of;
use bytes::Bytes;
use ensue_store::compact::RowRef;
use ensue_store::order::Corrected;
use ensue_store::row::{Gone, Kind, Row};
use ensue_store::view::View;
use ensue_types::Column;
use ensue_types::element::{self, Author};
use std::ops::Range;

/// An element of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Element {
    pub name: Bytes,
    pub value: Bytes,
}

impl Evaluation<'_> {
    /// The elements in a range of places, which is chosen when it is known how many there are, and how many there are.
    pub fn elements(
        &mut self,
        key: &[u8],
        range: impl FnOnce(usize) -> Range<usize>,
    ) -> Result<(Vec<Element>, usize), Halt> {
        self.keyspace.keep_order(key);
        // What may be taken back stands for nothing.
        if let Some(writer) = self.writer.as_ref().filter(|writer| writer.kept.is_none()) {
            self.keyspace.observe(key, &writer.write);
        }
        let is_kept = self.keeps_order(key, Kind::List);
        let Some(row) = present(self.keyspace, &mut self.observed, key, self.view, self.at)? else {
            return Ok((Vec::new(), 0));
        };
        observe_row(&mut self.observed, row, self.view)?;
        let kind = row.kind_at(self.view, self.at.ms())?;
        self.observed.look_up(kind.is_some());
        if kind.is_some_and(|kind| kind != Kind::List) {
            return Err(Halt::WrongType);
        }
        let RowRef::Whole(row) = row else { return Ok((Vec::new(), 0)) };
        if let Some(order) = is_kept.then(|| row.ordered(self.view)).flatten() {
            let range = within(range(order.len()), order.len());
            return Ok((kept(row, &order, range, self.view)?, order.len()));
        }
        let count = row.live_count_at(Kind::List, self.view)?;
        let range = within(range(count), count);
        Ok((counted(row, range, self.view)?, count))
    }

    /// A name for an element that is put between two others.
    pub fn name_element(&mut self, before: Option<&Bytes>, after: Option<&Bytes>) -> Option<Bytes> {
        let writer = self.writer.as_mut().expect("only writes put elements");
        writer.named += 1;
        let author = Author { stamp: writer.write.stamp, number: writer.named };
        element::name_between(before.map(|name| &name[..]), after.map(|name| &name[..]), author)
    }
}

fn within(range: Range<usize>, count: usize) -> Range<usize> {
    range.start.min(count)..range.end.min(count)
}

fn kept(row: &Row, order: &Corrected<'_>, range: Range<usize>, view: View<'_>) -> Result<Vec<Element>, Halt> {
    if range.is_empty() {
        return Ok(Vec::new());
    }
    let mut elements = Vec::with_capacity(range.len());
    for (_, name) in order.members(range) {
        let column = Column::Element(name.clone());
        let cell = row.cell(&column).ok_or(Gone)?;
        let content = cell.at(view).ok_or(Gone)?.state.content();
        elements.push(Element { name, value: text_of(content).unwrap_or_default() });
    }
    Ok(elements)
}

fn counted(row: &Row, range: Range<usize>, view: View<'_>) -> Result<Vec<Element>, Halt> {
    let mut elements = Vec::with_capacity(range.len());
    let mut place = 0;
    for (column, cell) in row.cells_in_order() {
        if place >= range.end {
            break;
        }
        let Column::Element(name) = column.as_ref() else { continue };
        let state = cell.at(view).ok_or(Gone)?.state;
        if !state.is_live() {
            continue;
        }
        if place >= range.start {
            let value = text_of(state.content()).unwrap_or_default();
            elements.push(Element { name: name.clone(), value });
        }
        place += 1;
    }
    Ok(elements)
}
