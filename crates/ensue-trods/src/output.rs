//! What a gateway wants done, in order.

use crate::store::{Key, StoreOp, Ticket};
use std::collections::{BTreeMap, VecDeque};

/// A moment, in microseconds of any clock that does not go back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Now(pub u64);

/// One of the two sides of a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The network, where the client is.
    Client,
    /// The TCP stack of this machine, where the server application is.
    Server,
}

impl Side {
    /// The side to which a packet of this side travels.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// What becomes of the packet that was handed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It passes as it is.
    Accept,
    /// It ends here.
    Drop,
    /// These bytes pass in its place.
    Replace(Vec<u8>),
}

/// Something that the shell carries out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// The verdict on the packet; exactly one for each packet, before the other outputs of that packet.
    Verdict(Verdict),
    /// Send a packet of the gateway's own to this side.
    Inject {
        /// Where to.
        side: Side,
        /// An IPv4 packet.
        bytes: Vec<u8>,
    },
    /// Carry out an operation on the store and hand in its outcome with the ticket.
    Store {
        /// Names the outcome.
        ticket: Ticket,
        /// The operation.
        op: StoreOp,
    },
    /// The application on this machine failed: the liveness monitor is to send its clients elsewhere.
    ApplicationFailed,
}

/// What a gateway counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counters {
    /// Exchanges whose state is in the store.
    pub saved: u64,
    /// Exchanges whose state is in timestamps.
    pub stamped: u64,
    /// Exchanges that were passed through unprotected.
    pub unprotected: u64,
    /// Connections recovered before their response began.
    pub recovered_in_setup: u64,
    /// Connections recovered while their response flowed.
    pub recovered_in_download: u64,
    /// Connections found to be complete when they should have been recovered.
    pub found_complete: u64,
    /// Connections that came back from a server on which they went on.
    pub came_back: u64,
    /// Records of another server that were adopted.
    pub adopted: u64,
    /// Recoveries that were not possible.
    pub lost: u64,
    /// Packets of unknown connections that began no recovery.
    pub ignored: u64,
    /// Packets that are no TCP over IPv4 as it is handled here.
    pub unparsed: u64,
    /// SYNs that found the table full.
    pub refused: u64,
}

impl Counters {
    /// Adds what another gateway counted.
    pub fn add(&mut self, other: &Self) {
        self.saved += other.saved;
        self.stamped += other.stamped;
        self.unprotected += other.unprotected;
        self.recovered_in_setup += other.recovered_in_setup;
        self.recovered_in_download += other.recovered_in_download;
        self.found_complete += other.found_complete;
        self.came_back += other.came_back;
        self.adopted += other.adopted;
        self.lost += other.lost;
        self.ignored += other.ignored;
        self.unparsed += other.unparsed;
        self.refused += other.refused;
    }
}

/// Collects outputs, and hands out what they need: tickets and local ports.
#[derive(Debug)]
pub(crate) struct Outbox {
    queue: VecDeque<Output>,
    ticket: u64,
    ports: BTreeMap<u16, Key>,
    port: u16,
    ports_first: u16,
    ports_last: u16,
    pub counters: Counters,
}

impl Outbox {
    pub fn new(ports: std::ops::RangeInclusive<u16>) -> Self {
        Self {
            queue: VecDeque::new(),
            ticket: 0,
            ports: BTreeMap::new(),
            port: *ports.start(),
            ports_first: *ports.start(),
            ports_last: *ports.end(),
            counters: Counters::default(),
        }
    }

    pub fn send(&mut self, side: Side, bytes: Vec<u8>) {
        self.queue.push_back(Output::Inject { side, bytes });
    }

    pub fn store(&mut self, op: StoreOp) -> Ticket {
        self.ticket += 1;
        let ticket = Ticket(self.ticket);
        self.queue.push_back(Output::Store { ticket, op });
        ticket
    }

    pub fn application_failed(&mut self) {
        if !self.queue.contains(&Output::ApplicationFailed) {
            self.queue.push_back(Output::ApplicationFailed);
        }
    }

    /// A port of the local address that no other connection uses; `None` if all are in use. Ports are used in turn, so
    /// that one is not used again at once.
    pub fn allocate(&mut self, key: Key) -> Option<u16> {
        let count = usize::from(self.ports_last - self.ports_first) + 1;
        if self.ports.len() >= count {
            return None;
        }
        loop {
            let port = self.port;
            self.port = if port == self.ports_last { self.ports_first } else { port + 1 };
            if let std::collections::btree_map::Entry::Vacant(place) = self.ports.entry(port) {
                place.insert(key);
                return Some(port);
            }
        }
    }

    pub fn release(&mut self, port: u16) {
        self.ports.remove(&port);
    }

    pub fn owner(&self, port: u16) -> Option<Key> {
        self.ports.get(&port).copied()
    }

    pub fn next(&mut self) -> Option<Output> {
        self.queue.pop_front()
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Puts the verdict on a packet before what was collected for it: the first packet that goes on to the packet's own
    /// destination takes its place.
    pub fn decide(&mut self, from: Side, original: &[u8]) {
        let onward = from.other();
        let replaced = self
            .queue
            .iter()
            .position(|output| matches!(output, Output::Inject { side, .. } if *side == onward))
            .and_then(|at| self.queue.remove(at));
        let verdict = match replaced {
            Some(Output::Inject { bytes, .. }) if bytes == original => Verdict::Accept,
            Some(Output::Inject { bytes, .. }) => Verdict::Replace(bytes),
            _ => Verdict::Drop,
        };
        self.queue.push_front(Output::Verdict(verdict));
    }

    pub fn accept(&mut self) {
        self.queue.push_front(Output::Verdict(Verdict::Accept));
    }
}
