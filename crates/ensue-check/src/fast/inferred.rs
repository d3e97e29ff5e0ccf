//! What an axiom demands: for every read that returned `t1`, whoever else wrote the key and had to be known is older.
//!
//! Of several writes of one session only the last is named, because session order says the rest. Where whoever had to
//! be known was known through reads, there is no such order; then auxiliary nodes stand for "all that a session had
//! seen by now".

use super::clocks::{Clocks, Latest, Past};
use super::index::{Group, Index, Keyed, KeyedEntry};
use super::reads::INITIAL;
use crate::history::Operation;
use crate::property::Property;
use crate::tables::Map;

/// In place of a read: the edge is between auxiliary nodes.
pub(super) const NO_READ: u32 = u32::MAX;

/// `from` is older than `to`, because of a read, by its place in [`Index::reads`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub from: u32,
    pub to: u32,
    pub read: u32,
}

/// All that an axiom demands.
#[derive(Debug, Default)]
pub(super) struct Inferred {
    /// Nodes beyond the transactions are auxiliary.
    pub edges: Vec<Edge>,
    /// How many auxiliary nodes there are.
    pub extra: u32,
    /// Somebody who is older than the initial transaction, which cannot be.
    pub before_initial: Option<Edge>,
}

impl Inferred {
    /// What the axiom of this property demands. `order` has everything after its past.
    pub fn find(index: &Index<'_>, order: &[u32], property: Property, latest: &mut Latest) -> Inferred {
        let mut inferred = Inferred::default();
        let seen = match property {
            Property::MonotonicReads | Property::WritesFollowReads => Some(SeenWrites::find(index)),
            _ => None,
        };
        if let Some(seen) = &seen {
            inferred.add_chains(index, seen);
        }
        let past = match property {
            Property::Causal | Property::CausalConvergent | Property::SnapshotReads => Past::Causal,
            _ => Past::Session,
        };
        let mut done = Map::default();
        for block in Clocks::blocks(index) {
            let clocks = latest.table(index, order, past, block);
            let mut row = vec![0; clocks.sessions.len()];
            let mut reader = None;
            for (number, read) in index.reads.iter().enumerate() {
                if reader.replace(read.reader) != Some(read.reader) {
                    known(index, clocks, property, read.reader, &mut row);
                }
                match &seen {
                    None => inferred.add_last_writes(index, clocks, &row, number as u32),
                    Some(seen) => inferred.add_seen(index, seen, clocks, &row, number as u32, &mut done),
                }
            }
        }
        if property == Property::ReadAtomic {
            inferred.add_sources(index);
        }
        inferred
    }

    /// The last write of the key in every session, as far as it is known.
    fn add_last_writes(&mut self, index: &Index<'_>, clocks: &Clocks, row: &[u32], number: u32) {
        let read = index.reads[number as usize];
        for &group in index.writes.groups_within(read.key, &clocks.sessions) {
            let known = row[(group.session - clocks.sessions.start) as usize];
            if known == 0 {
                continue;
            }
            let end = index.writes.end_before(group, known);
            if end == group.start {
                continue;
            }
            let older = index.writes.transactions[end as usize - 1];
            if older == read.writer {
                continue;
            }
            if read.writer != INITIAL {
                let position = index.writes.positions[end as usize - 1];
                // Already in the past of the writer, so it is known to be older.
                if clocks.entry(read.writer, group.session).is_some_and(|known| known > position) {
                    continue;
                }
            }
            self.add(Edge { from: older, to: read.writer, read: number });
        }
    }

    /// Everybody who wrote the key and was read in a session, as far as that is known.
    fn add_seen(
        &mut self,
        index: &Index<'_>,
        seen: &SeenWrites,
        clocks: &Clocks,
        row: &[u32],
        number: u32,
        done: &mut Done,
    ) {
        let read = index.reads[number as usize];
        for &group in seen.writers.groups_within(read.key, &clocks.sessions) {
            let known = row[(group.session - clocks.sessions.start) as usize];
            let end = seen.writers.end_before(group, known);
            if end == group.start {
                continue;
            }
            let writer_at = seen.place_of(group, read.writer).filter(|&at| at < end);
            let chain_end = writer_at.unwrap_or(end);
            if chain_end > group.start {
                let from = seen.node(index, chain_end - 1);
                self.add_seen_edge(seen, Edge { from, to: read.writer, read: number }, chain_end - 1);
            }
            // The writer itself is among those that were read: the chain goes on through it, so the rest is named one
            // by one.
            if let Some(writer_at) = writer_at {
                let next = done.entry((group.start, read.writer)).or_insert(writer_at + 1);
                for at in *next..end {
                    let from = seen.writers.transactions[at as usize];
                    self.add(Edge { from, to: read.writer, read: number });
                }
                *next = (*next).max(end);
            }
        }
    }

    fn add_seen_edge(&mut self, seen: &SeenWrites, edge: Edge, last: u32) {
        if edge.to == INITIAL {
            self.add(Edge { from: seen.writers.transactions[last as usize], ..edge });
        } else {
            self.add(edge);
        }
    }

    /// Everybody whom the reader read from.
    fn add_sources(&mut self, index: &Index<'_>) {
        let mut start = 0;
        for reads in index.reads.chunk_by(|a, b| a.reader == b.reader) {
            for &source in index.sources.of(reads[0].reader) {
                let operations = &index.history.transactions[source as usize].operations;
                if operations.len() < reads.len() {
                    for operation in operations {
                        let Operation::Write { key, .. } = *operation else { continue };
                        let first = reads.partition_point(|read| read.key < key.0);
                        let same = reads[first..].iter().take_while(|read| read.key == key.0).count();
                        for at in first..first + same {
                            self.add_source(index, source, start + at as u32);
                        }
                    }
                } else {
                    for (at, read) in reads.iter().enumerate() {
                        if index.writes(source, read.key) {
                            self.add_source(index, source, start + at as u32);
                        }
                    }
                }
            }
            start += reads.len() as u32;
        }
    }

    fn add_source(&mut self, index: &Index<'_>, source: u32, number: u32) {
        let to = index.reads[number as usize].writer;
        if to != source {
            self.add(Edge { from: source, to, read: number });
        }
    }

    fn add(&mut self, edge: Edge) {
        if edge.to == INITIAL {
            self.before_initial.get_or_insert(edge);
        } else {
            self.edges.push(edge);
        }
    }

    fn add_chains(&mut self, index: &Index<'_>, seen: &SeenWrites) {
        self.extra = seen.writers.len() as u32;
        for key in 0..index.history.keys.len() as u32 {
            for group in seen.writers.groups(key) {
                for at in group.start..group.end {
                    let to = seen.node(index, at);
                    self.add(Edge { from: seen.writers.transactions[at as usize], to, read: NO_READ });
                    if at > group.start {
                        self.add(Edge { from: seen.node(index, at - 1), to, read: NO_READ });
                    }
                }
            }
        }
    }
}

/// How far a list of seen writers has been gone through for a writer that is in it itself.
type Done = Map<(u32, u32), u32>;

/// How much of every session the reader has to know by this property.
fn known(index: &Index<'_>, clocks: &Clocks, property: Property, reader: u32, row: &mut [u32]) {
    match property {
        Property::MonotonicWrites => {
            row.fill(0);
            for &source in index.sources.of(reader) {
                clocks.join_into(row, source);
            }
        }
        Property::SnapshotReads | Property::WritesFollowReads => {
            row.fill(0);
            for &source in index.sources.of(reader) {
                clocks.join_into(row, source);
                clocks.include_into(row, index, source);
            }
        }
        _ => row.copy_from_slice(clocks.of(reader)),
    }
}

/// Who wrote a key and was read in a session, by the first reading there.
struct SeenWrites {
    writers: Keyed,
    /// By the start of a group and the writer: its place.
    places: Map<(u32, u32), u32>,
}

impl SeenWrites {
    fn find(index: &Index<'_>) -> SeenWrites {
        let mut entries = Vec::new();
        let mut last_session = vec![u32::MAX; index.len()];
        let mut keys = Vec::new();
        for (session, of) in index.history.sessions.iter().enumerate() {
            let session = session as u32;
            for (position, reader) in of.transactions.iter().enumerate() {
                for &writer in index.sources.of(reader.0) {
                    if std::mem::replace(&mut last_session[writer as usize], session) == session {
                        continue;
                    }
                    keys.clear();
                    keys.extend(index.history.transactions[writer as usize].operations.iter().filter_map(
                        |operation| match *operation {
                            Operation::Write { key, .. } => Some(key.0),
                            _ => None,
                        },
                    ));
                    keys.sort_unstable();
                    keys.dedup();
                    entries.extend(keys.iter().map(|&key| KeyedEntry {
                        key,
                        session,
                        position: position as u32,
                        transaction: writer,
                    }));
                }
            }
        }
        let writers = Keyed::new(index.history.keys.len(), &entries);
        let mut places = Map::default();
        for key in 0..index.history.keys.len() as u32 {
            for group in writers.groups(key) {
                for at in group.start..group.end {
                    places.insert((group.start, writers.transactions[at as usize]), at);
                }
            }
        }
        SeenWrites { writers, places }
    }

    fn place_of(&self, group: Group, writer: u32) -> Option<u32> {
        self.places.get(&(group.start, writer)).copied()
    }

    /// The auxiliary node that stands for everything of the group up to this place.
    fn node(&self, index: &Index<'_>, at: u32) -> u32 {
        index.len() as u32 + at
    }
}
