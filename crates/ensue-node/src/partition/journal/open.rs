//! What a log began and has not ended.

use ensue_store::entry::Entry;
use ensue_types::{DatacenterId, Incarnation, KeyspaceId, LogicalTime, OperationId, Part, Position};
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
