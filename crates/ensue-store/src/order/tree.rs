//! The nodes of an order: leaves of members, and branches that say what begins in each and how many there are.
//!
//! A node splits when it is full. It goes when it is empty, and is not merged with its neighbours before: what is taken
//! out of a sorted set is mostly one of its ends, or soon filled again.

use super::Scored;

/// Most members of a leaf, and branches of another node.
const WIDTH: usize = 64;
/// How many of these a node has that is made of members in their order.
const FILLED: usize = 48;

#[derive(Clone, Debug)]
pub(super) enum Node {
    Leaf(Vec<Scored>),
    Inner(Vec<Branch>),
}

#[derive(Clone, Debug)]
pub(super) struct Branch {
    /// No member below comes before this one, which need not be there any more, and none of an earlier branch behind
    /// it.
    from: Scored,
    count: usize,
    node: Node,
}

impl Default for Node {
    fn default() -> Node {
        Node::Leaf(Vec::new())
    }
}

impl Branch {
    fn new(node: Node) -> Option<Branch> {
        let from = node.first()?.clone();
        Some(Branch { from, count: node.count(), node })
    }
}

impl Node {
    /// A node above these.
    pub(super) fn above(nodes: impl IntoIterator<Item = Node>) -> Node {
        Node::Inner(nodes.into_iter().filter_map(Branch::new).collect())
    }

    pub(super) fn of_sorted(members: Vec<Scored>) -> Node {
        let mut nodes: Vec<Node> =
            members.chunks(FILLED).map(|members| Node::Leaf(members.to_vec())).collect();
        while nodes.len() > 1 {
            let mut above = Vec::new();
            let mut rest = nodes.into_iter().peekable();
            while rest.peek().is_some() {
                above.push(Node::above(rest.by_ref().take(FILLED)));
            }
            nodes = above;
        }
        nodes.pop().unwrap_or_default()
    }

    fn first(&self) -> Option<&Scored> {
        match self {
            Node::Leaf(members) => members.first(),
            Node::Inner(branches) => branches.first().map(|branch| &branch.from),
        }
    }

    fn count(&self) -> usize {
        match self {
            Node::Leaf(members) => members.len(),
            Node::Inner(branches) => branches.iter().map(|branch| branch.count).sum(),
        }
    }

    /// The right half, if the node had to be split.
    pub(super) fn insert(&mut self, member: Scored) -> Option<Node> {
        match self {
            Node::Leaf(members) => {
                let place = members.partition_point(|other| *other < member);
                members.insert(place, member);
                (members.len() > WIDTH).then(|| Node::Leaf(members.split_off(WIDTH / 2)))
            }
            Node::Inner(branches) => {
                let place = branches.partition_point(|branch| branch.from <= member).saturating_sub(1);
                let branch = &mut branches[place];
                if member < branch.from {
                    branch.from = member.clone();
                }
                branch.count += 1;
                if let Some(right) = branch.node.insert(member).and_then(Branch::new) {
                    branch.count -= right.count;
                    branches.insert(place + 1, right);
                }
                (branches.len() > WIDTH).then(|| Node::Inner(branches.split_off(WIDTH / 2)))
            }
        }
    }

    /// Whether the member was there.
    pub(super) fn remove(&mut self, member: &Scored) -> bool {
        match self {
            Node::Leaf(members) => {
                let found = members.binary_search(member);
                found.is_ok_and(|place| members.remove(place) == *member)
            }
            Node::Inner(branches) => {
                let place = branches.partition_point(|branch| branch.from <= *member).saturating_sub(1);
                if !branches[place].node.remove(member) {
                    return false;
                }
                branches[place].count -= 1;
                if branches[place].count == 0 {
                    branches.remove(place);
                }
                true
            }
        }
    }

    /// Takes out so many of the last members; answers how many there were.
    pub(super) fn free_some(&mut self, count: usize) -> usize {
        match self {
            Node::Leaf(members) => {
                let left = members.len().saturating_sub(count);
                let freed = members.len() - left;
                members.truncate(left);
                freed
            }
            Node::Inner(branches) => {
                let mut freed = 0;
                while let Some(last) = branches.last_mut().filter(|_| freed < count) {
                    let some = last.node.free_some(count - freed);
                    last.count -= some;
                    freed += some;
                    if last.count == 0 {
                        branches.pop();
                    }
                }
                freed
            }
        }
    }

    /// Takes away levels that have become needless.
    pub(super) fn shrink(&mut self) {
        while let Node::Inner(branches) = self {
            if branches.len() > 1 {
                return;
            }
            *self = branches.pop().map(|branch| branch.node).unwrap_or_default();
        }
    }

    pub(super) fn partition_point(&self, holds: &impl Fn(&Scored) -> bool) -> usize {
        match self {
            Node::Leaf(members) => members.partition_point(holds),
            Node::Inner(branches) => {
                // The last branch that may have both members of which it holds and others.
                let place = branches.partition_point(|branch| holds(&branch.from));
                let Some(last) = place.checked_sub(1) else { return 0 };
                let before: usize = branches[..last].iter().map(|branch| branch.count).sum();
                before + branches[last].node.partition_point(holds)
            }
        }
    }

    /// Adds the members from a place on, so many of them.
    pub(super) fn collect(&self, skipped: usize, count: usize, members: &mut Vec<Scored>) {
        match self {
            Node::Leaf(own) => members.extend(own.iter().skip(skipped).take(count).cloned()),
            Node::Inner(branches) => {
                let (mut skipped, mut left) = (skipped, count);
                for branch in branches {
                    if left == 0 {
                        return;
                    }
                    if branch.count <= skipped {
                        skipped -= branch.count;
                        continue;
                    }
                    let taken = left.min(branch.count - skipped);
                    branch.node.collect(skipped, taken, members);
                    left -= taken;
                    skipped = 0;
                }
            }
        }
    }
}
