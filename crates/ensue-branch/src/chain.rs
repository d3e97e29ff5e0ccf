//! Who sees whom, in constant time and without ever giving a state another label (trap 10).
//!
//! A state has a place on a chain. Only the first ordinary child of a chain's last state goes on with the chain; every
//! other child, and every merge, begins a chain of its own, which knows of each other chain the last place that it
//! includes: the highest of what its parents' chains include, and the parents' own places. Chains are a site's own and
//! are never told to another.
//!
//! Places are numbered in the order in which they were given. A merge of all leaves sees everything up to a number, and
//! then one number stands for all of that: what a chain lists is what was made since, so it stays short however much
//! was forked and merged before. Where one leaf is left out of all merges nothing stands for the rest; but what a chain
//! lists has all but little in common with what its parents' chains do, and that is kept once.

use crate::shared::{NODE_BYTES, Retain, Shared};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChainId(u64);

/// Where a state stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    pub chain: ChainId,
    pub position: u64,
    /// Its number among all places, in the order in which they were given; none is 0.
    pub order: u64,
}

impl Place {
    /// Where everything stands that all states come from.
    pub const BASE: Place = Place { chain: ChainId(u64::MAX), position: 0, order: 0 };
}

#[derive(Clone, Debug, Default)]
struct Chain {
    /// The highest position given.
    last: u64,
    /// What its first state saw of other chains, each up to and with a position; of what is below it may leave out any.
    includes: Shared,
    /// Its first state saw every place up to this number.
    all_to: u64,
}

/// The chains of a keyspace at one site.
#[derive(Clone, Debug, Default)]
pub struct Chains {
    chains: BTreeMap<ChainId, Chain>,
    /// Of each number that was given the chain and the position, of those that are not collected.
    places: BTreeMap<u64, (ChainId, u64)>,
    next: u64,
    /// Of the last place given.
    order: u64,
    /// How many all the maps of chains have together.
    nodes: usize,
}

/// Memory of a chain beside what it lists, and of a place.
const CHAIN_BYTES: usize = 64;
const PLACE_BYTES: usize = 32;

impl Chains {
    /// A chain that sees no other, and its first place.
    pub fn begin(&mut self) -> Place {
        self.add(Shared::default(), 0)
    }

    /// The place of a child of a state.
    pub fn below(&mut self, parent: Place, forks_begin_chains: bool) -> Place {
        let chain = self.chains.get_mut(&parent.chain).expect("a live state's chain is kept");
        if chain.last == parent.position || !forks_begin_chains {
            chain.last += 1;
            let position = chain.last;
            return self.give(parent.chain, position);
        }
        self.below_all(&[parent])
    }

    /// The place of a merge, or of a child that does not go on with its parent's chain: at the beginning of a chain.
    pub fn below_all(&mut self, parents: &[Place]) -> Place {
        let step = self.next;
        let mut includes = Shared::default();
        let mut all_to = 0;
        for parent in parents {
            let chain = &self.chains[&parent.chain];
            includes = includes.union(&chain.includes, step).with(parent.chain.0, parent.position, step);
            all_to = all_to.max(chain.all_to);
        }
        if parents.len() > 1 {
            all_to = self.all_to(&includes, all_to);
            includes = self.shortened(includes, all_to);
        }
        self.add(includes, all_to)
    }

    /// The number up to which every place is seen by one that sees all up to another, and these.
    fn all_to(&self, includes: &Shared, known: u64) -> u64 {
        let is_unseen =
            |(chain, position): &(ChainId, u64)| includes.get(chain.0).is_none_or(|last| *position > last);
        let unseen = self.places.range(known + 1..).find(|(_, place)| is_unseen(place));
        unseen.map_or(self.order, |(first, _)| first - 1)
    }

    /// Without what is not needed beside a number, if that is half of it or more: a shorter one has less in common with
    /// others, and is made in as many steps as places were given since.
    fn shortened(&self, includes: Shared, all_to: u64) -> Shared {
        if 2 * (self.order - all_to) >= includes.len() as u64 {
            return includes;
        }
        let seen = self.places.range(all_to + 1..).filter_map(|(_, (chain, position))| {
            let last = includes.get(chain.0)?;
            (*position <= last).then_some((chain.0, last))
        });
        seen.fold(Shared::default(), |short, (chain, last)| short.with(chain, last, self.next))
    }

    fn add(&mut self, includes: Shared, all_to: u64) -> Place {
        let chain = ChainId(self.next);
        self.nodes += includes.made_by(self.next);
        self.next += 1;
        self.chains.insert(chain, Chain { last: 0, includes, all_to });
        self.give(chain, 0)
    }

    fn give(&mut self, chain: ChainId, position: u64) -> Place {
        self.order += 1;
        self.places.insert(self.order, (chain, position));
        Place { chain, position, order: self.order }
    }

    /// Whether what stands at `place` is seen at `from`: it is the same state or an ancestor.
    pub fn sees(&self, from: Place, place: Place) -> bool {
        if from.chain == place.chain {
            return place.position <= from.position;
        }
        if place == Place::BASE {
            return true;
        }
        let Some(chain) = self.chains.get(&from.chain) else { return false };
        place.order <= chain.all_to
            || chain.includes.get(place.chain.0).is_some_and(|last| place.position <= last)
    }

    /// The number up to which every place is known to be seen at `from`.
    pub fn sees_all_to(&self, from: Place) -> u64 {
        self.chains.get(&from.chain).map_or(0, |chain| chain.all_to)
    }

    pub fn len(&self) -> usize {
        self.chains.len()
    }

    /// How much is listed, what is in common once.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    pub fn bytes(&self) -> usize {
        self.nodes * NODE_BYTES + self.chains.len() * CHAIN_BYTES + self.places.len() * PLACE_BYTES
    }

    /// Forgets every chain on which no state stands any more, and of the others what is before the first that does.
    pub fn keep(&mut self, used: &BTreeMap<ChainId, u64>) {
        self.chains.retain(|chain, _| used.contains_key(chain));
        self.places.retain(|_, (chain, position)| used.get(chain).is_some_and(|first| *position >= *first));
        let keeps = |chain: u64| used.contains_key(&ChainId(chain));
        let mut retain = Retain::new(&keeps, self.next);
        self.chains.values_mut().for_each(|chain| retain.apply(&mut chain.includes));
        self.nodes = retain.nodes();
        // What was made by this step is counted; what the next one makes is not.
        self.next += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One leaf that nobody merges, and beside it forks that are merged at once.
    fn forked_beside_a_leaf(rounds: usize) -> Chains {
        let mut chains = Chains::default();
        let root = chains.begin();
        let leaf = chains.below(root, true);
        let mut last = chains.below(root, true);
        for _ in 0..rounds {
            let (one, two) = (chains.below(last, true), chains.below(last, true));
            let merged = chains.below_all(&[one, two]);
            assert!(chains.sees(merged, one) && chains.sees(merged, two) && chains.sees(merged, root));
            assert!(!chains.sees(merged, leaf) && !chains.sees(one, two) && !chains.sees(two, one));
            last = merged;
        }
        chains
    }

    #[test]
    fn chains_take_memory_as_there_are_states_though_a_leaf_is_never_merged() {
        let rounds = 3_000;
        let nodes = forked_beside_a_leaf(rounds).nodes();
        assert!(nodes < 50 * 3 * rounds, "{nodes} nodes of {} states", 3 * rounds);
    }

    #[test]
    fn what_a_merge_of_all_sees_takes_nothing() {
        let mut chains = Chains::default();
        let mut last = chains.begin();
        for _ in 0..100 {
            let (one, two) = (chains.below(last, true), chains.below(last, true));
            last = chains.below_all(&[one, two]);
        }
        assert_eq!(chains.nodes(), 100, "each second child lists its parent's chain");
    }

    #[test]
    fn what_was_listed_of_chains_that_are_gone_goes_with_them() {
        let mut chains = forked_beside_a_leaf(100);
        let last = chains.next - 1;
        let used = BTreeMap::from([(ChainId(0), 0), (ChainId(1), 0), (ChainId(last), 0)]);
        chains.keep(&used);
        assert!((chains.len(), chains.places.len()) == (3, 5) && chains.nodes() <= 3, "{chains:?}");
    }
}
