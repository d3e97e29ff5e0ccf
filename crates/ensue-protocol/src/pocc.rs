//! `pocc`: causal+ with one-round snapshots, by vectors of physical time; everything received shows, and a read waits
//! for what its session depends on.
//!
//! Spirovska, Didona, Zwaenepoel, "Optimistic Causal Consistency for Geo-Replicated Key-Value Stores", sections 4 and
//! 5. The rules:
//!
//! - A session has a vector, one time a datacenter; a write carries it (Algorithm 1).
//! - A version from elsewhere is merged when it is received (Algorithm 3, lines 5 to 7).
//! - A read waits until its partition has received everything up to the session's vector, then returns the newest
//!   version (Algorithm 2, lines 2 and 3): no read of one key is ever stale.
//! - A snapshot is read at the higher of what the first partition has received and what the session depends on. Every
//!   partition waits until it has received that much, and returns the newest version within it (lines 14 to 31).
//! - A partition that is silent tells the others its time (Algorithm 3, lines 8 to 17).
//! - A version is folded away when a newer one is below the oldest cut that is or may be read at (5.3).
//!
//! Where we differ from the paper:
//! - A version is within a cut when its own time is, too, not its dependencies alone (trap 34).
//! - The text has each partition send the highest of its active cuts for collection; it must be the lowest (trap 35),
//!   and cuts whose slices are still on their way count.
//! - The paper's item has one version. A counter, a hash or a set is put together of several, and a value with a
//!   deadline of two: what is not whole yet is shown as of the newest cut that is, in one partition without waiting.
//! - A write waits as a read does: it covers what it has seen, deletions and additions included.
//! - A received time only rises (trap 40), and a heartbeat counts after the entries that went before it (trap 24).
//! - The "wait until the clock is past the dependencies" costs nothing: the clock is a hybrid one.
//! - A clock that is behind is asked to move past what somebody waits for (trap 39).
//! - A read does not wait for ever: shortly before its client gives up it is told what is missing.

use crate::vector::{self, Times};
use crate::{
    Availability, Capabilities, Choice, Family, Needs, Options, Profile, Promises, Protocol, Registration,
    SnapshotReads, StabilityState, VisibilityPredicate,
};
use ensue_types::{Causes, Rule, Source, TimeVector};

/// The protocol, as it is registered.
pub const REGISTRATION: Registration = Registration {
    name: "pocc",
    capabilities: Capabilities {
        snapshot_reads: SnapshotReads::OneRound,
        write_transactions: false,
        causality: true,
        available: false,
    },
    promises: Promises {
        availability: Availability::Blocks,
        shows_received: true,
        ..Promises::CAUSAL_BY_TIMES
    },
    make: |options| Box::new(Pocc::new(options)),
};

/// Rounds in which only the floor is looked for are this much rarer than those that show something.
pub(crate) const FLOOR_INTERVALS: u64 = 20;

/// The protocol.
#[derive(Debug)]
struct Pocc {
    profile: Profile,
}

impl Pocc {
    fn new(options: Options) -> Pocc {
        let needs = vector::needs(FLOOR_INTERVALS * options.stabilization_ms, vector::patience_ms(&options));
        Pocc { profile: REGISTRATION.profile(Needs { vectors_in_one_partition: true, ..needs }) }
    }
}

impl Protocol for Pocc {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    #[inline]
    fn family(&self) -> &dyn Family {
        &Times
    }

    fn choose(&self, context: &mut Causes, state: &StabilityState<'_>) -> Choice {
        newest_choice(&vector::known(context).times, state)
    }

    fn is_visible(&self, predicate: &VisibilityPredicate, source: &Source) -> bool {
        vector::is_within(source, &predicate.times)
    }

    fn snapshot_vector(&self, context: &Causes, state: &StabilityState<'_>) -> Option<TimeVector> {
        Some(received_vector(&vector::known(context).times, state))
    }

    fn floor(&self, state: &StabilityState<'_>) -> TimeVector {
        state.with_present(state.received)
    }
}

/// What a session of this past may read of one partition: the newest, once its past is here.
pub(crate) fn newest_choice(past: &TimeVector, state: &StabilityState<'_>) -> Choice {
    if !vector::is_received(past, state) {
        return Choice::Wait;
    }
    let times = received_vector(past, state);
    Choice::NewestIfWhole(VisibilityPredicate { datacenter: state.datacenter, times, whole: true })
}

/// What it may read of several: what the first has received, and the session's past.
pub(crate) fn received_vector(past: &TimeVector, state: &StabilityState<'_>) -> TimeVector {
    let mut times = state.with_present(state.received);
    if Rule::SnapshotsHoldTheSession.holds() {
        times.join(past);
    }
    times
}
