//! One connection of a client, as this server's gateway sees it.
//!
//! `client` handles packets of the client, `server` those of the local TCP stack, `exchange` what a request and its
//! response have reached, and `recovery` a connection that began on another server.

mod client;
mod exchange;
mod recovery;
mod server;

use crate::config::{Config, Rules};
use crate::isn;
use crate::limits::{
    BROKEN_US, IDLE_US_MAX, LINGER_US, OLD_SYN_BYTES_MAX, OPENING_US_MAX, RECOVERY_US_MAX, SCALE_MAX,
    SEGMENT_SIZE_DEFAULT, UNCONFIRMED_US_MAX, WINDOW_SHOWN_MIN,
};
use crate::mapping::Mapping;
use crate::output::{Now, Outbox, Side};
use crate::packet::{Endpoint, Flags, Options, Packet, Timestamps};
use crate::record::Path;
use crate::seq::Seq;
use crate::stamp::{Clock, Mark, Shift, Stamp, Table};
use crate::store::{Key, StoreOp, Ticket};
use exchange::Exchange;
use recovery::Connecting;
use std::collections::VecDeque;

/// What an input of a connection may use.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub now: Now,
    pub config: &'a Config,
    pub out: &'a mut Outbox,
}

#[derive(Debug)]
enum Stage {
    /// SYN was seen; the client has acknowledged nothing.
    Opening,
    /// The records of the connection are being read, because of this packet.
    LookingUp { ticket: Ticket, trigger: Packet },
    /// A connection to the local application is being opened.
    Connecting(Box<Connecting>),
    /// Packets flow in both directions.
    Open,
    /// The application failed; nothing flows until another server, or this one anew, takes over.
    Broken,
    /// To be removed.
    Over,
}

/// What becomes of a SYN between the ends of a known connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnSyn {
    /// The server's TCP judges it.
    Forward,
    /// It ends here.
    Ignore,
    /// It begins a new connection in place of this one.
    Replace,
}

#[derive(Debug)]
pub(crate) struct Connection {
    key: Key,
    /// The port of the local address that stands for the client, in a recovered connection.
    local: Option<u16>,
    stage: Stage,
    path: Path,
    /// Whether both ends use timestamps.
    stamped: bool,
    clock: Clock,
    /// The client's initial sequence number, if its SYN came here.
    client_first: Option<Seq>,
    /// Sequence number after all that was passed to the server.
    client_next: Seq,
    /// Sequence number after all that the client sent, further requests among it, which are not passed on yet.
    client_sent: Option<Seq>,
    client_window: u16,
    /// What the client's window is shifted by for a server whose TCP does not scale, after one whose TCP did.
    window_shift: u8,
    client_stamp: u32,
    /// Sequence numbers of byte 0 of the server's stream, as the client and as the server counts.
    view_first: Seq,
    server_first: Seq,
    /// Whether `view_first` is the one that every server derives.
    derived: bool,
    /// Offset in the server's stream after all that it sent, FIN included.
    server_next: u64,
    server_fin: Option<u64>,
    /// Sequence number to which the server acknowledged the client's stream.
    server_acked: Seq,
    server_window: u16,
    /// Offset in the client's stream to which the client acknowledged.
    acked: u64,
    /// What the client is not to see acknowledged beyond.
    floor: Option<Seq>,
    mapping: Mapping,
    exchange: Exchange,
    held: VecDeque<(Vec<u8>, Packet)>,
    /// The exchange whose record stands in the store.
    saved: Option<Seq>,
    client_closed: bool,
    /// The connection was passed through, and the server reset it.
    was_reset: bool,
    /// The connection was recovered, and its client has acknowledged nothing new: it may be a stranger's.
    unconfirmed: bool,
    /// The server's TCP answered SYN, so its packets belong to this connection.
    answered: bool,
    /// A SYN that does not belong to the connection while it opens: if the server answers it, it does.
    rival: Option<Box<Packet>>,
    active: Now,
}

impl Connection {
    /// A connection whose first packet is this SYN.
    pub fn of_syn(key: Key, syn: &Packet, now: Now, config: &Config) -> Self {
        let options = &syn.options;
        let mut connection = Self::unknown(key, now);
        connection.path = Path {
            segment_size: options.segment_size.unwrap_or(SEGMENT_SIZE_DEFAULT),
            window_scale: options.window_scale.map(|shift| shift.min(SCALE_MAX)),
            sack: options.sack_permitted,
        };
        connection.stamped = options.timestamps.is_some();
        if config.mode.stamps() && connection.stamped {
            let stamp = Stamp { mark: Mark::Setup, scale: connection.path.window_scale };
            connection.clock = Clock::Table(Box::new(Table::new(stamp)));
        }
        if config.mode.stores() || connection.stamped {
            connection.derived = true;
            let epoch = now.0 / config.epoch_us.max(1);
            connection.view_first = isn::initial(&config.cluster_key, key.client, key.service, epoch).plus(1);
        }
        connection.client_first = Some(syn.seq);
        connection.client_next = syn.seq.plus(1);
        connection.server_acked = connection.client_next;
        connection.exchange = Exchange::idle(connection.client_next);
        connection
    }

    /// A connection of which nothing is known: its first packet here is in the middle of it.
    pub fn unknown(key: Key, now: Now) -> Self {
        Self {
            key,
            local: None,
            stage: Stage::Opening,
            path: Path { segment_size: SEGMENT_SIZE_DEFAULT, window_scale: None, sack: false },
            stamped: false,
            clock: Clock::Shifted(Shift::default()),
            client_first: None,
            client_next: Seq(0),
            client_sent: None,
            client_window: 0,
            window_shift: 0,
            client_stamp: 0,
            view_first: Seq(0),
            server_first: Seq(0),
            derived: false,
            server_next: 0,
            server_fin: None,
            server_acked: Seq(0),
            server_window: u16::MAX,
            acked: 0,
            floor: None,
            mapping: Mapping::default(),
            exchange: Exchange::idle(Seq(0)),
            held: VecDeque::new(),
            saved: None,
            client_closed: false,
            was_reset: false,
            unconfirmed: false,
            answered: false,
            rival: None,
            active: now,
        }
    }

    /// The local port of a recovered connection.
    pub fn local(&self) -> Option<u16> {
        self.local
    }

    /// What becomes of a SYN between the ends of this connection. Anybody can send one, so it takes no connection away
    /// that is not over.
    pub fn on_syn(&mut self, syn: &Packet, context: &mut Context<'_>) -> OnSyn {
        // An old copy of the connection's own: a new connection of the same client begins elsewhere in the space of
        // sequence numbers.
        let is_past = (1..=OLD_SYN_BYTES_MAX).contains(&self.client_next.since(syn.seq));
        match self.stage {
            Stage::Opening => {
                if self.client_first == Some(syn.seq) {
                    self.active = context.now;
                } else {
                    self.rival = Some(Box::new(syn.clone()));
                }
                OnSyn::Forward
            }
            Stage::LookingUp { .. } | Stage::Connecting(_) | Stage::Broken => OnSyn::Ignore,
            Stage::Open if is_past => OnSyn::Ignore,
            Stage::Open if !self.is_closed(context.config.rules) && context.config.rules.check_places => {
                // A client that has forgotten the connection resets it upon this, and begins anew (RFC 5961).
                self.acknowledge_client(self.floor.unwrap_or(self.server_acked), context);
                OnSyn::Ignore
            }
            Stage::Open | Stage::Over => OnSyn::Replace,
        }
    }

    /// Whether nothing but SYN was seen of the client.
    pub fn is_opening(&self) -> bool {
        matches!(self.stage, Stage::Opening)
    }

    /// Whether the connection is being recovered, or was, and its client did not confirm it yet.
    pub fn is_recovering(&self) -> bool {
        match self.stage {
            Stage::LookingUp { .. } | Stage::Connecting(_) => true,
            Stage::Open => self.unconfirmed,
            Stage::Opening | Stage::Broken | Stage::Over => false,
        }
    }

    pub fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over)
    }

    /// Whether the connection has been silent for longer than its stage allows.
    pub fn is_expired(&self, now: Now, rules: Rules) -> bool {
        let limit = match self.stage {
            Stage::LookingUp { .. } | Stage::Connecting(_) => RECOVERY_US_MAX,
            Stage::Broken => BROKEN_US,
            Stage::Opening => OPENING_US_MAX,
            Stage::Open if self.is_closed(rules) => LINGER_US,
            Stage::Open if self.unconfirmed => UNCONFIRMED_US_MAX,
            Stage::Open | Stage::Over => IDLE_US_MAX,
        };
        now.0.saturating_sub(self.active.0) > limit
    }

    /// Ends the connection here: the server's side is reset, and a record that is no longer needed is deleted.
    pub fn expire(&mut self, context: &mut Context<'_>) {
        if self.has_server() {
            self.reset_server(context);
        }
        // A recovery that came to nothing leaves the record to the server that comes next. While the client may ask
        // again, the record of its last exchange proves where the next one begins.
        if matches!(self.stage, Stage::Open) && self.is_answered() && self.client_closed {
            self.delete_record(context);
        }
        self.stage = Stage::Over;
    }

    fn delete_record(&mut self, context: &mut Context<'_>) {
        if let Some(exchange) = self.saved.take() {
            context.out.store(StoreOp::Delete { key: self.key, exchange });
        }
    }

    /// Whether the client has all of the last response.
    fn is_answered(&self) -> bool {
        matches!(self.exchange, Exchange::Idle(_) | Exchange::Closing)
    }

    /// Whether both sides have said all, as far as this gateway can tell.
    fn is_closed(&self, rules: Rules) -> bool {
        match self.exchange {
            Exchange::Unprotected => {
                rules.forget_closed && (self.was_reset || (self.client_closed && self.is_fin_acknowledged()))
            }
            _ => self.client_closed && self.is_answered(),
        }
    }

    /// Whether the client has acknowledged the server's FIN.
    fn is_fin_acknowledged(&self) -> bool {
        self.server_fin.is_some_and(|fin| self.acked > self.mapping.view(fin))
    }

    /// The end that stands for the client on this machine.
    fn near_end(&self, config: &Config) -> Endpoint {
        match self.local {
            Some(port) => Endpoint { address: config.local_address, port },
            None => self.key.client,
        }
    }

    /// Sends the server a packet of the gateway's own, in the client's name.
    fn send_server(&self, seq: Seq, flags: Flags, payload: Vec<u8>, echo: u32, context: &mut Context<'_>) {
        let mut packet = Packet::acknowledgment(
            self.near_end(context.config),
            self.key.service,
            seq,
            self.server_ack(self.acked),
        );
        packet.flags = flags;
        packet.window = self.client_window;
        packet.payload = payload;
        packet.options.timestamps = self.stamped.then_some(Timestamps { value: self.client_stamp, echo });
        context.out.send(Side::Server, packet.build());
    }

    /// The acknowledgment of the server's stream that stands for the client's, never of more than was sent.
    fn server_ack(&self, view: u64) -> Seq {
        self.server_first.plus(self.mapping.acknowledged(view).min(self.server_next))
    }

    /// Whether the local TCP stack may still have the connection. One that nobody knows here any more would answer the
    /// next SYN between the same ends in its own terms.
    fn has_server(&self) -> bool {
        let is_held = match self.stage {
            Stage::Opening => self.answered,
            Stage::Open => !(self.was_reset || (self.client_closed && self.is_fin_acknowledged())),
            Stage::Connecting(_) => true,
            Stage::LookingUp { .. } | Stage::Broken | Stage::Over => false,
        };
        is_held || self.local.is_some()
    }

    /// Resets the connection of the local TCP stack, which the client does not notice. The stack believes a reset only
    /// at the number that it waits for (RFC 5961): which one that is depends on whether its last acknowledgment is
    /// under way, or the last packet that was passed on was lost.
    fn reset_server(&self, context: &mut Context<'_>) {
        let flags = Flags::RST.with(Flags::ACK);
        self.send_server(self.client_next, flags, Vec::new(), 0, context);
        if self.answered && self.server_acked != self.client_next {
            self.send_server(self.server_acked, flags, Vec::new(), 0, context);
        }
    }

    /// Acknowledges the client's stream with a packet of the gateway's own.
    fn acknowledge_client(&mut self, ack: Seq, context: &mut Context<'_>) {
        let seq = self.view_first.plus(self.acked);
        let mut packet = Packet::acknowledgment(self.key.service, self.key.client, seq, ack);
        packet.window = self.shown_window(self.server_window);
        if let Some(value) = self.stamped.then(|| self.clock.repeated()).flatten() {
            packet.options.timestamps = Some(Timestamps { value, echo: self.client_stamp });
        }
        context.out.send(Side::Client, packet.build());
    }

    /// A window of the client as the server understands it.
    fn shifted(&self, window: u16) -> u16 {
        u16::try_from(u32::from(window) << self.window_shift).unwrap_or(u16::MAX)
    }

    /// A window of the server as the client is shown it: a recovered connection has another server, whose scale the
    /// client does not know, and must have room for a request.
    fn shown_window(&self, window: u16) -> u16 {
        if self.local.is_some() { window.max(WINDOW_SHOWN_MIN) } else { window }
    }

    /// Follows what every packet of the client says about its side.
    fn observe_client(&mut self, packet: &Packet) {
        self.client_window = self.shifted(packet.window);
        if let Some(stamps) = packet.options.timestamps {
            self.client_stamp = stamps.value;
        }
    }
}

/// The options of a SYN in the client's name.
fn syn_options(path: Path, stamp: Option<u32>) -> Options {
    Options {
        segment_size: Some(path.segment_size),
        window_scale: path.window_scale,
        sack_permitted: path.sack,
        sacks: Vec::new(),
        timestamps: stamp.map(|value| Timestamps { value, echo: 0 }),
        others: Vec::new(),
    }
}
