//! What a run may use: steps, which the interpreter counts, and memory, which its allocator bounds.
//!
//! Once a run is stopped, every further step fails, so that nothing in the script can catch it for good. Steps are
//! counted and not measured in time: the same script stops at the same place everywhere.

use ensue_types::Reply;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Bytes that are written or looked at in about the time of one step.
const BYTES_PER_STEP: u64 = 64;
/// Bytes that may be allocated for the price of one step.
const ALLOCATED_PER_STEP: u64 = 256;

/// See the module. It is shared with closures of the interpreter; only one thread ever uses it at a time.
#[derive(Debug, Default)]
pub struct Budget {
    left: AtomicU64,
    memory: AtomicUsize,
    stopped: Mutex<Option<Stop>>,
}

/// Why a run was stopped.
#[derive(Clone, Debug)]
pub enum Stop {
    Steps,
    Memory,
    /// By who carries out its commands, with this answer.
    Told(Reply),
}

impl Stop {
    pub fn reply(self) -> Reply {
        match self {
            Stop::Steps => Reply::error(
                "SCRIPTSTOPPED the script took more steps than a script may take; it was stopped and has \
                 changed nothing",
            ),
            Stop::Memory => Reply::error(
                "SCRIPTSTOPPED the script took more memory than a script may take; it was stopped and has \
                 changed nothing",
            ),
            Stop::Told(reply) => reply,
        }
    }
}

impl Budget {
    pub fn begin(&self, steps: u64, memory: usize) {
        self.left.store(steps, Ordering::Relaxed);
        self.memory.store(memory, Ordering::Relaxed);
        *self.reason() = None;
    }

    pub fn spent(&self, steps: u64) -> u64 {
        steps - self.left.load(Ordering::Relaxed).min(steps)
    }

    /// Takes steps, or stops the run.
    pub fn spend(&self, steps: u64) -> mlua::Result<()> {
        match self.left.load(Ordering::Relaxed).checked_sub(steps) {
            Some(left) if left > 0 => {
                self.left.store(left, Ordering::Relaxed);
                Ok(())
            }
            _ => Err(self.stop(Stop::Steps)),
        }
    }

    /// Takes the steps that go through so many bytes last.
    pub fn spend_bytes(&self, bytes: usize) -> mlua::Result<()> {
        self.spend(bytes as u64 / BYTES_PER_STEP)
    }

    /// One step of the interpreter, which now holds so much.
    pub fn on_interrupt(&self, memory: usize) -> mlua::Result<()> {
        let before = self.memory.swap(memory, Ordering::Relaxed);
        self.spend(1 + memory.saturating_sub(before) as u64 / ALLOCATED_PER_STEP)
    }

    /// Stops the run for good; the first reason stays.
    pub fn stop(&self, why: Stop) -> mlua::Error {
        self.left.store(0, Ordering::Relaxed);
        self.reason().get_or_insert(why);
        mlua::Error::runtime("the script was stopped")
    }

    pub fn stopped(&self) -> Option<Stop> {
        self.reason().clone()
    }

    fn reason(&self) -> std::sync::MutexGuard<'_, Option<Stop>> {
        self.stopped.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
