//! The pool of sessions with the replica group, and who waits for one (section 6: "managed as a queue").
//!
//! A session is a replica client's: it has one request at a time. What is done in it is a value of the sketcher.

use crate::limits::SESSIONS_MAX;
use std::collections::VecDeque;

/// One use of a session. Answers name it, so that a late answer to an earlier use is not taken for one to a later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Exchange {
    /// The session's number.
    pub session: u32,
    /// Which use of it, from 1.
    pub attempt: u64,
}

/// Why there is no such pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are 1 to {SESSIONS_MAX} sessions, not {0}")]
pub struct SessionsError(pub usize);

/// Sessions that each do one `W` or nothing, and `Q`s that wait for one.
#[derive(Clone, Debug)]
pub struct Sessions<W, Q> {
    sessions: Vec<Session<W>>,
    free: VecDeque<u32>,
    waiting: VecDeque<Q>,
    waiting_max: usize,
}

#[derive(Clone, Debug)]
struct Session<W> {
    attempt: u64,
    work: Option<W>,
}

impl<W, Q> Sessions<W, Q> {
    /// So many sessions, and at most so many requests that wait.
    pub fn new(count: usize, waiting_max: usize) -> Result<Sessions<W, Q>, SessionsError> {
        if count == 0 || count > SESSIONS_MAX {
            return Err(SessionsError(count));
        }
        let sessions = (0..count).map(|_| Session { attempt: 0, work: None }).collect();
        Ok(Sessions { sessions, free: (0..count as u32).collect(), waiting: VecDeque::new(), waiting_max })
    }

    /// Lets a request wait; gives it back if too many wait.
    pub fn enqueue(&mut self, request: Q) -> Result<(), Q> {
        if self.waiting.len() >= self.waiting_max {
            return Err(request);
        }
        self.waiting.push_back(request);
        Ok(())
    }

    /// The request that has waited longest, if a session is free for it.
    pub fn next_waiting(&mut self) -> Option<Q> {
        if self.free.is_empty() { None } else { self.waiting.pop_front() }
    }

    /// Begins work in the session that has been free longest. A session must be free.
    pub fn begin(&mut self, work: W) -> Exchange {
        let number =
            self.free.pop_front().expect("`next_waiting` gives a request only while a session is free");
        let session = &mut self.sessions[number as usize];
        session.attempt += 1;
        session.work = Some(work);
        Exchange { session: number, attempt: session.attempt }
    }

    /// Continues with other work in the same session, under a new name: answers to the former are late now.
    pub fn continue_with(&mut self, exchange: Exchange, work: W) -> Exchange {
        let session = &mut self.sessions[exchange.session as usize];
        assert!(session.attempt == exchange.attempt && session.work.is_none(), "the former work was taken");
        session.attempt += 1;
        session.work = Some(work);
        Exchange { session: exchange.session, attempt: session.attempt }
    }

    /// The work of an exchange, unless it is over.
    pub fn work(&self, exchange: Exchange) -> Option<&W> {
        let session = self.sessions.get(exchange.session as usize)?;
        session.work.as_ref().filter(|_| session.attempt == exchange.attempt)
    }

    /// Takes the work out of its session. The caller continues it, or frees the session.
    pub fn take(&mut self, exchange: Exchange) -> Option<W> {
        self.work(exchange)?;
        self.sessions[exchange.session as usize].work.take()
    }

    /// The session of this exchange may be used for another request.
    pub fn free(&mut self, exchange: Exchange) {
        assert!(self.sessions[exchange.session as usize].work.is_none(), "work is taken out first");
        self.free.push_back(exchange.session);
    }

    /// All that is being done.
    pub fn all(&self) -> impl Iterator<Item = (Exchange, &W)> {
        self.sessions.iter().enumerate().filter_map(|(number, session)| {
            let exchange = Exchange { session: number as u32, attempt: session.attempt };
            session.work.as_ref().map(|work| (exchange, work))
        })
    }

    /// All that waits.
    pub fn waiting(&self) -> impl Iterator<Item = &Q> {
        self.waiting.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_one_work_and_a_late_answer_finds_none() {
        let mut sessions: Sessions<&str, &str> = Sessions::new(1, 1).unwrap();
        sessions.enqueue("a").unwrap();
        assert_eq!(sessions.enqueue("b"), Err("b"), "one may wait");
        let first = { sessions.next_waiting().map(|request| sessions.begin(request)).unwrap() };
        sessions.enqueue("b").unwrap();
        assert_eq!(sessions.next_waiting(), None, "the session is taken");
        assert_eq!(sessions.take(first), Some("a"));
        let again = sessions.continue_with(first, "a, again");
        assert_eq!(sessions.take(first), None, "late");
        assert_eq!(sessions.take(again), Some("a, again"));
        sessions.free(again);
        assert_eq!(sessions.next_waiting(), Some("b"));
        assert_eq!(Sessions::<u8, u8>::new(0, 1).unwrap_err(), SessionsError(0));
    }
}
