//! D-Prophecy: no trusted component, sketches at the replicas, and a client that waits for a quorum of them (section
//! 3.2).
//!
//! At a replica ([`ReplicaSketcher`]):
//! - On a fast read that another replica executes: answer with the sketch of the history table, or with none.
//! - On a replicated read: after executing it and before answering, enter its response.
//!
//! At a client ([`DistributedClient`]):
//! - On a read: send it to all replicas, and name one of them, drawn uniformly, that executes it.
//! - On a response and sketches: when the history tables of a quorum of replicas agree with the response, return it.
//! - When too many do not agree, or in time not enough have answered: issue a replicated read.
//! - On a write: issue it to the replicated service.
//!
//! The executing replica sends its sketch, too, and counts in the quorum by it. Its response alone says what its state
//! is now, and not that it has executed the replicated read that introduced this response: if it counted, two quorums
//! could agree on a newer response first and on an older one afterwards. The paper leaves open whether it counts.
//!
//! The quorum is (2N+1)/3 only if replicated answers need as many, see [`Quorums`]. Everybody computes the sketches, so
//! they have 256 bits. A request is a read by the client's word; a replica checks that for itself.

use crate::limits::{FAST_PATIENCE_US, RESPONSE_BYTES_MAX};
use crate::random::Random;
use crate::replica_client::{CallFailure, CallNumber, CallOutput, Quorums, ReplicaClient, ReplicatedAnswer};
use crate::rule::{Broken, Rule};
use crate::sketch::{PublicSketch, Sketching};
use crate::sketcher::{Path, Replica};
use crate::table::{HistoryTable, Sequence, TableError};
use std::collections::VecDeque;

/// The history table beside one replica.
#[derive(Debug)]
pub struct ReplicaSketcher {
    sketching: Sketching<32>,
    table: HistoryTable<32>,
}

impl ReplicaSketcher {
    /// An empty table of so many entries, 76 bytes each.
    pub fn new(entries: usize) -> Result<ReplicaSketcher, TableError> {
        Ok(ReplicaSketcher {
            sketching: Sketching::public(),
            table: HistoryTable::new(entries, Broken::none())?,
        })
    }

    /// s(r) of a canonical read, if there is an entry.
    pub fn on_fast_read(&mut self, canonical: &[u8]) -> Option<PublicSketch> {
        self.table.lookup(&self.sketching.request(canonical))?.response
    }

    /// The replica has executed a replicated read.
    pub fn on_replicated_read(&mut self, canonical: &[u8], response: &[u8], sequence: Sequence) {
        let (request, response) = (self.sketching.request(canonical), self.sketching.response(response));
        self.table.update(&request, response, sequence);
    }
}

/// What a replica answers to a fast read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FastAnswer {
    /// The executing replica's response, in the canonical form, and its sketch.
    Response(Vec<u8>, Option<PublicSketch>),
    /// Another one's sketch.
    Sketch(Option<PublicSketch>),
}

/// What a client wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientOutput {
    /// Send a fast read to this replica, which executes it or looks up its sketch.
    SendFast { replica: Replica, attempt: u64, request: Vec<u8>, executes: bool },
    /// Send a replicated request to this replica.
    SendReplicated { replica: Replica, number: CallNumber, request: Vec<u8> },
    /// The request has this response.
    Answer { response: Vec<u8>, path: Path },
    /// This replica answered a replicated request with something else than what was accepted.
    Lied(Replica),
    /// The request has no response. A write may have been executed.
    Failed(CallFailure),
}

#[derive(Clone, Debug)]
struct FastRead {
    request: Vec<u8>,
    executor: Replica,
    response: Option<(Vec<u8>, PublicSketch)>,
    /// What the history tables have, by replica.
    sketches: Vec<Option<Option<PublicSketch>>>,
    deadline_us: u64,
}

#[derive(Clone, Debug)]
enum State {
    Idle,
    Fast(FastRead),
    Replicated(Path),
}

/// One client, with one request at a time.
#[derive(Clone, Debug)]
pub struct DistributedClient {
    sketching: Sketching<32>,
    replicas: usize,
    fast_quorum: usize,
    counts_executor: bool,
    calls: ReplicaClient,
    state: State,
    attempt: u64,
    random: Random,
    outputs: VecDeque<ClientOutput>,
}

impl DistributedClient {
    /// A client of so many replicas.
    pub fn new(replicas: usize, quorums: Quorums, seed: u64, broken: Broken) -> DistributedClient {
        let is_whole = broken.holds(Rule::WaitForSketchQuorum);
        DistributedClient {
            sketching: Sketching::public(),
            replicas,
            fast_quorum: if is_whole { quorums.fast } else { 2 },
            counts_executor: !broken.holds(Rule::CountExecutorBySketch),
            calls: ReplicaClient::new(replicas, quorums.replicated, broken),
            state: State::Idle,
            attempt: 0,
            random: Random::stream(seed, "executor"),
            outputs: VecDeque::new(),
        }
    }

    /// What is to be done, in this order.
    pub fn take_output(&mut self) -> Option<ClientOutput> {
        self.outputs.pop_front()
    }

    /// When [`DistributedClient::on_tick`] has something to do at the earliest.
    pub fn next_deadline_us(&self) -> Option<u64> {
        match &self.state {
            State::Idle => None,
            State::Fast(read) => Some(read.deadline_us),
            State::Replicated(_) => self.calls.next_deadline_us(),
        }
    }

    /// Reads. The request before must have been answered.
    pub fn on_read(&mut self, now_us: u64, request: Vec<u8>) {
        assert!(matches!(self.state, State::Idle), "a client has one request at a time");
        let executor = Replica(self.random.index(self.replicas) as u32);
        self.attempt += 1;
        for replica in (0..self.replicas as u32).map(Replica) {
            let (request, executes) = (request.clone(), replica == executor);
            self.outputs.push_back(ClientOutput::SendFast {
                replica,
                attempt: self.attempt,
                request,
                executes,
            });
        }
        let deadline_us = now_us.saturating_add(FAST_PATIENCE_US);
        let sketches = vec![None; self.replicas];
        self.state = State::Fast(FastRead { request, executor, response: None, sketches, deadline_us });
    }

    /// Writes. The request before must have been answered.
    pub fn on_write(&mut self, now_us: u64, request: Vec<u8>) {
        assert!(matches!(self.state, State::Idle), "a client has one request at a time");
        self.call(now_us, request, Path::Replicated);
    }

    /// A replica's answer to a fast read arrives.
    pub fn on_fast_answer(&mut self, now_us: u64, replica: Replica, attempt: u64, answer: FastAnswer) {
        let State::Fast(read) = &mut self.state else { return };
        if attempt != self.attempt || replica.0 as usize >= self.replicas {
            return;
        }
        match answer {
            FastAnswer::Response(response, own) if replica == read.executor && read.response.is_none() => {
                if response.len() <= RESPONSE_BYTES_MAX {
                    let sketch = self.sketching.response(&response);
                    read.response = Some((response, sketch));
                    let own = if self.counts_executor { Some(sketch) } else { own };
                    read.sketches[replica.0 as usize] = Some(own);
                }
            }
            FastAnswer::Sketch(sketch) if replica != read.executor => {
                read.sketches[replica.0 as usize].get_or_insert(sketch);
            }
            FastAnswer::Response(..) | FastAnswer::Sketch(_) => return,
        }
        self.count(now_us);
    }

    /// A replica's answer to a replicated request arrives.
    pub fn on_replicated_answer(&mut self, replica: Replica, number: CallNumber, answer: ReplicatedAnswer) {
        self.calls.on_answer(replica, number, answer);
        self.forward();
    }

    /// Time has passed.
    pub fn on_tick(&mut self, now_us: u64) {
        match &self.state {
            State::Fast(read) if read.deadline_us <= now_us => self.fall_back(now_us),
            State::Replicated(_) => {
                self.calls.on_tick(now_us);
                self.forward();
            }
            State::Fast(_) | State::Idle => {}
        }
    }

    fn count(&mut self, now_us: u64) {
        let State::Fast(read) = &self.state else { return };
        let Some((response, sketch)) = &read.response else { return };
        let agreeing = read.sketches.iter().filter(|other| **other == Some(Some(*sketch))).count();
        let silent = read.sketches.iter().filter(|other| other.is_none()).count();
        if agreeing >= self.fast_quorum {
            self.outputs.push_back(ClientOutput::Answer { response: response.clone(), path: Path::Fast });
            self.state = State::Idle;
        } else if agreeing + silent < self.fast_quorum {
            self.fall_back(now_us);
        }
    }

    fn fall_back(&mut self, now_us: u64) {
        if let State::Fast(read) = std::mem::replace(&mut self.state, State::Idle) {
            self.call(now_us, read.request, Path::FailedFast);
        }
    }

    fn call(&mut self, now_us: u64, request: Vec<u8>, path: Path) {
        self.state = State::Replicated(path);
        self.calls.on_call(now_us, request);
        self.forward();
    }

    fn forward(&mut self) {
        while let Some(output) = self.calls.take_output() {
            let output = match (output, &self.state) {
                (CallOutput::Send { replica, number, request }, _) => {
                    ClientOutput::SendReplicated { replica, number, request }
                }
                (CallOutput::Lied(replica), _) => ClientOutput::Lied(replica),
                (CallOutput::Accepted(answer), State::Replicated(path)) => {
                    let path = *path;
                    self.state = State::Idle;
                    ClientOutput::Answer { response: answer.response, path }
                }
                (CallOutput::Failed(failure), _) => {
                    self.state = State::Idle;
                    ClientOutput::Failed(failure)
                }
                (CallOutput::Accepted(_), State::Idle | State::Fast(_)) => continue,
            };
            self.outputs.push_back(output);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client() -> DistributedClient {
        let mut client = DistributedClient::new(4, Quorums::of_d_prophecy(4), 1, Broken::none());
        client.on_read(0, b"q".to_vec());
        client
    }

    fn executor(client: &mut DistributedClient) -> (Replica, Vec<Replica>) {
        let sent: Vec<(Replica, bool)> = std::iter::from_fn(|| client.take_output())
            .map(|output| match output {
                ClientOutput::SendFast { replica, executes, .. } => (replica, executes),
                other => panic!("{other:?}"),
            })
            .collect();
        let of = |wanted: bool| sent.iter().filter(move |sent| sent.1 == wanted).map(|sent| sent.0);
        (of(true).next().unwrap(), of(false).collect())
    }

    fn sketch(response: &str) -> FastAnswer {
        FastAnswer::Sketch(Some(Sketching::public().response(response.as_bytes())))
    }

    fn response() -> FastAnswer {
        FastAnswer::Response(b"r".to_vec(), Some(Sketching::public().response(b"r")))
    }

    #[test]
    fn a_response_needs_a_quorum_that_has_its_sketch() {
        let mut client = client();
        let (executing, others) = executor(&mut client);
        client.on_fast_answer(1, others[0], 1, sketch("r"));
        client.on_fast_answer(1, others[0], 1, sketch("r"));
        client.on_fast_answer(1, executing, 1, response());
        assert_eq!(client.take_output(), None, "two of four");
        client.on_fast_answer(1, others[1], 1, sketch("r"));
        let answer = ClientOutput::Answer { response: b"r".to_vec(), path: Path::Fast };
        assert_eq!(client.take_output(), Some(answer));
    }

    #[test]
    fn the_executing_replica_counts_by_its_sketch() {
        let mut client = client();
        let (executing, others) = executor(&mut client);
        client.on_fast_answer(1, others[0], 1, sketch("r"));
        client.on_fast_answer(1, others[1], 1, sketch("r"));
        client.on_fast_answer(1, executing, 1, FastAnswer::Response(b"r".to_vec(), None));
        assert_eq!(client.take_output(), None, "its own history table has no such entry");
        client.on_fast_answer(1, others[2], 1, sketch("r"));
        assert!(matches!(client.take_output(), Some(ClientOutput::Answer { path: Path::Fast, .. })));
    }

    #[test]
    fn without_a_quorum_the_read_is_replicated() {
        for hindrance in [FastAnswer::Sketch(None), sketch("other")] {
            let mut client = client();
            let (executing, others) = executor(&mut client);
            client.on_fast_answer(1, executing, 1, response());
            client.on_fast_answer(1, others[0], 1, hindrance.clone());
            assert_eq!(client.take_output(), None);
            client.on_fast_answer(1, others[1], 1, hindrance);
            assert!(matches!(client.take_output(), Some(ClientOutput::SendReplicated { .. })));
        }
        let mut client = client();
        executor(&mut client);
        client.on_tick(FAST_PATIENCE_US);
        assert!(matches!(client.take_output(), Some(ClientOutput::SendReplicated { .. })), "nobody answered");
    }

    #[test]
    fn a_read_without_agreement_fails_and_the_next_one_begins() {
        let mut client = client();
        client.on_tick(FAST_PATIENCE_US);
        for number in 0..4 {
            let answer = ReplicatedAnswer { response: vec![number], sequence: Sequence(1) };
            client.on_replicated_answer(Replica(number.into()), CallNumber(1), answer);
        }
        let last = std::iter::from_fn(|| client.take_output()).last();
        assert_eq!(last, Some(ClientOutput::Failed(CallFailure::NoAgreement)));
        client.on_read(0, b"q".to_vec());
    }

    #[test]
    fn a_replica_has_the_sketch_of_its_latest_replicated_read() {
        let mut replica = ReplicaSketcher::new(16).unwrap();
        assert_eq!(replica.on_fast_read(b"q"), None);
        replica.on_replicated_read(b"q", b"old", Sequence(1));
        replica.on_replicated_read(b"q", b"new", Sequence(2));
        assert_eq!(replica.on_fast_read(b"q"), Some(Sketching::public().response(b"new")));
    }
}
