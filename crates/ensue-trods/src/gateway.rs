//! The gateway of one server: its table of connections, between the network and the TCP stack.

use crate::config::Config;
use crate::connection::{Connection, Context};
use crate::limits::{CONNECTIONS_MAX, LOCAL_PORTS};
use crate::output::{Counters, Now, Outbox, Output, Side};
use crate::packet::{self, Flags, Packet};
use crate::store::{Key, StoreOutcome, Ticket};
use std::collections::BTreeMap;

/// TRODS on one server: packets, outcomes of the store and ticks go in, outputs come out.
#[derive(Debug)]
pub struct Trods {
    config: Config,
    table: BTreeMap<Key, Connection>,
    out: Outbox,
}

impl Trods {
    /// A gateway that knows no connection yet.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { config, table: BTreeMap::new(), out: Outbox::new(LOCAL_PORTS) }
    }

    /// Takes an IPv4 packet that came from `side`. The first output is the verdict on it.
    ///
    /// # Panics
    /// If outputs of an earlier input were not taken.
    pub fn on_packet(&mut self, now: Now, side: Side, bytes: &[u8]) {
        assert!(self.out.is_empty(), "outputs are taken before the next input");
        let Some((source, destination)) = packet::ends(bytes) else {
            self.out.counters.unparsed += 1;
            return self.out.accept();
        };
        let port = if side == Side::Client { destination.port } else { source.port };
        if !self.config.ports.contains(&port) {
            return self.out.accept();
        }
        let Ok(packet) = Packet::parse(bytes) else {
            self.out.counters.unparsed += 1;
            return self.out.accept();
        };
        match side {
            Side::Client => self.on_client(now, bytes, packet),
            Side::Server => self.on_server(now, bytes, packet),
        }
        self.out.decide(side, bytes);
    }

    /// Takes the outcome of an operation on a connection. One that nobody waits for any more is ignored.
    pub fn on_store(&mut self, now: Now, key: Key, ticket: Ticket, outcome: StoreOutcome) {
        self.with(now, key, |connection, context| connection.on_store(ticket, outcome, context));
    }

    /// Forgets connections whose time is over; to be called a few times a second.
    pub fn on_tick(&mut self, now: Now) {
        let over: Vec<Key> = self
            .table
            .iter()
            .filter(|(_, connection)| connection.is_expired(now))
            .map(|(key, _)| *key)
            .collect();
        for key in over {
            self.with(now, key, Connection::expire);
        }
    }

    /// The next thing to do, until there is none.
    pub fn next_output(&mut self) -> Option<Output> {
        self.out.next()
    }

    /// What was counted since the start.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.out.counters
    }

    /// How many connections are known.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.table.len()
    }

    fn on_client(&mut self, now: Now, bytes: &[u8], packet: Packet) {
        let key = Key { client: packet.source, service: packet.destination };
        if packet.has(Flags::SYN) {
            return self.on_syn(now, key, bytes, packet);
        }
        if self.table.contains_key(&key) {
            return self.with(now, key, |connection, context| connection.on_client(bytes, packet, context));
        }
        if packet.has(Flags::RST) || !packet.has(Flags::ACK) || self.table.len() >= CONNECTIONS_MAX {
            self.out.counters.ignored += 1;
            return;
        }
        self.table.insert(key, Connection::unknown(key, now));
        self.with(now, key, |connection, context| connection.recover(packet, context));
    }

    fn on_syn(&mut self, now: Now, key: Key, bytes: &[u8], packet: Packet) {
        let known = self.table.get(&key).is_some_and(|connection| connection.began_with(&packet));
        if self.table.get(&key).is_some_and(|connection| connection.is_past(&packet)) {
            self.out.counters.ignored += 1;
            return;
        }
        if !known {
            if self.table.contains_key(&key) {
                self.with(now, key, Connection::expire);
            }
            if self.table.len() >= CONNECTIONS_MAX {
                self.out.counters.refused += 1;
                return;
            }
            self.table.insert(key, Connection::of_syn(key, &packet, now, &self.config));
        }
        self.out.send(Side::Server, bytes.to_vec());
    }

    fn on_server(&mut self, now: Now, bytes: &[u8], packet: Packet) {
        let end = packet.destination;
        let local = (end.address == self.config.local_address).then_some(end.port);
        let key = match local {
            Some(port) => self.out.owner(port),
            None => Some(Key { client: end, service: packet.source }),
        };
        // What nobody knows is the rest of a connection that went on elsewhere: its client must not see it.
        let Some(key) = key.filter(|key| self.table.get(key).is_some_and(|known| known.local() == local))
        else {
            self.out.counters.ignored += 1;
            return;
        };
        self.with(now, key, |connection, context| connection.on_server(bytes, packet, context));
    }

    fn with(&mut self, now: Now, key: Key, act: impl FnOnce(&mut Connection, &mut Context<'_>)) {
        let Some(connection) = self.table.get_mut(&key) else { return };
        let mut context = Context { now, config: &self.config, out: &mut self.out };
        act(connection, &mut context);
        if connection.is_over() {
            if let Some(port) = connection.local() {
                self.out.release(port);
            }
            self.table.remove(&key);
        }
    }
}
