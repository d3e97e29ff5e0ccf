//! Free ports for a run: a row of neighbours that nobody on this machine uses.
//!
//! Which row is chance as far as a run is concerned: one that is free is taken, and its last port stays bound until the
//! value is dropped, so that two runs at the same time do not choose the same. Whether a port is free is asked for
//! loopback alone: in network namespaces all are.

use anyhow::{Result, bail};
use std::net::{Ipv4Addr, TcpListener};

/// Ports of a row.
pub const PORTS: u16 = 400;
/// Above the rows of the end-to-end tests, and below the ports that the system hands out by itself.
const FIRST: u16 = 30_000;
const ROWS: u16 = 6;

/// A row of ports; ours as long as this lives.
#[derive(Debug)]
pub struct Ports {
    pub first: u16,
    _claim: TcpListener,
}

impl Ports {
    /// The row that begins here, or the first that is free.
    pub fn take(wanted: Option<u16>) -> Result<Ports> {
        let rows = match wanted {
            Some(first) => vec![first],
            None => (0..ROWS).map(|row| FIRST + PORTS * row).collect(),
        };
        match rows.iter().find_map(|&first| Ports::claim(first)) {
            Some(ports) => Ok(ports),
            None => bail!("no {PORTS} free ports from one of {rows:?} on: name others with --port"),
        }
    }

    fn claim(first: u16) -> Option<Ports> {
        let last = first.checked_add(PORTS - 1)?;
        let claim = bind(last)?;
        (first..last).all(|port| bind(port).is_some()).then_some(Ports { first, _claim: claim })
    }
}

fn bind(port: u16) -> Option<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok()
}

#[cfg(test)]
mod tests;
