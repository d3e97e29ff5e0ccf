//! How late the streams are, for metrics alone: the own one at the other datacenters, and theirs here.
//!
//! Arrives: how far each stream has come, and what became visible. Promises: what it keeps is bounded, and nothing
//! depends on it. An age counts from when this partition learned of an entry: on the way to it, it was no older.

use super::Replication;
use super::ages::Ages;
use super::delays::Delays;
use crate::partition::cx::Cx;
use ensue_types::{DatacenterId, LogicalTime, Now, Position};
use std::collections::BTreeMap;
use std::fmt;

/// How late the streams are.
#[derive(Clone, Default)]
pub(in crate::partition) struct Lateness {
    written: Ages,
    heard: BTreeMap<DatacenterId, Ages>,
    visible: Delays,
    /// By how many milliseconds the time in a datacenter's last message was ahead of this machine's clock.
    ahead_ms: BTreeMap<DatacenterId, i64>,
}

/// Nothing that happens later depends on it, so two nodes that differ in it alone are in the same state.
impl fmt::Debug for Lateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lateness")
    }
}

impl Lateness {
    /// A message of another datacenter came, with this time.
    pub(in crate::partition) fn note_time(&mut self, now: Now, origin: DatacenterId, time: LogicalTime) {
        if time > LogicalTime::ZERO {
            self.ahead_ms.insert(origin, time.ms() as i64 - now.wall_ms as i64);
        }
    }

    /// An entry of another datacenter with this stamp is visible now.
    pub(in crate::partition) fn note_visible(&mut self, now: Now, origin: DatacenterId, stamp: LogicalTime) {
        self.visible.note(now, origin, stamp);
    }
}

impl Replication {
    /// How long ago the first own entry after this place was written; 0 if there is none.
    pub(in crate::partition) fn lag_ms(&self, cx: &Cx, after: Position) -> u64 {
        self.lateness.written.age_ms(cx.now, after)
    }

    /// The own stream may have come further.
    pub(in crate::partition) fn note_written(&mut self, cx: &Cx) {
        if let Some(synced) = self.senders.values().map(|sender| sender.synced()).min() {
            self.lateness.written.come(cx.now, cx.position, synced);
        }
    }

    /// Another datacenter's stream may have come further, or is known to have.
    pub(in crate::partition) fn note_arrival(&mut self, now: Now, origin: DatacenterId) {
        let (known, applied) = (self.known_end(origin), self.applied_through(origin));
        let Lateness { heard, visible, .. } = &mut self.lateness;
        let ages = heard.entry(origin).or_default();
        if known < ages.latest() {
            ages.end_at(known);
        }
        if ages.latest() <= applied {
            visible.begin_again(origin);
        }
        ages.come(now, known, applied);
    }

    /// Up to where another datacenter's stream is known to go.
    fn known_end(&self, origin: DatacenterId) -> Position {
        let end = self.senders.get(&origin).map(|sender| sender.end()).unwrap_or_default();
        self.received(origin).max(end)
    }

    /// What of another datacenter's stream is known of and not visible yet: so many entries, and how late what is
    /// visible is. While it catches up, what it shows is as old as the latest entry was when it became visible.
    fn behind(&self, now: Now, origin: DatacenterId) -> (u64, u64) {
        let applied = self.applied_through(origin);
        let entries = applied.entries_to(self.known_end(origin));
        let age_ms = self.lateness.heard.get(&origin).map_or(0, |ages| ages.age_ms(now, applied));
        let late_ms = age_ms.max(self.lateness.visible.latest_ms(origin));
        if entries == 0 { (0, 0) } else { (entries, late_ms) }
    }

    /// The metrics of another datacenter's stream, of which only those that end in `_max` cannot be added up.
    pub(in crate::partition) fn add_lateness_of(
        &self,
        cx: &Cx,
        origin: DatacenterId,
        add: &mut impl FnMut(&str, u64),
    ) {
        let name = cx.name_of(origin);
        let (entries, age_ms) = self.behind(cx.now, origin);
        add(&format!("behind_{name}_entries"), entries);
        add(&format!("behind_{name}_ms_max"), age_ms);
        if let Some(&ahead_ms) = self.lateness.ahead_ms.get(&origin) {
            // Its bits are those of a signed figure, as metrics are.
            add(&format!("ahead_{name}_ms_max"), ahead_ms as u64);
        }
    }

    /// How long entries took until they were visible here.
    pub(in crate::partition) fn add_delays(&self, cx: &Cx, add: &mut impl FnMut(&str, u64)) {
        self.lateness.visible.add_to(|origin| cx.name_of(origin), add);
    }
}
