//! Entries that are read from the log, merged once more.

use super::Keyspaces;
use crate::partition::cx::Cx;
use crate::partition::journal::Needed;
use crate::partition::journal::open::Open;
use crate::partition::others::Others;
use ensue_store::cell::Write;
use ensue_store::entry::{Change, Entry};
use ensue_types::{LogicalTime, OperationId, Position, Rule};

impl Keyspaces {
    /// States of before are not known: nothing is read at a time before this one.
    pub(crate) fn forget_past(&mut self, cx: &mut Cx) {
        let since = cx.clock.read(cx.now);
        for rows in &mut self.keyspaces {
            rows.forget_past(since);
        }
    }

    pub(in crate::partition) fn replay_own(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        open: &Open,
        entry: Entry,
    ) {
        if entry.position <= open.own_floor && Rule::CheckpointedIsNotReplayed.holds() {
            return;
        }
        cx.position = cx.position.max(entry.position);
        cx.clock.observe(entry.stamp.time);
        self.merge_own(cx, others, entry);
    }

    /// Merges an entry of the own stream that is read from the log, or that came back from another datacenter.
    pub(in crate::partition) fn merge_own(&mut self, cx: &Cx, others: &mut Others, entry: Entry) {
        let own = OperationId {
            datacenter: cx.datacenter,
            incarnation: entry.position.incarnation(),
            partition: cx.id,
            position: entry.position,
        };
        if Rule::RememberStable.holds() {
            let proven = cx.protocol(entry.keyspace()).proves_stable(own, entry.stamp, &entry.dependencies);
            others.stable_time.times.join_stable(&proven);
        }
        self.replay_change(cx, others, entry, own, None);
    }

    fn replay_change(
        &mut self,
        cx: &Cx,
        others: &mut Others,
        entry: Entry,
        operation: OperationId,
        at: Option<LogicalTime>,
    ) {
        let at = at.unwrap_or(entry.stamp.time);
        if others.failover.discarded.discards(cx, operation, &entry) {
            return;
        }
        match entry.change {
            Change::Effects { keyspace, transaction, effects } => {
                let operation = transaction.unwrap_or(operation);
                let dependencies = self.keyspace(keyspace).carried(&entry.dependencies);
                let write = Write { stamp: entry.stamp, at, operation, dependencies };
                self.apply_effects(keyspace, &effects, &entry.previous, &write);
            }
            Change::Flush { keyspace, effects } => {
                let dependencies = self.keyspace(keyspace).carried(&entry.dependencies);
                let write = Write { stamp: entry.stamp, at, operation, dependencies };
                self.apply_flush(keyspace, &effects, &write);
            }
            Change::Lost { after } => {
                others.replication.applied.lose(
                    operation.datacenter,
                    after,
                    Position::before(operation.incarnation),
                );
                self.branching.replay_lost_branches(operation.datacenter, operation.incarnation);
            }
            Change::Branch { keyspace, note } => {
                self.branching.replay_on_branch(operation.datacenter, keyspace, entry.position, &note);
            }
            Change::Transaction { .. } => {}
        }
    }

    pub(in crate::partition) fn replay_decided(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        open: &mut Open,
        transaction: OperationId,
        (at, entry): (LogicalTime, Option<Entry>),
    ) {
        match entry {
            // A participant executed its part.
            Some(entry) if matches!(entry.change, Change::Effects { .. }) => {
                open.prepared.remove(&transaction);
                cx.journal.no_longer_needed(Needed::Prepared(transaction));
                self.replay_own(cx, others, open, entry);
            }
            // A coordinator decided.
            entry => {
                if let Some(entry) = &entry {
                    cx.position = cx.position.max(entry.position);
                    cx.clock.observe(entry.stamp.time);
                } else {
                    let place = (transaction.datacenter, transaction.position);
                    if let Some((_, announced)) = open.received.remove(&place) {
                        open.announced.insert(transaction, announced);
                    }
                    cx.journal.needed_as(Needed::Received(place.0, place.1), Needed::Begun(transaction));
                    others.replication.applied.insert(transaction.datacenter, transaction.position);
                }
                open.decided.insert(transaction, (at, entry));
            }
        }
    }

    pub(in crate::partition) fn replay_applied(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        open: &mut Open,
        operation: OperationId,
        at: LogicalTime,
    ) {
        let OperationId { datacenter: origin, position, .. } = operation;
        if Rule::RememberApplied.holds() {
            others.replication.applied.insert(origin, position);
        }
        let Some((_, entry)) = open.received.remove(&(origin, position)) else {
            return cx.journal.no_longer_needed(Needed::Received(origin, position));
        };
        if others.replication.applied.is_discarded(origin, position) {
            if let Change::Effects { transaction: Some(transaction), .. } = &entry.change {
                open.prepared.remove(transaction);
                cx.journal.no_longer_needed(Needed::Prepared(*transaction));
            }
            return cx.journal.no_longer_needed(Needed::Received(origin, position));
        }
        if let Change::Effects { transaction: Some(transaction), .. } = &entry.change {
            let executed = Needed::Executed(*transaction);
            cx.journal.needed_as(Needed::Received(origin, position), executed);
            open.executed.insert(*transaction, None);
            open.prepared.remove(transaction);
            cx.journal.no_longer_needed(Needed::Prepared(*transaction));
        }
        cx.journal.no_longer_needed(Needed::Received(origin, position));
        if matches!(entry.change, Change::Transaction { .. }) {
            open.announced.insert(operation, entry);
            return;
        }
        self.replay_change(cx, others, entry, operation, Some(at));
    }
}
