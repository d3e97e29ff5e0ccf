//! A script that is a write of its own, and pauses when it has run for a while.
//!
//! It is one step of this partition however often it pauses: nothing else may happen to any row until it has ended, nor
//! may anything be written aside or folded. What it has changed so far stands in the rows, and is logged as one entry
//! when it ends. Who holds back the inputs of the partition is the conductor (`held`).

use super::Keyspaces;
use super::execute::{Step, take};
use super::scripts::{How, Refusals, ScriptRun};
use crate::evaluate::{Observed, Writer};
use crate::partition::cx::Cx;
use crate::partition::others::Others;
use crate::partition::work::Execution;
use crate::view::Shown;
use bytes::Bytes;
use ensue_protocol::Choice;
use ensue_script::Run;
use ensue_store::cell::Write;
use ensue_types::{Args, KeyspaceId, LogicalTime, Now, Reply, RequestId};
use ensue_wire::Message;

/// After so many milliseconds of a script commands are refused, unless `busy-reply-threshold` says otherwise.
pub(super) const BUSY_AFTER_MS: u64 = 5_000;

/// A script that has paused.
#[derive(Clone, Debug)]
pub(in crate::partition) struct PausedScript {
    /// The batch whose command it is, which is answered and goes on when it ends.
    execution: Execution,
    script: ScriptRun,
    writer: Writer,
    choice: Choice,
    begun_us: u64,
    /// When it goes on.
    due_us: u64,
    /// When its session was last told that it runs.
    notified_us: u64,
}

/// A script that had paused has ended.
pub(in crate::partition) struct EndedScript {
    execution: Execution,
    args: Args,
    reply: Reply,
}

impl EndedScript {
    /// The batch whose command it was, the command, and its answer.
    pub(in crate::partition) fn into_parts(self) -> (Execution, Args, Reply) {
        (self.execution, self.args, self.reply)
    }
}

impl Keyspaces {
    /// Runs a script, and logs what it changes when it has ended.
    pub(in crate::partition) fn start_script(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        execution: &mut Execution,
        at: LogicalTime,
        args: Args,
        choice: &Choice,
    ) -> Step {
        self.make_room(cx, others);
        let refusals =
            Refusals { writes: self.write_refusal(cx, others, false), growth: self.memory_refusal() };
        let write = Write { stamp: cx.stamp(at), at, operation: cx.next_operation(), dependencies: None };
        let mut writer = cx.writer(execution.keyspace, write, choice);
        let mut script = match self.prepare_script(execution.keyspace, &mut writer, refusals, &args) {
            Ok(script) => script,
            Err(reply) => return Step::Done(reply),
        };
        let run = self.run_alone(cx, &mut script, (&mut writer, choice), How::UntilItPauses);
        let Some(run) = run else {
            let now_us = cx.now.monotonic_us;
            self.paused = Some(Box::new(PausedScript {
                execution: take(execution),
                script,
                writer,
                choice: choice.clone(),
                begun_us: now_us,
                due_us: now_us + cx.config.tuning.script_pause_us,
                notified_us: now_us,
            }));
            return Step::Parked;
        };
        Step::Done(self.conclude_script(cx, others, execution, (script, writer), run))
    }

    /// The script that has paused goes on; what came of it, if it has ended.
    pub(in crate::partition) fn resume_script(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
    ) -> Option<EndedScript> {
        let mut paused = self.paused.take()?;
        let what = (&mut paused.writer, &paused.choice);
        let run = self.run_alone(cx, &mut paused.script, what, How::Again);
        let Some(run) = run else {
            paused.due_us = cx.now.monotonic_us + cx.config.tuning.script_pause_us;
            self.paused = Some(paused);
            return None;
        };
        Some(self.end_paused(cx, others, *paused, run))
    }

    /// The script that has paused is stopped, and answered so.
    pub(in crate::partition) fn stop_paused(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        reply: Reply,
    ) -> Option<EndedScript> {
        let paused = self.paused.take()?;
        let run = self.stop_script(reply);
        Some(self.end_paused(cx, others, *paused, run))
    }

    fn end_paused(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        paused: PausedScript,
        run: Run,
    ) -> EndedScript {
        let PausedScript { mut execution, script, writer, .. } = paused;
        let args = script.args().clone();
        let reply = self.conclude_script(cx, others, &mut execution, (script, writer), run);
        EndedScript { execution, args, reply }
    }

    fn run_alone(
        &mut self,
        cx: &Cx,
        script: &mut ScriptRun,
        (writer, choice): (&mut Writer, &Choice),
        how: How,
    ) -> Option<Run> {
        let protocol = cx.protocols[usize::from(script.keyspace().0)].as_ref();
        let shown = Shown::of(protocol, choice);
        self.run_prepared(cx, script, (writer, &shown), how)
    }

    /// Logs what a script has changed, and tells its core what it has called.
    fn conclude_script(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        execution: &mut Execution,
        (script, mut writer): (ScriptRun, Writer),
        run: Run,
    ) -> Reply {
        let mut observed = Observed::default();
        let reply = self.end_script(script, (&mut writer, &mut observed), run);
        self.report_calls(cx, execution);
        let (stamp, changes) = (writer.write.stamp, writer.changes);
        execution.used.cells += observed.pieces + changes.effects.len();
        self.log_write(cx, others, &mut execution.context, execution.keyspace, stamp, (changes, observed));
        reply
    }

    /// Whether a script has paused: nothing else may happen.
    pub(crate) fn is_in_script(&self) -> bool {
        self.paused.is_some()
    }

    /// When the script goes on that has paused.
    pub(crate) fn script_due_us(&self) -> Option<u64> {
        self.paused.as_ref().map(|paused| paused.due_us)
    }

    /// Whose script has paused, and in which keyspace.
    pub(in crate::partition) fn caller_of_script(&self) -> Option<(KeyspaceId, RequestId)> {
        self.paused.as_ref().map(|paused| (paused.execution.keyspace, paused.execution.request))
    }

    /// Why commands are refused because of a script, if they are.
    pub(crate) fn busy_refusal(&self, now: Now) -> Option<&'static str> {
        let paused = self.paused.as_ref()?;
        let ran_us = now.monotonic_us.saturating_sub(paused.begun_us);
        let is_busy = self.busy_after_ms > 0 && ran_us >= self.busy_after_ms.saturating_mul(1_000);
        is_busy.then(|| busy_words(paused.script.function().is_some()))
    }

    /// What the script that has paused is answered if a client has it end, as a function or as a script; or why that
    /// cannot be.
    pub(crate) fn killed_by(&self, as_function: bool) -> Result<Reply, Reply> {
        let Some(paused) = &self.paused else { return Err(NOT_BUSY) };
        let is_function = paused.script.function().is_some();
        if paused.script.has_written() {
            return Err(UNKILLABLE);
        }
        if is_function != as_function {
            return Err(Reply::error(busy_words(is_function)));
        }
        let by = if is_function { "FUNCTION KILL" } else { "SCRIPT KILL" };
        let words = format!("ERR Script killed by user with {by}. script: {}", paused.script.name());
        Ok(Reply::Error(words.into()))
    }

    /// The function that has paused, as `FUNCTION STATS` tells it; of a script it tells nothing but that there is one.
    pub(super) fn running_function(&self, now: Now) -> Result<Reply, Reply> {
        let Some(paused) = &self.paused else { return Ok(Reply::Nil) };
        if paused.script.function().is_none() {
            return Err(Reply::error(BUSY_SCRIPT));
        }
        let command = paused.script.args().iter().cloned().map(Reply::Bulk).collect();
        let ms = now.monotonic_us.saturating_sub(paused.begun_us) / 1_000;
        Ok(Reply::Map(vec![
            (Reply::bulk("name"), Reply::Bulk(Bytes::copy_from_slice(paused.script.name().as_bytes()))),
            (Reply::bulk("command"), Reply::Array(command)),
            (Reply::bulk("duration_ms"), Reply::Integer(ms as i64)),
        ]))
    }

    /// Tells the session whose script has paused now and then that it runs: it waits for longer than for others.
    pub(crate) fn report_script(&mut self, cx: &mut Cx) {
        let Some(paused) = &mut self.paused else { return };
        let (now_us, timeout_us) = (cx.now.monotonic_us, 1_000 * cx.config.tuning.request_timeout_ms);
        if now_us.saturating_sub(paused.notified_us) >= timeout_us / 4 {
            paused.notified_us = now_us;
            let Execution { from, request, .. } = paused.execution;
            cx.send_ahead(from, Message::Runs { request });
        }
    }
}

/// What commands are answered while a script, or a function of a library, runs for long.
fn busy_words(is_function: bool) -> &'static str {
    match is_function {
        true => BUSY_FUNCTION,
        false => BUSY_SCRIPT,
    }
}

const BUSY_SCRIPT: &str =
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
const BUSY_FUNCTION: &str =
    "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.";
pub(super) const NOT_BUSY: Reply = Reply::error("NOTBUSY No scripts in execution right now.");
const UNKILLABLE: Reply = Reply::error(
    "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the \
     script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.",
);
