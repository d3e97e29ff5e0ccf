//! One connection as the recorder follows it: what was sent, in order, against what was answered, in order.

use super::Recorder;
use super::effect::{Effect, Step};
use super::journal::Line;
use super::name;
use super::plan::Plan;
use bytes::Bytes;
use ensue_types::Reply;
use std::collections::VecDeque;

/// Most that is remembered of commands without an answer; beyond it, a connection is no longer followed.
const PENDING_BYTES_MAX: usize = 64 << 20;

/// A connection that is written down.
#[derive(Debug)]
pub struct RecordedConnection {
    recorder: Recorder,
    datacenter: Option<String>,
    /// The name of its session, and of the one in each keyspace by a number behind it.
    session: String,
    /// The keyspaces in which the session has transactions.
    used: Vec<u8>,
    /// The keyspace of the next command.
    keyspace: u8,
    /// The next command is one of a MULTI.
    in_multi: bool,
    /// The commands of the MULTI that were queued.
    queued: Vec<Plan>,
    pending: VecDeque<Pending>,
    pending_bytes: usize,
    /// Answers can no longer be told apart: whatever is sent may have been done.
    is_deaf: bool,
    /// It has said that it reads the end.
    is_final: bool,
    has_ended: bool,
}

#[derive(Debug)]
struct Pending {
    asked: Asked,
    keyspace: u8,
    start_us: u64,
}

#[derive(Debug)]
enum Asked {
    Data(Plan),
    /// Inside a MULTI.
    Queued(Plan),
    Exec,
    Discard,
    Select {
        before: u8,
    },
    Reset,
    /// The past is shared with other connections from here on, or no longer.
    Share,
    Token,
    Merge {
        name: Option<String>,
    },
    /// The connection gets a name, which may say that what it reads is the end.
    Named {
        is_final: bool,
    },
    /// An answer comes that says nothing.
    Other,
}

/// What an answer that is an error says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Refusal {
    NothingDone,
    NobodyKnows,
}

/// Errors of Redis and of Ensue that come instead of an effect. Of any other nobody knows.
const NOTHING_DONE: [&str; 21] = [
    "ERR",
    "WRONGTYPE",
    "NOAUTH",
    "WRONGPASS",
    "NOPERM",
    "OOM",
    "MISCONF",
    "READONLY",
    "LOADING",
    "BUSY",
    "MOVED",
    "ASK",
    "CROSSSLOT",
    "EXECABORT",
    "UNAVAILABLE",
    "TRYAGAIN",
    "NOTYET",
    "CLOCKAHEAD",
    "NOPROTO",
    "BLOCKED",
    FALLBACK,
];
/// The session would have had to wait too long for its past: it is a new one that knows nothing of it.
const FALLBACK: &str = "FALLBACK";
/// What a connection of this name reads is read when all is at rest.
const FINAL_NAME: &[u8] = b"ensue-final";
/// After these, answers do not come one a command.
const OUT_OF_STEP: [&str; 7] =
    ["SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "MONITOR", "SYNC", "PSYNC", "REPLCONF"];

impl RecordedConnection {
    pub(super) fn new(recorder: Recorder, datacenter: Option<&str>) -> RecordedConnection {
        let session = recorder.journal().new_session();
        RecordedConnection {
            recorder,
            datacenter: datacenter.map(Into::into),
            session,
            used: Vec::new(),
            keyspace: 0,
            in_multi: false,
            queued: Vec::new(),
            pending: VecDeque::new(),
            pending_bytes: 0,
            is_deaf: false,
            is_final: false,
            has_ended: false,
        }
    }

    /// Everything was selected before the recording began.
    pub fn set_keyspace(&mut self, keyspace: u8) {
        self.keyspace = keyspace;
    }

    /// A command is about to be sent. An empty one is none.
    pub fn on_command(&mut self, args: &[Bytes]) {
        if args.is_empty() || self.has_ended {
            return;
        }
        let (keyspace, start_us) = (self.keyspace, self.recorder.now_us());
        let Some(asked) = self.ask(args) else {
            self.lose_answers();
            return;
        };
        self.pending_bytes += asked.bytes();
        self.pending.push_back(Pending { asked, keyspace, start_us });
        if self.pending_bytes > PENDING_BYTES_MAX || self.is_deaf {
            self.lose_answers();
        }
    }

    /// The next answer has come.
    pub fn on_reply(&mut self, reply: &Reply) {
        if self.is_deaf || self.has_ended {
            return;
        }
        let Some(pending) = self.pending.pop_front() else { return self.lose_answers() };
        self.pending_bytes -= pending.asked.bytes();
        self.answered(pending, reply);
        if code(reply) == Some(FALLBACK) {
            self.begin_session();
        }
    }

    /// What comes from the server is no longer understood.
    pub fn on_unreadable_reply(&mut self) {
        self.lose_answers();
    }

    /// What goes to the server is not understood: anything may have been done by it.
    pub fn on_unreadable_command(&mut self) {
        if !self.has_ended {
            self.lose_answers();
            self.recorder.journal().leave_out(&[], "commands that cannot be read");
        }
    }

    /// The connection has ended, or is of no more use.
    pub fn on_end(&mut self) {
        if self.has_ended {
            return;
        }
        self.nothing_more_comes();
        self.end_session();
        self.has_ended = true;
    }

    fn ask(&mut self, args: &[Bytes]) -> Option<Asked> {
        let word = String::from_utf8_lossy(&args[0]).to_ascii_uppercase();
        let second = args.get(1).map(|word| String::from_utf8_lossy(word).to_ascii_uppercase());
        let second = second.as_deref().unwrap_or_default();
        let answers_change = word == "CLIENT" && matches!(second, "REPLY" | "TRACKING");
        if OUT_OF_STEP.contains(&word.as_str()) || answers_change {
            return None;
        }
        Some(match (word.as_str(), second) {
            ("RESET", _) => {
                (self.in_multi, self.keyspace) = (false, 0);
                Asked::Reset
            }
            ("EXEC", _) => {
                self.in_multi = false;
                Asked::Exec
            }
            ("DISCARD", _) => {
                self.in_multi = false;
                Asked::Discard
            }
            // Redis lets these take part in a transaction, and then what follows cannot be told.
            ("SELECT" | "CAUSAL" | "SWAPDB", _) if self.in_multi => {
                Asked::Queued(Plan::Opaque { rows: Vec::new(), command: word })
            }
            // A flush is not of the moment of the rest.
            ("FLUSHDB" | "FLUSHALL", _) if self.in_multi => {
                Asked::Queued(Plan::Opaque { rows: Vec::new(), command: format!("{word} in a MULTI") })
            }
            ("SWAPDB", _) => Asked::Data(Plan::Opaque { rows: Vec::new(), command: word }),
            ("SELECT", number) => {
                let before = self.keyspace;
                self.keyspace = number.parse().unwrap_or(before);
                Asked::Select { before }
            }
            ("CLIENT", "SETNAME") if !self.in_multi => {
                Asked::Named { is_final: args.get(2).is_some_and(|given| &given[..] == FINAL_NAME) }
            }
            ("CAUSAL", "TOKEN") => Asked::Token,
            ("CAUSAL", "SESSION") => Asked::Share,
            // Looked up now: the same token may be handed out again, for a longer past, before the answer comes.
            ("CAUSAL", "MERGE") => {
                let hash = args.get(2).map(|token| name::hash(token));
                Asked::Merge { name: hash.and_then(|hash| self.recorder.journal().token(hash)) }
            }
            ("MULTI", _) => {
                self.in_multi = true;
                Asked::Other
            }
            _ if self.in_multi => Asked::Queued(Plan::of(args, self.keyspace)),
            _ => match Plan::of(args, self.keyspace) {
                Plan::Nothing => Asked::Other,
                plan => Asked::Data(plan),
            },
        })
    }

    fn answered(&mut self, pending: Pending, reply: &Reply) {
        let refusal = refusal(reply);
        let Pending { asked, keyspace, start_us } = pending;
        match (asked, refusal) {
            (Asked::Data(plan), None) => self.done(Effect::of(&plan, reply), keyspace, start_us),
            (Asked::Data(plan), Some(Refusal::NothingDone)) => {
                self.failed(&Effect::possible(&plan), keyspace, start_us);
                self.leave_out(Effect::of_refused(&plan).opaque);
            }
            (Asked::Data(plan), Some(Refusal::NobodyKnows)) => {
                self.unknown(Effect::possible(&plan), keyspace, start_us);
            }
            (Asked::Queued(plan), None) if *reply == Reply::Status("QUEUED".into()) => {
                self.pending_bytes += plan.bytes();
                self.queued.push(plan);
            }
            // There was no MULTI after all.
            (Asked::Queued(plan), None) => self.done(Effect::of(&plan, reply), keyspace, start_us),
            (Asked::Exec, _) => self.executed(reply, refusal, keyspace, start_us),
            (Asked::Discard, None) => drop(self.take_queued()),
            (Asked::Select { before }, Some(_)) if self.pending.is_empty() => self.keyspace = before,
            (Asked::Select { .. }, Some(_)) => {
                self.recorder
                    .journal()
                    .leave_out(&[], "a keyspace that was refused when commands had followed");
            }
            (Asked::Reset, None) => {
                drop(self.take_queued());
                self.is_final = false;
                self.begin_session();
            }
            (Asked::Share, None) => self.begin_session(),
            (Asked::Named { is_final }, None) => self.is_final = is_final,
            (Asked::Token, None) => self.token(reply, keyspace),
            (Asked::Merge { name: Some(name) }, None) => {
                self.write(keyspace, |line| Line { merges: Some(name), ..line });
            }
            _ => {}
        }
    }

    fn executed(&mut self, reply: &Reply, refusal: Option<Refusal>, keyspace: u8, start_us: u64) {
        let plans = self.take_queued();
        let possible = || Effect::of_all(plans.iter().map(Effect::possible));
        match (reply, refusal) {
            // None of its commands was begun.
            (_, Some(Refusal::NothingDone)) | (Reply::Nil | Reply::NilArray, _) => {
                self.failed(&possible(), keyspace, start_us);
            }
            (_, Some(Refusal::NobodyKnows)) => self.unknown(possible(), keyspace, start_us),
            (Reply::Array(replies), _) if replies.len() == plans.len() => {
                if replies.iter().any(|reply| self::refusal(reply) == Some(Refusal::NobodyKnows)) {
                    return self.unknown(possible(), keyspace, start_us);
                }
                // A command that was refused within a transaction fails alone.
                let effects = plans.iter().zip(replies).map(|(plan, reply)| match reply.is_error() {
                    true => Effect::of_refused(plan),
                    false => Effect::of(plan, reply),
                });
                self.done(Effect::of_all(effects), keyspace, start_us);
            }
            _ => {
                self.unknown(possible(), keyspace, start_us);
                self.lose_answers();
            }
        }
    }

    fn take_queued(&mut self) -> Vec<Plan> {
        let plans = std::mem::take(&mut self.queued);
        self.pending_bytes -= plans.iter().map(Plan::bytes).sum::<usize>();
        plans
    }

    fn done(&mut self, effect: Effect, keyspace: u8, start_us: u64) {
        let times = Some((start_us, self.recorder.now_us()));
        let Effect { steps, expiring, opaque } = effect;
        let token = self.name_for(&expiring);
        if !steps.is_empty() || token.is_some() {
            let is_final = self.is_final;
            self.write(keyspace, |line| Line {
                times,
                token: token.clone(),
                is_final,
                steps: &steps,
                ..line
            });
        }
        self.expire(expiring, token.as_ref(), keyspace, start_us);
        self.leave_out(opaque);
    }

    /// Certainly not done.
    fn failed(&mut self, effect: &Effect, keyspace: u8, start_us: u64) {
        if !effect.steps.is_empty() {
            let times = Some((start_us, self.recorder.now_us()));
            let status = Some("failed");
            self.write(keyspace, |line| Line { times, status, steps: &effect.steps, ..line });
        }
    }

    /// Nobody knows whether it was done, nor when: what follows in the session need not follow it.
    fn unknown(&mut self, effect: Effect, keyspace: u8, start_us: u64) {
        let Effect { steps, expiring, opaque } = effect;
        if !steps.is_empty() {
            let mut merges = None;
            if self.used.contains(&keyspace) {
                let name = self.recorder.journal().new_name();
                self.write(keyspace, |line| Line { token: Some(name.clone()), ..line });
                merges = Some(name);
            }
            let token = self.name_for(&expiring);
            let line = Line { token: token.clone(), merges, steps: &steps, ..Line::default() };
            self.alone(line, keyspace, start_us);
            self.expire(expiring, token.as_ref(), keyspace, start_us);
        }
        self.leave_out(opaque);
    }

    /// The name by which deadlines come after the transaction that set them.
    fn name_for(&self, expiring: &[String]) -> Option<String> {
        (!expiring.is_empty()).then(|| self.recorder.journal().new_name())
    }

    /// Deadlines come each by itself, some time after what is named, or never.
    fn expire(&self, expiring: Vec<String>, after: Option<&String>, keyspace: u8, start_us: u64) {
        for place in expiring {
            let deletion = [Step::Write { place, value: None }];
            let line = Line { merges: after.cloned(), steps: &deletion, ..Line::default() };
            self.alone(line, keyspace, start_us);
        }
    }

    /// A transaction of unknown outcome in a session of its own.
    fn alone(&self, line: Line<'_>, keyspace: u8, start_us: u64) {
        let mut journal = self.recorder.journal();
        let session = format!("{}~{}", session_name(&self.session, keyspace), journal.new_name());
        journal.transaction(&Line {
            session: &session,
            datacenter: self.datacenter.as_deref(),
            times: Some((start_us, u64::MAX)),
            ..line
        });
    }

    fn token(&mut self, reply: &Reply, keyspace: u8) {
        let Reply::Bulk(token) = reply else { return };
        let name = self.recorder.journal().remember_token(name::hash(token));
        self.write(keyspace, |line| Line { token: Some(name), ..line });
    }

    fn leave_out(&self, opaque: Option<(Vec<String>, String)>) {
        if let Some((rows, command)) = opaque {
            self.recorder.journal().leave_out(&rows, &command);
        }
    }

    /// Writes a line of this session.
    fn write<'a>(&'a mut self, keyspace: u8, fill: impl FnOnce(Line<'a>) -> Line<'a>) {
        if !self.used.contains(&keyspace) {
            self.used.push(keyspace);
        }
        let session = session_name(&self.session, keyspace);
        let datacenter = self.datacenter.as_deref();
        let line = fill(Line { datacenter, ..Line::default() });
        self.recorder.journal().transaction(&Line { session: &session, ..line });
    }

    fn begin_session(&mut self) {
        self.end_session();
        self.session = self.recorder.journal().new_session();
    }

    fn end_session(&mut self) {
        for keyspace in std::mem::take(&mut self.used) {
            self.recorder.journal().end_session(&session_name(&self.session, keyspace));
        }
    }

    fn lose_answers(&mut self) {
        self.is_deaf = true;
        self.nothing_more_comes();
    }

    /// What is pending may have been done.
    fn nothing_more_comes(&mut self) {
        for Pending { asked, keyspace, start_us } in std::mem::take(&mut self.pending) {
            match asked {
                Asked::Data(plan) => self.unknown(Effect::possible(&plan), keyspace, start_us),
                Asked::Queued(plan) => self.queued.push(plan),
                Asked::Exec => {
                    let plans = std::mem::take(&mut self.queued);
                    self.unknown(Effect::of_all(plans.iter().map(Effect::possible)), keyspace, start_us);
                }
                Asked::Discard | Asked::Reset => self.queued.clear(),
                _ => {}
            }
        }
        self.pending_bytes = self.queued.iter().map(Plan::bytes).sum();
    }
}

impl Drop for RecordedConnection {
    fn drop(&mut self) {
        self.on_end();
    }
}

impl Asked {
    fn bytes(&self) -> usize {
        match self {
            Asked::Data(plan) | Asked::Queued(plan) => plan.bytes(),
            _ => 64,
        }
    }
}

fn refusal(reply: &Reply) -> Option<Refusal> {
    let code = code(reply)?;
    Some(if NOTHING_DONE.contains(&code) { Refusal::NothingDone } else { Refusal::NobodyKnows })
}

/// The first word of an error.
fn code(reply: &Reply) -> Option<&str> {
    let Reply::Error(words) = reply else { return None };
    Some(words.split(' ').next().unwrap_or_default())
}

/// Keyspaces have pasts of their own.
fn session_name(session: &str, keyspace: u8) -> String {
    if keyspace == 0 { session.into() } else { format!("{session}/{keyspace}") }
}
