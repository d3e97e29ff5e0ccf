//! Transactions in a datacenter whose directories are filled by copies, each of a moment of its own (decision 54).
//!
//! - At the coordinator, whose copy lacks the transaction: its entry comes with the stream, and a part that is in its
//!   partition's copy never does. The participant is asked, and says that it has the part (`PartHeld`) when everything
//!   that the origin stamped up to then is here, and no part waits. Those that are left vote.
//! - At a participant, whose copy lacks the part: it comes with the stream, and the coordinator, whose copy has the
//!   transaction, knows nothing of it any more. It says so (`TransactionOver`), and the part is committed: nobody is
//!   served before all of this is done, so no reader was told anything else.

use super::Transactions;
use super::coordinator::Coordinated;
use crate::partition::cx::{Cx, coordinator_of};
use crate::partition::others::Others;
use ensue_types::{LogicalTime, OperationId, PartitionId, Rule};
use ensue_wire::{Address, Message};

/// How often parts that do not come are asked for.
const SEARCH_INTERVAL_US: u64 = 1_000_000;
/// Questions that are asked then.
const QUESTIONS_MAX: usize = 256;

impl Transactions {
    /// Asks where the parts are that do not come: of transactions that arrive in a directory that is filled, and of
    /// decided ones that a log has brought back, which had begun in such a one perhaps.
    pub(in crate::partition) fn find_parts(&mut self, cx: &mut Cx, others: &Others) {
        if cx.now.monotonic_us < self.next_search_us || !Rule::FindPartsInCopies.holds() {
            return;
        }
        self.next_search_us = cx.now.monotonic_us + SEARCH_INTERVAL_US;
        let replicated = self.coordinated.keys().filter(|name| name.datacenter != cx.datacenter);
        let wanted = replicated.filter_map(|name| Some((*name, self.time_of_wanted(others, *name)?)));
        let questions = wanted.flat_map(|(transaction, time)| {
            self.wanted_of(transaction).into_iter().map(move |participant| (participant, transaction, time))
        });
        for (participant, transaction, time) in questions.take(QUESTIONS_MAX).collect::<Vec<_>>() {
            cx.send_local(participant, Message::FindPart { transaction, time });
        }
    }

    /// The stamp of a transaction whose participants may have their parts without having been asked.
    fn time_of_wanted(&self, others: &Others, transaction: OperationId) -> Option<LogicalTime> {
        match self.coordinated.get(&transaction)? {
            Coordinated::Arriving(arriving) if others.is_filled() => {
                arriving.announced.as_ref().map(|announced| announced.stamp.time)
            }
            Coordinated::Committing(found) if found.announced && !found.is_fresh => {
                Some(found.decision.stamp.time)
            }
            _ => None,
        }
    }

    fn wanted_of(&self, transaction: OperationId) -> Vec<PartitionId> {
        let Some(Coordinated::Committing(found)) = self.coordinated.get(&transaction) else {
            return self.missing_parts(transaction);
        };
        let is_done = |p: &PartitionId| found.committed.contains(p) && found.synced.contains(p);
        found.participants.iter().copied().filter(|p| !is_done(p)).collect()
    }

    /// The coordinator misses a part of a transaction that was stamped at this time.
    pub(in crate::partition) fn on_find_part(
        &mut self,
        cx: &mut Cx,
        others: &Others,
        transaction: OperationId,
        time: LogicalTime,
    ) {
        if self.replicated_parts.contains_key(&transaction) {
            return self.notify_again(cx, others, transaction);
        }
        let is_durable = match self.durable.has_executed(transaction) {
            true => self.durable.is_reported(transaction),
            false => others.has_all_until(transaction.datacenter, time),
        };
        if is_durable {
            cx.send_local(coordinator_of(transaction), Message::PartHeld { transaction });
        }
    }

    /// A participant has its part. Whether that leaves nobody to vote.
    pub(in crate::partition) fn on_part_held(
        &mut self,
        cx: &mut Cx,
        from: Address,
        transaction: OperationId,
    ) -> bool {
        let Address::Partition { partition, .. } = from else { return false };
        match self.coordinated.get_mut(&transaction) {
            Some(Coordinated::Arriving(arriving)) => {
                arriving.notified.remove(&partition);
                arriving.held.insert(partition);
                self.prepare_when_complete(cx, transaction);
            }
            Some(Coordinated::Committing(found)) if found.participants.contains(&partition) => {
                found.committed.insert(partition);
                found.synced.insert(partition);
                self.complete_if_done(cx, transaction);
            }
            _ => {}
        }
        matches!(self.coordinated.get(&transaction), Some(Coordinated::Voting(voting)) if voting.participants.is_empty())
    }

    /// Whether a part of a replicated transaction waits here for nothing but a decision.
    pub(in crate::partition) fn awaits_decision(&self, others: &Others, transaction: OperationId) -> bool {
        self.replicated_parts.get(&transaction).is_some_and(|part| {
            part.decision.is_none() && others.replication.inbound.is_ready(part.origin, part.position)
        })
    }
}
