//! Which write each ambiguous read of a key can have seen, by the times alone.
//!
//! A lock that is taken and released n times is read as *absent* n times, and each of n deletes wrote that. A read is
//! compared only with those writes of its value that may explain it: a list for each read would take memory by the
//! square.

use super::{Span, Time, write_of};
use crate::fast::reads::{AmbiguousRead, INITIAL, Read};
use crate::history::{History, Value};
use crate::tables::Map;

/// The reads, each with the writes that it may have seen: at least one.
pub(super) struct Narrowed {
    reads: Vec<(u32, u32, Vec<u32>)>,
    /// Ways to say which write each read saw.
    pub ways: usize,
    /// The same with all writes that cannot explain a read which no write explains; of these, the one that came before
    /// the read is tried.
    pub fruitless: usize,
}

impl Narrowed {
    /// Leaves out writes that began after the read ended, and those that another write replaced before the read began.
    /// Nothing if more ways are left than these.
    pub fn new(
        history: &History,
        writers: &[u32],
        ambiguous: &[AmbiguousRead],
        ways_max: usize,
    ) -> Option<Narrowed> {
        let replacements = Replacements::new(history, writers);
        let mut by_value: Map<Value, ByStart> = Map::default();
        let mut narrowed = Narrowed { reads: Vec::with_capacity(ambiguous.len()), ways: 1, fruitless: 1 };
        for AmbiguousRead { reader, key, value, candidates } in ambiguous {
            let span = Span::of(history, *reader);
            let replaced_before = replacements.latest_start_before(span.start);
            let written = by_value.entry(*value).or_insert_with(|| {
                let initial = candidates.has_initial().then_some(INITIAL);
                let writers = initial.into_iter().chain(candidates.shared().iter().copied());
                ByStart::new(writers.map(|writer| write_of(history, writer)).collect())
            });
            // One more than is tried, and the reader itself.
            let mut possible = written.within(replaced_before, span.end, ways_max + 2);
            possible.retain(|writer| writer != reader);
            let mut all = possible.len();
            if possible.is_empty() {
                possible.push(written.latest(span.end, *reader).unwrap_or_else(|| candidates.at(0)));
                all = candidates.count();
            }
            narrowed.ways = narrowed.ways.checked_mul(possible.len()).filter(|ways| *ways <= ways_max)?;
            narrowed.fruitless = narrowed.fruitless.saturating_mul(all);
            narrowed.reads.push((*reader, *key, possible));
        }
        Some(narrowed)
    }

    pub fn way(&self, mut number: usize) -> Vec<Read> {
        let choose = |(reader, key, candidates): &(u32, u32, Vec<u32>)| {
            let writer = candidates[number % candidates.len()];
            number /= candidates.len();
            Read { reader: *reader, key: *key, writer }
        };
        self.reads.iter().map(choose).collect()
    }
}

/// By the end of each write: the latest start of those that ended no later.
struct Replacements(Vec<(Time, Time)>);

impl Replacements {
    fn new(history: &History, writers: &[u32]) -> Replacements {
        let mut spans: Vec<Span> = writers.iter().map(|&writer| Span::of(history, writer)).collect();
        spans.sort_by_key(|span| span.end);
        let mut latest = -1;
        let entry = |span: &Span| {
            latest = span.start.max(latest);
            (span.end, latest)
        };
        Replacements(spans.iter().map(entry).collect())
    }

    fn latest_start_before(&self, time: Time) -> Time {
        let ended = self.0.partition_point(|(end, _)| *end < time);
        ended.checked_sub(1).map_or(-1, |last| self.0[last].1)
    }
}

/// Writes in the order of their starts, under a tree of the latest end in each part.
struct ByStart {
    spans: Vec<Span>,
    /// The root is at 1, the children of `at` are at `2 * at` and behind it, the leaves stand in the second half.
    latest_end: Vec<Time>,
}

impl ByStart {
    fn new(mut spans: Vec<Span>) -> ByStart {
        spans.sort_by_key(|span| span.start);
        let leaves = spans.len().next_power_of_two();
        let mut latest_end = vec![Time::MIN; 2 * leaves];
        for (place, span) in spans.iter().enumerate() {
            latest_end[leaves + place] = span.end;
        }
        for at in (1..leaves).rev() {
            latest_end[at] = latest_end[2 * at].max(latest_end[2 * at + 1]);
        }
        ByStart { spans, latest_end }
    }

    /// Writes that ended at `since` or later and began at `until` or before; of more than `most` some.
    fn within(&self, since: Time, until: Time, most: usize) -> Vec<u32> {
        let began = self.spans.partition_point(|span| span.start <= until);
        let leaves = self.latest_end.len() / 2;
        let mut found = Vec::new();
        let mut parts = vec![(1, 0, leaves)];
        while let Some((at, first, width)) = parts.pop().filter(|_| found.len() < most) {
            if first >= began || self.latest_end[at] < since {
                continue;
            }
            if width == 1 {
                found.push(self.spans[first].transaction);
                continue;
            }
            let half = width / 2;
            parts.push((2 * at + 1, first + half, half));
            parts.push((2 * at, first, half));
        }
        // In the order of the history, the initial state first.
        found.sort_unstable_by_key(|writer| writer.wrapping_add(1));
        found
    }

    /// Of those that began at `until` or before the one that began last, if it is not this.
    fn latest(&self, until: Time, but: u32) -> Option<u32> {
        let began = self.spans.partition_point(|span| span.start <= until);
        self.spans[..began].iter().rev().map(|span| span.transaction).find(|writer| *writer != but)
    }
}

#[cfg(test)]
mod tests;
