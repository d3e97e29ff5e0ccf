//! Rights to change bounded counters, given to datacenters that have few of them.
//!
//! The owner of a row looks at it some time after it has changed, whoever changed it, and gives of the rights of its
//! datacenter by a write as any other. It asks nobody: what each datacenter has spent and was given stands in the
//! row. It does not know how many rights others need; who has spent its share is given some before it is refused, if
//! the others hear of it in time. Other rows are looked at in turns, so that nothing that could be done is forgotten. A
//! datacenter that was declared dead, or is being removed, is given nothing. Of one that is removed all rights go to
//! another one, before its streams end: its rows are walked until a walk finds nothing to give, or often enough.

use super::Maintenance;
use crate::command;
use crate::evaluate::Evaluation;
use crate::partition::cx::Cx;
use crate::partition::keyspaces::Keyspaces;
use crate::partition::others::Others;
use crate::view::{Shown, view_of};
use bytes::Bytes;
use ensue_protocol::Choice;
use ensue_resp::Request;
use ensue_resp::request::Bounded;
use ensue_store::cell::Write;
use ensue_store::compact::RowRef;
use ensue_store::view::View;
use ensue_types::{Context, DatacenterId, KeyspaceId, Reply, limits};

/// This often within an interval of collection.
const TURNS: u64 = 10;
/// Rows that are looked at in one go: those that have changed, and others.
const CHANGED_AT_ONCE: usize = 1_000;
const OTHERS_AT_ONCE: usize = 50;
/// The rows of a datacenter that is removed are walked so often at most: what hides itself all that time stays.
const WALKS_MAX: u32 = 20;

/// Which rows come next.
#[derive(Clone, Debug, Default)]
pub(crate) struct Balancer {
    next_us: u64,
    /// The row of each keyspace behind which the walk over all of them goes on.
    after: Vec<Bytes>,
    /// The walk over all rows of a datacenter that is being removed.
    leaving: Leaving,
    /// How often rights were given, or what was left of a counter was removed.
    pub(in crate::partition::maintenance) given: u64,
}

/// Where that walk is, and what it has found.
#[derive(Clone, Copy, Debug, Default)]
struct Leaving {
    keyspace: u8,
    walks: u32,
    /// Something was given, or could not be.
    has_found: bool,
}

impl Maintenance {
    /// Looks at rows with counters, at its interval.
    pub(crate) fn balance(&mut self, cx: &mut Cx, others: &mut Others, keyspaces: &mut Keyspaces) {
        if cx.now.monotonic_us < self.balancer.next_us {
            return;
        }
        self.balancer.next_us = cx.now.monotonic_us + 1_000 * cx.config.tuning.collect_interval_ms / TURNS;
        if others.failover.retirement.is_begun() {
            return self.give_all_rights(cx, others, keyspaces);
        }
        self.balancer.after.resize(usize::from(limits::KEYSPACES), Bytes::new());
        for number in 0..limits::KEYSPACES {
            let keyspace = KeyspaceId(number);
            let protocol = cx.protocols.get(usize::from(number));
            let versioned = protocol.is_some_and(|protocol| protocol.needs().snapshot_vectors);
            let after = &mut self.balancer.after[usize::from(number)];
            let rows = keyspaces.keyspace(keyspace);
            let keys = rows.take_escrows(CHANGED_AT_ONCE, after, OTHERS_AT_ONCE);
            *after = rows.escrow_after(after, OTHERS_AT_ONCE);
            for key in keys {
                let busy = !keyspaces.order.is_idle() && keyspaces.order.is_busy(keyspace, &key);
                if busy || others.is_catching_up() || keyspaces.write_refusal(cx, others, false).is_some() {
                    keyspaces.keyspace(keyspace).keep_escrow(key);
                    continue;
                }
                let row = keyspaces.keyspace(keyspace).row(&key);
                let hides = versioned && matches!(row, Some(RowRef::Whole(row)) if row.unsettled() > 0);
                self.give_rights(cx, others, keyspaces, keyspace, key.clone());
                if hides {
                    // Something more may be seen of it later, when it does not change.
                    keyspaces.keyspace(keyspace).keep_escrow(key);
                }
            }
        }
    }

    /// The datacenter is being removed: goes on with the walk, keyspace by keyspace, until it has looked at many rows.
    fn give_all_rights(&mut self, cx: &mut Cx, others: &mut Others, keyspaces: &mut Keyspaces) {
        if others.failover.retirement.has_given() || others.is_catching_up() {
            return;
        }
        self.balancer.after.resize(usize::from(limits::KEYSPACES), Bytes::new());
        let mut looked_at = 0;
        while self.balancer.leaving.keyspace < limits::KEYSPACES && looked_at < CHANGED_AT_ONCE {
            looked_at += self.give_rights_of_some(cx, others, keyspaces);
        }
        let Leaving { keyspace, walks, has_found } = self.balancer.leaving;
        if keyspace < limits::KEYSPACES {
            return;
        }
        match has_found && walks < WALKS_MAX {
            true => self.balancer.leaving = Leaving { walks: walks + 1, ..Leaving::default() },
            false => others.failover.retirement.note_given(),
        }
    }

    /// The next rows of the walk; how many there were.
    fn give_rights_of_some(&mut self, cx: &mut Cx, others: &mut Others, keyspaces: &mut Keyspaces) -> usize {
        let number = self.balancer.leaving.keyspace;
        let (keyspace, given) = (KeyspaceId(number), self.balancer.given);
        let after = &mut self.balancer.after[usize::from(number)];
        let rows = keyspaces.keyspace(keyspace);
        let keys = rows.take_escrows(CHANGED_AT_ONCE, after, CHANGED_AT_ONCE);
        *after = rows.escrow_after(after, CHANGED_AT_ONCE);
        self.balancer.leaving.keyspace += u8::from(after.is_empty());
        let looked_at = keys.len();
        for key in keys {
            let busy = !keyspaces.order.is_idle() && keyspaces.order.is_busy(keyspace, &key);
            match busy || keyspaces.bound_refusal(cx, others, false).is_some() {
                true => self.balancer.leaving.has_found = true,
                false => self.give_rights(cx, others, keyspaces, keyspace, key),
            }
        }
        self.balancer.leaving.has_found |= self.balancer.given > given;
        looked_at
    }

    fn give_rights(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        keyspaces: &mut Keyspaces,
        keyspace: KeyspaceId,
        key: Bytes,
    ) {
        let retirement = &others.failover.retirement;
        let stays = |datacenter: &DatacenterId| !retirement.others().any(|other| other == *datacenter);
        let alive: Vec<DatacenterId> = others.living().filter(stays).collect();
        let home = cx.homes.home_of(keyspace, &key);
        // Of one that is removed another one is as much a home as any: it gives to the rest.
        let home = home.or(alive.first().copied().filter(|_| retirement.is_begun()));
        // Readers of this datacenter see its writes at once: one may rest on nothing but what all of them see, as the
        // first write of a session does.
        let mut context = Context::default();
        let choice = others.stable_time.times.select_version(cx, keyspace, &mut context.causes);
        if choice == Choice::Wait {
            self.balancer.leaving.has_found = true;
            return keyspaces.keyspace(keyspace).keep_escrow(key);
        }
        let protocols = cx.protocols.clone();
        let shown = Shown::of(protocols[usize::from(keyspace.0)].as_ref(), &choice);
        let at = cx.tick();
        let (stamp, operation) = (cx.stamp(at), cx.next_operation());
        let write = Write { stamp, at, operation, dependencies: None };
        let mut writer = cx.writer(keyspace, write, &choice);
        let view = view_of(&shown, View::Newest);
        let mut evaluation = Evaluation::writing(keyspaces.keyspace(keyspace), &mut writer, view);
        let request = Request::Bounded(Bounded::Balance { key: key.clone(), others: alive, home });
        let answer = command::run(&request, &mut evaluation);
        let observed = evaluation.observed;
        let changes = writer.changes;
        self.balancer.given += u64::from(!changes.effects.is_empty());
        if changes.effects.is_empty() && answer == Ok(Reply::Integer(0)) {
            keyspaces.keyspace(keyspace).forget_escrow(&key);
        }
        keyspaces.log_write(cx, others, &mut context, keyspace, stamp, (changes, observed));
    }
}
