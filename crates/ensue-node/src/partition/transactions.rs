//! Write transactions: two-phase commit with positive cohorts and indirection (Eiger, section 5), made to survive
//! crashes.
//!
//! On `Transact` (local): log the whole write set, then ask every participant to prepare. On every vote: draw the
//! commit time above all votes, log it with the entry that names the transaction, tell every participant. On every
//! `Committed`: answer the session.
//!
//! On a replicated transaction: each participant receives its part by its own stream and, when the part's own
//! dependencies are met, notifies the coordinator's equivalent here. When all have, and the transaction's dependencies
//! are met, the same two phases follow, and the commit time drawn is the earliest valid time here.
//!
//! Where we differ from the paper:
//! - The session sends the whole write set to the coordinator, which logs it before any participant hears of it, so
//!   that a
//!   logged transaction can always be completed (trap 17). A participant logs its vote with its part.
//! - The commit time is above every vote and above every time at which "not committed" was answered (trap 4).
//! - The coordinator knows the participants by name and counts them, not keys; partitions are the same everywhere (trap
//!   63).
//! - A participant executes its part in row order by logical time, which also evaluates commands that read to write.

pub(in crate::partition) mod admit;
pub(in crate::partition) mod coordinator;
mod durable;
mod filled;
mod participant;
pub(in crate::partition) mod recovery;
pub(in crate::partition) mod votes;

use crate::partition::cx::Cx;
use crate::partition::keyspaces::Keyspaces;
use crate::partition::order::{RowName, WorkId};
use crate::partition::others::Others;
use crate::partition::work::Work;
pub(crate) use coordinator::Announced;
use coordinator::Coordinated;
use ensue_types::{DatacenterId, LogicalTime, OperationId, PartitionId, Position};
use participant::{LocalPart, ReplicatedPart};
use std::collections::{BTreeMap, BTreeSet};

/// The transactions that this partition coordinates or takes part in, until all is done.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transactions {
    /// By the name that the participants know: local ones by number, replicated ones by operation.
    coordinated: BTreeMap<OperationId, Coordinated>,
    local_parts: BTreeMap<OperationId, LocalPart>,
    replicated_parts: BTreeMap<OperationId, ReplicatedPart>,
    /// Local transactions begun by this partition in this incarnation.
    begun: u64,
    /// The names of decided local transactions, by the operations that they became.
    names: BTreeMap<OperationId, OperationId>,
    /// Parts that other partitions have of replicated transactions whose place in the stream is taken here by another
    /// entry.
    orphans: BTreeSet<(OperationId, PartitionId)>,
    durable: durable::Durable,
    /// When the parts that do not come are asked for again, where a directory is filled.
    next_search_us: u64,
}

impl Transactions {
    /// Panics if somebody takes part in a transaction who is no participant, or a part that waits has lost its place.
    /// Answers at how many transactions it looked.
    pub fn check_invariants(&self, has_place: impl Fn(WorkId) -> bool) -> usize {
        for (transaction, coordinated) in &self.coordinated {
            let (participants, mut answered) = match coordinated {
                Coordinated::Arriving(_) => continue,
                Coordinated::Voting(voting) => {
                    (&voting.participants, voting.votes.keys().collect::<Vec<_>>())
                }
                Coordinated::Committing(done) => {
                    (&done.participants, done.committed.iter().chain(&done.synced).collect())
                }
            };
            answered.retain(|participant| !participants.contains(participant));
            assert!(answered.is_empty(), "{answered:?} are no participants of {transaction}");
        }
        for (transaction, part) in &self.local_parts {
            assert!(has_place(part.work), "the part of {transaction} has no place in its rows");
        }
        for (transaction, part) in &self.replicated_parts {
            assert!(part.work.is_none_or(&has_place), "the part of {transaction} has no place in its rows");
        }
        self.coordinated.len() + self.local_parts.len() + self.replicated_parts.len()
    }

    /// The piece of work that waits for this transaction's decision.
    pub fn work_of(&self, transaction: OperationId) -> Option<WorkId> {
        let local = self.local_parts.get(&transaction).map(|part| part.work);
        local.or_else(|| self.replicated_parts.get(&transaction).and_then(|part| part.work))
    }

    /// The transaction whose part came at this place of a stream.
    pub fn replicated_at(&self, origin: DatacenterId, position: Position) -> Option<OperationId> {
        let here = |part: &ReplicatedPart| part.origin == origin && part.position == position;
        self.replicated_parts.iter().find(|(_, part)| here(part)).map(|(transaction, _)| *transaction)
    }

    /// The name that participants know a decided transaction by, if this partition, of `datacenter`, still coordinates
    /// it.
    ///
    /// A local one is named by its number, which is not its place in the stream: the place of one may be the number of
    /// another. One that was replicated is named by its place.
    pub fn name_of(&self, operation: OperationId, datacenter: DatacenterId) -> Option<OperationId> {
        match operation.datacenter == datacenter {
            true => self.names.get(&operation).copied(),
            false => Some(operation),
        }
    }

    /// Transactions of this datacenter whose own entries wait for nothing, and which miss parts.
    pub fn awaited_of(&self, datacenter: DatacenterId) -> Vec<OperationId> {
        let names = self.coordinated.keys().copied().filter(|name| name.datacenter == datacenter);
        names.filter(|name| !self.missing_parts(*name).is_empty()).collect()
    }

    /// Who has not said yet that its part of a replicated transaction is ready.
    pub fn missing_parts(&self, transaction: OperationId) -> Vec<PartitionId> {
        let Some(Coordinated::Arriving(arriving)) = self.coordinated.get(&transaction) else {
            return Vec::new();
        };
        let participants = arriving.announced.iter().flat_map(|announced| &announced.participants);
        let is_here = |participant: &PartitionId| {
            arriving.notified.contains(participant) || arriving.held.contains(participant)
        };
        participants.copied().filter(|participant| !is_here(participant)).collect()
    }

    /// Whether a transaction of this datacenter is not over: something of it may have yet to come into a stream.
    pub(in crate::partition) fn has_open_of(&self, own: DatacenterId) -> bool {
        let coordinates = self.coordinated.keys().any(|transaction| transaction.datacenter == own);
        coordinates || !self.local_parts.is_empty() || self.first_unsynced_decision().is_some()
    }

    /// The transactions of this datacenter that this partition coordinates or takes part in, and that are not over.
    pub(in crate::partition) fn open_of(&self, own: DatacenterId) -> impl Iterator<Item = OperationId> + '_ {
        let coordinated = self.coordinated.keys().filter(move |transaction| transaction.datacenter == own);
        coordinated.chain(self.local_parts.keys()).copied()
    }

    /// How many local transactions this partition has begun, in all its lives.
    pub(in crate::partition) fn begun(&self) -> u64 {
        self.begun
    }

    /// The log, or a checkpoint, says so.
    pub(in crate::partition) fn restore_begun(&mut self, begun: u64) {
        self.begun = self.begun.max(begun);
    }

    pub fn len(&self) -> usize {
        let open = self.coordinated.len() + self.local_parts.len() + self.replicated_parts.len();
        open + self.durable.len()
    }

    /// The transaction that a piece of work belongs to.
    pub(crate) fn transaction_name(&self, work: &Work) -> Option<OperationId> {
        match work {
            Work::LocalPart(transaction) => Some(*transaction),
            Work::ReplicatedPart(origin, position) => self.replicated_at(*origin, *position),
            Work::Commands(_) | Work::Entry(..) => None,
        }
    }

    /// After a link broke: asks the partitions behind it again for whatever they owe.
    pub(crate) fn repeat_transaction_requests(
        &mut self,
        cx: &mut Cx,
        others: &Others,
        owns: &dyn Fn(PartitionId) -> bool,
    ) {
        let coordinated: Vec<OperationId> = self.coordinated.keys().copied().collect();
        for transaction in coordinated {
            self.repeat_decision(transaction, owns);
            self.query_participants(cx, transaction, owns);
            self.await_parts(cx, others, transaction, owns);
        }
        self.report_parts_again(cx, owns);
        let local: Vec<OperationId> = self.local_parts.keys().copied().collect();
        for transaction in local.into_iter().filter(|t| owns(t.partition)) {
            cx.vote_again(transaction);
        }
        let replicated: Vec<OperationId> = self.replicated_parts.keys().copied().collect();
        for transaction in replicated.into_iter().filter(|t| owns(t.partition)) {
            self.notify_again(cx, others, transaction);
        }
    }

    /// Whether a part waits in these rows whose transaction was decided, to commit at a time or before: others may have
    /// seen the transaction.
    pub(in crate::partition) fn has_decided_part(
        &self,
        keyspaces: &Keyspaces,
        rows: &[RowName],
        at: LogicalTime,
    ) -> bool {
        keyspaces.order.decided(rows, at).any(|work| self.transaction_name(work).is_some())
    }

    pub(in crate::partition) fn undecided_before(
        &self,
        keyspaces: &Keyspaces,
        rows: &[RowName],
        at: LogicalTime,
    ) -> Vec<OperationId> {
        let name = |work: WorkId| keyspaces.order.work(work).and_then(|work| self.transaction_name(work));
        keyspaces.order.blockers(rows, at).into_iter().filter_map(name).collect()
    }

    /// The last position that may be sent: a decision leaves when it is durable.
    pub(in crate::partition) fn stream_end(&self, cx: &Cx) -> Position {
        self.first_unsynced_decision().map_or(cx.position, |first| Position(first.0 - 1))
    }
}
