//! Scripts at the owner of their keys: one step of this partition, whose effects are those of the script's commands.
//!
//! - A script reads the same view as a command that reads in order to write, and its own changes.
//! - A command that fails inside a script fails alone, as in Redis: earlier writes of the script stay. A script that is
//!   stopped is rolled back.
//! - A command on a key of another partition is rejected. A script is stopped when it uses a key that is not among its
//!   `KEYS` and is reserved by an undecided transaction: the script did not wait for that row.
//! - Commands that walk a whole keyspace are rejected where there are other partitions: they would see this one only.
//! - A script that is a write of its own may pause (`paused`); one that is part of a transaction runs to its end.

use super::Keyspaces;
use super::called::ScriptCalls;
use super::paused::NOT_BUSY;
use crate::command::{self, samples::sample};
use crate::config::Tuning;
use crate::evaluate::{Evaluation, Observed, Writer};
use crate::partition::cx::Cx;
use crate::partition::order::RowOrder;
use crate::partition::work::{FORGOTTEN, Work};
use crate::view::{Shown, view_of};
use bytes::Bytes;
use ensue_acl::{self as acl, Denied, User};
use ensue_resp::request::{Blocking, WaitingPop, Whole};
use ensue_resp::{AS_USER, CommandError, CommandSpec, Flags, Request, Route};
use ensue_script::{Call, Called, Calls, Growth, Invocation, Limits, Outcome, Run, Script};
use ensue_store::keyspace::Keyspace;
use ensue_store::view::View;
use ensue_types::{Args, KeyspaceId, Reply, Rule, limits, partition_of};
use std::sync::Arc;

/// What any command of a script counts for among its steps.
const COMMAND_STEPS: u64 = 30;
/// Bytes of an answer that are one step.
const BYTES_PER_STEP: usize = 64;
/// Steps of a script that take about as long as a cell takes a command.
const STEPS_PER_CELL: u64 = 3;

pub(in crate::partition) fn limits_of(tuning: &Tuning) -> Limits {
    Limits {
        scripts_max: limits::SCRIPTS_MAX,
        text_bytes_max: limits::SCRIPT_TEXTS_BYTES_MAX,
        memory_bytes_max: limits::SCRIPT_MEMORY_BYTES_MAX,
        steps_max: tuning.script_steps,
        paused_steps_max: tuning.script_paused_steps,
        steps_to_pause: tuning.script_steps_to_pause,
    }
}

/// Whether a command is a script.
pub(in crate::partition) fn is_script(args: &Args) -> bool {
    args.first().and_then(|name| ensue_resp::lookup(name)).is_some_and(|spec| spec.route == Route::Script)
}

/// Why nothing can be written now, by what a command does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refusals {
    /// No command may write.
    pub writes: Option<Reply>,
    /// No command may make data grow.
    pub growth: Option<Reply>,
}

impl Refusals {
    /// What becomes of a script as a whole, by what it says of itself.
    fn of_script(&mut self, growth: Growth, read_only: bool) -> Option<Reply> {
        let of_writes = self.writes.clone().filter(|_| growth != Growth::ByCommand && !read_only);
        let of_growth = self.growth.clone().filter(|_| growth == Growth::Refused);
        if growth == Growth::Allowed {
            self.growth = None;
        }
        of_writes.or(of_growth)
    }
}

impl Keyspaces {
    /// How many rows were evicted, and how many scripts, libraries and functions of libraries are known, of which every
    /// partition knows the same.
    pub(in crate::partition) fn add_counts(&self, add: &mut impl FnMut(&str, u64)) {
        let libraries = self.scripts.libraries();
        add("evicted_keys", self.evicted());
        add("expired_keys", self.evicted_expired());
        add("ended_columns", self.each().map(|rows| rows.ended_columns() as u64).sum());
        add("cached_scripts_max", self.scripts.count() as u64);
        add("libraries_max", libraries.iter().count() as u64);
        add("functions_max", libraries.iter().map(|library| library.functions.len() as u64).sum());
    }

    /// Runs a script as part of a write, to its end.
    pub(in crate::partition) fn run_script(
        &mut self,
        cx: &Cx,
        keyspace: KeyspaceId,
        (writer, observed): (&mut Writer, &mut Observed),
        (shown, refusals): (&Option<Shown<'_>>, Refusals),
        args: &Args,
    ) -> Reply {
        let mut script = match self.prepare_script(keyspace, writer, refusals, args) {
            Ok(script) => script,
            Err(reply) => return reply,
        };
        let run = self.run_prepared(cx, &mut script, (writer, shown), How::ToItsEnd);
        let run = run.expect("it does not pause");
        self.end_script(script, (writer, observed), run)
    }

    /// Finds the script of a command, and begins to keep what stands where it writes.
    pub(super) fn prepare_script(
        &mut self,
        keyspace: KeyspaceId,
        writer: &mut Writer,
        mut refusals: Refusals,
        args: &Args,
    ) -> Result<ScriptRun, Reply> {
        let (plain, user) = as_user(args)?.unzip();
        let args = plain.unwrap_or_else(|| args.clone());
        let asks_read_only =
            ensue_resp::lookup(&args[0]).is_some_and(|spec| spec.flags.contains(Flags::READONLY));
        let found = self.script_of(&args, asks_read_only)?;
        let keys = keys_of(&args)?;
        if let Some(refusal) = refusals.of_script(found.growth, found.read_only || found.script.read_only) {
            return Err(refusal);
        }
        let before = writer.clone();
        writer.keep();
        let number = self.scripts_run;
        self.scripts_run = self.scripts_run.wrapping_add(1);
        let (noted, observed) = (self.called.count(), Observed::default());
        let (selected, calls, has_written) = (keyspace, 0, false);
        Ok(ScriptRun {
            keyspace,
            args,
            keys,
            found,
            user,
            refusals,
            number,
            noted,
            before,
            observed,
            selected,
            calls,
            has_written,
        })
    }

    /// Runs a script that was prepared, or goes on with one that has paused. Nothing comes of one that pauses.
    pub(super) fn run_prepared(
        &mut self,
        cx: &Cx,
        script: &mut ScriptRun,
        (writer, shown): (&mut Writer, &Option<Shown<'_>>),
        how: How,
    ) -> Option<Run> {
        let rows = &mut self.keyspaces[usize::from(script.keyspace.0)];
        let seed = writer.write.at.0 ^ u64::from(script.number).rotate_left(32);
        let (found, all, keys) = (script.found.clone(), script.args.clone(), script.keys.clone());
        let mut commands = Commands {
            cx,
            rows,
            order: &self.order,
            writer,
            shown,
            script,
            called: &mut self.called,
            reports_calls: self.reports_calls,
        };
        let with = Invocation {
            keys: &all[keys.clone()],
            args: &all[keys.end..],
            read_only: found.read_only,
            function: found.function.as_deref(),
            seed,
        };
        match how {
            How::ToItsEnd => Some(self.scripts.run(&found.script, with, &mut commands)),
            How::UntilItPauses => self.scripts.start(&found.script, with, &mut commands),
            How::Again => self.scripts.resume(&mut commands),
        }
    }

    /// A script has ended, or was stopped: then everything that it changed is taken back.
    pub(super) fn end_script(
        &mut self,
        script: ScriptRun,
        (writer, observed): (&mut Writer, &mut Observed),
        run: Run,
    ) -> Reply {
        observed.depend_on(script.observed);
        observed.pieces += (run.steps / STEPS_PER_CELL) as usize;
        let kept = writer.stop_keeping();
        match run.outcome {
            Outcome::Ended(reply) => {
                self.called.note_end(&reply);
                reply
            }
            Outcome::Stopped(reply) => {
                let rows = &mut self.keyspaces[usize::from(script.keyspace.0)];
                kept.into_iter().rev().for_each(|kept| rows.take_back(kept));
                *writer = script.before;
                self.called.forget_published(script.noted);
                reply
            }
        }
    }

    /// Goes on with a script that was stopped by hand.
    pub(super) fn stop_script(&mut self, reply: Reply) -> Run {
        self.scripts.stop(reply)
    }

    fn script_of(&mut self, args: &Args, read_only: bool) -> Result<Found, Reply> {
        let text = args.get(1).ok_or_else(|| CommandError::wrong_arity("eval").reply())?;
        if args[0].get(..5).is_some_and(|begin| begin.eq_ignore_ascii_case(b"fcall")) {
            let (library, function) = self.scripts.libraries().find(text).ok_or(NO_FUNCTION)?;
            if read_only && !function.is_read_only() {
                return Err(MAY_WRITE);
            }
            let (script, name) = (library.script.clone(), function.name.clone());
            let (read_only, growth) = (function.is_read_only(), function.growth());
            return Ok(Found { script, read_only, growth, function: Some(name) });
        }
        let script = self.script_named(args, text)?;
        let growth = script.growth;
        Ok(Found { script, function: None, read_only, growth })
    }

    fn script_named(&mut self, args: &Args, text: &Bytes) -> Result<Arc<Script>, Reply> {
        let is_named = args[0].len() > "eval_ro".len() || args[0].eq_ignore_ascii_case(b"evalsha");
        match is_named {
            true => self.scripts.find(text).ok_or(NO_SCRIPT),
            false => self.load_script(text),
        }
    }

    fn load_script(&mut self, text: &Bytes) -> Result<Arc<Script>, Reply> {
        if text.len() > limits::SCRIPT_BYTES_MAX {
            return Err(TOO_LONG);
        }
        self.scripts.load(text)
    }

    /// `SCRIPT`, of which every partition is told.
    pub(in crate::partition) fn execute_script(&mut self, args: &Args) -> Reply {
        match (args.get(1).map(|word| word.to_ascii_lowercase()).as_deref(), args.get(2..)) {
            (Some(b"load"), Some([text])) => match self.load_script(text) {
                Ok(script) => Reply::bulk(Bytes::copy_from_slice(script.sha.as_bytes())),
                Err(reply) => reply,
            },
            (Some(b"exists"), Some(shas)) => {
                let is_known = |sha: &Bytes| Reply::Integer(self.scripts.find(sha).is_some().into());
                Reply::Array(shas.iter().map(is_known).collect())
            }
            (Some(b"show"), Some([sha])) => {
                let script = self.scripts.find(sha);
                script.map_or(NO_SCRIPT, |script| Reply::Bulk(script.text.clone()))
            }
            // A session asks, while writes are paused.
            (Some(b"reads"), Some([sha])) => {
                let reads = self.scripts.find(sha).is_some_and(|script| script.read_only);
                Reply::Integer(reads.into())
            }
            // One that has paused is killed where inputs are held.
            (Some(b"kill"), Some([])) => NOT_BUSY,
            (Some(b"flush"), _) => {
                self.scripts.flush();
                self.scripts_flushed = true;
                Reply::OK
            }
            _ => CommandError::wrong_arity("script").reply(),
        }
    }
}

/// How far a script is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    ToItsEnd,
    UntilItPauses,
    /// It has paused before, and goes on.
    Again,
}

/// A script that was prepared, and has not ended.
#[derive(Clone, Debug)]
pub(in crate::partition) struct ScriptRun {
    keyspace: KeyspaceId,
    /// The command, without the mark of its user.
    args: Args,
    keys: std::ops::Range<usize>,
    found: Found,
    /// Who may not do everything.
    user: Option<User>,
    refusals: Refusals,
    /// No other script of this partition has it.
    number: u32,
    /// How many calls of scripts had been noted before it.
    noted: usize,
    /// What its write was before it.
    before: Writer,
    observed: Observed,
    /// What its commands are about, by its own `SELECT`: only what it runs in can be used.
    selected: KeyspaceId,
    calls: u64,
    /// It has called a command that writes.
    has_written: bool,
}

impl ScriptRun {
    pub(in crate::partition) fn keyspace(&self) -> KeyspaceId {
        self.keyspace
    }

    pub(in crate::partition) fn args(&self) -> &Args {
        &self.args
    }

    /// The function of a library that it calls, if it is no script by itself.
    pub(in crate::partition) fn function(&self) -> Option<&str> {
        self.found.function.as_deref()
    }

    /// What it is called in errors.
    pub(in crate::partition) fn name(&self) -> &str {
        self.function().unwrap_or_else(|| self.found.script.sha.as_str())
    }

    pub(in crate::partition) fn has_written(&self) -> bool {
        self.has_written
    }
}

/// What a command runs.
#[derive(Clone, Debug)]
struct Found {
    script: Arc<Script>,
    /// The script is a library, and this the function that is called.
    function: Option<String>,
    read_only: bool,
    growth: Growth,
}

/// The command of a script without its mark, and what its user may do; nothing if it may do everything.
fn as_user(args: &Args) -> Result<Option<(Args, User)>, Reply> {
    let Some(name) = args[0].strip_prefix(&[AS_USER]) else { return Ok(None) };
    let (line, rest) = args.split_last().ok_or(NOT_ALLOWED)?;
    let user = User::parse(line).ok_or(NOT_ALLOWED)?;
    let mut args = rest.to_vec();
    args[0] = Bytes::copy_from_slice(name);
    Ok(Some((args, user)))
}

fn keys_of(args: &Args) -> Result<std::ops::Range<usize>, Reply> {
    ensue_resp::script_keys(args).map_err(|error| error.reply())
}

/// Who carries out the commands of one run.
struct Commands<'a> {
    cx: &'a Cx,
    rows: &'a mut Keyspace,
    order: &'a RowOrder<Work>,
    writer: &'a mut Writer,
    shown: &'a Option<Shown<'a>>,
    script: &'a mut ScriptRun,
    /// Where it is noted what is published, and everything else if somebody wants to know.
    called: &'a mut ScriptCalls,
    reports_calls: bool,
}

impl Calls for Commands<'_> {
    fn call(&mut self, Call { args, read_only, asks }: Call) -> Called {
        self.script.calls += 1;
        if asks {
            return Called::Answered(self.is_permitted(&args), COMMAND_STEPS);
        }
        let known = args.first().and_then(|name| ensue_resp::lookup(name));
        match self.carry_out(&args, read_only) {
            Ok((reply, pieces)) => {
                self.called.note_answer(known, &args, (&reply, true));
                let steps = (pieces + reply.encoded_bytes() / BYTES_PER_STEP) as u64;
                Called::Answered(reply, COMMAND_STEPS + steps)
            }
            Err(Refused::Command(reply)) => {
                self.called.note_answer(known, &args, (&reply, false));
                Called::Answered(reply, COMMAND_STEPS)
            }
            Err(Refused::Script(reply)) => Called::Stop(reply),
        }
    }

    fn log(&mut self, level: u8, text: &[u8]) {
        self.called.note_line(level, text);
    }
}

/// What a refusal ends.
enum Refused {
    Command(Reply),
    Script(Reply),
}

impl Commands<'_> {
    /// The answer to a command that may be executed, and how many cells it took.
    fn carry_out(&mut self, args: &[Bytes], read_only: bool) -> Result<(Reply, usize), Refused> {
        let spec = self.allowed(args, read_only).map_err(Refused::Command)?;
        if let Some(reply) = self.denial(spec, args) {
            self.called.note_denied(args);
            return Err(Refused::Command(reply));
        }
        if spec.route != Route::Session {
            if let Some(refused) = self.refusal(spec, args) {
                return Err(refused);
            }
            self.script.has_written |= spec.is_write();
        }
        if self.reports_calls && !is_published(args) {
            self.called.note(args);
        }
        Ok(match spec.route {
            Route::Session => self.session_command(spec, args),
            _ => self.evaluate(spec, args),
        })
    }

    /// Whether the user may do this, as `redis.acl_check_cmd` asks.
    fn is_permitted(&self, args: &[Bytes]) -> Reply {
        let Some(spec) = ensue_resp::lookup(&args[0]) else { return NO_SUCH_COMMAND };
        let call = acl::Call { spec, args, database: self.script.keyspace };
        Reply::Integer(self.script.user.as_ref().is_none_or(|user| user.check(&call).is_ok()).into())
    }

    /// The row of a command that scripts may use; otherwise what Redis says.
    fn allowed(&self, args: &[Bytes], read_only: bool) -> Result<&'static CommandSpec, Reply> {
        let spec = ensue_resp::lookup(&args[0]).ok_or(UNKNOWN)?;
        if !ensue_resp::check_arity(spec, args.len()) {
            return Err(WRONG_ARITY);
        }
        let is_debugging = spec.name == "debug" && self.cx.config.allows_debug();
        if spec.flags.contains(Flags::NOSCRIPT) && !is_debugging {
            return Err(NOT_ALLOWED);
        }
        if read_only && (spec.is_write() || is_published(args)) {
            return Err(READ_ONLY);
        }
        Ok(spec)
    }

    /// What a command is answered that the user may not execute.
    fn denial(&self, spec: &'static CommandSpec, args: &[Bytes]) -> Option<Reply> {
        let call = acl::Call { spec, args, database: self.script.keyspace };
        self.script.user.as_ref()?.check(&call).err().map(|denied| match denied {
            Denied::Command => MAY_NOT_RUN,
            Denied::Channel { .. } => MAY_NOT_PUBLISH,
            _ => MAY_NOT_ACCESS,
        })
    }

    fn refusal(&self, spec: &CommandSpec, args: &[Bytes]) -> Option<Refused> {
        // Over how many partitions the keys of this keyspace are spread.
        let partitions = match self.cx.protocol(self.script.keyspace).needs().one_stream {
            true => 1,
            false => self.cx.config.topology.partitions,
        };
        let refused = |words: &str| {
            let words = format!("ERR {} inside a script is refused: {words}", spec.name.to_uppercase());
            Some(Refused::Command(Reply::Error(words.into())))
        };
        if self.script.selected != self.script.keyspace {
            return refused("it stays within its keyspace, and has selected another one");
        }
        match spec.route {
            Route::AllPartitions if spec.is_write() => return refused("it is about every partition"),
            Route::AllPartitions if partitions > 1 => {
                return refused("it is about every partition, and a script sees one");
            }
            Route::Owner | Route::Script => return refused("it is a step of its own"),
            _ => {}
        }
        let is_here = |pattern: &[u8]| !pattern.is_empty() && partition_of(pattern, partitions) == self.cx.id;
        if partitions > 1 && !ensue_resp::key_patterns(spec, args).all(is_here) {
            return Some(Refused::Command(FOREIGN_KEY));
        }
        for key in ensue_resp::keys(spec, args) {
            if partition_of(key, partitions) != self.cx.id {
                return Some(Refused::Command(FOREIGN_KEY));
            }
            if spec.is_write() && self.cx.is_home_elsewhere(self.script.keyspace, key) {
                return Some(Refused::Script(HOME_ELSEWHERE));
            }
            let must_wait = Rule::RowsInTimeOrder.holds() && self.order.is_busy(self.script.keyspace, key);
            if must_wait && !self.script.args[self.script.keys.clone()].contains(key) {
                return Some(Refused::Script(UNDECLARED));
            }
        }
        let Refusals { writes, growth } = &self.script.refusals;
        let of_writes = writes.clone().filter(|_| spec.is_write());
        let of_growth = || growth.clone().filter(|_| spec.flags.contains(Flags::DENYOOM));
        of_writes.or_else(of_growth).map(Refused::Command)
    }

    /// The answer, and how many cells it took.
    fn evaluate(&mut self, spec: &'static CommandSpec, args: &[Bytes]) -> (Reply, usize) {
        let request = match Request::parse_as(spec, args) {
            Ok(Request::Blocking(Blocking {
                pop: WaitingPop::Entries(_) | WaitingPop::Delivered(_),
                ..
            })) => {
                let name = String::from_utf8_lossy(&args[0]);
                let words = format!("ERR {name} command is not allowed with BLOCK option from scripts");
                return (Reply::Error(words.into()), 0);
            }
            Ok(request) => request,
            Err(error) => return (error.reply(), 0),
        };
        let written = self.writer.changes.effects.len();
        let walked = if spec.route == Route::AllPartitions { self.rows.rows_count() } else { 0 };
        let view = view_of(self.shown, View::Newest);
        let mut evaluation = Evaluation::writing(self.rows, self.writer, view);
        // Several commands of a script have the same time.
        evaluation.seed ^= self.script.calls.rotate_left(32);
        let reply = match &request {
            Request::Rename { key, target } => rename(&mut evaluation, key, target, spec.name == "renamenx"),
            _ => command::run(&request, &mut evaluation).unwrap_or(FORGOTTEN),
        };
        let observed = evaluation.observed;
        let pieces = observed.pieces + walked + self.writer.changes.effects.len() - written;
        self.script.observed.depend_on(observed);
        (reply, pieces)
    }

    /// Time stands still in a script.
    fn session_command(&mut self, spec: &CommandSpec, args: &[Bytes]) -> (Reply, usize) {
        let reply = match (spec.name, &args[1..]) {
            ("ping", []) => Reply::Status("PONG".into()),
            ("ping" | "echo", [message]) => Reply::Bulk(message.clone()),
            ("debug", [word, argument]) => debug(word, argument),
            // Who receives it is known when the script has ended and its core publishes it.
            ("publish" | "spublish", [_, _]) => match self.called.note_published(args) {
                true => Reply::Integer(0),
                false => TOO_MANY_MESSAGES,
            },
            // Nobody waits in a script.
            ("wait", [_, _]) => Reply::Integer(0),
            ("time", []) => {
                let ms = self.writer.write.at.ms();
                let parts = [ms / 1_000, ms % 1_000 * 1_000];
                Reply::Array(parts.map(|part| Reply::bulk(part.to_string())).to_vec())
            }
            ("select", [number]) => match keyspace_named(number) {
                Some(keyspace) => {
                    self.script.selected = keyspace;
                    Reply::OK
                }
                None => NO_SUCH_KEYSPACE,
            },
            _ => NOT_ALLOWED,
        };
        (reply, 0)
    }
}

/// `RENAME` and `RENAMENX` within one partition: a copy, and the removal of what it was made of.
fn rename(evaluation: &mut Evaluation<'_>, key: &Bytes, target: &Bytes, is_new: bool) -> Reply {
    let mut run = |request: Request| command::run(&request, evaluation).unwrap_or(FORGOTTEN);
    let answer = |is_done: bool| if is_new { Reply::Integer(is_done.into()) } else { Reply::OK };
    match run(Request::Touch { keys: vec![key.clone()] }) {
        Reply::Integer(0) => return CommandError::NoSuchKey.reply(),
        Reply::Integer(_) if key == target => return answer(false),
        Reply::Integer(_) => {}
        error => return error,
    }
    let (source, target) = (key.clone(), target.clone());
    match run(Request::Whole(Whole::Copy { source, target, replace: !is_new })) {
        Reply::Integer(0) => return answer(false),
        Reply::Integer(_) => {}
        error => return error,
    }
    match run(Request::Delete { keys: vec![key.clone()] }) {
        Reply::Integer(_) => answer(true),
        error => error,
    }
}

/// Whether a command publishes a message, which its core does when the script has ended.
pub(super) fn is_published(args: &[Bytes]) -> bool {
    let is = |name: &str| args.first().is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes()));
    is("publish") || is("spublish")
}

fn keyspace_named(number: &Bytes) -> Option<KeyspaceId> {
    let number = u8::try_from(ensue_resp::number::parse_i64(number)?).ok()?;
    (number < limits::KEYSPACES).then_some(KeyspaceId(number))
}

/// `DEBUG` in a script, where it is allowed. Nobody waits for a script that sleeps: its time stands still anyway.
fn debug(word: &Bytes, argument: &Bytes) -> Reply {
    let argument = argument.to_ascii_lowercase();
    match (word.to_ascii_lowercase().as_slice(), argument.as_slice()) {
        (b"sleep", seconds) if ensue_resp::number::parse_score(seconds).is_some() => Reply::OK,
        // What it is an attribute of, as scripts see it.
        (b"protocol", b"attrib") => Reply::bulk("Some real reply following the attribute"),
        (b"protocol", kind) => sample(kind).unwrap_or(NOT_ALLOWED),
        _ => NOT_ALLOWED,
    }
}

const NO_SUCH_KEYSPACE: Reply = Reply::error("ERR DB index is out of range");
const NO_SUCH_COMMAND: Reply = Reply::error("ERR Invalid command passed to redis.acl_check_cmd()");
const TOO_MANY_MESSAGES: Reply =
    Reply::error("ERR the script publishes too much: its messages take more than 1 MiB");
const MAY_NOT_RUN: Reply =
    Reply::error("NOPERM The user executing the script can't run this command or subcommand");
const MAY_NOT_ACCESS: Reply = Reply::error(
    "NOPERM The user executing the script can't access at least one of the keys mentioned in the command arguments",
);
const MAY_NOT_PUBLISH: Reply = Reply::error(
    "NOPERM The user executing the script can't publish to the channel mentioned in the command",
);
const NO_SCRIPT: Reply = Reply::error("NOSCRIPT No matching script. Please use EVAL.");
const NO_FUNCTION: Reply = Reply::error("ERR Function not found");
const MAY_WRITE: Reply = Reply::error("ERR Can not execute a script with write flag using *_ro command.");
const TOO_LONG: Reply = Reply::error("ERR the script is too long: its text takes more than 1 MiB");
const UNKNOWN: Reply = Reply::error("ERR Unknown Redis command called from script");
const WRONG_ARITY: Reply = Reply::error("ERR Wrong number of args calling Redis command from script");
const NOT_ALLOWED: Reply = Reply::error("ERR This Redis command is not allowed from script");
const READ_ONLY: Reply = Reply::error("ERR Write commands are not allowed from read-only scripts.");
const FOREIGN_KEY: Reply = Reply::error(
    "CROSSSLOT the script uses a key of another partition than its own keys; give all of them one \
     hash tag, such as {tag}",
);
const HOME_ELSEWHERE: Reply = Reply::error(
    "CROSSHOME the script writes a key that is not among its KEYS and has its home in another datacenter; it has \
     changed nothing: name the key among KEYS",
);
const UNDECLARED: Reply = Reply::error(
    "TRYAGAIN the script uses a key that is not among its KEYS and that a transaction is writing; it has \
     changed nothing",
);
