//! Transactions on branches, begun by `ANCESTOR` and ended by `SERIALIZABILITY`; without branching also by
//! `NO-BRANCHING`.
//!
//! The merger is a client, too, and pipelines what it can: a round trip to begin and to be told the conflicts, one to
//! read them, one to write them and to commit. There are never more leaves than stated: a transaction begins only if it
//! may add one, else its client waits until a merge has joined what it committed last, and goes on from there. Waiting
//! is part of the transaction's time.

use super::{Client, Control, Engine, Forgetting, Setting, Step, Terms, filled, key_of, value};
use crate::load::Operation;
use ensue_branch::{Abort, Branches, Committed, Constraint, Key, StateId, Term, TransactionId};
use std::collections::VecDeque;

pub struct Branching {
    store: Branches,
    begin: Constraint,
    end: Constraint,
    /// Of each client what it committed last, and its transaction.
    clients: Vec<(StateId, Option<TransactionId>)>,
    merger: Merger,
    forgetting: Forgetting,
    leaves_max: usize,
    merges: bool,
    running: usize,
    /// Clients that wait for a merge, and those that need not wait any more.
    waiting: VecDeque<Client>,
    /// The newest merge.
    merged: Option<StateId>,
    woken: Vec<(Client, Step)>,
}

/// How far the merger is.
enum Merger {
    Idle,
    Begun(TransactionId, Vec<StateId>, Vec<Key>),
    Read(TransactionId, Vec<Key>),
}

impl Branching {
    pub fn new(setting: &Setting) -> Branching {
        let branches = setting.control == Control::Branching;
        let Terms { parent, snapshot } = setting.terms;
        // Clients that see nobody else's commits are never joined by a merge.
        let leaves_max = if branches && !parent { setting.leaves_max } else { usize::MAX };
        let (store, first) = filled(setting, leaves_max);
        let end = Constraint::of(if snapshot { Term::SnapshotIsolation } else { Term::Serializability });
        Branching {
            store,
            begin: Constraint::of(if parent { Term::Parent } else { Term::Ancestor }),
            end: match branches {
                true => end,
                false => end.and(Constraint::of(Term::NoBranching)),
            },
            clients: vec![(first, None); setting.clients],
            merger: Merger::Idle,
            forgetting: Forgetting::new(setting),
            leaves_max,
            merges: !parent,
            running: 0,
            waiting: VecDeque::new(),
            merged: None,
            woken: Vec::new(),
        }
    }

    fn has_room(&self) -> bool {
        self.running + self.store.metrics().leaves < self.leaves_max
    }

    /// Lets clients go on whose last commit a leaf with the newest merge sees.
    fn admit(&mut self) {
        for _ in 0..self.waiting.len() {
            if !self.has_room() {
                return;
            }
            let Some(client) = self.waiting.pop_front() else { return };
            let last = self.clients[client].0;
            let joined = self.merged.is_none_or(|merged| self.store.sees(merged, last));
            if joined || self.store.metrics().leaves == 1 {
                let step = self.step(client, Operation::Begin);
                self.woken.push((client, step));
            } else {
                self.waiting.push_back(client);
            }
        }
    }

    fn try_step(&mut self, client: Client, operation: Operation) -> Result<(), Abort> {
        let (last, transaction) = &mut self.clients[client];
        match operation {
            Operation::Begin => *transaction = Some(self.store.begin(&[*last], &self.begin)?),
            Operation::Read(key) => {
                let transaction = transaction.ok_or(Abort::NoTransaction)?;
                self.store.get(transaction, &key_of(key), true)?;
            }
            Operation::Write(key) => {
                let transaction = transaction.ok_or(Abort::NoTransaction)?;
                self.store.put(transaction, key_of(key), Some(value()))?;
            }
            Operation::Update(key) => {
                let transaction = transaction.ok_or(Abort::NoTransaction)?;
                self.store.get(transaction, &key_of(key), true)?;
                self.store.put(transaction, key_of(key), Some(value()))?;
            }
            Operation::Commit => {
                let transaction = transaction.take().ok_or(Abort::NoTransaction)?;
                *last = match self.store.commit(transaction, &self.end)? {
                    Committed::New(commit) => commit.id,
                    Committed::Known(id) => id,
                    Committed::Nothing(at) => at[0],
                };
                let last = *last;
                self.forgetting.committed(&mut self.store, client, last);
            }
        }
        Ok(())
    }

    fn begin_merge(&mut self) -> Merger {
        match self.store.begin_merge(&[], &Constraint::of(Term::Any)) {
            Ok(id) => {
                let at = self.store.transaction(id).map(|(_, at)| at.to_vec()).unwrap_or_default();
                let keys = self.store.conflicts(&at).unwrap_or_default();
                Merger::Begun(id, at, keys)
            }
            Err(_) => Merger::Idle,
        }
    }

    fn read_conflicts(&mut self, id: TransactionId, at: &[StateId], keys: &[Key]) {
        for key in keys {
            for state in at {
                std::hint::black_box(self.store.value_at(key, *state).ok());
            }
            self.store.get(id, key, true).ok();
        }
    }
}

impl Engine for Branching {
    fn step(&mut self, client: Client, operation: Operation) -> Step {
        if operation == Operation::Begin {
            if !self.has_room() {
                self.waiting.push_back(client);
                return Step::Waits;
            }
            self.running += 1;
        }
        let outcome = self.try_step(client, operation);
        if outcome.is_err() {
            if let Some(transaction) = self.clients[client].1.take() {
                self.store.abort(transaction).ok();
            }
        }
        if outcome.is_err() || operation == Operation::Commit {
            self.running -= 1;
        }
        if outcome.is_ok() { Step::Done } else { Step::Aborted }
    }

    fn woken(&mut self) -> Vec<(Client, Step)> {
        std::mem::take(&mut self.woken)
    }

    fn merge_step(&mut self) -> bool {
        if !self.merges {
            return false;
        }
        let (next, merged) = match std::mem::replace(&mut self.merger, Merger::Idle) {
            Merger::Idle => (self.begin_merge(), None),
            Merger::Begun(id, at, keys) => {
                self.read_conflicts(id, &at, &keys);
                (Merger::Read(id, keys), None)
            }
            Merger::Read(id, keys) => {
                for key in keys {
                    self.store.put(id, key, Some(value())).ok();
                }
                // Branches of which none wrote what another did are joined by a state that says so.
                self.store.put(id, Key::from_static(b"merged"), Some(value())).ok();
                let merged = self.store.commit(id, &Constraint::of(Term::Serializability));
                (Merger::Idle, merged.ok())
            }
        };
        self.merger = next;
        if let Some(Committed::New(commit)) = &merged {
            self.merged = Some(commit.id);
        }
        self.admit();
        merged.is_some()
    }

    fn store(&self) -> &Branches {
        &self.store
    }
}
