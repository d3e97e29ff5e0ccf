//! MULTI: commands are queued, and EXEC runs them as one transaction.
//!
//! - On a command that cannot be part of a transaction: its error at once, and EXEC will refuse, as in Redis.
//! - On EXEC of reads alone: a read transaction. With writes: a write transaction, in which every command is evaluated at one
//!   logical time of this datacenter; a command that fails does so alone.
//! - `PING`, `ECHO` and `TIME` are answered at their place by the session. What walks whole keyspaces, leaves the keyspace
//!   or carries causality is refused by name, and so is `WATCH`.

use super::parallel::Then;
use super::plan::Plan;
use super::turn::Turn;
use bytes::Bytes;
use ensue_resp::{CommandError, CommandSpec, Route};
use ensue_types::{Args, Reply, limits};

/// Bytes that the commands of one MULTI take in memory: they must fit a frame between nodes, with room for the rest.
const MULTI_BYTES_MAX: usize = limits::FRAME_BYTES_MAX / 2;

/// The queued commands.
#[derive(Clone, Debug, Default)]
pub(super) struct Multi {
    commands: Vec<(&'static CommandSpec, Args)>,
    bytes: usize,
    /// A command was refused: EXEC will be, too.
    failed: bool,
}

impl Multi {
    pub(super) fn len(&self) -> usize {
        self.commands.len()
    }
}

impl Turn<'_> {
    /// `MULTI` outside a MULTI.
    pub(super) fn begin_multi(&mut self) {
        self.session.multi = Some(Multi::default());
        self.reply(&Reply::OK);
    }

    /// A command inside MULTI.
    pub(super) fn command_in_multi(&mut self, spec: Option<&'static CommandSpec>, args: Args) {
        let Some(spec) = spec else {
            return self.refuse_in_multi(&CommandError::unknown_command(&args).reply());
        };
        if !ensue_resp::check_arity(spec, args.len()) {
            return self.refuse_in_multi(&CommandError::wrong_arity(spec.name).reply());
        }
        match spec.name {
            "exec" => self.exec(),
            "discard" => {
                self.session.multi = None;
                self.reply(&Reply::OK);
            }
            "multi" => self.reply(&Reply::error("ERR MULTI calls can not be nested")),
            "watch" => self.reply(&Reply::error("ERR WATCH inside MULTI is not allowed")),
            "quit" | "reset" => self.session_command(spec, args),
            _ => match self.refusal_in_multi(spec, &args) {
                Some(refusal) => self.refuse_in_multi(&refusal),
                None => self.queue_in_multi(spec, args),
            },
        }
    }

    /// Why a command cannot be queued.
    fn refusal_in_multi(&self, spec: &CommandSpec, args: &Args) -> Option<Reply> {
        let reason = match (spec.route, spec.name) {
            (Route::Key | Route::Split(_), _) | (_, "ping" | "echo" | "time" | "unwatch") => return None,
            (_, "select") if self.selects(args) == Some(self.session.keyspace) => return None,
            (_, "select") => "a transaction stays within one keyspace",
            (Route::Everywhere, _) => "it asks every partition and is no part of a transaction",
            (Route::Rename, _) => "it is a transaction of its own",
            (_, "causal") => "a transaction has one causal past",
            _ => "only commands on keys, PING, ECHO and TIME can be queued",
        };
        Some(Reply::Error(
            format!("ERR {} inside MULTI is refused: {reason}", spec.name.to_uppercase()).into(),
        ))
    }

    fn queue_in_multi(&mut self, spec: &'static CommandSpec, args: Args) {
        let Some(multi) = &mut self.session.multi else { return };
        // An empty argument takes its place, too.
        let bytes: usize = args.iter().map(|argument| argument.len() + size_of::<Bytes>()).sum();
        if multi.len() >= limits::MULTI_COMMANDS_MAX {
            return self.refuse_in_multi(&TOO_MANY_COMMANDS);
        }
        if multi.bytes + bytes > MULTI_BYTES_MAX {
            return self.refuse_in_multi(&TOO_MANY_BYTES);
        }
        if multi.failed {
            // Never executed, so not kept.
            return self.reply(&QUEUED);
        }
        multi.bytes += bytes;
        multi.commands.push((spec, args));
        self.reply(&QUEUED);
    }

    fn refuse_in_multi(&mut self, refusal: &Reply) {
        if let Some(multi) = &mut self.session.multi {
            multi.failed = true;
            multi.commands = Vec::new();
        }
        self.reply(refusal);
    }

    fn exec(&mut self) {
        let Some(multi) = self.session.multi.take() else { return };
        if multi.failed {
            return self.reply(&ABORTED);
        }
        let mut plan = Plan::exec(self.desk.spread(self.session.keyspace));
        for (spec, args) in multi.commands {
            match spec.route {
                Route::Key | Route::Split(_) => plan.add(spec, args),
                _ => plan.add_ready(self.local_reply(spec, &args)),
            }
        }
        self.ask(1);
        if !plan.writes {
            return self.read(plan, Then::Answer);
        }
        if plan.parts.len() == 1 || self.has_write_transactions() {
            return self.transact(plan);
        }
        let refusal = self.no_write_transactions("exec");
        self.reply(&refusal);
    }
}

const QUEUED: Reply = Reply::Status(std::borrow::Cow::Borrowed("QUEUED"));
const ABORTED: Reply = Reply::error("EXECABORT Transaction discarded because of previous errors.");
const TOO_MANY_COMMANDS: Reply = Reply::error("ERR too many commands inside MULTI");
const TOO_MANY_BYTES: Reply = Reply::error("ERR the commands inside MULTI are too long together");
