//! A network namespace for each datacenter, where the kernel itself can drop what passes: needs root and `ip`.
//!
//! Each has two links to the world outside: one for clients (10.78.N.2) and one for its peers (10.79.N.2), so that the
//! second can be cut while the first stays. Peers do not meet directly: the wires between them start and end outside,
//! at the `.1` of these links. A namespace goes when its value is dropped.

use anyhow::{Result, bail};
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::process::{Command, Stdio};

/// What the kernel drops of a datacenter's traffic with its peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    Nothing,
    /// It hears, and is not heard.
    Sent,
    /// It is heard, and does not hear.
    Received,
    Both,
}

/// The namespace of one datacenter.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    number: u8,
}

impl Namespace {
    /// Makes it, or says why this machine does not allow it. `run` keeps runs on one machine apart.
    pub fn make(run: u32, number: u8) -> Result<Namespace> {
        // The system would take the address a second time, and the answers would go to the other run.
        if TcpListener::bind((address(CLIENTS, number, 1), 0)).is_ok() {
            bail!(
                "another run, or what `ip netns list` shows of a killed one, has the network 10.{CLIENTS}.{number}.0"
            );
        }
        let namespace = Namespace { name: format!("ensue-{run}-{number}"), number };
        ip(&["netns", "add", &namespace.name])?;
        ip(&["-n", &namespace.name, "link", "set", "lo", "up"])?;
        for (kind, network) in [("c", CLIENTS), ("p", PEERS)] {
            let (outside, inside) = (format!("en{run}{kind}{number}"), format!("eth-{kind}"));
            let name = namespace.name.as_str();
            ip(&["link", "add", &outside, "type", "veth", "peer", "name", &inside, "netns", name])?;
            ip(&["addr", "add", &format!("{}/24", address(network, number, 1)), "dev", &outside])?;
            ip(&["link", "set", &outside, "up"])?;
            let within = format!("{}/24", address(network, number, 2));
            ip(&["-n", name, "addr", "add", &within, "dev", &inside])?;
            ip(&["-n", name, "link", "set", &inside, "up"])?;
        }
        Ok(namespace)
    }

    /// Where its server listens for clients.
    pub fn client_address(&self) -> IpAddr {
        address(CLIENTS, self.number, 2)
    }

    /// Where its server listens for its peers.
    pub fn peer_address(&self) -> IpAddr {
        address(PEERS, self.number, 2)
    }

    /// Where its server finds the wires to its peers.
    pub fn wire_address(&self) -> IpAddr {
        address(PEERS, self.number, 1)
    }

    /// The words before a command that runs inside.
    pub fn prefix(&self) -> Vec<String> {
        ["ip", "netns", "exec", &self.name].map(String::from).to_vec()
    }

    /// Lets the kernel drop this from now on, and nothing else.
    pub fn lose(&self, loss: Loss) -> Result<()> {
        let inside = format!("{}/32", self.peer_address());
        let outside = format!("{}/32", self.wire_address());
        for (route, drops, namespace) in [
            (&outside, matches!(loss, Loss::Sent | Loss::Both), Some(self.name.as_str())),
            (&inside, matches!(loss, Loss::Received | Loss::Both), None),
        ] {
            let mut words = namespace.map_or(vec![], |name| vec!["-n", name]);
            words.extend(["route", if drops { "replace" } else { "del" }, "blackhole", route]);
            // A route that is not there need not go.
            if let (Err(error), true) = (ip(&words), drops) {
                return Err(error);
            }
        }
        Ok(())
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // Its links, and their outer ends, go with it; the outer route would stay.
        let _ = self.lose(Loss::Nothing);
        let _ = ip(&["netns", "del", &self.name]);
    }
}

const CLIENTS: u8 = 78;
const PEERS: u8 = 79;

fn address(network: u8, number: u8, host: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, network, number, host))
}

fn ip(words: &[&str]) -> Result<()> {
    let done = Command::new("ip").args(words).stdin(Stdio::null()).output()?;
    if !done.status.success() {
        bail!("`ip {}`: {}", words.join(" "), String::from_utf8_lossy(&done.stderr).trim());
    }
    Ok(())
}
