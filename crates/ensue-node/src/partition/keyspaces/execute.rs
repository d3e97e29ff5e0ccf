//! Commands at the rows: evaluated at one logical time, stamped above their past, logged; and effects applied.

use super::scripts::{Refusals, is_script};
use super::watched::{STANDS, is_check};
use super::{Followers, Keyspaces};
use crate::command;
use crate::evaluate::{Changes, Evaluation, Observed, Room};
use crate::partition::cx::Cx;
use crate::partition::order::RowName;
use crate::partition::others::Others;
use crate::partition::work::{Execution, FORGOTTEN, Work};
use crate::trace::Trace;
use crate::view::{Shown, is_whole, view_of};
use bytes::Bytes;
use ensue_protocol::Choice;
use ensue_resp::request::WaitingPop;
use ensue_resp::{CommandSpec, Flags, Request};
use ensue_store::cell::{Outcome, Write};
use ensue_store::entry::Change;
use ensue_store::layout::{encoded_effect_bytes, encoded_previous_bytes};
use ensue_store::row::Gone;
use ensue_store::view::View;
use ensue_types::{
    Args, Causes, Column, Context, Effect, KeyspaceId, LogicalTime, Previous, Reply, RowEffect, Rule, Stamp,
};
use ensue_wire::Message;

/// What stands with a change that replaces whatever is below it.
const ABOVE_ALL: Previous =
    Previous::Nothing { forgotten: Stamp { time: LogicalTime(u64::MAX), ..Stamp::ZERO } };

/// What a partition without rows takes at the least.
const PARTITION_BYTES: u64 = 4_096;

impl Keyspaces {
    /// The versions just written remember what they depend on.
    pub(crate) fn carry(
        &mut self,
        keyspace: KeyspaceId,
        effects: &[RowEffect],
        stamp: Stamp,
        dependencies: &Causes,
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
        (choice, refusals): (&Choice, &Refusals),
    ) -> (Vec<Reply>, Changes, Observed) {
        let mut writer = cx.writer(keyspace, write, choice);
        writer.remove_rows(std::mem::take(&mut self.removes_rows));
        let shown = Shown::of(cx.protocols[usize::from(keyspace.0)].as_ref(), choice);
        let mut observed = Observed::default();
        let mut replies = Vec::new();
        let mut room = Room::default();
        for args in commands {
            if is_script(&args) {
                let (past, what) = ((&mut writer, &mut observed), (&shown, refusals.clone()));
                replies.push(room.fit(self.run_script(cx, keyspace, past, what, &args), true));
                continue;
            }
            let request = match Request::parse(&args) {
                Ok(request) => request,
                Err(error) => {
                    replies.push(error.reply());
                    continue;
                }
            };
            let view = view_of(&shown, View::Newest);
            let mut evaluation =
                Evaluation::writing(&mut self.keyspaces[usize::from(keyspace.0)], &mut writer, view);
            let reply = command::run(&request, &mut evaluation);
            observed.depend_on(evaluation.observed);
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
        writer.remove_rows(std::mem::take(&mut self.removes_rows));
        let shown = Shown::of(cx.protocols[usize::from(keyspace.0)].as_ref(), choice);
        let view = view_of(&shown, View::Newest);
        let mut evaluation =
            Evaluation::writing(&mut self.keyspaces[usize::from(keyspace.0)], &mut writer, view);
        let reply = command::run(request, &mut evaluation);
        let observed = evaluation.observed;
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

    pub(in crate::partition) fn step_write(
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
        let grows = spec.flags.contains(Flags::DENYOOM);
        if grows {
            self.make_room(cx, others);
        }
        if let Some(refusal) = self.write_refusal(cx, others, grows) {
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
        cx: &mut Cx,
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
        let mut evaluation = Evaluation::reading(&mut self.keyspaces[number], at, view);
        // Several reads may have the same time.
        evaluation.seed ^= self.counts.get().0.rotate_left(32) ^ u64::from(cx.id.0);
        let mut reply = command::run(request, &mut evaluation);
        let mut observed = evaluation.observed;
        execution.used.cells += observed.pieces;
        if let (Choice::NewestIfWhole(_), Some(shown)) = (choice, &shown) {
            if !is_whole(shown, &observed) {
                let mut evaluation =
                    Evaluation::reading(&mut self.keyspaces[number], at, View::Visibility(shown));
                reply = command::run(request, &mut evaluation);
                observed = evaluation.observed;
            }
        }
        let mut reply = reply?;
        if let (Request::Watch { keys }, Some(shown)) = (request, shown) {
            reply = self.numbers_of_what_is_seen((number, at), shown, keys, reply);
        }
        execution.context.time = execution.context.time.max(at);
        self.counts.count_reads(1, observed.stale);
        cx.statistics.count_lookups(observed.hits, observed.misses);
        others.remember(cx, execution.keyspace, &mut execution.context.causes, observed.sources);
        Ok(reply)
    }

    /// Whether a row may have something for a pop that waits there, whatever its session sees of it.
    pub(in crate::partition) fn may_serve(&mut self, cx: &mut Cx, row: &RowName, pop: &WaitingPop) -> bool {
        let keyspace = &mut self.keyspaces[usize::from(row.0.0)];
        command::may_serve(pop, &row.1, &mut Evaluation::reading(keyspace, cx.promise(), View::Newest))
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
        self.removes_rows = others.replication.applied.is_in_order();
        let (reply, changes, observed) = self.evaluate(cx, keyspace, write, request, choice);
        execution.used.cells += observed.pieces + changes.effects.len();
        self.log_write(cx, others, &mut execution.context, keyspace, stamp, (changes, observed));
        reply
    }

    /// A script whose turn may have to come first.
    pub(in crate::partition) fn step_script(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        execution: &mut Execution,
        args: Args,
        choice: &Choice,
    ) -> Step {
        let at = cx.tick();
        let rows = cx.rows_of(execution.keyspace, std::iter::once(&args));
        if self.must_wait(&rows) {
            execution.commands.push_front(args);
            self.order.insert(cx.moment(at), true, rows, Work::Commands(Box::new(take(execution))));
            return Step::Parked;
        }
        self.start_script(cx, others, execution, at, args, choice)
    }

    pub(in crate::partition) fn finish_atomic(
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
        let mut commands = std::mem::take(&mut execution.commands);
        let mut before = Vec::new();
        if commands.front().is_some_and(is_check) {
            let check = commands.pop_front().unwrap_or_default();
            match self.are_as_watched(cx, keyspace, at, choice, &check) {
                true => before.push(STANDS),
                false => {
                    before = vec![Reply::Nil; 1 + commands.len()];
                    commands.clear();
                }
            }
        }
        // Commands that write were refused before; those of scripts are known only now.
        let refusals =
            Refusals { writes: self.write_refusal(cx, others, false), growth: self.memory_refusal() };
        self.removes_rows = others.replication.applied.is_in_order();
        let (replies, changes, observed) =
            self.evaluate_all(cx, keyspace, write, commands, (choice, &refusals));
        self.report_calls(cx, execution);
        self.log_write(cx, others, &mut execution.context, keyspace, stamp, (changes, observed));
        let replies = places.into_iter().zip(before.into_iter().chain(replies)).collect();
        others.failover.discarded.strip_lost(cx, keyspace, &mut execution.context.causes);
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
        let Observed { sources, continued, hits, misses, .. } = observed;
        cx.statistics.count_lookups(hits, misses);
        let Changes { effects, previous } = changes;
        if effects.is_empty() {
            return others.remember(cx, keyspace, &mut context.causes, sources);
        }
        let operation = cx.next_operation();
        debug_assert!(
            sources.iter().all(|source| source.operation != operation),
            "{operation} depends on itself"
        );
        let read = others.split_settled(cx, keyspace, cx.observed(sources));
        let carried = others.to_carry(cx, keyspace, &read, continued);
        let mut dependencies = others.dependencies(cx, keyspace, &mut context.causes, &carried);
        others.failover.discarded.strip_lost(cx, keyspace, &mut dependencies);
        self.carry(keyspace, &effects, stamp, &dependencies);
        if effects.iter().any(|change| change.column == Column::Row) {
            cx.trace(Trace::RowRemoved { partition: cx.id });
        }
        let change = Change::Effects { keyspace, transaction: None, effects };
        others.replication.log_own(cx, stamp, dependencies, change, previous);
        others.record_reads(cx, keyspace, &mut context.causes, &read);
        others.replication.record_write(cx, keyspace, context, operation, stamp);
    }

    /// The typed error for local writes while a bound is reached. Replicated writes are never refused.
    pub(crate) fn write_refusal(&self, cx: &Cx, others: &Others, grows: bool) -> Option<Reply> {
        if others.failover.retirement.is_begun() {
            return Some(cx.retiring());
        }
        self.bound_refusal(cx, others, grows)
    }

    /// The same, of bounds alone.
    pub(in crate::partition) fn bound_refusal(&self, cx: &Cx, others: &Others, grows: bool) -> Option<Reply> {
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
        let Followers { count, lag_ms_max } = self.followers;
        if count > 0 && lag_ms_max > 0 && others.followers(cx, lag_ms_max) < count {
            return Some(Reply::error("NOREPLICAS Not enough good replicas to write."));
        }
        if grows { self.memory_refusal() } else { None }
    }

    /// The same, of the bound on memory alone: for what is not logged yet.
    pub(crate) fn memory_refusal(&self) -> Option<Reply> {
        (self.memory_max > 0 && self.bounded_bytes() > self.memory_bound())
            .then_some(Reply::error("OOM command not allowed when used memory > 'maxmemory'."))
    }

    /// How many bytes rows take beyond what they may.
    pub(super) fn bytes_above(&self) -> u64 {
        match self.memory_max {
            0 => 0,
            most => self.bounded_bytes().saturating_sub(most),
        }
    }

    /// What is compared with the bound. Where rows are evicted, what those leave behind is not counted, as far as it
    /// may be there: it is forgotten when every datacenter has had it, and to evict more rows would only add to it.
    fn bounded_bytes(&self) -> u64 {
        let uncounted = match self.accesses.policy().evicts() {
            true => self.dead_bytes().min(self.dead_bytes_max()),
            false => 0,
        };
        self.memory_bytes() + PARTITION_BYTES - uncounted
    }

    /// Where rows are evicted, a command that comes when there are no more may grow beyond the bound.
    fn memory_bound(&self) -> u64 {
        match self.accesses.policy().evicts() {
            true => self.memory_max.saturating_add(self.memory_max / 8),
            false => self.memory_max,
        }
    }

    /// What rows take, deadlines that were set, states of branches, and what has yet to become rows.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let rows = self.keyspaces.iter().map(|keyspace| keyspace.bytes()).sum::<u64>();
        rows + self.branching.bytes() + self.waiting_bytes + self.deadline_bytes
    }

    /// FLUSHDB: one record that hides every base value below its stamp, and deletes the counters it saw by name.
    pub(crate) fn flush(&mut self, cx: &mut Cx, others: &mut Others, execution: &mut Execution) -> Reply {
        if let Some(refusal) = self.write_refusal(cx, others, false) {
            return refusal;
        }
        let keyspace = execution.keyspace;
        let counters = self.keyspace(keyspace).counters();
        let delete = |(key, column, seen): (Bytes, Column, _)| RowEffect {
            key,
            column,
            effect: Effect::Delete { seen },
        };
        let mut effects: Vec<RowEffect> = counters.into_iter().map(delete).collect();
        while let Some(most) = fitting(&effects, cx.config.tuning.entry_bytes_max) {
            let later = effects.split_off(most);
            self.delete_counters(cx, others, execution, effects);
            effects = later;
        }
        let at = cx.tick();
        let stamp = cx.stamp(at);
        let operation = cx.next_operation();
        let dependencies = others.dependencies(cx, keyspace, &mut execution.context.causes, &[]);
        let carried = self.keyspace(keyspace).carried(&dependencies);
        let write = Write { stamp, at, operation, dependencies: carried };
        self.apply_flush(keyspace, &effects, &write);
        others.replication.log_own(cx, stamp, dependencies, Change::Flush { keyspace, effects }, Vec::new());
        execution.context.time = execution.context.time.max(at);
        others.replication.record_write(cx, keyspace, &mut execution.context, operation, stamp);
        Reply::OK
    }

    /// Deletes some of the counters that a flush deletes by name, before it: those of one entry.
    fn delete_counters(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        execution: &mut Execution,
        effects: Vec<RowEffect>,
    ) {
        let keyspace = execution.keyspace;
        let at = cx.tick();
        let (stamp, operation) = (cx.stamp(at), cx.next_operation());
        let dependencies = others.dependencies(cx, keyspace, &mut execution.context.causes, &[]);
        let carried = self.keyspace(keyspace).carried(&dependencies);
        let write = Write { stamp, at, operation, dependencies: carried };
        // As what the flush deletes: with everything below it.
        let everything = Previous::Nothing { forgotten: stamp.before() };
        let rows = self.keyspace(keyspace);
        for effect in &effects {
            rows.apply(effect, Some(&everything), &write);
        }
        let named = if cx.protocol(keyspace).needs().previous_versions { effects.len() } else { 0 };
        let previous = vec![everything; named];
        let change = Change::Effects { keyspace, transaction: None, effects };
        others.replication.log_own(cx, stamp, dependencies, change, previous);
        others.replication.record_write(cx, keyspace, &mut execution.context, operation, stamp);
    }

    pub(in crate::partition) fn apply_effects(
        &mut self,
        keyspace: ensue_types::KeyspaceId,
        effects: &[RowEffect],
        previous: &[Previous],
        write: &Write,
    ) -> bool {
        let rows = self.keyspace(keyspace);
        let mut lost = false;
        let mut previous = previous.iter();
        for change in effects {
            let previous = if change.effect.is_base() { previous.next() } else { None };
            lost |= rows.apply(change, previous, write) == Outcome::Lost;
        }
        lost
    }
}

/// How many of these effects fit into an entry, if not all do: one at least. With each stands what it replaced.
fn fitting(effects: &[RowEffect], bytes_max: usize) -> Option<usize> {
    let mut bytes = 0;
    let is_too_much = |effect: &RowEffect| {
        bytes += encoded_effect_bytes(effect) + encoded_previous_bytes(&ABOVE_ALL);
        bytes > bytes_max
    };
    effects.iter().position(is_too_much).map(|fit| fit.max(1)).filter(|fit| *fit < effects.len())
}

/// What became of one command.
#[derive(Clone, Debug)]
pub(in crate::partition) enum Step {
    Done(Reply),
    /// The batch waits; it has been put where it will be taken up again.
    Parked,
}

/// Takes a batch out of the caller's hands.
pub(in crate::partition) fn take(execution: &mut Execution) -> Execution {
    Execution {
        from: execution.from,
        request: execution.request,
        keyspace: execution.keyspace,
        context: std::mem::take(&mut execution.context),
        commands: std::mem::take(&mut execution.commands),
        replies: std::mem::take(&mut execution.replies),
        atomic: execution.atomic.take(),
        together: execution.together,
        timed_out: execution.timed_out,
        since_us: execution.since_us,
        used: execution.used,
        served: execution.served.take(),
    }
}
