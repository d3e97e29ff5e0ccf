//! What a log has left open, taken up again; and the own stream after a lost tail.

use super::Visibility;
use crate::partition::journal::open::Open;
use ensue_store::entry::Change;
use ensue_types::{Causes, Incarnation, Position, Rule};

impl Visibility<'_> {
    pub(in crate::partition) fn resume_open(&mut self, open: Open) {
        let Open { received, begun, mut decided, prepared, announced, .. } = open;
        let complete = Rule::CompleteAfterCrash.holds();
        for (transaction, begun) in begun {
            if complete {
                let decision = decided.remove(&transaction);
                self.transactions.resume_begun(self.cx, transaction, begun, decision);
            }
        }
        for (transaction, (at, _)) in decided {
            if let (Some(entry), true) = (announced.get(&transaction), complete) {
                self.transactions.resume_decided(self.cx, transaction, at, entry);
            }
        }
        for ((origin, position), (incarnation, entry)) in received {
            let waited = !self.others.replication.applied.contains(origin, position);
            if waited && Rule::TakeUpWhatWaited.holds() {
                debug_assert_eq!(entry.position, position);
                self.arrive(origin, incarnation, entry);
            }
        }
        self.transactions.resume_prepared(self.cx, self.others, self.keyspaces, prepared);
        self.transactions.resume_coordinated(self.cx);
    }

    /// The own stream goes on in a new incarnation, which begins by saying where the one before ended.
    pub(in crate::partition) fn end_incarnation(&mut self) {
        let after = self.cx.position;
        let incarnation =
            Incarnation(self.cx.incarnation.0.checked_add(1).expect("65535 lost tails of one partition"));
        self.cx.journal.begin_incarnation(incarnation);
        self.cx.incarnation = incarnation;
        self.cx.position = Position::before(incarnation);
        self.lose(self.cx.datacenter, after, self.cx.position);
        let time = self.cx.clock.tick(self.cx.now);
        let stamp = self.cx.stamp(time);
        self.others.replication.log_own(self.cx, stamp, Causes::Nothing, Change::Lost { after }, Vec::new());
    }
}
