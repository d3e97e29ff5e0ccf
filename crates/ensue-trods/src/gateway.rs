//! The gateway of one server: its table of connections, between the network and the TCP stack.

use crate::config::Config;
use crate::connection::{Connection, Context, OnSyn};
use crate::limits::{CONNECTIONS_MAX, LOCAL_PORTS, RECOVERIES_MAX};
use crate::output::{Counters, Now, Outbox, Output, Side};
use crate::packet::{self, Flags, Packet};
use crate::store::{Key, StoreOutcome, Ticket};
use std::collections::{BTreeMap, VecDeque};

/// TRODS on one server: packets, outcomes of the store and ticks go in, outputs come out.
#[derive(Debug)]
pub struct Trods {
    config: Config,
    table: BTreeMap<Key, Connection>,
    /// Connections in the order of their SYN, the oldest first, of which some may be open or gone.
    openings: VecDeque<Key>,
    /// How many connections are being recovered, or are not confirmed.
    recovering: usize,
    out: Outbox,
}

impl Trods {
    /// A gateway that knows no connection yet.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            table: BTreeMap::new(),
            openings: VecDeque::new(),
            recovering: 0,
            out: Outbox::new(LOCAL_PORTS),
        }
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
            .filter(|(_, connection)| connection.is_expired(now, self.config.rules))
            .map(|(key, _)| *key)
            .collect();
        for key in over {
            self.with(now, key, Connection::expire);
        }
        while self.openings.front().is_some_and(|key| !self.is_opening(key)) {
            self.openings.pop_front();
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

    /// The clients of the connections that are known.
    pub(crate) fn clients(&self) -> impl Iterator<Item = packet::Endpoint> {
        self.table.keys().map(|key| key.client)
    }

    fn on_client(&mut self, now: Now, bytes: &[u8], packet: Packet) {
        let key = Key { client: packet.source, service: packet.destination };
        if packet.has(Flags::SYN) {
            return self.on_syn(now, key, bytes, packet);
        }
        if self.table.contains_key(&key) {
            return self.with(now, key, |connection, context| connection.on_client(bytes, packet, context));
        }
        let recoverable = !packet.has(Flags::RST) && packet.has(Flags::ACK);
        if !recoverable || self.recovering >= RECOVERIES_MAX || !self.make_room(now) {
            self.out.counters.ignored += 1;
            return;
        }
        self.table.insert(key, Connection::unknown(key, now));
        self.with(now, key, |connection, context| connection.recover(packet, context));
    }

    fn on_syn(&mut self, now: Now, key: Key, bytes: &[u8], packet: Packet) {
        let mut action = OnSyn::Replace;
        self.with(now, key, |connection, context| action = connection.on_syn(&packet, context));
        match action {
            OnSyn::Ignore => {
                self.out.counters.ignored += 1;
                return;
            }
            OnSyn::Forward => {}
            OnSyn::Replace => {
                self.with(now, key, Connection::expire);
                if !self.make_room(now) {
                    self.out.counters.refused += 1;
                    return;
                }
                self.open(now, key, &packet);
            }
        }
        self.out.send(Side::Server, bytes.to_vec());
    }

    fn open(&mut self, now: Now, key: Key, syn: &Packet) {
        if self.openings.len() >= CONNECTIONS_MAX {
            self.drop_opening(now);
        }
        self.openings.push_back(key);
        self.table.insert(key, Connection::of_syn(key, syn, now, &self.config));
    }

    /// Whether there is room for a connection. A SYN costs its sender nothing, so the oldest of those that are not open
    /// yet gives way; the server's TCP decides how to bear a flood of them.
    fn make_room(&mut self, now: Now) -> bool {
        while self.table.len() >= CONNECTIONS_MAX && !self.openings.is_empty() {
            self.drop_opening(now);
        }
        self.table.len() < CONNECTIONS_MAX
    }

    fn drop_opening(&mut self, now: Now) {
        if let Some(oldest) = self.openings.pop_front().filter(|key| self.is_opening(key)) {
            self.with(now, oldest, Connection::expire);
        }
    }

    fn is_opening(&self, key: &Key) -> bool {
        self.table.get(key).is_some_and(Connection::is_opening)
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
        self.recovering -= usize::from(connection.is_recovering());
        act(connection, &mut context);
        self.recovering += usize::from(connection.is_recovering());
        if connection.is_over() {
            if let Some(port) = connection.local() {
                self.out.release(port);
            }
            self.table.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests;
