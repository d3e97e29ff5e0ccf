//! The order in which changes of one row take effect: logical time, also while the time of some is not yet decided.
//!
//! A participant of a write transaction knows only a lower bound of its commit time until the coordinator decides. A
//! change with a later time waits behind it; one with an earlier time does not. Nobody waits for a lock, and a vote is
//! never held back, so decisions never wait for each other and everything that waits gets its turn.
//!
//! Arrives: pieces of work with their times and rows. Promises: each is handed out when it is decided and is the first
//! in all of its rows. It does not execute anything.

use bytes::Bytes;
use ensue_types::{KeyspaceId, LogicalTime, PartitionId};
use std::collections::{BTreeMap, BTreeSet};

/// A row, by name.
pub type RowName = (KeyspaceId, Bytes);

/// A piece of work, unique for the life of the partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkId(u64);

/// A moment in a row: a logical time, and the partition that drew it, since two may draw the same.
///
/// The order is that of the stamps, so that additions of one datacenter get rising stamps in the order of execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    pub time: LogicalTime,
    pub drawn_by: PartitionId,
}

impl Moment {
    /// The first moment of a logical time.
    pub fn first_of(time: LogicalTime) -> Moment {
        Moment { time, drawn_by: PartitionId(0) }
    }
}

#[derive(Clone, Debug)]
struct Piece<W> {
    /// When it takes effect, or the lower bound of that while undecided.
    at: Moment,
    decided: bool,
    rows: Vec<RowName>,
    work: W,
}

/// All work that cannot be executed at once.
#[derive(Clone, Debug)]
pub struct RowOrder<W> {
    rows: BTreeMap<RowName, BTreeSet<(Moment, WorkId)>>,
    pieces: BTreeMap<WorkId, Piece<W>>,
    /// Pieces whose turn may have come.
    candidates: BTreeSet<(Moment, WorkId)>,
    next: u64,
}

impl<W> Default for RowOrder<W> {
    fn default() -> RowOrder<W> {
        RowOrder { rows: BTreeMap::new(), pieces: BTreeMap::new(), candidates: BTreeSet::new(), next: 0 }
    }
}

impl<W> RowOrder<W> {
    /// Whether nothing waits at all: the common case, checked before anything else.
    pub fn is_idle(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Whether anything waits in this row.
    pub fn is_busy(&self, keyspace: KeyspaceId, key: &Bytes) -> bool {
        !self.rows.is_empty() && self.rows.contains_key(&(keyspace, key.clone()))
    }

    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// The rows in which something waits.
    pub fn rows(&self) -> impl Iterator<Item = &RowName> {
        self.rows.keys()
    }

    /// Adds work at a time, or at or after it if it is undecided.
    pub fn insert(&mut self, at: Moment, decided: bool, rows: Vec<RowName>, work: W) -> WorkId {
        let id = WorkId(self.next);
        self.next += 1;
        for row in &rows {
            self.rows.entry(row.clone()).or_default().insert((at, id));
        }
        self.pieces.insert(id, Piece { at, decided, rows, work });
        self.candidates.insert((at, id));
        id
    }

    /// The time of undecided work is now known.
    pub fn decide(&mut self, id: WorkId, at: Moment) {
        self.shift(id, at);
        if let Some(piece) = self.pieces.get_mut(&id) {
            piece.decided = true;
        }
    }

    /// Undecided work is now known to take effect after `at`.
    pub fn not_before(&mut self, id: WorkId, at: LogicalTime) {
        let raise = self.pieces.get(&id).is_some_and(|piece| !piece.decided && piece.at.time <= at);
        if raise {
            self.shift(id, Moment::first_of(at.next()));
        }
    }

    /// Gives up undecided work: it will never take effect.
    pub fn remove(&mut self, id: WorkId) {
        if let Some(piece) = self.pieces.remove(&id) {
            self.unlink(&piece.rows, piece.at, id);
        }
    }

    /// The earliest time at which anything that waits may take effect.
    pub fn earliest(&self) -> Option<LogicalTime> {
        self.pieces.values().map(|piece| piece.at.time).min()
    }

    /// The work itself, while it waits.
    pub fn work(&self, id: WorkId) -> Option<&W> {
        self.pieces.get(&id).map(|piece| &piece.work)
    }

    /// The next piece whose turn has come, in logical-time order, with its time.
    pub fn pop_ready(&mut self) -> Option<(LogicalTime, W)> {
        while let Some((at, id)) = self.candidates.pop_first() {
            let Some(piece) = self.pieces.get(&id) else { continue };
            if !piece.decided || piece.at != at {
                continue;
            }
            let first = |row: &RowName| self.rows.get(row).and_then(BTreeSet::first) == Some(&(at, id));
            if piece.rows.iter().all(first) {
                let piece = self.pieces.remove(&id).expect("found above");
                self.unlink(&piece.rows, at, id);
                return Some((at.time, piece.work));
            }
        }
        None
    }

    /// The undecided work that must be resolved before these rows can be read at a time: all that may take effect at or
    /// before it there, and what stands in the way of decided work that does.
    pub fn blockers(&self, rows: &[RowName], at: LogicalTime) -> Vec<WorkId> {
        let mut found = BTreeSet::new();
        let mut walked: BTreeSet<&RowName> = BTreeSet::new();
        let mut next: Vec<&RowName> = rows.iter().collect();
        while let Some(row) = next.pop() {
            if !walked.insert(row) {
                continue;
            }
            for (_, id) in
                self.rows.get(row).into_iter().flatten().take_while(|(moment, _)| moment.time <= at)
            {
                let piece = &self.pieces[id];
                if !piece.decided {
                    found.insert(*id);
                }
                next.extend(&piece.rows);
            }
        }
        found.into_iter().collect()
    }

    /// Decided work that waits in these rows, to take effect at a time or before.
    pub fn decided(&self, rows: &[RowName], at: LogicalTime) -> impl Iterator<Item = &W> {
        let waiting = rows.iter().filter_map(|row| self.rows.get(row)).flatten();
        let pieces = waiting.filter(move |(moment, _)| moment.time <= at).map(|(_, id)| &self.pieces[id]);
        pieces.filter(|piece| piece.decided).map(|piece| &piece.work)
    }

    /// Panics if rows and work do not name each other. Answers at how many places it looked.
    pub fn check_invariants(&self) -> usize {
        let named: usize = self.rows.values().map(BTreeSet::len).sum();
        let mut naming = 0;
        for (id, piece) in &self.pieces {
            assert!(*id < WorkId(self.next), "{id:?} was never given out");
            let rows: BTreeSet<&RowName> = piece.rows.iter().collect();
            naming += rows.len();
            let waits =
                |row: &&RowName| self.rows.get(*row).is_some_and(|queue| queue.contains(&(piece.at, *id)));
            assert!(rows.iter().all(waits), "{id:?} has no place in one of its rows");
        }
        assert_eq!(named, naming, "rows name work that does not wait in them");
        named
    }

    fn shift(&mut self, id: WorkId, at: Moment) {
        let Some(piece) = self.pieces.get_mut(&id) else { return };
        let (before, rows) = (piece.at, piece.rows.clone());
        piece.at = at;
        self.unlink(&rows, before, id);
        for row in &rows {
            self.rows.entry(row.clone()).or_default().insert((at, id));
        }
        self.candidates.insert((at, id));
    }

    /// Takes a piece out of its rows; whoever is first there now may have its turn.
    fn unlink(&mut self, rows: &[RowName], at: Moment, id: WorkId) {
        for row in rows {
            let Some(queue) = self.rows.get_mut(row) else { continue };
            queue.remove(&(at, id));
            match queue.first() {
                Some(first) => {
                    self.candidates.insert(*first);
                }
                None => {
                    self.rows.remove(row);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
