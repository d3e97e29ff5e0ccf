//! The sketcher as a process: a reverse proxy before the replicas. One thread has the machines of `ensue-prophecy`, the
//! sketcher and a replica client for each session; a thread for each client waits for its answers; each replica has a
//! link, with a thread that reads and one that writes.
//!
//! Requests of the order are signed here; answers are believed to be of the replica whose link they came by. What a
//! link loses is asked for again by the replica clients.

use super::front::{self, Issue, Outcome};
use super::link::{self, Outbox};
use super::members::{Members, MembersError, Role, Secret};
use super::optimized::{Ended, Optimized};
use super::wire::{Response, TO_SKETCHER_MAX, Ticket, ToReplica, ToSketcher};
use super::{Handling, HandlingError, Service, figures, micros_since};
use crate::limits::{CONNECT_PAUSE, EVENTS_A_TURN, EVENTS_MAX, PING_PAUSE};
use crate::spawn;
use ensue_byzantine::block::{Request, RequestNumber, Session};
use ensue_byzantine::keys::Member;
use ensue_prophecy::handler::{Handler as _, Inspected};
use ensue_prophecy::limits::RESPONSE_BYTES_MAX;
use ensue_prophecy::random::Random;
use ensue_prophecy::regions::Ownership;
use ensue_prophecy::replica_client::{CallNumber, CallOutput, Quorums, ReplicaClient, ReplicatedAnswer};
use ensue_prophecy::rule::Broken;
use ensue_prophecy::sessions::Exchange;
use ensue_prophecy::sketcher::{Config, ConfigError, Output, Replica, RequestId, Sketcher};
use ensue_prophecy::table::Sequence;
use ring::rand::{SecureRandom as _, SystemRandom};
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How reads are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// By Prophecy.
    Fast,
    /// In the order, as writes are.
    Replicated,
    /// By all replicas outside the order, as PBFT optimizes reads.
    Optimized,
}

/// How a sketcher is set up.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The group.
    pub members: Members,
    /// This sketcher's.
    pub secret: Secret,
    /// Where clients connect.
    pub listen: SocketAddr,
    /// Where figures are shown.
    pub figures: Option<SocketAddr>,
    /// Sessions with the replicas.
    pub sessions: usize,
    /// Entries of the history table.
    pub table_entries: usize,
    /// How long a fast answer may take.
    pub fast_patience: Duration,
    /// How reads are served.
    pub reads: Reads,
    /// Lists of reads, and headers.
    pub handling: Handling,
    /// So many fast answers in a thousand are treated as if they had not agreed, for measurements.
    pub failing_per_mille: u64,
}

/// Why a sketcher does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The secret is another member's.
    #[error("this is the secret of {0}")]
    Role(Role),
    /// Files of the group.
    #[error(transparent)]
    Members(#[from] MembersError),
    /// Sizes.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Headers.
    #[error(transparent)]
    Handling(#[from] HandlingError),
    /// A socket.
    #[error(transparent)]
    Io(#[from] io::Error),
}

enum Event {
    Asked(Vec<u8>, SyncSender<Outcome>),
    Heard(Replica, ToSketcher),
    Counted(SyncSender<String>),
}

/// Starts a sketcher; its threads end with the process. Answers where clients connect.
///
/// # Errors
/// A port that is in use, or sizes that are out of bounds.
pub fn start(settings: &Settings) -> Result<SocketAddr, StartError> {
    let Role::Sketcher(me) = settings.secret.role else { return Err(StartError::Role(settings.secret.role)) };
    settings.members.check(&settings.secret)?;
    settings.handling.check(settings.members.protocol)?;
    let listener = TcpListener::bind(settings.listen)?;
    let address = listener.local_addr()?;
    let (events, heard) = mpsc::sync_channel(EVENTS_MAX);
    let mut outboxes = Vec::new();
    for (place, replica) in settings.members.replicas.iter().enumerate() {
        let outbox = Arc::new(Outbox::default());
        outboxes.push(Arc::clone(&outbox));
        let (secret, address, events) = (settings.secret.clone(), replica.address, events.clone());
        spawn("sketcher-link", move || keep_link(&secret, place as u32, address, &outbox, &events))?;
    }
    let pinged = outboxes.clone();
    spawn("sketcher-ping", move || {
        loop {
            pinged.iter().for_each(|outbox| outbox.push([].into()));
            thread::sleep(PING_PAUSE);
        }
    })?;
    if let Some(address) = settings.figures {
        let events = events.clone();
        figures::serve(address, move || {
            let (answer, text) = mpsc::sync_channel(1);
            events.send(Event::Counted(answer)).ok()?;
            text.recv().ok()
        })?;
    }
    let mut core = Core::new(settings, me, outboxes)?;
    spawn("sketcher", move || core.run(&heard))?;
    let issue: Issue = Arc::new(move |request| {
        let (answer, outcome) = mpsc::sync_channel(1);
        events.send(Event::Asked(request, answer)).ok()?;
        outcome.recv().ok()
    });
    let protocol = settings.members.protocol;
    spawn("sketcher-accept", move || front::serve(&listener, protocol, &issue))?;
    Ok(address)
}

fn keep_link(secret: &Secret, place: u32, address: SocketAddr, outbox: &Outbox, events: &SyncSender<Event>) {
    loop {
        // What was meant for a link that was is asked for again.
        outbox.clear();
        let linked = link::connect(address, secret, Role::Replica(Member(place)), TO_SKETCHER_MAX);
        if let Ok((mut sealing, opening)) = linked {
            let events = events.clone();
            // Each of the two closes the socket when it ends, and so ends the other one.
            if spawn("sketcher-hear", move || hear(opening, Replica(place), &events)).is_ok() {
                let _ = sealing.carry(outbox);
            }
        }
        thread::sleep(CONNECT_PAUSE);
    }
}

fn hear(mut opening: link::Opening, replica: Replica, events: &SyncSender<Event>) {
    // A frame that makes no sense is a lie without a name for it: the link is made anew.
    while let Ok(Ok(said)) = opening.read().map(|frame| ToSketcher::decode(&frame)) {
        if events.send(Event::Heard(replica, said)).is_err() {
            return;
        }
    }
}

/// One session's replicated request.
struct Calls {
    client: ReplicaClient,
    exchange: Option<Exchange>,
    /// The signed request of a call.
    frame: Option<(CallNumber, Arc<[u8]>)>,
}

struct Core {
    sketcher: Sketcher<Service>,
    service: Service,
    calls: Vec<Calls>,
    optimized: Option<Optimized<SyncSender<Outcome>>>,
    waiting: BTreeMap<RequestId, SyncSender<Outcome>>,
    requests: u64,
    members: Members,
    secret: Secret,
    me: Member,
    incarnation: u64,
    outboxes: Vec<Arc<Outbox>>,
    failing: Random,
    failing_per_mille: u64,
    began: Instant,
}

impl Core {
    fn new(settings: &Settings, me: Member, outboxes: Vec<Arc<Outbox>>) -> Result<Core, StartError> {
        let members = settings.members.clone();
        let replicas = members.replicas.len();
        let mut seed = [0; 8];
        SystemRandom::new().fill(&mut seed).map_err(|_| io::Error::other("no random bytes"))?;
        let patience_us = u64::try_from(settings.fast_patience.as_micros()).unwrap_or(u64::MAX);
        let config = Config {
            replicas: members.names(),
            sessions: settings.sessions,
            table_entries: settings.table_entries,
            fast_patience_us: patience_us,
            sketch_secret: settings.secret.sketches,
            seed: u64::from_le_bytes(seed),
            regions: Ownership::Owned,
            broken: Broken::none(),
        };
        let quorum = Quorums::of_prophecy(replicas).replicated;
        let client = || Calls {
            client: ReplicaClient::new(replicas, quorum, Broken::none()),
            exchange: None,
            frame: None,
        };
        let service = Service::new(members.protocol, &settings.handling, settings.reads != Reads::Fast);
        let is_optimized = settings.reads == Reads::Optimized;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Core {
            sketcher: Sketcher::new(&config, service)?,
            service: Service::new(members.protocol, &settings.handling, false),
            calls: (0..settings.sessions).map(|_| client()).collect(),
            optimized: is_optimized.then(|| Optimized::new(replicas, members.group.quorum(), patience_us)),
            waiting: BTreeMap::new(),
            requests: 0,
            secret: settings.secret.clone(),
            me,
            // A clock that goes back makes the replicas take new requests for old ones, until it has caught up.
            incarnation: u64::try_from(since.as_micros()).unwrap_or(u64::MAX),
            outboxes,
            failing: Random::stream(u64::from_le_bytes(seed), "failing"),
            failing_per_mille: settings.failing_per_mille,
            began: Instant::now(),
            members,
        })
    }

    fn run(&mut self, events: &Receiver<Event>) {
        loop {
            let now_us = micros_since(self.began);
            let event = match self.next_deadline_us() {
                Some(deadline_us) => {
                    let patience = Duration::from_micros(deadline_us.saturating_sub(now_us));
                    events.recv_timeout(patience)
                }
                None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match event {
                Ok(event) => {
                    self.on_event(event);
                    events.try_iter().take(EVENTS_A_TURN).for_each(|event| self.on_event(event));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.on_tick();
        }
    }

    fn next_deadline_us(&self) -> Option<u64> {
        let calls = self.calls.iter().filter_map(|calls| calls.client.next_deadline_us());
        let optimized = self.optimized.as_ref().and_then(Optimized::next_deadline_us);
        calls.chain(self.sketcher.next_deadline_us()).chain(optimized).min()
    }

    fn on_tick(&mut self) {
        let now_us = micros_since(self.began);
        if self.next_deadline_us().is_none_or(|deadline_us| deadline_us > now_us) {
            return;
        }
        self.sketcher.on_tick(now_us);
        for session in 0..self.calls.len() {
            self.calls[session].client.on_tick(now_us);
            self.carry_out_calls(session);
        }
        while let Some(ended) = self.optimized.as_mut().and_then(|optimized| optimized.take_late(now_us)) {
            self.end(ended);
        }
        self.carry_out();
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Asked(request, answer) => self.on_asked(request, answer),
            Event::Heard(replica, ToSketcher::Fast { ticket, response }) => {
                self.on_fast(replica, ticket, response);
            }
            Event::Heard(replica, ToSketcher::Answer { session, number, sequence, response }) => {
                if number.incarnation == self.incarnation {
                    self.on_answer(replica, session, number.call, response, Sequence(sequence));
                }
            }
            Event::Counted(answer) => {
                // Who asked may be gone.
                let _ = answer.send(self.figures());
            }
        }
        self.carry_out();
    }

    fn on_asked(&mut self, request: Vec<u8>, answer: SyncSender<Outcome>) {
        let is_read = matches!(self.service.inspect(&request), Ok(Inspected::Read { .. }));
        match self.optimized.as_mut().filter(|_| is_read) {
            Some(optimized) => {
                let ticket = optimized.begin(micros_since(self.began), answer, request.clone());
                let frame: Arc<[u8]> = ToReplica::Fast { ticket, request }.encode().into();
                self.outboxes.iter().for_each(|outbox| outbox.push(Arc::clone(&frame)));
            }
            None => self.issue(request, answer),
        }
    }

    fn issue(&mut self, request: Vec<u8>, answer: SyncSender<Outcome>) {
        self.requests += 1;
        let id = RequestId(self.requests);
        self.waiting.insert(id, answer);
        self.sketcher.on_request(micros_since(self.began), id, request);
    }

    fn on_fast(&mut self, replica: Replica, ticket: Ticket, mut response: Vec<u8>) {
        if self.failing_per_mille > 0 && self.failing.chance(self.failing_per_mille) {
            response.push(b'!');
        }
        if let Some(optimized) = &mut self.optimized {
            let response = self.service.canonical_response(response);
            if let Some(ended) = optimized.on_answer(ticket, replica, &response) {
                self.end(ended);
            }
        } else {
            let exchange = Exchange { session: ticket.session, attempt: ticket.attempt };
            self.sketcher.on_fast_answer(micros_since(self.began), exchange, replica, response);
        }
    }

    fn on_answer(
        &mut self,
        replica: Replica,
        session: u32,
        call: u64,
        response: Response,
        sequence: Sequence,
    ) {
        let Some(calls) = self.calls.get_mut(session as usize) else { return };
        let number = CallNumber(call);
        let response = match response {
            Response::Whole(response) => self.service.canonical_response(response),
            // The replica client knows a response that is too long by its length, and keeps none of it.
            Response::TooLong => vec![0; RESPONSE_BYTES_MAX + 1],
            Response::Absent => {
                calls.client.on_absent(replica, number);
                return self.carry_out_calls(session as usize);
            }
        };
        calls.client.on_answer(replica, number, ReplicatedAnswer { response, sequence });
        self.carry_out_calls(session as usize);
    }

    fn end(&mut self, ended: Ended<SyncSender<Outcome>>) {
        match ended {
            // The client may be gone.
            Ended::Answered(answer, response) => drop(answer.send(Ok(response))),
            Ended::Failed(answer, request) => self.issue(request, answer),
        }
    }

    fn carry_out(&mut self) {
        while let Some(output) = self.sketcher.take_output() {
            match output {
                Output::Fast { exchange, replica, request } => {
                    let ticket = Ticket { session: exchange.session, attempt: exchange.attempt };
                    let frame = ToReplica::Fast { ticket, request }.encode();
                    self.outboxes[replica.0 as usize].push(frame.into());
                }
                Output::Replicated { exchange, request } => {
                    let session = exchange.session as usize;
                    self.calls[session].exchange = Some(exchange);
                    self.calls[session].client.on_call(micros_since(self.began), request);
                    self.carry_out_calls(session);
                }
                Output::Answer { id, response, .. } => self.answer(id, Ok(response)),
                Output::Refuse { id, reason } => self.answer(id, Err(reason)),
            }
        }
    }

    fn answer(&mut self, id: RequestId, outcome: Outcome) {
        if let Some(answer) = self.waiting.remove(&id) {
            // The client may be gone.
            let _ = answer.send(outcome);
        }
    }

    fn carry_out_calls(&mut self, session: usize) {
        let now_us = micros_since(self.began);
        while let Some(output) = self.calls[session].client.take_output() {
            let exchange = self.calls[session].exchange;
            match (output, exchange) {
                (CallOutput::Send { replica, number, request }, _) => {
                    let frame = self.frame(session, number, request);
                    self.outboxes[replica.0 as usize].push(frame);
                }
                (CallOutput::Accepted(ReplicatedAnswer { response, sequence }), Some(exchange)) => {
                    self.sketcher.on_replicated_answer(now_us, exchange, response, sequence);
                }
                (CallOutput::Failed(failure), Some(exchange)) => {
                    self.sketcher.on_replicated_failure(now_us, exchange, failure);
                }
                (CallOutput::Lied(replica), _) => self.sketcher.on_lie(replica),
                (CallOutput::Accepted(_) | CallOutput::Failed(_), None) => {}
            }
        }
    }

    /// A call, signed once for all replicas.
    fn frame(&mut self, session: usize, number: CallNumber, body: Vec<u8>) -> Arc<[u8]> {
        if let Some((_, frame)) = self.calls[session].frame.as_ref().filter(|(of, _)| *of == number) {
            return Arc::clone(frame);
        }
        let whose = Session { client: self.me, number: session as u32 };
        let which = RequestNumber { incarnation: self.incarnation, call: number.0 };
        let request = Request::sign(&self.members.group, &self.secret.signer, whose, which, body);
        let frame: Arc<[u8]> = ToReplica::Call(request).encode().into();
        self.calls[session].frame = Some((number, Arc::clone(&frame)));
        frame
    }

    fn figures(&self) -> String {
        let statistics = self.sketcher.statistics();
        let mut text = String::new();
        let mut push = |name, value| figures::push(&mut text, name, None, value);
        push("reads_total", statistics.reads);
        push("writes_total", statistics.writes);
        push("refused_total", statistics.refused);
        push("reads_fast_total", statistics.fast);
        push("reads_failed_fast_total", statistics.failed_fast);
        push("reads_replicated_total", statistics.replicated);
        push("transitions_total", statistics.transitions);
        push("blacklisted_total", statistics.blacklisted);
        push("unlisted_total", statistics.unlisted);
        push("stale_caught_total", statistics.stale_caught());
        for replica in &statistics.replicas {
            let mut push = |name, value| figures::push(&mut text, name, Some(&replica.name), value);
            push("replica_asked_total", replica.asked);
            push("replica_accepted_total", replica.accepted);
            push("replica_fresh_total", replica.fresh);
            push("replica_stale_total", replica.stale);
            push("replica_unagreed_total", replica.unagreed);
            push("replica_silent_total", replica.silent);
            push("replica_lied_total", replica.lied);
        }
        text
    }
}
