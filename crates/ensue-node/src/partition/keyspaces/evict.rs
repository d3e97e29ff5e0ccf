//! Eviction: rows that are deleted because memory is short, as `maxmemory-policy` says.
//!
//! A row is evicted by a delete of this datacenter, which is logged and replicated as that of any client is: it removes
//! what was seen here, and loses against every concurrent write. Which row it is comes from a sample, as in Redis. A
//! row that a transaction writes is passed over, and so is one with a home elsewhere: only its home evicts it.
//!
//! What is evicted takes some memory until every datacenter has had it, a small row more than before. So a command that
//! evicts reckons with what its rows took, and what is left of rows, whoever deleted them, does not count up to half of
//! the bound. Beyond that only rows are evicted whose eviction gives memory back at once, and writes are refused when
//! the rest passes the bound by an eighth: a link that is cut empties no cache. Rows are evicted by commands that make
//! data grow, and when the bound is set below what rows take.
//!
//! A row whose deadline has passed, or the deadlines of all its fields, goes before all others. It is deleted by itself
//! when every datacenter has been heard of (`maintenance::collect`), which may take long where one cannot be reached.
//! An eviction does not wait for that: if the deadline was extended elsewhere in time, and nobody knows of it here, the
//! row is gone all the same, as one is that was read there and is evicted here. Where the policy is to evict nothing,
//! such rows alone are evicted, those that give memory back at once, and only while what has expired is not deleted
//! in time.

use super::Keyspaces;
use super::accesses::Policy;
use crate::command::{Fingerprint, events};
use crate::evaluate::Evaluation;
use crate::partition::cx::Cx;
use crate::partition::others::Others;
use bytes::Bytes;
use ensue_protocol::Choice;
use ensue_store::cell::Write;
use ensue_store::compact::RowRef;
use ensue_store::keyspace::Keyspace;
use ensue_store::view::View;
use ensue_types::{Context, KeyspaceId, LogicalTime};
use std::num::NonZeroUsize;

/// Rows that one command may have evicted.
const EVICTED_MAX: usize = 16;
/// Rows that are looked at for each that is evicted, and draws until so many are found.
const SAMPLES: usize = 5;
const DRAWS: u64 = 40;
/// Draws until one is found that has expired, where there are some.
const EXPIRED_DRAWS: u64 = 160;
/// About what is left of a small row that was evicted, where no versions are kept.
const LEFT_BYTES: u64 = 512;

/// Which rows are drawn: all, those with a deadline, or of these those whose deadline has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    All,
    Dated,
    Expired,
}

/// A row that may be evicted.
struct Victim {
    keyspace: KeyspaceId,
    key: Bytes,
    /// It has expired: its deadline, or 0 if its fields have by themselves.
    expired_ms: Option<u64>,
}

impl Keyspaces {
    /// Evicts rows until those that are gone took what is beyond the bound, or enough were evicted for one command.
    pub(in crate::partition) fn make_room(&mut self, cx: &mut Cx, others: &mut Others) {
        let mut excess = self.bytes_above();
        let evicts = self.accesses.policy().evicts();
        if excess == 0 || !evicts && !self.expires_late {
            return;
        }
        for _ in 0..EVICTED_MAX {
            let Some(victim) = self.victim(cx) else { return };
            let bytes = self.row_bytes(victim.keyspace, &victim.key);
            let gives_back = bytes > LEFT_BYTES && !self.keyspace(victim.keyspace).keeps_versions();
            if !gives_back && (!evicts || self.dead_bytes() > self.dead_bytes_max()) {
                return;
            }
            self.evict(cx, others, &victim);
            excess = excess.saturating_sub(bytes);
            if excess == 0 {
                return;
            }
        }
    }

    /// What rows, and columns of rows, that show nothing take until they are forgotten.
    pub(super) fn dead_bytes(&self) -> u64 {
        self.each().map(|rows| rows.shown_rows().dead_bytes).sum()
    }

    /// As much of that is not counted.
    pub(super) fn dead_bytes_max(&self) -> u64 {
        self.memory_max / 2
    }

    /// About what a row takes.
    fn row_bytes(&mut self, keyspace: KeyspaceId, key: &Bytes) -> u64 {
        self.keyspace(keyspace).counted_bytes(key, NonZeroUsize::new(SAMPLES)).unwrap_or(0).max(1)
    }

    /// Evicts some rows, turn by turn, after the bound was set below what rows took: until those that are gone took
    /// that much. Says whether any is gone.
    pub(in crate::partition) fn shrink(&mut self, cx: &mut Cx, others: &mut Others) -> bool {
        self.waiting_bytes = others.replication.inbound.waiting_bytes();
        let may = self.excess > 0 && self.accesses.policy().evicts();
        if !may || others.is_catching_up() || self.write_refusal(cx, others, false).is_some() {
            return false;
        }
        let before = self.evicted + self.evicted_expired;
        for _ in 0..EVICTED_MAX {
            let Some(victim) = self.victim(cx).filter(|_| self.excess > 0) else {
                // Either they are gone, or there is none that may go.
                self.excess = 0;
                break;
            };
            let bytes = self.row_bytes(victim.keyspace, &victim.key);
            self.evict(cx, others, &victim);
            self.excess = self.excess.saturating_sub(bytes);
        }
        self.evicted + self.evicted_expired > before
    }

    /// What deadlines take beside their rows, and whether something has expired that is not deleted in time.
    pub(in crate::partition) fn note_deadlines(&mut self, bytes: u64, expires_late: bool) {
        (self.deadline_bytes, self.expires_late) = (bytes, expires_late);
    }

    /// Who listens for events has been told of rows whose deadline is not after this.
    pub(in crate::partition) fn note_reported(&mut self, deadline_ms: u64) {
        self.reported_ms = deadline_ms;
    }

    /// Rows that were evicted when their deadline had passed.
    pub(in crate::partition) fn evicted_expired(&self) -> u64 {
        self.evicted_expired
    }

    /// Of some rows the one that the policy has go first.
    fn victim(&mut self, cx: &mut Cx) -> Option<Victim> {
        let at = cx.tick();
        // What expires is deleted by itself, mostly soon: to look for it among many that live would take long.
        let expired = if self.expires_late { self.drawn(cx, at, Of::Expired) } else { None };
        match self.accesses.policy() {
            _ if expired.is_some() => expired,
            Policy::None => None,
            policy if policy.is_of_volatile() => self.drawn(cx, at, Of::Dated),
            _ => self.drawn(cx, at, Of::All),
        }
    }

    fn drawn(&mut self, cx: &Cx, at: LogicalTime, of: Of) -> Option<Victim> {
        let of_volatile = of != Of::All;
        let (wanted, draws) = if of == Of::Expired { (1, EXPIRED_DRAWS) } else { (SAMPLES, DRAWS) };
        let count = |rows: &Keyspace| if of_volatile { rows.dated_count() } else { rows.rows_count() };
        let counts: Vec<usize> = self.keyspaces.iter().map(count).collect();
        let all: usize = counts.iter().sum();
        let mut samples = Vec::new();
        for draw in 0..draws {
            let drawn = Fingerprint::new().word(at.0).word(draw).finish();
            let mut place = (drawn % all.max(1) as u64) as usize;
            for (number, count) in counts.iter().enumerate() {
                if place < *count {
                    let keyspace = KeyspaceId(number as u8);
                    samples.extend(self.candidate(cx, (keyspace, place), (at, drawn), of));
                    break;
                }
                place -= count;
            }
            if samples.len() == wanted {
                break;
            }
        }
        samples
            .into_iter()
            .min_by_key(|(rank, victim)| (victim.expired_ms.is_none(), *rank))
            .map(|(_, first)| first)
    }

    /// A row by its place, if it may be evicted, with its rank: the lowest goes first.
    fn candidate(
        &mut self,
        cx: &Cx,
        (keyspace, place): (KeyspaceId, usize),
        (at, drawn): (LogicalTime, u64),
        of: Of,
    ) -> Option<(u64, Victim)> {
        let policy = self.accesses.policy();
        let of_volatile = of != Of::All;
        let rows = &mut self.keyspaces[usize::from(keyspace.0)];
        let row = if of_volatile { rows.nth_dated(place)? } else { rows.nth_row(place)? };
        let deadline = row.deadline_at(View::Newest).ok().flatten();
        if of_volatile && deadline.is_none() {
            rows.note_undated(place);
            return None;
        }
        let is_expired = crate::evaluate::shown_kind(row, at, View::Newest).is_none();
        // What shows nothing for another reason has been deleted.
        if is_expired && matches!(row, RowRef::Whole(row) if row.kind().is_none())
            || !is_expired && of == Of::Expired
        {
            return None;
        }
        let expired_ms = is_expired.then_some(deadline.unwrap_or(0));
        let key = Bytes::copy_from_slice(row.key());
        if self.order.is_busy(keyspace, &key) || cx.is_home_elsewhere(keyspace, &key) {
            return None;
        }
        let rank = match policy {
            Policy::VolatileTtl => deadline.unwrap_or(u64::MAX),
            Policy::AllRandom | Policy::VolatileRandom | Policy::None => drawn,
            _ => self.accesses.rank(keyspace, &key, cx.now.monotonic_us),
        };
        Some((rank, Victim { keyspace, key, expired_ms }))
    }

    fn evict(&mut self, cx: &mut Cx, others: &mut Others, victim: &Victim) {
        let Victim { keyspace, ref key, expired_ms } = *victim;
        let at = cx.tick();
        let (stamp, operation) = (cx.stamp(at), cx.next_operation());
        let write = Write { stamp, at, operation, dependencies: None };
        let mut writer = cx.writer(keyspace, write, &Choice::Newest);
        writer.remove_rows(others.replication.applied.is_in_order());
        let reported_ms = self.reported_ms;
        let mut evaluation = Evaluation::writing(self.keyspace(keyspace), &mut writer, View::Newest);
        let written = evaluation.written_count();
        // Too large to be deleted at once: another one goes.
        let is_gone = evaluation.clear_row(key, |_| true).is_ok();
        if let Some(before) = written {
            match expired_ms {
                None => events::name_first(&mut evaluation, before, "evicted"),
                Some(ms) if ms > reported_ms => events::name_first(&mut evaluation, before, "expired"),
                Some(_) => drop(evaluation.take_written(before)),
            }
        }
        let observed = evaluation.observed;
        self.log_write(cx, others, &mut Context::default(), keyspace, stamp, (writer.changes, observed));
        match expired_ms {
            None => self.evicted += u64::from(is_gone),
            Some(_) => self.evicted_expired += u64::from(is_gone),
        }
    }
}
