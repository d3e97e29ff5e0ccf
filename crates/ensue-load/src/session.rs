//! One client on one connection: operations that wait, operations under way, and the bytes of both directions.
//!
//! Answers come in the order of commands, so the operation at the front is the one that an answer belongs to; a second
//! round goes to the back, with the intended start of the first. A connection that breaks is not opened again: what was
//! under way, and what is due later, is counted as failed.
//!
//! A client that hands elements over has a second connection, which pops them: `popper`.

use crate::answer::{Failure, Verdict, error_in, failure_of, judge};
use crate::keys::KeyChooser;
use crate::popper::Popper;
use crate::random::Random;
use crate::request::{Chance, Composer, KeyCount};
use crate::wire::Wire;
use crate::workload::Operation;
use mio::net::TcpStream;
use std::collections::VecDeque;

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
    /// Of a hand-over: its number.
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
    wire: Wire,
    /// The server, by its place among the addresses.
    pub site: usize,
    /// Intended starts of what is due and has not begun.
    pub due: VecDeque<u64>,
    pub random: Random,
    chooser: KeyChooser,
    popper: Option<Popper>,
    pending: VecDeque<Pending>,
    is_lost: bool,
}

impl Session {
    pub fn new(
        wire: Wire,
        site: usize,
        random: Random,
        chooser: KeyChooser,
        popper: Option<Popper>,
    ) -> Session {
        let (due, pending) = (VecDeque::new(), VecDeque::new());
        Session { wire, site, due, random, chooser, popper, pending, is_lost: false }
    }

    pub fn stream(&mut self) -> &mut TcpStream {
        self.wire.stream()
    }

    /// The second connection, of a client that has one.
    pub fn popping_stream(&mut self) -> Option<&mut TcpStream> {
        self.popper.as_mut().map(|popper| popper.wire.stream())
    }

    pub fn under_way(&self) -> usize {
        self.pending.len() + self.popper.as_ref().map_or(0, Popper::only_here)
    }

    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Puts a task's commands behind those that wait to be written.
    pub fn begin(&mut self, task: Task, intended_ns: u64, composer: &Composer, keys: &KeyCount) {
        let output = &mut self.wire.output;
        let (key, replies_left) = match (task, &mut self.popper) {
            (Task::Operate { operation: Operation::HandOver, .. }, Some(popper)) => {
                let replies = composer.hand_over(&popper.list, &mut self.random, output);
                (popper.begin(task, intended_ns), replies)
            }
            (Task::Operate { operation, .. }, _) => {
                let chance = Chance { random: &mut self.random, chooser: &mut self.chooser, keys };
                composer.first(operation, chance, output)
            }
            (Task::Fill { key }, _) => (key, composer.fill(key, &mut self.random, output)),
        };
        let (is_second, missed, failure) = (false, false, None);
        self.pending.push_back(Pending { task, intended_ns, key, replies_left, is_second, missed, failure });
    }

    /// Writes what the sockets take; pops first, so that they are the first to arrive.
    pub fn flush(&mut self, ended: &mut Vec<Ended>) {
        if self.is_lost {
            return;
        }
        let popping = self.popper.as_mut().map_or(Ok(()), |popper| popper.wire.flush());
        if let Err(failure) = popping.and_then(|()| self.wire.flush()) {
            self.lose(failure, "", ended);
        }
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
            match self.wire.read(scratch) {
                Ok(more) => {
                    self.take_answers(composer, keys, ended);
                    if !more {
                        return;
                    }
                }
                Err(failure) => self.lose(failure, "", ended),
            }
        }
    }

    /// The same on the second connection.
    pub fn receive_popped(&mut self, scratch: &mut [u8], ended: &mut Vec<Ended>) {
        let Some(popper) = self.popper.as_mut().filter(|_| !self.is_lost) else { return };
        if let Err((failure, text)) = popper.receive(scratch, ended) {
            self.lose(failure, &text, ended);
        }
    }

    /// Ends everything that is under way with this failure; the connection is of no more use.
    pub fn lose(&mut self, failure: Failure, text: &str, ended: &mut Vec<Ended>) {
        self.is_lost = true;
        // Elements that have arrived have ended, though their push is not answered: the popper knows the others.
        if let Some(popper) = &mut self.popper {
            popper.lose(&failure, text, ended);
            self.pending.retain(|pending| {
                !matches!(pending.task, Task::Operate { operation: Operation::HandOver, .. })
            });
        }
        for Pending { task, intended_ns, .. } in self.pending.drain(..) {
            let failure = Some((failure.clone(), text.into()));
            ended.push(Ended { task, intended_ns, missed: false, failure });
        }
    }

    fn take_answers(&mut self, composer: &Composer, keys: &KeyCount, ended: &mut Vec<Ended>) {
        loop {
            let reply = match self.wire.next() {
                Ok(Some(reply)) => reply,
                Ok(None) => return,
                Err(failure) => return self.lose(failure, "", ended),
            };
            let Some(front) = self.pending.front_mut() else {
                return self.lose(Failure::Unreadable, "", ended);
            };
            front.replies_left -= 1;
            let is_last = front.replies_left == 0;
            let verdict = match front.task {
                Task::Operate { operation, .. } => judge(operation, front.is_second, is_last, reply),
                Task::Fill { .. } => match error_in(&reply) {
                    Some(text) => {
                        let (failure, text) = failure_of(text);
                        Verdict::Failed(failure, text)
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
        if let (Task::Operate { operation: Operation::HandOver, .. }, Some(popper)) =
            (pending.task, &mut self.popper)
        {
            return popper.on_pushed(pending.key, pending.failure, ended);
        }
        if let (Task::Operate { operation, .. }, false, None) =
            (pending.task, pending.is_second, &pending.failure)
        {
            pending.replies_left = match operation {
                Operation::ReadModifyWrite => {
                    composer.write_back(pending.key, &mut self.random, &mut self.wire.output)
                }
                Operation::Scan => composer.read_found(found, &mut self.wire.output),
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
