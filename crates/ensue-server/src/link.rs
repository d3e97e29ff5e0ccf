//! One connection to a core of another node: a handshake, then frames both ways, in order.
//!
//! Frames to send are encoded at once and wait here until their time has come (a delay set by the shaper) and the
//! socket takes them. Whatever is wrong with a peer's bytes ends the connection; the reason is a [`LinkError`]. It
//! does not dial again and does not know which links the node needs: `peers` does.

use crate::bounds::{BUFFER_KEPT_BYTES, PEER_OUTPUT_BYTES_MAX, READ_BYTES_PER_TURN};
use crate::tls::NotNamed;
use crate::transport::Transport;
use bytes::BytesMut;
use ensue_node::link_rule::NotTheirs;
use ensue_wire::{
    CoreName, Envelope, FrameReader, FrameWriter, Handshake, HandshakeError, Identity, Joined, NONCE_BYTES,
    Speaker, WireError,
};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use thiserror::Error;

/// Why a connection ended.
#[derive(Debug, Error)]
pub(crate) enum LinkError {
    #[error("the connection was closed")]
    Closed,
    #[error("{0}")]
    Machine(io::Error),
    #[error("{0}")]
    Handshake(#[from] HandshakeError),
    #[error("{0}")]
    NotNamed(#[from] NotNamed),
    #[error(
        "'{0}' cannot be a name in a certificate: names of clusters and datacenters begin and end with a letter or digit"
    )]
    NoServerName(String),
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    #[error("{0} is not ours to be dialled by: compare the `node` lines of both sides")]
    NotExpected(Speaker),
    #[error("{0}")]
    Wire(#[from] WireError),
    #[error("it sent what is not its to send: {0}")]
    NotTheirs(#[from] NotTheirs),
    #[error(
        "it is another machine, and without a `cluster-secret` or `tls-cluster` only this one's peers are believed \
         (`peer-unauthenticated yes` believes anybody)"
    )]
    NoSecret,
    #[error("it closed the connection during the handshake; if it refuses us, its log says why")]
    Parted,
    #[error("it did not finish the handshake in time")]
    Slow,
    #[error("it proved nothing, and others wait")]
    GaveWay,
    #[error("it does not take what is sent to it")]
    OutputFull,
    #[error("it connected again")]
    Replaced,
    #[error("the link is cut")]
    Cut,
}

impl From<io::Error> for LinkError {
    /// An error of TLS arrives as one of the socket.
    fn from(error: io::Error) -> LinkError {
        match error.downcast::<rustls::Error>() {
            Ok(error) => LinkError::Tls(error),
            Err(error) => LinkError::Machine(error),
        }
    }
}

impl LinkError {
    /// Whether somebody has to change something before such a link comes up.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(
            self,
            LinkError::Handshake(_)
                | LinkError::NotExpected(_)
                | LinkError::NotNamed(_)
                | LinkError::NoServerName(_)
                | LinkError::Tls(_)
                | LinkError::Wire(_)
                | LinkError::NotTheirs(_)
                | LinkError::NoSecret
        )
    }

    /// Whether whoever is refused has proved who it is, as far as anybody must: nobody else can make such lines in a
    /// log.
    pub(crate) fn is_of_a_proven_peer(&self) -> bool {
        matches!(self, LinkError::Handshake(HandshakeError::OtherSettings(_)) | LinkError::NotExpected(_))
    }
}

/// How far the connection has come.
#[derive(Debug)]
pub(crate) enum Phase {
    /// We dialled and wait until the socket is connected.
    Connecting,
    /// Connected; the peer has not proved yet who it is.
    Greeting(Box<Handshake>),
    Up(Box<Frames>),
}

/// Both directions of a link that is up.
#[derive(Debug)]
pub(crate) struct Frames {
    reader: FrameReader,
    writer: FrameWriter,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) stream: Transport,
    pub(crate) phase: Phase,
    /// Known from the start where we dialled, otherwise after the handshake.
    pub(crate) peer: Option<CoreName>,
    pub(crate) began_us: u64,
    /// It stands in the list of links that have bytes to read.
    pub(crate) is_queued: bool,
    input: BytesMut,
    output: Vec<u8>,
    /// Bytes of the output that the socket has taken.
    written: usize,
    /// Bytes of the output whose time has come.
    released: usize,
    /// The frames behind them: when each may leave, and its length.
    held: VecDeque<(u64, usize)>,
    readable: bool,
    /// The peer sends nothing more; what it sent before is still taken.
    closed: bool,
}

impl Link {
    pub(crate) fn new(stream: Transport, phase: Phase, peer: Option<CoreName>, now_us: u64) -> Link {
        Link {
            stream,
            phase,
            peer,
            began_us: now_us,
            is_queued: false,
            input: BytesMut::new(),
            output: Vec::new(),
            written: 0,
            released: 0,
            held: VecDeque::new(),
            readable: true,
            closed: false,
        }
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        matches!(self.stream, Transport::Tls(_))
    }

    pub(crate) fn is_up(&self) -> bool {
        matches!(self.phase, Phase::Up(_))
    }

    pub(crate) fn on_readable(&mut self) {
        self.readable = true;
    }

    /// Whether the dialled socket is connected by now.
    pub(crate) fn is_connected(&self) -> io::Result<bool> {
        if let Some(error) = self.stream.socket().take_error()? {
            return Err(error);
        }
        match self.stream.peer_addr() {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Begins the handshake of a connection that we dialled; it is never delayed.
    pub(crate) fn greet(&mut self, identity: &Identity, nonce: [u8; NONCE_BYTES], to: CoreName) {
        let handshake = Handshake::dial(identity, nonce, to, &mut self.output);
        self.released = self.output.len();
        self.phase = Phase::Greeting(Box::new(handshake));
    }

    /// Who a peer that has proved nothing yet says it is.
    pub(crate) fn claimed(&self) -> Option<CoreName> {
        match &self.phase {
            Phase::Greeting(handshake) => handshake.claimed(),
            _ => None,
        }
    }

    /// Takes the next steps of the handshake that have arrived; says who the peer is when it has proved it.
    pub(crate) fn shake_hands(&mut self, identity: &Identity) -> Result<Option<CoreName>, LinkError> {
        let Phase::Greeting(handshake) = &mut self.phase else { return Ok(None) };
        let result = handshake.advance(identity, &mut self.input, &mut self.output);
        self.released = self.output.len();
        let Some(Joined { peer, reader, writer, .. }) = result? else { return Ok(None) };
        self.phase = Phase::Up(Box::new(Frames { reader, writer }));
        Ok(Some(peer))
    }

    /// Bytes that have not left.
    pub(crate) fn waiting(&self) -> usize {
        self.output.len() - self.written
    }

    /// Encodes a message, to leave after the delay and after everything before it.
    pub(crate) fn send(&mut self, envelope: &Envelope, now_us: u64, delay_us: u64) -> Result<(), LinkError> {
        let Phase::Up(frames) = &mut self.phase else { return Ok(()) };
        let before = self.output.len();
        frames.writer.write_envelope(envelope, &mut self.output)?;
        let length = self.output.len() - before;
        let due_us = (now_us + delay_us).max(self.held.back().map_or(0, |&(due_us, _)| due_us));
        if due_us <= now_us && self.held.is_empty() {
            self.released += length;
        } else {
            self.held.push_back((due_us, length));
        }
        if self.output.len() - self.written > PEER_OUTPUT_BYTES_MAX {
            return Err(LinkError::OutputFull);
        }
        Ok(())
    }

    /// When the next frame that is held back may leave.
    pub(crate) fn next_us(&self) -> Option<u64> {
        self.held.front().map(|&(due_us, _)| due_us)
    }

    /// Writes what the socket takes of the frames whose time has come.
    pub(crate) fn flush(&mut self, now_us: u64) -> Result<(), LinkError> {
        while let Some(&(due_us, length)) = self.held.front() {
            if due_us > now_us {
                break;
            }
            self.released += length;
            self.held.pop_front();
        }
        while self.written < self.released {
            match self.stream.write(&self.output[self.written..self.released]) {
                Ok(0) => return Err(LinkError::Closed),
                Ok(length) => self.written += length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.stream.flush()?;
        self.give_back_output();
        Ok(())
    }

    fn give_back_output(&mut self) {
        if self.written == self.output.len() {
            self.output.clear();
            if self.output.capacity() > BUFFER_KEPT_BYTES {
                self.output = Vec::new();
            }
        } else if self.written > BUFFER_KEPT_BYTES && self.written > self.output.len() / 2 {
            self.output.drain(..self.written);
        } else {
            return;
        }
        self.released -= self.written;
        self.written = 0;
    }

    /// Reads what the socket holds, within the budget of a turn. True if there may be more.
    pub(crate) fn fill(&mut self, scratch: &mut [u8]) -> Result<bool, LinkError> {
        let mut budget = READ_BYTES_PER_TURN;
        while self.readable && budget > 0 {
            match self.stream.read(scratch) {
                Ok(0) => {
                    self.readable = false;
                    self.closed = true;
                }
                Ok(length) => {
                    self.input.extend_from_slice(&scratch[..length]);
                    budget = budget.saturating_sub(length);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.readable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.readable)
    }

    /// Whether the peer has closed its side.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// The next message that has arrived whole.
    pub(crate) fn next_message(&mut self) -> Result<Option<Envelope>, LinkError> {
        let Phase::Up(frames) = &mut self.phase else { return Ok(None) };
        match frames.reader.next(&mut self.input)? {
            Some(body) => Ok(Some(ensue_wire::decode(&body)?)),
            None => Ok(None),
        }
    }
}
