//! Branching keyspaces, whose owner this partition is: states in the place of rows.
//!
//! On a command of a session: it runs in the session's open transaction, or is one of its own (`steps`, `evaluate`,
//! `walk`); `BRANCH` has a file of its own (`commands`). On a commit: it is logged as an entry of the own stream and so
//! travels, by the same road as every write. On an arriving commit: it is shown when its parents are (`stream`). What
//! waits, what is collected and what conflicts is decided by `ensue-branch`; what a value looks like is known here
//! alone (`value`).
//!
//! Transactions live in memory: one that is idle for too long is over, and so are all when the owner restarts. A
//! session that thinks it has one is told, at every command, until it ends it.

pub(in crate::partition) mod commands;
mod evaluate;
pub(in crate::partition) mod steps;
mod stream;
mod value;
mod walk;

use crate::config::NodeConfig;
use ensue_branch::{Branches, Commit, Options, StateId, TransactionId};
use ensue_protocol::Protocol;
use ensue_types::{CoreId, DatacenterId, KeyspaceId, PartitionId, RequestId, SessionId};
use std::collections::{BTreeMap, BTreeSet};
pub(super) use stream::note_of;

/// A session, as the owner of its keyspace knows it.
pub(in crate::partition) type Seat = (CoreId, u32, SessionId, KeyspaceId);

/// A transaction that a session has open.
#[derive(Clone, Copy, Debug)]
struct Sitting {
    transaction: TransactionId,
    /// When it was last used.
    used_us: u64,
}

/// The branching keyspaces of a partition: none but in the first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Branching {
    keyspaces: BTreeMap<KeyspaceId, Branches>,
    sittings: BTreeMap<Seat, Sitting>,
    /// States that came in since ceilings were last placed by themselves.
    since_ceilings: BTreeMap<KeyspaceId, u64>,
    /// When each state that came too late was asked for.
    asked: BTreeMap<(KeyspaceId, StateId), u64>,
    /// Of states that came too late from a dead datacenter: those that have said that they lack them, too.
    lacking: BTreeMap<(KeyspaceId, StateId), BTreeSet<DatacenterId>>,
    /// Something came too late, and only a checkpoint makes sure that it is so after a restart.
    wants_checkpoint: bool,
}

impl Branching {
    pub(crate) fn new(
        partition: PartitionId,
        config: &NodeConfig,
        protocols: &[Box<dyn Protocol>],
    ) -> Branching {
        let topology = &config.topology;
        let options = Options {
            collection: config.tuning.branching.collection,
            states_max: config.tuning.branching.states_max,
            leaves_max: config.tuning.branching.leaves_max,
        };
        let is_owner = partition == PartitionId(0);
        let numbers = (0..protocols.len()).filter(|&number| is_owner && protocols[number].needs().branches);
        let keyspaces = numbers.map(|number| {
            let branches = Branches::new(topology.datacenter, topology.others(), options.clone());
            (KeyspaceId(number as u8), branches)
        });
        Branching { keyspaces: keyspaces.collect(), ..Branching::default() }
    }

    /// Panics if something is known of a keyspace that does not branch. Answers at how many things it looked.
    pub(in crate::partition) fn check_invariants(&self) -> usize {
        let asked = self.asked.keys().chain(self.lacking.keys()).map(|(keyspace, _)| keyspace);
        let mut known = asked.chain(self.since_ceilings.keys());
        let branches = |keyspace: &KeyspaceId| self.keyspaces.contains_key(keyspace);
        assert!(known.all(branches), "of a keyspace that does not branch: {self:?}");
        self.asked.len() + self.lacking.len()
    }

    /// The branching keyspaces.
    pub(in crate::partition) fn numbers(&self) -> Vec<KeyspaceId> {
        self.keyspaces.keys().copied().collect()
    }

    /// Each of them.
    pub(in crate::partition) fn each(&self) -> impl Iterator<Item = (KeyspaceId, &Branches)> {
        self.keyspaces.iter().map(|(keyspace, branches)| (*keyspace, branches))
    }

    pub(in crate::partition) fn each_mut(&mut self) -> impl Iterator<Item = &mut Branches> {
        self.keyspaces.values_mut()
    }

    /// The branches of a keyspace, if it has any.
    pub(in crate::partition) fn of(&self, keyspace: KeyspaceId) -> Option<&Branches> {
        self.keyspaces.get(&keyspace)
    }

    /// Sessions that have not used their transactions since then.
    pub(in crate::partition) fn idle_since(&self, limit_us: u64) -> Vec<Seat> {
        let idle = self.sittings.iter().filter(|(_, sitting)| sitting.used_us < limit_us);
        idle.map(|(seat, _)| *seat).collect()
    }

    /// So many states came in. Whether that makes enough for new ceilings, one for every so many.
    pub(in crate::partition) fn count_states(&mut self, keyspace: KeyspaceId, came: u64, every: u64) -> bool {
        let since = self.since_ceilings.entry(keyspace).or_default();
        *since += came;
        let are_due = every > 0 && *since >= every;
        if are_due {
            *since = 0;
        }
        are_due
    }

    /// Of states that came late, those that are to be asked for now: not asked for, or without an answer for so long.
    pub(in crate::partition) fn take_due(
        &mut self,
        keyspace: KeyspaceId,
        late: &[StateId],
        now_us: u64,
        timeout_us: u64,
    ) -> Vec<StateId> {
        let is_due = |state: &&StateId| {
            self.asked.get(&(keyspace, **state)).is_none_or(|asked_us| now_us >= asked_us + timeout_us)
        };
        let due: Vec<StateId> = late.iter().filter(is_due).copied().collect();
        self.asked.extend(due.iter().map(|state| ((keyspace, *state), now_us)));
        due
    }

    /// Whether a state that came late was asked for, and has not come.
    pub(in crate::partition) fn is_asked(&self, keyspace: KeyspaceId, state: StateId) -> bool {
        self.asked.contains_key(&(keyspace, state))
    }

    /// It came. If it has no place here, because what it was said to come from is here no more, it is asked for anew.
    pub(in crate::partition) fn note_fetched(&mut self, keyspace: KeyspaceId, state: StateId) {
        self.asked.remove(&(keyspace, state));
    }

    /// Another datacenter lacks a state that came late here.
    pub(in crate::partition) fn note_lacking(
        &mut self,
        keyspace: KeyspaceId,
        state: StateId,
        from: DatacenterId,
    ) {
        self.lacking.entry((keyspace, state)).or_default().insert(from);
    }

    /// Whether it has said so.
    pub(in crate::partition) fn is_lacking(
        &self,
        keyspace: KeyspaceId,
        state: StateId,
        from: DatacenterId,
    ) -> bool {
        self.lacking.get(&(keyspace, state)).is_some_and(|said| said.contains(&from))
    }

    /// Only these are late now: what was asked and said of others of this keyspace is forgotten.
    pub(in crate::partition) fn retain_late(&mut self, keyspace: KeyspaceId, late: &BTreeSet<StateId>) {
        let is_late = |of: &KeyspaceId, state: &StateId| *of != keyspace || late.contains(state);
        self.asked.retain(|(of, state), _| is_late(of, state));
        self.lacking.retain(|(of, state), _| is_late(of, state));
    }

    /// Something came too late, and only a checkpoint makes sure that it is so after a restart.
    pub(in crate::partition) fn want_checkpoint(&mut self) {
        self.wants_checkpoint = true;
    }

    /// None is wanted any more, as far as is known.
    pub(in crate::partition) fn want_no_checkpoint(&mut self) {
        self.wants_checkpoint = false;
    }

    pub(in crate::partition) fn wants_checkpoint(&self) -> bool {
        self.wants_checkpoint
    }

    /// One more is declared dead: what others lacked until now it may have sent them since.
    pub(super) fn hear_again(&mut self) {
        self.lacking.clear();
        self.request_again();
    }

    /// What was asked for may not have arrived, or others may have it now.
    pub(super) fn request_again(&mut self) {
        self.asked.clear();
    }

    /// Whether a commit of another datacenter has a name that could follow those that are known here.
    pub(super) fn may_follow(&self, keyspace: KeyspaceId, commit: &Commit) -> bool {
        self.keyspaces.get(&keyspace).is_some_and(|branches| branches.may_follow(commit))
    }

    /// The metrics of the keyspaces with branches, where there are such.
    pub(in crate::partition) fn add_metrics(&self, add: &mut impl FnMut(&str, u64)) {
        for (keyspace, branches) in self.each() {
            let metrics = branches.metrics();
            add(&format!("branch_states_{}", keyspace.0), metrics.states as u64);
            add(&format!("branch_leaves_{}", keyspace.0), metrics.leaves as u64);
            add(&format!("branch_waiting_{}", keyspace.0), metrics.waiting as u64);
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.keyspaces.values().map(|branches| branches.metrics().bytes as u64).sum()
    }
}

pub(in crate::partition) fn seat_of(request: &RequestId, keyspace: KeyspaceId) -> Seat {
    (request.core, request.boot, request.session, keyspace)
}

pub(in crate::partition) fn ids(bits: &[u64]) -> Vec<StateId> {
    bits.iter().map(|bits| StateId::from_bits(*bits)).collect()
}

impl Branching {
    pub(super) fn is_branching(&self, keyspace: KeyspaceId) -> bool {
        self.keyspaces.contains_key(&keyspace)
    }

    pub(crate) fn branches(&mut self, keyspace: KeyspaceId) -> &mut Branches {
        self.keyspaces.get_mut(&keyspace).expect("asked of branching keyspaces only")
    }
}
