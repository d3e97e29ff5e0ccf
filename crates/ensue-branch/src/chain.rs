//! Who sees whom, in constant time and without ever giving a state another label (trap 10).
//!
//! A state has a place on a chain. Only the first ordinary child of a chain's last state goes on with the chain; every other child,
//! and every merge, begins a chain of its own, which knows of each other chain the last place that it includes: the highest of what its
//! parents' chains include, and the parents' own places. Chains are a site's own and are never told to another.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChainId(u64);

/// Where a state stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    pub chain: ChainId,
    pub position: u64,
}

impl Place {
    /// Where everything stands that all states come from.
    pub const BASE: Place = Place { chain: ChainId(u64::MAX), position: 0 };
}

#[derive(Clone, Debug, Default)]
struct Chain {
    /// The highest position given.
    last: u64,
    /// What its first state saw of other chains, each up to and with a position.
    includes: BTreeMap<ChainId, u64>,
}

/// The chains of a keyspace at one site.
#[derive(Clone, Debug, Default)]
pub struct Chains {
    chains: BTreeMap<ChainId, Chain>,
    next: u64,
}

impl Chains {
    /// A chain that sees no other, and its first place.
    pub fn begin(&mut self) -> Place {
        self.add(BTreeMap::new())
    }

    /// The place of a child of a state.
    pub fn below(&mut self, parent: Place, forks_begin_chains: bool) -> Place {
        let chain = self.chains.get_mut(&parent.chain).expect("a live state's chain is kept");
        if chain.last == parent.position || !forks_begin_chains {
            chain.last += 1;
            return Place { chain: parent.chain, position: chain.last };
        }
        self.below_all(&[parent])
    }

    /// The place of a merge, at the beginning of a chain.
    pub fn below_all(&mut self, parents: &[Place]) -> Place {
        let mut includes = BTreeMap::new();
        for parent in parents {
            let seen = &self.chains[&parent.chain].includes;
            for (chain, position) in seen.iter().chain([(&parent.chain, &parent.position)]) {
                let highest = includes.entry(*chain).or_insert(0);
                *highest = (*highest).max(*position);
            }
        }
        self.add(includes)
    }

    fn add(&mut self, includes: BTreeMap<ChainId, u64>) -> Place {
        let chain = ChainId(self.next);
        self.next += 1;
        self.chains.insert(chain, Chain { last: 0, includes });
        Place { chain, position: 0 }
    }

    /// Whether what stands at `place` is seen at `from`: it is the same state or an ancestor.
    pub fn sees(&self, from: Place, place: Place) -> bool {
        if place == Place::BASE {
            return true;
        }
        if from.chain == place.chain {
            return place.position <= from.position;
        }
        let chain = self.chains.get(&from.chain);
        chain.and_then(|chain| chain.includes.get(&place.chain)).is_some_and(|last| place.position <= *last)
    }

    pub fn len(&self) -> usize {
        self.chains.len()
    }

    /// Forgets every chain on which no state stands any more.
    pub fn keep(&mut self, used: &BTreeSet<ChainId>) {
        self.chains.retain(|chain, _| used.contains(chain));
        for chain in self.chains.values_mut() {
            chain.includes.retain(|included, _| used.contains(included));
        }
    }
}
