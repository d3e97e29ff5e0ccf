//! Requests of other datacenters to this core, at the home of their keys: each is executed once.
//!
//! - On a new request: a session of its own executes it.
//! - On a request that is being executed: nothing; its answer will be sent.
//! - On a request that was answered: the same answer, until its origin acknowledges it.
//! - On a request that was first sent to an earlier incarnation of this process: it is unknown whether that incarnation
//!   executed it, and the answer says so.
//! - On one that its origin has abandoned: it stops waiting. What it has popped is put back (decision 51).
//! - On a broken link: what waits for that origin stops waiting, and may be asked again under another number. What was
//!   popped is kept as its answer.
//! - On a new incarnation of the origin's process: the requests of the earlier one are dropped; no one repeats them.

use ensue_types::{Context, KeyspaceId, Reply, Rule, SessionId, limits};
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
    /// By a session of this name.
    Running(SessionId),
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
    /// It may wait.
    waits: bool,
    /// Its origin does not hear its answer now, or does not want it any more.
    ending: Option<Ending>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Undelivered,
    Abandoned,
}

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Taken {
    /// By a session of this name.
    Execute(SessionId),
    Answer(HomeOutcome),
    /// This session shall stop waiting, and put back what it pops.
    End(SessionId),
    /// A session of this name puts back what was popped, which was answered so, with this past.
    PutBack(SessionId, Context, Reply),
    TooMany,
    Ignore,
}

/// Sessions of other datacenters are told apart from connections by this.
const FIRST_SESSION: u64 = 1 << 63;

impl HomeServing {
    /// A core of another datacenter has a link, and runs under this number. Which sessions wait for an earlier run.
    pub(super) fn on_ready(&mut self, origin: CoreName, boot: u32) -> Vec<SessionId> {
        let known = self.origins.entry(origin).or_default();
        if known.boot == boot {
            return Vec::new();
        }
        let forgotten = std::mem::replace(known, Origin { boot, ..Origin::default() });
        self.kept_bytes -= forgotten.requests.values().map(Known::bytes).sum::<usize>();
        self.end_waits_of(origin, |running| running.boot != boot)
    }

    /// A core of another datacenter hears nothing any more. Which sessions wait for it.
    pub(super) fn on_link_down(&mut self, origin: CoreName) -> Vec<SessionId> {
        match Rule::WaitAtHomeOnlyWhileHeard.holds() {
            true => self.end_waits_of(origin, |_| true),
            false => Vec::new(),
        }
    }

    fn end_waits_of(&mut self, origin: CoreName, which: impl Fn(&Running) -> bool) -> Vec<SessionId> {
        let is_meant = |running: &Running| running.origin == origin && running.waits && which(running);
        let meant = self.running.iter_mut().filter(|(_, running)| is_meant(running));
        let ended = meant.map(|(session, running)| {
            running.ending.get_or_insert(Ending::Undelivered);
            *session
        });
        ended.collect()
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
            if request.abandoned {
                return self.on_abandoned(origin, request.number);
            }
            match known.requests.get(&request.number) {
                None => {}
                Some(Known::Running(_)) => return Taken::Ignore,
                Some(Known::Answered(outcome)) => return Taken::Answer(outcome.as_ref().clone()),
                Some(Known::Dropped) => return Taken::Answer(HomeOutcome::Forgotten),
            }
        }
        if known.running >= limits::HOME_REQUESTS_MAX {
            return Taken::TooMany;
        }
        known.running += 1;
        let session = next_session(&mut self.sessions);
        if let Some(before) = known.requests.insert(request.number, Known::Running(session)) {
            self.kept_bytes -= before.bytes();
        }
        let HomeRequest { boot, number, keyspace, waits_ms, .. } = *request;
        let waits = waits_ms > 0;
        self.running.insert(session, Running { origin, boot, number, keyspace, waits, ending: None });
        Taken::Execute(session)
    }

    /// Nobody wants the answer to this request any more.
    fn on_abandoned(&mut self, origin: CoreName, number: u64) -> Taken {
        let Some(known) = self.origins.get_mut(&origin) else { return Taken::Ignore };
        if let Some(&Known::Running(session)) = known.requests.get(&number) {
            let Some(running) = self.running.get_mut(&session) else { return Taken::Ignore };
            running.ending = Some(Ending::Abandoned);
            return Taken::End(session);
        }
        let before = known.requests.insert(number, Known::Answered(Box::new(HomeOutcome::Withdrawn)));
        self.kept_bytes -= before.as_ref().map_or(0, Known::bytes);
        match before {
            Some(Known::Answered(outcome)) => match *outcome {
                HomeOutcome::Executed { context, reply } if Rule::PutBackWhatNobodyHears.holds() => {
                    Taken::PutBack(next_session(&mut self.sessions), context, reply)
                }
                _ => Taken::Answer(HomeOutcome::Withdrawn),
            },
            _ => Taken::Answer(HomeOutcome::Withdrawn),
        }
    }

    /// Which request a session executes.
    pub(super) fn running(&self, session: SessionId) -> Option<Running> {
        self.running.get(&session).copied()
    }

    /// A session has executed its request: its answer.
    pub(super) fn on_executed(&mut self, session: SessionId, outcome: HomeOutcome) -> HomeOutcome {
        let Some(Running { origin, boot, number, ending, .. }) = self.running.remove(&session) else {
            return outcome;
        };
        let has_nothing =
            matches!(outcome, HomeOutcome::Executed { reply: Reply::Nil | Reply::NilArray, .. });
        let outcome = match ending {
            Some(Ending::Abandoned) => HomeOutcome::Withdrawn,
            Some(Ending::Undelivered) if has_nothing => HomeOutcome::Withdrawn,
            _ => outcome,
        };
        let Some(known) = self.origins.get_mut(&origin).filter(|known| known.boot == boot) else {
            return outcome;
        };
        known.running -= 1;
        if number < known.below {
            return outcome;
        }
        let answered = Known::Answered(Box::new(outcome.clone()));
        let fits = self.kept_bytes + answered.bytes() <= limits::HOME_ANSWER_BYTES_MAX;
        let kept = if fits { answered } else { Known::Dropped };
        self.kept_bytes += kept.bytes();
        if let Some(before) = known.requests.insert(number, kept) {
            self.kept_bytes -= before.bytes();
        }
        outcome
    }

    /// Panics if a request could be executed twice, or more than its origin may ask for.
    pub(super) fn check_invariants(&self) {
        let kept = self.origins.values().flat_map(|origin| origin.requests.values());
        assert_eq!(kept.map(Known::bytes).sum::<usize>(), self.kept_bytes, "kept answers are counted wrong");
        for (name, origin) in &self.origins {
            let is_of = |running: &&Running| running.origin == *name && running.boot == origin.boot;
            let running = || self.running.iter().filter(|(_, running)| is_of(running));
            assert_eq!(running().count(), origin.running, "what {name:?} has running is counted wrong");
            let is_known = |(session, running): (&SessionId, &Running)| {
                let known = origin.requests.get(&running.number);
                running.number < origin.below || matches!(known, Some(Known::Running(by)) if by == session)
            };
            assert!(running().all(is_known), "a request of {name:?} is executed, and would be once more");
        }
    }

    /// How many are being executed, and how many bytes of answers are kept.
    pub(super) fn figures(&self) -> (usize, usize) {
        (self.running.len(), self.kept_bytes)
    }
}

fn next_session(sessions: &mut u64) -> SessionId {
    *sessions += 1;
    SessionId(FIRST_SESSION | (*sessions - 1))
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
            Known::Running(_) | Known::Dropped => 0,
            Known::Answered(outcome) => match outcome.as_ref() {
                HomeOutcome::Executed { context, reply } => {
                    context.causes.encoded_bytes() + reply.encoded_bytes()
                }
                HomeOutcome::Refused { reply } => reply.encoded_bytes(),
                HomeOutcome::Forgotten | HomeOutcome::Withdrawn => 0,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use ensue_types::{CoreId, DatacenterId};

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
            waits_ms: 0,
            abandoned: false,
            commands: Vec::new(),
        }
    }

    fn execute(serving: &mut HomeServing, number: u64, bytes: usize) {
        let Taken::Execute(session) = serving.on_request(3, ORIGIN, &request(number, 0)) else {
            panic!("it is new")
        };
        let reply = Reply::Bulk(Bytes::from(vec![0; bytes]));
        serving.on_executed(session, HomeOutcome::Executed { context: Context::default(), reply });
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
    fn what_is_abandoned_ends_the_session_that_executes_it_and_no_other() {
        let mut serving = HomeServing::default();
        let other = CoreName { core: CoreId(1), ..ORIGIN };
        let ask = |serving: &mut HomeServing, origin, number, abandoned| {
            serving.on_ready(origin, 9);
            serving.on_request(3, origin, &HomeRequest { waits_ms: 1, abandoned, ..request(number, 0) })
        };
        let Taken::Execute(one) = ask(&mut serving, ORIGIN, 5, false) else { panic!() };
        let Taken::Execute(two) = ask(&mut serving, other, 5, false) else { panic!() };
        let Taken::Execute(three) = ask(&mut serving, ORIGIN, 6, false) else { panic!() };
        serving.check_invariants();
        assert_eq!(ask(&mut serving, other, 5, true), Taken::End(two));
        assert_eq!(ask(&mut serving, ORIGIN, 6, true), Taken::End(three));
        let empty = HomeOutcome::Executed { context: Context::default(), reply: Reply::Integer(1) };
        for (session, outcome) in [(one, empty.clone()), (two, HomeOutcome::Withdrawn)] {
            assert_eq!(serving.on_executed(session, empty.clone()), outcome);
        }
        serving.check_invariants();
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
