//! The loop of one core: readiness of sockets, mail, timers and finished disk work become inputs of the node; its
//! outputs become writes, mail to the other cores, and disk work.
//!
//! One turn: wait, read everything that arrived, give it to the node, end the turn, carry out what the node asks until
//! it asks nothing more, then write to the sockets. It decides nothing that a client or a peer could notice, other
//! than when a bound is reached. A panic here is a broken invariant and ends the process.

use crate::audit::AuditLog;
use crate::backup::{Moment, OfCore};
use crate::bootstrap::MemoryGauge;
use crate::bounds::{HOUSEKEEPING_US, ROUNDS_PER_TURN, TURN_US_MAX};
use crate::clients::{self, Clients, Ready};
use crate::clock::Clock;
use crate::cpu;
use crate::disk::Disk;
use crate::errands::Errands;
use crate::inbox::{Inbox, Mail};
use crate::listener::{self, Guest, Listener};
use crate::log::{self, Level, Throttle};
use crate::metrics::Question;
use crate::peers::{self, Peers};
use crate::scrubber;
use crate::visitors::Visitors;
use ensue_node::{Host, HostParameters, Input, Output, Trace};
use ensue_types::{CoreId, DatacenterId, PartitionId, SessionId};
use ensue_wire::CoreName;
use mio::{Events, Interest, Poll, Registry, Token};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// What wakes the core from another thread.
pub(crate) const WAKER: Token = Token(0);
const PEER_LISTENER: Token = Token(1);
/// The first of the tokens of the listening sockets for clients.
const LISTENER: usize = 2;
const EVENTS_PER_TURN: usize = 1_024;

/// Everything that the loop of one core works with.
pub(crate) struct Pump {
    pub(crate) name: CoreName,
    pub(crate) node: Host,
    pub(crate) clock: Clock,
    pub(crate) poll: Poll,
    pub(crate) clients: Clients,
    pub(crate) peers: Peers,
    pub(crate) disk: Disk,
    pub(crate) errands: Errands,
    /// Where commands of operators are recorded, if they are.
    pub(crate) audit: Option<AuditLog>,
    /// On core 0 of a node, if it is known.
    pub(crate) memory: Option<MemoryGauge>,
    /// On core 0 of a node, if its disk is read in the background.
    pub(crate) scrubbed: Option<scrubber::Figures>,
    /// On core 0 of a node.
    pub(crate) listener: Option<Listener>,
    /// The inboxes of all cores of the node, in order, and the place of ours among them.
    pub(crate) inboxes: Vec<Arc<Inbox>>,
    pub(crate) index: usize,
    /// The number of the node's first core.
    pub(crate) first_core: CoreId,
    pub(crate) state: State,
}

/// What the loop remembers between turns.
#[derive(Default)]
pub(crate) struct State {
    inputs: VecDeque<Input>,
    mail: Vec<Mail>,
    /// For each core of the node, what goes to it at the end of the turn.
    outgoing: Vec<Vec<Mail>>,
    admitted: Vec<Guest>,
    /// What was asked by those who watch this node, and is not answered yet.
    questions: Vec<(SessionId, Question)>,
    visitors: Visitors,
    next_core: usize,
    next_housekeeping_us: u64,
    /// The node had more to do than a turn allows.
    unfinished: bool,
    /// The node has asked for something since this was last reset.
    produced: bool,
    stopped: bool,
    complaints: Throttle,
}

impl Pump {
    /// Runs until the node has stopped and its last disk work is done.
    pub(crate) fn run(mut self) -> io::Result<()> {
        self.begin()?;
        let mut events = Events::with_capacity(EVENTS_PER_TURN);
        while !(self.state.stopped && self.disk.is_idle()) {
            let timeout = self.timeout();
            match self.poll.poll(&mut events, timeout) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            self.turn(&events)?;
        }
        Ok(())
    }

    fn begin(&mut self) -> io::Result<()> {
        let registry = self.poll.registry();
        registry.register(self.peers.listener(), PEER_LISTENER, Interest::READABLE)?;
        if let Some(listener) = &mut self.listener {
            for (index, socket) in listener.sockets().enumerate() {
                registry.register(socket, Token(LISTENER + index), Interest::READABLE)?;
            }
        }
        self.state.outgoing.resize_with(self.inboxes.len(), Vec::new);
        // The cores of a node are linked from the start and for good.
        for index in (0..self.inboxes.len()).filter(|&index| index != self.index) {
            let core = CoreId(self.first_core.0 + index as u16);
            self.state.inputs.push_back(Input::LinkUp { datacenter: self.name.datacenter, core });
        }
        self.peers.report_all(&mut self.state.inputs);
        self.drain();
        self.end_turn();
        self.write()
    }

    fn turn(&mut self, events: &Events) -> io::Result<()> {
        let now_us = self.clock.monotonic_us();
        self.take_mail(now_us);
        for event in events {
            self.take_event(event);
        }
        self.serve_listener(now_us);
        let registry = self.poll.registry();
        let inputs = &mut self.state.inputs;
        self.peers.tend(now_us, registry, inputs);
        self.peers.read(now_us, registry, inputs);
        self.peers.clean_up(now_us, registry, inputs);
        self.clients.read(now_us, registry, inputs);
        if now_us >= self.state.next_housekeeping_us {
            self.state.next_housekeeping_us = now_us + HOUSEKEEPING_US;
            self.clients.clean_up(now_us, registry, inputs);
            if let Some(memory) = self.memory {
                inputs.push_back(Input::MemoryReport(memory()));
                inputs.extend(cpu::report().map(Input::CpuReport));
            }
            inputs.extend(self.scrubbed.as_ref().map(|scrubbed| Input::ScrubReport(scrubbed.report())));
            let audit = self.audit.as_ref().filter(|_| self.index == 0);
            let lost = audit.map(AuditLog::take_lost).filter(|lost| *lost > 0);
            inputs.extend(lost.map(Input::AuditLost));
        }
        if self.node.next_timer().is_some_and(|due_us| due_us <= now_us) {
            inputs.push_back(Input::Timer);
        }
        self.end_turn();
        self.write()
    }

    /// How long nothing can happen without an event.
    fn timeout(&self) -> Option<Duration> {
        if self.state.unfinished
            || !self.state.inputs.is_empty()
            || self.clients.has_work()
            || self.peers.has_work()
        {
            return Some(Duration::ZERO);
        }
        let timers = [
            self.node.next_timer(),
            self.peers.next_us(),
            self.listener.as_ref().and_then(Listener::next_us),
            Some(self.state.next_housekeeping_us),
        ];
        let now_us = self.clock.monotonic_us();
        let next_us = timers.into_iter().flatten().min()?;
        Some(Duration::from_micros(next_us.saturating_sub(now_us)))
    }

    fn take_mail(&mut self, now_us: u64) {
        let mut mail = std::mem::take(&mut self.state.mail);
        self.inboxes[self.index].take(&mut mail);
        for item in mail.drain(..) {
            match item {
                Mail::Envelope(envelope) => self.state.inputs.push_back(Input::Message(envelope)),
                Mail::Client(guest) => {
                    self.clients.admit(now_us, guest, self.poll.registry(), &mut self.state.inputs);
                }
                Mail::Resolved(resolved) => self.peers.resolved(now_us, resolved),
                Mail::Synced(partition, done) => self.disk.synced(partition, done),
                Mail::ErrandDone { session, number, done } => {
                    self.state.inputs.push_back(Input::ErrandDone { session, number, done });
                }
                Mail::Moment(moment) => {
                    // No input of this turn was given to the node yet, and what earlier ones led to is on its disks.
                    if let Some(since) = moment.gate.arrive() {
                        let kept = self.keep(&moment);
                        moment.gate.stay(since);
                        // Who asked may have given up.
                        let _ = moment.kept.send(kept);
                    }
                }
                Mail::Observe(question) => {
                    let (session, scope) = (listener::next_session(self.first_core), question.scope);
                    self.state.questions.push((session, question));
                    self.state.inputs.push_back(Input::Observe { session, scope });
                }
                Mail::Visit(visit) => {
                    let session = listener::next_session(self.first_core);
                    self.state.visitors.admit(session, visit, &mut self.state.inputs);
                }
                Mail::Drain => {
                    self.listener = None;
                    self.clients.drain();
                }
                Mail::Shutdown => {
                    self.state.visitors.end_all(&mut self.state.inputs);
                    self.clients.end_all(self.poll.registry(), &mut self.state.inputs);
                    self.state.inputs.push_back(Input::Shutdown);
                }
            }
        }
        self.state.mail = mail;
    }

    /// Keeps the files of the partitions that live here.
    fn keep(&self, moment: &Moment) -> io::Result<OfCore> {
        if let Some(partition) = self.node.reading() {
            return Err(io::Error::other(format!("partition {partition} does not serve yet")));
        }
        let standings = self.node.standings();
        let leading = |partition: PartitionId| {
            let standing = standings.iter().flatten().find(|standing| standing.partition == partition)?;
            standing.leads.as_ref().map(|leading| leading.boot_id)
        };
        // Of a replicated partition only its owner's files are wanted.
        let boot_id = |partition| match standings {
            Some(_) => leading(partition),
            None => Some(moment.boot_id),
        };
        let files = self.disk.keep(&moment.folder, boot_id)?;
        Ok(OfCore { files, standings })
    }

    fn take_event(&mut self, event: &mio::event::Event) {
        let token = event.token();
        let at_end = event.is_read_closed() || event.is_error();
        let readable = event.is_readable() || at_end;
        let writable = event.is_writable();
        if clients::owns(token) {
            self.clients.on_event(token, Ready { readable, at_end, writable });
        } else if peers::owns(token) {
            self.peers.on_event(token, readable, writable);
        } else if token == PEER_LISTENER {
            self.peers.on_listener_ready();
        } else if token != WAKER {
            self.listener.iter_mut().for_each(Listener::on_ready);
        }
    }

    /// Lets clients in and deals them to the cores of the node in turn.
    fn serve_listener(&mut self, now_us: u64) {
        let Some(listener) = &mut self.listener else { return };
        let mut refused = Vec::new();
        listener.accept(now_us, &mut self.state.admitted, &mut refused);
        for stream in refused {
            self.clients.linger(now_us, stream, None);
        }
        for guest in self.state.admitted.drain(..) {
            let core = self.state.next_core;
            self.state.next_core = (core + 1) % self.inboxes.len();
            if core == self.index {
                self.clients.admit(now_us, guest, self.poll.registry(), &mut self.state.inputs);
            } else {
                self.state.outgoing[core].push(Mail::Client(guest));
            }
        }
    }

    /// Gives the node its inputs, ends the turn, and carries out its disk work until it asks for nothing more: what the
    /// end of a turn releases can lead to more that waits for the end of a turn.
    fn end_turn(&mut self) {
        self.feed();
        self.state.unfinished = true;
        let until_us = self.clock.monotonic_us() + TURN_US_MAX;
        for _ in 0..ROUNDS_PER_TURN {
            self.state.produced = false;
            self.state.inputs.push_back(Input::TurnEnd);
            self.feed();
            // One by one: each may be a part of a log that takes long to read.
            while let Some((partition, done)) = self.disk.next_done() {
                self.state.inputs.push_back(Input::Disk { partition, done });
                self.feed();
                if self.clock.monotonic_us() >= until_us {
                    return;
                }
            }
            if !self.state.produced {
                self.state.unfinished = false;
                break;
            }
        }
    }

    fn feed(&mut self) {
        while let Some(input) = self.state.inputs.pop_front() {
            self.node.on_input(self.clock.now(), input);
            self.drain();
        }
    }

    fn drain(&mut self) {
        while let Some(output) = self.node.next_output() {
            self.state.produced = true;
            self.carry_out(output);
        }
    }

    fn carry_out(&mut self, output: Output) {
        let registry: &Registry = self.poll.registry();
        match output {
            Output::Reply { session, bytes, answered, wants_turn } if self.state.visitors.has(session) => {
                self.state.visitors.reply(session, &bytes, (answered, wants_turn), &mut self.state.inputs);
            }
            Output::Reply { session, bytes, answered, wants_turn } => {
                let inputs = &mut self.state.inputs;
                self.clients.reply(session, bytes, (answered, wants_turn), registry, inputs);
            }
            Output::Push { session, bytes } => {
                self.clients.push(session, &bytes, registry, &mut self.state.inputs);
            }
            Output::Disconnect { session } if self.state.visitors.has(session) => {
                self.state.visitors.end(session, &mut self.state.inputs);
            }
            Output::Disconnect { session } => {
                self.clients.disconnect(self.clock.monotonic_us(), session);
            }
            Output::Send { datacenter, core, envelope } => match self.index_of(datacenter, core) {
                Some(index) if index == self.index => self.state.inputs.push_back(Input::Message(envelope)),
                Some(index) => self.state.outgoing[index].push(Mail::Envelope(envelope)),
                None => {
                    let now_us = self.clock.monotonic_us();
                    let to = CoreName { datacenter, core };
                    self.peers.send(now_us, to, &envelope, registry, &mut self.state.inputs);
                }
            },
            Output::Disk { partition, op } => self.disk.execute(partition, op),
            Output::Openness { is_open } => {
                self.clients.set_open(is_open);
                self.listener.iter_mut().for_each(|listener| listener.set_open(is_open));
            }
            Output::Configure(parameters) => self.configure(&parameters),
            Output::Errand { session, number, errand } => {
                self.errands.submit(&self.inboxes[self.index], session, number, errand);
            }
            Output::Observed { session, observation } => {
                let asked = |(asked, _): &(SessionId, Question)| *asked == session;
                if let Some(index) = self.state.questions.iter().position(asked) {
                    self.state.questions.swap_remove(index).1.answer(*observation);
                }
            }
            Output::Audit(audit) => {
                if let Some(audit_log) = &self.audit {
                    audit_log.record(self.name, audit);
                }
            }
            Output::Trace(Trace::ScriptLogged { level, text, .. }) => {
                let level = Level::ALL[usize::from(level).min(3)];
                log::at(level, format_args!("script: {}", text.escape_debug()));
            }
            Output::Trace(trace) => self.tell(&trace),
            // A host answers that itself.
            Output::Confirm { .. } => {}
            Output::Stopped => self.state.stopped = true,
        }
    }

    /// Takes over parameters that were set. All cores of a process have one log.
    fn configure(&mut self, parameters: &HostParameters) {
        self.clients.configure(parameters.timeout_s, parameters.output_limits);
        self.listener.iter_mut().for_each(|listener| listener.configure(parameters));
        if let Some(level) = Level::parse(&parameters.log_level) {
            log::set_level(level);
        }
    }

    /// The place of a core in this node, if it is one of its cores.
    fn index_of(&self, datacenter: DatacenterId, core: CoreId) -> Option<usize> {
        let index = usize::from(core.0.checked_sub(self.first_core.0)?);
        (datacenter == self.name.datacenter && index < self.inboxes.len()).then_some(index)
    }

    /// What the turn has produced leaves for the sockets and for the other cores.
    fn write(&mut self) -> io::Result<()> {
        let now_us = self.clock.monotonic_us();
        for (index, list) in self.state.outgoing.iter_mut().enumerate() {
            self.inboxes[index].post_all(list);
        }
        let registry = self.poll.registry();
        self.peers.flush(now_us, registry, &mut self.state.inputs);
        self.clients.flush(now_us, registry, &mut self.state.inputs);
        if self.clients.are_drained() {
            self.inboxes[self.index].set_drained();
        }
        Ok(())
    }

    /// Tells the operator what is worth it.
    fn tell(&mut self, trace: &Trace) {
        let core = self.peers.core_name(self.name);
        match trace {
            Trace::PartitionStopped { partition, reason } => {
                log::warning(format_args!("{core}: partition {partition} stopped: {reason}"));
            }
            Trace::TornTail { partition, bytes } => {
                log::warning(format_args!(
                    "{core}: partition {partition}: a torn tail of {bytes} bytes was cut"
                ));
            }
            Trace::TailLost { partition } => {
                log::warning(format_args!(
                    "{core}: partition {partition} may have lost the end of its log: \
                     it asks the other datacenters what they have of it"
                ));
            }
            Trace::TailRecovered { partition, entries } => {
                log::warning(format_args!("{core}: partition {partition} recovered {entries} entries"));
            }
            Trace::DeclaredLost { partition, origin, after } => {
                log::warning(format_args!(
                    "{core}: partition {partition}: of the stream of {} everything after {after} until its \
                     restart is lost",
                    self.peers.datacenter_name(*origin)
                ));
            }
            Trace::TimeRefused { partition, by, ahead_ms: 0 } => {
                let by = self.peers.datacenter_name(*by);
                log::notice(format_args!(
                    "{core}: partition {partition}: {by} takes this datacenter's time again"
                ));
            }
            Trace::TimeRefused { partition, by, ahead_ms } => {
                let by = self.peers.datacenter_name(*by);
                let now_us = self.clock.monotonic_us();
                self.state.complaints.warning(
                    now_us,
                    format_args!(
                        "{core}: partition {partition}: CLOCKAHEAD {by} takes nothing of this datacenter, whose time is {ahead_ms} ms ahead \
                         of its clock: look which of the two clocks is wrong, set it right, and see 'Clocks' in docs/operating.md"
                    ),
                );
            }
            Trace::Refused { what } => {
                let now_us = self.clock.monotonic_us();
                self.state.complaints.warning(now_us, format_args!("{core}: refused: {what}"));
            }
            Trace::HandlerFailed { partition, keyspace, handler, why } => {
                let now_us = self.clock.monotonic_us();
                self.state.complaints.warning(
                    now_us,
                    format_args!(
                        "{core}: partition {partition}: the handler '{handler}' of keyspace {} failed, and the last \
                         writer's value is shown: {why}",
                        keyspace.0
                    ),
                );
            }
            Trace::PartitionReady { partition, records } => {
                log::notice(format_args!("{core}: partition {partition} is ready after {records} records"));
            }
            other => self.tell_of_replicas(other),
        }
    }

    /// The same of partitions that are replicated on several nodes.
    fn tell_of_replicas(&self, trace: &Trace) {
        let core = self.peers.core_name(self.name);
        match trace {
            Trace::Leads { partition, term } => {
                log::notice(format_args!(
                    "{core}: partition {partition} is led by this core since term {term}"
                ));
            }
            Trace::LeadsNoMore { partition } => {
                log::notice(format_args!("{core}: partition {partition} is led by another core"));
            }
            Trace::ReplicaDismissed { partition } => {
                log::notice(format_args!("partition {partition} has no replica here any more"));
            }
            Trace::ReplicaTroubled { partition, words } => {
                log::warning(format_args!("{core}: the replica of partition {partition}: {words}"));
            }
            Trace::ReplicaStopped { partition, reason } => {
                log::warning(format_args!("{core}: the replica of partition {partition} stopped: {reason}"));
            }
            other => self.tell_of_directories(other),
        }
    }

    /// The same of directories that are empty, foreign or old.
    fn tell_of_directories(&self, trace: &Trace) {
        let core = self.peers.core_name(self.name);
        match trace {
            Trace::Joining { partition } => {
                log::notice(format_args!(
                    "{core}: partition {partition} starts with an empty directory: it asks the other datacenters \
                     whether they know an earlier one"
                ));
            }
            Trace::CannotRejoin { partition, reason } => {
                log::warning(format_args!("{core}: partition {partition} serves nothing: {reason}"));
            }
            Trace::Rejoining { partition } => {
                log::warning(format_args!(
                    "{core}: partition {partition} has an empty directory and takes everything from the other datacenters"
                ));
            }
            Trace::CopyBegun { partition, donor } => {
                let donor = self.peers.datacenter_name(*donor);
                log::warning(format_args!(
                    "{core}: partition {partition} has lost its directory, and the logs of the other datacenters begin \
                     later: it takes a copy of what {donor} holds"
                ));
            }
            Trace::CopyGivenUp { partition, donor } => {
                let donor = self.peers.datacenter_name(*donor);
                log::warning(format_args!(
                    "{core}: the copy of {donor}'s partition {partition} broke off: another one is begun"
                ));
            }
            Trace::Copied { partition, donor } => {
                let donor = self.peers.datacenter_name(*donor);
                log::notice(format_args!(
                    "{core}: partition {partition} holds a copy of what {donor} held, and takes what followed"
                ));
            }
            Trace::PeerRefused { partition, datacenter, reason } => {
                let datacenter = self.peers.datacenter_name(*datacenter);
                log::warning(format_args!(
                    "{core}: partition {partition} exchanges nothing with {datacenter} any more: {reason}"
                ));
            }
            Trace::PeerReadmitted { partition, datacenter } => {
                let datacenter = self.peers.datacenter_name(*datacenter);
                log::notice(format_args!("{core}: partition {partition} exchanges with {datacenter} again"));
            }
            Trace::GoesOnUnproved { partition, without } => {
                let names: Vec<String> =
                    without.iter().map(|datacenter| self.peers.datacenter_name(*datacenter)).collect();
                log::warning(format_args!(
                    "{core}: partition {partition} goes on though {} could not be asked whether this directory is the \
                     newest",
                    names.join(" and ")
                ));
            }
            other if log::is_on(log::Level::Debug) => log::debug(format_args!("{core}: {other:?}")),
            _ => {}
        }
    }
}
