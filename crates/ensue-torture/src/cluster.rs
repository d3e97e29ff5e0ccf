//! Three datacenters of real server processes, the wires between them, and everything that can be done to them.

use crate::namespace::{Loss, Namespace};
use crate::process::{Injection, Process, Recipe};
use crate::proxy::{Way, Wire};
use anyhow::{Context, Result, bail};
use ensue_client::{Connection, Options, Reply};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

pub const DATACENTERS: usize = 3;
pub const PARTITIONS: u16 = 4;
const CORES: u16 = 2;
/// The datacenter whose disk can be full.
pub const SMALL_DISK: usize = 2;
/// Room for all that clients write in ten minutes, beside what a full disk is filled with.
const SMALL_DISK_BYTES: u64 = 512 << 20;

/// What a cluster is made of.
#[derive(Clone, Debug)]
pub struct Plan {
    pub binary: PathBuf,
    pub directory: PathBuf,
    /// First of the ports; all of its row must be free.
    pub port: u16,
    pub protocol: Option<String>,
    pub appendfsync: String,
    /// A rule that the servers break on purpose; their binary must be able to.
    pub broken: Option<String>,
}

/// One datacenter: a server, or the place where one was.
#[derive(Debug)]
struct Datacenter {
    recipe: Recipe,
    process: Option<Process>,
    client: SocketAddr,
    namespace: Option<Namespace>,
}

/// A running cluster.
#[derive(Debug)]
pub struct Cluster {
    plan: Plan,
    datacenters: Vec<Datacenter>,
    /// The wires from one datacenter to another, one a core.
    wires: Vec<Vec<Vec<Wire>>>,
    small_disk: Option<SmallDisk>,
}

impl Cluster {
    /// Lays the wires and starts all servers.
    pub fn start(plan: Plan, namespaces: Vec<Namespace>) -> Result<Cluster> {
        fs::create_dir_all(&plan.directory)?;
        let small_disk = SmallDisk::mount(&plan.directory.join(format!("dc{}", SMALL_DISK + 1))).ok();
        let mut namespaces = namespaces.into_iter().map(Some).collect::<Vec<_>>();
        namespaces.resize_with(DATACENTERS, || None);
        let mut cluster = Cluster { plan, datacenters: Vec::new(), wires: Vec::new(), small_disk };
        cluster.make_secrets()?;
        for (own, namespace) in namespaces.into_iter().enumerate() {
            let datacenter = cluster.prepare(own, namespace)?;
            cluster.datacenters.push(datacenter);
        }
        cluster.lay_wires()?;
        for datacenter in 0..DATACENTERS {
            cluster.start_server(datacenter, None)?;
        }
        Ok(cluster)
    }

    /// As an operator would: peers of other hosts are believed only if they prove who they are.
    fn make_secrets(&self) -> Result<()> {
        let names = (1..=DATACENTERS).map(|number| format!("dc{number}"));
        let mut command = Command::new(&self.plan.binary);
        let made = command.arg("secret").arg("--out").arg(self.secrets()).args(names).output();
        let made = made.context("cannot run `ensue secret`")?;
        if !made.status.success() {
            bail!("`ensue secret`: {}", String::from_utf8_lossy(&made.stderr));
        }
        Ok(())
    }

    fn secrets(&self) -> PathBuf {
        self.plan.directory.join("secrets")
    }

    fn prepare(&self, own: usize, namespace: Option<Namespace>) -> Result<Datacenter> {
        let name = format!("dc{}", own + 1);
        let directory = self.plan.directory.join(&name);
        fs::create_dir_all(&directory)?;
        let config = self.plan.directory.join(format!("{name}.conf"));
        fs::write(&config, self.configuration(own, namespace.as_ref(), &directory))?;
        let client = namespace.as_ref().map_or(LOCAL, Namespace::client_address);
        let recipe = Recipe {
            binary: self.plan.binary.clone(),
            config,
            log: self.plan.directory.join(format!("{name}.log")),
            prefix: namespace.as_ref().map(Namespace::prefix).unwrap_or_default(),
        };
        let client = SocketAddr::new(client, self.plan.port + own as u16);
        Ok(Datacenter { recipe, process: None, client, namespace })
    }

    fn configuration(&self, own: usize, namespace: Option<&Namespace>, directory: &Path) -> String {
        let plan = &self.plan;
        let peer = namespace.map_or(LOCAL, Namespace::peer_address);
        let wire = namespace.map_or(LOCAL, Namespace::wire_address);
        let client = namespace.map_or(LOCAL, Namespace::client_address);
        let mut text = format!("cluster-name torture\npartitions {PARTITIONS}\nself dc{}\n", own + 1);
        for other in 0..DATACENTERS {
            let (host, port) =
                if other == own { (peer, self.peer_port(own)) } else { (wire, self.wire_port(own, other)) };
            text += &format!("node dc{} {host}:{port} cores {CORES}\n", other + 1);
        }
        text += &format!("peer-bind {peer}\nbind {client}\nport {}\n", plan.port + own as u16);
        text += &format!("cluster-secret {}/dc{}.secret\n", self.secrets().display(), own + 1);
        text += "protected-mode no\nloglevel notice\n";
        text += &format!("appendfsync {}\ndir {}\n", plan.appendfsync, directory.display());
        if let Some(protocol) = &plan.protocol {
            text += &format!("keyspace 0 protocol {protocol}\n");
        }
        if let Some(rule) = &plan.broken {
            text += &format!("break-rule {rule}\n");
        }
        text
    }

    fn peer_port(&self, datacenter: usize) -> u16 {
        self.plan.port + 100 + 10 * datacenter as u16
    }

    fn wire_port(&self, from: usize, to: usize) -> u16 {
        self.plan.port + 200 + 40 * from as u16 + 10 * to as u16
    }

    fn lay_wires(&mut self) -> Result<()> {
        for from in 0..DATACENTERS {
            let mut row = Vec::new();
            for to in 0..DATACENTERS {
                let mut wires = Vec::new();
                for core in (0..CORES).filter(|_| from != to) {
                    let own = self.datacenters[from].namespace.as_ref();
                    let peer = self.datacenters[to].namespace.as_ref();
                    let listen = SocketAddr::new(
                        own.map_or(LOCAL, Namespace::wire_address),
                        self.wire_port(from, to) + core,
                    );
                    let target = SocketAddr::new(
                        peer.map_or(LOCAL, Namespace::peer_address),
                        self.peer_port(to) + core,
                    );
                    let wire = Wire::lay(listen, target).with_context(|| format!("a wire on {listen}"))?;
                    wires.push(wire);
                }
                row.push(wires);
            }
            self.wires.push(row);
        }
        Ok(())
    }

    /// Where clients find a datacenter.
    pub fn client_options(&self, datacenter: usize) -> Options {
        let address = self.datacenters[datacenter].client;
        Options {
            host: address.ip().to_string(),
            answer_timeout: Duration::from_secs(10),
            ..Options::local(address.port())
        }
    }

    /// The two ways between two datacenters, whoever dialled.
    fn ways(&self, from: usize, to: usize) -> impl Iterator<Item = (&Wire, Way)> {
        let dialled = self.wires[from][to].iter().map(|wire| (wire, Way::Forward));
        dialled.chain(self.wires[to][from].iter().map(|wire| (wire, Way::Backward)))
    }

    /// What one sends to the other takes so long.
    pub fn delay(&self, from: usize, to: usize, delay: Duration) {
        self.ways(from, to).for_each(|(wire, way)| wire.delay(way, delay));
    }

    /// What one sends to the other waits until it is not silenced any more.
    pub fn silence(&self, from: usize, to: usize, silent: bool) {
        self.ways(from, to).for_each(|(wire, way)| wire.silence(way, silent));
    }

    /// The two have no connection until it is mended.
    pub fn sever(&self, one: usize, other: usize, broken: bool) {
        self.ways(one, other).for_each(|(wire, _)| wire.sever(broken));
    }

    /// The connections of the two break, with all that is on its way.
    pub fn flap(&self, one: usize, other: usize) {
        self.ways(one, other).for_each(|(wire, _)| wire.flap());
    }

    pub fn has_namespaces(&self) -> bool {
        self.datacenters.iter().all(|datacenter| datacenter.namespace.is_some())
    }

    /// The kernel drops this of a datacenter's traffic with its peers.
    pub fn lose(&self, datacenter: usize, loss: Loss) -> Result<()> {
        self.datacenters[datacenter].namespace.as_ref().map_or(Ok(()), |namespace| namespace.lose(loss))
    }

    pub fn start_server(&mut self, datacenter: usize, injection: Option<&Injection>) -> Result<()> {
        let place = &mut self.datacenters[datacenter];
        let process = Process::start(&place.recipe, injection)
            .with_context(|| format!("starting dc{}; see {}", datacenter + 1, place.recipe.log.display()))?;
        place.process = Some(process);
        Ok(())
    }

    pub fn kill(&mut self, datacenter: usize) -> Result<()> {
        self.datacenters[datacenter].process.take().map_or(Ok(()), |mut process| process.kill())
    }

    pub fn is_running(&mut self, datacenter: usize) -> bool {
        self.datacenters[datacenter].process.as_mut().is_some_and(Process::is_alive)
    }

    pub fn pause(&mut self, datacenter: usize) -> Result<()> {
        self.datacenters[datacenter].process.as_mut().map_or(Ok(()), Process::pause)
    }

    pub fn resume(&mut self, datacenter: usize) -> Result<()> {
        self.datacenters[datacenter].process.as_mut().map_or(Ok(()), Process::resume)
    }

    pub fn has_small_disk(&self) -> bool {
        self.small_disk.is_some()
    }

    /// Fills the small disk to its last byte, or makes room again.
    pub fn fill_disk(&self, full: bool) -> Result<()> {
        self.small_disk.as_ref().map_or(Ok(()), |disk| disk.fill(full))
    }

    /// Mends everything that can be mended from outside, and starts again what does not run.
    pub fn heal(&mut self) -> Result<()> {
        self.fill_disk(false)?;
        for one in 0..DATACENTERS {
            self.lose(one, Loss::Nothing)?;
            for other in (0..DATACENTERS).filter(|&other| other != one) {
                self.silence(one, other, false);
                self.sever(one, other, false);
            }
        }
        for datacenter in 0..DATACENTERS {
            self.resume(datacenter)?;
            if !self.is_running(datacenter) {
                self.kill(datacenter)?;
                self.start_server(datacenter, None)?;
            }
        }
        Ok(())
    }

    /// Waits until all servers answer.
    pub fn wait_for_answers(&self, patience: Duration) -> Result<()> {
        let until = Instant::now() + patience;
        for datacenter in 0..DATACENTERS {
            loop {
                match self.ask(datacenter, &[b"CAUSAL", b"DIGEST"]) {
                    Ok(Reply::Error(reason)) if Instant::now() > until => {
                        bail!("dc{} answers `{reason}`", datacenter + 1)
                    }
                    Ok(Reply::Error(_)) => {}
                    Ok(_) => break,
                    Err(error) if Instant::now() > until => {
                        return Err(error.context(format!("dc{} does not answer", datacenter + 1)));
                    }
                    Err(_) => {}
                }
                thread::sleep(Duration::from_millis(20));
            }
        }
        Ok(())
    }

    /// Waits until all datacenters hold the same.
    pub fn converge(&self, patience: Duration) -> Result<Duration> {
        let began = Instant::now();
        loop {
            let digests: Vec<String> = (0..DATACENTERS)
                .map(|datacenter| {
                    self.ask(datacenter, &[b"CAUSAL", b"DIGEST"]).map(|reply| format!("{reply:?}"))
                })
                .collect::<Result<_>>()?;
            if digests.iter().all(|digest| *digest == digests[0] && !digest.starts_with("Error")) {
                return Ok(began.elapsed());
            }
            if began.elapsed() > patience {
                bail!("after {} s the digests are {}", patience.as_secs(), digests.join(", "));
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn ask(&self, datacenter: usize, words: &[&[u8]]) -> Result<Reply> {
        let mut connection = Connection::open(&self.client_options(datacenter))?;
        Ok(connection.call(words)?)
    }

    /// Stops all servers cleanly.
    pub fn stop(mut self) -> Result<()> {
        for datacenter in &mut self.datacenters {
            if let Some(process) = &mut datacenter.process {
                process.stop()?;
            }
        }
        Ok(())
    }
}

const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A disk of little room: a file system in memory, which only root can mount.
#[derive(Debug)]
struct SmallDisk {
    directory: PathBuf,
}

impl SmallDisk {
    fn mount(directory: &Path) -> Result<SmallDisk> {
        fs::create_dir_all(directory)?;
        let size = format!("size={SMALL_DISK_BYTES}");
        let done = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "ensue-torture"])
            .arg(directory)
            .output()
            .context("running mount")?;
        if !done.status.success() {
            bail!("mount: {}", String::from_utf8_lossy(&done.stderr).trim());
        }
        Ok(SmallDisk { directory: directory.to_path_buf() })
    }

    fn fill(&self, full: bool) -> Result<()> {
        let filler = self.directory.join("filler");
        if !full {
            return match fs::remove_file(&filler) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
                _ => Ok(()),
            };
        }
        let mut file = fs::File::create(&filler)?;
        let chunk = vec![0; 64 << 10];
        let mut written = 0;
        // Ends with the error that is wanted: no space left. The bound is for a file system that is not the small one.
        while written <= SMALL_DISK_BYTES && std::io::Write::write_all(&mut file, &chunk).is_ok() {
            written += chunk.len() as u64;
        }
        Ok(())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.directory).output();
    }
}
