//! `tardis`: states that fork when transactions conflict, and merge when the application says so.
//!
//! Crooks, Pu, Estrada, Gupta, Alvisi, Clement, "TARDiS: A Branch-and-Merge Approach To Weak Consistency", SIGMOD 2016.
//! The six questions are few words here, because a keyspace of this protocol is a graph of states (`ensue-branch`) and
//! not rows:
//!
//! - Context: the session's anchor, the state that it last committed or read at. Dependencies: a commit carries its
//!   parents' names.
//! - Visibility: when the parents are here. Choice: the newest version on the branch that the transaction chose by its
//!   constraint.
//! - Snapshot: every transaction reads one state. Forgetting: ceilings.
//!
//! What a session remembers is in `ensue-types`.

use crate::states::States;
use crate::{
    Capabilities, Family, Needs, Profile, Promises, Protocol, Registration, SeveralWrites, SnapshotReads,
};

/// The protocol, as it is registered.
pub const REGISTRATION: Registration = Registration {
    name: "tardis",
    capabilities: Capabilities {
        // One owner reads and writes at one state whatever it is asked together.
        snapshot_reads: SnapshotReads::None,
        write_transactions: true,
        causality: true,
        available: true,
    },
    // Sessions carry their states with them; what else is promised is said in docs/branches.md.
    promises: Promises {
        several_writes: SeveralWrites::Apart,
        one_stream: true,
        shows_received: true,
        branches: true,
        ..Promises::CAUSAL_WITH_TRANSACTIONS
    },
    make: |_| {
        let needs = Needs { one_stream: true, branches: true, remembers_settled: true, ..Needs::default() };
        Box::new(Tardis { profile: REGISTRATION.profile(needs) })
    },
};

/// The protocol of branches.
#[derive(Debug)]
struct Tardis {
    profile: Profile,
}

impl Protocol for Tardis {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    #[inline]
    fn family(&self) -> &dyn Family {
        &States
    }
}
