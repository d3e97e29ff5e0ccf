//! One thread that drives clients for a window of time, and counts.
//!
//! Latency begins when an operation was to begin: in a closed loop that is when there was room for it, in an open loop
//! when it arrived, whether or not its connection could take it. So what waits behind a stalled server is counted with
//! its wait. What was to begin in the counted time is waited for after its end, and what is then unanswered is a
//! failure.

use crate::answer::Failure;
use crate::error::LoadError;
use crate::pace::{Pace, Schedule};
use crate::random::Random;
use crate::request::{Composer, KeyCount};
use crate::session::{Ended, Session, Task};
use crate::tally::{Interval, Sample, record};
use mio::{Events, Interest, Poll, Token};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// Arrivals of one thread that wait for their connections; more are counted as not sent.
const DUE_MAX: usize = 1 << 20;
const READ_BYTES: usize = 64 << 10;
const EVENTS_MAX: usize = 256;
/// Shorter waits are not left to the operating system, whose queue of events counts in milliseconds.
const SLEEP_MIN: Duration = Duration::from_millis(1);

/// What all threads of a side share.
#[derive(Clone, Debug)]
pub struct Common {
    pub composer: Arc<Composer>,
    pub keys: Arc<KeyCount>,
    /// What time is counted from.
    pub base: Instant,
    pub pipeline: usize,
    /// Servers that the clients are connected to.
    pub sites: usize,
}

/// Numbers that are given out once, to all threads.
#[derive(Debug)]
pub struct Budget(AtomicU64);

impl Budget {
    pub fn new(count: u64) -> Budget {
        Budget(AtomicU64::new(count))
    }

    /// How many were left; nothing if none.
    fn take(&self) -> Option<u64> {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).ok()
    }
}

/// What is to be done in a window.
#[derive(Clone, Debug)]
pub enum Work {
    /// The mix, for as long as the window lasts.
    Mix,
    /// The mix, so many operations in the counted time.
    Count(Arc<Budget>),
    /// Every key once.
    Fill(Arc<Budget>),
}

/// From when to when operations begin, and which of them count. In nanoseconds since the base.
#[derive(Clone, Debug)]
pub struct Window {
    pub begin_ns: u64,
    pub counted_ns: u64,
    pub end_ns: u64,
    /// How long answers are waited for after the end.
    pub drain_ns: u64,
    pub work: Work,
    pub pace: Pace,
    /// How many windows there were before: an open loop has other arrivals in each.
    pub number: u64,
    /// The length of what is reported while it goes on.
    pub interval_ns: u64,
}

pub struct Worker {
    common: Common,
    /// This thread's share of the rate.
    share: f64,
    poll: Poll,
    events: Events,
    sessions: Vec<Session>,
    scratch: Vec<u8>,
    seed: u64,
}

impl Worker {
    pub fn new(
        common: Common,
        share: f64,
        seed: u64,
        mut sessions: Vec<Session>,
    ) -> Result<Worker, LoadError> {
        let poll = Poll::new().map_err(LoadError::Poll)?;
        let (count, interest) = (sessions.len(), Interest::READABLE | Interest::WRITABLE);
        for (token, session) in sessions.iter_mut().enumerate() {
            poll.registry().register(session.stream(), Token(token), interest).map_err(LoadError::Poll)?;
            // Behind the tokens of all first connections.
            if let Some(stream) = session.popping_stream() {
                poll.registry().register(stream, Token(count + token), interest).map_err(LoadError::Poll)?;
            }
        }
        let (events, scratch) = (Events::with_capacity(EVENTS_MAX), vec![0; READ_BYTES]);
        Ok(Worker { common, share, poll, events, sessions, scratch, seed })
    }

    /// Runs to the end of the window and until everything is answered.
    pub fn run(&mut self, window: &Window, progress: &Sender<Interval>) -> Result<Sample, LoadError> {
        let cells = self.common.sites * self.common.composer.workload().operations().len();
        let schedule = match window.pace {
            Pace::Closed => None,
            Pace::Open { rate, arrivals } => {
                let mut random = Random::new(self.seed ^ window.number.rotate_left(32));
                let random = Random::new(random.next_u64());
                Some(Schedule::new(rate * self.share, arrivals, window.begin_ns, random))
            }
        };
        let turns = Turns {
            worker: self,
            window,
            progress,
            schedule,
            sample: Sample::new(cells),
            interval: Interval::new(0),
            ended: Vec::new(),
            next_session: 0,
            waiting: 0,
            is_spent: false,
        };
        turns.run()
    }
}

/// One run of a worker through one window.
struct Turns<'a> {
    worker: &'a mut Worker,
    window: &'a Window,
    progress: &'a Sender<Interval>,
    schedule: Option<Schedule>,
    sample: Sample,
    interval: Interval,
    ended: Vec<Ended>,
    next_session: usize,
    /// Arrivals that have not begun, of all sessions.
    waiting: usize,
    /// The budget is used up.
    is_spent: bool,
}

impl Turns<'_> {
    fn run(mut self) -> Result<Sample, LoadError> {
        let (end_ns, drained_ns) =
            (self.window.end_ns, self.window.end_ns.saturating_add(self.window.drain_ns));
        loop {
            let now_ns = self.now_ns();
            self.report(now_ns);
            self.arrive(now_ns);
            for place in 0..self.worker.sessions.len() {
                self.serve(place, now_ns);
            }
            let is_over = now_ns >= end_ns || self.is_spent;
            let idle =
                self.waiting == 0 && self.worker.sessions.iter().all(|session| session.under_way() == 0);
            let all_lost = self.worker.sessions.iter().all(Session::is_lost);
            if (is_over && idle) || now_ns >= drained_ns || (all_lost && self.schedule.is_none()) {
                break;
            }
            self.wait(now_ns)?;
        }
        self.give_up();
        let last = std::mem::replace(&mut self.interval, Interval::new(0));
        // Nobody may be listening any more.
        let _ = self.progress.send(last);
        Ok(self.sample)
    }

    fn now_ns(&self) -> u64 {
        self.worker.common.base.elapsed().as_nanos() as u64
    }

    /// Deals what is due to the clients in turn.
    fn arrive(&mut self, now_ns: u64) {
        let Some(schedule) = &mut self.schedule else { return };
        while !self.is_spent && schedule.next_ns() <= now_ns && schedule.next_ns() < self.window.end_ns {
            let intended_ns = schedule.next_ns();
            let counts = intended_ns >= self.window.counted_ns;
            if counts && !afford(&self.window.work) {
                self.is_spent = true;
                return;
            }
            schedule.take();
            if counts {
                record(&mut self.sample.lag, now_ns - intended_ns);
            }
            let next = (self.next_session + 1) % self.worker.sessions.len();
            let session = &mut self.worker.sessions[std::mem::replace(&mut self.next_session, next)];
            if session.is_lost() || self.waiting >= DUE_MAX {
                let count = u64::from(counts);
                self.interval.failed += count;
                self.sample.failures.add(Failure::NotSent, count, "");
            } else {
                session.due.push_back(intended_ns);
                self.waiting += 1;
            }
        }
    }

    /// Begins what a client has room for, writes, and counts what has ended.
    fn serve(&mut self, place: usize, now_ns: u64) {
        self.begin(place, now_ns);
        let session = &mut self.worker.sessions[place];
        session.flush(&mut self.ended);
        if !self.ended.is_empty() {
            self.count(place);
        }
        let session = &mut self.worker.sessions[place];
        if session.is_lost() && !session.due.is_empty() {
            let counted_ns = self.window.counted_ns;
            let counts = session.due.iter().filter(|intended_ns| **intended_ns >= counted_ns).count() as u64;
            self.waiting -= session.due.len();
            session.due.clear();
            self.interval.failed += counts;
            self.sample.failures.add(Failure::NotSent, counts, "");
        }
    }

    fn begin(&mut self, place: usize, now_ns: u64) {
        let Turns { worker, window, schedule, .. } = self;
        let Worker { common, sessions, .. } = &mut **worker;
        let session = &mut sessions[place];
        while !session.is_lost() && session.under_way() < common.pipeline {
            let intended_ns = if schedule.is_some() {
                let Some(intended_ns) = session.due.pop_front() else { return };
                self.waiting -= 1;
                intended_ns
            } else if now_ns >= window.end_ns || self.is_spent {
                return;
            } else {
                now_ns
            };
            let task = match &window.work {
                Work::Fill(budget) => budget.take().map(|left| Task::Fill { key: left - 1 }),
                // An open loop has paid when the operation arrived.
                Work::Count(budget) if schedule.is_none() && now_ns >= window.counted_ns => {
                    budget.take().map(|_| draw(common, session))
                }
                Work::Count(_) | Work::Mix => Some(draw(common, session)),
            };
            let Some(task) = task else {
                self.is_spent = true;
                return;
            };
            session.begin(task, intended_ns, &common.composer, &common.keys);
        }
    }

    /// Waits for answers, until the next arrival or the end.
    fn wait(&mut self, now_ns: u64) -> Result<(), LoadError> {
        let after_end = self.window.end_ns.saturating_add(self.window.drain_ns);
        let mut until_ns = if now_ns < self.window.end_ns { self.window.end_ns } else { after_end };
        until_ns = until_ns.min(now_ns + self.window.interval_ns);
        if let Some(schedule) = self.schedule.as_ref().filter(|_| !self.is_spent) {
            // At the end nothing arrives any more.
            if schedule.next_ns() < self.window.end_ns {
                until_ns = until_ns.min(schedule.next_ns());
            }
        }
        let remaining = Duration::from_nanos(until_ns.saturating_sub(now_ns));
        let timeout = if remaining < SLEEP_MIN {
            Duration::ZERO
        } else {
            // The queue rounds up: it would wake too late by up to a millisecond.
            Duration::from_millis(remaining.as_millis() as u64 - 1)
        };
        let Worker { poll, events, .. } = &mut *self.worker;
        match poll.poll(events, Some(timeout)) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(LoadError::Poll(error)),
        }
        if events.is_empty() && timeout.is_zero() {
            // Somebody else may need this core meanwhile, such as the server.
            std::thread::yield_now();
        }
        let ready: Vec<usize> =
            events.iter().filter(|event| event.is_readable()).map(|event| event.token().0).collect();
        for token in ready {
            let Worker { common, sessions, scratch, .. } = &mut *self.worker;
            let place = token % sessions.len();
            if token == place {
                sessions[place].receive(scratch, &common.composer, &common.keys, &mut self.ended);
            } else {
                sessions[place].receive_popped(scratch, &mut self.ended);
            }
            self.count(place);
        }
        Ok(())
    }

    /// Counts what has ended on this session by now.
    fn count(&mut self, place: usize) {
        let now_ns = self.now_ns();
        let site = self.worker.sessions[place].site;
        let operations = self.worker.common.composer.workload().operations().len();
        let is_bounded = matches!(self.window.work, Work::Count(_));
        self.sample.ended += self.ended.len() as u64;
        for ended in self.ended.drain(..) {
            let counts = ended.intended_ns >= self.window.counted_ns;
            if let Some((failure, text)) = ended.failure {
                // In the warm-up too: a connection that broke there is missing in all that follows.
                self.interval.failed += 1;
                self.sample.failures.add(failure, 1, &text);
                continue;
            }
            let operation_place = match ended.task {
                Task::Operate { place, .. } => place,
                Task::Fill { .. } => 0,
            };
            let cell = &mut self.sample.cells[site * operations + operation_place];
            let latency_ns = now_ns.saturating_sub(ended.intended_ns);
            if counts {
                record(&mut cell.latency, latency_ns);
                cell.misses += u64::from(ended.missed);
                record(&mut self.interval.latency, latency_ns);
                self.sample.last_ns = self.sample.last_ns.max(now_ns);
            }
            // A run of so many operations counts those; a run of so much time, what ended in it.
            let in_time = now_ns >= self.window.counted_ns && now_ns < self.window.end_ns;
            if if is_bounded { counts } else { in_time } {
                cell.completed += 1;
                self.interval.completed += 1;
            }
        }
    }

    /// What is not answered now never was.
    fn give_up(&mut self) {
        for place in 0..self.worker.sessions.len() {
            let session = &mut self.worker.sessions[place];
            let late = session.due.drain(..).filter(|due| *due >= self.window.counted_ns).count() as u64;
            self.sample.failures.add(Failure::NotSent, late, "");
            self.interval.failed += late;
            if session.under_way() > 0 {
                session.lose(Failure::Unanswered, "", &mut self.ended);
                self.count(place);
            }
        }
    }

    fn report(&mut self, now_ns: u64) {
        let counted_ns = now_ns.min(self.window.end_ns - 1).saturating_sub(self.window.counted_ns);
        let number = counted_ns / self.window.interval_ns;
        if number > self.interval.number {
            let done = std::mem::replace(&mut self.interval, Interval::new(number));
            let _ = self.progress.send(done);
        }
    }
}

fn draw(common: &Common, session: &mut Session) -> Task {
    let mix = &common.composer.workload().mix;
    let place = mix.draw_place(&mut session.random);
    Task::Operate { place, operation: mix.values()[place] }
}

/// Whether one more operation may arrive.
fn afford(work: &Work) -> bool {
    match work {
        Work::Count(budget) => budget.take().is_some(),
        Work::Mix | Work::Fill(_) => true,
    }
}
