//! Requests of other datacenters to this core, at the home of their keys: each is executed once.
//!
//! - On a new request: a session of its own executes it.
//! - On a request that is being executed: nothing; its answer will be sent.
//! - On a request that was answered: the same answer, until its origin acknowledges it.
//! - On a request that was first sent to an earlier incarnation of this process: it is unknown whether that incarnation
//!   executed it, and the answer says so.
//! - On a new incarnation of the origin's process: the requests of the earlier one are dropped; no one repeats them.

use ensue_types::{KeyspaceId, Rule, SessionId, limits};
use ensue_wire::{CoreName, HomeOutcome, HomeRequest};
use std::collections::BTreeMap;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct HomeServing {
    origins: BTreeMap<CoreName, Origin>,
    running: BTreeMap<SessionId, Running>,
    sessions: u64,
    kept_bytes: usize,
}

/// A core that asks.
#[derive(Clone, Debug, Default)]
struct Origin {
    boot: u32,
    below: u64,
    requests: BTreeMap<u64, Known>,
    running: usize,
}

#[derive(Clone, Debug)]
enum Known {
    Running,
    Answered(Box<HomeOutcome>),
    /// It was answered, and there was no room to keep the answer.
    Dropped,
}

/// A request that a session executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Running {
    pub(super) origin: CoreName,
    pub(super) boot: u32,
    pub(super) number: u64,
    pub(super) keyspace: KeyspaceId,
}

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Taken {
    /// By a session of this name.
    Execute(SessionId),
    Answer(HomeOutcome),
    TooMany,
    Ignore,
}

/// Sessions of other datacenters are told apart from connections by this.
const FIRST_SESSION: u64 = 1 << 63;

impl HomeServing {
    /// A core of another datacenter has a link, and runs under this number.
    pub(super) fn on_ready(&mut self, origin: CoreName, boot: u32) {
        let known = self.origins.entry(origin).or_default();
        if known.boot != boot {
            let forgotten = std::mem::replace(known, Origin { boot, ..Origin::default() });
            self.kept_bytes -= forgotten.requests.values().map(Known::bytes).sum::<usize>();
        }
    }

    /// A request has come, perhaps again.
    pub(super) fn on_request(&mut self, own_boot: u32, origin: CoreName, request: &HomeRequest) -> Taken {
        let Some(known) = self.origins.get_mut(&origin).filter(|known| known.boot == request.boot) else {
            return Taken::Ignore;
        };
        self.kept_bytes -= known.forget_below(request.below);
        if Rule::ExecuteHomeRequestsOnce.holds() {
            if request.home_boot != own_boot {
                return Taken::Answer(HomeOutcome::Forgotten);
            }
            if !known.takes(request.number) {
                return Taken::Ignore;
            }
            match known.requests.get(&request.number) {
                None => {}
                Some(Known::Running) => return Taken::Ignore,
                Some(Known::Answered(outcome)) => return Taken::Answer(outcome.as_ref().clone()),
                Some(Known::Dropped) => return Taken::Answer(HomeOutcome::Forgotten),
            }
        }
        if known.running >= limits::HOME_REQUESTS_MAX {
            return Taken::TooMany;
        }
        known.running += 1;
        if let Some(before) = known.requests.insert(request.number, Known::Running) {
            self.kept_bytes -= before.bytes();
        }
        let session = SessionId(FIRST_SESSION | self.sessions);
        self.sessions += 1;
        let HomeRequest { boot, number, keyspace, .. } = *request;
        self.running.insert(session, Running { origin, boot, number, keyspace });
        Taken::Execute(session)
    }

    /// Which request a session executes.
    pub(super) fn running(&self, session: SessionId) -> Option<Running> {
        self.running.get(&session).copied()
    }

    /// A session has executed its request.
    pub(super) fn on_executed(&mut self, session: SessionId, outcome: &HomeOutcome) {
        let Some(Running { origin, boot, number, .. }) = self.running.remove(&session) else { return };
        let Some(known) = self.origins.get_mut(&origin).filter(|known| known.boot == boot) else { return };
        known.running -= 1;
        if number < known.below {
            return;
        }
        let answered = Known::Answered(Box::new(outcome.clone()));
        let fits = self.kept_bytes + answered.bytes() <= limits::HOME_ANSWER_BYTES_MAX;
        let kept = if fits { answered } else { Known::Dropped };
        self.kept_bytes += kept.bytes();
        if let Some(before) = known.requests.insert(number, kept) {
            self.kept_bytes -= before.bytes();
        }
    }

    /// Panics if a request could be executed twice, or more than its origin may ask for.
    pub(super) fn check_invariants(&self) {
        let kept = self.origins.values().flat_map(|origin| origin.requests.values());
        assert_eq!(kept.map(Known::bytes).sum::<usize>(), self.kept_bytes, "kept answers are counted wrong");
        for (name, origin) in &self.origins {
            let is_of = |running: &&Running| running.origin == *name && running.boot == origin.boot;
            let running = || self.running.values().filter(is_of);
            assert_eq!(running().count(), origin.running, "what {name:?} has running is counted wrong");
            let is_known = |running: &Running| {
                running.number < origin.below
                    || matches!(origin.requests.get(&running.number), Some(Known::Running))
            };
            assert!(running().all(is_known), "a request of {name:?} is executed, and would be once more");
        }
    }

    /// How many are being executed, and how many bytes of answers are kept.
    pub(super) fn figures(&self) -> (usize, usize) {
        (self.running.len(), self.kept_bytes)
    }
}

impl Origin {
    /// The answers below this number have arrived. How many bytes of them were kept.
    fn forget_below(&mut self, below: u64) -> usize {
        self.below = self.below.max(below);
        let rest = self.requests.split_off(&self.below);
        let forgotten = std::mem::replace(&mut self.requests, rest);
        forgotten.values().map(Known::bytes).sum()
    }

    /// Whether a number is one that its origin may still ask with.
    fn takes(&self, number: u64) -> bool {
        number >= self.below && number - self.below < limits::HOME_REQUEST_NUMBERS_MAX
    }
}

impl Known {
    /// What it takes beside its place in the table.
    fn bytes(&self) -> usize {
        match self {
            Known::Running | Known::Dropped => 0,
            Known::Answered(outcome) => match outcome.as_ref() {
                HomeOutcome::Executed { context, reply } => {
                    context.causes.encoded_bytes() + reply.encoded_bytes()
                }
                HomeOutcome::Refused { reply } => reply.encoded_bytes(),
                HomeOutcome::Forgotten => 0,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use ensue_types::{Context, CoreId, DatacenterId, Reply};

    const ORIGIN: CoreName = CoreName { datacenter: DatacenterId(1), core: CoreId(0) };

    fn request(number: u64, below: u64) -> HomeRequest {
        HomeRequest {
            boot: 9,
            number,
            home_boot: 3,
            below,
            keyspace: KeyspaceId(0),
            context: Context::default(),
            transaction: false,
            commands: Vec::new(),
        }
    }

    fn execute(serving: &mut HomeServing, number: u64, bytes: usize) {
        let Taken::Execute(session) = serving.on_request(3, ORIGIN, &request(number, 0)) else {
            panic!("it is new")
        };
        let reply = Reply::Bulk(Bytes::from(vec![0; bytes]));
        serving.on_executed(session, &HomeOutcome::Executed { context: Context::default(), reply });
    }

    #[test]
    fn an_answer_that_is_not_kept_is_not_known_and_not_executed_again() {
        let mut serving = HomeServing::default();
        serving.on_ready(ORIGIN, 9);
        execute(&mut serving, 1, limits::HOME_ANSWER_BYTES_MAX / 2);
        execute(&mut serving, 2, limits::HOME_ANSWER_BYTES_MAX);
        let again = |serving: &mut HomeServing, number| serving.on_request(3, ORIGIN, &request(number, 0));
        assert!(matches!(again(&mut serving, 1), Taken::Answer(HomeOutcome::Executed { .. })));
        assert_eq!(again(&mut serving, 2), Taken::Answer(HomeOutcome::Forgotten));
        // The next one says that both have arrived.
        assert!(matches!(serving.on_request(3, ORIGIN, &request(3, 3)), Taken::Execute(_)));
        assert_eq!(serving.figures(), (1, 0));
        assert_eq!(again(&mut serving, 1), Taken::Ignore);
    }

    #[test]
    fn a_home_executes_no_more_at_once_than_it_may_and_takes_no_number_from_far_away() {
        let mut serving = HomeServing::default();
        serving.on_ready(ORIGIN, 9);
        for number in 0..limits::HOME_REQUESTS_MAX as u64 {
            assert!(matches!(serving.on_request(3, ORIGIN, &request(number, 0)), Taken::Execute(_)));
        }
        let next = limits::HOME_REQUESTS_MAX as u64;
        assert_eq!(serving.on_request(3, ORIGIN, &request(next, 0)), Taken::TooMany);
        let far = limits::HOME_REQUEST_NUMBERS_MAX;
        assert_eq!(serving.on_request(3, ORIGIN, &request(far, 0)), Taken::Ignore);
        serving.on_ready(ORIGIN, 10);
        assert_eq!(
            serving.on_request(3, ORIGIN, &request(next, 0)),
            Taken::Ignore,
            "of a process that is gone"
        );
    }
}
