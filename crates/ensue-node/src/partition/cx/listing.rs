//! Writes as an operator reads them: one line each, as JSON.

use super::Cx;
use crate::partition::json;
use crate::partition::json::text;
use bytes::Bytes;
use ensue_protocol::Past;
use ensue_store::entry::{Change, Entry};
use ensue_types::{Column, DatacenterId, Effect, Extent, LogicalTime, OperationId, RowEffect, Stamp};

/// A write of one value, as much of it as is listed.
#[derive(Clone, Debug)]
pub(in crate::partition) struct ListedWrite {
    operation: OperationId,
    stamp: Stamp,
    /// The value, or its first bytes, and how many it has; nothing if it is a delete.
    value: Option<(Bytes, usize)>,
}

impl ListedWrite {
    pub(in crate::partition) fn new(
        operation: OperationId,
        stamp: Stamp,
        value: Option<&Bytes>,
    ) -> ListedWrite {
        ListedWrite { operation, stamp, value: value.map(|value| (value.clone(), value.len())) }
    }

    /// The same in memory of its own, with so many bytes of the value.
    pub(in crate::partition) fn shortened(
        operation: OperationId,
        stamp: Stamp,
        value: Option<&Bytes>,
        most: usize,
    ) -> ListedWrite {
        let first = |value: &Bytes| Bytes::copy_from_slice(&value[..value.len().min(most)]);
        ListedWrite { operation, stamp, value: value.map(|value| (first(value), value.len())) }
    }
}

impl Cx {
    pub(in crate::partition) fn write_line(&self, write: &ListedWrite, column: &Column) -> String {
        let ListedWrite { operation, stamp, value } = write;
        let datacenters = &self.config.topology.datacenters;
        let origin = datacenters.get(usize::from(stamp.datacenter.0));
        let value = match value {
            None => "\"delete\":true".to_owned(),
            Some((first, bytes)) if first.len() < *bytes => {
                format!("\"value\":{},\"bytes\":{bytes}", text(first))
            }
            Some((value, _)) => format!("\"value\":{}", json::value(column, value)),
        };
        format!(
            "{{\"operation\":\"{operation}\",\"origin\":{},\"time\":\"{}\",{value}}}",
            text(origin.map_or("", |one| one.name.as_str()).as_bytes()),
            stamp.time
        )
    }

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

pub(in crate::partition) fn effect_of(row: &RowEffect) -> String {
    let what = match &row.effect {
        Effect::Put { value, .. } => format!("\"put\":{}", json::value(&row.column, value)),
        Effect::Delete { .. } | Effect::Remove { .. } => "\"delete\":true".to_owned(),
        Effect::Add { epoch_sum } => format!("\"sum\":\"{}\"", epoch_sum.sum),
    };
    format!("{{\"key\":{}{},{what}}}", json::text(&row.key), json::column(&row.column))
}
