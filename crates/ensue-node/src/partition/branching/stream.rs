//! What datacenters tell each other of branching keyspaces, and what comes back from the log.
//!
//! A commit that arrives is shown when its parents are here; until then its entry counts as not applied. Ceilings
//! travel in the same stream as commits, behind every commit that was made before them. What comes below a state that
//! is collected here is asked for whole, and again when an answer is overdue, until it is told; the answer is logged.
//! If its datacenter is dead and all that live say that they lack it, too, it goes.

use super::{Branching, Seat};
use crate::partition::Partition;
use crate::partition::cx::Cx;
use crate::partition::keyspaces::Keyspaces;
use crate::partition::others::Others;
use crate::partition::visibility::Visibility;
use crate::trace::Trace;
use bytes::Bytes;
use ensue_branch::{Note, Offered, Rebuilt, StateId, Tag};
use ensue_store::checkpoint::CheckpointWriter;
use ensue_store::entry::{Change, Entry};
use ensue_store::image;
use ensue_store::record::Record;
use ensue_types::{DatacenterId, Incarnation, KeyspaceId, Position};
use ensue_wire::{Address, Message};
use std::collections::BTreeSet;

impl Branching {
    /// The same, read from the log: what this lets go on has a record of its own behind it, or waits to be taken up.
    pub(in crate::partition) fn replay_lost_branches(&mut self, origin: DatacenterId, life: Incarnation) {
        for branches in self.keyspaces.values_mut() {
            branches.lose_before(origin, life);
        }
    }

    /// An entry read from the log, or one that came back from another datacenter.
    pub(in crate::partition) fn replay_on_branch(
        &mut self,
        origin: DatacenterId,
        keyspace: KeyspaceId,
        position: Position,
        note: &Bytes,
    ) {
        let Some(branches) = self.keyspaces.get_mut(&keyspace) else { return };
        match Note::decode(note.clone()) {
            // What this lets go on has a record of its own behind it, or waits to be taken up.
            Ok(Note::Commit(commit)) => drop(branches.offer((origin, position), commit)),
            Ok(Note::Ceiling(state)) => branches.offer_ceiling(origin, state),
            Err(_) => {}
        }
    }

    pub(in crate::partition) fn replay_rebuilt(&mut self, keyspace: KeyspaceId, rebuilt: Bytes) {
        let Some(branches) = self.keyspaces.get_mut(&keyspace) else { return };
        if let Ok(rebuilt) = Rebuilt::decode(rebuilt) {
            branches.accept(&rebuilt);
        }
    }

    /// This partition lives in this incarnation: states that it makes carry it.
    pub(in crate::partition) fn branches_live_on(&mut self, cx: &Cx) {
        let incarnation = cx.incarnation;
        for branches in self.keyspaces.values_mut() {
            branches.begin_incarnation(incarnation);
        }
    }
}

impl Keyspaces {
    /// Asks for what came late, and not again while an answer may be on its way: each makes whoever has it look at all
    /// keys.
    pub(crate) fn fetch(&mut self, cx: &mut Cx, others: &mut Others, keyspace: KeyspaceId, late: &[StateId]) {
        let now_us = cx.now.monotonic_us;
        let timeout_us = 1_000 * cx.config.tuning.request_timeout_ms;
        let asked = &mut self.branching.asked;
        let is_due = |state: &&StateId| {
            asked.get(&(keyspace, **state)).is_none_or(|asked_us| now_us >= asked_us + timeout_us)
        };
        let due: Vec<StateId> = late.iter().filter(is_due).copied().collect();
        if due.is_empty() {
            return;
        }
        asked.extend(due.iter().map(|state| ((keyspace, *state), now_us)));
        let live: Vec<u64> = self.branching.branches(keyspace).states().map(StateId::bits).collect();
        for state in due {
            // Whoever has it has it whole; of a dead datacenter's any other may have it.
            let asked: Vec<DatacenterId> = match others.failover.dead.contains(state.site()) {
                true => others
                    .replication
                    .senders
                    .keys()
                    .filter(|other| !others.failover.dead.contains(**other))
                    .copied()
                    .collect(),
                false => vec![state.site()],
            };
            for datacenter in asked {
                let to = Address::Partition { datacenter, partition: cx.id };
                cx.send(to, Message::BranchFetch { keyspace, state: state.bits(), live: live.clone() });
            }
        }
    }

    pub(in crate::partition) fn on_branch_fetch(
        &mut self,
        cx: &mut Cx,
        others: &Others,
        from: Address,
        keyspace: KeyspaceId,
        state: u64,
        live: &[u64],
    ) {
        let Some(branches) = self.branching.keyspaces.get(&keyspace) else { return };
        let id = StateId::from_bits(state);
        if let Some(rebuilt) = branches.rebuild(id, &super::ids(live)) {
            cx.send(from, Message::BranchFetched { keyspace, rebuilt: rebuilt.encode() });
        } else if others.failover.dead.is_settled(id.site()) && branches.lacks_for_good(id) {
            let dead = others.failover.dead.datacenters().collect();
            cx.send(from, Message::BranchLacking { keyspace, state, dead });
        }
    }

    /// Another one lacks what came late here. It counts only from who takes nothing from any whom this one knows to be
    /// dead: a dead one may have had it, and sent it whole.
    pub(in crate::partition) fn on_branch_lacking(
        &mut self,
        others: &Others,
        from: DatacenterId,
        keyspace: KeyspaceId,
        state: u64,
        dead: &[DatacenterId],
    ) {
        let Some(branches) = self.branching.keyspaces.get(&keyspace) else { return };
        let state = StateId::from_bits(state);
        let is_late = branches.late().contains(&state);
        if is_late && others.failover.dead.datacenters().all(|datacenter| dead.contains(&datacenter)) {
            self.branching.lacking.entry((keyspace, state)).or_default().insert(from);
        }
    }

    /// States came in: places ceilings when there were enough of them.
    pub(in crate::partition) fn count_states(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        keyspace: KeyspaceId,
        came: u64,
    ) {
        let since = self.branching.since_ceilings.entry(keyspace).or_default();
        *since += came;
        let every = cx.config.tuning.branching.ceiling_every;
        if every > 0 && *since >= every {
            *since = 0;
            let leaves = self.branching.branches(keyspace).leaves();
            self.branching.branches(keyspace).place_ceilings(&leaves).ok();
            self.tell_ceilings(cx, others, keyspace);
        }
    }

    /// Tells the others the ceilings that nothing here reads above, and collects what is above them.
    pub(in crate::partition) fn tell_ceilings(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        keyspace: KeyspaceId,
    ) {
        if cx.is_out_of_room() {
            return;
        }
        let told = self.branching.branches(keyspace).take_ceilings();
        for state in &told {
            others.replication.log_note(cx, keyspace, &Note::Ceiling(*state));
        }
        if !told.is_empty() {
            self.collect_branch(cx, others, keyspace);
        }
    }

    /// A checkpoint on its way holds the states as they were when it began.
    fn collect_branch(&mut self, cx: &Cx, others: &Others, keyspace: KeyspaceId) {
        if !cx.is_checkpointing {
            let everywhere = others.applied_everywhere();
            self.branching.branches(keyspace).collect(|tag| holds(&everywhere, tag));
        }
    }

    /// Whatever ends may let a few states go, and finding them looks at all: not for each, but at the interval of all
    /// collection.
    pub(in crate::partition) fn collect_branches(&mut self, others: &Others) {
        if self.branching.keyspaces.is_empty() {
            return;
        }
        let everywhere = others.applied_everywhere();
        for branches in self.branching.keyspaces.values_mut() {
            branches.collect(|tag| holds(&everywhere, tag));
        }
    }
}

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
                self.take_offered(keyspace, offered);
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

    fn take_offered(&mut self, keyspace: KeyspaceId, offered: Offered) {
        let came = offered.applied.len() as u64;
        for (origin, position) in offered.applied {
            if origin != self.cx.datacenter {
                self.show_on_branch(origin, position);
            }
        }
        self.others.replication.losses.dependencies += offered.discarded.len() as u64;
        self.keyspaces.fetch(self.cx, self.others, keyspace, &offered.late);
        self.keyspaces.count_states(self.cx, self.others, keyspace, came);
    }

    /// A datacenter lives on without what it lost before this incarnation, or is dead and all that is left of it is
    /// here.
    pub(in crate::partition) fn lose_branches(&mut self, origin: DatacenterId, life: Incarnation) {
        let keyspaces: Vec<KeyspaceId> = self.keyspaces.branching.keyspaces.keys().copied().collect();
        for keyspace in keyspaces {
            let offered = self.keyspaces.branching.branches(keyspace).lose_before(origin, life);
            self.take_offered(keyspace, offered);
        }
    }

    /// A received entry has its place.
    fn show_on_branch(&mut self, origin: DatacenterId, position: Position) {
        let Some(time) = self.others.replication.intake.entry(origin, position).map(|entry| entry.stamp.time)
        else {
            return;
        };
        let at = self.cx.tick();
        self.mark_applied(origin, position.incarnation(), position, at);
        self.others.note_applied(origin, position, time);
    }

    /// What came late from a dead datacenter, and no living one has, can be put in its place nowhere: it goes,
    /// everywhere.
    fn give_up_late(&mut self, keyspace: KeyspaceId, late: &[StateId]) {
        let late_set: BTreeSet<StateId> = late.iter().copied().collect();
        let is_late = |of: &KeyspaceId, state: &StateId| *of != keyspace || late_set.contains(state);
        self.keyspaces.branching.asked.retain(|(of, state), _| is_late(of, state));
        self.keyspaces.branching.lacking.retain(|(of, state), _| is_late(of, state));
        for &state in late {
            if !self.others.failover.dead.is_settled(state.site()) {
                continue;
            }
            if !self.keyspaces.branching.branches(keyspace).lacks_for_good(state) {
                self.keyspaces.branching.wants_checkpoint = true;
                continue;
            }
            let said = self.keyspaces.branching.lacking.get(&(keyspace, state));
            if self.others.living().all(|other| said.is_some_and(|said| said.contains(&other))) {
                let offered = self.keyspaces.branching.branches(keyspace).give_up(state);
                self.take_offered(keyspace, offered);
            }
        }
    }

    /// What time brings: transactions that nobody goes on with end, ceilings are told, and what came late is
    /// asked for again.
    pub(in crate::partition) fn look_after_branches(&mut self) {
        let idle_us = 1_000 * self.cx.config.tuning.branching.transaction_timeout_ms;
        let limit_us = self.cx.now.monotonic_us.saturating_sub(idle_us);
        let sittings = self.keyspaces.branching.sittings.iter();
        let idle: Vec<Seat> =
            sittings.filter(|(_, sitting)| sitting.used_us < limit_us).map(|(seat, _)| *seat).collect();
        for seat in idle {
            self.keyspaces.branching.end_sitting(seat);
        }
        self.keyspaces.branching.wants_checkpoint = false;
        let gone: Vec<DatacenterId> = self
            .others
            .failover
            .dead
            .datacenters()
            .filter(|d| self.others.failover.dead.is_settled(*d))
            .collect();
        let keyspaces: Vec<KeyspaceId> = self.keyspaces.branching.keyspaces.keys().copied().collect();
        // Nobody waits for what a dead datacenter took with it, once all that it has said is here.
        gone.iter().for_each(|datacenter| self.lose_branches(*datacenter, Incarnation(u16::MAX)));
        for keyspace in keyspaces {
            // Nor for its ceilings.
            gone.iter()
                .for_each(|datacenter| self.keyspaces.branching.branches(keyspace).forget_site(*datacenter));
            self.keyspaces.tell_ceilings(self.cx, self.others, keyspace);
            // By consent nothing comes late; but what this one collected alone, before it was started with another
            // option, is collected.
            let late = self.keyspaces.branching.branches(keyspace).late();
            self.keyspaces.fetch(self.cx, self.others, keyspace, &late);
            self.give_up_late(keyspace, &late);
        }
    }
}

impl Partition {
    // What comes too late.

    pub(in crate::partition) fn on_branch_fetched(
        &mut self,
        from: DatacenterId,
        keyspace: KeyspaceId,
        bytes: Bytes,
    ) {
        let Ok(rebuilt) = Rebuilt::decode(bytes.clone()) else {
            return self.refuse_from(from, "a state of a branching keyspace that cannot be read");
        };
        let site = rebuilt.id.site();
        let was_asked = self.keyspaces.branching.asked.contains_key(&(keyspace, rebuilt.id))
            && (from == site || self.others.failover.dead.contains(site));
        if !was_asked {
            return; // Or it is an answer that comes twice.
        }
        let Some(branches) = self.keyspaces.branching.keyspaces.get_mut(&keyspace) else { return };
        let offered = branches.accept(&rebuilt);
        // If it has no place here, because what it was said to come from is here no more, it is asked for anew.
        self.keyspaces.branching.asked.remove(&(keyspace, rebuilt.id));
        if !offered.applied.is_empty() {
            self.cx.journal.log(&Record::Rebuilt { keyspace, rebuilt: bytes });
        }
        self.visibility().take_offered(keyspace, offered);
    }

    // Forgetting.
}

impl Branching {
    /// The states, as a checkpoint that begins now holds them.
    pub(in crate::partition) fn write_states(&mut self, writer: &mut CheckpointWriter) {
        for (keyspace, branches) in &mut self.keyspaces {
            writer.item(image::BRANCH_STATES, &item(*keyspace, &branches.encode_dag()));
        }
    }

    /// The next keys of a checkpoint: from a place in the walk over all of them, the next place, and nothing at the
    /// end.
    pub(in crate::partition) fn write_keys(
        &self,
        writer: &mut CheckpointWriter,
        (number, hash): (u8, u32),
        count: usize,
    ) -> Option<(u8, u32)> {
        let (keyspace, branches) = self.keyspaces.range(KeyspaceId(number)..).next()?;
        let from = if keyspace.0 == number { hash } else { 0 };
        let next = branches.encode_keys(from, count, |key| {
            writer.item(image::BRANCH_KEY, &item(*keyspace, key));
        });
        Some(next.map_or((keyspace.0.saturating_add(1), 0), |hash| (keyspace.0, hash)))
    }

    /// Takes an item of a checkpoint.
    pub(crate) fn restore(&mut self, kind: u8, bytes: &Bytes) -> Result<(), String> {
        let number = *bytes.first().ok_or("checkpoint: an item without a keyspace")?;
        let Some(branches) = self.keyspaces.get_mut(&KeyspaceId(number)) else {
            return Err(format!("checkpoint: keyspace {number} had branches, and has another protocol now"));
        };
        let body = bytes.slice(1..);
        let restored = match kind {
            image::BRANCH_STATES => branches.restore_dag(body),
            _ => branches.restore_key(body),
        };
        restored.map_err(|error| format!("checkpoint: keyspace {number}: {error}"))
    }
}

fn item(keyspace: KeyspaceId, body: &[u8]) -> Vec<u8> {
    [&[keyspace.0], body].concat()
}

/// Whether a place in a stream is among what every datacenter has, by how far that goes.
fn holds(everywhere: &[(DatacenterId, Position)], (origin, position): Tag) -> bool {
    everywhere.iter().any(|(datacenter, applied)| *datacenter == origin && position <= *applied)
}

/// The note of an entry of a branching keyspace.
pub(in crate::partition) fn note_of(entry: &Entry) -> Option<(KeyspaceId, &Bytes)> {
    match &entry.change {
        Change::Branch { keyspace, note } => Some((*keyspace, note)),
        _ => None,
    }
}
