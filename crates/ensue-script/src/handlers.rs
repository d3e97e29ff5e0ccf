//! Handlers of conflicts: Lua texts that make one value of values that stand beside each other.
//!
//! The siblings of a location arrive, lowest stamp first; a value, nothing, or why there is none leaves. The same
//! siblings come to the same in every process: a handler reaches nothing that differs between two of them, it is
//! stopped after a number of steps that is counted and not measured, and for memory exactly where a new interpreter
//! would have stopped it. Interpreters are kept for the next call, and nothing that a handler could read is left in
//! them.

mod proof;

pub use proof::{HandlerRefused, HandlerWarning};

use crate::engine::handlers::Interpreter;
use crate::sha1::Sha1;
use bytes::Bytes;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// One of the values that stand beside each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandledSibling {
    /// Nothing for a delete.
    pub value: Option<Bytes>,
    /// Sorts as stamps do.
    pub stamp: String,
    /// The number of the datacenter that wrote it, from one.
    pub datacenter: u32,
}

/// What bounds one call of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandlerLimits {
    pub steps_max: u64,
    /// Bytes that it allocates: nothing is collected before it has ended.
    pub memory_bytes_max: usize,
    /// Bytes of all that it is given, and of what it returns.
    pub value_bytes_max: usize,
}

/// Why a handler made nothing of some siblings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandlerFailure {
    /// An error of its own.
    Error(String),
    Steps,
    Memory,
    /// The values together are longer than a handler is given.
    Given,
    /// What it returned is longer than a value that is shown.
    Returned,
    /// It returned neither one string nor one nil.
    Kind(String),
}

impl fmt::Display for HandlerFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandlerFailure::Error(words) => f.write_str(words),
            HandlerFailure::Steps => f.write_str("it took more steps than a handler may take"),
            HandlerFailure::Memory => f.write_str("it took more memory than a handler may take"),
            HandlerFailure::Given => f.write_str("the values together are longer than a handler is given"),
            HandlerFailure::Returned => f.write_str("it returned more than a handler may return"),
            HandlerFailure::Kind(kind) => write!(f, "it returned {kind}, and not a string or nil"),
        }
    }
}

/// A handler that compiles.
pub struct HandlerScript {
    text: Bytes,
    compiled: Vec<u8>,
    limits: HandlerLimits,
    /// Those that no call uses just now. The lock is held to take one out and to put it back, never while a script
    /// runs: cores that share a handler do not wait for each other, and there are as many as ever ran at once.
    idle: Mutex<Vec<Interpreter>>,
}

/// Bytes of garbage with which an interpreter is not kept: to begin anew is cheaper than to collect.
const GARBAGE_BYTES_MAX: usize = 4 << 20;

impl HandlerScript {
    /// Compiles a text, or says what is wrong with it.
    pub fn compile(text: &[u8], limits: HandlerLimits) -> Result<HandlerScript, String> {
        let compiled = Interpreter::compile(text)?;
        let text = Bytes::copy_from_slice(text);
        Ok(HandlerScript { text, compiled, limits, idle: Mutex::default() })
    }

    /// What names the text.
    pub fn digest(&self) -> Sha1 {
        Sha1::of(&self.text)
    }

    /// What it makes of the siblings, of which there are two or more.
    pub fn fold(&self, siblings: &[HandledSibling]) -> Result<Option<Bytes>, HandlerFailure> {
        self.check_given(siblings)?;
        let idle = self.idle().pop();
        let interpreter = idle.map_or_else(|| self.interpreter(), Ok)?;
        let before = interpreter.memory_bytes();
        let folded = interpreter.fold(siblings, self.limits);
        let after = interpreter.memory_bytes();
        if interpreter.garbage_bytes() <= GARBAGE_BYTES_MAX {
            self.idle().push(interpreter);
        }
        // A kept interpreter has strings already that a new one allocates, at most its garbage. With half of the bound
        // left it is clear what a new one would have come to; else a new one says it.
        let is_clear = folded != Err(HandlerFailure::Memory)
            && after.saturating_sub(before) + GARBAGE_BYTES_MAX <= self.limits.memory_bytes_max / 2;
        if is_clear { folded } else { self.fold_anew(siblings) }
    }

    /// The same in an interpreter that nobody has used, which is what the bound of memory is about.
    pub(crate) fn fold_anew(&self, siblings: &[HandledSibling]) -> Result<Option<Bytes>, HandlerFailure> {
        self.check_given(siblings)?;
        self.interpreter()?.fold(siblings, self.limits)
    }

    fn check_given(&self, siblings: &[HandledSibling]) -> Result<(), HandlerFailure> {
        let values = siblings.iter().filter_map(|sibling| sibling.value.as_ref());
        let bytes: usize = values.map(Bytes::len).sum();
        if bytes <= self.limits.value_bytes_max { Ok(()) } else { Err(HandlerFailure::Given) }
    }

    fn interpreter(&self) -> Result<Interpreter, HandlerFailure> {
        Interpreter::new(&self.compiled, self.limits.memory_bytes_max).map_err(HandlerFailure::Error)
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Interpreter>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for HandlerScript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerScript").field("digest", &self.digest()).finish_non_exhaustive()
    }
}

#[cfg(all(test, feature = "luau"))]
mod tests;
