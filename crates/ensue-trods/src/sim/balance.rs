//! The load balancer and the liveness monitor, as section II-C has them: stateless, and sometimes wrong.

use super::random::mix;
use crate::packet::Endpoint;

/// How often the monitor asks every server, in microseconds.
pub const HEARTBEAT_US: u64 = 25_000;

/// The pool of servers that are believed to live.
#[derive(Debug)]
pub struct Balancer {
    live: Vec<bool>,
    salt: u64,
}

impl Balancer {
    pub fn new(hosts: usize, salt: u64) -> Self {
        Self { live: vec![true; hosts], salt }
    }

    /// What the monitor believes of a server from now on.
    pub fn set(&mut self, host: usize, live: bool) {
        self.live[host] = live;
    }

    /// The server of a connection: the live one with the highest hash, so that only connections of a server that is
    /// taken out move.
    pub fn pick(&self, client: Endpoint) -> Option<usize> {
        let flow = u64::from(u32::from(client.address)) << 16 | u64::from(client.port);
        let weight = |host: usize| mix(self.salt ^ flow ^ mix(host as u64));
        (0..self.live.len()).filter(|host| self.live[*host]).max_by_key(|host| weight(*host))
    }
}
