//! The interpreter of a handler of conflicts: the prelude without what differs between two machines, and one compiled
//! text.
//!
//! Siblings arrive, a value leaves. Steps are counted by loops, calls and lengths alone. What an allocation takes from
//! the budget of a script depends on when garbage was collected, and so on what ran before: here it takes nothing, and
//! garbage is never collected, so that a bound of memory is one of what the text allocates.

use super::budget::{Budget, Steps, Stop};
use super::json::Settings;
use super::random::Random;
use super::{PRELUDE, is_short_of_memory, libraries, one_line};
use crate::handlers::{HandledSibling, HandlerFailure, HandlerLimits};
use bytes::Bytes;
use mlua::{ChunkMode, Compiler, Lua, LuaOptions, MultiValue, StdLib, Table, Value, VmState};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What the text finds under this name. It stands before its first line, whose number stays.
const SIBLINGS: &[u8] = b"local siblings = ... ";
/// How an error of the text begins, and what it is shown as.
const PLACE: &str = "user_script:";
const LINE: &str = "line ";
/// Characters of an error that are shown.
const WORDS_MAX: usize = 160;

/// See the module.
pub struct Interpreter {
    lua: Lua,
    budget: Arc<Budget>,
    /// Of `cjson`: what a call sets ends with it.
    settings: Arc<Settings>,
    /// Of the prelude: calls the text, and says what came of it.
    run: mlua::Function,
    text: mlua::Function,
    memory_bytes_at_first: usize,
}

impl Interpreter {
    /// A text as interpreters take it, or what is wrong with it.
    pub fn compile(text: &[u8]) -> Result<Vec<u8>, String> {
        let compiled = compiler().compile([SIBLINGS, text].concat()).map_err(|error| match error {
            mlua::Error::SyntaxError { message, .. } => {
                shortened(format!("{LINE}{}", message.trim_start_matches(':')).as_bytes())
            }
            error => said(error),
        })?;
        // Whether an interpreter takes it is known when one has.
        Interpreter::build(&compiled, 0).map_err(said)?;
        Ok(compiled)
    }

    pub fn new(compiled: &[u8], memory_bytes_max: usize) -> Result<Interpreter, String> {
        Interpreter::build(compiled, memory_bytes_max).map_err(said)
    }

    fn build(compiled: &[u8], memory_bytes_max: usize) -> mlua::Result<Interpreter> {
        let libraries = StdLib::COROUTINE | StdLib::TABLE | StdLib::STRING | StdLib::MATH | StdLib::DEBUG;
        let lua = Lua::new_with(libraries, LuaOptions::default())?;
        lua.gc_stop();
        let budget = Arc::new(Budget::default());
        budget.begin(Steps::unbroken(u64::MAX), 0);
        let globals = lua.globals();
        lua.set_compiler(compiler());
        let natives = lua.create_table()?;
        let unused = (Arc::new(Random::default()), Arc::new(AtomicBool::new(false)));
        libraries::register(&lua, &natives, (&budget, &unused.0, &unused.1))?;
        let settings = Arc::new(Settings::default());
        libraries::register_settings(&lua, &natives, &settings)?;
        natives.raw_set("for_handlers", true)?;
        let prelude = lua.load(prelude()).set_name("=script").set_mode(ChunkMode::Binary).into_function()?;
        let run: mlua::Function = prelude.call(natives)?;
        globals.set_readonly(true);
        globals.set_safeenv(true);
        let text = lua.load(compiled).set_name(super::CHUNK).set_mode(ChunkMode::Binary).into_function()?;
        lua.set_memory_limit(memory_bytes_max)?;
        let counted = budget.clone();
        lua.set_interrupt(move |_| {
            counted.spend(1)?;
            Ok(VmState::Continue)
        });
        let memory_bytes_at_first = lua.used_memory();
        Ok(Interpreter { lua, budget, settings, run, text, memory_bytes_at_first })
    }

    pub fn memory_bytes(&self) -> usize {
        self.lua.used_memory()
    }

    /// What earlier calls have left.
    pub fn garbage_bytes(&self) -> usize {
        self.memory_bytes().saturating_sub(self.memory_bytes_at_first)
    }

    pub fn fold(
        &self,
        siblings: &[HandledSibling],
        limits: HandlerLimits,
    ) -> Result<Option<Bytes>, HandlerFailure> {
        self.budget.begin(Steps::unbroken(limits.steps_max), 0);
        self.settings.begin();
        let result = self.call(siblings, limits);
        match self.budget.stopped() {
            Some(Stop::Memory) => return Err(HandlerFailure::Memory),
            Some(_) => return Err(HandlerFailure::Steps),
            None => {}
        }
        result.unwrap_or_else(|error| match error {
            mlua::Error::MemoryError(_) => Err(HandlerFailure::Memory),
            error => Err(HandlerFailure::Error(said(error))),
        })
    }

    fn call(
        &self,
        siblings: &[HandledSibling],
        limits: HandlerLimits,
    ) -> mlua::Result<Result<Option<Bytes>, HandlerFailure>> {
        let given = self.given(siblings)?;
        let mut returned: MultiValue = self.run.call((&self.text, given))?;
        if !matches!(returned.pop_front(), Some(Value::Boolean(true))) {
            let words = match returned.pop_front() {
                Some(Value::String(words)) => shortened(&words.as_bytes()),
                _ => "an error that is no text".to_owned(),
            };
            return Ok(Err(match is_short_of_memory(words.as_bytes()) {
                true => HandlerFailure::Memory,
                false => HandlerFailure::Error(words),
            }));
        }
        let kind = |words: &str| Ok(Err(HandlerFailure::Kind(words.to_owned())));
        if returned.len() != 1 {
            return kind(if returned.is_empty() { "nothing" } else { "several values" });
        }
        match returned.pop_front() {
            Some(Value::Nil) => Ok(Ok(None)),
            Some(Value::String(value)) if value.as_bytes().len() > limits.value_bytes_max => {
                Ok(Err(HandlerFailure::Returned))
            }
            Some(Value::String(value)) => Ok(Ok(Some(Bytes::copy_from_slice(&value.as_bytes())))),
            Some(Value::Integer(_) | Value::Number(_)) => kind("a number"),
            other => kind(&format!("a {}", other.map_or("nil", |value| value.type_name()))),
        }
    }

    fn given(&self, siblings: &[HandledSibling]) -> mlua::Result<Table> {
        let all = self.lua.create_table_with_capacity(siblings.len(), 0)?;
        for sibling in siblings {
            let one = self.lua.create_table_with_capacity(0, 3)?;
            if let Some(value) = &sibling.value {
                one.raw_set("value", self.lua.create_string(value)?)?;
            }
            one.raw_set("stamp", self.lua.create_string(&sibling.stamp)?)?;
            one.raw_set("datacenter", sibling.datacenter)?;
            all.raw_push(one)?;
        }
        Ok(all)
    }
}

/// The prelude as interpreters take it.
fn prelude() -> &'static [u8] {
    static COMPILED: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    COMPILED.get_or_init(|| compiler().compile(PRELUDE).expect("the prelude is ours"))
}

/// As for scripts; and what the prelude replaces for handlers is not taken for what the compiler knows.
fn compiler() -> Compiler {
    Compiler::new().set_optimization_level(1).set_debug_level(1).set_disabled_builtins([
        "tonumber",
        "table.insert",
        "tostring",
        "string.format",
    ])
}

/// An error, as one line.
fn said(error: mlua::Error) -> String {
    shortened(error.to_string().as_bytes())
}

fn shortened(words: &[u8]) -> String {
    let words = one_line(words).replace(PLACE, LINE);
    words.strip_prefix("ERR ").unwrap_or(&words).chars().take(WORDS_MAX).collect()
}
