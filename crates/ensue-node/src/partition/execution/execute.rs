//! Commands of sessions: evaluated by the owner, stamped above their past, logged, answered.
//!
//! A batch is executed command by command; a read that meets an undecided transaction asks its coordinator, a write
//! that meets one waits for its turn in the row. The session's context goes along with the batch and comes back.

use super::Executor;
use crate::command;
use crate::config::Tuning;
use crate::evaluate::{
    ANSWER_TOO_LONG, Changes, Evaluation, Observed, Room, TOO_MUCH, Writer, effect_bytes, within_bound,
};
use crate::partition::cx::Cx;
use crate::partition::keyspaces::order::RowName;
use crate::partition::keyspaces::{Keyspaces, Work};
use crate::partition::others::Others;
use crate::partition::replication::Replication;
use crate::view::{Shown, is_whole, view_of};
use bytes::Bytes;
use ensue_protocol::Choice;
use ensue_resp::{CommandError, CommandSpec, Flags, Request};
use ensue_store::cell::Write;
use ensue_store::entry::Change;
use ensue_store::row::Gone;
use ensue_store::view::View;
use ensue_types::{
    Args, Column, Context, Effect, KeyspaceId, LogicalTime, Opaque, OperationId, Previous, Reply, RequestId,
    RowEffect, Rule, Source, Stamp, limits,
};
use ensue_wire::{Address, Message};
use std::collections::VecDeque;

/// A batch on its way through this partition.
#[derive(Clone, Debug)]
pub(crate) struct Execution {
    pub from: Address,
    pub request: RequestId,
    pub keyspace: KeyspaceId,
    pub context: Context,
    pub commands: VecDeque<Args>,
    pub replies: Vec<Reply>,
    /// All commands are one write at one logical time, each with its place: a `MULTI` over this partition alone.
    pub atomic: Option<Vec<u32>>,
    /// All commands are of one moment: none is left for another turn.
    pub together: bool,
    /// The session has given up waiting for its past on the way.
    pub gave_up: bool,
    /// When it came: its client waits since then.
    pub since_us: u64,
    pub used: Used,
}

/// Commands of a session, in order.
pub(in crate::partition) struct Batch {
    pub commands: Vec<Args>,
    pub together: bool,
}

/// What a batch has used of its session's turn.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Used {
    /// Looked at or changed.
    cells: usize,
    /// Of answers.
    bytes: usize,
}

impl Used {
    fn is_up(self, tuning: &Tuning) -> bool {
        self.cells >= tuning.turn_cells || self.bytes >= tuning.turn_answer_bytes
    }
}

pub(in crate::partition) const FORGOTTEN: Reply =
    Reply::error("TRYAGAIN the state of that moment is no longer known");

/// What became of one command.
#[derive(Clone, Debug)]
enum Step {
    Done(Reply),
    /// The batch waits; it has been put where it will be taken up again.
    Parked,
}

impl Keyspaces {
    /// The versions just written remember what they depend on.
    pub(crate) fn carry(
        &mut self,
        keyspace: KeyspaceId,
        effects: &[RowEffect],
        stamp: Stamp,
        dependencies: &Opaque,
    ) {
        let rows = self.keyspace(keyspace);
        if let Some(carried) = rows.carried(dependencies) {
            rows.carry(effects, stamp, &carried);
        }
    }

    /// Evaluates commands in order at one logical time; later ones see earlier ones.
    pub(crate) fn evaluate_all(
        &mut self,
        cx: &Cx,
        keyspace: KeyspaceId,
        write: Write,
        commands: impl IntoIterator<Item = Args>,
        choice: &Choice,
    ) -> (Vec<Reply>, Changes, Observed) {
        let operation = write.operation;
        let mut writer = cx.writer(keyspace, write, choice);
        let shown = Shown::of(cx.protocols[usize::from(keyspace.0)].as_ref(), choice);
        let mut observed = Observed::default();
        let mut replies = Vec::new();
        let mut room = Room::default();
        for args in commands {
            let request = match Request::parse(&args) {
                Ok(request) => request,
                Err(error) => {
                    replies.push(error.reply());
                    continue;
                }
            };
            let view = view_of(&shown, View::Newest);
            let mut desk = Evaluation::writing(&mut self.rows[usize::from(keyspace.0)], &mut writer, view);
            let reply = command::run(&request, &mut desk);
            observed.depend_on(desk.observed, operation);
            replies.push(room.fit(reply.unwrap_or(FORGOTTEN), request.is_write()));
        }
        (replies, writer.changes, observed)
    }

    pub(crate) fn evaluate(
        &mut self,
        cx: &Cx,
        keyspace: KeyspaceId,
        write: Write,
        request: &Request,
        choice: &Choice,
    ) -> (Reply, Changes, Observed) {
        let mut writer = cx.writer(keyspace, write, choice);
        let shown = Shown::of(cx.protocols[usize::from(keyspace.0)].as_ref(), choice);
        let view = view_of(&shown, View::Newest);
        let mut desk = Evaluation::writing(&mut self.rows[usize::from(keyspace.0)], &mut writer, view);
        let reply = command::run(request, &mut desk);
        let observed = desk.observed;
        (reply.unwrap_or(FORGOTTEN), writer.changes, observed)
    }

    /// Whether something undecided, or behind it, stands in one of these rows.
    pub(in crate::partition) fn must_wait(&self, rows: &[RowName]) -> bool {
        Rule::RowsInTimeOrder.holds()
            && !self.order.is_idle()
            && rows.iter().any(|(keyspace, key)| self.order.is_busy(*keyspace, key))
    }

    pub(in crate::partition) fn apply_flush(
        &mut self,
        keyspace: KeyspaceId,
        effects: &[RowEffect],
        write: &Write,
    ) {
        let rows = self.keyspace(keyspace);
        // What a flush deletes by name, it deletes with everything below it.
        let everything = Previous::Nothing { forgotten: write.stamp.before() };
        for effect in effects {
            rows.apply(effect, Some(&everything), write);
        }
        rows.flush(write);
    }

    pub(crate) fn digest(&mut self, cx: &mut Cx, keyspace: KeyspaceId) -> Reply {
        let at = cx.promise();
        let digest = command::digest(self.keyspace(keyspace), at);
        Reply::bulk(format!("{digest:016x}"))
    }
}

impl Cx {
    pub(crate) fn writer(&self, keyspace: KeyspaceId, write: Write, choice: &Choice) -> Writer {
        let asks_previous = self.protocol(keyspace).needs().previous_versions;
        Writer::new(write, self.datacenter.lane(choice.is_stable()), asks_previous)
    }

    /// What was read, as far as the rules let it count as the past of who read it.
    pub(crate) fn observed(&self, mut sources: Vec<Source>) -> Vec<Source> {
        if !Rule::RememberReads.holds() {
            return Vec::new();
        }
        if !Rule::CounterDependencies.holds() {
            sources.truncate(1);
        }
        sources
    }

    /// The rows that commands name.
    pub(crate) fn rows_of<'a>(
        &self,
        keyspace: KeyspaceId,
        commands: impl IntoIterator<Item = &'a Args>,
    ) -> Vec<RowName> {
        let mut rows: Vec<RowName> = Vec::new();
        for args in commands {
            let Some(spec) = ensue_resp::lookup(&args[0]) else { continue };
            for key in ensue_resp::keys(spec, args) {
                rows.push((keyspace, key.clone()));
            }
        }
        rows.sort_unstable();
        rows.dedup();
        rows
    }
}

impl Replication {
    pub(crate) fn wrote(
        &self,
        cx: &Cx,
        keyspace: KeyspaceId,
        context: &mut Context,
        operation: OperationId,
        stamp: Stamp,
    ) {
        let matters = !self.senders.is_empty() || cx.protocol(keyspace).needs().versions;
        if matters && Rule::RememberWrites.holds() {
            let write = Source { operation, stamp, dependencies: None };
            cx.protocol(keyspace).record_write(&mut context.facts, &write);
        }
    }
}

impl Replication {
    /// Gives an own entry the next position, logs it and hands it to the streams.
    pub(in crate::partition) fn log_own(
        &mut self,
        cx: &mut Cx,
        stamp: Stamp,
        dependencies: Opaque,
        change: Change,
        previous: Vec<Previous>,
    ) -> Bytes {
        let entry = self.next_entry(cx, stamp, dependencies, change, previous);
        cx.journal.log_own(cx.position, &entry);
        self.own_entry_applied(cx);
        entry
    }
}

impl Keyspaces {
    fn step_write(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        execution: &mut Execution,
        spec: &CommandSpec,
        (args, request): (Args, &Request),
        choice: &Choice,
    ) -> Step {
        if let Request::Flush { .. } = request {
            return Step::Done(self.flush(cx, others, execution));
        }
        if let Some(refusal) = self.write_refusal(cx, others, spec.flags.contains(Flags::DENYOOM)) {
            return Step::Done(refusal);
        }
        let at = cx.tick();
        if !self.order.is_idle() {
            let rows = cx.rows_of(execution.keyspace, std::iter::once(&args));
            if self.must_wait(&rows) {
                execution.commands.push_front(args);
                self.order.insert(cx.moment(at), true, rows, Work::Commands(Box::new(take(execution))));
                return Step::Parked;
            }
        }
        Step::Done(self.write(cx, others, execution, at, request, choice))
    }

    /// Evaluates one read at a time at which its rows are settled, unless that time has been forgotten.
    pub(in crate::partition) fn read_now(
        &mut self,
        cx: &Cx,
        others: &Others,
        execution: &mut Execution,
        at: LogicalTime,
        request: &Request,
        choice: &Choice,
    ) -> Result<Reply, Gone> {
        let number = usize::from(execution.keyspace.0);
        let shown = Shown::of(cx.protocols[number].as_ref(), choice);
        let view = match choice {
            Choice::NewestIfWhole(_) => View::Newest,
            _ => view_of(&shown, View::At(at)),
        };
        let mut desk = Evaluation::reading(&mut self.rows[number], at, view);
        let mut reply = command::run(request, &mut desk);
        let mut observed = desk.observed;
        execution.used.cells += observed.pieces;
        if let (Choice::NewestIfWhole(_), Some(shown)) = (choice, &shown) {
            if !is_whole(shown, &observed) {
                let mut desk = Evaluation::reading(&mut self.rows[number], at, View::Sight(shown));
                reply = command::run(request, &mut desk);
                observed = desk.observed;
            }
        }
        let reply = reply?;
        execution.context.time = execution.context.time.max(at);
        self.counts.count_reads(1, observed.stale);
        others.remember(cx, execution.keyspace, &mut execution.context.facts, observed.sources);
        Ok(reply)
    }

    /// Evaluates one write command, and logs what it changes.
    pub(crate) fn write(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        execution: &mut Execution,
        at: LogicalTime,
        request: &Request,
        choice: &Choice,
    ) -> Reply {
        let keyspace = execution.keyspace;
        let stamp = cx.stamp(at);
        let write = Write { stamp, at, operation: cx.next_operation(), dependencies: None };
        let (reply, changes, observed) = self.evaluate(cx, keyspace, write, request, choice);
        execution.used.cells += observed.pieces + changes.effects.len();
        self.log_write(cx, others, &mut execution.context, keyspace, stamp, (changes, observed));
        reply
    }

    fn finish_atomic(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        execution: &mut Execution,
        at: LogicalTime,
        choice: &Choice,
    ) {
        let keyspace = execution.keyspace;
        let places = execution.atomic.take().unwrap_or_default();
        let stamp = cx.stamp(at);
        let write = Write { stamp, at, operation: cx.next_operation(), dependencies: None };
        let commands = std::mem::take(&mut execution.commands);
        let (replies, changes, observed) = self.evaluate_all(cx, keyspace, write, commands, choice);
        self.log_write(cx, others, &mut execution.context, keyspace, stamp, (changes, observed));
        let replies = places.into_iter().zip(replies).collect();
        others.failover.discarded.past_the_losses(cx, keyspace, &mut execution.context.facts);
        let context = std::mem::take(&mut execution.context);
        cx.send(execution.from, Message::Transacted { request: execution.request, context, replies });
    }

    /// Logs what a write changed, and makes it the session's past. A write that changed nothing was a read.
    pub(in crate::partition) fn log_write(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        context: &mut Context,
        keyspace: KeyspaceId,
        stamp: Stamp,
        (changes, observed): (Changes, Observed),
    ) {
        context.time = context.time.max(stamp.time);
        let Observed { sources, continued, .. } = observed;
        let Changes { effects, previous } = changes;
        if effects.is_empty() {
            return others.remember(cx, keyspace, &mut context.facts, sources);
        }
        let operation = cx.next_operation();
        let observed = cx.observed(sources);
        let carried = others.to_carry(cx, keyspace, [observed.clone(), continued].concat());
        let mut dependencies = others.dependencies(cx, keyspace, &mut context.facts, &carried);
        others.failover.discarded.past_the_losses(cx, keyspace, &mut dependencies);
        self.carry(keyspace, &effects, stamp, &dependencies);
        let change = Change::Effects { keyspace, transaction: None, effects };
        others.replication.log_own(cx, stamp, dependencies, change, previous);
        others.observe_into(cx, keyspace, &mut context.facts, &observed);
        others.replication.wrote(cx, keyspace, context, operation, stamp);
    }

    /// The typed error for local writes while a bound is reached. Replicated writes are never refused.
    pub(crate) fn write_refusal(&self, cx: &Cx, others: &Others, grows: bool) -> Option<Reply> {
        if cx.is_out_of_room() {
            return Some(Reply::error(
                "DISKFULL the disk is full: reads are answered, writes are refused until there is room",
            ));
        }
        if let Some(refusal) = others.ahead_refusal(cx) {
            return Some(refusal);
        }
        let backlog_max = cx.config.replication_backlog_max;
        if backlog_max > 0 && cx.journal.backlog_bytes() > backlog_max {
            return Some(Reply::error(
                "BACKLOG log not yet replicated everywhere exceeds 'replication-backlog-max'",
            ));
        }
        if grows { self.memory_refusal() } else { None }
    }

    /// The same, of the bound on memory alone: for what is not logged yet.
    pub(in crate::partition) fn memory_refusal(&self) -> Option<Reply> {
        let is_full = self.memory_max > 0 && self.memory_bytes() > self.memory_max;
        is_full.then_some(Reply::error("OOM command not allowed when used memory > 'maxmemory'."))
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.rows.iter().map(|keyspace| keyspace.bytes()).sum::<u64>() + self.branching.bytes()
    }

    /// FLUSHDB: one record that hides every base value below its stamp, and deletes the counters it saw by name.
    pub(crate) fn flush(&mut self, cx: &mut Cx, others: &mut Others, execution: &mut Execution) -> Reply {
        if let Some(refusal) = self.write_refusal(cx, others, false) {
            return refusal;
        }
        let keyspace = execution.keyspace;
        let at = cx.tick();
        let stamp = cx.stamp(at);
        let operation = cx.next_operation();
        let counters = self.keyspace(keyspace).counters();
        let delete = |(key, column, seen): (Bytes, Column, _)| RowEffect {
            key,
            column,
            effect: Effect::Delete { seen },
        };
        let effects: Vec<RowEffect> = counters.into_iter().map(delete).collect();
        let bytes = |effect: &RowEffect| effect_bytes(&effect.key, &effect.column, 0);
        if effects.iter().map(bytes).sum::<usize>() > limits::ENTRY_BYTES_MAX {
            return TOO_MUCH;
        }
        let dependencies = others.dependencies(cx, keyspace, &mut execution.context.facts, &[]);
        let carried = self.keyspace(keyspace).carried(&dependencies);
        let write = Write { stamp, at, operation, dependencies: carried };
        self.apply_flush(keyspace, &effects, &write);
        others.replication.log_own(cx, stamp, dependencies, Change::Flush { keyspace, effects }, Vec::new());
        execution.context.time = execution.context.time.max(at);
        others.replication.wrote(cx, keyspace, &mut execution.context, operation, stamp);
        Reply::OK
    }
}

impl Others {
    /// The session has read this; it counts as its past from now on.
    pub(crate) fn remember(&self, cx: &Cx, keyspace: KeyspaceId, facts: &mut Opaque, sources: Vec<Source>) {
        self.observe_into(cx, keyspace, facts, &cx.observed(sources));
    }
}

/// Takes a batch out of the caller's hands.
fn take(execution: &mut Execution) -> Execution {
    Execution {
        from: execution.from,
        request: execution.request,
        keyspace: execution.keyspace,
        context: std::mem::take(&mut execution.context),
        commands: std::mem::take(&mut execution.commands),
        replies: std::mem::take(&mut execution.replies),
        atomic: execution.atomic.take(),
        together: execution.together,
        gave_up: execution.gave_up,
        since_us: execution.since_us,
        used: execution.used,
    }
}

fn is_read(args: &Args) -> bool {
    ensue_resp::lookup(&args[0]).is_some_and(|spec| !spec.is_write())
}

impl Executor<'_> {
    pub(in crate::partition) fn on_execute(
        &mut self,
        from: Address,
        request: RequestId,
        keyspace: KeyspaceId,
        context: Context,
        Batch { commands, together }: Batch,
    ) {
        self.cx.observe(context.time);
        let replies = Vec::with_capacity(commands.len());
        let commands = VecDeque::from(commands);
        let (gave_up, since_us) = (false, self.cx.now.monotonic_us);
        self.advance(Execution {
            from,
            request,
            keyspace,
            context,
            commands,
            replies,
            atomic: None,
            together,
            gave_up,
            since_us,
            used: Used::default(),
        });
    }

    /// A write transaction over this partition alone: one entry, one time, no votes.
    pub(crate) fn execute_atomically(&mut self, execution: Execution) {
        if self.keyspaces.branching.is_branching(execution.keyspace) {
            return self.keyspaces.execute_branching_atomically(self.cx, self.others, execution);
        }
        let Some(mut execution) = self.admit(execution) else { return };
        if let Some(refusal) = self.keyspaces.write_refusal(self.cx, self.others, true) {
            return self
                .cx
                .send(execution.from, Message::Refused { request: execution.request, reply: refusal });
        }
        let choice =
            self.others.stable_time.times.look(self.cx, execution.keyspace, &mut execution.context.facts);
        if choice == Choice::Wait {
            return self.reads.waits.wait_with(self.cx, execution);
        }
        let rows = self.cx.rows_of(execution.keyspace, execution.commands.iter());
        let at = self.cx.tick();
        if self.keyspaces.must_wait(&rows) {
            self.keyspaces.order.insert(self.cx.moment(at), true, rows, Work::Commands(Box::new(execution)));
            return;
        }
        self.keyspaces.finish_atomic(self.cx, self.others, &mut execution, at, &choice);
    }

    /// Commands that waited for their session's past go on.
    pub(crate) fn go_on(&mut self, execution: Execution) {
        match execution.atomic {
            Some(_) => self.execute_atomically(execution),
            None => self.advance(execution),
        }
    }

    /// They have waited in vain: the command that waited gets this answer, and the session is another one from here.
    pub(in crate::partition) fn go_on_without(&mut self, mut execution: Execution, reply: Reply) {
        execution.gave_up = true;
        execution.replies.push(reply);
        if execution.atomic.is_some() {
            execution.commands.clear();
        } else {
            execution.commands.pop_front();
        }
        self.advance(execution);
    }

    /// A write's turn has come, at the time it drew when it arrived.
    pub(in crate::partition) fn resume_execution(&mut self, mut execution: Execution, at: LogicalTime) {
        if execution.atomic.is_some() {
            return self.keyspaces.finish_atomic(self.cx, self.others, &mut execution, at, &Choice::Newest);
        }
        if let Some(args) = execution.commands.pop_front() {
            let reply = match Request::parse(&args) {
                Ok(request) => {
                    self.keyspaces.write(self.cx, self.others, &mut execution, at, &request, &Choice::Newest)
                }
                Err(error) => error.reply(),
            };
            execution.replies.push(reply);
        }
        self.advance(execution);
    }

    /// Executes commands until the batch is done or has to wait.
    pub(crate) fn advance(&mut self, mut execution: Execution) {
        while let Some(args) = execution.commands.pop_front() {
            if execution.together && execution.used.bytes > limits::ANSWER_BYTES_MAX && is_read(&args) {
                execution.replies.push(ANSWER_TOO_LONG);
                continue;
            }
            match self.step(&mut execution, args) {
                Step::Done(reply) => {
                    execution.used.bytes += reply.encoded_bytes();
                    execution.replies.push(reply);
                    // What it has seen is left of a dead datacenter: the next command must not take it for what was
                    // lost.
                    self.others.failover.discarded.past_the_losses(
                        self.cx,
                        execution.keyspace,
                        &mut execution.context.facts,
                    );
                    // A session that gave up is told so once, with everything.
                    let is_up = execution.used.is_up(&self.cx.config.tuning) && !execution.gave_up;
                    if is_up && !execution.together && !execution.commands.is_empty() {
                        break;
                    }
                }
                Step::Parked => {
                    // The batch itself was moved into what it waits for.
                    return;
                }
            }
        }
        execution.context.time = execution.context.time.max(self.cx.clock.latest());
        let Execution { from, request, context, replies, gave_up, commands, .. } = execution;
        let message = match (gave_up, commands.is_empty()) {
            (false, true) => Message::Executed { request, context, replies },
            (false, false) => Message::ExecutedInPart { request, context, replies, rest: commands.into() },
            (true, _) => Message::GaveUp { request, context, replies },
        };
        self.cx.send(from, message);
    }

    fn step(&mut self, execution: &mut Execution, args: Args) -> Step {
        let Some(spec) = ensue_resp::lookup(&args[0]) else {
            return Step::Done(Reply::error("ERR unknown command"));
        };
        if spec.name == "causal" {
            return Step::Done(self.execute_causal(execution, &args));
        }
        if self.keyspaces.branching.is_branching(execution.keyspace) {
            return Step::Done(self.keyspaces.step_branching(self.cx, self.others, execution, spec, &args));
        }
        let request = match Request::parse_as(spec, &args) {
            Ok(request) => request,
            Err(error) => return Step::Done(error.reply()),
        };
        if let Err(reply) = self.others.failover.discarded.part_from_losses(
            self.cx,
            execution.keyspace,
            &mut execution.context.facts,
        ) {
            execution.gave_up = true;
            return Step::Done(reply);
        }
        let choice =
            self.others.stable_time.times.look(self.cx, execution.keyspace, &mut execution.context.facts);
        if choice == Choice::Wait {
            execution.commands.push_front(args);
            self.reads.waits.wait_with(self.cx, take(execution));
            return Step::Parked;
        }
        if spec.flags.contains(Flags::WRITE) {
            return self.keyspaces.step_write(
                self.cx,
                self.others,
                execution,
                spec,
                (args, &request),
                &choice,
            );
        }
        let busy = !self.keyspaces.order.is_idle() && {
            let rows = self.cx.rows_of(execution.keyspace, std::iter::once(&args));
            self.keyspaces.must_wait(&rows) && self.cx.protocol(execution.keyspace).needs().asks_coordinator
        };
        let at = self.cx.promise();
        if busy && Rule::PendingAnswersNothing.holds() {
            execution.commands.push_front(args);
            self.park_read(take(execution), at);
            return Step::Parked;
        }
        Step::Done(within_bound(
            self.keyspaces
                .read_now(self.cx, self.others, execution, at, &request, &choice)
                .unwrap_or(FORGOTTEN),
        ))
    }

    /// What `CAUSAL` asks every partition for.
    fn execute_causal(&mut self, execution: &mut Execution, args: &Args) -> Reply {
        match (args.get(1).map(Bytes::as_ref), args.get(2)) {
            (None, _) => CommandError::wrong_arity("causal").reply(),
            (Some(b"discarded"), _) => self.others.failover.discarded.list_discarded(self.cx),
            (Some(b"conflicts"), key) => self.keyspaces.list_conflicts(self.cx, self.others, execution, key),
            (_, None) if self.keyspaces.branching.is_branching(execution.keyspace) => {
                self.keyspaces.branching.branch_digest(execution.keyspace, false)
            }
            (_, None) => self.keyspaces.digest(self.cx, execution.keyspace),
            (Some(b"readmit"), Some(name)) => self.others.execute_readmit(self.cx, name),
            (_, Some(name)) => self.keyspaces.execute_dead(self.cx, self.others, name, args.len() > 3),
        }
    }
}
