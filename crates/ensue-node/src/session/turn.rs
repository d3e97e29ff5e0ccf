//! One session's turn: it takes commands from its queue, in order, until an answer must be waited for.
//!
//! - On a run of neighbouring commands for one partition: send them as one batch.
//! - On a command for several owners, or on EXEC: begin its exchange; what follows waits for its answer.
//! - On a command that the session answers itself: answer, and go on.
//! - When the turn is used up, by bytes of answers or because a partition says so: the rest waits for the next one.
//! - With a shared context: fetch it before each of the first two, merge it back before answering.
//!
//! Answers are encoded in the order of the commands and leave together when the turn ends. This is the only place that
//! knows more than one of the parts: it gives each what it owns, and goes on by the `Step` that comes back.

pub(super) mod away;
mod ending;
mod held;
mod record;
mod server;
pub(super) mod users;

use super::admin::dead::Declaring;
use super::admin::home::Homes;
use super::admin::retire::Retiring;
use super::admin::{self, debug, memory};
use super::begin;
use super::causal::merge::TokenMerge;
use super::causal::{self, shared};
use super::commands::batch::Run;
use super::commands::blocked::UNBLOCKED;
use super::commands::parallel::Parallel;
use super::commands::rename::Renaming;
use super::commands::{fan_out, local};
use super::connection::{Counted, Lifecycle, Parts, Session};
use super::core_state::CoreState;
use super::cx::Cx;
use super::exchange::{Exchange, Lost, Then};
use super::failure::Failure;
use super::homes::{self, Place};
use super::output::SessionOutput;
use super::plan::{Answers, Plan, scripts};
use super::pubsub;
use super::reply_buffer::Muted;
use super::requests::Asked;
use super::step::Step;
use super::transactions::exec::{self, Exec};
use super::transactions::multi::{self, InMulti, Multi};
use super::transactions::{self, write};
use crate::evaluate::within_bound;
use ensue_resp::request::Blocking;
use ensue_resp::{CommandError, CommandSpec, Flags, Route};
use ensue_types::{Args, Dependency, LogicalTime, Now, Reply, Rule};
use ensue_wire::Message;

/// A session at work.
pub(super) struct Turn<'a> {
    cx: Cx<'a>,
    session: &'a mut Parts,
}

/// How another client ends what a session waits for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Interruption {
    /// A pause is over before its time.
    Unpause,
    /// A pop that waits ends as when its time is over, or with an error.
    Unblock { with_error: bool },
    /// Users have changed: a pop that waits ends if its user may not run it any more.
    Users,
}

/// What happens to a session.
impl<'a> Turn<'a> {
    pub(super) fn new(now: Now, session: &'a mut Session, core: &'a mut CoreState) -> Turn<'a> {
        let Session { contexts, requests, parts } = session;
        Turn { cx: Cx { now, core, contexts, requests }, session: parts }
    }

    /// A turn, and commands in the order of the client.
    pub(super) fn on_commands(&mut self, commands: Vec<Args>) {
        if self.session.lifecycle != Lifecycle::Open {
            return;
        }
        if !commands.is_empty() {
            self.session.client.on_commands(self.cx.now);
            self.cx.core.counters.on_turn(self.cx.now);
        }
        self.session.queue.begin_turn(commands);
        self.advance();
    }

    /// Nothing that follows can be read.
    pub(super) fn on_framing_lost(&mut self, error: String) {
        self.session.queue.on_framing_lost(error);
        self.advance();
    }

    /// An answer that names this session.
    pub(super) fn on_answer(&mut self, sequence: u64, time: LogicalTime, message: Message) {
        if self.session.is_idle() {
            return;
        }
        let Some(share) = self.cx.requests.share(sequence) else { return };
        if let Message::Runs { .. } = message {
            return self.cx.go_on_until_timeout();
        }
        self.cx.contexts.observe(time);
        let (cx, session) = (&mut self.cx, &mut *self.session);
        match (std::mem::take(&mut session.exchange), message) {
            (exchange, Message::Refused { reply, .. }) => {
                let step = exchange.on_refused(cx, share, reply);
                self.follow(step);
            }
            (Exchange::Commands(exchange), message) => {
                let step = exchange.on_answer(cx, &mut session.queue, share, time, message);
                self.follow(step);
            }
            (Exchange::Transactions(exchange), message) => {
                let step = exchange.on_answer(cx, share, message);
                self.follow(step);
            }
            (Exchange::Causal(exchange), message) => {
                let step = exchange.on_answer(cx, &mut session.shared, share, message);
                self.follow(step);
            }
            (Exchange::Admin(query), message) => {
                let step = query.on_answer(cx, share, message);
                self.follow(step);
            }
            (waiting @ (Exchange::AtHome(_) | Exchange::Errand(_) | Exchange::Paused(_)), _) => {
                session.exchange = waiting;
            }
            (Exchange::None, _) => {}
        }
        self.advance();
    }

    /// A partition has applied what a merged token depends on, but for what is gone.
    pub(super) fn on_dependencies_met(
        &mut self,
        check: u64,
        time: LogicalTime,
        unrecoverable: &[Dependency],
    ) {
        self.cx.contexts.observe(time);
        match std::mem::take(&mut self.session.exchange) {
            Exchange::Causal(causal::Exchange::Merge(merge)) => {
                let step = merge.on_dependencies_met(&mut self.cx, check, unrecoverable);
                self.follow(step);
                self.advance();
            }
            exchange => self.session.exchange = exchange,
        }
    }

    /// A core of this datacenter became unreachable.
    pub(super) fn on_lost(&mut self, lost: Lost) {
        let exchange = std::mem::take(&mut self.session.exchange);
        let step = exchange.on_lost(&mut self.cx, lost);
        self.follow(step);
        self.advance();
    }

    /// A timer of this session has expired: its exchange times out, or is looked at again later.
    pub(super) fn on_timer(&mut self) {
        if self.cx.requests.on_timer(&mut self.cx.core.timers, self.cx.now) {
            let exchange = std::mem::take(&mut self.session.exchange);
            let step = exchange.on_timeout(&mut self.cx);
            self.follow(step);
            self.advance();
        }
    }

    /// Somebody ends what this session waits for; false if it waits for nothing of that kind.
    pub(super) fn interrupt(&mut self, how: Interruption) -> bool {
        if self.session.exchange.is_at_home() {
            return away::interrupt(self, how);
        }
        match (how, std::mem::take(&mut self.session.exchange)) {
            (Interruption::Unpause, Exchange::Paused(None)) => {
                self.advance();
                true
            }
            (Interruption::Unblock { with_error }, Exchange::Commands(mut exchange)) => {
                let is_blocked = exchange.end(&mut self.cx, with_error.then_some(UNBLOCKED));
                self.session.exchange = Exchange::Commands(exchange);
                is_blocked
            }
            (Interruption::Users, Exchange::Commands(mut exchange)) => {
                let refusal = exchange.waiting().and_then(|args| users::refusal_of_waiting(self, args));
                let is_refused = refusal.is_some() && exchange.end(&mut self.cx, refusal);
                self.session.exchange = Exchange::Commands(exchange);
                is_refused
            }
            (_, exchange) => {
                self.session.exchange = exchange;
                false
            }
        }
    }

    /// The client is gone: what it had asked goes on, but for what only waits and what only reads.
    /// If it only sends nothing any more, and may still read, a pop that waits is over, and other waits are soon.
    pub(super) fn on_gone(&mut self, may_read: bool) {
        ending::end_waiting(self);
        if may_read {
            return self.cx.end_waiting_soon(self.session.exchange.only_waits());
        }
        self.session.lifecycle = Lifecycle::Gone;
        self.session.queue.retain_writes();
        if self.session.exchange.only_waits() {
            std::mem::take(&mut self.session.exchange).withdraw(&mut self.cx);
            self.end_exchange();
        }
        if self.session.is_idle() {
            self.advance();
        }
    }

    /// The answers so far leave, then the connection closes; what it had asked beyond is forgotten.
    pub(super) fn close(&mut self) {
        self.flush();
        self.session.queue.clear();
        self.session.exec = None;
        if self.session.lifecycle == Lifecycle::Open {
            self.session.lifecycle = Lifecycle::Closing;
            ending::forget_listener(self);
            ending::end_waiting(self);
            self.cx.core.output(SessionOutput::Disconnect { session: self.session.client.id() });
        }
    }
}

/// From the queue to a part.
impl Turn<'_> {
    /// Takes commands until the queue is empty, the turn is used up or an exchange is outstanding; then hands out the
    /// answers.
    fn advance(&mut self) {
        let bytes_max = self.cx.core.config.tuning.turn_answer_bytes;
        while self.session.is_idle() && self.session.has_work() && !self.session.has_used_its_turn(bytes_max)
        {
            match self.session.exec {
                Some(_) => self.next_step(),
                None => self.take_commands(),
            }
        }
        if self.session.is_idle() && !self.session.has_work() {
            if let Some(error) = self.session.queue.take_framing_error() {
                self.session.replies.push_error(self.session.client.version(), error);
                self.close();
            }
        }
        self.flush();
    }

    fn take_commands(&mut self) {
        if self.session.lifecycle == Lifecycle::Open
            && !self.session.client.look_up_user(&self.cx.core.access)
        {
            // It was deleted.
            return self.close();
        }
        if held::is_held_back(self) {
            return;
        }
        let session = &mut *self.session;
        let in_multi = session.multi.is_some();
        if session.client.is_authenticated() && !self.cx.core.is_stopping() {
            if let Some(keyspace) = begin::awaited(&self.cx, session) {
                let waits = match session.lifecycle {
                    Lifecycle::Elsewhere => Rule::WaitForThePastAtHome.holds(),
                    _ => true,
                };
                self.cx.requests.request_queued(1);
                let step = TokenMerge::of_awaited(&mut self.cx, keyspace, waits);
                return self.follow(step);
            }
            let alone = in_multi || session.restricted || self.cx.core.busy().is_some();
            let user = session.client.user().filter(|user| !user.allows_all());
            let run = if alone { None } else { Run::find(&self.cx, &session.queue, user) };
            if let Some(run) = run {
                return self.run(run);
            }
            let uses_context = |args| shared::uses_context(args, in_multi);
            if session.shared.must_fetch(&self.cx) && session.queue.front().is_some_and(uses_context) {
                let step = session.shared.fetch(&mut self.cx, 1);
                return self.follow(step);
            }
        }
        let Some(args) = self.session.queue.pop_front() else { return };
        self.cx.core.counters.commands += 1;
        self.command(args);
        if self.session.is_idle() {
            self.session.shared.on_step_done();
        }
    }

    /// Neighbouring commands that one partition can execute together.
    fn run(&mut self, run: Run) {
        let session = &mut *self.session;
        session.client.on_command(run.latest(), None);
        begin::note_run(&mut self.cx, &session.client, &session.queue, &run);
        if session.shared.must_fetch(&self.cx) {
            let step = session.shared.fetch(&mut self.cx, run.commands());
            return self.follow(step);
        }
        match run.take_reads(&mut self.cx, &mut session.queue) {
            // Reads of several owners, in whichever order they are evaluated: they see one moment.
            Some((specs, plan)) => {
                session.counted.extend(specs.into_iter().map(Counted::new));
                match Rule::PipelinedReadsAreOne.holds() {
                    true => self.read(plan, Then::Each),
                    false => self.execute(plan, Then::Each),
                }
            }
            None => {
                let step = run.send(&mut self.cx, &mut session.queue);
                self.follow(step);
                if self.session.has_ended {
                    self.session.exchange.on_gone(&mut self.cx);
                }
            }
        }
    }

    /// The next step of an EXEC, or its answer.
    fn next_step(&mut self) {
        match self.session.exec.as_mut().and_then(Exec::next) {
            Some(exec::Step::Together(plan)) => {
                let step = transactions::exec_plan(&mut self.cx, *plan);
                self.follow(step);
            }
            Some(exec::Step::AtHome(home, commands)) => away::send(self, home, commands, true),
            Some(exec::Step::Alone(args)) => match self.cx.contexts.first_awaited() {
                Some(keyspace) => away::put_off(self, keyspace, exec::Step::Alone(args)),
                None => self.command(args),
            },
            None => {
                if let Some(exec) = self.session.exec.take() {
                    self.reply(&exec.into_reply());
                }
            }
        }
    }

    /// One command that is no part of a run. The text of a script is told to all partitions before it is executed, so
    /// that its digest is known to all of them when it is answered.
    fn command(&mut self, args: Args) {
        let may_load = self.session.client.is_authenticated() && !self.cx.core.is_stopping();
        let unknown = begin::unknown_script(&self.cx, &args);
        match unknown.filter(|_| may_load && users::may_run(self, &args)) {
            Some(plan) => {
                self.cx.requests.ask(1);
                self.execute(plan, Then::Script(args));
            }
            None => self.known_command(args),
        }
    }

    fn known_command(&mut self, args: Args) {
        let spec = args.first().and_then(|name| ensue_resp::lookup(name));
        let subcommand = spec.and_then(|spec| spec.subcommand(&args));
        if let Some(spec) = spec {
            self.session.client.on_command(spec.name, subcommand);
        }
        let open = spec.is_some_and(|spec| spec.flags.contains(Flags::NO_AUTH));
        if !self.session.client.is_authenticated() && !open {
            self.cx.core.counters.on_rejected(spec);
            return self.reply(&NOAUTH);
        }
        if held::is_refused(self, spec, &args) {
            return;
        }
        if self.session.multi.is_some() {
            return self.command_in_multi(spec, args);
        }
        let Some(spec) = spec else { return self.reply(&CommandError::no_such_command(&args).reply()) };
        if !ensue_resp::check_arity(spec, args.len()) {
            self.cx.core.counters.on_rejected(Some(spec));
            return self.reply(&CommandError::wrong_arity(spec.name).reply());
        }
        let to_subscriber = self.session.restricted.then(|| pubsub::command::refusal(spec.name)).flatten();
        if let Some(refusal) = users::refusal(self, spec, &args).or(to_subscriber) {
            record::refused(self, spec, &args, &refusal);
            return self.reply(&refusal);
        }
        begin::note(&mut self.cx, &self.session.client, spec, &args);
        let audited = record::entry(self, spec, subcommand, &args);
        self.session.counted.push_back(Counted { subcommand, audited, ..Counted::new(spec) });
        let args = users::marked(self, spec, args);
        match homes::place(self.cx.core, self.cx.contexts, [(spec, &args)]) {
            Place::Here => {}
            Place::Refused(reply) => return self.reply(&reply),
            Place::Away(home) => return away::command(self, home, spec, args),
        }
        match spec.route {
            Route::Session => self.session_command(spec, &args),
            Route::Together if memory::is_about_the_process(spec, &args) => self.session_command(spec, &args),
            Route::Owner => self.reply(&local::no_branches(&self.cx)),
            Route::Script if self.cx.protocol().needs().branches => {
                self.reply(&local::no_scripts(&self.cx));
            }
            Route::Together
                if spec.flags.contains(Flags::BLOCKING)
                    && self.cx.protocol().needs().branches
                    && Blocking::parse(&args).is_some() =>
            {
                self.reply(&local::no_waiting(&self.cx, spec));
            }
            Route::Key | Route::Split(_) | Route::Together | Route::Script => {
                let step = transactions::on_command(&mut self.cx, spec, args);
                self.follow(step);
            }
            Route::AllPartitions => match fan_out::plan(&self.cx, spec, args) {
                Err(refusal) => self.reply(&refusal),
                Ok(plan) => {
                    // It walks all rows.
                    self.session.queue.end_turn();
                    self.cx.requests.ask(1);
                    self.execute(plan, Then::Answer);
                }
            },
            Route::Rename => {
                let (renaming, plan) = Renaming::begin(self.cx.spread(), &args);
                self.cx.requests.ask(1);
                self.read(plan, Then::Rename(renaming));
            }
        }
    }

    fn command_in_multi(&mut self, spec: Option<&'static CommandSpec>, args: Args) {
        let Some(args) = users::admit_to_multi(self, spec, args) else { return };
        let Some(multi) = &mut self.session.multi else { return };
        let no_scripts =
            spec.is_some_and(|spec| spec.route == Route::Script) && self.cx.protocol().needs().branches;
        let outcome = match no_scripts {
            true => multi.refuse(local::no_scripts(&self.cx)),
            false => multi.on_command((self.cx.contexts, self.cx.core.is_short_of_memory()), spec, args),
        };
        match outcome {
            InMulti::Answered(reply) => {
                self.cx.core.counters.on_rejected(spec.filter(|_| reply.is_error()));
                self.reply(&reply);
            }
            InMulti::Outside(spec, args) => {
                self.session.counted.push_back(Counted::new(spec));
                self.session_command(spec, &args);
            }
            InMulti::Discard => {
                self.session.end_multi();
                self.session.counted.extend(spec.map(Counted::new));
                self.reply(&Reply::OK);
            }
            InMulti::Aborted(reply) => {
                self.session.end_multi();
                self.cx.core.counters.on_rejected(spec);
                self.reply(&reply);
            }
            InMulti::Exec(_) if users::has_lost_permissions(self) => {
                self.session.end_multi();
                self.cx.core.counters.on_rejected(spec);
                self.reply(&users::CHANGED);
            }
            InMulti::Exec(exec) => {
                let (now, mut multi) = (self.cx.now, self.session.multi.take().unwrap_or_default());
                users::mark_anew(self, &mut multi);
                let counted = spec.map(|spec| record::exec(self, spec, &multi));
                self.session.counted.extend(counted);
                let check = match self.session.watched.take_check(&self.cx) {
                    Ok(check) => check,
                    Err(refusal) => return self.reply(&refusal),
                };
                begin::note_reads(&mut self.cx, multi.commands());
                let exec = spec.map(|spec| (spec, &exec));
                for (spec, args) in multi.commands().chain(exec) {
                    begin::show(&mut self.cx, &self.session.client, spec, args);
                }
                match away::place(self, check.as_ref(), &multi) {
                    Place::Here => {}
                    Place::Refused(reply) => return self.reply(&reply),
                    Place::Away(home) => return away::exec(self, home, multi, check),
                }
                let answer = |spec: &CommandSpec, args: &Args| local::answer(now, spec, args);
                match multi.as_exec(self.cx.spread(), check.clone(), answer) {
                    Some(Ok(exec)) => return self.session.exec = Some(exec),
                    Some(Err(refusal)) => return self.reply(&refusal),
                    None => {}
                }
                let step = transactions::exec(&mut self.cx, multi, check, answer);
                self.follow(step);
            }
        }
    }

    /// A command that the session answers itself, or that asks about it or its datacenter.
    fn session_command(&mut self, spec: &'static CommandSpec, args: &Args) {
        let (cx, session) = (&mut self.cx, &mut *self.session);
        let reply = match spec.name {
            "auth" | "hello" => return users::handshake(self, spec.name, args),
            "ping" if session.restricted && args.len() <= 2 => pubsub::command::pong(args),
            "select" => local::select(cx.contexts, args),
            "causal" => return causal_command(self, args),
            "acl" => return users::acl_command(self, args),
            "bgrewriteaof" | "bgsave" | "client" | "cluster" | "config" | "debug" | "function" | "info"
            | "lastsave" | "latency" | "memory" | "monitor" | "save" | "script" | "slowlog" => {
                return server::server_command(self, spec.name, args);
            }
            "wait" | "waitaof" => {
                let step = causal::command::wait(cx, spec.name, args);
                return self.follow(step);
            }
            "multi" => {
                session.multi = Some(Multi::default());
                Reply::OK
            }
            "watch" => return away::watch(self, args),
            "unwatch" => {
                session.watched.clear();
                Reply::OK
            }
            "quit" => {
                self.reply(&Reply::OK);
                return self.close();
            }
            "reset" => {
                session.client.reset(cx.core.access.newcomer());
                cx.core.tracking.set_version(session.client.id(), session.client.version());
                session.end_multi();
                session.watched.clear();
                session.shared.leave();
                session.restricted = false;
                session.replies.mute(Muted::No);
                cx.core.unsubscribe(session.client.id());
                cx.core.stop_tracking(session.client.id());
                cx.contexts.reset();
                Reply::Status("RESET".into())
            }
            name => match pubsub::command::on_command(cx, session.client.version(), name, args) {
                Some(step) => return self.follow::<Exchange>(step),
                None => local::answer(cx.now, spec, args),
            },
        };
        self.reply(&reply);
    }
}

/// `CAUSAL`.
fn causal_command(turn: &mut Turn<'_>, args: &Args) {
    match Declaring::begin(turn.cx.core, args) {
        Some(Ok((declaring, plan))) => {
            turn.cx.requests.ask(1);
            turn.execute(plan, Then::Declare(declaring));
        }
        Some(Err(refusal)) => turn.reply(&refusal),
        None => retire_command(turn, args),
    }
}

fn retire_command(turn: &mut Turn<'_>, args: &Args) {
    match Retiring::begin(turn.cx.core, args) {
        Some(Ok((retiring, plan))) => {
            turn.cx.requests.ask(1);
            turn.execute(plan, Then::Retire(retiring));
        }
        Some(Err(refusal)) => turn.reply(&refusal),
        None => home_command(turn, args),
    }
}

fn home_command(turn: &mut Turn<'_>, args: &Args) {
    match Homes::begin(turn.cx.core, turn.cx.keyspace(), args) {
        Some(Ok((homes, plan))) => {
            turn.cx.requests.ask(1);
            turn.execute(plan, Then::Homes(homes));
        }
        Some(Err(refusal)) => turn.reply(&refusal),
        None => match admin::on_causal_command(&mut turn.cx, args) {
            Some(step) => turn.follow(step),
            None => {
                let step = causal::command::on_command(&mut turn.cx, &mut turn.session.shared, args);
                turn.follow(step);
            }
        },
    }
}

/// From what a part comes to, to the next part or to the client.
impl Turn<'_> {
    fn follow<E: Into<Exchange>>(&mut self, step: Step<E>) {
        match step {
            Step::Answered(replies) => self.answer(&replies),
            Step::Completed(replies) => self.complete(replies),
            Step::Confirmed(frames) => {
                let session = &mut *self.session;
                session.restrict(pubsub::command::is_subscribed(&self.cx));
                session.replies.push_frames(session.client.version(), &frames);
                record::count(self, &Reply::OK);
            }
            Step::Published(reply, own) => {
                self.session.own_messages.extend(own);
                self.reply(&reply);
            }
            Step::Gathered(plan, answers) => self.finish(plan, answers),
            Step::InParallel(plan) => {
                let step = Parallel::begin(&mut self.cx, plan);
                self.follow(step);
            }
            Step::Waits(exchange) => record::wait(self, exchange.into()),
            Step::Failed(failure) => self.fail(&failure),
            Step::Ready => {}
        }
    }

    /// Has the parts of a plan read.
    fn read(&mut self, plan: Plan, then: Then) {
        self.session.then = then;
        let step = transactions::read(&mut self.cx, plan);
        self.follow(step);
    }

    /// Has the parts of a plan executed in parallel.
    fn execute(&mut self, plan: Plan, then: Then) {
        self.session.then = then;
        self.follow(Step::<Exchange>::InParallel(plan));
    }

    /// The owners have answered everything in a plan.
    fn finish(&mut self, plan: Plan, answers: Answers) {
        match std::mem::take(&mut self.session.then) {
            Then::Answer => self.complete(vec![within_bound(plan.assemble(answers))]),
            Then::Each => {
                let (replies, rest) = plan.into_each(answers);
                if !rest.is_empty() {
                    self.session.queue.put_back(&mut self.cx, rest);
                }
                self.complete(replies);
            }
            Then::Rename(renaming) => {
                match renaming.into_write(self.cx.spread(), plan.into_replies(answers)) {
                    Err(reply) => self.complete(vec![reply]),
                    Ok(plan) => {
                        let step = write::write(&mut self.cx, plan, "rename", false);
                        self.follow(step);
                    }
                }
            }
            Then::Pass => held::on_whether_it_reads(self, &plan.assemble(answers)),
            Then::Debug => self.complete(vec![debug::object(plan.assemble(answers))]),
            Then::Populate(populating) => server::populate(self, populating, plan.into_replies(answers)),
            Then::InSlot(in_slot) => self.complete(vec![in_slot.answer(plan.assemble(answers))]),
            Then::Watch(args) => {
                let numbers = plan.assemble(answers);
                let reply = away::watched(self, args, numbers);
                self.complete(vec![reply]);
            }
            Then::Script(args) => {
                if !plan.assemble(answers).is_error() {
                    self.cx.core.scripts.insert(&args[1]);
                }
                self.session.exchange = Exchange::None;
                self.cx.requests.end();
                self.known_command(args);
            }
            Then::ScriptAtHome(home, args) => {
                let args = scripts::with_text(args, plan.assemble(answers));
                self.session.exchange = Exchange::None;
                self.cx.requests.end();
                away::send(self, home, vec![args], false);
            }
            Then::Declare(declaring) => {
                match declaring.into_declaration(self.cx.core, plan.assemble(answers)) {
                    Err(reply) => self.complete(vec![reply]),
                    Ok(plan) => self.execute(plan, Then::Answer),
                }
            }
            Then::Retire(retiring) => match retiring.into_beginning(self.cx.core, plan.assemble(answers)) {
                Err(reply) => self.complete(vec![reply]),
                Ok(plan) => self.execute(plan, Then::Answer),
            },
            Then::Homes(homes) => match homes.into_beginning(self.cx.core, plan.assemble(answers)) {
                Err(reply) => self.complete(vec![reply]),
                Ok(plan) => self.execute(plan, Then::Answer),
            },
        }
    }

    /// The exchange has its answers: to the client, or first into the shared context.
    fn complete(&mut self, replies: Vec<Reply>) {
        if !self.session.shared.is_used(&self.cx) {
            return self.answer(&replies);
        }
        let step = self.session.shared.merge(&mut self.cx, replies);
        self.follow(step);
    }

    /// Ends the exchange and encodes its answers.
    fn answer(&mut self, replies: &[Reply]) {
        self.end_exchange();
        server::publish_called(self);
        if let Some(exec) = &mut self.session.exec {
            self.session.counted.truncate(1);
            return replies.iter().cloned().for_each(|reply| exec.put(reply));
        }
        for reply in replies {
            self.cx.core.counters.on_reply(reply);
            record::count(self, reply);
        }
        // Those that were put back into the queue are counted when they are executed.
        self.session.counted.clear();
        self.session.replies.push_all(self.session.client.version(), replies);
        server::follow_answer(self);
    }

    /// The answer to one command that the session knows itself.
    fn reply(&mut self, reply: &Reply) {
        if let Some(exec) = &mut self.session.exec {
            self.session.counted.truncate(1);
            return exec.put(reply.clone());
        }
        self.cx.core.counters.on_reply(reply);
        record::count(self, reply);
        self.session.replies.push(self.session.client.version(), reply);
        server::follow_answer(self);
    }

    /// Gives every command of the exchange its error, and goes on with what follows.
    fn fail(&mut self, failure: &Failure) {
        // It was published by a script whose end is not known.
        self.session.published.clear();
        if matches!(self.session.then, Then::Pass) {
            return held::on_whether_it_reads(self, &failure.reply(false));
        }
        if let Then::Script(args) = &mut self.session.then {
            // Its owner learns the script with the command.
            let args = std::mem::take(args);
            self.session.then = Then::Answer;
            self.session.exchange = Exchange::None;
            self.cx.requests.end();
            return self.known_command(args);
        }
        if let Then::ScriptAtHome(home, args) = &mut self.session.then {
            // Its home may know it.
            let (home, args) = (*home, std::mem::take(args));
            self.session.then = Then::Answer;
            self.session.exchange = Exchange::None;
            self.cx.requests.end();
            return away::send(self, home, vec![args], false);
        }
        let asked = self.end_exchange();
        if asked.queued {
            // The command that waited inside a MULTI was its EXEC.
            self.session.end_multi();
            let dropped = self.session.queue.drop_front(asked.count);
            self.cx.core.counters.commands += dropped as u64;
        }
        if let Some(exec) = &mut self.session.exec {
            self.session.counted.truncate(1);
            return exec.stop(failure.reply(asked.writes.is_marked(0)));
        }
        let is_exec = self.session.counted.front().is_some_and(|counted| counted.spec.name == "exec");
        for index in 0..asked.count {
            let reply = failure.reply(asked.writes.is_marked(index));
            self.reply(&if is_exec { multi::aborted_by(reply) } else { reply });
        }
    }

    fn end_exchange(&mut self) -> Asked {
        self.session.exchange = Exchange::None;
        self.session.then = Then::Answer;
        self.cx.core.slow_log.go_on(self.session.client.id());
        self.session.shared.on_step_done();
        users::look_again(self);
        self.cx.requests.end()
    }

    fn flush(&mut self) {
        let (cx, session) = (&mut self.cx, &mut *self.session);
        let bytes_max = cx.core.config.tuning.turn_answer_bytes;
        let wants_turn = session.is_idle() && session.has_work() && session.has_used_its_turn(bytes_max);
        let (bytes, answered) = session.replies.take();
        let announces = session.queue.on_answers(bytes.len(), wants_turn);
        if session.lifecycle == Lifecycle::Open && (!bytes.is_empty() || announces) {
            let session = session.client.id();
            cx.core.output(SessionOutput::Reply { session, bytes, answered, wants_turn });
        }
    }
}

const NOAUTH: Reply = Reply::error("NOAUTH Authentication required.");
