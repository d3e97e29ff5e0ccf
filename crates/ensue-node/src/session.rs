//! Everything a core does for its clients: a connection is a session, and a session remembers its causal past.
//!
//! Connections, their commands and the answers of partitions arrive; encoded answers and messages leave through one
//! ordered queue. It promises program order within a connection, that no answer is given which is not true, and that
//! every command is answered within its time. It keeps nothing durable and evaluates nothing: owners do.
//!
//! - On commands: the session's turn runs until it must wait. `turn` is the conductor: it alone knows the order of
//!   things.
//! - The parts: `commands` (batches, plans in parallel, local answers), `transactions` (reads and writes of several
//!   owners as one, MULTI), `causal` (tokens, replicas, shared contexts), `pubsub` (messages between clients), `homes`
//!   (commands that are executed at the home of their keys), `admin` (clients, metrics, dead datacenters).
//!   Each takes what it needs as arguments (`cx`), returns what it comes to (`step`), and names no other.
//! - On an answer: it belongs to the present exchange of its session, by its sequence, or it is dropped (`exchange`).

mod access;
mod admin;
mod audited;
mod begin;
mod called;
mod causal;
mod channels;
mod commands;
mod connection;
mod contexts;
mod core_state;
mod cx;
mod exchange;
mod failure;
mod home_requests;
mod home_serving;
mod home_waits;
mod homes;
mod inquiry;
mod known_scripts;
mod latency;
mod links;
mod monitor;
mod output;
mod parameters;
mod pause;
mod plan;
mod pubsub;
mod put_back;
mod reply_buffer;
mod requests;
mod slow_log;
mod step;
mod timers;
mod tracking;
mod transactions;
mod turn;
mod write_marks;

use crate::cpu::CpuReport;
use crate::errand::ErrandDone;
use crate::links::LinkReport;
use crate::memory::MemoryReport;
use crate::observation::Scope;
use crate::placement::Placement;
use crate::replicas::ReplicaFigures;
use crate::scrub::ScrubReport;
use crate::statistics::Statistics;
use crate::{Dropped, NodeConfig, Trace};
use admin::cluster_query::{ClusterQuery, Purpose};
use admin::order::{self, OfSessions};
use bytes::Bytes;
use connection::Session;
use core_state::{CoreState, Counters, Publisher, Waiter};
use cx::Cx;
use ensue_protocol::Protocol;
use ensue_resp::ProtocolVersion;
use ensue_types::{Args, CoreId, LogicalTime, Now, PartitionId, Reply, RequestId, Rule, SessionId};
use ensue_wire::{
    Address, ChannelKind, CoreName, CoreQuery, Envelope, HomeOutcome, HomeRequest, Interest, Message,
};
use exchange::Lost;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use home_requests::Reconnected;
use home_serving::{Running, Taken};
use parameters::Parameters;
pub use parameters::read_parameter;
pub(crate) use parameters::{BUSY_AFTER_MS, REPLICAS_LAG_MAX, REPLICAS_MIN};
use pubsub::deliveries::{Deliveries, Published};
use std::sync::Arc;
use step::Step;
use turn::{Interruption, Turn, away};

pub(crate) use output::SessionOutput;

/// The client connections of one core.
#[derive(Clone, Debug)]
pub(crate) struct Sessions {
    sessions: HashMap<SessionId, Box<Session>, FixedState>,
    core: CoreState,
    /// Messages of other datacenters that wait.
    deliveries: Deliveries,
}

impl Sessions {
    /// Panics if what sessions share contradicts itself.
    pub(crate) fn check_invariants(&self) {
        if Rule::all_hold() {
            self.core.check_invariants();
            self.deliveries.check_invariants();
        }
    }

    /// No connection yet. The protocols are one a keyspace.
    pub(crate) fn new(config: Arc<NodeConfig>, protocols: Arc<Vec<Box<dyn Protocol>>>) -> Sessions {
        let sessions = HashMap::with_hasher(FixedState::default());
        Sessions { sessions, core: CoreState::new(config, protocols), deliveries: Deliveries::default() }
    }

    pub(crate) fn on_connected(
        &mut self,
        now: Now,
        session: SessionId,
        address: String,
        local_address: String,
    ) {
        self.admit(now, session, [address, local_address], false);
    }

    /// The same of somebody who came by another door, and asks once.
    pub(crate) fn on_visitor(&mut self, now: Now, session: SessionId, addresses: [String; 2]) {
        self.admit(now, session, addresses, true);
    }

    fn admit(&mut self, now: Now, session: SessionId, addresses: [String; 2], visits: bool) {
        let keyspaces = self.core.protocols.len();
        let user = self.core.access.newcomer();
        let mut fresh = Session::new(now, session, addresses, keyspaces, user);
        fresh.parts.visits = visits;
        self.core.on_connected(session);
        self.sessions.insert(session, Box::new(fresh));
    }

    /// Somebody who is no client wants to see metrics: a session of its own asks for them, once.
    pub(crate) fn on_observe(&mut self, now: Now, id: SessionId, scope: Scope) {
        let everything = self.core.access.everything();
        let mut observer = Session::of_an_observer(now, id, self.core.protocols.len(), everything);
        let Session { contexts, requests, parts } = &mut observer;
        let mut cx = Cx { now, core: &mut self.core, contexts, requests };
        if let Step::Waits(query) = ClusterQuery::begin(&mut cx, Purpose::Observation(scope)) {
            parts.exchange = query.into();
            self.sessions.insert(id, Box::new(observer));
        }
    }

    /// What a session had somebody else do is done.
    pub(crate) fn on_errand_done(&mut self, now: Now, session: SessionId, number: u64, done: ErrandDone) {
        self.with(now, session, |turn| turn::users::on_errand_done(turn, number, done));
    }

    /// A turn, and commands in the order of the client, who waits for no more answers than the listener lets it.
    pub(crate) fn on_commands(&mut self, now: Now, session: SessionId, mut commands: Vec<Args>) {
        access::scripts::defuse(&mut commands);
        self.with(now, session, |turn| turn.on_commands(commands));
    }

    pub(crate) fn on_broke(&mut self, now: Now, session: SessionId, error: String) {
        self.with(now, session, |turn| turn.on_framing_lost(error));
    }

    pub(crate) fn on_gone(&mut self, now: Now, session: SessionId) {
        self.core.on_gone(session);
        self.with(now, session, |turn| turn.on_gone(false));
    }

    /// A client sends nothing any more.
    pub(crate) fn on_ended(&mut self, now: Now, session: SessionId) {
        self.with(now, session, |turn| turn.on_gone(true));
    }

    /// A message addressed to this core: an answer to one of its sessions, or a question to all of them.
    pub(crate) fn on_message(&mut self, now: Now, envelope: Envelope) {
        let Envelope { from, time, message, .. } = envelope;
        if let Message::CoreQuery { request, query } = message {
            return self.on_query(now, from, request, &query);
        }
        if let Message::DependenciesMet { check, unrecoverable } = message {
            return match self.core.waits_for_check(check) {
                Some(Waiter::Session(session)) => {
                    self.with(now, session, |turn| turn.on_dependencies_met(check, time, &unrecoverable));
                }
                Some(Waiter::Messages(publisher)) => {
                    let Sessions { core, deliveries, .. } = self;
                    deliveries.on_dependencies_met(now, core, publisher, check, &unrecoverable);
                }
                None => {}
            };
        }
        match message {
            Message::Interest { .. } | Message::Publish { .. } => {
                return self.on_peer_message(now, from, message);
            }
            Message::Changed { keyspace, key, event, writer } => {
                return self.core.on_changed(keyspace, (key, event, writer));
            }
            Message::Called { request, keyspace, commands, all, denied } => {
                let is_here = request.core == self.core.config.core && request.boot == self.core.config.boot;
                if is_here && !denied.is_empty() {
                    self.with(now, request.session, |turn| {
                        turn::users::note_denied_to_script(turn, keyspace, &denied)
                    });
                }
                let called = (keyspace, commands.as_slice(), all);
                let published = called::on_called(&mut self.core, now, request, called);
                if let Some(session) = self.sessions.get_mut(&request.session) {
                    session.parts.published.extend(published);
                }
                return;
            }
            Message::HomeMoves { moves, .. } => {
                let CoreState { homes, config, .. } = &mut self.core;
                return moves.iter().for_each(|moved| homes.learn(&config.homes, moved, from));
            }
            Message::HomeReady { .. } | Message::HomeRequest(_) | Message::HomeAnswer { .. } => {
                return self.on_home_message(now, from, message);
            }
            _ => {}
        }
        let Some(request) = answered_request(&message) else {
            return self.core.trace(Trace::Refused { what: "a message that sessions do not take" });
        };
        if request.core == self.core.config.core && request.boot == self.core.config.boot {
            self.with(now, request.session, |turn| turn.on_answer(request.sequence, time, message));
        }
    }

    fn on_interest(&mut self, peer: CoreName, all: bool, changes: Vec<Interest>) {
        if !self.core.channels.on_interest(peer, all, changes) {
            self.core.trace(Trace::Refused { what: "subscriptions beyond those that a core may have" });
        }
    }

    /// What the sessions of another core say about channels.
    fn on_peer_message(&mut self, now: Now, from: Address, message: Message) {
        let Address::Core { datacenter, core } = from else { return };
        let peer = CoreName { datacenter, core };
        match message {
            Message::Interest { all, changes } => self.on_interest(peer, all, changes),
            Message::Publish { kind: ChannelKind::Monitor, .. }
                if datacenter != self.core.config.topology.datacenter =>
            {
                self.core.trace(Trace::Refused { what: "a command of another datacenter" });
            }
            Message::Publish { publisher: session, kind, channel, payload, past } => {
                let (publisher, message) =
                    (Publisher { core: peer, session }, Published { kind, channel, payload, past });
                self.deliveries.on_message(now, &mut self.core, publisher, message);
            }
            _ => {}
        }
    }

    /// What a core of another datacenter says about commands at the home of their keys.
    fn on_home_message(&mut self, now: Now, from: Address, message: Message) {
        let Address::Core { datacenter, core } = from else { return };
        let peer = CoreName { datacenter, core };
        match message {
            Message::HomeReady { boot } => {
                let unheard = self.core.home_serving.on_ready(peer, boot);
                self.end_waits(now, unheard);
                let Reconnected { again, lost } = self.core.home_requests.on_ready(peer, boot);
                for request in again {
                    let time = request.context.time;
                    self.core.send(from, time, Message::HomeRequest(request));
                }
                for number in lost {
                    self.on_home_answer(now, peer, number, HomeOutcome::Forgotten);
                }
            }
            Message::HomeRequest(request) => self.on_home_request(now, peer, request),
            Message::HomeAnswer { boot, number, outcome } if boot == self.core.config.boot => {
                self.on_home_answer(now, peer, number, outcome);
            }
            _ => {}
        }
    }

    fn on_home_answer(&mut self, now: Now, peer: CoreName, number: u64, outcome: HomeOutcome) {
        if let Some(session) = self.core.home_requests.on_answer(peer, number, &outcome) {
            self.with(now, session, |turn| away::on_answer(turn, number, outcome));
        }
    }

    /// A request of another datacenter: a session of its own executes it, once.
    fn on_home_request(&mut self, now: Now, origin: CoreName, request: HomeRequest) {
        let refused = |reply| HomeOutcome::Refused { reply };
        let outcome = match self.core.home_serving.on_request(self.core.config.boot, origin, &request) {
            Taken::Ignore => return,
            Taken::Answer(outcome) => outcome,
            Taken::TooMany => refused(homes::HOME_IS_BUSY),
            Taken::End(id) => return self.with(now, id, |turn| away::on_undelivered(turn, true)),
            Taken::PutBack(id, context, reply) => {
                if let Some(commands) = homes::put_back(&request, &reply) {
                    self.execute_for(now, id, HomeRequest { context, commands, ..request.clone() });
                }
                HomeOutcome::Withdrawn
            }
            Taken::Execute(id) if !homes::is_home_of(&self.core, &request) => {
                self.core.home_serving.on_executed(id, refused(homes::NOT_HOME))
            }
            Taken::Execute(id) => return self.execute_for(now, id, request),
        };
        self.answer_home(origin, request.boot, request.number, outcome);
    }

    /// A session of its own executes what one of another datacenter asks for.
    fn execute_for(&mut self, now: Now, id: SessionId, request: HomeRequest) {
        let everything = self.core.access.everything();
        let protocol = self.core.protocol(request.keyspace);
        let session =
            Session::of_a_request(now, id, self.core.protocols.len(), protocol, &request, everything);
        self.sessions.insert(id, Box::new(session));
        self.with(now, id, |turn| away::on_request(turn, request.transaction, request.commands));
    }

    /// What waits for a datacenter that hears nothing stops waiting.
    fn end_waits(&mut self, now: Now, unheard: Vec<SessionId>) {
        for id in unheard {
            self.with(now, id, |turn| away::on_undelivered(turn, false));
        }
    }

    fn answer_home(&mut self, origin: CoreName, boot: u32, number: u64, outcome: HomeOutcome) {
        let to = Address::Core { datacenter: origin.datacenter, core: origin.core };
        let time = match &outcome {
            HomeOutcome::Executed { context, .. } => context.time,
            _ => LogicalTime::ZERO,
        };
        self.core.send(to, time, Message::HomeAnswer { boot, number, outcome });
    }

    /// A session has come to its end; that of a request has its answer.
    fn on_finished(&mut self, id: SessionId) {
        let Some(mut session) = self.sessions.remove(&id) else { return };
        session.stop(&mut self.core.timers);
        if let Some(Running { origin, boot, number, keyspace, .. }) = self.core.home_serving.running(id) {
            let outcome = self.core.home_serving.on_executed(id, session.outcome(keyspace));
            self.answer_home(origin, boot, number, outcome);
        }
    }

    /// A core of any datacenter can be told what is subscribed to here.
    pub(crate) fn on_peer_up(&mut self, peer: CoreName) {
        self.core.on_peer_up(peer);
        let config = &self.core.config;
        if !config.homes.is_empty() && peer.datacenter != config.topology.datacenter {
            let to = Address::Core { datacenter: peer.datacenter, core: peer.core };
            let boot = config.boot;
            self.core.send(to, LogicalTime::ZERO, Message::HomeReady { boot });
        }
    }

    pub(crate) fn on_peer_down(&mut self, now: Now, peer: CoreName) {
        self.core.channels.on_link_down(peer);
        self.core.home_requests.on_link_down(peer);
        let unheard = self.core.home_serving.on_link_down(peer);
        self.end_waits(now, unheard);
    }

    /// Whoever owns the sockets has dropped something that was published.
    pub(crate) fn on_dropped(&mut self, dropped: Dropped) {
        let messages = &mut self.core.counters.messages;
        match dropped {
            Dropped::Subscriber => messages.slow_subscribers += 1,
            Dropped::Message => messages.dropped_link += 1,
        }
    }

    /// Records of operators' commands could not be written.
    pub(crate) fn on_audit_lost(&mut self, records: u64) {
        self.core.audit_lost += records;
    }

    /// Every partition of the datacenter runs a script for long: commands are refused with these words.
    pub(crate) fn set_busy(&mut self, words: Option<&'static str>) {
        self.core.set_busy(words);
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.core.busy().is_some()
    }

    /// A core of this datacenter can be asked from now on.
    pub(crate) fn on_link_up(&mut self, core: CoreId) {
        self.core.on_link_up(core);
    }

    /// Whoever owns the sockets says how the links are.
    pub(crate) fn on_link_report(&mut self, report: LinkReport) {
        self.core.on_link_report(report);
    }

    /// Whoever owns the process says how much memory it takes.
    pub(crate) fn on_memory_report(&mut self, report: MemoryReport) {
        self.core.memory.on_report(report);
    }

    /// Whoever owns the process says how long it has run.
    pub(crate) fn on_cpu_report(&mut self, report: CpuReport) {
        self.core.cpu = report;
    }

    /// Whoever reads the disk in the background says what has been read.
    pub(crate) fn on_scrub_report(&mut self, report: ScrubReport) {
        self.core.scrubbed = Some(report);
    }

    /// What the replicas on this core are to their groups.
    pub(crate) fn on_replica_figures(&mut self, figures: ReplicaFigures) {
        self.core.replicas = Some(figures);
    }

    /// An input has done all that it does.
    pub(crate) fn on_quiet(&mut self) {
        self.core.on_quiet();
    }

    /// Whether a partition of this core refuses what may make data grow: what is queued is refused at once then.
    pub(crate) fn set_short_of_memory(&mut self, is_short: bool) {
        self.core.set_short_of_memory(is_short);
    }

    /// A turn is over; each of its commands took so long.
    pub(crate) fn on_turn_end(&mut self, now: Now, took_us: u64) {
        self.core.on_turn_end(now, took_us);
    }

    /// What is counted of commands that no partition counts.
    pub(crate) fn statistics(&mut self) -> &mut Statistics {
        &mut self.core.counters.statistics
    }

    /// Whether somebody has asked since the last call to count from zero again, partitions too.
    pub(crate) fn take_reset(&mut self) -> bool {
        std::mem::take(&mut self.core.counters.reset)
    }

    /// Whether parameters were set since the last call: partitions have to be told.
    pub(crate) fn take_parameters_changed(&mut self) -> bool {
        self.core.take_parameters_changed()
    }

    /// Whether deadlines are looked at by time, as they are, or not, as tests ask for it.
    pub(crate) fn expires_actively(&self) -> bool {
        !self.core.expires_lazily
    }

    pub(crate) fn parameters(&self) -> &Parameters {
        &self.core.parameters
    }

    /// What this core took for known in the whole datacenter need not be known any more.
    pub(crate) fn forget_scripts(&mut self) {
        self.core.scripts.forget();
    }

    /// A core of this datacenter became unreachable: what it was asked will not be answered.
    pub(crate) fn on_link_down(&mut self, now: Now, core: CoreId) {
        self.core.on_link_down(core);
        for session in self.in_order() {
            self.with(now, session, |turn| turn.on_lost(Lost::Core(core)));
        }
    }

    /// Where partitions live.
    pub(crate) fn placement(&self) -> &Placement {
        &self.core.placement
    }

    pub(crate) fn placement_mut(&mut self) -> &mut Placement {
        &mut self.core.placement
    }

    /// A partition of this datacenter does not live where it did: what it was asked there will not be answered.
    pub(crate) fn on_partition_moved(&mut self, now: Now, partition: PartitionId) {
        self.core.on_partition_moved(partition);
        for session in self.in_order() {
            self.with(now, session, |turn| turn.on_lost(Lost::Partition(partition)));
        }
    }

    /// No command is begun from now on; what was begun goes on.
    pub(crate) fn on_shutdown(&mut self) {
        self.core.on_shutdown();
    }

    pub(crate) fn on_timer(&mut self, now: Now) {
        while let Some(session) = self.core.timers.pop_expired(now) {
            self.with(now, session, |turn| turn.on_timer());
        }
        self.deliveries.on_timer(now, &mut self.core);
    }

    /// When `on_timer` is due, in microseconds of `Now::monotonic_us`.
    pub(crate) fn next_timer(&self) -> Option<u64> {
        self.core.timers.first().into_iter().chain(self.deliveries.next_timer()).min()
    }

    /// The next output, oldest first; drain until empty after each input.
    pub(crate) fn next_output(&mut self) -> Option<SessionOutput> {
        self.core.next_output()
    }

    /// Runs one session's turn, and what it meant for other sessions.
    fn with(&mut self, now: Now, id: SessionId, run: impl FnOnce(&mut Turn<'_>)) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        run(&mut Turn::new(now, session, &mut self.core));
        if session.is_finished() {
            self.on_finished(id);
        }
        while let Some((number, old)) = self.core.home_requests.first_to_request_anew() {
            homes::abandon(&mut self.core, number);
            if let Some(session) = self.sessions.get_mut(&old) {
                away::request_anew(&mut Turn::new(now, session, &mut self.core), number);
            }
        }
        while let Some(doomed) = self.core.next_doomed() {
            if let Some(session) = self.sessions.get_mut(&doomed) {
                Turn::new(now, session, &mut self.core).close();
            }
        }
    }

    /// Answers another session's question about all sessions here.
    fn on_query(&mut self, now: Now, from: Address, request: RequestId, query: &CoreQuery) {
        let mut text = String::new();
        let mut metrics = Vec::new();
        match query {
            CoreQuery::ClientList => {
                for id in self.in_order() {
                    text.extend(self.line(now, id).map(|line| line + "\n"));
                }
            }
            CoreQuery::Metrics => {
                text = self.core.link_reports().map(crate::links::line).collect();
                metrics.push(("connected_clients".to_owned(), self.core.clients() as i64));
                let blocked =
                    self.sessions.values().filter(|one| one.is_clients() && one.is_blocked()).count();
                metrics.push(("blocked_clients".to_owned(), blocked as i64));
                let tracking = self.core.tracking.metrics();
                metrics.extend(tracking.map(|(name, value)| (name.to_owned(), value as i64)));
                metrics.extend(self.core.counters.metrics(now));
                metrics.extend(self.channel_metrics());
                metrics.extend(self.home_metrics());
                metrics.extend(self.deliveries.metrics());
                metrics.extend(self.core.memory.metrics());
                metrics.extend(self.core.cpu.metrics());
                metrics.extend(self.core.replicas.iter().flat_map(ReplicaFigures::metrics));
                metrics.extend(self.core.scrubbed.iter().flat_map(ScrubReport::metrics));
                let audited = Some(self.core.audit_lost as i64).filter(|_| self.core.config.audits);
                metrics.extend(audited.map(|lost| ("audit_lost".to_owned(), lost)));
                let refusals = self.core.access.metrics();
                metrics.extend(refusals.map(|(name, count)| (name.to_owned(), count as i64)));
            }
            CoreQuery::ResetStatistics => {
                self.core.counters = Counters::default();
                self.core.counters.reset = true;
            }
            CoreQuery::Order(words) => {
                let mut encoded = Vec::new();
                let reply = self.on_order(now, request.core, words);
                ensue_resp::encode(&reply, ProtocolVersion::Resp3, &mut encoded);
                let answer = Message::CoreAnswer { request, text: encoded.into(), metrics };
                return self.core.send(from, LogicalTime::ZERO, answer);
            }
        }
        let answer = Message::CoreAnswer { request, text: text.into(), metrics };
        self.core.send(from, ensue_types::LogicalTime::ZERO, answer);
    }

    /// The line of a connected client in `CLIENT LIST`.
    fn line(&self, now: Now, id: SessionId) -> Option<String> {
        self.sessions.get(&id)?.line(now, &self.core.channels)
    }

    /// What a session of a core has the sessions of all cores do.
    fn on_order(&mut self, now: Now, from: CoreId, words: &[Bytes]) -> Reply {
        match order::carry_out(&mut self.core, now, words) {
            Ok(reply) => reply,
            Err(OfSessions::Unpause) => {
                for id in self.in_order() {
                    self.with(now, id, |turn| {
                        turn.interrupt(Interruption::Unpause);
                    });
                }
                Reply::OK
            }
            Err(OfSessions::Unblock(id, with_error)) => {
                let mut is_blocked = false;
                let how = Interruption::Unblock { with_error };
                self.with(now, id, |turn| is_blocked = turn.interrupt(how));
                Reply::Integer(i64::from(is_blocked))
            }
            Err(OfSessions::Users) => {
                let (users, channels) = (self.core.access.users(), &self.core.channels);
                let is_over = |id: &SessionId| self.sessions[id].has_lost_its_user(users, channels);
                let over: Vec<SessionId> = self.in_order().into_iter().filter(is_over).collect();
                for id in over {
                    self.with(now, id, |turn| turn.close());
                }
                let waits = |id: &SessionId| self.sessions[id].is_blocked();
                for id in self.in_order().into_iter().filter(waits).collect::<Vec<_>>() {
                    self.with(now, id, |turn| {
                        turn.interrupt(Interruption::Users);
                    });
                }
                Reply::OK
            }
            Err(OfSessions::Kill(asker, kill)) => {
                let is_asker = |id: &SessionId| from == self.core.config.core && *id == asker;
                let accepts = |line: String| kill.filter.accepts(&line);
                let is_meant = |id: &SessionId| !is_asker(id) && self.line(now, *id).is_some_and(accepts);
                let doomed: Vec<SessionId> = self.in_order().into_iter().filter(is_meant).collect();
                for id in &doomed {
                    self.with(now, *id, |turn| turn.close());
                }
                Reply::Integer(doomed.len() as i64)
            }
        }
    }

    /// How many channels there are, each counted by one core of the datacenter, and who subscribes.
    fn channel_metrics(&self) -> Vec<(String, i64)> {
        let config = &self.core.config;
        let own = CoreName { datacenter: config.topology.datacenter, core: config.core };
        let channels = &self.core.channels;
        let metrics = [
            ("pubsub_clients", channels.clients()),
            ("pubsub_channels", channels.counted(own, ChannelKind::Channel)),
            ("pubsub_patterns", channels.counted(own, ChannelKind::Pattern)),
            ("pubsubshard_channels", channels.counted(own, ChannelKind::Shard)),
        ];
        let counted = metrics.into_iter().filter(|(_, value)| *value > 0);
        counted.map(|(name, value)| (name.to_owned(), value as i64)).collect()
    }

    /// Commands at the homes of their keys, where there are such.
    fn home_metrics(&self) -> Vec<(String, i64)> {
        let (executing, kept_bytes) = self.core.home_serving.figures();
        let metrics = [
            ("home_requests_waiting", self.core.home_requests.len()),
            ("home_requests_executing", executing),
            ("home_answers_kept_bytes", kept_bytes),
        ];
        let counted = metrics.into_iter().filter(|_| !self.core.config.homes.is_empty());
        counted.map(|(name, value)| (name.to_owned(), value as i64)).collect()
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
        | Message::SnapshotRead { request, .. }
        | Message::TimedOut { request, .. }
        | Message::Refused { request, .. }
        | Message::ReplicasReached { request, .. }
        | Message::ContextFetched { request, .. }
        | Message::ContextMerged { request }
        | Message::MetricsAnswer { request, .. }
        | Message::Runs { request }
        | Message::CoreAnswer { request, .. } => Some(*request),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
