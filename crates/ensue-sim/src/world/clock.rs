//! The clocks of simulated machines: they differ, they drift, and now and then they jump either way.

/// 2026-01-01 in milliseconds since 1970: where the world's true time begins.
pub const EPOCH_MS: u64 = 1_767_225_600_000;

/// One machine's wall clock, as a function of the world's true time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    /// How far it was from true time when it was last set, in microseconds, and when that was.
    offset_us: i64,
    set_at_us: u64,
    /// Microseconds that it gains a second.
    drift_ppm: i64,
}

impl Clock {
    pub fn new(offset_ms: i64, drift_ppm: i64) -> Clock {
        Clock { offset_us: offset_ms * 1_000, set_at_us: 0, drift_ppm }
    }

    /// What the machine believes.
    pub fn wall_ms(&self, now_us: u64) -> u64 {
        let wall_us = (EPOCH_MS * 1_000 + now_us).saturating_add_signed(self.error_us(now_us));
        wall_us / 1_000
    }

    /// How far it is from true time.
    pub fn error_us(&self, now_us: u64) -> i64 {
        let since_us = now_us.saturating_sub(self.set_at_us) as i64;
        self.offset_us + since_us / 1_000 * self.drift_ppm / 1_000
    }

    /// A jump, kept within the bound around true time.
    pub fn jump(&mut self, now_us: u64, by_ms: i64, bound_ms: i64) {
        let error_us = self.error_us(now_us) + by_ms * 1_000;
        self.offset_us = error_us.clamp(-bound_ms * 1_000, bound_ms * 1_000);
        self.set_at_us = now_us;
    }

    /// From now on it gains so much, beginning within the bound around true time.
    pub fn drift(&mut self, now_us: u64, ppm: i64, bound_ms: i64) {
        self.jump(now_us, 0, bound_ms);
        self.drift_ppm = ppm;
    }
}

#[cfg(test)]
mod tests {
    use super::{Clock, EPOCH_MS};

    #[test]
    fn skew_drift_and_jumps() {
        let mut clock = Clock::new(-200, 100);
        assert_eq!(clock.wall_ms(0), EPOCH_MS - 200);
        assert_eq!(clock.wall_ms(100_000_000), EPOCH_MS + 100_000 + 10 - 200);
        clock.jump(100_000_000, 10_000, 500);
        assert_eq!(clock.wall_ms(100_000_000), EPOCH_MS + 100_000 + 500);
        clock.jump(100_000_000, -50, 500);
        clock.drift(100_000_000, -1_000, 500);
        assert_eq!(clock.wall_ms(100_000_000), EPOCH_MS + 100_000 + 450);
        assert_eq!(clock.wall_ms(110_000_000), EPOCH_MS + 110_000 + 440);
    }
}
