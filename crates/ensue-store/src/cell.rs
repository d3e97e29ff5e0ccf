//! One location, (key, column): its value now, and the values that a second round may still ask for.
//!
//! Arrives: effects with their stamps, in logical-time order of this datacenter. Promises: any order of the same
//! effects ends in the same state (last writer by stamp, additions by their series), and the state of a past time is
//! answered truly or not at all. It does not decide when a past state may be forgotten.

use bytes::Bytes;
use ensue_types::{
    DatacenterId, Decimal, Effect, LogicalTime, OperationId, Rule, Rules, Seen, SeenTally, Stamp, Tally,
};

/// Who wrote, and from when on it is visible in this datacenter.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    pub stamp: Stamp,
    /// The earliest valid time of what this write leaves (Eiger, section 4.1).
    pub at: LogicalTime,
    pub operation: OperationId,
    /// The datacenter whose additions the effect counts.
    pub origin: DatacenterId,
}

/// The last writer's value or tombstone.
#[derive(Clone, Debug)]
pub struct Base {
    pub stamp: Stamp,
    pub operation: OperationId,
    /// Nothing is a tombstone, or a counter that nobody ever set.
    pub value: Option<Bytes>,
}

/// One datacenter's additions, as far as they are known here.
#[derive(Clone, Copy, Debug)]
pub struct Addition {
    pub datacenter: DatacenterId,
    pub stamp: Stamp,
    pub operation: OperationId,
    pub tally: Tally,
}

/// What only counters have.
#[derive(Clone, Debug, Default)]
pub struct Counter {
    /// Additions that the base had taken into account.
    pub seen: Seen,
    /// The latest addition of each datacenter.
    pub additions: Vec<Addition>,
}

/// A location at one moment.
#[derive(Clone, Debug)]
pub struct State {
    pub base: Base,
    pub counter: Option<Box<Counter>>,
}

/// What a reader gets of a location.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    Nothing,
    Bytes(Bytes),
    /// A base that is a number, or none, plus additions.
    Number(Decimal),
}

/// A location.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The present state is valid from this time on.
    since: LogicalTime,
    state: State,
    /// Earlier states with the times from which they were valid, oldest first; empty unless somebody may ask.
    history: Vec<(LogicalTime, State)>,
}

/// Whether a write changed what is visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Won,
    /// A newer write was there: the interval in which this one is valid is empty (section 5.3).
    Lost,
}

impl State {
    fn empty() -> State {
        State {
            base: Base { stamp: Stamp::ZERO, operation: OperationId::default(), value: None },
            counter: None,
        }
    }

    /// What a reader sees.
    pub fn content(&self, rules: Rules) -> Content {
        let Some(counter) = &self.counter else {
            return match &self.base.value {
                Some(value) => Content::Bytes(value.clone()),
                None => Content::Nothing,
            };
        };
        let base = match &self.base.value {
            Some(value) => match Decimal::parse(value) {
                Some(number) => number,
                None => return Content::Bytes(value.clone()),
            },
            None => Decimal::ZERO,
        };
        let mut sum = base;
        let mut unseen = false;
        for addition in &counter.additions {
            let covered = counter.covered(addition, rules);
            unseen |= covered.1;
            sum = Decimal(sum.0.saturating_add(addition.tally.sum.0).saturating_sub(covered.0.0));
        }
        match (&self.base.value, unseen) {
            (None, false) => Content::Nothing,
            (Some(value), false) => Content::Bytes(value.clone()),
            (_, true) => Content::Number(sum),
        }
    }

    /// Whether a reader sees anything.
    pub fn is_live(&self, rules: Rules) -> bool {
        match &self.counter {
            None => self.base.value.is_some(),
            Some(_) => self.content(rules) != Content::Nothing,
        }
    }

    /// The newest stamp that made this state.
    pub fn newest(&self) -> Stamp {
        let additions = self.counter.iter().flat_map(|c| &c.additions).map(|a| a.stamp);
        additions.fold(self.base.stamp, Stamp::max)
    }

    /// The operations that made this state, with their stamps: at most the base's, and one a datacenter (section 3.3).
    pub fn operations(&self) -> impl Iterator<Item = (Stamp, OperationId)> + '_ {
        let base = (self.base.stamp != Stamp::ZERO).then_some((self.base.stamp, self.base.operation));
        base.into_iter().chain(self.counter.iter().flat_map(|c| &c.additions).map(|a| (a.stamp, a.operation)))
    }

    /// The additions that a new base must cover: those seen here, and those that the present base had seen.
    pub fn seen(&self) -> Seen {
        let Some(counter) = &self.counter else { return Seen::new() };
        let mut seen = counter.seen.clone();
        for addition in &counter.additions {
            let datacenter = addition.datacenter;
            let latest = SeenTally { datacenter, tally: addition.tally, stamp: addition.stamp };
            match seen.iter_mut().find(|known| known.datacenter == datacenter) {
                Some(known) if (known.tally.series, known.stamp) < (latest.tally.series, latest.stamp) => {
                    *known = latest;
                }
                Some(_) => {}
                None => seen.push(latest),
            }
        }
        seen
    }

    /// Whether nobody has ever set the column, as far as is known here.
    pub fn has_no_base(&self) -> bool {
        self.base.stamp == Stamp::ZERO
    }

    /// The latest tally of a datacenter, if its series may go on.
    ///
    /// A series ends with a tombstone that covers it: elsewhere the tombstone may be collected at any moment, and a sum
    /// that went on from before it would then count as a whole. So does a series that a value covers without naming it,
    /// because its writer had forgotten the tombstone.
    pub fn open_tally(&self, datacenter: DatacenterId, rules: Rules) -> Option<Tally> {
        let counter = self.counter.as_ref()?;
        let addition = counter.additions.iter().find(|addition| addition.datacenter == datacenter)?;
        let deleted = self.base.value.is_none() && !counter.covered(addition, rules).1;
        let ended = deleted || counter.covers_unnamed(addition);
        (!(ended && rules.hold(Rule::SeriesEndsWithItsDelete))).then_some(addition.tally)
    }

    fn merge(&mut self, effect: &Effect, write: &Write, rules: Rules) -> Outcome {
        match effect {
            Effect::Put { value, seen } => self.merge_base(Some(value), seen, write, rules),
            Effect::Delete { seen } => self.merge_base(None, seen, write, rules),
            Effect::Add { tally } => self.merge_addition(*tally, write),
        }
    }

    fn merge_base(&mut self, value: Option<&Bytes>, seen: &Seen, write: &Write, rules: Rules) -> Outcome {
        let same_write = write.stamp == self.base.stamp;
        let older = match rules.hold(Rule::TiesByDatacenter) {
            true => write.stamp < self.base.stamp,
            false => write.stamp.time < self.base.stamp.time,
        };
        if older && rules.hold(Rule::LastWriterWins) {
            return Outcome::Lost;
        }
        if same_write && self.base.value.as_ref() == value && seen.is_empty() {
            return Outcome::Lost;
        }
        self.base = Base {
            stamp: write.stamp,
            operation: write.operation,
            value: value.map(|v| Bytes::copy_from_slice(v)),
        };
        if self.counter.is_some() || !seen.is_empty() {
            self.counter.get_or_insert_default().seen = seen.clone();
        }
        Outcome::Won
    }

    fn merge_addition(&mut self, tally: Tally, write: &Write) -> Outcome {
        let addition =
            Addition { datacenter: write.origin, stamp: write.stamp, operation: write.operation, tally };
        let additions = &mut self.counter.get_or_insert_default().additions;
        match additions.binary_search_by_key(&write.origin, |a| a.datacenter) {
            Ok(at) if additions[at].is_at_least(&addition) => return Outcome::Lost,
            Ok(at) => additions[at] = addition,
            Err(at) => additions.insert(at, addition),
        }
        Outcome::Won
    }
}

impl Addition {
    /// Series follow each other in time; within a series the later addition has the later stamp.
    fn is_at_least(&self, other: &Addition) -> bool {
        (self.tally.series, self.stamp) > (other.tally.series, other.stamp)
            || (self.stamp == other.stamp && self.tally == other.tally)
    }
}

impl Counter {
    /// How much of a datacenter's sum the base covers, and whether there is an addition that it does not cover.
    fn covered(&self, addition: &Addition, rules: Rules) -> (Decimal, bool) {
        let seen = self.seen.iter().find(|s| s.datacenter == addition.datacenter);
        let every = self.seen.iter().find(|s| s.datacenter == DatacenterId::EVERY);
        if every.is_some_and(|every| addition.stamp <= every.stamp)
            && rules.hold(Rule::BaseCoversSeenAdditions)
        {
            return (addition.tally.sum, false);
        }
        match seen {
            Some(_) if !rules.hold(Rule::BaseCoversSeenAdditions) => (Decimal::ZERO, true),
            // The base had seen a later addition, or a later series, than has arrived here by itself.
            Some(seen) if (seen.tally.series, seen.stamp) >= (addition.tally.series, addition.stamp) => {
                (addition.tally.sum, false)
            }
            Some(seen) if seen.tally.series == addition.tally.series => (seen.tally.sum, true),
            _ => (Decimal::ZERO, true),
        }
    }
}

impl Counter {
    /// Whether the base covers an addition only as one of every datacenter's.
    fn covers_unnamed(&self, addition: &Addition) -> bool {
        let every =
            self.seen.iter().any(|s| s.datacenter == DatacenterId::EVERY && addition.stamp <= s.stamp);
        let latest = (addition.tally.series, addition.stamp);
        let names =
            |s: &SeenTally| s.datacenter == addition.datacenter && (s.tally.series, s.stamp) >= latest;
        every && !self.seen.iter().any(names)
    }
}

impl Cell {
    /// A location that nobody has written, known to be empty since `since`.
    pub fn new(since: LogicalTime) -> Cell {
        Cell { since, state: State::empty(), history: Vec::new() }
    }

    pub fn since(&self) -> LogicalTime {
        self.since
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    pub fn has_history(&self) -> bool {
        !self.history.is_empty()
    }

    /// Merges a write. The state before it is kept if `keep` and if it had been visible at an earlier time.
    pub fn apply(&mut self, effect: &Effect, write: &Write, keep: bool, rules: Rules) -> Outcome {
        let before = (keep && write.at > self.since).then(|| self.state.clone());
        let outcome = self.state.merge(effect, write, rules);
        if outcome == Outcome::Won {
            if let Some(before) = before {
                self.history.push((self.since, before));
            }
            self.since = self.since.max(write.at);
        }
        outcome
    }

    /// Takes the base's value away because a flush with a higher stamp has come; its stamp and what it saw stay, so
    /// that arbitration among flushed writes ends the same everywhere.
    pub fn hide_base(&mut self, at: LogicalTime, keep: bool) -> Outcome {
        if self.state.base.value.is_none() {
            return Outcome::Lost;
        }
        if keep && at > self.since {
            self.history.push((self.since, self.state.clone()));
        }
        self.state.base.value = None;
        self.since = self.since.max(at);
        Outcome::Won
    }

    /// Whether nothing would be missed if the cell were not there: a tombstone whose counter, if it is one, adds up
    /// to nothing unseen, and that no second round may ask for.
    pub fn is_spent(&self, rules: Rules) -> bool {
        self.history.is_empty() && !self.state.is_live(rules)
    }

    /// The state at a time and since when it was valid; nothing if that state is no longer known.
    pub fn at(&self, at: LogicalTime) -> Option<(LogicalTime, &State)> {
        if self.since <= at {
            return Some((self.since, &self.state));
        }
        self.history.iter().rev().find(|(since, _)| *since <= at).map(|(since, state)| (*since, state))
    }

    /// Forgets every state but the present one.
    pub fn forget_history(&mut self) {
        self.history = Vec::new();
    }
}
