//! One session's turn: it takes commands from its queue, in order, until an answer must be waited for.
//!
//! - On a run of neighbouring commands for one partition: send them as one batch.
//! - On a command for several owners, or on EXEC: begin its exchange; what follows waits for its answer.
//! - On a command that the session answers itself: answer, and go on.
//! - When the turn is used up, by bytes of answers or because a partition says so: the rest waits for the next one.
//! - With a shared context: fetch it before each of the first two, merge it back before answering.
//!
//! Answers are encoded in the order of the commands and leave together when the turn ends.

use super::SessionOutput;
use super::connection::{Asked, Life, Session};
use super::desk::Desk;
use super::exchange::Exchange;
use super::failure::Failure;
use super::parallel::Then;
use super::plan::Plan;
use super::write_marks::{BATCH_COMMANDS_MAX, WriteMarks};
use ensue_protocol::SnapshotReads;
use ensue_resp::{CommandError, CommandSpec, Route};
use ensue_types::{
    Args, Context, KeyspaceId, LogicalTime, Now, PartitionId, Reply, RequestId, Rule, partition_of,
};
use ensue_wire::Message;

/// A session at work.
pub(super) struct Turn<'a> {
    pub(super) now: Now,
    pub(super) session: &'a mut Session,
    pub(super) desk: &'a mut Desk,
}

/// Neighbouring commands at the front of the queue that one partition can execute together.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) partition: PartitionId,
    pub(super) commands: usize,
    pub(super) writes: WriteMarks,
    latest: &'static str,
}

impl Turn<'_> {
    /// Takes commands until the queue is empty, the turn is used up or an exchange is outstanding; then hands out the
    /// answers.
    pub(super) fn advance(&mut self) {
        let bytes_max = self.desk.config.tuning.turn_answer_bytes;
        while self.session.is_idle()
            && !self.session.queue.is_empty()
            && !self.session.has_used_its_turn(bytes_max)
        {
            self.step();
        }
        if self.session.is_idle() && self.session.queue.is_empty() {
            if let Some(error) = self.session.broke.take() {
                ensue_resp::encode(
                    &Reply::Error(error.into()),
                    self.session.version,
                    &mut self.session.bytes,
                );
                self.close();
            }
        }
        self.flush();
    }

    fn step(&mut self) {
        let in_order = self.session.multi.is_none() && self.session.authenticated && !self.desk.stopping;
        if in_order {
            if let Some(run) = self.run() {
                self.session.latest = run.latest;
                if self.must_fetch() {
                    return self.fetch_shared(run.commands);
                }
                if let Some(count) = self.read_run(&run) {
                    return self.read_together(count);
                }
                return self.send_batch(run);
            }
        }
        if self.must_fetch() && self.uses_context() {
            return self.fetch_shared(1);
        }
        let Some(args) = self.session.queue.pop_front() else { return };
        self.desk.counters.commands += 1;
        self.command(args);
        if self.session.is_idle() {
            self.session.fresh = false;
        }
    }

    /// The longest run at the front of the queue; none if the first command is not of one partition.
    fn run(&self) -> Option<Run> {
        let spread = self.desk.spread(self.session.keyspace);
        let mut run: Option<Run> = None;
        let mut bytes = 0;
        for args in self.session.queue.iter().take(BATCH_COMMANDS_MAX) {
            let Some((spec, owner)) = single_owner(args, spread).filter(|(spec, _)| self.has_owner(spec))
            else {
                break;
            };
            bytes += args.iter().map(|argument| argument.len()).sum::<usize>();
            let run = match &mut run {
                None => run.insert(Run {
                    partition: owner,
                    commands: 0,
                    writes: WriteMarks::default(),
                    latest: spec.name,
                }),
                // One command may be longer, and then travels alone.
                Some(run) if run.partition == owner && bytes <= BATCH_BYTES_MAX => run,
                Some(_) => break,
            };
            if spec.is_write() {
                run.writes.mark(run.commands);
            }
            run.commands += 1;
            run.latest = spec.name;
        }
        run
    }

    /// Whether a command has its owner in this keyspace: `BRANCH` has one only where there are branches.
    fn has_owner(&self, spec: &CommandSpec) -> bool {
        spec.route != Route::Owner || self.desk.protocol(self.session.keyspace).needs().branches
    }

    fn no_branches(&mut self) {
        let keyspace = self.session.keyspace;
        let protocol = self.desk.protocol(keyspace).name();
        let words = format!("NOBRANCHES keyspace {} has no branches: its protocol is {protocol}", keyspace.0);
        self.reply(&Reply::Error(words.into()));
    }

    /// How many neighbouring reads can be read as of one moment instead of one owner after the other.
    fn read_run(&self, run: &Run) -> Option<usize> {
        let queue = &self.session.queue;
        let only_reads = run.commands < queue.len() && run.writes == WriteMarks::default();
        let snapshots = self.desk.protocol(self.session.keyspace).capabilities().snapshot_reads;
        // A cut may lie in the past, and a plain read should not.
        if !only_reads || snapshots != SnapshotReads::TwoRounds {
            return None;
        }
        let spread = self.desk.spread(self.session.keyspace);
        let is_read = |args: &&Args| {
            single_owner(args, spread).is_some_and(|(spec, _)| !spec.is_write() && spec.route == Route::Key)
        };
        let count = queue.iter().take(BATCH_COMMANDS_MAX).take_while(is_read).count();
        (count > run.commands).then_some(count)
    }

    /// Reads of several owners, in whichever order they are evaluated: they see one moment.
    fn read_together(&mut self, count: usize) {
        let mut plan = Plan::each(self.desk.spread(self.session.keyspace));
        for args in self.session.queue.drain(..count) {
            if let Some(spec) = args.first().and_then(|name| ensue_resp::lookup(name)) {
                plan.add(spec, args);
            }
        }
        self.desk.counters.commands += count as u64;
        self.ask(count);
        if !self.desk.config.rules.hold(Rule::PipelinedReadsAreOne) {
            return self.read_in_parallel(plan, Then::Each);
        }
        self.read(plan, Then::Each);
    }

    fn must_fetch(&self) -> bool {
        !self.session.fresh && self.shares_context()
    }

    /// Whether the command at the front reads or changes the session's context.
    fn uses_context(&self) -> bool {
        let Some(args) = self.session.queue.front() else { return false };
        let Some(spec) = args.first().and_then(|name| ensue_resp::lookup(name)) else { return false };
        if !self.session.authenticated || self.desk.stopping {
            return false;
        }
        match (spec.name, &self.session.multi) {
            ("exec", Some(_)) => true,
            (_, Some(_)) => false,
            ("causal", None) => args.get(1).is_some_and(|word| {
                [&b"token"[..], b"merge", b"wait"].iter().any(|name| word.eq_ignore_ascii_case(name))
            }),
            (_, None) => spec.route != Route::Session,
        }
    }

    /// One command that is no part of a run.
    fn command(&mut self, args: Args) {
        let spec = args.first().and_then(|name| ensue_resp::lookup(name));
        if let Some(spec) = spec {
            self.session.latest = spec.name;
        }
        let open = spec.is_some_and(|spec| spec.flags.contains(ensue_resp::Flags::NO_AUTH));
        if !self.session.authenticated && !open {
            return self.reply(&NOAUTH);
        }
        if self.desk.stopping {
            return self.reply(&STOPPING);
        }
        if self.session.multi.is_some() {
            return self.command_in_multi(spec, args);
        }
        let Some(spec) = spec else { return self.reply(&CommandError::unknown_command(&args).reply()) };
        if !ensue_resp::check_arity(spec, args.len()) {
            return self.reply(&CommandError::wrong_arity(spec.name).reply());
        }
        match spec.route {
            Route::Session => self.session_command(spec, args),
            Route::Owner => self.no_branches(),
            Route::Everywhere => self.everywhere(spec, args),
            Route::Rename => self.rename(args),
            Route::Key | Route::Split(_) => self.split_command(spec, args),
        }
    }

    /// Gives every command of the exchange its error, and goes on with what follows.
    pub(super) fn fail(&mut self, failure: &Failure) {
        if matches!(self.session.exchange, Exchange::Fetch(_)) {
            // Its commands were not taken from the queue yet.
            let count = self.session.asked.count.min(self.session.queue.len());
            self.desk.counters.commands += count as u64;
            self.session.queue.drain(..count);
        }
        self.withdraw();
        let asked = self.end_exchange();
        for index in 0..asked.count {
            self.reply(&failure.reply(asked.writes.is_marked(index)));
        }
    }

    /// The exchange has its answers: to the client, or first into the shared context.
    pub(super) fn complete(&mut self, replies: Vec<Reply>) {
        if self.shares_context() {
            return self.merge_shared(replies);
        }
        self.answer(&replies);
    }

    /// Ends the exchange and encodes its answers.
    pub(super) fn answer(&mut self, replies: &[Reply]) {
        self.end_exchange();
        let session = &mut *self.session;
        session.bytes.reserve(replies.len() * REPLY_BYTES_EXPECTED);
        for reply in replies {
            ensue_resp::encode(reply, session.version, &mut session.bytes);
        }
        session.answered += replies.len() as u32;
    }

    /// The answer to one command that the session knows itself.
    pub(super) fn reply(&mut self, reply: &Reply) {
        ensue_resp::encode(reply, self.session.version, &mut self.session.bytes);
        self.session.answered += 1;
    }

    /// Begins an exchange of so many shares that is given up after this time.
    pub(super) fn begin_exchange(&mut self, exchange: Exchange, shares: usize, timeout_ms: u64) {
        self.session.exchange = exchange;
        self.session.first_sequence = self.session.next_sequence;
        self.session.next_sequence += shares as u64;
        self.set_deadline(self.now.monotonic_us.saturating_add(timeout_ms.saturating_mul(1_000)));
    }

    /// As `begin_exchange`, with the time that every request has.
    pub(super) fn begin_request(&mut self, exchange: Exchange, shares: usize) {
        let timeout_ms = self.desk.config.tuning.request_timeout_ms;
        self.begin_exchange(exchange, shares, timeout_ms);
    }

    /// The commands of a client that the coming exchange will answer; none of them has changed anything yet.
    pub(super) fn ask(&mut self, count: usize) {
        self.session.asked = Asked { count, writes: WriteMarks::default() };
    }

    fn end_exchange(&mut self) -> Asked {
        self.session.exchange = Exchange::None;
        self.session.first_sequence = self.session.next_sequence;
        self.session.deadline_us = None;
        self.session.fresh = false;
        std::mem::take(&mut self.session.asked)
    }

    fn set_deadline(&mut self, deadline_us: u64) {
        let session = &mut *self.session;
        session.deadline_us = Some(deadline_us);
        if session.watched_us.is_some_and(|watched| watched <= deadline_us) {
            return;
        }
        if let Some(later) = session.watched_us.replace(deadline_us) {
            self.desk.timers.remove(&(later, session.id));
        }
        self.desk.timers.insert((deadline_us, session.id));
    }

    /// A timer of this session has rung: gives up an exchange whose time is over, or looks again later.
    pub(super) fn on_timer(&mut self) {
        self.session.watched_us = None;
        match self.session.deadline_us {
            Some(deadline) if deadline <= self.now.monotonic_us => {
                self.expire();
                self.advance();
            }
            Some(deadline) => self.set_deadline(deadline),
            None => {}
        }
    }

    /// The name of the share's request.
    pub(super) fn request(&self, share: usize) -> RequestId {
        self.desk.request(self.session.id, self.session.first_sequence + share as u64)
    }

    /// Sends to a partition of this datacenter, at the time of the session's past in the selected keyspace.
    pub(super) fn send(&mut self, partition: PartitionId, message: Message) {
        self.send_in(self.session.keyspace, partition, message);
    }

    pub(super) fn send_in(&mut self, keyspace: KeyspaceId, partition: PartitionId, message: Message) {
        let time = self.session.contexts[usize::from(keyspace.0)].time;
        let to = self.desk.partition_address(partition);
        self.desk.send(to, time, message);
    }

    /// The context that came back with an answer is the session's.
    pub(super) fn take_context(&mut self, context: Context) {
        let own = self.session.context_mut();
        own.time = own.time.max(context.time);
        own.facts = context.facts;
    }

    /// The session has seen this time.
    pub(super) fn see(&mut self, time: LogicalTime) {
        let context = self.session.context_mut();
        context.time = context.time.max(time);
    }

    /// The answers so far leave, then the connection closes; what it had asked beyond is forgotten.
    pub(super) fn close(&mut self) {
        self.flush();
        self.session.queue.clear();
        if self.session.life == Life::Open {
            self.session.life = Life::Closing;
            self.desk.outputs.push_back(SessionOutput::Disconnect { session: self.session.id });
        }
    }

    /// The client is gone: what it had asked goes on, but for what only waits and what only reads.
    pub(super) fn leave(&mut self) {
        self.session.life = Life::Gone;
        self.session.queue.retain(|args| !only_reads(args));
        if self.session.is_idle() {
            return self.advance();
        }
        if matches!(self.session.exchange, Exchange::Merge(_) | Exchange::Replicas(_)) {
            self.withdraw();
            self.end_exchange();
            self.advance();
        }
    }

    fn flush(&mut self) {
        let session = &mut *self.session;
        let bytes_max = self.desk.config.tuning.turn_answer_bytes;
        let wants_turn =
            session.is_idle() && !session.queue.is_empty() && session.has_used_its_turn(bytes_max);
        let bytes = std::mem::take(&mut session.bytes);
        let answered = std::mem::take(&mut session.answered);
        session.turn.bytes += bytes.len();
        let tells = wants_turn && !std::mem::replace(&mut session.turn.told, wants_turn);
        if session.life == Life::Open && (!bytes.is_empty() || tells) {
            let reply = SessionOutput::Reply { session: session.id, bytes, answered, wants_turn };
            self.desk.outputs.push_back(reply);
        }
    }
}

/// The one partition of a command whose keys all live there; none for every other command, and for a faulty one.
fn single_owner(args: &Args, partitions: u16) -> Option<(&'static CommandSpec, PartitionId)> {
    let spec = ensue_resp::lookup(args.first()?)?;
    if !ensue_resp::check_arity(spec, args.len()) {
        return None;
    }
    match spec.route {
        Route::Owner => Some((spec, PartitionId(0))),
        Route::Key => Some((spec, partition_of(args.get(1)?, partitions))),
        Route::Split(_) => {
            let mut keys = ensue_resp::keys(spec, args).map(|key| partition_of(key, partitions));
            let owner = keys.next()?;
            keys.all(|other| other == owner).then_some((spec, owner))
        }
        _ => None,
    }
}

fn only_reads(args: &Args) -> bool {
    let spec = args.first().and_then(|name| ensue_resp::lookup(name));
    spec.is_some_and(|spec| spec.flags.contains(ensue_resp::Flags::READONLY))
}

const NOAUTH: Reply = Reply::error("NOAUTH Authentication required.");
const STOPPING: Reply = Reply::error("UNAVAILABLE this node is shutting down");
/// Bytes of one batch: far below a frame between nodes, and short enough not to hold up other sessions.
const BATCH_BYTES_MAX: usize = 4 << 20;
/// A guess that spares most growing of the buffer.
const REPLY_BYTES_EXPECTED: usize = 16;
