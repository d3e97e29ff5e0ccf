//! `eiger`: causal+ with read-only and write-only transactions, by one-hop dependencies on operations.
//!
//! Lloyd, Freedman, Kaminsky, Andersen, "Stronger Semantics for Low-Latency Geo-Replicated Storage", NSDI 2013. The
//! rules:
//!
//! - On a read: add the operations that wrote what was read to the context (3.2). A counter was written by at most one
//!   operation a datacenter that matter, since each addition follows the one before (3.3).
//! - On a write: attach the context; then the context is that write alone (one-hop, 3.2).
//! - On a write from elsewhere: show it after a `dep_check` of each dependency (3.1).
//! - On a first round: if the highest earliest valid time is at or below the lowest latest valid time, the values
//!   belong together (4.1). Otherwise the effective time is the lowest latest valid time at or above it, and every
//!   share that was not valid then is read again as of it (4.2, figure 5).
//! - On an undecided transaction: ask the coordinator, which answers at once (5.4). The first round answers with what
//!   is there before it, or says only how far its promise goes; the second asks again.
//!
//! Where we differ from the paper:
//! - Figure 5 compares with `>` where the text says "at or above"; with `>` the effective time can be infinite (trap
//!   62). And it would accept a pending answer whose latest valid time reaches the effective time (trap 61): such a
//!   share is always read again.
//! - The paper's client library holds the context; here the server's session does, for stock Redis clients.
//! - A context above its bound folds into one watermark a stream: stronger than one-hop, and bounded.
//! - Operations known to be durably applied in every datacenter are left out; the node filters them.
//! - A write that reads to write (`INCR`, `APPEND`) depends on what it read; the paper has only blind writes and `add`.

use crate::operations::Operations;
use crate::{
    Again, Capabilities, Family, Needs, Options, Profile, Promises, Protocol, Registration, Share,
    SnapshotCheck, SnapshotReads,
};
use ensue_types::{LogicalTime, Rule};

/// The protocol, as it is registered.
pub const REGISTRATION: Registration = Registration {
    name: "eiger",
    capabilities: Capabilities {
        snapshot_reads: SnapshotReads::TwoRounds,
        write_transactions: true,
        causality: true,
        available: true,
    },
    promises: Promises::CAUSAL_WITH_TRANSACTIONS,
    make: |options| Box::new(Eiger::new(options)),
};

/// The protocol, with its bound on contexts.
#[derive(Debug)]
struct Eiger {
    profile: Profile,
    family: Operations,
}

impl Eiger {
    fn new(options: Options) -> Eiger {
        let needs = Needs { queries_coordinator: true, second_rounds: true, ..Needs::default() };
        let family = Operations { bound: options.context_operations_max };
        Eiger { profile: REGISTRATION.profile(needs), family }
    }
}

impl Protocol for Eiger {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    #[inline]
    fn family(&self) -> &dyn Family {
        &self.family
    }

    fn check_snapshot(&self, shares: &[Share<'_>]) -> SnapshotCheck {
        check_snapshot(shares)
    }
}

/// Whether the shares of a first round belong together, by logical time.
pub(crate) fn check_snapshot(shares: &[Share<'_>]) -> SnapshotCheck {
    let at = effective_time(shares);
    let pending = |share: &Share<'_>| share.earliest.is_none() && Rule::PendingIsReadAgain.holds();
    let again = |share: &Share<'_>| pending(share) || share.latest < at;
    let stale = (0..shares.len()).filter(|&index| again(&shares[index]));
    let stale: Vec<Again> = stale.map(|share| Again { share, at, with: Vec::new() }).collect();
    if stale.is_empty() { SnapshotCheck::Consistent } else { SnapshotCheck::ReadAgain(stale) }
}

/// The lowest latest valid time at or above every earliest one.
fn effective_time(shares: &[Share<'_>]) -> LogicalTime {
    let earliest = shares.iter().filter_map(|share| share.earliest);
    let earliest = earliest.filter(|_| Rule::EffectiveTimeCoversAll.holds());
    let max_earliest = earliest.max().unwrap_or(LogicalTime::ZERO);
    let latest = || shares.iter().map(|share| share.latest);
    if !Rule::EqualTimesWillDo.holds() {
        // Broken on purpose, as figure 5 has it: the least of no times is infinite.
        let infinite = LogicalTime(LogicalTime::MAX.0 - 1);
        return latest().filter(|&latest| latest > max_earliest).min().unwrap_or(infinite);
    }
    // Every answered share's latest valid time is at or above its earliest, so the share with the highest earliest
    // qualifies; only pending shares can leave none, and then the highest promise is the time to ask for.
    let effective = latest().filter(|&latest| latest >= max_earliest).min();
    effective.or_else(|| latest().max()).unwrap_or(LogicalTime::ZERO).max(max_earliest)
}
