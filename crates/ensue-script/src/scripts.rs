//! Known scripts, by text and by digest, and their execution.
//!
//! Their number and their total length are bounded: the oldest are dropped first, and a client that names a dropped one
//! sends its text again. Compiled code is a cache and no state: a copy has the same texts and compiles them again.

use crate::engine::{Engine, Steps};
use crate::libraries::{self, Libraries, Library};
use crate::sha1::Sha1;
use bytes::Bytes;
use ensue_types::Reply;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;

/// A text that compiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    pub sha: Sha1,
    pub text: Bytes,
    /// Its first line says that it writes nothing.
    pub read_only: bool,
    pub growth: Growth,
}

/// What becomes of a script while memory is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// It says nothing of itself: each of its commands is refused or not.
    ByCommand,
    /// It says something, but not that it may run then.
    Refused,
    /// It says that it may run, or that it writes nothing.
    Allowed,
}

impl Growth {
    /// That of a script with these flags.
    pub fn of<'f>(mut flags: impl Iterator<Item = &'f str>) -> Growth {
        match flags.any(|flag| matches!(flag, "allow-oom" | "no-writes")) {
            true => Growth::Allowed,
            false => Growth::Refused,
        }
    }
}

/// What bounds scripts.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Scripts that are known.
    pub scripts_max: usize,
    /// Bytes of their texts together.
    pub text_bytes_max: usize,
    /// Bytes of everything that scripts hold while they run, what is compiled of them included.
    pub memory_bytes_max: usize,
    /// Steps of a run that does not pause: a turn of a loop or a call is one, and what takes long is more. Of one that
    /// does, those between two pauses, where it cannot pause.
    pub steps_max: u64,
    /// Steps of a run that pauses, all together.
    pub paused_steps_max: u64,
    /// After so many steps it pauses.
    pub steps_to_pause: u64,
}

/// What a script is run with.
#[derive(Clone, Copy, Debug)]
pub struct Invocation<'a> {
    pub keys: &'a [Bytes],
    pub args: &'a [Bytes],
    /// It was asked to write nothing.
    pub read_only: bool,
    /// The script is a library, and this the function that is called.
    pub function: Option<&'a str>,
    /// Where the numbers of `math.random` begin.
    pub seed: u64,
}

/// A command of a script.
#[derive(Debug)]
pub struct Call {
    pub args: Vec<Bytes>,
    /// The script may not write.
    pub read_only: bool,
    /// It is not to be carried out: the script asks whether its user may, and is answered 1 or 0.
    pub asks: bool,
}

/// What a command of a script comes to.
#[derive(Debug)]
pub enum Called {
    /// Its answer, and how many steps it counts for.
    Answered(Reply, u64),
    /// The script cannot go on, and nothing that it did counts: its answer.
    Stop(Reply),
}

/// Who carries out the commands of a script.
pub trait Calls {
    fn call(&mut self, call: Call) -> Called;

    /// What the script writes into the log of the server, at a level from 0 (debug) to 3 (warning).
    fn log(&mut self, level: u8, text: &[u8]);
}

/// What a run comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    pub outcome: Outcome,
    pub steps: u64,
}

/// What a script was answered with.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It has ended by itself, with an error or without. What it wrote stays, as in Redis.
    Ended(Reply),
    /// It was stopped: nothing that it did counts.
    Stopped(Reply),
}

/// The scripts that are known, and what runs them.
pub struct Scripts {
    limits: Limits,
    by_sha: BTreeMap<Sha1, Arc<Script>>,
    by_text: BTreeMap<Bytes, Sha1>,
    /// The oldest first.
    queue: VecDeque<Sha1>,
    bytes: usize,
    libraries: Libraries,
    engine: Option<Box<Engine>>,
}

impl Scripts {
    pub fn new(limits: Limits) -> Scripts {
        Scripts {
            limits,
            by_sha: BTreeMap::new(),
            by_text: BTreeMap::new(),
            queue: VecDeque::new(),
            bytes: 0,
            libraries: Libraries::default(),
            engine: None,
        }
    }

    /// How many are known.
    pub fn count(&self) -> usize {
        self.queue.len()
    }

    /// Bytes of their texts.
    pub fn text_bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes that the interpreter holds.
    pub fn memory_bytes(&self) -> usize {
        self.engine.as_ref().map_or(0, |engine| engine.memory_bytes())
    }

    /// The script that a client names.
    pub fn find(&self, sha: &[u8]) -> Option<Arc<Script>> {
        self.by_sha.get(&Sha1::parse(sha)?).cloned()
    }

    /// The script with this text, known from now on; or why it is none.
    pub fn load(&mut self, text: &Bytes) -> Result<Arc<Script>, Reply> {
        if let Some(known) = self.by_text.get(text).and_then(|sha| self.by_sha.get(sha)) {
            return Ok(known.clone());
        }
        let Said { read_only, growth } = said(text)?;
        // Of its own, so that it does not keep a client's whole read buffer alive.
        let text = Bytes::copy_from_slice(text);
        let script = Arc::new(Script { sha: Sha1::of(&text), text, read_only, growth });
        self.engine().compile(&script)?;
        self.keep(script.clone());
        Ok(script)
    }

    /// Forgets all scripts, and whatever the interpreter holds. Libraries stay.
    pub fn flush(&mut self) {
        let libraries = std::mem::take(&mut self.libraries);
        *self = Scripts { libraries, ..Scripts::new(self.limits) };
    }

    /// The libraries of functions.
    pub fn libraries(&self) -> &Libraries {
        &self.libraries
    }

    /// Loads a library of functions, in the place of one of its name if that is wanted; answers its name.
    pub fn load_library(&mut self, text: &Bytes, replace: bool) -> Result<String, Reply> {
        let name = libraries::name_in(text)?;
        if self.libraries.contains(&name) && !replace {
            return Err(Reply::Error(format!("ERR Library '{name}' already exists").into()));
        }
        if self.libraries.text_bytes() + text.len() > self.limits.text_bytes_max {
            return Err(Reply::error("ERR the libraries of functions are too long together"));
        }
        let text = Bytes::copy_from_slice(text);
        let script =
            Arc::new(Script { sha: Sha1::of(&text), text, read_only: false, growth: Growth::ByCommand });
        let steps_max = self.limits.steps_max;
        let functions = self.engine().functions(&script, steps_max)?;
        if functions.is_empty() {
            return Err(Reply::error("ERR No functions registered"));
        }
        self.libraries.insert(Library { name: name.clone(), script, functions })?;
        Ok(name)
    }

    /// Forgets a library; false if there is none of this name.
    pub fn remove_library(&mut self, name: &str) -> bool {
        let Some(library) = self.libraries.remove(name) else { return false };
        if !self.by_sha.contains_key(&library.script.sha) {
            self.engine().forget(&library.script.sha);
        }
        true
    }

    /// Forgets all libraries.
    pub fn flush_libraries(&mut self) {
        let names: Vec<String> = self.libraries.iter().map(|library| library.name.clone()).collect();
        names.iter().for_each(|name| {
            self.remove_library(name);
        });
    }

    /// Runs a script to its end; it calls for as many commands as it likes.
    pub fn run(&mut self, script: &Script, invocation: Invocation<'_>, calls: &mut dyn Calls) -> Run {
        let steps = Steps::unbroken(self.limits.steps_max);
        let run = self.engine().start(script, invocation, steps, calls);
        run.expect("it has no steps after which it pauses")
    }

    /// Runs a script until it ends, or pauses: then it is under way, and no other script may be run before its end.
    pub fn start(
        &mut self,
        script: &Script,
        invocation: Invocation<'_>,
        calls: &mut dyn Calls,
    ) -> Option<Run> {
        let Limits { steps_max, paused_steps_max, steps_to_pause, .. } = self.limits;
        let steps = Steps { all: paused_steps_max, unbroken: steps_max, stretch: steps_to_pause };
        self.engine().start(script, invocation, steps, calls)
    }

    /// The script that is under way goes on until it ends or pauses again. A copy of what ran it cannot go on.
    pub fn resume(&mut self, calls: &mut dyn Calls) -> Option<Run> {
        match self.engine().is_under_way() {
            true => self.engine().resume(calls),
            false => Some(Run { outcome: Outcome::Stopped(COPIED), steps: 0 }),
        }
    }

    /// The script that is under way is stopped, and has this answer.
    pub fn stop(&mut self, reply: Reply) -> Run {
        Run { steps: self.engine().abandon(), outcome: Outcome::Stopped(reply) }
    }

    fn engine(&mut self) -> &mut Engine {
        let memory = self.limits.memory_bytes_max;
        self.engine.get_or_insert_with(|| Box::new(Engine::new(memory)))
    }

    fn keep(&mut self, script: Arc<Script>) {
        self.bytes += script.text.len();
        self.queue.push_back(script.sha);
        self.by_text.insert(script.text.clone(), script.sha);
        self.by_sha.insert(script.sha, script);
        while self.queue.len() > self.limits.scripts_max
            || (self.bytes > self.limits.text_bytes_max && self.queue.len() > 1)
        {
            let oldest = self.queue.pop_front().and_then(|sha| self.by_sha.remove(&sha));
            let Some(oldest) = oldest else { return };
            self.bytes -= oldest.text.len();
            self.by_text.remove(&oldest.text);
            self.engine().forget(&oldest.sha);
        }
    }
}

/// Whether the first line of a text says that it writes nothing.
pub fn says_no_writes(text: &[u8]) -> bool {
    said(text).is_ok_and(|said| said.read_only)
}

/// What a script says of itself.
struct Said {
    read_only: bool,
    growth: Growth,
}

/// What stands in the first line after `#!`, if there is such a line.
fn said(text: &[u8]) -> Result<Said, Reply> {
    let nothing = Said { read_only: false, growth: Growth::ByCommand };
    let Some(line) = text.strip_prefix(b"#!") else { return Ok(nothing) };
    let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.split_ascii_whitespace();
    let engine = words.next().unwrap_or_default();
    if !engine.eq_ignore_ascii_case("lua") {
        return Err(Reply::Error(format!("ERR Unexpected engine in script shebang: #!{engine}").into()));
    }
    let mut all = Vec::new();
    for word in words {
        let Some(flags) = word.strip_prefix("flags=") else {
            return Err(Reply::Error(format!("ERR Unknown lua shebang option: {word}").into()));
        };
        for flag in flags.split(',') {
            match flag {
                "no-writes" | "allow-oom" | "allow-stale" | "no-cluster" | "allow-cross-slot-keys" | "" => {
                    all.push(flag);
                }
                _ => {
                    let words = format!("ERR Unexpected flag in script shebang: {flag}");
                    return Err(Reply::Error(words.into()));
                }
            }
        }
    }
    Ok(Said { read_only: all.contains(&"no-writes"), growth: Growth::of(all.into_iter()) })
}

const COPIED: Reply = Reply::error("SCRIPTSTOPPED the script was stopped in a copy, and has changed nothing");

impl Clone for Scripts {
    fn clone(&self) -> Scripts {
        Scripts {
            limits: self.limits,
            by_sha: self.by_sha.clone(),
            by_text: self.by_text.clone(),
            queue: self.queue.clone(),
            bytes: self.bytes,
            libraries: self.libraries.clone(),
            engine: None,
        }
    }
}

impl fmt::Debug for Scripts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripts").field("known", &self.queue).finish_non_exhaustive()
    }
}
