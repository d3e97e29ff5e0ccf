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

    pub fn run(&mut self, _: &Script, _: Invocation<'_>, _steps_max: u64, _: &mut dyn Calls) -> Run {
        Run { outcome: Outcome::Ended(ABSENT), steps: 0 }
    }
}
