//! A store under load: one server, or several datacenters of one store, with the clients that are connected to them.

use crate::answer::Failures;
use crate::cpu;
use crate::error::LoadError;
use crate::keys::KeyChooser;
use crate::link::Link;
use crate::pace::Pace;
use crate::popper::Popper;
use crate::random::Random;
use crate::request::{Composer, KeyCount};
use crate::run::{Plan, Preload};
use crate::session::Session;
use crate::tally::{Interval, Sample};
use crate::target::Target;
use crate::wire::Wire;
use crate::worker::{Budget, Common, Window, Work, Worker};
use ensue_types::Reply;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Connections of each server, and operations on each, that write the keys before a run.
const FILL_CLIENTS: usize = 4;
const FILL_PIPELINE: usize = 16;
/// How long the keys may take to be written, and to arrive in other datacenters.
const FILL_TIMEOUT: Duration = Duration::from_secs(600);
const REMOVED_TOGETHER: usize = 100;
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(30);
const ARRIVAL_PAUSE: Duration = Duration::from_millis(20);

pub struct Side {
    pub targets: Vec<Target>,
    workers: Vec<Worker>,
    common: Common,
    pids: Vec<u32>,
    resp: u8,
    seed: u64,
}

/// A window's sample, and the processor time of the servers meanwhile.
pub struct Measured {
    pub sample: Sample,
    pub processor_ns: Option<u64>,
}

impl Side {
    /// Connects all clients, after the servers have said that they can do what is asked.
    pub fn open(plan: &Plan, targets: &[Target], pids: &[u32], base: Instant) -> Result<Side, LoadError> {
        for target in targets {
            require_commands(plan, &mut Link::open(target, plan.resp)?, target)?;
        }
        let keys = plan.keys();
        let common = Common {
            composer: Arc::new(Composer::new(plan.workload.clone(), plan.prefix.clone(), plan.seed)),
            keys: Arc::new(KeyCount::new(keys)),
            base,
            pipeline: plan.pipeline,
            sites: targets.len(),
        };
        let clients = plan.clients.max(1);
        let threads = plan.threads.clamp(1, clients);
        let mut of_threads: Vec<Vec<Session>> = (0..threads).map(|_| Vec::new()).collect();
        let mut seeds = Random::new(plan.seed);
        for client in 0..clients {
            let site = client % targets.len();
            let chooser = KeyChooser::new(plan.workload.access, client as u64, clients as u64);
            let popper = match plan.workload.hands_over() {
                true => Some(popper(&targets[site], plan.resp, &common.composer)?),
                false => None,
            };
            let random = Random::new(seeds.next_u64());
            let session = Session::new(wire(&targets[site], plan.resp)?, site, random, chooser, popper);
            of_threads[client % threads].push(session);
        }
        let mut workers = Vec::new();
        for sessions in of_threads {
            let share = sessions.len() as f64 / clients as f64;
            workers.push(Worker::new(common.clone(), share, seeds.next_u64(), sessions)?);
        }
        let pids = if pids.is_empty() { found_pids(targets, plan.resp)? } else { pids.to_vec() };
        cpu::processor_ns(&pids)?;
        Ok(Side { targets: targets.to_vec(), workers, common, pids, resp: plan.resp, seed: plan.seed })
    }

    /// Writes every key, at the first server or at each.
    pub fn preload(&self, how: Preload) -> Result<(), LoadError> {
        let count = match how {
            Preload::None => return Ok(()),
            _ if self.common.composer.workload().families().is_empty() => return Ok(()),
            Preload::First => 1,
            Preload::Each => self.targets.len(),
        };
        for target in &self.targets[..count] {
            self.fill(target)?;
        }
        self.targets[count..].iter().try_for_each(|target| self.await_keys(target))
    }

    /// Runs the clients of all threads through a window.
    pub fn run(&mut self, window: &Window, mut each: impl FnMut(Interval)) -> Result<Measured, LoadError> {
        let before_ns = cpu::processor_ns(&self.pids)?;
        let (sender, receiver) = mpsc::channel();
        let samples = thread::scope(|scope| {
            let running: Vec<_> = self
                .workers
                .iter_mut()
                .map(|worker| {
                    let sender = sender.clone();
                    scope.spawn(move || worker.run(window, &sender))
                })
                .collect();
            drop(sender);
            receiver.iter().for_each(&mut each);
            let ended = running.into_iter().map(|thread| match thread.join() {
                Ok(sample) => sample,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            ended.collect::<Vec<Result<Sample, LoadError>>>()
        });
        let cells = self.targets.len() * self.common.composer.workload().operations().len();
        let mut all = Sample::new(cells);
        for sample in samples {
            all.merge(&sample?);
        }
        let processor_ns = (!self.pids.is_empty())
            .then(|| cpu::processor_ns(&self.pids))
            .transpose()?
            .map(|after_ns| after_ns.saturating_sub(before_ns));
        Ok(Measured { sample: all, processor_ns })
    }

    /// Nanoseconds since the time that all windows count from.
    pub fn now_ns(&self) -> u64 {
        self.common.base.elapsed().as_nanos() as u64
    }

    fn fill(&self, target: &Target) -> Result<(), LoadError> {
        let common = Common { pipeline: FILL_PIPELINE, sites: 1, ..self.common.clone() };
        let mut seeds = Random::new(self.seed);
        let sessions = (0..FILL_CLIENTS).map(|_| {
            let chooser = KeyChooser::new(self.common.composer.workload().access, 0, 1);
            let wire = wire(target, self.resp)?;
            Ok(Session::new(wire, 0, Random::new(seeds.next_u64()), chooser, None))
        });
        let sessions = sessions.collect::<Result<Vec<Session>, LoadError>>()?;
        let begin_ns = self.now_ns();
        let window = Window {
            begin_ns,
            counted_ns: begin_ns,
            end_ns: begin_ns + FILL_TIMEOUT.as_nanos() as u64,
            drain_ns: 0,
            work: Work::Fill(Arc::new(Budget::new(self.common.keys.initial()))),
            pace: Pace::Closed,
            number: 0,
            interval_ns: Duration::from_secs(1).as_nanos() as u64,
        };
        let (sender, _unread) = mpsc::channel();
        let sample = Worker::new(common, 1.0, self.seed, sessions)?.run(&window, &sender)?;
        let written: u64 = sample.cells.iter().map(|cell| cell.completed).sum();
        if sample.failures.total() > 0 || written < self.common.keys.initial() {
            return Err(LoadError::Preload(failures_text(&sample.failures)));
        }
        Ok(())
    }

    /// Waits until keys that were written elsewhere can be read here.
    fn await_keys(&self, target: &Target) -> Result<(), LoadError> {
        let mut link = Link::open(target, self.resp)?;
        let keys = self.common.keys.initial();
        let began = Instant::now();
        // Keys are written from the last to the first, by several connections.
        for number in (0..keys.min(64)).chain((0..16).map(|part| keys * part / 16)) {
            let key = self.common.composer.filled_key(number);
            while link.call(&[b"EXISTS", &key])? != Reply::Integer(1) {
                if began.elapsed() > ARRIVAL_TIMEOUT {
                    let (target, first) = (Box::new(target.clone()), Box::new(self.targets[0].clone()));
                    return Err(LoadError::NotReplicated {
                        target,
                        first,
                        seconds: ARRIVAL_TIMEOUT.as_secs(),
                    });
                }
                thread::sleep(ARRIVAL_PAUSE);
            }
        }
        Ok(())
    }
}

/// Removes the keys that are written before a run.
pub fn remove_keys(plan: &Plan, target: &Target) -> Result<(), LoadError> {
    let composer = Composer::new(plan.workload.clone(), plan.prefix.clone(), plan.seed);
    let mut link = Link::open(target, plan.resp)?;
    let names: Vec<String> = (0..plan.keys()).flat_map(|number| composer.filled_keys(number)).collect();
    for some in names.chunks(REMOVED_TOGETHER) {
        let some: Vec<&str> = some.iter().map(String::as_str).collect();
        link.require("DEL", &some)?;
    }
    Ok(())
}

/// Each kind with its number and an example.
pub fn failures_text(failures: &Failures) -> String {
    let lines = failures.iter().map(|(failure, count, example)| match example {
        "" => format!("{count} times {failure}"),
        example => format!("{count} times {failure} ({example})"),
    });
    lines.collect::<Vec<_>>().join(", ")
}

fn wire(target: &Target, resp: u8) -> Result<Wire, LoadError> {
    let stream = Link::open(target, resp)?.into_stream()?;
    Ok(Wire::new(mio::net::TcpStream::from_std(stream)))
}

/// Its list is named after this end of the connection, so that two stores with the same data do not share it.
fn popper(target: &Target, resp: u8, composer: &Composer) -> Result<Popper, LoadError> {
    let mut wire = wire(target, resp)?;
    let here = wire.stream().local_addr();
    let here = here.map_err(|error| LoadError::Connect { target: Box::new(target.clone()), error })?;
    Ok(Popper::new(wire, composer.list_of(&here.to_string())))
}

/// Asks for every command of the workload. A server that does not describe its commands is taken at its word later.
fn require_commands(plan: &Plan, link: &mut Link, target: &Target) -> Result<(), LoadError> {
    for operation in plan.workload.operations() {
        for command in operation.commands() {
            let Reply::Array(rows) = link.call(&[b"COMMAND", b"INFO", command.as_bytes()])? else {
                return Ok(());
            };
            if matches!(rows.first(), Some(Reply::Nil | Reply::NilArray)) {
                let (target, operation) = (Box::new(target.clone()), operation.to_string());
                return Err(LoadError::Unsupported { target, command, operation });
            }
        }
    }
    Ok(())
}

/// The processes of servers on this machine, as their `INFO` names them; none if one of the servers is elsewhere.
pub fn found_pids(targets: &[Target], resp: u8) -> Result<Vec<u32>, LoadError> {
    let mut pids = Vec::new();
    for target in targets {
        if !target.is_loopback() {
            return Ok(Vec::new());
        }
        let (Reply::Bulk(text) | Reply::Verbatim(text)) =
            Link::open(target, resp)?.call(&[b"INFO", b"server"])?
        else {
            return Ok(Vec::new());
        };
        let text = String::from_utf8_lossy(&text).into_owned();
        let pid = text.lines().find_map(|line| line.trim_end().strip_prefix("process_id:")?.parse().ok());
        match pid {
            // Another machine's number behind a tunnel, or another namespace's.
            Some(pid) if cpu::processor_ns(&[pid]).is_ok() => pids.push(pid),
            _ => return Ok(Vec::new()),
        }
    }
    pids.sort_unstable();
    pids.dedup();
    Ok(pids)
}
