//! Which replicas move where. A plan never lowers how many replicas a partition has: each move is one in, one out.

use super::group::{Datacenter, Group};
use crate::paint::Paint;
use anyhow::{bail, ensure};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// One replica moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Move {
    pub(super) partition: u16,
    pub(super) from: u16,
    pub(super) to: u16,
}

/// Moves, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) moves: Vec<Move>,
    /// For each node how many replicas it has before and after.
    counts: Vec<(usize, usize)>,
    /// Nodes that got nothing because some owner cannot reach them.
    left_out: Vec<u16>,
}

impl Plan {
    fn new(datacenter: &Datacenter, moves: Vec<Move>) -> Plan {
        let counts = (0..datacenter.nodes).map(|node| {
            let before = datacenter.replicas_on(node);
            let of = |node_of: fn(&Move) -> u16| moves.iter().filter(|step| node_of(step) == node).count();
            (before, before + of(|step| step.to) - of(|step| step.from))
        });
        Plan { counts: counts.collect(), moves, left_out: Vec::new() }
    }

    /// A plan in which a node that cannot be reached gets nothing.
    fn among_the_reached(datacenter: &Datacenter, moves: Vec<Move>) -> Plan {
        Plan { left_out: datacenter.unreached().collect(), ..Plan::new(datacenter, moves) }
    }

    /// One replica moves from here to there; nothing is to be done where it has moved already.
    pub(super) fn of_one(
        datacenter: &Datacenter,
        partition: u16,
        from: u16,
        to: u16,
    ) -> anyhow::Result<Plan> {
        for node in [from, to] {
            ensure!(
                node < datacenter.nodes,
                "{} has nodes 0 to {}, and no {node}",
                datacenter.name,
                datacenter.nodes - 1
            );
        }
        let Some(group) = datacenter.groups.get(usize::from(partition)) else {
            bail!("there are partitions 0 to {}, and no {partition}", datacenter.groups.len() - 1);
        };
        match (group.votes(from), group.votes(to)) {
            (true, false) => Ok(Plan::new(datacenter, vec![Move { partition, from, to }])),
            (false, true) => Ok(Plan::new(datacenter, Vec::new())),
            (false, false) => bail!("node {from} has no replica of partition {partition}"),
            (true, true) => bail!("node {to} has a replica of partition {partition} already"),
        }
    }

    /// All replicas of a node move to those that have the fewest.
    pub(super) fn drain(datacenter: &Datacenter, node: u16) -> anyhow::Result<Plan> {
        ensure!(
            node < datacenter.nodes,
            "{} has nodes 0 to {}, and no {node}",
            datacenter.name,
            datacenter.nodes - 1
        );
        let mut counts = Counts::of(datacenter);
        let mut moves = Vec::new();
        for group in datacenter.groups.iter().filter(|group| group.votes(node)) {
            let Some(to) = counts.emptiest(group, |to| to != node) else {
                bail!(
                    "every other node has a replica of partition {} or cannot be reached, so it can only leave node \
                     {node} with fewer replicas than `replicas` says: start another node first",
                    group.partition
                );
            };
            moves.push(counts.take(Move { partition: group.partition, from: node, to }));
        }
        let mut plan = Plan::among_the_reached(datacenter, moves);
        plan.left_out.retain(|left_out| *left_out != node);
        Ok(plan)
    }

    /// Replicas move from the fullest nodes to the emptiest. Not while a node that has some cannot be reached: its
    /// partitions would change their members with one of them silent, and when it is back it may be the fullest one.
    pub(super) fn balance(datacenter: &Datacenter) -> anyhow::Result<Plan> {
        let mut silent = datacenter.unreached().map(|node| (node, datacenter.replicas_on(node)));
        if let Some((node, count)) = silent.find(|(_, count)| *count > 0) {
            bail!(
                "node {node} has {count} replicas and cannot be reached by the owner of every partition: start it, or, \
                 if it does not come back, `drain` it first"
            );
        }
        let mut counts = Counts::of(datacenter);
        let mut left = datacenter.clone();
        let mut moves = Vec::new();
        while let Some(step) = counts.next_step(&left) {
            let group = &mut left.groups[usize::from(step.partition)];
            if let Some(member) = group.members.iter_mut().find(|member| member.node == step.from) {
                member.node = step.to;
            }
            moves.push(counts.take(step));
        }
        Ok(Plan::among_the_reached(datacenter, moves))
    }

    /// For people.
    pub(super) fn text(&self, paint: Paint) -> String {
        let mut text = String::new();
        for node in &self.left_out {
            let words =
                format!("node {node} cannot be reached by the owner of every partition, and gets nothing");
            let _ = writeln!(text, "{}", paint.bad(&words));
        }
        if self.moves.is_empty() {
            text.push_str("nothing is to be moved\n");
            return text;
        }
        let many = if self.moves.len() == 1 { "replica moves" } else { "replicas move" };
        let _ =
            writeln!(text, "{}", paint.bold(&format!("{} {many}, one after the other", self.moves.len())));
        for step in &self.moves {
            let _ =
                writeln!(text, "  partition {:<5} node {} -> node {}", step.partition, step.from, step.to);
        }
        for (node, (before, after)) in
            self.counts.iter().enumerate().filter(|(_, (before, after))| before != after)
        {
            let _ = writeln!(text, "  node {node} has {before} replicas now, and {after} then");
        }
        text
    }
}

/// How many replicas each node has, while a plan is made.
struct Counts {
    of: BTreeMap<u16, usize>,
    /// Nodes that are down get nothing.
    reached: Vec<u16>,
}

impl Counts {
    fn of(datacenter: &Datacenter) -> Counts {
        let of = (0..datacenter.nodes).map(|node| (node, datacenter.replicas_on(node))).collect();
        let reached = (0..datacenter.nodes).filter(|node| datacenter.reaches(*node)).collect();
        Counts { of, reached }
    }

    /// The node with the fewest replicas and none of this partition.
    fn emptiest(&self, group: &Group, may: impl Fn(u16) -> bool) -> Option<u16> {
        let may = |node: &u16| may(*node) && self.reached.contains(node) && group.member(*node).is_none();
        let free = self.of.iter().filter(|(node, _)| may(node));
        free.min_by_key(|(node, count)| (**count, **node)).map(|(node, _)| *node)
    }

    /// A replica of the fullest node that has one to give to a node with at least two fewer.
    fn next_step(&self, datacenter: &Datacenter) -> Option<Move> {
        let mut fullest: Vec<(usize, u16)> = self.of.iter().map(|(node, count)| (*count, *node)).collect();
        fullest.sort_unstable_by_key(|(count, node)| (std::cmp::Reverse(*count), *node));
        fullest.into_iter().find_map(|(count, from)| {
            let groups = datacenter.groups.iter().filter(|group| group.votes(from));
            let steps = groups.filter_map(|group| {
                let to = self.emptiest(group, |to| self.of[&to] + 1 < count)?;
                // Owners stay where they are, if another replica can go.
                Some((group.owner == from, self.of[&to], Move { partition: group.partition, from, to }))
            });
            steps.min_by_key(|(owns, count, step)| (*owns, *count, step.partition)).map(|(.., step)| step)
        })
    }

    fn take(&mut self, step: Move) -> Move {
        *self.of.entry(step.from).or_default() -= 1;
        *self.of.entry(step.to).or_default() += 1;
        step
    }
}

#[cfg(test)]
mod tests;
