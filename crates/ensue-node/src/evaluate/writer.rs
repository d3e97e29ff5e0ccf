//! What one write changes, gathered effect by effect: each part of a place once.

use super::effect_bytes;
use bytes::Bytes;
use ensue_store::cell::{self, Write};
use ensue_store::keyspace::undo::Kept;
use ensue_types::{Column, DatacenterId, Effect, Previous, RowEffect};
use std::collections::BTreeMap;

/// Effects of one write before a search among them needs an index.
const EFFECTS_SEARCHED: usize = 16;

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
    pub(super) asks_previous: bool,
    /// About what the changes take in an entry.
    pub(super) bytes: usize,
    /// How many elements of lists it has named.
    pub(super) named: u32,
    /// Whose running sums its additions go on.
    pub(super) adder: DatacenterId,
    index: BTreeMap<(Bytes, Column, Part), usize>,
    /// What stood where it has changed something, if that may be taken back.
    pub(super) kept: Option<Vec<Kept>>,
}

impl Writer {
    /// `asks_previous` says whether it must be told what is replaced.
    pub fn new(write: Write, adder: DatacenterId, asks_previous: bool) -> Writer {
        let (changes, index) = (Changes::default(), BTreeMap::new());
        Writer { write, changes, asks_previous, bytes: 0, named: 0, adder, index, kept: None }
    }

    /// From now on keeps what stands where something changes.
    pub fn keep(&mut self) {
        self.kept = Some(Vec::new());
    }

    /// What was kept, in the order of the changes.
    pub fn stop_keeping(&mut self) -> Vec<Kept> {
        self.kept.take().unwrap_or_default()
    }

    /// Takes a change. What a later one of the same place replaces is the write's own.
    pub(super) fn push(&mut self, change: RowEffect, previous: Option<Previous>) {
        let value = if let Effect::Put { value, .. } = &change.effect { value.len() } else { 0 };
        self.bytes += effect_bytes(&change.key, &change.column, value);
        let part = Part::of(&change.effect);
        let Effect::Remove { observed, seen } = &change.effect else {
            return self.put_in_place(change, part, previous);
        };
        // Nobody else sees what the same write had put there before. What it had removed is removed still.
        let put = self.place_of(&change, Part::Put);
        let known = self.place_of(&change, Part::Removal);
        let (mut observed, mut seen) = (observed.clone(), seen.clone());
        if let Some(Effect::Remove { observed: before, seen: known }) = known.map(|at| self.effect_at(at)) {
            observed.join(before);
            known.iter().for_each(|sum| cell::see(&mut seen, *sum));
        }
        let change = RowEffect { effect: Effect::Remove { observed, seen }, ..change };
        if let Some(at) = put {
            let name = |part| (change.key.clone(), change.column.clone(), part);
            if self.index.remove(&name(Part::Put)).is_some() {
                self.index.insert(name(Part::Removal), known.unwrap_or(at));
            }
            self.changes.effects[at] = change.clone();
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
        if self.index.is_empty() {
            for (at, e) in effects.iter().enumerate() {
                self.index.insert((e.key.clone(), e.column.clone(), Part::of(&e.effect)), at);
            }
        }
        self.index.get(&(change.key.clone(), change.column.clone(), part)).copied()
    }

    fn put_in_place(&mut self, change: RowEffect, part: Part, previous: Option<Previous>) {
        match self.place_of(&change, part) {
            Some(at) => self.changes.effects[at] = change,
            None => {
                if !self.index.is_empty() {
                    let name = (change.key.clone(), change.column.clone(), part);
                    self.index.insert(name, self.changes.effects.len());
                }
                self.changes.effects.push(change);
                self.changes.previous.extend(previous);
            }
        }
    }
}

/// What a write changes of a place, each at most once: it removes, then puts, and it adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
