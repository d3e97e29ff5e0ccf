//! In place of the interpreter, where it was not built in: every script is answered with an error.

use crate::libraries::Function;
use crate::scripts::{Calls, Invocation, Outcome, Run, Script};
use crate::sha1::Sha1;
use ensue_types::Reply;

const ABSENT: Reply = Reply::error("ERR this server was built without scripts");

pub struct Engine;

impl Engine {
    pub fn new(_memory_bytes_max: usize) -> Engine {
        Engine
    }

    pub fn memory_bytes(&self) -> usize {
        0
    }

    pub fn compile(&mut self, _script: &Script) -> Result<(), Reply> {
        Err(ABSENT)
    }

    pub fn functions(&mut self, _script: &Script, _steps_max: u64) -> Result<Vec<Function>, Reply> {
        Err(ABSENT)
    }

    pub fn forget(&mut self, _sha: &Sha1) {}

    pub fn start(&mut self, _: &Script, _: Invocation<'_>, _: Steps, _: &mut dyn Calls) -> Option<Run> {
        Some(Run { outcome: Outcome::Ended(ABSENT), steps: 0 })
    }

    pub fn resume(&mut self, _: &mut dyn Calls) -> Option<Run> {
        None
    }

    pub fn is_under_way(&self) -> bool {
        false
    }

    pub fn abandon(&mut self) -> u64 {
        0
    }
}

/// The steps of a run, if there were one.
#[expect(dead_code, reason = "there is nothing that takes them")]
#[derive(Clone, Copy, Debug)]
pub struct Steps {
    pub all: u64,
    pub unbroken: u64,
    pub stretch: u64,
}

impl Steps {
    pub fn unbroken(steps: u64) -> Steps {
        Steps { all: steps, unbroken: steps, stretch: u64::MAX }
    }
}

/// The same of handlers of conflicts: there is none.
pub mod handlers {
    use crate::handlers::{HandledSibling, HandlerFailure, HandlerLimits};
    use bytes::Bytes;

    /// See the module.
    pub enum Interpreter {}

    impl Interpreter {
        pub fn compile(_text: &[u8]) -> Result<Vec<u8>, String> {
            Err("this server was built without scripts".to_owned())
        }

        pub fn new(compiled: &[u8], _memory_bytes_max: usize) -> Result<Interpreter, String> {
            Interpreter::compile(compiled).map(|_| unreachable!("nothing is compiled"))
        }

        pub fn memory_bytes(&self) -> usize {
            match *self {}
        }

        pub fn garbage_bytes(&self) -> usize {
            match *self {}
        }

        pub fn fold(&self, _: &[HandledSibling], _: HandlerLimits) -> Result<Option<Bytes>, HandlerFailure> {
            match *self {}
        }
    }
}
