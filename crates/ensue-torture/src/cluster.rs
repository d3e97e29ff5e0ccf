//! Three datacenters of real server processes, one of them of two, the wires between them, and everything that can be
//! done to them.

use crate::branches::Treatment;
use crate::namespace::{Loss, Namespace};
use crate::process::{Injection, Process, Recipe};
use crate::proxy::{Way, Wire};
use anyhow::{Context, Result, bail};
use ensue_client::{Connection, Options, Reply};
use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

pub const DATACENTERS: usize = 3;
pub const PARTITIONS: u16 = 4;
const CORES: u16 = 2;
/// The last server is the second node of the first datacenter, whose partitions are on one of the two.
pub const SERVERS: usize = DATACENTERS + 1;
/// The server whose disk can be full.
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
    pub branches: Treatment,
    /// A rule that the servers break on purpose; their binary must be able to.
    pub broken: Option<String>,
}

/// The datacenter of a server.
pub fn datacenter_of(server: usize) -> usize {
    server % DATACENTERS
}

/// Whether a server is not all of its datacenter.
pub fn is_one_of_several(server: usize) -> bool {
    servers_of(datacenter_of(server)).count() > 1
}

fn servers_of(datacenter: usize) -> impl Iterator<Item = usize> {
    (0..SERVERS).filter(move |&server| datacenter_of(server) == datacenter)
}

fn name_of(server: usize) -> String {
    let node = server / DATACENTERS;
    let suffix = if node == 0 { String::new() } else { format!("-node{node}") };
    format!("dc{}{suffix}", datacenter_of(server) + 1)
}

/// A server, or the place where one was.
#[derive(Debug)]
struct Place {
    recipe: Recipe,
    process: Option<Process>,
    client: SocketAddr,
}

/// A running cluster.
#[derive(Debug)]
pub struct Cluster {
    plan: Plan,
    /// By server.
    places: Vec<Place>,
    /// By datacenter.
    namespaces: Vec<Option<Namespace>>,
    /// The wires from one server to another of another datacenter, one a core. Nodes of a datacenter meet directly.
    wires: Vec<Vec<Vec<Wire>>>,
    small_disk: Option<SmallDisk>,
    /// Datacenters of which a process was started since somebody asked.
    started: BTreeSet<usize>,
}

impl Cluster {
    /// Lays the wires and starts all servers.
    pub fn start(plan: Plan, namespaces: Vec<Namespace>) -> Result<Cluster> {
        fs::create_dir_all(&plan.directory)?;
        let small_disk = SmallDisk::mount(&plan.directory.join(format!("dc{}", SMALL_DISK + 1))).ok();
        let mut namespaces = namespaces.into_iter().map(Some).collect::<Vec<_>>();
        namespaces.resize_with(DATACENTERS, || None);
        let (places, wires) = (Vec::new(), Vec::new());
        let mut cluster = Cluster { plan, places, namespaces, wires, small_disk, started: BTreeSet::new() };
        cluster.make_secrets()?;
        for server in 0..SERVERS {
            let place = cluster.prepare(server)?;
            cluster.places.push(place);
        }
        cluster.lay_wires()?;
        for server in 0..SERVERS {
            cluster.start_server(server, None)?;
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

    fn namespace_of(&self, server: usize) -> Option<&Namespace> {
        self.namespaces[datacenter_of(server)].as_ref()
    }

    fn prepare(&self, server: usize) -> Result<Place> {
        let name = name_of(server);
        let directory = self.plan.directory.join(&name);
        fs::create_dir_all(&directory)?;
        let config = self.plan.directory.join(format!("{name}.conf"));
        fs::write(&config, self.configuration(server, &directory))?;
        let namespace = self.namespace_of(server);
        let client = namespace.map_or(LOCAL, Namespace::client_address);
        let recipe = Recipe {
            binary: self.plan.binary.clone(),
            config,
            log: self.plan.directory.join(format!("{name}.log")),
            prefix: namespace.map(Namespace::prefix).unwrap_or_default(),
        };
        let client = SocketAddr::new(client, self.plan.port + server as u16);
        Ok(Place { recipe, process: None, client })
    }

    fn configuration(&self, own: usize, directory: &Path) -> String {
        let (plan, namespace) = (&self.plan, self.namespace_of(own));
        let peer = namespace.map_or(LOCAL, Namespace::peer_address);
        let wire = namespace.map_or(LOCAL, Namespace::wire_address);
        let client = namespace.map_or(LOCAL, Namespace::client_address);
        let datacenter = datacenter_of(own) + 1;
        let mut text = format!("cluster-name torture\npartitions {PARTITIONS}\n");
        text += &format!("self dc{datacenter} {}\n", own / DATACENTERS);
        for other in 0..SERVERS {
            let (host, port) = match datacenter_of(other) == datacenter_of(own) {
                true => (peer, self.peer_port(other)),
                false => (wire, self.wire_port(own, other)),
            };
            text += &format!("node dc{} {host}:{port} cores {CORES}\n", datacenter_of(other) + 1);
        }
        text += &format!("peer-bind {peer}\nbind {client}\nport {}\n", plan.port + own as u16);
        text += &format!("cluster-secret {}/dc{datacenter}.secret\n", self.secrets().display());
        text += "protected-mode no\nloglevel notice\n";
        text += &format!("appendfsync {}\ndir {}\n", plan.appendfsync, directory.display());
        text += &plan.branches.directives();
        if let Some(protocol) = &plan.protocol {
            text += &format!("keyspace 0 protocol {protocol}\n");
        }
        if let Some(rule) = &plan.broken {
            text += &format!("break-rule {rule}\n");
        }
        text
    }

    fn peer_port(&self, server: usize) -> u16 {
        self.plan.port + 100 + 10 * server as u16
    }

    fn wire_port(&self, from: usize, to: usize) -> u16 {
        self.plan.port + 200 + 40 * from as u16 + 10 * to as u16
    }

    fn lay_wires(&mut self) -> Result<()> {
        for from in 0..SERVERS {
            let mut row = Vec::new();
            for to in 0..SERVERS {
                let mut wires = Vec::new();
                for core in (0..CORES).filter(|_| datacenter_of(from) != datacenter_of(to)) {
                    let (own, peer) = (self.namespace_of(from), self.namespace_of(to));
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

    /// Where clients find a datacenter, each of its nodes.
    pub fn client_options(&self, datacenter: usize) -> Vec<Options> {
        servers_of(datacenter).map(|server| self.options_of(server)).collect()
    }

    fn options_of(&self, server: usize) -> Options {
        let address = self.places[server].client;
        Options {
            host: address.ip().to_string(),
            answer_timeout: Duration::from_secs(10),
            ..Options::local(address.port())
        }
    }

    /// The two ways between two datacenters, whoever dialled.
    fn ways(&self, from: usize, to: usize) -> impl Iterator<Item = (&Wire, Way)> {
        let between = |one: usize, other: usize| {
            let rows = servers_of(one).map(|server| &self.wires[server]);
            rows.flat_map(move |row| servers_of(other).flat_map(|server| &row[server]))
        };
        let dialled = between(from, to).map(|wire| (wire, Way::Forward));
        dialled.chain(between(to, from).map(|wire| (wire, Way::Backward)))
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
        self.namespaces.iter().all(Option::is_some)
    }

    /// The kernel drops this of a datacenter's traffic with its peers.
    pub fn lose(&self, datacenter: usize, loss: Loss) -> Result<()> {
        self.namespaces[datacenter].as_ref().map_or(Ok(()), |namespace| namespace.lose(loss))
    }

    pub fn start_server(&mut self, server: usize, injection: Option<&Injection>) -> Result<()> {
        let place = &mut self.places[server];
        let process = Process::start(&place.recipe, injection)
            .with_context(|| format!("starting {}; see {}", name_of(server), place.recipe.log.display()))?;
        place.process = Some(process);
        self.started.insert(datacenter_of(server));
        Ok(())
    }

    /// Datacenters of which a process was started since this was asked last.
    pub fn take_started(&mut self) -> BTreeSet<usize> {
        std::mem::take(&mut self.started)
    }

    pub fn kill(&mut self, server: usize) -> Result<()> {
        self.places[server].process.take().map_or(Ok(()), |mut process| process.kill())
    }

    pub fn is_running(&mut self, server: usize) -> bool {
        self.places[server].process.as_mut().is_some_and(Process::is_alive)
    }

    pub fn pause(&mut self, server: usize) -> Result<()> {
        self.places[server].process.as_mut().map_or(Ok(()), Process::pause)
    }

    pub fn resume(&mut self, server: usize) -> Result<()> {
        self.places[server].process.as_mut().map_or(Ok(()), Process::resume)
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
        for server in 0..SERVERS {
            self.resume(server)?;
            if !self.is_running(server) {
                self.kill(server)?;
                self.start_server(server, None)?;
            }
        }
        Ok(())
    }

    /// Waits until all servers answer.
    pub fn wait_for_answers(&self, patience: Duration) -> Result<()> {
        let until = Instant::now() + patience;
        for server in 0..SERVERS {
            loop {
                match self.ask(server, &[b"CAUSAL", b"DIGEST"]) {
                    Ok(Reply::Error(reason)) if Instant::now() > until => {
                        bail!("{} answers `{reason}`", name_of(server))
                    }
                    Ok(Reply::Error(_)) => {}
                    Ok(_) => break,
                    Err(error) if Instant::now() > until => {
                        return Err(error.context(format!("{} does not answer", name_of(server))));
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
            let digest = |server, keyspace: &[u8]| -> Result<String> {
                Ok(format!("{:?}", self.ask(server, &[b"CAUSAL", b"DIGEST", keyspace])?))
            };
            let digests: Vec<String> = (0..SERVERS)
                .map(|server| Ok(format!("{} and {}", digest(server, b"0")?, digest(server, b"1")?)))
                .collect::<Result<_>>()?;
            if digests.iter().all(|digest| *digest == digests[0] && !digest.contains("Error")) {
                return Ok(began.elapsed());
            }
            if began.elapsed() > patience {
                bail!("after {} s the digests are {}", patience.as_secs(), digests.join(", "));
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn ask(&self, server: usize, words: &[&[u8]]) -> Result<Reply> {
        let mut connection = Connection::open(&self.options_of(server))?;
        Ok(connection.call(words)?)
    }

    /// Stops all servers cleanly.
    pub fn stop(mut self) -> Result<()> {
        for place in &mut self.places {
            if let Some(process) = &mut place.process {
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
