//! Commands of sessions on keyspaces with branches, within the open transaction or each as one of its own; and what
//! datacenters tell each other of the states.
//!
//! Ceilings travel in the same stream as commits, behind every commit that was made before them. What comes below a
//! state that is collected here is asked for whole, and again when an answer is overdue, until it is told.

use super::Keyspaces;
use crate::evaluate::{Room, within_bound};
pub(in crate::partition) use crate::partition::branching::commands::{
    Answer, begin_constraint, constraint_of, id_list, id_text, state_of,
};
pub(in crate::partition) use crate::partition::branching::steps::{aborted, default_end};
pub(in crate::partition) use crate::partition::branching::{Seat, seat_of};
use crate::partition::cx::Cx;
use crate::partition::others::Others;
use crate::partition::work::Execution;
use bytes::Bytes;
use ensue_branch::{Committed, Constraint, Note, StateId, Tag, TransactionId};
use ensue_resp::{CommandError, CommandSpec, Flags, Request};
use ensue_types::Anchor;
use ensue_types::{Args, DatacenterId, KeyspaceId, Position, Reply, Rule};
use ensue_wire::{Address, Message};

impl Keyspaces {
    pub(in crate::partition) fn branch_command(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        seat: Seat,
        anchor: &mut Anchor,
        args: &Args,
    ) -> Reply {
        let word = args[1].to_ascii_lowercase();
        let words = &args[2..];
        self.branching.renew(cx, seat, anchor);
        let answer = match &word[..] {
            b"begin" => self.branching.branch_begin(cx, seat, anchor, words),
            b"merge" => {
                // Once all is here that is left of a dead datacenter, the others merge.
                let merger = cx.config.tuning.branching.merging_datacenter;
                let merger = merger.filter(|merger| !others.failover.failed.is_settled(*merger));
                self.branching.branch_merge(cx, seat, anchor, words, merger)
            }
            b"commit" => self.branch_commit(cx, others, seat, anchor, words),
            b"abort" if words.is_empty() => self.branching.branch_abort(cx, seat, anchor),
            b"checkout" => self.branching.branch_checkout(cx, seat, anchor, words),
            b"session" if words.is_empty() => self.branching.branch_session(seat, anchor),
            b"defaults" => set_defaults(anchor, words),
            b"forkpoints" => self.branching.branch_fork_points(cx, seat, anchor, words),
            b"conflicts" => self.branching.branch_conflicts(cx, seat, anchor, words),
            b"get" => self.branching.branch_get(cx, seat, anchor, words),
            _ => self.branch_question(cx, others, seat.3, &word, args),
        };
        answer.unwrap_or_else(|error| error)
    }

    /// What has nothing to do with the session.
    fn branch_question(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        keyspace: KeyspaceId,
        word: &[u8],
        args: &Args,
    ) -> Answer {
        let words = &args[2..];
        match (word, words) {
            (b"list", []) => Ok(id_list(&self.branching.branches(keyspace).leaves())),
            (b"log", _) => self.branching.branch_log(keyspace, words),
            (b"diff", [a, b]) => self.branching.branch_diff(cx, keyspace, state_of(a)?, state_of(b)?),
            (b"ceiling", _) => self.branch_ceiling(cx, others, keyspace, words),
            (b"info", []) => Ok(self.branching.branch_info(keyspace)),
            (b"digest", []) => Ok(self.branching.branch_digest(keyspace, true)),
            (b"digest", [leaves]) if leaves.eq_ignore_ascii_case(b"leaves") => {
                Ok(self.branching.branch_digest(keyspace, false))
            }
            (b"help", []) => Ok(Reply::Array(HELP.iter().map(|&line| Reply::Status(line.into())).collect())),
            (b"list" | b"info" | b"help" | b"abort" | b"session" | b"diff", _) => {
                Err(CommandError::wrong_arity("branch").reply())
            }
            (b"digest", _) => Err(CommandError::Syntax.reply()),
            _ => Err(CommandError::unknown_subcommand("branch", &args[1]).reply()),
        }
    }

    fn branch_commit(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        seat: Seat,
        anchor: &mut Anchor,
        words: &[Bytes],
    ) -> Answer {
        let constraint = if words.is_empty() { default_end(anchor) } else { constraint_of(words)? };
        if let Some(refusal) = self.commit_refusal(cx, others, seat, anchor) {
            return Err(refusal);
        }
        let transaction = self.branching.leave(cx, seat, anchor)?;
        self.commit_on_branch(cx, others, seat.3, transaction, &constraint, anchor).map(id_text)
    }

    /// Nothing is refused that writes nothing, nor for memory what lets go of some.
    fn commit_refusal(&mut self, cx: &Cx, others: &Others, seat: Seat, anchor: &Anchor) -> Option<Reply> {
        let transaction = self.branching.open_transaction(cx, seat, anchor).ok()??;
        let branches = self.branching.of(seat.3)?;
        if branches.writes_nothing(transaction) {
            return None;
        }
        self.write_refusal(cx, others, !branches.makes_room(transaction))
    }

    fn branch_ceiling(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        keyspace: KeyspaceId,
        words: &[Bytes],
    ) -> Answer {
        let states = match words {
            [] => self.branching.branches(keyspace).leaves(),
            words => words.iter().map(state_of).collect::<Result<_, _>>()?,
        };
        self.branching.branches(keyspace).place_ceilings(&states).map_err(|abort| aborted(&abort))?;
        self.notify_ceilings(cx, others, keyspace);
        Ok(Reply::OK)
    }

    /// One command of a session.
    pub(in crate::partition) fn step_branching(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        execution: &mut Execution,
        spec: &'static CommandSpec,
        args: &Args,
    ) -> Reply {
        let Ok(mut anchor) = execution.context.causes.states().cloned() else { return FOREIGN_CONTEXT };
        let seat = seat_of(&execution.request, execution.keyspace);
        self.branching.forget_behind(execution.keyspace, &mut anchor);
        let reply = if spec.name == "branch" {
            self.branch_command(cx, others, seat, &mut anchor, args)
        } else {
            match Request::parse_as(spec, args) {
                Ok(request) => self.ordinary(cx, others, (seat, &mut anchor), spec, args, &request),
                Err(error) => error.reply(),
            }
        };
        execution.context.causes = anchor.into();
        // What a write answers is short, or one value; it was made and must be answered.
        let must_answer = spec.is_write() && spec.name != "branch";
        if must_answer { reply } else { within_bound(reply) }
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
        let outcome = match execution.context.causes.states().cloned() {
            Ok(mut anchor) => {
                let outcome = self.all_in_one(cx, others, seat, &mut anchor, &Vec::from(commands));
                execution.context.causes = anchor.into();
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
        commands: &[Args],
    ) -> Result<Vec<Reply>, Reply> {
        let open = self.branching.open_transaction(cx, seat, anchor)?;
        let flags = |flag: Flags| {
            let specs = commands.iter().filter_map(|args| ensue_resp::lookup(args.first()?));
            specs.into_iter().any(|spec| spec.flags.contains(flag))
        };
        let (writes, grows) = (flags(Flags::WRITE), flags(Flags::DENYOOM));
        let refusal = match open {
            Some(_) if grows => self.memory_refusal(),
            None if writes => self.write_refusal(cx, others, grows),
            _ => None,
        };
        if let Some(refusal) = refusal {
            return Err(refusal);
        }
        let transaction = match open {
            Some(transaction) => transaction,
            None => self.branching.begin_by_default(seat.3, anchor)?,
        };
        let mut replies = Vec::new();
        let mut room = Room::default();
        for args in commands {
            let request = match Request::parse(args) {
                Ok(request) => request,
                Err(error) => {
                    replies.push(error.reply());
                    continue;
                }
            };
            let reply = self.branching.evaluate_on_branch(cx, seat.3, transaction, args, &request);
            replies.push(room.fit(reply, request.is_write()));
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

    /// Asks for what came late, and not again while an answer may be on its way: each makes whoever has it look at all
    /// keys.
    pub(crate) fn fetch(&mut self, cx: &mut Cx, others: &mut Others, keyspace: KeyspaceId, late: &[StateId]) {
        let now_us = cx.now.monotonic_us;
        let timeout_us = 1_000 * cx.config.tuning.request_timeout_ms;
        let due = self.branching.take_due(keyspace, late, now_us, timeout_us);
        if due.is_empty() {
            return;
        }
        let live: Vec<u64> = self.branching.branches(keyspace).states().map(StateId::bits).collect();
        for state in due {
            // Whoever has it has it whole; of a dead datacenter's any other may have it.
            let asked: Vec<DatacenterId> = match others.failover.failed.contains(state.site()) {
                true => others
                    .replication
                    .datacenters()
                    .filter(|other| !others.failover.failed.contains(*other))
                    .collect(),
                false => vec![state.site()],
            };
            for datacenter in asked {
                let to = Address::Partition { datacenter, partition: cx.id };
                cx.send(to, Message::BranchFetch { keyspace, state: state.bits(), live: live.clone() });
            }
        }
    }

    pub(in crate::partition) fn on_branch_fetch(
        &mut self,
        cx: &mut Cx,
        others: &Others,
        from: Address,
        keyspace: KeyspaceId,
        state: u64,
        live: &[u64],
    ) {
        let Some(branches) = self.branching.of(keyspace) else { return };
        let id = StateId::from_bits(state);
        if let Some(rebuilt) = branches.rebuild(id, &crate::partition::branching::ids(live)) {
            cx.send(from, Message::BranchFetched { keyspace, rebuilt: rebuilt.encode() });
        } else if others.failover.failed.is_settled(id.site()) && branches.lacks_for_good(id) {
            let failed = others.failover.failed.datacenters().collect();
            cx.send(from, Message::BranchLacking { keyspace, state, failed });
        }
    }

    /// Another one lacks what came late here. It counts only from who takes nothing from any whom this one knows to be
    /// dead: a dead one may have had it, and sent it whole.
    pub(in crate::partition) fn on_branch_lacking(
        &mut self,
        others: &Others,
        from: DatacenterId,
        keyspace: KeyspaceId,
        state: u64,
        failed: &[DatacenterId],
    ) {
        let Some(branches) = self.branching.of(keyspace) else { return };
        let state = StateId::from_bits(state);
        let is_late = branches.late().contains(&state);
        if is_late && others.failover.failed.datacenters().all(|datacenter| failed.contains(&datacenter)) {
            self.branching.note_lacking(keyspace, state, from);
        }
    }

    /// States came in: places ceilings when there were enough of them.
    pub(in crate::partition) fn count_states(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        keyspace: KeyspaceId,
        came: u64,
    ) {
        let options = &cx.config.tuning.branching;
        // Where no more states are taken none comes in, and there must have been ceilings before.
        let every = options.ceiling_every.min((options.states_max / 2).max(1) as u64);
        if self.branching.count_states(keyspace, came, every) {
            let leaves = self.branching.branches(keyspace).leaves();
            self.branching.branches(keyspace).place_ceilings(&leaves).ok();
            self.notify_ceilings(cx, others, keyspace);
        }
    }

    /// Tells the others the ceilings that nothing here reads above, and collects what is above them.
    pub(in crate::partition) fn notify_ceilings(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        keyspace: KeyspaceId,
    ) {
        if cx.is_out_of_room() || others.failover.retirement.is_begun() {
            return;
        }
        let told = self.branching.branches(keyspace).take_ceilings();
        for state in &told {
            others.replication.log_note(cx, keyspace, &Note::Ceiling(*state));
        }
        if !told.is_empty() {
            self.collect_branch(cx, others, keyspace);
        }
    }

    /// A checkpoint on its way holds the states as they were when it began.
    fn collect_branch(&mut self, cx: &Cx, others: &Others, keyspace: KeyspaceId) {
        if !cx.is_checkpointing() {
            let globally_stable = others.applied_by_all();
            self.branching.branches(keyspace).collect(|tag| holds(&globally_stable, tag));
        }
    }

    /// Whatever ends may let a few states go, and finding them looks at all: not for each, but at the interval of all
    /// collection.
    pub(in crate::partition) fn collect_branches(&mut self, others: &Others) {
        if self.branching.each().next().is_none() {
            return;
        }
        let globally_stable = others.applied_by_all();
        for branches in self.branching.each_mut() {
            branches.collect(|tag| holds(&globally_stable, tag));
        }
    }
}

/// Whether a place in a stream is among what every datacenter has, by how far that goes.
fn holds(globally_stable: &[(DatacenterId, Position)], (origin, position): Tag) -> bool {
    globally_stable.iter().any(|(datacenter, applied)| *datacenter == origin && position <= *applied)
}

const FOREIGN_CONTEXT: Reply =
    Reply::error("ERR the context of this session is not one of a branching keyspace");

fn set_defaults(anchor: &mut Anchor, words: &[Bytes]) -> Answer {
    let is_begin = |word: &Bytes| word.eq_ignore_ascii_case(b"begin");
    let is_end = |word: &Bytes| word.eq_ignore_ascii_case(b"end");
    let mut rest = words;
    let mut set = anchor.clone();
    while let [word, more @ ..] = rest {
        let length = more.iter().position(|word| is_begin(word) || is_end(word)).unwrap_or(more.len());
        let (own, behind) = more.split_at(length);
        if is_begin(word) {
            set.begin = text_of(&begin_constraint(own)?)?;
        } else if is_end(word) {
            set.end = text_of(&constraint_of(own)?)?;
        } else {
            return Err(CommandError::Syntax.reply());
        }
        rest = behind;
    }
    *anchor = set;
    Ok(Reply::OK)
}

fn text_of(constraint: &Constraint) -> Result<Vec<u8>, Reply> {
    let text = constraint.to_string().into_bytes();
    match text.len() <= CONSTRAINT_BYTES_MAX {
        true => Ok(text),
        false => Err(Reply::error("ERR the constraint is too long to be a session's default")),
    }
}

/// Longest text of a session's own constraint.
const CONSTRAINT_BYTES_MAX: usize = 1024;

const HELP: &[&str] = &[
    "BRANCH <subcommand> [<arg> ...]. Subcommands are:",
    "BEGIN [constraint]: begin a transaction; answers the state that it reads.",
    "MERGE [constraint]: begin one that joins branches; answers the states that it reads.",
    "COMMIT [constraint]: end it; answers its state.",
    "ABORT: end it without a trace.",
    "FORKPOINTS [state ...]: where branches forked, each with its weight in a sum.",
    "CONFLICTS [state ...]: the keys that two of the branches have written.",
    "GET key [state ...]: the value of a key at states.",
    "LIST: the leaves.",
    "LOG [COUNT n] [state]: the states, newest first.",
    "DIFF a b: the keys that differ between two states.",
    "CEILING [state ...]: no transaction of this datacenter begins above these states any more.",
    "CHECKOUT state: go on from this state.",
    "SESSION: what the session goes on from, and its transaction.",
    "DEFAULTS [BEGIN constraint] [END constraint]: the session's own.",
    "INFO: figures. DIGEST [LEAVES]: a fingerprint, equal in all datacenters when nothing is under way.",
    "Constraints: ANY, SERIALIZABILITY, SNAPSHOT-ISOLATION, READ-COMMITTED, NO-BRANCHING, K-BRANCHING k, PARENT,",
    "ANCESTOR, STATE id [id ...], joined by AND and OR.",
];
