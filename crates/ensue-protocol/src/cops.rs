//! `cops`: causal+ between single keys, by nearest dependencies; a write waits where it arrives, and there are no
//! transactions.
//!
//! Lloyd, Freedman, Kaminsky, Andersen, "Don't Settle for Eventual: Scalable Causal Consistency for Wide-Area Storage
//! with COPS", SOSP 2011, sections 4 and 5. The rules:
//!
//! - On a get: add what was read to the context (4.3).
//! - On a put: the context is the put's nearest dependencies, since whatever they depend on was here before them; then
//!   the context is that put alone (4.3).
//! - On a put from elsewhere (`put_after`): commit it after a `dep_check` of each nearest dependency (4.4). Nobody
//!   polls: a check is answered when it is met.
//! - A get returns the newest committed version, and never waits. Gets of several keys are parallel gets (4.1).
//! - Never depend: a version that is committed in every datacenter is not added to the context (5.1).
//! - The global checkpoint time: whoever takes a put leaves out of its dependencies what is committed in every
//!   datacenter by now, though it was not yet when it was read (5.1).
//!
//! Where we differ from the paper:
//! - A dependency names the operation that wrote a version, not key and version: a check asks whether that very write
//!   was applied here. "The current version is at least that one" is not enough: a concurrent higher version may stand
//!   there while what the write itself depends on is missing (trap 1).
//! - The global checkpoint time is one time for all, exchanged pair by pair and spread within each datacenter ten times
//!   a second. Here the acknowledgements of the streams already say what each datacenter has durably applied of each
//!   origin, a partition at a time, so it costs no message. Each partition knows it exactly of its own range and
//!   nothing of the others: a dependency on another partition is left out only if that one knew when it was read, or
//!   when the session next writes there.
//! - What is left out is applied everywhere durably: a datacenter that loses its power does not lose what nobody waits
//!   for (trap 29).
//! - Without transactions nothing needs the `trans_time` of outstanding reads.
//! - A context above its bound folds into one watermark a stream: stronger than nearest, and bounded. COPS bounds it by
//!   what clients read.
//! - A write that reads to write (`INCR`, `APPEND`) depends on what it read; the paper has only blind puts.
//! - The paper's client library holds the context; here the server's session does, for stock Redis clients.

use crate::operations::{self, Operations};
use crate::{Capabilities, Family, Needs, Options, Profile, Promises, Protocol, Registration, SnapshotReads};
use ensue_types::{Causes, OperationId};

/// The protocol, as it is registered.
pub const REGISTRATION: Registration = Registration {
    name: "cops",
    capabilities: CAPABILITIES,
    promises: Promises::CAUSAL_SINGLE_KEYS,
    make: |options| Box::new(Cops::new(&REGISTRATION, Needs::default(), options)),
};

pub(crate) const CAPABILITIES: Capabilities = Capabilities {
    snapshot_reads: SnapshotReads::None,
    write_transactions: false,
    causality: true,
    available: true,
};

/// The protocol, with its bound on contexts; or one that does with conflicts something else.
#[derive(Debug)]
pub(crate) struct Cops {
    profile: Profile,
    family: Operations,
}

impl Cops {
    pub(crate) fn new(registration: &Registration, needs: Needs, options: Options) -> Cops {
        let family = Operations { bound: options.context_operations_max };
        Cops { profile: registration.profile(needs), family }
    }
}

impl Protocol for Cops {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    #[inline]
    fn family(&self) -> &dyn Family {
        &self.family
    }

    fn forget(&self, context: &mut Causes, is_globally_stable: &dyn Fn(&OperationId) -> bool) {
        operations::forget(context, is_globally_stable);
    }
}
