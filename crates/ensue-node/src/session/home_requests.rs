//! Requests of this core to homes in other datacenters that have no answer yet.
//!
//! - On a request: it gets the next number of this incarnation of the process, and is kept until it is answered or
//!   times out.
//! - On a link that comes up: the outstanding requests to that core are sent again, if the same incarnation of its
//!   process still runs. Otherwise it is unknown whether they were executed.
//! - On one that is abandoned: its home is told, again if the link breaks, until it has answered that.
//! - Each request carries the lowest outstanding number, so that a home can drop the answers below it.

use ensue_types::{SessionId, limits};
use ensue_wire::{CoreName, HomeOutcome, HomeRequest};
use std::collections::{BTreeMap, BTreeSet};

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct HomeRequests {
    next: u64,
    /// The run of the process of each core that can be asked.
    ready: BTreeMap<CoreName, u32>,
    outstanding: BTreeMap<u64, Outstanding>,
    /// The numbers of the same by whom was asked.
    numbers: BTreeMap<CoreName, BTreeSet<u64>>,
    bytes: usize,
    /// How many may wait at their homes.
    waits: usize,
}

#[derive(Clone, Debug)]
struct Outstanding {
    session: SessionId,
    home: CoreName,
    request: HomeRequest,
    bytes: usize,
}

/// Why a request is not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unsent {
    /// There is no link.
    Away,
    /// Too many wait already.
    TooMany,
}

/// What a core that can be asked again has been asked before.
#[derive(Debug, Default)]
pub(super) struct Reconnected {
    pub(super) again: Vec<HomeRequest>,
    /// Another run of its process was asked these.
    pub(super) lost: Vec<u64>,
}

impl HomeRequests {
    /// Keeps a request of a session, and completes it.
    pub(super) fn begin(
        &mut self,
        session: SessionId,
        home: CoreName,
        request: HomeRequest,
    ) -> Result<HomeRequest, Unsent> {
        let home_boot = *self.ready.get(&home).ok_or(Unsent::Away)?;
        let number = self.next;
        let numbers = self.numbers.entry(home).or_default();
        let below = numbers.first().copied().unwrap_or(number);
        let arguments = request.commands.iter().flatten().map(|argument| argument.len() + ARGUMENT_BYTES);
        let bytes = arguments.sum::<usize>() + request.context.causes.encoded_bytes() + ARGUMENT_BYTES;
        let is_full = numbers.len() >= limits::HOME_REQUESTS_MAX
            || number - below >= limits::HOME_REQUEST_NUMBERS_MAX
            || self.bytes + bytes > limits::HOME_REQUEST_BYTES_MAX;
        let waits = request.waits_ms > 0;
        if is_full && !numbers.is_empty() || waits && self.waits >= limits::HOME_WAITS_MAX {
            return Err(Unsent::TooMany);
        }
        self.waits += usize::from(waits);
        numbers.insert(number);
        self.next += 1;
        self.bytes += bytes;
        let request = HomeRequest { number, home_boot, below, ..request };
        self.outstanding.insert(number, Outstanding { session, home, request: request.clone(), bytes });
        Ok(request)
    }

    /// A core has answered: the session whose request it was. What was executed before it was abandoned is put back,
    /// and the answer to that is still to come.
    pub(super) fn on_answer(
        &mut self,
        home: CoreName,
        number: u64,
        outcome: &HomeOutcome,
    ) -> Option<SessionId> {
        let outstanding = self.outstanding.get(&number).filter(|outstanding| outstanding.home == home)?;
        if !outstanding.request.abandoned {
            return Some(outstanding.session);
        }
        if !matches!(outcome, HomeOutcome::Executed { .. }) {
            self.end(number);
        }
        None
    }

    /// Nobody waits any more for a request that may wait: what its home is told now, if it can be told.
    pub(super) fn abandon(&mut self, number: u64) -> Option<(CoreName, HomeRequest)> {
        let outstanding = self.outstanding.get_mut(&number)?;
        outstanding.request.abandoned = true;
        let is_up = self.ready.get(&outstanding.home) == Some(&outstanding.request.home_boot);
        is_up.then(|| (outstanding.home, outstanding.request.clone()))
    }

    /// It has its answer, or nobody waits for it any more.
    pub(super) fn end(&mut self, number: u64) {
        let Some(ended) = self.outstanding.remove(&number) else { return };
        self.bytes -= ended.bytes;
        self.waits -= usize::from(ended.request.waits_ms > 0);
        if let Some(numbers) = self.numbers.get_mut(&ended.home) {
            numbers.remove(&number);
        }
    }

    /// A core of another datacenter can be asked.
    pub(super) fn on_ready(&mut self, home: CoreName, boot: u32) -> Reconnected {
        self.ready.insert(home, boot);
        let mut found = Reconnected::default();
        for number in self.numbers.get(&home).into_iter().flatten() {
            let Some(outstanding) = self.outstanding.get(number) else { continue };
            match outstanding.request.home_boot == boot {
                true => found.again.push(outstanding.request.clone()),
                false => found.lost.push(*number),
            }
        }
        found
    }

    /// A session that has waited for so long that the number of its request soon keeps others from being made, or their
    /// answers from being forgotten at the home.
    pub(super) fn first_to_request_anew(&self) -> Option<(u64, SessionId)> {
        if self.waits == 0 {
            return None;
        }
        let firsts = self.numbers.values().filter_map(BTreeSet::first);
        let old = firsts.filter(|number| self.next - *number >= limits::HOME_REQUEST_NUMBERS_MAX / 2);
        let mut requests = old.filter_map(|number| Some((*number, self.outstanding.get(number)?)));
        let found = requests.find(|(_, one)| one.request.waits_ms > 0 && !one.request.abandoned);
        found.map(|(number, outstanding)| (number, outstanding.session))
    }

    pub(super) fn on_link_down(&mut self, home: CoreName) {
        self.ready.remove(&home);
    }

    /// Panics if a request would not be sent again, or the bytes are counted wrong.
    pub(super) fn check_invariants(&self) {
        let bytes: usize = self.outstanding.values().map(|outstanding| outstanding.bytes).sum();
        assert_eq!(bytes, self.bytes, "the bytes of requests to homes are counted wrong");
        for (number, outstanding) in &self.outstanding {
            let numbers = self.numbers.get(&outstanding.home);
            assert!(
                numbers.is_some_and(|numbers| numbers.contains(number)),
                "request {number} is not sent again"
            );
            assert!(*number < self.next, "request {number} has a number that is given again");
        }
        let listed: usize = self.numbers.values().map(BTreeSet::len).sum();
        assert_eq!(listed, self.outstanding.len(), "a request is sent again that was answered");
        let waits = self.outstanding.values().filter(|outstanding| outstanding.request.waits_ms > 0).count();
        assert_eq!(waits, self.waits, "what waits at homes is counted wrong");
    }

    /// As if so many requests had been made and answered.
    #[cfg(test)]
    pub(super) fn skip_numbers(&mut self, count: u64) {
        self.next += count;
    }

    /// How many have no answer.
    pub(super) fn len(&self) -> usize {
        self.outstanding.len()
    }
}

/// The tables' share of an argument, or of a request.
const ARGUMENT_BYTES: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use ensue_types::{Context, CoreId, DatacenterId, KeyspaceId};

    fn request() -> HomeRequest {
        HomeRequest {
            boot: 1,
            number: 0,
            home_boot: 0,
            below: 0,
            keyspace: KeyspaceId(0),
            context: Context::default(),
            transaction: false,
            waits_ms: 0,
            abandoned: false,
            commands: Vec::new(),
        }
    }

    #[test]
    fn what_waits_for_one_core_is_bounded_and_leaves_others_alone() {
        let home = |core| CoreName { datacenter: DatacenterId(1), core: CoreId(core) };
        let mut requests = HomeRequests::default();
        assert_eq!(requests.begin(SessionId(1), home(0), request()), Err(Unsent::Away));
        for core in [0, 1] {
            requests.on_ready(home(core), 7);
        }
        for number in 0..limits::HOME_REQUESTS_MAX as u64 {
            let sent = requests.begin(SessionId(number), home(0), request()).expect("there is room");
            assert_eq!((sent.number, sent.home_boot, sent.below), (number, 7, 0));
        }
        assert_eq!(requests.begin(SessionId(1), home(0), request()), Err(Unsent::TooMany));
        let other = requests.begin(SessionId(1), home(1), request()).expect("another core");
        assert_eq!(other.below, other.number, "nothing else is outstanding there");
        requests.end(0);
        let next = requests.begin(SessionId(1), home(0), request()).expect("one was answered");
        assert_eq!(next.below, 1);
        let nothing = HomeOutcome::Forgotten;
        assert_eq!(requests.on_answer(home(1), next.number, &nothing), None, "who answers is who was asked");
        assert_eq!(requests.on_ready(home(1), 8).lost, [other.number]);
    }

    #[test]
    fn what_waits_leaves_room_for_the_others() {
        let home = CoreName { datacenter: DatacenterId(1), core: CoreId(0) };
        let mut requests = HomeRequests::default();
        requests.on_ready(home, 7);
        let pop = || HomeRequest { waits_ms: 1, ..request() };
        for number in 0..limits::HOME_WAITS_MAX as u64 {
            assert!(requests.begin(SessionId(number), home, pop()).is_ok());
        }
        assert_eq!(requests.begin(SessionId(1), home, pop()), Err(Unsent::TooMany));
        assert!(requests.begin(SessionId(1), home, request()).is_ok());
        requests.end(5);
        assert!(requests.begin(SessionId(1), home, pop()).is_ok());
        requests.check_invariants();
    }

    #[test]
    fn numbers_do_not_run_far_ahead_of_one_that_waits() {
        let home = CoreName { datacenter: DatacenterId(1), core: CoreId(0) };
        let mut requests = HomeRequests::default();
        requests.on_ready(home, 7);
        let first = requests.begin(SessionId(1), home, request()).expect("there is room").number;
        requests.next = first + limits::HOME_REQUEST_NUMBERS_MAX;
        assert_eq!(requests.begin(SessionId(2), home, request()), Err(Unsent::TooMany));
        requests.end(first);
        assert!(requests.begin(SessionId(2), home, request()).is_ok());
        assert_eq!((requests.len(), requests.bytes > 0), (1, true));
    }
}
