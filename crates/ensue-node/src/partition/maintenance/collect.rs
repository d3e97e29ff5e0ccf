//! Tombstones, removed when nothing older can arrive any more (trap 14), and rows and fields whose deadline has passed,
//! deleted.
//!
//! A row or a field whose deadline has passed is absent at once. Then one datacenter deletes it, by a write as
//! any other: the one that wrote the deadline, or after a while any. If each just dropped the row by itself, one that
//! has not yet would take what another one writes afterwards for a part of the expired row, and so would a replay of
//! the log.
//!
//! A round takes all candidates noted so far and remembers the positions applied here then. When a datacenter reports
//! that it has durably applied all of that, at a time above the candidates, every later write of it stamps above them;
//! when this partition has then applied that datacenter's stream up to where it stood at the report, nothing older is
//! on its way. After all datacenters, the round's candidates go.
//!
//! Where a view may hide what is applied, a report counts when the views of whatever the datacenter writes from then on
//! show everything up to the candidates. A removal names what its view shows: one that hides a put would leave it
//! standing where it is kept, and not where it was forgotten.

use super::Maintenance;
use super::deadlines::Deadlines;
use crate::command::{self, events};
use crate::config::Settings;
use crate::evaluate::Evaluation;
use crate::partition::cx::Cx;
use crate::partition::keyspaces::Keyspaces;
use crate::partition::others::Others;
use crate::trace::Trace;
use ensue_protocol::Choice;
use ensue_store::cell::Write;
use ensue_store::keyspace::{Collected, Expiry, Spent};
use ensue_store::view::View;
use ensue_types::{Context, DatacenterId, Incarnation, KeyspaceId, LogicalTime, Position, Rule, Stamp};
use std::collections::{BTreeMap, VecDeque};

/// How many intervals a datacenter waits for the one that wrote a deadline before it deletes the row itself.
const PATIENCE: u64 = 30;
/// A round that takes longer than so many intervals waits for a datacenter that cannot be reached.
const LATE_AFTER: u64 = 3;
/// Deadlines within so much of each other stand in one list: a list for each millisecond would mostly hold one.
const GRAIN_MS: u64 = 256;
/// Rows deleted in one go: many that expire together must not hold up commands.
const EXPIRED_AT_ONCE: usize = 1_000;
/// At least this part of the rows whose home is elsewhere is looked at each time.
const SHARE_AT_ONCE: usize = 16;
/// Tombstones removed in one go: so must those of a large row, and what a flush hides.
pub(in crate::partition) const COLLECTED_AT_ONCE: usize = 10_000;

/// The candidates and the round under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Collector {
    candidates: Candidates,
    /// Rows and fields with deadlines, by when it is this datacenter's turn to delete them, in units of `GRAIN_MS`.
    deadlines: Deadlines,
    /// Those whose deadline has passed, and whose home is elsewhere.
    elsewhere: VecDeque<(KeyspaceId, Expiry)>,
    round: Option<Round>,
    /// Tombstones of rounds that are over: nothing older can arrive, whatever happens from now on.
    ready: VecDeque<(KeyspaceId, Spent)>,
    /// The same of flushes: what they hide goes in parts.
    swept: Vec<(KeyspaceId, Stamp)>,
    /// Rows and fields whose deadline has passed, and nothing older can arrive; of a row that is deleted in parts, the
    /// place of the next.
    due: VecDeque<(KeyspaceId, Expiry, usize)>,
    /// Rows deleted by this partition because their deadline had passed, and fields.
    pub(in crate::partition::maintenance) expired: u64,
    pub(in crate::partition::maintenance) expired_fields: u64,
    next_us: u64,
    /// As tests ask for it, deadlines are looked at only after a command has found nothing under a name.
    is_lazy: bool,
    /// How many had when they were looked at last.
    misses: u64,
}

/// How much of an expired row a turn has deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deleted {
    Whole,
    InPart,
}

/// What is to go.
#[derive(Clone, Debug, Default)]
struct Candidates {
    tombstones: Vec<(KeyspaceId, Spent)>,
    flushes: Vec<(KeyspaceId, Stamp)>,
    due: Vec<(KeyspaceId, Expiry)>,
}

#[derive(Clone, Debug)]
struct Round {
    candidates: Candidates,
    /// What was applied here of every stream when the round began.
    applied: Vec<(DatacenterId, Incarnation, Position)>,
    /// No candidate's deadline or stamp is above this.
    latest: LogicalTime,
    /// No tombstone's stamp is above this, and no flush's.
    latest_spent: LogicalTime,
    /// For each datacenter that has applied all that, the end of its own stream when it said so.
    reported: BTreeMap<DatacenterId, Position>,
    begun_us: u64,
}

impl Collector {
    /// Panics if a round could end before what it has is old. Answers at how many candidates it looked.
    pub(super) fn check_invariants(&self, own: DatacenterId) -> usize {
        let Some(round) = &self.round else { return 0 };
        let Candidates { tombstones, flushes, due } = &round.candidates;
        let spent = tombstones.iter().map(|(_, spent)| spent.stamp.time);
        let latest = spent.chain(flushes.iter().map(|(_, stamp)| stamp.time)).max().unwrap_or_default();
        assert!(latest <= round.latest_spent, "{latest:?} is in a round up to {:?}", round.latest_spent);
        assert!(round.latest_spent <= round.latest, "deadlines and tombstones end at {:?}", round.latest);
        assert!(!round.reported.contains_key(&own), "a round waits for nothing of its own datacenter");
        tombstones.len() + flushes.len() + due.len()
    }
}

impl Maintenance {
    /// Deadlines are looked at by time, or only after a command has found nothing under a name.
    pub(in crate::partition) fn adopt(&mut self, settings: &Settings<'_>) {
        self.collector.is_lazy = !settings.expires_actively;
    }

    pub(in crate::partition) fn take_over_bounds(&mut self, before: &Maintenance) {
        self.collector.is_lazy = before.collector.is_lazy;
    }

    fn take_candidates(&mut self, cx: &mut Cx, keyspaces: &mut Keyspaces) {
        for (number, rows) in keyspaces.each_mut().enumerate() {
            let keyspace = KeyspaceId(number as u8);
            let tombstones = rows.take_spent().into_iter().map(|spent| (keyspace, spent));
            self.collector.candidates.tombstones.extend(tombstones);
            self.collector.candidates.flushes.extend(rows.take_flushed().map(|stamp| (keyspace, stamp)));
            for expiry in rows.take_expiries() {
                let is_ours =
                    expiry.stamp.datacenter == cx.datacenter || cx.is_home_elsewhere(keyspace, &expiry.key);
                let wait = if is_ours { 0 } else { PATIENCE * cx.config.tuning.collect_interval_ms };
                let turn = expiry.deadline_ms.saturating_add(wait);
                let turn = turn.div_ceil(GRAIN_MS);
                self.collector.deadlines.push(turn, keyspace, expiry);
            }
        }
        let misses = std::mem::replace(&mut self.collector.misses, cx.statistics.misses());
        if self.collector.is_lazy && misses == self.collector.misses {
            return;
        }
        let now_ms = cx.promise().ms();
        while let Some(due) = self.collector.deadlines.take_due(now_ms / GRAIN_MS) {
            for (keyspace, expiry) in &due {
                keyspaces.keyspace(*keyspace).note_expired(expiry);
            }
            let is_elsewhere =
                |(keyspace, expiry): &(KeyspaceId, Expiry)| cx.is_home_elsewhere(*keyspace, &expiry.key);
            let (elsewhere, here): (Vec<_>, Vec<_>) = due.into_iter().partition(is_elsewhere);
            self.collector.elsewhere.extend(elsewhere);
            self.collector.candidates.due.extend(here);
        }
        keyspaces.note_reported(now_ms / GRAIN_MS * GRAIN_MS);
        // Readers here see its end by the clock, and its home alone deletes it: this one, if it has moved here. While a
        // home is away there can be many, so some are looked at each time.
        let looked_at = take_some(&mut self.collector.elsewhere);
        let (elsewhere, here): (Vec<_>, Vec<_>) =
            looked_at.partition(|(keyspace, expiry)| cx.is_home_elsewhere(*keyspace, &expiry.key));
        self.collector.candidates.due.extend(here);
        let expires =
            |(keyspace, expiry): &(KeyspaceId, Expiry)| keyspaces.keyspace(*keyspace).expires(expiry);
        self.collector.elsewhere.extend(elsewhere.into_iter().filter(expires));
    }

    fn begin_round(&mut self, begun_us: u64, others: &Others) {
        let candidates = std::mem::take(&mut self.collector.candidates);
        let ends = |expiry: &Expiry| expiry.stamp.time.max(LogicalTime::from_ms(expiry.deadline_ms).next());
        let tombstones = candidates.tombstones.iter().map(|(_, spent)| spent.stamp.time);
        let flushes = candidates.flushes.iter().map(|(_, stamp)| stamp.time);
        let latest_spent = tombstones.chain(flushes).max().unwrap_or_default();
        let latest =
            candidates.due.iter().map(|(_, expiry)| ends(expiry)).fold(latest_spent, LogicalTime::max);
        let applied =
            others.replication.applied.sets().map(|(d, set)| (d, set.highest().incarnation(), set.highest()));
        let applied = applied.filter(|(_, _, position)| *position > Position(0)).collect();
        self.collector.round =
            Some(Round { candidates, applied, latest, latest_spent, reported: BTreeMap::new(), begun_us });
    }

    /// Writes tombstones over a row whose deadline has passed, as the next command that writes to it would; over one
    /// of many columns some a turn.
    fn delete_expired(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        keyspaces: &mut Keyspaces,
        keyspace: KeyspaceId,
        (expiry, place): (&Expiry, usize),
    ) -> Deleted {
        let at = cx.tick();
        let (stamp, operation) = (cx.stamp(at), cx.next_operation());
        let write = Write { stamp, at, operation, dependencies: None };
        let mut writer = cx.writer(keyspace, write, &Choice::Newest);
        writer.remove_rows(others.replication.applied.is_in_order());
        let mut evaluation = Evaluation::writing(keyspaces.keyspace(keyspace), &mut writer, View::Newest);
        let written = evaluation.written_count();
        if let Some(name) = &expiry.field {
            // It is little, and fits.
            drop(command::clear_expired_field(&mut evaluation, &expiry.key, name));
            events::name_expired(&mut evaluation, written.unwrap_or(usize::MAX));
            let observed = evaluation.observed;
            let effects = (writer.changes, observed);
            keyspaces.log_write(cx, others, &mut Context::default(), keyspace, stamp, effects);
            self.collector.expired_fields += 1;
            return Deleted::Whole;
        }
        let is_in_parts =
            evaluation.is_cleared_in_parts(&expiry.key) || evaluation.begin_write(&expiry.key).is_err();
        let next = match is_in_parts {
            true => evaluation.clear_some_expired(&expiry.key, place),
            false => None,
        };
        // It was told of when its time was over.
        evaluation.take_written(written.unwrap_or(usize::MAX));
        let observed = evaluation.observed;
        keyspaces.log_write(cx, others, &mut Context::default(), keyspace, stamp, (writer.changes, observed));
        if is_in_parts {
            // What is left of it comes next.
            self.collector.due.push_back((keyspace, expiry.clone(), next.unwrap_or_default()));
            return Deleted::InPart;
        }
        self.collector.expired += 1;
        Deleted::Whole
    }

    /// Looks for what may go, at its interval.
    pub(crate) fn collect(&mut self, cx: &mut Cx, others: &mut Others, keyspaces: &mut Keyspaces) {
        self.delete_some_expired(cx, others, keyspaces);
        self.forget_deadlines(cx, others, keyspaces);
        // A checkpoint that is under way has to find them: see below.
        if !cx.is_checkpointing() && !others.awaits_lost_parts(cx) {
            self.collect_ready(cx, keyspaces);
        }
        if cx.now.monotonic_us < self.collector.next_us {
            return;
        }
        self.collector.next_us = cx.now.monotonic_us + 1_000 * cx.config.tuning.collect_interval_ms;
        self.take_candidates(cx, keyspaces);
        if others.awaits_lost_parts(cx) {
            // One of them may be older than a tombstone, and stands in no row yet.
            return;
        }
        if cx.is_checkpointing() {
            // A tombstone that the checkpoint has not reached must be in it: the log merged on top may hold older
            // writes. So must states.
            return;
        }
        keyspaces.collect_branches(others);
        let Candidates { tombstones, flushes, due } = &self.collector.candidates;
        let is_nothing = tombstones.is_empty() && flushes.is_empty() && due.is_empty();
        if self.collector.round.is_none() && !is_nothing {
            self.begin_round(cx.now.monotonic_us, others);
        }
        self.advance_round(cx, others, keyspaces);
    }

    /// Forgets deadlines that nothing has any more, and says what the others take, and whether memory that is short may
    /// have to be given back before a round ends that has begun long ago.
    fn forget_deadlines(&mut self, cx: &Cx, others: &Others, keyspaces: &mut Keyspaces) {
        let is_kept = |(keyspace, expiry): &(KeyspaceId, Expiry)| {
            keyspaces.rows(*keyspace).is_some_and(|rows| rows.expires(expiry))
        };
        self.collector.deadlines.forget_some(keyspaces.evicted(), is_kept);
        let wait_us = LATE_AFTER * 1_000 * cx.config.tuning.collect_interval_ms;
        let is_late = |round: &Round| cx.now.monotonic_us >= round.begun_us.saturating_add(wait_us);
        let is_late = self.collector.round.as_ref().is_some_and(is_late) && !others.awaits_lost_parts(cx);
        let Collector { candidates, round, due, .. } = &self.collector;
        let waits = || {
            !due.is_empty()
                || !candidates.due.is_empty()
                || round.as_ref().is_some_and(|round| !round.candidates.due.is_empty())
        };
        keyspaces.note_deadlines(self.collector.deadlines.bytes(), is_late && waits());
    }

    fn advance_round(&mut self, cx: &mut Cx, others: &mut Others, keyspaces: &mut Keyspaces) {
        let Some(round) = &mut self.collector.round else { return };
        if Rule::KeepTombstones.holds() {
            // What a datacenter reported before it lost its tail is said anew: parts that it had executed then, and
            // lost, come again. So is an end that it lost before anybody had received it: it may not come there again.
            let of_this_incarnation = |datacenter: &DatacenterId, end: &mut Position| {
                let sender = others.replication.sender(*datacenter);
                sender.is_some_and(|sender| {
                    sender.end().incarnation() == end.incarnation() && *end <= sender.end()
                })
            };
            if Rule::ReportsAreOfThisLife.holds() {
                round.reported.retain(of_this_incarnation);
            }
            let hides =
                others.stable_time.times.has_snapshot_vectors() && Rule::ForgetWhatEveryViewShows.holds();
            let shows = |shown: LogicalTime| !hides || shown >= round.latest_spent;
            for (datacenter, sender) in others.replication.senders() {
                if others.failover.failed.contains(datacenter) {
                    continue;
                }
                let has = |(origin, incarnation, position): &(DatacenterId, Incarnation, Position)| {
                    sender.applied(*origin) >= (*incarnation, *position)
                };
                let all = round.applied.iter().all(has) && sender.clock() > round.latest;
                if all && shows(sender.shown()) {
                    round.reported.entry(datacenter).or_insert(sender.end());
                }
            }
            let caught_up = |datacenter: DatacenterId| {
                let watermark = others.replication.applied_through(datacenter);
                if others.failover.failed.contains(datacenter) {
                    // Nothing follows what is here of it, once that is all that anybody has.
                    let end = others.replication.receiver(datacenter).map(|receiver| receiver.received());
                    return others.failover.failed.is_settled(datacenter)
                        && end.is_some_and(|end| watermark >= end);
                }
                let reported = round.reported.get(&datacenter);
                reported.is_some_and(|end| watermark >= *end)
            };
            let all = others.replication.datacenters().all(caught_up)
                && shows(others.replication.acknowledgements.shown_durably());
            if !all && Rule::CatchUpBeforeCollecting.holds() {
                return;
            }
        }
        let round = self.collector.round.take().expect("looked at above");
        self.finish_round(cx, others, keyspaces, round);
    }

    fn finish_round(&mut self, cx: &mut Cx, others: &mut Others, keyspaces: &mut Keyspaces, round: Round) {
        self.collector.ready.extend(round.candidates.tombstones);
        self.collector.swept.extend(round.candidates.flushes);
        self.collect_ready(cx, keyspaces);
        let due = round.candidates.due.into_iter().map(|(keyspace, expiry)| (keyspace, expiry, 0));
        self.collector.due.extend(due);
        self.delete_some_expired(cx, others, keyspaces);
    }

    /// Removes tombstones of rounds that are over.
    fn collect_ready(&mut self, cx: &mut Cx, keyspaces: &mut Keyspaces) {
        let mut count = 0;
        let some = self.collector.ready.len().min(COLLECTED_AT_ONCE);
        for (keyspace, spent) in self.collector.ready.drain(..some) {
            if !keyspaces.order.is_idle() && keyspaces.order.is_busy(keyspace, &spent.key) {
                self.collector.candidates.tombstones.push((keyspace, spent));
                continue;
            }
            match keyspaces.keyspace(keyspace).collect(&spent) {
                Collected::Removed => count += 1,
                Collected::Changed => {}
                Collected::Later => self.collector.candidates.tombstones.push((keyspace, spent)),
            }
        }
        if count > 0 {
            cx.trace(Trace::TombstonesCollected { partition: cx.id, count });
        }
        let sweep = |&(keyspace, flush): &_| keyspaces.sweep_hidden(keyspace, flush, COLLECTED_AT_ONCE);
        self.collector.swept.retain(sweep);
    }

    fn delete_some_expired(&mut self, cx: &mut Cx, others: &mut Others, keyspaces: &mut Keyspaces) {
        let count = self.collector.due.len().min(EXPIRED_AT_ONCE);
        for _ in 0..count {
            let Some((keyspace, expiry, place)) = self.collector.due.pop_front() else { return };
            if !keyspaces.keyspace(keyspace).expires(&expiry) {
                continue;
            }
            if cx.is_home_elsewhere(keyspace, &expiry.key) {
                self.collector.elsewhere.push_back((keyspace, expiry));
                continue;
            }
            let busy = !keyspaces.order.is_idle() && keyspaces.order.is_busy(keyspace, &expiry.key);
            if busy || others.is_catching_up() || keyspaces.write_refusal(cx, others, false).is_some() {
                self.collector.due.push_back((keyspace, expiry, place));
                continue;
            }
            if self.delete_expired(cx, others, keyspaces, keyspace, (&expiry, place)) == Deleted::InPart {
                return;
            }
        }
    }
}

/// The first of what waits: so many that what ends at its home leaves here as fast as it comes.
fn take_some<T>(waiting: &mut VecDeque<T>) -> impl Iterator<Item = T> + use<T> {
    let count = EXPIRED_AT_ONCE.max(waiting.len() / SHARE_AT_ONCE).min(waiting.len());
    waiting.drain(..count).collect::<Vec<T>>().into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_waits_for_a_home_that_is_away_some_is_looked_at_each_time() {
        for (count, expected) in [(0, 0), (7, 7), (1_500, 1_000), (32_000, 2_000)] {
            let mut waiting: VecDeque<usize> = (0..count).collect();
            assert!(take_some(&mut waiting).eq(0..expected));
            assert!(waiting.into_iter().eq(expected..count));
        }
    }
}
