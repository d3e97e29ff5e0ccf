//! Clusters of `ensue dev` on free ports of this machine, which end with the value that stands for them.

use super::{Effort, InstrumentError};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// What makes two clusters different.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub protocol: &'static str,
    pub cleaning: bool,
    pub datacenters: u8,
    pub partitions: u16,
    pub delay_ms: u32,
}

/// A running cluster. Dropping it ends its process and removes what it wrote.
pub(super) struct Cluster {
    pub kind: Kind,
    child: Child,
    port: u16,
    directory: PathBuf,
    /// The loads whose keys are there, by their signatures.
    loads: Vec<String>,
}

/// Ports in whose rows clusters are tried: above those that people use, below those that systems hand out.
const PORTS: std::ops::Range<u16> = 19_200..21_500;
const ROW: usize = 50;
/// Where a cluster listens, counted from the port of its first datacenter's clients.
const PEERS: u16 = 10_000;
const ADMIN: u16 = 10_999;
const START_TIMEOUT: Duration = Duration::from_secs(30);
const READY_PAUSE: Duration = Duration::from_millis(100);
const GREETING: &str = "Talk to it";

impl Cluster {
    pub fn start(kind: Kind, effort: &Effort) -> Result<Cluster, InstrumentError> {
        let mut why = "no row of free ports".to_owned();
        for port in PORTS.step_by(ROW).filter(|port| is_free(*port, kind.datacenters)) {
            let directory = effort.directory.join(format!("{}-{port}", kind.protocol));
            match Cluster::start_at(kind, port, directory, effort) {
                Ok(cluster) => return Ok(cluster),
                Err(InstrumentError::Start(_, reason)) => why = reason,
                Err(error) => return Err(error),
            }
        }
        Err(InstrumentError::Start(kind.protocol.into(), why))
    }

    fn start_at(
        kind: Kind,
        port: u16,
        directory: PathBuf,
        effort: &Effort,
    ) -> Result<Cluster, InstrumentError> {
        let mut command = Command::new(&effort.program);
        command.arg("dev").args(["--protocol", kind.protocol, "--cores", "1", "--nodes", "1"]);
        command.args(["--datacenters", &kind.datacenters.to_string()]);
        command.args(["--partitions", &kind.partitions.to_string()]);
        command.args(["--delay", &format!("{}ms", kind.delay_ms), "--port", &port.to_string()]);
        if !kind.cleaning {
            command.args(["--set", "dependency-cleaning=no"]);
        }
        command.args(["--set", "maxclients=10000"]).arg("--dir").arg(&directory);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let child = command.spawn().map_err(|error| InstrumentError::File(effort.program.clone(), error))?;
        let mut cluster = Cluster { kind, child, port, directory, loads: Vec::new() };
        match cluster.greets() && cluster.is_ready(effort) {
            true => Ok(cluster),
            false => {
                let reason = format!("it did not say that it serves on port {port}");
                Err(InstrumentError::Start(kind.protocol.into(), reason))
            }
        }
    }

    /// Whether it serves, and replicates, in time: it says that it is there before its datacenters have met.
    fn is_ready(&self, effort: &Effort) -> bool {
        let until = Instant::now() + START_TIMEOUT;
        while Instant::now() < until {
            let mut status = Command::new(&effort.program);
            status.args(["status", "--ready", "--port", &self.port.to_string()]);
            status.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            if status.status().is_ok_and(|status| status.success()) {
                return true;
            }
            thread::sleep(READY_PAUSE);
        }
        false
    }

    /// Whether it says in time that it serves. What it says later is read and dropped.
    fn greets(&mut self) -> bool {
        let Some(output) = self.child.stdout.take() else { return false };
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if line.contains(GREETING) {
                    // Nobody waits any more if it came too late.
                    let _ = sender.send(());
                }
            }
        });
        receiver.recv_timeout(START_TIMEOUT).is_ok()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The client ports of its datacenters.
    pub fn ports(&self) -> impl Iterator<Item = u16> {
        self.port..self.port + u16::from(self.kind.datacenters)
    }

    /// What the names of this load's keys begin with, and whether they are there already.
    pub fn prefix(&mut self, signature: String) -> (String, bool) {
        let known = self.loads.iter().position(|load| *load == signature);
        let number = known.unwrap_or_else(|| {
            self.loads.push(signature);
            self.loads.len() - 1
        });
        (format!("load{number}:"), known.is_some())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // It may have ended by itself; its data is nobody's.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn is_free(port: u16, datacenters: u8) -> bool {
    let clients = port..port + u16::from(datacenters);
    let peers = port + PEERS..port + PEERS + u16::from(datacenters);
    clients.chain(peers).chain([port + ADMIN]).all(|port| TcpListener::bind(("127.0.0.1", port)).is_ok())
}
