//! Who sees whom, in constant time and without ever giving a state another label (trap 10).
//!
//! A state has a place on a chain. Only the first ordinary child of a chain's last state goes on with the chain; every
//! other child, and every merge, begins a chain of its own, which knows of each other chain the last place that it
//! includes: the highest of what its parents' chains include, and the parents' own places. Chains are a site's own and
//! are never told to another.
//!
//! Places are numbered in the order in which they were given. A merge of all leaves sees everything up to a number, and
//! then one number stands for all of that: what a chain lists is what was made since, so it stays short however much
//! was forked and merged before.

use std::collections::{BTreeMap, VecDeque};

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
    /// The position of the first of `orders`: those before were collected.
    first: u64,
    /// The numbers of its places.
    orders: VecDeque<u64>,
    /// What its first state saw of other chains, each up to and with a position, beside what is below.
    includes: BTreeMap<ChainId, u64>,
    /// Its first state saw every place up to this number.
    all_to: u64,
}

impl Chain {
    /// The highest position given.
    fn last(&self) -> u64 {
        self.first + self.orders.len() as u64 - 1
    }

    /// The number of the first place from a position on.
    fn order_from(&self, position: u64) -> Option<u64> {
        self.orders.get(position.saturating_sub(self.first) as usize).copied()
    }
}

/// The chains of a keyspace at one site.
#[derive(Clone, Debug, Default)]
pub struct Chains {
    chains: BTreeMap<ChainId, Chain>,
    next: u64,
    /// Of the last place given.
    order: u64,
}

impl Chains {
    /// A chain that sees no other, and its first place.
    pub fn begin(&mut self) -> Place {
        self.add(BTreeMap::new(), 0)
    }

    /// The place of a child of a state.
    pub fn below(&mut self, parent: Place, forks_begin_chains: bool) -> Place {
        let chain = self.chains.get_mut(&parent.chain).expect("a live state's chain is kept");
        if chain.last() == parent.position || !forks_begin_chains {
            self.order += 1;
            chain.orders.push_back(self.order);
            return Place { chain: parent.chain, position: chain.last(), order: self.order };
        }
        self.below_all(&[parent])
    }

    /// The place of a merge, or of a child that does not go on with its parent's chain: at the beginning of a chain.
    pub fn below_all(&mut self, parents: &[Place]) -> Place {
        let mut includes = BTreeMap::new();
        for parent in parents {
            let seen = &self.chains[&parent.chain].includes;
            for (chain, position) in seen.iter().chain([(&parent.chain, &parent.position)]) {
                let highest = includes.entry(*chain).or_insert(0);
                *highest = (*highest).max(*position);
            }
        }
        let all_to = parents.iter().map(|parent| self.chains[&parent.chain].all_to).max().unwrap_or(0);
        let all_to = if parents.len() > 1 { self.all_to(&includes, all_to) } else { all_to };
        includes.retain(|chain, position| {
            self.chains
                .get(chain)
                .and_then(|chain| chain.order_from(*position))
                .is_some_and(|order| order > all_to)
        });
        self.add(includes, all_to)
    }

    /// The number up to which every place is seen by one that sees all up to another, and these.
    fn all_to(&self, includes: &BTreeMap<ChainId, u64>, known: u64) -> u64 {
        let unseen = self.chains.iter().filter_map(|(id, chain)| {
            if chain.orders.back().is_none_or(|order| *order <= known) {
                return None;
            }
            let listed =
                includes.get(id).map_or(0, |position| (position + 1).saturating_sub(chain.first) as usize);
            let unlisted = chain.orders.partition_point(|order| *order <= known);
            chain.orders.get(listed.max(unlisted)).copied()
        });
        unseen.min().map_or(self.order, |first| first - 1)
    }

    fn add(&mut self, includes: BTreeMap<ChainId, u64>, all_to: u64) -> Place {
        let chain = ChainId(self.next);
        self.next += 1;
        self.order += 1;
        self.chains.insert(chain, Chain { first: 0, orders: VecDeque::from([self.order]), includes, all_to });
        Place { chain, position: 0, order: self.order }
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
            || chain.includes.get(&place.chain).is_some_and(|last| place.position <= *last)
    }

    /// The number up to which every place is known to be seen at `from`.
    pub fn sees_all_to(&self, from: Place) -> u64 {
        self.chains.get(&from.chain).map_or(0, |chain| chain.all_to)
    }

    pub fn len(&self) -> usize {
        self.chains.len()
    }

    /// Forgets every chain on which no state stands any more, and of the others what is before the first that does.
    pub fn keep(&mut self, used: &BTreeMap<ChainId, u64>) {
        self.chains.retain(|chain, _| used.contains_key(chain));
        for (id, chain) in &mut self.chains {
            chain.includes.retain(|included, _| used.contains_key(included));
            while chain.first < used[id] {
                chain.orders.pop_front();
                chain.first += 1;
            }
        }
    }
}
