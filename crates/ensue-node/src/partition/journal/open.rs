//! What a log began and has not ended.

use ensue_store::entry::{Change, Entry};
use ensue_types::{DatacenterId, Incarnation, KeyspaceId, LogicalTime, OperationId, Part, Position, Rule};
use std::collections::BTreeMap;

/// What the log began and has not ended.
#[derive(Clone, Debug, Default)]
pub(in crate::partition) struct Open {
    /// Own entries up to here are in the checkpoint. Merging them again could bring back what a tombstone deleted that
    /// has been collected since.
    pub(in crate::partition) own_floor: Position,
    pub(in crate::partition) received: BTreeMap<(DatacenterId, Position), (Incarnation, Entry)>,
    pub(in crate::partition) begun: BTreeMap<OperationId, Begun>,
    pub(in crate::partition) decided: BTreeMap<OperationId, (LogicalTime, Option<Entry>)>,
    pub(in crate::partition) prepared: BTreeMap<OperationId, (KeyspaceId, LogicalTime, Part)>,
    /// Parts that were executed and may be asked for again, with the names of local transactions.
    pub(in crate::partition) executed: BTreeMap<OperationId, Option<OperationId>>,
    /// The entries of replicated transactions decided and not completed: the participants' names are in them.
    pub(in crate::partition) announced: BTreeMap<OperationId, Entry>,
}

#[derive(Clone, Debug)]
pub(in crate::partition) struct Begun {
    pub(in crate::partition) keyspace: KeyspaceId,
    pub(in crate::partition) context: ensue_types::Causes,
    pub(in crate::partition) parts: Vec<Part>,
}

impl Open {
    /// An entry of the own stream came back from another datacenter. If it names a transaction whose decision this log
    /// has lost, the decision is known again.
    pub(in crate::partition) fn note_returned(&mut self, entry: &Entry) {
        let Change::Transaction { begun_as: Some(name), .. } = entry.change else { return };
        if self.begun.contains_key(&name) && Rule::TakeBackTheDecision.holds() {
            self.decided.insert(name, (entry.stamp.time, Some(entry.clone())));
        }
    }
}
