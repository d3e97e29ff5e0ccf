//! What becomes of the directories of a whole datacenter: lost, exchanged, or replaced by an old copy; and what an
//! operator
//! does about it.
//!
//! A datacenter is sick from such a fault until it has recovered, or is given up. Partitions of a sick one may stop,
//! if it runs
//! on a directory that is not its newest; partitions of all others may not. What nobody else had received is lost.

use super::World;
use crate::oracle::history::{Operation, PowerLost};
use crate::world::disk::Disk;
use crate::world::options::{FaultOptions, Options, WorkloadOptions};
use crate::world::shape::Site;
use bytes::Bytes;
use ensue_node::Trace;
use ensue_types::{CoreId, DatacenterId, PartitionId, Position};
use ensue_wire::{Address, Envelope, Message};
use std::collections::{BTreeMap, BTreeSet};

/// A datacenter that has not recovered so long after it became sick is given up.
const PATIENCE_US: u64 = 6_000_000;
/// A datacenter has found everything in order so long after the last condition of that is met: something is read from
/// the log.
const CERTAIN_US: u64 = 300_000;
/// How long the cluster lives whose directories are taken for foreign ones.
const FOREIGN_US: u64 = 400_000;

/// Why a datacenter is sick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// It has started with empty directories.
    Empty,
    /// It runs on an old copy. No client is let in until it is known to be whole.
    OldCopy,
    /// It runs on directories of another cluster. No client is let in.
    Foreign,
}

#[derive(Clone, Copy, Debug)]
struct Sickness {
    cause: Cause,
    since_us: u64,
    /// When everything was first found in order.
    whole_us: Option<u64>,
}

/// Directories that were put aside.
#[derive(Debug)]
struct Aside {
    at_us: u64,
    disks: Vec<(PartitionId, Disk)>,
}

/// A partition of a datacenter.
type Home = (DatacenterId, PartitionId);

#[derive(Debug, Default)]
pub(super) struct Directories {
    sick: BTreeMap<DatacenterId, Sickness>,
    aside: BTreeMap<DatacenterId, Aside>,
    /// Who was introduced to whom since the latter's start.
    introduced: BTreeSet<(Home, DatacenterId)>,
    /// What a partition has ever said that it received of a stream, and what its process has said that it has durably
    /// applied.
    received: BTreeMap<(Home, DatacenterId), Position>,
    applied: BTreeMap<(Home, DatacenterId), Position>,
    /// Partitions that said that they cannot recover by themselves.
    stuck: BTreeSet<Home>,
    /// Partitions that run on an old copy, or an empty directory, and have declared nothing lost since, because nobody
    /// had received more: when the copy was made, and when it was put in place.
    unnoticed: BTreeMap<Home, Vec<(u64, u64)>>,
}

impl World {
    /// Whether the directories of a datacenter may be meddled with now: one that is whole always stays.
    pub fn may_become_sick(&self, datacenter: DatacenterId) -> bool {
        let directories = &self.directories;
        let is_healthy =
            |d: &DatacenterId| !directories.sick.contains_key(d) && !directories.aside.contains_key(d);
        let healthy: Vec<DatacenterId> = self.survivors().into_iter().filter(is_healthy).collect();
        healthy.len() > 1 && healthy.contains(&datacenter)
    }

    /// Whether every partition of every other datacenter has met this one. One that was started by its operator's word
    /// (`first-start alone`) and has met nobody must believe a foreign directory that it is the wrong one itself.
    pub fn is_known_to_all(&self, datacenter: DatacenterId) -> bool {
        let others: Vec<DatacenterId> = self.survivors().into_iter().filter(|d| *d != datacenter).collect();
        let has_met = |home: Home| self.directories.introduced.contains(&(home, datacenter));
        self.partitions().all(|partition| others.iter().all(|other| has_met((*other, partition))))
    }

    /// The directories of a datacenter are lost, and its processes start with empty ones.
    pub fn wipe(&mut self, datacenter: DatacenterId) {
        self.kill_all_of(datacenter);
        for partition in self.partitions() {
            self.empty(datacenter, partition);
        }
        self.become_sick(datacenter, Cause::Empty, 0);
        self.start_all_of(datacenter);
    }

    /// The directory of one partition is lost while its process is down, which starts with an empty one. With it goes
    /// what transactions wrote in it and elsewhere.
    pub fn wipe_partition(&mut self, datacenter: DatacenterId, partition: PartitionId) {
        let process = self.process_of(datacenter, partition);
        self.kill(process);
        self.empty(datacenter, partition);
        let (since_us, at_us, is_whole) = (0, self.now, true);
        self.power_losses.push(PowerLost { datacenter, partition, since_us, at_us, is_whole });
        self.lose_what_only_others_had_of_the_sick(datacenter);
        self.said.forget(datacenter);
        let sickness = Sickness { cause: Cause::Empty, since_us: self.now, whole_us: None };
        self.directories.sick.insert(datacenter, sickness);
        self.start(process);
    }

    fn empty(&mut self, datacenter: DatacenterId, partition: PartitionId) {
        self.disk(datacenter, partition).wipe();
        let received = &self.directories.received;
        let mut others = received.iter().filter(|((home, origin), _)| {
            home.1 == partition && home.0 != datacenter && *origin == datacenter
        });
        if others.all(|(_, position)| *position == Position(0)) {
            let unnoticed = self.directories.unnoticed.entry((datacenter, partition)).or_default();
            unnoticed.push((0, self.now));
        }
    }

    /// The directories of a datacenter are copied as they are at this moment.
    pub fn copy_directories(&mut self, datacenter: DatacenterId) {
        let at_us = self.now;
        let disks =
            self.partitions().map(|partition| (partition, self.disk(datacenter, partition).copy())).collect();
        self.directories.aside.insert(datacenter, Aside { at_us, disks });
    }

    /// The copy is put in the place of the directories of a datacenter, and its processes start with it. False if
    /// there is none.
    pub fn restore_directories(&mut self, datacenter: DatacenterId) -> bool {
        if !self.survivors().contains(&datacenter) {
            return false;
        }
        let Some(Aside { at_us, disks }) = self.directories.aside.remove(&datacenter) else { return false };
        self.kill_all_of(datacenter);
        self.put(datacenter, disks);
        self.become_sick(datacenter, Cause::OldCopy, at_us);
        for partition in self.partitions() {
            let unnoticed = self.directories.unnoticed.entry((datacenter, partition)).or_default();
            unnoticed.push((at_us, self.now));
        }
        self.start_all_of(datacenter);
        true
    }

    /// The directories of a datacenter are exchanged for those of another cluster.
    pub fn exchange_directories(&mut self, datacenter: DatacenterId) {
        self.kill_all_of(datacenter);
        let at_us = self.now;
        let own = self
            .partitions()
            .map(|partition| (partition, self.disk(datacenter, partition).clone()))
            .collect();
        self.directories.aside.insert(datacenter, Aside { at_us, disks: own });
        let foreign = foreign_directories(&self.options, datacenter);
        self.put(datacenter, foreign);
        let sickness = Sickness { cause: Cause::Foreign, since_us: self.now, whole_us: None };
        self.directories.sick.insert(datacenter, sickness);
        self.start_all_of(datacenter);
    }

    /// The right directories are put back.
    pub fn put_back_directories(&mut self, datacenter: DatacenterId) {
        let is_foreign = |sickness: &Sickness| sickness.cause == Cause::Foreign;
        if self.directories.sick.get(&datacenter).is_some_and(is_foreign) {
            self.put_back(datacenter);
        }
    }

    /// What was put aside is put back, whatever is known of the datacenter.
    pub fn put_back(&mut self, datacenter: DatacenterId) {
        let Some(Aside { disks, .. }) = self.directories.aside.remove(&datacenter) else { return };
        self.kill_all_of(datacenter);
        self.put(datacenter, disks);
        self.said.forget(datacenter);
        self.directories.sick.remove(&datacenter);
        self.start_all_of(datacenter);
    }

    /// What an operator does now and then: opens a datacenter that has recovered to its clients, starts stopped
    /// processes of a sick
    /// one again, and gives one up that does not recover. Without patience it is given up if it says that it cannot
    /// recover.
    pub fn look_after_the_sick(&mut self) {
        for (datacenter, sickness) in self.directories.sick.clone() {
            if !self.survivors().contains(&datacenter) {
                self.directories.sick.remove(&datacenter);
                continue;
            }
            if self.is_whole_again(datacenter, sickness) {
                let whole_us = *self
                    .directories
                    .sick
                    .get_mut(&datacenter)
                    .map_or(&mut None, |s| &mut s.whole_us)
                    .get_or_insert(self.now);
                if self.now >= whole_us + CERTAIN_US {
                    self.directories.sick.remove(&datacenter);
                }
                continue;
            }
            if let Some(sickness) = self.directories.sick.get_mut(&datacenter) {
                sickness.whole_us = None;
            }
            if sickness.cause == Cause::Foreign {
                if self.is_healed {
                    self.put_back_directories(datacenter);
                }
                continue;
            }
            let stopped = self.partitions().filter(|partition| self.has_stopped(datacenter, *partition));
            let stopped: BTreeSet<_> =
                stopped.map(|partition| self.process_of(datacenter, partition).0).collect();
            for process in stopped {
                self.kill(crate::world::shape::ProcessId(process));
                self.start(crate::world::shape::ProcessId(process));
            }
            let is_stuck = self.directories.stuck.iter().any(|(stuck, _)| *stuck == datacenter);
            // It asks a lost one, too, which answers nothing, and could not recover without it.
            let asks_the_lost =
                self.is_healed && self.survivors().len() < usize::from(self.options.shape.datacenters);
            // One that is added waits for what it needs, where that can be copied.
            let waits = self.options.joiner() == Some(datacenter) && !self.options.may_lack_copies();
            if (is_stuck || asks_the_lost) && !waits && self.now > sickness.since_us + PATIENCE_US {
                self.give_up(datacenter);
            }
        }
    }

    /// Clients are let in whatever is known.
    pub fn open(&mut self, datacenter: DatacenterId) {
        self.directories.sick.remove(&datacenter);
    }

    /// Datacenters that have not recovered.
    pub fn sick(&self) -> Vec<DatacenterId> {
        self.directories.sick.keys().copied().collect()
    }

    /// Whether a datacenter was sick and serves again, as whoever looks at it from outside sees it.
    pub fn has_recovered(&self, datacenter: DatacenterId) -> bool {
        self.directories
            .sick
            .get(&datacenter)
            .is_none_or(|sickness| self.is_whole_again(datacenter, *sickness))
    }

    /// An operator gives a datacenter up that does not recover.
    pub fn give_up(&mut self, datacenter: DatacenterId) {
        if self.survivors().len() > 1 && self.survivors().contains(&datacenter) {
            self.directories.sick.remove(&datacenter);
            self.lose(datacenter);
            self.declare_dead(datacenter);
        }
    }

    /// Whether clients of a datacenter are turned away.
    pub(super) fn is_closed(&self, datacenter: DatacenterId) -> bool {
        self.directories.sick.get(&datacenter).is_some_and(|sickness| sickness.cause != Cause::Empty)
    }

    /// Whether partitions of a datacenter may stop, for they do not run on their newest directory.
    pub(super) fn may_stop(&self, datacenter: DatacenterId) -> bool {
        self.is_closed(datacenter)
    }

    /// With a datacenter goes what only it had of those that are sick.
    pub(super) fn lose_what_only_others_had(&mut self, datacenter: DatacenterId) {
        let sick: Vec<DatacenterId> =
            self.directories.sick.keys().copied().filter(|d| *d != datacenter).collect();
        sick.into_iter().for_each(|sick| self.lose_writes(sick, 0));
        self.directories.received.retain(|((d, _), _), _| *d != datacenter);
    }

    /// A partition hears who another one is.
    pub(super) fn note_introduction(&mut self, envelope: &Envelope) {
        let (Address::Partition { datacenter: from, partition }, to) =
            (envelope.from, envelope.to.datacenter())
        else {
            return;
        };
        if matches!(envelope.message, Message::Introduce(_)) {
            self.directories.introduced.insert(((to, partition), from));
        }
    }

    /// A partition says what it has: not what a liar makes of that.
    pub(super) fn note_acknowledgement(&mut self, envelope: &Envelope) {
        let (Address::Partition { datacenter, partition }, Message::StreamAcknowledge(acknowledge)) =
            (envelope.from, &envelope.message)
        else {
            return;
        };
        let (home, to) = ((datacenter, partition), envelope.to.datacenter());
        let before = self.directories.received.entry((home, to)).or_default();
        *before = acknowledge.received.max(*before);
        for &(origin, _, position) in &acknowledge.applied {
            let before = self.directories.applied.entry((home, origin)).or_default();
            *before = position.max(*before);
        }
    }

    /// Whether a session that shows this token is told that it names nothing but writes that are gone with an old copy,
    /// or an empty directory, which nobody could notice: nobody else has received them. The token was made in that
    /// datacenter, after the copy.
    pub fn names_the_unnoticed(&self, error: &str, token: &Operation) -> bool {
        let waits = error.strip_prefix("NOTYET ").and_then(|said| said.split_once(": waiting for "));
        let never =
            error.strip_prefix("NEVERISSUED the token names ").and_then(|said| said.split_once(", which "));
        let Some(names) = waits.map(|(_, names)| names).or(never.map(|(name, _)| name)) else { return false };
        let datacenter = token.datacenter;
        let is_gone = |name: &str| {
            // Of a folded context everything is named up to a place.
            let name = name.strip_prefix("up to ").unwrap_or(name);
            self.partitions().any(|partition| {
                let copies = self.directories.unnoticed.get(&(datacenter, partition)).into_iter().flatten();
                let mut taken = copies.filter(|(copied_us, put_us)| {
                    *copied_us <= token.answered_us && token.invoked_us <= *put_us
                });
                name.starts_with(&format!("{datacenter}/{partition}/")) && taken.next().is_some()
            })
        };
        names.split(", ").all(is_gone)
    }

    pub(super) fn note_stuck(&mut self, site: Site, trace: &Trace) {
        let datacenter = self.options.shape.datacenter(site);
        match trace {
            Trace::CannotRejoin { partition, .. } => {
                self.directories.stuck.insert((datacenter, *partition));
            }
            // The entries that come back are older than what the copy has said of its end.
            Trace::TailLost { .. } if self.may_stop(datacenter) => self.said.forget(datacenter),
            Trace::DeclaredLost { partition, origin, .. } if *origin == datacenter => {
                self.directories.unnoticed.remove(&(datacenter, *partition));
            }
            Trace::Rejoining { partition }
            | Trace::Copied { partition, .. }
            | Trace::PartitionReady { partition, .. } => {
                self.directories.stuck.remove(&(datacenter, *partition));
            }
            _ => {}
        }
    }

    /// A process starts: nothing is known of what its partitions know.
    pub(super) fn forget_introductions(&mut self, site: Site) {
        let datacenter = self.options.shape.datacenter(site);
        for partition in self.options.shape.partitions_of(site) {
            let home = (datacenter, partition);
            self.directories.introduced.retain(|(to, _)| *to != home);
            self.directories.applied.retain(|(of, _), _| *of != home);
            self.directories.stuck.remove(&home);
        }
    }

    /// Every partition serves; one that runs on an old copy has met everybody, and has applied again all that it had
    /// received.
    fn is_whole_again(&self, datacenter: DatacenterId, sickness: Sickness) -> bool {
        let shape = self.options.shape;
        let sites = (0..shape.sites()).map(Site).filter(|site| shape.datacenter(*site) == datacenter);
        let ready = sites.map(|site| self.cores[site.0].ready.len()).sum::<usize>();
        if ready < usize::from(shape.partitions) || sickness.cause == Cause::Foreign {
            return false;
        }
        let others: Vec<DatacenterId> = self.survivors().into_iter().filter(|d| *d != datacenter).collect();
        let mut pairs =
            self.partitions().flat_map(|p| others.iter().map(move |other| ((datacenter, p), *other)));
        sickness.cause == Cause::Empty
            || pairs.all(|pair| {
                let received = self.directories.received.get(&pair).copied().unwrap_or_default();
                let applied = self.directories.applied.get(&pair).copied().unwrap_or_default();
                self.directories.introduced.contains(&pair) && applied >= received
            })
    }

    fn become_sick(&mut self, datacenter: DatacenterId, cause: Cause, since_us: u64) {
        self.lose_writes(datacenter, since_us);
        self.lose_what_only_others_had_of_the_sick(datacenter);
        self.said.forget(datacenter);
        let sickness = Sickness { cause, since_us: self.now, whole_us: None };
        self.directories.sick.insert(datacenter, sickness);
    }

    /// A datacenter is to be added: it is as if it had lost its directories, from when it is started.
    pub(super) fn await_first_copy(&mut self, datacenter: DatacenterId) {
        let sickness = Sickness { cause: Cause::Empty, since_us: self.now, whole_us: None };
        self.directories.sick.insert(datacenter, sickness);
    }

    fn lose_what_only_others_had_of_the_sick(&mut self, datacenter: DatacenterId) {
        let sick: Vec<DatacenterId> =
            self.directories.sick.keys().copied().filter(|d| *d != datacenter).collect();
        sick.into_iter().for_each(|sick| self.lose_writes(sick, 0));
    }

    /// What a datacenter has written since then is lost, unless others have received it.
    fn lose_writes(&mut self, datacenter: DatacenterId, since_us: u64) {
        let at_us = self.now;
        for partition in self.partitions() {
            self.power_losses.push(PowerLost { datacenter, partition, since_us, at_us, is_whole: true });
        }
    }

    fn put(&mut self, datacenter: DatacenterId, disks: Vec<(PartitionId, Disk)>) {
        for (partition, disk) in disks {
            self.disk(datacenter, partition).become_copy_of(disk);
        }
    }

    fn partitions(&self) -> impl Iterator<Item = PartitionId> + use<> {
        (0..self.options.shape.partitions).map(PartitionId)
    }

    fn kill_all_of(&mut self, datacenter: DatacenterId) {
        for process in self.options.shape.processes_of(datacenter) {
            self.kill(process);
        }
    }

    fn start_all_of(&mut self, datacenter: DatacenterId) {
        for process in self.options.shape.processes_of(datacenter) {
            self.start(process);
        }
    }
}

/// The directories of a datacenter of another cluster that has just been started, with a few writes of its own.
fn foreign_directories(options: &Options, datacenter: DatacenterId) -> Vec<(PartitionId, Disk)> {
    let mut options = options.clone();
    options.seed = !options.seed;
    options.faults = FaultOptions::default();
    options.workload = WorkloadOptions::default();
    options.clock.skew_ms = 0;
    let mut world = World::new(options);
    while world.step(FOREIGN_US / 2).is_some() {}
    let connection = world.connect(world.options.shape.site(datacenter, CoreId(0)));
    for number in 0..8 {
        let words = ["SET".to_owned(), format!("foreign{number}"), "foreign".to_owned()];
        world.send(connection, vec![words.into_iter().map(Bytes::from).collect()]);
    }
    while world.step(FOREIGN_US).is_some() {}
    let partitions = world.partitions();
    partitions.map(|partition| (partition, world.disk(datacenter, partition).copy())).collect()
}
