//! Transactions that a log has left open, taken up again.

use super::Transactions;
use super::coordinator::{Committing, Coordinated, Voting, VotingKind};
use crate::partition::cx::Cx;
use crate::partition::journal::open::Begun;
use crate::partition::keyspaces::Keyspaces;
use crate::partition::others::Others;
use ensue_store::entry::{Change, Entry};
use ensue_types::{Context, KeyspaceId, LogicalTime, OperationId, Part, Rule};
use ensue_wire::Decision;
use std::collections::BTreeMap;

impl Transactions {
    pub(in crate::partition) fn resume_begun(
        &mut self,
        cx: &Cx,
        transaction: OperationId,
        begun: Begun,
        decision: Option<(LogicalTime, Option<Entry>)>,
    ) {
        let participants: Vec<_> = begun.parts.iter().map(|part| part.partition).collect();
        let keyspace = begun.keyspace;
        let state = match decision {
            Some((at, Some(entry))) => {
                let operation = OperationId {
                    incarnation: entry.position.incarnation(),
                    position: entry.position,
                    ..transaction
                };
                let decision = Decision { at, operation, stamp: entry.stamp };
                self.names.insert(operation, transaction);
                let announced = self.note_decision(cx, transaction, Some(entry.position));
                let committing = Committing::new(decision, keyspace, participants, begun.parts);
                let is_fresh = !Rule::FoundDecisionsMayBeKnown.holds();
                Coordinated::Committing(Committing { announced, is_fresh, ..committing })
            }
            _ => {
                let context = Context { time: LogicalTime::ZERO, causes: begun.context };
                let kind = VotingKind::Local { parts: begun.parts, context, session: None };
                Coordinated::Voting(Voting { keyspace, participants, votes: BTreeMap::new(), kind })
            }
        };
        self.coordinated.insert(transaction, state);
    }

    pub(in crate::partition) fn resume_decided(
        &mut self,
        cx: &Cx,
        transaction: OperationId,
        at: LogicalTime,
        entry: &Entry,
    ) {
        let Change::Transaction { keyspace, participants, .. } = &entry.change else { return };
        let decision = Decision { at, operation: transaction, stamp: entry.stamp };
        let announced = self.note_decision(cx, transaction, None);
        let committing = Committing::new(decision, *keyspace, participants.clone(), Vec::new());
        let is_fresh = !Rule::FoundDecisionsMayBeKnown.holds();
        let committing = Committing { announced, is_fresh, ..committing };
        self.coordinated.insert(transaction, Coordinated::Committing(committing));
    }

    /// What was voted for is undecided again, until the coordinator says more.
    pub(in crate::partition) fn resume_prepared(
        &mut self,
        cx: &mut Cx,
        others: &Others,
        keyspaces: &mut Keyspaces,
        prepared: BTreeMap<OperationId, (KeyspaceId, LogicalTime, Part)>,
    ) {
        let remember = Rule::RememberTheVote.holds();
        for (transaction, (keyspace, at, part)) in prepared.into_iter().filter(|_| remember) {
            if transaction.datacenter == cx.datacenter {
                self.await_decision(cx, keyspaces, transaction, keyspace, part, at);
                cx.vote_again(transaction);
            } else if let Some(part) = self.replicated_parts.get(&transaction) {
                let (origin, position) = (part.origin, part.position);
                if part.work.is_none() {
                    self.await_replicated_decision(others, keyspaces, transaction, origin, position, at);
                }
                self.notify_again(cx, others, transaction);
            }
        }
    }
}
