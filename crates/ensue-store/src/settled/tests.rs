//! What is read of a settled column's bytes is what was written, whatever the numbers.

use super::{Added, Encoded, Item, Origin, Settled, VALUE_MAX, Value};
use ensue_types::{
    DatacenterId, Decimal, EpochSum, Incarnation, LogicalTime, OperationId, PartitionId, Position, Stamp,
};
use proptest::prelude::*;

fn time() -> impl Strategy<Value = LogicalTime> {
    prop_oneof![Just(0), Just(u64::MAX), 0..300u64, any::<u64>()].prop_map(LogicalTime)
}

fn stamp() -> impl Strategy<Value = Stamp> {
    (time(), 0..3u8, 0..2u16).prop_map(|(time, datacenter, partition)| Stamp {
        time,
        datacenter: DatacenterId(datacenter),
        partition: PartitionId(partition),
    })
}

fn operation() -> impl Strategy<Value = OperationId> {
    (time(), 0..3u8, 0..2u16, 0..2u16).prop_map(|(position, datacenter, partition, incarnation)| {
        OperationId {
            datacenter: DatacenterId(datacenter),
            incarnation: Incarnation(incarnation),
            partition: PartitionId(partition),
            position: Position(position.0),
        }
    })
}

fn sum() -> impl Strategy<Value = Decimal> {
    let whole = any::<i64>().prop_map(|whole| Decimal::from_integer(whole).0);
    prop_oneof![whole, -300..300i128, Just(i128::MIN), Just(i128::MAX), any::<i128>()].prop_map(Decimal)
}

fn added() -> impl Strategy<Value = Added> {
    (stamp(), operation(), stamp(), sum()).prop_map(|(stamp, operation, epoch, sum)| Added {
        stamp,
        operation,
        epoch_sum: EpochSum { epoch, sum },
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        origin in (stamp(), operation()),
        value in prop::option::of((stamp(), operation(), prop::collection::vec(any::<u8>(), 0..VALUE_MAX))),
        added in prop::option::of(added()),
        since in time(),
        is_since_stamp: bool,
        name in prop::collection::vec(any::<u8>(), 0..300),
        kind in 0..6u8,
    ) {
        prop_assume!(value.is_some() || added.is_some());
        let origin = Origin { stamp: origin.0, operation: origin.1 };
        let value = value.as_ref().map(|(stamp, operation, bytes)| {
            Value { stamp: *stamp, operation: *operation, bytes }
        });
        let settled = Settled { since, value, added };
        let since = if is_since_stamp { settled.latest() } else { since };
        let settled = Settled { since, ..settled };
        let encoded = Encoded::new((kind, &name), &settled, &origin);
        let mut bytes = vec![0xff; encoded.len()];
        encoded.write(&mut bytes);
        let item = Item::of(&bytes);
        prop_assert_eq!((item.number_of_kind(), item.name, item.bytes()), (kind, &name[..], bytes.len()));
        prop_assert_eq!(item.settled(&origin), settled);
    }
}
