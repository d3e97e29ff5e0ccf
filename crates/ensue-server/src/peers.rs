//! The links of one core to the cores of other nodes: who dials, who is up, what comes in, what goes out.
//!
//! One connection a pair of cores, dialled by the lower (datacenter, core). A message for a link that is down is
//! dropped: the node sends again when the link is up. A peer that does something that is not allowed is disconnected,
//! counted, and dialled again later, if it is ours to dial. Whoever connects has a second to prove who it is, and
//! what it
//! says then is taken only if it is its to say.

mod condition;
mod dial;
mod door;
mod encryption;

use crate::bounds::{
    CROWD_PACE_US, HANDSHAKE_US, PEER_ACCEPTS_PER_TURN, PEER_ANSWERS_MS_MAX, PEER_MESSAGES_BYTES_MAX,
    PEER_PROBE_AFTER_S, PEER_PROBE_INTERVAL_S, PEER_PROBES_MAX, READ_BYTES, STRANGER_SILENT_US, STRANGER_US,
    STRANGERS_MAX,
};
use crate::link::{Link, LinkError, Phase};
use crate::log::{self, Throttle};
use crate::secret;
use crate::shaper::Shaper;
use crate::transport::Transport;
use condition::Condition;
use dial::Dial;
pub(crate) use dial::{Resolve, Resolved};
use door::Stranger;
pub(crate) use encryption::Encryption;
use ensue_node::link_rule::admit;
use ensue_node::{Dropped, Input, Topology};
use ensue_types::DatacenterId;
use ensue_wire::{CoreName, Envelope, Handshake, Identity, Instead, Keys, Message, WireError};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};
use std::collections::{BTreeMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// What all links of a core share.
#[derive(Debug)]
pub(crate) struct Peers {
    own: CoreName,
    identity: Identity,
    topology: Topology,
    /// None where nothing on links is encrypted.
    encryption: Option<Encryption>,
    /// Peers of other machines are believed, too: there is a secret, or certificates, or an operator wants it so.
    believes_others: bool,
    shaper: Arc<Shaper>,
    generation: u64,
    listener: TcpListener,
    /// The listener may have more connections than were accepted.
    backlog: bool,
    /// When to look at the listener again, while nobody at the door has had its time.
    rests_until_us: Option<u64>,
    slots: BTreeMap<CoreName, Slot>,
    links: HashMap<usize, Link, FixedState>,
    next_id: usize,
    queued: Vec<usize>,
    dirty: Vec<usize>,
    scratch: Box<[u8]>,
    complaints: Throttle,
    /// When one of a crowd may next make room at once.
    crowd_rests_until_us: u64,
    /// Of those who proved nothing, so that they do not keep others' lines away.
    door_complaints: Throttle,
    refused: u64,
}

/// What a core says and believes on its links.
#[derive(Debug)]
pub(crate) struct Stance {
    pub(crate) own: CoreName,
    pub(crate) identity: Identity,
    pub(crate) topology: Topology,
    pub(crate) encryption: Option<Encryption>,
    /// Peers of other machines are believed without a proof.
    pub(crate) unauthenticated: bool,
}

/// What is known of one peer.
#[derive(Debug)]
struct Slot {
    /// How to reach it, where it is ours to dial.
    dial: Option<Dial>,
    /// The connection that is up or on its way.
    link: Option<usize>,
    condition: Condition,
}

impl Peers {
    /// `addresses` are those of every core outside this node.
    pub(crate) fn new(
        addresses: Vec<(CoreName, String, u16)>,
        stance: Stance,
        shaper: Arc<Shaper>,
        listener: TcpListener,
        resolve: &Resolve,
    ) -> Peers {
        let Stance { own, identity, topology, encryption, unauthenticated } = stance;
        let slots = addresses.into_iter().map(|(peer, host, port)| {
            let dial = (own < peer).then(|| Dial::new(peer, host, port, Arc::clone(resolve)));
            (peer, Slot { dial, link: None, condition: Condition::new() })
        });
        Peers {
            own,
            believes_others: unauthenticated || identity.keys != Keys::Open || encryption.is_some(),
            encryption,
            identity,
            topology,
            generation: shaper.generation(),
            shaper,
            listener,
            backlog: false,
            rests_until_us: None,
            slots: slots.collect(),
            links: HashMap::default(),
            next_id: 0,
            queued: Vec::new(),
            dirty: Vec::new(),
            scratch: vec![0; READ_BYTES].into_boxed_slice(),
            complaints: Throttle::default(),
            crowd_rests_until_us: 0,
            door_complaints: Throttle::default(),
            refused: 0,
        }
    }

    pub(crate) fn listener(&mut self) -> &mut TcpListener {
        &mut self.listener
    }

    pub(crate) fn on_listener_ready(&mut self) {
        self.backlog = true;
    }

    /// What `INFO` shall say before anything has happened.
    pub(crate) fn report_all(&self, inputs: &mut VecDeque<Input>) {
        let datacenters = self.topology.datacenters.len() as u8;
        for datacenter in (0..datacenters).map(DatacenterId) {
            if self.slots.keys().any(|peer| peer.datacenter == datacenter) {
                self.report(datacenter, inputs);
            }
        }
    }

    fn report(&self, datacenter: DatacenterId, inputs: &mut VecDeque<Input>) {
        let there = self.slots.iter().filter(|(peer, _)| peer.datacenter == datacenter);
        let conditions = there.map(|(_, slot)| &slot.condition);
        inputs.push_back(Input::LinkReport(condition::report(datacenter, conditions)));
    }

    /// A datacenter, by the name of the configuration.
    pub(crate) fn datacenter_name(&self, datacenter: DatacenterId) -> String {
        self.topology.name_of(datacenter)
    }

    /// A core, by the names of the configuration.
    pub(crate) fn core_name(&self, peer: CoreName) -> String {
        self.identity.speaker(peer).to_string()
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
        if matches!(envelope.message, Message::Publish { .. }) && link.waiting() > PEER_MESSAGES_BYTES_MAX {
            return inputs.push_back(Input::Dropped(Dropped::Message));
        }
        let delay_us = self.shaper.delay_us(self.own.datacenter, to.datacenter);
        match link.send(envelope, now_us, delay_us) {
            Ok(()) => self.dirty.push(id),
            // Nothing was written.
            Err(LinkError::Wire(error @ WireError::Ours(_))) => {
                self.send_instead(now_us, id, (to, envelope), error, registry, inputs);
            }
            Err(error) => self.end(now_us, id, &error, registry, inputs),
        }
    }

    /// A message has no encoding: whoever waits for it learns that.
    fn send_instead(
        &mut self,
        now_us: u64,
        id: usize,
        (to, envelope): (CoreName, &Envelope),
        error: WireError,
        registry: &Registry,
        inputs: &mut VecDeque<Input>,
    ) {
        let WireError::Ours(reason) = &error else { return };
        let speaker = self.identity.speaker(to);
        self.complaints.warning(now_us, format_args!("a message to {speaker} was dropped: {error}"));
        match envelope.instead(reason) {
            Instead::Send(answer) => self.send(now_us, to, &answer, registry, inputs),
            Instead::Receive(answer) => inputs.push_back(Input::Message(*answer)),
            Instead::EndLink => self.end(now_us, id, &LinkError::Wire(error), registry, inputs),
            Instead::Drop => {}
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
        if self.rests_until_us.is_some_and(|until_us| until_us <= now_us) {
            self.rests_until_us = None;
            self.backlog = true;
        }
        self.accept(now_us, registry, inputs);
        self.dial_due(now_us, registry, inputs);
    }

    /// When [`Peers::tend`] or [`Peers::flush`] has something to do without an event.
    pub(crate) fn next_us(&self) -> Option<u64> {
        let held = self.links.values().filter_map(Link::next_us);
        let dials = self.slots.values().filter(|slot| slot.link.is_none());
        let dials = dials.filter_map(|slot| slot.dial.as_ref().and_then(Dial::next_us));
        let handshakes = self.links.values().filter(|link| !link.is_up()).map(deadline_us);
        held.chain(dials).chain(handshakes).chain(self.rests_until_us).min()
    }

    /// Whether there is work that no event will announce.
    pub(crate) fn has_work(&self) -> bool {
        !self.queued.is_empty() || !self.dirty.is_empty() || self.backlog
    }

    /// The address of a peer has been looked up.
    pub(crate) fn resolved(&mut self, now_us: u64, resolved: Resolved) {
        if let Some(dial) = self.slots.get_mut(&resolved.peer).and_then(|slot| slot.dial.as_mut()) {
            if let Err(error) = dial.resolved(now_us, resolved.addresses) {
                let peer = self.identity.speaker(resolved.peer);
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

    fn accept(&mut self, now_us: u64, registry: &Registry, inputs: &mut VecDeque<Input>) {
        for _ in 0..PEER_ACCEPTS_PER_TURN {
            if !self.backlog || !self.has_room_at_the_door(now_us, registry, inputs) {
                return;
            }
            match self.listener.accept() {
                Ok((stream, address)) if self.believes(address.ip()) => {
                    let nonce = match secret::random() {
                        Ok(nonce) => nonce,
                        Err(error) => return self.cannot_accept(now_us, &error),
                    };
                    let handshake = Handshake::accept(&self.identity, nonce);
                    let transport = match &self.encryption {
                        None => Ok(Transport::Plain(stream)),
                        Some(encryption) => encryption.accept(stream),
                    };
                    match transport {
                        Ok(stream) => {
                            let phase = Phase::Greeting(Box::new(handshake));
                            self.add_link(now_us, stream, phase, None, registry);
                        }
                        Err(error) => self
                            .complaints
                            .warning(now_us, format_args!("peer {address} cannot be served: {error}")),
                    }
                }
                Ok((_, address)) => {
                    self.refused += 1;
                    let (reason, count) = (LinkError::NoSecret, self.refused);
                    self.door_complaints.warning(
                        now_us,
                        format_args!("peer {address} was refused: {reason} ({count} so far)"),
                    );
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.backlog = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.cannot_accept(now_us, &error),
            }
        }
    }

    /// Without file descriptors the next event or the next connection tries again.
    fn cannot_accept(&mut self, now_us: u64, error: &io::Error) {
        self.complaints.warning(now_us, format_args!("cannot accept a peer: {error}"));
        self.backlog = false;
    }

    fn believes(&self, address: IpAddr) -> bool {
        self.believes_others || address.to_canonical().is_loopback()
    }

    /// Whether one more may come in, if need be in the place of one that had its time.
    fn has_room_at_the_door(
        &mut self,
        now_us: u64,
        registry: &Registry,
        inputs: &mut VecDeque<Input>,
    ) -> bool {
        let strangers: Vec<Stranger> = self
            .links
            .iter()
            .filter(|(_, link)| link.peer.is_none())
            .map(|(&id, link)| Stranger {
                id,
                source: link.stream.peer_addr().ok().map(|address| address.ip()),
                claims: link.claimed().is_some(),
                age_us: now_us.saturating_sub(link.began_us),
            })
            .collect();
        if strangers.len() < STRANGERS_MAX {
            return true;
        }
        let one_of_a_crowd = || door::one_of_a_crowd(&strangers, RandomState::new().hash_one(now_us));
        let (gives_way, rest_us) = match door::who_gives_way(&strangers) {
            Some(id) => (Some(id), 0),
            None if now_us < self.crowd_rests_until_us => (None, self.crowd_rests_until_us - now_us),
            None => (one_of_a_crowd(), STRANGER_SILENT_US),
        };
        if let Some(id) = gives_way {
            if rest_us > 0 {
                self.crowd_rests_until_us = now_us + CROWD_PACE_US;
            }
            self.end(now_us, id, &LinkError::GaveWay, registry, inputs);
            return true;
        }
        self.backlog = false;
        self.rests_until_us = Some(now_us + rest_us);
        false
    }

    fn dial_due(&mut self, now_us: u64, registry: &Registry, inputs: &mut VecDeque<Input>) {
        let own = self.own.datacenter;
        let (mut connected, mut fallen) = (Vec::new(), Vec::new());
        for (&peer, slot) in self.slots.iter_mut().filter(|(_, slot)| slot.link.is_none()) {
            let Some(dial) = slot.dial.as_mut() else { continue };
            if self.shaper.is_cut(own, peer.datacenter) {
                dial.rest(now_us);
                continue;
            }
            match dial.connect(now_us) {
                Ok(Some(stream)) => {
                    let transport = match &self.encryption {
                        None => Ok(Transport::Plain(stream)),
                        Some(encryption) => encryption.dial(stream, peer),
                    };
                    match transport {
                        Ok(stream) => connected.push((peer, stream)),
                        Err(error) => fallen.push((peer, error)),
                    }
                }
                Ok(None) => {}
                Err(error) => fallen.push((peer, LinkError::Machine(error))),
            }
        }
        for (peer, stream) in connected {
            let id = self.add_link(now_us, stream, Phase::Connecting, Some(peer), registry);
            if let Some(slot) = self.slots.get_mut(&peer) {
                slot.link = id;
            }
        }
        for (peer, error) in fallen {
            self.fall(peer, &error, inputs);
        }
    }

    fn add_link(
        &mut self,
        now_us: u64,
        mut stream: Transport,
        phase: Phase,
        peer: Option<CoreName>,
        registry: &Registry,
    ) -> Option<usize> {
        let id = self.next_id;
        self.next_id += 1;
        // Setting the options can fail only on a socket that is gone, and then the first read says so.
        let _ = prepare(stream.socket());
        if let Err(error) =
            registry.register(&mut stream, token_of(id), Interest::READABLE | Interest::WRITABLE)
        {
            let who = peer.map_or("a peer".into(), |peer| self.core_name(peer));
            self.complaints.warning(now_us, format_args!("{who} cannot be served: {error}"));
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
        if let (Phase::Connecting, Some(to)) = (&link.phase, link.peer) {
            if !link.is_connected()? {
                return Ok(());
            }
            // We show a peer nothing that we would not believe.
            if !self.believes_others && !link.stream.peer_addr()?.ip().to_canonical().is_loopback() {
                return Err(LinkError::NoSecret);
            }
            link.greet(&self.identity, secret::random()?, to);
            self.dirty.push(id);
        }
        let has_more = link.fill(&mut self.scratch)?;
        if matches!(link.phase, Phase::Greeting(_)) {
            self.dirty.push(id);
            if let (Some(encryption), false) = (&self.encryption, link.stream.is_handshaking()) {
                encryption.check_any(link.stream.certificate())?;
            }
            if let Some(peer) = link.shake_hands(&self.identity)? {
                self.welcome(now_us, id, peer, registry, inputs)?;
            }
        }
        let Some(link) = self.links.get_mut(&id) else { return Ok(()) };
        if let (true, Some(peer)) = (link.is_up(), link.peer) {
            while let Some(envelope) = link.next_message()? {
                admit(&self.topology, self.own.core, peer, &envelope)?;
                inputs.push_back(Input::PeerMessage { peer, envelope });
            }
        }
        if link.is_closed() {
            return Err(if link.is_up() { LinkError::Closed } else { LinkError::Parted });
        }
        if has_more {
            link.is_queued = true;
            self.queued.push(id);
        }
        Ok(())
    }

    /// The peer has proved who it is.
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
        if let (Some(encryption), Some(link)) = (&self.encryption, self.links.get(&id)) {
            encryption.check(link.stream.certificate(), peer)?;
        }
        if dialled.is_none() {
            // Only whoever is ours to be dialled by may come this way, so that a pair has one connection.
            let known = self.slots.get(&peer).is_some_and(|slot| slot.dial.is_none());
            if !known {
                return Err(LinkError::NotExpected(self.identity.speaker(peer)));
            }
            if let Some(earlier) = self.slots.get(&peer).and_then(|slot| slot.link) {
                self.end(now_us, earlier, &LinkError::Replaced, registry, inputs);
            }
        }
        let Some(link) = self.links.get_mut(&id) else { return Ok(()) };
        link.peer = Some(peer);
        if let Some(slot) = self.slots.get_mut(&peer) {
            slot.link = Some(id);
            if let Some(dial) = slot.dial.as_mut() {
                dial.succeeded();
            }
        }
        self.rise(peer, inputs);
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

    /// Ends handshakes that take too long. Called when everything that has arrived was read, however long that took.
    pub(crate) fn clean_up(&mut self, now_us: u64, registry: &Registry, inputs: &mut VecDeque<Input>) {
        let is_late = |link: &Link| !link.is_up() && deadline_us(link) <= now_us;
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
        // So that the other side comes to the same verdict; it may be gone, and then it has its own reasons.
        let _ = link.flush(now_us);
        self.refused += u64::from(reason.is_refusal());
        let Some(peer) = link.peer else { return self.end_stranger(now_us, &link, reason, inputs) };
        let Some(slot) = self.slots.get_mut(&peer) else { return };
        if slot.link == Some(id) {
            slot.link = None;
            if let Some(dial) = slot.dial.as_mut() {
                dial.rest(now_us);
            }
            if slot.condition.is_up {
                inputs.push_back(Input::LinkDown { datacenter: peer.datacenter, core: peer.core });
            }
        }
        if !matches!(reason, LinkError::Replaced) {
            self.fall(peer, reason, inputs);
        }
    }

    /// Whoever did not get in may be anybody, also where it says who it is: a refusal shows in `INFO`, and lines of
    /// the log are few.
    fn end_stranger(&mut self, now_us: u64, link: &Link, reason: &LinkError, inputs: &mut VecDeque<Input>) {
        let from = link.stream.peer_addr().map_or("?".into(), |address| address.to_string());
        if !reason.is_refusal() {
            return log::verbose(format_args!("{from} connected, and nothing came of it: {reason}"));
        }
        let is_free = |peer: &CoreName| self.slots.get(peer).is_some_and(|slot| slot.link.is_none());
        let claimed = link.claimed().filter(is_free);
        let who = claimed.map_or("nobody known".into(), |peer| self.core_name(peer));
        let count = self.refused;
        match claimed {
            Some(peer) if reason.is_of_a_proven_peer() => self.fall(peer, reason, inputs),
            Some(peer) if !self.set_fallen(peer, reason, inputs) => {}
            _ => self.door_complaints.warning(
                now_us,
                format_args!("peer {from}, {who} as it says, is refused: {reason} ({count} so far)"),
            ),
        }
    }

    /// The link with this peer is up.
    fn rise(&mut self, peer: CoreName, inputs: &mut VecDeque<Input>) {
        let Some(slot) = self.slots.get_mut(&peer) else { return };
        if slot.condition.rise() {
            log::verbose(format_args!(
                "link from {} to {} is up",
                self.core_name(self.own),
                self.core_name(peer)
            ));
            self.report(peer.datacenter, inputs);
        }
    }

    /// The link with this peer is down, or did not come up. Each reason is told once, until it is another one.
    fn fall(&mut self, peer: CoreName, reason: &LinkError, inputs: &mut VecDeque<Input>) {
        let was_up = self.slots.get(&peer).is_some_and(|slot| slot.condition.is_up);
        if !self.set_fallen(peer, reason, inputs) {
            return;
        }
        let (own, name) = (self.core_name(self.own), self.core_name(peer));
        match (reason.is_refusal(), was_up) {
            (true, _) => log::warning(format_args!("link from {own} to {name} is refused: {reason}")),
            (false, true) => log::warning(format_args!("link from {own} to {name} is down: {reason}")),
            (false, false) => log::verbose(format_args!("link from {own} to {name} is not up: {reason}")),
        }
    }

    /// For `INFO`. True if it is news.
    fn set_fallen(&mut self, peer: CoreName, reason: &LinkError, inputs: &mut VecDeque<Input>) -> bool {
        let Some(slot) = self.slots.get_mut(&peer) else { return false };
        let is_news = slot.condition.fall(reason.is_refusal(), reason.to_string());
        if is_news {
            self.report(peer.datacenter, inputs);
        }
        is_news
    }
}

/// Until when a handshake must be over.
fn deadline_us(link: &Link) -> u64 {
    link.began_us + if link.peer.is_some() || link.is_encrypted() { HANDSHAKE_US } else { STRANGER_US }
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
