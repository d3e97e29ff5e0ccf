//! What survivors list as discarded with a datacenter that is lost for good, in the terms of the history.
//!
//! A line names the values that it put, and those say which operation wrote them. It does not say who made an addition
//! or a deletion, or a value of another form: then all that its datacenter wrote at that place may be meant.

use crate::oracle::history::{History, Location, OperationIndex};
use crate::oracle::values::writer_of;
use serde_json::Value;
use std::collections::BTreeSet;

/// The keyspace of all clients whose operations stand in the history.
const KEYSPACE: u64 = 0;

#[derive(Debug, Default)]
pub(super) struct Discarded {
    /// Writes that lines name.
    pub(super) named: BTreeSet<(OperationIndex, Location)>,
    /// Those that lines may mean, too.
    pub(super) meant: BTreeSet<(OperationIndex, Location)>,
    /// All keys.
    pub(super) keys: BTreeSet<String>,
}

impl Discarded {
    /// Of lines of `CAUSAL DISCARDED`.
    pub(super) fn of(history: &History, lines: &[String]) -> Discarded {
        let mut discarded = Discarded::default();
        for line in lines {
            let line: Value = serde_json::from_str(line).expect("each write is listed as JSON");
            if line["keyspace"].as_u64() == Some(KEYSPACE) {
                let origin = line["origin"].as_str().expect("each write is listed with its datacenter");
                for effect in line["effects"].as_array().expect("what it did is listed") {
                    discarded.add(history, origin, effect);
                }
            }
        }
        discarded
    }

    fn add(&mut self, history: &History, origin: &str, effect: &Value) {
        // A flush names no key, and nobody flushes this keyspace.
        let Some(key) = effect["key"].as_str() else { return };
        self.keys.insert(key.to_owned());
        let column = ["field", "member"].iter().find_map(|name| effect[*name].as_str());
        let is_its = |location: &Location| match (history.name(*location).split_once('/'), column) {
            (Some((row, name)), Some(column)) => row == key && name == column,
            (Some((row, _)), None) => row == key,
            (None, _) => history.name(*location) == key,
        };
        let writes = |index: OperationIndex| {
            let writes = history.operations.get(index).into_iter().flat_map(|operation| &operation.writes);
            writes.map(|write| write.0).filter(is_its).map(move |location| (index, location))
        };
        if let Some(writer) =
            effect["put"].as_str().and_then(|put| writer(effect["member"].as_str().unwrap_or(put)))
        {
            let named: Vec<_> = writes(writer).collect();
            if !named.is_empty() {
                return self.named.extend(named);
            }
        }
        let here = (0..history.operations.len())
            .filter(|&index| history.operations[index].datacenter.to_string() == origin);
        self.meant.extend(here.flat_map(writes));
    }
}

/// The operation that a value names; of several pieces the last one.
fn writer(value: &str) -> Option<OperationIndex> {
    writer_of(value.trim_end_matches(',').rsplit(',').next()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::history::Written;
    use ensue_types::DatacenterId;

    #[test]
    fn a_line_names_a_value_and_means_all_additions_of_its_datacenter() {
        let mut history = History::of(1);
        let mut operation = |datacenter, name: &str, written| {
            let (session, location) = (history.session(), history.location(name));
            let writes = vec![(location, written)];
            (history.invoke(session, DatacenterId(datacenter), 1, Vec::new(), writes), location)
        };
        let put = operation(0, "r1", Written::Value);
        let other = operation(0, "r1", Written::Value);
        let pieces = operation(1, "a0", Written::Value);
        let field = operation(1, "h0/f1", Written::Nothing);
        operation(1, "h0/f2", Written::Nothing);
        let adds = [operation(0, "c0", Written::Bit(0)), operation(0, "c0", Written::Bit(1))];
        operation(1, "c0", Written::Bit(2));
        let line = |origin: u8, keyspace: u64, effect: &str| {
            let origin = DatacenterId(origin);
            format!("{{\"origin\":\"{origin}\",\"keyspace\":{keyspace},\"effects\":[{{{effect}}}]}}")
        };
        let lines = [
            line(0, 0, &format!("\"key\":\"r1\",\"put\":\"v{}\"", put.0)),
            line(0, 1, &format!("\"key\":\"r1\",\"put\":\"v{}\"", other.0)),
            line(1, 0, &format!("\"key\":\"a0\",\"put\":\"v{},v{},\"", put.0, pieces.0)),
            line(1, 0, "\"key\":\"h0\",\"field\":\"f1\",\"delete\":true"),
            line(0, 0, "\"key\":\"c0\",\"sum\":\"3\""),
            line(0, 0, "\"key\":\"k1-x\",\"put\":\"7\""),
            line(0, 0, "\"flush\":true"),
        ];
        let discarded = Discarded::of(&history, &lines);
        assert_eq!(discarded.named, BTreeSet::from([put, pieces]));
        assert_eq!(discarded.meant, BTreeSet::from([field, adds[0], adds[1]]));
        assert_eq!(discarded.keys.len(), 5);
    }
}
