//! The rows of a partition, and who writes to them in which order.

pub(in crate::partition) mod accesses;
pub(in crate::partition) mod acknowledge;
pub(in crate::partition) mod branches;
mod called;
pub(in crate::partition) mod conflicts;
pub(in crate::partition) mod contexts;
pub(in crate::partition) mod evict;
pub(in crate::partition) mod execute;
pub(in crate::partition) mod failed;
pub(in crate::partition) mod functions;
pub(in crate::partition) mod metrics;
pub(in crate::partition) mod paused;
pub(in crate::partition) mod replay;
pub(in crate::partition) mod scripts;
pub(in crate::partition) mod snapshot;
pub(in crate::partition) mod times;
pub(in crate::partition) mod uses;
pub(in crate::partition) mod watched;

use crate::config::{NodeConfig, Settings};
use crate::handlers::HandlerTable;
use crate::partition::branching::Branching;
use crate::partition::cx::{Cx, Protocols};
use crate::partition::order::RowOrder;
use crate::partition::others::Others;
use crate::partition::work::Work;
use accesses::{Accesses, Policy};
use bytes::Bytes;
use called::ScriptCalls;
use conflicts::ConflictLog;
use contexts::Contexts;
use ensue_script::Scripts;
use ensue_store::keyspace::{Keyspace, Sites, Written};
use ensue_types::{KeyspaceId, LogicalTime, PartitionId, Stamp, limits};
use paused::{BUSY_AFTER_MS, PausedScript};
use snapshot::ReadCounts;
use std::sync::Arc;
use times::TrimPass;

/// Columns that were removed with their rows are freed so often where nothing else happens.
const FREEING_INTERVAL_US: u64 = 1_000;

/// The rows, and who writes to them in which order.
#[derive(Clone, Debug)]
pub(crate) struct Keyspaces {
    keyspaces: Vec<Keyspace>,
    pub(in crate::partition) order: RowOrder<Work>,
    /// Keyspaces that are states and not rows.
    pub(in crate::partition) branching: Branching,
    pub(in crate::partition) conflict_log: ConflictLog,
    /// Contexts that sessions share by name.
    pub(in crate::partition) contexts: Contexts,
    pub(in crate::partition) counts: ReadCounts,
    /// What clients have this datacenter know.
    scripts: Scripts,
    /// They were forgotten, which the sessions of this core have yet to learn.
    scripts_flushed: bool,
    /// Scripts that were run: none has the chance of another.
    scripts_run: u32,
    /// What scripts call is told to cores, which is noted in `called`.
    reports_calls: bool,
    called: ScriptCalls,
    /// A script that has paused: nothing else of this partition happens until it ends.
    paused: Option<Box<PausedScript>>,
    /// After so many milliseconds of a script commands are refused; 0 is never.
    busy_after_ms: u64,
    /// Of each keyspace, the locations that have not been looked at since the floor, or `read_since`, last rose.
    unfolded: Vec<usize>,
    /// No read transaction may need what was replaced before this time, in keyspaces that keep it for them.
    read_since: LogicalTime,
    /// Of each keyspace, how far it has been forgotten what settled values carry.
    forgetting: Vec<TrimPass>,
    /// What received entries take that wait for others.
    waiting_bytes: u64,
    /// Bytes of rows above which local writes are refused; 0 is no bound.
    memory_max: u64,
    /// Which rows are evicted beyond that, and what it takes to choose them.
    accesses: Accesses,
    /// Bytes that rows have yet to give back because the bound was set below what they took.
    excess: u64,
    /// Rows that were evicted, and such whose deadline had passed.
    evicted: u64,
    evicted_expired: u64,
    /// What deadlines take beside their rows.
    deadline_bytes: u64,
    /// Something has expired and is not deleted in time, because a datacenter cannot be reached.
    expires_late: bool,
    /// Who listens for events was told of deadlines up to this one.
    reported_ms: u64,
    followers: Followers,
    /// Whether the next evaluation may remove all columns of a row by one effect.
    removes_rows: bool,
    /// Whether columns that were removed so have yet to be freed.
    is_freeing: bool,
}

/// How many other datacenters must follow for writes to be taken: they have all but what was written so lately.
#[derive(Clone, Copy, Debug, Default)]
struct Followers {
    count: u64,
    lag_ms_max: u64,
}

impl Keyspaces {
    /// Panics if what is counted of the rows differs from the rows. It walks all of them.
    pub(in crate::partition) fn check_invariants(&self) {
        self.keyspaces.iter().for_each(Keyspace::check_invariants);
    }

    pub(in crate::partition) fn new(
        id: PartitionId,
        config: &NodeConfig,
        protocols: &Protocols,
    ) -> Keyspaces {
        let names = config.topology.datacenters.iter().map(|datacenter| datacenter.name.clone()).collect();
        let sites = Sites { own: config.topology.datacenter, names };
        let keyspaces = (0..usize::from(limits::KEYSPACES)).map(|number| {
            let needs = protocols.get(number).map(|protocol| protocol.needs()).unwrap_or_default();
            let keyspace = Keyspace::new(needs.versions).with_columns_max(config.tuning.row_columns_max);
            let keyspace = keyspace.with_sites(sites.clone());
            let table = HandlerTable::of_keyspace(KeyspaceId(number as u8), &config.handlers);
            if needs.siblings { keyspace.with_siblings(Arc::new(table)) } else { keyspace }
        });
        Keyspaces {
            keyspaces: keyspaces.collect(),
            order: RowOrder::default(),
            branching: Branching::new(id, config, protocols),
            conflict_log: Default::default(),
            contexts: Default::default(),
            counts: ReadCounts::default(),
            scripts: Scripts::new(scripts::limits_of(&config.tuning)),
            scripts_flushed: false,
            scripts_run: 0,
            reports_calls: false,
            called: ScriptCalls::default(),
            paused: None,
            busy_after_ms: BUSY_AFTER_MS,
            unfolded: vec![0; usize::from(limits::KEYSPACES)],
            read_since: LogicalTime::ZERO,
            forgetting: vec![TrimPass::default(); usize::from(limits::KEYSPACES)],
            accesses: Accesses::of_policy(Policy::named(&config.maxmemory_policy)),
            waiting_bytes: 0,
            excess: 0,
            evicted: 0,
            evicted_expired: 0,
            deadline_bytes: 0,
            expires_late: false,
            reported_ms: 0,
            followers: Followers::default(),
            removes_rows: false,
            is_freeing: false,
            memory_max: config.maxmemory.div_ceil(config.own_partitions().count().max(1) as u64),
        }
    }

    /// Each keyspace, in the order of their numbers.
    pub(in crate::partition) fn each(&self) -> impl Iterator<Item = &Keyspace> {
        self.keyspaces.iter()
    }

    pub(in crate::partition) fn each_mut(&mut self) -> impl Iterator<Item = &mut Keyspace> {
        self.keyspaces.iter_mut()
    }

    /// The rows of a keyspace, if there is one of this number.
    pub(in crate::partition) fn rows(&self, keyspace: KeyspaceId) -> Option<&Keyspace> {
        self.keyspaces.get(usize::from(keyspace.0))
    }

    /// Nothing older than a flush can arrive: gives back some of what it hides. Answers whether there may be more.
    pub(in crate::partition) fn sweep_hidden(
        &mut self,
        keyspace: KeyspaceId,
        flush: Stamp,
        budget: usize,
    ) -> bool {
        let order = &self.order;
        let is_busy = |key: &[u8]| !order.is_idle() && order.is_busy(keyspace, &Bytes::copy_from_slice(key));
        self.keyspaces[usize::from(keyspace.0)].sweep_hidden(flush, budget, &is_busy)
    }

    /// Frees some of the columns that were removed with their rows.
    pub(in crate::partition) fn free_ended(&mut self) {
        self.is_freeing = self.keyspaces.iter_mut().fold(false, |more, rows| rows.free_ended() | more);
    }

    /// When more of them are to be freed, if nothing else happens before.
    pub(in crate::partition) fn next_freeing_us(&self, cx: &Cx) -> Option<u64> {
        self.is_freeing.then_some(cx.now.monotonic_us + FREEING_INTERVAL_US)
    }

    /// Whether the scripts were forgotten since this was last asked: the sessions of this core have yet to learn it.
    pub(crate) fn take_scripts_flushed(&mut self) -> bool {
        std::mem::take(&mut self.scripts_flushed)
    }

    /// From now on changes of rows are noted, and what scripts call; or no longer.
    pub(in crate::partition) fn note_written(&mut self, is_wanted: bool) {
        self.reports_calls = is_wanted;
        self.keyspaces.iter_mut().for_each(|rows| rows.note_written(is_wanted));
    }

    /// The changes of rows that have been noted since the last call.
    pub(in crate::partition) fn take_all_written(&mut self) -> Vec<(KeyspaceId, Written)> {
        let numbered = (0..).map(KeyspaceId).zip(&mut self.keyspaces);
        numbered
            .flat_map(|(number, rows)| rows.take_written(0).into_iter().map(move |one| (number, one)))
            .collect()
    }

    /// How many rows were evicted.
    pub(in crate::partition) fn evicted(&self) -> u64 {
        self.evicted
    }

    /// What is bounded from now on, and how: rows that take more memory are evicted, or writes refused.
    pub(in crate::partition) fn adopt(&mut self, settings: &Settings<'_>) {
        let Settings { memory, shrinks, policy, followers, follower_lag_s, busy_after_ms, .. } = *settings;
        self.accesses.set_policy(Policy::named(policy));
        self.followers = Followers { count: followers, lag_ms_max: follower_lag_s.saturating_mul(1_000) };
        self.busy_after_ms = busy_after_ms;
        let before = std::mem::replace(&mut self.memory_max, memory);
        let is_lower = shrinks && self.memory_max > 0 && (before == 0 || self.memory_max < before);
        let above = if is_lower { u64::MAX } else { self.excess };
        self.excess = above.min(self.bytes_above());
    }

    /// A partition that begins anew is bounded as it was before.
    pub(in crate::partition) fn take_over_bounds(&mut self, before: &Keyspaces) {
        self.accesses.set_policy(before.accesses.policy());
        self.followers = before.followers;
        self.busy_after_ms = before.busy_after_ms;
        self.memory_max = before.memory_max;
    }

    pub(crate) fn keyspace(&mut self, keyspace: KeyspaceId) -> &mut Keyspace {
        &mut self.keyspaces[usize::from(keyspace.0)]
    }

    /// Forgets past states whose read transactions are over, and which writes made large rows.
    pub(in crate::partition) fn sweep(&mut self, cx: &Cx, others: &Others) {
        let now_ms = cx.now.monotonic_us / 1_000;
        for rows in &mut self.keyspaces {
            rows.sweep_marks(now_ms);
        }
        for (number, (rows, protocol)) in self.keyspaces.iter_mut().zip(cx.protocols.iter()).enumerate() {
            let keyspace = KeyspaceId(number as u8);
            // Who remembers everything remembers the latest times of all, and no write by itself.
            let remembers_settled = protocol.needs().remembers_settled;
            rows.summarise(&|operation| remembers_settled || others.is_settled(cx, keyspace, operation));
        }
    }
}
