//! `CAUSAL WAIT`: in how many datacenters the session's past is safe.
//!
//! The answer is the number of datacenters, this one included, that have durably applied everything the session has
//! read and written; the least over its dependencies. A past in times names none: then it is everything that each
//! partition has of each datacenter up to these times.
//!
//! - Begin: `AwaitReplicas` to every partition that a dependency names. Nothing to depend on is safe in every
//!   datacenter that was not declared dead, and how many these are any partition knows. In a cluster of one datacenter,
//!   where contexts remain empty, every partition is asked for all that it wrote.
//! - For `WAITAOF`: the same, and whether this datacenter is one of them in every answer.
//! - On the last answer: the least of them.
//! - On the timeout: `CountReplicas` to all, and the least of those answers.
//! - A past that may hold what was lost with a dead datacenter is in none: `DISCARDED`, and the session is as it was
//!   until it reads or writes.
//! - When it fails, or the client is gone: `CountReplicas` of nothing to those that have not answered, which ends their
//!   waits.

use super::Exchange;
use crate::session::cx::Cx;
use crate::session::inquiry::by_partition;
use crate::session::step::Step;
use ensue_protocol::Past;
use ensue_types::{Dependency, LogicalTime, PartitionId, Reply, TimeVector};
use ensue_wire::Message;

/// What a session waits for, which says what it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// `CAUSAL WAIT`: so many datacenters, this one included.
    Datacenters(i64),
    /// `WAIT`: so many others.
    Others(i64),
    /// `WAITAOF`: so many others, and this one if `here`.
    Disks { here: bool, others: i64 },
}

impl Wish {
    /// How many datacenters in all. That this one has what others have is the rule, and no other one is counted for it.
    fn datacenters(self) -> i64 {
        match self {
            Wish::Datacenters(wanted) => wanted,
            Wish::Disks { here: false, others: 0 } => 0,
            Wish::Others(others) | Wish::Disks { others, .. } => others.saturating_add(1),
        }
    }

    /// The answer, where so many datacenters have everything.
    fn answer(self, datacenters: u8, here: bool) -> Reply {
        let datacenters = i64::from(datacenters);
        match self {
            Wish::Datacenters(_) => Reply::Integer(datacenters),
            Wish::Others(_) => Reply::Integer((datacenters - 1).max(0)),
            Wish::Disks { .. } => {
                let here = i64::from(here);
                Reply::Array(vec![Reply::Integer(here), Reply::Integer((datacenters - here).max(0))])
            }
        }
    }
}

/// Waiting for `ReplicasReached` of every group.
#[derive(Clone, Debug)]
pub(crate) struct ReplicaWait {
    groups: Vec<(PartitionId, Vec<Dependency>)>,
    times: TimeVector,
    /// How many have it, and whether this one is among them.
    counts: Vec<Option<(u8, bool)>>,
    /// The client's time is over: each answer says how many there are now.
    counting: bool,
    wish: Wish,
}

impl ReplicaWait {
    pub(crate) fn begin(cx: &mut Cx<'_>, wish: Wish, timeout_ms: u64) -> Step<Exchange> {
        let datacenters = cx.core.config.topology.datacenters.len() as u8;
        // More than there are will never come: as many as there are is the truth soonest.
        let wanted = u8::try_from(wish.datacenters()).unwrap_or(datacenters).min(datacenters);
        let (mut groups, mut times) = groups(cx);
        if groups.is_empty() && datacenters == 1 && !matches!(wish, Wish::Others(_)) {
            (groups, times) = whatever_is_written(cx);
        }
        if groups.is_empty() && datacenters == 1 {
            return Step::answer(wish.answer(1, true));
        }
        if groups.is_empty() {
            groups = anyone(cx);
        }
        cx.requests.ask(1);
        if let Some(failure) = cx.refusal(groups.iter().map(|(partition, _)| *partition)) {
            return Step::Failed(failure);
        }
        let wait = ReplicaWait { counts: vec![None; groups.len()], groups, times, counting: false, wish };
        if wanted == 0 {
            return wait.count(cx);
        }
        cx.begin_waiting(wait.groups.len(), timeout_ms);
        let here = matches!(wish, Wish::Disks { here: true, .. });
        for (share, (partition, dependencies)) in wait.groups.iter().enumerate() {
            let (request, times) = (cx.request(share), wait.times.clone());
            let dependencies = dependencies.clone();
            let datacenters = wanted;
            cx.send(*partition, Message::AwaitReplicas { request, dependencies, times, datacenters, here });
        }
        Step::Waits(Exchange::Replicas(Box::new(wait)))
    }

    /// The client's time is over, or it gave none: how many are there now?
    fn count(self, cx: &mut Cx<'_>) -> Step<Exchange> {
        let wait = ReplicaWait { counting: true, counts: vec![None; self.groups.len()], ..self };
        cx.begin_request(wait.groups.len());
        for (share, (partition, dependencies)) in wait.groups.iter().enumerate() {
            let (request, times) = (cx.request(share), wait.times.clone());
            let dependencies = dependencies.clone();
            cx.send(*partition, Message::CountReplicas { request, dependencies, times });
        }
        Step::Waits(Exchange::Replicas(Box::new(wait)))
    }

    /// Whether the client's time is still running.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.counting
    }

    pub(crate) fn unanswered(&self) -> Vec<PartitionId> {
        let groups = self.groups.iter().zip(&self.counts);
        groups.filter(|(_, count)| count.is_none()).map(|((partition, _), _)| *partition).collect()
    }

    pub(crate) fn withdraw(self, cx: &mut Cx<'_>) {
        for (share, (partition, _)) in self.groups.iter().enumerate() {
            if self.counts[share].is_none() {
                let (request, times) = (cx.request(share), TimeVector::default());
                cx.send(*partition, Message::CountReplicas { request, dependencies: Vec::new(), times });
            }
        }
    }

    pub(crate) fn on_timeout(self, cx: &mut Cx<'_>) -> Step<Exchange> {
        self.count(cx)
    }

    pub(crate) fn on_answer(
        mut self: Box<Self>,
        cx: &mut Cx<'_>,
        share: usize,
        message: Message,
    ) -> Step<Exchange> {
        let Message::ReplicasReached { datacenters, here, .. } = message else {
            return cx.unexpected(Exchange::Replicas(self));
        };
        self.counts[share] = Some((datacenters, here));
        if self.counts.iter().any(Option::is_none) {
            return Step::Waits(Exchange::Replicas(self));
        }
        let counts = || self.counts.iter().flatten();
        let here = counts().all(|(_, here)| *here);
        // Of the others the least: one that misses something here counts this datacenter where that has it.
        let others = counts().map(|(datacenters, here)| datacenters - u8::from(*here)).min().unwrap_or(0);
        let datacenters = counts().map(|(datacenters, _)| *datacenters).min().unwrap_or(0);
        Step::answer(match self.wish {
            Wish::Disks { .. } => self.wish.answer(others + u8::from(here), here),
            _ => self.wish.answer(datacenters, here),
        })
    }
}

/// Whom to ask about the session's past, and up to which times.
fn groups(cx: &Cx<'_>) -> (Vec<(PartitionId, Vec<Dependency>)>, TimeVector) {
    let causes = &cx.contexts.own().causes;
    match cx.protocol().past(causes) {
        Ok(Past::Operations(dependencies)) => {
            (by_partition(dependencies).into_iter().collect(), TimeVector::default())
        }
        Ok(Past::Times(times)) if !times.is_zero() => {
            let times = beneath(&times, &cx.protocol().doubted(causes));
            (all_partitions(cx), times)
        }
        Ok(Past::Times(_)) | Err(_) => Default::default(),
    }
}

/// The same in a cluster of one datacenter, where contexts of operations remain empty: each partition is asked for all
/// that it wrote.
fn whatever_is_written(cx: &Cx<'_>) -> (Vec<(PartitionId, Vec<Dependency>)>, TimeVector) {
    let time = cx.contexts.own().time;
    if time == LogicalTime::ZERO {
        return Default::default();
    }
    let mut times = TimeVector::default();
    times.raise(cx.core.config.topology.datacenter, time);
    (all_partitions(cx), times)
}

/// A partition that answers, asked for nothing: sessions do not know which datacenters were declared dead.
fn anyone(cx: &Cx<'_>) -> Vec<(PartitionId, Vec<Dependency>)> {
    let mut partitions = (0..cx.core.partitions()).map(PartitionId);
    let partition = partitions.find(|partition| cx.core.reaches(*partition)).unwrap_or(PartitionId(0));
    vec![(partition, Vec::new())]
}

/// Each partition, asked for no single operation.
fn all_partitions(cx: &Cx<'_>) -> Vec<(PartitionId, Vec<Dependency>)> {
    (0..cx.core.partitions()).map(|number| (PartitionId(number), Vec::new())).collect()
}

/// Of a dead datacenter the time that its loss may have covered up: whoever knows the loss says whether it holds
/// something lost.
fn beneath(times: &TimeVector, doubted: &TimeVector) -> TimeVector {
    let own = |(datacenter, time)| match doubted.at(datacenter) {
        LogicalTime::ZERO => time,
        doubted => doubted,
    };
    times.entries().map(own).collect()
}
