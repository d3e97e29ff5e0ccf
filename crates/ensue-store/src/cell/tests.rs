//! When a tombstone is spent, and what a flush hides.

use super::*;
use ensue_types::{Incarnation, PartitionId, Position};

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
    }
    let mut settled = Cell::new(LogicalTime(1));
    put(&mut settled, 5, Keep::default());
    delete(&mut settled, 9, VERSIONS);
    let is_below = |stamp: u64| settled.has_base_below(write(stamp).stamp);
    assert_eq!([4, 5, 6].map(is_below), [false, false, true], "a settled value below a version");
}
