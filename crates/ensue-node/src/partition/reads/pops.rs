//! Pops that have found nothing and wait.
//!
//! - *In the order of arrival.* A pop has a number from when it first waits, and keeps it as long as it waits.
//! - *No wake-up is lost.* What is looked at and what waits are one step of the partition. A pop that was elsewhere
//!   meanwhile, because its session's past was not here, or its row had an undecided transaction, looks again.
//! - *Woken when it can be read.* A change to a row wakes the first that wait there. What they do not see yet, because
//!   their view does not show it, is tried again when a time rises.
//! - *Bounded.* A session waits once. Its pop goes when it is answered, withdrawn, or when its core is out of reach.
//!   One that is withdrawn while it is elsewhere does not wait when it comes.

use super::ready::Ready;
use crate::partition::keyspaces::Keyspaces;
use crate::partition::order::RowName;
use crate::partition::work::Execution;
use ensue_resp::request::{Awaited, Blocking, WaitingPop};
use ensue_store::keyspace::Keyspace;
use ensue_types::{Args, KeyspaceId, RequestId, SessionId, TimeVector};
use ensue_wire::Address;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// A session, as it asks a partition.
type Requester = (Address, u32, SessionId);

/// So many pops are known as withdrawn that have not come to wait; each has been answered, or is about to come.
const WITHDRAWN_MAX: usize = 4_096;

/// The number of a pop that waits.
pub(crate) type PopId = u64;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct WaitingPops {
    next: PopId,
    waiting: BTreeMap<PopId, Waiting>,
    /// Which of them is a session's.
    ids: BTreeMap<Requester, PopId>,
    rows: BTreeMap<RowName, BTreeSet<PopId>>,
    /// Rows at which there may be something.
    ready: Ready,
    /// Rows at which there is something that was not visible to whom it was offered.
    unseen: BTreeSet<RowName>,
    /// Sessions that have withdrawn a pop that did not wait here, and with which request.
    withdrawn: BTreeMap<Requester, u64>,
    /// What was stable then.
    stable: TimeVector,
    /// Who is being offered something.
    offered: Option<PopId>,
}

#[derive(Clone, Debug)]
struct Waiting {
    execution: Box<Execution>,
    pop: WaitingPop,
}

impl Waiting {
    fn rows(&self) -> Vec<RowName> {
        self.pop.keys().into_iter().map(|key| (self.execution.keyspace, key)).collect()
    }
}

impl WaitingPops {
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// How many rows are waited for, and at how many of them somebody also waits for their end.
    pub(crate) fn rows_counts(&self) -> (usize, usize) {
        let of_group = |id: &PopId| {
            self.waiting.get(id).is_some_and(|waiting| matches!(waiting.pop, WaitingPop::Delivered(_)))
        };
        let ending = self.rows.values().filter(|ids| ids.iter().any(of_group)).count();
        (self.rows.len(), ending)
    }

    /// Panics if a pop waits at a row that would not wake it, or a row would wake one that does not wait.
    pub(super) fn check_invariants(&self, keyspaces: &Keyspaces) -> usize {
        assert!(self.offered.is_none(), "something is offered between two turns");
        for (id, waiting) in &self.waiting {
            assert!(*id <= self.next, "pop {id} waits, and {} was the last", self.next);
            for row in waiting.rows() {
                let waits = self.rows.get(&row).is_some_and(|ids| ids.contains(id));
                assert!(waits, "pop {id} waits at {row:?}, which does not know it");
            }
        }
        let waits_at =
            |id: &PopId, row| self.waiting.get(id).is_some_and(|waiting| waiting.rows().contains(row));
        for (row, ids) in &self.rows {
            assert!(!ids.is_empty() && ids.iter().all(|id| waits_at(id, row)), "nobody waits at {row:?}");
            let is_awaited = keyspaces.rows(row.0).is_some_and(|rows| rows.is_awaited(&row.1));
            assert!(is_awaited, "pops wait at {row:?}, whose changes are not noted");
        }
        let awaited: usize = keyspaces.each().map(Keyspace::awaited_count).sum();
        assert_eq!(awaited, self.rows.len(), "changes are noted of rows at which nobody waits");
        let strange = self.ready.iter().chain(&self.unseen).find(|row| !self.rows.contains_key(*row));
        assert!(strange.is_none(), "{strange:?} would wake somebody, and nobody waits there");
        assert!(self.withdrawn.len() <= WITHDRAWN_MAX, "withdrawn pops have no bound");
        self.waiting.len() + self.rows.len()
    }

    pub(in crate::partition) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Something is offered to one that waits, until `end_offer`.
    pub(in crate::partition) fn offer(&mut self, id: PopId) {
        self.offered = Some(id);
    }

    pub(in crate::partition) fn end_offer(&mut self) {
        self.offered = None;
    }

    pub(in crate::partition) fn is_offering(&self) -> bool {
        self.offered.is_some()
    }

    /// Whether something is being offered to this one.
    pub(in crate::partition) fn is_offered(&self, id: PopId) -> bool {
        self.offered == Some(id)
    }

    /// The keyspaces in which some wait.
    pub(in crate::partition) fn keyspaces(&self) -> Vec<KeyspaceId> {
        let mut keyspaces: Vec<KeyspaceId> = self.rows.keys().map(|(keyspace, _)| *keyspace).collect();
        keyspaces.dedup();
        keyspaces
    }

    /// The number of a pop that begins to wait.
    pub(in crate::partition) fn next_id(&mut self) -> PopId {
        self.next += 1;
        self.next
    }

    /// The commands wait with their first one; answers the rows that nobody has waited for.
    pub(in crate::partition) fn park(
        &mut self,
        id: PopId,
        execution: Execution,
        blocking: Blocking,
    ) -> Vec<RowName> {
        let waiting = Waiting { execution: Box::new(execution), pop: blocking.pop };
        let mut new = Vec::new();
        for row in waiting.rows() {
            let ids = self.rows.entry(row.clone()).or_default();
            if ids.is_empty() {
                new.push(row);
            }
            ids.insert(id);
        }
        self.ids.insert(requester(waiting.execution.from, waiting.execution.request), id);
        self.waiting.insert(id, waiting);
        new
    }

    pub(in crate::partition) fn contains(&self, id: PopId) -> bool {
        self.waiting.contains_key(&id)
    }

    /// The commands go on; answers them, and the rows that nobody waits for any more.
    pub(in crate::partition) fn take(&mut self, id: PopId) -> Option<(Execution, Vec<RowName>)> {
        let waiting = self.waiting.remove(&id)?;
        let of_session = requester(waiting.execution.from, waiting.execution.request);
        if self.ids.get(&of_session) == Some(&id) {
            self.ids.remove(&of_session);
        }
        let mut left = Vec::new();
        for row in waiting.rows() {
            let Some(ids) = self.rows.get_mut(&row) else { continue };
            ids.remove(&id);
            if ids.is_empty() {
                self.rows.remove(&row);
                self.ready.remove(&row);
                self.unseen.remove(&row);
                left.push(row);
            }
        }
        Some((*waiting.execution, left))
    }

    /// The first that waits at a row behind another one for what is there.
    pub(in crate::partition) fn next_at(
        &self,
        row: &RowName,
        behind: Option<PopId>,
        there: Option<Awaited>,
    ) -> Option<PopId> {
        let from = behind.map_or(Bound::Unbounded, Bound::Excluded);
        let mut ids = self.rows.get(row)?.range((from, Bound::Unbounded));
        ids.find(|id| self.waiting.get(id).is_some_and(|one| one.pop.wants(there))).copied()
    }

    /// What one waits for.
    pub(in crate::partition) fn pop(&self, id: PopId) -> Option<&WaitingPop> {
        self.waiting.get(&id).map(|waiting| &waiting.pop)
    }

    /// There may be something at a row.
    pub(in crate::partition) fn wake(&mut self, row: RowName) {
        if self.rows.contains_key(&row) {
            self.ready.insert(row);
        }
    }

    pub(in crate::partition) fn pop_ready(&mut self) -> Option<RowName> {
        self.ready.pop_first()
    }

    /// What is there was not visible.
    pub(in crate::partition) fn not_seen(&mut self, row: RowName) {
        if self.rows.contains_key(&row) {
            self.unseen.insert(row);
        }
    }

    /// More may be visible if this is more than was stable when it was last looked.
    pub(in crate::partition) fn on_stable(&mut self, stable: &TimeVector) {
        if !self.unseen.is_empty() && self.stable != *stable {
            self.stable = stable.clone();
            self.look_again();
        }
    }

    /// More may be visible now.
    pub(in crate::partition) fn look_again(&mut self) {
        self.ready.append(&mut self.unseen);
    }

    /// The pop of a session.
    pub(in crate::partition) fn of_session(&self, from: Address, request: RequestId) -> Option<PopId> {
        self.ids.get(&requester(from, request)).copied()
    }

    /// The pop of a session shall not wait when it comes.
    pub(in crate::partition) fn withdraw(&mut self, from: Address, request: RequestId) {
        self.withdrawn.insert(requester(from, request), request.sequence);
        if self.withdrawn.len() > WITHDRAWN_MAX {
            self.withdrawn.pop_first();
        }
    }

    /// Whether the pop of this request was withdrawn before it came to wait. It is asked once.
    pub(in crate::partition) fn is_withdrawn(&mut self, from: Address, request: RequestId) -> bool {
        let sequence = self.withdrawn.remove(&requester(from, request));
        sequence.is_some_and(|sequence| sequence > request.sequence)
    }

    pub(in crate::partition) fn forget_withdrawn_of(&mut self, core: Address) {
        self.withdrawn.retain(|(asker, ..), _| *asker != core);
    }

    /// All that wait.
    pub(in crate::partition) fn all(&self) -> Vec<PopId> {
        self.waiting.keys().copied().collect()
    }

    /// What one waits with.
    pub(in crate::partition) fn command(&self, id: PopId) -> Option<(KeyspaceId, &Args)> {
        let execution = &self.waiting.get(&id)?.execution;
        Some((execution.keyspace, execution.commands.front()?))
    }

    /// The pops of a core's sessions.
    pub(in crate::partition) fn of_core(&self, core: Address) -> Vec<PopId> {
        let is_of = |waiting: &Waiting| waiting.execution.from == core;
        self.waiting.iter().filter(|(_, waiting)| is_of(waiting)).map(|(id, _)| *id).collect()
    }
}

fn requester(from: Address, request: RequestId) -> Requester {
    (from, request.boot, request.session)
}
