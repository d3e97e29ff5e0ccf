//! The clocks of simulated machines: they differ, they drift, and now and then they jump either way.

/// 2026-01-01 in milliseconds since 1970: where the world's true time begins.
pub const EPOCH_MS: u64 = 1_767_225_600_000;

/// One machine's wall clock, as a function of the world's true time.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    pub offset_ms: i64,
    pub drift_ppm: i64,
}

impl Clock {
    /// What the machine believes.
    pub fn wall_ms(&self, now_us: u64) -> u64 {
        let true_us = now_us as i64;
        let drifted_ms = (true_us + true_us / 1_000_000 * self.drift_ppm) / 1_000;
        EPOCH_MS.saturating_add_signed(drifted_ms + self.offset_ms)
    }

    /// A jump, kept within the bound around true time.
    pub fn jump(&mut self, by_ms: i64, bound_ms: i64) {
        self.offset_ms = (self.offset_ms + by_ms).clamp(-bound_ms, bound_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::{Clock, EPOCH_MS};

    #[test]
    fn skew_drift_and_jumps() {
        let mut clock = Clock { offset_ms: -200, drift_ppm: 100 };
        assert_eq!(clock.wall_ms(0), EPOCH_MS - 200);
        assert_eq!(clock.wall_ms(100_000_000), EPOCH_MS + 100_000 + 10 - 200);
        clock.jump(10_000, 500);
        assert_eq!(clock.wall_ms(0), EPOCH_MS + 500);
        clock.jump(-50, 500);
        assert_eq!(clock.wall_ms(0), EPOCH_MS + 450);
    }
}
