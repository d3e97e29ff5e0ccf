//! What was discarded here with dead datacenters, for the operator: a line of JSON for each write.
//!
//! Keys, values and names are bytes and need not be text: a character of the JSON is a byte. Times and sums are strings, since
//! they do not fit into the numbers of every reader.

use super::Discarded;
use crate::partition::cx::Cx;
use crate::partition::json;
use ensue_protocol::Past;
use ensue_store::entry::{Change, Entry};
use ensue_types::{DatacenterId, Effect, Extent, LogicalTime, OperationId, Reply, RowEffect};

/// A write as a line of JSON: its position in the stream of its partition, and what it changed. Nothing for an entry
/// that changes no
/// rows by itself.
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

fn effect_of(row: &RowEffect) -> String {
    let what = match &row.effect {
        Effect::Put { value, .. } => format!("\"put\":{}", json::value(&row.column, value)),
        Effect::Delete { .. } => "\"delete\":true".to_owned(),
        Effect::Add { tally } => format!("\"sum\":\"{}\"", tally.sum),
    };
    format!("{{\"key\":{}{},{what}}}", json::text(&row.key), json::column(&row.column))
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

impl Cx {
    pub(crate) fn line(&self, operation: &OperationId, lost: DatacenterId, entry: &Entry) -> String {
        let name = |datacenter: DatacenterId| {
            let named = self.config.topology.datacenters.get(usize::from(datacenter.0));
            json::text(named.map_or("", |one| one.name.as_str()).as_bytes())
        };
        let Entry { stamp, dependencies, change, .. } = entry;
        let keyspace = entry.keyspace();
        let effects = match change {
            Change::Effects { effects, .. } => effects.iter().map(effect_of).collect(),
            _ => vec!["{\"flush\":true}".to_owned()],
        };
        let depends_on = match self.protocol(keyspace).past(dependencies) {
            Ok(Past::Times(times)) => {
                let named = times.entries().filter(|(_, time)| *time > LogicalTime::ZERO);
                let named = named.map(|(datacenter, time)| format!("{}:\"{time}\"", name(datacenter)));
                format!("{{{}}}", named.collect::<Vec<_>>().join(","))
            }
            Ok(Past::Operations(operations)) => {
                let named = operations.iter().map(|dependency| match dependency.extent {
                    Extent::Exact => format!("\"{}\"", dependency.operation),
                    Extent::Through => format!("\"up to {}\"", dependency.operation),
                });
                format!("[{}]", named.collect::<Vec<_>>().join(","))
            }
            Err(_) => "null".to_owned(),
        };
        format!(
            "{{\"lost_with\":{},\"origin\":{},\"operation\":\"{operation}\",\"keyspace\":{},\"time\":\"{}\",\
             \"effects\":[{}],\"depends_on\":{depends_on}}}",
            name(lost),
            name(stamp.datacenter),
            keyspace.0,
            stamp.time,
            effects.join(","),
        )
    }
}
