//! The client connections of one core: events of sockets become inputs of the node, answers become bytes on sockets.
//!
//! Bounded work a turn: connections with many commands have a share of each turn, or of every few turns, and every
//! other one is served in each; a session has its share of answers. Nobody has a second share before all have had one.

use crate::bounds::{
    AUTHENTICATION_US, COMMANDS_OF_A_NEWCOMER, COMMANDS_PER_SHARE_MIN, COMMANDS_PER_TURN, LINGER_US,
    LINGERING_MAX, READ_BYTES,
};
use crate::client::{Client, Fate, Taken};
use crate::listener::{Guest, Seat, next_session};
use crate::log::{self, Throttle};
use ensue_node::{Dropped, Input, OutputLimits};
use ensue_types::{CoreId, SessionId};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use std::collections::VecDeque;
use std::net::{Shutdown, SocketAddr};

/// All connections of a core.
#[derive(Debug)]
pub(crate) struct Clients {
    clients: HashMap<SessionId, Client, FixedState>,
    /// That of the node.
    first_core: CoreId,
    needs_password: bool,
    /// An idle client is disconnected after this; zero is never.
    timeout_us: u64,
    /// What may wait for a client that does not read.
    output_limits: OutputLimits,
    /// When this turn began: limits in seconds need no better clock.
    now_us: u64,
    /// Clients that have work although their sockets report nothing new.
    queued: Vec<SessionId>,
    /// Clients with new answers.
    dirty: Vec<SessionId>,
    /// Clients that were told why they are refused.
    lingering: VecDeque<Lingering>,
    /// Each is ended when it has the answers to what it has sent.
    draining: bool,
    scratch: Box<[u8]>,
    complaints: Throttle,
}

/// What a socket reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) readable: bool,
    /// Reading will show an end or an error.
    pub(crate) at_end: bool,
    pub(crate) writable: bool,
}

/// A socket that is closed at a time; whoever was let in keeps the seat until then.
#[derive(Debug)]
struct Lingering {
    until_us: u64,
    _stream: TcpStream,
    _seat: Option<Seat>,
}

impl Clients {
    pub(crate) fn new(
        first_core: CoreId,
        needs_password: bool,
        timeout_s: u64,
        output_limits: OutputLimits,
    ) -> Clients {
        Clients {
            clients: HashMap::default(),
            first_core,
            needs_password,
            timeout_us: timeout_s.saturating_mul(1_000_000),
            output_limits,
            now_us: 0,
            queued: Vec::new(),
            dirty: Vec::new(),
            lingering: VecDeque::new(),
            draining: false,
            scratch: vec![0; READ_BYTES].into_boxed_slice(),
            complaints: Throttle::default(),
        }
    }

    /// Nobody needs a password from now on, or everybody does who connects.
    pub(crate) fn set_open(&mut self, is_open: bool) {
        self.needs_password = !is_open;
        if is_open {
            self.clients.values_mut().for_each(Client::open_gate);
        }
    }

    /// How long a client may be idle from now on, and what may wait for it.
    pub(crate) fn configure(&mut self, timeout_s: u64, output_limits: OutputLimits) {
        self.timeout_us = timeout_s.saturating_mul(1_000_000);
        self.output_limits = output_limits;
    }

    /// A client that the listener let in.
    pub(crate) fn admit(
        &mut self,
        now_us: u64,
        guest: Guest,
        registry: &Registry,
        inputs: &mut VecDeque<Input>,
    ) {
        let session = next_session(self.first_core);
        let (address, local_address) = (guest.address, guest.local_address.clone());
        let mut client = Client::new(now_us, guest, self.needs_password);
        let interest = Interest::READABLE | Interest::WRITABLE;
        if let Err(error) = registry.register(&mut client.stream, token_of(session), interest) {
            log::warning(format_args!("client {address} cannot be served: {error}"));
            return;
        }
        client.is_queued = true;
        self.clients.insert(session, client);
        self.queued.push(session);
        inputs.push_back(Input::ClientConnected { session, address: address.to_string(), local_address });
    }

    /// Keeps the socket of a client that was told why it is refused, so that the words reach it.
    pub(crate) fn linger(&mut self, now_us: u64, stream: TcpStream, seat: Option<Seat>) {
        // It may be gone already; then there is nothing to wait for, and the time is short.
        let _ = stream.shutdown(Shutdown::Write);
        if self.lingering.len() == LINGERING_MAX {
            self.lingering.pop_front();
        }
        self.lingering.push_back(Lingering { until_us: now_us + LINGER_US, _stream: stream, _seat: seat });
    }

    /// A socket reported something.
    pub(crate) fn on_event(&mut self, token: Token, ready: Ready) {
        let session = session_of(token);
        let Some(client) = self.clients.get_mut(&session) else { return };
        if ready.readable {
            client.on_readable(ready.at_end);
            if !client.is_queued {
                client.is_queued = true;
                self.queued.push(session);
            }
        }
        if ready.writable {
            self.dirty.push(session);
        }
    }

    /// Takes commands from those who have some, as far as the turn suffices. Who has some left from an earlier turn
    /// may have to wait for a later one, at the head of the queue; everybody else is served now.
    pub(crate) fn read(&mut self, now_us: u64, registry: &Registry, inputs: &mut VecDeque<Input>) {
        self.now_us = now_us;
        let queued = std::mem::take(&mut self.queued);
        let share = (COMMANDS_PER_TURN / queued.len().max(1)).max(COMMANDS_PER_SHARE_MIN);
        let mut left = COMMANDS_PER_TURN;
        for session in queued {
            let Some(client) = self.clients.get_mut(&session) else { continue };
            if left == 0 && client.has_backlog() {
                self.queued.push(session);
                continue;
            }
            client.is_queued = false;
            let share = if left > 0 { share } else { COMMANDS_OF_A_NEWCOMER };
            let mut commands = Vec::new();
            let result = client.read(&mut self.scratch, share, &mut commands);
            let is_turn = client.take_turn();
            // A session that goes on has as much to do as a share of commands.
            left = left.saturating_sub(if is_turn { share } else { commands.len() });
            if !commands.is_empty() {
                client.last_active_us = now_us;
            }
            if !commands.is_empty() || is_turn {
                inputs.push_back(Input::ClientCommands { session, commands });
            }
            if client.take_end() {
                inputs.push_back(Input::ClientEnded { session });
            }
            match result {
                Ok(Taken::Commands) => self.dirty.push(session),
                Ok(Taken::Broken(error)) => {
                    inputs.push_back(Input::ClientBroke { session, error: error.to_string() });
                }
                Ok(Taken::CrossProtocol) => {
                    let words = format_args!(
                        "client {} speaks HTTP to the port for Redis clients and is disconnected: perhaps a web \
                         page makes a browser of this network send commands",
                        client.address
                    );
                    self.complaints.warning(now_us, words);
                    self.remove(session, registry, inputs);
                }
                Err(error) => {
                    log::debug(format_args!("client {}: {error}", session.0));
                    self.remove(session, registry, inputs);
                }
            }
        }
    }

    /// The node answered. A client that does not read its answers is disconnected.
    pub(crate) fn reply(
        &mut self,
        session: SessionId,
        bytes: Vec<u8>,
        (answered, wants_turn): (u32, bool),
        registry: &Registry,
        inputs: &mut VecDeque<Input>,
    ) {
        let Some(client) = self.clients.get_mut(&session) else { return };
        match client
            .reply(bytes, answered, wants_turn)
            .and_then(|()| client.check_output(self.now_us, self.output_limits.normal))
        {
            Ok(()) => self.dirty.push(session),
            Err(_) => {
                log::warning(format_args!(
                    "client {} does not read its answers and is disconnected",
                    session.0
                ));
                self.remove(session, registry, inputs);
            }
        }
    }

    /// Something that a client subscribes to. One that does not read it is disconnected.
    pub(crate) fn push(
        &mut self,
        session: SessionId,
        bytes: &[u8],
        registry: &Registry,
        inputs: &mut VecDeque<Input>,
    ) {
        let Some(client) = self.clients.get_mut(&session) else { return };
        match client.push(self.now_us, bytes, self.output_limits.pubsub) {
            Ok(()) => self.dirty.push(session),
            Err(_) => {
                let words = format_args!(
                    "client {} does not read what it subscribes to and is disconnected",
                    client.address
                );
                self.complaints.warning(self.now_us, words);
                inputs.push_back(Input::Dropped(Dropped::Subscriber));
                self.remove(session, registry, inputs);
            }
        }
    }

    /// The node ended the connection.
    pub(crate) fn disconnect(&mut self, now_us: u64, session: SessionId) {
        if let Some(client) = self.clients.get_mut(&session) {
            client.close(now_us);
            self.dirty.push(session);
        }
    }

    /// From now on each client is ended as soon as it has the answers to what it has sent.
    pub(crate) fn drain(&mut self) {
        self.draining = true;
        for (&session, client) in &mut self.clients {
            // What it has sent may not have been reported yet.
            client.on_readable(false);
            if !client.is_queued {
                client.is_queued = true;
                self.queued.push(session);
            }
        }
    }

    /// Whether that has been done for all.
    pub(crate) fn are_drained(&self) -> bool {
        self.draining && self.clients.is_empty()
    }

    /// Ends every client that is left. Nobody is answered that nothing is executed any more: a client that is
    /// disconnected tries elsewhere, or again.
    pub(crate) fn end_all(&mut self, registry: &Registry, inputs: &mut VecDeque<Input>) {
        let mut sessions: Vec<SessionId> = self.clients.keys().copied().collect();
        sessions.sort_unstable();
        for session in sessions {
            self.remove(session, registry, inputs);
        }
    }

    /// Writes the answers of this turn, and ends the connections that are over.
    pub(crate) fn flush(&mut self, now_us: u64, registry: &Registry, inputs: &mut VecDeque<Input>) {
        let mut dirty = std::mem::take(&mut self.dirty);
        for session in dirty.drain(..) {
            let Some(client) = self.clients.get_mut(&session) else { continue };
            if client.may_write_later() {
                if !client.is_queued {
                    client.is_queued = true;
                    self.queued.push(session);
                }
                continue;
            }
            let fate = client.flush();
            if client.take_progress() {
                client.last_active_us = now_us;
            }
            match fate {
                Ok(Fate::Stays) if self.draining && client.has_all_answers() => {
                    self.remove(session, registry, inputs);
                }
                Ok(Fate::Stays) => {
                    if !client.is_queued && client.has_work() {
                        client.is_queued = true;
                        self.queued.push(session);
                    }
                }
                Ok(Fate::Lingers) => {
                    if let Some((stream, seat)) = self.remove(session, registry, inputs) {
                        self.linger(now_us, stream, Some(seat));
                    }
                }
                Ok(Fate::Gone) | Err(_) => {
                    self.remove(session, registry, inputs);
                }
            }
        }
        self.dirty = dirty;
    }

    /// Whether there is work that no event will announce.
    pub(crate) fn has_work(&self) -> bool {
        !self.queued.is_empty() || !self.dirty.is_empty()
    }

    /// Disconnects idle clients, and those that are over and do not read, and closes the sockets of refused ones.
    pub(crate) fn clean_up(&mut self, now_us: u64, registry: &Registry, inputs: &mut VecDeque<Input>) {
        while self.lingering.front().is_some_and(|lingering| lingering.until_us <= now_us) {
            self.lingering.pop_front();
        }
        self.end_unknown(now_us, registry, inputs);
        let is_late = |client: &Client| {
            let is_idle = self.timeout_us > 0
                && client.is_still()
                && now_us.saturating_sub(client.last_active_us) > self.timeout_us;
            is_idle || client.is_overdue(now_us)
        };
        let late: Vec<SessionId> =
            self.clients.iter().filter(|(_, client)| is_late(client)).map(|(&session, _)| session).collect();
        for session in late {
            self.remove(session, registry, inputs);
        }
    }

    /// Disconnects who has not shown in time that it is a client. There is nothing to say: who meant to would have.
    fn end_unknown(&mut self, now_us: u64, registry: &Registry, inputs: &mut VecDeque<Input>) {
        let is_late = |client: &Client| {
            !client.is_known() && now_us.saturating_sub(client.connected_us) > AUTHENTICATION_US
        };
        let late: Vec<(SessionId, SocketAddr)> = self
            .clients
            .iter()
            .filter(|(_, client)| is_late(client))
            .map(|(&session, client)| (session, client.address))
            .collect();
        for (session, address) in late {
            let words = format_args!(
                "client {address} has not authenticated in {} s and is disconnected",
                AUTHENTICATION_US / 1_000_000
            );
            self.complaints.warning(now_us, words);
            self.remove(session, registry, inputs);
        }
    }

    fn remove(
        &mut self,
        session: SessionId,
        registry: &Registry,
        inputs: &mut VecDeque<Input>,
    ) -> Option<(TcpStream, Seat)> {
        let (mut stream, seat) = self.clients.remove(&session)?.into_parts();
        // Closing the socket would do the same; a lingering one must not wake the core.
        let _ = registry.deregister(&mut stream);
        inputs.push_back(Input::ClientGone { session });
        Some((stream.into_socket(), seat))
    }
}

/// Tokens of clients are the even ones from here on; the pump gives the odd ones to peers.
const FIRST_TOKEN: usize = 1 << 10;

fn token_of(session: SessionId) -> Token {
    Token(FIRST_TOKEN + 2 * session.0 as usize)
}

fn session_of(token: Token) -> SessionId {
    SessionId(((token.0 - FIRST_TOKEN) / 2) as u64)
}

/// Whether an event belongs to a client.
pub(crate) fn owns(token: Token) -> bool {
    token.0 >= FIRST_TOKEN && token.0 % 2 == 0
}

#[cfg(test)]
mod tests;
