//! The interpreter: Luau, with what Redis puts in a script's reach and nothing else.
//!
//! A compiled script, keys, arguments and whoever carries out its commands arrive; an outcome leaves. Between two runs
//! nothing is left but compiled texts: libraries and globals are frozen, settings are those of the start, and chance
//! begins where the caller says. A run that is stopped by its budget stays stopped, whatever catches errors in it.
//!
//! A run is a coroutine of the interpreter. Where its budget says that it pauses, the interpreter yields out of it, and
//! the caller resumes it, or drops it. One run at a time is under way.

mod bits;
mod budget;
mod convert;
pub mod handlers;
mod json;
mod libraries;
mod msgpack;
mod packed;
mod random;

use crate::libraries::Function;
use crate::scripts::{Call, Called, Calls, Invocation, Outcome, Run, Script};
use crate::sha1::Sha1;
pub use budget::Steps;
use budget::{Budget, Stop};
use bytes::Bytes;
use ensue_types::Reply;
use mlua::{
    ChunkMode, Compiler, FromLuaMulti, Lua, LuaOptions, MultiValue, StdLib, Table, Thread, ThreadStatus,
    Value, VmState,
};
use random::Random;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const PRELUDE: &str = include_str!("engine/prelude.luau");
/// What scripts are called in errors.
const CHUNK: &str = "@user_script";
/// More than this is given back after a run instead of in the next one.
const GARBAGE_BYTES_MAX: usize = 32 << 20;
/// A collection looks at all that there is: it is worth it for so much at least.
const COLLECTED_AT_LEAST: usize = 1 << 20;

/// See the module.
pub struct Engine {
    lua: Lua,
    budget: Arc<Budget>,
    random: Arc<Random>,
    /// The script asked for values as RESP3 has them.
    resp3: Arc<AtomicBool>,
    /// What the script has set of `cjson`.
    json: Arc<json::Settings>,
    globals: Table,
    /// Of the prelude: calls a script, and says what came of it.
    run: mlua::Function,
    /// Of the prelude: the globals of a library while it registers its functions.
    load_globals: Table,
    /// Of the prelude: names who carries out commands from now on.
    set_call: mlua::Function,
    compiled: BTreeMap<Sha1, mlua::Function>,
    under_way: Option<UnderWay>,
    garbage: Arc<Garbage>,
}

/// When the interpreter's garbage is collected next: after the same scripts, at the same place.
struct Garbage {
    due_bytes: AtomicUsize,
    bytes_max: usize,
}

impl Garbage {
    fn new(used: usize, bytes_max: usize) -> Garbage {
        let garbage = Garbage { due_bytes: AtomicUsize::new(0), bytes_max };
        garbage.note_left(used);
        garbage
    }

    fn is_due(&self, used: usize) -> bool {
        used >= self.due_bytes.load(Ordering::Relaxed)
    }

    /// So much is left: the next collection comes when as much again is there, or half of what there is room for.
    fn note_left(&self, used: usize) {
        let room = self.bytes_max.saturating_sub(used);
        let more = used.min(room / 2).max(COLLECTED_AT_LEAST);
        self.due_bytes.store(used + more, Ordering::Relaxed);
    }

    /// Collects all of it, and leaves the collector stopped.
    fn collect(&self, lua: &Lua) {
        // A collection that fails leaves garbage, which the next one finds.
        let _ = lua.gc_collect();
        lua.gc_stop();
        self.note_left(lua.used_memory());
    }
}

/// A run that has begun and not ended.
struct UnderWay {
    thread: Thread,
    /// What the coroutine is called with.
    arguments: Option<Arguments>,
    sha: Sha1,
    /// The function of a library.
    function: Option<String>,
    read_only: bool,
    steps: Steps,
}

type Arguments = (mlua::Function, Option<String>, Table, Table);

impl Engine {
    pub fn new(memory_bytes_max: usize) -> Engine {
        Engine::build(memory_bytes_max).expect("the prelude is ours, and an interpreter has room for it")
    }

    fn build(memory_bytes_max: usize) -> mlua::Result<Engine> {
        let libraries = StdLib::COROUTINE | StdLib::TABLE | StdLib::STRING | StdLib::MATH | StdLib::DEBUG;
        let lua = Lua::new_with(libraries, LuaOptions::default())?;
        let (budget, random) = (Arc::new(Budget::default()), Arc::new(Random::default()));
        let (resp3, json) = (Arc::new(AtomicBool::new(false)), Arc::new(json::Settings::default()));
        let globals = lua.globals();
        lua.set_compiler(compiler());
        let natives = lua.create_table()?;
        libraries::register(&lua, &natives, (&budget, &random, &resp3))?;
        libraries::register_settings(&lua, &natives, &json)?;
        let prelude = lua.load(PRELUDE).set_name("=script").set_mode(ChunkMode::Text).into_function()?;
        let (run, load_globals, set_call): (mlua::Function, Table, mlua::Function) = prelude.call(natives)?;
        globals.set_readonly(true);
        globals.set_safeenv(true);
        lua.set_memory_limit(memory_bytes_max)?;
        // By itself the collector would run at the pace of a clock, and how much a script allocates would depend on it.
        lua.gc_stop();
        let garbage = Arc::new(Garbage::new(lua.used_memory(), memory_bytes_max));
        let (watched, looked_at) = (budget.clone(), garbage.clone());
        lua.set_interrupt(move |lua| {
            watched.on_interrupt(lua.used_memory())?;
            if looked_at.is_due(lua.used_memory()) {
                looked_at.collect(lua);
                watched.on_collected(lua.used_memory())?;
            }
            Ok(if watched.is_to_pause() { VmState::Yield } else { VmState::Continue })
        });
        let (compiled, under_way) = (BTreeMap::new(), None);
        Ok(Engine {
            lua,
            budget,
            random,
            resp3,
            json,
            globals,
            run,
            load_globals,
            set_call,
            compiled,
            under_way,
            garbage,
        })
    }

    pub fn memory_bytes(&self) -> usize {
        self.lua.used_memory()
    }

    /// Compiles a script, or says what is wrong with its text.
    pub fn compile(&mut self, script: &Script) -> Result<(), Reply> {
        self.compile_as(script, "script (new function)")
    }

    fn compile_as(&mut self, script: &Script, what: &str) -> Result<(), Reply> {
        if self.compiled.contains_key(&script.sha) {
            return Ok(());
        }
        // Those that are only compiled, and forgotten again, would leave theirs to nobody.
        if self.under_way.is_none() && self.garbage.is_due(self.lua.used_memory()) {
            self.garbage.collect(&self.lua);
        }
        let function = load(&self.lua, without_first_line(&script.text), CHUNK).map_err(|problem| {
            let words = format!("ERR Error compiling {what}: {problem}");
            Reply::Error(one_line(words.as_bytes()))
        })?;
        self.compiled.insert(script.sha, function);
        Ok(())
    }

    pub fn forget(&mut self, sha: &Sha1) {
        self.compiled.remove(sha);
    }

    /// The functions that a library registers, by name, or what is wrong with it.
    pub fn functions(&mut self, script: &Script, steps_max: u64) -> Result<Vec<Function>, Reply> {
        self.compile_as(script, "function")?;
        self.budget.begin(Steps::unbroken(steps_max), self.lua.used_memory());
        self.random.begin(0);
        let result = self.registered(script);
        let stopped = self.budget.stopped();
        self.budget.begin(Steps::unbroken(u64::MAX), 0);
        let failed = |words: &str| {
            let words = format!("ERR Error registering functions: {words}");
            Reply::Error(one_line(words.as_bytes()))
        };
        match (stopped, result) {
            (Some(Stop::Steps), _) => {
                Err(failed("FUNCTION LOAD timeout: it took more steps than a script may take"))
            }
            (Some(stop), _) => Err(stop.reply()),
            (None, Ok(Ok(functions))) => Ok(functions),
            (None, Ok(Err(words))) => Err(failed(&words)),
            (None, Err(error)) => Err(failed(&error.to_string())),
        }
    }

    /// As it registers, a library sees little; what its functions see comes when they are called.
    fn registered(&self, script: &Script) -> mlua::Result<Result<Vec<Function>, String>> {
        let chunk = self.lua.load(without_first_line(&script.text)).set_name(CHUNK).set_mode(ChunkMode::Text);
        let function = chunk.set_environment(self.load_globals.clone()).into_function()?;
        let (ended, value, _): (bool, Value, Option<i64>) =
            self.run.call((function, "", Value::Nil, Value::Nil))?;
        let made = match (ended, value) {
            (true, Value::Table(made)) => made,
            (_, Value::String(words)) => {
                let words = words.to_string_lossy();
                return Ok(Err(words.strip_prefix("ERR ").unwrap_or(&words).to_owned()));
            }
            _ => return Ok(Err("ERR unknown error".to_owned())),
        };
        let mut functions = Vec::new();
        for function in made.sequence_values::<Table>() {
            let function = function?;
            functions.push(Function {
                name: function.raw_get("name")?,
                description: function.raw_get("description")?,
                flags: function.raw_get("flags")?,
            });
        }
        functions.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(Ok(functions))
    }

    /// Runs a script until it ends or pauses.
    pub fn start(
        &mut self,
        script: &Script,
        with: Invocation<'_>,
        steps: Steps,
        calls: &mut dyn Calls,
    ) -> Option<Run> {
        if let Err(reply) = self.compile(script) {
            return Some(Run { outcome: Outcome::Ended(reply), steps: 0 });
        }
        self.budget.begin(steps, self.lua.used_memory());
        self.random.begin(with.seed);
        self.json.begin();
        self.resp3.store(false, Ordering::Relaxed);
        match self.begin(script, with, steps) {
            Ok(under_way) => self.go_on(under_way, calls),
            Err(error) => Some(self.ended(&script.sha, steps, Err(error))),
        }
    }

    /// The run goes on until it ends or pauses again; nothing if none is under way.
    pub fn resume(&mut self, calls: &mut dyn Calls) -> Option<Run> {
        let under_way = self.under_way.take()?;
        self.go_on(under_way, calls)
    }

    /// Whether a run is under way.
    pub fn is_under_way(&self) -> bool {
        self.under_way.is_some()
    }

    /// The run that is under way ends where it stands; the steps that it took.
    pub fn abandon(&mut self) -> u64 {
        let Some(UnderWay { steps, .. }) = self.under_way.take() else { return 0 };
        let spent = self.budget.spent(steps.all);
        self.tidy_up();
        spent
    }

    fn begin(&self, script: &Script, with: Invocation<'_>, steps: Steps) -> mlua::Result<UnderWay> {
        let function = self.compiled.get(&script.sha).expect("compiled by the caller").clone();
        let (keys, args) = (self.table(with.keys)?, self.table(with.args)?);
        if with.function.is_none() {
            self.globals.set_readonly(false);
            let named =
                self.globals.raw_set("KEYS", &keys).and_then(|()| self.globals.raw_set("ARGV", &args));
            self.globals.set_readonly(true);
            named?;
        }
        let name = with.function.map(str::to_owned);
        Ok(UnderWay {
            thread: self.lua.create_thread(self.run.clone())?,
            arguments: Some((function, name.clone(), keys, args)),
            sha: script.sha,
            function: name,
            read_only: with.read_only || script.read_only,
            steps,
        })
    }

    fn go_on(&mut self, mut under_way: UnderWay, calls: &mut dyn Calls) -> Option<Run> {
        let result = self.evaluate(&mut under_way, calls);
        if matches!(result, Ok(None)) && self.budget.stopped().is_none() {
            self.under_way = Some(under_way);
            return None;
        }
        let result = result.map(|reply| reply.unwrap_or(Reply::Nil));
        Some(self.ended(&under_way.sha, under_way.steps, result))
    }

    fn ended(&mut self, sha: &Sha1, steps: Steps, result: mlua::Result<Reply>) -> Run {
        let spent = self.budget.spent(steps.all);
        let outcome = match (self.budget.stopped(), result) {
            (Some(stop), _) => Outcome::Stopped(stop.reply()),
            (None, Ok(reply)) => Outcome::Ended(reply),
            (None, Err(mlua::Error::MemoryError(_))) => Outcome::Stopped(Stop::Memory.reply()),
            (None, Err(error)) => {
                let words = format!("ERR {error} script: {sha}, on {CHUNK}.");
                Outcome::Ended(Reply::Error(one_line(words.as_bytes())))
            }
        };
        self.tidy_up();
        Run { outcome, steps: spent }
    }

    fn tidy_up(&mut self) {
        // What is done beside scripts is bounded by itself.
        self.budget.begin(Steps::unbroken(u64::MAX), 0);
        if self.lua.used_memory() > GARBAGE_BYTES_MAX {
            self.garbage.collect(&self.lua);
        }
    }

    /// What the script answers, unless it pauses before.
    fn evaluate(&self, under_way: &mut UnderWay, calls: &mut dyn Calls) -> mlua::Result<Option<Reply>> {
        let (lua, budget) = (&self.lua, &*self.budget);
        let read_only = under_way.read_only;
        let is_resp3 = || self.resp3.load(Ordering::Relaxed);
        let values: MultiValue = lua.scope(|scope| {
            let call = scope.create_function_mut(|lua, mut values: MultiValue| {
                // The table that is called comes first.
                values.pop_front();
                let asks = values.pop_front() == Some(Value::Boolean(true));
                let args = match convert::arguments(values) {
                    Ok(args) => args,
                    Err(words) => return Ok((false, Value::String(lua.create_string(words)?))),
                };
                match calls.call(Call { args, read_only, asks }) {
                    Called::Answered(reply, steps) => {
                        budget.spend(steps)?;
                        match reply {
                            Reply::Error(words) => Ok((false, Value::String(lua.create_string(&*words)?))),
                            reply => Ok((true, convert::to_lua(lua, reply, is_resp3())?)),
                        }
                    }
                    Called::Stop(reply) => Err(budget.stop(Stop::Told(reply))),
                }
            })?;
            self.set_call.call::<()>(call)?;
            budget.go_on(lua.used_memory());
            match under_way.arguments.take() {
                Some(arguments) => under_way.thread.resume(arguments),
                None => under_way.thread.resume(()),
            }
        })?;
        if under_way.thread.status() == ThreadStatus::Resumable {
            return Ok(None);
        }
        let (ended, value, line): (bool, Value, Option<i64>) = FromLuaMulti::from_lua_multi(values, lua)?;
        if ended {
            return convert::from_lua(budget, value, is_resp3()).map(Some);
        }
        self.failed(under_way, &value, line).map(Some)
    }

    fn failed(&self, under_way: &UnderWay, value: &Value, line: Option<i64>) -> mlua::Result<Reply> {
        let words = match value {
            Value::String(words) => words.as_bytes().to_vec(),
            _ => b"ERR unknown error".to_vec(),
        };
        if is_short_of_memory(words.strip_prefix(b"ERR ").unwrap_or(&words)) {
            return Err(self.budget.stop(Stop::Memory));
        }
        let mut words = one_line(&words).into_owned();
        let (name, chunk) = match &under_way.function {
            Some(name) => (name.as_str(), "@user_function"),
            None => (under_way.sha.as_str(), CHUNK),
        };
        match line {
            Some(line) => words += &format!(" script: {name}, on {chunk}:{line}."),
            None => words += &format!(" script: {name}"),
        }
        Ok(Reply::Error(words.into()))
    }

    fn table(&self, values: &[Bytes]) -> mlua::Result<Table> {
        let table = self.lua.create_table_with_capacity(values.len(), 0)?;
        for value in values {
            table.raw_push(self.lua.create_string(value)?)?;
        }
        Ok(table)
    }
}

fn compiler() -> Compiler {
    // A global that is no constant must be looked up in every run, and a function that the prelude replaces must not be
    // taken for the one that the compiler knows. What a library may not see is named in the order in which it is read.
    Compiler::new()
        .set_optimization_level(1)
        .set_debug_level(1)
        .set_mutable_globals(["KEYS", "ARGV"])
        .set_disabled_builtins(["tonumber", "table.insert", "getmetatable"])
}

/// Compiles a text under a name; what is wrong with it otherwise.
fn load(lua: &Lua, text: &[u8], name: &str) -> Result<mlua::Function, String> {
    let chunk = lua.load(text).set_name(name).set_mode(ChunkMode::Text);
    chunk.into_function().map_err(|error| match error {
        mlua::Error::SyntaxError { message, .. } => message,
        error => error.to_string(),
    })
}

/// A first line that begins with `#!` is no Lua; its end stays, so that lines keep their numbers.
fn without_first_line(text: &[u8]) -> &[u8] {
    match text.starts_with(b"#!") {
        true => &text[text.iter().position(|&byte| byte == b'\n').unwrap_or(text.len())..],
        false => text,
    }
}

/// Whether an error is the interpreter's own that memory is short: these words alone, or behind a place. A script may
/// say them within an error of its own.
fn is_short_of_memory(words: &[u8]) -> bool {
    words == b"not enough memory" || words.ends_with(b": not enough memory")
}

/// Words as one line of a reply: what ends a line in the protocol must not stand in them.
fn one_line(words: &[u8]) -> Cow<'static, str> {
    let text: String = String::from_utf8_lossy(words)
        .chars()
        .map(|c| if matches!(c, '\r' | '\n') { ' ' } else { c })
        .collect();
    text.into()
}
