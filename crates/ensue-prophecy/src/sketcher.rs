//! The sketcher of Prophecy: Algorithm 1 of the paper as a machine that does no input or output.
//!
//! - On a request: refuse what is malformed, too long, too much, or of a region that another sketcher owns. Let it wait
//!   for a free session. A write goes to the replicated service. A read that the history table has a response for, and
//!   that is not blacklisted, goes to one replica, drawn uniformly; any other read goes to the replicated service.
//! - On a fast answer: look the request up again. If the sketches agree, or the request is whitelisted, return the
//!   answer. Otherwise issue the request to the replicated service, in the same session.
//! - On no fast answer in time: the same as on one that does not agree.
//! - On a replicated request that has no answer: refuse it, so that its session is free.
//! - On a replicated answer: return it. If the request is a read and the answer's sequence number is newer than that of
//!   the entry, it becomes the entry, and whether it differs from the former one is an outcome for the blacklist.
//! - On a region that moves: no fast answer of it is returned, and what is asked before it is owned enters no table.
//!
//! Differences from the paper: a whitelisted request needs no response in the table (with Algorithm 1 as printed its
//! first read would be replicated, though its sketch is said to be empty); a blacklisted request keeps its sketch, by
//! which it is seen to have come to rest; a fast read that is not answered has a time limit; and eviction remembers
//! sequence numbers (see `table.rs`).
//!
//! It compares what the protocol handler left of a response, and returns just that. It trusts the replica client that
//! a replicated answer had enough equal votes, and its own memory; it trusts no replica.

use crate::handler::{Handler, Inspected, RequestError};
use crate::limits::{
    FAST_PATIENCE_US, REPLICAS_MAX, REQUEST_BYTES_MAX, RESPONSE_BYTES_MAX, RETIRED_ENTRIES,
    WAITING_REQUESTS_MAX,
};
use crate::random::Random;
use crate::regions::{Ownership, Region, Regions};
use crate::replica_client::CallFailure;
use crate::rule::{Broken, Rule};
use crate::sessions::{Exchange, Sessions, SessionsError};
use crate::sketch::{KeyedSketch, Sketching};
use crate::statistics::Statistics;
use crate::table::{HistoryTable, List, Sequence, TableError};
use std::collections::VecDeque;

/// Names a request of a client until it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// The number of a replica, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Replica(pub u32);

/// What a sketcher is made of.
#[derive(Clone, Debug)]
pub struct Config {
    /// The names of the replicas; their places are their numbers.
    pub replicas: Vec<String>,
    /// Sessions with the replica group.
    pub sessions: usize,
    /// Entries of the history table.
    pub table_entries: usize,
    /// Microseconds to wait for a fast answer.
    pub fast_patience_us: u64,
    /// 32 random bytes that only this sketcher, or this sketching core, knows.
    pub sketch_secret: [u8; 32],
    /// What the choice of replicas follows from.
    pub seed: u64,
    /// What the regions are in the beginning: owned, if there is one sketcher.
    pub regions: Ownership,
    /// The rule that does not hold, in a simulation.
    pub broken: Broken,
}

impl Config {
    /// For replicas with these names; 40 sessions as in the paper, and 1 million entries (44 MB).
    pub fn of(replicas: &[&str], sketch_secret: [u8; 32], seed: u64) -> Config {
        Config {
            replicas: replicas.iter().map(|name| (*name).to_string()).collect(),
            sessions: 40,
            table_entries: 1_000_000,
            fast_patience_us: FAST_PATIENCE_US,
            sketch_secret,
            seed,
            regions: Ownership::Owned,
            broken: Broken::none(),
        }
    }
}

/// Why there is no such sketcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The number of replicas.
    #[error("a replica group has 1 to {REPLICAS_MAX} replicas, not {0}")]
    Replicas(usize),
    /// The number of sessions.
    #[error(transparent)]
    Sessions(#[from] SessionsError),
    /// The size of the table.
    #[error(transparent)]
    Table(#[from] TableError),
}

/// Which way an answer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// From one replica.
    Fast,
    /// From the replicated service at once.
    Replicated,
    /// From the replicated service after a fast answer had failed.
    FailedFast,
}

/// Why a request is not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The request's own fault.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// Too many requests wait; the client may try again.
    #[error("busy: {WAITING_REQUESTS_MAX} requests wait already")]
    Busy,
    /// The replicas gave no answer; a write may have been executed.
    #[error(transparent)]
    Unanswered(#[from] CallFailure),
    /// Another sketcher serves it.
    #[error("another sketcher owns this region of the history table")]
    ForeignRegion,
}

/// What a sketcher wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send this request to one replica, `fast(q)` of section 3.1.
    Fast { exchange: Exchange, replica: Replica, request: Vec<u8> },
    /// Have the replica client of this session issue the request, `replicated(q)`.
    Replicated { exchange: Exchange, request: Vec<u8> },
    /// Return this response to the client.
    Answer { id: RequestId, response: Vec<u8>, path: Path },
    /// Refuse the request.
    Refuse { id: RequestId, reason: Refusal },
}

/// A request that waits for a session.
#[derive(Clone, Debug)]
struct Pending {
    id: RequestId,
    request: Vec<u8>,
    /// s(q) of a read.
    read: Option<KeyedSketch>,
    /// What the operator's patterns say, whatever the history table does.
    listed: List,
}

/// A fast read that is not answered.
#[derive(Clone, Debug)]
struct FastRead {
    pending: Pending,
    sketch: KeyedSketch,
    replica: Replica,
    deadline_us: u64,
}

/// A replicated request that is not answered.
#[derive(Clone, Debug)]
struct ReplicatedCall {
    pending: Pending,
    failed: Option<Failed>,
    /// Whether its answer may enter the history table: its region did not move when it was issued.
    may_enter: bool,
}

/// The fast answer that a replicated read follows.
#[derive(Clone, Copy, Debug)]
struct Failed {
    replica: Replica,
    /// None if it did not come.
    response: Option<KeyedSketch>,
}

#[derive(Clone, Debug)]
enum Work {
    Fast(FastRead),
    Replicated(ReplicatedCall),
}

impl Work {
    fn pending(&self) -> &Pending {
        match self {
            Work::Fast(read) => &read.pending,
            Work::Replicated(call) => &call.pending,
        }
    }
}

/// The machine. Inputs are the `on_` methods, with the time in microseconds of any clock that does not go back.
#[derive(Debug)]
pub struct Sketcher<H> {
    handler: H,
    sketching: Sketching<16>,
    table: HistoryTable<16>,
    /// Pairs of a request and a response that it had, to tell old answers from wrong ones.
    retired: HistoryTable<16>,
    sessions: Sessions<Work, Pending>,
    regions: Regions,
    random: Random,
    fast_patience_us: u64,
    statistics: Statistics,
    outputs: VecDeque<Output>,
    broken: Broken,
}

impl<H: Handler> Sketcher<H> {
    /// A sketcher with an empty history table.
    pub fn new(config: &Config, handler: H) -> Result<Sketcher<H>, ConfigError> {
        if config.replicas.is_empty() || config.replicas.len() > REPLICAS_MAX {
            return Err(ConfigError::Replicas(config.replicas.len()));
        }
        Ok(Sketcher {
            handler,
            sketching: Sketching::keyed(&config.sketch_secret),
            table: HistoryTable::new(config.table_entries, config.broken)?,
            retired: HistoryTable::new(RETIRED_ENTRIES.min(config.table_entries), Broken::none())?,
            sessions: Sessions::new(config.sessions, WAITING_REQUESTS_MAX)?,
            regions: Regions::all(config.regions),
            random: Random::stream(config.seed, "replica"),
            fast_patience_us: config.fast_patience_us,
            statistics: Statistics::of(&config.replicas),
            outputs: VecDeque::new(),
            broken: config.broken,
        })
    }

    /// What is to be done, in this order; `None` when all is handed out.
    pub fn take_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Sketcher::on_tick`] has something to do at the earliest.
    pub fn next_deadline_us(&self) -> Option<u64> {
        let deadline = |(_, work): (_, &Work)| match work {
            Work::Fast(read) => Some(read.deadline_us),
            Work::Replicated(_) => None,
        };
        self.sessions.all().filter_map(deadline).min()
    }

    /// What was counted.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// The history table, to look at.
    pub fn table(&self) -> &HistoryTable<16> {
        &self.table
    }

    /// Requests of this region that are not answered yet.
    pub fn requests_of_region(&self, region: Region) -> usize {
        let is_of = |pending: &&Pending| pending.read.is_some_and(|sketch| Region::of(&sketch) == region);
        let served = self.sessions.all().map(|(_, work)| work.pending()).filter(is_of).count();
        served + self.sessions.waiting().filter(is_of).count()
    }

    /// A client's request arrives.
    pub fn on_request(&mut self, now_us: u64, id: RequestId, request: Vec<u8>) {
        match self.admit(id, request) {
            Ok(pending) => {
                if self.sessions.enqueue(pending).is_err() {
                    self.refuse(id, Refusal::Busy);
                }
            }
            Err(reason) => self.refuse(id, reason),
        }
        self.start_waiting(now_us);
    }

    /// One replica's answer to a fast read arrives. Exchanges can be guessed, so what another replica than the one that
    /// was asked says is ignored: otherwise the quickest one would answer all.
    pub fn on_fast_answer(&mut self, now_us: u64, exchange: Exchange, replica: Replica, response: Vec<u8>) {
        if !matches!(self.sessions.work(exchange), Some(Work::Fast(read)) if read.replica == replica) {
            return;
        }
        let Some(Work::Fast(read)) = self.sessions.take(exchange) else { return };
        if response.len() > RESPONSE_BYTES_MAX {
            return self.fall_back(exchange, read, None);
        }
        let response = self.handler.canonical_response(response);
        let found = self.sketching.response(&response);
        if !self.is_confirmed(&read.sketch, &found, read.pending.listed) {
            return self.fall_back(exchange, read, Some(found));
        }
        self.statistics.fast += 1;
        self.statistics.replicas[read.replica.0 as usize].accepted += 1;
        self.record(&read.sketch, false);
        self.answer(exchange, read.pending.id, response, Path::Fast);
        self.start_waiting(now_us);
    }

    /// The replica client of a session accepted an answer to a replicated request.
    pub fn on_replicated_answer(
        &mut self,
        now_us: u64,
        exchange: Exchange,
        response: Vec<u8>,
        sequence: Sequence,
    ) {
        if !matches!(self.sessions.work(exchange), Some(Work::Replicated(_))) {
            return;
        }
        let Some(Work::Replicated(call)) = self.sessions.take(exchange) else { return };
        let response = self.handler.canonical_response(response);
        if let Some(request) = call.pending.read {
            self.enter(&request, &call, &response, sequence);
        }
        let path = if call.failed.is_some() { Path::FailedFast } else { Path::Replicated };
        self.answer(exchange, call.pending.id, response, path);
        self.start_waiting(now_us);
    }

    /// The replica client of a session gave a replicated request up.
    pub fn on_replicated_failure(&mut self, now_us: u64, exchange: Exchange, failure: CallFailure) {
        if !matches!(self.sessions.work(exchange), Some(Work::Replicated(_))) {
            return;
        }
        let Some(Work::Replicated(call)) = self.sessions.take(exchange) else { return };
        self.sessions.free(exchange);
        self.refuse(call.pending.id, Refusal::Unanswered(failure));
        self.start_waiting(now_us);
    }

    /// A replica client saw that this replica answered something else than was accepted, at the same place.
    pub fn on_lie(&mut self, replica: Replica) {
        if let Some(statistics) = self.statistics.replicas.get_mut(replica.0 as usize) {
            statistics.lied += 1;
        }
    }

    /// Time has passed.
    pub fn on_tick(&mut self, now_us: u64) {
        let is_late = |work: &Work| matches!(work, Work::Fast(read) if read.deadline_us <= now_us);
        let late: Vec<Exchange> =
            self.sessions.all().filter(|(_, work)| is_late(work)).map(|(exchange, _)| exchange).collect();
        for exchange in late {
            if let Some(Work::Fast(read)) = self.sessions.take(exchange) {
                self.statistics.replicas[read.replica.0 as usize].silent += 1;
                self.fall_back(exchange, read, None);
            }
        }
    }

    /// This region is this to the sketcher from now on. Before it becomes owned, no other sketcher may have a request
    /// of it left.
    pub fn on_region(&mut self, region: Region, ownership: Ownership) {
        self.regions.set(region, ownership);
        if ownership != Ownership::Owned && self.broken.holds(Rule::BlacklistMovingRegions) {
            self.table.forget(|request| Region::of(request) == region);
        }
    }

    /// Puts a request on a list by the operator's decision. The blacklist is left again by a request that comes to
    /// rest; and a request that is evicted from the history table is on no list.
    pub fn enlist(&mut self, request: &[u8], list: List) -> Result<(), RequestError> {
        if let Inspected::Read { canonical } = self.handler.inspect(request)? {
            let request = self.sketching.request(&canonical);
            self.table.enlist(&request, list);
        }
        Ok(())
    }

    fn admit(&mut self, id: RequestId, request: Vec<u8>) -> Result<Pending, Refusal> {
        if request.len() > REQUEST_BYTES_MAX {
            return Err(RequestError::TooLong(request.len()).into());
        }
        let (read, listed) = match self.handler.inspect(&request)? {
            Inspected::Read { canonical } => {
                (Some(self.sketching.request(&canonical)), self.handler.listed(&canonical))
            }
            Inspected::Write => (None, List::Neither),
        };
        if read.is_some_and(|sketch| self.regions.ownership(Region::of(&sketch)) == Ownership::Foreign) {
            return Err(Refusal::ForeignRegion);
        }
        *if read.is_some() { &mut self.statistics.reads } else { &mut self.statistics.writes } += 1;
        Ok(Pending { id, request, read, listed })
    }

    fn start_waiting(&mut self, now_us: u64) {
        while let Some(pending) = self.sessions.next_waiting() {
            match pending.read {
                Some(sketch) if self.may_be_fast(&sketch, pending.listed) => {
                    self.start_fast(now_us, pending, sketch)
                }
                read => {
                    self.statistics.replicated += u64::from(read.is_some());
                    self.start_replicated(pending);
                }
            }
        }
    }

    fn start_fast(&mut self, now_us: u64, pending: Pending, sketch: KeyedSketch) {
        let replica = Replica(self.choose_replica() as u32);
        let request = pending.request.clone();
        let deadline_us = now_us.saturating_add(self.fast_patience_us);
        let exchange = self.sessions.begin(Work::Fast(FastRead { pending, sketch, replica, deadline_us }));
        self.statistics.replicas[replica.0 as usize].asked += 1;
        self.outputs.push_back(Output::Fast { exchange, replica, request });
    }

    fn start_replicated(&mut self, pending: Pending) {
        let request = pending.request.clone();
        let may_enter = self.may_enter(&pending);
        let call = ReplicatedCall { pending, failed: None, may_enter };
        let exchange = self.sessions.begin(Work::Replicated(call));
        self.outputs.push_back(Output::Replicated { exchange, request });
    }

    /// The fast answer failed: the same session issues the request to the replicated service.
    fn fall_back(&mut self, exchange: Exchange, read: FastRead, response: Option<KeyedSketch>) {
        self.statistics.failed_fast += 1;
        let request = read.pending.request.clone();
        let may_enter = self.may_enter(&read.pending);
        let failed = Some(Failed { replica: read.replica, response });
        let call = ReplicatedCall { pending: read.pending, failed, may_enter };
        let exchange = self.sessions.continue_with(exchange, Work::Replicated(call));
        self.outputs.push_back(Output::Replicated { exchange, request });
    }

    fn choose_replica(&mut self) -> usize {
        let replicas = self.statistics.replicas.len();
        if self.broken.holds(Rule::ChooseReplicaUniformly) { self.random.index(replicas) } else { 0 }
    }

    fn may_be_fast(&mut self, request: &KeyedSketch, listed: List) -> bool {
        if !self.is_owned(request) && self.broken.holds(Rule::BlacklistMovingRegions) {
            return false;
        }
        let found = self.table.lookup(request);
        let list = if listed == List::Neither { found.unwrap_or_default().list } else { listed };
        match list {
            List::White => true,
            List::Black => false,
            List::Neither => found.is_some_and(|entry| entry.response.is_some()),
        }
    }

    /// Whether a fast answer may be returned, by what the history table has now.
    fn is_confirmed(&mut self, request: &KeyedSketch, response: &KeyedSketch, listed: List) -> bool {
        if !self.broken.holds(Rule::CompareSketches) {
            return true;
        }
        if !self.is_owned(request) && self.broken.holds(Rule::BlacklistMovingRegions) {
            return false;
        }
        let found = self.table.lookup(request).unwrap_or_default();
        let is_white = listed == List::White || found.list == List::White;
        is_white || found.response == Some(*response)
    }

    fn is_owned(&self, request: &KeyedSketch) -> bool {
        self.regions.ownership(Region::of(request)) == Ownership::Owned
    }

    fn may_enter(&self, pending: &Pending) -> bool {
        pending.read.is_some_and(|request| self.is_owned(&request))
            || !self.broken.holds(Rule::DistrustReadsOfMovingRegions)
    }

    /// Updates the history table with the answer of a replicated read, and judges the fast answer before it.
    fn enter(&mut self, request: &KeyedSketch, call: &ReplicatedCall, response: &[u8], sequence: Sequence) {
        let response = self.sketching.response(response);
        let before = if call.may_enter { self.table.update(request, response, sequence) } else { None };
        if let Some(former) = before.and_then(|before| before.response) {
            let has_changed = former != response;
            if has_changed {
                self.statistics.transitions += 1;
                let pair = self.sketching.pair(request, &former);
                self.retired.update(&pair, former, sequence);
            }
            self.record(request, has_changed);
        }
        let Some(Failed { replica, response: Some(failed) }) = call.failed else { return };
        let is_retired = self.retired.lookup(&self.sketching.pair(request, &failed)).is_some();
        let statistics = &mut self.statistics.replicas[replica.0 as usize];
        let count = match () {
            () if failed == response => &mut statistics.fresh,
            () if is_retired => &mut statistics.stale,
            () => &mut statistics.unagreed,
        };
        *count += 1;
    }

    fn record(&mut self, request: &KeyedSketch, has_changed: bool) {
        match self.table.record(request, has_changed) {
            Some(List::Black) => self.statistics.blacklisted += 1,
            Some(_) => self.statistics.unlisted += 1,
            None => {}
        }
    }

    fn answer(&mut self, exchange: Exchange, id: RequestId, response: Vec<u8>, path: Path) {
        self.sessions.free(exchange);
        self.outputs.push_back(Output::Answer { id, response, path });
    }

    fn refuse(&mut self, id: RequestId, reason: Refusal) {
        self.statistics.refused += 1;
        self.outputs.push_back(Output::Refuse { id, reason });
    }
}

#[cfg(test)]
mod tests;
