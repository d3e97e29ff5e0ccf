//! When and where one peer is dialled: the address, and the growing pauses between attempts.
//!
//! A host name is looked up again for every attempt, on a thread of its own, because looking up can take seconds and
//! the answer changes when a node moves. An IP address needs none of that.

use crate::bounds::{REDIAL_US_MAX, REDIAL_US_MIN};
use ensue_wire::CoreName;
use mio::net::TcpStream;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::thread;

/// Where the address that was looked up is delivered; called on another thread.
pub(crate) type Resolve = Arc<dyn Fn(Resolved) + Send + Sync>;

/// The addresses of a peer, or why it has none.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub(crate) peer: CoreName,
    pub(crate) addresses: io::Result<Vec<SocketAddr>>,
}

/// Attempts to reach one peer.
pub(super) struct Dial {
    peer: CoreName,
    host: String,
    port: u16,
    resolve: Resolve,
    /// Known address for the next attempt.
    address: Option<SocketAddr>,
    is_resolving: bool,
    /// How many attempts have failed since one of its addresses answered: a host may have several, of different kinds.
    failed: usize,
    next_us: u64,
    pause_us: u64,
}

impl fmt::Debug for Dial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dial({:?} at {}:{}, next {})", self.peer, self.host, self.port, self.next_us)
    }
}

impl Dial {
    pub(super) fn new(peer: CoreName, host: String, port: u16, resolve: Resolve) -> Dial {
        Dial {
            peer,
            host,
            port,
            resolve,
            address: None,
            is_resolving: false,
            failed: 0,
            next_us: 0,
            pause_us: REDIAL_US_MIN,
        }
    }

    /// When the next attempt is due; nothing while the address is looked up.
    pub(super) fn next_us(&self) -> Option<u64> {
        (!self.is_resolving).then_some(self.next_us)
    }

    /// Begins an attempt if it is due.
    pub(super) fn connect(&mut self, now_us: u64) -> io::Result<Option<TcpStream>> {
        if now_us < self.next_us || self.is_resolving {
            return Ok(None);
        }
        if let Ok(ip) = self.host.parse::<IpAddr>() {
            self.address = Some(SocketAddr::new(ip, self.port));
        }
        let Some(address) = self.address.take() else {
            self.look_up(now_us)?;
            return Ok(None);
        };
        self.rest(now_us);
        self.failed = self.failed.wrapping_add(1);
        TcpStream::connect(address).map(Some)
    }

    fn look_up(&mut self, now_us: u64) -> io::Result<()> {
        let (peer, host, port) = (self.peer, self.host.clone(), self.port);
        let resolve = Arc::clone(&self.resolve);
        let run = move || {
            let addresses = (host.as_str(), port).to_socket_addrs().map(|addresses| addresses.collect());
            resolve(Resolved { peer, addresses });
        };
        // Set first: if no thread can be made, the next attempt comes after a pause.
        self.rest(now_us);
        thread::Builder::new().name("ensue-resolve".into()).spawn(run)?;
        self.is_resolving = true;
        Ok(())
    }

    /// The addresses have been looked up: dial the next of them at once, or look up again after a pause.
    pub(super) fn resolved(&mut self, now_us: u64, addresses: io::Result<Vec<SocketAddr>>) -> io::Result<()> {
        self.is_resolving = false;
        let mut addresses = addresses?;
        // Resolvers answer in another order each time.
        addresses.sort_unstable();
        addresses.dedup();
        let next = self.failed.checked_rem(addresses.len()).and_then(|place| addresses.get(place));
        self.address = Some(*next.ok_or(io::ErrorKind::AddrNotAvailable)?);
        self.next_us = now_us;
        Ok(())
    }

    /// The next attempt comes after a pause, twice as long as the last one.
    pub(super) fn rest(&mut self, now_us: u64) {
        self.next_us = now_us + self.pause_us;
        self.pause_us = (2 * self.pause_us).min(REDIAL_US_MAX);
    }

    /// The next attempt is due now.
    pub(super) fn at_once(&mut self, now_us: u64) {
        self.next_us = now_us;
        self.pause_us = REDIAL_US_MIN;
    }

    /// The peer was reached: after the next break the pauses begin anew.
    pub(super) fn succeeded(&mut self) {
        self.pause_us = REDIAL_US_MIN;
        // The same address is dialled again then.
        self.failed = self.failed.wrapping_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ensue_types::{CoreId, DatacenterId};

    /// Of a host with two addresses only the first was ever dialled.
    #[test]
    fn the_addresses_of_a_host_are_dialled_in_turn_until_one_answers() {
        let peer = CoreName { datacenter: DatacenterId(1), core: CoreId(0) };
        let mut dial = Dial::new(peer, "a name".into(), 1, Arc::new(|_| ()));
        let addresses = || Ok(["127.0.0.1:1", "127.0.0.2:1"].map(|one| one.parse().unwrap()).to_vec());
        let dialled = |dial: &mut Dial| {
            dial.resolved(0, addresses()).unwrap();
            let address = dial.address.unwrap().ip().to_string();
            // A connection on loopback is refused later, if at all.
            drop(dial.connect(0));
            address
        };
        assert_eq!([0; 3].map(|_| dialled(&mut dial)), ["127.0.0.1", "127.0.0.2", "127.0.0.1"]);
        dial.succeeded();
        assert_eq!([0; 2].map(|_| dialled(&mut dial)), ["127.0.0.1", "127.0.0.2"]);
        assert!(dial.resolved(0, Ok(Vec::new())).is_err());
    }
}
