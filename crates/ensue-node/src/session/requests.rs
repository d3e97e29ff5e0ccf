//! The requests of a session's present exchange: their sequences, their deadline, and which commands they answer.
//!
//! It promises that no two requests of a session have the same sequence, so that an answer to an earlier exchange is
//! known as one.

use super::timers::Timers;
use super::write_marks::WriteMarks;
use ensue_types::{Now, SessionId};

/// The client's commands that the present exchange will answer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Asked {
    pub(super) count: usize,
    /// Which of them may have changed something by now.
    pub(super) writes: WriteMarks,
    /// They are still in the queue of the session.
    pub(super) queued: bool,
}

/// What is outstanding.
#[derive(Clone, Debug)]
pub(super) struct Requests {
    session: SessionId,
    asked: Asked,
    /// Sequences of the present exchange: this one and as many as it has shares.
    first_sequence: u64,
    next_sequence: u64,
    /// When the present exchange times out.
    deadline_us: Option<u64>,
    /// The entry of this session among the timers.
    watched_us: Option<u64>,
    /// How long a command waits at most; nothing is for as long as it says.
    wait_max_ms: Option<u64>,
}

impl Requests {
    pub(super) fn new(session: SessionId) -> Requests {
        let asked = Asked::default();
        Requests {
            session,
            asked,
            first_sequence: 0,
            next_sequence: 0,
            deadline_us: None,
            watched_us: None,
            wait_max_ms: None,
        }
    }

    /// No command waits for longer; the highest number is for ever.
    pub(super) fn wait_at_most(&mut self, ms: u64) {
        self.wait_max_ms = Some(ms).filter(|ms| *ms < u64::MAX);
    }

    /// How long a command waits that says so.
    pub(super) fn wait_ms(&self, asked_ms: Option<u64>) -> Option<u64> {
        asked_ms.into_iter().chain(self.wait_max_ms).min()
    }

    pub(super) fn session(&self) -> SessionId {
        self.session
    }

    /// The commands of a client that the coming exchange will answer; none of them has changed anything yet.
    pub(super) fn ask(&mut self, count: usize) {
        self.asked = Asked { count, ..Asked::default() };
    }

    /// As `ask`, for commands that are taken from the queue only after the exchange.
    pub(super) fn request_queued(&mut self, count: usize) {
        self.asked = Asked { count, queued: true, ..Asked::default() };
    }

    pub(super) fn asked_count(&self) -> usize {
        self.asked.count
    }

    /// The last commands of the exchange will be answered by another one.
    pub(super) fn request_fewer(&mut self, fewer: usize) {
        self.asked.count -= fewer;
    }

    pub(super) fn mark_writes(&mut self, writes: WriteMarks) {
        self.asked.writes = writes;
    }

    /// The one command of the exchange may change something from now on.
    pub(super) fn mark_write(&mut self) {
        self.asked.writes.mark(0);
    }

    /// The sequence of one share of the present exchange.
    pub(super) fn sequence(&self, share: usize) -> u64 {
        self.first_sequence + share as u64
    }

    /// The share of the present exchange that has this sequence; none of an earlier exchange.
    pub(super) fn share(&self, sequence: u64) -> Option<usize> {
        let present = self.first_sequence..self.next_sequence;
        present.contains(&sequence).then(|| (sequence - present.start) as usize)
    }

    /// Begins an exchange of so many shares that times out then.
    pub(super) fn begin(&mut self, timers: &mut Timers, shares: usize, deadline_us: u64) {
        self.first_sequence = self.next_sequence;
        self.next_sequence += shares as u64;
        self.watch(timers, deadline_us);
    }

    /// The exchange has ended.
    pub(super) fn end(&mut self) -> Asked {
        self.first_sequence = self.next_sequence;
        self.deadline_us = None;
        std::mem::take(&mut self.asked)
    }

    /// The present exchange times out then.
    pub(super) fn go_on(&mut self, timers: &mut Timers, deadline_us: u64) {
        self.watch(timers, deadline_us);
    }

    /// The present exchange times out then, if it would do so later.
    pub(super) fn end_by(&mut self, timers: &mut Timers, deadline_us: u64) {
        if self.deadline_us.is_some_and(|present_us| present_us > deadline_us) {
            self.watch(timers, deadline_us);
        }
    }

    pub(super) fn clear_deadline(&mut self) {
        self.deadline_us = None;
    }

    /// The timer of this session has expired. Whether its exchange has timed out; a later deadline is watched again.
    pub(super) fn on_timer(&mut self, timers: &mut Timers, now: Now) -> bool {
        self.watched_us = None;
        match self.deadline_us {
            Some(deadline_us) if deadline_us <= now.monotonic_us => true,
            Some(deadline_us) => {
                self.watch(timers, deadline_us);
                false
            }
            None => false,
        }
    }

    /// The session ends, and its timer with it.
    pub(super) fn stop(&self, timers: &mut Timers) {
        if let Some(watched_us) = self.watched_us {
            timers.remove(watched_us, self.session);
        }
    }

    fn watch(&mut self, timers: &mut Timers, deadline_us: u64) {
        self.deadline_us = Some(deadline_us);
        if self.watched_us.is_some_and(|watched| watched <= deadline_us) {
            return;
        }
        if let Some(later) = self.watched_us.replace(deadline_us) {
            timers.remove(later, self.session);
        }
        timers.insert(deadline_us, self.session);
    }
}
