//! The coordinator: one struct a state, each consumed by the step to the next.

use super::Transactions;
use crate::config::AppendFsync;
use crate::partition::cx::{Cx, coordinator_of};
use crate::partition::keyspaces::Keyspaces;
use crate::partition::others::Others;
use crate::trace::{Trace, TransactionStep};
use ensue_store::record::Record;
use ensue_types::{
    Causes, Context, DatacenterId, KeyspaceId, LogicalTime, OperationId, Part, PartitionId, Reply, RequestId,
    Rule, Stamp,
};
use ensue_wire::{Address, Decision, Message};
use std::collections::{BTreeMap, BTreeSet};

/// A reader asks whether a transaction had committed at a past time.
#[derive(Clone, Copy, Debug)]
pub(in crate::partition) struct CommitCheck {
    pub check: u64,
    pub transaction: OperationId,
    pub at: LogicalTime,
    /// It waits until a decision is announced.
    pub waits: bool,
}

/// A transaction that this partition coordinates.
#[derive(Clone, Debug)]
pub(super) enum Coordinated {
    /// Replicated: parts or dependencies are still missing.
    Arriving(Arriving),
    /// Votes are missing.
    Voting(Voting),
    /// Decided; some participant has not said that its part is durable.
    Committing(Committing),
}

/// A replicated transaction of which something is missing.
#[derive(Clone, Debug, Default)]
pub(super) struct Arriving {
    /// From its `Transaction` entry, once that has arrived and its dependencies are met.
    pub announced: Option<Announced>,
    pub notified: BTreeSet<PartitionId>,
    /// Who has its part already, and was not asked here: its directory, or this one, was filled by a copy.
    pub held: BTreeSet<PartitionId>,
    /// A part is never shown, and so nothing of it is.
    pub unrecoverable: bool,
}

/// What the `Transaction` entry said.
#[derive(Clone, Debug)]
pub(crate) struct Announced {
    pub keyspace: KeyspaceId,
    pub participants: Vec<PartitionId>,
    pub stamp: Stamp,
}

/// All participants have been asked to prepare.
#[derive(Clone, Debug)]
pub(super) struct Voting {
    pub keyspace: KeyspaceId,
    pub participants: Vec<PartitionId>,
    /// Who has voted, at which time.
    pub votes: BTreeMap<PartitionId, LogicalTime>,
    pub kind: VotingKind,
}

/// What differs between a local and a replicated transaction.
#[derive(Clone, Debug)]
pub(super) enum VotingKind {
    Local { parts: Vec<Part>, context: Context, session: Option<(Address, RequestId)> },
    Replicated { stamp: Stamp },
}

/// Decided; participants are being told.
#[derive(Clone, Debug)]
pub(super) struct Committing {
    pub decision: Decision,
    pub participants: Vec<PartitionId>,
    /// Of a local transaction: a participant that lost its part gets it back.
    pub parts: Vec<Part>,
    /// The decision is durable; before that, nobody hears of it.
    pub announced: bool,
    /// It was decided since this partition started, so that nobody has seen it before it is announced. One that was
    /// found in the log may have been announced before.
    pub is_fresh: bool,
    /// Readers that wait until it is announced.
    pub checks: Vec<(Address, u64)>,
    /// Who is to be given its part again, because it may have lost it.
    pub again: BTreeSet<PartitionId>,
    /// Who has executed its part, and who has it durably.
    pub committed: BTreeSet<PartitionId>,
    pub synced: BTreeSet<PartitionId>,
    pub answered: bool,
    pub keyspace: KeyspaceId,
    pub replies: Vec<(u32, Reply)>,
    pub context: Context,
    pub session: Option<(Address, RequestId)>,
}

impl Committing {
    pub fn new(
        decision: Decision,
        keyspace: KeyspaceId,
        participants: Vec<PartitionId>,
        parts: Vec<Part>,
    ) -> Committing {
        Committing {
            decision,
            participants,
            parts,
            announced: false,
            is_fresh: false,
            checks: Vec::new(),
            again: BTreeSet::new(),
            committed: BTreeSet::new(),
            synced: BTreeSet::new(),
            answered: false,
            keyspace,
            replies: Vec::new(),
            context: Context::default(),
            session: None,
        }
    }
}

impl Transactions {
    /// Asks the participants that have not answered, those that the filter names.
    pub(crate) fn query_participants(
        &mut self,
        cx: &mut Cx,
        transaction: OperationId,
        whom: &dyn Fn(PartitionId) -> bool,
    ) {
        let mut messages = Vec::new();
        match self.coordinated.get(&transaction) {
            Some(Coordinated::Voting(voting)) => {
                for &participant in
                    voting.participants.iter().filter(|p| !voting.votes.contains_key(p) && whom(**p))
                {
                    let part = match &voting.kind {
                        VotingKind::Local { parts, .. } => {
                            parts.iter().find(|part| part.partition == participant).cloned()
                        }
                        VotingKind::Replicated { .. } => None,
                    };
                    let prepare = Message::Prepare { transaction, keyspace: voting.keyspace, part };
                    messages.push((participant, prepare));
                }
            }
            Some(Coordinated::Committing(committing)) if committing.announced => {
                let (decision, keyspace) = (committing.decision, committing.keyspace);
                let done =
                    |p: &PartitionId| committing.committed.contains(p) && committing.synced.contains(p);
                for &participant in committing.participants.iter().filter(|p| !done(p) && whom(**p)) {
                    let part = committing.parts.iter().find(|part| part.partition == participant);
                    let part = part.filter(|_| committing.again.contains(&participant)).cloned();
                    if part.is_some() {
                        messages.push((participant, Message::Prepare { transaction, keyspace, part }));
                    }
                    messages.push((participant, Message::Commit { transaction, decision }));
                }
            }
            Some(Coordinated::Committing(_)) => {}
            Some(Coordinated::Arriving(_)) | None => {}
        }
        for (participant, message) in messages {
            cx.send_local(participant, message);
        }
    }

    /// The participants behind a new link may have lost their parts.
    pub(crate) fn repeat_decision(&mut self, transaction: OperationId, owns: &dyn Fn(PartitionId) -> bool) {
        if !Rule::GiveThePartBack.holds() {
            return;
        }
        if let Some(Coordinated::Committing(committing)) = self.coordinated.get_mut(&transaction) {
            committing.again.extend(committing.participants.iter().copied().filter(|p| owns(*p)));
        }
    }

    /// A participant has executed its part.
    pub(crate) fn on_committed(
        &mut self,
        cx: &mut Cx,
        from: Address,
        transaction: OperationId,
        replies: Vec<(u32, Reply)>,
        seen: Causes,
    ) {
        let Address::Partition { partition, .. } = from else { return };
        let protocols = cx.protocols.clone();
        let always = cx.config.append_fsync == AppendFsync::Always;
        if always && cx.is_replicated(transaction).is_some() && !self.coordinated.contains_key(&transaction) {
            // This says that it is synced, too. What the copy of this directory has is not coordinated here.
            return self.on_parts_synced(cx, from, vec![transaction]);
        }
        let Some(Coordinated::Committing(committing)) = self.coordinated.get_mut(&transaction) else {
            return;
        };
        // What a partition says that takes no part counts for nothing.
        if !committing.participants.contains(&partition) {
            return;
        }
        committing.again.remove(&partition);
        if always {
            committing.synced.insert(partition);
        }
        if !committing.committed.insert(partition) {
            return self.complete_if_done(cx, transaction);
        }
        committing.replies.extend(replies);
        let protocol = &protocols[usize::from(committing.keyspace.0)];
        if protocol.merge(&mut committing.context.causes, &seen).is_err() {
            cx.traces.push_back(Trace::Refused { what: "a context that the protocol cannot read" });
        }
        self.complete_if_done(cx, transaction);
    }

    /// Answers the session when every participant has executed its part, and forgets when every part is durable.
    pub(crate) fn complete_if_done(&mut self, cx: &mut Cx, transaction: OperationId) {
        let Some(Coordinated::Committing(done)) = self.coordinated.get_mut(&transaction) else {
            return;
        };
        if done.committed.len() < done.participants.len() {
            return;
        }
        let first = !std::mem::replace(&mut done.answered, true);
        let (context, mut replies) = (done.context.clone(), std::mem::take(&mut done.replies));
        let durable = done.participants.iter().all(|participant| done.synced.contains(participant));
        if let Some((to, request)) = done.session.take() {
            replies.sort_by_key(|(place, _)| *place);
            cx.send(to, Message::Transacted { request, context, replies });
        }
        if first {
            cx.trace_step(transaction, TransactionStep::Completed);
        }
        if durable {
            self.complete(cx, transaction);
        }
    }

    pub(crate) fn complete(&mut self, cx: &mut Cx, transaction: OperationId) {
        if let Some(Coordinated::Committing(done)) = self.coordinated.remove(&transaction) {
            // A participant that had lost its part would never get it back.
            let lacks = done.participants.iter().find(|participant| !done.synced.contains(participant));
            assert!(
                lacks.is_none(),
                "{transaction} is forgotten, and {lacks:?} does not have its part durably"
            );
            cx.journal.log(&Record::Completed { transaction });
            self.note_completed(cx, done.decision.operation, done.participants);
        }
    }

    /// A reader asks whether the transaction had committed at a past time. If not, it never will have (trap 4). Of one
    /// that had, and that nobody has seen yet, it is told the time, and may read what was there before.
    pub(in crate::partition) fn on_commit_check(&mut self, cx: &mut Cx, from: Address, asked: CommitCheck) {
        let CommitCheck { check, transaction, at, waits } = asked;
        cx.advance_clock(at);
        let checked = |decision| Message::CommitChecked { check, transaction, decision };
        let message = match self.coordinated.get_mut(&transaction) {
            Some(Coordinated::Committing(committing)) => {
                let decision = committing.decision;
                if committing.announced {
                    checked(Some(decision))
                } else if decision.at > at {
                    checked(None)
                } else if committing.is_fresh && !waits {
                    Message::CommitUnannounced { check, transaction, at: decision.at }
                } else {
                    return committing.checks.push((from, check));
                }
            }
            _ => checked(None),
        };
        cx.send(from, message);
    }

    pub(in crate::partition) fn prepare_when_complete(&mut self, cx: &mut Cx, transaction: OperationId) {
        let Some(Coordinated::Arriving(arriving)) = self.coordinated.get(&transaction) else {
            return;
        };
        let Some(announced) = arriving.announced.clone() else { return };
        let is_here = |p: &PartitionId| arriving.notified.contains(p) || arriving.held.contains(p);
        let all = announced.participants.iter().all(is_here);
        if !all && Rule::WaitForEveryPart.holds() {
            return;
        }
        let mut participants = announced.participants;
        participants.retain(|p| arriving.notified.contains(p));
        let held = arriving.held.iter().copied().collect();
        // Where every part was there before, nobody has to vote.
        if participants.is_empty() && !all {
            return;
        }
        let kind = VotingKind::Replicated { stamp: announced.stamp };
        let voting = Voting { keyspace: announced.keyspace, participants, votes: BTreeMap::new(), kind };
        self.coordinated.insert(transaction, Coordinated::Voting(voting));
        self.query_participants(cx, transaction, &|_| true);
        self.release_held(cx, transaction, held);
    }

    /// A vote for a replicated transaction that is not voted on: this coordinator has been away, and waits again for
    /// what the transaction depends on. If that was lost here with a tail and comes again, its place in the rows may be
    /// behind the part that was voted for. So the part gives up its place, and is heard of again when it has none.
    pub(in crate::partition) fn return_vote(
        &mut self,
        cx: &mut Cx,
        others: &Others,
        participant: PartitionId,
        transaction: OperationId,
    ) {
        let applied = others.replication.applied.contains(transaction.datacenter, transaction.position);
        let message = match others.replication.never_shown(transaction) {
            Some(message) => message,
            None if applied && Rule::CommitWhatCopiesHave.holds() => Message::TransactionOver { transaction },
            None if applied || !Rule::GiveTheVoteBack.holds() => return,
            None => Message::ForgetVote { transaction },
        };
        if let Some(Coordinated::Arriving(arriving)) = self.coordinated.get_mut(&transaction) {
            arriving.notified.remove(&participant);
        }
        cx.send_local(participant, message);
    }

    /// A part of a replicated transaction arrived at a participant.
    pub(crate) fn on_notify(
        &mut self,
        cx: &mut Cx,
        others: &Others,
        from: Address,
        transaction: OperationId,
    ) {
        let Address::Partition { partition, .. } = from else { return };
        if let Some(message) = others.replication.never_shown(transaction) {
            return cx.send(from, message);
        }
        if others.replication.applied.contains(transaction.datacenter, transaction.position) {
            if !self.coordinated.contains_key(&transaction) {
                if Rule::CommitWhatCopiesHave.holds() {
                    cx.send(from, Message::TransactionOver { transaction });
                }
                return self.note_orphan(cx, others, partition, transaction);
            }
            return self.query_participants(cx, transaction, &|p| p == partition);
        }
        let fresh = || Coordinated::Arriving(Arriving::default());
        match self.coordinated.entry(transaction).or_insert_with(fresh) {
            Coordinated::Arriving(arriving) => {
                arriving.notified.insert(partition);
                self.prepare_when_complete(cx, transaction);
            }
            // It has been away, and is asked what it was asked before.
            Coordinated::Voting(voting) => {
                voting.votes.remove(&partition);
                self.query_participants(cx, transaction, &|p| p == partition);
            }
            Coordinated::Committing(_) => self.query_participants(cx, transaction, &|p| p == partition),
        }
    }

    /// A part is ready, and its transaction is neither open here nor to come: another entry has its place. An old copy
    /// of the origin's directories wrote it before the copy was found to be old. It is never shown, and is discarded
    /// with its origin. A part of a transaction that is over is meant only where directories are filled: else all were
    /// executed, durably, before that.
    fn note_orphan(
        &mut self,
        cx: &mut Cx,
        others: &Others,
        participant: PartitionId,
        transaction: OperationId,
    ) {
        self.orphans.insert((transaction, participant));
        if others.failover.failed.is_settled(transaction.datacenter) {
            self.discard_orphans(cx, transaction.datacenter);
        }
    }

    pub(in crate::partition) fn discard_orphans(&mut self, cx: &mut Cx, datacenter: DatacenterId) {
        let is_of_other = |(transaction, _): &(OperationId, _)| transaction.datacenter != datacenter;
        let (others, orphans) = std::mem::take(&mut self.orphans).into_iter().partition(is_of_other);
        self.orphans = others;
        let orphans: BTreeSet<(OperationId, PartitionId)> = orphans;
        for (transaction, participant) in orphans {
            cx.send_local(participant, Message::Discard { transaction });
        }
    }

    /// At the coordinator: everything of a dead datacenter's transaction is here but some parts.
    pub(crate) fn await_parts(
        &self,
        cx: &mut Cx,
        others: &Others,
        transaction: OperationId,
        owns: &dyn Fn(PartitionId) -> bool,
    ) {
        if !others.failover.failed.is_settled(transaction.datacenter) || !Rule::AwaitTheParts.holds() {
            return;
        }
        for participant in self.missing_parts(transaction).into_iter().filter(|p| owns(*p)) {
            cx.send_local(participant, Message::AwaitPart { transaction });
        }
    }

    /// The coordinator misses a part.
    pub(in crate::partition) fn on_await_part(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        keyspaces: &mut Keyspaces,
        transaction: OperationId,
    ) {
        let origin = transaction.datacenter;
        if self.replicated_parts.contains_key(&transaction) {
            return self.notify_again(cx, others, transaction);
        }
        keyspaces.declare_dead(cx, others, origin, LogicalTime::ZERO);
        if !others.failover.failed.is_settled(origin) {
            return others.failover.failed.await_end(transaction);
        }
        // While a directory is filled by a copy, it may be in that.
        let may_be_copied = others.is_filled() && others.is_catching_up() && !cx.journal.is_whole();
        if !self.durable.has_executed(transaction) && !may_be_copied {
            cx.send_local(coordinator_of(transaction), Message::PartUnrecoverable { transaction });
        }
    }
}
