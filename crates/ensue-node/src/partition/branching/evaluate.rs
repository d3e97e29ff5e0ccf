//! One ordinary command within a transaction: evaluated on rows made of what the transaction sees, by the same code as
//! everywhere.
//!
//! A key counts as read if its row was looked at, or if what was written keeps any of it: a blind `SET` conflicts with
//! nothing that was written since, an `HSET` with everything that was written to its key.

use super::steps::aborted;
use super::{Branching, value};
use crate::command;
use crate::evaluate::{Evaluation, Writer};
use crate::partition::cx::Cx;
use crate::partition::work::FORGOTTEN;
use bytes::Bytes;
use ensue_branch::{Abort, TransactionId, Value};
use ensue_resp::Request;
use ensue_store::cell::Write;
use ensue_store::keyspace::Keyspace;
use ensue_store::view::View;
use ensue_types::{Args, Column, KeyspaceId, Reply};
use std::collections::{BTreeMap, BTreeSet};

fn keys_of(args: &Args) -> BTreeSet<Bytes> {
    let spec = args.first().and_then(|name| ensue_resp::lookup(name));
    spec.into_iter().flat_map(|spec| ensue_resp::keys(spec, args)).cloned().collect()
}

/// Whether what a command looks at is told by values, as behind `BY` and `GET` of `SORT`.
fn has_patterns(args: &Args) -> bool {
    let spec = args.first().and_then(|name| ensue_resp::lookup(name));
    spec.is_some_and(|spec| ensue_resp::key_patterns(spec, args).next().is_some())
}

const PATTERNS: Reply = Reply::error(
    "ERR in a keyspace with branches SORT takes no patterns behind BY and GET: what it looks at would not be known; \
     nothing was executed",
);

impl Branching {
    pub(in crate::partition) fn evaluate_on_branch(
        &mut self,
        cx: &mut Cx,
        keyspace: KeyspaceId,
        transaction: TransactionId,
        args: &Args,
        request: &Request,
    ) -> Reply {
        use Request::{Flush, Keys, RandomKey, Scan, Size};
        let reply = match request {
            Size | Keys { .. } | RandomKey | Scan { .. } | Flush { .. } => {
                self.walk_branch(cx, keyspace, transaction, request)
            }
            _ if has_patterns(args) => return PATTERNS,
            _ => self.evaluate_keys(cx, keyspace, transaction, args, request),
        };
        reply.unwrap_or_else(|abort| aborted(&abort))
    }

    fn evaluate_keys(
        &mut self,
        cx: &mut Cx,
        keyspace: KeyspaceId,
        transaction: TransactionId,
        args: &Args,
        request: &Request,
    ) -> Result<Reply, Abort> {
        if matches!(request, Request::Bounded(_)) {
            return Ok(NO_COUNTERS);
        }
        let at = cx.tick();
        let (stamp, operation, adder) = (cx.stamp(at), cx.next_operation(), cx.datacenter);
        let keys = keys_of(args);
        let branches = self.branches(keyspace);
        let mut rows = Keyspace::new(false);
        for key in &keys {
            if let Some(value) = branches.get(transaction, key, false)? {
                value::load(&mut rows, key, &value);
            }
        }
        let write = Write { stamp, at, operation, dependencies: None };
        let mut writer = Writer::new(write, adder, false);
        let mut evaluation = Evaluation::writing(&mut rows, &mut writer, View::Newest);
        let reply = command::run(request, &mut evaluation).unwrap_or(FORGOTTEN);
        let is_read = evaluation.observed.pieces > 0;
        cx.statistics.count_lookups(evaluation.observed.hits, evaluation.observed.misses);
        let mut changed: BTreeMap<Bytes, BTreeSet<Column>> = BTreeMap::new();
        for effect in writer.changes.effects {
            changed.entry(effect.key).or_default().insert(effect.column);
        }
        let mut read: BTreeSet<Bytes> = if is_read { keys } else { BTreeSet::new() };
        let mut writes: BTreeMap<Bytes, Value> = BTreeMap::new();
        for (key, written) in changed {
            let (value, columns) = value::save(&rows, &key);
            if columns.iter().any(|column| !written.contains(column)) {
                read.insert(key.clone());
            }
            writes.insert(key, value);
        }
        branches.note_use(transaction, read, writes)?;
        Ok(reply)
    }
}

const NO_COUNTERS: Reply = Reply::error(
    "ERR bounded counters are refused in a keyspace with branches: each branch would spend the same rights",
);
