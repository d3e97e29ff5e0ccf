//! Commands of sessions on a branching keyspace: within the open transaction, or each as one of its own.

use super::{Seat, Sitting, ids, seat_of};
use crate::partition::{Execution, Partition};
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

impl Partition {
    /// One command of a session.
    pub(in crate::partition) fn step_branching(
        &mut self,
        execution: &mut Execution,
        spec: &'static CommandSpec,
        args: &Args,
    ) -> Reply {
        let Ok(mut anchor) = Anchor::decode(&execution.context.facts) else { return FOREIGN_CONTEXT };
        let seat = seat_of(&execution.request, execution.keyspace);
        let reply = if spec.name == "branch" {
            self.branch_command(seat, &mut anchor, args)
        } else {
            match Request::parse_as(spec, args) {
                Ok(request) => self.ordinary(seat, &mut anchor, spec, args, &request),
                Err(error) => error.reply(),
            }
        };
        execution.context.facts = anchor.encode();
        reply
    }

    /// The commands of a `MULTI`: one transaction.
    pub(in crate::partition) fn execute_branching_atomically(&mut self, mut execution: Execution) {
        let places = execution.atomic.take().unwrap_or_default();
        let commands = std::mem::take(&mut execution.commands);
        let seat = seat_of(&execution.request, execution.keyspace);
        let outcome = match Anchor::decode(&execution.context.facts) {
            Ok(mut anchor) => {
                let outcome = self.all_in_one(seat, &mut anchor, commands);
                execution.context.facts = anchor.encode();
                outcome
            }
            Err(_) => Err(FOREIGN_CONTEXT),
        };
        execution.context.time = execution.context.time.max(self.clock.latest());
        let Execution { from, request, context, .. } = execution;
        let message = match outcome {
            Ok(replies) => {
                Message::Transacted { request, context, replies: places.into_iter().zip(replies).collect() }
            }
            Err(reply) => Message::Refused { request, reply },
        };
        self.send(from, message);
    }

    fn all_in_one(
        &mut self,
        seat: Seat,
        anchor: &mut Anchor,
        commands: impl IntoIterator<Item = Args>,
    ) -> Result<Vec<Reply>, Reply> {
        let open = self.open_transaction(seat, anchor)?;
        let refusal = if open.is_none() { self.write_refusal(true) } else { None };
        if let Some(refusal) = refusal {
            return Err(refusal);
        }
        let transaction = match open {
            Some(transaction) => transaction,
            None => self.begin_by_default(seat.3, anchor)?,
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
            replies.push(self.evaluate_on_branch(seat.3, transaction, &args, &request));
        }
        if open.is_none() {
            self.commit_by_default(seat.3, transaction, anchor)?;
        }
        Ok(replies)
    }

    /// A command that knows nothing of branches.
    fn ordinary(
        &mut self,
        seat: Seat,
        anchor: &mut Anchor,
        spec: &'static CommandSpec,
        args: &Args,
        request: &Request,
    ) -> Reply {
        let keyspace = seat.3;
        match self.open_transaction(seat, anchor) {
            Err(over) => return over,
            Ok(Some(transaction)) => {
                let refusal = if spec.flags.contains(Flags::DENYOOM) { self.memory_refusal() } else { None };
                return refusal
                    .unwrap_or_else(|| self.evaluate_on_branch(keyspace, transaction, args, request));
            }
            Ok(None) => {}
        }
        if spec.flags.contains(Flags::WRITE) {
            if let Some(refusal) = self.write_refusal(spec.flags.contains(Flags::DENYOOM)) {
                return refusal;
            }
        }
        let transaction = match self.begin_by_default(keyspace, anchor) {
            Ok(transaction) => transaction,
            Err(reply) => return reply,
        };
        let reply = self.evaluate_on_branch(keyspace, transaction, args, request);
        match self.commit_by_default(keyspace, transaction, anchor) {
            Ok(()) => reply,
            Err(aborted) => aborted,
        }
    }

    /// The session's transaction, if it has one. Its context and this owner must agree that it has.
    pub(super) fn open_transaction(
        &mut self,
        seat: Seat,
        anchor: &Anchor,
    ) -> Result<Option<TransactionId>, Reply> {
        let now_us = self.now.monotonic_us;
        match (anchor.open, self.branching.sittings.get_mut(&seat)) {
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
    pub(super) fn end_sitting(&mut self, seat: Seat) {
        if let Some(sitting) = self.branching.sittings.remove(&seat) {
            self.branches(seat.3).abort(sitting.transaction).ok();
        }
    }

    pub(super) fn sit(&mut self, seat: Seat, transaction: TransactionId, anchor: &mut Anchor) {
        let used_us = self.now.monotonic_us;
        self.branching.sittings.insert(seat, Sitting { transaction, used_us });
        anchor.open = true;
    }

    /// Takes the open transaction of a session from its seat, to end it.
    pub(super) fn leave(&mut self, seat: Seat, anchor: &mut Anchor) -> Result<TransactionId, Reply> {
        let open = self.open_transaction(seat, anchor);
        anchor.open = false;
        self.branching.sittings.remove(&seat);
        open?.ok_or_else(|| aborted(&Abort::NoTransaction))
    }

    /// What the session committed last, or read at; the root if that is nothing.
    pub(super) fn anchors(&mut self, keyspace: KeyspaceId, anchor: &Anchor) -> Vec<StateId> {
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

    fn commit_by_default(
        &mut self,
        keyspace: KeyspaceId,
        transaction: TransactionId,
        anchor: &mut Anchor,
    ) -> Result<(), Reply> {
        self.commit_on_branch(keyspace, transaction, &default_end(anchor), anchor).map(|_| ())
    }

    /// Ends a transaction: its state is logged and told, and is what the session goes on from.
    pub(super) fn commit_on_branch(
        &mut self,
        keyspace: KeyspaceId,
        transaction: TransactionId,
        end: &Constraint,
        anchor: &mut Anchor,
    ) -> Result<StateId, Reply> {
        let committed = self.branches(keyspace).commit(transaction, end).map_err(|abort| aborted(&abort))?;
        let states = match committed {
            Committed::Nothing(at) => {
                if !self.config.rules.hold(Rule::ReadingMovesTheAnchor) {
                    return Ok(at[0]);
                }
                at
            }
            Committed::Known(id) => vec![id],
            Committed::New(commit) => {
                let id = commit.id;
                self.log_note(keyspace, &Note::Commit(commit));
                let tag = (self.datacenter, self.position);
                self.branches(keyspace).note_tag(id, tag);
                self.count_states(keyspace, 1);
                vec![id]
            }
        };
        self.move_anchor(keyspace, anchor, &states);
        Ok(states[0])
    }

    /// Makes states what a session goes on from.
    pub(super) fn move_anchor(&mut self, keyspace: KeyspaceId, anchor: &mut Anchor, states: &[StateId]) {
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

    /// Logs what this datacenter has to say of a keyspace, and hands it to the streams.
    pub(super) fn log_note(&mut self, keyspace: KeyspaceId, note: &Note) {
        let at = self.tick();
        let change = Change::Branch { keyspace, note: note.encode() };
        self.log_own(self.stamp(at), Opaque::default(), change, Vec::new());
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
