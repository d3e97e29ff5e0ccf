//! Where the cores of a node stop until all of them have, for a bounded time.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// All who arrive are kept until everybody has arrived, or until it has taken too long, which is so for all of them.
#[derive(Debug)]
pub(crate) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
    expected: usize,
    until: Instant,
}

#[derive(Debug, Default)]
struct State {
    arrived: usize,
    /// Whether all have arrived in time, once that is known. It is said once.
    verdict: Option<bool>,
}

impl Gate {
    /// For so many, who have so long.
    pub(crate) fn new(expected: usize, patience: Duration) -> Gate {
        let until = Instant::now() + patience;
        Gate { state: Mutex::default(), changed: Condvar::new(), expected, until }
    }

    /// One of those who are expected has stopped, and goes on when this returns. Whether all stood still at one moment.
    pub(crate) fn arrive(&self) -> bool {
        let mut state = self.lock();
        state.arrived += 1;
        if state.arrived == self.expected && state.verdict.is_none() {
            state.verdict = Some(true);
            self.changed.notify_all();
        }
        self.wait(state)
    }

    /// The same of somebody who is not expected.
    pub(crate) fn wait_for_all(&self) -> bool {
        self.wait(self.lock())
    }

    fn wait(&self, mut state: MutexGuard<'_, State>) -> bool {
        loop {
            if let Some(verdict) = state.verdict {
                return verdict;
            }
            let left = self.until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                state.verdict = Some(false);
                self.changed.notify_all();
                return false;
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
                    assert!(gate.arrive());
                    assert_eq!(*stopped.lock().unwrap(), 3);
                });
            }
            assert!(gate.wait_for_all());
        });
    }

    #[test]
    fn it_is_too_late_for_all_or_for_nobody() {
        let gate = Gate::new(2, Duration::from_millis(20));
        assert!(!gate.arrive(), "the other one does not come");
        assert!(!gate.arrive(), "and when it comes, the first one has gone on");
        assert!(!gate.wait_for_all());
    }
}
