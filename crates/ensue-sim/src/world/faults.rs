//! What can be done to the network and the disks of the world from outside.

use super::{Hold, World};
use crate::disk::Disk;
use crate::network::Break;
use crate::shape::Site;
use ensue_types::{DatacenterId, PartitionId};

impl World {
    /// Cuts every connection between two datacenters, until as many heals as cuts have come.
    pub fn cut_datacenters(&mut self, a: DatacenterId, b: DatacenterId, how: Break) {
        for (from, to) in self.pairs(a, b) {
            self.cut(from, to, how);
        }
    }

    pub fn heal_datacenters(&mut self, a: DatacenterId, b: DatacenterId) {
        for (from, to) in self.pairs(a, b) {
            self.heal(from, to);
        }
    }

    /// Cuts the connection between two cores.
    pub fn cut(&mut self, a: Site, b: Site, how: Break) {
        if self.options.shape.process(a) == self.options.shape.process(b) {
            return;
        }
        self.network.block(a, b, true);
        let news = self.network.sever(self.now, a, b, how);
        self.tell_ends(news);
    }

    /// Takes one cut away.
    pub fn heal(&mut self, a: Site, b: Site) {
        if self.network.block(a, b, false) {
            self.reconnect(a, b);
        }
    }

    /// Breaks a connection that may come back at once.
    pub fn flap(&mut self, a: Site, b: Site) {
        let news = self.network.sever(self.now, a, b, Break::Prompt);
        self.tell_ends(news);
    }

    /// No cut, no delay, no hold remains, and every process runs.
    pub fn heal_everything(&mut self) {
        self.aims.clear();
        self.network.heal_everything();
        for hold in self.holds.keys().copied().collect::<Vec<_>>() {
            self.release(hold);
        }
        for process in 0..self.processes.len() {
            self.start(crate::shape::ProcessId(process));
        }
        for site in 0..self.cores.len() {
            self.reconnect_all(Site(site));
        }
    }

    /// From now on keeps back what this partition sends to that datacenter.
    pub fn hold(&mut self, hold: Hold) {
        self.holds.entry(hold).or_default();
    }

    /// Sends what was kept back.
    pub fn release(&mut self, hold: Hold) {
        for (from, to, epoch, envelope) in self.holds.remove(&hold).unwrap_or_default() {
            if self.network.receives(self.now, from, to, epoch) {
                self.transmit(from, to, envelope);
            }
        }
    }

    /// The disk of a partition, to order errors from it.
    pub fn disk(&mut self, datacenter: DatacenterId, partition: PartitionId) -> &mut Disk {
        self.disks.entry((datacenter, partition)).or_default()
    }

    fn pairs(&self, a: DatacenterId, b: DatacenterId) -> Vec<(Site, Site)> {
        let shape = self.options.shape;
        let of = |d| (0..shape.sites()).map(Site).filter(move |&site| shape.datacenter(site) == d);
        of(a).flat_map(|from| of(b).map(move |to| (from, to))).collect()
    }
}
