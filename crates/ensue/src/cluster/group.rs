//! What the owners of partitions tell of who replicates them.

use super::Asking;
use anyhow::{Context, bail};
use std::time::{Duration, Instant};

/// A replica of a partition on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) node: u16,
    pub(super) votes: bool,
    pub(super) is_heard: bool,
    /// The entry of the replicated log up to which it has everything.
    pub(super) has: u64,
}

/// The replicas of a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) partition: u16,
    pub(super) owner: u16,
    pub(super) term: u64,
    pub(super) committed: u64,
    /// Its members are being changed.
    pub(super) changes: bool,
    /// The nodes that its owner can reach, itself among them.
    pub(super) reached: Vec<u16>,
    pub(super) members: Vec<Member>,
}

impl Group {
    /// Reads the answer of `CAUSAL REPLICAS`.
    pub(super) fn read(text: &str) -> anyhow::Result<Group> {
        let mut group = Group::default();
        for line in text.lines().map(str::trim_end).filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once(':').with_context(|| format!("no field: {line}"))?;
            match name {
                "partition" => group.partition = value.parse()?,
                "owner" => group.owner = value.parse()?,
                "term" => group.term = value.parse()?,
                "committed" => group.committed = value.parse()?,
                "changing" => group.changes = value == "yes",
                "reached" => {
                    let nodes = value.split(',').filter(|node| !node.is_empty()).map(str::parse);
                    group.reached = nodes.collect::<Result<_, _>>()?;
                }
                // What later versions say besides.
                name => match name.strip_prefix("node").and_then(|number| number.parse().ok()) {
                    Some(node) => group.members.push(member(node, value)?),
                    None => continue,
                },
            }
        }
        Ok(group)
    }

    /// Whether a node has a replica that counts.
    pub(super) fn votes(&self, node: u16) -> bool {
        self.members.iter().any(|member| member.node == node && member.votes)
    }

    pub(super) fn member(&self, node: u16) -> Option<&Member> {
        self.members.iter().find(|member| member.node == node)
    }
}

fn member(node: u16, fields: &str) -> anyhow::Result<Member> {
    let mut member = Member { node, votes: false, is_heard: false, has: 0 };
    for field in fields.split(',') {
        match field.split_once('=') {
            Some(("vote", value)) => member.votes = value == "yes",
            Some(("heard", value)) => member.is_heard = value == "yes",
            Some(("has", value)) => member.has = value.parse()?,
            _ => {}
        }
    }
    Ok(member)
}

/// All partitions of a datacenter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Datacenter {
    pub(super) name: String,
    pub(super) nodes: u16,
    pub(super) groups: Vec<Group>,
}

/// How long a partition may be without an owner before it is given up to ask.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(200);

impl Datacenter {
    pub(super) fn ask(asking: &mut Asking<'_>) -> anyhow::Result<Datacenter> {
        let (name, partitions, nodes) = asking.size()?;
        let groups = (0..partitions).map(|partition| ask(asking, partition));
        Ok(Datacenter { name, nodes, groups: groups.collect::<anyhow::Result<_>>()? })
    }

    /// Whether all owners can reach a node.
    pub(super) fn reaches(&self, node: u16) -> bool {
        self.groups.iter().all(|group| group.reached.contains(&node))
    }

    /// The nodes that some owner cannot reach.
    pub(super) fn unreached(&self) -> impl Iterator<Item = u16> {
        (0..self.nodes).filter(|node| !self.reaches(*node))
    }

    /// How many replicas a node has.
    pub(super) fn replicas_on(&self, node: u16) -> usize {
        self.groups.iter().filter(|group| group.votes(node)).count()
    }

    /// How many partitions a node owns.
    pub(super) fn owned_by(&self, node: u16) -> usize {
        self.groups.iter().filter(|group| group.owner == node).count()
    }
}

fn ask(asking: &mut Asking<'_>, partition: u16) -> anyhow::Result<Group> {
    let began = Instant::now();
    loop {
        match asking.call(&["CAUSAL", "REPLICAS", &partition.to_string()])? {
            Ok(text) => return Group::read(&text),
            Err(words) if is_passing(&words) && began.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
            Err(words) => bail!("partition {partition}: {words}"),
        }
    }
}

/// Whether an error is over soon, as while an owner changes.
pub(super) fn is_passing(words: &str) -> bool {
    let code = words.split(' ').next().unwrap_or_default();
    matches!(code, "TRYAGAIN" | "TIMEOUT" | "UNAVAILABLE" | "UNKNOWN" | "LOADING")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "partition:3\r\nowner:0\r\nterm:7\r\ncommitted:90\r\nchanging:no\r\nreached:0,2\r\n\
                        node0:core=0,vote=yes,heard=yes,has=90\r\nnode2:core=2,vote=no,heard=yes,has=41\r\n";

    #[test]
    fn a_group_is_read_as_its_owner_tells_it() {
        let group = Group::read(TEXT).expect("it is well formed");
        let members = vec![
            Member { node: 0, votes: true, is_heard: true, has: 90 },
            Member { node: 2, votes: false, is_heard: true, has: 41 },
        ];
        let reached = vec![0, 2];
        let expected =
            Group { partition: 3, owner: 0, term: 7, committed: 90, changes: false, reached, members };
        assert_eq!(group, expected);
        assert!(group.votes(0) && !group.votes(2) && !group.votes(1));
    }

    #[test]
    fn a_node_that_lost_its_directory_still_has_its_vote() {
        let text = "node1:vote=no,heard=yes,has=3\r\nnode1:vote=yes,heard=no,has=90\r\n";
        assert!(Group::read(text).expect("it is well formed").votes(1));
    }

    #[test]
    fn what_is_no_group_is_an_error() {
        for text in ["owner", "owner:x", "node1:has=x"] {
            assert!(Group::read(text).is_err(), "{text}");
        }
    }
}
