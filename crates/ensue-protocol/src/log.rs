//! `log`: one serial stream a datacenter, replayed in its order, and no dependency tracking.
//!
//! The baseline of Lloyd, Freedman, Kaminsky, Andersen, "Don't Settle for Eventual", SOSP 2011, section 6.4: what log serialization
//! and exchange gives (Bayou, PRACTI), and what it costs. The rules:
//!
//! - Everything that a datacenter writes passes one sequencer, and is one stream.
//! - Context: nothing. Dependencies: nothing: the place in the stream is the dependency.
//! - Visibility: in the order of the origin's stream. Entries are received in order, none of them waits for anything, and so
//!   they are merged in order.
//! - Choice: the newest, and a read never waits.
//! - Snapshot: all keys have one owner, so whatever is read or written together is read or written at one moment.
//! - Forgetting: old versions at once.
//!
//! What follows: whoever sees a write has everything that its datacenter had written before it, also what came to be known there by
//! way of other datacenters and was answered by a write there. Streams of different datacenters know nothing of each other: an album that dc2
//! made of a photo of dc1 may be seen in dc3 before the photo. So it is not causal, and a token would promise nothing.
//!
//! Where we differ from the paper:
//! - Its LOG is COPS without dependencies on one server a datacenter. Here that server is the first partition: it owns all keys of
//!   such a keyspace in each datacenter. A sequencer in front of several partitions would give the same order and the same bottleneck.
//! - Stamps arbitrate, and a stamp is above all that its partition had merged: so a later write in the stream wins over all before it.

use crate::{Capabilities, Malformed, Needs, Past, Protocol, SnapshotReads, Verdict};
use ensue_types::{Opaque, OperationId, Rule, Rules, Source};

/// The protocol of one stream a datacenter.
#[derive(Debug)]
pub struct Log {
    rules: Rules,
}

impl Log {
    pub fn new(rules: Rules) -> Log {
        Log { rules }
    }
}

impl Protocol for Log {
    fn name(&self) -> &'static str {
        "log"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            snapshot_reads: SnapshotReads::OneRound,
            write_transactions: true,
            causality: false,
            available: true,
        }
    }

    fn needs(&self) -> Needs {
        Needs { one_stream: self.rules.hold(Rule::OneStreamADatacenter), ..Needs::default() }
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
