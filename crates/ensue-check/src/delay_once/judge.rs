//! Decides whether a history is delay-once linearizable (section 4.1), and counts its stale reads.
//!
//! The paper defines the property on a sequence of operations: the writes are linearizable, and each read reflects the
//! state of the latest read or of the latest write before it. For a history of overlapping operations this is read as
//! follows. There is an order of the writes of an object, each of which takes effect between its call and its return,
//! such that:
//!
//! 1. a read returns a value whose write took effect before the read returned (nothing comes from the future);
//! 2. a read that precedes another returns the same value or an earlier one (reads never go back);
//! 3. of each value that is read, some read is *fresh*: the value was the current one at a time between call and return
//!    (reads that are updated reflect the latest state at once), so that every other read of it is a *delayed* one,
//!    which reflects the state of a read before it.
//!
//! It is not required that one order of all operations explains delayed reads and fresh ones together: Algorithm 1 does
//! not provide that. A replicated read whose answer is under way reflects a state that a later write may already have
//! replaced when another client's fast read still gets the older one.
//!
//! Each value is written once, so the three conditions are edges "this value before that one", and the property holds
//! if they have no cycle. Of the reads of a value, the one that was called first is the fresh one, since every other
//! choice makes more edges. An order is found by sorting, without looking at the edges one by one.

use super::{History, INITIAL, Kind, ObjectId, Operation, Value};
use std::collections::{BTreeMap, BTreeSet};

/// What is wrong with a history.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// Nobody wrote it.
    #[error("a read of object {} returned value {}, which nobody wrote", .0.object.0, .0.value.0)]
    Unwritten(Operation),
    /// It was written after the read had returned.
    #[error("a read of object {} returned value {} before it was written", .0.object.0, .0.value.0)]
    FromTheFuture(Operation),
    /// These values of an object would each have to come before the next, and the last before the first.
    #[error("no order of the writes of object {} explains its reads: {}", object.0, arrows(values))]
    NoOrder { object: ObjectId, values: Vec<Value> },
}

/// Why a history cannot be judged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    /// The same value was written twice, or the initial one was.
    #[error("value {} of object {} is written twice", .1.0, .0.0)]
    WrittenTwice(ObjectId, Value),
    /// A read did not return.
    #[error("a read of object {} did not return; leave it out", .0.0)]
    OpenRead(ObjectId),
    /// An operation returned before it was called.
    #[error("an operation on object {} returned before it was called", .0.0)]
    Backwards(ObjectId),
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Reads that were judged.
    pub reads: usize,
    /// Reads that do not reflect the latest write before them (the staleness indicator of section 4.1), in the order of
    /// writes that was found. Where writes overlap, that is one in which few reads are stale, and the true one may be
    /// another.
    pub stale_reads: usize,
    /// The most stale reads of one object in a row, by the time of their return.
    pub stale_run_max: usize,
    /// What is violated, by object.
    pub violations: Vec<Violation>,
}

fn arrows(values: &[Value]) -> String {
    let names: Vec<String> = values.iter().chain(values.first()).map(|value| value.0.to_string()).collect();
    names.join(" before ")
}

/// Judges a history.
pub fn judge(history: &History) -> Result<Verdict, HistoryError> {
    let mut objects: BTreeMap<ObjectId, Vec<&Operation>> = BTreeMap::new();
    for operation in &history.operations {
        objects.entry(operation.object).or_default().push(operation);
    }
    let mut verdict = Verdict::default();
    for (id, operations) in objects {
        let object = Object::of(id, &operations, &mut verdict.violations)?;
        verdict.reads += object.reads.len();
        match object.order() {
            Ok(places) => object.count_stale(&places, &mut verdict),
            Err(values) => verdict.violations.push(Violation::NoOrder { object: id, values }),
        }
    }
    Ok(verdict)
}

/// A time, -1 before everything.
type Time = i128;
const NEVER: Time = Time::MAX;
/// Among so many values that have no order a pair is looked for.
const SEARCHED_MAX: usize = 1_000;

/// A value with the times that decide what must come before it and after it.
#[derive(Clone, Copy, Debug)]
struct Written {
    value: Value,
    called: Time,
    returned: Time,
    /// The earliest return of its reads.
    read_first_returned: Time,
    /// The earliest and the latest call of its reads.
    read_first_called: Time,
    read_last_called: Time,
}

struct Object<'a> {
    values: Vec<Written>,
    /// Each read with the place of its value.
    reads: Vec<(&'a Operation, usize)>,
}

impl<'a> Object<'a> {
    fn of(
        id: ObjectId,
        operations: &[&'a Operation],
        violations: &mut Vec<Violation>,
    ) -> Result<Object<'a>, HistoryError> {
        let mut values = vec![Written::new(INITIAL, -1, -1)];
        let mut places = BTreeMap::from([(INITIAL, 0)]);
        for operation in operations {
            if operation.returned_us.is_some_and(|returned_us| returned_us < operation.invoked_us) {
                return Err(HistoryError::Backwards(id));
            }
            if operation.kind == Kind::Write {
                if places.insert(operation.value, values.len()).is_some() {
                    return Err(HistoryError::WrittenTwice(id, operation.value));
                }
                let returned = operation.returned_us.map_or(NEVER, Time::from);
                values.push(Written::new(operation.value, operation.invoked_us.into(), returned));
            }
        }
        let mut reads = Vec::new();
        for &operation in operations.iter().filter(|operation| operation.kind == Kind::Read) {
            let returned: Time = operation.returned_us.ok_or(HistoryError::OpenRead(id))?.into();
            match places.get(&operation.value) {
                None => violations.push(Violation::Unwritten(*operation)),
                Some(&place) if values[place].called > returned => {
                    violations.push(Violation::FromTheFuture(*operation));
                }
                Some(&place) => {
                    values[place].add_read(operation.invoked_us.into(), returned);
                    reads.push((operation, place));
                }
            }
        }
        Ok(Object { values, reads })
    }

    /// For each value its place in an order of the writes; or values that go round in a circle.
    fn order(&self) -> Result<Vec<usize>, Vec<Value>> {
        let count = self.values.len();
        let mut unplaced = Unplaced::new(&self.values);
        let mut ready: BTreeSet<(Time, Time, usize)> = BTreeSet::new();
        // Of writes that may be in any order, those that are read last come last: few reads are stale in this order.
        let key = |place: usize| (self.values[place].read_last_called, self.values[place].returned, place);
        let (mut places, mut next) = (vec![usize::MAX; count], 0);
        loop {
            ready.extend(unplaced.take_ready().into_iter().map(key));
            let Some((.., one)) = ready.pop_first() else { break };
            places[one] = next;
            next += 1;
            unplaced.remove(one);
        }
        if next == count {
            return Ok(places);
        }
        let left: Vec<usize> = (0..count).filter(|&place| places[place] == usize::MAX).collect();
        Err(self.circle(&left, &unplaced))
    }

    /// A short circle among values each of which has one of them before it.
    fn circle(&self, left: &[usize], unplaced: &Unplaced<'_>) -> Vec<Value> {
        let before =
            |one: usize, other: usize| one != other && self.values[one].is_before(&self.values[other]);
        // A pair is the clearest; it is looked for where that does not take long.
        for &one in left.iter().take_while(|_| left.len() <= SEARCHED_MAX) {
            if let Some(&other) = left.iter().find(|&&other| before(one, other) && before(other, one)) {
                return vec![self.values[one].value, self.values[other].value];
            }
        }
        let mut path = vec![left[0]];
        loop {
            let last = path[path.len() - 1];
            let earlier = unplaced.first_before(last).expect("each value that is left has one before it");
            if let Some(at) = path.iter().position(|&place| place == earlier) {
                return path[at..].iter().rev().map(|&place| self.values[place].value).collect();
            }
            path.push(earlier);
        }
    }

    fn count_stale(&self, places: &[usize], verdict: &mut Verdict) {
        let mut returned: Vec<(Time, usize)> =
            self.values.iter().zip(places).map(|(written, &place)| (written.returned, place)).collect();
        returned.sort_unstable();
        // Beside each return: the latest in the order of those that returned no later.
        let mut latest = 0;
        for (_, place) in &mut returned {
            latest = latest.max(*place);
            *place = latest;
        }
        let mut reads = self.reads.clone();
        reads.sort_by_key(|(read, _)| (read.returned_us, read.invoked_us));
        let mut run = 0;
        for (read, place) in reads {
            let called = Time::from(read.invoked_us);
            let before = returned.partition_point(|(returned, _)| *returned < called);
            let is_stale = before.checked_sub(1).is_some_and(|last| returned[last].1 > places[place]);
            run = if is_stale { run + 1 } else { 0 };
            verdict.stale_reads += usize::from(is_stale);
            verdict.stale_run_max = verdict.stale_run_max.max(run);
        }
    }
}

/// The values that have no place in the order yet, so that the next one is found without comparing all pairs.
///
/// One value must come before another for one of two reasons, and each of them compares a time of the one with a time
/// of the other. So nothing needs to come before a value if the least of these times among all others are late enough.
struct Unplaced<'a> {
    values: &'a [Written],
    /// By when they had taken effect, and by when a read of them first returned.
    by_effect: BTreeSet<(Time, usize)>,
    by_first_read: BTreeSet<(Time, usize)>,
    /// Those that may have one before them for the first reason, and those that have none and may have for the second.
    waiting_for_effects: BTreeSet<(Time, usize)>,
    waiting_for_reads: BTreeSet<(Time, usize)>,
    is_taken: Vec<bool>,
}

impl<'a> Unplaced<'a> {
    fn new(values: &'a [Written]) -> Unplaced<'a> {
        let by = |time: fn(&Written) -> Time| {
            values.iter().enumerate().map(|(at, written)| (time(written), at)).collect::<BTreeSet<_>>()
        };
        Unplaced {
            values,
            by_effect: by(Written::in_effect),
            by_first_read: by(|written| written.read_first_returned),
            waiting_for_effects: by(Written::effects_before),
            waiting_for_reads: BTreeSet::new(),
            is_taken: vec![false; values.len()],
        }
    }

    /// Those that none must come before any more, each once.
    fn take_ready(&mut self) -> Vec<usize> {
        let mut ready = Vec::new();
        let least = |times: &BTreeSet<(Time, usize)>| times.first().map_or(NEVER, |(time, _)| *time);
        let (effect, first_read) = (least(&self.by_effect), least(&self.by_first_read));
        while let Some((time, at)) = self.waiting_for_effects.pop_first() {
            if time > effect {
                self.waiting_for_effects.insert((time, at));
                break;
            }
            self.waiting_for_reads.insert((self.values[at].read_last_called, at));
        }
        while let Some((time, at)) = self.waiting_for_reads.pop_first() {
            if time > first_read {
                self.waiting_for_reads.insert((time, at));
                break;
            }
            ready.push(at);
        }
        // Nothing comes before itself: a value whose own time is the least is measured by those of all others.
        let own = [&self.by_effect, &self.by_first_read].map(|times| times.first().map(|(_, at)| *at));
        ready.extend(own.into_iter().flatten().filter(|&at| self.first_before(at).is_none()));
        ready.retain(|&at| !std::mem::replace(&mut self.is_taken[at], true));
        ready
    }

    /// One that must come before this, if any must.
    fn first_before(&self, at: usize) -> Option<usize> {
        let least = |times: &BTreeSet<(Time, usize)>| {
            times.iter().map(|(_, other)| *other).find(|&other| other != at)
        };
        let candidates = [least(&self.by_effect), least(&self.by_first_read)];
        candidates.into_iter().flatten().find(|&other| self.values[other].is_before(&self.values[at]))
    }

    fn remove(&mut self, at: usize) {
        self.by_effect.remove(&(self.values[at].in_effect(), at));
        self.by_first_read.remove(&(self.values[at].read_first_returned, at));
    }
}

impl Written {
    fn new(value: Value, called: Time, returned: Time) -> Written {
        Written {
            value,
            called,
            returned,
            read_first_returned: NEVER,
            read_first_called: NEVER,
            read_last_called: -1,
        }
    }

    fn add_read(&mut self, called: Time, returned: Time) {
        self.read_first_returned = self.read_first_returned.min(returned);
        self.read_first_called = self.read_first_called.min(called);
        self.read_last_called = self.read_last_called.max(called);
    }

    /// It took effect at the latest when it returned, and when the first read of it did.
    fn in_effect(&self) -> Time {
        self.returned.min(self.read_first_returned)
    }

    /// What took effect before this time comes before this value: its call, and that of its fresh read.
    fn effects_before(&self) -> Time {
        let fresh_called = if self.read_first_called == NEVER { -1 } else { self.read_first_called };
        self.called.max(fresh_called)
    }

    /// Whether this value must come before the other.
    fn is_before(&self, other: &Written) -> bool {
        self.in_effect() < other.effects_before() || self.read_first_returned < other.read_last_called
    }
}

#[cfg(test)]
mod tests;
