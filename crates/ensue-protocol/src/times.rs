//! The times in the bytes of any protocol, whichever it is: for data that gets other times while its node is stopped.
//!
//! Which bytes hold times is said by their first one, the version: vectors and the sessions of `orbe-clock`. The
//! others name
//! operations.

use crate::vector::{self, Vector};
use crate::{Malformed, timed_matrix};
use ensue_types::{DatacenterId, LogicalTime, Opaque, TimeVector};

/// The same bytes with each time replaced. Whose time it is, is told where the bytes say so.
pub fn map_times(
    facts: &Opaque,
    mut each: impl FnMut(Option<DatacenterId>, LogicalTime) -> LogicalTime,
) -> Result<Opaque, Malformed> {
    match facts.0.first() {
        Some(&vector::VERSION) => {
            let mut vector = Vector::decode(facts)?;
            for times in [&mut vector.times, &mut vector.abandoned, &mut vector.doubted] {
                *times = times
                    .entries()
                    .map(|(datacenter, time)| each(Some(datacenter), time))
                    .collect::<TimeVector>();
            }
            Ok(vector.encode())
        }
        Some(&timed_matrix::VERSION) => timed_matrix::map_time(facts, |time| each(None, time)),
        _ => Ok(facts.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ALL_NAMES, by_name};
    use ensue_types::{OperationId, Source, Stamp};

    /// What a session of each protocol has seen of a write at this time.
    fn facts(name: &str, time: u64) -> Opaque {
        let protocol = by_name(name, Default::default()).expect("a protocol");
        let stamp = Stamp { time: LogicalTime(time), datacenter: DatacenterId(1), ..Stamp::ZERO };
        let operation = OperationId { datacenter: DatacenterId(1), ..OperationId::default() };
        let mut facts = Opaque::default();
        protocol.record_reads(&mut facts, &[Source { operation, stamp, dependencies: None }], &[]);
        facts
    }

    #[test]
    fn facts_with_another_time_are_those_of_a_write_at_that_time() {
        let mut with_times = Vec::new();
        for name in ALL_NAMES {
            let (before, after) = (facts(name, 7 << 40), facts(name, 5 << 40));
            let mapped = map_times(&before, |of, time| {
                if time == LogicalTime::ZERO {
                    return time;
                }
                assert_eq!((of.unwrap_or(DatacenterId(1)), time), (DatacenterId(1), LogicalTime(7 << 40)));
                LogicalTime(5 << 40)
            });
            assert_eq!(mapped.as_ref(), Ok(&after), "{name}");
            assert_eq!(mapped.map(|facts| facts.0.len()), Ok(before.0.len()), "{name}: in the same place");
            if before != after {
                with_times.push(name);
            }
        }
        assert_eq!(with_times, ["orbe-clock", "cure", "pocc", "ha-pocc"]);
    }
}
