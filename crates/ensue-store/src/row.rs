//! A row: the columns of one key, of which only those of the newest live column's kind are shown.
//!
//! Strings are rows of one column; hashes, sets, sorted sets, lists and streams are rows whose columns merge one by
//! one. The row keeps counts of its live columns, so that asking for its kind does not walk them.

use crate::cell::{Cell, Content, Keep, Outcome, Write};
use crate::columns::Columns;
use crate::columns::{Large, PutSettled};
use crate::counted::{Changed, Counted, Shows};
use crate::forgetting::{Forgets, Forgotten};
use crate::order::{self, Corrected};
use crate::settled::{self, Settled};
use crate::versions::{Version, Versions};
use crate::view::View;
use bytes::Bytes;
use ensue_types::{Carried, Column, Effect, LogicalTime, OperationId, Source, Stamp, Visibility};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

pub use crate::columns::LARGE;
use dated::Dated;

pub(crate) mod dated;
mod ended;

/// What a row is to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Text,
    Hash,
    Set,
    SortedSet,
    List,
    Stream,
    Bounded,
}

impl Kind {
    /// How many there are.
    pub(crate) const COUNT: usize = 7;

    pub(crate) const ALL: [Kind; Kind::COUNT] =
        [Kind::Text, Kind::Hash, Kind::Set, Kind::SortedSet, Kind::List, Kind::Stream, Kind::Bounded];

    /// Whether its columns have an order that commands ask for.
    pub(crate) fn is_ordered(self) -> bool {
        matches!(self, Kind::SortedSet | Kind::List | Kind::Stream)
    }

    /// The kind that a column belongs to; the row's deadline belongs to none.
    pub fn of(column: &Column) -> Option<Kind> {
        match column {
            Column::Text => Some(Kind::Text),
            Column::Field(_) | Column::FieldDeadline(_) => Some(Kind::Hash),
            Column::Member(_) => Some(Kind::Set),
            Column::Scored(_) => Some(Kind::SortedSet),
            Column::Element(_) => Some(Kind::List),
            Column::Stream(_) => Some(Kind::Stream),
            Column::Escrow(_) => Some(Kind::Bounded),
            Column::Deadline | Column::Row => None,
        }
    }

    /// The kind of what a column shows; a deadline shows nothing, nor does what is nothing without others.
    pub fn shown_by(column: &Column) -> Option<Kind> {
        if column.is_beneath() { None } else { Kind::of(column) }
    }

    /// The word that `TYPE` answers.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Text => "string",
            Kind::Hash => "hash",
            Kind::Set => "set",
            Kind::SortedSet => "zset",
            Kind::List => "list",
            Kind::Stream => "stream",
            Kind::Bounded => "bcounter",
        }
    }
}

/// A row.
#[derive(Clone, Debug)]
pub struct Row {
    key: Bytes,
    columns: Columns,
    deadline: Option<Box<Cell>>,
    /// The removals of all columns.
    ended: Option<Box<Cell>>,
    /// The deadlines of its fields, if there are any.
    dated: Option<Box<Dated>>,
    /// Live columns of each kind now, those apart that show nothing by themselves.
    live: [u32; Kind::COUNT],
    /// Live parts of a stream now that show nothing by themselves.
    beneath: u32,
    /// Versions of all columns that are not settled.
    unsettled: u32,
    /// With more columns it is large.
    columns_max: u16,
    /// The latest time at which any column changed.
    since: LogicalTime,
    /// As what its keyspace has counted it.
    pub(crate) counted_as: Shows,
}

impl Row {
    pub fn new(key: Bytes, since: LogicalTime) -> Row {
        Row {
            key,
            columns: Columns::None,
            deadline: None,
            ended: None,
            dated: None,
            live: [0; Kind::COUNT],
            beneath: 0,
            unsettled: 0,
            columns_max: LARGE as u16,
            since,
            counted_as: Shows::default(),
        }
    }

    /// A row of one text column, and its deadline if there is one, live and the same to every view.
    pub(crate) fn of_text(key: Bytes, cell: Cell, deadline: Option<Cell>) -> Row {
        let since = cell.since();
        let columns = Columns::One(Column::Text, cell);
        let mut live = [0; Kind::COUNT];
        live[Kind::Text as usize] = 1;
        Row { columns, deadline: deadline.map(Box::new), live, ..Row::new(key, since) }
    }

    /// The text, and the deadline, if there is nothing else.
    pub(crate) fn text_alone(&self) -> Option<(&Cell, Option<&Cell>)> {
        match &self.columns {
            Columns::One(Column::Text, cell) if self.ended.is_none() => {
                Some((cell, self.deadline.as_deref()))
            }
            _ => None,
        }
    }

    /// The same, large with more columns than this.
    pub(crate) fn with_columns_max(self, columns_max: u16) -> Row {
        Row { columns_max, ..self }
    }

    /// A row of several settled columns.
    pub(crate) fn of_cells(key: Bytes, since: LogicalTime, mut cells: BTreeMap<Column, Cell>) -> Row {
        let mut live = [0; Kind::COUNT];
        for kind in cells.keys().filter_map(Kind::shown_by) {
            live[kind as usize] += 1;
        }
        let columns = match cells.len() {
            1 => cells.pop_first().map_or(Columns::None, |(column, cell)| Columns::One(column, cell)),
            _ => Columns::Many(cells),
        };
        Row { columns, live, ..Row::new(key, since) }
    }

    /// The text column, if it is all there is.
    pub fn only_text(&self) -> Option<&Cell> {
        match &self.columns {
            Columns::One(Column::Text, cell) if self.deadline.is_none() && self.ended.is_none() => Some(cell),
            _ => None,
        }
    }

    pub fn key(&self) -> &Bytes {
        &self.key
    }

    /// Every column's present state is valid from this time on.
    pub fn since(&self) -> LogicalTime {
        self.since
    }

    /// Versions of all columns that are not settled.
    pub fn unsettled(&self) -> usize {
        self.unsettled as usize
    }

    /// Whether a view shows the row as it is now.
    pub fn is_newest(&self, view: View<'_>) -> bool {
        match view {
            View::At(at) | View::With(at, _) => self.since <= at,
            View::Newest => true,
            View::Visibility(_) | View::Writer(..) => self.unsettled == 0,
        }
    }

    /// A column's cell, whatever the row's kind.
    pub fn cell(&self, column: &Column) -> Option<Cow<'_, Cell>> {
        match column {
            Column::Deadline => self.deadline.as_deref().map(Cow::Borrowed),
            Column::Row => self.ended.as_deref().map(Cow::Borrowed),
            _ => self.columns.get(column),
        }
    }

    /// A column of a large row, if it is settled.
    pub fn settled(&self, column: &Column) -> Option<Settled<'_>> {
        self.columns.large()?.settled(column)
    }

    /// What is counted of a column, if it is there.
    pub(crate) fn counted(&self, column: &Column) -> Option<Counted> {
        match (column, &self.columns) {
            (Column::Deadline, _) => self.deadline.as_deref().map(|cell| Counted::of(column, cell)),
            (Column::Row, _) => self.ended.as_deref().map(|cell| Counted::of(column, cell)),
            (_, Columns::Large(large)) => large.counted(column),
            (_, columns) => columns.get(column).map(|cell| Counted::of(column, &cell)),
        }
    }

    /// The same of all columns.
    pub(crate) fn counted_all(&self) -> impl Iterator<Item = Counted> {
        self.all_cells().filter_map(|(column, _)| self.counted(&column))
    }

    /// Bytes that are counted for its columns; of a large row about so many, if only some of them are to be looked at.
    pub(crate) fn columns_bytes(&self, samples: Option<NonZeroUsize>) -> u64 {
        let Some(large) = self.columns.large() else {
            return self.counted_all().map(|counted| counted.bytes).sum();
        };
        let beside = [Column::Deadline, Column::Row].map(|column| self.counted(&column));
        beside.iter().flatten().map(|counted| counted.bytes).sum::<u64>() + large.bytes(samples)
    }

    /// All cells but those of the deadline and of the whole row, in the order of their columns unless the row is large.
    pub fn cells(&self) -> impl Iterator<Item = (Cow<'_, Column>, Cow<'_, Cell>)> {
        self.columns.iter()
    }

    /// The same in the order of their columns.
    pub fn cells_in_order(&self) -> impl Iterator<Item = (Cow<'_, Column>, Cow<'_, Cell>)> {
        let mut sorted: Vec<(Cow<'_, Column>, Cow<'_, Cell>)> = Vec::new();
        if self.is_large() {
            sorted.extend(self.cells());
            sorted.sort_unstable_by(|(column, _), (other, _)| column.cmp(other));
        }
        let kept = (!self.is_large()).then(|| self.cells());
        sorted.into_iter().chain(kept.into_iter().flatten())
    }

    /// All cells, that of the whole row first, and the deadline's last.
    pub fn all_cells(&self) -> impl Iterator<Item = (Cow<'_, Column>, Cow<'_, Cell>)> {
        let (ended, deadline) = (self.ended.as_deref(), self.deadline.as_deref());
        let ended = ended.map(|cell| (Cow::Owned(Column::Row), Cow::Borrowed(cell)));
        ended
            .into_iter()
            .chain(self.cells())
            .chain(deadline.map(|cell| (Cow::Owned(Column::Deadline), Cow::Borrowed(cell))))
    }

    /// What is not settled of all columns.
    pub fn versions(&self) -> impl Iterator<Item = &Versions> {
        self.columns.whole().chain(self.deadline.as_deref()).filter_map(Cell::versions)
    }

    /// Some of the cells, from a place on that an earlier step answered, at most about so many and of so many places,
    /// and the place to go on from; nothing at the end. Of a row that is not large all are one step.
    pub fn cells_from(
        &self,
        place: usize,
        (count, places): (usize, usize),
    ) -> (impl Iterator<Item = (Cow<'_, Column>, Cow<'_, Cell>)>, Option<usize>) {
        let (few, some, next) = match self.columns.large() {
            Some(large) => {
                let (some, next) = large.from(place, (count, places));
                (None, Some(some), next)
            }
            None => (Some(self.columns.iter()), None, None),
        };
        (few.into_iter().flatten().chain(some.into_iter().flatten()), next)
    }

    /// How many places there are that `cells_from` may go on from, some of them empty.
    pub fn places_count(&self) -> usize {
        self.columns.large().map_or(1, Large::slots_count)
    }

    /// What a view shows of a large row, without a walk through it, unless that is a past state.
    pub fn summary(&self, view: View<'_>) -> Option<Summary<'_>> {
        let large = self.columns.large()?;
        if view.time().is_some() && !self.is_newest(view) {
            return None;
        }
        let open = large.waiting().map(|(_, cell)| cell).collect();
        Some(Summary { since: self.since, latest: large.summary(), recent: large.recent().collect(), open })
    }

    /// Whether columns of more than one kind stand here, live or dead: what is shown then depends on all of them.
    pub fn is_mixed(&self) -> bool {
        self.columns.len() > 0 && self.sole_kind().is_none()
    }

    /// The kind of all columns, live and dead, if there are any and they are of one.
    pub fn sole_kind(&self) -> Option<Kind> {
        self.columns.sole_kind()
    }

    pub fn is_empty(&self) -> bool {
        matches!(self.columns, Columns::None) && self.deadline.is_none() && self.ended.is_none()
    }

    pub fn columns_count(&self) -> usize {
        self.columns.len()
    }

    /// Bytes of the names of all its columns, live and dead.
    pub fn name_bytes(&self) -> usize {
        if let Some(large) = self.columns.large() {
            return large.name_bytes();
        }
        let name = |column: &Column| settled::parts_of(column).map_or(0, |(_, name)| name.len());
        self.cells().map(|(column, _)| name(&column)).sum()
    }

    /// Whether every view shows its deadline alone, or nothing, and there is nothing of a stream.
    pub fn is_spent(&self) -> bool {
        self.unsettled == 0 && self.live == [0; Kind::COUNT] && self.beneath == 0
    }

    /// What is counted of it.
    pub(crate) fn shows(&self) -> Shows {
        // Deadlines apart.
        let something = self.live != [0; Kind::COUNT];
        let deadline = something && self.deadline_at(View::Newest).is_ok_and(|deadline| deadline.is_some());
        Shows { something, deadline }
    }

    /// Live columns of a kind now, not counting the deadline's passing.
    pub fn live_count(&self, kind: Kind) -> usize {
        self.live[kind as usize] as usize
    }

    /// The kind shown now, not counting the deadline's passing: that of the newest live column.
    pub fn kind(&self) -> Option<Kind> {
        let mut live = Kind::ALL.into_iter().filter(|&k| self.live_count(k) > 0);
        let first = live.next()?;
        if live.next().is_none() {
            return Some(first);
        }
        self.newest_kind(View::Newest, &BTreeMap::new()).unwrap_or_default()
    }

    /// The kind that a view shows, expired or not; `Err` if a column's state of a past time is gone.
    fn live_kind_at(&self, view: View<'_>) -> Result<Option<Kind>, Gone> {
        if self.is_newest(view) {
            return Ok(self.kind());
        }
        match (self.sole_kind(), self.live_at(view)) {
            (Some(kind), Some(live)) => Ok((live[kind as usize] > 0).then_some(kind)),
            _ => self.newest_kind(view, &BTreeMap::new()),
        }
    }

    /// The kind of the newest live column, but for those that are no values, and these fields.
    fn newest_kind(&self, view: View<'_>, without: &BTreeMap<Bytes, u64>) -> Result<Option<Kind>, Gone> {
        let mut newest: Option<(Stamp, Cow<'_, Column>)> = None;
        for (column, cell) in self.cells().filter(|(column, _)| !column.is_beneath()) {
            if matches!(column.as_ref(), Column::Field(name) if without.contains_key(name)) {
                continue;
            }
            let state = cell.at(view).ok_or(Gone)?.state;
            let shown = (state.newest_shown(), column);
            if state.is_live() && newest.as_ref().is_none_or(|newest| *newest <= shown) {
                newest = Some(shown);
            }
        }
        Ok(newest.and_then(|(_, column)| Kind::of(&column)))
    }

    /// How many live columns of each kind a view shows, if that is known without a walk.
    fn live_at(&self, view: View<'_>) -> Option<[usize; Kind::COUNT]> {
        if self.is_newest(view) {
            return Some(self.live.map(|live| live as usize));
        }
        let large = self.columns.large().filter(|_| view.time().is_none())?;
        let at = |kind: Kind| (i64::from(self.live[kind as usize]) + large.live_beyond(kind, view)) as usize;
        Some(Kind::ALL.map(at))
    }

    /// How many live columns of a kind a view shows, not counting the deadline's passing.
    pub fn live_count_at(&self, kind: Kind, view: View<'_>) -> Result<usize, Gone> {
        if let Some(live) = self.live_at(view) {
            return Ok(live[kind as usize]);
        }
        let mut count = 0;
        for (_, cell) in self.cells().filter(|(column, _)| Kind::shown_by(column) == Some(kind)) {
            count += usize::from(cell.at(view).ok_or(Gone)?.state.is_live());
        }
        Ok(count)
    }

    /// Whether a view shows a live column of a kind, not counting the deadline's passing.
    pub fn has_live(&self, kind: Kind, view: View<'_>) -> bool {
        if let Some(live) = self.live_at(view) {
            return live[kind as usize] > 0;
        }
        let mut cells = self.cells().filter(|(column, _)| Kind::shown_by(column) == Some(kind));
        cells.any(|(_, cell)| cell.at(view).is_some_and(|shown| shown.state.is_live()))
    }

    /// The deadline that a view shows, in milliseconds since 1970.
    pub fn deadline_at(&self, view: View<'_>) -> Result<Option<u64>, Gone> {
        let Some(cell) = &self.deadline else { return Ok(None) };
        match cell.at(view).ok_or(Gone)?.state.content() {
            Content::Bytes(bytes) => Ok(bytes.as_ref().try_into().ok().map(u64::from_le_bytes)),
            _ => Ok(None),
        }
    }

    /// Merges a write into a column that was empty, if it is new here, since `empty_since`.
    pub fn apply(
        &mut self,
        column: &Column,
        effect: &Effect,
        write: &Write,
        keep: Keep<'_>,
        empty_since: LogicalTime,
    ) -> Changed {
        self.change(column, write, empty_since, |cell| cell.apply(effect, write, keep))
    }

    /// Merges a settled write in the same way.
    pub fn restore(
        &mut self,
        column: &Column,
        effect: &Effect,
        write: &Write,
        keep: Keep<'_>,
        empty_since: LogicalTime,
    ) -> Changed {
        self.change(column, write, empty_since, |cell| cell.restore(effect, write, keep))
    }

    /// Hides the base of a column that a flush covers.
    pub fn flush(&mut self, column: &Column, flush: &Write, keep: Keep<'_>) -> Changed {
        if self.counted(column).is_none() {
            return Changed::nothing();
        }
        self.change(column, flush, flush.at, |cell| cell.flush(flush, keep))
    }

    fn change(
        &mut self,
        column: &Column,
        write: &Write,
        empty_since: LogicalTime,
        change: impl FnOnce(&mut Cell) -> Outcome,
    ) -> Changed {
        // The columns of a large row may take less than their cells.
        let is_large = self.is_large();
        let known = self.counted(column).filter(|_| is_large);
        let (_, is_new) = self.entry(column, empty_since);
        let saved = if !is_large && self.is_large() { self.saved_by_being_large() } else { 0 };
        let (cell, _) = self.entry(column, empty_since);
        let before = match known {
            Some(known) => known,
            None if is_new => Counted::default(),
            None => Counted::of(column, cell),
        };
        let outcome = change(cell);
        let mut after = Counted::of(column, cell);
        if self.is_large() {
            self.note_large(column, Some(write.operation));
            after = self.counted(column).unwrap_or_default();
        }
        self.date(column);
        self.note(column, write, Changed { outcome, before, after, saved })
    }

    fn saved_by_being_large(&self) -> u64 {
        let saved = |(column, cell): (Cow<'_, Column>, Cow<'_, Cell>)| {
            Counted::of(&column, &cell).bytes - self.counted(&column).unwrap_or_default().bytes
        };
        self.cells().map(saved).sum()
    }

    /// Merges a write into a column of a large row that is settled and stays so, or makes one of it.
    pub(crate) fn put_settled(
        &mut self,
        column: &Column,
        effect: &Effect,
        write: &Write,
        empty_since: LogicalTime,
    ) -> Option<PutSettled> {
        let put = self.columns.large_mut()?.put_settled(column, effect, write, empty_since)?;
        if put.outcome == Outcome::Won {
            self.since = self.since.max(write.at);
            self.count(column, put.before.is_live, true);
            self.date(column);
        }
        Some(put)
    }

    /// Folds what is settled of a column.
    pub(crate) fn settle(&mut self, column: &Column, settled: &dyn Visibility) {
        let Some(cell) = self.cell_mut(column) else { return };
        let before = cell.unsettled();
        cell.settle(settled);
        self.unsettled -= (before - cell.unsettled()) as u32;
        self.note_large(column, None);
    }

    /// Takes out of a column the writes that are as if they had never been.
    pub(crate) fn discard(&mut self, column: &Column, discarded: &dyn Fn(&Source) -> bool) -> Vec<Version> {
        let Some(cell) = self.cell_mut(column) else { return Vec::new() };
        let was_live = cell.state().is_live();
        let gone = cell.discard(discarded);
        let is_live = cell.state().is_live();
        self.count(column, was_live, is_live);
        self.date(column);
        self.unsettled -= gone.len() as u32;
        self.note_large(column, None);
        gone
    }

    /// Forgets what stands behind a column's value.
    pub(crate) fn forget_undominated(&mut self, column: &Column) {
        if let Some(cell) = self.cell_mut(column) {
            cell.forget_undominated();
        }
        if let Some(large) = self.columns.large_mut() {
            large.settle(column);
        }
    }

    /// See `State::note_undominated`.
    pub(crate) fn note_undominated(&mut self, column: &Column) -> Option<(u32, Stamp)> {
        self.cell_mut(column)?.note_undominated()
    }

    /// Has what stands behind a column's value noted again.
    pub(crate) fn unnote_undominated(&mut self, column: &Column) {
        if let Some(cell) = self.cell_mut(column) {
            cell.unnote_undominated();
        }
    }

    /// Notes what a write of this stamp carries; what is counted of the column before and after.
    pub(crate) fn carry(
        &mut self,
        column: &Column,
        stamp: Stamp,
        dependencies: &Arc<Carried>,
    ) -> Option<(Counted, Counted)> {
        let before = self.counted(column)?;
        self.cell_mut(column)?.carry(stamp, dependencies);
        Some((before, self.counted(column)?))
    }

    /// Removes a column for good.
    pub fn remove(&mut self, column: &Column) -> Option<Cell> {
        let removed = match column {
            Column::Deadline => self.deadline.take().map(|cell| *cell),
            Column::Row => self.ended.take().map(|cell| *cell),
            _ => self.columns.remove(column),
        }?;
        self.count(column, removed.state().is_live(), false);
        self.unsettled -= removed.unsettled() as u32;
        self.date(column);
        Some(removed)
    }

    /// Puts a cell into the place of the one that is there.
    pub(crate) fn replace(&mut self, column: &Column, cell: Cell) {
        let since = self.since;
        let (place, _) = self.entry(column, since);
        let (was_live, unsettled) = (place.state().is_live(), place.unsettled());
        let (is_live, left) = (cell.state().is_live(), cell.unsettled());
        *place = cell;
        self.unsettled = self.unsettled - unsettled as u32 + left as u32;
        self.count(column, was_live, is_live);
        self.date(column);
        self.note_large(column, None);
    }

    pub(crate) fn set_since(&mut self, since: LogicalTime) {
        self.since = since;
    }

    /// Forgets the past states of every column; says at how many it looked, and how many bytes less are counted.
    pub(crate) fn forget_history(&mut self) -> Forgotten {
        self.deadline
            .as_deref_mut()
            .into_iter()
            .chain(self.ended.as_deref_mut())
            .for_each(Cell::forget_history);
        match &mut self.columns {
            Columns::Large(large) => large.forget_history(),
            columns => {
                columns.cells_mut().for_each(Cell::forget_history);
                Forgotten { looked_at: columns.len(), ..Forgotten::default() }
            }
        }
    }

    /// Forgets what settled values depend on. Of a large row, it looks at so many columns, from this place on.
    pub(crate) fn forget_dependencies(
        &mut self,
        forgets: &Forgets<'_>,
        from: usize,
        columns: usize,
    ) -> Forgotten {
        let cells = match &mut self.columns {
            Columns::Large(_) => None,
            columns => Some(columns.cells_mut()),
        };
        let cells = cells.into_iter().flatten().chain(self.deadline.as_deref_mut());
        let cells = cells.chain(self.ended.as_deref_mut());
        let mut forgotten = Forgotten::default();
        for cell in cells {
            forgotten.dependencies += cell.forget_dependencies(forgets);
            forgotten.looked_at += 1;
        }
        match self.columns.large_mut() {
            Some(large) => forgotten.and(large.forget_dependencies(forgets, from, columns)),
            None => forgotten,
        }
    }

    fn cell_mut(&mut self, column: &Column) -> Option<&mut Cell> {
        match column {
            Column::Deadline => self.deadline.as_deref_mut(),
            Column::Row => self.ended.as_deref_mut(),
            _ => self.columns.get_mut(column),
        }
    }

    fn entry(&mut self, column: &Column, empty_since: LogicalTime) -> (&mut Cell, bool) {
        match column {
            Column::Deadline => {
                let is_new = self.deadline.is_none();
                (self.deadline.get_or_insert_with(|| Box::new(Cell::new(empty_since))), is_new)
            }
            Column::Row => {
                let is_new = self.ended.is_none();
                (self.ended.get_or_insert_with(|| Box::new(Cell::new(empty_since))), is_new)
            }
            _ => self.columns.entry(column, empty_since, usize::from(self.columns_max)),
        }
    }

    /// Whether the row has, or had, more than `LARGE` columns.
    pub fn is_large(&self) -> bool {
        self.columns.large().is_some()
    }

    /// Forgets which write made which column, of those that are settled, if the row is large.
    pub(crate) fn summarise(&mut self, is_settled: &dyn Fn(&OperationId) -> bool) {
        if let Some(large) = self.columns.large_mut() {
            large.summarise(is_settled);
        }
    }

    /// Notes that a write depends on all that is here.
    pub(crate) fn observe(&mut self, by: &Write) {
        if let Some(large) = self.columns.large_mut() {
            large.observe(by);
        }
    }

    /// Keeps the order of a large sorted set, list or stream from now on; says how many bytes more are counted.
    pub(crate) fn keep_order(&mut self) -> u64 {
        if !self.sole_kind().is_some_and(Kind::is_ordered) {
            return 0;
        }
        self.columns.large_mut().map_or(0, |large| large.keep_order())
    }

    /// Whether the order of the columns is kept: of all that stands here, nothing but members of a sorted set does,
    /// or elements of a list, or parts of a stream.
    pub fn keeps_order(&self) -> bool {
        self.sole_kind().is_some_and(Kind::is_ordered)
            && self.columns.large().is_some_and(|large| large.order().is_some())
    }

    /// The members of a sorted set, or the names of a list's elements or a stream's parts, as a view shows them, if
    /// their order is kept and the view is of no past state.
    pub fn ordered(&self, view: View<'_>) -> Option<Corrected<'_>> {
        let large = self.columns.large().filter(|_| self.keeps_order())?;
        let order = large.order()?;
        if view.time().is_some() && !self.is_newest(view) {
            return None;
        }
        let (mut hidden, mut shown) = (Vec::new(), Vec::new());
        for (column, cell) in large.waiting() {
            let name = order::name_in_order(column)?;
            let newest = order::score_in_order(column, cell.state());
            let seen = order::score_in_order(column, &cell.at(view)?.state);
            if newest != seen {
                hidden.extend(newest.map(|score| (score, name.clone())));
                shown.extend(seen.map(|score| (score, name.clone())));
            }
        }
        Some(Corrected::new(order, hidden, shown))
    }

    fn note_large(&mut self, column: &Column, by: Option<OperationId>) {
        if let Some(large) = self.columns.large_mut() {
            large.note(column, by);
        }
    }

    fn note(&mut self, column: &Column, write: &Write, changed: Changed) -> Changed {
        let Changed { outcome, before, after, .. } = changed;
        let versions_added = after.unsettled - before.unsettled;
        // A row holds fewer versions than there are bytes of memory, which are bounded.
        self.unsettled += versions_added as u32;
        // A write that lost is a version too, and so is a flush that hides from some views alone.
        if outcome == Outcome::Won || versions_added > 0 {
            self.since = self.since.max(write.at);
        }
        if outcome == Outcome::Won {
            self.count(column, before.is_live, after.is_live);
        }
        changed
    }

    fn count(&mut self, column: &Column, was_live: bool, is_live: bool) {
        let live = match Kind::shown_by(column) {
            Some(kind) => &mut self.live[kind as usize],
            None if matches!(column, Column::Stream(_)) => &mut self.beneath,
            None => return,
        };
        match (was_live, is_live) {
            (false, true) => *live += 1,
            (true, false) => *live -= 1,
            _ => {}
        }
    }
}

/// What a view shows of a large row.
#[derive(Clone, Debug)]
pub struct Summary<'a> {
    /// All of it has been here since then.
    pub since: LogicalTime,
    /// Of the writes that nobody need remember one by one, those that were replaced among them, the latest of each
    /// stream, with all that they carried.
    pub latest: &'a [Source],
    /// The others, of columns of which every view shows the same. Some may stand here twice.
    pub recent: Vec<Source>,
    /// The columns that are not the same to every view.
    pub open: Vec<&'a Cell>,
}

/// The state of the asked time is no longer known: the reader must start again (trap 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;
