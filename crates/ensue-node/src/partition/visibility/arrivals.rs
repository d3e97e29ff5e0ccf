//! On an arriving entry: ask the protocol, check each dependency with the partition that it names, in this datacenter.
//! On the last dependency met: a write of this partition alone becomes visible now; a part of a transaction notifies
//! its coordinator. An applied operation wakes those who wait for it.

use super::Visibility;
use crate::partition::branching::note_of;
use crate::partition::journal::Needed;
use crate::partition::replication::Waiter;
use crate::partition::replication::applied::Unblocked;
use crate::partition::replication::inbound::rows_of;
use crate::partition::transactions::Announced;
use crate::partition::work::Work;
use crate::trace::{Trace, TransactionStep};
use ensue_protocol::Visibility as WriteVisibility;
use ensue_store::cell::Write;
use ensue_store::entry::{Change, Entry};
use ensue_types::{DatacenterId, Dependency, Extent, Incarnation, LogicalTime, OperationId, Position, Rule};
use ensue_wire::{Address, Message};

impl Visibility<'_> {
    /// An entry is here and logged: finds out what it waits for.
    pub(crate) fn arrive(&mut self, origin: DatacenterId, incarnation: Incarnation, entry: Entry) {
        let position = entry.position;
        let operation = OperationId { datacenter: origin, incarnation, partition: self.cx.id, position };
        if let Change::Effects { keyspace, transaction: Some(transaction), .. } = entry.change {
            self.transactions.note_arrived(transaction, (origin, position), keyspace);
            self.cx.trace_step(transaction, TransactionStep::Begun);
        }
        if let Some((keyspace, note)) = note_of(&entry) {
            let note = note.clone();
            self.others.replication.inbound.keep(self.cx, origin, incarnation, entry);
            return self.arrive_on_branch(origin, keyspace, position, &note);
        }
        let verdict = self.cx.protocol(entry.keyspace()).visibility(operation, &entry.dependencies);
        let dependencies = match verdict {
            Ok(_) if !Rule::WaitForDependencies.holds() => Vec::new(),
            Ok(WriteVisibility::Now) => replaced_by(&entry).collect(),
            Ok(WriteVisibility::After(mut dependencies)) => {
                dependencies.extend(replaced_by(&entry));
                dependencies
            }
            Err(_) => {
                // Shown without what it needs it would be untrue; it stays, counted, until an operator looks.
                self.cx.trace(Trace::Refused { what: "dependencies that the protocol cannot read" });
                vec![Dependency { operation, extent: Extent::Exact }]
            }
        };
        self.others.replication.inbound.keep(self.cx, origin, incarnation, entry);
        let open = self.others.replication.begin_checks(self.cx, origin, position, dependencies);
        if open == 0 {
            self.on_all_answered(origin, position);
        } else {
            self.others.replication.inbound.count_wait(origin, position);
            self.cx.trace(Trace::DependencyWaited { partition: self.cx.id, origin, position });
        }
    }

    /// A datacenter's stream goes on without what it lost.
    pub(crate) fn lose(&mut self, origin: DatacenterId, after: Position, through: Position) {
        self.cx.trace(Trace::DeclaredLost { partition: self.cx.id, origin, after });
        let unblocked = self.others.replication.applied.lose(origin, after, through);
        self.others.replication.count_lost_dependencies(unblocked.len());
        self.unblock(unblocked);
        self.transactions
            .abandon_lost(self.cx, origin, (after, through), |transaction| Message::Abandon { transaction });
        self.lose_branches(origin, through.next().incarnation());
    }

    pub(crate) fn on_dependencies_met(&mut self, check: u64, unrecoverable: &[Dependency]) {
        if let Some((origin, position)) = self.others.replication.inbound.close_check(check, unrecoverable) {
            self.unblock([Unblocked { waiter: Waiter::Entry(origin, position), unrecoverable: None }]);
        }
    }

    /// Nothing that an arrived entry depends on is open any more.
    fn on_all_answered(&mut self, origin: DatacenterId, position: Position) {
        match self.others.replication.inbound.is_unrecoverable(origin, position) {
            true => self.discard_arrived(origin, position),
            false => self.on_entry_ready(origin, position),
        }
    }

    /// Tells those whose wait is over, one after the other: each may end the wait of others, and a chain of entries
    /// that depend on each other is longer than a stack is deep.
    pub(in crate::partition) fn unblock(&mut self, unblocked: impl IntoIterator<Item = Unblocked<Waiter>>) {
        if !self.others.replication.inbound.queue_unblocked(unblocked) {
            return;
        }
        while let Some(unblocked) = self.others.replication.inbound.next_unblocked() {
            self.unblock_one(unblocked);
        }
    }

    fn unblock_one(&mut self, unblocked: Unblocked<Waiter>) {
        let Unblocked { waiter, unrecoverable } = unblocked;
        let replication = &mut self.others.replication;
        let origin = match waiter {
            Waiter::Entry(origin, _) => Some(origin),
            Waiter::Ask(from, check) => replication.inbound.asked_for(from, check),
        };
        let unrecoverable = replication.of_what_is_discarded(self.cx, origin, unrecoverable);
        let inbound = &mut replication.inbound;
        match waiter {
            Waiter::Entry(origin, position) => {
                if inbound.close_one(origin, position, unrecoverable) {
                    self.on_all_answered(origin, position);
                }
            }
            Waiter::Ask(from, check) => {
                if let Some(unrecoverable) = inbound.answer_one(from, check, unrecoverable) {
                    self.cx.send(from, Message::DependenciesMet { check, unrecoverable });
                }
            }
        }
    }

    /// Everything that an entry depends on is visible here.
    fn on_entry_ready(&mut self, origin: DatacenterId, position: Position) {
        let Some((incarnation, entry)) = self.others.replication.inbound.mark_ready(origin, position) else {
            return;
        };
        match &entry.change {
            Change::Effects { transaction: Some(transaction), .. } => {
                let transaction = *transaction;
                self.transactions.notify_again(self.cx, self.others, transaction);
            }
            Change::Transaction { keyspace, participants, .. } => {
                let operation =
                    OperationId { datacenter: origin, incarnation, partition: self.cx.id, position };
                let announced =
                    Announced { keyspace: *keyspace, participants: participants.clone(), stamp: entry.stamp };
                self.on_announced(operation, announced);
            }
            Change::Branch { .. } => unreachable!("the states of its keyspace say when it is shown"),
            Change::Effects { .. } | Change::Flush { .. } | Change::Lost { .. } => {
                let rows = rows_of(entry);
                let at = self.cx.tick();
                if self.keyspaces.must_wait(&rows) {
                    self.keyspaces.order.insert(
                        self.cx.moment(at),
                        true,
                        rows,
                        Work::Entry(origin, position),
                    );
                } else {
                    self.apply_entry(origin, position, at);
                }
            }
        }
    }

    /// An entry becomes visible at this time.
    pub(crate) fn apply_entry(&mut self, origin: DatacenterId, position: Position, at: LogicalTime) {
        let Some((incarnation, entry)) = self.others.replication.inbound.take(origin, position) else {
            return;
        };
        let own = OperationId { datacenter: origin, incarnation, partition: self.cx.id, position };
        match entry.change {
            Change::Effects { transaction: None, .. }
                if self.others.failover.discarded.discards(self.cx, own, &entry) => {}
            Change::Effects { keyspace, transaction, effects } => {
                let operation = transaction.unwrap_or(own);
                let dependencies = self.keyspaces.keyspace(keyspace).carried(&entry.dependencies);
                let write = Write { stamp: entry.stamp, at, operation, dependencies };
                let met = self.keyspaces.conflicts_of(keyspace, &effects, &entry.previous, &write);
                let lost = self.keyspaces.apply_effects(keyspace, &effects, &entry.previous, &write);
                self.keyspaces.log_conflicts(self.cx, keyspace, met, &write);
                if lost && transaction.is_none() && !Rule::LosersAreApplied.holds() {
                    return;
                }
                if let Some(transaction) = transaction {
                    if lost {
                        self.cx.trace(Trace::LosingWrite { partition: self.cx.id, transaction });
                    }
                    self.transactions.forget_arrived(transaction);
                    self.cx.journal.no_longer_needed(Needed::Prepared(transaction));
                    self.transactions.note_executed(
                        self.cx,
                        transaction,
                        None,
                        Some(Needed::Received(origin, position)),
                    );
                    self.mark_applied(origin, incarnation, position, at);
                    self.others.note_applied(origin, position, entry.stamp.time);
                    self.note_visible(origin, entry.stamp.time);
                    self.cx.trace_step(transaction, TransactionStep::Committed);
                    self.cx.send_committed(transaction, Vec::new(), Default::default());
                    return;
                }
            }
            Change::Flush { keyspace, effects } => {
                let dependencies = self.keyspaces.keyspace(keyspace).carried(&entry.dependencies);
                let write = Write { stamp: entry.stamp, at, operation: own, dependencies };
                self.keyspaces.apply_flush(keyspace, &effects, &write);
            }
            Change::Lost { after } => self.lose(origin, after, Position::before(incarnation)),
            Change::Transaction { .. } | Change::Branch { .. } => {}
        }
        self.mark_applied(origin, incarnation, position, at);
        self.others.note_applied(origin, position, entry.stamp.time);
        self.note_visible(origin, entry.stamp.time);
    }

    /// Counts how long an entry took.
    pub(super) fn note_visible(&mut self, origin: DatacenterId, stamp: LogicalTime) {
        self.others.replication.lateness.note_visible(self.cx.now, origin, stamp);
    }

    /// Logs that a received entry is visible, and wakes those who wait for it.
    pub(crate) fn mark_applied(
        &mut self,
        origin: DatacenterId,
        incarnation: Incarnation,
        position: Position,
        at: LogicalTime,
    ) {
        self.others.replication.inbound.take(origin, position);
        self.cx.journal.log_applied(origin, incarnation, position, at);
        self.others.replication.acknowledgements.acknowledge_all_soon();
        let unblocked = self.others.replication.applied.insert(origin, position);
        self.cx.trace(Trace::Applied { partition: self.cx.id, origin, position });
        self.unblock(unblocked);
    }

    /// Asks the paused streams to go on.
    pub(in crate::partition) fn resume_paused(&mut self) {
        if self.cx.is_out_of_room() {
            return;
        }
        let is_cut_off = self.others.is_cut_off();
        for origin in self.others.replication.take_paused(self.cx, is_cut_off) {
            self.resume_stream(origin);
        }
    }
}

/// The writes whose values an entry replaced where it was written.
fn replaced_by(entry: &Entry) -> impl Iterator<Item = Dependency> {
    let operations = entry.previous.iter().flat_map(|previous| previous.operations().iter().copied());
    let operations = operations.filter(|_| Rule::ThePreviousIsADependency.holds());
    operations.map(|operation| Dependency { operation, extent: Extent::Exact })
}

impl Visibility<'_> {
    /// Sends what the windows have room for, up to the last position that may be sent.
    pub(crate) fn replicate(&mut self) {
        let end = self.transactions.stream_end(self.cx);
        self.others.replication.note_written(self.cx);
        self.others.replication.send_streams(self.cx, end);
    }

    /// Tells a datacenter where its stream shall go on.
    pub(in crate::partition) fn resume_stream(&mut self, datacenter: DatacenterId) {
        if self.others.failover.failed.contains(datacenter) {
            // From itself nothing is taken any more.
            return self.settle_stream(datacenter);
        }
        let Some(receiver) = self.others.replication.receiver(datacenter) else { return };
        let received = receiver.received();
        let incarnation = received.incarnation();
        let to = Address::Partition { datacenter, partition: self.cx.id };
        self.cx.send(to, Message::StreamResume { incarnation, received });
        self.keyspaces.acknowledge(self.cx, self.others, datacenter);
    }
}
