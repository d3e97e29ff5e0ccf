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
pub(in crate::partition) struct Sitting {
    transaction: TransactionId,
    /// When it was last used.
    pub(in crate::partition) used_us: u64,
}

/// The branching keyspaces of a partition: none but in the first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Branching {
    pub(super) keyspaces: BTreeMap<KeyspaceId, Branches>,
    pub(in crate::partition) sittings: BTreeMap<Seat, Sitting>,
    /// States that came in since ceilings were last placed by themselves.
    pub(in crate::partition) since_ceilings: BTreeMap<KeyspaceId, u64>,
    /// When each state that came too late was asked for.
    pub(in crate::partition) asked: BTreeMap<(KeyspaceId, StateId), u64>,
    /// Of states that came too late from a dead datacenter: those that have said that they lack them, too.
    pub(in crate::partition) lacking: BTreeMap<(KeyspaceId, StateId), BTreeSet<DatacenterId>>,
    /// Something came too late, and only a checkpoint makes sure that it is so after a restart.
    pub(super) wants_checkpoint: bool,
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

    /// One more is declared dead: what others lacked until now it may have sent them since.
    pub(super) fn hear_again(&mut self) {
        self.lacking.clear();
        self.ask_again();
    }

    /// What was asked for may not have arrived, or others may have it now.
    pub(super) fn ask_again(&mut self) {
        self.asked.clear();
    }

    /// Whether a commit of another datacenter has a name that could follow those that are known here.
    pub(super) fn may_follow(&self, keyspace: KeyspaceId, commit: &Commit) -> bool {
        self.keyspaces.get(&keyspace).is_some_and(|branches| branches.may_follow(commit))
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
