//! `cure`: causal+ with one-round snapshots, by vectors of physical time; remote writes show when they are stable.
//!
//! Cure as it is told in Spirovska, Didona, Zwaenepoel, "Optimistic Causal Consistency for Geo-Replicated Key-Value
//! Stores", sections 7.2 and 8. The rules:
//!
//! - A session has a vector, one time a datacenter; a write carries it (Algorithm 1).
//! - The partitions of a datacenter tell each other what they have received; the least of it is the globally stable
//!   snapshot. A version from elsewhere is visible when its own time and its whole vector are at or below that. A
//!   version of this datacenter is visible at once, since it depends on stable ones only (7.2).
//! - A snapshot is read at the stable snapshot with the present as the own datacenter's entry; every partition returns
//!   the newest version within it.
//! - A version is folded away when a newer one is below the oldest cut that is or may be read at.
//!
//! Where we differ from the paper:
//! - What a session may see includes its own past: the stable snapshot of the partition that it meets can be older than
//!   the one that it read from (trap 3). A session that came with a token may have to wait for it.
//! - A version is compared with its own time too, not with its dependencies alone (trap 34), so that what was written
//!   together is seen together, and a snapshot can be repeated.
//! - A write waits as a read does: it covers what it has seen, deletions and additions included.
//! - The "wait until the clock is past the dependencies" costs nothing: the clock is a hybrid one.
//! - One partition gathers what all have received and tells the result, so a round is two messages a partition.

use crate::vector::{self, Times};
use crate::{
    Capabilities, Choice, Family, Options, Profile, Promises, Protocol, Registration, SnapshotReads,
    StabilityState, VisibilityPredicate,
};
use ensue_types::{Causes, Rule, Source, TimeVector};

/// The protocol, as it is registered.
pub const REGISTRATION: Registration = Registration {
    name: "cure",
    capabilities: Capabilities {
        snapshot_reads: SnapshotReads::OneRound,
        write_transactions: false,
        causality: true,
        available: true,
    },
    promises: Promises::CAUSAL_BY_TIMES,
    make: |options| Box::new(Cure::new(options)),
};

/// The protocol.
#[derive(Debug)]
struct Cure {
    profile: Profile,
}

impl Cure {
    fn new(options: Options) -> Cure {
        let needs = vector::needs(options.stabilization_ms, vector::patience_ms(&options));
        Cure { profile: REGISTRATION.profile(needs) }
    }
}

impl Protocol for Cure {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    #[inline]
    fn family(&self) -> &dyn Family {
        &Times
    }

    fn choose(&self, context: &mut Causes, state: &StabilityState<'_>) -> Choice {
        stable_choice(&vector::known(context).times, state)
    }

    fn is_visible(&self, predicate: &VisibilityPredicate, source: &Source) -> bool {
        let local = source.stamp.datacenter == predicate.datacenter && !predicate.whole;
        local || vector::is_within(source, &predicate.times)
    }

    fn snapshot_vector(&self, context: &Causes, state: &StabilityState<'_>) -> Option<TimeVector> {
        Some(stable_vector(&vector::known(context).times, state))
    }

    fn floor(&self, state: &StabilityState<'_>) -> TimeVector {
        state.with_present(state.stable)
    }
}

/// What a session of this past may read of one partition, seeing only what is stable.
pub(crate) fn stable_choice(past: &TimeVector, state: &StabilityState<'_>) -> Choice {
    if !vector::is_received(past, state) {
        return Choice::Wait;
    }
    Choice::Shown(VisibilityPredicate {
        datacenter: state.datacenter,
        times: stable_vector(past, state),
        whole: false,
    })
}

/// What it may read of several.
pub(crate) fn stable_vector(past: &TimeVector, state: &StabilityState<'_>) -> TimeVector {
    let mut times = state.with_present(state.stable);
    if Rule::SnapshotsHoldTheSession.holds() {
        times.join(past);
    }
    times
}
