//! What the runs of several protocols had in common: whether everything happened somewhere that they are meant to show.
//!
//! A run of one protocol has too few seeds to demand anything of it. Where all protocols run, in worlds that are meant
//! to show something, that must have happened in some of them; in ordinary worlds everything must that is required of
//! any of the protocols.

use super::SimOptions;
use super::many::SEEDS_FOR_MARKS;
use crate::world::marks::{Mark, Marks};
use ensue_protocol::Promises;

/// From this many seeds on what such worlds are meant to show must have happened.
const SEEDS_FOR_FEW_MARKS: u64 = 200;

#[derive(Debug, Default)]
pub(super) struct Total {
    pub(super) seeds: u64,
    pub(super) marks: Marks,
    pub(super) promises: Vec<Promises>,
}

impl Total {
    /// What should have happened and did not.
    pub(super) fn missing(&self, options: &SimOptions) -> Vec<Mark> {
        let meant = meant(options);
        if !meant.is_empty() {
            let is_missing = |mark: &Mark| self.marks.count(*mark) == 0;
            let few = self.seeds < SEEDS_FOR_FEW_MARKS;
            return meant.into_iter().filter(|mark| !few && is_missing(mark)).collect();
        }
        if self.seeds < SEEDS_FOR_MARKS { Vec::new() } else { self.marks.missing(&self.promises) }
    }
}

/// What worlds are meant to show that are not as seeds draw them.
fn meant(options: &SimOptions) -> Vec<Mark> {
    let mut meant = Vec::new();
    if options.losing {
        meant.extend([Mark::Fault("lose-datacenter"), Mark::Discarded, Mark::Parted]);
    }
    if options.losing_directories {
        meant.extend(["empty-directory", "old-copy", "foreign-directory"].map(Mark::Fault));
        meant.extend([Mark::Fault("empty-partition"), Mark::Copied, Mark::Rejoining]);
    }
    if options.joining {
        meant.extend(["learn-datacenter", "add-datacenter"].map(Mark::Fault));
        meant.push(Mark::Copied);
    }
    if options.retiring {
        meant.push(Mark::Fault("retire-datacenter"));
    }
    if options.moving_homes {
        meant.push(Mark::Fault("move-home"));
    }
    if options.replicas {
        meant.push(Mark::LeaderChanged);
    }
    if options.wild_clocks {
        meant.push(Mark::Fault("wild-clock"));
    }
    meant
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_worlds_are_meant_to_show_must_have_happened_somewhere() {
        let losing = SimOptions { losing: true, ..SimOptions::default() };
        let mut total = Total { seeds: SEEDS_FOR_FEW_MARKS - 1, ..Total::default() };
        assert_eq!(total.missing(&losing), []);
        total.seeds += 1;
        total.marks.add(Mark::Fault("lose-datacenter"));
        total.marks.add(Mark::Parted);
        assert_eq!(total.missing(&losing), [Mark::Discarded]);
        total.marks.add(Mark::Discarded);
        assert_eq!(total.missing(&losing), []);
    }

    #[test]
    fn where_homes_are_to_move_some_must_have_moved() {
        let moving = SimOptions { moving_homes: true, ..SimOptions::default() };
        let mut total = Total { seeds: SEEDS_FOR_FEW_MARKS, ..Total::default() };
        assert_eq!(total.missing(&moving), [Mark::Fault("move-home")]);
        total.marks.add(Mark::Fault("move-home"));
        assert_eq!(total.missing(&moving), []);
    }

    #[test]
    fn ordinary_worlds_must_show_everything() {
        let mut total = Total { seeds: SEEDS_FOR_MARKS - 1, ..Total::default() };
        total.promises = vec![Promises::CONVERGENCE];
        assert_eq!(total.missing(&SimOptions::default()), []);
        total.seeds += 1;
        assert!(total.missing(&SimOptions::default()).contains(&Mark::TornTail));
    }
}
