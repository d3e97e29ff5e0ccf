//! The second connection of a client that hands elements over: it waits in `BLPOP` at a list of the client's own.
//!
//! It begins to wait before the element is pushed, and waits again as soon as it has been answered. With one operation
//! under way the list is empty whenever an element is pushed, so the server hands it to a client that is blocked; with
//! more, elements may lie in the list, and a pop finds them there.

use crate::answer::{Failure, error_in, failure_of};
use crate::request::pop_waiting;
use crate::session::{Ended, Task};
use crate::wire::Wire;
use ensue_types::Reply;
use std::collections::VecDeque;

/// An element that is pushed and not popped.
struct HandOver {
    number: u64,
    task: Task,
    intended_ns: u64,
    /// The push was answered before the pop was.
    is_pushed: bool,
}

pub struct Popper {
    pub wire: Wire,
    pub list: Vec<u8>,
    is_waiting: bool,
    begun: u64,
    under_way: VecDeque<HandOver>,
}

impl Popper {
    pub fn new(wire: Wire, list: Vec<u8>) -> Popper {
        Popper { wire, list, is_waiting: false, begun: 0, under_way: VecDeque::new() }
    }

    /// Those whose push is no longer under way on the other connection.
    pub fn only_here(&self) -> usize {
        self.under_way.iter().filter(|hand_over| hand_over.is_pushed).count()
    }

    /// A push is about to be sent: whoever is to get the element waits from now on. Gives the push its number.
    pub fn begin(&mut self, task: Task, intended_ns: u64) -> u64 {
        self.wait();
        self.begun += 1;
        let number = self.begun;
        self.under_way.push_back(HandOver { number, task, intended_ns, is_pushed: false });
        number
    }

    /// The push was answered. One that failed hands nothing over.
    pub fn on_pushed(&mut self, number: u64, failure: Option<(Failure, String)>, ended: &mut Vec<Ended>) {
        let place = self.under_way.iter().position(|hand_over| hand_over.number == number);
        match (place, failure) {
            (Some(place), None) => self.under_way[place].is_pushed = true,
            // The element has arrived already.
            (None, None) => {}
            (place, failure) => {
                // If it was taken for one that arrived, that was the next one: this many are still to arrive.
                if let Some(HandOver { task, intended_ns, .. }) = self.under_way.remove(place.unwrap_or(0)) {
                    ended.push(Ended { task, intended_ns, missed: false, failure });
                }
            }
        }
    }

    /// Reads answers of pops; fails if the connection is of no more use.
    pub fn receive(&mut self, scratch: &mut [u8], ended: &mut Vec<Ended>) -> Result<(), (Failure, String)> {
        let plain = |failure| (failure, String::new());
        loop {
            let more = self.wire.read(scratch).map_err(plain)?;
            while let Some(reply) = self.wire.next().map_err(plain)? {
                if let Some(text) = error_in(&reply) {
                    return Err(failure_of(text));
                }
                let is_element = matches!(&reply, Reply::Array(items) if items.len() == 2);
                let first = if is_element { self.under_way.pop_front() } else { None };
                let Some(HandOver { task, intended_ns, .. }) = first else {
                    return Err(plain(Failure::Unexpected("no element of this client")));
                };
                ended.push(Ended { task, intended_ns, missed: false, failure: None });
                self.is_waiting = false;
                self.wait();
            }
            if !more {
                return Ok(());
            }
        }
    }

    /// Everything that is under way fails.
    pub fn lose(&mut self, failure: &Failure, text: &str, ended: &mut Vec<Ended>) {
        for HandOver { task, intended_ns, .. } in self.under_way.drain(..) {
            let failure = Some((failure.clone(), text.into()));
            ended.push(Ended { task, intended_ns, missed: false, failure });
        }
    }

    fn wait(&mut self) {
        if !self.is_waiting {
            self.is_waiting = true;
            pop_waiting(&self.list, &mut self.wire.output);
        }
    }
}
