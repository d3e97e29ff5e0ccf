//! Which operations of which streams have been applied here, and who waits for one that has not.
//!
//! An operation is applied when it is visible or has lost arbitration, never before its own dependencies (traps 1, 60).
//! Entries of one stream may be applied out of order (trap 16): the set is a watermark plus what stands above it. What
//! was declared lost counts like applied: there is nothing to wait for (trap 15). So does what a dead datacenter took
//! with it, and whoever waits is told.

use ensue_types::{
    DatacenterId, DatacenterSet, Dependency, Extent, OperationId, PartitionId, Position, Rule,
};
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
    /// What of it was discarded with a dead datacenter.
    pub discarded: BTreeSet<Position>,
    /// The end of a dead datacenter's stream: what stands after it is nowhere.
    pub end: Option<Position>,
    /// Who had been declared dead before that end was found, itself among them: the same at every survivor.
    pub failed: DatacenterSet,
}

impl AppliedSet {
    pub fn contains(&self, position: Position) -> bool {
        position <= self.watermark || self.above.contains(&position) || self.is_lost(position)
    }

    /// Whether a position was declared lost.
    pub fn is_lost(&self, position: Position) -> bool {
        self.lost.iter().any(|&(after, through)| after < position && position <= through)
    }

    /// Whether a position stands after the end of a dead datacenter's stream.
    fn is_beyond_end(&self, position: Position) -> bool {
        self.end.is_some_and(|end| end < position)
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

    /// Panics if the set contradicts itself.
    fn check_invariants(&self) {
        assert!(
            !self.above.contains(&self.watermark.next()),
            "the watermark is behind what is applied: {self:?}"
        );
        assert!(
            self.above.first().is_none_or(|first| *first > self.watermark),
            "a position is below the watermark and above it: {self:?}"
        );
        assert!(self.lost.iter().all(|(after, through)| after < through), "nothing was lost: {self:?}");
    }

    /// The highest applied position.
    pub fn highest(&self) -> Position {
        self.above.last().copied().unwrap_or(self.watermark)
    }
}

/// One whose wait is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unblocked<W> {
    pub waiter: W,
    /// What it waited for is gone.
    pub unrecoverable: Option<Dependency>,
}

/// The applied sets of all streams of this partition, with those who wait for them. `W` names a waiter.
#[derive(Clone, Debug)]
pub struct Applied<W> {
    partition: PartitionId,
    sets: BTreeMap<DatacenterId, AppliedSet>,
    exact: BTreeMap<(DatacenterId, Position), Vec<W>>,
    through: BTreeMap<(DatacenterId, Position), Vec<W>>,
}

impl<W> Applied<W> {
    /// Panics if a set contradicts itself, or somebody waits for what is applied.
    pub(in crate::partition) fn check_invariants(&self) -> usize {
        self.sets.values().for_each(AppliedSet::check_invariants);
        for (datacenter, position) in self.exact.keys() {
            let is_applied = self.sets.get(datacenter).is_some_and(|set| set.contains(*position));
            assert!(!is_applied, "{position} of {datacenter} is applied, and somebody waits for it");
        }
        for (datacenter, position) in self.through.keys() {
            let watermark = self.sets.get(datacenter).map(|set| set.watermark).unwrap_or_default();
            assert!(
                watermark < *position,
                "{datacenter} is applied up to {watermark}, and somebody waits for {position}"
            );
        }
        self.exact.len() + self.through.len()
    }

    pub fn new(partition: PartitionId) -> Applied<W> {
        let (sets, exact, through) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Applied { partition, sets, exact, through }
    }

    pub fn set(&self, datacenter: DatacenterId) -> Option<&AppliedSet> {
        self.sets.get(&datacenter)
    }

    pub fn sets(&self) -> impl Iterator<Item = (DatacenterId, &AppliedSet)> {
        self.sets.iter().map(|(datacenter, set)| (*datacenter, set))
    }

    /// Whether of each stream nothing is applied behind something that is not.
    pub fn is_in_order(&self) -> bool {
        self.sets.values().all(|set| set.above.is_empty())
    }

    pub fn restore(&mut self, datacenter: DatacenterId, set: AppliedSet) {
        self.sets.insert(datacenter, set);
    }

    /// Everything of a stream up to here is applied: the own stream, whose entries are applied by being logged.
    pub fn through(&mut self, datacenter: DatacenterId, watermark: Position) {
        self.sets.entry(datacenter).or_default().watermark = watermark;
    }

    /// Nothing of a stream after `after` and up to `through` will ever come; hands out those who waited for it.
    pub fn lose(
        &mut self,
        datacenter: DatacenterId,
        after: Position,
        through: Position,
    ) -> Vec<Unblocked<W>> {
        let set = self.sets.entry(datacenter).or_default();
        set.lose(after, through);
        let watermark = set.watermark;
        if !Rule::DeclareTheLost.holds() {
            return Vec::new();
        }
        let mut unblocked = self.waited_exactly(datacenter, after.next(), through);
        unblocked.extend(self.reached(datacenter, Position(0), watermark));
        unblocked
    }

    /// A dead datacenter's stream ends here, and these had been declared dead by then; hands out those who waited for
    /// what stands after it.
    pub fn end(
        &mut self,
        datacenter: DatacenterId,
        end: Position,
        failed: DatacenterSet,
    ) -> Vec<Unblocked<W>> {
        let set = self.sets.entry(datacenter).or_default();
        (set.end, set.failed) = (Some(end), failed);
        let mut unblocked = self.waited_exactly(datacenter, end.next(), Position(u64::MAX));
        unblocked.extend(self.reached(datacenter, end.next(), Position(u64::MAX)));
        unblocked
    }

    /// This position, which is about to be marked applied, was discarded with a dead datacenter.
    pub fn discard(&mut self, datacenter: DatacenterId, position: Position) {
        self.sets.entry(datacenter).or_default().discarded.insert(position);
    }

    pub fn is_discarded(&self, datacenter: DatacenterId, position: Position) -> bool {
        self.sets.get(&datacenter).is_some_and(|set| set.discarded.contains(&position))
    }

    /// What of a dependency that is met is gone: itself, or only something before it that it covers.
    pub fn unrecoverable(&self, dependency: &Dependency) -> Option<Dependency> {
        let OperationId { datacenter, position, .. } = dependency.operation;
        let set = self.sets.get(&datacenter)?;
        if !Rule::DiscardWhatDependsOnLost.holds() {
            return None;
        }
        if set.is_beyond_end(position) || set.discarded.contains(&position) {
            return Some(Dependency { extent: Extent::Exact, ..*dependency });
        }
        let covers = set.discarded.range(..=position).next().is_some();
        (dependency.extent == Extent::Through && covers).then_some(*dependency)
    }

    /// Whether what a datacenter has written is discarded for such a dependency. Who lives, or lived when the end of
    /// the stream was found, has acknowledged what it wrote, and named what it had shown: it can only have lost that
    /// with its power. To it that is lost like a tail.
    pub fn discards(&self, origin: DatacenterId, unrecoverable: &Dependency) -> bool {
        let of = unrecoverable.operation.datacenter;
        let has_failed = || self.sets.get(&of).is_some_and(|set| set.failed.contains(origin));
        let is_exact = unrecoverable.extent == Extent::Exact;
        origin == of || is_exact && (has_failed() || !Rule::DiscardNothingOfTheLiving.holds())
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
            _ if set.is_beyond_end(operation.position) => true,
            Extent::Exact if !Rule::CheckTheVeryOperation.holds() => operation.position <= set.highest(),
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

    /// All that wait, with the datacenters whose operations they wait for.
    pub fn waiting(&self) -> impl Iterator<Item = (DatacenterId, &W)> {
        let places = self.exact.iter().chain(&self.through);
        places.flat_map(|((datacenter, _), waiters)| waiters.iter().map(|waiter| (*datacenter, waiter)))
    }

    /// One that waits for a dependency does so no more.
    pub fn forget(&mut self, dependency: &Dependency, waiter: &W)
    where
        W: PartialEq,
    {
        let place = (dependency.operation.datacenter, dependency.operation.position);
        let waiting = match dependency.extent {
            Extent::Exact => &mut self.exact,
            Extent::Through => &mut self.through,
        };
        if let Some(waiters) = waiting.get_mut(&place) {
            waiters.retain(|one| one != waiter);
            if waiters.is_empty() {
                waiting.remove(&place);
            }
        }
    }

    /// Marks a position applied; hands out those whose wait is over. Says nothing twice.
    pub fn insert(&mut self, datacenter: DatacenterId, position: Position) -> Vec<Unblocked<W>> {
        let set = self.sets.entry(datacenter).or_default();
        set.insert(position);
        let watermark = set.watermark;
        let waiters = self.exact.remove(&(datacenter, position)).unwrap_or_default();
        let mut unblocked = self.unblocked((datacenter, position), Extent::Exact, waiters);
        unblocked.extend(self.reached(datacenter, Position(0), watermark));
        unblocked
    }

    fn unblocked(
        &self,
        (datacenter, position): (DatacenterId, Position),
        extent: Extent,
        waiters: Vec<W>,
    ) -> Vec<Unblocked<W>> {
        if waiters.is_empty() {
            return Vec::new();
        }
        let (incarnation, partition) = (position.incarnation(), self.partition);
        let operation = OperationId { datacenter, incarnation, partition, position };
        let unrecoverable = self.unrecoverable(&Dependency { operation, extent });
        waiters.into_iter().map(|waiter| Unblocked { waiter, unrecoverable }).collect()
    }

    /// Those who waited for a position of this range.
    fn waited_exactly(
        &mut self,
        datacenter: DatacenterId,
        from: Position,
        through: Position,
    ) -> Vec<Unblocked<W>> {
        let mut unblocked = Vec::new();
        while let Some((&place, _)) = self.exact.range((datacenter, from)..=(datacenter, through)).next() {
            let waiters = self.exact.remove(&place).unwrap_or_default();
            unblocked.extend(self.unblocked(place, Extent::Exact, waiters));
        }
        unblocked
    }

    /// Those who waited for a whole stream up to a place of this range.
    fn reached(&mut self, datacenter: DatacenterId, from: Position, to: Position) -> Vec<Unblocked<W>> {
        let mut unblocked = Vec::new();
        while let Some((&place, _)) = self.through.range((datacenter, from)..=(datacenter, to)).next() {
            let waiters = self.through.remove(&place).unwrap_or_default();
            unblocked.extend(self.unblocked(place, Extent::Through, waiters));
        }
        unblocked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ensue_types::Incarnation;

    const DEAD: DatacenterId = DatacenterId(2);

    fn on(position: u64, extent: Extent) -> Dependency {
        let operation = OperationId {
            datacenter: DEAD,
            incarnation: Incarnation(1),
            partition: PartitionId(1),
            position: Position(position),
        };
        Dependency { operation, extent }
    }

    #[test]
    fn what_stands_after_the_end_of_a_stream_is_gone_and_what_is_before_it_is_waited_for() {
        let mut applied = Applied::new(PartitionId(1));
        applied.wait(&on(2, Extent::Exact), "before");
        applied.wait(&on(3, Extent::Through), "through before");
        applied.wait(&on(4, Extent::Exact), "after");
        applied.wait(&on(9, Extent::Through), "through after");
        assert!(applied.insert(DEAD, Position(1)).is_empty());
        let unblocked = applied.end(DEAD, Position(3), DatacenterSet::default());
        let expected = [("after", 4), ("through after", 9)]
            .map(|(waiter, position)| Unblocked { waiter, unrecoverable: Some(on(position, Extent::Exact)) });
        assert_eq!(unblocked, expected);
        assert!(applied.meets(&on(4, Extent::Exact)) && !applied.meets(&on(3, Extent::Through)));
        applied.discard(DEAD, Position(2));
        let unblocked = applied.insert(DEAD, Position(2));
        assert_eq!(unblocked, [Unblocked { waiter: "before", unrecoverable: Some(on(2, Extent::Exact)) }]);
        let unblocked = applied.insert(DEAD, Position(3));
        assert_eq!(
            unblocked,
            [Unblocked { waiter: "through before", unrecoverable: Some(on(3, Extent::Through)) }]
        );
        assert_eq!(applied.unrecoverable(&on(3, Extent::Exact)), None);
        assert_eq!(applied.unrecoverable(&on(1, Extent::Through)), None);
    }

    /// A session of a dead datacenter may have seen all of its streams. One of another datacenter had seen what is
    /// shown: where its past covers what is gone, it never met that. Who lives has shown what it names, and lost it.
    #[test]
    fn a_write_is_discarded_for_what_its_datacenter_may_have_seen() {
        let (living, failed) = (DatacenterId(0), DatacenterId(1));
        let mut applied: Applied<()> = Applied::new(PartitionId(1));
        assert!(applied.end(DEAD, Position(3), [DEAD, failed].into_iter().collect()).is_empty());
        for (extent, discarded) in
            [(Extent::Exact, [true, true, false]), (Extent::Through, [true, false, false])]
        {
            let gone = on(4, extent);
            assert_eq!([DEAD, failed, living].map(|origin| applied.discards(origin, &gone)), discarded);
        }
    }

    #[test]
    fn what_was_lost_is_passed_over() {
        let mut set = AppliedSet::default();
        assert!(set.insert(Position(1)) && !set.insert(Position(1)) && set.insert(Position(7)));
        set.lose(Position(2), Position(5));
        let lost: Vec<u64> = (0..9).filter(|position| set.is_lost(Position(*position))).collect();
        assert_eq!(lost, [3, 4, 5]);
        let next: Vec<u64> = (1..7).map(|position| set.next(Position(position)).0).collect();
        assert_eq!(next, [2, 6, 6, 6, 6, 7]);
        assert_eq!((set.watermark, set.highest()), (Position(1), Position(7)));
        assert!(set.insert(Position(2)));
        assert_eq!(set.watermark, Position(5), "nothing of the gap will come");
        assert!(set.insert(Position(6)));
        assert_eq!((set.watermark, set.highest()), (Position(7), Position(7)));
    }
}
