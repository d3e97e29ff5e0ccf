//! When a tombstone is spent, and what a flush hides.

use super::*;
use ensue_types::{Causes, Column, Incarnation, Opaque, PartitionId, Position};

fn write(at: u64) -> Write {
    let operation = OperationId {
        datacenter: DatacenterId(0),
        incarnation: Incarnation(1),
        partition: PartitionId(0),
        position: Position(at),
    };
    let stamp = Stamp { time: LogicalTime(at), ..Stamp::ZERO };
    Write { stamp, at: LogicalTime(at), operation, dependencies: None }
}

fn put(cell: &mut Cell, at: u64, keep: Keep<'_>) {
    let effect = Effect::Put { value: Bytes::from_static(b"x"), seen: Seen::default(), over: None };
    cell.apply(&effect, &write(at), keep);
}

fn delete(cell: &mut Cell, at: u64, keep: Keep<'_>) {
    cell.apply(&Effect::Delete { seen: Seen::default() }, &write(at), keep);
}

const HISTORY: Keep<'static> = Keep { history: true, versions: false, siblings: None, flushed: Stamp::ZERO };
const VERSIONS: Keep<'static> = Keep { history: false, versions: true, siblings: None, flushed: Stamp::ZERO };

#[test]
fn a_tombstone_is_spent_when_nobody_may_ask_for_more() {
    for keep in [Keep::default(), HISTORY, VERSIONS] {
        let mut cell = Cell::new(LogicalTime(1));
        put(&mut cell, 2, keep);
        assert!(!cell.is_spent(), "a value");
        delete(&mut cell, 3, keep);
        assert_eq!(cell.is_spent(), !keep.history && !keep.versions);
    }
}

#[test]
fn a_flush_does_not_meet_what_was_written_with_it() {
    for keep in [Keep::default(), VERSIONS] {
        let mut cell = Cell::new(LogicalTime(1));
        put(&mut cell, 5, keep);
        let is_below = |stamp: u64| cell.has_base_below(write(stamp).stamp);
        assert_eq!([4, 5, 6].map(is_below), [false, false, true]);
        assert_eq!(cell.flush(&write(5), keep), Outcome::Lost);
        assert!(cell.state().is_live());
    }
    let mut settled = Cell::new(LogicalTime(1));
    put(&mut settled, 5, Keep::default());
    delete(&mut settled, 9, VERSIONS);
    let is_below = |stamp: u64| settled.has_base_below(write(stamp).stamp);
    assert_eq!([4, 5, 6].map(is_below), [false, false, true], "a settled value below a version");
}

/// A removal of another datacenter that comes late counts from when on it came, if anything is gone by it.
#[test]
fn a_late_removal_changes_what_is_shown_where_it_covers_an_addition_and_only_there() {
    let mut cell = Cell::new(LogicalTime(1));
    let of = |datacenter, time| Stamp {
        datacenter: DatacenterId(datacenter),
        time: LogicalTime(time),
        ..Stamp::ZERO
    };
    let mut apply = |stamp: Stamp, at: u64, effect: Effect| {
        cell.apply(&effect, &Write { stamp, ..write(at) }, HISTORY);
        cell.since()
    };
    let removal = |seen: Seen| Effect::Remove { observed: Observed::default(), seen };
    let epoch_sum = EpochSum { epoch: of(2, 3), sum: Decimal::from_integer(7) };
    let seen = SeenSum { datacenter: DatacenterId(2), epoch_sum, stamp: of(2, 3) };
    assert_eq!(apply(of(0, 10), 10, removal(Seen::new())), LogicalTime(10));
    assert_eq!(apply(of(2, 3), 11, Effect::Add { epoch_sum }), LogicalTime(11));
    assert_eq!(apply(of(1, 4), 12, removal(Seen::new())), LogicalTime(11), "it had not seen the addition");
    assert_eq!(apply(of(1, 5), 13, removal([seen].into())), LogicalTime(13));
    assert_eq!(apply(of(1, 5), 14, removal([seen].into())), LogicalTime(13), "it has come before");
    let content = |at| cell.at(View::At(LogicalTime(at))).map(|shown| shown.state.content());
    assert_eq!(content(12), Some(Content::Number(Decimal::from_integer(7))));
    assert_eq!(content(13), Some(Content::Nothing));
}

/// What an unsettled write carries stays: its reader may lack what it names.
#[test]
fn what_a_settled_value_carries_is_forgotten_beside_one_that_is_not_settled() {
    let carried = Arc::new(Carried::new(Causes::Extension(Opaque(vec![7; 9]))));
    let carrying = |at| Write { dependencies: Some(carried.clone()), ..write(at) };
    let mut cell = Cell::new(LogicalTime(1));
    let value = Effect::Put { value: Bytes::from_static(b"x"), seen: Seen::default(), over: None };
    for at in [2, 3] {
        cell.apply(&value, &carrying(at), VERSIONS);
    }
    let is_settled = |stamp: Stamp| stamp.time <= LogicalTime(2);
    cell.settle(&|source: &Source| is_settled(source.stamp));
    assert_eq!((cell.unsettled(), cell.dependency_bytes()), (1, 2 * carried.bytes()));
    assert_eq!(cell.forget_dependencies(&|_, stamp, _| is_settled(stamp)), carried.bytes());
    assert_eq!(cell.dependency_bytes(), carried.bytes());
    assert!(
        cell.versions()
            .is_some_and(|versions| versions.unsettled().all(|one| one.source.dependencies.is_some()))
    );
}

#[test]
fn what_datacenters_have_added_is_counted() {
    use crate::counted::Counted;
    let mut cell = Cell::new(LogicalTime(1));
    let counted = |cell: &Cell| Counted::of(&Column::Text, cell).bytes as usize;
    let empty = counted(&cell);
    for datacenter in 0..3 {
        let Write { stamp, operation, .. } = write(10 + u64::from(datacenter));
        let (stamp, datacenter) =
            (Stamp { datacenter: DatacenterId(datacenter), ..stamp }, DatacenterId(datacenter));
        let write = Write { stamp, operation: OperationId { datacenter, ..operation }, ..write(10) };
        let epoch_sum = EpochSum { epoch: stamp, sum: Decimal(7) };
        cell.apply(&Effect::Add { epoch_sum }, &write, Keep::default());
    }
    let added = size_of::<Counter>() + 3 * size_of::<Addition>();
    assert_eq!(counted(&cell), empty + added);
    let seen = cell.state().seen();
    let base = Effect::Put { value: Bytes::from_static(b"9"), seen, over: None };
    cell.apply(&base, &write(20), Keep::default());
    assert_eq!(counted(&cell), empty + added + 3 * size_of::<SeenSum>() + 1);
}
