//! One client's connection: bytes to commands, answers to bytes, and when it ends.
//!
//! The socket's bytes arrive in the order sent; commands leave in batches, a share a turn. A client that does not
//! read its
//! answers is not read either, nor does its session go on, and one that asked much waits for answers before it is
//! read on.
//! Before a password was given, commands must be few and short; the limit is lifted when an `AUTH` or `HELLO` that was
//! sent alone is answered without an error, and is not put back by `RESET`. What begins as the request of a web browser
//! is not read further: the lines that follow could be commands. Nothing that a client sends makes this panic.

use crate::bounds::{
    BUFFER_KEPT_BYTES, BYTES_PER_TURN_BEFORE_AUTH, CLOSING_US, COMMANDS_AHEAD_MIN, COMMANDS_BEFORE_AUTH_MAX,
    OUTPUT_BYTES_BEFORE_AUTH_MAX, READ_BYTES_BEFORE_AUTH, READ_BYTES_PER_TURN, WRITE_BYTES_MIN,
};
use crate::listener::{Guest, Seat};
use crate::transport::Transport;
use bytes::{Bytes, BytesMut};
use ensue_node::OutputLimit;
use ensue_resp::{ParseError, ParseLimits, Parser};
use ensue_types::{Args, limits};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::SocketAddr;

/// One connection.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) stream: Transport,
    pub(crate) address: SocketAddr,
    pub(crate) connected_us: u64,
    pub(crate) last_active_us: u64,
    /// It stands in the list of clients that have work without a new event.
    pub(crate) is_queued: bool,
    seat: Seat,
    input: BytesMut,
    parser: Parser,
    /// The buffer may hold a whole command that was not taken yet.
    unparsed: bool,
    output: Vec<u8>,
    written: usize,
    /// Since when more waits than what may wait for a while.
    over_soft_since_us: Option<u64>,
    in_flight: InFlight,
    /// As many may wait as its latest share of a turn allows.
    commands_max: usize,
    /// Its session has used up its turn and waits for the next one with commands that it has.
    wants_turn: bool,
    /// The socket may hold bytes that were not read yet.
    readable: bool,
    /// The socket reported an end or an error, which reading will show.
    at_end: bool,
    source: Source,
    /// It sends nothing any more, which its session has yet to learn.
    has_ended: bool,
    /// It is closed when what was written has left.
    closing: bool,
    /// At this time it is closed whatever has left.
    closes_at_us: u64,
    /// The socket has taken bytes since that was asked last.
    has_written: bool,
    gate: Gate,
}

/// Commands that wait for their answers, which come in their order.
#[derive(Debug, Default)]
struct InFlight {
    /// What each of them holds in memory.
    sizes: VecDeque<usize>,
    bytes: usize,
}

impl InFlight {
    /// Counts a command, and gives back what it holds.
    fn begin(&mut self, args: &Args) -> usize {
        let size = args.iter().map(|argument| size_of::<Bytes>() + argument.len()).sum();
        self.sizes.push_back(size);
        self.bytes += size;
        size
    }

    fn end(&mut self, answered: u32) {
        let answered = self.sizes.len().min(answered as usize);
        self.bytes -= self.sizes.drain(..answered).sum::<usize>();
    }

    fn is_empty(&self) -> bool {
        self.sizes.is_empty()
    }

    /// Whether as many wait as may.
    fn is_full(&self, commands_max: usize) -> bool {
        self.sizes.len() >= commands_max || self.bytes >= limits::COMMAND_BYTES_IN_FLIGHT_MAX
    }
}

/// What may still come from the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Open,
    /// It sends nothing more but may still read answers.
    HalfClosed,
    /// Its bytes were no protocol; nothing more is read.
    Broke,
}

/// Whether the limits before authentication hold.
#[derive(Debug)]
enum Gate {
    Open,
    Closed,
    /// This command may open the gate and is sent when everything before it was answered.
    Held(Args),
    /// That command was sent, and its answer decides.
    Asked,
}

/// What became of a client in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Stays,
    /// It can be forgotten at once.
    Gone,
    /// It was told why it is closed; the socket is kept until it had time to read that.
    Lingers,
}

/// What reading from a client came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    Commands,
    /// What followed was no Redis protocol.
    Broken(ParseError),
    /// What followed was a request of a web browser.
    CrossProtocol,
}

impl Client {
    pub(crate) fn new(now_us: u64, guest: Guest, needs_password: bool) -> Client {
        let Guest { stream, address, seat, .. } = guest;
        let (parse_limits, gate) = match needs_password {
            true => (ParseLimits::before_auth(), Gate::Closed),
            false => (ParseLimits::default(), Gate::Open),
        };
        Client {
            stream,
            address,
            connected_us: now_us,
            last_active_us: now_us,
            is_queued: false,
            seat,
            input: BytesMut::new(),
            parser: Parser::new(parse_limits),
            unparsed: false,
            output: Vec::new(),
            written: 0,
            over_soft_since_us: None,
            in_flight: InFlight::default(),
            commands_max: COMMANDS_BEFORE_AUTH_MAX,
            wants_turn: false,
            readable: true,
            at_end: false,
            source: Source::Open,
            has_ended: false,
            closing: false,
            closes_at_us: u64::MAX,
            has_written: false,
            gate,
        }
    }

    pub(crate) fn on_readable(&mut self, at_end: bool) {
        self.readable = true;
        self.at_end |= at_end;
    }

    /// Takes what the socket and the buffer hold, as far as its share of the turn and the bounds allow. An error of
    /// the system
    /// ends the connection.
    pub(crate) fn read(
        &mut self,
        scratch: &mut [u8],
        share: usize,
        commands: &mut Vec<Args>,
    ) -> io::Result<Taken> {
        let (chunk, mut budget) = match self.is_authenticated() {
            true => (scratch.len(), READ_BYTES_PER_TURN),
            false => (READ_BYTES_BEFORE_AUTH.min(scratch.len()), BYTES_PER_TURN_BEFORE_AUTH),
        };
        self.commands_max = match self.is_authenticated() {
            true => (2 * share).clamp(COMMANDS_AHEAD_MIN, limits::COMMANDS_IN_FLIGHT_MAX),
            false => COMMANDS_BEFORE_AUTH_MAX,
        };
        let (scratch, bytes_max) = (&mut scratch[..chunk], budget);
        loop {
            match self.parse(share, bytes_max, commands) {
                Ok(false) => {}
                Ok(true) => return Ok(self.break_off(Taken::CrossProtocol)),
                Err(error) => return Ok(self.break_off(Taken::Broken(error))),
            }
            // What a half-closed socket reports is read too: it may be an error, and is reported but once.
            let may_read = self.readable && self.source != Source::Broke && !self.closing;
            if budget == 0 || self.unparsed || self.is_paused() || !may_read {
                return Ok(Taken::Commands);
            }
            match self.stream.read(scratch) {
                Ok(0) => {
                    // A socket whose other side has ended reads as ended, too, when it is reset later.
                    if let Some(error) = self.stream.socket().take_error()? {
                        return Err(error);
                    }
                    self.readable = false;
                    self.has_ended |= self.source == Source::Open;
                    self.source = Source::HalfClosed;
                }
                Ok(length) => {
                    self.input.extend_from_slice(&scratch[..length]);
                    self.unparsed = true;
                    // Whatever comes after a read that emptied the socket is a new event.
                    self.readable = self.at_end || !self.stream.has_emptied(length, scratch.len());
                    budget = budget.saturating_sub(length);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.readable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn break_off(&mut self, how: Taken) -> Taken {
        self.source = Source::Broke;
        self.input = BytesMut::new();
        self.unparsed = false;
        how
    }

    /// Takes commands from the buffer; true if the next one is of a web browser.
    fn parse(
        &mut self,
        share: usize,
        bytes_max: usize,
        commands: &mut Vec<Args>,
    ) -> Result<bool, ParseError> {
        let mut bytes = 0;
        while self.unparsed
            && commands.len() < share
            && bytes < bytes_max
            && !self.is_paused()
            && matches!(self.gate, Gate::Open | Gate::Closed)
        {
            let Some(args) = self.parser.next(&mut self.input)? else {
                self.unparsed = false;
                self.give_back_input();
                break;
            };
            if ensue_resp::is_cross_protocol(&args) {
                return Ok(true);
            }
            if matches!(self.gate, Gate::Closed) && may_open_gate(&args) {
                self.gate = Gate::Held(args);
                break;
            }
            bytes += self.in_flight.begin(&args);
            commands.push(args);
        }
        if self.in_flight.is_empty() && matches!(self.gate, Gate::Held(_)) {
            if let Gate::Held(args) = std::mem::replace(&mut self.gate, Gate::Asked) {
                self.in_flight.begin(&args);
                commands.push(args);
            }
        }
        Ok(false)
    }

    /// Whether it sends nothing any more and its session has not learnt it.
    pub(crate) fn take_end(&mut self) -> bool {
        std::mem::take(&mut self.has_ended)
    }

    /// Whether its session waits for a turn, which it has now: its client has read enough.
    pub(crate) fn take_turn(&mut self) -> bool {
        !self.is_unread() && std::mem::take(&mut self.wants_turn)
    }

    fn give_back_input(&mut self) {
        if self.input.is_empty() && self.input.capacity() > BUFFER_KEPT_BYTES {
            self.input = BytesMut::new();
        }
    }

    /// Answers to some of its commands; the session may want another turn for the rest. An error means that it has
    /// not read for
    /// too long.
    pub(crate) fn reply(
        &mut self,
        bytes: Vec<u8>,
        answered: u32,
        wants_turn: bool,
    ) -> Result<(), OutputFull> {
        self.in_flight.end(answered);
        self.wants_turn = wants_turn;
        if matches!(self.gate, Gate::Asked) && self.in_flight.is_empty() {
            if bytes.first() == Some(&b'-') {
                self.gate = Gate::Closed;
            } else {
                self.lift_limits();
            }
        }
        if self.output.is_empty() {
            self.output = bytes;
        } else {
            self.output.extend_from_slice(&bytes);
        }
        if self.output_waiting() > limits::CLIENT_OUTPUT_BYTES_MAX { Err(OutputFull) } else { Ok(()) }
    }

    /// It needs no password any more. What was asked about one decides nothing then.
    pub(crate) fn open_gate(&mut self) {
        if matches!(self.gate, Gate::Closed) {
            self.lift_limits();
        }
    }

    fn lift_limits(&mut self) {
        self.gate = Gate::Open;
        self.commands_max = COMMANDS_AHEAD_MIN;
        self.parser.set_limits(ParseLimits::default());
    }

    /// Bytes that answer no command. An error means that it has not read for too long.
    pub(crate) fn push(&mut self, now_us: u64, bytes: &[u8], limit: OutputLimit) -> Result<(), OutputFull> {
        self.output.extend_from_slice(bytes);
        self.check_output(now_us, limit)
    }

    /// An error means that more waits for it than may.
    pub(crate) fn check_output(&mut self, now_us: u64, limit: OutputLimit) -> Result<(), OutputFull> {
        let waiting = self.output_waiting() as u64;
        if waiting <= limit.soft {
            self.over_soft_since_us = None;
        }
        let is_over =
            |since_us: u64| now_us.saturating_sub(since_us) > limit.soft_s.saturating_mul(1_000_000);
        let is_long =
            limit.soft > 0 && waiting > limit.soft && is_over(*self.over_soft_since_us.get_or_insert(now_us));
        let is_full = limit.hard > 0 && waiting > limit.hard;
        if is_full || is_long { Err(OutputFull) } else { Ok(()) }
    }

    /// Nothing more is read, and the connection ends when the answers have left, or when they have had the time to.
    pub(crate) fn close(&mut self, now_us: u64) {
        self.closing = true;
        self.closes_at_us = self.closes_at_us.min(now_us.saturating_add(CLOSING_US));
        self.unparsed = false;
        self.wants_turn = false;
        self.in_flight = InFlight::default();
    }

    /// Whether its answers may wait for those of its next turn, which come soon: fewer and larger writes.
    pub(crate) fn may_write_later(&self) -> bool {
        self.output_waiting() < WRITE_BYTES_MIN && self.has_backlog() && self.has_work()
    }

    /// Whether its latest turn did not suffice: it may have a command left, or its session has.
    pub(crate) fn has_backlog(&self) -> bool {
        self.unparsed || self.wants_turn
    }

    /// Writes what the socket takes, and says what becomes of the client.
    pub(crate) fn flush(&mut self) -> io::Result<Fate> {
        while self.written < self.output.len() {
            match self.stream.write(&self.output[self.written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(length) => {
                    self.written += length;
                    self.has_written = true;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.stream.flush()?;
        self.give_back_output();
        let waits = !self.in_flight.is_empty() || self.unparsed || matches!(self.gate, Gate::Held(_));
        Ok(match self.source {
            _ if self.output_waiting() > 0 || self.stream.has_unsent() => Fate::Stays,
            Source::Broke if self.closing => Fate::Lingers,
            Source::HalfClosed if !waits => Fate::Gone,
            _ if self.closing => Fate::Gone,
            _ => Fate::Stays,
        })
    }

    fn give_back_output(&mut self) {
        if self.written == self.output.len() {
            self.written = 0;
            self.output.clear();
            if self.output.capacity() > BUFFER_KEPT_BYTES {
                self.output = Vec::new();
            }
        } else if self.written > BUFFER_KEPT_BYTES && self.written > self.output.len() / 2 {
            self.output.drain(..self.written);
            self.written = 0;
        }
    }

    /// Whether it has something to do although its socket reports nothing new.
    pub(crate) fn has_work(&self) -> bool {
        if self.closing || self.is_unread() {
            return false;
        }
        if self.wants_turn {
            return true;
        }
        if self.in_flight.is_full(self.commands_max) || self.source == Source::Broke {
            return false;
        }
        match self.gate {
            Gate::Asked => false,
            Gate::Held(_) => self.in_flight.is_empty(),
            Gate::Open | Gate::Closed => self.unparsed || self.readable,
        }
    }

    /// The socket and the seat, when the client has no part in them any more.
    pub(crate) fn into_parts(self) -> (Transport, Seat) {
        (self.stream, self.seat)
    }

    fn is_paused(&self) -> bool {
        self.in_flight.is_full(self.commands_max) || self.is_unread()
    }

    /// Whether it must read answers before it may ask more, and before its session may go on.
    fn is_unread(&self) -> bool {
        let bytes_max = match self.is_authenticated() {
            true => limits::CLIENT_OUTPUT_PAUSE_BYTES,
            false => OUTPUT_BYTES_BEFORE_AUTH_MAX,
        };
        self.output_waiting() > bytes_max
    }

    /// Whether it has shown by now that it is a client: the keys of its connection are agreed on where it is
    /// encrypted, and it has the password where one is set.
    pub(crate) fn is_known(&self) -> bool {
        self.is_authenticated() && !self.stream.is_handshaking()
    }

    /// Whether it has the password, where one is set.
    pub(crate) fn is_authenticated(&self) -> bool {
        matches!(self.gate, Gate::Open)
    }

    fn is_idle(&self) -> bool {
        self.in_flight.is_empty() && !self.has_output()
    }

    fn has_output(&self) -> bool {
        self.output_waiting() > 0 || self.stream.has_unsent()
    }

    /// Whether nothing happens: no command is answered, and whatever waits to leave is not taken.
    pub(crate) fn is_still(&self) -> bool {
        self.in_flight.is_empty() || self.has_output()
    }

    /// Whether the socket has taken bytes since this was asked last.
    pub(crate) fn take_progress(&mut self) -> bool {
        std::mem::take(&mut self.has_written)
    }

    /// Whether it is over, and its answers have had the time to leave.
    pub(crate) fn is_overdue(&self, now_us: u64) -> bool {
        now_us >= self.closes_at_us
    }

    /// Whether everything that it has sent, as far as it was a whole command, was answered and has left.
    pub(crate) fn has_all_answers(&self) -> bool {
        let nothing_sent = !self.readable && !self.unparsed && self.input.is_empty();
        nothing_sent && !self.parser.is_amid_command() && !self.wants_turn && self.is_idle()
    }

    fn output_waiting(&self) -> usize {
        self.output.len() - self.written
    }
}

/// A client did not read its answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutputFull;

fn may_open_gate(args: &Args) -> bool {
    args.first().is_some_and(|name| name.eq_ignore_ascii_case(b"auth") || name.eq_ignore_ascii_case(b"hello"))
}

#[cfg(test)]
mod tests;
