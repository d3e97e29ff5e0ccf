//! Batches of sessions: executed command by command (`keyspaces::execute`), and answered.
//!
//! A read that meets an undecided transaction asks its coordinator, a write that meets one waits for its turn in the
//! row. The session's context goes along with the batch and comes back.

use super::Executor;
use super::pops::{offered, waits};
use crate::evaluate::{ANSWER_TOO_LONG, within_bound};
use crate::partition::keyspaces::execute::{Step, take};
use crate::partition::keyspaces::scripts::is_script;
pub(in crate::partition) use crate::partition::work::{Execution, FORGOTTEN, Used, Work};
use bytes::Bytes;
use ensue_protocol::Choice;
use ensue_resp::{CommandError, CommandSpec, Flags, Request, Route};
use ensue_types::{Args, Context, KeyspaceId, LogicalTime, Reply, RequestId, Rule, limits};
use ensue_wire::{Address, Message};
use std::collections::VecDeque;

/// Commands of a session, in order.
pub(in crate::partition) struct Batch {
    pub commands: Vec<Args>,
    pub together: bool,
}

fn is_read(args: &Args) -> bool {
    ensue_resp::lookup(&args[0]).is_some_and(|spec| !spec.is_write())
}

/// Whether a command writes, and is no script.
fn writes_itself(args: &Args) -> bool {
    let spec = args.first().and_then(|name| ensue_resp::lookup(name));
    spec.is_some_and(|spec| spec.is_write() && spec.route != Route::Script)
}

/// Whether a command makes data grow. Those that a script calls are not known before it runs.
pub(super) fn may_grow(args: &Args) -> bool {
    let spec = args.first().and_then(|name| ensue_resp::lookup(name));
    spec.is_some_and(|spec| spec.flags.contains(Flags::DENYOOM))
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
        self.cx.advance_clock(context.time);
        let replies = Vec::with_capacity(commands.len());
        let commands = VecDeque::from(commands);
        let (timed_out, since_us) = (false, self.cx.now.monotonic_us);
        self.advance(Execution {
            from,
            request,
            keyspace,
            context,
            commands,
            replies,
            atomic: None,
            together,
            timed_out,
            since_us,
            used: Used::default(),
            served: None,
        });
    }

    /// A write transaction over this partition alone: one entry, one time, no votes.
    pub(crate) fn execute_atomically(&mut self, execution: Execution) {
        if self.keyspaces.branching.is_branching(execution.keyspace) {
            return self.keyspaces.execute_branching_atomically(self.cx, self.others, execution);
        }
        let Some(mut execution) = self.admit(execution) else { return };
        let grows = execution.commands.iter().any(may_grow);
        // A script may write nothing: its commands are looked at one by one.
        let writes = execution.commands.iter().any(writes_itself);
        if grows {
            self.keyspaces.make_room(self.cx, self.others);
        }
        let refusal = self.keyspaces.write_refusal(self.cx, self.others, grows);
        if let Some(refusal) = refusal.filter(|_| writes) {
            return self
                .cx
                .send(execution.from, Message::Refused { request: execution.request, reply: refusal });
        }
        let choice = self.others.stable_time.times.select_version(
            self.cx,
            execution.keyspace,
            &mut execution.context.causes,
        );
        if choice == Choice::Wait {
            return self.reads.blocked.block(self.cx, execution);
        }
        let Execution { keyspace, context, commands, .. } = &execution;
        let refusal = self.cx.stable_refusal(*keyspace, &context.causes, commands.iter());
        if let Some(reply) = refusal.or_else(|| self.cx.home_refusal(*keyspace, commands.iter())) {
            return self.cx.send(execution.from, Message::Refused { request: execution.request, reply });
        }
        let rows = self.cx.rows_of(execution.keyspace, execution.commands.iter());
        let at = self.cx.tick();
        if self.keyspaces.must_wait(&rows) {
            self.keyspaces.order.insert(self.cx.moment(at), true, rows, Work::Commands(Box::new(execution)));
            return;
        }
        self.finish_atomic(&mut execution, at, &choice);
    }

    /// The writes of a transaction are those of its session, too.
    fn finish_atomic(&mut self, execution: &mut Execution, at: LogicalTime, choice: &Choice) {
        let RequestId { core, session, .. } = execution.request;
        let writer = self.reads.changes.is_wanted().then_some((core, session));
        self.keyspaces.keyspace(execution.keyspace).written_by(writer);
        self.keyspaces.finish_atomic(self.cx, self.others, execution, at, choice);
        self.keyspaces.keyspace(execution.keyspace).written_by(None);
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
        execution.timed_out = true;
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
            return self.finish_atomic(&mut execution, at, &Choice::Newest);
        }
        if let Some(args) = execution.commands.pop_front() {
            let choice = &Choice::Newest;
            let request = Request::parse(&args).map(|request| offered(&execution, request));
            let reply = match request {
                _ if is_script(&args) => {
                    let (run, script) = (&mut execution, args.clone());
                    match self.keyspaces.start_script(self.cx, self.others, run, at, script, choice) {
                        Step::Done(reply) => reply,
                        Step::Parked => return,
                    }
                }
                Ok(request) => {
                    let reply =
                        self.keyspaces.write(self.cx, self.others, &mut execution, at, &request, choice);
                    if waits(&execution, &request, &reply) {
                        return self.park_pop(execution, args);
                    }
                    execution.served = None;
                    reply
                }
                Err(error) => error.reply(),
            };
            self.count_resumed(&execution, &args, &reply);
            execution.replies.push(reply);
        }
        self.advance(execution);
    }

    /// A command that had waited was executed.
    pub(super) fn count_resumed(&mut self, execution: &Execution, args: &Args, reply: &Reply) {
        if let Some(spec) = ensue_resp::lookup(&args[0]).filter(|_| !execution.together) {
            self.cx.statistics.count(spec, None, reply.is_error());
        }
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
                    self.serve_pops();
                    // What it has seen is left of a dead datacenter: the next command must not take it for what was
                    // lost.
                    self.others.failover.discarded.strip_lost(
                        self.cx,
                        execution.keyspace,
                        &mut execution.context.causes,
                    );
                    // A session that gave up is told so once, with everything.
                    let is_up = execution.used.is_up(&self.cx.config.tuning) && !execution.timed_out;
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
        let Execution { from, request, context, replies, timed_out, commands, .. } = execution;
        let message = match (timed_out, commands.is_empty()) {
            (false, true) => Message::Executed { request, context, replies },
            (false, false) => Message::ExecutedInPart { request, context, replies, rest: commands.into() },
            (true, _) => Message::TimedOut { request, context, replies },
        };
        self.cx.send(from, message);
    }

    fn step(&mut self, execution: &mut Execution, args: Args) -> Step {
        let Some(spec) = ensue_resp::lookup(&args[0]) else {
            return Step::Done(Reply::error("ERR unknown command"));
        };
        let (together, subcommand) = (execution.together, spec.subcommand(&args));
        let about_uses = self.keyspaces.about_uses(spec, &args);
        let step = match self.reads.changes.is_wanted() {
            true => {
                let RequestId { core, session, .. } = execution.request;
                let keyspace = execution.keyspace;
                self.keyspaces.keyspace(keyspace).written_by(Some((core, session)));
                let step = self.step_command(execution, spec, args);
                self.keyspaces.keyspace(keyspace).written_by(None);
                step
            }
            false => self.step_command(execution, spec, args),
        };
        let step = match (step, about_uses) {
            (Step::Done(reply), Some(args)) => {
                Step::Done(self.keyspaces.with_uses(self.cx, execution.keyspace, &args, reply))
            }
            (step, _) => step,
        };
        match &step {
            // Parts of a command of several owners are counted as one by their session.
            Step::Done(reply) if !together => self.cx.statistics.count(spec, subcommand, reply.is_error()),
            _ => {}
        }
        step
    }

    fn step_command(&mut self, execution: &mut Execution, spec: &'static CommandSpec, args: Args) -> Step {
        match spec.name {
            "causal" => return Step::Done(self.execute_causal(execution, &args)),
            "script" => return Step::Done(self.keyspaces.execute_script(&args)),
            "function" => return Step::Done(self.keyspaces.execute_function(self.cx.now, &args)),
            _ => {}
        }
        if self.keyspaces.branching.is_branching(execution.keyspace) {
            return Step::Done(self.keyspaces.step_branching(self.cx, self.others, execution, spec, &args));
        }
        self.keyspaces.note_uses(self.cx, execution.keyspace, spec, &args);
        let request = match Request::parse_as(spec, &args) {
            Ok(request) => Some(request),
            Err(_) if spec.route == Route::Script => None,
            Err(error) => return Step::Done(error.reply()),
        };
        if let Err(reply) = self.others.failover.discarded.reset_if_lost(
            self.cx,
            execution.keyspace,
            &mut execution.context.causes,
        ) {
            execution.timed_out = true;
            return Step::Done(reply);
        }
        let choice = self.others.stable_time.times.select_version(
            self.cx,
            execution.keyspace,
            &mut execution.context.causes,
        );
        if choice == Choice::Wait {
            execution.commands.push_front(args);
            self.reads.blocked.block(self.cx, take(execution));
            return Step::Parked;
        }
        if let Some(refusal) = self.refusal_at_home(execution, spec, &args) {
            return Step::Done(refusal);
        }
        let Some(request) = request else {
            return self.keyspaces.step_script(self.cx, self.others, execution, args, &choice);
        };
        if let Request::Blocking(_) = request {
            return self.step_pop(execution, spec, args, request, &choice);
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
            self.keyspaces.must_wait(&rows)
                && self.cx.protocol(execution.keyspace).needs().queries_coordinator
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

    /// Why a session that fell back may not make this write, or nobody here.
    fn refusal_at_home(&self, execution: &Execution, spec: &CommandSpec, args: &Args) -> Option<Reply> {
        let Execution { keyspace, context, .. } = execution;
        let stable = || self.cx.stable_refusal(*keyspace, &context.causes, [args]);
        let stable = spec.is_write().then(stable).flatten();
        stable.or_else(|| self.cx.home_refusal(*keyspace, [args]))
    }

    /// A pop, which waits if there is nothing.
    fn step_pop(
        &mut self,
        execution: &mut Execution,
        spec: &'static CommandSpec,
        args: Args,
        request: Request,
        choice: &Choice,
    ) -> Step {
        let (args, request) = self.behind_latest(execution, args, request, choice);
        let request = offered(execution, request);
        let write = (args.clone(), &request);
        match self.keyspaces.step_write(self.cx, self.others, execution, spec, write, choice) {
            Step::Done(reply) if waits(execution, &request, &reply) => {
                self.park_pop(take(execution), args);
                Step::Parked
            }
            Step::Done(reply) => {
                execution.served = None;
                Step::Done(reply)
            }
            Step::Parked => Step::Parked,
        }
    }

    /// What `CAUSAL` asks every partition for.
    fn execute_causal(&mut self, execution: &mut Execution, args: &Args) -> Reply {
        match (args.get(1).map(Bytes::as_ref), args.get(2)) {
            (None, _) => CommandError::wrong_arity("causal").reply(),
            (Some(b"home"), _) => self.execute_home(execution.keyspace, args),
            (Some(b"checkpoint"), Some(word)) => self.cx.execute_checkpoint(word),
            (Some(b"withdraw"), _) => self.withdraw_pop(execution),
            (Some(b"discarded"), _) => self.others.failover.discarded.list_discarded(self.cx),
            (Some(b"conflicts"), key) => self.keyspaces.list_conflicts(self.cx, self.others, execution, key),
            (_, None) if self.keyspaces.branching.is_branching(execution.keyspace) => {
                self.keyspaces.branching.branch_digest(execution.keyspace, false)
            }
            (_, None) => self.keyspaces.digest(self.cx, execution.keyspace),
            (Some(b"readmit"), Some(name)) => self.others.execute_readmit(self.cx, name),
            (Some(b"retire"), _) => self.others.execute_retire(self.cx, args.len() > 3),
            (_, Some(name)) => self.keyspaces.execute_dead(self.cx, self.others, name, args.len() > 3),
        }
    }

    /// The same for commands that are about to be executed; nothing if they have been answered.
    pub(crate) fn admit(&mut self, mut execution: Execution) -> Option<Execution> {
        if !self.others.failover.discarded.has_losses() {
            return Some(execution);
        }
        match self.others.failover.discarded.reset_if_lost(
            self.cx,
            execution.keyspace,
            &mut execution.context.causes,
        ) {
            Ok(()) => Some(execution),
            Err(reply) => {
                self.go_on_without(execution, reply);
                None
            }
        }
    }
}
