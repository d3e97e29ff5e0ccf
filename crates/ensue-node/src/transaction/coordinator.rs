//! The coordinator: one struct a state, each consumed by the step to the next.

use crate::config::AppendFsync;
use crate::partition::{Needed, Partition};
use crate::trace::{Trace, TransactionStep};
use ensue_store::entry::Change;
use ensue_store::record::Record;
use ensue_types::{
    Context, DatacenterId, KeyspaceId, LogicalTime, Opaque, OperationId, Part, PartitionId, Position, Reply,
    RequestId, Rule, Stamp,
};
use ensue_wire::{Address, Decision, Message};
use std::collections::{BTreeMap, BTreeSet};

/// A transaction that this partition coordinates.
#[derive(Clone, Debug)]
pub(crate) enum Coordinated {
    /// Replicated: parts or dependencies are still missing.
    Arriving(Arriving),
    /// Votes are missing.
    Voting(Voting),
    /// Decided; some participant has not said that its part is durable.
    Committing(Committing),
}

/// A replicated transaction of which something is missing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arriving {
    /// From its `Transaction` entry, once that has arrived and its dependencies are met.
    pub announced: Option<Announced>,
    pub notified: BTreeSet<PartitionId>,
    /// A part is never shown, and so nothing of it is.
    pub gone: bool,
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
pub(crate) struct Voting {
    pub keyspace: KeyspaceId,
    pub participants: Vec<PartitionId>,
    /// Who has voted, at which time.
    pub votes: BTreeMap<PartitionId, LogicalTime>,
    pub kind: VotingKind,
}

/// What differs between a local and a replicated transaction.
#[derive(Clone, Debug)]
pub(crate) enum VotingKind {
    Local { parts: Vec<Part>, context: Context, session: Option<(Address, RequestId)> },
    Replicated { stamp: Stamp },
}

/// Decided; participants are being told.
#[derive(Clone, Debug)]
pub(crate) struct Committing {
    pub decision: Decision,
    pub participants: Vec<PartitionId>,
    /// Of a local transaction: a participant that lost its part gets it back.
    pub parts: Vec<Part>,
    /// The decision is durable; before that, nobody hears of it.
    pub announced: bool,
    /// Readers that asked before.
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

impl Partition {
    /// A session's write transaction begins.
    pub(crate) fn on_transact(
        &mut self,
        from: Address,
        request: RequestId,
        keyspace: KeyspaceId,
        context: Context,
        mut parts: Vec<Part>,
    ) {
        self.observe(context.time);
        if parts.len() == 1 && parts[0].partition == self.id {
            let part = parts.remove(0);
            let (places, commands): (Vec<u32>, Vec<_>) = part.commands.into_iter().unzip();
            let commands = commands.into();
            let atomic = Some(places);
            let replies = Vec::new();
            let execution = crate::partition::Execution {
                from,
                request,
                keyspace,
                context,
                commands,
                replies,
                atomic,
                together: true,
                gave_up: false,
                since_us: self.now.monotonic_us,
                used: Default::default(),
            };
            return self.execute_atomically(execution);
        }
        if let Some(reply) = self.write_refusal(true) {
            return self.send(from, Message::Refused { request, reply });
        }
        self.transactions.begun += 1;
        let number = self.transactions.begun;
        let transaction = self.local_transaction(number);
        let record = Record::Begun { number, keyspace, context: context.facts.clone(), parts: parts.clone() };
        if self.config.rules.hold(Rule::LogBeforeAsking) {
            self.persistence.log(&record);
        }
        self.persistence.note_needed(Needed::Begun(transaction));
        let participants = parts.iter().map(|part| part.partition).collect();
        let kind = VotingKind::Local { parts, context, session: Some((from, request)) };
        let voting = Voting { keyspace, participants, votes: BTreeMap::new(), kind };
        self.transactions.coordinated.insert(transaction, Coordinated::Voting(voting));
        self.trace_step(transaction, TransactionStep::Begun);
        self.ask_participants(transaction, &|_| true);
    }

    /// The name of the `number`th local transaction that this partition coordinates.
    pub(crate) fn local_transaction(&self, number: u64) -> OperationId {
        OperationId {
            datacenter: self.datacenter,
            incarnation: self.incarnation,
            partition: self.id,
            position: Position(number),
        }
    }

    /// Asks the participants that have not answered, those that the filter names.
    pub(crate) fn ask_participants(&mut self, transaction: OperationId, whom: &dyn Fn(PartitionId) -> bool) {
        let mut messages = Vec::new();
        match self.transactions.coordinated.get(&transaction) {
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
            self.send_local(participant, message);
        }
    }

    /// A participant has prepared. One that votes on a decided transaction has been away: it is told again.
    pub(crate) fn on_vote(&mut self, from: Address, voted_at: LogicalTime, transaction: OperationId) {
        let Address::Partition { partition, .. } = from else { return };
        match self.transactions.coordinated.get_mut(&transaction) {
            Some(Coordinated::Voting(voting)) => {
                if !voting.participants.contains(&partition) {
                    return self.trace(Trace::Refused { what: "a vote of a partition that takes no part" });
                }
                voting.votes.insert(partition, voted_at);
                let enough = voting.votes.len() == voting.participants.len()
                    || !self.config.rules.hold(Rule::DecideAfterEveryVote);
                if enough {
                    self.decide(transaction);
                }
            }
            Some(Coordinated::Committing(committing)) => {
                // It has its part. Even one that has executed it is told: asked twice, it may have placed it once more.
                committing.again.remove(&partition);
                if committing.announced {
                    let decision = committing.decision;
                    self.send_local(partition, Message::Commit { transaction, decision });
                }
            }
            // A local transaction that was never decided: this log lost its beginning.
            None if transaction.datacenter == self.datacenter => {
                self.send(from, Message::Abandon { transaction });
            }
            Some(Coordinated::Arriving(_)) | None => self.give_vote_back(partition, transaction),
        }
    }

    /// A vote for a replicated transaction that is not voted on: this coordinator has been away, and waits again for what the transaction
    /// depends on. If that was lost here with a tail and comes again, its place in the rows may be behind the part that was
    /// voted for. So the part gives up its place, and is heard of again when it has none.
    fn give_vote_back(&mut self, participant: PartitionId, transaction: OperationId) {
        let applied = self.applied.contains(transaction.datacenter, transaction.position);
        let message = match self.never_shown(transaction) {
            Some(message) => message,
            None if applied || !self.config.rules.hold(Rule::GiveTheVoteBack) => return,
            None => Message::ForgetVote { transaction },
        };
        if let Some(Coordinated::Arriving(arriving)) = self.transactions.coordinated.get_mut(&transaction) {
            arriving.notified.remove(&participant);
        }
        self.send_local(participant, message);
    }

    /// The participants behind a new link may have lost their parts.
    pub(crate) fn repeat_decision(&mut self, transaction: OperationId, owns: &dyn Fn(PartitionId) -> bool) {
        if !self.config.rules.hold(Rule::GiveThePartBack) {
            return;
        }
        if let Some(Coordinated::Committing(committing)) = self.transactions.coordinated.get_mut(&transaction)
        {
            committing.again.extend(committing.participants.iter().copied().filter(|p| owns(*p)));
        }
    }

    /// Every participant has voted: the transaction commits now.
    fn decide(&mut self, transaction: OperationId) {
        let Some(Coordinated::Voting(voting)) = self.transactions.coordinated.remove(&transaction) else {
            return;
        };
        // Above every vote, and above every time at which a reader was told "not committed": the clock has seen both.
        let mut at = self.tick();
        let Voting { keyspace, participants, kind, votes } = voting;
        if !self.config.rules.hold(Rule::KeepTheDenial) {
            at = votes.values().max().map_or(at, |vote| vote.next());
        }
        if !self.config.rules.hold(Rule::CommitAboveEveryVote) {
            at = votes.values().min().map_or(at, |vote| vote.next());
        }
        let committing = match kind {
            VotingKind::Local { parts, context, session } => {
                let committing = self.decide_local(transaction, at, keyspace, participants, context);
                Committing { parts, session, ..committing }
            }
            VotingKind::Replicated { stamp } => {
                self.persistence.log(&Record::Decided { transaction, at, entry: None });
                let announced = Needed::Received(transaction.datacenter, transaction.position);
                self.persistence.needed_as(announced, Needed::Begun(transaction));
                let decision = Decision { at, operation: transaction, stamp };
                Committing::new(decision, keyspace, participants, Vec::new())
            }
        };
        let local = transaction.datacenter == self.datacenter;
        let place = local.then_some(committing.decision.operation.position);
        self.transactions.coordinated.insert(transaction, Coordinated::Committing(committing));
        self.trace_step(transaction, TransactionStep::Decided);
        if self.note_decision(transaction, place) {
            self.announce(transaction);
        }
    }

    fn decide_local(
        &mut self,
        transaction: OperationId,
        at: LogicalTime,
        keyspace: KeyspaceId,
        participants: Vec<PartitionId>,
        mut context: Context,
    ) -> Committing {
        let stamp = self.stamp(at);
        let operation = self.next_operation();
        let mut dependencies = self.dependencies(keyspace, &mut context.facts, &[]);
        if !self.config.rules.hold(Rule::TransactionsCarryThePast) {
            dependencies = Opaque::default();
        }
        let change = Change::Transaction { keyspace, participants: participants.clone() };
        let entry = self.next_entry(stamp, dependencies, change, Vec::new());
        self.persistence.log_decided(transaction, at, self.position, &entry);
        self.own_entry_applied();
        context.time = context.time.max(at);
        self.wrote(keyspace, &mut context, operation, stamp);
        let decision = Decision { at, operation, stamp };
        self.transactions.names.insert(operation, transaction);
        Committing { context, ..Committing::new(decision, keyspace, participants, Vec::new()) }
    }

    /// A participant has executed its part.
    pub(crate) fn on_committed(
        &mut self,
        from: Address,
        transaction: OperationId,
        replies: Vec<(u32, Reply)>,
        seen: Opaque,
    ) {
        let Address::Partition { partition, .. } = from else { return };
        let protocols = self.protocols.clone();
        let always = self.config.append_fsync == AppendFsync::Always;
        let Some(Coordinated::Committing(committing)) = self.transactions.coordinated.get_mut(&transaction)
        else {
            return;
        };
        committing.again.remove(&partition);
        if always {
            committing.synced.insert(partition);
        }
        if !committing.committed.insert(partition) {
            return self.complete_if_done(transaction);
        }
        committing.replies.extend(replies);
        let protocol = &protocols[usize::from(committing.keyspace.0)];
        if protocol.join(&mut committing.context.facts, &seen).is_err() {
            self.traces.push_back(Trace::Refused { what: "a context that the protocol cannot read" });
        }
        self.complete_if_done(transaction);
    }

    /// Answers the session when every participant has executed its part, and forgets when every part is durable.
    pub(crate) fn complete_if_done(&mut self, transaction: OperationId) {
        let Some(Coordinated::Committing(done)) = self.transactions.coordinated.get_mut(&transaction) else {
            return;
        };
        if done.committed.len() < done.participants.len() {
            return;
        }
        let first = !std::mem::replace(&mut done.answered, true);
        let (context, mut replies) = (done.context.clone(), std::mem::take(&mut done.replies));
        let durable = done.synced.len() == done.participants.len();
        if let Some((to, request)) = done.session.take() {
            replies.sort_by_key(|(place, _)| *place);
            self.send(to, Message::Transacted { request, context, replies });
        }
        if first {
            self.trace_step(transaction, TransactionStep::Completed);
        }
        if durable {
            self.complete(transaction);
        }
    }

    fn complete(&mut self, transaction: OperationId) {
        if let Some(Coordinated::Committing(done)) = self.transactions.coordinated.remove(&transaction) {
            self.persistence.log(&Record::Completed { transaction });
            self.note_completed(done.decision.operation, done.participants);
        }
    }

    /// A reader asks whether the transaction had committed at a past time. If not, it never will have (trap 4).
    pub(crate) fn on_commit_check(
        &mut self,
        from: Address,
        check: u64,
        transaction: OperationId,
        at: LogicalTime,
    ) {
        self.observe(at);
        let decision = match self.transactions.coordinated.get_mut(&transaction) {
            Some(Coordinated::Committing(committing)) if !committing.announced => {
                return committing.checks.push((from, check));
            }
            Some(Coordinated::Committing(committing)) => Some(committing.decision),
            _ => None,
        };
        self.send(from, Message::CommitChecked { check, transaction, decision });
    }

    /// What a participant is told of a replicated transaction whose entry was lost with its origin's tail, or with a dead datacenter.
    fn never_shown(&self, transaction: OperationId) -> Option<Message> {
        let set = self.applied.set(transaction.datacenter);
        if set.is_some_and(|set| set.is_lost(transaction.position)) {
            return Some(Message::Abandon { transaction });
        }
        self.is_transaction_gone(transaction).then_some(Message::Discard { transaction })
    }

    /// A part of a replicated transaction arrived at a participant.
    pub(crate) fn on_notify(&mut self, from: Address, transaction: OperationId) {
        let Address::Partition { partition, .. } = from else { return };
        if let Some(message) = self.never_shown(transaction) {
            return self.send(from, message);
        }
        if self.applied.contains(transaction.datacenter, transaction.position) {
            return self.ask_participants(transaction, &|p| p == partition);
        }
        let fresh = || Coordinated::Arriving(Arriving::default());
        match self.transactions.coordinated.entry(transaction).or_insert_with(fresh) {
            Coordinated::Arriving(arriving) => {
                arriving.notified.insert(partition);
                self.prepare_when_complete(transaction);
            }
            // It has been away, and is asked what it was asked before.
            Coordinated::Voting(voting) => {
                voting.votes.remove(&partition);
                self.ask_participants(transaction, &|p| p == partition);
            }
            Coordinated::Committing(_) => self.ask_participants(transaction, &|p| p == partition),
        }
    }

    /// The `Transaction` entry has arrived and its dependencies are met.
    pub(crate) fn on_announced(&mut self, transaction: OperationId, announced: Announced) {
        let fresh = || Coordinated::Arriving(Arriving::default());
        if let Coordinated::Arriving(arriving) =
            self.transactions.coordinated.entry(transaction).or_insert_with(fresh)
        {
            arriving.announced = Some(announced);
        }
        if !self.discard_when_announced(transaction) {
            self.prepare_when_complete(transaction);
            self.await_parts(transaction, &|_| true);
        }
    }

    fn prepare_when_complete(&mut self, transaction: OperationId) {
        let Some(Coordinated::Arriving(arriving)) = self.transactions.coordinated.get(&transaction) else {
            return;
        };
        let Some(announced) = arriving.announced.clone() else { return };
        let all = announced.participants.iter().all(|p| arriving.notified.contains(p));
        if !all && self.config.rules.hold(Rule::WaitForEveryPart) {
            return;
        }
        let mut participants = announced.participants;
        if !all {
            participants.retain(|p| arriving.notified.contains(p));
        }
        if participants.is_empty() {
            return;
        }
        let kind = VotingKind::Replicated { stamp: announced.stamp };
        let voting = Voting { keyspace: announced.keyspace, participants, votes: BTreeMap::new(), kind };
        self.transactions.coordinated.insert(transaction, Coordinated::Voting(voting));
        self.ask_participants(transaction, &|_| true);
    }

    /// Tells the simulator where a transaction stands.
    pub(crate) fn trace_step(&mut self, transaction: OperationId, step: TransactionStep) {
        self.trace(Trace::TransactionStep { partition: self.id, transaction, step });
    }

    /// Where the `Transaction` entry of a replicated transaction stands in its origin's stream.
    pub(crate) fn is_replicated(&self, transaction: OperationId) -> Option<DatacenterId> {
        (transaction.datacenter != self.datacenter).then_some(transaction.datacenter)
    }
}
