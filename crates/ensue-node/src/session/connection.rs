//! One client connection: what it has asked, what it has chosen, and what it remembers.
//!
//! Data with small steps on it. What happens to it is decided in `turn` and in the exchanges.

use super::exchange::Exchange;
use super::multi::Multi;
use super::write_marks::WriteMarks;
use bytes::Bytes;
use ensue_resp::ProtocolVersion;
use ensue_types::{Args, Context, KeyspaceId, Now, SessionId};
use std::collections::VecDeque;

/// Whether a connection still takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    Open,
    /// Told to disconnect; nothing more is read from it or written to it.
    Closing,
    /// The client left; what it asked goes on, unanswered.
    Gone,
}

/// The client's commands that the present exchange will answer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Asked {
    pub(super) count: usize,
    /// Which of them may have changed something by now.
    pub(super) writes: WriteMarks,
}

/// What a session has used of its turn.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TurnUsed {
    /// Bytes of answers that have left.
    pub(super) bytes: usize,
    /// A partition, or the kind of command, says that it was enough.
    pub(super) up: bool,
    /// Whoever gives turns knows that it waits for the next one.
    pub(super) told: bool,
}

/// A client connection.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) address: String,
    pub(super) local_address: String,
    pub(super) connected_us: u64,
    pub(super) active_us: u64,
    pub(super) name: Bytes,
    pub(super) library_name: Bytes,
    pub(super) library_version: Bytes,
    /// The name of the latest command, for `CLIENT LIST`.
    pub(super) latest: &'static str,
    pub(super) life: Life,

    pub(super) version: ProtocolVersion,
    pub(super) authenticated: bool,
    pub(super) keyspace: KeyspaceId,
    pub(super) multi: Option<Multi>,
    /// What it remembers, one a keyspace.
    pub(super) contexts: Vec<Context>,
    /// The name of the context that it shares with other connections.
    pub(super) shared: Option<Bytes>,
    /// The shared context was fetched for the step that comes next.
    pub(super) fresh: bool,

    pub(super) queue: VecDeque<Args>,
    pub(super) turn: TurnUsed,
    /// The error that follows the answers to what was asked before the framing was lost.
    pub(super) broke: Option<String>,
    pub(super) exchange: Exchange,
    pub(super) asked: Asked,
    /// Sequences of the present exchange: this one and as many as it has shares.
    pub(super) first_sequence: u64,
    pub(super) next_sequence: u64,
    /// When the present exchange is given up.
    pub(super) deadline_us: Option<u64>,
    /// The entry of this session among the timers.
    pub(super) watched_us: Option<u64>,

    pub(super) bytes: Vec<u8>,
    pub(super) answered: u32,
}

impl Session {
    pub(super) fn new(
        now: Now,
        id: SessionId,
        addresses: [String; 2],
        keyspaces: usize,
        authenticated: bool,
    ) -> Session {
        let [address, local_address] = addresses;
        Session {
            id,
            address,
            local_address,
            connected_us: now.monotonic_us,
            active_us: now.monotonic_us,
            name: Bytes::new(),
            library_name: Bytes::new(),
            library_version: Bytes::new(),
            latest: "NULL",
            life: Life::Open,
            version: ProtocolVersion::default(),
            authenticated,
            keyspace: KeyspaceId::default(),
            multi: None,
            contexts: vec![Context::default(); keyspaces],
            shared: None,
            fresh: false,
            queue: VecDeque::new(),
            turn: TurnUsed::default(),
            broke: None,
            exchange: Exchange::None,
            asked: Asked::default(),
            first_sequence: 0,
            next_sequence: 0,
            deadline_us: None,
            watched_us: None,
            bytes: Vec::new(),
            answered: 0,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        matches!(self.exchange, Exchange::None)
    }

    /// Whether others have their turn before it goes on. Nobody gives one to a client that is gone, whose answers go
    /// nowhere.
    pub(super) fn has_used_its_turn(&self, answer_bytes_max: usize) -> bool {
        self.life == Life::Open && (self.turn.up || self.turn.bytes + self.bytes.len() >= answer_bytes_max)
    }

    /// Whether nothing more will come of it.
    pub(super) fn is_finished(&self) -> bool {
        self.life == Life::Gone && self.is_idle() && self.queue.is_empty()
    }

    pub(super) fn context(&self) -> &Context {
        &self.contexts[usize::from(self.keyspace.0)]
    }

    pub(super) fn context_mut(&mut self) -> &mut Context {
        &mut self.contexts[usize::from(self.keyspace.0)]
    }

    /// Back to the first state of a connection: `RESET`.
    pub(super) fn reset(&mut self, authenticated: bool) {
        self.multi = None;
        self.keyspace = KeyspaceId::default();
        self.version = ProtocolVersion::default();
        self.name = Bytes::new();
        self.authenticated = authenticated;
        self.shared = None;
        self.contexts.fill(Context::default());
    }
}
