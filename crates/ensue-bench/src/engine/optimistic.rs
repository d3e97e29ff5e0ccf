//! Optimistic control: reads and writes run free, and a transaction commits if nothing that it read was written since
//! it began.
//!
//! Kung and Robinson's serial validation, backwards, against the write sets of what has committed since; transactions
//! that only read are validated, too.

use super::{Client, Engine, Forgetting, Setting, Step, filled, key_of, write_in_order};
use crate::load::Operation;
use ensue_branch::{Branches, StateId};
use std::collections::{BTreeSet, VecDeque};

pub struct Optimistic {
    store: Branches,
    leaf: StateId,
    clients: Vec<Running>,
    /// What committed: its number and what it wrote.
    committed: VecDeque<(u64, Vec<u32>)>,
    number: u64,
    forgetting: Forgetting,
}

#[derive(Clone, Default)]
struct Running {
    is_active: bool,
    began: u64,
    read: BTreeSet<u32>,
    writes: Vec<u32>,
}

impl Optimistic {
    pub fn new(setting: &Setting) -> Optimistic {
        let (store, leaf) = filled(setting, usize::MAX);
        Optimistic {
            store,
            leaf,
            clients: vec![Running::default(); setting.clients],
            committed: VecDeque::new(),
            number: 0,
            forgetting: Forgetting::new(setting),
        }
    }

    fn commit(&mut self, client: Client) -> Step {
        let running = std::mem::take(&mut self.clients[client]);
        let since = self.committed.iter().rev().take_while(|(number, _)| *number > running.began);
        let invalid =
            since.into_iter().any(|(_, writes)| writes.iter().any(|key| running.read.contains(key)));
        if invalid {
            return Step::Aborted;
        }
        if !running.writes.is_empty() {
            let keys: Vec<_> = running.writes.iter().map(|key| key_of(*key)).collect();
            self.leaf = write_in_order(&mut self.store, &keys);
            self.number += 1;
            self.committed.push_back((self.number, running.writes));
        }
        let oldest =
            self.clients.iter().filter(|running| running.is_active).map(|running| running.began).min();
        let oldest = oldest.unwrap_or(self.number);
        while self.committed.front().is_some_and(|(number, _)| *number <= oldest) {
            self.committed.pop_front();
        }
        self.forgetting.committed(&mut self.store, client, self.leaf);
        Step::Done
    }
}

impl Engine for Optimistic {
    fn step(&mut self, client: Client, operation: Operation) -> Step {
        match operation {
            Operation::Begin => {
                self.clients[client] = Running { is_active: true, began: self.number, ..Running::default() };
            }
            Operation::Read(key) => {
                std::hint::black_box(self.store.value_at(&key_of(key), self.leaf).ok());
                self.clients[client].read.insert(key);
            }
            Operation::Write(key) => self.clients[client].writes.push(key),
            Operation::Update(key) => {
                std::hint::black_box(self.store.value_at(&key_of(key), self.leaf).ok());
                self.clients[client].read.insert(key);
                self.clients[client].writes.push(key);
            }
            Operation::Commit => return self.commit(client),
        }
        Step::Done
    }

    fn store(&self) -> &Branches {
        &self.store
    }
}
