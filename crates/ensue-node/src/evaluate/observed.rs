//! What an evaluation looked at: how long all of it has been valid, which writes made it, and how many keys were there.
//!
//! Arrives: whatever is shown of a row. Promises: every write that made it is named, one after another once. It decides
//! nothing.

use ensue_store::cell::SourceRef;
use ensue_store::compact::Compact;
use ensue_store::row::Gone;
use ensue_store::settled::Settled;
use ensue_store::view::{Shown, View};
use ensue_types::{LogicalTime, OperationId, Rule, Source};

/// What was looked at.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// All of it has been valid since then (EVT).
    pub earliest_valid: LogicalTime,
    /// The writes that made it.
    pub sources: Vec<Source>,
    /// Writes that a write goes on from though its view hides them: additions to the same counters. What the write
    /// depends on must cover them; its session has not seen them.
    pub continued: Vec<Source>,
    /// Somewhere a write was hidden with a higher stamp than any that was shown.
    pub stale: bool,
    /// Of how many versions at least what was looked at is put together, those that may be missing counted.
    pub pieces: usize,
    /// Keys that the present command has found and has not.
    found: u64,
    missed: u64,
    /// The same of the commands before, as `INFO` counts them.
    pub hits: u64,
    pub misses: u64,
}

impl Observed {
    /// Nothing yet, but for a flush that not every datacenter knows of: what will not be found may be gone by it.
    pub(super) fn after(flush: Option<Source>) -> Observed {
        let sources = flush.filter(|_| Rule::FlushesAreSeen.holds()).into_iter().collect();
        Observed { sources, ..Observed::default() }
    }

    pub(super) fn record(&mut self, shown: &Shown<'_>) {
        self.valid_since(shown.since);
        self.stale |= shown.stale;
        self.pieces += if shown.state.counter.is_some() { 2 } else { 1 };
        if !Rule::TombstonesAreSeen.holds() && !shown.state.is_live() {
            return;
        }
        let unread = match Rule::FoldsAreReadWhole.holds() {
            true => &[],
            // Broken on purpose: the newest is taken for all that was read.
            false => shown.state.siblings(),
        };
        shown.state.each_source(|source| {
            if unread.iter().all(|one| one.base.operation != source.operation) {
                self.add_source(source);
            }
        });
    }

    pub(super) fn add_source(&mut self, source: SourceRef<'_>) {
        if self.sources.last().is_none_or(|last| last.operation != source.operation) {
            self.sources.push(source.to_source());
        }
    }

    pub(super) fn record_compact(&mut self, row: &Compact, view: View<'_>) -> Result<(), Gone> {
        row.at(view)?;
        self.valid_since(row.since());
        self.pieces += 1;
        let source = row.source();
        if self.sources.last().is_none_or(|last| last.operation != source.operation) {
            self.sources.push(source);
        }
        Ok(())
    }

    pub(super) fn record_settled(&mut self, settled: &Settled<'_>, view: View<'_>) -> Result<(), Gone> {
        settled.at(view)?;
        self.valid_since(settled.since);
        self.pieces += if settled.is_counter() { 2 } else { 1 };
        for source in settled.sources() {
            if self.sources.last().is_none_or(|last| last.operation != source.operation) {
                self.sources.push(source);
            }
        }
        Ok(())
    }

    /// Takes over what a later command of a write depends on. How new and how whole that was is asked of reads alone.
    pub fn depend_on(&mut self, later: Observed) {
        self.hits += later.hits;
        self.misses += later.misses;
        self.sources.extend(later.sources);
        self.continued.extend(later.continued);
    }

    /// What the write itself has made is no dependency of it: nobody would ever have what it depends on.
    pub(super) fn leave_out(&mut self, own: OperationId) {
        let is_other = |source: &Source| source.operation != own;
        self.sources.retain(is_other);
        self.continued.retain(is_other);
    }

    pub(super) fn look_up(&mut self, is_there: bool) {
        self.found += u64::from(is_there);
        self.missed += u64::from(!is_there);
    }

    /// A command has ended. Reads of one key count once, however often they look at it, and writes do not.
    pub(super) fn end_command(&mut self, looks_up: LooksUp) {
        let (found, missed) = (std::mem::take(&mut self.found), std::mem::take(&mut self.missed));
        match looks_up {
            LooksUp::Nothing => {}
            LooksUp::OneKey => {
                self.hits += u64::from(found > 0);
                self.misses += u64::from(found == 0 && missed > 0);
            }
            LooksUp::EachKey => {
                self.hits += found;
                self.misses += missed;
            }
        }
    }

    pub(super) fn valid_since(&mut self, since: LogicalTime) {
        self.earliest_valid = self.earliest_valid.max(since);
    }
}

/// Which keys of a command `INFO` counts as found or missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LooksUp {
    Nothing,
    OneKey,
    EachKey,
}
