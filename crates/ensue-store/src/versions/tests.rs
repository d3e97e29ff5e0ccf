//! Versions against a list of all writes that is merged anew for every view.

use super::*;
use crate::cell::Content;
use ensue_types::{
    Beyond, Causes, DatacenterId, Decimal, EpochSum, HereSince, Observed, OperationId, Vector,
};
use proptest::prelude::*;

const DATACENTERS: u8 = 3;

/// What a protocol with vectors shows.
#[derive(Clone, Debug)]
struct Snapshot(TimeVector);

impl Visibility for Snapshot {
    fn is_visible(&self, source: &Source, _since: LogicalTime) -> bool {
        let carried = &source.carried().times().expect("every version carries times").times;
        source.stamp.time <= self.0.at(source.stamp.datacenter) && self.0.covers(carried)
    }

    fn shows_all(&self, within: &Within) -> bool {
        self.0.covers(&within.times)
    }

    fn hides_all(&self, beyond: &Beyond) -> bool {
        self.0.at(beyond.datacenter) < beyond.time
    }
}

/// The same, version by version.
struct Slow<'a>(&'a dyn Visibility);

impl Visibility for Slow<'_> {
    fn is_visible(&self, source: &Source, since: LogicalTime) -> bool {
        self.0.is_visible(source, since)
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// A write of a datacenter so much later, or earlier, than its last, that has seen so much less than all.
    Write {
        datacenter: u8,
        kind: u8,
        later: i8,
        unseen: [u8; 3],
    },
    /// One that was here before arrives again.
    Again(prop::sample::Index),
    Look([u8; 3]),
    LookBack(u8),
    Settle([u8; 3]),
    SettleOld(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let lag = || prop::array::uniform3(0..30_u8);
    prop_oneof![
        12 => (0..DATACENTERS, 0..9_u8, -3..9_i8, lag())
            .prop_map(|(datacenter, kind, later, unseen)| Step::Write { datacenter, kind, later, unseen }),
        1 => any::<prop::sample::Index>().prop_map(Step::Again),
        4 => lag().prop_map(Step::Look),
        2 => (0..60_u8).prop_map(Step::LookBack),
        1 => lag().prop_map(Step::Settle),
        1 => (20..80_u8).prop_map(Step::SettleOld),
    ]
}

/// Everything that ever arrived, and the versions that are tested.
struct Model {
    all: Vec<Version>,
    versions: Box<Versions>,
    floor: TimeVector,
    /// What has been here since then is settled, too.
    old: LogicalTime,
    latest: TimeVector,
    clock: u64,
}

impl Model {
    fn new() -> Model {
        let versions = Versions::after(&State::empty(), LogicalTime::ZERO);
        let (floor, latest) = (TimeVector::ZERO, TimeVector::ZERO);
        Model { all: Vec::new(), versions, floor, old: LogicalTime::ZERO, latest, clock: 0 }
    }

    /// All that was written but for the latest, and not less than the floor.
    fn behind(&self, by: [u8; 3]) -> TimeVector {
        let late = |(datacenter, time): (DatacenterId, LogicalTime)| {
            LogicalTime(time.0.saturating_sub(by[usize::from(datacenter.0)].into()))
        };
        let mut times: TimeVector = self.latest.entries().map(late).collect();
        times.join(&self.floor);
        times
    }

    fn write(&mut self, datacenter: u8, kind: u8, later: i8, unseen: [u8; 3]) {
        self.clock += 1;
        let own = DatacenterId(datacenter);
        let floor = self.floor.at(own).0 as i64 + 1;
        let time = LogicalTime((self.latest.at(own).0 as i64 + i64::from(later)).max(floor) as u64);
        let stamp = Stamp { datacenter: own, time, ..Stamp::ZERO };
        let mut times = self.behind(unseen);
        times.raise(own, time);
        let carried = Causes::from(Vector { times, ..Vector::default() });
        let dependencies = Some(Arc::new(Carried::new(carried)));
        let source = Source { operation: OperationId::default(), stamp, dependencies };
        let effect = match kind {
            0 => None,
            1..4 => {
                Some(Effect::Put { value: Bytes::from(time.0.to_string()), seen: Vec::new(), over: None })
            }
            4 => Some(Effect::Delete { seen: Vec::new() }),
            _ => {
                let epoch = Stamp { datacenter: own, time: LogicalTime(1), ..Stamp::ZERO };
                Some(Effect::Add { epoch_sum: EpochSum { epoch, sum: Decimal(time.0.into()) } })
            }
        };
        self.latest.raise(own, time);
        self.push(Version { source, at: LogicalTime(self.clock), effect });
    }

    fn push(&mut self, mut version: Version) {
        let flushes = self.all.iter().filter(|known| known.effect.is_none() && self.is_settled(known));
        let flushed = flushes.map(|flush| flush.source.stamp).max().unwrap_or(Stamp::ZERO);
        if version.source.stamp < flushed && matches!(version.effect, Some(Effect::Put { .. })) {
            // A keyspace hides what comes late below a flush that every reader sees.
            version.effect = Some(Effect::Delete { seen: Vec::new() });
        }
        let known = self.all.iter().position(|known| version.replaces(known));
        if known.is_some_and(|known| self.is_settled(&self.all[known])) {
            return;
        }
        match known.map(|known| &mut self.all[known]) {
            Some(known) => *known = version.clone(),
            None => self.all.push(version.clone()),
        }
        self.versions.push(version);
    }

    /// When nothing is left, the newest state is what is settled.
    fn settle(&mut self, settled: &dyn Visibility) {
        if self.versions.settle(settled) == 0 {
            let (state, since, _) = self.merged(|_| true);
            self.versions = Versions::after(&state, since);
        }
    }

    fn is_settled(&self, version: &Version) -> bool {
        version.at <= self.old || Snapshot(self.floor.clone()).is_visible(&version.source, version.at)
    }

    fn merged(&self, shows: impl Fn(&Version) -> bool) -> (State, LogicalTime, Stamp) {
        let mut merged = Merged::nothing();
        self.all.iter().filter(|version| shows(version)).for_each(|version| merged.add(version));
        merged.finish()
    }

    fn look(&self, view: View<'_>) {
        let shows =
            |version: &Version| self.is_settled(version) || view.is_visible(&version.source, version.at);
        let (state, since, _) = self.merged(shows);
        let hidden: Vec<&Version> = self.all.iter().filter(|version| !shows(version)).collect();
        if let Some(shown) = self.versions.shown(view) {
            assert_eq!(content(&shown.state), content(&state));
            assert_eq!(shown.state.newest(), state.newest());
            assert_eq!(shown.since, since);
        } else {
            assert!(hidden.is_empty(), "{hidden:?} is shown");
        }
        let additions = hidden.iter().filter(|version| matches!(version.effect, Some(Effect::Add { .. })));
        let lowest = additions.map(|version| version.source.stamp).min();
        assert_eq!(self.versions.lowest_hidden_addition(view), lowest);
    }

    fn check(&self) {
        let unsettled = self.all.iter().filter(|version| !self.is_settled(version)).count();
        assert_eq!(self.versions.len(), unsettled);
        assert_eq!(self.versions.unsettled().count(), unsettled);
        let mut sizes = Sizes::default();
        self.versions.unsettled().for_each(|version| sizes.add(version));
        assert_eq!(self.versions.sizes, sizes);
        assert_eq!(content(self.versions.settled().0), content(&self.merged(|v| self.is_settled(v)).0));
    }
}

fn content(state: &State) -> (Content, Stamp) {
    (state.content(), state.base.stamp)
}

#[test]
fn what_a_write_carries_is_counted_once() {
    let mut model = Model::new();
    model.write(0, 4, 1, [0; 3]);
    let (mut versions, mut version) = (model.versions, model.all.remove(0));
    let before = versions.dependency_bytes();
    version.source.stamp.time = LogicalTime(90);
    let (stamp, carried) = (version.source.stamp, version.source.dependencies.take().expect("a vector"));
    versions.push(version);
    assert_eq!(versions.dependency_bytes(), before);
    for _ in 0..2 {
        versions.carry(stamp, &carried);
        assert_eq!(versions.dependency_bytes(), before + carried.bytes());
    }
    assert!(carried.bytes() > 0);
}

/// What stands beside a settled value counts against the limit of memory.
#[test]
fn what_an_unsettled_write_holds_is_counted() {
    let counted = |effect| {
        let mut versions = Versions::after(&State::empty(), LogicalTime::ZERO);
        let source = Source { operation: OperationId::default(), stamp: Stamp::ZERO, dependencies: None };
        versions.push(Version { source, at: LogicalTime(1), effect });
        versions.bytes()
    };
    let put = |over| Some(Effect::Put { value: Bytes::from_static(b"seven b"), seen: Vec::new(), over });
    let mut observed = Observed::default();
    (1..3).for_each(|of| observed.see(Stamp { datacenter: DatacenterId(of), ..Stamp::ZERO }));
    let names = (2 * size_of::<Stamp>()) as u64;
    let nothing = counted(Some(Effect::Delete { seen: Vec::new() }));
    assert_eq!(counted(None), nothing);
    assert_eq!(counted(put(None)), nothing + 7);
    assert_eq!(counted(put(Some(Box::new(observed.clone())))), nothing + 7 + names);
    assert_eq!(counted(Some(Effect::Remove { observed, seen: Vec::new() })), nothing + names);
}

/// Its last effects may be many, and what it carries is known after all of them.
#[test]
fn what_a_write_carries_is_noted_with_all_that_it_did() {
    let mut model = Model::new();
    model.write(0, 4, 1, [0; 3]);
    let (mut versions, mut version) = (model.versions, model.all.remove(0));
    version.source.stamp.time = LogicalTime(90);
    let (stamp, carried) = (version.source.stamp, version.source.dependencies.take().expect("a vector"));
    let epoch_sum = EpochSum { epoch: stamp, sum: Decimal(1) };
    for effect in [version.effect.clone(), Some(Effect::Add { epoch_sum }), None] {
        versions.push(Version { effect, ..version.clone() });
    }
    assert!(versions.len() > LOOSE_MAX + 1);
    versions.carry(stamp, &carried);
    assert!(versions.unsettled().all(|version| version.source.dependencies.is_some()));
}

/// A transaction may put, remove and put again: what it did last counts for every view, and what it added besides.
#[test]
fn a_write_that_puts_removes_and_puts_again_shows_what_it_put_last() {
    let of = |time| Stamp { time: LogicalTime(time), ..Stamp::ZERO };
    let source = |stamp| Source { operation: OperationId::default(), stamp, dependencies: None };
    let put =
        |value: &'static [u8]| Effect::Put { value: Bytes::from_static(value), seen: Vec::new(), over: None };
    let removal = Effect::Remove { observed: Observed::default(), seen: Vec::new() };
    let added = Effect::Add { epoch_sum: EpochSum { epoch: of(5), sum: Decimal::from_integer(2) } };
    let mut versions = Versions::after(&State::empty(), LogicalTime::ZERO);
    let mut push = |stamp, effect| {
        versions.push(Version { source: source(stamp), at: LogicalTime(1), effect: Some(effect) });
        versions.len()
    };
    assert_eq!([put(b"1"), removal.clone(), put(b"3")].map(|effect| push(of(5), effect)), [1, 1, 2]);
    assert_eq!([added, removal].map(|effect| push(of(6), effect)), [3, 4], "an addition is no put");
    push(of(9), put(b"hidden"));
    let shown_through = |last: Stamp| {
        let visible = move |source: &Source| source.stamp <= last;
        versions.shown(View::Visibility(&visible)).map(|shown| shown.state.content())
    };
    assert_eq!(shown_through(of(5)), Some(Content::Bytes(Bytes::from_static(b"3"))));
}

#[test]
fn few_writes_stand_outside_blocks_and_few_are_looked_at_one_by_one() {
    let mut model = Model::new();
    for before in 0..3 * LOOSE_MAX {
        model.write(0, 1, 1, [0; 3]);
        assert_eq!(model.versions.loose.len(), before % LOOSE_MAX + 1, "a block is made when it is full");
        assert_eq!(model.versions.extent.is_some(), before + 1 > FEW, "how far few reach is not kept");
    }
}

/// Shows everything, and is not to be asked about a write.
struct Everything;

impl Visibility for Everything {
    fn is_visible(&self, source: &Source, _since: LogicalTime) -> bool {
        panic!("asked about {source:?}");
    }

    fn shows_all(&self, _within: &Within) -> bool {
        true
    }
}

#[test]
fn a_view_that_shows_all_is_not_asked_about_each_write() {
    let mut model = Model::new();
    (0..9).for_each(|kind| model.write(kind % DATACENTERS, kind, 1, [0; 3]));
    let view = View::Visibility(&Everything);
    assert!(model.versions.shown(view).is_none() && model.versions.lowest_hidden_addition(view).is_none());
}

/// A write that stands in a block arrives again, and not as it was. It counts as it arrived last, for every view.
#[test]
fn a_write_of_a_block_that_comes_again_otherwise_counts_as_it_came_last() {
    let again = |change: fn(&mut Version), view: View<'_>| {
        let mut model = Model { clock: 10, ..Model::new() };
        (0..3).for_each(|_| model.write(0, 1, 1, [0; 3]));
        let mut version = model.all[1].clone();
        change(&mut version);
        model.push(version);
        model.check();
        model.look(view);
    };
    let through =
        |time| Snapshot(TimeVector::from_iter([LogicalTime(time), LogicalTime::ZERO, LogicalTime::ZERO]));
    again(|version| version.at = LogicalTime(14), View::At(LogicalTime(13)));
    again(|version| version.at = LogicalTime(5), View::At(LogicalTime(5)));
    let carries_more = |version: &mut Version| {
        let times = TimeVector::from_iter([LogicalTime(2), LogicalTime(50)]);
        let carried = Causes::from(Vector { times, ..Vector::default() });
        version.source.dependencies = Some(Arc::new(Carried::new(carried)));
    };
    again(carries_more, View::Visibility(&through(3)));
    let puts_another = |version: &mut Version| {
        let value = Bytes::from_static(b"another");
        version.effect = Some(Effect::Put { value, seen: Vec::new(), over: None });
    };
    again(puts_another, View::Visibility(&through(2)));
}

proptest! {
    #[test]
    fn what_a_view_shows_does_not_depend_on_blocks(steps in prop::collection::vec(step(), 1..120)) {
        let mut model = Model::new();
        for step in steps {
            match step {
                Step::Write { datacenter, kind, later, unseen } => model.write(datacenter, kind, later, unseen),
                Step::Again(index) => {
                    let unsettled: Vec<Version> = model.versions.unsettled().cloned().collect();
                    if !unsettled.is_empty() {
                        model.push(unsettled[index.index(unsettled.len())].clone());
                    }
                }
                Step::Look(behind) => {
                    let snapshot = Snapshot(model.behind(behind));
                    model.look(View::Visibility(&snapshot));
                    model.look(View::Visibility(&Slow(&snapshot)));
                    if let Some(own) = model.all.last().map(|version| version.source.stamp) {
                        model.look(View::Writer(&snapshot, own));
                    }
                }
                Step::LookBack(ago) => {
                    let at = LogicalTime(model.clock.saturating_sub(ago.into())).max(model.old);
                    model.look(View::At(at));
                }
                Step::Settle(behind) => {
                    model.floor = model.behind(behind);
                    let floor = Snapshot(model.floor.clone());
                    model.settle(&floor);
                }
                Step::SettleOld(ago) => {
                    model.old = model.old.max(LogicalTime(model.clock.saturating_sub(ago.into())));
                    model.settle(&HereSince(model.old));
                }
            }
            model.check();
        }
    }
}
