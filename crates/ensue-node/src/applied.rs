//! Which operations of which streams have been applied here, and who waits for one that has not.
//!
//! An operation is applied when it is visible or has lost arbitration, never before its own dependencies (traps 1, 2).
//! Entries of one stream may be applied out of order (trap 16): the set is a watermark plus what stands above it. What was
//! declared lost counts like applied: there is nothing to wait for (trap 15).

use ensue_types::{DatacenterId, Dependency, Extent, Position, Rule, Rules};
use std::collections::{BTreeMap, BTreeSet};

/// What has been applied of one datacenter's stream of this partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppliedSet {
    /// Everything at or below is applied, or lost.
    pub watermark: Position,
    /// What is applied above the watermark.
    pub above: BTreeSet<Position>,
    /// What was declared lost, in order: from after the first place up to and with the second.
    pub lost: Vec<(Position, Position)>,
}

impl AppliedSet {
    pub fn contains(&self, position: Position) -> bool {
        position <= self.watermark || self.above.contains(&position) || self.is_lost(position)
    }

    /// Whether a position was declared lost.
    pub fn is_lost(&self, position: Position) -> bool {
        self.lost.iter().any(|&(after, through)| after < position && position <= through)
    }

    /// The position that follows one: what was lost is passed over.
    pub fn next(&self, position: Position) -> Position {
        let gap = self.lost.iter().find(|&&(after, through)| after <= position && position < through);
        gap.map_or(position, |&(_, through)| through).next()
    }

    /// Nothing after `after` and up to `through` will ever come.
    pub fn lose(&mut self, after: Position, through: Position) {
        if !self.lost.contains(&(after, through)) {
            self.lost.push((after, through));
        }
        self.advance();
    }

    /// Adds a position; says whether it was new.
    pub fn insert(&mut self, position: Position) -> bool {
        if self.contains(position) {
            return false;
        }
        self.above.insert(position);
        self.advance();
        true
    }

    fn advance(&mut self) {
        loop {
            let gap = self
                .lost
                .iter()
                .find(|&&(after, through)| after <= self.watermark && self.watermark < through);
            if let Some(&(_, through)) = gap {
                self.watermark = through;
            } else if self.above.remove(&self.watermark.next()) {
                self.watermark = self.watermark.next();
            } else {
                return;
            }
        }
    }

    /// The highest applied position.
    pub fn highest(&self) -> Position {
        self.above.last().copied().unwrap_or(self.watermark)
    }
}

/// The applied sets of all streams of this partition, with those who wait for them. `W` names a waiter.
#[derive(Clone, Debug)]
pub struct Applied<W> {
    sets: BTreeMap<DatacenterId, AppliedSet>,
    exact: BTreeMap<(DatacenterId, Position), Vec<W>>,
    through: BTreeMap<(DatacenterId, Position), Vec<W>>,
    rules: Rules,
}

impl<W> Applied<W> {
    pub fn new(rules: Rules) -> Applied<W> {
        Applied { sets: BTreeMap::new(), exact: BTreeMap::new(), through: BTreeMap::new(), rules }
    }

    pub fn set(&self, datacenter: DatacenterId) -> Option<&AppliedSet> {
        self.sets.get(&datacenter)
    }

    pub fn sets(&self) -> impl Iterator<Item = (DatacenterId, &AppliedSet)> {
        self.sets.iter().map(|(datacenter, set)| (*datacenter, set))
    }

    pub fn restore(&mut self, datacenter: DatacenterId, set: AppliedSet) {
        self.sets.insert(datacenter, set);
    }

    /// Everything of a stream up to here is applied: the own stream, whose entries are applied by being logged.
    pub fn through(&mut self, datacenter: DatacenterId, watermark: Position) {
        self.sets.entry(datacenter).or_default().watermark = watermark;
    }

    /// Nothing of a stream after `after` and up to `through` will ever come; hands out those who waited for it.
    pub fn lose(&mut self, datacenter: DatacenterId, after: Position, through: Position) -> Vec<W> {
        let set = self.sets.entry(datacenter).or_default();
        set.lose(after, through);
        let watermark = set.watermark;
        if !self.rules.hold(Rule::DeclareTheLost) {
            return Vec::new();
        }
        let mut woken = Vec::new();
        while let Some((&place, _)) =
            self.exact.range((datacenter, after.next())..=(datacenter, through)).next()
        {
            woken.extend(self.exact.remove(&place).unwrap_or_default());
        }
        woken.extend(self.reached(datacenter, watermark));
        woken
    }

    /// Whether a dependency names an operation that was declared lost.
    pub fn is_lost(&self, dependency: &Dependency) -> bool {
        let operation = dependency.operation;
        self.sets.get(&operation.datacenter).is_some_and(|set| set.is_lost(operation.position))
    }

    /// The position that follows one in a stream.
    pub fn next(&self, datacenter: DatacenterId, position: Position) -> Position {
        self.sets.get(&datacenter).map_or(position.next(), |set| set.next(position))
    }

    pub fn contains(&self, datacenter: DatacenterId, position: Position) -> bool {
        self.sets.get(&datacenter).is_some_and(|set| set.contains(position))
    }

    /// Whether a dependency on a stream of this partition is met.
    pub fn meets(&self, dependency: &Dependency) -> bool {
        let operation = dependency.operation;
        let Some(set) = self.sets.get(&operation.datacenter) else {
            return operation.position == Position(0);
        };
        match dependency.extent {
            Extent::Exact if !self.rules.hold(Rule::CheckTheVeryOperation) => {
                operation.position <= set.highest()
            }
            Extent::Exact => set.contains(operation.position),
            Extent::Through => operation.position <= set.watermark,
        }
    }

    /// Waits until a dependency is met.
    pub fn wait(&mut self, dependency: &Dependency, waiter: W) {
        let place = (dependency.operation.datacenter, dependency.operation.position);
        match dependency.extent {
            Extent::Exact => self.exact.entry(place).or_default().push(waiter),
            Extent::Through => self.through.entry(place).or_default().push(waiter),
        }
    }

    /// Marks a position applied; hands out those whose wait is over. Says nothing twice.
    pub fn insert(&mut self, datacenter: DatacenterId, position: Position) -> Vec<W> {
        let set = self.sets.entry(datacenter).or_default();
        set.insert(position);
        let watermark = set.watermark;
        let mut woken = self.exact.remove(&(datacenter, position)).unwrap_or_default();
        woken.extend(self.reached(datacenter, watermark));
        woken
    }

    /// Those who waited for a whole stream up to here.
    fn reached(&mut self, datacenter: DatacenterId, watermark: Position) -> Vec<W> {
        let mut woken = Vec::new();
        while let Some((&place, _)) =
            self.through.range((datacenter, Position(0))..=(datacenter, watermark)).next()
        {
            woken.extend(self.through.remove(&place).unwrap_or_default());
        }
        woken
    }
}
