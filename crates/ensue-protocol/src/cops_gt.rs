//! `cops-gt`: causal+ with read transactions, by lists of all dependencies; a write waits for the nearest where it
//! arrives.
//!
//! Lloyd, Freedman, Kaminsky, Andersen, "Don't Settle for Eventual: Scalable Causal Consistency for Wide-Area Storage
//! with COPS", SOSP 2011, sections 4 and 5.1. The rules:
//!
//! - On a get: add what was read, and all that it depends on, to the context (4.3).
//! - On a put: the context is what the put depends on, stored with it and carried by it, the nearest marked. Then the
//!   put is added to the context, and is what is nearest (4.3).
//! - On a put from elsewhere: commit it after a `dep_check` of each nearest dependency (4.4).
//! - `get_trans`, first round: the newest version of each key, with all that it depends on. If one depends on something
//!   that another one's answer lacks, that one is read again, with what the first round named (4.6, figure 7).
//! - Versions are kept for `trans_time`, `read_transaction_timeout_ms`; a transaction that outlives it starts again
//!   (5.1).
//! - Dependencies are forgotten when what carries them has been in every datacenter for that long; so is what a context
//!   names, by never-depend and by the global checkpoint, which the partitions tell each other ten times a second
//!   (5.1).
//!
//! Where we differ from the paper:
//! - A dependency names the operation that wrote a version, not key and version, so that a check asks for that very
//!   write (trap 1). One that writes several keys of a partition is one dependency. Compressed, it takes a byte or two
//!   beside its neighbours.
//! - Keys of one partition are read at one moment, and are one share of a transaction. A share has what the values of
//!   another one depend on if it was read after those became visible here, by logical time, or if its own values name
//!   it. If neither is known it is read again, though what was named may be a key that nobody asked for.
//! - The explicit version of a place is not one version: counters and rows are made of several writes. The second round
//!   shows what the share held in the first round, and, of what has come since, those writes that the first round
//!   named. What is named is named with its whole past, so nothing new has to be met.
//! - A list above its bound folds into one watermark a stream, which names writes whose own past it does not name. Then
//!   the second round is read by logical time, as of when the latest of the values became visible (`eiger`).
//! - The paper's `trans_time` bounds the client; here the session starts again when its first round took longer.
//!   Versions and dependencies are kept for longer than that, by the clocks of other cores.
//! - The global checkpoint is not one time but a position of each stream: what every datacenter has durably applied.
//! - A write that reads to write (`INCR`, `APPEND`) depends on what it read; the paper has only blind puts.
//! - The paper's client library holds the context; here the server's session does, for stock Redis clients.

use crate::lists::ListsFamily;
use crate::{
    Again, Capabilities, Family, Needs, Options, Profile, Promises, Protocol, Recency, Registration, Share,
    SnapshotCheck, SnapshotReads, eiger, pocc,
};
use ensue_types::{Causes, Lists, OperationId};

/// The protocol, as it is registered.
pub const REGISTRATION: Registration = Registration {
    name: "cops-gt",
    capabilities: Capabilities {
        snapshot_reads: SnapshotReads::TwoRounds,
        write_transactions: false,
        causality: true,
        available: true,
    },
    // What a read of several sees is of the moment when the latest of its values became visible, or earlier.
    promises: Promises { snapshots: true, recency: Recency::SingleReads, ..Promises::CAUSAL_SINGLE_KEYS },
    make: |options| Box::new(CopsGt::new(options)),
};

/// The protocol, with its bound on contexts.
#[derive(Debug)]
struct CopsGt {
    profile: Profile,
    family: ListsFamily,
}

impl CopsGt {
    fn new(options: Options) -> CopsGt {
        let stabilization_ms = Some(pocc::FLOOR_INTERVALS * options.stabilization_ms);
        let needs = Needs { versions: true, stabilization_ms, ..Needs::default() };
        let family = ListsFamily { bound: options.context_operations_max };
        CopsGt { profile: REGISTRATION.profile(needs), family }
    }
}

impl Protocol for CopsGt {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    #[inline]
    fn family(&self) -> &dyn Family {
        &self.family
    }

    fn check_snapshot(&self, shares: &[Share<'_>]) -> SnapshotCheck {
        let lists: Vec<&Lists> = shares.iter().filter_map(|share| share.seen.lists().ok()).collect();
        if lists.len() < shares.len()
            || lists.iter().any(|lists| lists.is_folded())
            || shares.iter().any(|share| share.earliest.is_none())
        {
            return eiger::check_snapshot(shares);
        }
        let lacks = |index: usize| {
            let Share { partition, latest, .. } = shares[index];
            let newer = (0..shares.len()).filter(|&other| shares[other].earliest > Some(latest));
            let mut named = newer.flat_map(|other| lists[other].named_of(partition));
            named.any(|operation| !lists[index].names(&operation))
        };
        let again: Vec<Again> = (0..shares.len())
            .filter(|&index| lacks(index))
            .map(|index| {
                let Share { partition, latest, .. } = shares[index];
                let mut with: Vec<OperationId> =
                    lists.iter().flat_map(|lists| lists.named_of(partition)).collect();
                with.sort_unstable();
                with.dedup();
                Again { share: index, at: latest, with }
            })
            .collect();
        if again.is_empty() { SnapshotCheck::Consistent } else { SnapshotCheck::ReadAgain(again) }
    }

    fn forget(&self, context: &mut Causes, is_globally_stable: &dyn Fn(&OperationId) -> bool) {
        let mut lists = context.take_lists();
        lists.retain(|operation| !is_globally_stable(operation));
        *context = lists.into();
    }
}

#[cfg(test)]
mod tests {
    use super::CopsGt;
    use crate::{Again, Options, Protocol, Share, SnapshotCheck, Visibility};
    use ensue_types::{
        Carried, Causes, DatacenterId, Dependency, Extent, Incarnation, LogicalTime, OperationId,
        PartitionId, Position, Source, Stamp,
    };
    use std::sync::Arc;

    fn protocol() -> CopsGt {
        CopsGt::new(Options { context_operations_max: 4, ..Options::default() })
    }

    fn operation(partition: u16, position: u64) -> OperationId {
        OperationId {
            datacenter: DatacenterId(0),
            incarnation: Incarnation(1),
            partition: PartitionId(partition),
            position: Position(position),
        }
    }

    fn source(operation: OperationId, dependencies: Causes) -> Source {
        let stamp = Stamp {
            time: LogicalTime(operation.position.0),
            datacenter: operation.datacenter,
            partition: operation.partition,
        };
        Source { operation, stamp, dependencies: Some(Arc::new(Carried::new(dependencies))) }
    }

    /// A session writes, one after the other; what each write carries.
    fn chain(operations: &[OperationId]) -> Vec<Source> {
        let (protocol, mut context) = (protocol(), Causes::default());
        let write = |&operation: &OperationId| {
            let write = source(operation, protocol.dependencies(&context, &[]));
            protocol.record_write(&mut context, &write);
            write
        };
        operations.iter().map(write).collect()
    }

    fn seen(source: &Source) -> Causes {
        let mut causes = Causes::default();
        protocol().record_reads(&mut causes, std::slice::from_ref(source), &[]);
        causes
    }

    fn share(partition: u16, earliest: u64, latest: u64, seen: &Causes) -> Share<'_> {
        let (earliest, latest) = (Some(LogicalTime(earliest)), LogicalTime(latest));
        Share { partition: PartitionId(partition), earliest, latest, seen }
    }

    #[test]
    fn a_write_carries_all_and_waits_for_the_nearest() {
        let writes = chain(&[operation(0, 1), operation(1, 1), operation(2, 1)]);
        let carried = writes[2].carried();
        let nearest = Dependency { operation: operation(1, 1), extent: Extent::Exact };
        assert_eq!(protocol().visibility(operation(2, 1), carried), Ok(Visibility::After(vec![nearest])));
        let lists = carried.lists().unwrap();
        assert!(lists.names(&operation(1, 1)) && lists.names(&operation(0, 1)));
        assert!(!lists.names(&operation(2, 1)));
    }

    /// Figure 7: the album depends on the access list, directly or not; the answer for the list is older.
    #[test]
    fn a_share_that_lacks_what_another_depends_on_is_read_again_with_that() {
        let writes = chain(&[operation(0, 5), operation(2, 1), operation(1, 1)]);
        let (old, album) = (seen(&chain(&[operation(0, 4)])[0]), seen(&writes[2]));
        let again = Again { share: 0, at: LogicalTime(10), with: vec![operation(0, 4), operation(0, 5)] };
        assert_eq!(
            protocol().check_snapshot(&[share(0, 4, 10, &old), share(1, 20, 30, &album)]),
            SnapshotCheck::ReadAgain(vec![again])
        );
        // Read after the album had become visible, it has all that the album depends on.
        assert_eq!(
            protocol().check_snapshot(&[share(0, 4, 20, &old), share(1, 20, 30, &album)]),
            SnapshotCheck::Consistent
        );
        // What it answered with is newer.
        let newer = seen(&writes[0]);
        assert_eq!(
            protocol().check_snapshot(&[share(0, 4, 10, &newer), share(1, 20, 30, &album)]),
            SnapshotCheck::Consistent
        );
        // By logical time nothing fits, yet nobody depends on anything.
        let apart = seen(&chain(&[operation(1, 1)])[0]);
        assert_eq!(
            protocol().check_snapshot(&[share(0, 4, 10, &old), share(1, 20, 30, &apart)]),
            SnapshotCheck::Consistent
        );
    }

    #[test]
    fn what_was_folded_is_read_by_time() {
        // Each alone: those that stand beside each other are one run.
        let operations: Vec<OperationId> = (1..=70).map(|number| operation(0, 2 * number)).collect();
        let writes = chain(&[&operations[..], &[operation(1, 1)]].concat());
        let (old, album) = (seen(&writes[0]), seen(&writes[70]));
        let again = Again { share: 0, at: LogicalTime(30), with: Vec::new() };
        assert_eq!(
            protocol().check_snapshot(&[share(0, 4, 10, &old), share(1, 20, 30, &album)]),
            SnapshotCheck::ReadAgain(vec![again])
        );
    }

    #[test]
    fn what_is_everywhere_is_forgotten_near_or_far() {
        let writes = chain(&[operation(0, 1), operation(1, 1), operation(2, 1)]);
        let mut context = seen(&writes[2]);
        protocol().forget(&mut context, &|operation| operation.partition != PartitionId(1));
        let left = context.lists().unwrap();
        assert_eq!((left.nearest.len(), left.others.operations_count()), (0, 1));
        protocol().forget(&mut context, &|_| true);
        assert_eq!(context, Causes::default());
    }
}
