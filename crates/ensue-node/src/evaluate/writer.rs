//! What one write changes, gathered effect by effect: each part of a place once.

use ensue_store::cell::{self, Write};
use ensue_store::keyspace::undo::Kept;
use ensue_store::layout::{encoded_effect_bytes, encoded_previous_bytes};
use ensue_types::{DatacenterId, Effect, Previous, RowEffect, limits};
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

/// Effects of one write before a search among them needs an index.
const EFFECTS_SEARCHED: usize = 16;

/// Entries of a node of a stream in Redis, as it is configured by default.
const NODE_ENTRIES: usize = 100;

/// What one write changed.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Folded: one put and one addition a column at most, and a removal before the put.
    pub effects: Vec<RowEffect>,
    /// What each base change replaced, in their order, if anybody asks.
    pub previous: Vec<Previous>,
}

/// Gathers what one write changes.
#[derive(Clone, Debug)]
pub struct Writer {
    pub write: Write,
    pub changes: Changes,
    pub(super) wants_previous: bool,
    /// What the changes take in an entry, and may take.
    pub(super) bytes: usize,
    pub(super) bytes_max: usize,
    /// A change of the command did not fit any more: it was not made, and none after it was.
    pub(super) is_full: bool,
    /// How many elements of lists it has named.
    pub(super) named: u32,
    /// Whose running sums its additions go on.
    pub(super) adder: DatacenterId,
    /// How many entries of a stream are trimmed at once where it is told that about is enough.
    pub(super) node_entries: usize,
    /// Where each change stands, if there are many.
    index: Option<HashTable<(usize, Part)>>,
    /// Whether all that other datacenters had put before what has been applied of them has been applied, too: then all
    /// columns of a row may be removed by one effect.
    pub(super) removes_rows: bool,
    /// What stood where it has changed something, if that may be taken back.
    pub(super) kept: Option<Vec<Kept>>,
}

impl Writer {
    /// `wants_previous` says whether it must be told what is replaced.
    pub fn new(write: Write, adder: DatacenterId, wants_previous: bool) -> Writer {
        let changes = Changes::default();
        let (bytes, named, node_entries) = (0, 0, NODE_ENTRIES);
        let (bytes_max, is_full) = (limits::ENTRY_BYTES_MAX, false);
        let (removes_rows, index, kept) = (false, None, None);
        Writer {
            write,
            changes,
            wants_previous,
            bytes,
            bytes_max,
            is_full,
            named,
            adder,
            node_entries,
            index,
            removes_rows,
            kept,
        }
    }

    /// Trims so many entries of a stream at once; of 0, as many as usual.
    pub fn with_node_entries(mut self, entries: usize) -> Writer {
        self.node_entries = if entries == 0 { NODE_ENTRIES } else { entries };
        self
    }

    /// Takes no more than this in an entry.
    pub fn with_bytes_max(self, bytes_max: usize) -> Writer {
        Writer { bytes_max, ..self }
    }

    /// From now on may remove all columns of a row by one effect, or not: see the field.
    pub fn remove_rows(&mut self, may: bool) {
        self.removes_rows = may;
    }

    /// Whether it has changed something of a row.
    pub(super) fn has_changed(&self, key: &[u8]) -> bool {
        self.changes.effects.iter().any(|change| change.key == key)
    }

    /// From now on keeps what stands where something changes.
    pub fn keep(&mut self) {
        self.kept = Some(Vec::new());
    }

    /// What was kept, in the order of the changes.
    pub fn stop_keeping(&mut self) -> Vec<Kept> {
        self.kept.take().unwrap_or_default()
    }

    /// Whether a change fits into its entry. After one that does not, no other of the same command does.
    pub(super) fn has_room(&mut self, change: &RowEffect, previous: Option<&Previous>) -> bool {
        let bytes = encoded_effect_bytes(change) + previous.map_or(0, encoded_previous_bytes);
        self.is_full |= self.bytes.saturating_add(bytes) > self.bytes_max;
        !self.is_full
    }

    /// Takes a change. What a later one of the same place replaces is the write's own.
    pub(super) fn push(&mut self, change: RowEffect, previous: Option<Previous>) {
        let part = Part::of(&change.effect);
        let Effect::Remove { observed, seen } = &change.effect else {
            return self.put_in_place(change, part, previous);
        };
        // Nobody else sees what the same write had put there before. What it had removed is removed still.
        let put = self.place_of(&change, Part::Put);
        let known = self.place_of(&change, Part::Removal);
        if put.is_none() && known.is_none() {
            return self.add(change, part, previous);
        }
        let (mut observed, mut seen) = (observed.clone(), seen.clone());
        if let Some(Effect::Remove { observed: before, seen: known }) = known.map(|at| self.effect_at(at)) {
            observed.join(before);
            known.iter().for_each(|sum| cell::see(&mut seen, *sum));
        }
        let change = RowEffect { effect: Effect::Remove { observed, seen }, ..change };
        if let Some(at) = put {
            if let Some(index) = &mut self.index {
                if let Ok(entry) =
                    index.find_entry(hash(&change, Part::Put), |known| *known == (at, Part::Put))
                {
                    entry.remove();
                }
                if known.is_none() {
                    insert(index, &self.changes.effects, (at, Part::Removal));
                }
            }
            self.replace(at, change.clone());
        }
        if put.is_none() || known.is_some() {
            self.put_in_place(change, part, previous.filter(|_| put.is_none()));
        }
    }

    fn effect_at(&self, at: usize) -> &Effect {
        &self.changes.effects[at].effect
    }

    /// Where the same part of a place stands that was changed before.
    fn place_of(&mut self, change: &RowEffect, part: Part) -> Option<usize> {
        let effects = &self.changes.effects;
        if effects.len() < EFFECTS_SEARCHED {
            return effects.iter().position(|e| {
                e.key == change.key && e.column == change.column && Part::of(&e.effect) == part
            });
        }
        let index = self.index.get_or_insert_with(|| {
            let mut index = HashTable::with_capacity(2 * effects.len());
            for (at, effect) in effects.iter().enumerate() {
                insert(&mut index, effects, (at, Part::of(&effect.effect)));
            }
            index
        });
        let is_of = |&(at, known): &(usize, Part)| {
            known == part && effects[at].column == change.column && effects[at].key == change.key
        };
        index.find(hash(change, part), is_of).map(|(at, _)| *at)
    }

    fn put_in_place(&mut self, change: RowEffect, part: Part, previous: Option<Previous>) {
        match self.place_of(&change, part) {
            Some(at) => self.replace(at, change),
            None => self.add(change, part, previous),
        }
    }

    fn replace(&mut self, at: usize, change: RowEffect) {
        let known = &mut self.changes.effects[at];
        self.bytes = self.bytes + encoded_effect_bytes(&change) - encoded_effect_bytes(known);
        *known = change;
    }

    /// Takes the first change of a part of a place.
    fn add(&mut self, change: RowEffect, part: Part, previous: Option<Previous>) {
        if self.changes.effects.is_empty() {
            // Most writes change one place.
            self.changes.effects.reserve_exact(1);
        }
        self.bytes += encoded_effect_bytes(&change) + previous.as_ref().map_or(0, encoded_previous_bytes);
        self.changes.effects.push(change);
        if let Some(index) = &mut self.index {
            insert(index, &self.changes.effects, (self.changes.effects.len() - 1, part));
        }
        self.changes.previous.extend(previous);
    }
}

fn hash(change: &RowEffect, part: Part) -> u64 {
    FixedState::default().hash_one((&change.key, &change.column, part))
}

fn insert(index: &mut HashTable<(usize, Part)>, effects: &[RowEffect], place: (usize, Part)) {
    let rehash = |&(at, part): &(usize, Part)| hash(&effects[at], part);
    index.insert_unique(rehash(&place), place, rehash);
}

/// What a write changes of a place, each at most once: it removes, then puts, and it adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Part {
    Removal,
    Put,
    Addition,
}

impl Part {
    fn of(effect: &Effect) -> Part {
        match effect {
            Effect::Remove { .. } => Part::Removal,
            Effect::Put { .. } | Effect::Delete { .. } => Part::Put,
            Effect::Add { .. } => Part::Addition,
        }
    }
}
