//! What other datacenters wrote: received once and in order, shown when its protocol says so.
//!
//! On an arriving entry: log it, ask the protocol, check each dependency with the partition that it names, in this
//! datacenter. On the last dependency met: a write of this partition alone becomes visible now; a part of a transaction
//! notifies its coordinator. Nothing polls: an applied operation wakes those who wait for it. Received in order is not
//! applied in order (trap 16).

use super::applied::{Applied, Woken};
use super::receiver::Arrival;
use super::{Replication, Waiter};
use crate::partition::Partition;
use crate::partition::branching::note_of;
use crate::partition::cx::Cx;
use crate::partition::failover::gone::depends_on;
use crate::partition::journal::Needed;
use crate::partition::keyspaces::order::RowName;
use crate::partition::keyspaces::{Keyspaces, Work};
use crate::partition::transactions::ReplicatedPart;
use crate::partition::visibility::Visibility;
use crate::trace::{Trace, TransactionStep};
use bytes::Bytes;
use ensue_protocol::Visibility as Waits;
use ensue_store::cell::{Outcome, Write};
use ensue_store::entry::{Change, Entry};
use ensue_store::layout;
use ensue_types::{
    DatacenterId, Dependency, Extent, Incarnation, LogicalTime, OperationId, PartitionId, Position, Previous,
    RowEffect, Rule,
};
use ensue_wire::{Address, Message};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Received entries that are not applied yet, and the questions about dependencies, both ways.
#[derive(Clone, Debug, Default)]
pub(crate) struct Intake {
    arrived: BTreeMap<(DatacenterId, Position), Arrived>,
    /// Checks that this partition has asked others, by number.
    checks: BTreeMap<u64, Check>,
    /// Checks that others have asked this partition, by who asked and the number there.
    asks: BTreeMap<(Address, u64), Ask>,
    /// Those whose wait is over, and who have not been told yet.
    woken: VecDeque<Woken<Waiter>>,
    /// Whether somebody up the stack is telling them.
    is_waking: bool,
    waited: u64,
}

#[derive(Clone, Debug)]
struct Arrived {
    incarnation: Incarnation,
    entry: Entry,
    /// Dependency waits and checks that are open.
    open: usize,
    ready: bool,
    /// Something that it depends on is gone with a dead datacenter.
    gone: bool,
    since_us: u64,
}

#[derive(Clone, Debug)]
struct Check {
    partition: PartitionId,
    dependencies: Vec<Dependency>,
    entry: (DatacenterId, Position),
}

#[derive(Clone, Debug)]
struct Ask {
    /// What had not been applied when it was asked about.
    dependencies: Vec<Dependency>,
    /// How many of these have not been applied yet.
    open: usize,
    gone: Vec<Dependency>,
}

impl Intake {
    pub fn entry(&self, origin: DatacenterId, position: Position) -> Option<&Entry> {
        self.arrived.get(&(origin, position)).map(|arrived| &arrived.entry)
    }

    /// The rows that an arrived entry changes.
    pub fn rows(&self, origin: DatacenterId, position: Position) -> Vec<RowName> {
        self.arrived.get(&(origin, position)).map(|arrived| rows_of(&arrived.entry)).unwrap_or_default()
    }

    /// Entries that have waited since before a time, by the datacenters whose writes they asked for.
    pub fn waiting_since(&self, before_us: u64, applied: &Applied<Waiter>) -> BTreeMap<DatacenterId, usize> {
        let here = applied.waiting().filter_map(|(awaited, waiter)| match waiter {
            Waiter::Entry(origin, position) => Some((awaited, (*origin, *position))),
            Waiter::Ask(..) => None,
        });
        let elsewhere = self.checks.values().flat_map(|check| {
            check.dependencies.iter().map(|dependency| (dependency.operation.datacenter, check.entry))
        });
        let is_old = |entry: &(DatacenterId, Position)| {
            self.arrived.get(entry).is_some_and(|arrived| arrived.since_us < before_us)
        };
        let old: BTreeSet<_> = here.chain(elsewhere).filter(|(_, entry)| is_old(entry)).collect();
        old.into_iter().fold(BTreeMap::new(), |mut counts, (awaited, _)| {
            *counts.entry(awaited).or_default() += 1;
            counts
        })
    }

    /// Whether something that an arrived entry depends on is gone, and nothing is open any more.
    pub fn is_gone(&self, origin: DatacenterId, position: Position) -> bool {
        self.arrived.get(&(origin, position)).is_some_and(|arrived| arrived.gone && arrived.open == 0)
    }

    /// Whether an arrived entry's own dependencies are met.
    pub fn is_ready(&self, origin: DatacenterId, position: Position) -> bool {
        self.arrived.get(&(origin, position)).is_some_and(|arrived| arrived.ready)
    }

    pub fn len(&self) -> usize {
        self.arrived.len()
    }

    pub fn open_checks(&self) -> usize {
        self.checks.len()
    }

    pub fn waited(&self) -> u64 {
        self.waited
    }
}

impl Replication {
    /// Takes nothing more of a stream until it has been asked, a little later, to go on from what is here.
    pub(in crate::partition) fn pause(&mut self, origin: DatacenterId) {
        self.paused.insert(origin);
    }

    /// Registers and asks for what is not known to be applied; says how much that is.
    pub(in crate::partition) fn open_checks(
        &mut self,
        cx: &mut Cx,
        origin: DatacenterId,
        position: Position,
        dependencies: Vec<Dependency>,
    ) -> usize {
        let mut open = 0;
        let mut elsewhere: BTreeMap<PartitionId, Vec<Dependency>> = BTreeMap::new();
        for dependency in dependencies {
            let named = dependency.operation;
            if named.datacenter == cx.datacenter {
                continue; // Written here: applied here.
            }
            if named.partition != cx.id {
                if Rule::AskTheOwner.holds() {
                    elsewhere.entry(named.partition).or_default().push(dependency);
                }
            } else if !self.applied.meets(&dependency) {
                self.applied.wait(&dependency, Waiter::Entry(origin, position));
                open += 1;
            } else {
                self.count_lost(cx, &dependency);
                self.intake.learn_gone(origin, position, self.applied.gone(&dependency));
            }
        }
        for (partition, dependencies) in elsewhere {
            if partition.0 >= cx.config.topology.partitions {
                cx.trace(Trace::Refused { what: "a dependency on a partition that does not exist" });
            }
            let check = cx.number();
            let message = Message::CheckDependencies { check, dependencies: dependencies.clone() };
            self.intake.checks.insert(check, Check { partition, dependencies, entry: (origin, position) });
            cx.send_local(partition, message);
            open += 1;
        }
        if let Some(arrived) = self.intake.arrived.get_mut(&(origin, position)) {
            arrived.open = open;
        }
        open
    }

    /// Another partition, or a session with a token, asks whether operations have been applied here. With each number
    /// it asks for one thing: what is asked anew, or withdrawn by asking for nothing, is not waited for.
    pub(in crate::partition) fn on_check_dependencies(
        &mut self,
        cx: &mut Cx,
        from: Address,
        check: u64,
        asked: Vec<Dependency>,
    ) {
        if asked.iter().any(|dependency| dependency.operation.partition != cx.id) {
            return cx.trace(Trace::Refused { what: "a dependency check for another partition" });
        }
        self.forget_ask(from, check);
        let (mut dependencies, mut gone) = (Vec::new(), Vec::new());
        for dependency in asked {
            let is_own = dependency.operation.datacenter == cx.datacenter;
            if cx.is_refused_as_never_issued(from, &dependency.operation) {
                gone.push(dependency);
            } else if !is_own && !self.applied.meets(&dependency) {
                self.applied.wait(&dependency, Waiter::Ask(from, check));
                dependencies.push(dependency);
            } else {
                self.count_lost(cx, &dependency);
                gone.extend(self.applied.gone(&dependency));
            }
        }
        if dependencies.is_empty() {
            return cx.send(from, Message::DependenciesMet { check, gone });
        }
        let open = dependencies.len();
        self.intake.asks.insert((from, check), Ask { dependencies, open, gone });
    }

    fn forget_ask(&mut self, from: Address, check: u64) {
        let Some(ask) = self.intake.asks.remove(&(from, check)) else { return };
        if !Rule::WhatIsAskedAnewIsForgotten.holds() {
            return;
        }
        for dependency in &ask.dependencies {
            self.applied.forget(dependency, &Waiter::Ask(from, check));
        }
    }

    /// Nothing is waited for that was declared lost (trap 15); it is counted.
    fn count_lost(&mut self, cx: &mut Cx, dependency: &Dependency) {
        if self.applied.is_lost(dependency) {
            self.losses.dependencies += 1;
            cx.trace(Trace::DependsOnLost { partition: cx.id, operation: dependency.operation });
        }
    }

    /// Those behind a broken link will ask again, or have given up.
    pub(in crate::partition) fn forget_asks(&mut self, is_behind: &dyn Fn(Address) -> bool) {
        let behind = self.intake.asks.keys().copied().filter(|(from, _)| is_behind(*from));
        for (from, check) in behind.collect::<Vec<_>>() {
            self.forget_ask(from, check);
        }
    }

    /// An entry of the own stream was logged: it is applied here by that.
    pub(crate) fn own_entry_applied(&mut self, cx: &Cx) {
        self.applied.through(cx.datacenter, cx.position);
    }
}

impl Intake {
    /// A dependency of an arrived entry is gone, or covers what is gone.
    fn learn_gone(&mut self, origin: DatacenterId, position: Position, gone: Option<Dependency>) {
        if let (Some(gone), Some(arrived)) = (gone, self.arrived.get_mut(&(origin, position))) {
            arrived.gone |= depends_on(origin, &gone);
        }
    }

    /// After a link broke: repeats the checks that went over it.
    pub(in crate::partition) fn ask_dependencies_again(
        &mut self,
        cx: &mut Cx,
        owns: &dyn Fn(PartitionId) -> bool,
    ) {
        let again = |(number, check): (&u64, &Check)| (*number, check.partition, check.dependencies.clone());
        let open: Vec<_> = self.checks.iter().filter(|(_, check)| owns(check.partition)).map(again).collect();
        for (check, partition, dependencies) in open {
            cx.send_local(partition, Message::CheckDependencies { check, dependencies });
        }
    }
}

impl Keyspaces {
    pub(in crate::partition) fn apply_effects(
        &mut self,
        keyspace: ensue_types::KeyspaceId,
        effects: &[RowEffect],
        previous: &[Previous],
        write: &Write,
    ) -> bool {
        let rows = self.keyspace(keyspace);
        let mut lost = false;
        let mut previous = previous.iter();
        for change in effects {
            let previous = if change.effect.is_base() { previous.next() } else { None };
            lost |= rows.apply(change, previous, write) == Outcome::Lost;
        }
        lost
    }
}

impl Visibility<'_> {
    /// An entry is here and logged: finds out what it waits for.
    pub(crate) fn arrive(&mut self, origin: DatacenterId, incarnation: Incarnation, entry: Entry) {
        let position = entry.position;
        let operation = OperationId { datacenter: origin, incarnation, partition: self.cx.id, position };
        if let Change::Effects { keyspace, transaction: Some(transaction), .. } = entry.change {
            let part =
                ReplicatedPart { origin, position, keyspace, work: None, voted_at: None, decision: None };
            self.transactions.replicated_parts.insert(transaction, part);
            self.cx.trace_step(transaction, TransactionStep::Begun);
        }
        if let Some((keyspace, note)) = note_of(&entry) {
            let note = note.clone();
            let since_us = self.cx.now.monotonic_us;
            let arrived = Arrived { incarnation, entry, open: 0, ready: false, gone: false, since_us };
            self.others.replication.intake.arrived.insert((origin, position), arrived);
            return self.arrive_on_branch(origin, keyspace, position, &note);
        }
        let verdict = self.cx.protocol(entry.keyspace()).visibility(operation, &entry.dependencies);
        let dependencies = match verdict {
            Ok(_) if !Rule::WaitForDependencies.holds() => Vec::new(),
            Ok(Waits::Now) => replaced_by(&entry),
            Ok(Waits::After(dependencies)) => [dependencies, replaced_by(&entry)].concat(),
            Err(_) => {
                // Shown without what it needs it would be untrue; it stays, counted, until an operator looks.
                self.cx.trace(Trace::Refused { what: "dependencies that the protocol cannot read" });
                vec![Dependency { operation, extent: Extent::Exact }]
            }
        };
        let since_us = self.cx.now.monotonic_us;
        let arrived = Arrived { incarnation, entry, open: 0, ready: false, gone: false, since_us };
        self.others.replication.intake.arrived.insert((origin, position), arrived);
        let open = self.others.replication.open_checks(self.cx, origin, position, dependencies);
        if open == 0 {
            self.on_all_answered(origin, position);
        } else {
            self.others.replication.intake.waited += 1;
            self.cx.trace(Trace::DependencyWaited { partition: self.cx.id, origin, position });
        }
    }

    /// A datacenter's stream goes on without what it lost.
    pub(crate) fn lose(&mut self, origin: DatacenterId, after: Position, through: Position) {
        self.cx.trace(Trace::DeclaredLost { partition: self.cx.id, origin, after });
        let woken = self.others.replication.applied.lose(origin, after, through);
        self.others.replication.losses.dependencies += woken.len() as u64;
        self.wake(woken);
        self.transactions
            .abandon_lost(self.cx, origin, (after, through), |transaction| Message::Abandon { transaction });
        self.lose_branches(origin, through.next().incarnation());
    }

    pub(crate) fn on_dependencies_met(&mut self, check: u64, gone: &[Dependency]) {
        if let Some(check) = self.others.replication.intake.checks.remove(&check) {
            let (origin, position) = check.entry;
            gone.iter()
                .for_each(|gone| self.others.replication.intake.learn_gone(origin, position, Some(*gone)));
            self.wake([Woken { waiter: Waiter::Entry(origin, position), gone: None }]);
        }
    }

    /// Nothing that an arrived entry depends on is open any more.
    fn on_all_answered(&mut self, origin: DatacenterId, position: Position) {
        match self.others.replication.intake.is_gone(origin, position) {
            true => self.discard_arrived(origin, position),
            false => self.on_entry_ready(origin, position),
        }
    }

    /// Tells those whose wait is over, one after the other: each may end the wait of others, and a chain of entries
    /// that depend on each other is longer than a stack is deep.
    pub(in crate::partition) fn wake(&mut self, woken: impl IntoIterator<Item = Woken<Waiter>>) {
        self.others.replication.intake.woken.extend(woken);
        if std::mem::replace(&mut self.others.replication.intake.is_waking, true) {
            return;
        }
        while let Some(woken) = self.others.replication.intake.woken.pop_front() {
            self.wake_one(woken);
        }
        self.others.replication.intake.is_waking = false;
    }

    fn wake_one(&mut self, woken: Woken<Waiter>) {
        match woken.waiter {
            Waiter::Entry(origin, position) => {
                self.others.replication.intake.learn_gone(origin, position, woken.gone);
                let Some(arrived) = self.others.replication.intake.arrived.get_mut(&(origin, position))
                else {
                    return;
                };
                arrived.open = arrived.open.saturating_sub(1);
                if arrived.open == 0 && !arrived.ready {
                    self.on_all_answered(origin, position);
                }
            }
            Waiter::Ask(from, check) => {
                let Some(ask) = self.others.replication.intake.asks.get_mut(&(from, check)) else { return };
                ask.open -= 1;
                ask.gone.extend(woken.gone);
                if ask.open == 0 {
                    let Ask { gone, .. } =
                        self.others.replication.intake.asks.remove(&(from, check)).expect("found above");
                    self.cx.send(from, Message::DependenciesMet { check, gone });
                }
            }
        }
    }

    /// Everything that an entry depends on is visible here.
    fn on_entry_ready(&mut self, origin: DatacenterId, position: Position) {
        let Some(arrived) = self.others.replication.intake.arrived.get_mut(&(origin, position)) else {
            return;
        };
        arrived.ready = true;
        let stamp = arrived.entry.stamp;
        match &arrived.entry.change {
            Change::Effects { transaction: Some(transaction), .. } => {
                let transaction = *transaction;
                self.transactions.notify_again(self.cx, self.others, transaction);
            }
            Change::Transaction { keyspace, participants } => {
                let operation = OperationId {
                    datacenter: origin,
                    incarnation: arrived.incarnation,
                    partition: self.cx.id,
                    position,
                };
                let announced = crate::partition::transactions::Announced {
                    keyspace: *keyspace,
                    participants: participants.clone(),
                    stamp,
                };
                self.on_announced(operation, announced);
            }
            Change::Branch { .. } => unreachable!("the states of its keyspace say when it is shown"),
            Change::Effects { .. } | Change::Flush { .. } | Change::Lost { .. } => {
                let rows = rows_of(&arrived.entry);
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
        let Some(arrived) = self.others.replication.intake.arrived.remove(&(origin, position)) else {
            return;
        };
        let Arrived { incarnation, entry, .. } = arrived;
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
                    self.transactions.replicated_parts.remove(&transaction);
                    self.cx.journal.no_longer_needed(Needed::Prepared(transaction));
                    self.transactions.note_executed(
                        self.cx,
                        transaction,
                        None,
                        Some(Needed::Received(origin, position)),
                    );
                    self.mark_applied(origin, incarnation, position, at);
                    self.others.note_applied(origin, position, entry.stamp.time);
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
    }

    /// Logs that a received entry is visible, and wakes those who wait for it.
    pub(crate) fn mark_applied(
        &mut self,
        origin: DatacenterId,
        incarnation: Incarnation,
        position: Position,
        at: LogicalTime,
    ) {
        self.others.replication.intake.arrived.remove(&(origin, position));
        self.cx.journal.log_applied(origin, incarnation, position, at);
        self.others.replication.acknowledgements.acknowledge_all_soon();
        let woken = self.others.replication.applied.insert(origin, position);
        self.cx.trace(Trace::Applied { partition: self.cx.id, origin, position });
        self.wake(woken);
    }
}

impl Visibility<'_> {
    /// Asks the paused streams to go on.
    pub(in crate::partition) fn resume_paused(&mut self) {
        if self.cx.is_out_of_room() {
            return;
        }
        for origin in std::mem::take(&mut self.others.replication.paused) {
            self.resume_stream(origin);
        }
    }
}

impl Partition {
    pub(in crate::partition) fn on_stream_entries(
        &mut self,
        origin: DatacenterId,
        first: Position,
        entries: Vec<Bytes>,
    ) {
        if self.cx.is_out_of_room() {
            return self.others.replication.pause(origin);
        }
        let mut position = first;
        for bytes in entries {
            if !self.take_entry(origin, position, bytes) {
                return self.others.replication.pause(origin);
            }
            position = position.next();
        }
        self.others.replication.acknowledgements.acknowledge_soon(origin);
    }

    /// Takes one entry of a stream, if it is the next one; says whether the stream may go on.
    pub(in crate::partition) fn take_entry(
        &mut self,
        origin: DatacenterId,
        position: Position,
        bytes: Bytes,
    ) -> bool {
        let Some(receiver) = self.others.replication.receivers.get_mut(&origin) else { return false };
        let received = receiver.received();
        match receiver.judge(position) {
            Arrival::Next => {}
            Arrival::Duplicate => {
                self.cx.trace(Trace::DuplicateDropped { partition: self.cx.id, origin, position });
                if Rule::ApplyOnce.holds() {
                    return true;
                }
            }
            Arrival::Gap => match after_a_loss(origin, position, &bytes) {
                Some(after) if after == received => {}
                Some(after) if after < received => {
                    self.refuse_loss(origin, after, received);
                    return false;
                }
                _ => return false,
            },
        }
        self.receive(origin, position.incarnation(), position, bytes)
    }

    /// The origin declared lost, without asking here, what this datacenter has: it was recovered without it. What is
    /// here can never be everywhere again, and nothing that follows fits to it.
    fn refuse_loss(&mut self, origin: DatacenterId, after: Position, received: Position) {
        let name = self.cx.name_of(origin);
        self.refuse_peer(origin, format!(
            "{name} was recovered without this datacenter (`ensue recover --without`) and declared lost what is here: \
             its stream ends after position {after}, and was received here up to {received}. Say CAUSAL DEAD for one \
             of the two, on the other, and put its data away"
        ));
    }

    /// Takes one entry; says whether the stream may go on.
    fn receive(
        &mut self,
        origin: DatacenterId,
        incarnation: Incarnation,
        position: Position,
        bytes: Bytes,
    ) -> bool {
        let Ok(entry) = layout::decode_entry(&bytes) else {
            self.refuse_from(origin, "a stream entry that cannot be read");
            return false;
        };
        if let Err(what) =
            self.transactions.judge_entry(&self.cx, &self.others, &self.keyspaces, origin, position, &entry)
        {
            self.refuse_from(origin, what);
            return false;
        }
        // A stamp too far ahead pauses its stream; it is never skipped (trap 31).
        if !self.cx.observe_peer(entry.stamp.time) {
            return false;
        }
        self.cx.journal.log_received(origin, incarnation, position, &bytes);
        let receiver = self.others.replication.receivers.get_mut(&origin).expect("looked up by the caller");
        receiver.received_at(position);
        let stamp = entry.stamp;
        self.peers.identity.note_received(origin, stamp.time);
        self.visibility().arrive(origin, incarnation, entry);
        // After what it brought is merged: a read that this lets go on must see it.
        self.others.note_received(origin, stamp.time);
        true
    }
}

/// Where the stream ended before this entry, if it is the first after a loss.
fn after_a_loss(origin: DatacenterId, position: Position, bytes: &Bytes) -> Option<Position> {
    let entry = layout::decode_entry(bytes).ok()?;
    let life = position.incarnation();
    let begins_life = position == Position::before(life).next();
    match entry.change {
        Change::Lost { after } if begins_life && after.incarnation() < life => {
            (entry.position == position && entry.stamp.datacenter == origin).then_some(after)
        }
        _ => None,
    }
}

/// The writes whose values an entry replaced where it was written.
fn replaced_by(entry: &Entry) -> Vec<Dependency> {
    let operations = entry.previous.iter().flat_map(|previous| previous.operations().iter().copied());
    let operations = operations.filter(|_| Rule::ThePreviousIsADependency.holds());
    operations.map(|operation| Dependency { operation, extent: Extent::Exact }).collect()
}

fn rows_of(entry: &Entry) -> Vec<RowName> {
    let (Change::Effects { keyspace, effects, .. } | Change::Flush { keyspace, effects }) = &entry.change
    else {
        return Vec::new();
    };
    let mut rows: Vec<RowName> = effects.iter().map(|effect| (*keyspace, effect.key.clone())).collect();
    rows.sort_unstable();
    rows.dedup();
    rows
}
