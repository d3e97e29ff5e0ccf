//! What can be done to the disks of the world from outside, and what follows for the partitions on them.

use super::World;
use crate::world::disk::{Disk, Harm};
use crate::world::shape::{ProcessId, Site};
use ensue_node::Trace;
use ensue_store::disk::DiskDone;
use ensue_types::{DatacenterId, PartitionId};

impl World {
    /// The disk of a partition, to order errors from it.
    pub fn disk(&mut self, datacenter: DatacenterId, partition: PartitionId) -> &mut Disk {
        self.disks.entry((datacenter, partition)).or_default()
    }

    /// The disk of a partition is full but for so many bytes. On a crowded one others take what is given up.
    pub fn fill_disk(&mut self, datacenter: DatacenterId, partition: PartitionId, room: u64, crowded: bool) {
        let reserve = self.options.tuning.reserve_bytes;
        let disk = self.disk(datacenter, partition);
        disk.fill(room, crowded);
        // One that has spent its reserve, or has not made it yet, has nothing to go on with.
        if crowded || !disk.has_reserve(reserve) {
            self.ailing.starved.insert((datacenter, partition));
        }
    }

    /// There is room again. The partition notices by itself.
    pub fn free_disk(&mut self, datacenter: DatacenterId, partition: PartitionId) {
        let home = (datacenter, partition);
        self.disk(datacenter, partition).free();
        if !self.is_refusing(home) && self.ailing.starved.remove(&home) {
            self.trouble(self.site_of(home), self.now);
        }
    }

    /// The process that owns a partition.
    pub fn process_of(&self, datacenter: DatacenterId, partition: PartitionId) -> ProcessId {
        self.options.shape.process(self.site_of((datacenter, partition)))
    }

    /// Whether a partition has stopped and its process has not been started again.
    pub fn has_stopped(&self, datacenter: DatacenterId, partition: PartitionId) -> bool {
        self.ailing.stopped.contains(&(datacenter, partition))
    }

    /// Whether some partition of a datacenter has refused writes at this time or later, for want of room.
    pub fn has_refused_since(&self, datacenter: DatacenterId, time_us: u64) -> bool {
        let refused = |until: &Option<u64>| until.is_none_or(|until| until >= time_us);
        self.ailing.refusing.iter().any(|((ailing, _), until)| *ailing == datacenter && refused(until))
    }

    /// The files of a partition are harmed as soon as its process has exited, which is then started again.
    pub fn harm_when_down(&mut self, home: (DatacenterId, PartitionId), harm: Harm) {
        self.ailing.to_harm.insert(home, harm);
    }

    pub(super) fn harm_the_stopped(&mut self, process: ProcessId) {
        for (home, harm) in self.ailing.to_harm.clone() {
            if self.process_of(home.0, home.1) == process {
                self.ailing.to_harm.remove(&home);
                self.disk(home.0, home.1).harm(harm);
                self.start(process);
            }
        }
    }

    /// The files of a partition are put back, and its process is started again. One that was to exit and did not is
    /// killed, as a
    /// supervisor does.
    pub fn mend(&mut self, home: (DatacenterId, PartitionId)) {
        let process = self.process_of(home.0, home.1);
        let waits = self.ailing.to_harm.remove(&home).is_some() && self.is_stopping(process);
        if waits || self.disk(home.0, home.1).is_harmed() {
            self.kill(process);
            self.disk(home.0, home.1).mend();
            self.start(process);
        }
    }

    /// A partition that goes on is told how far its log is durable.
    pub(super) fn note_known(&mut self, site: Site, partition: PartitionId, done: &DiskDone) {
        let home = (self.options.shape.datacenter(site), partition);
        let disk = self.options.shape.disk(site, partition);
        let goes_on =
            !self.ailing.stopped.contains(&home) && !self.is_stopping(self.options.shape.process(site));
        if let (DiskDone::Synced { file }, true) = (done, goes_on) {
            self.disk(disk.0, disk.1).note_known(*file);
        }
    }

    /// Every disk is as good as new, and the processes of stopped partitions are started again. So are those that may
    /// have listed the files while some were missing, and would say so only after these were put back.
    pub(super) fn heal_disks(&mut self) {
        self.ailing.to_harm.clear();
        let mut unsound = self.ailing.stopped.clone();
        for home in self.disks.keys().copied().collect::<Vec<_>>() {
            if self.disk(home.0, home.1).is_harmed() {
                unsound.insert(home);
            }
            self.free_disk(home.0, home.1);
            self.disk(home.0, home.1).calm();
        }
        for (datacenter, partition) in unsound {
            let process = self.process_of(datacenter, partition);
            self.kill(process);
        }
    }

    /// A process starts: its partitions have not stopped yet, and those on a full disk may not have room to begin.
    pub(super) fn disks_of_a_new_process(&mut self, site: Site) {
        let datacenter = self.options.shape.datacenter(site);
        for partition in self.options.shape.partitions_of(site) {
            let home = (datacenter, partition);
            self.ailing.stopped.remove(&home);
            if let Some(until @ None) = self.ailing.refusing.get_mut(&home) {
                *until = Some(self.now);
            }
            if self.disks.get(&home).is_some_and(Disk::is_full) {
                self.ailing.starved.insert(home);
            } else {
                self.ailing.starved.remove(&home);
            }
        }
    }

    pub(super) fn note_ailing(&mut self, site: Site, trace: &Trace) {
        let datacenter = self.options.shape.datacenter(site);
        match *trace {
            Trace::PartitionStopped { partition, .. } => {
                self.ailing.stopped.insert((datacenter, partition));
            }
            Trace::DiskFull { partition } => {
                self.ailing.refusing.insert((datacenter, partition), None);
            }
            Trace::RoomAgain { partition } => {
                self.ailing.refusing.insert((datacenter, partition), Some(self.now));
                let full = self.disks.get(&(datacenter, partition)).is_some_and(Disk::is_crowded);
                if !full && self.ailing.starved.remove(&(datacenter, partition)) {
                    self.trouble(site, self.now);
                }
            }
            _ => {}
        }
    }

    /// Whether a partition that stops, or refuses writes, has a reason to by its disk. One that finds an empty
    /// directory and no room to begin in stops, too.
    pub(super) fn is_excused(&self, site: Site, trace: &Trace) -> bool {
        let datacenter = self.options.shape.datacenter(site);
        let disk = |partition| self.disks.get(&(datacenter, partition));
        match *trace {
            Trace::PartitionStopped { partition, .. } => {
                let begins = !self.cores[site.0].ready.contains(&partition);
                self.may_stop(datacenter)
                    || disk(partition).is_some_and(|disk| disk.is_wounded() || begins && disk.is_full())
            }
            Trace::DiskFull { partition } => disk(partition).is_some_and(Disk::is_full),
            _ => true,
        }
    }

    fn is_refusing(&self, home: (DatacenterId, PartitionId)) -> bool {
        self.ailing.refusing.get(&home).is_some_and(Option::is_none)
    }

    fn site_of(&self, (datacenter, partition): (DatacenterId, PartitionId)) -> Site {
        self.options.shape.site(datacenter, self.options.shape.owner(partition))
    }
}
