//! Where the cores of a node stop until all of them have, for a bounded time, and then for as long as they are held.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// All who arrive are kept until everybody has arrived, or until it has taken too long, which is so for all of them.
#[derive(Debug)]
pub(crate) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
    expected: usize,
    until: Instant,
    /// How long all stand still once they do.
    hold: Duration,
}

#[derive(Debug, Default)]
struct State {
    arrived: usize,
    /// When all had arrived, or nothing if it took too long, once that is known. It is said once.
    verdict: Option<Option<Instant>>,
}

impl Gate {
    /// For so many, who have so long.
    pub(crate) fn new(expected: usize, patience: Duration) -> Gate {
        let until = Instant::now() + patience;
        Gate { state: Mutex::default(), changed: Condvar::new(), expected, until, hold: Duration::ZERO }
    }

    /// The same, which keeps them for so long after all have arrived.
    pub(crate) fn holding(mut self, hold: Duration) -> Gate {
        self.hold = hold;
        self
    }

    /// One of those who are expected has stopped. When this returns all stand still, since the time that is told; or
    /// it has taken too long, and they go on.
    pub(crate) fn arrive(&self) -> Option<Instant> {
        let mut state = self.lock();
        state.arrived += 1;
        if state.arrived == self.expected && state.verdict.is_none() {
            state.verdict = Some(Some(Instant::now()));
            self.changed.notify_all();
        }
        self.wait(state)
    }

    /// One of them has done what it was to do, and stands still for as long as all do.
    pub(crate) fn stay(&self, since: Instant) {
        std::thread::sleep((since + self.hold).saturating_duration_since(Instant::now()));
    }

    /// The same as to arrive, of somebody who is not expected.
    pub(crate) fn wait_for_all(&self) -> Option<Instant> {
        self.wait(self.lock())
    }

    fn wait(&self, mut state: MutexGuard<'_, State>) -> Option<Instant> {
        loop {
            if let Some(verdict) = state.verdict {
                return verdict;
            }
            let left = self.until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                state.verdict = Some(None);
                self.changed.notify_all();
                return None;
            }
            let waited = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
            state = waited.0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn nobody_goes_on_before_all_have_stopped() {
        let gate = Gate::new(3, Duration::from_secs(60));
        let stopped = Mutex::new(0);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    *stopped.lock().unwrap() += 1;
                    assert!(gate.arrive().is_some());
                    assert_eq!(*stopped.lock().unwrap(), 3);
                });
            }
            assert!(gate.wait_for_all().is_some());
        });
    }

    #[test]
    fn it_is_too_late_for_all_or_for_nobody() {
        let gate = Gate::new(2, Duration::from_millis(20));
        assert!(gate.arrive().is_none(), "the other one does not come");
        assert!(gate.arrive().is_none(), "and when it comes, the first one has gone on");
        assert!(gate.wait_for_all().is_none());
    }
    #[test]
    fn all_stand_still_for_as_long_as_they_are_held() {
        let gate = Gate::new(2, Duration::from_secs(60)).holding(Duration::from_millis(20));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let since = gate.arrive().expect("both come");
                    gate.stay(since);
                    assert!(since.elapsed() >= Duration::from_millis(20));
                });
            }
        });
    }
}
