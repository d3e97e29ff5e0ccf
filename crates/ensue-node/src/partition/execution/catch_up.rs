//! Parts of local transactions, taken up when all has come that they would read.

use super::Executor;
use ensue_types::{LogicalTime, OperationId};
use ensue_wire::Message;
use std::collections::BTreeMap;

impl Executor<'_> {
    pub(in crate::partition) fn resume_local_parts(&mut self) {
        let Some((prepared, told)) = self.others.place_local_parts() else { return };
        self.transactions.resume_prepared(self.cx, self.others, self.keyspaces, prepared);
        let (asked, decided): (Vec<Message>, Vec<Message>) =
            told.into_iter().partition(|message| matches!(message, Message::Prepare { .. }));
        let times: BTreeMap<OperationId, LogicalTime> = decided
            .iter()
            .filter_map(|message| match message {
                Message::Commit { transaction, decision } => Some((*transaction, decision.at)),
                _ => None,
            })
            .collect();
        for message in asked {
            if let Message::Prepare { transaction, keyspace, part } = message {
                self.visibility().prepare(transaction, keyspace, part, times.get(&transaction).copied());
            }
        }
        // All get their times before any is executed: what changes one row takes effect in the order of time.
        for message in decided {
            if let Message::Commit { transaction, decision } = message {
                self.transactions.place_decided(self.cx, self.others, self.keyspaces, transaction, decision);
            }
        }
        self.settle();
    }
}
