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
//! A sorted set, a list or a stream also keeps its columns in their order, once somebody has asked for it.
//!
//! A write that was replaced stays in the summary. Who has read the row then remembers more than it has seen, of what
//! was applied here and, where that matters, in every other datacenter.

use super::detached;
use crate::cell::{Cell, Write};
use crate::hint::Hint;
use crate::order::{self, Order};
use crate::row::Kind;
use crate::view::View;
use ensue_types::{
    Carried, Column, DatacenterId, LogicalTime, OperationId, PartitionId, Score, Source, Stamp,
};
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::BuildHasher;
use std::sync::Arc;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Large {
    table: HashTable<u32>,
    /// A column never leaves its slot, so that a walk by slot shows whatever stays.
    slots: Vec<Option<(Column, Cell)>>,
    free: Vec<u32>,
    /// The slot that was found last: what is asked of a column is mostly asked for of the one that was asked before.
    latest: Hint,
    /// Columns of each kind, live and dead.
    present: [u32; 6],
    summary: Vec<Source>,
    recent: BTreeMap<(DatacenterId, PartitionId), VecDeque<(OperationId, u32)>>,
    recent_count: usize,
    /// With more recent ones than these, those that were replaced are looked for.
    forget_at: usize,
    #[cfg(test)]
    pub(super) looked_for: usize,
    waiting: BTreeSet<u32>,
    /// A write that depends on all that is here, and that has not changed anything yet. If it changes nothing, its
    /// operation is the next write's, which has another stamp.
    observer: Option<(OperationId, Stamp)>,
    ranked: Option<Box<Ranked>>,
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
    FixedState::default().hash_one(column)
}

impl Large {
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Column, &Cell)> {
        self.slots.iter().flatten().map(|(column, cell)| (column, cell))
    }

    pub(crate) fn cells_mut(&mut self) -> impl Iterator<Item = &mut Cell> {
        self.slots.iter_mut().flatten().map(|(_, cell)| cell)
    }

    /// What stands in the slots from this one on, at most so many of them, and the slot to go on from.
    pub(crate) fn from(
        &self,
        slot: usize,
        count: usize,
    ) -> (impl Iterator<Item = (&Column, &Cell)>, Option<usize>) {
        let end = self.slots.len().min(slot.saturating_add(count));
        let found = self.slots[slot.min(end)..end].iter().flatten().map(|(column, cell)| (column, cell));
        (found, (end < self.slots.len()).then_some(end))
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
        self.slots
            .get(slot as usize)
            .is_some_and(|slot| slot.as_ref().is_some_and(|(there, _)| there == column))
    }

    pub(crate) fn get(&self, column: &Column) -> Option<&Cell> {
        let slot = self.slot(column)?;
        self.cell(slot)
    }

    fn cell(&self, slot: u32) -> Option<&Cell> {
        self.slots[slot as usize].as_ref().map(|(_, cell)| cell)
    }

    pub(crate) fn get_mut(&mut self, column: &Column) -> Option<&mut Cell> {
        let slot = self.slot(column)?;
        self.slots[slot as usize].as_mut().map(|(_, cell)| cell)
    }

    pub(crate) fn entry(&mut self, column: &Column, empty_since: LogicalTime) -> &mut Cell {
        let slot = match self.slot(column) {
            Some(slot) => slot,
            None => self.insert(detached(column), Cell::new(empty_since)),
        };
        self.slots[slot as usize].as_mut().map(|(_, cell)| cell).expect("found or inserted")
    }

    fn insert(&mut self, column: Column, cell: Cell) -> u32 {
        let hashed = hash(&column);
        if let Some(kind) = Kind::of(&column) {
            self.present[kind as usize] += 1;
        }
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some((column, cell));
                slot
            }
            None => {
                self.slots.push(Some((column, cell)));
                (self.slots.len() - 1) as u32
            }
        };
        self.latest.set(slot);
        let slots = &self.slots;
        let rehash = |&slot: &u32| slots[slot as usize].as_ref().map_or(0, |(column, _)| hash(column));
        self.table.insert_unique(hashed, slot, rehash);
        slot
    }

    pub(crate) fn remove(&mut self, column: &Column) -> Option<Cell> {
        let slot = self.slot(column)?;
        if let Ok(entry) = self.table.find_entry(hash(column), |&candidate| candidate == slot) {
            entry.remove();
        }
        self.rank(slot, None);
        let (column, cell) = self.slots[slot as usize].take()?;
        if let Some(kind) = Kind::of(&column) {
            self.present[kind as usize] -= 1;
        }
        self.waiting.remove(&slot);
        self.free.push(slot);
        Some(cell)
    }

    /// Notes that a column has changed, by this write or in another way.
    pub(crate) fn note(&mut self, column: &Column, by: Option<OperationId>) {
        let Some(slot) = self.slot(column) else { return };
        if self.ranked.is_some() {
            let score = self.cell(slot).and_then(|cell| order::score_in_order(column, cell.state()));
            self.rank(slot, score);
        }
        let Some((_, cell)) = &self.slots[slot as usize] else { return };
        if cell.versions().is_some() {
            self.waiting.insert(slot);
            return;
        }
        let was_waiting = self.waiting.remove(&slot);
        if let Some(observer) = self.observer.take_if(|(operation, _)| by == Some(*operation)) {
            self.stand_for_all(observer, slot);
        }
        let Some((_, cell)) = &self.slots[slot as usize] else { return };
        // A removal brings back what another write had made.
        let is_back = cell.state().removals_shown().next().is_some();
        cell.state().each_source(|source| {
            let operation = source.operation;
            if was_waiting || is_back || by.is_none_or(|by| by == operation) {
                self.recent.entry(stream(&operation)).or_default().push_back((operation, slot));
                self.recent_count += 1;
            }
        });
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
        let source = source_of(self.cell(slot), &operation).filter(|source| source.stamp == stamp);
        let Some(source) = source else { return };
        absorb(&mut self.summary, source);
        let slots = &self.slots;
        self.recent.retain(|_, recent| {
            recent.retain(|(operation, slot)| {
                let cell = slots[*slot as usize].as_ref().map(|(_, cell)| cell);
                source_of(cell, operation).is_some_and(|source| source.stamp > stamp)
            });
            !recent.is_empty()
        });
        self.recent_count = self.recent.values().map(VecDeque::len).sum();
    }

    /// Of the recent writes keeps those that still make something. It is called when there are twice as many as were
    /// left by the last call, so it costs a write a bounded share, however many of them are shown.
    fn forget_replaced(&mut self) {
        let slots = &self.slots;
        let mut left = 0;
        self.recent.retain(|_, recent| {
            let mut kept = BTreeSet::new();
            recent.retain(|&(operation, slot)| {
                let cell = slots[slot as usize].as_ref().map(|(_, cell)| cell);
                source_of(cell, &operation).is_some() && kept.insert((operation, slot))
            });
            left += recent.len();
            !recent.is_empty()
        });
        self.recent_count = left;
    }

    /// Forgets which write made which column, of the recent ones that are settled: nobody need remember them one by
    /// one.
    pub(crate) fn summarise(&mut self, is_settled: &dyn Fn(&OperationId) -> bool) {
        let Large { slots, summary, recent, recent_count, forget_at, .. } = self;
        recent.retain(|_, recent| {
            while let Some(&(operation, slot)) = recent.front() {
                if !is_settled(&operation) {
                    break;
                }
                recent.pop_front();
                *recent_count -= 1;
                // What hides behind versions is noted again when it is shown to all.
                let cell = slots[slot as usize].as_ref().map(|(_, cell)| cell);
                if let Some(source) = source_of(cell, &operation) {
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

    /// The columns that other writes made, or that are not the same to every view. Some may stand here twice.
    pub(crate) fn open(&self) -> impl Iterator<Item = &Cell> {
        let recent = self.recent.values().flatten();
        let recent = recent.filter(|(operation, slot)| source_of(self.cell(*slot), operation).is_some());
        let slots = recent.map(|(_, slot)| slot).chain(&self.waiting);
        slots.filter_map(|slot| self.cell(*slot))
    }

    /// How many more columns of a kind are live to a view that is no past time than now.
    pub(crate) fn live_beyond(&self, kind: Kind, view: View<'_>) -> i64 {
        let of_kind = |slot: &u32| {
            let (column, cell) = self.slots[*slot as usize].as_ref()?;
            (Kind::of(column) == Some(kind)).then_some(cell)
        };
        let beyond = |cell: &Cell| {
            let shown = cell.at(view).is_some_and(|shown| shown.state.is_live());
            i64::from(shown) - i64::from(cell.state().is_live())
        };
        self.waiting.iter().filter_map(of_kind).map(beyond).sum()
    }
}

/// The order of a sorted set, a list or a stream.
impl Large {
    /// Keeps the order from now on.
    pub(crate) fn keep_order(&mut self) {
        if self.ranked.is_some() {
            return;
        }
        let score = |slot: &Option<(Column, Cell)>| match slot {
            Some((column, cell)) => order::score_in_order(column, cell.state()),
            None => None,
        };
        let scores: Vec<Option<Score>> = self.slots.iter().map(score).collect();
        let member = |(slot, score): (&Option<(Column, Cell)>, &Option<Score>)| match slot {
            Some((column, _)) => Some(((*score)?, order::name_in_order(column)?.clone())),
            None => None,
        };
        let order = self.slots.iter().zip(&scores).filter_map(member).collect();
        self.ranked = Some(Box::new(Ranked { order, scores }));
    }

    /// The order of the newest state, if it is kept.
    pub(crate) fn order(&self) -> Option<&Order> {
        self.ranked.as_ref().map(|ranked| &ranked.order)
    }

    /// The columns that are not the same to every view.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (&Column, &Cell)> {
        let slot = |slot: &u32| self.slots[*slot as usize].as_ref();
        self.waiting.iter().filter_map(slot).map(|(column, cell)| (column, cell))
    }

    /// Moves the member of a slot to its score, or takes it out.
    fn rank(&mut self, slot: u32, score: Option<Score>) {
        let Some(ranked) = &mut self.ranked else { return };
        let slot = slot as usize;
        let name = self.slots[slot].as_ref().and_then(|(column, _)| order::name_in_order(column));
        let Some(name) = name else { return };
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
            let slot = large.insert(column.clone(), cell);
            debug_assert!(large.is_at(slot, &column));
            large.note(&column, None);
        }
        large
    }
}

fn stream(operation: &OperationId) -> (DatacenterId, PartitionId) {
    (operation.datacenter, operation.partition)
}

/// The write that made a settled cell, if this operation is one of those that did.
fn source_of(cell: Option<&Cell>, operation: &OperationId) -> Option<Source> {
    let cell = cell.filter(|cell| cell.versions().is_none())?;
    cell.state().sources().find(|source| source.operation == *operation)
}

/// Raises the latest of a write's stream to it.
fn absorb(summary: &mut Vec<Source>, source: Source) {
    let known = summary.iter_mut().find(|known| stream(&known.operation) == stream(&source.operation));
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
