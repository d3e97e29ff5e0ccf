//! What is done to a cluster while its clients work: drawn from a seed, begun, and undone when its time is over.

use crate::cluster::{Cluster, DATACENTERS, SERVERS, SMALL_DISK, is_one_of_several};
use crate::namespace::Loss;
use crate::process::Injection;
use crate::random::Random;
use anyhow::Result;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// One fault. Datacenters and servers are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// What the first sends to the second takes so long.
    Delay { from: usize, to: usize, ms: u64 },
    /// What the first sends to the second waits, as behind lost packets.
    Silence { from: usize, to: usize },
    /// The two have no connection, and get none.
    Sever { one: usize, other: usize },
    /// Their connections break once.
    Flap { one: usize, other: usize },
    /// The kernel drops packets of a datacenter.
    Lose { datacenter: usize, loss: Loss },
    /// `SIGKILL`.
    Kill { server: usize },
    /// `SIGSTOP`, then `SIGCONT`.
    Pause { server: usize },
    /// Started again such that its N-th write kills it.
    KillAtWrite { server: usize, nth: u64 },
    /// Started again such that its N-th sync kills it.
    KillAtSync { server: usize, nth: u64 },
    /// Started again such that its N-th sync fails with `EIO`, once for each thread that syncs.
    FailSync { server: usize, nth: u64 },
    /// No byte is left on its disk.
    FillDisk,
}

/// A group of faults that a round draws from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Weather {
    /// Links only: every datacenter must go on as if nothing were.
    Links,
    Processes,
    Disks,
    Everything,
}

impl Weather {
    pub const ALL: [Weather; 4] = [Weather::Links, Weather::Processes, Weather::Disks, Weather::Everything];

    /// Whether a datacenter may refuse or fail to answer.
    pub fn excuses_errors(self) -> bool {
        self != Weather::Links
    }
}

/// What this machine allows.
#[derive(Clone, Copy, Debug)]
pub struct Means {
    pub strace: bool,
    pub namespaces: bool,
    pub small_disk: bool,
}

impl Fault {
    fn draw(weather: Weather, means: Means, random: &mut Random) -> Fault {
        let datacenter = random.index(DATACENTERS);
        let other = (datacenter + 1 + random.index(DATACENTERS - 1)) % DATACENTERS;
        let links = |random: &mut Random| match random.below(if means.namespaces { 7 } else { 5 }) {
            0 => Fault::Delay { from: datacenter, to: other, ms: random.between(1, 400) },
            1 | 2 => Fault::Silence { from: datacenter, to: other },
            3 => Fault::Sever { one: datacenter, other },
            4 => Fault::Flap { one: datacenter, other },
            _ => {
                let loss = [Loss::Sent, Loss::Received, Loss::Both][random.index(3)];
                Fault::Lose { datacenter, loss }
            }
        };
        let server = random.index(SERVERS);
        let processes = |random: &mut Random| match random.below(if means.strace { 4 } else { 2 }) {
            0 => Fault::Kill { server },
            1 => Fault::Pause { server },
            2 => Fault::KillAtWrite { server, nth: random.between(1, 400) },
            _ => Fault::KillAtSync { server, nth: random.between(1, 40) },
        };
        let disks = |random: &mut Random| match (means.strace, means.small_disk) {
            (true, true) if random.percent(50) => Fault::FillDisk,
            (true, _) => Fault::FailSync { server, nth: random.between(1, 20) },
            (false, true) => Fault::FillDisk,
            (false, false) => Fault::Kill { server },
        };
        match weather {
            Weather::Links => links(random),
            Weather::Processes => processes(random),
            Weather::Disks => disks(random),
            Weather::Everything => match random.below(3) {
                0 => links(random),
                1 => processes(random),
                _ => disks(random),
            },
        }
    }

    /// The server whose process or disk it touches.
    fn victim(self) -> Option<usize> {
        match self {
            Fault::Kill { server }
            | Fault::Pause { server }
            | Fault::KillAtWrite { server, .. }
            | Fault::KillAtSync { server, .. }
            | Fault::FailSync { server, .. } => Some(server),
            Fault::FillDisk => Some(SMALL_DISK),
            _ => None,
        }
    }

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        let of_a_node = self.victim().is_some_and(is_one_of_several);
        match self {
            Fault::Delay { .. } => "delay spike",
            Fault::Silence { .. } => "one way silent",
            Fault::Sever { .. } => "link cut",
            Fault::Flap { .. } => "connections broken",
            Fault::Lose { loss: Loss::Sent, .. } => "packets dropped, sent",
            Fault::Lose { loss: Loss::Received, .. } => "packets dropped, received",
            Fault::Lose { .. } => "packets dropped, both ways",
            Fault::Kill { .. } if of_a_node => "kill -9 of a node",
            Fault::Pause { .. } if of_a_node => "pause of a node",
            Fault::KillAtWrite { .. } if of_a_node => "kill of a node at the N-th write",
            Fault::KillAtSync { .. } if of_a_node => "kill of a node at the N-th sync",
            Fault::FailSync { .. } if of_a_node => "failed sync of a node",
            Fault::Kill { .. } => "kill -9",
            Fault::Pause { .. } => "pause",
            Fault::KillAtWrite { .. } => "kill at the N-th write",
            Fault::KillAtSync { .. } => "kill at the N-th sync",
            Fault::FailSync { .. } => "failed sync",
            Fault::FillDisk => "full disk",
        }
    }

    fn begin(self, cluster: &mut Cluster) -> Result<()> {
        match self {
            Fault::Delay { from, to, ms } => cluster.delay(from, to, Duration::from_millis(ms)),
            Fault::Silence { from, to } => cluster.silence(from, to, true),
            Fault::Sever { one, other } => cluster.sever(one, other, true),
            Fault::Flap { one, other } => cluster.flap(one, other),
            Fault::Lose { datacenter, loss } => cluster.lose(datacenter, loss)?,
            Fault::Kill { server } => cluster.kill(server)?,
            Fault::Pause { server } => cluster.pause(server)?,
            Fault::KillAtWrite { server, nth } => {
                inject(cluster, server, format!("write:signal=KILL:when={nth}"))?;
            }
            Fault::KillAtSync { server, nth } => {
                inject(cluster, server, format!("fsync,fdatasync:signal=KILL:when={nth}"))?;
            }
            Fault::FailSync { server, nth } => {
                inject(cluster, server, format!("fsync,fdatasync:error=EIO:when={nth}"))?;
            }
            Fault::FillDisk => cluster.fill_disk(true)?,
        }
        Ok(())
    }

    fn end(self, cluster: &mut Cluster, usual: Duration) -> Result<()> {
        match self {
            Fault::Delay { from, to, .. } => cluster.delay(from, to, usual),
            Fault::Silence { from, to } => cluster.silence(from, to, false),
            Fault::Sever { one, other } => cluster.sever(one, other, false),
            Fault::Flap { .. } => {}
            Fault::Lose { datacenter, .. } => cluster.lose(datacenter, Loss::Nothing)?,
            Fault::Pause { server } => cluster.resume(server)?,
            Fault::FillDisk => cluster.fill_disk(false)?,
            Fault::Kill { server }
            | Fault::KillAtWrite { server, .. }
            | Fault::KillAtSync { server, .. }
            | Fault::FailSync { server, .. } => {
                cluster.kill(server)?;
                cluster.start_server(server, None)?;
            }
        }
        Ok(())
    }
}

/// A kill comes first: an injection needs a start.
fn inject(cluster: &mut Cluster, server: usize, expression: String) -> Result<()> {
    cluster.kill(server)?;
    cluster.start_server(server, Some(&Injection(expression)))
}

/// The faults of one round, as they come and go.
#[derive(Debug)]
pub struct Storm {
    weather: Weather,
    means: Means,
    /// Delay of each directed link without a fault.
    usual: Duration,
    random: Random,
    active: Vec<(Instant, Fault)>,
    next: Instant,
    pub counts: BTreeMap<&'static str, u64>,
}

/// Faults at one time.
const ACTIVE_MAX: usize = 2;

impl Storm {
    pub fn new(weather: Weather, means: Means, usual: Duration, random: Random) -> Storm {
        Storm {
            weather,
            means,
            usual,
            random,
            active: Vec::new(),
            next: Instant::now(),
            counts: BTreeMap::new(),
        }
    }

    /// Ends what is over and begins what is due.
    pub fn blow(&mut self, cluster: &mut Cluster) -> Result<()> {
        let now = Instant::now();
        while let Some(index) = self.active.iter().position(|(until, _)| *until <= now) {
            let (_, fault) = self.active.remove(index);
            fault.end(cluster, self.usual)?;
        }
        if now < self.next || self.active.len() >= ACTIVE_MAX {
            return Ok(());
        }
        self.next = now + Duration::from_millis(self.random.between(50, 600));
        let fault = Fault::draw(self.weather, self.means, &mut self.random);
        let taken = |other: &Fault| {
            other.name() == fault.name() || other.victim().is_some_and(|v| Some(v) == fault.victim())
        };
        if self.active.iter().any(|(_, other)| taken(other)) {
            return Ok(());
        }
        fault.begin(cluster)?;
        *self.counts.entry(fault.name()).or_insert(0) += 1;
        self.active.push((now + Duration::from_millis(self.random.between(50, 2_500)), fault));
        Ok(())
    }

    /// Ends everything.
    pub fn calm(&mut self, cluster: &mut Cluster) -> Result<()> {
        for (_, fault) in std::mem::take(&mut self.active) {
            fault.end(cluster, self.usual)?;
        }
        Ok(())
    }
}
