//! MULTI: commands are queued, and EXEC runs them as one transaction.
//!
//! - On a command that cannot be part of a transaction: its error at once, and EXEC will refuse, as in Redis.
//! - On EXEC of reads alone: a read transaction. With writes: a write transaction, in which every command is evaluated
//!   at one logical time of this datacenter; a command that fails does so alone.
//! - `PING`, `ECHO` and `TIME` are answered at their place by the session. What walks whole keyspaces, leaves the
//!   keyspace or carries causality is refused by name, and so is `WATCH`.

use crate::session::contexts::Contexts;
use crate::session::plan::Plan;
use bytes::Bytes;
use ensue_resp::{CommandError, CommandSpec, Route};
use ensue_types::{Args, Reply, limits};

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
    Exec,
    Discard,
    /// It ends the connection or its state, inside MULTI as outside.
    Outside(&'static CommandSpec, Args),
}

impl Multi {
    pub(crate) fn len(&self) -> usize {
        self.commands.len()
    }

    /// A command inside MULTI.
    pub(crate) fn on_command(
        &mut self,
        contexts: &Contexts,
        spec: Option<&'static CommandSpec>,
        args: Args,
    ) -> InMulti {
        let Some(spec) = spec else {
            return self.refuse(CommandError::unknown_command(&args).reply());
        };
        if !ensue_resp::check_arity(spec, args.len()) {
            return self.refuse(CommandError::wrong_arity(spec.name).reply());
        }
        match spec.name {
            "exec" => InMulti::Exec,
            "discard" => InMulti::Discard,
            "multi" => InMulti::Answered(Reply::error("ERR MULTI calls can not be nested")),
            "watch" => InMulti::Answered(Reply::error("ERR WATCH inside MULTI is not allowed")),
            "quit" | "reset" => InMulti::Outside(spec, args),
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
        answer: impl Fn(&CommandSpec, &Args) -> Reply,
    ) -> Result<Plan, Reply> {
        if self.failed {
            return Err(ABORTED);
        }
        let mut plan = Plan::exec(spread);
        for (spec, args) in self.commands {
            match spec.route {
                Route::Key | Route::Split(_) => plan.add(spec, args),
                _ => plan.add_ready(answer(spec, &args)),
            }
        }
        Ok(plan)
    }

    fn queue(&mut self, spec: &'static CommandSpec, args: Args) -> InMulti {
        // An empty argument takes its place, too.
        let bytes: usize = args.iter().map(|argument| argument.len() + size_of::<Bytes>()).sum();
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

    fn refuse(&mut self, refusal: Reply) -> InMulti {
        self.failed = true;
        self.commands = Vec::new();
        InMulti::Answered(refusal)
    }
}

/// Why a command cannot be queued.
fn refusal(contexts: &Contexts, spec: &CommandSpec, args: &Args) -> Option<Reply> {
    let reason = match (spec.route, spec.name) {
        (Route::Key | Route::Split(_), _) | (_, "ping" | "echo" | "time" | "unwatch") => return None,
        (_, "select") if contexts.named_by_select(args) == Some(contexts.selected()) => return None,
        (_, "select") => "a transaction stays within one keyspace",
        (Route::Everywhere, _) => "it asks every partition and is no part of a transaction",
        (Route::Rename, _) => "it is a transaction of its own",
        (_, "causal") => "a transaction has one causal past",
        _ => "only commands on keys, PING, ECHO and TIME can be queued",
    };
    let words = format!("ERR {} inside MULTI is refused: {reason}", spec.name.to_uppercase());
    Some(Reply::Error(words.into()))
}

const QUEUED: Reply = Reply::Status(std::borrow::Cow::Borrowed("QUEUED"));
const ABORTED: Reply = Reply::error("EXECABORT Transaction discarded because of previous errors.");
const TOO_MANY_COMMANDS: Reply = Reply::error("ERR too many commands inside MULTI");
const TOO_MANY_BYTES: Reply = Reply::error("ERR the commands inside MULTI are too long together");
