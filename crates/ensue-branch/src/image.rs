//! A keyspace as a checkpoint keeps it: the DAG in one item, and one item a key; all little endian.
//!
//! ```text
//! dag:   counter u64 | base u64 | seen u32 count, each: site u8, incarnation u16, counter u64
//!        | states u32 count, lowest first, each: id u64, parents u16 count, u64 each, keys u32 count, each: key
//!          | joined u16 count, u64 each | torn from u16 count, u64 each | tags u16 count, each: site u8, position u64
//!        | promoted u32 count, each: u64, u64 | aliases u32 count, each: u64, u64
//!        | ceilings u32 count, each: site u8, u64
//!        | waiting u32 count, each: site u8, position u64, commit
//!        | lives u32 count, each: site u8, incarnation u16 | discarded u32 count, each: u64
//! key:   key | versions u32 count, each: written by u64, seen from u64 (0: from everywhere), value
//! ```
//!
//! Chains are not kept: putting the states in again, lowest first, makes them anew. A key's item may have been written
//! after the DAG's and may hold versions of states that the DAG does not; the log has those states, and brings them
//! again.

use crate::Key;
use crate::branches::{Branches, Tag};
use crate::chain::Place;
use crate::commit::{
    self, Commit, detached, key, put_commit, put_key, put_states, put_value, state, states, take, value,
};
use crate::dag::Dag;
use crate::error::Malformed;
use crate::id::StateId;
use crate::records::{Records, Version};
use bytes::{Buf, BufMut, Bytes};
use ensue_types::{DatacenterId, Incarnation, Position};
use std::collections::{BTreeMap, BTreeSet};

impl Branches {
    /// The DAG, without what keys hold. Until it is asked for again, keys are told by the names that it has.
    pub fn encode_dag(&mut self) -> Vec<u8> {
        self.renamed.clear();
        self.late_encoded = self.late().into_iter().collect();
        let mut out = Vec::new();
        out.put_u64_le(self.counter);
        out.put_u64_le(self.dag.base.bits());
        out.put_u32_le(self.seen.len() as u32);
        for ((site, incarnation), counter) in &self.seen {
            out.put_u8(site.0);
            out.put_u16_le(incarnation.0);
            out.put_u64_le(*counter);
        }
        out.put_u32_le(self.dag.states.len() as u32);
        for (id, state) in &self.dag.states {
            out.put_u64_le(id.bits());
            put_states(&mut out, &state.parents);
            out.put_u32_le(state.writes.len() as u32);
            state.writes.iter().for_each(|key| put_key(&mut out, key));
            put_states(&mut out, &state.joined);
            put_states(&mut out, &state.torn_from);
            out.put_u16_le(state.tags.len() as u16);
            state.tags.iter().for_each(|tag| put_tag(&mut out, *tag));
        }
        for names in [&self.dag.promoted, &self.dag.aliases] {
            out.put_u32_le(names.len() as u32);
            for (name, state) in names {
                out.put_u64_le(name.bits());
                out.put_u64_le(state.bits());
            }
        }
        let ceilings: Vec<(DatacenterId, StateId)> = self.ceilings.sites().collect();
        out.put_u32_le(ceilings.len() as u32);
        for (site, state) in ceilings {
            out.put_u8(site.0);
            out.put_u64_le(state.bits());
        }
        out.put_u32_le(self.waiting.len() as u32);
        for (tag, commit) in self.waiting.iter() {
            put_tag(&mut out, *tag);
            put_commit(&mut out, commit);
        }
        out.put_u32_le(self.lives.len() as u32);
        for (site, life) in &self.lives {
            out.put_u8(site.0);
            out.put_u16_le(life.0);
        }
        out.put_u32_le(self.discarded.len() as u32);
        self.discarded.iter().for_each(|id| out.put_u64_le(id.bits()));
        out
    }

    /// The next items of keys from a hash on, about as many as asked; and the hash to go on from, if there are more.
    pub fn encode_keys(&self, from: u32, count: usize, mut each: impl FnMut(&[u8])) -> Option<u32> {
        let places = self.dag.states.iter().map(|(id, state)| (state.place, *id));
        let states: BTreeMap<Place, StateId> = places.chain([(Place::BASE, StateId::ROOT)]).collect();
        let name = |id: StateId| self.renamed.get(&id).copied().unwrap_or(id).bits();
        let mut last = from;
        for (done, (hash, key, versions)) in self.records.walk(from).enumerate() {
            // Keys of one hash are never torn apart.
            if done >= count && hash != last {
                return Some(hash);
            }
            let mut out = Vec::new();
            put_key(&mut out, key);
            out.put_u32_le(versions.len() as u32);
            for version in versions {
                out.put_u64_le(name(version.id));
                out.put_u64_le(name(states.get(&version.place).copied().unwrap_or(version.id)));
                put_value(&mut out, &version.value);
            }
            each(&out);
            last = hash;
        }
        None
    }

    /// Takes the DAG of a checkpoint in the place of the empty one.
    pub fn restore_dag(&mut self, mut from: Bytes) -> Result<(), Malformed> {
        let from = &mut from;
        self.counter = take(from, 8)?.get_u64_le();
        let base = state(from)?;
        for _ in 0..take(from, 4)?.get_u32_le() {
            let site = DatacenterId(take(from, 1)?.get_u8());
            let incarnation = Incarnation(take(from, 2)?.get_u16_le());
            self.seen.insert((site, incarnation), take(from, 8)?.get_u64_le());
        }
        self.dag = Dag::empty();
        self.records = Records::default();
        let mut keys = BTreeSet::new();
        for _ in 0..take(from, 4)?.get_u32_le() {
            self.restore_state(from, &mut keys)?;
        }
        if !self.dag.states.contains_key(&base) {
            return Err(Malformed);
        }
        self.dag.base = base;
        self.dag.promoted = names(from)?;
        self.dag.aliases = names(from)?;
        let known =
            |named: &BTreeMap<StateId, StateId>| named.values().all(|id| self.dag.states.contains_key(id));
        if !known(&self.dag.promoted) || !known(&self.dag.aliases) {
            return Err(Malformed);
        }
        for _ in 0..take(from, 4)?.get_u32_le() {
            let site = DatacenterId(take(from, 1)?.get_u8());
            let ceiling = state(from)?;
            self.offer_ceiling(site, ceiling);
            // Whether the others were told is not kept: to be told twice does no harm.
            if let (true, Ok(state)) = (site == self.site, self.live(ceiling)) {
                self.ceilings.tell_later(state);
            }
        }
        for _ in 0..take(from, 4)?.get_u32_le() {
            let tag = tag(from)?;
            let commit = commit::commit(from)?.detached();
            let missing: Vec<StateId> = self.missing(&commit);
            self.waiting.add(tag, commit, &missing);
        }
        for _ in 0..take(from, 4)?.get_u32_le() {
            let site = DatacenterId(take(from, 1)?.get_u8());
            self.lives.insert(site, Incarnation(take(from, 2)?.get_u16_le()));
        }
        for _ in 0..take(from, 4)?.get_u32_le() {
            self.discarded.insert(state(from)?);
        }
        self.find_late();
        self.late_kept = self.late().into_iter().collect();
        if from.is_empty() { Ok(()) } else { Err(Malformed) }
    }

    /// Of those that wait, the ones that came too late: that shows when all names are here.
    fn find_late(&mut self) {
        let late = self.waiting.iter().filter(|(_, commit)| self.is_late(commit));
        let late: Vec<StateId> = late.map(|(_, commit)| commit.id).collect();
        for id in late {
            let (tag, commit) = self.waiting.remove(id).expect("just found");
            self.waiting.add_late(tag, commit);
        }
    }

    fn missing(&self, commit: &Commit) -> Vec<StateId> {
        let unknown = |id: &StateId| self.find(*id) == crate::dag::Found::Unknown;
        commit.parents.iter().copied().filter(unknown).collect()
    }

    /// The keys are those that states before it wrote, each in bytes of its own.
    fn restore_state(&mut self, from: &mut Bytes, keys: &mut BTreeSet<Key>) -> Result<(), Malformed> {
        let id = state(from)?;
        let parents = states(from)?;
        let is_above = |parent: &StateId| *parent < id && self.dag.states.contains_key(parent);
        if !parents.iter().all(is_above) || self.dag.states.contains_key(&id) {
            return Err(Malformed);
        }
        let count = take(from, 4)?.get_u32_le();
        let mut writes: Vec<Key> = Vec::new();
        for _ in 0..count {
            let key = key(from)?;
            if !keys.contains(&key) {
                keys.insert(detached(&key));
            }
            writes.extend(keys.get(&key).cloned());
        }
        self.dag.insert(id, parents, writes);
        let (joined, torn_from) = (states(from)?, states(from)?);
        let mut tags = Vec::new();
        for _ in 0..take(from, 2)?.get_u16_le() {
            tags.push(tag(from)?);
        }
        self.dag.tear(id, torn_from);
        let state = self.dag.states.get_mut(&id).expect("just put in");
        (state.joined, state.tags) = (joined, tags);
        Ok(())
    }

    /// Takes the item of one key. Versions of states that the DAG does not have are left to the log.
    pub fn restore_key(&mut self, mut from: Bytes) -> Result<(), Malformed> {
        let from = &mut from;
        let key = self.records.own(&key(from)?);
        for _ in 0..take(from, 4)?.get_u32_le() {
            let id = state(from)?;
            let seen_from = state(from)?;
            let value = value(from)?.as_ref().map(detached);
            let place = match seen_from {
                StateId::ROOT => Some(Place::BASE),
                state => self.dag.states.get(&state).map(|state| state.place),
            };
            if let Some(place) = place {
                self.records.insert(&key, Version { id, place, value });
            }
        }
        if from.is_empty() { Ok(()) } else { Err(Malformed) }
    }
}

fn put_tag(out: &mut Vec<u8>, (site, position): Tag) {
    out.put_u8(site.0);
    out.put_u64_le(position.0);
}

fn tag(from: &mut Bytes) -> Result<Tag, Malformed> {
    let site = DatacenterId(take(from, 1)?.get_u8());
    Ok((site, Position(take(from, 8)?.get_u64_le())))
}

fn names(from: &mut Bytes) -> Result<BTreeMap<StateId, StateId>, Malformed> {
    let mut names = BTreeMap::new();
    for _ in 0..take(from, 4)?.get_u32_le() {
        names.insert(state(from)?, state(from)?);
    }
    Ok(names)
}
