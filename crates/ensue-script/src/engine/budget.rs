//! What a run may use: steps, which the interpreter counts, and memory, which its allocator bounds; and after how many
//! steps it pauses.
//!
//! Once a run is stopped, every further step fails, so that nothing in the script can catch it for good. Steps are
//! counted and not measured in time: the same script pauses and stops at the same place everywhere. A run that is to
//! pause and stands where it cannot goes on, up to a bound of its own.

use ensue_types::Reply;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Bytes that are written or looked at in about the time of one step.
const BYTES_PER_STEP: u64 = 64;
/// Bytes that may be allocated for the price of one step.
const ALLOCATED_PER_STEP: u64 = 256;
/// Bytes of what lives that a collection goes through in about the time of one step.
const COLLECTED_PER_STEP: u64 = 1_024;

/// See the module. It is shared with closures of the interpreter; only one thread ever uses it at a time.
#[derive(Debug, Default)]
pub struct Budget {
    left: AtomicU64,
    /// Steps until the run is stopped unless it pauses before.
    unbroken: AtomicU64,
    /// The run is to pause when so few are left of those.
    pauses_at: AtomicU64,
    limits: Mutex<Steps>,
    memory: AtomicUsize,
    stopped: Mutex<Option<Stop>>,
}

/// The steps of one run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Steps {
    pub all: u64,
    /// Between two pauses, where it cannot pause.
    pub unbroken: u64,
    /// After so many it pauses.
    pub stretch: u64,
}

impl Steps {
    /// A run that never pauses.
    pub fn unbroken(steps: u64) -> Steps {
        Steps { all: steps, unbroken: steps, stretch: u64::MAX }
    }
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
    pub fn begin(&self, steps: Steps, memory: usize) {
        self.left.store(steps.all, Ordering::Relaxed);
        *self.reason() = None;
        *self.limits() = steps;
        self.go_on(memory);
    }

    /// The run begins, or goes on after a pause, with what the interpreter holds now.
    pub fn go_on(&self, memory: usize) {
        self.memory.store(memory, Ordering::Relaxed);
        let Steps { unbroken, stretch, .. } = *self.limits();
        self.unbroken.store(unbroken, Ordering::Relaxed);
        self.pauses_at.store(unbroken.saturating_sub(stretch), Ordering::Relaxed);
    }

    /// It could not pause where it was told to, and is told again later.
    pub fn pause_later(&self) {
        let later = self.unbroken.load(Ordering::Relaxed).saturating_sub(self.limits().stretch);
        self.pauses_at.store(later, Ordering::Relaxed);
    }

    /// Whether the run is to pause now.
    pub fn is_to_pause(&self) -> bool {
        self.unbroken.load(Ordering::Relaxed) < self.pauses_at.load(Ordering::Relaxed)
    }

    pub fn spent(&self, steps: u64) -> u64 {
        steps - self.left.load(Ordering::Relaxed).min(steps)
    }

    /// Takes steps, or stops the run.
    pub fn spend(&self, steps: u64) -> mlua::Result<()> {
        let left = self.left.load(Ordering::Relaxed).checked_sub(steps);
        let unbroken = self.unbroken.load(Ordering::Relaxed).checked_sub(steps);
        match (left, unbroken) {
            (Some(left), Some(unbroken)) if left > 0 && unbroken > 0 => {
                self.left.store(left, Ordering::Relaxed);
                self.unbroken.store(unbroken, Ordering::Relaxed);
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

    /// All garbage was collected, which went through what is left.
    pub fn on_collected(&self, memory: usize) -> mlua::Result<()> {
        self.memory.store(memory, Ordering::Relaxed);
        self.spend(memory as u64 / COLLECTED_PER_STEP)
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

    fn limits(&self) -> std::sync::MutexGuard<'_, Steps> {
        self.limits.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
