//! What was discarded here with dead datacenters, for the operator: a line of JSON for each write.
//!
//! Keys, values and names are bytes and need not be text: a character of the JSON is a byte. Times and sums are strings, since
//! they do not fit into the numbers of every reader.

use super::DiscardedWrite;
use crate::partition::Partition;
use ensue_protocol::Past;
use ensue_store::entry::{Change, Entry};
use ensue_types::{Column, DatacenterId, Effect, LogicalTime, OperationId, Reply, RowEffect};
use std::fmt::Write;

impl Partition {
    /// One line of JSON for each discarded write of this partition.
    pub(in crate::partition) fn list_discarded(&self) -> Reply {
        Reply::Array(
            self.discarded.writes.iter().map(|(name, write)| Reply::bulk(self.line(name, write))).collect(),
        )
    }

    fn line(&self, operation: &OperationId, write: &DiscardedWrite) -> String {
        let name = |datacenter: DatacenterId| {
            let named = self.config.topology.datacenters.get(usize::from(datacenter.0));
            text(named.map_or("", |one| one.name.as_str()).as_bytes())
        };
        let Entry { stamp, dependencies, change, .. } = &write.entry;
        let Change::Effects { keyspace, effects, .. } = change else { return String::new() };
        let effects: Vec<String> = effects.iter().map(effect_of).collect();
        let depends_on: Vec<String> = match self.protocol(*keyspace).past(dependencies) {
            Ok(Past::Times(times)) => {
                let named = times.entries().filter(|(_, time)| *time > LogicalTime::ZERO);
                named.map(|(datacenter, time)| format!("{}:\"{time}\"", name(datacenter))).collect()
            }
            _ => Vec::new(),
        };
        format!(
            "{{\"lost_with\":{},\"origin\":{},\"operation\":\"{operation}\",\"keyspace\":{},\"time\":\"{}\",\
             \"effects\":[{}],\"depends_on\":{{{}}}}}",
            name(write.lost),
            name(stamp.datacenter),
            keyspace.0,
            stamp.time,
            effects.join(","),
            depends_on.join(",")
        )
    }
}

fn effect_of(row: &RowEffect) -> String {
    let mut line = format!("{{\"key\":{}", text(&row.key));
    let column = match &row.column {
        Column::Text => String::new(),
        Column::Deadline => ",\"deadline\":true".to_owned(),
        Column::Field(field) => format!(",\"field\":{}", text(field)),
        Column::Member(member) => format!(",\"member\":{}", text(member)),
    };
    line.push_str(&column);
    let what = match (&row.effect, &row.column) {
        (Effect::Put { value, .. }, Column::Deadline) => {
            let ms = value.as_ref().try_into().map(u64::from_le_bytes).unwrap_or_default();
            format!(",\"put\":\"{ms}\"}}")
        }
        (Effect::Put { value, .. }, _) => format!(",\"put\":{}}}", text(value)),
        (Effect::Delete { .. }, _) => ",\"delete\":true}".to_owned(),
        (Effect::Add { tally }, _) => format!(",\"sum\":\"{}\"}}", tally.sum),
    };
    line + &what
}

/// A JSON string whose characters are the bytes: `\u00ff` is the byte 255.
fn text(bytes: &[u8]) -> String {
    let mut quoted = String::from("\"");
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            0x20..=0x7e => quoted.push(char::from(byte)),
            _ => drop(write!(quoted, "\\u{byte:04x}")),
        }
    }
    quoted + "\""
}
