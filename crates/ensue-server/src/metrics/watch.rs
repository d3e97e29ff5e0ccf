//! Asks the first core of a node what it shows, for threads that serve those who watch it.
//!
//! One question of a kind is on its way at a time, and an answer that is a moment old answers again: however many ask,
//! the cores are asked so many times a second at the most, and each time it costs them an `INFO`.

use crate::bounds::{OBSERVATION_FRESH_MS, OBSERVATION_WAIT_MS};
use crate::inbox::{Inbox, Mail};
use ensue_node::{Observation, Scope};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A question to the first core of a node.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) scope: Scope,
    answer: Sender<Observation>,
}

impl Question {
    /// Whoever asked may have given up.
    pub(crate) fn answer(self, observation: Observation) {
        let _ = self.answer.send(observation);
    }
}

type Latest = Mutex<Option<(Instant, Arc<Observation>)>>;

/// Where a node can be asked.
#[derive(Debug)]
pub(super) struct Watch {
    inbox: Arc<Inbox>,
    node: Latest,
    datacenter: Latest,
    patience: Duration,
}

impl Watch {
    /// Questions to this core; it answers after the time that a request may take at the latest.
    pub(super) fn new(inbox: Arc<Inbox>, request_timeout_ms: u64) -> Watch {
        let patience = Duration::from_millis(request_timeout_ms + OBSERVATION_WAIT_MS);
        Watch { inbox, node: Mutex::default(), datacenter: Mutex::default(), patience }
    }

    /// What the node shows now, or a moment ago; nothing if its core does not answer.
    pub(super) fn observe(&self, scope: Scope) -> Option<Arc<Observation>> {
        self.observe_at(scope).map(|(_, observation)| observation)
    }

    /// The same, with the moment at which it was asked for.
    pub(super) fn observe_at(&self, scope: Scope) -> Option<(Instant, Arc<Observation>)> {
        let latest = match scope {
            Scope::Node => &self.node,
            Scope::Datacenter => &self.datacenter,
        };
        let asked_at = Instant::now();
        // Who comes while somebody asks waits for that answer, and not longer than for an own one.
        let mut latest: MutexGuard<'_, _> = latest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, observation)) = &*latest {
            if at.elapsed() < Duration::from_millis(OBSERVATION_FRESH_MS) {
                return Some((*at, Arc::clone(observation)));
            }
        }
        let (answer, answered) = channel();
        let posted_at = Instant::now();
        self.inbox.post(Mail::Observe(Question { scope, answer }));
        let patience = self.patience.saturating_sub(asked_at.elapsed());
        let observation = Arc::new(answered.recv_timeout(patience).ok()?);
        *latest = Some((posted_at, Arc::clone(&observation)));
        Some((posted_at, observation))
    }
}
