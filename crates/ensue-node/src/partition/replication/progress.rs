//! Up to where a stream had come when it was at a time: what turns a past in times into a place that can be
//! acknowledged.
//!
//! Entries come in the order of their places, and the stamps of those that are named by times rise: a part of a write
//! transaction may have a lower one, and is named by its operation. Places are kept for the latest times one by one
//! and for older ones ever more coarsely, so there are never many; what is coarse names a later place, which is safe to
//! wait for.

use ensue_types::{LogicalTime, Position, limits};

/// The places of one stream.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    /// Everything with a stamp below the next one's time lies at or before the place. The first one is of time zero.
    steps: Vec<(LogicalTime, Position)>,
}

impl Progress {
    /// Nothing is known of the times of what lies before this.
    pub fn after(before: Position) -> Progress {
        Progress { steps: vec![(LogicalTime::ZERO, before)] }
    }

    /// The stream has come to this place, with an entry of this time.
    pub fn come(&mut self, position: Position, time: LogicalTime) {
        match self.steps.last_mut() {
            // It does not rise: whoever names the later time names this too.
            Some((latest, last)) if *latest >= time => *last = position,
            _ => self.steps.push((time, position)),
        }
        if self.steps.len() > limits::PROGRESS_STEPS_MAX {
            let coarse = self.steps.chunks(2).map(|pair| (pair[0].0, pair[pair.len() - 1].1));
            self.steps = coarse.collect();
        }
    }

    /// Everything up to this time lies at or before this place.
    pub fn through(&self, time: LogicalTime) -> Position {
        let after = self.steps.partition_point(|(began, _)| *began <= time);
        self.steps[after - 1].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(n: u64) -> (Position, LogicalTime) {
        (Position(n), LogicalTime(10 * n))
    }

    #[test]
    fn a_time_names_the_last_place_at_or_before_it() {
        let mut progress = Progress::after(Position(3));
        for n in 4..8 {
            let (position, time) = at(n);
            progress.come(position, time);
        }
        let through = |time| progress.through(LogicalTime(time)).0;
        assert_eq!([0, 39, 40, 49, 50, 70, 1_000].map(through), [3, 3, 4, 4, 5, 7, 7]);
    }

    #[test]
    fn however_much_came_there_is_little_and_none_too_early() {
        let mut progress = Progress::after(Position(0));
        let count = 50 * limits::PROGRESS_STEPS_MAX as u64;
        for n in 1..=count {
            let (position, time) = at(n);
            progress.come(position, time);
            assert!(progress.steps.len() <= limits::PROGRESS_STEPS_MAX);
        }
        for n in 1..=count {
            let (position, time) = at(n);
            assert!(progress.through(time) >= position);
        }
        // The latest are told apart.
        assert_eq!(progress.through(at(count - 1).1), Position(count - 1));
    }

    #[test]
    fn each_time_names_its_place_while_there_is_room() {
        let mut progress = Progress::after(Position(0));
        // One step is that of time zero.
        let count = limits::PROGRESS_STEPS_MAX as u64 - 1;
        for n in 1..=count {
            let (position, time) = at(n);
            progress.come(position, time);
        }
        for n in 1..=count {
            let (position, time) = at(n);
            assert_eq!(progress.through(time), position);
            assert_eq!(progress.through(LogicalTime(time.0 - 1)), Position(n - 1));
        }
    }

    #[test]
    fn a_stamp_that_does_not_rise_is_named_by_the_later_time() {
        let mut progress = Progress::after(Position(0));
        progress.come(Position(1), LogicalTime(20));
        progress.come(Position(2), LogicalTime(15));
        progress.come(Position(3), LogicalTime(12));
        assert_eq!(progress.through(LogicalTime(20)), Position(3));
        // Whoever names an earlier time knows nothing of these, and does not wait for them.
        assert_eq!([0, 12, 15, 19].map(|time| progress.through(LogicalTime(time)).0), [0; 4]);
    }
}
