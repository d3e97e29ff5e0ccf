//! Reads as PBFT optimizes them: every replica executes the read at once, outside the order, and the answer is that of
//! a quorum, 2f+1, if so many agree; otherwise the read is replicated. Prophecy is measured against this; it has no
//! history table.

use super::wire::Ticket;
use ensue_prophecy::sketcher::Replica;
use std::collections::BTreeMap;

/// No session has this number.
const SESSION: u32 = u32::MAX;

struct Open<T> {
    request: Vec<u8>,
    client: T,
    answers: Vec<Option<Vec<u8>>>,
    deadline_us: u64,
}

/// Reads under way, each of a client `T`.
pub(super) struct Optimized<T> {
    replicas: usize,
    quorum: usize,
    patience_us: u64,
    attempts: u64,
    open: BTreeMap<u64, Open<T>>,
}

/// How a read ends.
pub(super) enum Ended<T> {
    Answered(T, Vec<u8>),
    /// It is to be replicated.
    Failed(T, Vec<u8>),
}

impl<T> Optimized<T> {
    pub(super) fn new(replicas: usize, quorum: usize, patience_us: u64) -> Optimized<T> {
        Optimized { replicas, quorum, patience_us, attempts: 0, open: BTreeMap::new() }
    }

    /// Begins a read, which every replica is to be sent under this ticket.
    pub(super) fn begin(&mut self, now_us: u64, client: T, request: Vec<u8>) -> Ticket {
        self.attempts += 1;
        let answers = vec![None; self.replicas];
        let deadline_us = now_us.saturating_add(self.patience_us);
        self.open.insert(self.attempts, Open { request, client, answers, deadline_us });
        Ticket { session: SESSION, attempt: self.attempts }
    }

    /// A replica's answer, in its canonical form.
    pub(super) fn on_answer(
        &mut self,
        ticket: Ticket,
        replica: Replica,
        response: &[u8],
    ) -> Option<Ended<T>> {
        let open = self.open.get_mut(&ticket.attempt).filter(|_| ticket.session == SESSION)?;
        let place = open.answers.get_mut(replica.0 as usize).filter(|place| place.is_none())?;
        *place = Some(response.to_vec());
        let votes = open.answers.iter().flatten().filter(|other| *other == response).count();
        let is_answered = votes >= self.quorum;
        if !is_answered && open.answers.iter().any(Option::is_none) {
            return None;
        }
        let open = self.open.remove(&ticket.attempt)?;
        Some(if is_answered {
            Ended::Answered(open.client, response.to_vec())
        } else {
            Ended::Failed(open.client, open.request)
        })
    }

    pub(super) fn next_deadline_us(&self) -> Option<u64> {
        // They have begun in this order, with one patience.
        self.open.values().next().map(|open| open.deadline_us)
    }

    /// A read that is late.
    pub(super) fn take_late(&mut self, now_us: u64) -> Option<Ended<T>> {
        let entry = self.open.first_entry().filter(|entry| entry.get().deadline_us <= now_us)?;
        let open = entry.remove();
        Some(Ended::Failed(open.client, open.request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quorum_answers_and_less_is_replicated() {
        let mut reads = Optimized::new(4, 3, 100);
        let ticket = reads.begin(0, "client", b"q".to_vec());
        let other = Ticket { session: 0, ..ticket };
        assert!(reads.on_answer(other, Replica(0), b"a").is_none(), "a fast read of a session");
        for (replica, response) in [(0, b"a"), (0, b"a"), (1, b"b"), (2, b"a")] {
            assert!(reads.on_answer(ticket, Replica(replica), response).is_none(), "{replica}");
        }
        let ended = reads.on_answer(ticket, Replica(3), b"a");
        assert!(matches!(ended, Some(Ended::Answered("client", response)) if response == b"a"));

        let ticket = reads.begin(0, "client", b"q".to_vec());
        for (replica, response) in [(0, b"a"), (1, b"b"), (2, b"a")] {
            assert!(reads.on_answer(ticket, Replica(replica), response).is_none());
        }
        let ended = reads.on_answer(ticket, Replica(3), b"b");
        assert!(matches!(ended, Some(Ended::Failed("client", request)) if request == b"q"));

        reads.begin(5, "client", b"q".to_vec());
        assert_eq!(reads.next_deadline_us(), Some(105));
        assert!(reads.take_late(104).is_none());
        assert!(matches!(reads.take_late(105), Some(Ended::Failed(..))));
        assert!(reads.take_late(105).is_none());
    }
}
