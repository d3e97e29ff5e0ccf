//! Strict two-phase locking: a read shares its key, a write has it alone, and all is kept until the commit.
//!
//! Requests are granted in their order. A client whose wait would close a circle aborts at once, and gives up what it
//! has.

use super::{Client, Engine, Forgetting, Setting, Step, filled, key_of, write_in_order};
use crate::load::Operation;
use ensue_branch::{Branches, StateId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub struct Locking {
    store: Branches,
    leaf: StateId,
    locks: BTreeMap<u32, Lock>,
    clients: Vec<Running>,
    woken: Vec<(Client, Step)>,
    forgetting: Forgetting,
}

#[derive(Default)]
struct Lock {
    /// Those that have it: one alone, or several that share it.
    holders: Vec<Client>,
    is_exclusive: bool,
    queue: VecDeque<(Client, bool)>,
}

#[derive(Clone, Default)]
struct Running {
    held: BTreeSet<u32>,
    writes: Vec<u32>,
    /// The key that it waits for.
    waits: Option<u32>,
}

impl Lock {
    fn is_free_for(&self, client: Client, exclusive: bool) -> bool {
        let others = self.holders.iter().any(|holder| *holder != client);
        !others || (!exclusive && !self.is_exclusive)
    }

    fn grant(&mut self, client: Client, exclusive: bool) {
        if !self.holders.contains(&client) {
            self.holders.push(client);
        }
        self.is_exclusive |= exclusive;
    }
}

impl Locking {
    pub fn new(setting: &Setting) -> Locking {
        let (store, leaf) = filled(setting, usize::MAX);
        Locking {
            store,
            leaf,
            locks: BTreeMap::new(),
            clients: vec![Running::default(); setting.clients],
            woken: Vec::new(),
            forgetting: Forgetting::new(setting),
        }
    }

    fn lock(&mut self, client: Client, key: u32, exclusive: bool) -> Step {
        let lock = self.locks.entry(key).or_default();
        let has_it = lock.holders.contains(&client);
        // One that has it already goes before those who do not.
        if lock.is_free_for(client, exclusive) && (has_it || lock.queue.is_empty()) {
            lock.grant(client, exclusive);
            self.clients[client].held.insert(key);
            return Step::Done;
        }
        match has_it {
            true => lock.queue.push_front((client, exclusive)),
            false => lock.queue.push_back((client, exclusive)),
        }
        self.clients[client].waits = Some(key);
        if self.closes_a_circle(client) {
            self.release(client);
            return Step::Aborted;
        }
        Step::Waits
    }

    /// Whether somebody whom a client waits for waits for it.
    fn closes_a_circle(&self, client: Client) -> bool {
        let mut open = self.waits_for(client);
        let mut seen = BTreeSet::new();
        while let Some(other) = open.pop() {
            if other == client {
                return true;
            }
            if seen.insert(other) {
                open.extend(self.waits_for(other));
            }
        }
        false
    }

    /// The holders of what a client waits for, and those who are before it in the queue.
    fn waits_for(&self, client: Client) -> Vec<Client> {
        let Some(key) = self.clients[client].waits else { return Vec::new() };
        let Some(lock) = self.locks.get(&key) else { return Vec::new() };
        let before = lock.queue.iter().map(|(waiter, _)| *waiter).take_while(|waiter| *waiter != client);
        lock.holders.iter().copied().filter(|holder| *holder != client).chain(before).collect()
    }

    /// Gives up all that a client has and asks for, and grants it to those who wait.
    fn release(&mut self, client: Client) {
        let running = std::mem::take(&mut self.clients[client]);
        for key in running.held.into_iter().chain(running.waits) {
            let Some(lock) = self.locks.get_mut(&key) else { continue };
            lock.holders.retain(|holder| *holder != client);
            lock.queue.retain(|(waiter, _)| *waiter != client);
            lock.is_exclusive &= !lock.holders.is_empty();
            while let Some((next, exclusive)) = lock.queue.front().copied() {
                if !lock.is_free_for(next, exclusive) {
                    break;
                }
                lock.queue.pop_front();
                lock.grant(next, exclusive);
                self.clients[next].waits = None;
                self.clients[next].held.insert(key);
                self.woken.push((next, Step::Done));
            }
            if lock.holders.is_empty() && lock.queue.is_empty() {
                self.locks.remove(&key);
            }
        }
    }

    fn commit(&mut self, client: Client) -> Step {
        let writes = std::mem::take(&mut self.clients[client].writes);
        if !writes.is_empty() {
            let keys: Vec<_> = writes.iter().map(|key| key_of(*key)).collect();
            self.leaf = write_in_order(&mut self.store, &keys);
        }
        self.release(client);
        self.forgetting.committed(&mut self.store, client, self.leaf);
        Step::Done
    }
}

impl Engine for Locking {
    fn step(&mut self, client: Client, operation: Operation) -> Step {
        match operation {
            Operation::Begin => Step::Done,
            Operation::Read(key) => {
                let step = self.lock(client, key, false);
                // A read that has to wait reads when it is woken; the cost is the same and is paid here.
                if step != Step::Aborted {
                    std::hint::black_box(self.store.value_at(&key_of(key), self.leaf).ok());
                }
                step
            }
            Operation::Write(key) => {
                let step = self.lock(client, key, true);
                if step != Step::Aborted {
                    self.clients[client].writes.push(key);
                }
                step
            }
            Operation::Update(key) => {
                // Whoever will write takes the key alone from the beginning, so that no two wait for each other.
                let step = self.lock(client, key, true);
                if step != Step::Aborted {
                    std::hint::black_box(self.store.value_at(&key_of(key), self.leaf).ok());
                    self.clients[client].writes.push(key);
                }
                step
            }
            Operation::Commit => self.commit(client),
        }
    }

    fn woken(&mut self) -> Vec<(Client, Step)> {
        std::mem::take(&mut self.woken)
    }

    fn store(&self) -> &Branches {
        &self.store
    }
}
