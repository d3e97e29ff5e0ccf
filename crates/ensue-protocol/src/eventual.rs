//! `eventual`: no order is promised but the last writer's, and every datacenter ends with the same data.
//!
//! - Context: nothing. Dependencies: nothing. Visibility: at once. Choice: the newest stamp, also while a transaction is
//!   undecided. Snapshot: none, reads over several keys are plain parallel reads, writes plain parallel writes.
//!   Forgetting: old versions at once.
//!
//! It is the baseline that the others are measured against, and the story that `ensue demo` tells as a warning.

use crate::{Capabilities, Malformed, Protocol, Snapshot, Validity, Verdict};
use ensue_types::{Dependency, Opaque, OperationId};

/// The protocol without causality.
#[derive(Debug)]
pub struct Eventual;

impl Protocol for Eventual {
    fn name(&self) -> &'static str {
        "eventual"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { snapshot_reads: false, write_transactions: false, causality: false }
    }

    fn observe(&self, _context: &mut Opaque, _operations: &[OperationId]) {}

    fn wrote(&self, _context: &mut Opaque, _operation: OperationId) {}

    fn join(&self, _context: &mut Opaque, _other: &Opaque) -> Result<(), Malformed> {
        Ok(())
    }

    fn past(&self, _context: &Opaque) -> Result<Vec<Dependency>, Malformed> {
        Ok(Vec::new())
    }

    fn dependencies(&self, _context: &Opaque, _observed: &[OperationId]) -> Opaque {
        Opaque::default()
    }

    fn verdict(&self, _dependencies: &Opaque) -> Result<Verdict, Malformed> {
        Ok(Verdict::Now)
    }

    fn reads_past_undecided(&self) -> bool {
        true
    }

    fn snapshot(&self, _shares: &[Validity]) -> Snapshot {
        Snapshot::Consistent
    }

    fn keeps_old_versions(&self) -> bool {
        false
    }

    fn keeps_versions(&self) -> bool {
        false
    }
}
