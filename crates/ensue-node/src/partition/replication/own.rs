//! The own stream: entries that are written here.

use super::Replication;
use crate::partition::cx::Cx;
use bytes::Bytes;
use ensue_branch::Note;
use ensue_store::entry::Change;
use ensue_types::{Causes, Context, KeyspaceId, OperationId, Previous, Rule, Source, Stamp};
use ensue_wire::Message;

impl Replication {
    pub(crate) fn record_write(
        &self,
        cx: &Cx,
        keyspace: KeyspaceId,
        context: &mut Context,
        operation: OperationId,
        stamp: Stamp,
    ) {
        let matters = !self.senders.is_empty() || cx.protocol(keyspace).needs().versions;
        if matters && Rule::RememberWrites.holds() {
            let write = Source { operation, stamp, dependencies: None };
            cx.protocol(keyspace).record_write(&mut context.causes, &write);
        }
    }

    /// Gives an own entry the next position, logs it and hands it to the streams.
    pub(in crate::partition) fn log_own(
        &mut self,
        cx: &mut Cx,
        stamp: Stamp,
        dependencies: Causes,
        change: Change,
        previous: Vec<Previous>,
    ) -> Bytes {
        let entry = self.next_entry(cx, stamp, dependencies, change, previous);
        cx.journal.log_own(cx.position, &entry);
        self.own_entry_applied(cx);
        entry
    }

    /// What a participant is told of a replicated transaction whose entry was lost with its origin's tail, or with a
    /// dead datacenter.
    pub(in crate::partition) fn never_shown(&self, transaction: OperationId) -> Option<Message> {
        let set = self.applied.set(transaction.datacenter);
        if set.is_some_and(|set| set.is_lost(transaction.position)) {
            return Some(Message::Abandon { transaction });
        }
        self.is_transaction_unrecoverable(transaction).then_some(Message::Discard { transaction })
    }

    /// Logs what this datacenter has to say of a keyspace, and hands it to the streams.
    pub(in crate::partition) fn log_note(&mut self, cx: &mut Cx, keyspace: KeyspaceId, note: &Note) {
        let at = cx.tick();
        let change = Change::Branch { keyspace, note: note.encode() };
        self.log_own(cx, cx.stamp(at), Causes::Nothing, change, Vec::new());
    }
}
