//! Commits of other sites on keyspaces with branches: shown when the states are here that they were made below.
//!
//! Until then the entry of a commit counts as not applied. What it was made below and is nowhere, since its datacenter
//! is dead and all that live say that they lack it, goes, and what was made below that.

use super::Visibility;
pub(in crate::partition) use crate::trace::Trace;
use bytes::Bytes;
use ensue_branch::{Note, Offered, StateId};
use ensue_types::{DatacenterId, Incarnation, KeyspaceId, Position};
use std::collections::BTreeSet;

impl Visibility<'_> {
    /// An entry of another datacenter is here and logged.
    pub(in crate::partition) fn arrive_on_branch(
        &mut self,
        origin: DatacenterId,
        keyspace: KeyspaceId,
        position: Position,
        note: &Bytes,
    ) {
        if !self.keyspaces.branching.is_branching(keyspace) {
            return self
                .cx
                .trace(Trace::Refused { what: "a commit of a keyspace that has no branches here" });
        }
        match Note::decode(note.clone()) {
            Ok(Note::Commit(commit)) => {
                let offered = self.keyspaces.branching.branches(keyspace).offer((origin, position), commit);
                let waits = !offered.applied.contains(&(origin, position));
                self.take_offered(keyspace, offered);
                if waits {
                    self.others.replication.inbound.count_wait(origin, position);
                }
            }
            Ok(Note::Ceiling(state)) => {
                // What it lets go is collected in time: a datacenter with many leaves tells as many ceilings at once.
                self.keyspaces.branching.branches(keyspace).offer_ceiling(origin, state);
                self.show_on_branch(origin, position);
            }
            // It stays, counted as waiting, until an operator looks.
            Err(_) => {
                self.cx.trace(Trace::Refused { what: "a note of a branching keyspace that cannot be read" })
            }
        }
    }

    pub(in crate::partition) fn take_offered(&mut self, keyspace: KeyspaceId, offered: Offered) {
        let came = offered.applied.len() as u64;
        for (origin, position) in offered.applied {
            if origin != self.cx.datacenter {
                self.show_on_branch(origin, position);
            }
        }
        self.others.replication.count_lost_dependencies(offered.discarded.len());
        self.keyspaces.fetch(self.cx, self.others, keyspace, &offered.late);
        self.keyspaces.count_states(self.cx, self.others, keyspace, came);
    }

    /// A datacenter lives on without what it lost before this incarnation, or is dead and all that is left of it is
    /// here.
    pub(in crate::partition) fn lose_branches(&mut self, origin: DatacenterId, life: Incarnation) {
        let keyspaces: Vec<KeyspaceId> = self.keyspaces.branching.numbers();
        for keyspace in keyspaces {
            let offered = self.keyspaces.branching.branches(keyspace).lose_before(origin, life);
            self.take_offered(keyspace, offered);
        }
    }

    /// A received entry has its place.
    fn show_on_branch(&mut self, origin: DatacenterId, position: Position) {
        let Some(time) =
            self.others.replication.inbound.entry(origin, position).map(|entry| entry.stamp.time)
        else {
            return;
        };
        let at = self.cx.tick();
        self.mark_applied(origin, position.incarnation(), position, at);
        self.others.note_applied(origin, position, time);
        self.note_visible(origin, time);
    }

    /// What came late from a dead datacenter, and no living one has, can be put in its place nowhere: it goes,
    /// everywhere.
    fn abandon_late(&mut self, keyspace: KeyspaceId, late: &[StateId]) {
        let late_set: BTreeSet<StateId> = late.iter().copied().collect();
        self.keyspaces.branching.retain_late(keyspace, &late_set);
        for &state in late {
            if !self.others.failover.failed.is_settled(state.site()) {
                continue;
            }
            if !self.keyspaces.branching.branches(keyspace).lacks_for_good(state) {
                self.keyspaces.branching.want_checkpoint();
                continue;
            }
            let branching = &self.keyspaces.branching;
            if self.others.living().all(|other| branching.is_lacking(keyspace, state, other)) {
                let offered = self.keyspaces.branching.branches(keyspace).give_up(state);
                self.take_offered(keyspace, offered);
            }
        }
    }

    /// What time brings: transactions that nobody goes on with end, ceilings are told, and what came late is
    /// asked for again.
    pub(in crate::partition) fn maintain_branches(&mut self) {
        let idle_us = 1_000 * self.cx.config.tuning.branching.transaction_timeout_ms;
        let limit_us = self.cx.now.monotonic_us.saturating_sub(idle_us);
        for seat in self.keyspaces.branching.idle_since(limit_us) {
            self.keyspaces.branching.end_sitting(seat);
        }
        self.keyspaces.branching.want_no_checkpoint();
        let gone: Vec<DatacenterId> = self
            .others
            .failover
            .failed
            .datacenters()
            .filter(|d| self.others.failover.failed.is_settled(*d))
            .collect();
        let keyspaces: Vec<KeyspaceId> = self.keyspaces.branching.numbers();
        // Nobody waits for what a dead datacenter took with it, once all that it has said is here.
        gone.iter().for_each(|datacenter| self.lose_branches(*datacenter, Incarnation(u16::MAX)));
        for keyspace in keyspaces {
            // Nor for its ceilings.
            gone.iter()
                .for_each(|datacenter| self.keyspaces.branching.branches(keyspace).forget_site(*datacenter));
            self.keyspaces.notify_ceilings(self.cx, self.others, keyspace);
            // By consent nothing comes late; but what this one collected alone, before it was started with another
            // option, is collected.
            let late = self.keyspaces.branching.branches(keyspace).late();
            self.keyspaces.fetch(self.cx, self.others, keyspace, &late);
            self.abandon_late(keyspace, &late);
        }
    }
}
