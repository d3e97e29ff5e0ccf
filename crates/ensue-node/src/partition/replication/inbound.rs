//! Received entries that are not applied yet, and the questions about what they depend on, both ways.
//!
//! Nothing polls: an applied operation wakes those who wait for it. Received in order is not applied in order (trap
//! 16). What is done with an entry on the way is in `peering::streams` and `visibility::arrivals`.

use super::applied::{Applied, Unblocked};
use super::{Replication, Waiter};
use crate::partition::cx::Cx;
use crate::partition::order::RowName;
use crate::trace::Trace;
use ensue_store::entry::{Change, Entry};
use ensue_store::layout::encoded_entry_bytes;
use ensue_types::{
    DatacenterId, Dependency, Extent, Incarnation, OperationId, PartitionId, Position, Rule, limits,
};
use ensue_wire::{Address, Message};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Received entries that are not applied yet, and the questions about dependencies, both ways.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inbound {
    arrived: BTreeMap<(DatacenterId, Position), Arrived>,
    /// Checks that this partition has asked others, by number.
    checks: BTreeMap<u64, Check>,
    /// Checks that others have asked this partition, by who asked and the number there.
    asks: BTreeMap<(Address, u64), Ask>,
    /// Those whose wait is over, and who have not been told yet.
    unblocked: VecDeque<Unblocked<Waiter>>,
    /// Whether somebody up the stack is telling them.
    is_unblocking: bool,
    waited: u64,
    /// What those of each datacenter that wait take, as they are encoded.
    waiting_bytes: BTreeMap<DatacenterId, u64>,
}

#[derive(Clone, Debug)]
struct Arrived {
    incarnation: Incarnation,
    entry: Entry,
    /// Dependency waits and checks that are open.
    open: usize,
    /// Its share of `waiting_bytes`.
    bytes: u64,
    ready: bool,
    /// Something that it depends on is gone with a dead datacenter.
    unrecoverable: bool,
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
    unrecoverable: Vec<Dependency>,
    /// Whose write depends on them; none if a session asks.
    origin: Option<DatacenterId>,
}

impl Inbound {
    /// Keeps a received entry until it is applied or discarded.
    pub(in crate::partition) fn keep(
        &mut self,
        cx: &Cx,
        origin: DatacenterId,
        incarnation: Incarnation,
        entry: Entry,
    ) {
        let place = (origin, entry.position);
        let since_us = cx.now.monotonic_us;
        let (open, bytes, ready, unrecoverable) = (0, 0, false, false);
        let arrived = Arrived { incarnation, entry, open, bytes, ready, unrecoverable, since_us };
        self.arrived.insert(place, arrived);
    }

    /// Hands out an entry that is about to be applied.
    pub(in crate::partition) fn take(
        &mut self,
        origin: DatacenterId,
        position: Position,
    ) -> Option<(Incarnation, Entry)> {
        let arrived = self.arrived.remove(&(origin, position))?;
        self.count_bytes(origin, arrived.bytes, 0);
        Some((arrived.incarnation, arrived.entry))
    }

    /// Nothing that an entry depends on is open any more. From here on it is ready.
    pub(in crate::partition) fn mark_ready(
        &mut self,
        origin: DatacenterId,
        position: Position,
    ) -> Option<(Incarnation, &Entry)> {
        let arrived = self.arrived.get_mut(&(origin, position))?;
        arrived.ready = true;
        Some((arrived.incarnation, &arrived.entry))
    }

    /// An entry waits for something that it depends on.
    pub(in crate::partition) fn count_wait(&mut self, origin: DatacenterId, position: Position) {
        self.waited += 1;
        if let Some(arrived) = self.arrived.get_mut(&(origin, position)) {
            let bytes = encoded_entry_bytes(&arrived.entry) as u64;
            let before = std::mem::replace(&mut arrived.bytes, bytes);
            self.count_bytes(origin, before, bytes);
        }
    }

    fn count_bytes(&mut self, origin: DatacenterId, before: u64, after: u64) {
        let bytes = self.waiting_bytes.entry(origin).or_default();
        *bytes = *bytes + after - before;
    }

    /// What received entries that wait for others take.
    pub(in crate::partition) fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes.values().sum()
    }

    /// The same of one datacenter's.
    pub(in crate::partition) fn waiting_bytes_of(&self, origin: DatacenterId) -> u64 {
        self.waiting_bytes.get(&origin).copied().unwrap_or(0)
    }

    /// One thing that an entry depends on is met. Whether that was the last one.
    pub(in crate::partition) fn close_one(
        &mut self,
        origin: DatacenterId,
        position: Position,
        unrecoverable: Option<Dependency>,
    ) -> bool {
        self.learn_unrecoverable(origin, position, unrecoverable);
        let Some(arrived) = self.arrived.get_mut(&(origin, position)) else { return false };
        arrived.open = arrived.open.saturating_sub(1);
        arrived.open == 0 && !arrived.ready
    }

    /// Another partition has answered a check; which entry it was opened for.
    pub(in crate::partition) fn close_check(
        &mut self,
        check: u64,
        unrecoverable: &[Dependency],
    ) -> Option<(DatacenterId, Position)> {
        let Check { entry: (origin, position), .. } = self.checks.remove(&check)?;
        for unrecoverable in unrecoverable {
            self.learn_unrecoverable(origin, position, Some(*unrecoverable));
        }
        Some((origin, position))
    }

    /// Whose write it is that another partition asks for.
    pub(in crate::partition) fn asked_for(&self, from: Address, check: u64) -> Option<DatacenterId> {
        self.asks.get(&(from, check))?.origin
    }

    /// One thing that another partition asked about is met. After the last one: what of it all is unrecoverable.
    pub(in crate::partition) fn answer_one(
        &mut self,
        from: Address,
        check: u64,
        unrecoverable: Option<Dependency>,
    ) -> Option<Vec<Dependency>> {
        let ask = self.asks.get_mut(&(from, check))?;
        ask.open -= 1;
        ask.unrecoverable.extend(unrecoverable);
        if ask.open > 0 {
            return None;
        }
        self.asks.remove(&(from, check)).map(|ask| ask.unrecoverable)
    }

    /// Queues waiters whose wait is over. Whether the caller is to take them from the queue: somebody further up the
    /// stack may be doing that already.
    pub(in crate::partition) fn queue_unblocked(
        &mut self,
        unblocked: impl IntoIterator<Item = Unblocked<Waiter>>,
    ) -> bool {
        self.unblocked.extend(unblocked);
        !std::mem::replace(&mut self.is_unblocking, true)
    }

    /// The next waiter whose wait is over. Who takes them goes on until there is none.
    pub(in crate::partition) fn next_unblocked(&mut self) -> Option<Unblocked<Waiter>> {
        let next = self.unblocked.pop_front();
        self.is_unblocking = next.is_some();
        next
    }

    /// Panics if an entry is ready that waits, or a question is open whose answer is known. Between two turns nobody is
    /// left in the queue of those whose wait is over.
    pub(super) fn check_invariants(&self) -> usize {
        assert!(self.unblocked.is_empty() && !self.is_unblocking, "a wait is over, and nobody was unblocked");
        for ((origin, position), arrived) in &self.arrived {
            let open = arrived.open;
            assert!(!arrived.ready || open == 0, "{position} of {origin} is ready and waits for {open}");
            assert_eq!(arrived.entry.position, *position, "an entry is kept in the place of another one");
        }
        let waiting_bytes: u64 = self.arrived.values().map(|arrived| arrived.bytes).sum();
        assert_eq!(self.waiting_bytes(), waiting_bytes, "what waits is counted wrong");
        for ((from, check), ask) in &self.asks {
            let (open, most) = (ask.open, ask.dependencies.len());
            assert!((1..=most).contains(&open), "{open} of {most} are open of check {check} of {from:?}");
        }
        self.arrived.len() + self.asks.len()
    }

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
    pub fn is_unrecoverable(&self, origin: DatacenterId, position: Position) -> bool {
        self.arrived
            .get(&(origin, position))
            .is_some_and(|arrived| arrived.unrecoverable && arrived.open == 0)
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
    /// Registers and asks for what is not known to be applied; says how much that is.
    pub(in crate::partition) fn begin_checks(
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
                let unrecoverable = self.applied.unrecoverable(&dependency);
                let unrecoverable = self.of_what_is_discarded(cx, Some(origin), unrecoverable);
                self.inbound.learn_unrecoverable(origin, position, unrecoverable);
            }
        }
        let entry = (origin, position);
        for (partition, dependencies) in elsewhere {
            let check = cx.number();
            let (origin, asked) = (Some(origin), dependencies.clone());
            let message = Message::CheckDependencies { check, origin, dependencies: asked };
            self.inbound.checks.insert(check, Check { partition, dependencies, entry });
            cx.send_local(partition, message);
            open += 1;
        }
        if let Some(arrived) = self.inbound.arrived.get_mut(&(origin, position)) {
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
        (check, origin, asked): (u64, Option<DatacenterId>, Vec<Dependency>),
    ) {
        if asked.iter().any(|dependency| dependency.operation.partition != cx.id) {
            return cx.trace(Trace::Refused { what: "a dependency check for another partition" });
        }
        self.forget_ask(from, check);
        let (mut dependencies, mut unrecoverable) = (Vec::new(), Vec::new());
        for dependency in asked {
            let is_own = dependency.operation.datacenter == cx.datacenter;
            if cx.is_refused_as_never_issued(from, &dependency.operation) {
                unrecoverable.push(dependency);
            } else if !is_own && !self.applied.meets(&dependency) {
                self.applied.wait(&dependency, Waiter::Ask(from, check));
                dependencies.push(dependency);
            } else {
                self.count_lost(cx, &dependency);
                let found = self.applied.unrecoverable(&dependency);
                unrecoverable.extend(self.of_what_is_discarded(cx, origin, found));
            }
        }
        if dependencies.is_empty() {
            return cx.send(from, Message::DependenciesMet { check, unrecoverable });
        }
        let open = dependencies.len();
        self.inbound.asks.insert((from, check), Ask { dependencies, open, unrecoverable, origin });
    }

    fn forget_ask(&mut self, from: Address, check: u64) {
        let Some(ask) = self.inbound.asks.remove(&(from, check)) else { return };
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
            self.loss_counts.dependencies += 1;
            cx.trace(Trace::DependsOnLost { partition: cx.id, operation: dependency.operation });
        }
    }

    /// What is unrecoverable, if a write of this origin is discarded for that; a session is told of everything. Else it
    /// is lost, and counted.
    pub(in crate::partition) fn of_what_is_discarded(
        &mut self,
        cx: &mut Cx,
        origin: Option<DatacenterId>,
        unrecoverable: Option<Dependency>,
    ) -> Option<Dependency> {
        let unrecoverable = unrecoverable?;
        if origin.is_none_or(|origin| self.applied.discards(origin, &unrecoverable)) {
            return Some(unrecoverable);
        }
        if unrecoverable.extent == Extent::Exact {
            self.loss_counts.dependencies += 1;
            cx.trace(Trace::DependsOnLost { partition: cx.id, operation: unrecoverable.operation });
        }
        None
    }

    /// Those behind a broken link will ask again, or have given up.
    pub(in crate::partition) fn forget_asks(&mut self, is_behind: &dyn Fn(Address) -> bool) {
        let behind = self.inbound.asks.keys().copied().filter(|(from, _)| is_behind(*from));
        for (from, check) in behind.collect::<Vec<_>>() {
            self.forget_ask(from, check);
        }
    }

    /// An entry of the own stream was logged: it is applied here by that.
    pub(crate) fn own_entry_applied(&mut self, cx: &Cx) {
        self.applied.through(cx.datacenter, cx.position);
    }
}

impl Inbound {
    /// An arrived entry is discarded for something that it depends on.
    fn learn_unrecoverable(
        &mut self,
        origin: DatacenterId,
        position: Position,
        unrecoverable: Option<Dependency>,
    ) {
        if let (Some(_), Some(arrived)) = (unrecoverable, self.arrived.get_mut(&(origin, position))) {
            arrived.unrecoverable = true;
        }
    }

    /// After a link broke: repeats the checks that went over it.
    pub(in crate::partition) fn repeat_dependency_checks(
        &mut self,
        cx: &mut Cx,
        owns: &dyn Fn(PartitionId) -> bool,
    ) {
        let again = |(number, check): (&u64, &Check)| {
            (*number, check.partition, check.entry.0, check.dependencies.clone())
        };
        let open: Vec<_> = self.checks.iter().filter(|(_, check)| owns(check.partition)).map(again).collect();
        for (check, partition, origin, dependencies) in open {
            let origin = Some(origin);
            cx.send_local(partition, Message::CheckDependencies { check, origin, dependencies });
        }
    }
}

pub(in crate::partition) fn rows_of(entry: &Entry) -> Vec<RowName> {
    let (Change::Effects { keyspace, effects, .. } | Change::Flush { keyspace, effects }) = &entry.change
    else {
        return Vec::new();
    };
    let mut rows: Vec<RowName> = effects.iter().map(|effect| (*keyspace, effect.key.clone())).collect();
    rows.sort_unstable();
    rows.dedup();
    rows
}

impl Replication {
    /// How many entries have waited for long for writes of which datacenter, by figure.
    pub(in crate::partition) fn overdue(&self, cx: &Cx) -> Vec<(String, u64)> {
        let long_ago_us = cx.now.monotonic_us.saturating_sub(1_000 * limits::OVERDUE_MS);
        let waiting = self.inbound.waiting_since(long_ago_us, &self.applied);
        let named = waiting.into_iter().filter_map(|(awaited, entries)| {
            // What an entry names is its origin's word.
            let awaited = cx.config.topology.datacenters.get(usize::from(awaited.0))?;
            Some((format!("overdue_for_{}_entries", awaited.name), entries as u64))
        });
        named.collect()
    }

    /// At the coordinator: whether a transaction of a dead datacenter is never shown.
    pub(crate) fn is_transaction_unrecoverable(&self, transaction: OperationId) -> bool {
        let exact = Dependency { operation: transaction, extent: Extent::Exact };
        self.applied.unrecoverable(&exact).is_some()
    }
}
