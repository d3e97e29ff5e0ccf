//! The load balancer and the liveness monitor, as section II-C has them: stateless, and sometimes wrong.
//!
//! A wrong suspicion costs a recovery and never a download, so a monitor may be hasty.

use crate::output::Now;
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
    /// So many servers, all of which are believed to live.
    #[must_use]
    pub fn new(hosts: usize, salt: u64) -> Self {
        Self { live: vec![true; hosts], salt }
    }

    /// What the monitor believes of a server from now on.
    pub fn set(&mut self, host: usize, live: bool) {
        self.live[host] = live;
    }

    /// The server of a connection: the live one with the highest hash, so that only connections of a server that is
    /// taken out move. `None` if none lives.
    #[must_use]
    pub fn pick(&self, client: Endpoint) -> Option<usize> {
        let flow = u64::from(u32::from(client.address)) << 16 | u64::from(client.port);
        let weight = |host: usize| mix(self.salt ^ flow ^ mix(host as u64));
        (0..self.live.len()).filter(|host| self.live[*host]).max_by_key(|host| weight(*host))
    }
}

/// What the monitor has heard of each server.
#[derive(Debug)]
pub struct Monitor {
    hosts: Vec<Heard>,
    suspect_us: u64,
}

#[derive(Clone, Copy, Debug)]
struct Heard {
    at: Option<Now>,
    healthy: bool,
}

impl Monitor {
    /// A monitor that has heard nothing, and suspects who is silent for longer than `suspect_us` microseconds.
    #[must_use]
    pub fn new(hosts: usize, suspect_us: u64) -> Self {
        Self { hosts: vec![Heard { at: None, healthy: false }; hosts], suspect_us }
    }

    /// A server answered, and said whether its application does.
    pub fn on_answer(&mut self, now: Now, host: usize, healthy: bool) {
        self.hosts[host] = Heard { at: Some(now), healthy };
    }

    /// Whether a server is believed to live.
    #[must_use]
    pub fn is_live(&self, now: Now, host: usize) -> bool {
        let heard = self.hosts[host];
        heard.healthy && heard.at.is_some_and(|at| now.0.saturating_sub(at.0) <= self.suspect_us)
    }
}

/// A number in which each bit depends on all bits of `value`.
pub(crate) fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    #[test]
    fn only_connections_of_a_server_that_is_taken_out_move() {
        let client = |port| Endpoint { address: Ipv4Addr::new(10, 0, 0, 1), port };
        let mut balancer = Balancer::new(3, 7);
        let before: Vec<_> = (0..300).map(|port| balancer.pick(client(port))).collect();
        balancer.set(1, false);
        for (port, before) in (0..300).zip(before) {
            let after = balancer.pick(client(port));
            assert_ne!(after, Some(1));
            assert!(before == Some(1) || before == after, "port {port}");
        }
        balancer.set(0, false);
        balancer.set(2, false);
        assert_eq!(balancer.pick(client(1)), None);
    }

    #[test]
    fn who_is_silent_or_unwell_is_suspected() {
        let mut monitor = Monitor::new(2, 100);
        assert!(!monitor.is_live(Now(0), 0));
        monitor.on_answer(Now(10), 0, true);
        monitor.on_answer(Now(10), 1, false);
        assert!(monitor.is_live(Now(110), 0));
        assert!(!monitor.is_live(Now(111), 0));
        assert!(!monitor.is_live(Now(11), 1));
    }
}
