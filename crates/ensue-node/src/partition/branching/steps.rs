//! Transactions of sessions on a branching keyspace: opened, sat in, left, and where their anchors go.

use super::{Branching, Seat, Sitting, ids};
use crate::partition::cx::Cx;
use ensue_branch::{Abort, Constraint, StateId, Term, TransactionId};
use ensue_types::Anchor;
use ensue_types::{Dependency, Extent, KeyspaceId, OperationId, PartitionId, Position, Reply};

pub(super) const OVER: Reply = Reply::error(
    "NOTRANSACTION the transaction is over: it was idle for too long, or its owner was restarted; BRANCH ABORT goes on \
     without it",
);

/// Why a transaction of a session ended without a commit.
pub(in crate::partition) fn aborted(abort: &Abort) -> Reply {
    Reply::Error(abort.to_string().into())
}

impl Branching {
    /// The session's transaction, if it has one. Its context and this owner must agree that it has.
    pub(in crate::partition) fn open_transaction(
        &mut self,
        cx: &Cx,
        seat: Seat,
        anchor: &Anchor,
    ) -> Result<Option<TransactionId>, Reply> {
        let now_us = cx.now.monotonic_us;
        match (anchor.open, self.sittings.get_mut(&seat)) {
            (false, None) => Ok(None),
            (true, Some(sitting)) => {
                sitting.used_us = now_us;
                Ok(Some(sitting.transaction))
            }
            (true, None) => Err(OVER),
            (false, Some(_)) => {
                // The answer to its beginning never came.
                self.end_sitting(seat);
                Ok(None)
            }
        }
    }

    /// The session goes on with its transaction, by a question that has nothing to do with it, too.
    pub(in crate::partition) fn renew(&mut self, cx: &Cx, seat: Seat, anchor: &Anchor) {
        if let (true, Some(sitting)) = (anchor.open, self.sittings.get_mut(&seat)) {
            sitting.used_us = cx.now.monotonic_us;
        }
    }

    /// Ends a transaction that nobody will go on with.
    pub(in crate::partition) fn end_sitting(&mut self, seat: Seat) {
        if let Some(sitting) = self.sittings.remove(&seat) {
            self.branches(seat.3).abort(sitting.transaction).ok();
        }
    }

    pub(in crate::partition) fn sit(
        &mut self,
        cx: &Cx,
        seat: Seat,
        transaction: TransactionId,
        anchor: &mut Anchor,
    ) {
        let used_us = cx.now.monotonic_us;
        self.sittings.insert(seat, Sitting { transaction, used_us });
        anchor.open = true;
    }

    /// Takes the open transaction of a session from its seat, to end it.
    pub(crate) fn leave(&mut self, cx: &Cx, seat: Seat, anchor: &mut Anchor) -> Result<TransactionId, Reply> {
        let open = self.open_transaction(cx, seat, anchor);
        anchor.open = false;
        self.sittings.remove(&seat);
        open?.ok_or_else(|| aborted(&Abort::NoTransaction))
    }

    /// What the session committed last, or read at; the root if that is nothing.
    pub(in crate::partition) fn anchors(&mut self, keyspace: KeyspaceId, anchor: &Anchor) -> Vec<StateId> {
        match anchor.states.is_empty() {
            true => vec![StateId::ROOT],
            false => self.branches(keyspace).newest_anchors(&ids(&anchor.states)),
        }
    }

    /// A session took over states of others: those that others of its states come from are no use to it, and take the
    /// places of others.
    pub(in crate::partition) fn forget_behind(&mut self, keyspace: KeyspaceId, anchor: &mut Anchor) {
        if anchor.states.len() > 1 {
            let newest = self.branches(keyspace).newest_anchors(&ids(&anchor.states));
            anchor.states = newest.into_iter().map(StateId::bits).collect();
            anchor.states.sort_unstable_by(|a, b| b.cmp(a));
        }
    }

    pub(in crate::partition) fn begin_by_default(
        &mut self,
        keyspace: KeyspaceId,
        anchor: &Anchor,
    ) -> Result<TransactionId, Reply> {
        let anchors = self.anchors(keyspace, anchor);
        let begin = default_begin(anchor);
        self.branches(keyspace).begin(&anchors, &begin).map_err(|abort| aborted(&abort))
    }

    /// Makes states what a session goes on from.
    pub(in crate::partition) fn move_anchor(
        &mut self,
        keyspace: KeyspaceId,
        anchor: &mut Anchor,
        states: &[StateId],
    ) {
        let tags: Vec<_> = states.iter().filter_map(|id| self.branches(keyspace).tag(*id)).collect();
        anchor.states = states.iter().filter(|id| **id != StateId::ROOT).map(|id| id.bits()).collect();
        let made = |(datacenter, position): (_, Position)| OperationId {
            datacenter,
            incarnation: position.incarnation(),
            partition: PartitionId(0),
            position,
        };
        let dependency = |tag| Dependency { operation: made(tag), extent: Extent::Exact };
        anchor.operations = tags.into_iter().map(dependency).collect();
        anchor.operations.sort_unstable();
    }
}

pub(super) fn default_begin(anchor: &Anchor) -> Constraint {
    set_constraint(&anchor.begin).unwrap_or_else(|| Constraint::of(Term::Ancestor))
}

pub(in crate::partition) fn default_end(anchor: &Anchor) -> Constraint {
    set_constraint(&anchor.end).unwrap_or_else(|| Constraint::of(Term::Serializability))
}

/// What a session has set, if it has.
fn set_constraint(text: &[u8]) -> Option<Constraint> {
    let words = text.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    Constraint::parse(words).ok()
}
