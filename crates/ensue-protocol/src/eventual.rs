//! `eventual`: no order is promised but the last writer's, and every datacenter ends with the same data.
//!
//! - Context: nothing. Dependencies: nothing. Visibility: at once. Choice: the newest stamp, also while a transaction is
//!   undecided. Snapshot: none, reads over several keys are plain parallel reads, writes plain parallel writes.
//!   Forgetting: old versions at once.
//!
//! It is the baseline that the others are measured against, and the story that `ensue demo` tells as a warning.

use crate::{Capabilities, Malformed, Past, Protocol, SnapshotReads, Verdict};
use ensue_types::{Opaque, OperationId, Source};

/// The protocol without causality.
#[derive(Debug)]
pub struct Eventual;

impl Protocol for Eventual {
    fn name(&self) -> &'static str {
        "eventual"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            snapshot_reads: SnapshotReads::None,
            write_transactions: false,
            causality: false,
            available: true,
        }
    }

    fn observe(&self, _context: &mut Opaque, _sources: &[Source]) {}

    fn remembers_settled(&self) -> bool {
        false
    }

    fn wrote(&self, _context: &mut Opaque, _write: &Source) {}

    fn join(&self, _context: &mut Opaque, _other: &Opaque) -> Result<(), Malformed> {
        Ok(())
    }

    fn past(&self, _context: &Opaque) -> Result<Past, Malformed> {
        Ok(Past::Operations(Vec::new()))
    }

    fn dependencies(&self, _context: &Opaque, _observed: &[Source]) -> Opaque {
        Opaque::default()
    }

    fn verdict(&self, _operation: OperationId, _dependencies: &Opaque) -> Result<Verdict, Malformed> {
        Ok(Verdict::Now)
    }

    fn keeps_old_versions(&self) -> bool {
        false
    }
}
