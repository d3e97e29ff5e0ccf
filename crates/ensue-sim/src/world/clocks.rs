//! The clocks of the world's machines, and the way back of a datacenter whose clock was too far ahead.

use super::World;
use crate::world::event::Event;
use crate::world::shape::ProcessId;
use ensue_node::restamp::{Gather, Replace};
use ensue_store::disk::FileName;
use ensue_store::superblock::Superblock;
use ensue_types::{DatacenterId, LogicalTime, PartitionId, Rule};

/// How long a process may take to stop before it is killed, when a datacenter is to be given other times.
const STOP_US: u64 = 2_000_000;

impl World {
    /// A machine's clock jumps.
    pub fn jump_clock(&mut self, id: ProcessId, by_ms: i64) {
        let bound = self.options.clock.bound_ms as i64;
        self.processes[id.0].clock.jump(self.now, by_ms, bound);
    }

    /// From now on a machine's clock runs at another pace.
    pub fn drift_clock(&mut self, id: ProcessId, ppm: i64) {
        let bound = self.options.clock.bound_ms as i64;
        self.processes[id.0].clock.drift(self.now, ppm, bound);
    }

    /// A machine's clock jumps so far ahead, or back, to what a wild clock may show at most. Its datacenter is in
    /// trouble until its logical
    /// time is near true time again.
    pub fn wild_clock(&mut self, id: ProcessId, ahead_ms: i64, lasts_us: u64) {
        let most_ms = self.options.clock.wild_ms as i64;
        self.processes[id.0].clock.jump(self.now, ahead_ms, most_ms);
        let until = self.now + lasts_us + 1_000 * ahead_ms.unsigned_abs();
        let own = usize::from(self.datacenter_of(id).0);
        self.ahead_us[own] = until;
        for site in self.options.shape.sites_of(id) {
            self.trouble(site, until);
        }
    }

    /// Whether the logical time of another datacenter may lie far ahead. Two of them would believe each other, and
    /// what one has told
    /// the other cannot be taken back.
    pub fn is_another_ahead(&self, id: ProcessId) -> bool {
        let own = usize::from(self.datacenter_of(id).0);
        self.ahead_us.iter().enumerate().any(|(other, until)| other != own && *until > self.now)
    }

    fn datacenter_of(&self, id: ProcessId) -> DatacenterId {
        self.options.shape.datacenter(self.options.shape.sites_of(id)[0])
    }

    /// An operator stops the datacenter, gives it times that the others believe, and starts it again.
    pub fn recover_clock(&mut self, datacenter: DatacenterId) {
        for process in self.options.shape.processes_of(datacenter) {
            if self.is_alive(process) {
                self.shut_down(process);
            }
        }
        self.queue.push(self.now + STOP_US, Event::RecoverClock { datacenter });
    }

    /// The processes had the time to stop. What was killed meanwhile, or does not stop, keeps its times.
    pub(super) fn finish_recovering(&mut self, datacenter: DatacenterId) {
        let processes = self.options.shape.processes_of(datacenter);
        if self.is_healed {
            return;
        }
        for &process in &processes {
            if self.is_stopping(process) {
                self.kill(process);
            }
        }
        if let Ok(count) = self.restamp(datacenter) {
            self.restamped += u64::from(count > 0);
        }
        processes.into_iter().for_each(|process| self.start(process));
    }

    /// How often a datacenter was given other times.
    pub fn restamped(&self) -> u64 {
        self.restamped
    }

    /// What `ensue recover --clock` does to the data of a datacenter whose nodes have stopped. How many times were
    /// changed.
    pub fn restamp(&mut self, datacenter: DatacenterId) -> Result<usize, String> {
        let processes = self.options.shape.processes_of(datacenter);
        if processes.iter().any(|process| self.is_alive(*process)) {
            return Err("a node of the datacenter runs".to_owned());
        }
        let wall_ms = processes.iter().map(|process| self.processes[process.0].clock.wall_ms(self.now));
        let bound_ms = wall_ms.max().unwrap_or(0) + 2 * self.options.tuning.clock_ahead_ms_max;
        let bound = LogicalTime::from_ms(bound_ms);
        let partitions: Vec<PartitionId> =
            self.disks.keys().filter(|home| home.0 == datacenter).map(|home| home.1).collect();
        let mut gather = Gather::new(datacenter, bound);
        for &partition in &partitions {
            let seal = self.superblock(datacenter, partition)?.seal();
            for (name, bytes) in self.disks[&(datacenter, partition)].contents() {
                gather.file(name, &bytes, seal).map_err(|error| error.to_string())?;
            }
        }
        let count = gather.times().len();
        if count > 0 {
            let mut replace = gather.replace();
            if !Rule::NewTimesKeepTheOrder.holds() {
                replace.reverse();
            }
            for partition in partitions {
                self.replace_times(datacenter, partition, &mut replace)?;
            }
            self.said.forget_times_beyond(datacenter, bound);
            self.staleness.forget_times_beyond(datacenter, bound);
            let near_us = 3_000 * self.options.tuning.clock_ahead_ms_max;
            self.ahead_us[usize::from(datacenter.0)] = self.now + near_us;
        }
        Ok(count)
    }

    fn replace_times(
        &mut self,
        datacenter: DatacenterId,
        partition: PartitionId,
        replace: &mut Replace,
    ) -> Result<(), String> {
        let seal = self.superblock(datacenter, partition)?.seal();
        let disk = self.disk(datacenter, partition);
        for (name, bytes) in disk.contents() {
            let rewritten =
                replace.file(name, &bytes, seal, datacenter).map_err(|error| error.to_string())?;
            disk.write_over(name, rewritten);
        }
        Ok(())
    }

    /// Of a partition that stopped cleanly, on a disk that reads what was written.
    fn superblock(&self, datacenter: DatacenterId, partition: PartitionId) -> Result<Superblock, String> {
        let disk = &self.disks[&(datacenter, partition)];
        let bytes = disk.contents().into_iter().find(|(name, _)| *name == FileName::Superblock);
        let (_, bytes) = bytes.ok_or("a partition has no superblock")?;
        let superblock = Superblock::decode(&bytes).map_err(|error| error.to_string())?;
        match superblock.clean && !disk.is_wounded() {
            true => Ok(superblock),
            false => Err("a partition did not stop cleanly".to_owned()),
        }
    }
}
