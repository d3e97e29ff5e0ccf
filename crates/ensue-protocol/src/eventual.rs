//! `eventual`: no order is promised but the last writer's, and every datacenter ends with the same data.
//!
//! - Context: nothing. Dependencies: nothing. Visibility: at once. Choice: the newest stamp, also while a transaction
//!   is undecided. Snapshot: none, reads over several keys are plain parallel reads, writes plain parallel writes.
//!   Forgetting: old versions at once.
//!
//! It is the baseline that the others are measured against, and the story that `ensue demo` tells as a warning.

use crate::{Capabilities, Family, Needs, Nothing, Profile, Promises, Protocol, Registration, SnapshotReads};

/// The protocol, as it is registered.
pub const REGISTRATION: Registration = Registration {
    name: "eventual",
    capabilities: Capabilities {
        snapshot_reads: SnapshotReads::None,
        write_transactions: false,
        causality: false,
        available: true,
    },
    promises: Promises::CONVERGENCE,
    make: |_| {
        let needs = Needs::default();
        Box::new(Eventual { profile: REGISTRATION.profile(needs) })
    },
};

/// The protocol without causality.
#[derive(Debug)]
struct Eventual {
    profile: Profile,
}

impl Protocol for Eventual {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    #[inline]
    fn family(&self) -> &dyn Family {
        &Nothing
    }
}
