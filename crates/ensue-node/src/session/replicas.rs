//! `CAUSAL WAIT`: in how many datacenters the session's past is safe.
//!
//! The answer is the number of datacenters, this one included, that have durably applied everything the session has
//! read and written; the least over its dependencies. A past in times names none: then it is everything that each
//! partition has of each datacenter up to these times.
//!
//! - Begin: `AwaitReplicas` to every partition that a dependency names. Nothing to depend on is safe everywhere.
//! - On the last answer: the least of them.
//! - On the timeout: `CountReplicas` to all, and the least of those answers.
//! - A past that may hold what was lost with a dead datacenter is in none: `DISCARDED`, and the session is as it was
//!   until it reads or writes.
//! - When it fails, or the client is gone: `CountReplicas` of nothing to those that have not answered, which ends their waits.

use super::exchange::Exchange;
use super::merge::by_partition;
use super::turn::Turn;
use ensue_protocol::Past;
use ensue_types::{Dependency, LogicalTime, PartitionId, Reply, TimeVector};
use ensue_wire::Message;

/// Waiting for `ReplicasReached` of every group.
#[derive(Clone, Debug)]
pub(super) struct ReplicaWait {
    groups: Vec<(PartitionId, Vec<Dependency>)>,
    times: TimeVector,
    counts: Vec<Option<u8>>,
    /// The client's time is over: each answer says how many there are now.
    counting: bool,
}

impl Turn<'_> {
    pub(super) fn causal_wait(&mut self, wanted: i64, timeout_ms: u64) {
        let datacenters = self.desk.config.topology.datacenters.len() as u8;
        // More than there are will never come: as many as there are is the truth soonest.
        let wanted = u8::try_from(wanted).unwrap_or(datacenters).min(datacenters);
        let past = self.desk.protocol(self.session.keyspace).past(&self.session.context().facts);
        let (groups, times): (Vec<_>, _) = match past {
            Ok(Past::Operations(dependencies)) => {
                (by_partition(dependencies).into_iter().collect(), TimeVector::default())
            }
            Ok(Past::Times(times)) if !times.is_zero() => {
                let doubted =
                    self.desk.protocol(self.session.keyspace).doubted(&self.session.context().facts);
                let times = beneath(&times, &doubted);
                let everywhere = (0..self.desk.partitions()).map(|number| (PartitionId(number), Vec::new()));
                (everywhere.collect(), times)
            }
            Ok(Past::Times(_)) | Err(_) => Default::default(),
        };
        if groups.is_empty() {
            return self.reply(&Reply::Integer(i64::from(datacenters)));
        }
        self.ask(1);
        if self.is_refused(groups.iter().map(|(partition, _)| *partition)) {
            return;
        }
        let wait = ReplicaWait { counts: vec![None; groups.len()], groups, times, counting: false };
        if wanted == 0 {
            return self.count_replicas(wait);
        }
        let (messages, times) = (wait.groups.clone(), wait.times.clone());
        self.begin_exchange(Exchange::Replicas(Box::new(wait)), messages.len(), timeout_ms);
        for (share, (partition, dependencies)) in messages.into_iter().enumerate() {
            let request = self.request(share);
            let times = times.clone();
            let message = Message::AwaitReplicas { request, dependencies, times, datacenters: wanted };
            self.send(partition, message);
        }
    }

    fn count_replicas(&mut self, wait: ReplicaWait) {
        let (messages, times) = (wait.groups.clone(), wait.times.clone());
        let counts = vec![None; wait.groups.len()];
        let wait = ReplicaWait { counting: true, counts, ..wait };
        self.begin_request(Exchange::Replicas(Box::new(wait)), messages.len());
        for (share, (partition, dependencies)) in messages.into_iter().enumerate() {
            let request = self.request(share);
            let times = times.clone();
            self.send(partition, Message::CountReplicas { request, dependencies, times });
        }
    }
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

impl ReplicaWait {
    /// Whether the client's time is still running.
    pub(super) fn is_waiting(&self) -> bool {
        !self.counting
    }

    pub(super) fn unanswered(&self) -> Vec<PartitionId> {
        let groups = self.groups.iter().zip(&self.counts);
        groups.filter(|(_, count)| count.is_none()).map(|((partition, _), _)| *partition).collect()
    }

    pub(super) fn withdraw(self, turn: &mut Turn<'_>) {
        for (share, (partition, _)) in self.groups.iter().enumerate() {
            if self.counts[share].is_none() {
                let (request, times) = (turn.request(share), TimeVector::default());
                turn.send(*partition, Message::CountReplicas { request, dependencies: Vec::new(), times });
            }
        }
    }

    pub(super) fn on_timeout(self, turn: &mut Turn<'_>) {
        turn.count_replicas(self);
    }

    pub(super) fn on_answer(mut self: Box<Self>, turn: &mut Turn<'_>, share: usize, message: Message) {
        let Message::ReplicasReached { datacenters, .. } = message else {
            return turn.unexpected(Exchange::Replicas(self));
        };
        self.counts[share] = Some(datacenters);
        if self.counts.iter().any(Option::is_none) {
            turn.session.exchange = Exchange::Replicas(self);
            return;
        }
        let least = self.counts.into_iter().flatten().min().unwrap_or(0);
        turn.answer(&[Reply::Integer(i64::from(least))]);
    }
}
