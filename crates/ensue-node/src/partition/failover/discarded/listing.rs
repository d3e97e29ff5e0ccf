//! What was discarded here with dead datacenters, for the operator: a line of JSON for each write.
//!
//! Keys, values and names are bytes and need not be text: a character of the JSON is a byte. Times and sums are
//! strings, since they do not fit into the numbers of every reader.

use super::Discarded;
use crate::partition::cx::Cx;
use crate::partition::cx::listing::effect_of;
use ensue_store::entry::{Change, Entry};
use ensue_types::Reply;

/// A write as a line of JSON: its position in the stream of its partition, and what it changed. Nothing for an entry
/// that changes no rows by itself.
pub fn describe_write(entry: &Entry) -> Option<String> {
    let effects = match &entry.change {
        Change::Effects { effects, .. } => effects.iter().map(effect_of).collect::<Vec<_>>().join(","),
        Change::Flush { .. } => "{\"flush\":true}".to_owned(),
        Change::Branch { .. } => "{\"commit\":true}".to_owned(),
        Change::Transaction { .. } | Change::Lost { .. } => return None,
    };
    Some(format!(
        "{{\"position\":\"{}\",\"keyspace\":{},\"time\":\"{}\",\"effects\":[{effects}]}}",
        entry.position,
        entry.keyspace().0,
        entry.stamp.time
    ))
}

impl Discarded {
    /// One line of JSON for each discarded write of this partition.
    pub(in crate::partition) fn list_discarded(&self, cx: &Cx) -> Reply {
        let writes = self.writes.iter().map(|(name, write)| cx.line(name, write.lost, &write.entry));
        let others = self.others.iter();
        let flushes = others.filter(|(_, entry)| matches!(entry.change, Change::Flush { .. }));
        let flushes =
            flushes.map(|(&(lost, position), entry)| cx.line(&cx.name_at(lost, position), lost, entry));
        Reply::Array(writes.chain(flushes).map(Reply::bulk).collect())
    }
}
