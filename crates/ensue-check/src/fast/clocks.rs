//! The past of every transaction, as a number a session: how many of its transactions lie in the past.
//!
//! A table of all transactions and all sessions would not fit where there are thousands of sessions. So the table is
//! made for a block of sessions at a time; whoever asks goes through the blocks.

use super::index::{Index, Rows};
use std::ops::Range;

/// Most entries of a table: 256 MiB.
const ENTRIES_MAX: usize = 64 << 20;

/// How often a cyclic past is gone through.
const PASSES_MAX: usize = 100;

/// Which edges lead into the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Past {
    /// Session order with merges.
    Session,
    /// Session order with merges, and reads-from.
    Causal,
}

/// An order of all transactions in which everything comes after its past; nothing if the past is cyclic.
pub(super) fn order(index: &Index<'_>) -> Option<Vec<u32>> {
    let count = index.len();
    let mut waits_for = vec![0_u32; count];
    let edges = || {
        (0..count as u32).flat_map(|to| {
            let sources = index.sources.of(to).iter().copied();
            sources.chain(index.merges(to)).map(move |from| (from, to))
        })
    };
    for (_, to) in edges() {
        waits_for[to as usize] += 1;
    }
    let followers = Rows::new(count, edges());
    for (transaction, waits_for) in waits_for.iter_mut().enumerate() {
        *waits_for += u32::from(index.previous(transaction as u32).is_some());
    }
    let mut order: Vec<u32> = Vec::with_capacity(count);
    // A transaction that is ready is followed through its session at once: neighbours in the order are neighbours in
    // memory.
    order.extend((0..count as u32).filter(|&transaction| waits_for[transaction as usize] == 0));
    let mut done = 0;
    while done < order.len() {
        let transaction = order[done];
        done += 1;
        for &next in followers.of(transaction).iter().chain(&index.next(transaction)) {
            waits_for[next as usize] -= 1;
            if waits_for[next as usize] == 0 {
                order.push(next);
            }
        }
    }
    (order.len() == count).then_some(order)
}

/// The causal past of a block, whether there is an order or not; nothing if that takes too long.
pub(super) fn causal(index: &Index<'_>, order: Option<&[u32]>, sessions: Range<u32>) -> Option<Clocks> {
    match order {
        Some(order) => Some(Clocks::compute(index, order, Past::Causal, sessions)),
        None => Clocks::settle(index, sessions),
    }
}

/// The table that was asked for last, kept for whoever asks for the same again. Never two at once: they are large.
#[derive(Default)]
pub(super) struct Latest(Option<(Past, Clocks)>);

impl Latest {
    pub fn table(&mut self, index: &Index<'_>, order: &[u32], past: Past, sessions: Range<u32>) -> &Clocks {
        let kept = self.0.take().filter(|(of, clocks)| *of == past && clocks.sessions == sessions);
        let kept = kept.unwrap_or_else(|| (past, Clocks::compute(index, order, past, sessions)));
        &self.0.insert(kept).1
    }
}

/// The table of one block of sessions.
pub(super) struct Clocks {
    pub sessions: Range<u32>,
    width: usize,
    entries: Vec<u32>,
}

impl Clocks {
    /// The blocks of sessions that a history is gone through in.
    pub fn blocks(index: &Index<'_>) -> Vec<Range<u32>> {
        let sessions = index.history.sessions.len() as u32;
        let width = (ENTRIES_MAX / index.len().max(1)).clamp(8, sessions.max(8) as usize) as u32;
        (0..sessions).step_by(width as usize).map(|start| start..sessions.min(start + width)).collect()
    }

    pub fn compute(index: &Index<'_>, order: &[u32], past: Past, sessions: Range<u32>) -> Clocks {
        let width = sessions.len();
        let mut clocks = Clocks { sessions, width, entries: vec![0; width * index.len()] };
        for &transaction in order {
            clocks.visit(index, past, transaction);
        }
        clocks
    }

    /// The table of a cyclic causal past: goes through all transactions until nothing changes, which is given up after
    /// a while.
    pub fn settle(index: &Index<'_>, sessions: Range<u32>) -> Option<Clocks> {
        let width = sessions.len();
        let mut clocks = Clocks { sessions, width, entries: vec![0; width * index.len()] };
        for _ in 0..PASSES_MAX {
            let mut is_changed = false;
            for transaction in 0..index.len() as u32 {
                let before = clocks.of(transaction).to_vec();
                clocks.visit(index, Past::Causal, transaction);
                is_changed |= before != clocks.of(transaction);
            }
            if !is_changed {
                return Some(clocks);
            }
        }
        None
    }

    fn visit(&mut self, index: &Index<'_>, past: Past, transaction: u32) {
        if let Some(previous) = index.previous(transaction) {
            self.join(transaction, previous);
            self.include(index, transaction, previous);
        }
        if past == Past::Causal {
            for &source in index.sources.of(transaction) {
                self.join(transaction, source);
                self.include(index, transaction, source);
            }
        }
        for merged in index.merges(transaction) {
            self.join(transaction, merged);
            self.include(index, transaction, merged);
        }
    }

    /// By session, from the first of the block: how many of its transactions lie in the past of this one.
    pub fn of(&self, transaction: u32) -> &[u32] {
        &self.entries[transaction as usize * self.width..][..self.width]
    }

    /// The entry of one session, if it is in the block.
    pub fn entry(&self, transaction: u32, session: u32) -> Option<u32> {
        self.sessions
            .contains(&session)
            .then(|| self.of(transaction)[(session - self.sessions.start) as usize])
    }

    /// `into` becomes the past of both.
    pub fn join_into(&self, into: &mut [u32], transaction: u32) {
        join(into, self.of(transaction));
    }

    /// `into` becomes a past with this transaction in it.
    pub fn include_into(&self, into: &mut [u32], index: &Index<'_>, transaction: u32) {
        let session = index.session[transaction as usize];
        if self.sessions.contains(&session) {
            let entry = &mut into[(session - self.sessions.start) as usize];
            *entry = (*entry).max(index.position[transaction as usize] + 1);
        }
    }

    fn join(&mut self, into: u32, from: u32) {
        let (into, from) = (into as usize * self.width, from as usize * self.width);
        let (into, from) = if into < from {
            let (low, high) = self.entries.split_at_mut(from);
            (&mut low[into..into + self.width], &high[..self.width])
        } else {
            let (low, high) = self.entries.split_at_mut(into);
            (&mut high[..self.width], &low[from..from + self.width])
        };
        join(into, from);
    }

    fn include(&mut self, index: &Index<'_>, into: u32, transaction: u32) {
        let session = index.session[transaction as usize];
        if self.sessions.contains(&session) {
            let at = into as usize * self.width + (session - self.sessions.start) as usize;
            self.entries[at] = self.entries[at].max(index.position[transaction as usize] + 1);
        }
    }
}

fn join(into: &mut [u32], from: &[u32]) {
    for (into, from) in into.iter_mut().zip(from) {
        *into = (*into).max(*from);
    }
}
