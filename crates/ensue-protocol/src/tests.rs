//! Which protocols remember times, and that data can get other ones while its node is stopped.

use crate::{ALL_NAMES, by_name};
use ensue_types::{Causes, DatacenterId, LogicalTime, OperationId, Source, Stamp};

/// What a session of each protocol has seen of a write at this time.
fn causes(name: &str, time: u64) -> Causes {
    let protocol = by_name(name, Default::default()).expect("a protocol");
    let stamp = Stamp { time: LogicalTime(time), datacenter: DatacenterId(1), ..Stamp::ZERO };
    let operation = OperationId { datacenter: DatacenterId(1), ..OperationId::default() };
    let mut causes = Causes::default();
    protocol.record_reads(&mut causes, &[Source { operation, stamp, dependencies: None }], &[]);
    causes
}

#[test]
fn facts_with_another_time_are_those_of_a_write_at_that_time() {
    let mut with_times = Vec::new();
    for name in ALL_NAMES {
        let (before, after) = (causes(name, 7 << 40), causes(name, 5 << 40));
        let mapped = before.map_times(|of, time| {
            if time == LogicalTime::ZERO {
                return time;
            }
            assert_eq!((of.unwrap_or(DatacenterId(1)), time), (DatacenterId(1), LogicalTime(7 << 40)));
            LogicalTime(5 << 40)
        });
        assert_eq!(mapped, after, "{name}");
        assert_eq!(mapped.encoded_bytes(), before.encoded_bytes(), "{name}: in the same place");
        if before != after {
            with_times.push(name);
        }
    }
    assert_eq!(with_times, ["orbe-clock", "cure", "pocc", "ha-pocc"]);
}
