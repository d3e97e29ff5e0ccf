//! How long the entries of each other datacenter took from their stamp there until they were visible here.
//!
//! The two ends are read from two clocks: what these differ by is part of every figure.

use crate::statistics::VISIBLE_AFTER;
use ensue_types::{DatacenterId, LogicalTime, Now};
use std::collections::BTreeMap;

/// Entries by the least power of two that has as many milliseconds as they took; the last one has the rest.
const POWERS: usize = 18;

#[derive(Clone, Debug, Default)]
struct Counts {
    by_power: [u64; POWERS],
    sum_ms: u64,
    /// What the latest entry took, if something of its stream was known and not visible all the time since.
    latest_ms: u64,
}

/// What is counted of every other datacenter.
#[derive(Clone, Default)]
pub(in crate::partition) struct Delays {
    counts: BTreeMap<DatacenterId, Counts>,
}

impl Delays {
    /// An entry with this stamp is visible now.
    pub(in crate::partition) fn note(&mut self, now: Now, origin: DatacenterId, stamp: LogicalTime) {
        let took_ms = now.wall_ms.saturating_sub(stamp.ms());
        let counts = self.counts.entry(origin).or_default();
        let power = (u64::BITS - took_ms.saturating_sub(1).leading_zeros()) as usize;
        counts.by_power[power.min(POWERS - 1)] += 1;
        counts.sum_ms = counts.sum_ms.saturating_add(took_ms);
        counts.latest_ms = took_ms;
    }

    /// Everything that was known of a stream is visible, and something more is known now.
    pub(in crate::partition) fn begin_again(&mut self, origin: DatacenterId) {
        if let Some(counts) = self.counts.get_mut(&origin) {
            counts.latest_ms = 0;
        }
    }

    /// What the latest entry took that became visible while others were known and not visible.
    pub(in crate::partition) fn latest_ms(&self, origin: DatacenterId) -> u64 {
        self.counts.get(&origin).map_or(0, |counts| counts.latest_ms)
    }

    /// The metrics, by name; all can be added up over partitions.
    pub(in crate::partition) fn add_to(
        &self,
        name_of: impl Fn(DatacenterId) -> String,
        add: &mut impl FnMut(&str, u64),
    ) {
        for (origin, counts) in &self.counts {
            let name = name_of(*origin);
            add(&format!("visible_{name}_entries"), counts.by_power.iter().sum());
            add(&format!("visible_{name}_delay_ms"), counts.sum_ms);
            for (power, count) in counts.by_power.iter().enumerate().filter(|(_, count)| **count > 0) {
                add(&format!("{VISIBLE_AFTER}{name}:{power}"), *count);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_counted_by_the_time_that_it_took_and_one_of_the_future_took_none() {
        let mut delays = Delays::default();
        let now = Now { wall_ms: 10_000, monotonic_us: 0 };
        for stamped_ms in [10_000, 9_999, 9_960, 9_936, 9_935, 11_000] {
            delays.note(now, DatacenterId(1), LogicalTime::from_ms(stamped_ms));
        }
        assert_eq!(delays.latest_ms(DatacenterId(1)), 0);
        delays.note(now, DatacenterId(2), LogicalTime::from_ms(9_000));
        assert_eq!(delays.latest_ms(DatacenterId(2)), 1_000);
        delays.begin_again(DatacenterId(2));
        assert_eq!(delays.latest_ms(DatacenterId(2)), 0);
        let mut metrics = Vec::new();
        delays.add_to(|datacenter| format!("dc{}", datacenter.0), &mut |name: &str, value| {
            metrics.push(format!("{name}={value}"));
        });
        metrics.retain(|line| line.contains("dc1"));
        let expected = [
            "visible_dc1_entries=6",
            "visible_dc1_delay_ms=170",
            "visible_after_dc1:0=3",
            "visible_after_dc1:6=2",
            "visible_after_dc1:7=1",
        ];
        assert_eq!(metrics, expected);
    }
}
