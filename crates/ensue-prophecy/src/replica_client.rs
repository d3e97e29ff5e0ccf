//! The replica client: issues one replicated request at a time to all replicas, and accepts an answer when enough of
//! them are equal (sections 3.1 and 3.3).
//!
//! - On a call: send the request, under a new number, to every replica.
//! - On an answer to the present number: keep the first of each replica. When as many as the quorum are equal, in their
//!   response and in their sequence number, accept it, and name the replicas that answered something else.
//! - On a late answer to the accepted number: name the replica if it answered something else.
//! - On silence: send the request again, under the same number; the replica group executes a number once.
//! - When no answer can reach the quorum any more, or none did for long: give the call up. Replies to the time, or with
//!   a number of the replica's own, never agree, and a session that waited for them would be lost.
//!
//! The group executes requests deterministically, and each number once: a correct replica gives exactly the accepted
//! answer, so another one is a proof. Responses are compared in the canonical form of the protocol's handler.

use crate::limits::{CALL_PATIENCE_US, RESPONSE_BYTES_MAX, RETRANSMIT_US};
use crate::rule::{Broken, Rule};
use crate::sketcher::Replica;
use crate::table::Sequence;
use std::collections::VecDeque;

/// Which request of a replica client; the first is 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallNumber(pub u64);

/// What a replica answers to a replicated request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicatedAnswer {
    /// In the canonical form.
    pub response: Vec<u8>,
    /// Where the request stands in the order of all replicated requests.
    pub sequence: Sequence,
}

/// What a replica client wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallOutput {
    /// Send the request to this replica.
    Send { replica: Replica, number: CallNumber, request: Vec<u8> },
    /// The request has this answer.
    Accepted(ReplicatedAnswer),
    /// This replica answered something else than what was accepted.
    Lied(Replica),
    /// The request has no answer. It may have been executed.
    Failed(CallFailure),
}

/// Why a replicated request has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallFailure {
    /// Too few equal answers, and too few replicas that have not answered.
    #[error("the replicas' answers differ")]
    NoAgreement,
    /// Enough replicas answered with more than [`RESPONSE_BYTES_MAX`].
    #[error("the response is longer than {RESPONSE_BYTES_MAX} bytes")]
    TooLong,
    /// Enough replicas executed the request, and their servers gave no response.
    #[error("it was executed, and the service gave no response in time that can be read")]
    NoResponse,
    /// Too few answers in [`CALL_PATIENCE_US`].
    #[error("too few replicas answer")]
    Silence,
}

/// What a replica said.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Heard {
    Answer(ReplicatedAnswer),
    /// More than a response may have; it is not kept.
    TooLong,
    /// It executed the request, and has no response.
    Nothing,
}

impl Heard {
    /// Whether no correct replica says this where enough said the other.
    fn is_lie(&self, agreed: &Heard) -> bool {
        ![self, agreed].contains(&&Heard::Nothing) && self != agreed
    }
}

/// How many of `replicas` must agree, for each way that needs agreement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quorums {
    /// Equal answers to a replicated request.
    pub replicated: usize,
    /// Equal sketches of a fast read in D-Prophecy, the executed response among them.
    pub fast: usize,
}

/// Faults that a group of so many replicas tolerates: a third, but for one.
pub fn faults_max(replicas: usize) -> usize {
    replicas.saturating_sub(1) / 3
}

impl Quorums {
    /// For Prophecy: f+1 equal answers, one of which is a correct replica's. No sketch is asked for.
    pub fn of_prophecy(replicas: usize) -> Quorums {
        Quorums { replicated: faults_max(replicas) + 1, fast: replicas }
    }

    /// For D-Prophecy: (2N+1)/3 for both. With fewer equal answers to a replicated read, a fast quorum could miss all
    /// correct replicas that have executed it; that is the caveat of section 3.2.
    pub fn of_d_prophecy(replicas: usize) -> Quorums {
        let two_thirds = (2 * replicas + 1).div_ceil(3);
        Quorums { replicated: two_thirds, fast: two_thirds }
    }

    /// For D-Prophecy where replicated answers are accepted as soon as f+1 are equal: then every replica must confirm a
    /// fast read ("N always suffices").
    pub fn of_all(replicas: usize) -> Quorums {
        Quorums { replicated: faults_max(replicas) + 1, fast: replicas }
    }
}

#[derive(Clone, Debug)]
enum Call {
    None,
    Open { request: Vec<u8>, deadline_us: u64, until_us: u64 },
    Accepted(ReplicatedAnswer),
}

/// The machine.
#[derive(Clone, Debug)]
pub struct ReplicaClient {
    quorum: usize,
    number: CallNumber,
    call: Call,
    /// The first answer of each replica to the present call.
    answers: Vec<Option<Heard>>,
    outputs: VecDeque<CallOutput>,
}

impl ReplicaClient {
    /// A client of so many replicas that accepts what this many of them say.
    pub fn new(replicas: usize, quorum: usize, broken: Broken) -> ReplicaClient {
        let quorum = if broken.holds(Rule::WaitForEqualAnswers) { quorum } else { 1 };
        ReplicaClient {
            quorum,
            number: CallNumber(0),
            call: Call::None,
            answers: vec![None; replicas],
            outputs: VecDeque::new(),
        }
    }

    /// What is to be done, in this order.
    pub fn take_output(&mut self) -> Option<CallOutput> {
        self.outputs.pop_front()
    }

    /// When [`ReplicaClient::on_tick`] has something to do at the earliest.
    pub fn next_deadline_us(&self) -> Option<u64> {
        match self.call {
            Call::Open { deadline_us, .. } => Some(deadline_us),
            Call::None | Call::Accepted(_) => None,
        }
    }

    /// Issues a request. The one before must have been accepted or given up.
    pub fn on_call(&mut self, now_us: u64, request: Vec<u8>) {
        assert!(!matches!(self.call, Call::Open { .. }), "a replica client issues one request at a time");
        self.number.0 += 1;
        self.answers.fill(None);
        let until_us = now_us.saturating_add(CALL_PATIENCE_US);
        self.call = Call::Open { request, deadline_us: 0, until_us };
        self.transmit(now_us);
    }

    /// A replica's answer arrives.
    pub fn on_answer(&mut self, replica: Replica, number: CallNumber, answer: ReplicatedAnswer) {
        let is_long = answer.response.len() > RESPONSE_BYTES_MAX;
        self.on_heard(replica, number, if is_long { Heard::TooLong } else { Heard::Answer(answer) });
    }

    /// A replica has executed the request, and its server gave no response. It may have been slow only, so that is no
    /// lie when others have one.
    pub fn on_absent(&mut self, replica: Replica, number: CallNumber) {
        self.on_heard(replica, number, Heard::Nothing);
    }

    fn on_heard(&mut self, replica: Replica, number: CallNumber, heard: Heard) {
        let Some(place) = self.answers.get_mut(replica.0 as usize) else { return };
        if number != self.number || place.is_some() {
            return;
        }
        let heard = place.insert(heard);
        match &self.call {
            Call::Accepted(accepted) if heard.is_lie(&Heard::Answer(accepted.clone())) => {
                self.outputs.push_back(CallOutput::Lied(replica))
            }
            Call::Open { .. } => self.count(replica),
            Call::Accepted(_) | Call::None => {}
        }
    }

    /// Time has passed.
    pub fn on_tick(&mut self, now_us: u64) {
        match self.call {
            Call::Open { until_us, .. } if until_us <= now_us => self.fail(CallFailure::Silence),
            Call::Open { deadline_us, .. } if deadline_us <= now_us => self.transmit(now_us),
            Call::Open { .. } | Call::None | Call::Accepted(_) => {}
        }
    }

    fn transmit(&mut self, now_us: u64) {
        let Call::Open { request, deadline_us, until_us } = &mut self.call else { return };
        *deadline_us = now_us.saturating_add(RETRANSMIT_US).min(*until_us);
        for (replica, answer) in self.answers.iter().enumerate() {
            if answer.is_none() {
                let (replica, request) = (Replica(replica as u32), request.clone());
                self.outputs.push_back(CallOutput::Send { replica, number: self.number, request });
            }
        }
    }

    /// Counts those that have answered as this replica has just done. Answers may be long, and are not copied for that.
    fn count(&mut self, replica: Replica) {
        let Some(Some(heard)) = self.answers.get(replica.0 as usize) else { return };
        let votes = |one: &Heard| self.answers.iter().flatten().filter(|other| *other == one).count();
        if votes(heard) < self.quorum {
            let most = self.answers.iter().flatten().map(votes).max().unwrap_or(0);
            let silent = self.answers.iter().filter(|answer| answer.is_none()).count();
            if most + silent < self.quorum {
                self.fail(CallFailure::NoAgreement);
            }
            return;
        }
        for (replica, other) in self.answers.iter().enumerate() {
            if other.as_ref().is_some_and(|other| other.is_lie(heard)) {
                self.outputs.push_back(CallOutput::Lied(Replica(replica as u32)));
            }
        }
        let answer = match heard.clone() {
            Heard::Answer(answer) => answer,
            Heard::TooLong => return self.fail(CallFailure::TooLong),
            Heard::Nothing => return self.fail(CallFailure::NoResponse),
        };
        self.call = Call::Accepted(answer.clone());
        self.outputs.push_back(CallOutput::Accepted(answer));
    }

    fn fail(&mut self, failure: CallFailure) {
        self.call = Call::None;
        self.outputs.push_back(CallOutput::Failed(failure));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str, sequence: u64) -> ReplicatedAnswer {
        ReplicatedAnswer { response: text.into(), sequence: Sequence(sequence) }
    }

    fn outputs(client: &mut ReplicaClient) -> Vec<CallOutput> {
        std::iter::from_fn(|| client.take_output()).collect()
    }

    #[test]
    fn quorums_are_those_of_the_paper() {
        assert_eq!([1, 3, 4, 7, 10, 13].map(faults_max), [0, 0, 1, 2, 3, 4]);
        assert_eq!([4, 7, 10, 13].map(|n| Quorums::of_d_prophecy(n).fast), [3, 5, 7, 9]);
        assert_eq!(Quorums::of_prophecy(4).replicated, 2);
        assert_eq!(Quorums::of_all(7), Quorums { replicated: 3, fast: 7 });
    }

    #[test]
    fn an_answer_is_accepted_when_enough_are_equal_and_liars_are_named() {
        let mut client = ReplicaClient::new(4, 2, Broken::none());
        client.on_call(0, b"q".to_vec());
        assert_eq!(outputs(&mut client).len(), 4);
        let number = CallNumber(1);
        client.on_answer(Replica(0), number, answer("lie", 3));
        client.on_answer(Replica(0), number, answer("lie", 3));
        client.on_answer(Replica(1), CallNumber(0), answer("lie", 3));
        client.on_answer(Replica(1), number, answer("true", 3));
        assert_eq!(outputs(&mut client), [], "no two replicas agree");
        client.on_answer(Replica(2), number, answer("true", 3));
        assert_eq!(
            outputs(&mut client),
            [CallOutput::Lied(Replica(0)), CallOutput::Accepted(answer("true", 3))]
        );
        client.on_answer(Replica(3), number, answer("true", 4));
        assert_eq!(
            outputs(&mut client),
            [CallOutput::Lied(Replica(3))],
            "a late lie, of the sequence number"
        );
    }

    #[test]
    fn a_call_that_can_have_no_answer_is_given_up() {
        let mut client = ReplicaClient::new(4, 2, Broken::none());
        client.on_call(0, b"q".to_vec());
        outputs(&mut client);
        for replica in 0..3 {
            client.on_answer(Replica(replica), CallNumber(1), answer(&replica.to_string(), 3));
            assert_eq!(outputs(&mut client), [], "the last one may agree");
        }
        client.on_answer(Replica(3), CallNumber(1), answer("3", 3));
        assert_eq!(outputs(&mut client), [CallOutput::Failed(CallFailure::NoAgreement)]);
        assert_eq!(client.next_deadline_us(), None);

        client.on_call(0, b"q".to_vec());
        outputs(&mut client);
        let long =
            |byte| ReplicatedAnswer { response: vec![byte; RESPONSE_BYTES_MAX + 1], sequence: Sequence(3) };
        client.on_answer(Replica(0), CallNumber(2), answer("lie", 3));
        client.on_answer(Replica(1), CallNumber(2), long(1));
        client.on_answer(Replica(2), CallNumber(2), long(1));
        let failed = CallOutput::Failed(CallFailure::TooLong);
        assert_eq!(outputs(&mut client), [CallOutput::Lied(Replica(0)), failed]);

        client.on_call(5, b"q".to_vec());
        client.on_answer(Replica(0), CallNumber(3), answer("one", 3));
        outputs(&mut client);
        client.on_tick(CALL_PATIENCE_US + 4);
        assert_eq!(outputs(&mut client).len(), 3);
        client.on_tick(CALL_PATIENCE_US + 5);
        assert_eq!(outputs(&mut client), [CallOutput::Failed(CallFailure::Silence)]);
        client.on_answer(Replica(1), CallNumber(3), answer("one", 3));
        assert_eq!(outputs(&mut client), [], "late");
    }

    #[test]
    fn no_response_is_an_outcome_that_enough_replicas_agree_on_and_no_lie_of_one() {
        let mut client = ReplicaClient::new(4, 2, Broken::none());
        client.on_call(0, b"q".to_vec());
        outputs(&mut client);
        client.on_absent(Replica(0), CallNumber(1));
        client.on_answer(Replica(1), CallNumber(1), answer("one", 3));
        assert_eq!(outputs(&mut client), []);
        client.on_absent(Replica(2), CallNumber(1));
        assert_eq!(outputs(&mut client), [CallOutput::Failed(CallFailure::NoResponse)]);

        client.on_call(0, b"q".to_vec());
        outputs(&mut client);
        client.on_absent(Replica(0), CallNumber(2));
        client.on_answer(Replica(1), CallNumber(2), answer("one", 3));
        client.on_answer(Replica(2), CallNumber(2), answer("one", 3));
        assert_eq!(outputs(&mut client), [CallOutput::Accepted(answer("one", 3))], "a slow one");
        client.on_absent(Replica(3), CallNumber(2));
        assert_eq!(outputs(&mut client), [], "another slow one");
    }

    #[test]
    fn a_request_is_sent_again_to_those_that_have_not_answered() {
        let mut client = ReplicaClient::new(4, 2, Broken::none());
        client.on_call(0, b"q".to_vec());
        client.on_answer(Replica(1), CallNumber(1), answer("true", 3));
        outputs(&mut client);
        client.on_tick(RETRANSMIT_US - 1);
        assert_eq!(outputs(&mut client), []);
        client.on_tick(RETRANSMIT_US);
        let again: Vec<u32> = outputs(&mut client)
            .into_iter()
            .map(|output| match output {
                CallOutput::Send { replica, number: CallNumber(1), .. } => replica.0,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(again, [0, 2, 3]);
    }
}
