//! Many columns of one row: found by hash, walked by slot, and with a summary of the writes that made them.
//!
//! What a whole row shows (`HLEN`, `EXISTS`, `TTL`) depends on every column. So that asking need not walk them, the row
//! knows the writes that made them in three parts:
//!
//! - `summary`: what nobody need remember one by one any more, of each stream the latest, with all that was carried.
//! - `recent`: the others, one by one, in the order in which they came, until they are told to be `settled`.
//! - `waiting`: the columns with versions, of which each view shows something else. They are asked themselves.
//!
//! A write that depends on all of them, as every command on a list or a stream does, stands for the recent ones before
//! it.
//!
//! Settled columns are kept as bytes (`settled`), others as cells.
//!
//! A sorted set, a list or a stream also keeps its columns in their order, once somebody has asked for it.
//!
//! A write that was replaced stays in the summary. Who has read the row then remembers more than it has seen, of what
//! was applied here and, where that matters, in every other datacenter.

mod ended;

pub(crate) use ended::Freed;

use super::detached;
use crate::cell::{Cell, Outcome, Write};
use crate::counted::{self, Counted};
use crate::forgetting::{Forgets, Forgotten};
use crate::hint::Hint;
use crate::order::{self, Order};
use crate::row::Kind;
use crate::settled::{self, Encoded, Item, Origin, Settled};
use crate::view::View;
use bytes::Bytes;
use ensue_types::{
    Carried, Column, DatacenterId, Effect, LogicalTime, Observed, OperationId, PartitionId, Score, Source,
    Stamp,
};
use foldhash::fast::FixedState;
use hashbrown::{HashSet, HashTable};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::BuildHasher;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Large {
    table: HashTable<u32>,
    /// A column never leaves its slot, so that a walk by slot shows whatever stays.
    slots: Vec<Slot>,
    /// What the settled columns are compared to.
    origin: Origin,
    free: Vec<u32>,
    /// The slot that was found last: what is asked of a column is mostly asked for of the one that was asked before.
    latest: Hint,
    /// Columns of each kind, live and dead.
    present: [u32; Kind::COUNT],
    /// Bytes of their names.
    names: usize,
    summary: Vec<Source>,
    recent: BTreeMap<(DatacenterId, PartitionId), VecDeque<(OperationId, u32)>>,
    recent_count: usize,
    /// With more recent ones than these, those that were replaced are looked for.
    forget_at: usize,
    #[cfg(test)]
    pub(super) looked_for: usize,
    waiting: BTreeSet<u32>,
    /// The columns that are not settled.
    whole: BTreeSet<u32>,
    /// How many of the settled columns have additions.
    added: usize,
    /// Every settled value is in this set, and so are some that were replaced.
    put: Observed,
    /// A write that depends on all that is here, and that has not changed anything yet. If it changes nothing, its
    /// operation is the next write's, which has another stamp.
    observer: Option<(OperationId, Stamp)>,
    ranked: Option<Box<Ranked>>,
}

/// Bytes counted for a column that stands in the order beside its name, roughly.
const ORDER_BYTES: u64 = 70;

/// Slots for which room is made at once, at least.
const ROOM_MIN: usize = 8;

/// Where a column stands.
#[derive(Clone, Debug)]
enum Slot {
    /// Its bytes; none if the slot is free.
    Settled(Box<[u8]>),
    Whole(Box<(Column, Cell)>),
}

/// A column where it stands.
#[derive(Clone, Copy)]
enum Found<'a> {
    Settled(Item<'a>, &'a Origin),
    Whole(&'a Column, &'a Cell),
}

impl Slot {
    fn free() -> Slot {
        Slot::Settled(Box::default())
    }

    fn is_free(&self) -> bool {
        matches!(self, Slot::Settled(bytes) if bytes.is_empty())
    }

    #[inline]
    fn found<'a>(&'a self, origin: &'a Origin) -> Option<Found<'a>> {
        match self {
            Slot::Settled(bytes) if bytes.is_empty() => None,
            Slot::Settled(bytes) => Some(Found::Settled(Item::of(bytes), origin)),
            Slot::Whole(whole) => Some(Found::Whole(&whole.0, &whole.1)),
        }
    }

    fn hash(&self) -> u64 {
        match self {
            Slot::Settled(bytes) if bytes.is_empty() => 0,
            Slot::Settled(bytes) => {
                let item = Item::of(bytes);
                hash_of(item.number_of_kind(), item.name)
            }
            Slot::Whole(whole) => hash(&whole.0),
        }
    }

    fn cell_mut(&mut self) -> Option<&mut Cell> {
        match self {
            Slot::Settled(_) => None,
            Slot::Whole(whole) => Some(&mut whole.1),
        }
    }
}

impl<'a> Found<'a> {
    fn is_of(self, column: &Column) -> bool {
        match self {
            Found::Settled(item, _) => settled::parts_of(column) == Some((item.number_of_kind(), item.name)),
            Found::Whole(there, _) => there == column,
        }
    }

    fn column(self) -> Cow<'a, Column> {
        match self {
            Found::Settled(item, _) => Cow::Owned(item.column()),
            Found::Whole(column, _) => Cow::Borrowed(column),
        }
    }

    fn cell(self) -> Cow<'a, Cell> {
        match self {
            Found::Settled(item, origin) => Cow::Owned(item.settled(origin).cell()),
            Found::Whole(_, cell) => Cow::Borrowed(cell),
        }
    }

    fn whole(self) -> Option<(&'a Column, &'a Cell)> {
        match self {
            Found::Settled(..) => None,
            Found::Whole(column, cell) => Some((column, cell)),
        }
    }

    fn both(self) -> (Cow<'a, Column>, Cow<'a, Cell>) {
        (self.column(), self.cell())
    }

    fn name_bytes(self) -> usize {
        match self {
            Found::Settled(item, _) => item.name.len(),
            Found::Whole(column, _) => settled::parts_of(column).map_or(0, |(_, name)| name.len()),
        }
    }

    fn kind(self) -> Option<Kind> {
        match self {
            Found::Settled(item, _) => Some(settled::kind_of(item.number_of_kind())),
            Found::Whole(column, _) => Kind::of(column),
        }
    }

    /// The name under which it stands in the order, if it has a place in one.
    fn name_in_order(self) -> Option<Bytes> {
        order::name_in_order(&self.column()).cloned()
    }

    fn score_in_order(self) -> Option<Score> {
        order::name_in_order(&self.column())?;
        order::score_in_order(&self.column(), self.cell().state())
    }

    fn counted(self) -> Counted {
        match self {
            Found::Settled(item, _) => counted::of_settled(item),
            Found::Whole(column, cell) => Counted::of(column, cell),
        }
    }

    /// The writes that made it, if every view shows the same.
    fn sources(self) -> Vec<Source> {
        match self {
            Found::Settled(item, origin) => item.settled(origin).sources().collect(),
            Found::Whole(_, cell) if cell.versions().is_none() => cell.state().sources().collect(),
            Found::Whole(..) => Vec::new(),
        }
    }

    /// The one of them that is this operation.
    fn source(self, operation: &OperationId) -> Option<Source> {
        match self {
            Found::Settled(item, origin) => {
                item.settled(origin).sources().find(|source| source.operation == *operation)
            }
            Found::Whole(_, cell) if cell.versions().is_none() => {
                cell.state().sources().find(|source| source.operation == *operation)
            }
            Found::Whole(..) => None,
        }
    }
}

/// What a write has made of a settled column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PutSettled {
    pub(crate) outcome: Outcome,
    pub(crate) before: Counted,
    pub(crate) after: Counted,
}

/// The order of the members of a sorted set, the elements of a list or the parts of a stream, once somebody has asked
/// for it.
#[derive(Clone, Debug)]
struct Ranked {
    order: Order,
    /// The score with which the member of each slot stands in the order.
    scores: Vec<Option<Score>>,
}

fn hash(column: &Column) -> u64 {
    let (kind, name) = settled::parts_of(column).unwrap_or((u8::MAX, &[]));
    hash_of(kind, name)
}

fn hash_of(kind: u8, name: &[u8]) -> u64 {
    FixedState::with_seed(u64::from(kind)).hash_one(name)
}

impl Large {
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Cow<'_, Column>, Cow<'_, Cell>)> {
        self.slots.iter().filter_map(|slot| slot.found(&self.origin)).map(Found::both)
    }

    /// The cells of those that are not settled.
    pub(crate) fn cells_mut(&mut self) -> impl Iterator<Item = &mut Cell> {
        self.slots.iter_mut().filter_map(Slot::cell_mut)
    }

    /// What stands in the slots from this one on, at most so many columns and in so many slots, of which some are free,
    /// and the slot to go on from.
    pub(crate) fn from(
        &self,
        slot: usize,
        (count, slots): (usize, usize),
    ) -> (impl Iterator<Item = (Cow<'_, Column>, Cow<'_, Cell>)>, Option<usize>) {
        let last = self.slots.len().min(slot.saturating_add(slots));
        let (mut end, mut left) = (slot.min(last), count);
        while end < last && left > 0 {
            left -= usize::from(!self.slots[end].is_free());
            end += 1;
        }
        let slots = self.slots[slot.min(end)..end].iter();
        let found = slots.filter_map(|slot| slot.found(&self.origin)).map(Found::both);
        (found, (end < self.slots.len()).then_some(end))
    }

    /// How many slots there are, some of them free.
    pub(crate) fn slots_count(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn sole_kind(&self) -> Option<Kind> {
        let mut kinds = Kind::ALL.into_iter().filter(|&kind| self.present[kind as usize] > 0);
        kinds.next().filter(|_| kinds.next().is_none())
    }

    fn slot(&self, column: &Column) -> Option<u32> {
        let latest = self.latest.get();
        if self.is_at(latest, column) {
            return Some(latest);
        }
        let found = self.table.find(hash(column), |&slot| self.is_at(slot, column)).copied()?;
        self.latest.set(found);
        Some(found)
    }

    fn is_at(&self, slot: u32, column: &Column) -> bool {
        self.at(slot).is_some_and(|found| found.is_of(column))
    }

    fn at(&self, slot: u32) -> Option<Found<'_>> {
        self.slots.get(slot as usize)?.found(&self.origin)
    }

    pub(crate) fn get(&self, column: &Column) -> Option<Cow<'_, Cell>> {
        self.at(self.slot(column)?).map(Found::cell)
    }

    /// A column, if it is settled.
    pub(crate) fn settled(&self, column: &Column) -> Option<Settled<'_>> {
        match self.at(self.slot(column)?)? {
            Found::Settled(item, origin) => Some(item.settled(origin)),
            Found::Whole(..) => None,
        }
    }

    /// What is counted of a column.
    pub(crate) fn counted(&self, column: &Column) -> Option<Counted> {
        self.counted_at(self.slot(column)?)
    }

    fn counted_at(&self, slot: u32) -> Option<Counted> {
        let found = self.at(slot)?;
        let counted = found.counted();
        let is_ranked = |ranked: &Ranked| ranked.scores.get(slot as usize).is_some_and(Option::is_some);
        let ordered = match self.ranked.as_deref().is_some_and(is_ranked) {
            true => ORDER_BYTES + found.name_bytes() as u64,
            false => 0,
        };
        Some(Counted { bytes: counted.bytes + ordered, ..counted })
    }

    /// What is counted of all columns together: what the first of them take on average, if only so many are looked at.
    pub(crate) fn bytes(&self, samples: Option<NonZeroUsize>) -> u64 {
        let looked_at = samples.map_or(self.len(), |samples| samples.get().min(self.len()));
        let slots = (0..self.slots.len() as u32).filter_map(|slot| self.counted_at(slot));
        let bytes: u64 = slots.take(looked_at).map(|counted| counted.bytes).sum();
        let of_all = u128::from(bytes) * self.len() as u128 / looked_at.max(1) as u128;
        of_all as u64
    }

    pub(crate) fn get_mut(&mut self, column: &Column) -> Option<&mut Cell> {
        let slot = self.slot(column)?;
        self.whole(slot)
    }

    /// A column with its cell, as it is or made so.
    fn whole(&mut self, slot: u32) -> Option<&mut Cell> {
        let number = slot;
        let slot = &mut self.slots[slot as usize];
        if let Slot::Settled(bytes) = slot {
            if bytes.is_empty() {
                return None;
            }
            let item = Item::of(bytes);
            self.added -= usize::from(settled::stays_apart(bytes));
            self.whole.insert(number);
            *slot = Slot::Whole(Box::new((item.column(), item.settled(&self.origin).cell())));
        }
        slot.cell_mut()
    }

    /// Makes a column bytes again that is nothing but settled.
    pub(crate) fn settle(&mut self, column: &Column) {
        if let Some(slot) = self.slot(column) {
            self.settle_slot(slot);
        }
    }

    fn settle_slot(&mut self, slot: u32) {
        let number = slot;
        let slot = &mut self.slots[slot as usize];
        let Slot::Whole(whole) = slot else { return };
        let Some(settled) = Settled::of(&whole.1) else { return };
        let Some(parts) = settled::parts_of(&whole.0) else { return };
        self.whole.remove(&number);
        self.added += usize::from(settled.is_counter() || parts.0 == settled::ESCROW);
        settled.put().into_iter().for_each(|put| self.put.see(put));
        *slot = Slot::Settled(bytes_of(&Encoded::new(parts, &settled, &self.origin)));
    }

    /// Forgets the past states of those that are not settled, which alone have any, and makes them bytes where it can;
    /// says at how many it looked, and how many bytes less are counted.
    pub(crate) fn forget_history(&mut self) -> Forgotten {
        let whole: Vec<u32> = self.whole.iter().copied().collect();
        let looked_at = whole.len();
        let mut saved = 0;
        for slot in whole {
            self.slots[slot as usize].cell_mut().into_iter().for_each(Cell::forget_history);
            saved += self.settle_and_save(slot);
        }
        Forgotten { looked_at, saved, ..Forgotten::default() }
    }

    fn settle_and_save(&mut self, slot: u32) -> u64 {
        let before = self.at(slot).map_or(0, |found| found.counted().bytes);
        self.settle_slot(slot);
        before - self.at(slot).map_or(0, |found| found.counted().bytes)
    }

    /// Forgets what settled values depend on, in so many slots from this one on, and makes them bytes.
    pub(crate) fn forget_dependencies(
        &mut self,
        forgets: &Forgets<'_>,
        from: usize,
        count: usize,
    ) -> Forgotten {
        let end = self.slots.len().min(from.saturating_add(count));
        let mut forgotten = Forgotten { looked_at: end.saturating_sub(from), ..Forgotten::default() };
        for slot in from..end {
            let Some(cell) = self.slots[slot].cell_mut() else { continue };
            let bytes = cell.forget_dependencies(forgets);
            if bytes > 0 {
                forgotten.dependencies += bytes;
                forgotten.saved += self.settle_and_save(slot as u32);
            }
        }
        forgotten.next = (end < self.slots.len()).then_some(end);
        forgotten
    }

    /// Merges a write into a column that is settled and stays so, or makes one of it.
    pub(crate) fn put_settled(
        &mut self,
        column: &Column,
        effect: &Effect,
        write: &Write,
        empty_since: LogicalTime,
    ) -> Option<PutSettled> {
        let parts = settled::parts_of(column)?;
        let Some(slot) = self.slot(column) else {
            let settled = Settled::first(effect, write, empty_since)?;
            let slot = Slot::Settled(bytes_of(&Encoded::new(parts, &settled, &self.origin)));
            let slot = self.insert(slot);
            self.note_effect(effect, write);
            self.note_put(slot, write.operation);
            let after = self.counted_at(slot).unwrap_or_default();
            return Some(PutSettled { outcome: Outcome::Won, before: Counted::default(), after });
        };
        let Slot::Settled(known) = &self.slots[slot as usize] else { return None };
        let (item, length, added) = (Item::of(known), known.len(), settled::stays_apart(known));
        let before = self.counted_at(slot).unwrap_or_default();
        let (outcome, merged) = item.settled(&self.origin).merged(effect, write)?;
        if outcome == Outcome::Lost {
            return Some(PutSettled { outcome, before, after: before });
        }
        self.added =
            self.added + usize::from(merged.is_counter() || parts.0 == settled::ESCROW) - usize::from(added);
        let encoded = Encoded::new(parts, &merged, &self.origin);
        let mut short = [0; settled::SHORT];
        if encoded.len() == length && length <= settled::SHORT {
            // What is written does not stand in the slot.
            encoded.write(&mut short);
            if let Slot::Settled(bytes) = &mut self.slots[slot as usize] {
                bytes.copy_from_slice(&short[..length]);
            }
        } else {
            self.slots[slot as usize] = Slot::Settled(bytes_of(&encoded));
        }
        self.note_effect(effect, write);
        self.note_put(slot, write.operation);
        let after = self.counted_at(slot).unwrap_or_default();
        Some(PutSettled { outcome, before, after })
    }

    pub(crate) fn entry(&mut self, column: &Column, empty_since: LogicalTime) -> &mut Cell {
        let slot = match self.slot(column) {
            Some(slot) => slot,
            None => self.insert(Slot::Whole(Box::new((detached(column), Cell::new(empty_since))))),
        };
        self.whole(slot).expect("found or inserted")
    }

    fn insert(&mut self, filled: Slot) -> u32 {
        let hashed = filled.hash();
        let is_whole = filled.is_whole();
        self.added += usize::from(filled.adds());
        if let Some(found) = filled.found(&self.origin) {
            self.names += found.name_bytes();
            found.kind().into_iter().for_each(|kind| self.present[kind as usize] += 1);
        }
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = filled;
                slot
            }
            None => {
                if self.slots.len() == self.slots.capacity() {
                    // By less than double: what is not filled is memory, too.
                    self.slots.reserve_exact(ROOM_MIN.max(self.slots.len() / 4));
                }
                self.slots.push(filled);
                (self.slots.len() - 1) as u32
            }
        };
        if is_whole {
            self.whole.insert(slot);
        }
        self.latest.set(slot);
        let slots = &self.slots;
        self.table.insert_unique(hashed, slot, |&slot| slots[slot as usize].hash());
        slot
    }

    pub(crate) fn remove(&mut self, column: &Column) -> Option<Cell> {
        let slot = self.slot(column)?;
        if let Ok(entry) = self.table.find_entry(hash(column), |&candidate| candidate == slot) {
            entry.remove();
        }
        self.rank(slot, None);
        let found = self.at(slot)?;
        let (cell, kind, name) = (found.cell().into_owned(), found.kind(), found.name_bytes());
        self.names -= name;
        kind.into_iter().for_each(|kind| self.present[kind as usize] -= 1);
        self.added -= usize::from(self.slots[slot as usize].adds());
        self.slots[slot as usize] = Slot::free();
        self.waiting.remove(&slot);
        self.whole.remove(&slot);
        self.free.push(slot);
        Some(cell)
    }

    /// Bytes of the names of all columns, live and dead.
    pub(crate) fn name_bytes(&self) -> usize {
        self.names
    }

    /// Notes that a column has changed, by this write or in another way.
    pub(crate) fn note(&mut self, column: &Column, by: Option<OperationId>) {
        let Some(slot) = self.slot(column) else { return };
        self.settle_slot(slot);
        self.note_slot(slot, by);
    }

    /// The same of a settled column, which this write has put or added to.
    fn note_put(&mut self, slot: u32, by: OperationId) {
        if self.ranked.is_some() || self.observer.is_some() {
            return self.note_slot(slot, Some(by));
        }
        debug_assert!(!self.waiting.contains(&slot), "a settled column is the same to every view");
        self.recent.entry(stream(&by)).or_default().push_back((by, slot));
        self.recent_count += 1;
        self.forget_some();
    }

    fn note_slot(&mut self, slot: u32, by: Option<OperationId>) {
        if self.ranked.is_some() {
            let score = self.at(slot).and_then(Found::score_in_order);
            self.rank(slot, score);
        }
        let mut is_back = false;
        if let Slot::Whole(whole) = &self.slots[slot as usize] {
            if whole.1.versions().is_some() {
                self.waiting.insert(slot);
                return;
            }
            // A removal brings back what another write had made.
            is_back = whole.1.state().removals_shown().next().is_some();
        }
        let was_waiting = !self.waiting.is_empty() && self.waiting.remove(&slot);
        if let Some(observer) = self.observer.take_if(|(operation, _)| by == Some(*operation)) {
            self.stand_for_all(observer, slot);
        }
        let Large { slots, origin, recent, recent_count, .. } = self;
        let mut note = |operation: OperationId| {
            if was_waiting || is_back || by.is_none_or(|by| by == operation) {
                recent.entry(stream(&operation)).or_default().push_back((operation, slot));
                *recent_count += 1;
            }
        };
        match slots[slot as usize].found(origin) {
            Some(Found::Settled(item, origin)) => {
                item.settled(origin).sources().for_each(|source| note(source.operation));
            }
            Some(Found::Whole(_, cell)) => cell.state().each_source(|source| note(source.operation)),
            None => {}
        }
        self.forget_some();
    }

    fn forget_some(&mut self) {
        if self.recent_count > self.forget_at.max(2 * self.len() + super::LARGE) {
            self.forget_replaced();
            self.forget_at = 2 * self.recent_count;
            #[cfg(test)]
            {
                self.looked_for += 1;
            }
        }
    }

    /// A write depends on every column. If it changes one, the recent ones need not be remembered beside it.
    pub(crate) fn observe(&mut self, by: &Write) {
        self.observer = Some((by.operation, by.stamp));
    }

    /// Who depends on a write depends on what it observed: it is remembered for all of them, even when it is replaced.
    /// What has a higher stamp was met by a part of a transaction that is executed again, and the transaction does not
    /// depend on it.
    fn stand_for_all(&mut self, (operation, stamp): (OperationId, Stamp), slot: u32) {
        let source = self.at(slot).and_then(|found| found.source(&operation));
        let Some(source) = source.filter(|source| source.stamp == stamp) else { return };
        absorb(&mut self.summary, source);
        let (slots, origin) = (&self.slots, &self.origin);
        self.recent.retain(|_, recent| {
            recent.retain(|(operation, slot)| {
                let found = slots[*slot as usize].found(origin);
                found.and_then(|found| found.source(operation)).is_some_and(|source| source.stamp > stamp)
            });
            !recent.is_empty()
        });
        self.recent_count = self.recent.values().map(VecDeque::len).sum();
    }

    /// Of the recent writes keeps those that still make something. It is called when there are twice as many as were
    /// left by the last call, so it costs a write a bounded share, however many of them are shown.
    fn forget_replaced(&mut self) {
        let (slots, origin) = (&self.slots, &self.origin);
        let mut left = 0;
        self.recent.retain(|_, recent| {
            let mut kept = HashSet::with_hasher(FixedState::default());
            recent.retain(|&(operation, slot)| {
                let found = slots[slot as usize].found(origin);
                found.and_then(|found| found.source(&operation)).is_some() && kept.insert((operation, slot))
            });
            left += recent.len();
            !recent.is_empty()
        });
        self.recent_count = left;
    }

    /// Forgets which write made which column, of the recent ones that are settled: nobody need remember them one by
    /// one.
    pub(crate) fn summarise(&mut self, is_settled: &dyn Fn(&OperationId) -> bool) {
        let Large { slots, origin, summary, recent, recent_count, forget_at, .. } = self;
        recent.retain(|_, recent| {
            while let Some(&(operation, slot)) = recent.front() {
                if !is_settled(&operation) {
                    break;
                }
                recent.pop_front();
                *recent_count -= 1;
                // What hides behind versions is noted again when it is shown to all.
                let found = slots[slot as usize].found(origin);
                if let Some(source) = found.and_then(|found| found.source(&operation)) {
                    absorb(summary, source);
                }
            }
            !recent.is_empty()
        });
        *forget_at = (*forget_at).min(2 * *recent_count);
    }

    /// Of the writes that nobody need remember one by one, the latest of each stream.
    pub(crate) fn summary(&self) -> &[Source] {
        &self.summary
    }

    /// The writes that made the other columns of which every view shows the same. Some may stand here twice.
    pub(crate) fn recent(&self) -> impl Iterator<Item = Source> {
        let made = |(operation, slot): &(OperationId, u32)| {
            let found = self.at(*slot)?;
            found.source(operation).map(|_| found.sources())
        };
        self.recent.values().flatten().filter_map(made).flatten()
    }

    /// How many more columns of a kind are live to a view that is no past time than now.
    pub(crate) fn live_beyond(&self, kind: Kind, view: View<'_>) -> i64 {
        let beyond = |cell: &Cell| {
            let shown = cell.at(view).is_some_and(|shown| shown.state.is_live());
            i64::from(shown) - i64::from(cell.state().is_live())
        };
        let of_kind = self.waiting().filter(|(column, _)| Kind::shown_by(column) == Some(kind));
        of_kind.map(|(_, cell)| beyond(cell)).sum()
    }
}

/// The order of a sorted set, a list or a stream.
impl Large {
    /// Keeps the order from now on; says how many bytes more are counted.
    pub(crate) fn keep_order(&mut self) -> u64 {
        if self.ranked.is_some() {
            return 0;
        }
        let found = || self.slots.iter().map(|slot| slot.found(&self.origin));
        let scores: Vec<Option<Score>> = found().map(|found| found?.score_in_order()).collect();
        let member =
            |(found, score): (Option<Found<'_>>, &Option<Score>)| Some(((*score)?, found?.name_in_order()?));
        let order: Order = found().zip(&scores).filter_map(member).collect();
        let is_ranked = scores.iter().map(Option::is_some);
        let ranked = self.slots.iter().zip(is_ranked).filter(|(_, is_ranked)| *is_ranked);
        let names =
            ranked.filter_map(|(slot, _)| slot.found(&self.origin)).map(|found| found.name_bytes() as u64);
        let bytes = names.map(|name| ORDER_BYTES + name).sum();
        self.ranked = Some(Box::new(Ranked { order, scores }));
        bytes
    }

    /// The order of the newest state, if it is kept.
    pub(crate) fn order(&self) -> Option<&Order> {
        self.ranked.as_ref().map(|ranked| &ranked.order)
    }

    /// The columns that are not the same to every view.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (&Column, &Cell)> {
        self.waiting.iter().filter_map(|slot| self.at(*slot)?.whole())
    }

    /// Moves the member of a slot to its score, or takes it out.
    fn rank(&mut self, slot: u32, score: Option<Score>) {
        let Some(name) = self.at(slot).filter(|_| self.ranked.is_some()).and_then(Found::name_in_order)
        else {
            return;
        };
        let Some(ranked) = &mut self.ranked else { return };
        let slot = slot as usize;
        if ranked.scores.len() <= slot {
            ranked.scores.resize(slot + 1, None);
        }
        let before = std::mem::replace(&mut ranked.scores[slot], score);
        if before == score {
            return;
        }
        if let Some(before) = before {
            ranked.order.remove(&(before, name.clone()));
        }
        if let Some(score) = score {
            ranked.order.insert((score, name.clone()));
        }
    }
}

impl FromIterator<(Column, Cell)> for Large {
    fn from_iter<I: IntoIterator<Item = (Column, Cell)>>(columns: I) -> Large {
        let mut large = Large::default();
        for (column, cell) in columns {
            if large.len() == 0 {
                let first = cell.state().sources().next();
                large.origin = first
                    .map(|one| Origin { stamp: one.stamp, operation: one.operation })
                    .unwrap_or_default();
            }
            let slot = large.insert(Slot::Whole(Box::new((column, cell))));
            large.settle_slot(slot);
            large.note_slot(slot, None);
        }
        large
    }
}

fn stream(operation: &OperationId) -> (DatacenterId, PartitionId) {
    (operation.datacenter, operation.partition)
}

fn bytes_of(encoded: &Encoded<'_>) -> Box<[u8]> {
    let mut bytes = vec![0; encoded.len()];
    encoded.write(&mut bytes);
    bytes.into_boxed_slice()
}

/// Raises the latest of a write's stream to it. What carries nothing any more stands by itself: its stamp says how far
/// what it carried may reach.
fn absorb(summary: &mut Vec<Source>, source: Source) {
    let kind = |source: &Source| (stream(&source.operation), source.dependencies.is_some());
    let known = summary.iter_mut().find(|known| kind(known) == kind(&source));
    let Some(known) = known else { return summary.push(source) };
    if known.operation.position < source.operation.position {
        known.operation = source.operation;
    }
    known.stamp = known.stamp.max(source.stamp);
    known.dependencies = joined(known.dependencies.take(), source.dependencies);
}

/// All times that either carries. Of what is carried beside times, nothing need be remembered.
fn joined(one: Option<Arc<Carried>>, other: Option<Arc<Carried>>) -> Option<Arc<Carried>> {
    let (Some(one), Some(other)) = (&one, &other) else { return one.or(other) };
    let (Ok(times), Ok(more)) = (one.causes().times(), other.causes().times()) else { return None };
    let mut all = Box::new(times.clone());
    match all.take_over(more) {
        true => Some(Arc::new(Carried::new(all.into()))),
        false => Some(one.clone()),
    }
}
