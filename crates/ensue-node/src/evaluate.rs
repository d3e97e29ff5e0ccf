//! The evaluation in which an owner evaluates commands: reads of rows at one logical time, and the effects of writes.
//!
//! Arrives: a keyspace, a logical time, a view, and, for writes, a stamp. Promises: every location that was looked at
//! is in `Observed` (how long it has been valid, and which writes made it), and every effect is merged into the
//! keyspace at once, so that later commands of one transaction see earlier ones, whatever the view. It does not know
//! Redis commands.

mod drawn;
mod elements;
mod escrow;
mod fields;
mod made;
mod observed;
mod order;
mod parts;
mod removal;
mod writer;

use bytes::Bytes;
use ensue_store::cell::{Addition, Cell, Content, State};
use ensue_store::compact::{Compact, RowRef};
use ensue_store::keyspace::{Keyspace, Written};
use ensue_store::layout::effect_bytes_beside;
use ensue_store::row::{Gone, Kind};
use ensue_store::settled::Settled;
use ensue_store::view::View;
use ensue_types::{
    Column, DatacenterId, Decimal, Effect, EpochSum, LogicalTime, Previous, Reply, RowEffect, Rule, Stamp,
    limits,
};

pub use drawn::Draw;
pub use elements::Element;
pub use escrow::{Held, shown_escrow};
use made::Made;
pub use observed::{LooksUp, Observed};
pub use order::{Ordered, Scored};
pub use parts::Parts;
use removal::removable;
pub use writer::{Changes, Writer};

/// A walk over a row takes about this many steps however small its steps are to be, unless they would answer more
/// columns than the other.
const STEPS: usize = 128;
const STEP_MAX: usize = 512;

/// What an effect takes in an entry beside its key, its column's name and its value: its header, and what it covers or
/// replaces, where few datacenters write. What more it may take depends on the row (`Evaluation::bytes_above`).
const EFFECT_BYTES: usize = 80;
/// The same, whatever it covers.
const EFFECT_BYTES_MAX: usize = 1 << 15;

/// A write that would not fit into an entry has changed nothing.
pub const TOO_MUCH: Reply = Reply::error(
    "ERR too much for one write: what it changes takes more than 160 MiB, counting its key with every field or member; split it, or \
     delete a key first that is too large to be overwritten at once",
);

/// An answer that would be too long is not given.
pub const ANSWER_TOO_LONG: Reply = Reply::error(
    "ERR the answer is too long: it takes more than 128 MiB; ask for fewer keys, fields or members at once, or walk them with SCAN",
);

/// The answer to a read, if it is not too long.
pub fn within_bound(reply: Reply) -> Reply {
    if reply.encoded_bytes() > limits::ANSWER_BYTES_MAX { ANSWER_TOO_LONG } else { reply }
}

/// Answers that travel in one message, in the order in which they are made: beyond the bound those of reads are left
/// out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Room {
    taken: usize,
}

impl Room {
    /// The answers to reads, each with its place, as far as they fit.
    pub fn fit_all(replies: Vec<(u32, Reply)>) -> Vec<(u32, Reply)> {
        let mut room = Room::default();
        replies.into_iter().map(|(place, reply)| (place, room.fit(reply, false))).collect()
    }

    pub fn fit(&mut self, reply: Reply, is_write: bool) -> Reply {
        let bytes = reply.encoded_bytes();
        // What a write answers is short, or one value; it was made and must be answered.
        if !is_write && self.taken + bytes > limits::ANSWER_BYTES_MAX {
            return ANSWER_TOO_LONG;
        }
        self.taken += bytes;
        reply
    }
}

/// Why a command stops.
#[derive(Clone, Debug, PartialEq)]
pub enum Halt {
    /// The row holds another kind of value.
    WrongType,
    /// The past that a second round asks for is no longer known.
    Gone,
    /// The command's own error.
    Error(Reply),
}

impl From<Gone> for Halt {
    fn from(_: Gone) -> Halt {
        Halt::Gone
    }
}

/// Some of a row's columns, and the place from which a walk over it goes on.
pub type Page = (Vec<(Column, Content)>, Option<usize>);

/// One evaluation.
pub struct Evaluation<'a> {
    keyspace: &'a mut Keyspace,
    at: LogicalTime,
    /// How rows are looked at. A write never looks at a time: the order of its rows has brought them to its own, even
    /// if that lies before a restart, of which the past is no longer known.
    view: View<'a>,
    writer: Option<&'a mut Writer>,
    pub observed: Observed,
    /// What commands that choose by chance begin with.
    pub seed: u64,
    /// If changes are noted: what the command has made.
    made: Made,
}

impl<'a> Evaluation<'a> {
    /// Reads at a logical time, past or present, what the view shows.
    pub fn reading(keyspace: &'a mut Keyspace, at: LogicalTime, view: View<'a>) -> Evaluation<'a> {
        let observed = Observed::after(keyspace.flush_seen(view));
        Evaluation { keyspace, at, view, writer: None, observed, seed: at.0, made: Made::default() }
    }

    /// A command has ended: what it looked at is what the next one, or its caller, goes on from.
    pub fn end_command(&mut self, looks_up: LooksUp) {
        self.observed.end_command(looks_up);
        if let Some(writer) = self.writer.as_ref().filter(|writer| !writer.changes.effects.is_empty()) {
            self.observed.leave_out(writer.write.operation);
        }
    }

    /// Reads and writes at the writer's time, which is the present. The view is no past time; whatever it is, the
    /// write's own earlier effects are seen.
    pub fn writing(keyspace: &'a mut Keyspace, writer: &'a mut Writer, view: View<'a>) -> Evaluation<'a> {
        let view = view.of_writer(writer.write.stamp);
        Evaluation {
            observed: Observed::after(keyspace.flush_seen(view)),
            keyspace,
            at: writer.write.at,
            view,
            seed: writer.write.at.0,
            made: Made::default(),
            writer: Some(writer),
        }
    }

    /// How many changes of rows have been noted, if they are.
    pub fn written_count(&self) -> Option<usize> {
        self.keyspace.written_count()
    }

    /// Takes the changes out that were noted after so many.
    pub fn take_written(&mut self, after: usize) -> Vec<Written> {
        self.keyspace.take_written(after)
    }

    /// Puts changes back, named.
    pub fn put_written(&mut self, written: Vec<Written>) {
        self.keyspace.put_written(written);
    }

    /// Whether a row shows nothing, without observing it.
    pub fn is_absent(&self, key: &[u8]) -> bool {
        self.keyspace.another_row(key).is_none_or(|row| self.visible_kind(row).is_none())
    }

    /// The logical time of the evaluation; its physical part is the time that `EXPIRE` counts from.
    pub fn at(&self) -> LogicalTime {
        self.at
    }

    /// All rows, for commands that walk the keyspace. Those take no part in snapshots and observe nothing.
    pub fn keyspace(&self) -> &Keyspace {
        self.keyspace
    }

    /// Whether a row shows anything at this time, without observing it: for walks over the keyspace.
    pub fn visible_kind(&self, row: RowRef<'_>) -> Option<Kind> {
        shown_kind(row, self.at, self.view)
    }

    /// The kind of a row, or nothing if it is absent.
    pub fn kind(&mut self, key: &[u8]) -> Result<Option<Kind>, Halt> {
        let Some(row) = present(self.keyspace, &mut self.observed, key, self.view, self.at)? else {
            return Ok(None);
        };
        let kind = row.kind_at(self.view, self.at.ms())?;
        self.observed.look_up(kind.is_some());
        observe_row(&mut self.observed, row, self.view)?;
        fields::observe_expired(&mut self.observed, row, (self.view, self.at))?;
        Ok(kind)
    }

    /// The number under which a key is watched from now on.
    pub fn watch(&mut self, key: &[u8]) -> Result<u64, Halt> {
        let is_there = self.kind(key)?.is_some();
        Ok(self.keyspace.watch(key, is_there, self.at))
    }

    /// Whether nothing has happened to a key since it was watched under this number.
    pub fn is_as_watched(&mut self, key: &[u8], number: u64) -> Result<bool, Halt> {
        let is_there = self.kind(key)?.is_some();
        Ok(self.keyspace.is_as_watched(key, number, is_there))
    }

    /// The content of one column if the row is of the column's kind, or absent.
    pub fn content(&mut self, key: &[u8], column: &Column) -> Result<Content, Halt> {
        let text = |row: &Compact| Content::Bytes(Bytes::copy_from_slice(row.value()));
        let shows = (text, |settled: &Settled<'_>| settled.content(), State::content);
        self.look(key, column, Content::Nothing, shows, |content| *content != Content::Nothing)
    }

    /// Makes room for what is observed of so many keys.
    pub fn expect_keys(&mut self, keys: usize) {
        self.observed.sources.reserve(keys);
    }

    /// Whether one column has a content, if the row is of the column's kind, or absent.
    pub fn has_content(&mut self, key: &[u8], column: &Column) -> Result<bool, Halt> {
        let shows = (|_: &Compact| true, |_: &Settled<'_>| true, State::is_live);
        self.look(key, column, false, shows, |is_live| *is_live)
    }

    /// Looks at one column, if the row is of the column's kind, or absent, and observes it. What is answered where
    /// nothing is; of a compact row, of a settled column, and of a state; and whether that is something.
    fn look<T>(
        &mut self,
        key: &[u8],
        column: &Column,
        nothing: T,
        (of_compact, of_settled, of_state): (
            impl FnOnce(&Compact) -> T,
            impl FnOnce(&Settled<'_>) -> T,
            impl FnOnce(&State) -> T,
        ),
        is_something: impl FnOnce(&T) -> bool,
    ) -> Result<T, Halt> {
        let Some(row) = present(self.keyspace, &mut self.observed, key, self.view, self.at)? else {
            return Ok(nothing);
        };
        // Where every column is of the asked kind, live or dead, the others have no say.
        let asked = Kind::of(column);
        if let RowRef::Compact(row) = row {
            self.observed.record_compact(row, self.view)?;
            self.observed.look_up(true);
            return if asked == Some(Kind::Text) { Ok(of_compact(row)) } else { Err(Halt::WrongType) };
        }
        if row.sole_kind() != asked {
            observe_row(&mut self.observed, row, self.view)?;
            if row.kind_at(self.view, self.at.ms())?.is_some_and(|shown| Some(shown) != asked) {
                self.observed.look_up(true);
                return Err(Halt::WrongType);
            }
        }
        if fields::look(&mut self.observed, row, column, (self.view, self.at))? {
            self.observed.look_up(row.kind_at(self.view, self.at.ms())?.is_some());
            return Ok(nothing);
        }
        let settled = match row {
            RowRef::Whole(row) => row.settled(column),
            RowRef::Packed(row) => row.get(column),
            RowRef::Compact(_) => None,
        };
        if let Some(settled) = settled {
            self.observed.record_settled(&settled, self.view)?;
            self.observed.look_up(true);
            return Ok(of_settled(&settled));
        }
        let cell = if let RowRef::Whole(row) = row { row.cell(column) } else { None };
        let found = match cell {
            None => {
                absent(self.keyspace, &mut self.observed, self.view)?;
                nothing
            }
            Some(cell) => {
                let shown = cell.at(self.view).ok_or(Gone)?;
                self.observed.record(&shown);
                of_state(&shown.state)
            }
        };
        self.observed.look_up(is_something(&found) || row.kind_at(self.view, self.at.ms())?.is_some());
        Ok(found)
    }

    /// Every live column of a row of this kind, in column order.
    pub fn columns(&mut self, key: &[u8], kind: Kind) -> Result<Vec<(Column, Content)>, Halt> {
        let Some(row) = present(self.keyspace, &mut self.observed, key, self.view, self.at)? else {
            return Ok(Vec::new());
        };
        observe_row(&mut self.observed, row, self.view)?;
        fields::observe_expired(&mut self.observed, row, (self.view, self.at))?;
        let shown = row.kind_at(self.view, self.at.ms())?;
        self.observed.look_up(shown.is_some());
        if shown.is_some_and(|shown| shown != kind) {
            return Err(Halt::WrongType);
        }
        let mut columns = Vec::new();
        if let RowRef::Packed(row) = row {
            row.at(self.view)?;
            let of_kind = row.columns().filter(|(column, _)| Kind::of(column) == Some(kind));
            columns.extend(of_kind.map(|(column, settled)| (column, settled.content())));
            return Ok(columns);
        }
        let row = row.whole();
        for (column, cell) in row.cells_in_order().filter(|(column, _)| Kind::shown_by(column) == Some(kind))
        {
            if fields::is_expired(&row, &column, (self.view, self.at))? {
                continue;
            }
            let content = cell.at(self.view).ok_or(Gone)?.state.content();
            if content != Content::Nothing {
                columns.push((column.into_owned(), content));
            }
        }
        Ok(columns)
    }

    /// Some of the live columns of a row of this kind, from a place on that an earlier step answered, and the place to
    /// go on from. One step looks at about `count` columns of a large row, and at all of another one.
    pub fn columns_from(&mut self, key: &[u8], kind: Kind, place: usize, count: usize) -> Result<Page, Halt> {
        let row = self.keyspace.row(key).filter(|row| row.is_large() && row.sole_kind() == Some(kind));
        if row.is_none() {
            return Ok((self.columns(key, kind)?, None));
        }
        let row = present(self.keyspace, &mut self.observed, key, self.view, self.at)?;
        let Some(RowRef::Whole(row)) = row else { return Ok((Vec::new(), None)) };
        self.observed.look_up(row.kind_at(self.view, self.at.ms())?.is_some());
        fields::observe_expired(&mut self.observed, RowRef::Whole(row), (self.view, self.at))?;
        let step = count.max((row.columns_count() / STEPS).min(STEP_MAX));
        // Where it had many columns once, it has many places still, and those without a column cost next to nothing.
        let (cells, next) = row.cells_from(place, (step, step.max(row.places_count() / STEPS)));
        let mut columns = Vec::new();
        for (column, cell) in cells {
            let shown = cell.at(self.view).ok_or(Gone)?;
            self.observed.record(&shown);
            if column.is_beneath() || fields::is_expired(row, &column, (self.view, self.at))? {
                continue;
            }
            let content = shown.state.content();
            if content != Content::Nothing {
                columns.push((column.into_owned(), content));
            }
        }
        Ok((columns, next))
    }

    /// How many live columns a row of this kind has.
    pub fn count(&mut self, key: &[u8], kind: Kind) -> Result<usize, Halt> {
        let Some(row) = present(self.keyspace, &mut self.observed, key, self.view, self.at)? else {
            return Ok(0);
        };
        let mut count = row.live_count_at(kind, self.view)?;
        if kind == Kind::Hash {
            count -= fields::expired_count(&mut self.observed, row, (self.view, self.at))?;
        }
        let shown = row.kind_at(self.view, self.at.ms())?;
        self.observed.look_up(shown.is_some());
        let other = shown.is_some_and(|shown| shown != kind);
        observe_row(&mut self.observed, row, self.view)?;
        if other { Err(Halt::WrongType) } else { Ok(count) }
    }

    /// The deadline of a row that is there, in milliseconds since 1970.
    pub fn deadline(&mut self, key: &[u8]) -> Result<Option<u64>, Halt> {
        let Some(row) = present(self.keyspace, &mut self.observed, key, self.view, self.at)? else {
            return Ok(None);
        };
        Ok(row.deadline_at(self.view)?)
    }

    /// Refuses a command before its first change, if what it is going to change would not fit into an entry beside what
    /// the same write has changed before. Nobody could log it, and its stream would end with it.
    pub fn check_room(&self, bytes: usize) -> Result<(), Halt> {
        let Some(writer) = &self.writer else { return Ok(()) };
        if writer.bytes.saturating_add(bytes) > writer.bytes_max {
            return Err(Halt::Error(TOO_MUCH));
        }
        Ok(())
    }

    /// The same of so many effects on a row that is there, of which each may cover and replace what is there.
    pub fn check_room_of(&self, key: &[u8], effects: usize, bytes: usize) -> Result<(), Halt> {
        self.check_room(bytes)?;
        // To look at the row takes long if it is large.
        if self.check_room(bytes.saturating_add(effects.saturating_mul(EFFECT_BYTES_MAX))).is_ok() {
            return Ok(());
        }
        self.check_room(bytes.saturating_add(self.bytes_above(key, effects)))
    }

    /// What so many effects on a row may take beyond what is usual: of counters, what each datacenter has added.
    fn bytes_above(&self, key: &[u8], effects: usize) -> usize {
        let overhead = self.keyspace.overhead(key);
        let names_previous = self.writer.as_ref().is_some_and(|writer| writer.wants_previous);
        let previous = if names_previous { effect_bytes_beside(overhead.puts + 1, 0) } else { 0 };
        let all = overhead.bytes(effects).saturating_add(effects.saturating_mul(previous));
        all.saturating_sub(effects.saturating_mul(EFFECT_BYTES))
    }

    /// Whether a change of the command did not fit into its entry, which no check had foreseen.
    pub fn take_is_full(&mut self) -> bool {
        self.writer.as_mut().is_some_and(|writer| std::mem::take(&mut writer.is_full))
    }

    /// Makes a row ready for a write: if its deadline has passed, its old columns are deleted in the same step, and
    /// so is a deadline that outlived its columns. Every write command calls this before its first change.
    pub fn begin_write(&mut self, key: &Bytes) -> Result<(), Halt> {
        self.keyspace.expect_write(key);
        if self.expired_view(key).is_some() && self.remove_large_row(key, true)? {
            return Ok(());
        }
        let Some((columns, view)) = self.expired_columns(key) else { return Ok(()) };
        self.remove_columns(key, columns, view)
    }

    /// Whether a key has a deadline or another column than a string's, shown or not.
    pub fn is_more_than_text(&self, key: &[u8]) -> bool {
        match self.keyspace.another_row(key) {
            None => false,
            Some(RowRef::Compact(row)) => row.deadline().is_some(),
            Some(RowRef::Packed(row)) => row.kind() != Kind::Text,
            Some(RowRef::Whole(row)) => row.only_text().is_none(),
        }
    }

    /// The live columns of a row whose deadline has passed, and how they are seen.
    fn expired_columns(&self, key: &Bytes) -> Option<(Vec<Column>, View<'a>)> {
        let view = self.expired_view(key)?;
        Some((removable(self.keyspace.row(key)?, view), view))
    }

    /// How the columns are seen of a row whose deadline has passed.
    fn expired_view(&self, key: &Bytes) -> Option<View<'a>> {
        let row = self.keyspace.row(key)?;
        if !row.may_expire() {
            return None;
        }
        // It has a deadline, or fields with one, and these may be all that it shows.
        let at_ms = self.at.ms();
        let is_expired = |view: View<'_>| match row.deadline_at(view) {
            Ok(Some(deadline)) if deadline <= at_ms => true,
            Ok(_) => row.kind_at(view, at_ms).is_ok_and(|kind| kind.is_none()),
            Err(Gone) => false,
        };
        // A deadline that has passed ends the row for writers even while they do not see it: elsewhere the row may have
        // been collected, and what is written now would stand there without what it stands beside here.
        let view = match row.is_newest(self.view) || !is_expired(View::Newest) {
            true if is_expired(self.view) => self.view,
            true => return None,
            false => View::Newest,
        };
        Some(view)
    }

    /// Whether a row shows no column of a kind.
    pub fn is_without(&self, key: &[u8], kind: Kind) -> bool {
        let Some(row) = self.keyspace.row(key) else { return false };
        match (kind, row) {
            (Kind::Hash, RowRef::Whole(row)) if row.has_field_deadlines() => {
                fields::are_none(row, self.view, self.at)
            }
            _ => !row.has_live(kind, self.view),
        }
    }

    /// Sets a column. The additions seen are covered, those not seen survive on top.
    pub fn put(&mut self, key: &Bytes, column: Column, value: Bytes) {
        let stamp = self.writer.as_ref().expect("only writes put").write.stamp;
        let (seen, mut over) = self.keyspace.beneath(key, &column, self.view, stamp.datacenter);
        over.iter_mut().for_each(|over| leave_out_later(over, stamp));
        self.change(RowEffect { key: key.clone(), column, effect: Effect::Put { value, seen, over } });
    }

    /// Deletes one live column; says whether it was there. Observes it if the answer depends on it.
    pub fn delete(&mut self, key: &Bytes, column: Column) -> Result<bool, Halt> {
        let was = self.has_content(key, &column)?;
        if was {
            self.remove_column(key, column, self.view);
        }
        Ok(was)
    }

    /// Takes the deadline off a row, which lives for ever then: as a deadline, it wins and loses by its stamp.
    pub fn clear_deadline(&mut self, key: &Bytes) {
        let is_there = match self.keyspace.row(key) {
            Some(RowRef::Whole(row)) => {
                row.cell(&Column::Deadline).is_some_and(|cell| is_live(&cell, self.view))
            }
            Some(RowRef::Compact(row)) => row.deadline().is_some() && row.at(self.view).is_ok(),
            _ => false,
        };
        if is_there {
            self.delete_column(key, Column::Deadline, self.view);
        }
    }

    /// Deletes what is left of a row without a shown column: its deadline, and what another kind of value hid.
    pub fn clear_rest(&mut self, key: &Bytes) {
        let Some(row) = self.keyspace.row(key) else { return };
        for column in removable(row, self.view) {
            self.remove_column(key, column, self.view);
        }
    }

    /// Adds to a counter; the caller has read it and knows that it is a number.
    pub fn add(&mut self, key: &Bytes, column: Column, amount: Decimal) {
        let writer = self.writer.as_ref().expect("only writes add");
        let (adder, stamp) = (writer.adder, writer.write.stamp);
        let settled = match self.keyspace.row(key) {
            Some(RowRef::Packed(row)) => row.get(&column),
            Some(RowRef::Whole(row)) => row.settled(&column),
            _ => None,
        };
        // Nothing ends the epoch of a counter that is settled.
        if let Some(known) = settled.and_then(|settled| settled.added_by(adder)) {
            if let Some(sum) = known.sum.checked_add(amount) {
                let effect = Effect::Add { epoch_sum: EpochSum { epoch: known.epoch, sum } };
                return self.change(RowEffect { key: key.clone(), column, effect });
            }
        }
        let row = self.keyspace.row(key).map(RowRef::whole);
        let cell = row.as_ref().and_then(|row| row.cell(&column));
        let newest = cell.as_deref().map(Cell::state);
        let shown = cell.as_deref().and_then(|cell| cell.at(self.view));
        // A base that this very write has set over an addition of its own covers every addition of this stamp.
        let covered =
            newest.is_some_and(|s| s.counter.iter().flat_map(|c| &c.seen).any(|seen| seen.stamp == stamp));
        // The owner orders all additions of its datacenter, so a running sum goes on from the latest, hidden or not.
        let open = |state: &State| state.open_epoch(adder).is_some();
        let epoch_sum = match newest.and_then(|state| state.open_epoch(adder)) {
            Some(epoch_sum) => {
                epoch_sum.sum.checked_add(amount).map(|sum| EpochSum { epoch: epoch_sum.epoch, sum })
            }
            // Something hidden ended the epoch that is shown. A new one would take its sum out of the reader's sight.
            None if shown.as_ref().is_some_and(|shown| open(&shown.state)) => None,
            None => Some(EpochSum { epoch: Stamp { datacenter: adder, ..stamp }, sum: amount }),
        };
        let epoch_sum = epoch_sum.filter(|_| !covered);
        let total = match (&shown, epoch_sum) {
            (Some(shown), None) => number(&shown.state),
            _ => Decimal::ZERO,
        };
        if let Some(hidden) = newest.and_then(|state| latest_of(state, adder)) {
            let latest_shown = shown.as_ref().and_then(|shown| latest_of(&shown.state, adder));
            if latest_shown.is_none_or(|latest| latest.stamp != hidden.stamp) {
                self.observed.continued.push(hidden.source());
            }
        }
        match epoch_sum {
            Some(epoch_sum) => {
                self.change(RowEffect { key: key.clone(), column, effect: Effect::Add { epoch_sum } })
            }
            // Nor can an addition be counted at the end of the running sum's range: the total becomes the base.
            None => {
                let total = Decimal(total.0.saturating_add(amount.0));
                self.put(key, column, Bytes::from(total.to_string()));
            }
        }
    }

    /// Ends what the view shows of a column, and nothing else.
    fn remove_column(&mut self, key: &Bytes, column: Column, view: View<'_>) {
        let removal = self.removal(key, column, view);
        self.change(removal);
    }

    fn removal(&self, key: &Bytes, column: Column, view: View<'_>) -> RowEffect {
        let Some(mut observed) = self.keyspace.observed(key, &column, view) else {
            let seen = self.keyspace.seen(key, &column, view);
            return RowEffect { key: key.clone(), column, effect: Effect::Delete { seen } };
        };
        let writer = self.writer.as_ref().expect("only writes remove");
        observed.leave_out(writer.write.stamp);
        leave_out_later(&mut observed, writer.write.stamp);
        let seen = self.keyspace.seen(key, &column, view);
        RowEffect { key: key.clone(), column, effect: Effect::Remove { observed, seen } }
    }

    fn delete_column(&mut self, key: &Bytes, column: Column, view: View<'_>) {
        let seen = self.keyspace.seen(key, &column, view);
        self.change(RowEffect { key: key.clone(), column, effect: Effect::Delete { seen } });
    }

    fn change(&mut self, change: RowEffect) {
        let writer = self.writer.as_mut().expect("commands that write are evaluated with a writer");
        let previous = (writer.wants_previous && change.effect.is_base())
            .then(|| self.keyspace.previous(&change.key, &change.column));
        // Nobody could log it, and its stream would end with it.
        if !writer.has_room(&change, previous.as_ref()) {
            return;
        }
        self.note_if_new(&change.key);
        let writer = self.writer.as_mut().expect("it was there above");
        if let Some(kept) = &mut writer.kept {
            kept.push(self.keyspace.keep(&change.key, &change.column));
        }
        self.keyspace.apply(&change, previous.as_ref(), &writer.write);
        // What stood before its own removal that removal names.
        let own = |previous: &Previous| previous.operations().contains(&writer.write.operation);
        let everything = Previous::Nothing { forgotten: writer.write.stamp.before() };
        let previous = previous.map(|previous| if own(&previous) { everything } else { previous });
        writer.push(change, previous);
    }
}

/// Leaves out what came after a write, which meets it only if it was lost and is evaluated again: it ends none of that.
fn leave_out_later(observed: &mut ensue_types::Observed, stamp: Stamp) {
    if Rule::EndOnlyTheEarlier.holds() {
        observed.leave_out_above(stamp);
    }
}

/// About what an effect takes in an entry.
pub fn effect_bytes(key: &Bytes, column: &Column, value: usize) -> usize {
    let name = match column {
        Column::Text | Column::Deadline | Column::Row => 0,
        Column::Field(name) | Column::Member(name) | Column::Scored(name) => name.len(),
        Column::Element(name) | Column::Stream(name) => name.len(),
        Column::FieldDeadline(name) | Column::Escrow(name) => name.len(),
    };
    EFFECT_BYTES + key.len() + name + value
}

/// About what a field or a member takes in an entry.
pub fn element_bytes(key: &Bytes, name: &Bytes, value: usize) -> usize {
    EFFECT_BYTES + key.len() + name.len() + value
}

/// The kind that a row shows at a time; nothing if it is absent, or if that time is no longer known.
pub fn shown_kind(row: RowRef<'_>, at: LogicalTime, view: View<'_>) -> Option<Kind> {
    let deadline = row.deadline_at(view).ok()?;
    if deadline.is_some_and(|deadline| deadline <= at.ms()) {
        return None;
    }
    row.kind_at(view, at.ms()).ok()?
}

/// The latest addition of a datacenter to a counter.
fn latest_of(state: &State, datacenter: DatacenterId) -> Option<&Addition> {
    let counter = state.counter.as_ref()?;
    counter.additions.iter().find(|addition| addition.datacenter == datacenter)
}

/// The value of a counter; zero for what is no number.
fn number(state: &State) -> Decimal {
    match state.content() {
        Content::Nothing => Decimal::ZERO,
        Content::Number(number) => number,
        Content::Bytes(text) => Decimal::parse_nearest(&text).unwrap_or_default(),
    }
}

/// The row, unless it is absent at that time; its absence is observed.
fn present<'k>(
    keyspace: &'k Keyspace,
    observed: &mut Observed,
    key: &[u8],
    view: View<'_>,
    at: LogicalTime,
) -> Result<Option<RowRef<'k>>, Halt> {
    let Some(row) = keyspace.another_row(key) else {
        observed.look_up(false);
        absent(keyspace, observed, view)?;
        return Ok(None);
    };
    match row {
        RowRef::Whole(whole) => {
            if let Some(ended) = whole.ended() {
                observed.record(&ended.at(view).ok_or(Gone)?);
            }
            let Some(cell) = whole.cell(&Column::Deadline) else { return Ok(Some(row)) };
            observed.record(&cell.at(view).ok_or(Gone)?);
        }
        RowRef::Compact(compact) if compact.deadline().is_some() => observed.record_compact(compact, view)?,
        RowRef::Compact(_) | RowRef::Packed(_) => return Ok(Some(row)),
    }
    match row.deadline_at(view)? {
        Some(deadline) if deadline <= at.ms() && Rule::GoneAtTheDeadline.holds() => {
            observed.valid_since(LogicalTime::from_ms(deadline));
            observed.look_up(false);
            Ok(None)
        }
        _ => Ok(Some(row)),
    }
}

/// What is not here has been absent for some time; of the time before, nothing is known.
fn absent(keyspace: &Keyspace, observed: &mut Observed, view: View<'_>) -> Result<(), Gone> {
    observed.valid_since(keyspace.absent_since());
    // It may be missing: then it is a piece too.
    observed.pieces += 1;
    match view.time() {
        Some(at) if keyspace.absent_since() > at => Err(Gone),
        _ => Ok(()),
    }
}

/// Observes all of a row: what is shown depends on every column, the deleted ones too (trap 18).
fn observe_row(observed: &mut Observed, row: RowRef<'_>, view: View<'_>) -> Result<(), Halt> {
    let row = match row {
        RowRef::Whole(row) => row,
        RowRef::Compact(row) => return Ok(observed.record_compact(row, view)?),
        RowRef::Packed(row) => {
            let others = row.count() - usize::from(row.kind() == Kind::Text);
            observed.pieces += others;
            return Ok(row.settled().try_for_each(|settled| observed.record_settled(&settled, view))?);
        }
    };
    if let Some(summary) = row.summary(view) {
        observed.valid_since(summary.since);
        observed.sources.extend_from_slice(summary.latest);
        observed.pieces += summary.latest.len() + summary.recent.len() + 1;
        observed.sources.extend(summary.recent);
        for cell in summary.open {
            observed.record(&cell.at(view).ok_or(Gone)?);
        }
        return Ok(());
    }
    for (column, cell) in row.cells() {
        observed.record(&cell.at(view).ok_or(Gone)?);
        // Another field or member may be missing: then it is a piece too.
        observed.pieces += usize::from(Kind::of(&column) != Some(Kind::Text));
    }
    Ok(())
}

fn is_live(cell: &Cell, view: View<'_>) -> bool {
    cell.at(view).is_some_and(|shown| shown.state.is_live())
}
