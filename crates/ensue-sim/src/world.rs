//! The simulated world: virtual time, and nodes that meet nothing but the world's network, disks, clocks and clients.
//!
//! `step` carries out one event and says what of it the driver may care about. The driver (a seeded run or a script)
//! connects clients, orders alarms, and breaks things; the world never decides anything of that kind itself, except
//! for crashes that were aimed in advance at a step of a transaction.

pub mod audit;
pub mod clock;
mod clocks;
mod directories;
pub mod disk;
mod disks;
mod drive;
pub mod event;
mod faults;
mod growth;
pub mod handlers;
pub mod marks;
pub mod network;
pub mod nonsense;
pub(crate) mod operator;
pub mod options;
mod process;
mod retiring;
pub mod shape;
pub mod traffic;
pub mod work;

use crate::oracle::said::Said;
use crate::oracle::staleness::Staleness;
use crate::random::Random;
use crate::stopwatch::Stopwatch;
use crate::world::audit::Audit;
use crate::world::clock::Clock;
use crate::world::disk::{Disk, Harm};
use crate::world::event::{Alarm, ConnectionId, Event, Queue};
use crate::world::marks::Marks;
use crate::world::network::Network;
use crate::world::options::Options;
use crate::world::shape::{ProcessId, Site};
use crate::world::traffic::Traffic;
use crate::world::work::Processors;
use ensue_node::{Host, Trace, TransactionStep};
use ensue_types::{Args, DatacenterId, PartitionId, SessionId};
use ensue_wire::handshake::{Settings, VersionRange};
use ensue_wire::{WIRE_VERSION_MAX, WIRE_VERSION_MIN};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::Write;

/// The versions of the wire format that a process of this release speaks.
pub const VERSIONS: VersionRange = VersionRange { min: WIRE_VERSION_MIN, max: WIRE_VERSION_MAX };

/// Some hundreds of times what happens in a run.
const EVENTS_MAX: u64 = 20_000_000;

/// What the driver is told.
#[derive(Debug)]
pub enum Happening {
    Answer {
        connection: ConnectionId,
        bytes: Vec<u8>,
        answered: u32,
    },
    /// The connection is closed, by the server or by its death.
    Hangup {
        connection: ConnectionId,
    },
    Alarm(Alarm),
    /// A partition was told of a disk error, and did not stop.
    WentOn {
        site: Site,
        partition: PartitionId,
    },
    /// A partition whose files were harmed while it was down did not miss anything.
    ServesTheRest {
        site: Site,
        partition: PartitionId,
    },
    Trace {
        site: Site,
        trace: Trace,
        /// A partition that stops or refuses writes was given a reason by its disk.
        is_excused: bool,
    },
    /// An aimed crash was carried out.
    Struck {
        aim: Aim,
    },
}

/// A crash that waits for its step of a write transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aim {
    pub step: TransactionStep,
    /// Whether the transaction comes from another datacenter.
    pub remote: bool,
    /// So many such steps pass unharmed.
    pub skip: u32,
    pub power: bool,
    /// The process starts again after this time; never by itself if there is none.
    pub lasts_us: Option<u64>,
}

/// Holds back what one partition of a datacenter sends to another datacenter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hold {
    pub partition: PartitionId,
    pub from: DatacenterId,
    pub to: DatacenterId,
}

struct Core {
    node: Option<Host>,
    /// Chances of its own: how long turns are and when links come back; and the delays of its clients.
    turns: Random,
    client_links: Random,
    turn_open: bool,
    /// Nothing is taken before this time: the process is stopped, or the core is busy.
    busy_until: u64,
    /// How long each input takes.
    cost_us: u64,
    /// What came meanwhile, in order.
    pending: VecDeque<Event>,
    /// Asked to stop, and when the last disk operation of that is over.
    stopped_at: Option<u64>,
    /// The timer that is scheduled.
    timer: Option<u64>,
    ready: BTreeSet<PartitionId>,
}

struct Process {
    alive: bool,
    /// Asked to stop.
    stopping: bool,
    /// Never starts again.
    lost: bool,
    /// The versions of the wire format that it speaks.
    versions: VersionRange,
    /// What it is configured with beside what all have.
    settings: Settings,
    /// So many datacenters are in its configuration.
    known: u8,
    boot: u32,
    boot_id: u64,
    clock: Clock,
    monotonic_offset_us: u64,
}

struct Connection {
    site: Site,
    boot: u32,
    session: SessionId,
    open: bool,
    last_to_server: u64,
    last_to_client: u64,
}

/// Partitions that a disk keeps from serving.
#[derive(Debug, Default)]
struct Ailing {
    stopped: BTreeSet<(DatacenterId, PartitionId)>,
    /// They refuse writes, or did so until this time.
    refusing: BTreeMap<(DatacenterId, PartitionId), Option<u64>>,
    /// They have no room for what they must log, not even that of a reserve.
    starved: BTreeSet<(DatacenterId, PartitionId)>,
    /// What is done to their files when their process has exited.
    to_harm: BTreeMap<(DatacenterId, PartitionId), Harm>,
}

/// The world.
pub struct World {
    pub options: Options,
    pub network: Network,
    pub audit: Audit,
    /// Of the answers that clients got.
    pub answers: Audit,
    /// Where each event is shown, one line.
    pub trace: Option<Box<dyn Write>>,
    pub aims: Vec<Aim>,
    /// Power failures that may have taken what was not synced.
    pub power_losses: Vec<crate::oracle::history::PowerLost>,
    /// What happened that is worth counting and that only the world sees.
    pub marks: Marks,
    pub staleness: Staleness,
    /// Who counts what passes between nodes, in a comparison.
    pub traffic: Option<Traffic>,
    /// What must not be taken back.
    pub said: Said,
    /// What nodes cost, in a comparison.
    pub stopwatch: Option<Stopwatch>,
    /// What keeps cores busy, in a comparison: without it, and without a fault, an input takes no time.
    pub work: Option<Processors>,
    /// After so many events the world is one without end.
    pub events_max: u64,
    now: u64,
    queue: Queue,
    cores: Vec<Core>,
    processes: Vec<Process>,
    disks: BTreeMap<(DatacenterId, PartitionId), Disk>,
    /// The terms since which replicated partitions live where they last lived on each core.
    terms: BTreeMap<(Site, PartitionId), u64>,
    connections: BTreeMap<ConnectionId, Connection>,
    sessions: BTreeMap<(Site, SessionId), ConnectionId>,
    holds: BTreeMap<Hold, Vec<(Site, Site, u32, ensue_wire::Envelope)>>,
    /// Cores that say what cannot be, between what they really say, by chances of their own.
    liars: BTreeMap<Site, Random>,
    happenings: VecDeque<Happening>,
    operators: BTreeMap<ConnectionId, operator::Operator>,
    /// When the latest trouble within each datacenter is over.
    trouble_us: Vec<u64>,
    ailing: Ailing,
    /// Until when the logical time of each datacenter may lie far ahead.
    ahead_us: Vec<u64>,
    /// How often a datacenter was given other times.
    restamped: u64,
    /// Faults are over: what they were yet to do again and again does not happen.
    is_healed: bool,
    disk_chances: BTreeMap<(DatacenterId, PartitionId), Random>,
    directories: directories::Directories,
    growth: growth::Growth,
}

impl World {
    /// A world in which every process has just been started for the first time.
    pub fn new(options: Options) -> World {
        let (seed, shape) = (options.seed, options.shape);
        let mut clocks = Random::stream(seed, "clocks");
        let core = |site| Core {
            node: None,
            turns: Random::stream(seed, &format!("turns {site}")),
            client_links: Random::stream(seed, &format!("client links {site}")),
            turn_open: false,
            busy_until: 0,
            cost_us: 0,
            pending: VecDeque::new(),
            stopped_at: None,
            timer: None,
            ready: BTreeSet::new(),
        };
        let process = |_| Process {
            alive: false,
            stopping: false,
            lost: false,
            versions: VERSIONS,
            settings: Settings::default(),
            known: shape.datacenters,
            boot: 0,
            boot_id: clocks.bits(),
            clock: Clock::new(
                clocks.around_zero(options.clock.skew_ms),
                clocks.around_zero(options.clock.drift_ppm),
            ),
            monotonic_offset_us: clocks.below(1 << 40),
        };
        let processes = (0..shape.processes()).map(process).collect();
        let mut world = World {
            network: Network::new(shape, options.links.clone(), seed),
            audit: Audit::default(),
            answers: Audit::default(),
            trace: None,
            aims: Vec::new(),
            marks: Marks::default(),
            power_losses: Vec::new(),
            staleness: Staleness::default(),
            traffic: None,
            said: Said::default(),
            stopwatch: None,
            work: None,
            events_max: EVENTS_MAX,
            now: 0,
            queue: Queue::default(),
            cores: (0..shape.sites()).map(core).collect(),
            processes,
            disks: BTreeMap::new(),
            terms: BTreeMap::new(),
            connections: BTreeMap::new(),
            sessions: BTreeMap::new(),
            holds: BTreeMap::new(),
            liars: BTreeMap::new(),
            happenings: VecDeque::new(),
            operators: BTreeMap::new(),
            trouble_us: vec![0; usize::from(shape.datacenters)],
            ailing: Ailing::default(),
            ahead_us: vec![0; usize::from(shape.datacenters)],
            restamped: 0,
            is_healed: false,
            disk_chances: BTreeMap::new(),
            directories: directories::Directories::default(),
            growth: growth::Growth::default(),
            options,
        };
        world.begin();
        world
    }

    /// Virtual microseconds since the beginning.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// What happened next; nothing once no event is left at or before `until`, and then it is that time. In a world
    /// without end nothing happens any more.
    pub fn step(&mut self, until: u64) -> Option<Happening> {
        loop {
            if let Some(happening) = self.happenings.pop_front() {
                return Some(happening);
            }
            match self.queue.next_at() {
                Some(at) if at <= until && !self.is_endless() => {}
                _ => {
                    self.now = self.now.max(until);
                    return None;
                }
            }
            self.switch_off_the_retired();
            if let Some((at, event)) = self.queue.pop() {
                self.now = self.now.max(at);
                self.audit.event(self.now, 0, &event);
                if matches!(event, Event::Answer { .. } | Event::Hangup { .. }) {
                    self.answers.event(self.now, 0, &event);
                }
                if let Some(trace) = &mut self.trace {
                    // A trace that cannot be written must not change the run.
                    let _ = writeln!(trace, "{:>12} {event:?}", self.now);
                }
                self.carry_out(event);
            }
        }
    }

    /// Whether more has happened than ever does where something comes to an end: some answer makes its own next
    /// question.
    pub fn is_endless(&self) -> bool {
        self.audit.events() >= self.events_max
    }

    /// Orders a wake-up call.
    pub fn alarm(&mut self, at: u64, alarm: Alarm) {
        self.queue.push(at.max(self.now), Event::Alarm(alarm));
    }

    /// Opens a connection to a core. If the core is down, it is closed again at once.
    pub fn connect(&mut self, site: Site) -> ConnectionId {
        let id = ConnectionId(self.connections.len() as u64 + 1);
        let process = &self.processes[self.options.shape.process(site).0];
        let session = SessionId(id.0);
        // Nobody is let in where it is not known yet whether the directories are the right ones.
        let alive = process.alive && !self.is_closed(self.options.shape.datacenter(site));
        let boot = process.boot;
        let (last_to_server, last_to_client) = (self.now, self.now);
        let connection = Connection { site, boot, session, open: alive, last_to_server, last_to_client };
        self.connections.insert(id, connection);
        if !alive {
            self.queue.push(self.now + 100, Event::Hangup { connection: id });
            return id;
        }
        self.sessions.insert((site, session), id);
        let address = format!("10.0.0.{}:{}", site.0, 40_000 + id.0);
        let local_address = format!("10.0.1.{}:6379", site.0);
        self.reach_server(id, ensue_node::Input::ClientConnected { session, address, local_address });
        id
    }

    /// Sends commands on a connection.
    pub fn send(&mut self, id: ConnectionId, commands: Vec<Args>) {
        if let Some(connection) = self.connections.get(&id) {
            let session = connection.session;
            self.reach_server(id, ensue_node::Input::ClientCommands { session, commands });
        }
    }

    /// Closes a connection from the client's side.
    pub fn close(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.get(&id) {
            let session = connection.session;
            self.reach_server(id, ensue_node::Input::ClientGone { session });
        }
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.open = false;
            self.sessions.remove(&(connection.site, connection.session));
        }
    }

    /// Breaks the open connection of this number, counted from the start again if there are fewer: the server learns
    /// that the client is gone, and the client that the server is. False if there is none.
    pub fn drop_client(&mut self, number: usize) -> bool {
        let open: Vec<ConnectionId> =
            self.connections.iter().filter(|(_, state)| state.open).map(|(&id, _)| id).collect();
        let Some(&connection) = number.checked_rem(open.len()).and_then(|index| open.get(index)) else {
            return false;
        };
        self.close(connection);
        self.queue.push(self.now + 50, Event::Hangup { connection });
        true
    }

    /// Breaks every open connection of clients to a core. How many there were.
    pub fn drop_clients_of(&mut self, site: Site) -> usize {
        let open = self.connections.iter().filter(|(_, state)| state.open && state.site == site);
        let open: Vec<ConnectionId> = open.map(|(&id, _)| id).collect();
        for &connection in &open {
            self.close(connection);
            self.queue.push(self.now + 50, Event::Hangup { connection });
        }
        open.len()
    }

    /// Since when every core of a datacenter runs, has read its logs and is connected to its neighbours. One that is
    /// being removed refuses writes, and then everything.
    pub fn healthy_since(&mut self, datacenter: DatacenterId) -> Option<u64> {
        if self.is_retiring(datacenter) {
            return None;
        }
        let shape = self.options.shape;
        let sites: Vec<Site> =
            (0..shape.sites()).map(Site).filter(|&site| shape.datacenter(site) == datacenter).collect();
        let runs = sites.iter().all(|&site| {
            let process = &self.processes[shape.process(site).0];
            process.alive && !process.stopping
        });
        // Replicas may all be ready before one of them is found to have been cut off.
        let ready = runs
            && sites.iter().map(|&site| self.cores[site.0].ready.len()).sum::<usize>()
                == usize::from(shape.partitions);
        let connected = || sites.iter().all(|&a| sites.iter().all(|&b| a >= b || self.network.is_up(a, b)));
        let since = self.trouble_us[usize::from(datacenter.0)];
        let starved = self.ailing.starved.iter().any(|(ailing, _)| *ailing == datacenter);
        (!starved && ready && connected() && since <= self.now).then_some(since)
    }

    /// Until when some core of a datacenter takes no input: a request waits there for that, however often it is paused.
    pub fn occupied_until(&self, datacenter: DatacenterId) -> u64 {
        let shape = self.options.shape;
        let sites = (0..shape.sites()).map(Site).filter(|&site| shape.datacenter(site) == datacenter);
        sites.map(|site| self.cores[site.0].busy_until).max().unwrap_or(0)
    }

    /// Something happened within a datacenter that excuses errors until then.
    fn trouble(&mut self, site: Site, until: u64) {
        let datacenter = usize::from(self.options.shape.datacenter(site).0);
        self.trouble_us[datacenter] = self.trouble_us[datacenter].max(until);
    }

    /// How often processes were started again.
    pub fn restarts(&self) -> u64 {
        self.processes.iter().map(|process| u64::from(process.boot.saturating_sub(1))).sum()
    }

    /// The datacenters of which a process was started again.
    pub fn restarted(&self) -> Vec<DatacenterId> {
        let shape = self.options.shape;
        let again = |d| shape.processes_of(d).iter().any(|process| self.processes[process.0].boot > 1);
        (0..shape.datacenters).map(DatacenterId).filter(|&d| again(d)).collect()
    }

    pub fn is_alive(&self, process: ProcessId) -> bool {
        self.processes[process.0].alive
    }

    /// The datacenters that will come back whatever happens to them.
    pub fn survivors(&self) -> Vec<DatacenterId> {
        let shape = self.options.shape;
        let lost = |d| shape.processes_of(d).iter().all(|process| self.processes[process.0].lost);
        (0..shape.datacenters).map(DatacenterId).filter(|&d| !lost(d)).collect()
    }

    fn reach_server(&mut self, id: ConnectionId, input: ensue_node::Input) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if !connection.open {
            return;
        }
        let delay = self.cores[connection.site.0].client_links.between(5, 60);
        let at = connection.last_to_server.max(self.now + delay);
        connection.last_to_server = at;
        let (site, boot) = (connection.site, connection.boot);
        self.queue.push(at, Event::Client { site, boot, input: Box::new(input) });
    }
}
