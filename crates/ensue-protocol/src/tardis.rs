//! `tardis`: states that fork when transactions conflict, and merge when the application says so.
//!
//! Crooks, Pu, Estrada, Gupta, Alvisi, Clement, "TARDiS: A Branch-and-Merge Approach To Weak Consistency", SIGMOD 2016. The six questions
//! are few words here, because a keyspace of this protocol is a graph of states (`ensue-branch`) and not rows:
//!
//! - Context: the session's anchor, the state that it last committed or read at. Dependencies: a commit carries its parents' names.
//! - Visibility: when the parents are here. Choice: the newest version on the branch that the transaction chose by its constraint.
//! - Snapshot: every transaction reads one state. Forgetting: ceilings.
//!
//! What a session remembers is in `anchor.rs`.

use crate::anchor::{ANCHORS_MAX, Anchor};
use crate::{Capabilities, Malformed, Needs, Past, Protocol, SnapshotReads, Verdict, facts};
use ensue_types::{Opaque, OperationId, Source};

/// In the configuration.
pub const NAME: &str = "tardis";

/// The protocol of branches.
#[derive(Debug)]
pub struct Tardis;

impl Protocol for Tardis {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            // One owner reads and writes at one state whatever it is asked together.
            snapshot_reads: SnapshotReads::None,
            write_transactions: true,
            causality: true,
            available: true,
        }
    }

    fn needs(&self) -> Needs {
        Needs { one_stream: true, branches: true, ..Needs::default() }
    }

    fn observe(&self, _context: &mut Opaque, _sources: &[Source]) {}

    fn remembers_settled(&self) -> bool {
        true
    }

    fn wrote(&self, _context: &mut Opaque, _write: &Source) {}

    fn join(&self, context: &mut Opaque, other: &Opaque) -> Result<(), Malformed> {
        let mut own = Anchor::decode(context)?;
        let other = Anchor::decode(other)?;
        own.states.extend(other.states);
        own.states.sort_unstable_by(|a, b| b.cmp(a));
        own.states.dedup();
        facts::add(&mut own.operations, other.operations, ANCHORS_MAX);
        *context = own.encode();
        Ok(())
    }

    fn past(&self, context: &Opaque) -> Result<Past, Malformed> {
        Ok(Past::Operations(Anchor::decode(context)?.operations))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_past_is_taken_over_but_not_its_ways() {
        let mut own = Anchor { begin: b"ANY".to_vec(), states: vec![3], ..Anchor::default() }.encode();
        let other =
            Anchor { open: true, end: b"PARENT".to_vec(), states: vec![7, 3], ..Anchor::default() }.encode();
        Tardis.join(&mut own, &other).unwrap();
        let joined = Anchor::decode(&own).unwrap();
        assert_eq!((joined.open, &joined.begin[..], joined.end.len()), (false, &b"ANY"[..], 0));
        assert_eq!(joined.states, [7, 3]);
    }
}
