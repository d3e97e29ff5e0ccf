//! What an entry of a stream may say. It is judged before it is logged: what is in the log is shown after a restart,
//! and passed on.
//!
//! An entry that is refused pauses its stream, which is asked to go on from there again and again. A sender of the
//! same release, with
//! the same configuration, never makes one.

use super::{Admission, Verdict, admit, position, possible};
use ensue_branch::Note;
use ensue_protocol::{Past, Visibility as Waits};
use ensue_store::entry::{Change, Entry};
use ensue_types::{
    Column, DatacenterId, Effect, KeyspaceId, LogicalTime, Observed, OperationId, PartitionId, Position,
    RowEffect, SeenSum, Stamp, partition_of,
};
use std::collections::BTreeSet;

/// Where an entry comes in.
#[derive(Clone, Copy)]
pub(crate) struct Arrival<'a> {
    pub own: PartitionId,
    pub origin: DatacenterId,
    /// The place of the stream that it is said to be at.
    pub position: Position,
    /// The latest time that is believed of another machine.
    pub latest: LogicalTime,
    /// What a datacenter wrote is here for ever, since it is dead.
    pub is_final: &'a dyn Fn(DatacenterId) -> bool,
}

impl Admission<'_> {
    /// Judges an entry of another datacenter's stream, or an own one that comes back.
    pub fn entry(&self, arrival: Arrival<'_>, entry: &Entry) -> Verdict {
        let Arrival { own, origin, .. } = arrival;
        let is_there = entry.position == arrival.position && entry.stamp.datacenter == origin;
        admit(is_there && entry.position > Position(0), "a stream entry that is not what it says")?;
        position(entry.position)?;
        possible(entry.stamp.time)?;
        let stamped_by = match &entry.change {
            Change::Effects { transaction: Some(transaction), .. } => transaction.partition,
            _ => own,
        };
        admit(entry.stamp.partition == stamped_by, "a stamp of another partition")?;
        self.past(arrival, entry)?;
        let replaced = entry.previous.iter().flat_map(|previous| previous.operations());
        replaced.into_iter().try_for_each(|operation| self.operation(operation))?;
        self.change(arrival, &entry.change)
    }

    /// What it depends on.
    fn past(&self, arrival: Arrival<'_>, entry: &Entry) -> Verdict {
        let Arrival { own, origin, position, .. } = arrival;
        let operation =
            OperationId { datacenter: origin, incarnation: position.incarnation(), partition: own, position };
        let protocol = match &entry.change {
            Change::Lost { .. } => return Ok(()),
            _ => self.protocol(entry.keyspace())?,
        };
        const UNREADABLE: &str = "dependencies that the protocol cannot read";
        match protocol.visibility(operation, &entry.dependencies).map_err(|_| UNREADABLE)? {
            Waits::After(dependencies) => self.dependencies(&dependencies)?,
            Waits::Now => {}
        }
        if !protocol.goes_by_times() {
            return Ok(());
        }
        let Past::Times(times) = protocol.past(&entry.dependencies).map_err(|_| UNREADABLE)? else {
            return Ok(());
        };
        admit(times.len() <= self.topology.datacenters.len(), "times of more datacenters than there are")?;
        // Who read it would wait for a time that never comes.
        let is_believed = |(datacenter, time): (DatacenterId, LogicalTime)| {
            time <= arrival.latest || time == LogicalTime::MAX && (arrival.is_final)(datacenter)
        };
        admit(times.entries().all(is_believed), "a past too far ahead of this machine's clock")
    }

    fn change(&self, arrival: Arrival<'_>, change: &Change) -> Verdict {
        match change {
            Change::Effects { keyspace, transaction, effects } => {
                if let Some(transaction) = transaction {
                    self.replicated(arrival, *keyspace, transaction)?;
                }
                self.effects(arrival, *keyspace, effects)
            }
            Change::Flush { keyspace, effects } => {
                let deletes = effects.iter().all(|row| matches!(row.effect, Effect::Delete { .. }));
                admit(deletes, "a flush that writes")?;
                self.effects(arrival, *keyspace, effects)
            }
            Change::Transaction { keyspace, begun_as, participants } => {
                self.writes_together(*keyspace)?;
                let is_own =
                    |name: OperationId| name.datacenter == arrival.origin && name.partition == arrival.own;
                admit(begun_as.is_none_or(is_own), "a transaction that was begun elsewhere")?;
                let distinct: BTreeSet<&PartitionId> = participants.iter().collect();
                let is_set = !participants.is_empty() && distinct.len() == participants.len();
                admit(is_set, "participants that are not a set")?;
                participants.iter().try_for_each(|participant| self.partition(*participant))
            }
            Change::Lost { after } => {
                let life = arrival.position.incarnation();
                let begins_incarnation = arrival.position == Position::before(life).next();
                admit(begins_incarnation && after.incarnation() < life, "a loss that begins no incarnation")
            }
            Change::Branch { keyspace, note } => {
                self.branching(*keyspace)?;
                admit(arrival.own == PartitionId(0), "states of a partition that keeps none")?;
                match Note::decode(note.clone()) {
                    Ok(Note::Commit(commit)) => {
                        let life = arrival.position.incarnation();
                        let is_own = commit.id.site() == arrival.origin && commit.id.incarnation() == life;
                        admit(is_own && commit.id.counter() > 0, "a state that another datacenter made")
                    }
                    Ok(Note::Ceiling(_)) => Ok(()),
                    Err(_) => Err("a note of a branching keyspace that cannot be read"),
                }
            }
        }
    }

    fn writes_together(&self, keyspace: KeyspaceId) -> Verdict {
        let protocol = self.protocol(keyspace)?;
        let together = protocol.capabilities().write_transactions && !protocol.needs().branches;
        admit(together, "a write transaction of a protocol that has none")
    }

    /// The transaction of a part: one of the same datacenter, named by its entry in the coordinator's stream.
    fn replicated(&self, arrival: Arrival<'_>, keyspace: KeyspaceId, transaction: &OperationId) -> Verdict {
        self.writes_together(keyspace)?;
        self.operation(transaction)?;
        let is_named = transaction.datacenter == arrival.origin
            && transaction.position > Position(0)
            && transaction.incarnation == transaction.position.incarnation();
        admit(is_named, "a part of a transaction that is none of its datacenter's")
    }

    fn effects(&self, arrival: Arrival<'_>, keyspace: KeyspaceId, effects: &[RowEffect]) -> Verdict {
        admit(!self.protocol(keyspace)?.needs().branches, "rows of a keyspace that has branches here")?;
        let spread = self.spread(keyspace)?;
        effects.iter().try_for_each(|row| {
            admit(partition_of(&row.key, spread) == arrival.own, "a key of another partition")?;
            if row.column == Column::Row {
                let needs = self.protocol(keyspace)?.needs();
                let is_one = matches!(&row.effect, Effect::Remove { seen, .. } if seen.is_empty());
                admit(is_one && !needs.versions && !needs.siblings, "what is no removal of a whole row")?;
            }
            match &row.effect {
                Effect::Put { seen, over, .. } => {
                    over.iter().try_for_each(|over| self.observed(over))?;
                    self.seen(seen)
                }
                Effect::Delete { seen } => self.seen(seen),
                Effect::Remove { observed, seen } => {
                    self.observed(observed)?;
                    self.seen(seen)
                }
                Effect::Add { epoch_sum } => {
                    let adder = epoch_sum.epoch.datacenter;
                    let is_own = [false, true].map(|stable| arrival.origin.adder(stable)).contains(&adder);
                    admit(is_own, "an addition in another datacenter's name")
                }
            }
        })
    }

    fn observed(&self, observed: &Observed) -> Verdict {
        let is_known = |put: &Stamp| usize::from(put.datacenter.0) < self.topology.datacenters.len();
        admit(observed.puts().iter().all(is_known), "a removal of what nobody put")?;
        possible(observed.through().time)?;
        observed.puts().iter().try_for_each(|put| possible(put.time))
    }

    /// At most one epoch sum a lane: a column keeps them all.
    fn seen(&self, seen: &[SeenSum]) -> Verdict {
        let adders: BTreeSet<DatacenterId> = seen.iter().map(|seen_sum| seen_sum.datacenter).collect();
        let exists = |adder: &DatacenterId| {
            let datacenters = (0..self.topology.datacenters.len() as u8).map(DatacenterId);
            *adder == DatacenterId::EVERY
                || datacenters.into_iter().any(|d| d.adder(false) == *adder || d.adder(true) == *adder)
        };
        admit(adders.len() == seen.len() && adders.iter().all(exists), "additions seen of nobody")
    }
}
