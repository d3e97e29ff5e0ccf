//! Running sums of additions, so that what a past adds up to costs one look a session.

use super::{Count, Counters, Known, end_of};
use crate::fast::clocks::Clocks;
use crate::fast::index::{Group, Index};

/// Sums over the adders of a group before one of them.
#[derive(Clone, Copy, Debug, Default)]
struct Running {
    /// Of those that count.
    counted: i128,
    /// Of the others, and of all: what is negative, and what is positive.
    other_negative: i128,
    other_positive: i128,
    negative: i128,
    positive: i128,
}

/// The sums of all adders.
pub(super) struct Sums {
    /// Before each adder within its group.
    before: Vec<Running>,
    /// The earliest invocation of an adder and all after it in its group.
    earliest_start: Vec<u64>,
    /// By key: no addition is of more than one.
    all_ones: Vec<bool>,
}

impl Sums {
    pub fn new(counters: &Counters<'_>, index: &Index<'_>) -> Sums {
        let adders = &counters.adders;
        let mut sums = Sums {
            before: vec![Running::default(); adders.len() + 1],
            earliest_start: vec![0; adders.len()],
            all_ones: vec![true; index.history.keys.len()],
        };
        for key in 0..index.history.keys.len() as u32 {
            for group in adders.groups(key) {
                let mut running = Running::default();
                for at in group.start..group.end {
                    sums.before[at as usize] = running;
                    let unit = counters.units[at as usize];
                    sums.all_ones[key as usize] &= unit.abs() <= 1;
                    let is_counted = index.counts[adders.transactions[at as usize] as usize];
                    running.add(unit, is_counted);
                }
                let mut earliest = u64::MAX;
                for at in (group.start..group.end).rev() {
                    let adder = adders.transactions[at as usize];
                    earliest = earliest.min(index.history.transactions[adder as usize].start_us);
                    sums.earliest_start[at as usize] = earliest;
                }
            }
        }
        sums
    }

    /// What the sessions of the block say of a count.
    pub fn add_block(
        &self,
        counters: &Counters<'_>,
        index: &Index<'_>,
        clocks: &Clocks,
        count: &Count,
        known: &mut Known,
    ) {
        let reader = &index.history.transactions[count.reader as usize];
        known.all_ones &= self.all_ones[count.key as usize];
        for &group in counters.adders.groups_within(count.key, &clocks.sessions) {
            let past = clocks.of(count.reader)[(group.session - clocks.sessions.start) as usize];
            let past = if reader.is_final { u32::MAX } else { past };
            let required_end = counters.adders.end_before(group, past);
            let possible_end = if group.session == index.session[count.reader as usize] {
                required_end
            } else {
                let starts = &self.earliest_start[group.start as usize..group.end as usize];
                let in_time = starts.partition_point(|&start| start <= end_of(reader)) as u32;
                required_end.max(group.start + in_time)
            };
            if count.shown.is_some() {
                let required = group.start..required_end;
                let adders = required.map(|at| at as usize).filter_map(|at| {
                    let adder = counters.adders.transactions[at];
                    let is_required = index.counts[adder as usize] && adder != count.reader;
                    let bits =
                        u64::try_from(counters.units[at]).expect("an exact counter has no negative bits");
                    is_required.then_some((adder, bits))
                });
                known.required_adders.extend(adders);
                known.required_bits =
                    known.required_adders.iter().fold(known.required_bits, |all, (_, bits)| all | bits);
                continue;
            }
            let Places { required, least, most } =
                self.at(counters, index, count, group, required_end, possible_end);
            known.required += required;
            known.least += least;
            known.most += most;
            if let Some(possible) = &mut known.possible {
                for at in group.start..possible_end {
                    let adder = counters.adders.transactions[at as usize];
                    let is_required = at < required_end && index.counts[adder as usize];
                    let is_late = index.history.transactions[adder as usize].start_us > end_of(reader);
                    if !is_required && !is_late && adder != count.reader {
                        possible.push(counters.units[at as usize]);
                    }
                }
            }
        }
    }

    fn at(
        &self,
        counters: &Counters<'_>,
        index: &Index<'_>,
        count: &Count,
        group: Group,
        required_end: u32,
        possible_end: u32,
    ) -> Places {
        let required = self.before_place(counters, index, group, required_end);
        let possible = self.before_place(counters, index, group, possible_end);
        let mut places = Places {
            required: required.counted,
            least: required.other_negative + possible.negative - required.negative,
            most: required.other_positive + possible.positive - required.positive,
        };
        // A transaction may be in its own past if that is cyclic, and a final one takes everything in: but of what it
        // adds itself only what stands before the count is in it.
        if group.session == index.session[count.reader as usize] {
            let own = counters.adders.end_before(group, index.position[count.reader as usize]);
            if own < required_end && counters.adders.transactions[own as usize] == count.reader {
                places.required -= counters.units[own as usize];
            }
        }
        places
    }

    fn before_place(&self, counters: &Counters<'_>, index: &Index<'_>, group: Group, place: u32) -> Running {
        if place < group.end {
            return self.before[place as usize];
        }
        if place == group.start {
            return Running::default();
        }
        let last = place as usize - 1;
        let mut running = self.before[last];
        running.add(counters.units[last], index.counts[counters.adders.transactions[last] as usize]);
        running
    }
}

struct Places {
    required: i128,
    least: i128,
    most: i128,
}

impl Running {
    fn add(&mut self, unit: i128, is_counted: bool) {
        let (negative, positive) = (unit.min(0), unit.max(0));
        self.negative += negative;
        self.positive += positive;
        if is_counted {
            self.counted += unit;
        } else {
            self.other_negative += negative;
            self.other_positive += positive;
        }
    }
}
