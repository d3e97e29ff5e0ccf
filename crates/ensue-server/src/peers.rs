//! The links of one core to the cores of other nodes: who dials, who is up, what comes in, what goes out.
//!
//! One connection a pair of cores, dialled by the lower (datacenter, core). A message for a link that is down is
//! dropped: the node sends again when the link is up. A peer that does something that is not allowed is disconnected,
//! counted, and dialled again later, if it is ours to dial.

mod dial;

use crate::bounds::{
    HANDSHAKE_US, PEER_ANSWERS_MS_MAX, PEER_PROBE_AFTER_S, PEER_PROBE_INTERVAL_S, PEER_PROBES_MAX,
    READ_BYTES, STRANGERS_MAX,
};
use crate::link::{Link, LinkError, Phase};
use crate::log::{self, Throttle};
use crate::shaper::Shaper;
use dial::Dial;
pub(crate) use dial::{Resolve, Resolved};
use ensue_node::Input;
use ensue_types::DatacenterId;
use ensue_wire::{CoreName, Envelope, Hello, WireError};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// What all links of a core share.
#[derive(Debug)]
pub(crate) struct Peers {
    own: CoreName,
    hello: Hello,
    shaper: Arc<Shaper>,
    generation: u64,
    listener: TcpListener,
    /// The listener may have more connections than were accepted.
    backlog: bool,
    slots: BTreeMap<CoreName, Slot>,
    links: HashMap<usize, Link, FixedState>,
    next_id: usize,
    queued: Vec<usize>,
    dirty: Vec<usize>,
    scratch: Box<[u8]>,
    complaints: Throttle,
    refused: u64,
}

/// What is known of one peer.
#[derive(Debug)]
struct Slot {
    /// How to reach it, where it is ours to dial.
    dial: Option<Dial>,
    /// The connection that is up or on its way.
    link: Option<usize>,
}

/// Whom a link belongs to, for the lines of the log.
fn name(peer: Option<CoreName>) -> String {
    peer.map_or("a stranger".into(), |peer| peer.to_string())
}

impl Peers {
    /// `addresses` are those of every core outside this node.
    pub(crate) fn new(
        addresses: Vec<(CoreName, String, u16)>,
        hello: Hello,
        shaper: Arc<Shaper>,
        listener: TcpListener,
        resolve: &Resolve,
    ) -> Peers {
        let own = hello.name();
        let slots = addresses.into_iter().map(|(peer, host, port)| {
            let dial = (own < peer).then(|| Dial::new(peer, host, port, Arc::clone(resolve)));
            (peer, Slot { dial, link: None })
        });
        Peers {
            own,
            hello,
            generation: shaper.generation(),
            shaper,
            listener,
            backlog: false,
            slots: slots.collect(),
            links: HashMap::default(),
            next_id: 0,
            queued: Vec::new(),
            dirty: Vec::new(),
            scratch: vec![0; READ_BYTES].into_boxed_slice(),
            complaints: Throttle::default(),
            refused: 0,
        }
    }

    pub(crate) fn listener(&mut self) -> &mut TcpListener {
        &mut self.listener
    }

    pub(crate) fn on_listener_ready(&mut self) {
        self.backlog = true;
    }

    /// Sends a message, or drops it if the link is down.
    pub(crate) fn send(
        &mut self,
        now_us: u64,
        to: CoreName,
        envelope: &Envelope,
        registry: &Registry,
        inputs: &mut VecDeque<Input>,
    ) {
        let Some(id) = self.slots.get(&to).and_then(|slot| slot.link) else { return };
        let Some(link) = self.links.get_mut(&id).filter(|link| link.is_up()) else { return };
        let delay_us = self.shaper.delay_us(self.own.datacenter, to.datacenter);
        match link.send(envelope, now_us, delay_us) {
            Ok(()) => self.dirty.push(id),
            // Nothing was written: the link stays, and whoever waits for an answer gets the error of a timeout.
            Err(LinkError::Wire(error @ WireError::Ours(_))) => {
                self.complaints.warning(now_us, format_args!("a message to {to} was dropped: {error}"));
            }
            Err(error) => self.end(now_us, id, &error, registry, inputs),
        }
    }

    /// A socket reported something.
    pub(crate) fn on_event(&mut self, token: Token, readable: bool, writable: bool) {
        let id = id_of(token);
        let Some(link) = self.links.get_mut(&id) else { return };
        if readable || matches!(link.phase, Phase::Connecting) {
            link.on_readable();
            if !link.is_queued {
                link.is_queued = true;
                self.queued.push(id);
            }
        }
        if writable {
            self.dirty.push(id);
        }
    }

    /// Dials, accepts, applies changes of the shaper, and ends handshakes that take too long.
    pub(crate) fn tend(&mut self, now_us: u64, registry: &Registry, inputs: &mut VecDeque<Input>) {
        let generation = self.shaper.generation();
        if generation != self.generation {
            self.generation = generation;
            self.apply_shape(now_us, registry, inputs);
        }
        self.accept(now_us, registry);
        self.dial_due(now_us, registry);
    }

    /// When [`Peers::tend`] or [`Peers::flush`] has something to do without an event.
    pub(crate) fn next_us(&self) -> Option<u64> {
        let held = self.links.values().filter_map(Link::next_us);
        let dials = self.slots.values().filter(|slot| slot.link.is_none());
        let dials = dials.filter_map(|slot| slot.dial.as_ref().and_then(Dial::next_us));
        held.chain(dials).min()
    }

    /// Whether there is work that no event will announce.
    pub(crate) fn has_work(&self) -> bool {
        !self.queued.is_empty() || !self.dirty.is_empty() || self.backlog
    }

    /// The address of a peer has been looked up.
    pub(crate) fn resolved(&mut self, now_us: u64, resolved: Resolved) {
        if let Some(dial) = self.slots.get_mut(&resolved.peer).and_then(|slot| slot.dial.as_mut()) {
            if let Err(error) = dial.resolved(now_us, resolved.address) {
                let peer = resolved.peer;
                self.complaints.warning(now_us, format_args!("the address of {peer} is not known: {error}"));
            }
        }
    }

    fn apply_shape(&mut self, now_us: u64, registry: &Registry, inputs: &mut VecDeque<Input>) {
        let is_cut = |link: &Link| link.peer.is_some_and(|peer| self.is_cut(peer.datacenter));
        let cut: Vec<usize> = self.links.iter().filter(|(_, link)| is_cut(link)).map(|(&id, _)| id).collect();
        for id in cut {
            self.end(now_us, id, &LinkError::Cut, registry, inputs);
        }
        // A link that was healed is dialled at once, and the others lose nothing by one early attempt.
        for dial in self.slots.values_mut().filter_map(|slot| slot.dial.as_mut()) {
            dial.at_once(now_us);
        }
    }

    fn is_cut(&self, datacenter: DatacenterId) -> bool {
        self.shaper.is_cut(self.own.datacenter, datacenter)
    }

    fn accept(&mut self, now_us: u64, registry: &Registry) {
        while self.backlog {
            match self.listener.accept() {
                Ok((stream, address)) => {
                    let strangers = self.links.values().filter(|link| link.peer.is_none()).count();
                    if strangers >= STRANGERS_MAX {
                        self.complaints
                            .warning(now_us, format_args!("too many strangers, {address} is refused"));
                        continue;
                    }
                    self.add_link(now_us, stream, Phase::Greeting, None, registry);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.backlog = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    // Without file descriptors the next event or the next connection tries again.
                    self.complaints.warning(now_us, format_args!("cannot accept a peer: {error}"));
                    self.backlog = false;
                }
            }
        }
    }

    fn dial_due(&mut self, now_us: u64, registry: &Registry) {
        let own = self.own.datacenter;
        let mut connected = Vec::new();
        for (&peer, slot) in self.slots.iter_mut().filter(|(_, slot)| slot.link.is_none()) {
            let Some(dial) = slot.dial.as_mut() else { continue };
            if self.shaper.is_cut(own, peer.datacenter) {
                dial.rest(now_us);
                continue;
            }
            match dial.connect(now_us) {
                Ok(Some(stream)) => connected.push((peer, stream)),
                Ok(None) => {}
                Err(error) => log::debug(format_args!("{} cannot be dialled: {error}", peer)),
            }
        }
        for (peer, stream) in connected {
            let id = self.add_link(now_us, stream, Phase::Connecting, Some(peer), registry);
            if let Some(slot) = self.slots.get_mut(&peer) {
                slot.link = id;
            }
        }
    }

    fn add_link(
        &mut self,
        now_us: u64,
        mut stream: TcpStream,
        phase: Phase,
        peer: Option<CoreName>,
        registry: &Registry,
    ) -> Option<usize> {
        let id = self.next_id;
        self.next_id += 1;
        // Setting the options can fail only on a socket that is gone, and then the first read says so.
        let _ = prepare(&stream);
        if let Err(error) =
            registry.register(&mut stream, token_of(id), Interest::READABLE | Interest::WRITABLE)
        {
            self.complaints.warning(now_us, format_args!("{} cannot be served: {error}", name(peer)));
            return None;
        }
        self.links.insert(id, Link::new(stream, phase, peer, now_us));
        Some(id)
    }

    /// Reads from every link that has bytes.
    pub(crate) fn read(&mut self, now_us: u64, registry: &Registry, inputs: &mut VecDeque<Input>) {
        for id in std::mem::take(&mut self.queued) {
            let Some(link) = self.links.get_mut(&id) else { continue };
            link.is_queued = false;
            if let Err(error) = self.advance(now_us, id, registry, inputs) {
                self.end(now_us, id, &error, registry, inputs);
            }
        }
    }

    fn advance(
        &mut self,
        now_us: u64,
        id: usize,
        registry: &Registry,
        inputs: &mut VecDeque<Input>,
    ) -> Result<(), LinkError> {
        let Some(link) = self.links.get_mut(&id) else { return Ok(()) };
        if matches!(link.phase, Phase::Connecting) {
            if !link.is_connected()? {
                return Ok(());
            }
            link.greet(&self.hello);
            self.dirty.push(id);
        }
        let has_more = link.fill(&mut self.scratch)?;
        if matches!(link.phase, Phase::Greeting) {
            if let Some(peer) = link.take_greeting(&self.hello)? {
                self.welcome(now_us, id, peer, registry, inputs)?;
            }
        }
        let Some(link) = self.links.get_mut(&id) else { return Ok(()) };
        if link.is_up() {
            while let Some(envelope) = link.next_message()? {
                inputs.push_back(Input::Message(envelope));
            }
        }
        if link.is_closed() {
            return Err(LinkError::Closed);
        }
        if has_more {
            link.is_queued = true;
            self.queued.push(id);
        }
        Ok(())
    }

    /// The peer has said who it is.
    fn welcome(
        &mut self,
        now_us: u64,
        id: usize,
        peer: CoreName,
        registry: &Registry,
        inputs: &mut VecDeque<Input>,
    ) -> Result<(), LinkError> {
        if self.is_cut(peer.datacenter) {
            return Err(LinkError::Cut);
        }
        let dialled = self.links.get(&id).and_then(|link| link.peer);
        if dialled.is_none() {
            // Only whoever is ours to be dialled by may come this way, so that a pair has one connection.
            let known = self.slots.get(&peer).is_some_and(|slot| slot.dial.is_none());
            if !known {
                return Err(LinkError::NotExpected(peer));
            }
            if let Some(earlier) = self.slots.get(&peer).and_then(|slot| slot.link) {
                self.end(now_us, earlier, &LinkError::Replaced, registry, inputs);
            }
        }
        let Some(link) = self.links.get_mut(&id) else { return Ok(()) };
        if dialled.is_none() {
            link.greet(&self.hello);
            link.peer = Some(peer);
            self.dirty.push(id);
        }
        link.phase = Phase::Up;
        if let Some(slot) = self.slots.get_mut(&peer) {
            slot.link = Some(id);
            if let Some(dial) = slot.dial.as_mut() {
                dial.succeeded();
            }
        }
        log::verbose(format_args!("link from {} to {peer} is up", self.own));
        inputs.push_back(Input::LinkUp { datacenter: peer.datacenter, core: peer.core });
        Ok(())
    }

    /// Writes what is due.
    pub(crate) fn flush(&mut self, now_us: u64, registry: &Registry, inputs: &mut VecDeque<Input>) {
        let due = |link: &Link| link.next_us().is_some_and(|due_us| due_us <= now_us);
        self.dirty.extend(self.links.iter().filter(|(_, link)| due(link)).map(|(&id, _)| id));
        let mut dirty = std::mem::take(&mut self.dirty);
        for id in dirty.drain(..) {
            let Some(link) = self.links.get_mut(&id) else { continue };
            if matches!(link.phase, Phase::Connecting) {
                continue;
            }
            if let Err(error) = link.flush(now_us) {
                self.end(now_us, id, &error, registry, inputs);
            }
        }
        self.dirty = dirty;
    }

    /// Ends handshakes that take too long.
    pub(crate) fn clean_up(&mut self, now_us: u64, registry: &Registry, inputs: &mut VecDeque<Input>) {
        let is_late = |link: &Link| !link.is_up() && now_us.saturating_sub(link.began_us) > HANDSHAKE_US;
        let late: Vec<usize> =
            self.links.iter().filter(|(_, link)| is_late(link)).map(|(&id, _)| id).collect();
        for id in late {
            self.end(now_us, id, &LinkError::Slow, registry, inputs);
        }
    }

    /// Ends a connection; the node hears of it if it was up.
    fn end(
        &mut self,
        now_us: u64,
        id: usize,
        reason: &LinkError,
        registry: &Registry,
        inputs: &mut VecDeque<Input>,
    ) {
        let Some(mut link) = self.links.remove(&id) else { return };
        // Dropping the socket would take it out of the poll as well.
        let _ = registry.deregister(&mut link.stream);
        if matches!(reason, LinkError::Handshake(_) | LinkError::NotExpected(_) | LinkError::Wire(_)) {
            self.refused += 1;
            let from = link.stream.peer_addr().map_or("?".into(), |address| address.to_string());
            let count = self.refused;
            self.complaints.warning(
                now_us,
                format_args!("peer {from} ({}) was disconnected: {reason} ({count} so far)", name(link.peer)),
            );
        }
        let Some(peer) = link.peer else { return };
        let Some(slot) = self.slots.get_mut(&peer) else { return };
        if slot.link == Some(id) {
            slot.link = None;
            if let Some(dial) = slot.dial.as_mut() {
                dial.rest(now_us);
            }
        }
        if link.is_up() {
            let line = format!("link from {} to {peer} is down: {reason}", self.own);
            self.complaints.warning(now_us, line);
            inputs.push_back(Input::LinkDown { datacenter: peer.datacenter, core: peer.core });
        }
    }
}

/// No delay for small messages, and an end in time for a link whose other side is gone without a word.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    use rustix::net::sockopt;
    stream.set_nodelay(true)?;
    sockopt::set_tcp_user_timeout(stream, PEER_ANSWERS_MS_MAX)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, Duration::from_secs(PEER_PROBE_AFTER_S))?;
    sockopt::set_tcp_keepintvl(stream, Duration::from_secs(PEER_PROBE_INTERVAL_S))?;
    sockopt::set_tcp_keepcnt(stream, PEER_PROBES_MAX)?;
    Ok(())
}

/// Tokens of links are the odd ones from here on; those of clients are even.
const FIRST_TOKEN: usize = (1 << 10) + 1;

fn token_of(id: usize) -> Token {
    Token(FIRST_TOKEN + 2 * id)
}

fn id_of(token: Token) -> usize {
    (token.0 - FIRST_TOKEN) / 2
}

/// Whether an event belongs to a link.
pub(crate) fn owns(token: Token) -> bool {
    token.0 >= FIRST_TOKEN && token.0 % 2 == 1
}

#[cfg(test)]
mod tests;
