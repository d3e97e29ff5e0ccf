//! Whether the partitions of this datacenter have applied a past that came from another datacenter.
//!
//! - Begin: each partition that the past names is requested to answer when it has applied its operations
//!   (`CheckDependencies`), or each partition when it has received up to the times (`AwaitTimes`). Each request has a
//!   number of its own.
//! - On an answer: it names the operations that are unrecoverable. The inquiry is met when all partitions have
//!   answered.
//! - End: an open request is withdrawn by an empty request with the same number.
//!
//! The purpose of an inquiry and its timeout are not known here.

use super::core_state::{CoreState, Waiter};
use ensue_protocol::{Past, Protocol};
use ensue_types::{
    Causes, DatacenterId, Dependency, KeyspaceId, LogicalTime, OperationId, PartitionId, TimeVector,
};
use ensue_wire::Message;
use std::collections::BTreeMap;

/// The questions about one past.
#[derive(Clone, Debug)]
pub(super) struct Inquiry {
    first_check: u64,
    groups: Vec<Group>,
    /// New sessions of this keyspace shall read what is waited for.
    readers: Option<KeyspaceId>,
}

/// What one partition is asked about.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) partition: PartitionId,
    pub(super) past: Past,
    met: bool,
    /// Its clock has not come to the time of this datacenter.
    unissued: bool,
}

/// What an answer comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Waits,
    /// All of the past is here.
    Met,
    /// Something of it was lost with a dead datacenter.
    Lost(Dependency),
    /// This datacenter has never issued it: an operation, or else a time.
    NeverIssued(Option<OperationId>),
}

impl Inquiry {
    /// About a past, and about what of it is in doubt since a datacenter died; in words, if it names what is not there.
    pub(super) fn about(
        core: &CoreState,
        protocol: &dyn Protocol,
        causes: &Causes,
    ) -> Result<Inquiry, String> {
        let past = protocol.past(causes).map_err(|_| NOT_OF_THE_PROTOCOL.to_owned())?;
        let mut groups = owners_of(core, past)?;
        groups.extend(owners_of(core, Past::Times(protocol.doubted(causes)))?);
        Ok(Inquiry { first_check: 0, groups, readers: None })
    }

    /// Not only whoever has this past shall read it, but every new session of the keyspace.
    pub(super) fn for_readers(self, keyspace: KeyspaceId) -> Inquiry {
        Inquiry { readers: Some(keyspace), ..self }
    }

    /// Whether there is nothing to ask.
    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.groups.len()
    }

    pub(super) fn partitions(&self) -> impl Iterator<Item = PartitionId> {
        self.groups.iter().map(|group| group.partition)
    }

    /// Asks all.
    pub(super) fn begin(&mut self, core: &mut CoreState, waiter: impl Into<Waiter>, time: LogicalTime) {
        self.first_check = core.begin_checks(waiter.into(), self.groups.len() as u32);
        for index in 0..self.groups.len() {
            self.ask(core, index, time);
        }
    }

    /// Asks one of them, perhaps again: the first question may have been lost.
    pub(super) fn ask(&self, core: &mut CoreState, index: usize, time: LogicalTime) {
        let group = &self.groups[index];
        let to = core.partition_address(group.partition);
        core.send(to, time, self.question(index, group.past.clone()));
    }

    /// Those that have not answered, by their places.
    pub(super) fn missing(&self) -> impl Iterator<Item = (usize, &Group)> {
        self.groups.iter().enumerate().filter(|(_, group)| !group.met)
    }

    /// Whether a number is of one of its questions.
    pub(super) fn has(&self, check: u64) -> bool {
        let last = self.first_check + self.groups.len() as u64;
        (self.first_check..last).contains(&check)
    }

    /// A partition has what it was asked about, or says what of it is gone.
    pub(super) fn on_met(&mut self, own: DatacenterId, check: u64, unrecoverable: &[Dependency]) -> Found {
        let is_own = |dependency: &&Dependency| dependency.operation.datacenter == own;
        let unissued = unrecoverable.iter().find(is_own).map(|dependency| dependency.operation);
        let lost = unrecoverable.iter().find(|dependency| !is_own(dependency));
        let index = check.checked_sub(self.first_check).map(|index| index as usize);
        let Some(group) = index.and_then(|index| self.groups.get_mut(index)) else { return Found::Waits };
        group.met = true;
        group.unissued = unissued.is_some();
        let names_position = matches!(group.past, Past::Operations(_));
        let all_met = self.groups.iter().all(|group| group.met);
        match lost {
            Some(lost) => Found::Lost(*lost),
            None if unissued.is_some() && names_position => Found::NeverIssued(unissued),
            None if all_met && self.names_an_unissued_time(own) => Found::NeverIssued(None),
            None if all_met => Found::Met,
            None => Found::Waits,
        }
    }

    /// It is over, whether all have answered or not.
    pub(super) fn end(&self, core: &mut CoreState, time: LogicalTime) {
        for (index, group) in self.missing() {
            let to = core.partition_address(group.partition);
            core.send(to, time, self.question(index, group.nothing()));
        }
        core.end_checks(self.first_check, self.groups.len());
    }

    /// Whether no partition's clock has come to the time of this datacenter that the past names.
    fn names_an_unissued_time(&self, own: DatacenterId) -> bool {
        let names_it =
            |group: &&Group| matches!(&group.past, Past::Times(times) if times.at(own) > LogicalTime::ZERO);
        let mut asked = self.groups.iter().filter(names_it).peekable();
        asked.peek().is_some() && asked.all(|group| group.unissued)
    }

    fn question(&self, index: usize, past: Past) -> Message {
        let check = self.first_check + index as u64;
        match past {
            Past::Operations(dependencies) => {
                Message::CheckDependencies { check, origin: None, dependencies }
            }
            Past::Times(times) => Message::AwaitTimes { check, times, readers: self.readers },
        }
    }
}

impl Group {
    /// A past of the same kind that is here already.
    fn nothing(&self) -> Past {
        match &self.past {
            Past::Operations(_) => Past::Operations(Vec::new()),
            Past::Times(_) => Past::Times(TimeVector::default()),
        }
    }
}

/// Whom to ask about a past, unless it names what is not there.
fn owners_of(core: &CoreState, past: Past) -> Result<Vec<Group>, String> {
    let topology = &core.config.topology;
    let datacenters = topology.datacenters.len();
    let group = |(partition, past)| Group { partition, past, met: false, unissued: false };
    match past {
        Past::Operations(dependencies) => {
            for dependency in &dependencies {
                let operation = &dependency.operation;
                let known = usize::from(operation.datacenter.0) < datacenters
                    && operation.partition.0 < topology.partitions;
                if !known {
                    return Err(format!("it names {operation}, which this cluster does not have"));
                }
            }
            let groups = by_partition(dependencies).into_iter();
            Ok(groups.map(|(partition, list)| group((partition, Past::Operations(list)))).collect())
        }
        Past::Times(times) if times.len() > datacenters => {
            Err("it names a datacenter that this cluster does not have".to_owned())
        }
        Past::Times(times) if times.is_zero() => Ok(Vec::new()),
        Past::Times(times) => {
            let partitions = (0..topology.partitions).map(PartitionId);
            Ok(partitions.map(|partition| group((partition, Past::Times(times.clone())))).collect())
        }
    }
}

/// Dependencies by the partition that knows of them.
pub(super) fn by_partition(dependencies: Vec<Dependency>) -> BTreeMap<PartitionId, Vec<Dependency>> {
    let mut groups: BTreeMap<PartitionId, Vec<Dependency>> = BTreeMap::new();
    for dependency in dependencies {
        groups.entry(dependency.operation.partition).or_default().push(dependency);
    }
    groups
}

const NOT_OF_THE_PROTOCOL: &str = "its facts are not of this keyspace's protocol";
