//! What sessions ask about the group of a replicated partition, and what they are told.

use crate::config::Topology;
use bytes::Bytes;
use ensue_replica::{Refusal, Report};
use ensue_types::{CoreId, PartitionId, SessionId};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Questions that wait for an answer at most; who asked the oldest ones has long been told that it took too long.
const WAITING_MAX: usize = 256;

pub(super) const NO_OWNER: Bytes =
    Bytes::from_static(b"TRYAGAIN nobody owns the partition at present, or its owner has just changed");

/// Questions of this core's sessions that were passed on.
#[derive(Debug, Default)]
pub(super) struct Asked {
    last: u64,
    waiting: BTreeMap<u64, (SessionId, u64)>,
}

impl Asked {
    /// The number by which an errand of a session is passed on.
    pub(super) fn note(&mut self, session: SessionId, errand: u64) -> u64 {
        self.last += 1;
        self.waiting.insert(self.last, (session, errand));
        if self.waiting.len() > WAITING_MAX {
            self.waiting.pop_first();
        }
        self.last
    }

    /// Whose it was.
    pub(super) fn answered(&mut self, number: u64) -> Option<(SessionId, u64)> {
        self.waiting.remove(&number)
    }
}

/// The nodes of a datacenter in the order in which they are meant to own a partition: the configured one, and then the
/// others, for each partition of that node from another one on. So what a node owned is spread when it is drained.
pub(super) fn order_of_owners(
    first: usize,
    count: usize,
    partition: PartitionId,
) -> impl Iterator<Item = usize> {
    let others = count.saturating_sub(1);
    let turn = usize::from(partition.0) / count.max(1);
    let behind = (0..others).map(move |step| (first + 1 + (turn + step) % others) % count);
    std::iter::once(first).chain(behind)
}

/// A group in lines of text, `name:value` as in `INFO`.
pub(super) fn told(
    topology: &Topology,
    partition: PartitionId,
    report: &Report,
    is_reached: impl Fn(CoreId) -> bool,
) -> Bytes {
    let here = topology.datacenter;
    let node = |core| topology.node_of(here, CoreId(core)).unwrap_or(usize::from(core));
    let yes = |is: bool| if is { "yes" } else { "no" };
    let mut text = format!(
        "partition:{}\r\nowner:{}\r\nterm:{}\r\ncommitted:{}\r\nchanging:{}\r\n",
        partition.0,
        node(report.leader),
        report.term,
        report.committed,
        yes(report.changes),
    );
    let nodes = 0..topology.datacenters[usize::from(here.0)].nodes.len();
    let reached = nodes.filter(|node| topology.core_on(here, *node, partition).is_some_and(&is_reached));
    let reached: Vec<String> = reached.map(|node| node.to_string()).collect();
    let _ = write!(text, "reached:{}\r\n", reached.join(","));
    for member in &report.members {
        let _ = write!(
            text,
            "node{}:core={},vote={},heard={},has={}\r\n",
            node(member.node),
            member.node,
            yes(member.votes),
            yes(member.is_heard),
            member.has,
        );
    }
    text.into()
}

pub(super) fn refused(partition: PartitionId, refusal: Refusal) -> Bytes {
    match refusal {
        Refusal::LeadsNot => NO_OWNER,
        Refusal::Busy => format!("TRYAGAIN {partition}: {refusal}").into(),
        refusal => format!("ERR {partition}: {refusal}").into(),
    }
}

#[cfg(test)]
mod tests;
