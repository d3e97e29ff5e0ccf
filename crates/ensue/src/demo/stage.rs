//! The cluster that the story plays in: one that is running, or one of our own.
//!
//! Found or started here; a cluster that we started is stopped, and its folder removed, when the stage is dropped. A
//! cluster that was found is left as it was, its links healed. Links are shaped through the
//! admin port, as `ensue link` does.

use super::narrator::Narrator;
use super::session::Session;
use anyhow::{Context, anyhow, bail};
use ensue_server::admin;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

pub(super) const DATACENTERS: usize = 3;
/// A keyspace that nobody else is likely to use, so that a running cluster can be borrowed.
pub(super) const KEYSPACE: u8 = 15;

const OWN_PORTS: [u16; 8] = [7401, 17_401, 18_401, 19_401, 20_401, 21_401, 22_401, 23_401];
const START: Duration = Duration::from_secs(20);

pub(super) struct Stage {
    port: u16,
    /// Dropped last: it stops the cluster.
    _own: Option<OwnCluster>,
}

impl Stage {
    /// Uses the cluster on this port if it fits, and starts another one if not.
    pub(super) fn find(port: u16, protocol: &str, narrator: &Narrator) -> anyhow::Result<Stage> {
        match unfit(port, protocol, None) {
            None => {
                let stage = Stage { port, _own: None };
                narrator
                    .tell(format_args!("Found a dev cluster on port {port}; its protocol is {protocol}."));
                stage.heal_all()?;
                Ok(stage)
            }
            Some(reason) => {
                narrator
                    .tell(format_args!("{reason}: starting a cluster of three datacenters for this story."));
                Stage::start(protocol)
            }
        }
    }

    fn start(protocol: &str) -> anyhow::Result<Stage> {
        let mut failure = None;
        for port in OWN_PORTS.into_iter().filter(|&port| ports_are_free(port)) {
            match OwnCluster::start(port, protocol) {
                Ok(own) => return Ok(Stage { port, _own: Some(own) }),
                Err(error) => failure = Some(error),
            }
        }
        Err(failure.unwrap_or_else(|| anyhow!("no free ports for a cluster")))
    }

    pub(super) fn session(&self, datacenter: usize) -> anyhow::Result<Session> {
        Session::connect(client_port(self.port, datacenter), KEYSPACE)
            .with_context(|| format!("cannot talk to dc{datacenter}"))
    }

    /// The client port of a datacenter, counted from 1.
    pub(super) fn client_port(&self, datacenter: usize) -> u16 {
        client_port(self.port, datacenter)
    }

    /// Shapes the link between two datacenters; returns the command line that does the same.
    pub(super) fn link(&self, one: usize, other: usize, word: &str) -> anyhow::Result<String> {
        let line = format!("link dc{one} dc{other} {word}");
        let answer = admin::ask(self.port, &line)
            .with_context(|| format!("no dev cluster whose first port is {} can be reached", self.port))?;
        answer.map_err(|reason| anyhow!("`ensue {line}`: {reason}"))?;
        Ok(format!("ensue {line} --port {}", self.port))
    }

    pub(super) fn heal_all(&self) -> anyhow::Result<()> {
        for (one, other) in [(1, 2), (1, 3), (2, 3)] {
            self.link(one, other, "heal")?;
        }
        Ok(())
    }
}

fn client_port(port: u16, datacenter: usize) -> u16 {
    port + datacenter as u16 - 1
}

/// Why the cluster on this port cannot be used; nothing if it can. It can be wanted of one process only.
fn unfit(port: u16, protocol: &str, process: Option<u32>) -> Option<String> {
    if port > u16::MAX - DATACENTERS as u16 {
        return Some(format!("no cluster has port {port}"));
    }
    for datacenter in 1..=DATACENTERS {
        let port = client_port(port, datacenter);
        let info = Session::connect(port, KEYSPACE).and_then(|mut session| session.ask(&["INFO"]));
        let Ok(info) = info.map(|answer| answer.text()) else {
            return Some(format!("No datacenter answers on port {port}"));
        };
        let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let Some(found) = field(&format!("ensue_protocol_{KEYSPACE}")) else {
            return Some(format!("What answers on port {port} is no Ensue"));
        };
        if process.is_some_and(|id| field("process_id") != Some(id.to_string().as_str())) {
            return Some(format!("The cluster on port {port} is somebody else's"));
        }
        if process.is_some() && field("ensue_ready") != Some("1") {
            return Some(format!("What answers on port {port} is not ready yet"));
        }
        if found != protocol {
            return Some(format!("The cluster on port {port} has protocol {found}, not {protocol}"));
        }
        let others = field("ensue_other_datacenters").unwrap_or_default();
        if others.split(',').filter(|name| !name.is_empty()).count() + 1 != DATACENTERS {
            return Some(format!("The cluster on port {port} has not {DATACENTERS} datacenters"));
        }
    }
    None
}

fn ports_are_free(port: u16) -> bool {
    (1..=DATACENTERS).all(|d| TcpListener::bind((Ipv4Addr::LOCALHOST, client_port(port, d))).is_ok())
}

/// A dev cluster that lives as long as this value.
struct OwnCluster {
    process: Child,
    directory: PathBuf,
}

impl OwnCluster {
    fn start(port: u16, protocol: &str) -> anyhow::Result<OwnCluster> {
        let directory = std::env::temp_dir().join(format!("ensue-demo-{}", std::process::id()));
        fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
        let log = fs::File::create(directory.join("log.txt"))?;
        let process = Command::new(std::env::current_exe()?)
            .args(["dev", "--port", &port.to_string(), "--protocol", protocol, "--dir"])
            .arg(directory.join("data"))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let mut own = OwnCluster { process, directory };
        let end = Instant::now() + START;
        // Whoever took the port a moment before us may answer on it.
        while let Some(reason) = unfit(port, protocol, Some(own.process.id())) {
            if let Some(status) = own.process.try_wait()? {
                let log = fs::read_to_string(own.directory.join("log.txt")).unwrap_or_default();
                bail!("`ensue dev` ended with {status}: {}", log.trim());
            }
            if Instant::now() > end {
                bail!("the cluster did not start: {reason}");
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(own)
    }
}

impl Drop for OwnCluster {
    fn drop(&mut self) {
        // The data goes with it, so there is nothing to stop cleanly.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}
