//! A map from numbers to numbers that is never changed: what is made of it has most of its memory in common with it.
//!
//! A trie over the bits of a key, the highest first. Where two maps are joined, what they have in common is not looked
//! at, and what one of them has alone is taken as it is; so a map that differs from another in a few entries costs a
//! few nodes, and no more steps.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Shared {
    root: Option<Arc<Node>>,
}

#[derive(Debug)]
struct Node {
    /// Of the step that made it.
    step: u64,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Leaf {
        key: u64,
        value: u64,
    },
    /// Keys that are alike above a bit: those that do not have it, and those that do.
    Fork {
        prefix: u64,
        bit: u64,
        len: usize,
        without: Arc<Node>,
        with: Arc<Node>,
    },
}

/// What a node takes in memory, rounded up.
pub const NODE_BYTES: usize = 88;

impl Shared {
    pub fn get(&self, key: u64) -> Option<u64> {
        let mut node = self.root.as_ref()?;
        loop {
            match &node.kind {
                Kind::Leaf { key: other, value } => return (*other == key).then_some(*value),
                Kind::Fork { bit, without, with, .. } => node = if key & bit == 0 { without } else { with },
            }
        }
    }

    pub fn len(&self) -> usize {
        self.root.as_ref().map_or(0, |root| root.len())
    }

    /// With an entry, unless it has a higher one of this key.
    pub fn with(&self, key: u64, value: u64, step: u64) -> Shared {
        let leaf = || Node::leaf(key, value, step);
        Shared { root: Some(self.root.as_ref().map_or_else(leaf, |root| raised(root, key, value, step))) }
    }

    /// All entries of both, the higher of each key.
    pub fn union(&self, other: &Shared, step: u64) -> Shared {
        let root = match (&self.root, &other.root) {
            (Some(one), Some(two)) => Some(union(one, two, step)),
            (one, two) => one.as_ref().or(two.as_ref()).cloned(),
        };
        Shared { root }
    }

    /// How many of its nodes this step has made.
    pub fn made_by(&self, step: u64) -> usize {
        fn count(node: &Node, step: u64) -> usize {
            match &node.kind {
                _ if node.step != step => 0,
                Kind::Leaf { .. } => 1,
                Kind::Fork { without, with, .. } => 1 + count(without, step) + count(with, step),
            }
        }
        self.root.as_ref().map_or(0, |root| count(root, step))
    }
}

/// Maps that lose the same keys, and have as much in common afterwards.
pub struct Retain<'a> {
    keeps: &'a dyn Fn(u64) -> bool,
    step: u64,
    /// What became of each node. The old ones live as long: another would else be at the same place.
    done: BTreeMap<*const Node, (Arc<Node>, Option<Arc<Node>>)>,
}

impl<'a> Retain<'a> {
    pub fn new(keeps: &'a dyn Fn(u64) -> bool, step: u64) -> Retain<'a> {
        Retain { keeps, step, done: BTreeMap::new() }
    }

    pub fn apply(&mut self, map: &mut Shared) {
        if let Some(root) = map.root.take() {
            map.root = self.kept(&root);
        }
    }

    /// How many nodes all those maps have together.
    pub fn nodes(&self) -> usize {
        let left = self.done.values().filter_map(|(_, left)| left.as_ref().map(Arc::as_ptr));
        left.collect::<BTreeSet<*const Node>>().len()
    }

    fn kept(&mut self, node: &Arc<Node>) -> Option<Arc<Node>> {
        if let Some((_, left)) = self.done.get(&Arc::as_ptr(node)) {
            return left.clone();
        }
        let left = match &node.kind {
            Kind::Leaf { key, .. } => (self.keeps)(*key).then(|| node.clone()),
            Kind::Fork { prefix, bit, without, with, .. } => match (self.kept(without), self.kept(with)) {
                (Some(new_without), Some(new_with)) => {
                    let is_same = Arc::ptr_eq(&new_without, without) && Arc::ptr_eq(&new_with, with);
                    Some(match is_same {
                        true => node.clone(),
                        false => Node::fork(*prefix, *bit, new_without, new_with, self.step),
                    })
                }
                (one, two) => one.or(two),
            },
        };
        self.done.insert(Arc::as_ptr(node), (node.clone(), left.clone()));
        left
    }
}

impl Node {
    fn leaf(key: u64, value: u64, step: u64) -> Arc<Node> {
        Arc::new(Node { step, kind: Kind::Leaf { key, value } })
    }

    fn fork(prefix: u64, bit: u64, without: Arc<Node>, with: Arc<Node>, step: u64) -> Arc<Node> {
        let len = without.len() + with.len();
        Arc::new(Node { step, kind: Kind::Fork { prefix, bit, len, without, with } })
    }

    fn len(&self) -> usize {
        match &self.kind {
            Kind::Leaf { .. } => 1,
            Kind::Fork { len, .. } => *len,
        }
    }

    /// Some key below it.
    fn prefix(&self) -> u64 {
        match &self.kind {
            Kind::Leaf { key, .. } => *key,
            Kind::Fork { prefix, .. } => *prefix,
        }
    }
}

/// A key's bits above one.
fn above(key: u64, bit: u64) -> u64 {
    key & !(bit | (bit - 1))
}

/// Two that differ above all that either of them tells apart.
fn joined(one: &Arc<Node>, two: &Arc<Node>, step: u64) -> Arc<Node> {
    let bit = 1 << (one.prefix() ^ two.prefix()).ilog2();
    let (without, with) = if one.prefix() & bit == 0 { (one, two) } else { (two, one) };
    Node::fork(above(one.prefix(), bit), bit, without.clone(), with.clone(), step)
}

/// A fork with other nodes in the place of its own, or itself.
fn changed(node: &Arc<Node>, new_without: Arc<Node>, new_with: Arc<Node>, step: u64) -> Arc<Node> {
    match &node.kind {
        Kind::Fork { without, with, .. }
            if Arc::ptr_eq(without, &new_without) && Arc::ptr_eq(with, &new_with) =>
        {
            node.clone()
        }
        Kind::Fork { prefix, bit, .. } => Node::fork(*prefix, *bit, new_without, new_with, step),
        Kind::Leaf { .. } => unreachable!("a leaf has no nodes in it"),
    }
}

/// With an entry, unless there is a higher one of this key.
fn raised(node: &Arc<Node>, key: u64, value: u64, step: u64) -> Arc<Node> {
    match &node.kind {
        Kind::Leaf { key: other, value: known } if *other == key => match *known >= value {
            true => node.clone(),
            false => Node::leaf(key, value, step),
        },
        Kind::Fork { prefix, bit, without, with, .. } if above(key, *bit) == *prefix => match key & bit {
            0 => changed(node, raised(without, key, value, step), with.clone(), step),
            _ => changed(node, without.clone(), raised(with, key, value, step), step),
        },
        _ => joined(node, &Node::leaf(key, value, step), step),
    }
}

fn union(one: &Arc<Node>, two: &Arc<Node>, step: u64) -> Arc<Node> {
    if Arc::ptr_eq(one, two) {
        return one.clone();
    }
    match (&one.kind, &two.kind) {
        (Kind::Leaf { key, value }, _) => raised(two, *key, *value, step),
        (_, Kind::Leaf { key, value }) => raised(one, *key, *value, step),
        (
            Kind::Fork { prefix, bit, without, with, .. },
            Kind::Fork { prefix: prefix2, bit: bit2, without: without2, with: with2, .. },
        ) => {
            if (prefix, bit) == (prefix2, bit2) {
                let (left, right) = (union(without, without2, step), union(with, with2, step));
                // What has all of both already is one of them.
                let is_two = Arc::ptr_eq(&left, without2) && Arc::ptr_eq(&right, with2);
                return if is_two { two.clone() } else { changed(one, left, right, step) };
            }
            if bit > bit2 && above(*prefix2, *bit) == *prefix {
                return match prefix2 & bit {
                    0 => changed(one, union(without, two, step), with.clone(), step),
                    _ => changed(one, without.clone(), union(with, two, step), step),
                };
            }
            if bit2 > bit && above(*prefix, *bit2) == *prefix2 {
                return match prefix & bit2 {
                    0 => changed(two, union(one, without2, step), with2.clone(), step),
                    _ => changed(two, without2.clone(), union(one, with2, step), step),
                };
            }
            joined(one, two, step)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn keys() -> impl Strategy<Value = u64> {
        prop_oneof![0..40u64, any::<u64>(), Just(u64::MAX), Just(1 << 63)]
    }

    fn made(entries: &[(u64, u64)]) -> Shared {
        entries.iter().fold(Shared::default(), |map, (key, value)| map.with(*key, *value, 1))
    }

    fn higher(into: &mut BTreeMap<u64, u64>, entries: &[(u64, u64)]) {
        for (key, value) in entries {
            let known = into.entry(*key).or_insert(*value);
            *known = (*known).max(*value);
        }
    }

    fn same(map: &Shared, expected: &BTreeMap<u64, u64>, asked: &[u64]) {
        assert_eq!(map.len(), expected.len());
        assert!(asked.iter().all(|key| map.get(*key) == expected.get(key).copied()), "{map:?}");
    }

    proptest! {
        #[test]
        fn it_is_a_map_of_the_highest_entries(
            one in vec((keys(), 0..9u64), 0..40),
            two in vec((keys(), 0..9u64), 0..40),
            modulus in 1..5u64,
        ) {
            let asked: Vec<u64> = one.iter().chain(&two).map(|(key, _)| *key).chain([0, 7, 99]).collect();
            let (first, mut expected) = (made(&one), BTreeMap::new());
            higher(&mut expected, &one);
            same(&first, &expected, &asked);
            let mut both = first.union(&made(&two), 2);
            let mut small = first.clone();
            let before = expected.clone();
            higher(&mut expected, &two);
            same(&both, &expected, &asked);
            same(&first, &before, &asked);
            let all = first.made_by(1) + both.made_by(2);
            let keeps = |key: u64| key % modulus != 0;
            let mut retain = Retain::new(&keeps, 3);
            retain.apply(&mut both);
            retain.apply(&mut small);
            expected.retain(|key, _| keeps(*key));
            same(&both, &expected, &asked);
            prop_assert!(retain.nodes() <= all + made(&two).made_by(1));
        }
    }

    #[test]
    fn maps_that_differ_in_little_have_the_rest_in_common() {
        let many = (0..1000).fold(Shared::default(), |map, key| map.with(key, 1, 1));
        let (one, two) = (many.with(7, 2, 2), many.with(700, 2, 2));
        assert!(one.made_by(2) < 15 && two.made_by(2) < 15);
        assert!(one.union(&two, 3).made_by(3) < 15);
        let larger = one.with(1000, 1, 2);
        assert_eq!((one.union(&larger, 3).made_by(3), larger.union(&one, 3).made_by(3)), (0, 0));
        assert_eq!(many.with(7, 1, 2).made_by(2), 0);
        let all = |_| true;
        let mut retain = Retain::new(&all, 4);
        [one, two, many].iter_mut().for_each(|map| retain.apply(map));
        assert!(retain.nodes() < 2_030, "{}", retain.nodes());
    }
}
