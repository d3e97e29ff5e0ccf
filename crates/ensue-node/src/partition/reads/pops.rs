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
    withdrawn: Withdrawn,
    /// What was stable then.
    stable: TimeVector,
    /// Who is being offered something.
    offered: Option<PopId>,
}

/// Sessions that have withdrawn a pop that did not wait here.
#[derive(Clone, Debug, Default)]
struct Withdrawn {
    /// With which request, and when, as a number that grows.
    known: BTreeMap<Requester, (u64, u64)>,
    /// The same by age: the oldest are those most likely answered.
    by_age: BTreeMap<u64, Requester>,
    next: u64,
}

impl Withdrawn {
    fn insert(&mut self, requester: Requester, sequence: u64) {
        self.remove(&requester);
        self.next += 1;
        self.known.insert(requester, (sequence, self.next));
        self.by_age.insert(self.next, requester);
        if self.known.len() > WITHDRAWN_MAX {
            if let Some((_, oldest)) = self.by_age.pop_first() {
                self.known.remove(&oldest);
            }
        }
    }

    fn remove(&mut self, requester: &Requester) -> Option<u64> {
        let (sequence, number) = self.known.remove(requester)?;
        self.by_age.remove(&number);
        Some(sequence)
    }
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
        let Withdrawn { known, by_age, .. } = &self.withdrawn;
        let is_bounded = known.len() == by_age.len() && known.len() <= WITHDRAWN_MAX;
        assert!(is_bounded, "withdrawn pops have no bound");
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
    }

    /// Whether the pop of this request was withdrawn before it came to wait. It is asked once.
    pub(in crate::partition) fn is_withdrawn(&mut self, from: Address, request: RequestId) -> bool {
        let sequence = self.withdrawn.remove(&requester(from, request));
        sequence.is_some_and(|sequence| sequence > request.sequence)
    }

    pub(in crate::partition) fn forget_withdrawn_of(&mut self, core: Address) {
        self.withdrawn.known.retain(|(asker, ..), _| *asker != core);
        self.withdrawn.by_age.retain(|_, (asker, ..)| *asker != core);
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

#[cfg(test)]
mod tests {
    use super::*;
    use ensue_types::{CoreId, DatacenterId};

    #[test]
    fn the_oldest_withdrawals_make_room_for_new_ones() {
        let from = Address::Core { datacenter: DatacenterId(0), core: CoreId(0) };
        let asked =
            |session, sequence| RequestId { core: CoreId(0), boot: 1, session: SessionId(session), sequence };
        let mut pops = WaitingPops::default();
        for session in 1..=WITHDRAWN_MAX as u64 + 1 {
            pops.withdraw(from, asked(10 + session, 2));
        }
        pops.withdraw(from, asked(1, 2));
        assert!(pops.is_withdrawn(from, asked(1, 1)), "the session with the lowest number is the latest");
        assert!(!pops.is_withdrawn(from, asked(1, 1)), "it is asked once");
        assert!(!pops.is_withdrawn(from, asked(12, 1)), "the second of the others has made room for it");
        assert!(pops.is_withdrawn(from, asked(13, 1)));
        pops.forget_withdrawn_of(from);
        assert!(pops.withdrawn.known.is_empty() && pops.withdrawn.by_age.is_empty());
    }
}
