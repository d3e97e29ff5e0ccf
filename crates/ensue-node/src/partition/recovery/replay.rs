//! What the log and the checkpoint say, record by record, back into the parts.
//!
//! What a record begins and none ends stays open; `recover` takes it up when all has been read. Replaying is
//! idempotent.

use super::recover::Reading;
use crate::partition::branching::note_of;
use crate::partition::failover::failed::StreamEnd;
use crate::partition::journal::Needed;
use crate::partition::journal::open::Begun;
use crate::partition::peering::Peering;
use ensue_protocol::Loss;
use ensue_store::entry::{Change, Entry};
use ensue_store::layout;
use ensue_store::log::Lsn;
use ensue_store::record::Record;
use ensue_store::recovery::RecoveredRecord;
use ensue_types::{DatacenterId, Incarnation, OperationId, Rule};

impl Reading {
    pub(in crate::partition) fn take_record(
        &mut self,
        p: &mut Peering<'_>,
        recovered: RecoveredRecord,
    ) -> Result<(), String> {
        let Peering { cx, others, keyspaces, transactions, .. } = p;
        let lsn_end = recovered.lsn_end;
        let wrong = |error: layout::LayoutError| format!("log at {lsn_end}: {error}");
        cx.journal.replay(&recovered).map_err(wrong)?;
        let (batch, incarnation) = (recovered.batch, recovered.incarnation);
        cx.incarnation = cx.incarnation.max(incarnation);
        let open = &mut self.open;
        match recovered.record {
            Record::Own { entry } => {
                let entry = layout::decode_entry(&entry).map_err(wrong)?;
                if let Change::Effects { transaction: Some(operation), .. } = entry.change {
                    // Its own record of the execution was lost, and the entry came back from another datacenter.
                    open.executed.insert(operation, None);
                    cx.journal.restore_needed(Needed::Executed(operation), batch);
                }
                open.note_returned(&entry);
                keyspaces.replay_own(cx, others, open, entry);
            }
            Record::Begun { number, keyspace, context, parts } => {
                transactions.restore_begun(number);
                let transaction = OperationId { incarnation, ..cx.local_transaction(number) };
                open.begun.insert(transaction, Begun { keyspace, context, parts });
                cx.journal.restore_needed(Needed::Begun(transaction), batch);
            }
            Record::Prepared { transaction, keyspace, at, part } => {
                self.clock = self.clock.max(at);
                open.prepared.insert(transaction, (keyspace, at, part));
                cx.journal.restore_needed(Needed::Prepared(transaction), batch);
            }
            Record::Decided { transaction, at, entry } => {
                self.clock = self.clock.max(at);
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
            record => self.take_replicated(p, (record, batch, lsn_end))?,
        }
        Ok(())
    }

    /// A record of what other datacenters wrote, and of their time.
    fn take_replicated(
        &mut self,
        p: &mut Peering<'_>,
        (record, batch, lsn_end): (Record, Lsn, Lsn),
    ) -> Result<(), String> {
        let Peering { cx, others, keyspaces, .. } = p;
        match record {
            Record::Received { origin, incarnation, entry } => {
                let entry =
                    layout::decode_entry(&entry).map_err(|error| format!("log at {lsn_end}: {error}"))?;
                self.clock = self.clock.max(entry.stamp.time);
                self.replay_received(p, (origin, incarnation), (entry, batch));
            }
            Record::Applied { origin, position, at, .. } => {
                self.clock = self.clock.max(at);
                let operation = cx.name_at(origin, position);
                keyspaces.replay_applied(cx, others, &mut self.open, operation, at);
            }
            Record::Times { received, stable } => {
                if Rule::RememberStable.holds() {
                    others.stable_time.times.restore(&received, &stable);
                }
            }
            Record::Rebuilt { keyspace, rebuilt } => keyspaces.branching.replay_rebuilt(keyspace, rebuilt),
            Record::ClockBound { bound } => {
                cx.journal.raise_bound(bound);
            }
            lasting => take_lasting(p, lasting)?,
        }
        Ok(())
    }

    fn replay_received(
        &mut self,
        p: &mut Peering<'_>,
        (origin, incarnation): (DatacenterId, Incarnation),
        (entry, batch): (Entry, Lsn),
    ) {
        let Peering { cx, others, keyspaces, peers, .. } = p;
        let open = &mut self.open;
        let position = entry.position;
        peers.identity.note_received(origin, entry.stamp.time);
        cx.journal.retain(origin, position, batch);
        if let Some(receiver) = others.replication.receiver_mut(origin) {
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

/// What checkpoints hold as it stood in the log.
pub(in crate::partition) fn take_lasting(p: &mut Peering<'_>, record: Record) -> Result<(), String> {
    let Peering { cx, others, keyspaces, peers, .. } = p;
    match record {
        Record::Dead { datacenter, time } => others.failover.failed.restore(datacenter, time),
        // A copy that another datacenter has taken holds it, too.
        Record::Retiring { datacenter } if datacenter == cx.datacenter => {
            others.failover.retirement.begin(0);
        }
        Record::Retiring { .. } => {}
        Record::HomeMoved { moved } => cx.homes.restore(moved),
        Record::Ended { datacenter, whole, failed, everywhere } => {
            let end = StreamEnd { whole, failed, everywhere };
            others.failover.failed.restore_end(datacenter, end);
        }
        Record::Lost { datacenter, whole, doubtful, failed } => {
            keyspaces.take_loss(cx, others, Loss { datacenter, whole, doubtful, failed });
        }
        Record::Peer { datacenter, directory, last } => {
            others.note_met(datacenter);
            peers.identity.restore(datacenter, directory, last);
        }
        Record::Discarded { datacenter, entry } => {
            let wrong = |error: layout::LayoutError| format!("a discarded write: {error}");
            others.restore_discarded(cx, datacenter, layout::decode_entry(&entry).map_err(wrong)?);
        }
        other => return Err(format!("checkpoint: a record that no checkpoint holds: {other:?}")),
    }
    Ok(())
}
