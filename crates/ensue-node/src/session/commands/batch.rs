//! A run of neighbouring commands for one partition, as one message: the path of nearly every command.
//!
//! - Send: `Execute` with the commands, moved, and a copy of the context.
//! - On `Executed`: the context is the one that came back; the answers go out in order.
//! - On `ExecutedInPart`: the same for the first ones; the rest is at the front of the queue again, for the next turn.
//!
//! Neighbouring reads of several partitions may become one plan instead, where the protocol reads at the present
//! moment.

use super::Exchange;
use super::blocked::Blocked;
use super::queue::Queue;
use crate::session::access::refused;
use crate::session::cx::Cx;
use crate::session::failure::UNANSWERED;
use crate::session::homes::{self, Place};
use crate::session::plan::{Plan, patterns_stay, scripts};
use crate::session::slow_log::SlowLog;
use crate::session::step::Step;
use crate::session::write_marks::{BATCH_COMMANDS_MAX, WriteMarks};
use ensue_acl::User;
use ensue_protocol::SnapshotReads;
use ensue_resp::request::Blocking;
use ensue_resp::{CommandSpec, Flags, Route};
use ensue_types::{Args, PartitionId, partition_of};
use ensue_wire::Message;
use std::sync::Arc;

/// Bytes of one batch: far below a frame between nodes, and short enough not to hold up other sessions.
const BATCH_BYTES_MAX: usize = 4 << 20;

/// Neighbouring commands at the front of the queue that one partition can execute together.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    partition: PartitionId,
    commands: usize,
    writes: WriteMarks,
    latest: &'static str,
    /// A command among them may take long.
    may_be_slow: bool,
    /// What follows may be what its user may not execute.
    is_limited: bool,
    /// It is one command, which may wait.
    blocking: Option<Box<Blocking>>,
}

/// Waiting for `Executed`.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    partition: PartitionId,
}

impl Run {
    /// The longest run at the front of the queue; none if the first command is not of one partition.
    /// A user that may not do everything ends it with the first command that it may not execute, and with a script.
    pub(crate) fn find(cx: &Cx<'_>, queue: &Queue, limited: Option<&Arc<User>>) -> Option<Run> {
        let spread = cx.spread();
        let mut run: Option<Run> = None;
        let mut bytes = 0;
        for args in queue.iter().take(BATCH_COMMANDS_MAX) {
            let Some((spec, owner)) = single_owner(args, spread)
                .filter(|(spec, _)| has_owner(cx, spec, args) && may(cx, limited, spec, args))
            else {
                break;
            };
            let blocks = spec.flags.contains(Flags::BLOCKING);
            if blocks && run.is_some() {
                break;
            }
            bytes += args.iter().map(|argument| argument.len()).sum::<usize>();
            let run = match &mut run {
                None => run.insert(Run {
                    partition: owner,
                    commands: 0,
                    writes: WriteMarks::default(),
                    latest: spec.name,
                    may_be_slow: false,
                    is_limited: limited.is_some(),
                    blocking: None,
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
            run.may_be_slow |= !SlowLog::is_constant(spec);
            if blocks {
                run.blocking = Blocking::parse(args).map(Box::new);
                break;
            }
        }
        run
    }

    pub(crate) fn commands(&self) -> usize {
        self.commands
    }

    /// Whether a command among them may take long.
    pub(crate) fn may_be_slow(&self) -> bool {
        self.may_be_slow
    }

    /// How many commands are taken out of the queue: more, if they are read as of one moment.
    pub(crate) fn taken(&self, cx: &Cx<'_>, queue: &Queue) -> usize {
        self.reads(cx, queue).unwrap_or(self.commands)
    }

    /// The name of its last command.
    pub(crate) fn latest(&self) -> &'static str {
        self.latest
    }

    /// Neighbouring reads that can be read as of one moment instead of one owner after the other, taken from the queue.
    pub(crate) fn take_reads(
        &self,
        cx: &mut Cx<'_>,
        queue: &mut Queue,
    ) -> Option<(Vec<&'static CommandSpec>, Plan)> {
        let count = self.reads(cx, queue)?;
        let mut plan = Plan::each(cx.spread());
        let mut specs = Vec::with_capacity(count);
        for args in queue.take(count) {
            if let Some(spec) = args.first().and_then(|name| ensue_resp::lookup(name)) {
                plan.add(spec, args);
                specs.push(spec);
            }
        }
        cx.core.counters.commands += count as u64;
        cx.requests.ask(count);
        Some((specs, plan))
    }

    fn reads(&self, cx: &Cx<'_>, queue: &Queue) -> Option<usize> {
        let only_reads =
            !self.is_limited && self.commands < queue.len() && self.writes == WriteMarks::default();
        // A snapshot may lie in the past, and a plain read should not.
        if !only_reads || cx.protocol().capabilities().snapshot_reads != SnapshotReads::TwoRounds {
            return None;
        }
        let spread = cx.spread();
        let is_read = |args: &&Args| {
            single_owner(args, spread).is_some_and(|(spec, _)| {
                !spec.is_write() && spec.route == Route::Key && runs_here(cx, spec, args)
            })
        };
        let count = queue.iter().take(BATCH_COMMANDS_MAX).take_while(is_read).count();
        (count > self.commands).then_some(count)
    }

    /// Sends the commands to their partition.
    pub(crate) fn send(self, cx: &mut Cx<'_>, queue: &mut Queue) -> Step<Exchange> {
        if let (Some(blocking), Some(args)) = (&self.blocking, queue.front().cloned()) {
            queue.pop_front();
            let blocking = blocking.as_ref().clone();
            cx.core.counters.commands += 1;
            return Blocked::begin(cx, self.partition, blocking, args);
        }
        let commands = queue.take(self.commands);
        cx.core.counters.commands += self.commands as u64;
        cx.requests.ask(self.commands);
        cx.requests.mark_writes(self.writes);
        cx.begin_request(1);
        if let Some(failure) = cx.refusal([self.partition]) {
            return Step::Failed(failure);
        }
        let message = Message::Execute {
            request: cx.request(0),
            keyspace: cx.keyspace(),
            context: cx.contexts.own().clone(),
            commands,
            together: false,
        };
        cx.send(self.partition, message);
        Step::Waits(Exchange::Batch(Batch { partition: self.partition }))
    }
}

impl Batch {
    pub(crate) fn partition(&self) -> PartitionId {
        self.partition
    }

    pub(crate) fn on_answer(self, cx: &mut Cx<'_>, queue: &mut Queue, message: Message) -> Step<Exchange> {
        let (message, rest) = match message {
            Message::ExecutedInPart { request, context, replies, rest } => {
                (Message::Executed { request, context, replies }, rest)
            }
            message => (message, Vec::new()),
        };
        if !rest.is_empty() && !queue.put_back(cx, rest) {
            return cx.unexpected(Exchange::Batch(self));
        }
        let (Message::Executed { context, mut replies, .. } | Message::TimedOut { context, mut replies, .. }) =
            message
        else {
            return cx.unexpected(Exchange::Batch(self));
        };
        cx.contexts.replace(cx.keyspace(), context);
        // An owner answers each command; a foreign one that does not must not shift the answers to the next.
        replies.resize(cx.requests.asked_count(), UNANSWERED);
        Step::Completed(replies)
    }
}

/// Whether a user that may not do everything may execute this in a run.
fn may(cx: &Cx<'_>, limited: Option<&Arc<User>>, spec: &'static CommandSpec, args: &Args) -> bool {
    limited.is_none_or(|user| spec.route != Route::Script && refused::may(user, cx.keyspace(), spec, args))
}

/// Whether a command is executed here and not at the home of its keys.
fn runs_here(cx: &Cx<'_>, spec: &'static CommandSpec, args: &Args) -> bool {
    homes::place(cx.core, cx.contexts, [(spec, args)]) == Place::Here
}

/// Whether a command has its owner in the selected keyspace: `BRANCH` has one only where there are branches.
/// A script has none there, and is told to all partitions before.
fn has_owner(cx: &Cx<'_>, spec: &'static CommandSpec, args: &Args) -> bool {
    if !runs_here(cx, spec, args) {
        return false;
    }
    match spec.route {
        Route::Owner => cx.protocol().needs().branches,
        // They are refused there.
        Route::Together if spec.flags.contains(Flags::BLOCKING) => {
            !cx.protocol().needs().branches || Blocking::parse(args).is_none()
        }
        Route::Script if cx.protocol().needs().branches => false,
        Route::Script => !scripts::has_text(spec.name) || cx.core.scripts.contains(&args[1]),
        _ => true,
    }
}

/// The one partition of a command whose keys all live there; none for every other command, and for a faulty one.
fn single_owner(args: &Args, partitions: u16) -> Option<(&'static CommandSpec, PartitionId)> {
    let spec = ensue_resp::lookup(args.first()?)?;
    if !ensue_resp::check_arity(spec, args.len()) {
        return None;
    }
    match spec.route {
        // Only this subcommand is about a key.
        Route::Together if spec.name == "memory" && !args[1].eq_ignore_ascii_case(b"usage") => None,
        Route::Owner => Some((spec, PartitionId(0))),
        Route::Script => Some((spec, scripts::owner(args, partitions).ok()?)),
        Route::Key => Some((spec, partition_of(args.get(1)?, partitions))),
        Route::Split(_) | Route::Together => {
            let mut keys = ensue_resp::keys(spec, args).map(|key| partition_of(key, partitions));
            let owner = keys.next()?;
            let is_one = keys.all(|other| other == owner) && patterns_stay(spec, args, owner, partitions);
            is_one.then_some((spec, owner))
        }
        _ => None,
    }
}
