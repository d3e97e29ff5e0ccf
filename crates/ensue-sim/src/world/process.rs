//! Processes of the world: how they start, and the two ways in which they die.

use super::World;
use super::drive::HEARD_US;
use crate::oracle::history::PowerLost;
use crate::world::disk::Disk;
use crate::world::event::Event;
use crate::world::marks::Mark;
use crate::world::network::{Break, EndNews};
use crate::world::shape::{ProcessId, Site};
use ensue_node::{AppendFsync, FirstStart, Host, Input, NodeConfig, ReplicaOptions};
use ensue_types::{DatacenterId, Now, PartitionId, partition_of};
use ensue_wire::handshake::{Settings, VersionRange};

impl World {
    /// Starts a process that is not running.
    pub fn start(&mut self, id: ProcessId) {
        if self.processes[id.0].alive || self.processes[id.0].lost || self.is_not_there_yet(id) {
            return;
        }
        self.processes[id.0].alive = true;
        self.processes[id.0].boot += 1;
        let sites = self.options.shape.sites_of(id);
        for &site in &sites {
            self.disks_of_a_new_process(site);
            self.forget_introductions(site);
            let config = self.config(site);
            let now = self.clock_of(site);
            let found = self.partitions_with_replicas(site);
            let options = ReplicaOptions { found, ..self.options.replica_options() };
            let node = Host::new(config, &options, now).expect("the simulator names protocols that exist");
            self.cores[site.0].node = Some(node);
            if self.options.shape.is_replicated() {
                // Its sessions learn over links who owns the partitions.
                self.trouble(site, self.now + HEARD_US);
            }
        }
        for &site in &sites {
            self.drain(site);
            for &peer in &sites {
                if peer != site {
                    self.tell_link(site, peer, true);
                }
            }
        }
        for &site in &sites {
            self.reconnect_all(site);
        }
    }

    /// `kill -9`: memory and work not yet carried out are gone, files stay.
    pub fn kill(&mut self, id: ProcessId) {
        self.die(id);
        let now = self.now;
        for site in self.options.shape.sites_of(id) {
            self.disks_of(site).for_each(|disk| disk.kill(now));
        }
    }

    /// Asks a process to stop cleanly, as an operator does. It exits when it has carried everything out.
    pub fn shut_down(&mut self, id: ProcessId) {
        for site in self.options.shape.sites_of(id) {
            self.give(site, Input::Shutdown);
        }
        self.processes[id.0].stopping = true;
    }

    /// Whether it was asked to stop and has not exited.
    pub fn is_stopping(&self, id: ProcessId) -> bool {
        self.processes[id.0].alive && self.processes[id.0].stopping
    }

    /// Kills a process, if it runs, and starts it again at that time.
    pub fn restart_at(&mut self, at: u64, id: ProcessId) {
        self.queue.push(at.max(self.now), Event::Restart { process: id });
    }

    /// Kills a process that speaks other versions of the wire format than these, and starts it with these.
    pub fn restart_with(&mut self, id: ProcessId, versions: VersionRange) {
        if self.processes[id.0].versions != versions {
            self.kill(id);
            self.processes[id.0].versions = versions;
            self.start(id);
        }
    }

    /// The same of settings.
    pub fn restart_configured(&mut self, id: ProcessId, settings: Settings) {
        if self.processes[id.0].settings != settings {
            self.kill(id);
            self.processes[id.0].settings = settings;
            self.start(id);
        }
    }

    /// A datacenter is gone and will never come back.
    pub fn lose(&mut self, datacenter: DatacenterId) {
        self.lose_what_only_others_had(datacenter);
        for process in self.options.shape.processes_of(datacenter) {
            self.kill(process);
            self.processes[process.0].lost = true;
        }
    }

    /// The power fails: what was not synced may be gone too. True if a log's tail was torn.
    pub fn lose_power(&mut self, id: ProcessId) -> bool {
        self.lose_unsynced(id, false)
    }

    /// The power fails, and nothing stays that was not synced.
    pub fn lose_all_unsynced(&mut self, id: ProcessId) {
        self.lose_unsynced(id, true);
    }

    fn lose_unsynced(&mut self, id: ProcessId, all: bool) -> bool {
        self.die(id);
        self.processes[id.0].boot_id = self.processes[id.0].boot_id.wrapping_add(1);
        let (now, shape) = (self.now, self.options.shape);
        let relaxed = self.options.append_fsync != AppendFsync::Always;
        let mut torn = false;
        for site in shape.sites_of(id) {
            for partition in shape.partitions_of(site) {
                let key = shape.disk(site, partition);
                if let (Some(disk), Some(random)) =
                    (self.disks.get_mut(&key), self.disk_chances.get_mut(&key))
                {
                    if let (Some(since_us), true) = (disk.loose_since(), relaxed) {
                        let (datacenter, at_us) = (key.0, now);
                        let is_whole = false;
                        let lost = PowerLost { datacenter, partition, since_us, at_us, is_whole };
                        self.power_losses.push(lost);
                    }
                    torn |= disk.lose_power(now, (!all).then_some(random));
                }
            }
        }
        if torn {
            self.marks.add(Mark::PowerTore);
        }
        torn
    }

    /// Cuts bytes off the newest log segment of a partition of a process that is not running.
    pub fn tear(&mut self, datacenter: DatacenterId, partition: ensue_types::PartitionId, bytes: usize) {
        if let Some(disk) = self.disks.get_mut(&(datacenter, partition)) {
            disk.tear_last(bytes);
        }
    }

    fn die(&mut self, id: ProcessId) {
        if !self.processes[id.0].alive {
            return;
        }
        self.processes[id.0].alive = false;
        self.processes[id.0].stopping = false;
        let sites = self.options.shape.sites_of(id);
        for &site in &sites {
            self.trouble(site, self.now);
            let core = &mut self.cores[site.0];
            core.node = None;
            core.turn_open = false;
            core.timer = None;
            core.busy_until = 0;
            core.pending.clear();
            core.stopped_at = None;
            core.ready.clear();
            self.network.forget(site);
            for other in 0..self.cores.len() {
                let news = self.network.sever(self.now, site, Site(other), Break::Prompt);
                self.tell_ends(news);
            }
        }
        for (&connection, state) in &mut self.connections {
            if state.open && sites.contains(&state.site) {
                state.open = false;
                self.sessions.remove(&(state.site, state.session));
                let at = state.last_to_client.max(self.now + 50);
                self.queue.push(at, Event::Hangup { connection });
            }
        }
    }

    /// What both of a node's clocks show now.
    pub(super) fn clock_of(&self, site: Site) -> Now {
        let process = &self.processes[self.options.shape.process(site).0];
        Now {
            monotonic_us: self.now + process.monotonic_offset_us + 1,
            wall_ms: process.clock.wall_ms(self.now),
        }
    }

    /// Which life of its process keeps what belongs to a key in a datacenter.
    pub fn life_of_keeper(&self, datacenter: DatacenterId, key: &[u8]) -> u32 {
        let partition = partition_of(key, self.options.shape.partitions);
        self.processes[self.process_of(datacenter, partition).0].boot
    }

    pub(super) fn boot_of(&self, site: Site) -> u32 {
        self.processes[self.options.shape.process(site).0].boot
    }

    /// Asks for a new connection to every core of every other process.
    pub(super) fn reconnect_all(&mut self, site: Site) {
        for peer in 0..self.cores.len() {
            self.reconnect(site, Site(peer));
        }
    }

    pub(super) fn reconnect(&mut self, a: Site, b: Site) {
        if self.options.shape.process(a) != self.options.shape.process(b) {
            let at = self.now + self.cores[a.0].turns.between(50, 3_000);
            self.queue.push(at, Event::Reconnect { a, b });
        }
    }

    pub(super) fn tell_ends(&mut self, news: Vec<EndNews>) {
        for EndNews { site, peer, at, up, epoch } in news {
            if self.options.shape.datacenter(site) == self.options.shape.datacenter(peer) {
                self.trouble(site, at);
            }
            let boot = self.boot_of(site);
            self.queue.push(at, Event::LinkEnd { site, peer, up, boot, epoch });
        }
    }

    fn tell_link(&mut self, site: Site, peer: Site, up: bool) {
        let boot = self.boot_of(site);
        self.queue.push(self.now, Event::LinkEnd { site, peer, up, boot, epoch: 0 });
    }

    /// The partitions of which a replica has written something on this core.
    fn partitions_with_replicas(&self, site: Site) -> Vec<PartitionId> {
        let shape = self.options.shape;
        let has_journal = |partition: &PartitionId| {
            self.disks.get(&shape.disk(site, *partition)).is_some_and(Disk::has_journal)
        };
        shape.partitions_of(site).into_iter().filter(has_journal).collect()
    }

    fn disks_of(&mut self, site: Site) -> impl Iterator<Item = &mut crate::world::disk::Disk> {
        let shape = self.options.shape;
        let keys: Vec<_> = shape.partitions_of(site).into_iter().map(|p| shape.disk(site, p)).collect();
        self.disks.iter_mut().filter(move |(key, _)| keys.contains(key)).map(|(_, disk)| disk)
    }

    fn config(&self, site: Site) -> NodeConfig {
        let shape = self.options.shape;
        let process = &self.processes[shape.process(site).0];
        let mut boot_id = [0; 16];
        boot_id[..8].copy_from_slice(&process.boot_id.to_le_bytes());
        let mut config = self.options.node(site);
        config.topology.datacenters.truncate(usize::from(process.known));
        let is_joiner = self.options.joiner() == Some(shape.datacenter(site));
        NodeConfig {
            boot: process.boot,
            boot_id,
            identity_seed: u128::from(self.options.seed) << 64
                | u128::from(process.boot) << 16
                | site.0 as u128,
            // A cluster begins by its operator's word; later an empty directory is one that was lost.
            first_start: if process.boot == 1 && !is_joiner { FirstStart::Alone } else { FirstStart::Ask },
            ..config
        }
    }

    /// Gives a link's news to its node, and asks for a new connection after a loss.
    pub(super) fn link_end(&mut self, site: Site, peer: Site, up: bool, epoch: u32) {
        let shape = self.options.shape;
        let (datacenter, core) = (shape.datacenter(peer), shape.core(peer));
        let shared = shape.process(site) == shape.process(peer);
        let told = if shared { &[true] } else { self.network.news(site, peer, up, epoch) };
        if told.len() > 1 {
            self.marks.add(Mark::ConnectionReplaced);
        }
        for &up in told {
            let input =
                if up { Input::LinkUp { datacenter, core } } else { Input::LinkDown { datacenter, core } };
            self.give(site, input);
        }
        if !up {
            self.reconnect(site, peer);
        }
    }
}
