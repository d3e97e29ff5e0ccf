//! The shape of a simulated cluster, and how its cores, processes and disks are numbered.

use ensue_node::{DatacenterTopology, Topology};
use ensue_types::{CoreId, DatacenterId, PartitionId};
use std::fmt;

/// A core of any datacenter, counted over the whole world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site(pub usize);

/// What lives and dies together: one core, or all cores of a datacenter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId(pub usize);

/// The disks of one core's replicas are numbered from its multiple of this on: above all partitions.
const COPY: u16 = 2_048;

/// How many of everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub datacenters: u8,
    /// Cores of each datacenter.
    pub cores: u16,
    pub partitions: u16,
    /// Whether all cores of a datacenter are one process.
    pub one_process: bool,
    /// On how many cores of a datacenter each partition is.
    pub replicas: u16,
}

impl Shape {
    pub fn sites(&self) -> usize {
        usize::from(self.datacenters) * usize::from(self.cores)
    }

    pub fn processes(&self) -> usize {
        if self.one_process { usize::from(self.datacenters) } else { self.sites() }
    }

    pub fn site(&self, datacenter: DatacenterId, core: CoreId) -> Site {
        Site(usize::from(datacenter.0) * usize::from(self.cores) + usize::from(core.0))
    }

    pub fn datacenter(&self, site: Site) -> DatacenterId {
        DatacenterId((site.0 / usize::from(self.cores)) as u8)
    }

    pub fn core(&self, site: Site) -> CoreId {
        CoreId((site.0 % usize::from(self.cores)) as u16)
    }

    pub fn process(&self, site: Site) -> ProcessId {
        if self.one_process { ProcessId(site.0 / usize::from(self.cores)) } else { ProcessId(site.0) }
    }

    /// The cores of a process.
    pub fn sites_of(&self, process: ProcessId) -> Vec<Site> {
        (0..self.sites()).map(Site).filter(|&site| self.process(site) == process).collect()
    }

    /// The processes of a datacenter.
    pub fn processes_of(&self, datacenter: DatacenterId) -> Vec<ProcessId> {
        (0..self.processes()).map(ProcessId).filter(|&p| self.datacenter_of(p) == datacenter).collect()
    }

    pub fn datacenter_of(&self, process: ProcessId) -> DatacenterId {
        if self.one_process { DatacenterId(process.0 as u8) } else { self.datacenter(Site(process.0)) }
    }

    pub fn owner(&self, partition: PartitionId) -> CoreId {
        CoreId(partition.0 % self.cores)
    }

    /// Whether partitions may live on several cores.
    pub fn is_replicated(&self) -> bool {
        self.replicas > 1
    }

    /// The cores that have a partition, the one that is meant to own it first.
    pub fn replicas_of(&self, partition: PartitionId) -> Vec<CoreId> {
        (0..self.replicas).map(|step| CoreId((partition.0 + step) % self.cores)).collect()
    }

    /// The partitions that a core may have on its disk, the same in every datacenter: replicas move.
    pub fn partitions_of(&self, site: Site) -> Vec<PartitionId> {
        let core = self.core(site);
        let may_have = |&p: &PartitionId| self.is_replicated() || self.owner(p) == core;
        (0..self.partitions).map(PartitionId).filter(may_have).collect()
    }

    /// The disk of a partition on a core. What is replicated has several.
    pub fn disk(&self, site: Site, partition: PartitionId) -> (DatacenterId, PartitionId) {
        let copy = if self.is_replicated() { (self.core(site).0 + 1) * COPY } else { 0 };
        (self.datacenter(site), PartitionId(partition.0 + copy))
    }

    /// The same knowledge as a node is given it.
    pub fn topology(&self, datacenter: DatacenterId) -> Topology {
        let placement: Vec<CoreId> = (0..self.partitions).map(|p| self.owner(PartitionId(p))).collect();
        let replicated = if self.is_replicated() { self.partitions } else { 0 };
        let replicas: Vec<Vec<CoreId>> = (0..replicated).map(|p| self.replicas_of(PartitionId(p))).collect();
        let datacenters = (0..self.datacenters)
            .map(|d| DatacenterTopology {
                replicas: replicas.clone(),
                name: DatacenterId(d).to_string(),
                cores: self.cores,
                nodes: vec![1; usize::from(self.cores)],
                placement: placement.clone(),
            })
            .collect();
        Topology { datacenter, partitions: self.partitions, datacenters }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let processes = if self.one_process { "one process a datacenter" } else { "one process a core" };
        let (d, c, p) = (self.datacenters, self.cores, self.partitions);
        write!(f, "{d} datacenters x {c} cores, {p} partitions, {processes}")?;
        if self.is_replicated() { write!(f, ", {} replicas", self.replicas) } else { Ok(()) }
    }
}
