//! How fast keys may be read: no more of them than have come due.

use crate::import::Stop;
use std::thread;
use std::time::{Duration, Instant};

/// Keys that are read at once.
const KEYS: u64 = 500;
/// How long one sleeps before it looks at the rest of the world.
const TICK: Duration = Duration::from_millis(50);

pub(crate) struct Pace {
    began: Instant,
    /// Keys a second.
    rate: Option<u64>,
    done: u64,
}

impl Pace {
    pub(crate) fn new(rate: Option<u64>) -> Pace {
        Pace { began: Instant::now(), rate, done: 0 }
    }

    /// How many keys are read at once: no more than in a second.
    pub(crate) fn batch(&self) -> usize {
        self.rate.map_or(KEYS, |rate| rate.clamp(1, KEYS)) as usize
    }

    /// Waits until so many more may have been read, or somebody wants an end.
    pub(crate) fn spend(&mut self, keys: usize, stop: &Stop) {
        self.done += keys as u64;
        if let Some(rate) = self.rate {
            pause(self.began + due(self.done, rate), stop);
        }
    }

    pub(crate) fn keys_per_second(&self) -> u64 {
        (self.done as f64 / self.began.elapsed().as_secs_f64().max(0.001)) as u64
    }
}

/// Sleeps until then; false if somebody wants an end before.
pub(crate) fn pause(end: Instant, stop: &Stop) -> bool {
    while !stop.is_asked() {
        let rest = end.saturating_duration_since(Instant::now());
        if rest.is_zero() {
            return true;
        }
        thread::sleep(rest.min(TICK));
    }
    false
}

/// When so many keys may be done, from the begin.
fn due(done: u64, rate: u64) -> Duration {
    Duration::from_secs_f64(done as f64 / rate.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_due_at_the_rate() {
        assert_eq!(due(500, 100), Duration::from_secs(5));
        assert_eq!(due(0, 100), Duration::ZERO);
        assert_eq!(due(7, 0), Duration::from_secs(7));
    }

    #[test]
    fn without_a_rate_nobody_waits() {
        let mut pace = Pace::new(None);
        pace.spend(usize::MAX, &Stop::never());
        assert_eq!(pace.done, usize::MAX as u64);
    }

    #[test]
    fn no_more_keys_are_read_at_once_than_in_a_second() {
        assert_eq!([None, Some(7), Some(9_000)].map(|rate| Pace::new(rate).batch()), [500, 7, 500]);
    }
}
