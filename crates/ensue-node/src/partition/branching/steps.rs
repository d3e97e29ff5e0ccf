//! Commands of sessions on a branching keyspace: within the open transaction, or each as one of its own.

use super::{Seat, Sitting, ids, seat_of};
use crate::partition::branching::Branching;
use crate::partition::cx::Cx;
use crate::partition::execution::execute::Execution;
use crate::partition::keyspaces::Keyspaces;
use crate::partition::others::Others;
use crate::partition::replication::Replication;
use ensue_branch::{Abort, Committed, Constraint, Note, StateId, Term, TransactionId};
use ensue_protocol::anchor::Anchor;
use ensue_resp::{CommandSpec, Flags, Request};
use ensue_store::entry::Change;
use ensue_types::{
    Args, Dependency, Extent, KeyspaceId, Opaque, OperationId, PartitionId, Position, Reply, Rule,
};
use ensue_wire::Message;

pub(super) const OVER: Reply = Reply::error(
    "NOTRANSACTION the transaction is over: it was idle for too long, or its owner was restarted; BRANCH ABORT goes on \
     without it",
);
const FOREIGN_CONTEXT: Reply =
    Reply::error("ERR the context of this session is not one of a branching keyspace");

/// Why a transaction of a session ended without a commit.
pub(super) fn aborted(abort: &Abort) -> Reply {
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

    fn begin_by_default(&mut self, keyspace: KeyspaceId, anchor: &Anchor) -> Result<TransactionId, Reply> {
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

impl Replication {
    /// Logs what this datacenter has to say of a keyspace, and hands it to the streams.
    pub(in crate::partition) fn log_note(&mut self, cx: &mut Cx, keyspace: KeyspaceId, note: &Note) {
        let at = cx.tick();
        let change = Change::Branch { keyspace, note: note.encode() };
        self.log_own(cx, cx.stamp(at), Opaque::default(), change, Vec::new());
    }
}

pub(super) fn default_begin(anchor: &Anchor) -> Constraint {
    set_constraint(&anchor.begin).unwrap_or_else(|| Constraint::of(Term::Ancestor))
}

pub(super) fn default_end(anchor: &Anchor) -> Constraint {
    set_constraint(&anchor.end).unwrap_or_else(|| Constraint::of(Term::Serializability))
}

/// What a session has set, if it has.
fn set_constraint(text: &[u8]) -> Option<Constraint> {
    let words = text.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    Constraint::parse(words).ok()
}

impl Keyspaces {
    /// One command of a session.
    pub(in crate::partition) fn step_branching(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        execution: &mut Execution,
        spec: &'static CommandSpec,
        args: &Args,
    ) -> Reply {
        let Ok(mut anchor) = Anchor::decode(&execution.context.facts) else { return FOREIGN_CONTEXT };
        let seat = seat_of(&execution.request, execution.keyspace);
        let reply = if spec.name == "branch" {
            self.branch_command(cx, others, seat, &mut anchor, args)
        } else {
            match Request::parse_as(spec, args) {
                Ok(request) => self.ordinary(cx, others, (seat, &mut anchor), spec, args, &request),
                Err(error) => error.reply(),
            }
        };
        execution.context.facts = anchor.encode();
        reply
    }

    /// The commands of a `MULTI`: one transaction.
    pub(in crate::partition) fn execute_branching_atomically(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        mut execution: Execution,
    ) {
        let places = execution.atomic.take().unwrap_or_default();
        let commands = std::mem::take(&mut execution.commands);
        let seat = seat_of(&execution.request, execution.keyspace);
        let outcome = match Anchor::decode(&execution.context.facts) {
            Ok(mut anchor) => {
                let outcome = self.all_in_one(cx, others, seat, &mut anchor, commands);
                execution.context.facts = anchor.encode();
                outcome
            }
            Err(_) => Err(FOREIGN_CONTEXT),
        };
        execution.context.time = execution.context.time.max(cx.clock.latest());
        let Execution { from, request, context, .. } = execution;
        let message = match outcome {
            Ok(replies) => {
                Message::Transacted { request, context, replies: places.into_iter().zip(replies).collect() }
            }
            Err(reply) => Message::Refused { request, reply },
        };
        cx.send(from, message);
    }

    fn all_in_one(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        seat: Seat,
        anchor: &mut Anchor,
        commands: impl IntoIterator<Item = Args>,
    ) -> Result<Vec<Reply>, Reply> {
        let open = self.branching.open_transaction(cx, seat, anchor)?;
        let refusal = if open.is_none() { self.write_refusal(cx, others, true) } else { None };
        if let Some(refusal) = refusal {
            return Err(refusal);
        }
        let transaction = match open {
            Some(transaction) => transaction,
            None => self.branching.begin_by_default(seat.3, anchor)?,
        };
        let mut replies = Vec::new();
        for args in commands {
            let request = match Request::parse(&args) {
                Ok(request) => request,
                Err(error) => {
                    replies.push(error.reply());
                    continue;
                }
            };
            replies.push(self.branching.evaluate_on_branch(cx, seat.3, transaction, &args, &request));
        }
        if open.is_none() {
            self.commit_by_default(cx, others, seat.3, transaction, anchor)?;
        }
        Ok(replies)
    }

    /// A command that knows nothing of branches.
    pub(in crate::partition) fn ordinary(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        (seat, anchor): (Seat, &mut Anchor),
        spec: &'static CommandSpec,
        args: &Args,
        request: &Request,
    ) -> Reply {
        let keyspace = seat.3;
        match self.branching.open_transaction(cx, seat, anchor) {
            Err(over) => return over,
            Ok(Some(transaction)) => {
                let refusal = if spec.flags.contains(Flags::DENYOOM) { self.memory_refusal() } else { None };
                return refusal.unwrap_or_else(|| {
                    self.branching.evaluate_on_branch(cx, keyspace, transaction, args, request)
                });
            }
            Ok(None) => {}
        }
        if spec.flags.contains(Flags::WRITE) {
            if let Some(refusal) = self.write_refusal(cx, others, spec.flags.contains(Flags::DENYOOM)) {
                return refusal;
            }
        }
        let transaction = match self.branching.begin_by_default(keyspace, anchor) {
            Ok(transaction) => transaction,
            Err(reply) => return reply,
        };
        let reply = self.branching.evaluate_on_branch(cx, keyspace, transaction, args, request);
        match self.commit_by_default(cx, others, keyspace, transaction, anchor) {
            Ok(()) => reply,
            Err(aborted) => aborted,
        }
    }

    fn commit_by_default(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        keyspace: KeyspaceId,
        transaction: TransactionId,
        anchor: &mut Anchor,
    ) -> Result<(), Reply> {
        self.commit_on_branch(cx, others, keyspace, transaction, &default_end(anchor), anchor).map(|_| ())
    }

    /// Ends a transaction: its state is logged and told, and is what the session goes on from.
    pub(in crate::partition) fn commit_on_branch(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        keyspace: KeyspaceId,
        transaction: TransactionId,
        end: &Constraint,
        anchor: &mut Anchor,
    ) -> Result<StateId, Reply> {
        let committed =
            self.branching.branches(keyspace).commit(transaction, end).map_err(|abort| aborted(&abort))?;
        let states = match committed {
            Committed::Nothing(at) => {
                if !Rule::ReadingMovesTheAnchor.holds() {
                    return Ok(at[0]);
                }
                at
            }
            Committed::Known(id) => vec![id],
            Committed::New(commit) => {
                let id = commit.id;
                others.replication.log_note(cx, keyspace, &Note::Commit(commit));
                let tag = (cx.datacenter, cx.position);
                self.branching.branches(keyspace).note_tag(id, tag);
                self.count_states(cx, others, keyspace, 1);
                vec![id]
            }
        };
        self.branching.move_anchor(keyspace, anchor, &states);
        Ok(states[0])
    }
}
