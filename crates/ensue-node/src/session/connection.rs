//! One client connection: what it has asked, what it has chosen, and what it remembers, each kept by its part.
//!
//! What happens to it is decided in `turn`.

use super::admin::client::{Activity, Client};
use super::audited::Audited;
use super::causal::shared::SharedContext;
use super::channels::{Channels, NAMED};
use super::commands::queue::Queue;
use super::contexts::Contexts;
use super::exchange::{Exchange, Then};
use super::failure::UNANSWERED;
use super::homes;
use super::reply_buffer::ReplyBuffer;
use super::requests::Requests;
use super::timers::Timers;
use super::transactions::exec::Exec;
use super::transactions::multi::Multi;
use super::transactions::watch::Watched;
use crate::statistics::Statistics;
use bytes::Bytes;
use ensue_acl::{Channel, User, Users};
use ensue_protocol::Protocol;
use ensue_resp::{CommandSpec, ProtocolVersion};
use ensue_types::{Args, Context, KeyspaceId, Now, Reply, SessionId};
use ensue_wire::{ChannelKind, HomeOutcome, HomeRequest};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// Whether a connection still takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lifecycle {
    Open,
    /// The shell was asked to disconnect it; nothing more is read from it or written to it.
    Closing,
    /// The client left; what it asked goes on, unanswered.
    Gone,
    /// Who asks is no client of this datacenter, and has sent all that it asks; there is no connection here.
    Elsewhere,
}

/// A client connection: what a step may use of it, and the rest.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) contexts: Contexts,
    pub(super) requests: Requests,
    pub(super) parts: Parts,
}

/// What the conductor gives to the parts, each its own.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    pub(super) lifecycle: Lifecycle,
    pub(super) client: Client,
    pub(super) queue: Queue,
    pub(super) multi: Option<Multi>,
    pub(super) watched: Watched,
    /// An EXEC of several steps that has not ended.
    pub(super) exec: Option<Exec>,
    pub(super) shared: SharedContext,
    pub(super) exchange: Exchange,
    pub(super) then: Then,
    pub(super) replies: ReplyBuffer,
    /// It subscribes to something and speaks RESP2: nothing but subscribing goes on.
    pub(super) restricted: bool,
    /// Its client sends nothing any more.
    pub(super) has_ended: bool,
    /// A partition says that its next command writes nothing, so that a pause of writes does not hold it back.
    pub(super) passes_pause: bool,
    /// It came by another door than clients do, and asks once.
    pub(super) visits: bool,
    /// Commands that have no answer yet, of those that the session counts.
    pub(super) counted: VecDeque<Counted>,
    /// What the scripts of the present exchange publish when it has its answers.
    pub(super) published: Vec<Args>,
    /// Messages that it has published and receives itself, behind the answer of the command that did.
    pub(super) own_messages: Vec<Bytes>,
}

/// A command that the session counts when it has its answer.
#[derive(Clone)]
pub(super) struct Counted {
    pub(super) spec: &'static CommandSpec,
    pub(super) subcommand: Option<&'static str>,
    /// Of an EXEC, the commands that it executes.
    pub(super) inner: Vec<&'static CommandSpec>,
    /// What is to be recorded of it, or of the commands of an EXEC.
    pub(super) audited: Vec<Audited>,
}

impl fmt::Debug for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.spec.name)
    }
}

impl Counted {
    pub(super) fn new(spec: &'static CommandSpec) -> Counted {
        Counted { spec, subcommand: None, inner: Vec::new(), audited: Vec::new() }
    }

    /// Counts it; what is to be recorded comes back.
    pub(super) fn count(self, statistics: &mut Statistics, reply: &Reply) -> Vec<Audited> {
        statistics.count(self.spec, self.subcommand, reply.is_error());
        if let Reply::Array(replies) = reply {
            for (spec, reply) in self.inner.iter().zip(replies) {
                statistics.count(spec, None, reply.is_error());
            }
        }
        self.audited
    }
}

impl Parts {
    /// An answer is written: what was published on the way to it follows.
    pub(super) fn push_own_messages(&mut self) {
        for bytes in std::mem::take(&mut self.own_messages) {
            self.replies.push_bytes(&bytes);
        }
    }

    /// A MULTI ends, and with it what its session watches. A session that is in none watches on.
    pub(super) fn end_multi(&mut self) {
        if self.multi.take().is_some() {
            self.watched.clear();
        }
    }
}

impl Session {
    pub(super) fn new(
        now: Now,
        id: SessionId,
        addresses: [String; 2],
        keyspaces: usize,
        user: Option<Arc<User>>,
    ) -> Session {
        let parts = Parts {
            lifecycle: Lifecycle::Open,
            client: Client::new(now, id, addresses, user),
            queue: Queue::default(),
            multi: None,
            watched: Watched::default(),
            exec: None,
            shared: SharedContext::default(),
            exchange: Exchange::None,
            then: Then::default(),
            replies: ReplyBuffer::default(),
            restricted: false,
            has_ended: false,
            passes_pause: false,
            visits: false,
            counted: VecDeque::new(),
            published: Vec::new(),
            own_messages: Vec::new(),
        };
        Session { contexts: Contexts::new(keyspaces), requests: Requests::new(id), parts }
    }

    /// A session that executes what one of another datacenter has asked for, when its past is visible here.
    pub(super) fn of_a_request(
        now: Now,
        id: SessionId,
        keyspaces: usize,
        protocol: &dyn Protocol,
        request: &HomeRequest,
        everything: Arc<User>,
    ) -> Session {
        let nowhere = [String::new(), String::new()];
        let mut session = Session::new(now, id, nowhere, keyspaces, Some(everything));
        session.parts.lifecycle = Lifecycle::Elsewhere;
        session.parts.replies = ReplyBuffer::keeping();
        session.requests.wait_at_most(request.waits_ms);
        session.contexts.select(request.keyspace);
        if protocol.capabilities().causality {
            session.contexts.await_later(protocol, request.keyspace, request.context.clone());
        }
        session
    }

    /// A session of somebody who asks once, and is no client.
    pub(super) fn of_an_observer(
        now: Now,
        id: SessionId,
        keyspaces: usize,
        everything: Arc<User>,
    ) -> Session {
        let nowhere = [String::new(), String::new()];
        let mut session = Session::new(now, id, nowhere, keyspaces, Some(everything));
        session.parts.lifecycle = Lifecycle::Elsewhere;
        session
    }

    /// The outcome of a request that was executed here, with the session's past after it.
    pub(super) fn outcome(&mut self, keyspace: KeyspaceId) -> HomeOutcome {
        let reply = self.parts.replies.take_kept().unwrap_or(UNANSWERED);
        let context = match homes::is_stable(self.contexts.of(keyspace)) {
            // It fell back, and has nothing that its origin lacks.
            true => Context::default(),
            false => self.contexts.of(keyspace).clone(),
        };
        HomeOutcome::Executed { context, reply }
    }

    /// Whether nothing more will come of it.
    pub(super) fn is_finished(&self) -> bool {
        matches!(self.parts.lifecycle, Lifecycle::Gone | Lifecycle::Elsewhere)
            && self.parts.is_idle()
            && !self.parts.has_work()
    }

    /// It is finished, so nothing shall look at it again.
    pub(super) fn stop(&self, timers: &mut Timers) {
        self.requests.stop(timers);
    }

    /// Whether its user is gone, or may no longer listen to what it subscribes to. Whoever asks for that itself has
    /// its answer first.
    pub(super) fn has_lost_its_user(&self, users: &Users, channels: &Channels) -> bool {
        let parts = &self.parts;
        if parts.lifecycle != Lifecycle::Open || matches!(parts.exchange, Exchange::Admin(_)) {
            return false;
        }
        let Some(name) = parts.client.user().map(|user| user.name()) else { return false };
        let Some(user) = users.user(name) else { return true };
        let is_lost = |(kind, name): &(ChannelKind, Bytes)| {
            let channel = match kind {
                ChannelKind::Pattern => Channel::Pattern(name),
                _ => Channel::Literal(name),
            };
            !user.allows_channel(channel)
        };
        !user.allows_all() && channels.named_by(parts.client.id()).iter().any(is_lost)
    }

    /// Its line in `CLIENT LIST`, if it is connected.
    pub(super) fn line(&self, now: Now, channels: &Channels) -> Option<String> {
        let parts = &self.parts;
        let open = parts.lifecycle == Lifecycle::Open;
        open.then(|| parts.client.line(now, parts.activity(self.contexts.selected(), channels)))
    }

    /// Whether it is a client's of this datacenter.
    pub(super) fn is_clients(&self) -> bool {
        self.parts.lifecycle != Lifecycle::Elsewhere
    }

    /// Whether it waits for another client, or for a pause to end.
    pub(super) fn is_blocked(&self) -> bool {
        matches!(self.parts.exchange, Exchange::Paused(_)) || self.parts.exchange.is_blocked()
    }
}

impl Parts {
    pub(super) fn is_idle(&self) -> bool {
        matches!(self.exchange, Exchange::None)
    }

    /// Whether there is something that no exchange has taken yet.
    pub(super) fn has_work(&self) -> bool {
        self.exec.is_some() || !self.queue.is_empty()
    }

    /// A command has its answer: what is to be recorded of it. Those of a run are counted by their partition.
    pub(super) fn count(&mut self, statistics: &mut Statistics, reply: &Reply) -> Vec<Audited> {
        self.counted.pop_front().map_or_else(Vec::new, |counted| counted.count(statistics, reply))
    }

    /// Whether others have their turn before it goes on. Nobody gives one to a client that is gone, whose answers go
    /// nowhere. An EXEC whose steps are over is answered: what it changed is told to its client behind that.
    pub(super) fn has_used_its_turn(&self, bytes_max: usize) -> bool {
        self.lifecycle == Lifecycle::Open
            && self.queue.has_used_its_turn(self.replies.len(), bytes_max)
            && !self.exec.as_ref().is_some_and(Exec::is_over)
    }

    /// Whether it subscribes to something, or which version of the protocol it speaks, may have changed.
    pub(super) fn restrict(&mut self, subscribes: bool) {
        self.restricted = subscribes && self.client.version() == ProtocolVersion::Resp2;
    }

    pub(super) fn activity(&self, keyspace: KeyspaceId, channels: &Channels) -> Activity {
        let multi = self.multi.as_ref().map(Multi::len);
        let subscriptions = NAMED.map(|kind| channels.count(self.client.id(), kind));
        let waits = self.exchange.is_blocked();
        let monitors = channels.count(self.client.id(), ChannelKind::Monitor) > 0;
        Activity { keyspace, multi, reply_bytes: self.replies.len(), subscriptions, monitors, waits }
    }
}
