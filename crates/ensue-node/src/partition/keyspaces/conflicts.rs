//! Writes that met what their writers did not know: counted, listed in a log of bounded length, and shown a key at a
//! time.
//!
//! The log is of this partition, in memory, and since its start: it tells an operator what happens, and no state
//! depends on it. The values themselves stand in the rows, beside each other, until a write replaces them.

use super::Keyspaces;
use crate::partition::cx::Cx;
use crate::partition::cx::listing::ListedWrite;
use crate::partition::json;
use crate::partition::json::text;
use crate::partition::others::Others;
use crate::partition::work::Execution;
use crate::trace::Trace;
use bytes::Bytes;
use ensue_store::cell::{Base, Content, Write};
use ensue_store::compact::RowRef;
use ensue_store::row::Row;
use ensue_store::siblings::Sibling;
use ensue_types::{Column, Effect, KeyspaceId, LogicalTime, Previous, Reply, RowEffect, Source, limits};
use std::collections::{BTreeSet, VecDeque};

/// Conflicts that a partition lists: when there are more, the oldest are forgotten, and counted.
const LOG_CONFLICTS_MAX: usize = 1_000;
/// Bytes of a value that the log shows: the value itself is read by its key.
const LOG_VALUE_BYTES_MAX: usize = 128;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct ConflictLog {
    /// Conflicts seen since the start, for each keyspace: of a write that meets others at several places of a key, one.
    counts: Vec<u64>,
    /// Those of them of which the handler made nothing.
    failures: Vec<u64>,
    conflicts: VecDeque<Conflict>,
    forgotten: u64,
}

/// A write that met others at a place. It becomes words when somebody wants to read it, and shares no memory with what
/// may be let go of before.
#[derive(Clone, Debug)]
struct Conflict {
    keyspace: KeyspaceId,
    key: Bytes,
    column: Column,
    handler: String,
    /// Why the handler made nothing of them.
    failure: Option<String>,
    at: LogicalTime,
    arrived: ListedWrite,
    met: Vec<ListedWrite>,
    shows: Content,
}

impl Conflict {
    fn line(&self, cx: &Cx) -> String {
        let Conflict { keyspace, key, column, handler, failure, at, arrived, met, shows } = self;
        let met: Vec<String> = met.iter().map(|write| cx.write_line(write, column)).collect();
        format!(
            "{{\"keyspace\":{},\"key\":{}{},\"at\":\"{at}\",\"handler\":{}{},\"arrived\":{},\
             \"met\":[{}],\"shows\":{}}}",
            keyspace.0,
            text(key),
            json::column(column),
            text(handler.as_bytes()),
            failure_words(failure.as_deref()),
            cx.write_line(arrived, column),
            met.join(","),
            shown_words(shows, column),
        )
    }
}

impl Default for ConflictLog {
    fn default() -> ConflictLog {
        let counts = vec![0; usize::from(limits::KEYSPACES)];
        ConflictLog { failures: counts.clone(), counts, conflicts: VecDeque::new(), forgotten: 0 }
    }
}

impl ConflictLog {
    pub(crate) fn count(&self, keyspace: usize) -> u64 {
        self.counts[keyspace]
    }

    pub(crate) fn failures(&self, keyspace: usize) -> u64 {
        self.failures[keyspace]
    }

    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    fn add(&mut self, conflict: Conflict) {
        if self.conflicts.len() == LOG_CONFLICTS_MAX {
            self.conflicts.pop_front();
            self.forgotten += 1;
        }
        self.conflicts.push_back(conflict);
    }
}

/// A place where a write has met others.
pub(in crate::partition) struct Met {
    change: RowEffect,
    others: Vec<Base>,
}

impl Keyspaces {
    /// Before a write from elsewhere is merged: where it meets what its writer did not know.
    pub(in crate::partition) fn conflicts_of(
        &mut self,
        keyspace: KeyspaceId,
        effects: &[RowEffect],
        previous: &[Previous],
        write: &Write,
    ) -> Vec<Met> {
        let rows = self.keyspace(keyspace);
        let bases = effects.iter().filter(|change| change.effect.is_base()).zip(previous);
        let met = bases.filter_map(|(change, previous)| {
            let others = rows.conflicts(change, previous, write);
            (!others.is_empty()).then(|| Met { change: change.clone(), others })
        });
        let met: Vec<Met> = met.collect();
        if met.is_empty() {
            return met;
        }
        let keys: BTreeSet<&Bytes> = met.iter().map(|met| &met.change.key).collect();
        self.conflict_log.counts[usize::from(keyspace.0)] += keys.len() as u64;
        met
    }

    /// After it is merged: what it met, and what is shown now.
    pub(in crate::partition) fn log_conflicts(
        &mut self,
        cx: &mut Cx,
        keyspace: KeyspaceId,
        met: Vec<Met>,
        write: &Write,
    ) {
        for Met { change, others } in met {
            let rows = &self.keyspaces[usize::from(keyspace.0)];
            let row = rows.row(&change.key).map(RowRef::whole);
            let shown = row.as_ref().and_then(|row| row.cell(&change.column));
            let failure = shown.as_ref().and_then(|cell| cell.state().fold_failure()).map(str::to_owned);
            let shows = match shown.map_or(Content::Nothing, |cell| cell.state().content()) {
                Content::Bytes(value) => Content::Bytes(Bytes::copy_from_slice(first_bytes(&value))),
                shown => shown,
            };
            let value = match &change.effect {
                Effect::Put { value, .. } => Some(value),
                _ => None,
            };
            let listed = |operation, stamp, value| {
                ListedWrite::shortened(operation, stamp, value, LOG_VALUE_BYTES_MAX)
            };
            let handler = self.handler_of(keyspace, &change.key, &change.column).to_owned();
            if let Some(why) = &failure {
                self.conflict_log.failures[usize::from(keyspace.0)] += 1;
                let (handler, why) = (handler.clone(), why.clone());
                cx.trace(Trace::HandlerFailed { partition: cx.id, keyspace, handler, why });
            }
            self.conflict_log.add(Conflict {
                keyspace,
                key: Bytes::copy_from_slice(&change.key),
                column: change.column.copied(),
                handler,
                failure,
                at: write.at,
                arrived: listed(write.operation, write.stamp, value),
                met: others
                    .iter()
                    .map(|base| listed(base.operation, base.stamp, base.value.as_ref()))
                    .collect(),
                shows,
            });
        }
    }

    fn standing_beside(&self, cx: &Cx, keyspace: KeyspaceId, row: &Row) -> (Vec<String>, Vec<Source>) {
        let (mut lines, mut sources) = (Vec::new(), Vec::new());
        for (column, cell) in row.all_cells().filter(|(_, cell)| !cell.state().siblings().is_empty()) {
            let state = cell.state();
            let others = state.siblings().iter().map(|Sibling { base, .. }| base);
            for base in others.chain([&state.base]) {
                let write = ListedWrite::new(base.operation, base.stamp, base.value.as_ref());
                let write = cx.write_line(&write, &column);
                lines.push(format!(
                    "{{\"key\":{}{},\"handler\":{}{},\"write\":{write}}}",
                    text(row.key()),
                    json::column(&column),
                    text(self.handler_of(keyspace, row.key(), &column).as_bytes()),
                    failure_words(state.fold_failure()),
                ));
                sources.push(base.source());
            }
        }
        (lines, sources)
    }

    /// The handler of a place; where no values are kept beside each other, and for deadlines, the last writer's stays.
    fn handler_of(&self, keyspace: KeyspaceId, key: &[u8], column: &Column) -> &str {
        let rows = &self.keyspaces[usize::from(keyspace.0)];
        let is_folded = !column.is_deadline() && !matches!(column, Column::Escrow(_));
        rows.handler(key).filter(|_| is_folded).map_or("newest", |fold| fold.name())
    }
}

/// A member of an object, if there is something to say.
fn failure_words(failure: Option<&str>) -> String {
    failure.map_or_else(String::new, |why| format!(",\"failed\":{}", text(why.as_bytes())))
}

fn shown_words(shown: &Content, column: &Column) -> String {
    match shown {
        Content::Nothing => "null".to_owned(),
        Content::Number(number) => format!("\"{number}\""),
        Content::Bytes(value) => json::value(column, first_bytes(value)),
    }
}

fn first_bytes(value: &[u8]) -> &[u8] {
    &value[..value.len().min(LOG_VALUE_BYTES_MAX)]
}

impl Keyspaces {
    /// `CAUSAL CONFLICTS`: the log, or everything that stands at a key beside something else.
    pub(in crate::partition) fn list_conflicts(
        &self,
        cx: &mut Cx,
        others: &Others,
        execution: &mut Execution,
        key: Option<&Bytes>,
    ) -> Reply {
        let Some(key) = key else {
            let lines = self.conflict_log.conflicts.iter().map(|conflict| conflict.line(cx));
            return Reply::Array(lines.map(Reply::bulk).collect());
        };
        let at = cx.promise();
        let (lines, sources) = match self.keyspaces[usize::from(execution.keyspace.0)].row(key) {
            Some(row) => self.standing_beside(cx, execution.keyspace, &row.whole()),
            None => Default::default(),
        };
        // Who has been told of them depends on them.
        execution.context.time = execution.context.time.max(at);
        others.remember(cx, execution.keyspace, &mut execution.context.causes, sources);
        Reply::Array(lines.into_iter().map(Reply::bulk).collect())
    }
}
