//! How long ago a stream came to each of its places: what turns a place that somebody has into a lag in time.
//!
//! Places of a few milliseconds are one step, and with many steps two neighbours become one, so there are never many.
//! An age is never too small, and too large by a step at the most. Times are of this core's monotonic clock and are
//! not kept over a restart: what was written before it is as old as the restart.

use ensue_types::{Now, Position, limits};
use std::collections::VecDeque;

/// The steps of one stream that somebody does not have yet.
#[derive(Clone, Default)]
pub(in crate::partition) struct Ages {
    /// The last place of a step, and when its first one came. Both rise.
    steps: VecDeque<(Position, u64)>,
    latest: Position,
}

impl Ages {
    /// The stream has come to this place, and everybody who matters has it up to another.
    pub(in crate::partition) fn come(&mut self, now: Now, position: Position, had: Position) {
        if position <= self.latest {
            return;
        }
        self.latest = position;
        while self.steps.front().is_some_and(|(last, _)| *last <= had) {
            self.steps.pop_front();
        }
        match self.steps.back_mut() {
            Some((last, began_us)) if now.monotonic_us.saturating_sub(*began_us) < limits::AGE_STEP_US => {
                *last = position;
            }
            _ => self.steps.push_back((position, now.monotonic_us)),
        }
        if self.steps.len() > limits::AGE_STEPS_MAX {
            let pairs = self.steps.make_contiguous().chunks(2);
            self.steps = pairs.map(|pair| (pair[pair.len() - 1].0, pair[0].1)).collect();
        }
    }

    /// The stream ends here: what it was known to hold behind that was lost before anybody had received it.
    pub(in crate::partition) fn end_at(&mut self, end: Position) {
        self.latest = self.latest.min(end);
        while let Some((last, began_us)) = self.steps.pop_back() {
            let before = self.steps.back().map_or(Position(0), |(last, _)| *last);
            if before < end {
                self.steps.push_back((last.min(end), began_us));
                return;
            }
        }
    }

    /// The last place that the stream has come to.
    pub(in crate::partition) fn latest(&self) -> Position {
        self.latest
    }

    /// How long ago the first entry after this place came, in milliseconds; 0 if there is none.
    pub(in crate::partition) fn age_ms(&self, now: Now, after: Position) -> u64 {
        let first = self.steps.partition_point(|(last, _)| *last <= after);
        let began_us = self.steps.get(first).map_or(now.monotonic_us, |(_, began_us)| *began_us);
        now.monotonic_us.saturating_sub(began_us) / 1_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_ms(ms: u64) -> Now {
        Now { wall_ms: 0, monotonic_us: ms * 1_000 }
    }

    #[test]
    fn the_age_is_that_of_the_first_entry_that_is_lacking() {
        let mut ages = Ages::default();
        for n in 1..=5 {
            ages.come(at_ms(100 * n), Position(n), Position(0));
        }
        let age = |after| ages.age_ms(at_ms(1_000), Position(after));
        assert_eq!([0, 1, 4, 5, 9].map(age), [900, 800, 500, 0, 0]);
    }

    #[test]
    fn what_was_lost_of_a_stream_ages_no_more() {
        let mut ages = Ages::default();
        for n in 1..=5 {
            ages.come(at_ms(100 * n), Position(n), Position(0));
        }
        ages.end_at(Position(3));
        assert_eq!((ages.latest(), ages.age_ms(at_ms(900), Position(3))), (Position(3), 0));
        assert_eq!(ages.age_ms(at_ms(900), Position(2)), 600);
        ages.come(at_ms(800), Position(4), Position(0));
        assert_eq!(ages.age_ms(at_ms(900), Position(3)), 100);
    }

    #[test]
    fn entries_of_one_step_are_as_old_as_its_first() {
        let mut ages = Ages::default();
        ages.come(at_ms(100), Position(1), Position(0));
        ages.come(at_ms(101), Position(2), Position(0));
        ages.come(at_ms(200), Position(3), Position(0));
        assert_eq!(ages.age_ms(at_ms(300), Position(1)), 200);
        assert_eq!(ages.age_ms(at_ms(300), Position(2)), 100);
    }

    #[test]
    fn a_step_lasts_as_long_as_it_may_and_no_longer() {
        let step_ms = limits::AGE_STEP_US / 1_000;
        let mut ages = Ages::default();
        ages.come(at_ms(100), Position(1), Position(0));
        ages.come(at_ms(100 + step_ms), Position(2), Position(0));
        assert_eq!(ages.age_ms(at_ms(200), Position(1)), 100 - step_ms, "another step");
        // Nothing new: what is known already begins no step.
        ages.come(at_ms(150 + step_ms), Position(2), Position(0));
        assert_eq!(ages.steps.len(), 2);
        ages.come(at_ms(300), Position(3), Position(1));
        assert_eq!(ages.steps.len(), 2, "what everybody has is forgotten, and nothing else");
        assert_eq!((ages.latest(), ages.age_ms(at_ms(301), Position(2))), (Position(3), 1));
    }

    #[test]
    fn what_everybody_has_is_forgotten_and_what_is_kept_is_bounded() {
        let mut ages = Ages::default();
        let count = 20 * limits::AGE_STEPS_MAX as u64;
        for n in 1..=count {
            ages.come(at_ms(100 * n), Position(n), Position(0));
            assert!(ages.steps.len() <= limits::AGE_STEPS_MAX);
            // Two neighbours become one when there are too many, and not before.
            assert!(n != limits::AGE_STEPS_MAX as u64 || ages.steps.len() == limits::AGE_STEPS_MAX);
        }
        for after in 0..count {
            let truly_ms = 100 * (count - after - 1);
            assert!(ages.age_ms(at_ms(100 * count), Position(after)) >= truly_ms, "after {after}");
        }
        assert_eq!(ages.age_ms(at_ms(100 * count), Position(0)), 100 * (count - 1));
        ages.come(at_ms(100 * count + 100), Position(count + 1), Position(count));
        assert_eq!(ages.steps.len(), 1);
    }
}
