//! `paris`: causal+ with one-round snapshots, by vectors of physical time; every read is of the stable snapshot and
//! its session's own past.
//!
//! After Spirovska, Didona, Zwaenepoel, "PaRiS: Causally Consistent Transactions with Non-blocking Reads and Partial
//! Replication", ICDCS 2019. The rules:
//!
//! - The stable snapshot is what every partition here has received of each other datacenter. Of this datacenter it is
//!   as much as of the slowest of the others: what is written here shows to others no sooner than what was written
//!   elsewhere at that time.
//! - A read returns the newest version within the stable snapshot and its session's past. It never waits for another
//!   datacenter.
//! - A session remembers the snapshot that it has read, so that it never reads an older one, and what it wrote since.
//! - A version is folded away when a newer one is within the stable snapshot.
//!
//! Where we differ from the paper:
//! - Its data is replicated in part, and one time is stable in all datacenters. Here every datacenter has all data;
//!   each has its own stable snapshot, with one time for each datacenter.
//! - Its client keeps a cache of its own writes that are not stable yet. Here its last write raises the snapshot in
//!   the entry of its datacenter: it also shows what others wrote there until then, if that depends on nothing beyond
//!   the snapshot.
//! - A session that came with a token may have to wait for the past that the token names.

use ensue_protocol::vector::{self, Times};
use ensue_protocol::{
    Capabilities, Choice, Family, Needs, Options, Profile, Promises, Protocol, Recency, Registration,
    SnapshotReads, StabilityState, VisibilityPredicate,
};
use ensue_types::{Causes, DatacenterId, Source, TimeVector};

/// The protocol, as it is registered.
pub const REGISTRATION: Registration = Registration {
    name: "paris",
    capabilities: Capabilities {
        snapshot_reads: SnapshotReads::OneRound,
        write_transactions: false,
        causality: true,
        available: true,
    },
    // What others wrote in the session's own datacenter shows when it is stable, too.
    promises: Promises { recency: Recency::OwnPast, ..Promises::CAUSAL_BY_TIMES },
    make: |options| Box::new(Paris::new(options)),
};

/// The protocol.
#[derive(Debug)]
struct Paris {
    profile: Profile,
}

impl Paris {
    fn new(options: Options) -> Paris {
        let needs = vector::needs(options.stabilization_ms, vector::patience_ms(&options));
        // Between two reads of one partition the stable snapshot may move: several keys are read at one vector there,
        // too.
        let needs = Needs { vectors_in_one_partition: true, hides_own_writes: true, ..needs };
        Paris { profile: REGISTRATION.profile(needs) }
    }
}

impl Protocol for Paris {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn family(&self) -> &dyn Family {
        &Times
    }

    fn choose(&self, context: &mut Causes, state: &StabilityState<'_>) -> Choice {
        let mut past = vector::known(context).clone();
        if !vector::is_received(&past.times, state) {
            return Choice::Wait;
        }
        if past.times.join(&stable_snapshot(state)) {
            *context = past.clone().into();
        }
        Choice::Shown(VisibilityPredicate { datacenter: state.datacenter, times: past.times, whole: true })
    }

    fn is_visible(&self, predicate: &VisibilityPredicate, source: &Source) -> bool {
        vector::is_within(source, &predicate.times)
    }

    fn snapshot_vector(&self, context: &Causes, state: &StabilityState<'_>) -> Option<TimeVector> {
        let mut times = vector::known(context).times.clone();
        times.join(&stable_snapshot(state));
        Some(times)
    }

    fn floor(&self, state: &StabilityState<'_>) -> TimeVector {
        stable_snapshot(state)
    }
}

/// What every partition here has received of each other datacenter, and as much of this one. Never above the present:
/// of a datacenter that was declared dead everything has been received for ever.
fn stable_snapshot(state: &StabilityState<'_>) -> TimeVector {
    let received = |datacenter| state.stable.at(datacenter).min(state.now);
    let slowest = state.others().map(received).min().unwrap_or(state.now);
    let of_each = (0..state.datacenters as u8).map(DatacenterId);
    of_each.map(|each| if each == state.datacenter { slowest } else { received(each) }).collect()
}
