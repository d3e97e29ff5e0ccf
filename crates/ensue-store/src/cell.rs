//! One location, (key, column): its value now, and the values that a second round may still ask for.
//!
//! Arrives: effects with their stamps, in logical-time order of this datacenter. Promises: any order of the same
//! effects ends in the same state (last writer by stamp, additions by their epoch), and the state of a past time is
//! answered truly or not at all. In a keyspace that keeps versions, what not everybody may see yet is kept apart
//! (`versions`). It does not decide when a past state may be forgotten.

use crate::forgetting::Forgets;
use crate::siblings::{Conflicts, Sibling, Siblings};
use crate::undominated::Undominated;
use crate::versions::{Version, Versions};
use crate::view::{Shown, ShownState, View};
use bytes::Bytes;
use ensue_types::{
    Carried, DatacenterId, Decimal, Effect, EpochSum, LogicalTime, Observed, OperationId, Over, Rule, Score,
    Seen, SeenSum, Source, Stamp, Visibility,
};
use std::sync::Arc;

/// Who wrote, and from when on it is visible in this datacenter. An addition counts for its operation's datacenter.
#[derive(Clone, Debug)]
pub struct Write {
    pub stamp: Stamp,
    /// The earliest valid time of what this write leaves (Eiger, section 4.1).
    pub at: LogicalTime,
    pub operation: OperationId,
    /// What the write carries, nothing in keyspaces that keep no versions.
    pub dependencies: Option<Arc<Carried>>,
}

impl Write {
    pub fn source(&self) -> Source {
        Source { operation: self.operation, stamp: self.stamp, dependencies: self.dependencies.clone() }
    }
}

/// What is kept of a location beside its newest state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Keep<'a> {
    /// Past states: a second round may ask for them.
    pub history: bool,
    /// Versions, until they are settled.
    pub versions: bool,
    /// Values that nothing has replaced, beside each other; nothing if the last writer's is enough.
    pub siblings: Option<Conflicts<'a>>,
    /// Of a location with versions: the flush that every view shows, and that hides what comes later below it.
    pub flushed: Stamp,
}

/// The last writer's value or tombstone.
#[derive(Clone, Debug)]
pub struct Base {
    pub stamp: Stamp,
    pub operation: OperationId,
    pub dependencies: Option<Arc<Carried>>,
    /// Nothing is a tombstone, or a counter that nobody ever set.
    pub value: Option<Bytes>,
}

/// One datacenter's additions, as far as they are known here.
#[derive(Clone, Debug)]
pub struct Addition {
    pub datacenter: DatacenterId,
    pub stamp: Stamp,
    pub operation: OperationId,
    pub dependencies: Option<Arc<Carried>>,
    pub epoch_sum: EpochSum,
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
    /// What stands beside the base, and what was replaced; only in keyspaces that keep it.
    pub(crate) siblings: Option<Box<Siblings>>,
    /// What a removal may bring back, and what removals had observed; everywhere else.
    pub(crate) undominated: Option<Box<Undominated>>,
}

/// What a reader gets of a location.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    Nothing,
    Bytes(Bytes),
    /// A base that is a number, or none, plus additions.
    Number(Decimal),
}

impl Content {
    /// The score that the content of a sorted set's column is.
    pub fn score(&self) -> Option<Score> {
        match self {
            Content::Nothing => None,
            Content::Number(total) => Some(Score::from(*total)),
            // Only commands on sorted sets write such columns, and they write numbers.
            Content::Bytes(text) => Some(Score::from_text(text).unwrap_or(Score::ZERO)),
        }
    }
}

/// A location.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The present state is valid from this time on.
    since: LogicalTime,
    state: State,
    /// Earlier states with the times from which they were valid, oldest first; empty unless somebody may ask.
    history: Vec<(LogicalTime, State)>,
    /// What is not settled yet, if there is any.
    versions: Option<Box<Versions>>,
}

/// Whether a write changed what is visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Won,
    /// A newer write was there: the interval in which this one is valid is empty (section 5.3).
    Lost,
}

impl State {
    pub(crate) fn empty() -> State {
        State {
            base: Base {
                stamp: Stamp::ZERO,
                operation: OperationId::default(),
                dependencies: None,
                value: None,
            },
            counter: None,
            siblings: None,
            undominated: None,
        }
    }

    /// What a reader sees.
    pub fn content(&self) -> Content {
        if let Some(folded) = self.folded() {
            return folded;
        }
        match (&self.counter, &self.base.value) {
            (Some(counter), value) => content_of(value.as_ref(), &counter.seen, &counter.additions),
            (None, Some(value)) => Content::Bytes(value.clone()),
            (None, None) => Content::Nothing,
        }
    }

    /// Whether a reader sees anything.
    pub fn is_live(&self) -> bool {
        match (&self.counter, &self.siblings) {
            (None, None) => self.base.value.is_some(),
            (Some(counter), None) => {
                let adds = |addition| covered(&counter.seen, addition).1;
                self.base.value.is_some() || counter.additions.iter().any(adds)
            }
            (_, Some(_)) => self.content() != Content::Nothing,
        }
    }

    /// The newest stamp that made this state.
    pub fn newest(&self) -> Stamp {
        let additions = self.counter.iter().flat_map(|c| &c.additions).map(|a| a.stamp);
        additions.fold(self.base.stamp, Stamp::max)
    }

    /// The newest stamp of what a reader sees of a live state: the same everywhere, whatever was forgotten where.
    pub(crate) fn newest_shown(&self) -> Stamp {
        if self.siblings.is_some() {
            return self.newest();
        }
        let base = if self.base.value.is_some() { self.base.stamp } else { Stamp::ZERO };
        let Some(counter) = &self.counter else { return base };
        let shown = counter.additions.iter().filter(|addition| covered(&counter.seen, addition).1);
        shown.map(|addition| addition.stamp).fold(base, Stamp::max)
    }

    /// The writes that made this state: the base's and its siblings', removals that may have ended what would be shown
    /// else, and at most one addition a datacenter (section 3.3).
    pub fn sources(&self) -> impl Iterator<Item = Source> + '_ {
        let base = (self.base.stamp != Stamp::ZERO).then(|| self.base.source());
        let base = base.into_iter().chain(self.removals_shown().cloned());
        let siblings = self.siblings().iter().map(|sibling| sibling.base.source());
        base.chain(siblings).chain(self.counter.iter().flat_map(|c| &c.additions).map(Addition::source))
    }

    /// The same, one after another.
    pub fn each_source(&self, mut each: impl FnMut(SourceRef<'_>)) {
        if self.base.stamp != Stamp::ZERO {
            each(self.base.source_ref());
        }
        if self.undominated.is_some() {
            self.removals_shown().for_each(|by| each(SourceRef::of(by)));
        }
        self.siblings().iter().for_each(|sibling| each(sibling.base.source_ref()));
        let additions = self.counter.as_deref().map_or(&[][..], |counter| &counter.additions);
        additions.iter().for_each(|addition| each(addition.source_ref()));
    }

    /// The additions that a new base must cover: those seen here, and those that the present base had seen.
    pub fn seen(&self) -> Seen {
        let mut seen = self.counter.as_ref().map(|counter| counter.seen.clone()).unwrap_or_default();
        // Additions that a put beside the base had seen may not have come here.
        for seen_sum in self.beside().flat_map(|one| &one.seen) {
            see(&mut seen, *seen_sum);
        }
        for addition in self.counter.iter().flat_map(|counter| &counter.additions) {
            let datacenter = addition.datacenter;
            see(&mut seen, SeenSum { datacenter, epoch_sum: addition.epoch_sum, stamp: addition.stamp });
        }
        seen
    }

    /// Whether an addition is known here, if only because a put had seen it.
    pub(crate) fn knows_additions(&self) -> bool {
        self.counter.is_some() || self.beside().any(|one| !one.seen.is_empty())
    }

    /// The values beside the base.
    fn beside(&self) -> impl Iterator<Item = &Sibling> {
        self.siblings().iter().chain(self.undominated())
    }

    /// Whether a value below this stamp may be shown, now or when a removal brings it back.
    pub(crate) fn has_put_below(&self, stamp: Stamp) -> bool {
        let is_below = |base: &Base| base.value.is_some() && base.stamp < stamp;
        is_below(&self.base) || self.undominated().iter().any(|one| is_below(&one.base))
    }

    /// Whether nobody has ever set the column, as far as is known here.
    pub fn has_no_base(&self) -> bool {
        self.base.stamp == Stamp::ZERO
    }

    /// The latest epoch sum of a datacenter, if its epoch may go on.
    ///
    /// An epoch ends with a removal or a tombstone that covers it: elsewhere that may be forgotten at any moment, and a
    /// sum that went on from before it would then count as a whole. So does an epoch that a value covers without naming
    /// it, because its writer had forgotten the tombstone.
    pub fn open_epoch(&self, datacenter: DatacenterId) -> Option<EpochSum> {
        let counter = self.counter.as_ref()?;
        let addition = counter.additions.iter().find(|addition| addition.datacenter == datacenter)?;
        let ends = |value: Option<&Bytes>, seen: &Seen| {
            value.is_none() && !covered(seen, addition).1 || covers_unnamed(seen, addition)
        };
        // Where several stand beside each other, one that goes on is enough: then nothing here is collected.
        let ended = ends(self.base.value.as_ref(), &counter.seen)
            && self.siblings().iter().all(|one| ends(one.base.value.as_ref(), &one.seen));
        let ended = ended || self.removed().is_some_and(|(_, _, seen)| !covered(seen, addition).1);
        (!(ended && Rule::SeriesEndsWithItsDelete.holds())).then_some(addition.epoch_sum)
    }

    /// Merges an effect; `hold` makes the value's bytes this state's own.
    pub(crate) fn merge(
        &mut self,
        effect: &Effect,
        source: &Source,
        hold: impl Fn(&Bytes) -> Bytes,
    ) -> Outcome {
        match effect {
            Effect::Put { value, seen, over: None } => self.merge_put(Some(value), seen, source, hold),
            Effect::Put { value, seen, over: Some(over) } => {
                self.merge_overwriting(over, (value, seen), source, hold)
            }
            Effect::Delete { seen } => self.merge_put(None, seen, source, hold),
            Effect::Remove { observed, seen } => self.merge_removal(observed, seen, source),
            Effect::Add { epoch_sum } => self.merge_addition(*epoch_sum, source),
        }
    }

    /// Merges all that another state was merged of, siblings apart.
    pub(crate) fn join(&mut self, other: &State) {
        // A removal comes before what its own write has put behind it.
        if let Some((removals, observed, seen)) = other.removed() {
            for by in removals {
                self.merge_removal(observed, seen, by);
            }
        }
        for one in other.undominated() {
            self.merge_put(one.base.value.as_ref(), &one.seen, &one.base.source(), Bytes::clone);
        }
        let nothing = Seen::new();
        if other.stands() {
            let seen = other.counter.as_ref().map_or(&nothing, |counter| &counter.seen);
            self.merge_put(other.base.value.as_ref(), seen, &other.base.source(), Bytes::clone);
        }
        for addition in other.counter.iter().flat_map(|counter| &counter.additions) {
            self.merge_addition(addition.epoch_sum, &addition.source());
        }
    }

    pub(crate) fn merge_addition(&mut self, epoch_sum: EpochSum, source: &Source) -> Outcome {
        let datacenter = epoch_sum.epoch.datacenter;
        let addition = Addition {
            datacenter,
            stamp: source.stamp,
            operation: source.operation,
            dependencies: source.dependencies.clone(),
            epoch_sum,
        };
        let additions = &mut self.counter.get_or_insert_default().additions;
        match additions.binary_search_by_key(&datacenter, |a| a.datacenter) {
            Ok(at) if additions[at].is_at_least(&addition) => return Outcome::Lost,
            Ok(at) => additions[at] = addition,
            Err(at) => crate::counted::insert_exactly(additions, at, addition),
        }
        Outcome::Won
    }

    /// Bytes of what the writes that made this carry.
    pub(crate) fn dependency_bytes(&self) -> u64 {
        let bytes = |carried: &Option<Arc<Carried>>| carried.as_ref().map_or(0, |carried| carried.bytes());
        let of_all = |counter: &Counter| counter.additions.iter().map(|one| bytes(&one.dependencies)).sum();
        let additions: u64 = self.counter.as_deref().map_or(0, of_all);
        let undominated = self.undominated.as_ref().map_or(0, |undominated| undominated.dependency_bytes());
        bytes(&self.base.dependencies) + additions + undominated
    }

    /// Forgets what those writes carry of which that need not be known.
    pub(crate) fn forget_dependencies(&mut self, forgets: &Forgets<'_>) {
        let forget = |operation: OperationId, stamp: Stamp, carried: &mut Option<Arc<Carried>>| {
            drop(carried.take_if(|carried| forgets(&operation, stamp, carried.causes())));
        };
        for addition in self.counter.iter_mut().flat_map(|counter| &mut counter.additions) {
            forget(addition.operation, addition.stamp, &mut addition.dependencies);
        }
        let others = self.undominated.as_mut().map(|undominated| undominated.bases_mut());
        for base in others.into_iter().flatten().chain([&mut self.base]) {
            forget(base.operation, base.stamp, &mut base.dependencies);
        }
        for by in self.undominated.iter_mut().flat_map(|undominated| undominated.removals_mut()) {
            forget(by.operation, by.stamp, &mut by.dependencies);
        }
    }

    /// Notes what a write of this stamp carries.
    pub(crate) fn carry(&mut self, stamp: Stamp, dependencies: &Arc<Carried>) {
        if self.base.stamp == stamp {
            self.base.dependencies = Some(dependencies.clone());
        }
        // A write that has just been evaluated is above all others, and may be a removal.
        let removals = self.undominated.iter_mut().flat_map(|undominated| undominated.removals_mut());
        for removal in removals.filter(|removal| removal.stamp == stamp) {
            removal.dependencies = Some(dependencies.clone());
        }
        for addition in self.counter.iter_mut().flat_map(|counter| &mut counter.additions) {
            if addition.stamp == stamp {
                addition.dependencies = Some(dependencies.clone());
            }
        }
    }
}

/// Adds an epoch's sum to those seen; of one datacenter the latest counts.
pub fn see(seen: &mut Seen, latest: SeenSum) {
    match seen.iter_mut().find(|known| known.datacenter == latest.datacenter) {
        Some(known) if (known.epoch_sum.epoch, known.stamp) < (latest.epoch_sum.epoch, latest.stamp) => {
            *known = latest;
        }
        Some(_) => {}
        None => crate::counted::insert_exactly(seen, seen.len(), latest),
    }
}

/// A write that made a state, as it is kept there.
#[derive(Clone, Copy, Debug)]
pub struct SourceRef<'a> {
    pub operation: OperationId,
    stamp: Stamp,
    dependencies: &'a Option<Arc<Carried>>,
}

impl<'a> SourceRef<'a> {
    fn of(source: &'a Source) -> SourceRef<'a> {
        let Source { operation, stamp, dependencies } = source;
        SourceRef { operation: *operation, stamp: *stamp, dependencies }
    }

    pub fn to_source(self) -> Source {
        Source { operation: self.operation, stamp: self.stamp, dependencies: self.dependencies.clone() }
    }
}

impl Base {
    fn source_ref(&self) -> SourceRef<'_> {
        SourceRef { operation: self.operation, stamp: self.stamp, dependencies: &self.dependencies }
    }

    pub fn source(&self) -> Source {
        self.source_ref().to_source()
    }
}

impl Addition {
    fn source_ref(&self) -> SourceRef<'_> {
        SourceRef { operation: self.operation, stamp: self.stamp, dependencies: &self.dependencies }
    }

    pub fn source(&self) -> Source {
        self.source_ref().to_source()
    }

    /// Series follow each other in time; within an epoch the later addition has the later stamp.
    pub(crate) fn is_at_least(&self, other: &Addition) -> bool {
        (self.epoch_sum.epoch, self.stamp) > (other.epoch_sum.epoch, other.stamp)
            || (self.stamp == other.stamp && self.epoch_sum == other.epoch_sum)
    }
}

/// What a value or a tombstone shows that had seen these additions, when all of those have come.
pub(crate) fn content_of(value: Option<&Bytes>, seen: &Seen, additions: &[Addition]) -> Content {
    let mut sum = match value.map(|value| (value, Decimal::parse_nearest(value))) {
        Some((value, None)) => return Content::Bytes(value.clone()),
        Some((_, Some(number))) => number,
        None => Decimal::ZERO,
    };
    let mut unseen = false;
    for addition in additions {
        let covered = covered(seen, addition);
        unseen |= covered.1;
        sum = Decimal(sum.0.saturating_add(addition.epoch_sum.sum.0).saturating_sub(covered.0.0));
    }
    match (value, unseen) {
        (None, false) => Content::Nothing,
        (Some(value), false) => Content::Bytes(value.clone()),
        (_, true) => Content::Number(sum),
    }
}

/// How much of a datacenter's sum a base covers that had seen these, and whether there is an addition that it does not
/// cover.
pub(crate) fn covered(seen: &Seen, addition: &Addition) -> (Decimal, bool) {
    let own = seen.iter().find(|s| s.datacenter == addition.datacenter);
    let every = seen.iter().find(|s| s.datacenter == DatacenterId::EVERY);
    if every.is_some_and(|every| addition.stamp <= every.stamp) && Rule::BaseCoversSeenAdditions.holds() {
        return (addition.epoch_sum.sum, false);
    }
    match own {
        Some(_) if !Rule::BaseCoversSeenAdditions.holds() => (Decimal::ZERO, true),
        // The base had seen a later addition, or a later epoch, than has arrived here by itself.
        Some(own) if (own.epoch_sum.epoch, own.stamp) >= (addition.epoch_sum.epoch, addition.stamp) => {
            (addition.epoch_sum.sum, false)
        }
        Some(own) if own.epoch_sum.epoch == addition.epoch_sum.epoch => (own.epoch_sum.sum, true),
        _ => (Decimal::ZERO, true),
    }
}

/// Whether a base that had seen these covers an addition only as one of every datacenter's.
fn covers_unnamed(seen: &Seen, addition: &Addition) -> bool {
    let every = seen.iter().any(|s| s.datacenter == DatacenterId::EVERY && addition.stamp <= s.stamp);
    let latest = (addition.epoch_sum.epoch, addition.stamp);
    let names = |s: &SeenSum| s.datacenter == addition.datacenter && (s.epoch_sum.epoch, s.stamp) >= latest;
    every && !seen.iter().any(names)
}

impl Cell {
    /// A location that nobody has written, known to be empty since `since`.
    pub fn new(since: LogicalTime) -> Cell {
        Cell { since, state: State::empty(), history: Vec::new(), versions: None }
    }

    /// A location with a value, of which nothing else is known.
    pub(crate) fn of_base(since: LogicalTime, base: Base) -> Cell {
        Cell::of_state(since, State { base, counter: None, siblings: None, undominated: None })
    }

    /// A location in a state, of which nothing else is known.
    pub(crate) fn of_state(since: LogicalTime, state: State) -> Cell {
        Cell { since, state, history: Vec::new(), versions: None }
    }

    /// Its state, if that is its base and additions, and nothing else is known.
    pub(crate) fn as_undisputed(&self) -> Option<&State> {
        let State { siblings, undominated, .. } = &self.state;
        let is_alone = siblings.is_none() && undominated.is_none();
        (is_alone && self.history.is_empty() && self.versions.is_none()).then_some(&self.state)
    }

    /// The same, if that is its base alone.
    pub(crate) fn as_plain(&self) -> Option<&State> {
        self.as_undisputed().filter(|state| state.counter.is_none())
    }

    pub fn since(&self) -> LogicalTime {
        self.since
    }

    /// The newest state: everything merged.
    pub fn state(&self) -> &State {
        &self.state
    }

    pub fn has_history(&self) -> bool {
        !self.history.is_empty()
    }

    /// What is not settled yet, if there is any.
    pub fn versions(&self) -> Option<&Versions> {
        self.versions.as_deref()
    }

    /// How many versions are not settled yet.
    pub fn unsettled(&self) -> usize {
        self.versions.as_ref().map_or(0, |versions| versions.len())
    }

    /// Merges a write. The state before it is kept if its history is and if it had been visible at an earlier time.
    pub fn apply(&mut self, effect: &Effect, write: &Write, keep: Keep<'_>) -> Outcome {
        let before = (keep.history && write.at > self.since).then(|| self.state.clone());
        let source = write.source();
        let outcome = if keep.versions {
            let effect = detached(effect);
            let versions = self.versions.get_or_insert_with(|| Versions::after(&self.state, self.since));
            let outcome = self.state.merge(&effect, &source, Bytes::clone);
            if source.stamp < keep.flushed && matches!(effect, Effect::Put { .. }) {
                versions.hide_below(keep.flushed);
                self.state.hide_below(keep.flushed);
            }
            versions.push(Version { source, at: write.at, effect: Some(effect) });
            outcome
        } else if let Some(conflicts) = keep.siblings {
            self.state.merge_beside(effect, &source, conflicts)
        } else {
            self.state.merge(effect, &source, |value| Bytes::copy_from_slice(value))
        };
        if outcome == Outcome::Won {
            if let Some(before) = before {
                self.history.push((self.since, before));
            }
            self.since = self.since.max(write.at);
        }
        outcome
    }

    /// Merges a write that is settled: every view shows it.
    pub fn restore(&mut self, effect: &Effect, write: &Write, keep: Keep<'_>) -> Outcome {
        let source = write.source();
        if let Some(versions) = &mut self.versions {
            versions.restore(effect, &source, write.at);
        }
        let outcome = match keep.siblings {
            Some(conflicts) => self.state.merge_beside(effect, &source, conflicts),
            None => self.state.merge(effect, &source, |value| Bytes::copy_from_slice(value)),
        };
        if outcome == Outcome::Won {
            self.since = self.since.max(write.at);
        }
        outcome
    }

    /// Takes the base's value away because a flush with a higher stamp has come; its stamp and what it saw stay, so
    /// that arbitration among flushed writes ends the same everywhere.
    pub fn flush(&mut self, flush: &Write, keep: Keep<'_>) -> Outcome {
        if keep.versions && self.has_base_below(flush.stamp) {
            let versions = self.versions.get_or_insert_with(|| Versions::after(&self.state, self.since));
            versions.push(Version { source: flush.source(), at: flush.at, effect: None });
        }
        let before = (keep.history && flush.at > self.since).then(|| self.state.clone());
        let fold = keep.siblings.map(|conflicts| conflicts.fold);
        let hidden = match fold {
            Some(fold) => self.state.hide_all_below(flush.stamp, fold),
            None => self.state.hide_below(flush.stamp),
        };
        if !hidden {
            return Outcome::Lost;
        }
        if let Some(before) = before {
            self.history.push((self.since, before));
        }
        self.since = self.since.max(flush.at);
        Outcome::Won
    }

    /// Whether some view shows a base value below this stamp.
    fn has_base_below(&self, stamp: Stamp) -> bool {
        match &self.versions {
            None => self.state.has_put_below(stamp),
            Some(versions) => versions.has_base_below(stamp),
        }
    }

    /// Whether nothing would be missed if the cell were not there: a tombstone whose counter, if it is one, adds up
    /// to nothing unseen, that ends nothing which may still come, and that no second round may ask for.
    pub fn is_spent(&self) -> bool {
        self.history.is_empty()
            && self.versions.is_none()
            && self.state.undominated.is_none()
            && self.is_dead()
    }

    /// See `State::note_undominated`.
    pub(crate) fn note_undominated(&mut self) -> Option<(u32, Stamp)> {
        self.state.note_undominated()
    }

    pub(crate) fn unnote_undominated(&mut self) {
        self.state.unnote_undominated();
    }

    /// Forgets what a removal might bring back, and what removals had observed.
    pub(crate) fn forget_undominated(&mut self) {
        self.state.forget_undominated();
    }

    /// Whether nothing is shown here and no value is kept: tombstones alone.
    pub fn is_dead(&self) -> bool {
        !self.state.is_live() && !self.state.holds_a_value()
    }

    /// What a view shows; nothing if it is a past time of which the state is no longer known.
    #[inline]
    pub fn at(&self, view: View<'_>) -> Option<Shown<'_>> {
        let is_newest = match view {
            View::At(at) | View::With(at, _) => self.since <= at,
            View::Newest => true,
            View::Visibility(_) | View::Writer(..) => self.versions.is_none(),
        };
        if is_newest { Some(self.newest()) } else { self.other_than_newest(view) }
    }

    fn newest(&self) -> Shown<'_> {
        Shown { since: self.since, state: ShownState::Kept(&self.state), stale: false }
    }

    #[cold]
    fn other_than_newest(&self, view: View<'_>) -> Option<Shown<'_>> {
        match (view, &self.versions) {
            (View::At(at) | View::With(at, _), Some(versions)) if versions.settled().1 <= at => {
                Some(versions.shown(view).unwrap_or(self.newest()))
            }
            (View::At(at) | View::With(at, _), _) => {
                let (since, state) = self.history.iter().rev().find(|(since, _)| *since <= at)?;
                Some(Shown { since: *since, state: ShownState::Kept(state), stale: false })
            }
            (view, Some(versions)) => Some(versions.shown(view).unwrap_or(self.newest())),
            (_, None) => Some(self.newest()),
        }
    }

    /// The additions that a base written now, in this view, must cover. What it does not see and overwrites all the
    /// same, a newer base, had seen some too; elsewhere those may be forgotten already, so they are covered with it.
    pub(crate) fn seen(&self, view: View<'_>) -> Seen {
        let Some(shown) = self.at(view) else { return self.state.seen() };
        let mut seen = shown.state.seen();
        if self.versions.is_some() {
            for seen_sum in self.state.counter.iter().flat_map(|counter| &counter.seen) {
                see(&mut seen, *seen_sum);
            }
        }
        seen
    }

    /// What a removal ends that is made now, in this view: the puts that it shows and what those had won against, and
    /// what was forgotten, which every view had shown. What the view hides is not observed, even if it lost to what is
    /// shown: a causal view may hide it because what it had overwritten has not come, and without its winner that
    /// would be shown once more where it has.
    pub(crate) fn observed(&self, view: View<'_>, forgotten: Stamp) -> Observed {
        let mut observed = Observed::default();
        let all = |state: &State, observed: &mut Observed| {
            state.standing().for_each(|put| observed.see(put));
            // What is gone here already may not be elsewhere, where this removal can come before the one that ended it.
            state.removed().into_iter().for_each(|(_, known, _)| observed.join(known));
        };
        let hiding = self.versions.as_ref().filter(|versions| !versions.shows_all(view));
        let Some(versions) = hiding else {
            all(&self.state, &mut observed);
            observed.see_all_through(forgotten);
            return observed;
        };
        all(versions.settled().0, &mut observed);
        for version in versions.unsettled() {
            let Version { source, at, effect } = version;
            if !view.is_visible(source, *at) {
                let is_spared = source.stamp > forgotten || !Rule::ForgetWhatEveryViewShows.holds();
                debug_assert!(is_spared, "{forgotten:?} was forgotten, and a view hides {version:?}");
                continue;
            }
            match effect {
                Some(Effect::Put { over, .. }) => {
                    observed.see(source.stamp);
                    over.iter().for_each(|known| observed.join(known));
                }
                Some(Effect::Delete { .. }) => observed.see(source.stamp),
                Some(Effect::Remove { observed: known, .. }) => observed.join(known),
                Some(Effect::Add { .. }) | None => {}
            }
        }
        observed.see_all_through(forgotten);
        observed
    }

    /// What a value of a datacenter replaces of the others that is put now, in this view: what the view shows, and what
    /// is gone here already, seen or not. Who ends this value alone must not bring any of it back where it is not gone
    /// yet.
    pub(crate) fn overwritten(&self, view: View<'_>, by: DatacenterId) -> Over {
        let removed = self.state.removed();
        let known = removed.map_or(&[][..], |(_, known, _)| known.puts());
        // What its remover had forgotten it does not name, and the view may show it.
        let names_all = removed.is_none_or(|(_, known, _)| known.through() == Stamp::ZERO);
        let is_own = |put: Stamp| put.datacenter == by;
        if names_all && self.state.standing().all(is_own) && known.iter().copied().all(is_own) {
            // Whatever else a view may show stands in the newest state, too, or is known to be gone from it.
            debug_assert!(self.at(view).is_none_or(|shown| shown.state.standing().all(is_own)));
            return None;
        }
        let mut over = Observed::default();
        let shown = self.at(view);
        let standing = shown.iter().flat_map(|shown| shown.state.standing());
        standing
            .chain(known.iter().copied())
            .filter(|put| put.datacenter != by)
            .for_each(|put| over.see(put));
        (!over.puts().is_empty()).then(|| Box::new(over))
    }

    /// Forgets every state but the present one.
    pub fn forget_history(&mut self) {
        self.history = Vec::new();
    }

    /// Folds what is settled.
    pub(crate) fn settle(&mut self, settled: &dyn Visibility) {
        if self.versions.as_mut().is_some_and(|versions| versions.settle(settled) == 0) {
            self.versions = None;
        }
    }

    /// Takes out the writes that are as if they had never been.
    pub(crate) fn discard(&mut self, discarded: &dyn Fn(&Source) -> bool) -> Vec<Version> {
        let Some(versions) = &mut self.versions else { return Vec::new() };
        let (gone, mut state) = versions.discard(discarded);
        if !gone.is_empty() {
            state.change_after(&self.state);
            self.state = state;
        }
        if versions.len() == 0 {
            self.versions = None;
        }
        gone
    }

    /// Notes what a write of this stamp carries, which is known only after it was evaluated.
    pub(crate) fn carry(&mut self, stamp: Stamp, dependencies: &Arc<Carried>) {
        self.state.carry(stamp, dependencies);
        if let Some(versions) = &mut self.versions {
            versions.carry(stamp, dependencies);
        }
    }

    /// Forgets what settled values depend on; says how many bytes that was.
    pub(crate) fn forget_dependencies(&mut self, forgets: &Forgets<'_>) -> u64 {
        let before = self.dependency_bytes();
        if before > 0 {
            self.state.forget_dependencies(forgets);
            self.versions.iter_mut().for_each(|versions| versions.forget_dependencies(forgets));
        }
        before - self.dependency_bytes()
    }

    /// Bytes of the value and of all versions, apart from what they carry.
    pub(crate) fn bytes_beside_dependencies(&self) -> u64 {
        let value = self.state.base.value.as_ref().map_or(0, |value| value.len() as u64);
        let counter = self.state.counter.as_ref().map_or(0, |counter| counter.bytes());
        let siblings = self.state.siblings.as_ref().map_or(0, |siblings| siblings.bytes());
        let undominated = self.state.undominated.as_ref().map_or(0, |undominated| undominated.bytes());
        let versions = self.versions.as_ref().map_or(0, |versions| versions.bytes());
        value + counter + siblings + undominated + versions
    }

    /// Bytes of what they carry. The newest value shares it with its version.
    pub(crate) fn dependency_bytes(&self) -> u64 {
        match &self.versions {
            Some(versions) => versions.dependency_bytes(),
            None => self.state.dependency_bytes(),
        }
    }
}

/// An effect with its own bytes, so that it does not keep a client's whole read buffer alive.
fn detached(effect: &Effect) -> Effect {
    match effect {
        Effect::Put { value, seen, over } => {
            Effect::Put { value: Bytes::copy_from_slice(value), seen: seen.clone(), over: over.clone() }
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests;
