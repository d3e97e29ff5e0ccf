//! A history with settled reads, as tables: places, sources, and for each key who wrote it, session by session.

use super::counters::Seen;
use super::reads::{INITIAL, LatestWrite, Read};
use crate::history::{History, Operation, Outcome};

/// Lists of numbers, one a row, in one allocation.
#[derive(Debug, Default)]
pub(super) struct Rows {
    starts: Vec<u32>,
    items: Vec<u32>,
}

impl Rows {
    /// From pairs of a row and an item; within a row in the order of the pairs.
    pub fn new(count: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Rows {
        let mut starts = vec![0_u32; count + 1];
        for (row, _) in pairs.clone() {
            starts[row as usize + 1] += 1;
        }
        for row in 0..count {
            starts[row + 1] += starts[row];
        }
        let mut next = starts.clone();
        let mut items = vec![0; starts[count] as usize];
        for (row, item) in pairs {
            items[next[row as usize] as usize] = item;
            next[row as usize] += 1;
        }
        Rows { starts, items }
    }

    pub fn of(&self, row: u32) -> &[u32] {
        &self.items[self.starts[row as usize] as usize..self.starts[row as usize + 1] as usize]
    }
}

/// Transactions that did something to a key, by key, then by session, then by position.
#[derive(Debug, Default)]
pub(super) struct Keyed {
    /// By key: its groups.
    starts: Vec<u32>,
    groups: Vec<Group>,
    /// Positions in the session of the group, ascending.
    pub positions: Vec<u32>,
    /// Beside each position: the transaction that is meant, which may be another than the one at the position.
    pub transactions: Vec<u32>,
}

/// The part of one session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    pub session: u32,
    pub start: u32,
    pub end: u32,
}

/// An entry before it is sorted in.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyedEntry {
    pub key: u32,
    pub session: u32,
    pub position: u32,
    pub transaction: u32,
}

impl Keyed {
    /// From entries that come session by session, each in the order of positions.
    pub fn new(keys: usize, entries: &[KeyedEntry]) -> Keyed {
        let by_key = Rows::new(keys, entries.iter().enumerate().map(|(at, entry)| (entry.key, at as u32)));
        let mut keyed = Keyed { starts: vec![0], ..Keyed::default() };
        keyed.positions.reserve(entries.len());
        keyed.transactions.reserve(entries.len());
        for key in 0..keys as u32 {
            let mut last_session = None;
            for &at in by_key.of(key) {
                let entry = entries[at as usize];
                let start = keyed.positions.len() as u32;
                if last_session.replace(entry.session) != Some(entry.session) {
                    keyed.groups.push(Group { session: entry.session, start, end: start });
                }
                keyed.positions.push(entry.position);
                keyed.transactions.push(entry.transaction);
                if let Some(group) = keyed.groups.last_mut() {
                    group.end = start + 1;
                }
            }
            keyed.starts.push(keyed.groups.len() as u32);
        }
        keyed
    }

    /// In the order of sessions.
    pub fn groups(&self, key: u32) -> &[Group] {
        &self.groups[self.starts[key as usize] as usize..self.starts[key as usize + 1] as usize]
    }

    /// The groups of the key whose sessions lie in a range.
    pub fn groups_within(&self, key: u32, sessions: &std::ops::Range<u32>) -> &[Group] {
        let groups = self.groups(key);
        if groups.first().is_none_or(|group| group.session >= sessions.start)
            && groups.last().is_none_or(|group| group.session < sessions.end)
        {
            return groups;
        }
        let start = groups.partition_point(|group| group.session < sessions.start);
        let end = groups.partition_point(|group| group.session < sessions.end);
        &groups[start..end]
    }

    /// How many of the group lie before a position of its session, as the place after the last of them.
    pub fn end_before(&self, group: Group, position: u32) -> u32 {
        let positions = &self.positions[group.start as usize..group.end as usize];
        group.start + positions.partition_point(|&at| at < position) as u32
    }

    pub fn len(&self) -> usize {
        self.positions.len()
    }
}

/// All tables of one resolution.
pub(super) struct Index<'a> {
    pub history: &'a History,
    pub session: Vec<u32>,
    /// Within the session.
    pub position: Vec<u32>,
    /// Committed, or unknown and read.
    pub counts: Vec<bool>,
    /// By reader, key and writer, each once.
    pub reads: Vec<Read>,
    /// By reader: from whom it read, registers and counters, each once, without the initial transaction.
    pub sources: Rows,
    /// Final writes of what counts.
    pub writes: Keyed,
}

impl<'a> Index<'a> {
    pub fn new(history: &'a History, mut reads: Vec<Read>, seen: &[Seen]) -> Index<'a> {
        reads.sort_unstable_by_key(|read| (read.reader, read.key, read.writer));
        reads.dedup();
        let count = history.transactions.len();
        let mut counts: Vec<bool> = history
            .transactions
            .iter()
            .map(|transaction| transaction.outcome == Outcome::Committed)
            .collect();
        for read in reads.iter().filter(|read| read.writer != INITIAL) {
            counts[read.writer as usize] = true;
        }
        for seen in seen {
            counts[seen.adder as usize] = true;
        }
        let mut session = vec![0; count];
        let mut position = vec![0; count];
        for (number, of) in history.sessions.iter().enumerate() {
            for (at, transaction) in of.transactions.iter().enumerate() {
                session[transaction.0 as usize] = number as u32;
                position[transaction.0 as usize] = at as u32;
            }
        }
        let sources = sources(count, &reads, seen);
        let writes = final_writes(history, &counts);
        Index { history, session, position, counts, reads, sources, writes }
    }

    pub fn len(&self) -> usize {
        self.session.len()
    }

    /// The reads of one transaction.
    pub fn reads_of(&self, reader: u32) -> &[Read] {
        let start = self.reads.partition_point(|read| read.reader < reader);
        let length = self.reads[start..].partition_point(|read| read.reader == reader);
        &self.reads[start..start + length]
    }

    /// Whether a final write of the key by this transaction counts.
    pub fn writes(&self, transaction: u32, key: u32) -> bool {
        let (session, position) = (self.session[transaction as usize], self.position[transaction as usize]);
        self.writes.groups_within(key, &(session..session + 1)).iter().any(|&group| {
            let at = self.writes.end_before(group, position);
            at < group.end && self.writes.positions[at as usize] == position
        })
    }

    /// The transaction before this one in its session.
    pub fn previous(&self, transaction: u32) -> Option<u32> {
        let position = self.position[transaction as usize].checked_sub(1)?;
        Some(self.at(self.session[transaction as usize], position))
    }

    pub fn next(&self, transaction: u32) -> Option<u32> {
        let session = &self.history.sessions[self.session[transaction as usize] as usize];
        session.transactions.get(self.position[transaction as usize] as usize + 1).map(|next| next.0)
    }

    pub fn at(&self, session: u32, position: u32) -> u32 {
        self.history.sessions[session as usize].transactions[position as usize].0
    }

    /// Whose tokens were shown to it; none if it does not count.
    pub fn merges(&self, transaction: u32) -> impl Iterator<Item = u32> + Clone + use<'_> {
        let is_counted = self.counts[transaction as usize];
        let merges = &self.history.transactions[transaction as usize].merges;
        merges.iter().map(|merged| merged.0).filter(move |_| is_counted)
    }
}

fn sources(count: usize, reads: &[Read], seen: &[Seen]) -> Rows {
    let of_registers =
        reads.iter().filter(|read| read.writer != INITIAL).map(|read| (read.reader, read.writer));
    let of_counters = seen.iter().map(|seen| (seen.reader, seen.adder));
    let rows = Rows::new(count, of_registers.chain(of_counters));
    let mut once =
        Rows { starts: Vec::with_capacity(count + 1), items: Vec::with_capacity(rows.items.len()) };
    once.starts.push(0);
    let mut last_reader = vec![u32::MAX; count];
    for reader in 0..count as u32 {
        for &source in rows.of(reader) {
            if std::mem::replace(&mut last_reader[source as usize], reader) != reader {
                once.items.push(source);
            }
        }
        once.starts.push(once.items.len() as u32);
    }
    once
}

fn final_writes(history: &History, counts: &[bool]) -> Keyed {
    let mut entries = Vec::new();
    let mut written = LatestWrite::new(history.keys.len());
    for (session, of) in history.sessions.iter().enumerate() {
        for (position, &transaction) in of.transactions.iter().enumerate() {
            if !counts[transaction.0 as usize] {
                continue;
            }
            written.begin();
            for operation in &history.transaction(transaction).operations {
                let Operation::Write { key, .. } = *operation else { continue };
                if written.of(key.0).is_none() {
                    written.set(key.0, 0);
                    entries.push(KeyedEntry {
                        key: key.0,
                        session: session as u32,
                        position: position as u32,
                        transaction: transaction.0,
                    });
                }
            }
        }
    }
    Keyed::new(history.keys.len(), &entries)
}
