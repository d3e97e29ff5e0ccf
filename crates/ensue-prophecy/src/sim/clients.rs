//! What clients do next, and what they did and saw.

use super::message::Command;
use super::shape::Shape;
use crate::history::{History, Kind, ObjectId, Operation, Value};
use crate::random::Random;

/// One client.
struct Client {
    left: usize,
    open: Option<Operation>,
}

/// All clients, those that only write among them.
pub(super) struct Clients {
    clients: Vec<Client>,
    /// From this number on they only write.
    writers_from: usize,
    next_value: u64,
    objects: u64,
    writes_per_mille: u64,
    think_us_max: u64,
    random: Random,
    history: History,
}

impl Clients {
    pub(super) fn new(shape: &Shape, writers: usize) -> Clients {
        let client = |_| Client { left: shape.operations, open: None };
        Clients {
            clients: (0..shape.clients + writers).map(client).collect(),
            writers_from: shape.clients,
            next_value: 1,
            objects: shape.objects,
            writes_per_mille: shape.writes_per_mille,
            think_us_max: shape.think_us_max,
            random: Random::stream(shape.seed, "clients"),
            history: History::default(),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.clients.len()
    }

    pub(super) fn think_us(&mut self) -> u64 {
        self.random.between(1, self.think_us_max)
    }

    /// The next command of a client; nothing if it has done all.
    pub(super) fn begin(&mut self, now_us: u64, number: usize) -> Option<Command> {
        let is_write = number >= self.writers_from || self.random.chance(self.writes_per_mille);
        let object = ObjectId(1 + self.random.below(self.objects));
        let client = &mut self.clients[number];
        client.left = client.left.checked_sub(1)?;
        let value = Value(if is_write { self.next_value } else { u64::MAX });
        self.next_value += u64::from(is_write);
        client.open = Some(Operation {
            process: number as u32,
            object,
            kind: if is_write { Kind::Write } else { Kind::Read },
            value,
            invoked_us: now_us,
            returned_us: None,
        });
        Some(if is_write { Command::Set(object, value) } else { Command::Get(object) })
    }

    /// The answer of a client's command arrives; a read has this value.
    pub(super) fn end(&mut self, now_us: u64, number: usize, read: Value) {
        let open = self.clients[number].open.take();
        let mut operation = open.expect("a client has one operation at a time, which is answered once");
        if operation.kind == Kind::Read {
            operation.value = read;
        }
        operation.returned_us = Some(now_us);
        self.history.operations.push(operation);
    }

    pub(super) fn unanswered(&self) -> usize {
        self.clients.iter().filter(|client| client.open.is_some() || client.left > 0).count()
    }

    /// The history, with writes that were never answered.
    pub(super) fn into_history(mut self) -> History {
        let open = self.clients.into_iter().filter_map(|client| client.open);
        self.history.operations.extend(open.filter(|operation| operation.kind == Kind::Write));
        self.history
    }
}
