//! Messages and reads made by hand.

use super::{StaleReads, Staleness};
use crate::oracle::history::{History, Outcome, PowerLost, Seen, Written};
use crate::oracle::property;
use bytes::Bytes;
use ensue_protocol::Promises;
use ensue_store::entry::{Change, Entry};
use ensue_store::layout::encode_entry;
use ensue_types::{
    Causes, Column, DatacenterId, Effect, Incarnation, KeyspaceId, LogicalTime, PartitionId, Position,
    RowEffect, Stamp,
};
use ensue_wire::message::{Address, Envelope, Message, StreamAcknowledge};

const PARTITION: PartitionId = PartitionId(0);

fn envelope(from: u8, to: u8, message: Message) -> Envelope {
    let address =
        |datacenter| Address::Partition { datacenter: DatacenterId(datacenter), partition: PARTITION };
    Envelope { from: address(from), to: address(to), time: LogicalTime(0), message }
}

/// Datacenter 0 sends `SET r0` by this operation at this position.
fn entry(writer: usize, position: u64) -> Envelope {
    entry_at(writer, position, 10 * position)
}

fn entry_at(writer: usize, position: u64, time: u64) -> Envelope {
    let effect =
        Effect::Put { value: Bytes::from(format!("v{writer}")), seen: Default::default(), over: None };
    let row = RowEffect { key: Bytes::from_static(b"r0"), column: Column::Text, effect };
    let stamp = Stamp { time: LogicalTime(time), datacenter: DatacenterId(0), partition: PARTITION };
    let change = Change::Effects { keyspace: KeyspaceId(0), transaction: None, effects: vec![row] };
    let entry = Entry {
        position: Position(position),
        stamp,
        dependencies: Causes::Nothing,
        change,
        previous: Vec::new(),
    };
    let entries = vec![encode_entry(&entry)];
    envelope(0, 1, Message::StreamEntries { incarnation: Incarnation(1), first: Position(position), entries })
}

fn acknowledgement(position: u64) -> Envelope {
    let acknowledge = StreamAcknowledge {
        incarnation: Incarnation(1),
        received: Position(position),
        synced: Position(0),
        applied: Vec::new(),
        end: Position(0),
        shown: LogicalTime::ZERO,
    };
    envelope(1, 0, Message::StreamAcknowledge(acknowledge))
}

#[test]
fn a_read_is_stale_if_something_newer_had_been_received() {
    let mut history = History::default();
    let (writer, reader) = (history.session(), history.session());
    let r0 = history.location("r0");
    let writes: Vec<usize> = (0..2)
        .map(|_| history.invoke(writer, DatacenterId(0), 0, Vec::new(), vec![(r0, Written::Value)]))
        .collect();
    let read = history.invoke(reader, DatacenterId(1), 50, Vec::new(), Vec::new());
    history.operations[read].outcome = Outcome::Done;
    history.operations[read].recent = true;
    let mut staleness = Staleness::default();
    staleness.on_send(10, &entry(writes[0], 1));
    staleness.on_send(20, &entry(writes[1], 2));
    let mut see = |staleness: &Staleness, protocol: &str, seen: Seen| {
        history.promises = Promises::of(protocol).unwrap();
        history.operations[read].reads = vec![(r0, seen)];
        staleness.judge(&history).map_err(|violation| violation.property)
    };
    let fresh = Ok(StaleReads { reads: 1, stale: 0 });
    let stale = Ok(StaleReads { reads: 1, stale: 1 });
    assert_eq!(see(&staleness, "cure", Seen::Nothing), fresh, "nothing has been received");
    staleness.on_send(30, &acknowledgement(1));
    assert_eq!(see(&staleness, "cure", Seen::Nothing), stale);
    assert_eq!(see(&staleness, "cure", Seen::Value(writes[0])), fresh);
    assert_eq!(see(&staleness, "pocc", Seen::Nothing), Err(property::STALE_READ));
    staleness.on_send(60, &acknowledgement(2));
    assert_eq!(see(&staleness, "pocc", Seen::Value(writes[0])), fresh, "it came after the read was asked");
    assert_eq!(see(&staleness, "pocc", Seen::Value(writes[1])), fresh);
}

/// What was sent with a time that nobody took, and is sent again with another, counts with that one.
#[test]
fn what_was_given_another_time_is_not_newer_than_what_replaced_it() {
    let mut history = History::default();
    history.promises = Promises::of("pocc").unwrap();
    let (writer, reader) = (history.session(), history.session());
    let r0 = history.location("r0");
    let writes: Vec<usize> = (0..2)
        .map(|_| history.invoke(writer, DatacenterId(0), 0, Vec::new(), vec![(r0, Written::Value)]))
        .collect();
    let read = history.invoke(reader, DatacenterId(1), 50, Vec::new(), Vec::new());
    history.operations[read].outcome = Outcome::Done;
    history.operations[read].recent = true;
    history.operations[read].reads = vec![(r0, Seen::Value(writes[1]))];
    for recovers in [false, true] {
        let mut staleness = Staleness::default();
        staleness.on_send(10, &entry_at(writes[0], 1, 900));
        if recovers {
            staleness.forget_times_beyond(DatacenterId(0), LogicalTime(100));
        }
        staleness.on_send(20, &entry_at(writes[0], 1, 101));
        staleness.on_send(20, &entry_at(writes[1], 2, 200));
        staleness.on_send(30, &acknowledgement(2));
        assert_eq!(staleness.judge(&history).is_ok(), recovers);
    }
}

#[test]
fn what_another_datacenter_acknowledged_is_kept_until_that_loses_something() {
    let mut history = History::default();
    let location = history.location("r0");
    let mut staleness = Staleness::default();
    staleness.on_send(1, &entry(0, 1));
    staleness.on_send(2, &entry(1, 2));
    assert!(staleness.kept(&history).is_empty());
    staleness.on_send(3, &acknowledgement(1));
    assert_eq!(staleness.kept(&history).into_iter().collect::<Vec<_>>(), [(0, location)]);
    staleness.on_send(9, &acknowledgement(2));
    let loss = |datacenter| {
        let (datacenter, partition) = (DatacenterId(datacenter), history.partition_of(location));
        PowerLost { datacenter, partition, since_us: 0, at_us: 5, is_whole: true }
    };
    let losses = [loss(0), loss(1)];
    history.power_losses = losses[..1].to_vec();
    assert_eq!(staleness.kept(&history).len(), 2, "only their own datacenter lost something");
    history.power_losses = losses.to_vec();
    assert_eq!(staleness.kept(&history).into_iter().collect::<Vec<_>>(), [(1, location)]);
    history.dead.insert(DatacenterId(1));
    assert!(staleness.kept(&history).is_empty());
}

/// Its directory was replaced by an old copy, before anybody had received what it wrote after that.
#[test]
fn what_is_written_at_a_place_again_is_what_is_acknowledged() {
    let mut history = History::default();
    let location = history.location("r0");
    let mut staleness = Staleness::default();
    staleness.on_send(1, &entry_at(0, 1, 900));
    staleness.on_send(2, &entry_at(1, 1, 950));
    staleness.on_send(3, &acknowledgement(1));
    assert_eq!(staleness.kept(&history).into_iter().collect::<Vec<_>>(), [(1, location)]);
}
