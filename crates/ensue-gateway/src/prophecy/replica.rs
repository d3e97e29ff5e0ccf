//! A replica as a process. One thread has the machine of `ensue-byzantine` and the files; a thread for each link reads,
//! and one writes; one thread executes the order in the application, and some execute fast reads beside it.
//!
//! - Outputs of the machine are carried out in their order; what was logged is synced before anything behind it is
//!   sent.
//! - A fast read does not pass the machine: it shows whatever state the application is in.
//! - When the application gives no response to a request of the order: that is what the sketcher is told. Any client
//!   can make such a request, and all replicas will execute it.
//! - When the application takes no connections any more, or a file cannot be written: the process ends. Started again,
//!   with its application in its first state, it executes everything again.

use super::application::{Application, CallError};
use super::kept::Kept;
use super::link::{self, Links, Outbox};
use super::members::{Members, MembersError, Role, Secret};
use super::wire::{BETWEEN_REPLICAS_MAX, Response, TO_REPLICA_MAX, Ticket, ToReplica, ToSketcher};
use super::{figures, locked, micros_since};
use crate::limits::{
    CONNECT_PAUSE, EVENTS_A_TURN, EVENTS_MAX, EXECUTE_MAX, FAST_JOBS_MAX, FAST_MAX, FAST_WORKERS,
    SILENCE_MAX, STRANGERS_MAX,
};
use crate::spawn;
use ensue_byzantine::block::Request;
use ensue_byzantine::keys::Member;
use ensue_byzantine::limits::{CATCH_UP_BLOCKS, CATCH_UP_BYTES_MAX};
use ensue_byzantine::message::Message;
use ensue_byzantine::replica::{Answer, Output, Replica as Machine};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{process, thread};

/// How a replica is set up.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The group.
    pub members: Members,
    /// This replica's.
    pub secret: Secret,
    /// Where blocks and records are kept.
    pub directory: PathBuf,
    /// The server behind it.
    pub application: SocketAddr,
    /// Where figures are shown.
    pub figures: Option<SocketAddr>,
}

/// Why a replica does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The secret is another member's.
    #[error("this is the secret of {0}")]
    Role(Role),
    /// Requests would be executed twice.
    #[error(
        "the application is not in its first state: it has keys, and this replica executes all requests again"
    )]
    Used,
    /// What was kept is not what this version writes.
    #[error("what was kept cannot be read: {0}")]
    Kept(#[from] ensue_byzantine::Malformed),
    /// The application.
    #[error("the application at {0} does not answer: {1}")]
    Application(SocketAddr, String),
    /// Files of the group.
    #[error(transparent)]
    Members(#[from] MembersError),
    /// A file or a socket.
    #[error(transparent)]
    Io(#[from] io::Error),
}

enum Event {
    Said(Member, Message),
    Asked(Request),
    Executed(Arc<[u8]>),
    Counted(SyncSender<String>),
}

/// A fast read, and where its answer goes.
struct Job {
    ticket: Ticket,
    request: Vec<u8>,
    outbox: Arc<Outbox>,
}

/// What the threads of a replica share.
struct Shared {
    secret: Secret,
    me: Member,
    events: SyncSender<Event>,
    jobs: SyncSender<Job>,
    /// To each replica; that to itself stays empty.
    peers: Vec<Arc<Outbox>>,
    /// To each sketcher, its latest link.
    sketchers: Mutex<Vec<Option<Arc<Outbox>>>>,
    /// Connections that have not proved whose they are.
    strangers: AtomicUsize,
    links: Links,
}

/// Starts a replica; its threads end with the process.
///
/// # Errors
/// An application that does not answer or is not new, a directory or a port that is in use.
pub fn start(settings: &Settings) -> Result<(), StartError> {
    let Role::Replica(me) = settings.secret.role else { return Err(StartError::Role(settings.secret.role)) };
    settings.members.check(&settings.secret)?;
    let entry = settings.members.replicas.get(me.0 as usize).ok_or(StartError::Role(settings.secret.role))?;
    let (kept, records) = Kept::open(&settings.directory)?;
    let mut application = Application::new(settings.members.protocol, settings.application, EXECUTE_MAX);
    let unanswered = |error: CallError| StartError::Application(settings.application, error.to_string());
    if application.is_used().map_err(unanswered)? {
        return Err(StartError::Used);
    }
    let began = Instant::now();
    let mut machine = Machine::new(Arc::clone(&settings.members.group), me, settings.secret.signer.clone());
    restore(&mut machine, &kept, &records, &mut application)?;
    let listener = TcpListener::bind(entry.address)?;
    let (events, heard) = mpsc::sync_channel(EVENTS_MAX);
    let (jobs, fast) = mpsc::sync_channel(FAST_JOBS_MAX);
    let replicas = settings.members.replicas.len();
    let shared = Arc::new(Shared {
        secret: settings.secret.clone(),
        me,
        events: events.clone(),
        jobs,
        peers: (0..replicas).map(|_| Arc::default()).collect(),
        sketchers: Mutex::new(Vec::new()),
        strangers: AtomicUsize::new(0),
        links: Links::default(),
    });
    let (executions, order) = mpsc::channel();
    spawn("replica-execute", move || execute(&mut application, &order, &events))?;
    start_fast_workers(settings, fast)?;
    for (place, peer) in
        settings.members.replicas.iter().enumerate().filter(|(place, _)| *place != me.0 as usize)
    {
        let (shared, address) = (Arc::clone(&shared), peer.address);
        spawn("replica-send", move || send(&shared, place, address))?;
    }
    let accepting = Arc::clone(&shared);
    spawn("replica-accept", move || accept(&accepting, &listener))?;
    if let Some(address) = settings.figures {
        let events = shared.events.clone();
        figures::serve(address, move || {
            let (answer, text) = mpsc::sync_channel(1);
            events.send(Event::Counted(answer)).ok()?;
            text.recv().ok()
        })?;
    }
    let names = settings.members.names();
    let mut engine = Engine { machine, kept, shared, executions, began, names, absent: 0 };
    spawn("replica-agree", move || engine.run(&heard))?;
    Ok(())
}

/// Ends the process: this replica cannot go on, and who started it finds the reason.
fn fail(what: &str, error: &dyn std::fmt::Display) -> ! {
    eprintln!("this replica stops: {what}: {error}");
    process::exit(1)
}

/// Gives the machine what was kept, and has the application execute all of it.
fn restore(
    machine: &mut Machine,
    kept: &Kept,
    records: &[Vec<u8>],
    application: &mut Application,
) -> Result<(), StartError> {
    for height in 1..=kept.blocks() {
        let Some(block) = kept.block(height)? else { break };
        machine.restore_block(&block)?;
        while let Some(output) = machine.take_output() {
            if let Output::Execute { body, .. } = output {
                machine.on_executed(0, run(application, &body));
            }
        }
    }
    for record in records {
        machine.restore_record(0, record)?;
    }
    Ok(())
}

/// What comes of a request of the order.
fn run(application: &mut Application, body: &[u8]) -> Arc<[u8]> {
    let response = match application.execute(body) {
        Ok(response) => Response::Whole(response),
        Err(CallError::TooLong) => Response::TooLong,
        Err(CallError::NoResponse(_)) => Response::Absent,
        Err(error @ (CallError::Unreached(_) | CallError::StartedAnew)) => {
            fail("the application cannot go on", &error)
        }
    };
    response.encode().into()
}

fn execute(application: &mut Application, order: &Receiver<Vec<u8>>, events: &SyncSender<Event>) {
    for body in order {
        let response = run(application, &body);
        if events.send(Event::Executed(response)).is_err() {
            return;
        }
    }
}

fn start_fast_workers(settings: &Settings, jobs: Receiver<Job>) -> io::Result<()> {
    let jobs = Arc::new(Mutex::new(jobs));
    for _ in 0..FAST_WORKERS {
        let jobs = Arc::clone(&jobs);
        let mut application = Application::new(settings.members.protocol, settings.application, FAST_MAX);
        spawn("replica-fast", move || {
            loop {
                let Ok(Job { ticket, request, outbox }) = locked(&jobs).recv() else { return };
                // A sketcher that gets no answer reads replicated.
                if let Ok(response) = application.read(&request) {
                    outbox.push(ToSketcher::Fast { ticket, response }.encode().into());
                }
            }
        })?;
    }
    Ok(())
}

/// Keeps a link to another replica, and sends what its outbox gets.
fn send(shared: &Shared, place: usize, address: SocketAddr) {
    let peer = Role::Replica(Member(place as u32));
    loop {
        // What was meant for a link that was is said again.
        shared.peers[place].clear();
        let linked = link::connect(address, &shared.secret, peer, BETWEEN_REPLICAS_MAX);
        if let Ok((mut sealing, _opening)) = linked {
            // The next one is made whatever ended this one.
            let _ = sealing.carry(&shared.peers[place]);
        }
        thread::sleep(CONNECT_PAUSE);
    }
}

fn accept(shared: &Arc<Shared>, listener: &TcpListener) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            thread::sleep(CONNECT_PAUSE);
            continue;
        };
        if shared.strangers.fetch_add(1, Ordering::Relaxed) >= STRANGERS_MAX {
            shared.strangers.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let linked = Arc::clone(shared);
        let started = spawn("replica-hear", move || {
            if let Err(error) = hear(&linked, stream) {
                if error.kind() == io::ErrorKind::PermissionDenied {
                    eprintln!("a link is refused: {error}");
                }
            }
        });
        if started.is_err() {
            shared.strangers.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn hear(shared: &Arc<Shared>, stream: TcpStream) -> io::Result<()> {
    let frame_max = |role| match role {
        Role::Replica(_) => BETWEEN_REPLICAS_MAX,
        Role::Sketcher(_) => TO_REPLICA_MAX,
    };
    let accepted = link::accept(stream, &shared.secret, frame_max);
    shared.strangers.fetch_sub(1, Ordering::Relaxed);
    let (role, mut sealing, mut opening) = accepted?;
    let _counted = shared.links.count(role)?;
    opening.set_silence_max(SILENCE_MAX)?;
    match role {
        Role::Replica(member) => loop {
            let message = Message::decode(&opening.read()?).map_err(io::Error::other)?;
            shared.events.send(Event::Said(member, message)).map_err(io::Error::other)?;
        },
        Role::Sketcher(member) => {
            let outbox = shared.open_outbox(member);
            let written = Arc::clone(&outbox);
            spawn("replica-answer", move || {
                // The reader of this link notices that it is over.
                let _ = sealing.carry(&written);
            })?;
            let heard = hear_sketcher(shared, &mut opening, &outbox);
            outbox.close();
            heard
        }
    }
}

fn hear_sketcher(shared: &Shared, opening: &mut link::Opening, outbox: &Arc<Outbox>) -> io::Result<()> {
    loop {
        let frame = opening.read()?;
        // A sketcher has nothing to say, and is alive.
        if frame.is_empty() {
            continue;
        }
        match ToReplica::decode(&frame).map_err(io::Error::other)? {
            ToReplica::Fast { ticket, request } => {
                // What finds no room is not answered.
                let _ = shared.jobs.try_send(Job { ticket, request, outbox: Arc::clone(outbox) });
            }
            ToReplica::Call(request) => {
                shared.events.send(Event::Asked(request)).map_err(io::Error::other)?
            }
        }
    }
}

impl Shared {
    fn open_outbox(&self, sketcher: Member) -> Arc<Outbox> {
        let outbox = Arc::new(Outbox::default());
        let mut sketchers = locked(&self.sketchers);
        let place = sketcher.0 as usize;
        if sketchers.len() <= place {
            sketchers.resize(place + 1, None);
        }
        if let Some(former) = sketchers[place].replace(Arc::clone(&outbox)) {
            former.close();
        }
        outbox
    }

    fn answer(&self, answer: &Answer) {
        let outbox = locked(&self.sketchers).get(answer.session.client.0 as usize).cloned().flatten();
        let Some(outbox) = outbox else { return };
        let response = Response::decode(&answer.response).expect("it was encoded here");
        let answer = ToSketcher::Answer {
            session: answer.session.number,
            number: answer.number,
            sequence: answer.sequence,
            response,
        };
        outbox.push(answer.encode().into());
    }
}

struct Engine {
    machine: Machine,
    kept: Kept,
    shared: Arc<Shared>,
    executions: Sender<Vec<u8>>,
    began: Instant,
    names: Vec<String>,
    /// Requests that the application gave no response to.
    absent: u64,
}

impl Engine {
    fn run(&mut self, events: &Receiver<Event>) {
        self.machine.on_restored(micros_since(self.began));
        self.carry_out();
        loop {
            let now_us = micros_since(self.began);
            let patience = Duration::from_micros(self.machine.next_deadline_us().saturating_sub(now_us));
            match events.recv_timeout(patience) {
                Ok(event) => {
                    self.on_event(event);
                    events.try_iter().take(EVENTS_A_TURN).for_each(|event| self.on_event(event));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let now_us = micros_since(self.began);
            if self.machine.next_deadline_us() <= now_us {
                self.machine.on_tick(now_us);
            }
            self.carry_out();
        }
    }

    fn on_event(&mut self, event: Event) {
        let now_us = micros_since(self.began);
        match event {
            Event::Said(from, message) => self.machine.on_message(now_us, from, message),
            Event::Asked(request) => self.machine.on_request(now_us, request),
            Event::Executed(response) => {
                self.absent += u64::from(*response == *Response::Absent.encode());
                self.machine.on_executed(now_us, response);
            }
            Event::Counted(answer) => {
                // Who asked may be gone.
                let _ = answer.send(self.figures());
            }
        }
    }

    fn carry_out(&mut self) {
        while let Some(output) = self.machine.take_output() {
            if let Err(error) = self.carry_out_one(output) {
                fail("its files cannot be used", &error);
            }
        }
    }

    fn carry_out_one(&mut self, output: Output) -> io::Result<()> {
        match output {
            Output::Log(record) => self.kept.log(&record)?,
            Output::Decided { height, record } => {
                self.kept.decide(&record)?;
                assert_eq!(self.kept.blocks(), height, "every block is kept");
            }
            // The thread that executes lives as long as the process.
            Output::Execute { body, .. } => self.executions.send(body).map_err(io::Error::other)?,
            Output::Send { to, bytes } => {
                self.kept.sync()?;
                self.shared.peers[to.0 as usize].push(bytes);
            }
            Output::Fetch { to, height } => {
                let outbox = &self.shared.peers[to.0 as usize];
                let mut bytes = outbox.bytes();
                for height in height..height + CATCH_UP_BLOCKS {
                    if bytes > CATCH_UP_BYTES_MAX {
                        break;
                    }
                    let Some(block) = self.kept.block(height)? else { break };
                    bytes += block.len();
                    outbox.push(Message::bytes_of_decided(&block).into());
                }
            }
            Output::Answer(answer) => self.shared.answer(&answer),
        }
        Ok(())
    }

    fn figures(&self) -> String {
        let counts = self.machine.counts();
        let mut text = String::new();
        let mut push = |name, value| figures::push(&mut text, name, None, value);
        push("replica_blocks", self.kept.blocks());
        push("replica_blocks_decided_total", counts.decided);
        push("replica_blocks_late_total", counts.late);
        push("replica_blocks_given_total", counts.given);
        push("replica_without_response_total", self.absent);
        push("replica_unexecuted", self.machine.unexecuted() as u64);
        for (place, name) in
            self.names.iter().enumerate().filter(|(place, _)| *place != self.shared.me.0 as usize)
        {
            let count = counts.equivocations.get(place).copied().unwrap_or_default();
            figures::push(&mut text, "replica_equivocations_total", Some(name), count);
        }
        text
    }
}
