//! The load balancer and the liveness monitor, as section II-C has them: stateless, and sometimes wrong.
//!
//! A wrong suspicion costs a recovery and never a download, so a monitor may be hasty.
//!
//! [`Reminders`] are not of the paper. There, a new server hears of a connection when the client's TCP repeats its
//! request, and it waits for that twice as long after each time, so that a pause is as long as the download was old. A
//! balancer that repeats the last packet of each client to its new server ends that wait. To the gateways it is one
//! more packet that the network duplicated.

use crate::limits::{REMINDER_US_MAX, REMINDERS_MAX};
use crate::output::Now;
use crate::packet::{self, Endpoint, Flags};
use crate::store::Key;
use std::collections::BTreeMap;

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

/// The last packet of each client, with the server that it went to.
#[derive(Debug, Default)]
pub struct Reminders {
    last: BTreeMap<Key, Last>,
}

#[derive(Debug)]
struct Last {
    at: Now,
    host: usize,
    bytes: Vec<u8>,
}

impl Reminders {
    /// A packet of a client goes to a server. When too many clients are remembered, a further one is not.
    pub fn on_packet(&mut self, now: Now, host: usize, bytes: &[u8]) {
        let Some((client, service)) = packet::ends(bytes) else { return };
        let key = Key { client, service };
        if packet::flags(bytes).is_none_or(|flags| flags.has(Flags::RST)) {
            self.last.remove(&key);
            return;
        }
        if let Some(last) = self.last.get_mut(&key) {
            last.at = now;
            last.host = host;
            last.bytes.clear();
            last.bytes.extend_from_slice(bytes);
        } else if self.last.len() < REMINDERS_MAX {
            self.last.insert(key, Last { at: now, host, bytes: bytes.to_vec() });
        }
    }

    /// A server is suspected: the packets to repeat to others, each with its client.
    #[must_use]
    pub fn on_suspicion(&mut self, host: usize) -> Vec<(Endpoint, Vec<u8>)> {
        let moved = self.last.iter().filter(|(_, last)| last.host == host);
        moved.map(|(key, last)| (key.client, last.bytes.clone())).collect()
    }

    /// Forgets clients that were silent for so long that their TCP repeats its request no later than a reminder would.
    pub fn on_tick(&mut self, now: Now) {
        self.last.retain(|_, last| now.0.saturating_sub(last.at.0) <= REMINDER_US_MAX);
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
    use crate::packet::Packet;
    use crate::seq::Seq;
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
    fn packet(client: u8, ack: u32, flags: Flags) -> Vec<u8> {
        let end = |last, port| Endpoint { address: Ipv4Addr::new(10, 0, 0, last), port };
        let mut packet = Packet::acknowledgment(end(client, 4000), end(100, 80), Seq(1), Seq(ack));
        packet.flags = flags;
        packet.build()
    }

    #[test]
    fn the_last_packet_of_clients_of_a_suspected_server_is_repeated() {
        let mut reminders = Reminders::default();
        let ack = Flags::ACK;
        reminders.on_packet(Now(1), 0, &packet(1, 10, ack));
        reminders.on_packet(Now(2), 1, &packet(2, 10, ack));
        reminders.on_packet(Now(3), 0, &packet(3, 10, ack));
        reminders.on_packet(Now(4), 0, &packet(1, 20, ack));
        reminders.on_packet(Now(5), 0, &packet(3, 20, Flags::RST));
        let bytes: Vec<_> = reminders.on_suspicion(0).into_iter().map(|(_, bytes)| bytes).collect();
        assert_eq!(bytes, [packet(1, 20, ack)]);
        reminders.on_packet(Now(6), 1, &packet(1, 20, ack));
        assert_eq!(reminders.on_suspicion(0), []);
        assert_eq!(reminders.on_suspicion(1).len(), 2);
        reminders.on_tick(Now(3 + REMINDER_US_MAX));
        assert_eq!(reminders.on_suspicion(1).len(), 1);
    }
}
