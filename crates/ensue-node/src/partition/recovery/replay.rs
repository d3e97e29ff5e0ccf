//! What the log and the checkpoint say, record by record, back into the parts.
//!
//! What a record begins and none ends stays open; `recover` takes it up when all has been read. Replaying is
//! idempotent.

use super::recover::Reading;
use crate::partition::branching::note_of;
use crate::partition::cx::Cx;
use crate::partition::journal::Needed;
use crate::partition::keyspaces::Keyspaces;
use crate::partition::others::Others;
use crate::partition::peers::Peers;
use crate::partition::transactions::Transactions;
use ensue_protocol::Loss;
use ensue_store::cell::Write;
use ensue_store::entry::{Change, Entry};
use ensue_store::layout;
use ensue_store::log::Lsn;
use ensue_store::record::Record;
use ensue_store::recovery::RecoveredRecord;
use ensue_types::{DatacenterId, Incarnation, KeyspaceId, LogicalTime, OperationId, Part, Position, Rule};
use std::collections::BTreeMap;

/// What the log began and has not ended.
#[derive(Clone, Debug, Default)]
pub(in crate::partition) struct Open {
    /// Own entries up to here are in the checkpoint. Merging them again could bring back what a tombstone deleted that
    /// has been collected since.
    pub(in crate::partition) own_floor: Position,
    pub(in crate::partition) received: BTreeMap<(DatacenterId, Position), (Incarnation, Entry)>,
    pub(in crate::partition) begun: BTreeMap<OperationId, Begun>,
    pub(in crate::partition) decided: BTreeMap<OperationId, (LogicalTime, Option<Entry>)>,
    pub(in crate::partition) prepared: BTreeMap<OperationId, (KeyspaceId, LogicalTime, Part)>,
    /// Parts that were executed and may be asked for again, with the names of local transactions.
    pub(in crate::partition) executed: BTreeMap<OperationId, Option<OperationId>>,
    /// The entries of replicated transactions decided and not completed: the participants' names are in them.
    pub(in crate::partition) announced: BTreeMap<OperationId, Entry>,
}

#[derive(Clone, Debug)]
pub(in crate::partition) struct Begun {
    pub(in crate::partition) keyspace: KeyspaceId,
    pub(in crate::partition) context: ensue_types::Opaque,
    pub(in crate::partition) parts: Vec<Part>,
}

impl Keyspaces {
    /// States of before are not known: nothing is read at a time before this one.
    pub(crate) fn forget_past(&mut self, cx: &mut Cx) {
        let since = cx.clock.read(cx.now);
        for rows in &mut self.rows {
            rows.forget_past(since);
        }
    }
}

impl Peers {
    pub(in crate::partition) fn take_record(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        keyspaces: &mut Keyspaces,
        transactions: &mut Transactions,
        reading: &mut Reading,
        recovered: RecoveredRecord,
    ) -> Result<(), String> {
        let lsn_end = recovered.lsn_end;
        let wrong = |error: layout::LayoutError| format!("log at {lsn_end}: {error}");
        cx.journal.tail.replay(&recovered).map_err(wrong)?;
        let (batch, incarnation) = (recovered.batch, recovered.incarnation);
        cx.incarnation = cx.incarnation.max(incarnation);
        let open = &mut reading.open;
        match recovered.record {
            Record::Own { entry } => {
                let entry = layout::decode_entry(&entry).map_err(wrong)?;
                if let Change::Effects { transaction: Some(operation), .. } = entry.change {
                    // Its own record of the execution was lost, and the entry came back from another datacenter.
                    open.executed.insert(operation, None);
                    cx.journal.restore_needed(Needed::Executed(operation), batch);
                }
                keyspaces.replay_own(cx, others, open, entry);
            }
            Record::Begun { number, keyspace, context, parts } => {
                transactions.begun = transactions.begun.max(number);
                let transaction = OperationId { incarnation, ..cx.local_transaction(number) };
                open.begun.insert(transaction, Begun { keyspace, context, parts });
                cx.journal.restore_needed(Needed::Begun(transaction), batch);
            }
            Record::Prepared { transaction, keyspace, at, part } => {
                reading.clock = reading.clock.max(at);
                open.prepared.insert(transaction, (keyspace, at, part));
                cx.journal.restore_needed(Needed::Prepared(transaction), batch);
            }
            Record::Decided { transaction, at, entry } => {
                reading.clock = reading.clock.max(at);
                let entry = entry.map(|entry| layout::decode_entry(&entry)).transpose().map_err(wrong)?;
                if let Some(Change::Effects { transaction: Some(operation), .. }) =
                    entry.as_ref().map(|e| &e.change)
                {
                    open.executed.insert(*operation, Some(transaction));
                    cx.journal.restore_needed(Needed::Executed(*operation), batch);
                }
                keyspaces.replay_decided(cx, others, open, transaction, (at, entry));
            }
            Record::Completed { transaction } => {
                open.begun.remove(&transaction);
                open.decided.remove(&transaction);
                open.announced.remove(&transaction);
                cx.journal.no_longer_needed(Needed::Begun(transaction));
            }
            record => self.take_replicated(cx, others, keyspaces, reading, (record, batch, lsn_end))?,
        }
        Ok(())
    }

    /// A record of what other datacenters wrote, and of their time.
    fn take_replicated(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        keyspaces: &mut Keyspaces,
        reading: &mut Reading,
        (record, batch, lsn_end): (Record, Lsn, Lsn),
    ) -> Result<(), String> {
        match record {
            Record::Received { origin, incarnation, entry } => {
                let entry =
                    layout::decode_entry(&entry).map_err(|error| format!("log at {lsn_end}: {error}"))?;
                reading.clock = reading.clock.max(entry.stamp.time);
                self.replay_received(
                    cx,
                    others,
                    keyspaces,
                    &mut reading.open,
                    (origin, incarnation),
                    (entry, batch),
                );
            }
            Record::Applied { origin, incarnation, position, at } => {
                reading.clock = reading.clock.max(at);
                let operation = OperationId { incarnation, ..cx.name_at(origin, position) };
                keyspaces.replay_applied(cx, others, &mut reading.open, operation, at);
            }
            Record::Times { received, stable } => {
                if Rule::RememberStable.holds() {
                    others.stable_time.times.received.join(&received);
                    others.stable_time.times.stable.join(&stable);
                }
            }
            Record::Rebuilt { keyspace, rebuilt } => keyspaces.branching.replay_rebuilt(keyspace, rebuilt),
            Record::ClockBound { bound } => {
                cx.journal.bound = cx.journal.bound.max(bound);
            }
            lasting => self.take_lasting(cx, others, keyspaces, lasting)?,
        }
        Ok(())
    }

    /// What checkpoints hold as it stood in the log.
    pub(in crate::partition) fn take_lasting(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        keyspaces: &mut Keyspaces,
        record: Record,
    ) -> Result<(), String> {
        match record {
            Record::Dead { datacenter, time } => others.failover.dead.restore(datacenter, time),
            Record::Ended { datacenter, whole } => others.failover.dead.restore_end(datacenter, whole),
            Record::Lost { datacenter, whole, doubtful } => {
                keyspaces.take_loss(cx, others, Loss { datacenter, whole, doubtful });
            }
            Record::Peer { datacenter, directory, last } => {
                self.identity.restore(datacenter, directory, last);
            }
            Record::Discarded { datacenter, entry } => {
                let wrong = |error: layout::LayoutError| format!("a discarded write: {error}");
                others.restore_discarded(cx, datacenter, layout::decode_entry(&entry).map_err(wrong)?);
            }
            other => return Err(format!("checkpoint: a record that no checkpoint holds: {other:?}")),
        }
        Ok(())
    }

    fn replay_received(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        keyspaces: &mut Keyspaces,
        open: &mut Open,
        (origin, incarnation): (DatacenterId, Incarnation),
        (entry, batch): (Entry, Lsn),
    ) {
        let position = entry.position;
        self.identity.note_received(origin, entry.stamp.time);
        cx.journal.retain(origin, position, batch);
        if let Some(receiver) = others.replication.receivers.get_mut(&origin) {
            if Rule::RememberReceivedPosition.holds() {
                receiver.restore(position);
            }
        }
        if !others.replication.applied.contains(origin, position)
            || matches!(entry.change, Change::Transaction { .. })
        {
            // In the order in which commits came: they wait for their parents once more, until they are told to be
            // applied.
            if let Some((keyspace, note)) = note_of(&entry) {
                keyspaces.branching.replay_on_branch(origin, keyspace, position, &note.clone());
            }
            open.received.insert((origin, position), (incarnation, entry));
            cx.journal.restore_needed(Needed::Received(origin, position), batch);
        } else if let Change::Effects { transaction: Some(operation), .. } = entry.change {
            if others.replication.applied.is_discarded(origin, position) {
                return;
            }
            open.executed.insert(operation, None);
            cx.journal.restore_needed(Needed::Executed(operation), batch);
        }
    }
}

impl Keyspaces {
    fn replay_own(&mut self, cx: &mut Cx, others: &mut Others, open: &Open, entry: Entry) {
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
            others.stable_time.times.stable.join(&proven);
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

    fn replay_decided(
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

    fn replay_applied(
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
