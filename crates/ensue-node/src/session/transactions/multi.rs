//! MULTI: commands are queued, and EXEC runs them as one transaction.
//!
//! - On a command that cannot be part of a transaction: its error at once, and EXEC will refuse, as in Redis.
//! - On EXEC of reads alone: a read transaction. With writes: a write transaction, in which every command is evaluated
//!   at one logical time of this datacenter; a command that fails does so alone.
//! - `PING`, `ECHO` and `TIME` are answered at their place by the session. What walks whole keyspaces, `RENAME`,
//!   `INFO`, `CONFIG GET` and what is published are steps of their own (`exec`). What leaves the keyspace or carries
//!   causality is refused by name.
//! - With watched keys, what the transaction has executed is nothing if one of them has changed (`watch`).

use super::exec::{Exec, Step};
use crate::session::contexts::Contexts;
use crate::session::plan::{Check, Plan};
use bytes::Bytes;
use ensue_resp::{CommandError, CommandSpec, Flags, Route};
use ensue_types::{Args, Reply, limits};
use std::collections::VecDeque;

/// Bytes that the commands of one MULTI take in memory: they must fit a frame between nodes, with room for the rest.
const MULTI_BYTES_MAX: usize = limits::FRAME_BYTES_MAX / 2;

/// The queued commands.
#[derive(Clone, Debug, Default)]
pub(crate) struct Multi {
    commands: Vec<(&'static CommandSpec, Args)>,
    bytes: usize,
    /// A command was refused: EXEC will be, too.
    failed: bool,
}

/// What a command inside MULTI comes to.
#[derive(Debug)]
pub(crate) enum InMulti {
    Answered(Reply),
    /// With its own words.
    Exec(Args),
    Discard,
    /// An `EXEC` that cannot be read: it ends the transaction, too.
    Aborted(Reply),
    /// It ends the connection or its state, inside MULTI as outside.
    Outside(&'static CommandSpec, Args),
}

impl Multi {
    pub(crate) fn len(&self) -> usize {
        self.commands.len()
    }

    /// What the commands take in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// A command was refused elsewhere: EXEC will be, too.
    pub(crate) fn fail(&mut self) {
        self.failed = true;
    }

    /// Which commands are queued.
    pub(crate) fn specs(&self) -> Vec<&'static CommandSpec> {
        self.commands.iter().map(|(spec, _)| *spec).collect()
    }

    /// The queued commands; none if EXEC will be refused.
    pub(crate) fn commands(&self) -> impl Iterator<Item = (&'static CommandSpec, &Args)> {
        self.commands.iter().map(|(spec, args)| (*spec, args))
    }

    /// The scripts among them.
    pub(crate) fn scripts_mut(&mut self) -> impl Iterator<Item = &mut Args> {
        let scripts = self.commands.iter_mut().filter(|(spec, _)| spec.route == Route::Script);
        scripts.map(|(_, args)| args)
    }

    /// What is published is no part of what its keys' home executes: taken out, with its places among all commands.
    pub(in crate::session) fn take_published(&mut self) -> Vec<(usize, Args)> {
        let (mut published, mut others) = (Vec::new(), Vec::with_capacity(self.commands.len()));
        for (place, (spec, args)) in std::mem::take(&mut self.commands).into_iter().enumerate() {
            match is_publishing(spec) {
                true => published.push((place, args)),
                false => others.push((spec, args)),
            }
        }
        self.commands = others;
        published
    }

    /// The commands as they go to the home of their keys, or why they cannot.
    pub(in crate::session) fn into_request(self, check: Option<Check>) -> Result<Vec<Args>, Reply> {
        match self.commands.iter().find(|(spec, _)| !crate::homes::may_run_at_home(spec)) {
            _ if self.failed => Err(ABORTED),
            Some((spec, _)) => Err(not_at_home(spec)),
            None => {
                let commands = self.commands.into_iter().map(|(_, args)| args);
                Ok(check.map(|check| check.args).into_iter().chain(commands).collect())
            }
        }
    }

    /// A command inside MULTI.
    pub(crate) fn on_command(
        &mut self,
        (contexts, is_short_of_memory): (&Contexts, bool),
        spec: Option<&'static CommandSpec>,
        args: Args,
    ) -> InMulti {
        let Some(spec) = spec else {
            return self.refuse(CommandError::no_such_command(&args).reply());
        };
        if !ensue_resp::check_arity(spec, args.len()) {
            return match spec.name {
                "exec" => InMulti::Aborted(EXEC_ARITY),
                _ => self.refuse(CommandError::wrong_arity(spec.name).reply()),
            };
        }
        match spec.name {
            "exec" => InMulti::Exec(args),
            "discard" => InMulti::Discard,
            "multi" => InMulti::Answered(Reply::error("ERR MULTI calls can not be nested")),
            "watch" => InMulti::Answered(Reply::error("ERR WATCH inside MULTI is not allowed")),
            "quit" | "reset" => InMulti::Outside(spec, args),
            _ if is_short_of_memory && spec.flags.contains(Flags::DENYOOM) => self.refuse(OUT_OF_MEMORY),
            _ => match refusal(contexts, spec, &args) {
                Some(refusal) => self.refuse(refusal),
                None => self.queue(spec, args),
            },
        }
    }

    /// The commands as one plan, if none was refused; the session itself answers those that need no owner.
    pub(crate) fn into_plan(
        self,
        spread: u16,
        check: Option<Check>,
        answer: impl Fn(&CommandSpec, &Args) -> Reply,
    ) -> Result<Plan, Reply> {
        if self.failed {
            return Err(ABORTED);
        }
        let mut plan = Plan::exec(spread);
        plan.check_first(check);
        for (spec, args) in self.commands {
            match spec.route {
                Route::Key | Route::Split(_) | Route::Together | Route::Script => plan.add(spec, args),
                _ => plan.add_ready(answer(spec, &args)),
            }
        }
        Ok(plan)
    }

    /// The same if some of them are steps of their own: nothing if none is.
    pub(crate) fn as_exec(
        &self,
        spread: u16,
        check: Option<Check>,
        answer: impl Fn(&CommandSpec, &Args) -> Reply,
    ) -> Option<Result<Exec, Reply>> {
        let is_on_keys = |spec: &CommandSpec| {
            matches!(spec.route, Route::Key | Route::Split(_) | Route::Together | Route::Script)
        };
        if self.failed || !self.commands.iter().any(|(spec, _)| is_alone(spec)) {
            return None;
        }
        let on_keys = self.commands.iter().enumerate().filter(|(_, (spec, _))| is_on_keys(spec));
        let places: Vec<usize> = on_keys.map(|(place, _)| place).collect();
        let (first, last) = (places.first().copied(), places.last().copied());
        let mut plan = Plan::exec(spread);
        plan.check_first(check);
        let mut replies = vec![Reply::Nil; self.len()];
        let (mut steps, mut after) = (VecDeque::new(), VecDeque::new());
        for (place, (spec, args)) in self.commands.iter().enumerate() {
            if is_on_keys(spec) {
                plan.add(spec, args.clone());
            } else if !is_alone(spec) {
                replies[place] = answer(spec, args);
            } else if !plan.is_checked() && first.is_none_or(|first| place < first) && !is_publishing(spec) {
                steps.push_back((vec![place], Step::Alone(args.clone())));
            } else if spec.is_write() && last.is_some_and(|last| place < last) {
                return Some(Err(between(spec)));
            } else {
                after.push_back((vec![place], Step::Alone(args.clone())));
            }
        }
        if !places.is_empty() || plan.is_checked() {
            steps.push_back((places, Step::Together(Box::new(plan))));
        }
        steps.append(&mut after);
        Some(Ok(Exec::new(steps, replies)))
    }

    fn queue(&mut self, spec: &'static CommandSpec, args: Args) -> InMulti {
        let bytes = memory_of(&args);
        if self.len() >= limits::MULTI_COMMANDS_MAX {
            return self.refuse(TOO_MANY_COMMANDS);
        }
        if self.bytes + bytes > MULTI_BYTES_MAX {
            return self.refuse(TOO_MANY_BYTES);
        }
        // After a refusal they are never executed, so not kept.
        if !self.failed {
            self.bytes += bytes;
            self.commands.push((spec, args));
        }
        InMulti::Answered(QUEUED)
    }

    /// A command that cannot be part of the transaction.
    pub(crate) fn refuse(&mut self, refusal: Reply) -> InMulti {
        self.failed = true;
        self.commands = Vec::new();
        InMulti::Answered(refusal)
    }
}

/// What a command takes that is kept: an empty argument takes its place, too.
pub(in crate::session) fn memory_of(args: &Args) -> usize {
    args.iter().map(|argument| argument.len() + size_of::<Bytes>()).sum()
}

/// Whether a command that can be queued is a step of its own.
fn is_alone(spec: &CommandSpec) -> bool {
    matches!(spec.route, Route::AllPartitions | Route::Rename)
        || ABOUT_THE_SERVER.contains(&spec.name)
        || is_publishing(spec)
}

const ABOUT_THE_SERVER: [&str; 15] = [
    "acl",
    "auth",
    "bgrewriteaof",
    "bgsave",
    "client",
    "cluster",
    "config",
    "debug",
    "function",
    "info",
    "lastsave",
    "latency",
    "pubsub",
    "script",
    "slowlog",
];

/// What is published follows the writes of its transaction.
fn is_publishing(spec: &CommandSpec) -> bool {
    matches!(spec.name, "publish" | "spublish")
}

/// A write that is no part of the transaction stands between commands that are.
fn between(spec: &CommandSpec) -> Reply {
    let words = format!(
        "EXECABORT {} between commands on keys is refused: it is no part of their transaction and would split it; \
         nothing was executed",
        spec.name.to_uppercase()
    );
    Reply::Error(words.into())
}

/// A command that is no part of what goes to the home of keys.
fn not_at_home(spec: &CommandSpec) -> Reply {
    let words = format!(
        "EXECABORT {} inside a MULTI of keys with a home elsewhere is refused: only commands on keys run there; \
         nothing was executed",
        spec.name.to_uppercase()
    );
    Reply::Error(words.into())
}

/// Why a command cannot be queued.
fn refusal(contexts: &Contexts, spec: &CommandSpec, args: &Args) -> Option<Reply> {
    let reason = match (spec.route, spec.name) {
        (Route::Key | Route::Split(_) | Route::Together | Route::Script, _)
        | (_, "ping" | "echo" | "time" | "unwatch") => {
            return None;
        }
        (
            _,
            "asking" | "command" | "failover" | "lolwut" | "module" | "move" | "pfselftest" | "readonly"
            | "readwrite" | "replicaof" | "role" | "slaveof" | "swapdb",
        ) => {
            return None;
        }
        (_, "save" | "shutdown") => return Some(NOT_INSIDE),
        _ if is_alone(spec) => return None,
        (_, "select") if contexts.named_by_select(args) == Some(contexts.selected()) => return None,
        (_, "select") => "a transaction stays within one keyspace",
        (_, "causal") => "a transaction has one causal past",
        _ => {
            "only commands on keys and keyspaces, about the server and its clients, PUBLISH, PING, ECHO and TIME can be \
             queued"
        }
    };
    let words = format!("ERR {} inside MULTI is refused: {reason}", spec.name.to_uppercase());
    Some(Reply::Error(words.into()))
}

const ABORTING: [&str; 3] = ["OOM ", "NOREPLICAS ", "BUSY "];

/// The answer to an `EXEC` that was refused: in Redis a short memory aborts the transaction, and so do too few
/// replicas, and a script that runs for long.
pub(crate) fn aborted_by(refusal: Reply) -> Reply {
    match &refusal {
        Reply::Error(words) if ABORTING.iter().any(|code| words.starts_with(code)) => {
            Reply::Error(format!("EXECABORT Transaction discarded because of: {words}").into())
        }
        _ => refusal,
    }
}

const OUT_OF_MEMORY: Reply = Reply::error("OOM command not allowed when used memory > 'maxmemory'.");
const NOT_INSIDE: Reply = Reply::error("ERR Command not allowed inside a transaction");
const QUEUED: Reply = Reply::Status(std::borrow::Cow::Borrowed("QUEUED"));
const ABORTED: Reply = Reply::error("EXECABORT Transaction discarded because of previous errors.");
const EXEC_ARITY: Reply =
    Reply::error("EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command");
const TOO_MANY_COMMANDS: Reply = Reply::error("ERR too many commands inside MULTI");
const TOO_MANY_BYTES: Reply = Reply::error("ERR the commands inside MULTI are too long together");
