//! `LATENCY`: when the commands of this core took longer than `latency-monitor-threshold`, by event.
//!
//! An event is a name, as in Redis; here it is `command` alone, since the time of a turn is shared evenly by the
//! commands that were executed in it. Of a second the longest counts, and of an event so many seconds are kept. Nothing
//! here reads a clock.

use ensue_types::{Now, Reply};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// See the module.
#[derive(Clone, Default)]
pub(super) struct Latency {
    events: BTreeMap<&'static str, Event>,
}

#[derive(Clone, Default)]
struct Event {
    /// Seconds of the wall clock, and the longest of each in milliseconds; the oldest first.
    spikes: VecDeque<(u64, u64)>,
    max_ms: u64,
}

/// Nothing that happens later depends on it, so two nodes that differ in it alone are in the same state.
impl fmt::Debug for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Latency")
    }
}

impl Latency {
    /// A command took so long. A threshold of 0 notes nothing.
    pub(super) fn on_command(&mut self, now: Now, took_us: u64, threshold_ms: i64) {
        let took_ms = took_us / 1_000;
        if threshold_ms <= 0 || took_ms < threshold_ms.unsigned_abs() {
            return;
        }
        let Event { spikes, max_ms } = self.events.entry(COMMAND).or_default();
        let second = now.wall_ms / 1_000;
        *max_ms = (*max_ms).max(took_ms);
        match spikes.back_mut() {
            Some((last, longest_ms)) if *last == second => *longest_ms = (*longest_ms).max(took_ms),
            _ => spikes.push_back((second, took_ms)),
        }
        if spikes.len() > SPIKES_MAX {
            spikes.pop_front();
        }
    }

    /// Forgets events of these names, or all; answers the names of those that there were.
    pub(super) fn reset(&mut self, names: &[String]) -> Reply {
        let is_meant = |event: &str| names.is_empty() || names.iter().any(|name| name == event);
        let forgotten: Vec<&'static str> =
            self.events.keys().copied().filter(|name| is_meant(name)).collect();
        self.events.retain(|name, _| !is_meant(name));
        Reply::Array(forgotten.into_iter().map(Reply::bulk).collect())
    }

    /// All events: the name, the longest ever, and each second with its longest.
    pub(super) fn replies(&self) -> Reply {
        let reply = |(name, Event { spikes, max_ms }): (&&'static str, &Event)| {
            let spike = |(second, ms): &(u64, u64)| {
                Reply::Array(vec![Reply::Integer(*second as i64), Reply::Integer(*ms as i64)])
            };
            let spikes = Reply::Array(spikes.iter().map(spike).collect());
            Reply::Array(vec![Reply::bulk(*name), Reply::Integer(*max_ms as i64), spikes])
        };
        Reply::Array(self.events.iter().map(reply).collect())
    }
}

const COMMAND: &str = "command";
/// As many as Redis keeps.
pub(super) const SPIKES_MAX: usize = 160;
