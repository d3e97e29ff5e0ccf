//! The writes of one location that not every reader may see yet, beside what every reader sees.
//!
//! Merging is commutative, so what a view shows is the settled state merged with the writes that it shows, in any order.
//! A flush is among the writes: it hides the base values below its stamp from those who see it. Settling folds writes into the settled
//! state; every view that shows at least what is settled sees the same before and after. The order of the writes is
//! that of their arrival and means nothing.
//!
//! A location that is written often has many. What is asked of it at each write and each read is known of all of them
//! together (`Whole`), so that they are not walked through where a view shows all of them.

use crate::cell::State;
use crate::view::{Shown, ShownState, View};
use bytes::Bytes;
use ensue_types::{Carried, Effect, LogicalTime, OperationId, Rule, Source, Stamp, TimeVector, Visibility};
use std::sync::Arc;

/// Bytes counted for a version beside its value and what it carries, roughly.
const VERSION_BYTES: u64 = 128;

/// One unsettled write.
#[derive(Clone, Debug)]
pub struct Version {
    pub source: Source,
    /// From when on it has been here.
    pub at: LogicalTime,
    /// Nothing for a flush.
    pub effect: Option<Effect>,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Versions {
    settled: State,
    since: LogicalTime,
    unsettled: Vec<Version>,
    whole: Whole,
}

/// What is known of all unsettled writes together.
#[derive(Clone, Debug, Default)]
struct Whole {
    /// Their bytes, apart from what they carry.
    bytes: u64,
    /// Bytes of what they carry.
    dependency_bytes: u64,
    /// At or above the latest of each datacenter.
    latest: TimeVector,
    /// At or above those, and all times that they carry.
    reach: TimeVector,
}

impl Whole {
    fn of(versions: &[Version]) -> Whole {
        let mut whole = Whole::default();
        versions.iter().for_each(|version| whole.add(version));
        whole
    }

    fn add(&mut self, version: &Version) {
        let Stamp { datacenter, time, .. } = version.source.stamp;
        self.bytes += version.bytes();
        self.latest.raise(datacenter, time);
        self.reach.raise(datacenter, time);
        self.add_carried(&version.source);
    }

    fn add_carried(&mut self, source: &Source) {
        self.dependency_bytes += carried_bytes(source);
        if let Ok(carried) = source.carried().times() {
            self.reach.join(&carried.times);
        }
    }

    /// The times stay at or above what is left.
    fn remove(&mut self, version: &Version) {
        self.bytes -= version.bytes();
        self.dependency_bytes -= carried_bytes(&version.source);
    }
}

fn carried_bytes(source: &Source) -> u64 {
    source.dependencies.as_ref().map_or(0, |carried| carried.bytes())
}

/// The settled state with some writes merged into it.
struct Merged {
    state: State,
    since: LogicalTime,
    flushed: Stamp,
}

impl Merged {
    fn add(&mut self, version: &Version) {
        self.since = self.since.max(version.at);
        match &version.effect {
            Some(effect) => drop(self.state.merge(effect, &version.source, Bytes::clone)),
            None => self.flushed = self.flushed.max(version.source.stamp),
        }
    }

    /// A flush counts after all merging: it hides whatever base has won below it.
    fn finish(mut self) -> (State, LogicalTime, Stamp) {
        self.state.hide_below(self.flushed);
        (self.state, self.since, self.flushed)
    }
}

impl Version {
    /// Effects of one write on one location: a base, an addition or a flush, of each the latest counts.
    fn replaces(&self, other: &Version) -> bool {
        let kind = |version: &Version| match &version.effect {
            None => 0,
            Some(Effect::Add { .. }) => 1,
            Some(Effect::Put { .. } | Effect::Delete { .. }) => 2,
        };
        self.source.stamp == other.source.stamp && kind(self) == kind(other)
    }

    fn bytes(&self) -> u64 {
        let value = match &self.effect {
            Some(Effect::Put { value, .. }) => value.len(),
            _ => 0,
        };
        VERSION_BYTES + value as u64
    }
}

impl Versions {
    /// Begins with what has been settled so far.
    pub(crate) fn after(settled: &State, since: LogicalTime) -> Box<Versions> {
        Box::new(Versions { settled: settled.clone(), since, unsettled: Vec::new(), whole: Whole::default() })
    }

    /// What every reader sees, and since when it has been here.
    pub fn settled(&self) -> (&State, LogicalTime) {
        (&self.settled, self.since)
    }

    pub fn unsettled(&self) -> &[Version] {
        &self.unsettled
    }

    pub(crate) fn len(&self) -> usize {
        self.unsettled.len()
    }

    pub(crate) fn push(&mut self, version: Version) {
        let Stamp { datacenter, time, .. } = version.source.stamp;
        // Writes of a datacenter mostly come in the order of their times, so most are not looked for.
        let known = match time <= self.whole.latest.at(datacenter) {
            true => self.unsettled.iter_mut().rev().find(|known| version.replaces(known)),
            false => None,
        };
        self.whole.add(&version);
        match known {
            Some(known) => {
                self.whole.remove(known);
                *known = version;
            }
            None => self.unsettled.push(version),
        }
    }

    /// Merges a write that every view shows.
    pub(crate) fn restore(&mut self, effect: &Effect, source: &Source, at: LogicalTime) {
        self.settled.merge(effect, source, |value| Bytes::copy_from_slice(value));
        self.since = self.since.max(at);
    }

    pub(crate) fn has_base_below(&self, stamp: Stamp) -> bool {
        let is_put = |version: &Version| matches!(version.effect, Some(Effect::Put { .. }));
        (self.settled.base.value.is_some() && self.settled.base.stamp < stamp)
            || self.unsettled.iter().any(|version| is_put(version) && version.source.stamp < stamp)
    }

    /// What a view shows; nothing if that is everything.
    pub(crate) fn shown(&self, view: View<'_>) -> Option<Shown<'_>> {
        if view.shows_all_within(&self.whole.reach) {
            return None;
        }
        let first_hidden =
            self.unsettled.iter().position(|version| !view.is_visible(&version.source, version.at))?;
        let (before, hidden_and_after) = self.unsettled.split_at(first_hidden);
        let mut merged: Option<Merged> = None;
        let mut hidden = Stamp::ZERO;
        for version in before {
            merged.get_or_insert_with(|| self.merged()).add(version);
        }
        for (index, version) in hidden_and_after.iter().enumerate() {
            if index > 0 && view.is_visible(&version.source, version.at) {
                merged.get_or_insert_with(|| self.merged()).add(version);
            } else {
                hidden = hidden.max(version.source.stamp);
            }
        }
        let (state, since, flushed) = match merged.map(Merged::finish) {
            Some((state, since, flushed)) => (ShownState::Merged(Box::new(state)), since, flushed),
            None => (ShownState::Kept(&self.settled), self.since, Stamp::ZERO),
        };
        let stale = hidden > state.newest().max(flushed);
        Some(Shown { since, state, stale })
    }

    fn merged(&self) -> Merged {
        Merged { state: self.settled.clone(), since: self.since, flushed: Stamp::ZERO }
    }

    /// The lowest stamp of an addition that a view hides.
    pub(crate) fn lowest_hidden_addition(&self, view: View<'_>) -> Option<Stamp> {
        if view.shows_all_within(&self.whole.reach) {
            return None;
        }
        let adds = |version: &&Version| matches!(version.effect, Some(Effect::Add { .. }));
        let hidden = self
            .unsettled
            .iter()
            .filter(adds)
            .filter(|version| !view.is_visible(&version.source, version.at));
        hidden.map(|version| version.source.stamp).min()
    }

    /// Folds what is settled; says how many versions are left.
    pub(crate) fn settle(&mut self, settled: &dyn Visibility) -> usize {
        let shown = |version: &Version| settled.is_visible(&version.source, version.at);
        if settled.shows_all_within(&self.whole.reach) || self.unsettled.iter().all(shown) {
            // The newest state is all of this.
            self.unsettled.clear();
            self.whole = Whole::default();
            return 0;
        }
        if !self.unsettled.iter().any(shown) {
            return self.unsettled.len();
        }
        let mut merged = self.merged();
        self.unsettled.retain(|version| {
            let settles = shown(version);
            if settles {
                merged.add(version);
            }
            !settles
        });
        if !Rule::FlushesSettle.holds() {
            merged.flushed = Stamp::ZERO;
        }
        let (state, since, flushed) = merged.finish();
        (self.settled, self.since) = (state, since);
        // The flush itself may be gone now; whoever sees one of these also sees it.
        for version in self.unsettled.iter_mut().filter(|version| version.source.stamp < flushed) {
            if let Some(Effect::Put { seen, .. }) = &mut version.effect {
                version.effect = Some(Effect::Delete { seen: std::mem::take(seen) });
            }
        }
        self.whole = Whole::of(&self.unsettled);
        self.unsettled.len()
    }

    /// Takes out the writes that are as if they had never been, flushes apart; the state without them.
    pub(crate) fn discard(&mut self, discarded: &dyn Fn(&Source) -> bool) -> (Vec<Version>, State) {
        let (gone, left) = std::mem::take(&mut self.unsettled)
            .into_iter()
            .partition(|version| version.effect.is_some() && discarded(&version.source));
        self.unsettled = left;
        self.whole = Whole::of(&self.unsettled);
        let mut merged = self.merged();
        self.unsettled.iter().for_each(|version| merged.add(version));
        (gone, merged.finish().0)
    }

    /// Notes what a write of this stamp carries. It has just been evaluated: what it did is the last here.
    pub(crate) fn carry(&mut self, stamp: Stamp, dependencies: &Arc<Carried>) {
        let latest_first = self.unsettled.iter_mut().rev();
        for Version { source, .. } in latest_first.take_while(|version| version.source.stamp == stamp) {
            self.whole.dependency_bytes -= carried_bytes(source);
            source.dependencies = Some(dependencies.clone());
            self.whole.add_carried(source);
        }
    }

    /// Forgets what the settled state's writes carry.
    pub(crate) fn forget_dependencies(&mut self, is_globally_stable: &dyn Fn(&OperationId) -> bool) {
        self.settled.forget_dependencies(is_globally_stable);
    }

    /// Bytes of the unsettled versions, apart from what they carry.
    pub(crate) fn bytes(&self) -> u64 {
        self.whole.bytes
    }

    /// Bytes of what all of them carry.
    pub(crate) fn dependency_bytes(&self) -> u64 {
        self.settled.dependency_bytes() + self.whole.dependency_bytes
    }
}
