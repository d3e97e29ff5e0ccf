//! Tombstones and expired rows, removed when nothing older can arrive any more (trap 14).
//!
//! A round takes all candidates noted so far and remembers the positions applied here then. When a datacenter reports that
//! it has durably applied all of that, at a time above the candidates, every later write of it stamps above them; when this partition has
//! then applied that datacenter's stream up to where it stood at the report, nothing older is on its way. After all
//! datacenters, the round's candidates go.

use super::Partition;
use crate::trace::Trace;
use ensue_store::keyspace::{Collected, Spent};
use ensue_types::{DatacenterId, Incarnation, KeyspaceId, LogicalTime, Position, Rule};
use std::collections::BTreeMap;

/// The candidates and the round under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Collector {
    candidates: Vec<(KeyspaceId, Spent)>,
    /// Deadlines still to come, by their milliseconds.
    deadlines: BTreeMap<u64, Vec<(KeyspaceId, Spent)>>,
    round: Option<Round>,
    next_us: u64,
}

#[derive(Clone, Debug)]
struct Round {
    candidates: Vec<(KeyspaceId, Spent)>,
    /// What was applied here of every stream when the round began.
    applied: Vec<(DatacenterId, Incarnation, Position)>,
    /// No candidate's deadline or stamp is above this.
    latest: LogicalTime,
    /// For each datacenter that has applied all that, the end of its own stream when it said so.
    reported: BTreeMap<DatacenterId, Position>,
}

impl Partition {
    /// Looks for what may go, at its interval.
    pub(super) fn collect(&mut self) {
        if self.now.monotonic_us < self.collector.next_us {
            return;
        }
        self.collector.next_us = self.now.monotonic_us + 1_000 * self.config.tuning.collect_interval_ms;
        self.take_candidates();
        if self.is_checkpointing() {
            // A tombstone that the checkpoint has not reached must be in it: the log merged on top may hold older writes.
            return;
        }
        if self.collector.round.is_none() && !self.collector.candidates.is_empty() {
            self.begin_round();
        }
        self.advance_round();
    }

    fn take_candidates(&mut self) {
        for number in 0..self.rows.len() {
            let keyspace = KeyspaceId(number as u8);
            for spent in self.rows[number].take_spent() {
                match spent.deadline_ms {
                    0 => self.collector.candidates.push((keyspace, spent)),
                    deadline => self.collector.deadlines.entry(deadline).or_default().push((keyspace, spent)),
                }
            }
        }
        let now_ms = self.promise().ms();
        while let Some(entry) = self.collector.deadlines.first_entry() {
            if *entry.key() > now_ms {
                break;
            }
            self.collector.candidates.extend(entry.remove());
        }
    }

    fn begin_round(&mut self) {
        let candidates = std::mem::take(&mut self.collector.candidates);
        let ends = |spent: &Spent| spent.stamp.time.max(LogicalTime::from_ms(spent.deadline_ms).next());
        let latest = candidates.iter().map(|(_, spent)| ends(spent)).max().unwrap_or_default();
        let applied = self.applied.sets().map(|(d, set)| (d, set.highest().incarnation(), set.highest()));
        let applied = applied.filter(|(_, _, position)| *position > Position(0)).collect();
        self.collector.round = Some(Round { candidates, applied, latest, reported: BTreeMap::new() });
    }

    fn advance_round(&mut self) {
        let Some(round) = &mut self.collector.round else { return };
        if self.config.rules.hold(Rule::KeepTombstones) {
            for (&datacenter, sender) in &self.senders {
                let has = |(origin, incarnation, position): &(DatacenterId, Incarnation, Position)| {
                    sender.applied(*origin) >= (*incarnation, *position)
                };
                let all = round.applied.iter().all(has) && sender.clock() > round.latest;
                if all {
                    round.reported.entry(datacenter).or_insert(sender.end());
                }
            }
            let caught_up = |(&datacenter, sender): (&DatacenterId, _)| {
                let _: &crate::stream::sender::Sender = sender;
                let reported = round.reported.get(&datacenter);
                let watermark = self.applied.set(datacenter).map(|set| set.watermark).unwrap_or_default();
                reported.is_some_and(|end| watermark >= *end)
            };
            let all = self.senders.iter().all(caught_up);
            if !all && self.config.rules.hold(Rule::CatchUpBeforeCollecting) {
                return;
            }
        }
        let round = self.collector.round.take().expect("looked at above");
        self.finish_round(round);
    }

    fn finish_round(&mut self, round: Round) {
        let mut count = 0;
        for (keyspace, spent) in round.candidates {
            if !self.order.is_idle() && self.order.is_busy(keyspace, &spent.key) {
                self.collector.candidates.push((keyspace, spent));
                continue;
            }
            match self.rows[usize::from(keyspace.0)].collect(&spent) {
                Collected::Removed => count += 1,
                Collected::Changed => {}
                Collected::Later => self.collector.candidates.push((keyspace, spent)),
            }
        }
        if count > 0 {
            self.trace(Trace::TombstonesCollected { partition: self.id, count });
        }
    }

    /// Forgets past states whose read transactions are over.
    pub(super) fn sweep_marks(&mut self) {
        let now_ms = self.now.monotonic_us / 1_000;
        for rows in &mut self.rows {
            rows.sweep_marks(now_ms);
        }
    }
}
