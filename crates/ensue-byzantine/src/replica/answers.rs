//! Which request of each session is the latest in the order, and what it was answered.
//!
//! Which numbers were ordered is the same at every correct replica at the same height, since only blocks change it:
//! that is what a block is judged by. Answers are this replica's own.

use crate::block::{Request, RequestNumber, Session};
use crate::limits::{ANSWER_KEPT_BYTES_MAX, ANSWERS_BYTES_MAX, UNEXECUTED_BYTES_MAX, UNEXECUTED_MAX};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// What this replica's application said to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whose request.
    pub session: Session,
    /// Which of its requests.
    pub number: RequestNumber,
    /// Its place in the order of all requests, from 1.
    pub sequence: u64,
    /// What the application said.
    pub response: Arc<[u8]>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Answers {
    latest: BTreeMap<Session, Latest>,
    sequence: u64,
    /// Ordered and not executed, first the next one.
    unexecuted: VecDeque<Unexecuted>,
    unexecuted_bytes: usize,
    /// Sessions whose answers are kept, first the oldest.
    kept: VecDeque<(u64, Session)>,
    kept_bytes: usize,
}

#[derive(Clone, Debug)]
struct Unexecuted {
    sequence: u64,
    session: Session,
    number: RequestNumber,
    bytes: usize,
}

#[derive(Clone, Debug)]
struct Latest {
    number: RequestNumber,
    sequence: u64,
    response: Option<Arc<[u8]>>,
}

impl Answers {
    /// Whether no request of the session with this number or a later one is in the order.
    pub(crate) fn is_new(&self, session: Session, number: RequestNumber) -> bool {
        self.latest.get(&session).is_none_or(|latest| latest.number < number)
    }

    /// Gives a request the next place in the order.
    pub(crate) fn on_ordered(&mut self, request: &Request) -> u64 {
        self.sequence += 1;
        self.forget(request.session);
        let latest = Latest { number: request.number, sequence: self.sequence, response: None };
        self.latest.insert(request.session, latest);
        let (session, number, bytes) = (request.session, request.number, request.body.len());
        self.unexecuted.push_back(Unexecuted { sequence: self.sequence, session, number, bytes });
        self.unexecuted_bytes += bytes;
        self.sequence
    }

    pub(crate) fn unexecuted(&self) -> usize {
        self.unexecuted.len()
    }

    /// Whether more waits to be executed than may.
    pub(crate) fn is_crammed(&self) -> bool {
        self.unexecuted.len() > UNEXECUTED_MAX || self.unexecuted_bytes > UNEXECUTED_BYTES_MAX
    }

    /// The next request in the order was executed.
    pub(crate) fn on_executed(&mut self, response: Arc<[u8]>) -> Option<Answer> {
        let Unexecuted { sequence, session, number, bytes } = self.unexecuted.pop_front()?;
        self.unexecuted_bytes -= bytes;
        let is_kept =
            |latest: &&mut Latest| latest.sequence == sequence && response.len() <= ANSWER_KEPT_BYTES_MAX;
        if let Some(latest) = self.latest.get_mut(&session).filter(is_kept) {
            self.kept_bytes += response.len();
            self.kept.push_back((sequence, session));
            latest.response = Some(Arc::clone(&response));
        }
        while self.kept_bytes > ANSWERS_BYTES_MAX {
            let Some((oldest, session)) = self.kept.pop_front() else { break };
            if self.latest.get(&session).is_some_and(|latest| latest.sequence == oldest) {
                self.forget(session);
            }
        }
        // What was overtaken or forgotten stays in the queue until it is as long as twice what is kept.
        if self.kept.len() > 2 * self.latest.len() + 16 {
            let latest = &self.latest;
            self.kept.retain(|(sequence, session)| {
                latest.get(session).is_some_and(|latest| latest.sequence == *sequence)
            });
        }
        Some(Answer { session, number, sequence, response })
    }

    /// The answer of a request that its client asks for again.
    pub(crate) fn again(&self, session: Session, number: RequestNumber) -> Option<Answer> {
        let latest = self.latest.get(&session).filter(|latest| latest.number == number)?;
        let response = Arc::clone(latest.response.as_ref()?);
        Some(Answer { session, number, sequence: latest.sequence, response })
    }

    fn forget(&mut self, session: Session) {
        if let Some(response) = self.latest.get_mut(&session).and_then(|latest| latest.response.take()) {
            self.kept_bytes -= response.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{Member, Signature};

    fn request(session: u32, call: u64) -> Request {
        Request {
            session: Session { client: Member(0), number: session },
            number: RequestNumber { incarnation: 1, call },
            body: Vec::new(),
            signature: Signature([0; 64]),
        }
    }

    #[test]
    fn the_latest_answer_of_a_session_is_given_again_and_an_earlier_one_is_not() {
        let mut answers = Answers::default();
        for (session, call) in [(0, 1), (1, 1), (0, 2)] {
            answers.on_ordered(&request(session, call));
        }
        let executed: Vec<u64> = ["a", "b", "c"]
            .map(|text| answers.on_executed(text.as_bytes().into()).unwrap().sequence)
            .to_vec();
        assert_eq!(executed, [1, 2, 3]);
        let again = |call| {
            let request = request(0, call);
            answers.again(request.session, request.number).map(|answer| answer.response.to_vec())
        };
        assert_eq!(again(2), Some(b"c".to_vec()));
        assert_eq!(again(1), None);
        assert!(!answers.is_new(request(0, 2).session, request(0, 2).number));
        assert!(answers.is_new(request(0, 3).session, request(0, 3).number));
        assert_eq!(answers.kept_bytes, 2, "the overtaken one is not kept");
    }

    #[test]
    fn what_is_not_executed_has_a_number_and_bytes() {
        let mut answers = Answers::default();
        let mut long = request(0, 1);
        long.body = vec![0; UNEXECUTED_BYTES_MAX];
        answers.on_ordered(&long);
        assert!(!answers.is_crammed());
        long.number.call = 2;
        answers.on_ordered(&long);
        assert!(answers.is_crammed(), "few and long");
        answers.on_executed([1].into());
        assert!(!answers.is_crammed());
    }

    #[test]
    fn kept_answers_have_a_bound() {
        let mut answers = Answers::default();
        let sessions = (ANSWERS_BYTES_MAX / ANSWER_KEPT_BYTES_MAX) as u32 + 2;
        let long: Arc<[u8]> = vec![0; ANSWER_KEPT_BYTES_MAX].into();
        for session in 0..sessions {
            answers.on_ordered(&request(session, 1));
            answers.on_executed(Arc::clone(&long));
        }
        assert!(answers.kept_bytes <= ANSWERS_BYTES_MAX);
        let again = |session| answers.again(request(session, 1).session, request(session, 1).number);
        assert_eq!(again(0), None, "the oldest is forgotten");
        assert!(again(sessions - 1).is_some());
    }
}
