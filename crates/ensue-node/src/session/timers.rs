//! When to look at which session: at most one entry a session.

use ensue_types::{Now, SessionId};
use std::collections::BTreeSet;

/// The timers of a core's sessions.
#[derive(Clone, Debug, Default)]
pub(super) struct Timers {
    due: BTreeSet<(u64, SessionId)>,
}

impl Timers {
    pub(super) fn insert(&mut self, due_us: u64, session: SessionId) {
        self.due.insert((due_us, session));
    }

    pub(super) fn remove(&mut self, due_us: u64, session: SessionId) {
        self.due.remove(&(due_us, session));
    }

    /// A session whose timer has expired, the earliest first.
    pub(super) fn pop_expired(&mut self, now: Now) -> Option<SessionId> {
        let expired = self.due.first().is_some_and(|(due_us, _)| *due_us <= now.monotonic_us);
        expired.then(|| self.due.pop_first()).flatten().map(|(_, session)| session)
    }

    /// The time of the earliest timer.
    pub(super) fn first(&self) -> Option<u64> {
        self.due.first().map(|(due_us, _)| *due_us)
    }
}
