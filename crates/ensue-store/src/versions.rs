//! The writes of one location that not every reader may see yet, beside what every reader sees.
//!
//! Merging is commutative, so what a view shows is the settled state merged with the writes that it shows, in any
//! order. A flush is among the writes: it hides the base values below its stamp from those who see it. Settling folds
//! writes into the settled state; every view that shows at least what is settled sees the same before and after. The
//! order of the writes is that of their times, a datacenter after the other, the latest last as they arrived; it means
//! nothing.
//!
//! A location that is written often has many. What is asked of it at each write and each read is known of all of them
//! together (`extent`), so that they are not walked through where a view shows all of them. Where it does not, those
//! that have been here longer stand in `blocks`, and few of these are walked through.

mod blocks;

use crate::cell::State;
use crate::forgetting::Forgets;
use crate::view::{Shown, ShownState, View};
use blocks::{Blocks, Part};
use bytes::Bytes;
use ensue_types::{Carried, Effect, LogicalTime, Rule, Source, Stamp, TimeVector, Visibility, Within};
use std::sync::Arc;

/// Bytes counted for a version beside its value and what it carries, roughly.
const VERSION_BYTES: u64 = 128;

/// So few versions are looked at one by one: how far they reach together need not be known. Most locations have one.
const FEW: usize = if cfg!(test) { 1 } else { 4 };

/// Versions that are not in blocks yet. More are slower to look through, fewer make small blocks; in tests most are in
/// blocks.
const LOOSE_MAX: usize = if cfg!(test) { 2 } else { 16 };

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
    /// Of the flushes that every reader sees, the newest that hid something here.
    flushed: Stamp,
    blocks: Blocks,
    /// The latest to arrive, which are not in blocks yet.
    loose: Vec<Version>,
    sizes: Sizes,
    /// Of all versions, if there are more than a few.
    extent: Option<Box<Extent>>,
}

/// How large some writes are together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sizes {
    count: usize,
    /// Apart from what they carry.
    bytes: u64,
    /// Of what they carry.
    dependency_bytes: u64,
}

impl Sizes {
    fn of(versions: &[Version]) -> Sizes {
        let mut sizes = Sizes::default();
        versions.iter().for_each(|version| sizes.add(version));
        sizes
    }

    fn add(&mut self, version: &Version) {
        self.count += 1;
        self.bytes += version.bytes();
        self.dependency_bytes += carried_bytes(&version.source);
    }

    fn remove(&mut self, version: &Version) {
        self.count -= 1;
        self.bytes -= version.bytes();
        self.dependency_bytes -= carried_bytes(&version.source);
    }

    fn remove_all(&mut self, other: Sizes) {
        self.count -= other.count;
        self.bytes -= other.bytes;
        self.dependency_bytes -= other.dependency_bytes;
    }
}

/// How far some writes reach. It stays where it is when some of them are taken away.
#[derive(Clone, Debug, Default)]
struct Extent {
    /// At or above the latest of each datacenter.
    latest: TimeVector,
    within: Within,
}

impl Extent {
    fn add(&mut self, version: &Version) {
        let Stamp { datacenter, time, .. } = version.source.stamp;
        self.latest.raise(datacenter, time);
        reach(&mut self.within, version);
    }
}

/// Widens bounds for a version.
fn reach(within: &mut Within, version: &Version) {
    let Stamp { datacenter, time, .. } = version.source.stamp;
    within.times.raise(datacenter, time);
    within.since = within.since.max(version.at);
    reach_carried(within, &version.source);
}

fn reach_carried(within: &mut Within, source: &Source) {
    if let Ok(carried) = source.carried().times() {
        within.times.join(&carried.times);
    }
}

fn carried_bytes(source: &Source) -> u64 {
    source.dependencies.as_ref().map_or(0, |carried| carried.bytes())
}

/// A state with some writes merged into it.
#[derive(Clone, Debug)]
struct Merged {
    state: State,
    since: LogicalTime,
    flushed: Stamp,
}

impl Merged {
    fn nothing() -> Merged {
        Merged { state: State::empty(), since: LogicalTime::ZERO, flushed: Stamp::ZERO }
    }

    fn add(&mut self, version: &Version) {
        self.since = self.since.max(version.at);
        match &version.effect {
            Some(effect) => drop(self.state.merge(effect, &version.source, Bytes::clone)),
            None => self.flushed = self.flushed.max(version.source.stamp),
        }
    }

    /// Adds what was merged into nothing.
    fn join(&mut self, other: &Merged) {
        self.since = self.since.max(other.since);
        self.flushed = self.flushed.max(other.flushed);
        self.state.join(&other.state);
    }

    /// A flush counts after all merging: it hides whatever base has won below it.
    fn finish(mut self) -> (State, LogicalTime, Stamp) {
        self.state.hide_below(self.flushed);
        (self.state, self.since, self.flushed)
    }
}

impl Version {
    /// Effects of one write on one location: a base, a removal, an addition or a flush, of each the latest counts. A
    /// removal ends what its own write had put here; what that puts here next stands behind it.
    fn replaces(&self, other: &Version) -> bool {
        let kind = |version: &Version| match &version.effect {
            None => 0,
            Some(Effect::Add { .. }) => 1,
            Some(Effect::Put { .. } | Effect::Delete { .. }) => 2,
            Some(Effect::Remove { .. }) => 3,
        };
        self.source.stamp == other.source.stamp
            && (kind(self) == kind(other) || kind(self) == 3 && kind(other) == 2)
    }

    fn is_addition(&self) -> bool {
        matches!(self.effect, Some(Effect::Add { .. }))
    }

    fn bytes(&self) -> u64 {
        let value = match &self.effect {
            Some(Effect::Put { value, over, .. }) => {
                value.len() + over.as_ref().map_or(0, |over| size_of_val(over.puts()))
            }
            Some(Effect::Remove { observed, .. }) => size_of_val(observed.puts()),
            _ => 0,
        };
        VERSION_BYTES + value as u64
    }
}

impl Versions {
    /// Begins with what has been settled so far.
    pub(crate) fn after(settled: &State, since: LogicalTime) -> Box<Versions> {
        Box::new(Versions {
            settled: settled.clone(),
            since,
            flushed: Stamp::ZERO,
            blocks: Blocks::default(),
            loose: Vec::new(),
            sizes: Sizes::default(),
            extent: None,
        })
    }

    /// What every reader sees, and since when it has been here.
    pub fn settled(&self) -> (&State, LogicalTime) {
        (&self.settled, self.since)
    }

    pub fn unsettled(&self) -> impl Iterator<Item = &Version> {
        self.blocks.versions().chain(&self.loose)
    }

    pub(crate) fn len(&self) -> usize {
        self.sizes.count
    }

    pub(crate) fn push(&mut self, version: Version) {
        let Stamp { datacenter, time, .. } = version.source.stamp;
        // Writes of a datacenter mostly come in the order of their times, so most are not looked for.
        let may_be_known = self.extent.as_ref().is_none_or(|extent| time <= extent.latest.at(datacenter));
        if let Some(extent) = &mut self.extent {
            extent.add(&version);
        }
        self.sizes.add(&version);
        if may_be_known {
            if let Some(known) = self.loose.iter_mut().rev().find(|known| version.replaces(known)) {
                self.sizes.remove(known);
                *known = version;
                return;
            }
            if let Some(known) = self.blocks.replace(&version) {
                return self.sizes.remove(&known);
            }
        }
        // What the last write carries is only known when it has been evaluated.
        if self.loose.len() >= LOOSE_MAX
            && self.loose.last().is_some_and(|last| last.source.stamp != version.source.stamp)
        {
            self.blocks.take(&mut self.loose);
        }
        self.loose.push(version);
        if self.extent.is_none() && self.len() > FEW {
            let mut extent = Box::<Extent>::default();
            self.unsettled().for_each(|version| extent.add(version));
            self.extent = Some(extent);
        }
    }

    /// Merges a write that every view shows.
    pub(crate) fn restore(&mut self, effect: &Effect, source: &Source, at: LogicalTime) {
        self.settled.merge(effect, source, |value| Bytes::copy_from_slice(value));
        self.since = self.since.max(at);
    }

    pub(crate) fn has_base_below(&self, stamp: Stamp) -> bool {
        let is_put = |version: &Version| matches!(version.effect, Some(Effect::Put { .. }));
        self.settled.has_put_below(stamp)
            || self.unsettled().any(|version| is_put(version) && version.source.stamp < stamp)
    }

    /// Whether a view is known to show all.
    pub(crate) fn shows_all(&self, view: View<'_>) -> bool {
        self.extent.as_ref().is_some_and(|extent| view.shows_all(&extent.within))
    }

    /// What a view shows; nothing if that is everything.
    pub(crate) fn shown(&self, view: View<'_>) -> Option<Shown<'_>> {
        if self.shows_all(view) {
            return None;
        }
        let mut merged: Option<Merged> = None;
        let mut hidden = Stamp::ZERO;
        self.blocks.divide(view, |part| match part {
            Part::Shown(block) => merged.get_or_insert_with(|| self.merged()).join(block),
            Part::ShownVersion(version) => merged.get_or_insert_with(|| self.merged()).add(version),
            Part::HiddenVersion(version) => hidden = hidden.max(version.source.stamp),
            Part::Hidden(blocks) => hidden = hidden.max(blocks.latest()),
        });
        let is_visible = |version: &Version| view.is_visible(&version.source, version.at);
        if hidden == Stamp::ZERO && self.loose.iter().all(is_visible) {
            return None;
        }
        for version in &self.loose {
            match is_visible(version) {
                true => merged.get_or_insert_with(|| self.merged()).add(version),
                false => hidden = hidden.max(version.source.stamp),
            }
        }
        let (state, since, flushed) = match merged.map(Merged::finish) {
            Some((state, since, flushed)) => (ShownState::Merged(Box::new(state)), since, flushed),
            None => (ShownState::Kept(&self.settled), self.since, self.flushed),
        };
        let stale = hidden > state.newest().max(flushed);
        Some(Shown { since, state, stale })
    }

    fn merged(&self) -> Merged {
        Merged { state: self.settled.clone(), since: self.since, flushed: self.flushed }
    }

    /// The lowest stamp of an addition that a view hides.
    pub(crate) fn lowest_hidden_addition(&self, view: View<'_>) -> Option<Stamp> {
        if self.shows_all(view) {
            return None;
        }
        let mut lowest: Option<Stamp> = None;
        let mut lower = |stamp: Stamp| lowest = Some(lowest.map_or(stamp, |lowest| lowest.min(stamp)));
        self.blocks.divide(view, |part| match part {
            Part::HiddenVersion(version) if version.is_addition() => lower(version.source.stamp),
            Part::Hidden(blocks) => blocks.first_addition().into_iter().for_each(&mut lower),
            _ => {}
        });
        let hidden = |version: &&Version| !view.is_visible(&version.source, version.at);
        let additions = self.loose.iter().filter(|version| version.is_addition());
        additions.filter(hidden).for_each(|version| lower(version.source.stamp));
        lowest
    }

    /// Folds what is settled; says how many versions are left.
    pub(crate) fn settle(&mut self, settled: &dyn Visibility) -> usize {
        if self.extent.as_ref().is_some_and(|extent| settled.shows_all(&extent.within)) {
            // The newest state is all of this.
            self.clear();
            return 0;
        }
        // Few versions have no extent, and mostly all of them settle at once.
        if self.len() == self.loose.len()
            && self.loose.iter().all(|version| settled.is_visible(&version.source, version.at))
        {
            self.clear();
            return 0;
        }
        let mut merged: Option<Merged> = None;
        let start = || Merged { state: self.settled.clone(), since: self.since, flushed: self.flushed };
        let sizes = &mut self.sizes;
        self.blocks.settle(settled, sizes, |part| match part {
            Part::Shown(block) => merged.get_or_insert_with(start).join(block),
            Part::ShownVersion(version) => merged.get_or_insert_with(start).add(version),
            Part::HiddenVersion(_) | Part::Hidden(_) => {}
        });
        self.loose.retain(|version| {
            let settles = settled.is_visible(&version.source, version.at);
            if settles {
                sizes.remove(version);
                merged.get_or_insert_with(start).add(version);
            }
            !settles
        });
        let Some(mut merged) = merged else { return self.len() };
        if self.len() == 0 {
            self.clear();
            return 0;
        }
        if !Rule::FlushesSettle.holds() {
            merged.flushed = self.flushed;
        }
        (self.settled, self.since, self.flushed) = merged.finish();
        self.len()
    }

    /// A flush that every view shows hides these values, whoever sees one of them, and what comes later below it.
    pub(crate) fn hide_below(&mut self, flush: Stamp) {
        self.flushed = self.flushed.max(flush);
        self.settled.hide_below(flush);
    }

    fn clear(&mut self) {
        (self.blocks, self.loose) = (Blocks::default(), Vec::new());
        (self.sizes, self.extent) = (Sizes::default(), None);
    }

    fn take_all(&mut self) -> Vec<Version> {
        let mut all = self.blocks.take_all();
        all.append(&mut self.loose);
        self.clear();
        all
    }

    /// Takes out the writes that are as if they had never been, flushes apart; the state without them.
    pub(crate) fn discard(&mut self, discarded: &dyn Fn(&Source) -> bool) -> (Vec<Version>, State) {
        let (gone, left): (Vec<Version>, Vec<Version>) = self
            .take_all()
            .into_iter()
            .partition(|version| version.effect.is_some() && discarded(&version.source));
        left.into_iter().for_each(|version| self.push(version));
        let mut merged = self.merged();
        self.unsettled().for_each(|version| merged.add(version));
        (gone, merged.finish().0)
    }

    /// Notes what a write of this stamp carries. It has just been evaluated: what it did is the last here.
    pub(crate) fn carry(&mut self, stamp: Stamp, dependencies: &Arc<Carried>) {
        let latest_first = self.loose.iter_mut().rev();
        for Version { source, .. } in latest_first.take_while(|version| version.source.stamp == stamp) {
            self.sizes.dependency_bytes -= carried_bytes(source);
            source.dependencies = Some(dependencies.clone());
            self.sizes.dependency_bytes += carried_bytes(source);
            if let Some(extent) = &mut self.extent {
                reach_carried(&mut extent.within, source);
            }
        }
    }

    /// Forgets what the settled state's writes carry.
    pub(crate) fn forget_dependencies(&mut self, forgets: &Forgets<'_>) {
        self.settled.forget_dependencies(forgets);
    }

    /// Bytes of the unsettled versions, apart from what they carry.
    pub(crate) fn bytes(&self) -> u64 {
        self.sizes.bytes
    }

    /// Bytes of what all of them carry.
    pub(crate) fn dependency_bytes(&self) -> u64 {
        self.settled.dependency_bytes() + self.sizes.dependency_bytes
    }
}

#[cfg(test)]
mod tests;
