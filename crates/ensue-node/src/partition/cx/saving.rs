//! Checkpoints that an operator asks for: whether one is, and when the last one of the partition ended.
//!
//! The part that writes checkpoints is told here what is wanted, and says here what it has done.

use super::Cx;
use ensue_types::{Now, Reply};
use std::fmt;

/// See the module.
#[derive(Clone)]
pub(in crate::partition) struct Saving {
    /// One is to begin.
    is_wanted: bool,
    /// The one that is being written was asked for.
    is_begun: bool,
    ended_ms: u64,
}

/// When the last one ended decides nothing, so two nodes that differ in it alone are in the same state.
impl fmt::Debug for Saving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Saving({}, {})", self.is_wanted, self.is_begun)
    }
}

impl Saving {
    /// As Redis counts: the data was loaded now, and is on the disk.
    pub(super) fn new(now: Now) -> Saving {
        Saving { is_wanted: false, is_begun: false, ended_ms: now.wall_ms }
    }

    /// Whether a checkpoint is to begin.
    pub(in crate::partition) fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// Whether one that was asked for has not ended.
    pub(in crate::partition) fn is_pending(&self) -> bool {
        self.is_wanted || self.is_begun
    }

    /// When the last one ended, in seconds since 1970.
    pub(in crate::partition) fn ended_s(&self) -> u64 {
        self.ended_ms / 1_000
    }

    pub(in crate::partition) fn note_begun(&mut self) {
        self.is_begun = std::mem::take(&mut self.is_wanted);
    }

    /// It was given up, so another one has to begin.
    pub(in crate::partition) fn note_given_up(&mut self) {
        self.is_wanted |= std::mem::take(&mut self.is_begun);
    }

    pub(in crate::partition) fn note_ended(&mut self, now: Now) {
        (self.is_begun, self.ended_ms) = (false, now.wall_ms);
    }
}

impl Cx {
    /// `BGSAVE` and its kind, and `LASTSAVE`, by their words: a checkpoint begins in time, behind one that began by
    /// itself.
    pub(in crate::partition) fn execute_checkpoint(&mut self, word: &[u8]) -> Reply {
        let was_pending = self.saving.is_pending();
        let wants = word == b"schedule" || !was_pending;
        match word {
            b"when" => return Reply::Integer(self.saving.ended_s() as i64),
            _ => self.saving.is_wanted |= wants,
        }
        match (word, was_pending) {
            (b"save", false) => Reply::OK,
            (b"bgrewriteaof", false) => Reply::Status("Background append only file rewriting started".into()),
            (b"bgrewriteaof", true) => {
                Reply::error("ERR Background append only file rewriting already in progress")
            }
            (_, false) => Reply::Status("Background saving started".into()),
            (b"schedule", true) => Reply::Status("Background saving scheduled".into()),
            (_, true) => Reply::error("ERR Background save already in progress"),
        }
    }
}
