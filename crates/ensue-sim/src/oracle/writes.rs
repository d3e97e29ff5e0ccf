//! Which writes there are at each location, and which of them certainly took effect.

use super::lost::{self, Lost};
use super::past::Pasts;
use crate::oracle::history::{History, Location, OperationIndex, Outcome, Seen, SessionIndex, Written};
use std::collections::{BTreeMap, BTreeSet};

use super::{Violation, property};

/// One write at one location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Write {
    pub(super) operation: OperationIndex,
    pub(super) number: u32,
    pub(super) written: Written,
}

/// The writes of one location that certainly took effect: by session, in its order.
pub(super) type BySession = BTreeMap<SessionIndex, Vec<Write>>;

/// All writes, by location.
#[derive(Clone, Default)]
pub(super) struct Writes {
    /// Values and deletes.
    pub(super) certain: BTreeMap<Location, BySession>,
    /// Additions.
    pub(super) added: BTreeMap<Location, Vec<Write>>,
    /// Values and deletes that may have taken effect, the certain ones included.
    pub(super) values: BTreeMap<Location, Vec<OperationIndex>>,
    pub(super) deletes: BTreeMap<Location, Vec<OperationIndex>>,
    /// Where operations of unknown outcome were seen.
    observed: BTreeMap<OperationIndex, BTreeSet<Location>>,
    /// Acknowledged writes that the power took: somebody may have seen them, but nothing rests on them.
    lost: Lost,
    /// Operations whose writes tell of nothing that came before them.
    severed: BTreeSet<OperationIndex>,
}

impl Writes {
    pub(super) fn collect(history: &History, lost: Lost, severed: BTreeSet<OperationIndex>) -> Writes {
        let mut writes = Writes { observed: observed(history), lost, severed, ..Writes::default() };
        for operations in &history.sessions {
            for &index in operations {
                writes.add(history, index);
            }
        }
        writes
    }

    /// The same, if these are lost, too.
    pub(super) fn without(&self, history: &History, mut lost: Lost) -> Writes {
        lost.extend(&self.lost);
        Writes::collect(history, lost, self.severed.clone())
    }

    fn add(&mut self, history: &History, index: OperationIndex) {
        let operation = &history.operations[index];
        for &(location, written) in &operation.writes {
            // Where writes take effect together, one that was seen tells of all.
            let seen = self.observed.get(&index);
            let seen = seen.is_some_and(|at| operation.together || at.contains(&location));
            let certain =
                (operation.outcome == Outcome::Done || seen) && !self.lost.contains(&(index, location));
            let write = Write { operation: index, number: operation.number, written };
            let may_be = match written {
                Written::Value => Some(&mut self.values),
                Written::Nothing => Some(&mut self.deletes),
                Written::Bit(_) => None,
            };
            if let Some(may_be) = may_be.filter(|_| operation.outcome != Outcome::Refused) {
                may_be.entry(location).or_default().push(index);
            }
            match written {
                Written::Bit(_) if certain => self.added.entry(location).or_default().push(write),
                // That one write of an operation was seen does not say that its delete found something.
                Written::Nothing if operation.outcome != Outcome::Done => {}
                Written::Value | Written::Nothing if certain => {
                    let sessions = self.certain.entry(location).or_default();
                    sessions.entry(operation.session).or_default().push(write);
                }
                _ => {}
            }
        }
    }

    /// Whether the power took a write.
    pub(super) fn is_lost(&self, index: OperationIndex, location: Location) -> bool {
        self.lost.contains(&(index, location))
    }

    /// Whether the power took what an operation wrote.
    pub(super) fn is_gone(&self, index: OperationIndex) -> bool {
        self.lost.range((index, Location(0))..).next().is_some_and(|(lost, _)| *lost == index)
    }

    /// Whether what an operation wrote tells of nothing that came before it.
    pub(super) fn is_severed(&self, index: OperationIndex) -> bool {
        self.severed.contains(&index)
    }

    /// For each session its latest write at a location that a past includes.
    pub(super) fn latest(&self, location: Location, past: &[u32]) -> impl Iterator<Item = Write> + '_ {
        let past = past.to_vec();
        self.certain.get(&location).into_iter().flatten().filter_map(move |(&session, writes)| {
            let count = writes.partition_point(|write| write.number <= past[session]);
            count.checked_sub(1).map(|index| writes[index])
        })
    }
}

/// What deletes may have done where each of them ends what its datacenter had, and nothing else.
pub(super) struct Removals<'a> {
    history: &'a History,
    pasts: &'a Pasts,
    writes: &'a Writes,
}

impl<'a> Removals<'a> {
    pub(super) fn of(history: &'a History, pasts: &'a Pasts, writes: &'a Writes) -> Removals<'a> {
        Removals { history, pasts, writes }
    }

    /// The deletes that a value may have come before, and that were sent by this time.
    fn after(
        &self,
        location: Location,
        value: OperationIndex,
        until_us: u64,
    ) -> impl Iterator<Item = OperationIndex> + '_ {
        let deletes = self.writes.deletes.get(&location).into_iter().flatten().copied();
        let invoked_us = self.history.operations[value].invoked_us;
        deletes.filter(move |&delete| {
            let operation = &self.history.operations[delete];
            // Where deletes are writes of nothing, a stamp decides, whatever came first.
            let may_follow = operation.answered_us >= invoked_us;
            let may_come_again = || lost::may_be_evaluated_again(self.history, delete, location);
            delete != value
                && operation.invoked_us <= until_us
                && (may_follow || self.history.promises.folds || may_come_again())
        })
    }

    /// Whether some removal may have ended a value by this time.
    pub(super) fn may_have_ended(&self, location: Location, value: OperationIndex, until_us: u64) -> bool {
        self.after(location, value, until_us).any(|delete| !self.pasts.contains(self.history, value, delete))
    }

    /// Whether a removal ended a value without regard to causality: its datacenter had that, or its session had read
    /// it.
    pub(super) fn must_have_ended(
        &self,
        location: Location,
        value: OperationIndex,
        delete: OperationIndex,
    ) -> bool {
        let (put, removal) = (&self.history.operations[value], &self.history.operations[delete]);
        let was_there = put.datacenter == removal.datacenter && put.answered_us <= removal.invoked_us;
        let before = self.history.sessions[removal.session].iter().take_while(|&&index| index != delete);
        let mut reads = before.flat_map(|&index| &self.history.operations[index].reads);
        was_there || reads.any(|&read| read == (location, Seen::Value(value)))
    }

    /// Whether some removal may by this time have ended a value that had won against another one, and not that other
    /// one.
    pub(super) fn may_bring_back(
        &self,
        location: Location,
        lost: OperationIndex,
        won: OperationIndex,
        until_us: u64,
    ) -> bool {
        let ends = |delete: OperationIndex| {
            let had_both = match self.history.promises.causality {
                true => self.pasts.contains(self.history, delete, lost),
                false => self.must_have_ended(location, lost, delete),
            };
            !self.pasts.contains(self.history, won, delete) && !had_both
        };
        !self.history.promises.folds && self.after(location, won, until_us).any(ends)
    }
}

/// Operations of unknown outcome whose writes somebody saw.
fn observed(history: &History) -> BTreeMap<OperationIndex, BTreeSet<Location>> {
    let mut observed: BTreeMap<OperationIndex, BTreeSet<Location>> = BTreeMap::new();
    for &earlier in history.built_on.values() {
        let at = history.operations.get(earlier).map(|source| source.writes.iter().map(|write| write.0));
        observed.entry(earlier).or_default().extend(at.into_iter().flatten());
    }
    for operation in &history.operations {
        for &(location, seen) in &operation.reads {
            match seen {
                Seen::Value(writer) => {
                    observed.entry(writer).or_default().insert(location);
                }
                Seen::Bits(bits) => {
                    for &index in history.adds.get(&location).into_iter().flatten() {
                        if bit_of(history, index, location).is_some_and(|bit| bits >> bit & 1 == 1) {
                            observed.entry(index).or_default().insert(location);
                        }
                    }
                }
                Seen::Nothing | Seen::Something => {}
            }
        }
    }
    observed
}

/// The power of two that an operation adds at a location.
pub(super) fn bit_of(history: &History, index: OperationIndex, location: Location) -> Option<u32> {
    history.operations[index].writes.iter().find_map(|&(at, written)| match written {
        Written::Bit(bit) if at == location => Some(bit),
        _ => None,
    })
}

/// Every value and every addition that was read must have been written before the answer, and so must something where
/// something was found.
pub(super) fn thin_air(history: &History) -> Result<(), Violation> {
    let first = first_values(history);
    for (reader, operation) in history.operations.iter().enumerate() {
        for &(location, seen) in &operation.reads {
            let fine = match seen {
                Seen::Value(writer) => history.operations.get(writer).is_some_and(|source| {
                    source.invoked_us <= operation.answered_us
                        && source.outcome != Outcome::Refused
                        && source.writes.iter().any(|&(at, w)| at == location && w == Written::Value)
                }),
                Seen::Bits(bits) => bits & !known_bits(history, location, operation.answered_us) == 0,
                Seen::Something => first.get(&location).is_some_and(|&at_us| at_us <= operation.answered_us),
                Seen::Nothing => true,
            };
            if !fine {
                let words = format!("at {}: {}", history.name(location), history.describe(reader));
                return Err(Violation::new(property::THIN_AIR, words));
            }
        }
    }
    Ok(())
}

/// When a value may have been written at each location for the first time.
fn first_values(history: &History) -> BTreeMap<Location, u64> {
    let mut first = BTreeMap::new();
    for operation in history.operations.iter().filter(|operation| operation.outcome != Outcome::Refused) {
        for &(location, _) in operation.writes.iter().filter(|(_, written)| *written == Written::Value) {
            let at_us = first.entry(location).or_insert(u64::MAX);
            *at_us = operation.invoked_us.min(*at_us);
        }
    }
    first
}

/// The additions that may be in a sum at a time.
pub(super) fn known_bits(history: &History, location: Location, until: u64) -> u64 {
    let adds = history.adds.get(&location).into_iter().flatten();
    adds.filter(|&&index| {
        let operation = &history.operations[index];
        operation.invoked_us <= until && operation.outcome != Outcome::Refused
    })
    .filter_map(|&index| bit_of(history, index, location))
    .fold(0, |bits, bit| bits | 1 << bit)
}
