//! The interpreter: Luau, with what Redis puts in a script's reach and nothing else.
//!
//! A compiled script, keys, arguments and whoever carries out its commands arrive; an outcome leaves. Between two runs
//! nothing is left but compiled texts: libraries and globals are frozen, settings are those of the start, and chance
//! begins where the caller says. A run that is stopped by
//! its budget stays stopped, whatever catches errors in it.

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
use budget::{Budget, Stop};
use bytes::Bytes;
use ensue_types::Reply;
use mlua::{ChunkMode, Compiler, Lua, LuaOptions, MultiValue, StdLib, Table, Value, VmState};
use random::Random;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const PRELUDE: &str = include_str!("engine/prelude.luau");
/// What scripts are called in errors.
const CHUNK: &str = "@user_script";
/// More than this is given back after a run instead of being collected bit by bit.
const GARBAGE_BYTES_MAX: usize = 32 << 20;

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
    compiled: BTreeMap<Sha1, mlua::Function>,
}

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
        let (run, load_globals): (mlua::Function, Table) = prelude.call(natives)?;
        globals.set_readonly(true);
        globals.set_safeenv(true);
        lua.set_memory_limit(memory_bytes_max)?;
        let watched = budget.clone();
        lua.set_interrupt(move |lua| {
            watched.on_interrupt(lua.used_memory())?;
            Ok(VmState::Continue)
        });
        let compiled = BTreeMap::new();
        Ok(Engine { lua, budget, random, resp3, json, globals, run, load_globals, compiled })
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
        self.budget.begin(steps_max, self.lua.used_memory());
        self.random.begin(0);
        let result = self.registered(script);
        let stopped = self.budget.stopped();
        self.budget.begin(u64::MAX, 0);
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
            self.run.call((Value::Nil, function, "", Value::Nil, Value::Nil))?;
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

    pub fn run(
        &mut self,
        script: &Script,
        with: Invocation<'_>,
        steps_max: u64,
        calls: &mut dyn Calls,
    ) -> Run {
        if let Err(reply) = self.compile(script) {
            return Run { outcome: Outcome::Ended(reply), steps: 0 };
        }
        self.budget.begin(steps_max, self.lua.used_memory());
        self.random.begin(with.seed);
        self.json.begin();
        self.resp3.store(false, Ordering::Relaxed);
        let result = self.evaluate(script, with, calls);
        let steps = self.budget.spent(steps_max);
        let outcome = match (self.budget.stopped(), result) {
            (Some(stop), _) => Outcome::Stopped(stop.reply()),
            (None, Ok(reply)) => Outcome::Ended(reply),
            (None, Err(mlua::Error::MemoryError(_))) => Outcome::Stopped(Stop::Memory.reply()),
            (None, Err(error)) => {
                let words = format!("ERR {error} script: {}, on {CHUNK}.", script.sha);
                Outcome::Ended(Reply::Error(one_line(words.as_bytes())))
            }
        };
        // What is done beside scripts is bounded by itself.
        self.budget.begin(u64::MAX, 0);
        if self.lua.used_memory() > GARBAGE_BYTES_MAX {
            // A collection that fails leaves garbage, which the next one finds.
            let _ = self.lua.gc_collect();
        }
        Run { outcome, steps }
    }

    fn evaluate(&self, script: &Script, with: Invocation<'_>, calls: &mut dyn Calls) -> mlua::Result<Reply> {
        let (lua, budget) = (&self.lua, &*self.budget);
        let function = self.compiled.get(&script.sha).expect("compiled by the caller").clone();
        let (keys, args) = (self.table(with.keys)?, self.table(with.args)?);
        if with.function.is_none() {
            self.globals.set_readonly(false);
            let named =
                self.globals.raw_set("KEYS", &keys).and_then(|()| self.globals.raw_set("ARGV", &args));
            self.globals.set_readonly(true);
            named?;
        }
        let read_only = with.read_only || script.read_only;
        let is_resp3 = || self.resp3.load(Ordering::Relaxed);
        let (ended, value, line): (bool, Value, Option<i64>) = lua.scope(|scope| {
            let call = scope.create_function_mut(|lua, mut values: MultiValue| {
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
            self.run.call((call, function, with.function, keys, args))
        })?;
        if ended {
            return convert::from_lua(budget, value, is_resp3());
        }
        let words = match &value {
            Value::String(words) => words.as_bytes().to_vec(),
            _ => b"ERR unknown error".to_vec(),
        };
        if words.ends_with(b"not enough memory") {
            return Err(budget.stop(Stop::Memory));
        }
        let mut words = one_line(&words).into_owned();
        let (name, chunk) = match with.function {
            Some(name) => (name, "@user_function"),
            None => (script.sha.as_str(), CHUNK),
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
    // taken for the one that the compiler knows.
    Compiler::new()
        .set_optimization_level(1)
        .set_debug_level(1)
        .set_mutable_globals(["KEYS", "ARGV"])
        .set_disabled_builtins(["tonumber", "table.insert"])
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

/// Words as one line of a reply: what ends a line in the protocol must not stand in them.
fn one_line(words: &[u8]) -> Cow<'static, str> {
    let text: String = String::from_utf8_lossy(words)
        .chars()
        .map(|c| if matches!(c, '\r' | '\n') { ' ' } else { c })
        .collect();
    text.into()
}
