//! One client on one connection: operations that wait, operations under way, and the bytes of both directions.
//!
//! Answers come in the order of commands, so the operation at the front is the one that an answer belongs to; a second
//! round goes to the back, with the intended start of the first. A connection that breaks is not opened again: what was
//! under way, and what is due later, is counted as failed.

use crate::answer::{Failure, Verdict, judge};
use crate::keys::KeyChooser;
use crate::random::Random;
use crate::request::{Chance, Composer, KeyCount};
use crate::workload::Operation;
use bytes::BytesMut;
use ensue_resp::Decoder;
use mio::net::TcpStream;
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};

/// What a client does next.
#[derive(Clone, Copy, Debug)]
pub enum Task {
    /// An operation, by its place in the mix.
    Operate { place: usize, operation: Operation },
    /// Writing a key before the run.
    Fill { key: u64 },
}

/// A task under way.
#[derive(Clone, Debug)]
struct Pending {
    task: Task,
    intended_ns: u64,
    key: u64,
    replies_left: u32,
    is_second: bool,
    missed: bool,
    failure: Option<(Failure, String)>,
}

/// A task that has ended.
#[derive(Clone, Debug)]
pub struct Ended {
    pub task: Task,
    pub intended_ns: u64,
    pub missed: bool,
    pub failure: Option<(Failure, String)>,
}

pub struct Session {
    stream: TcpStream,
    /// The server, by its place among the addresses.
    pub site: usize,
    /// Intended starts of what is due and has not begun.
    pub due: VecDeque<u64>,
    pub random: Random,
    chooser: KeyChooser,
    output: Vec<u8>,
    written: usize,
    input: BytesMut,
    decoder: Decoder,
    pending: VecDeque<Pending>,
    is_lost: bool,
}

impl Session {
    pub fn new(stream: TcpStream, site: usize, random: Random, chooser: KeyChooser) -> Session {
        Session {
            stream,
            site,
            due: VecDeque::new(),
            random,
            chooser,
            output: Vec::new(),
            written: 0,
            input: BytesMut::new(),
            decoder: Decoder::new(),
            pending: VecDeque::new(),
            is_lost: false,
        }
    }

    pub fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    pub fn under_way(&self) -> usize {
        self.pending.len()
    }

    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Puts a task's commands behind those that wait to be written.
    pub fn begin(&mut self, task: Task, intended_ns: u64, composer: &Composer, keys: &KeyCount) {
        let (key, replies_left) = match task {
            Task::Operate { operation, .. } => {
                let chance = Chance { random: &mut self.random, chooser: &mut self.chooser, keys };
                composer.first(operation, chance, &mut self.output)
            }
            Task::Fill { key } => (key, composer.fill(key, &mut self.random, &mut self.output)),
        };
        let (is_second, missed, failure) = (false, false, None);
        self.pending.push_back(Pending { task, intended_ns, key, replies_left, is_second, missed, failure });
    }

    /// Writes what the socket takes.
    pub fn flush(&mut self, ended: &mut Vec<Ended>) {
        while self.written < self.output.len() && !self.is_lost {
            match self.stream.write(&self.output[self.written..]) {
                Ok(0) => self.lose(Failure::Closed, ended),
                Ok(length) => self.written += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.lose(Failure::Closed, ended),
            }
        }
        self.output.clear();
        self.written = 0;
    }

    /// Reads what has arrived, and reports what has ended by it.
    pub fn receive(
        &mut self,
        scratch: &mut [u8],
        composer: &Composer,
        keys: &KeyCount,
        ended: &mut Vec<Ended>,
    ) {
        while !self.is_lost {
            match self.stream.read(scratch) {
                Ok(0) => self.lose(Failure::Closed, ended),
                Ok(length) => {
                    self.input.extend_from_slice(&scratch[..length]);
                    self.take_answers(composer, keys, ended);
                    // The socket is empty; what comes later is a new event.
                    if length < scratch.len() {
                        return;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.lose(Failure::Closed, ended),
            }
        }
    }

    /// Ends everything that is under way with this failure; the connection is of no more use.
    pub fn lose(&mut self, failure: Failure, ended: &mut Vec<Ended>) {
        self.is_lost = true;
        for pending in self.pending.drain(..) {
            let failure = Some((failure.clone(), String::new()));
            ended.push(Ended {
                task: pending.task,
                intended_ns: pending.intended_ns,
                missed: false,
                failure,
            });
        }
    }

    fn take_answers(&mut self, composer: &Composer, keys: &KeyCount, ended: &mut Vec<Ended>) {
        loop {
            let is_push = self.input.first() == Some(&b'>');
            let reply = match self.decoder.next(&mut self.input) {
                Ok(Some(reply)) => reply,
                Ok(None) => return,
                Err(_) => return self.lose(Failure::Unreadable, ended),
            };
            if is_push {
                continue;
            }
            let Some(front) = self.pending.front_mut() else {
                return self.lose(Failure::Unreadable, ended);
            };
            front.replies_left -= 1;
            let is_last = front.replies_left == 0;
            let verdict = match front.task {
                Task::Operate { operation, .. } => judge(operation, front.is_second, is_last, reply),
                Task::Fill { .. } => match crate::answer::error_in(&reply) {
                    Some(text) => {
                        let code = text.split(' ').next().unwrap_or_default();
                        Verdict::Failed(Failure::Error(code.into()), text.into())
                    }
                    None => Verdict::Fine,
                },
            };
            let mut found = Vec::new();
            match verdict {
                Verdict::Fine => {}
                Verdict::Miss => front.missed = true,
                Verdict::Found(names) => found = names,
                Verdict::Failed(failure, text) => {
                    front.failure.get_or_insert((failure, text));
                }
            }
            if let Some(pending) = is_last.then(|| self.pending.pop_front()).flatten() {
                self.go_on(pending, &found, composer, keys, ended);
            }
        }
    }

    /// A round is over: begins the second one, or ends the task.
    fn go_on(
        &mut self,
        mut pending: Pending,
        found: &[bytes::Bytes],
        composer: &Composer,
        keys: &KeyCount,
        ended: &mut Vec<Ended>,
    ) {
        if let (Task::Operate { operation, .. }, false, None) =
            (pending.task, pending.is_second, &pending.failure)
        {
            pending.replies_left = match operation {
                Operation::ReadModifyWrite => {
                    composer.write_back(pending.key, &mut self.random, &mut self.output)
                }
                Operation::Scan => composer.read_found(found, &mut self.output),
                _ => 0,
            };
            if pending.replies_left > 0 {
                pending.is_second = true;
                return self.pending.push_back(pending);
            }
            if operation == Operation::Insert {
                keys.inserted();
            }
        }
        let Pending { task, intended_ns, missed, failure, .. } = pending;
        ended.push(Ended { task, intended_ns, missed, failure });
    }
}
