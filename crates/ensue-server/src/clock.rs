//! The machine's clocks, read for the nodes, which read none.
//!
//! One `Clock` a process, copied to every core, so that all their monotonic readings count from the same moment. It
//! promises nothing about the wall clock, which may jump.

use ensue_types::Now;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Where the monotonic readings begin.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    pub fn starting_now() -> Clock {
        Clock { start: Instant::now() }
    }

    /// Both clocks at this moment.
    pub fn now(&self) -> Now {
        Now { monotonic_us: self.monotonic_us(), wall_ms: wall_ms() }
    }

    pub fn monotonic_us(&self) -> u64 {
        duration_us(self.start.elapsed())
    }
}

/// Milliseconds since 1970; zero if the machine believes in an earlier time.
pub fn wall_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn duration_us(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
