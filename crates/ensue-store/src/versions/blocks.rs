//! Unsettled writes in blocks, those of each datacenter in the order of their times.
//!
//! A block knows what its writes and all before it of the same datacenter come to, and how far they reach. What a view
//! shows is then mostly one block of each datacenter, merged as it is, and what it hides begins at another; only what
//! stands between these two is looked at write by write. Promises: the same as a look at every write. It does not merge
//! into what is settled.

use super::{LOOSE_MAX, Merged, Sizes, Version, reach};
use crate::view::View;
use ensue_types::{Beyond, DatacenterId, LogicalTime, Stamp, Visibility, Within};
use std::collections::VecDeque;

/// See the module. The datacenters are in order, and each has a block.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks {
    datacenters: Vec<DatacenterBlocks>,
}

/// The blocks of one datacenter.
#[derive(Clone, Debug)]
struct DatacenterBlocks {
    datacenter: DatacenterId,
    blocks: VecDeque<Block>,
}

#[derive(Clone, Debug)]
struct Block {
    /// Never empty.
    versions: Vec<Version>,
    sizes: Sizes,
    /// No write of this block, and of none after it, has been here for longer.
    since: LogicalTime,
    /// These and all before, those that have been folded among them, merged into nothing.
    merged: Merged,
    /// How far all these reach.
    within: Within,
}

/// A part of the writes, as a view sees it.
pub(super) enum Part<'a> {
    Shown(&'a Merged),
    ShownVersion(&'a Version),
    HiddenVersion(&'a Version),
    Hidden(Hidden<'a>),
}

/// The end of a datacenter's blocks, all of which is hidden.
pub(super) struct Hidden<'a> {
    of: &'a DatacenterBlocks,
    from: usize,
}

impl Hidden<'_> {
    pub(super) fn latest(&self) -> Stamp {
        self.of.last().map_or(Stamp::ZERO, |version| version.source.stamp)
    }

    pub(super) fn first_addition(&self) -> Option<Stamp> {
        let versions = self.of.blocks.range(self.from..).flat_map(|block| &block.versions);
        let mut additions =
            versions.filter(|version| version.is_addition()).map(|version| version.source.stamp);
        // They are in the order of their times.
        let first = additions.next()?;
        Some(additions.take_while(|stamp| stamp.time == first.time).fold(first, Stamp::min))
    }
}

impl Block {
    /// The block of these after another one.
    fn after(before: Option<&Block>, versions: Vec<Version>) -> Block {
        let (mut merged, mut within) = match before {
            Some(before) => (before.merged.clone(), before.within.clone()),
            None => (Merged::nothing(), Within::default()),
        };
        for version in &versions {
            merged.add(version);
            reach(&mut within, version);
        }
        let since = versions.iter().map(|version| version.at).min().unwrap_or_default();
        Block { sizes: Sizes::of(&versions), versions, since, merged, within }
    }

    fn first_time(&self) -> LogicalTime {
        self.versions.first().map_or(LogicalTime::ZERO, |version| version.source.stamp.time)
    }

    fn last_time(&self) -> LogicalTime {
        self.versions.last().map_or(LogicalTime::ZERO, |version| version.source.stamp.time)
    }
}

impl DatacenterBlocks {
    fn last(&self) -> Option<&Version> {
        self.blocks.back()?.versions.last()
    }

    fn last_time(&self) -> LogicalTime {
        self.blocks.back().map_or(LogicalTime::ZERO, Block::last_time)
    }

    /// The first block that a view may not show with all before it.
    fn first_not_shown(&self, shows_all: impl Fn(&Within) -> bool) -> usize {
        self.blocks.partition_point(|block| shows_all(&block.within))
    }

    /// Bounds of a block and all after it.
    fn beyond(&self, index: usize) -> Beyond {
        let block = &self.blocks[index];
        Beyond { datacenter: self.datacenter, time: block.first_time(), since: block.since }
    }

    /// Adds writes that are later than all others.
    fn push(&mut self, versions: impl IntoIterator<Item = Version>) {
        let mut rest = versions.into_iter().peekable();
        while rest.peek().is_some() {
            let block = Block::after(self.blocks.back(), rest.by_ref().take(LOOSE_MAX).collect());
            self.lower_since(self.blocks.len(), block.since);
            self.blocks.push_back(block);
        }
    }

    /// Adds writes in the order of their times.
    fn take(&mut self, versions: Vec<Version>) {
        let is_later = versions.first().is_none_or(|first| first.source.stamp.time >= self.last_time());
        if is_later {
            return self.push(versions);
        }
        let mut all: Vec<Version> = self.blocks.drain(..).flat_map(|block| block.versions).collect();
        all.extend(versions);
        all.sort_by_key(|version| version.source.stamp.time);
        self.push(all);
    }

    /// Something came before this block that is not here for longer than since then.
    fn lower_since(&mut self, end: usize, since: LogicalTime) {
        let before = self.blocks.range_mut(..end).rev();
        before.take_while(|block| block.since > since).for_each(|block| block.since = since);
    }

    fn replace(&mut self, version: &Version) -> Option<Version> {
        let time = version.source.stamp.time;
        let first = self.blocks.partition_point(|block| block.last_time() < time);
        let blocks = self.blocks.range(first..).take_while(|block| block.first_time() <= time);
        let mut places = blocks.enumerate().flat_map(|(index, block)| {
            block.versions.iter().enumerate().map(move |(place, known)| (first + index, place, known))
        });
        let (index, place, known) = places.find(|(_, _, known)| version.replaces(known))?;
        let is_same =
            known.source == version.source && known.at == version.at && known.effect == version.effect;
        drop(places);
        let block = &mut self.blocks[index];
        let known = std::mem::replace(&mut block.versions[place], version.clone());
        block.sizes = Sizes::of(&block.versions);
        if !is_same {
            for block in self.blocks.range_mut(index..) {
                block.merged.add(version);
                reach(&mut block.within, version);
            }
            self.lower_since(index + 1, version.at);
        }
        Some(known)
    }

    fn settle(&mut self, settled: &dyn Visibility, sizes: &mut Sizes, mut fold: impl FnMut(Part<'_>)) {
        let shown = self.first_not_shown(|within| settled.shows_all(within));
        if let Some(last) = shown.checked_sub(1) {
            fold(Part::Shown(&self.blocks[last].merged));
            self.blocks.drain(..shown).for_each(|block| sizes.remove_all(block.sizes));
        }
        for index in 0..self.blocks.len() {
            if settled.hides_all(&self.beyond(index)) {
                break;
            }
            let block = &mut self.blocks[index];
            block.versions.retain(|version| {
                let settles = settled.is_visible(&version.source, version.at);
                if settles {
                    sizes.remove(version);
                    block.sizes.remove(version);
                    fold(Part::ShownVersion(version));
                }
                !settles
            });
        }
        self.blocks.retain(|block| !block.versions.is_empty());
    }

    fn divide<'a>(&'a self, view: View<'_>, mut each: impl FnMut(Part<'a>)) {
        let shown = self.first_not_shown(|within| view.shows_all(within));
        if let Some(last) = shown.checked_sub(1) {
            each(Part::Shown(&self.blocks[last].merged));
        }
        for index in shown..self.blocks.len() {
            if view.hides_all(&self.beyond(index)) {
                return each(Part::Hidden(Hidden { of: self, from: index }));
            }
            for version in &self.blocks[index].versions {
                each(match view.is_visible(&version.source, version.at) {
                    true => Part::ShownVersion(version),
                    false => Part::HiddenVersion(version),
                });
            }
        }
    }
}

impl Blocks {
    pub(super) fn versions(&self) -> impl Iterator<Item = &Version> {
        self.datacenters.iter().flat_map(|own| &own.blocks).flat_map(|block| &block.versions)
    }

    /// Takes writes in, in any order.
    pub(super) fn take(&mut self, loose: &mut Vec<Version>) {
        loose.sort_by_key(|version| (version.source.stamp.datacenter, version.source.stamp.time));
        while let Some(first) = loose.first() {
            let datacenter = first.source.stamp.datacenter;
            let others = loose.partition_point(|version| version.source.stamp.datacenter == datacenter);
            let own = loose.drain(..others).collect();
            let own_blocks = match self.datacenters.binary_search_by_key(&datacenter, |own| own.datacenter) {
                Ok(index) => &mut self.datacenters[index],
                Err(index) => {
                    self.datacenters.insert(index, DatacenterBlocks { datacenter, blocks: VecDeque::new() });
                    &mut self.datacenters[index]
                }
            };
            own_blocks.take(own);
        }
    }

    /// Puts a write where one stands that it replaces, and returns that.
    pub(super) fn replace(&mut self, version: &Version) -> Option<Version> {
        let datacenter = version.source.stamp.datacenter;
        self.datacenters.iter_mut().find(|own| own.datacenter == datacenter)?.replace(version)
    }

    /// Takes out what is settled, and says what that is.
    pub(super) fn settle(
        &mut self,
        settled: &dyn Visibility,
        sizes: &mut Sizes,
        mut fold: impl FnMut(Part<'_>),
    ) {
        self.datacenters.iter_mut().for_each(|own| own.settle(settled, sizes, &mut fold));
        self.datacenters.retain(|own| !own.blocks.is_empty());
    }

    /// Goes through all writes as a view sees them, in as few parts as are known.
    pub(super) fn divide<'a>(&'a self, view: View<'_>, mut each: impl FnMut(Part<'a>)) {
        self.datacenters.iter().for_each(|own| own.divide(view, &mut each));
    }

    pub(super) fn take_all(&mut self) -> Vec<Version> {
        let datacenters = std::mem::take(&mut self.datacenters).into_iter();
        datacenters.flat_map(|own| own.blocks).flat_map(|block| block.versions).collect()
    }
}
