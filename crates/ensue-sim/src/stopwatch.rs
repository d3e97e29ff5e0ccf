//! Processor time that the calls of nodes take. The clock is given from outside: a world reads none.

/// Adds up the time of calls.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    clock: fn() -> u64,
    /// What reading the clock takes, which is not the call's.
    reading_ns: u64,
    spent_ns: u64,
}

impl Stopwatch {
    /// A stopwatch that reads this clock, in nanoseconds, which itself takes so long.
    pub fn new(clock: fn() -> u64, reading_ns: u64) -> Stopwatch {
        Stopwatch { clock, reading_ns, spent_ns: 0 }
    }

    pub fn time(&mut self, call: impl FnOnce()) {
        let before = (self.clock)();
        call();
        self.spent_ns += (self.clock)().saturating_sub(before + self.reading_ns);
    }

    pub fn spent_ns(&self) -> u64 {
        self.spent_ns
    }
}
