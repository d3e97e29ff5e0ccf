//! The hybrid logical clock, as a pure function of (itself, the wall clock, what it has seen).
//!
//! It promises: never backwards, above everything observed, close to the wall clock. It does not read a clock.

use std::fmt;

/// A reading of the machine's clocks, handed in with every input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now {
    /// Microseconds since some moment before the start; never goes back. For timers.
    pub monotonic_us: u64,
    /// Milliseconds since 1970, as the machine believes; may jump either way.
    pub wall_ms: u64,
}

/// Logical time: 48 bits of milliseconds since 1970 and 16 bits of counter that carry over into them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogicalTime(pub u64);

impl LogicalTime {
    pub const ZERO: LogicalTime = LogicalTime(0);
    pub const MAX: LogicalTime = LogicalTime(u64::MAX);

    /// The first logical time of a millisecond.
    pub fn from_ms(ms: u64) -> LogicalTime {
        LogicalTime(ms.min((1 << 48) - 1) << 16)
    }

    /// The physical part, in milliseconds since 1970.
    pub fn ms(self) -> u64 {
        self.0 >> 16
    }

    /// The next logical time.
    pub fn next(self) -> LogicalTime {
        LogicalTime(self.0.saturating_add(1))
    }

    /// The latest time before this one.
    pub fn previous(self) -> LogicalTime {
        LogicalTime(self.0.saturating_sub(1))
    }
}

impl fmt::Display for LogicalTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.ms(), self.0 & 0xffff)
    }
}

/// A clock that counts like Lamport's and stays near the wall clock (Kulkarni et al., "Logical Physical Clocks").
#[derive(Clone, Copy, Debug, Default)]
pub struct HybridClock {
    latest: LogicalTime,
}

impl HybridClock {
    /// A clock that will never show a time at or below `floor` as new.
    pub fn starting_at(floor: LogicalTime) -> HybridClock {
        HybridClock { latest: floor }
    }

    /// The latest time shown or observed.
    pub fn latest(&self) -> LogicalTime {
        self.latest
    }

    /// The present time, without drawing a new one: what a read promises as its latest valid time.
    pub fn read(&mut self, now: Now) -> LogicalTime {
        self.latest = self.latest.max(LogicalTime::from_ms(now.wall_ms));
        self.latest
    }

    /// A time strictly above every time shown or observed so far.
    pub fn tick(&mut self, now: Now) -> LogicalTime {
        self.latest = self.latest.next().max(LogicalTime::from_ms(now.wall_ms));
        self.latest
    }

    /// Moves past a time that a message carried.
    pub fn observe(&mut self, seen: LogicalTime) {
        self.latest = self.latest.max(seen);
    }
}
