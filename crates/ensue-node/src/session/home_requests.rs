//! Requests of this core to homes in other datacenters that have no answer yet.
//!
//! - On a request: it gets the next number of this incarnation of the process, and is kept until it is answered or
//!   times out.
//! - On a link that comes up: the outstanding requests to that core are sent again, if the same incarnation of its
//!   process still runs. Otherwise it is unknown whether they were executed.
//! - Each request carries the lowest outstanding number, so that a home can drop the answers below it.

use ensue_types::{SessionId, limits};
use ensue_wire::{CoreName, HomeRequest};
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
        if is_full && !numbers.is_empty() {
            return Err(Unsent::TooMany);
        }
        numbers.insert(number);
        self.next += 1;
        self.bytes += bytes;
        let request = HomeRequest { number, home_boot, below, ..request };
        self.outstanding.insert(number, Outstanding { session, home, request: request.clone(), bytes });
        Ok(request)
    }

    /// The session whose request a core has answered.
    pub(super) fn session_of(&self, home: CoreName, number: u64) -> Option<SessionId> {
        let outstanding = self.outstanding.get(&number)?;
        (outstanding.home == home).then_some(outstanding.session)
    }

    /// It has its answer, or nobody waits for it any more.
    pub(super) fn end(&mut self, number: u64) {
        let Some(ended) = self.outstanding.remove(&number) else { return };
        self.bytes -= ended.bytes;
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
        assert_eq!(requests.session_of(home(1), next.number), None, "who answers is who was asked");
        assert_eq!(requests.on_ready(home(1), 8).lost, [other.number]);
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
