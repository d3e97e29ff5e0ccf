//! What no history shows: that fast reads are spread over the replicas, and that requests that always change are
//! blacklisted.

use super::Violation;
use crate::history::{ObjectId, Value};
use crate::outcomes::OUTCOMES_WINDOW;
use crate::sketcher::{Path, Replica};
use crate::table::Sequence;
use std::collections::BTreeMap;

/// Fast reads in a row to one of four or more replicas: a uniform choice does it once in 4^29 sequences.
const RUN_MAX: usize = 30;

/// Watches one sketcher.
#[derive(Debug, Default)]
pub(super) struct Spread {
    last: Option<Replica>,
    run: usize,
    run_max: usize,
    wasted: BTreeMap<ObjectId, Wasted>,
    wasted_max: usize,
}

/// The newest answer of an object, and how many in a row were newer than the one before, changed, and came after a fast
/// read that failed. An answer that another one has overtaken says nothing about changes.
#[derive(Debug, Default)]
struct Wasted {
    value: Option<Value>,
    sequence: Sequence,
    run: usize,
}

impl Spread {
    /// A fast read is sent to this replica.
    pub(super) fn on_fast_read(&mut self, replica: Replica) {
        self.run = if self.last == Some(replica) { self.run + 1 } else { 1 };
        self.last = Some(replica);
        self.run_max = self.run_max.max(self.run);
    }

    /// A read is answered, if not by one replica then at this place in the order.
    pub(super) fn on_answer(&mut self, object: ObjectId, value: Value, path: Path, sequence: Sequence) {
        let wasted = self.wasted.entry(object).or_default();
        if path != Path::FailedFast {
            wasted.run = 0;
        } else if sequence > wasted.sequence {
            wasted.run = if wasted.value == Some(value) { 0 } else { wasted.run + 1 };
        }
        if path != Path::Fast && sequence > wasted.sequence {
            (wasted.value, wasted.sequence) = (Some(value), sequence);
        }
        self.wasted_max = self.wasted_max.max(wasted.run);
    }

    /// What is wrong, with so many requests at once.
    pub(super) fn violations(&self, sessions: usize) -> Vec<Violation> {
        let mut violations = Vec::new();
        if self.run_max > RUN_MAX {
            violations.push(Violation::OneReplica { fast_reads: self.run_max });
        }
        // Those that were under way when the window filled were begun before.
        if self.wasted_max > OUTCOMES_WINDOW as usize + sessions {
            violations.push(Violation::WastedReads { fast_reads: self.wasted_max });
        }
        violations
    }
}
