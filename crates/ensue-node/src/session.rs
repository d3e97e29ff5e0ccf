//! Everything a core does for its clients: a connection is a session, and a session remembers its causal past.
//!
//! Connections, their commands and the answers of partitions arrive; encoded answers and messages leave through one
//! ordered queue. It promises program order within a connection, that no answer is given which is not true, and that
//! every command is answered within its time. It keeps nothing durable and evaluates nothing: owners do.
//!
//! - On commands: the session's turn runs until it must wait (`turn`); neighbours for one partition travel together (`batch`).
//! - Over several owners: read transactions (`read`), write transactions (`write`, `multi`), or side by side (`parallel`).
//! - On an answer: it belongs to the present exchange of its session, by its sequence, or it is dropped (`exchange`).

mod batch;
mod causal;
mod client;
mod combine;
mod connection;
mod cut;
mod dead;
mod desk;
mod everywhere;
mod exchange;
mod failure;
mod handshake;
mod info;
mod links;
mod local;
mod merge;
mod multi;
mod parallel;
mod plan;
mod read;
mod rename;
mod replicas;
mod shared;
mod survey;
mod token;
mod turn;
mod write;
mod write_marks;

use crate::links::LinkReport;
use crate::{NodeConfig, Trace};
use connection::{Life, Session, TurnUsed};
use desk::Desk;
use ensue_protocol::Protocol;
use ensue_types::{Args, CoreId, Now, RequestId, SessionId};
use ensue_wire::{Address, CoreQuery, Envelope, Message};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::sync::Arc;
use turn::Turn;

/// What leaves the sessions. The order is the order of effects.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SessionOutput {
    /// Encoded answers to `answered` commands of a client, and whether it waits for its next turn.
    Reply {
        session: SessionId,
        bytes: Vec<u8>,
        answered: u32,
        wants_turn: bool,
    },
    /// Close this connection after what was written to it.
    Disconnect {
        session: SessionId,
    },
    /// To a partition or a core of this datacenter.
    Send(Envelope),
    Trace(Trace),
}

/// The client connections of one core.
#[derive(Clone, Debug)]
pub(crate) struct Sessions {
    sessions: HashMap<SessionId, Box<Session>, FixedState>,
    desk: Desk,
}

impl Sessions {
    /// No connection yet. The protocols are one a keyspace.
    pub(crate) fn new(config: Arc<NodeConfig>, protocols: Arc<Vec<Box<dyn Protocol>>>) -> Sessions {
        let sessions = HashMap::with_hasher(FixedState::default());
        Sessions { sessions, desk: Desk::new(config, protocols) }
    }

    pub(crate) fn on_connected(
        &mut self,
        now: Now,
        session: SessionId,
        address: String,
        local_address: String,
    ) {
        let keyspaces = self.desk.protocols.len();
        let authenticated = self.desk.config.password.is_none();
        let addresses = [address, local_address];
        let fresh = Session::new(now, session, addresses, keyspaces, authenticated);
        self.desk.counters.connections += 1;
        self.desk.connected.insert(session);
        self.sessions.insert(session, Box::new(fresh));
    }

    /// A turn, and commands in the order of the client, who waits for no more answers than the listener lets it.
    pub(crate) fn on_commands(&mut self, now: Now, session: SessionId, commands: Vec<Args>) {
        self.with(now, session, |turn| {
            if turn.session.life != Life::Open {
                return;
            }
            turn.session.turn = TurnUsed::default();
            if !commands.is_empty() {
                turn.session.active_us = now.monotonic_us;
            }
            if turn.session.queue.is_empty() {
                turn.session.queue = commands.into();
            } else {
                turn.session.queue.extend(commands);
            }
            turn.advance();
        });
    }

    pub(crate) fn on_broke(&mut self, now: Now, session: SessionId, error: String) {
        self.with(now, session, |turn| {
            turn.session.broke = Some(error);
            turn.advance();
        });
    }

    pub(crate) fn on_gone(&mut self, now: Now, session: SessionId) {
        self.desk.connected.remove(&session);
        self.with(now, session, |turn| turn.leave());
    }

    /// A message addressed to this core: an answer to one of its sessions, or a question to all of them.
    pub(crate) fn on_message(&mut self, now: Now, envelope: Envelope) {
        let Envelope { from, time, message, .. } = envelope;
        if let Message::CoreQuery { request, query } = message {
            return self.on_query(now, from, request, &query);
        }
        if let Message::DependenciesMet { check, gone } = message {
            let Some(&session) = self.desk.checks.get(&check) else { return };
            return self.with(now, session, |turn| {
                turn.see(time);
                turn.on_dependencies_met(check, &gone);
            });
        }
        let Some(request) = answered_request(&message) else {
            return self.desk.trace(Trace::Refused { what: "a message that sessions do not take" });
        };
        if request.core == self.desk.config.core && request.boot == self.desk.config.boot {
            self.with(now, request.session, |turn| turn.on_answer(request.sequence, time, message));
        }
    }

    /// A core of this datacenter can be asked from now on.
    pub(crate) fn on_link_up(&mut self, core: CoreId) {
        self.desk.links.on_up(core);
    }

    /// Whoever owns the sockets says how the links are.
    pub(crate) fn on_link_report(&mut self, report: LinkReport) {
        self.desk.link_reports.insert(report.datacenter, report);
    }

    /// A core of this datacenter became unreachable: what it was asked will not be answered.
    pub(crate) fn on_link_down(&mut self, now: Now, core: CoreId) {
        self.desk.links.on_down(core);
        for session in self.in_order() {
            self.with(now, session, |turn| turn.on_link_down(core));
        }
    }

    /// No command is begun from now on; what was begun goes on.
    pub(crate) fn on_shutdown(&mut self) {
        self.desk.stopping = true;
    }

    pub(crate) fn on_timer(&mut self, now: Now) {
        while let Some(&(due_us, session)) = self.desk.timers.first() {
            if due_us > now.monotonic_us {
                break;
            }
            self.desk.timers.pop_first();
            self.with(now, session, |turn| turn.on_timer());
        }
    }

    /// When `on_timer` is due, in microseconds of `Now::monotonic_us`.
    pub(crate) fn next_timer(&self) -> Option<u64> {
        self.desk.timers.first().map(|(due_us, _)| *due_us)
    }

    /// The next output, oldest first; drain until empty after each input.
    pub(crate) fn next_output(&mut self) -> Option<SessionOutput> {
        self.desk.outputs.pop_front()
    }

    /// Runs one session's turn, and what it meant for other sessions.
    fn with(&mut self, now: Now, id: SessionId, run: impl FnOnce(&mut Turn<'_>)) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        run(&mut Turn { now, session, desk: &mut self.desk });
        let finished = session.is_finished();
        if finished {
            self.remove_finished(id);
        }
        while let Some(doomed) = self.desk.doomed.pop() {
            if let Some(session) = self.sessions.get_mut(&doomed) {
                Turn { now, session, desk: &mut self.desk }.close();
            }
        }
    }

    fn remove_finished(&mut self, id: SessionId) {
        let finished = self.sessions.get(&id).is_some_and(|session| session.is_finished());
        if !finished {
            return;
        }
        if let Some(watched_us) = self.sessions.remove(&id).and_then(|session| session.watched_us) {
            self.desk.timers.remove(&(watched_us, id));
        }
    }

    /// Answers another session's question about all sessions here.
    fn on_query(&mut self, now: Now, from: Address, request: RequestId, query: &CoreQuery) {
        let mut text = String::new();
        let mut figures = Vec::new();
        match query {
            CoreQuery::ClientList => {
                for id in self.in_order() {
                    if let Some(session) = self.sessions.get(&id).filter(|session| session.life == Life::Open)
                    {
                        text.push_str(&client::line(session, now));
                        text.push('\n');
                    }
                }
            }
            CoreQuery::Figures => {
                let counters = self.desk.counters;
                text = self.desk.link_reports.values().map(crate::links::line).collect();
                figures.push(("connected_clients".to_owned(), self.desk.connected.len() as i64));
                figures.push(("total_connections_received".to_owned(), counters.connections as i64));
                figures.push(("total_commands_processed".to_owned(), counters.commands as i64));
            }
        }
        let answer = Message::CoreAnswer { request, text: text.into(), figures };
        self.desk.send(from, ensue_types::LogicalTime::ZERO, answer);
    }

    fn in_order(&self) -> Vec<SessionId> {
        let mut ids: Vec<SessionId> = self.sessions.keys().copied().collect();
        ids.sort_unstable();
        ids
    }
}

/// The request that an answer to a session names.
fn answered_request(message: &Message) -> Option<RequestId> {
    match message {
        Message::Executed { request, .. }
        | Message::ExecutedInPart { request, .. }
        | Message::ReadFirstDone { request, .. }
        | Message::ReadAtDone { request, .. }
        | Message::Transacted { request, .. }
        | Message::CutRead { request, .. }
        | Message::GaveUp { request, .. }
        | Message::Refused { request, .. }
        | Message::ReplicasReached { request, .. }
        | Message::ContextFetched { request, .. }
        | Message::ContextMerged { request }
        | Message::Surveyed { request, .. }
        | Message::CoreAnswer { request, .. } => Some(*request),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
