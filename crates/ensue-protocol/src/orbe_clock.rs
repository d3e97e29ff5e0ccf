//! `orbe-clock`: `orbe-dm` with snapshots of several keys in one round, by physical clocks.
//!
//! Du, Elnikety, Roy, Zwaenepoel, "Orbe: Scalable Causal Consistency Using Dependency Matrices and Physical Clocks",
//! SoCC 2013, sections 4, 5.2 and 6. Beside the rules of `orbe-dm`:
//!
//! - A version has a physical update time, above those of all it depends on; a session keeps the highest that it has
//!   seen or written (4.3).
//! - A partition that is silent tells its replicas its time (4.3).
//! - A snapshot is read at a time before the first partition's clock, so much that its replicas have told every
//!   partition that time; each returns the newest version at or below it (4.3).
//! - A snapshot that would have to wait is read in two rounds by logical time as in Eiger (5.2).
//! - Versions below the oldest snapshot that is or may be read are folded away (4.4).
//!
//! Where we differ from the paper:
//! - How much before its clock is not a constant: a snapshot's time is a heartbeat interval before the lowest that any
//!   replica has told the first partition. So it is as old as the farthest link and a heartbeat, whatever the links
//!   are, and no snapshot waits for one. The older time of 5.2 is the same time during a cut.
//! - A snapshot's time is never below the highest that its session has seen (traps 22 and 28): if the first partition
//!   has not been told that much, two rounds follow at once. What the session has seen is visible in its datacenter,
//!   with all that it depends on, and two rounds read what is visible at one moment.
//! - A partition that has not been told a snapshot's time says so instead of waiting, and two rounds follow.
//! - For collection an idle partition reports the time that a new snapshot would get, not its clock (trap 23).
//! - A heartbeat counts after the updates that went before it were applied (trap 24).
//! - Versions are ordered by physical time and replica everywhere (traps 25, 26).
//! - The "wait until the clock is past the dependencies" costs nothing: the clock is a hybrid one.
//! - The rest as in `orbe-dm`.

use crate::timed_matrix::{self, TimedMatrix};
use crate::{
    Availability, Capabilities, Family, Late, Needs, Options, Profile, Promises, Protocol, Recency,
    Registration, Share, SnapshotCheck, SnapshotReads, StabilityState, VisibilityPredicate, eiger, pocc,
};
use ensue_types::{Causes, LogicalTime, Rule, Source, TimeVector};

/// The protocol, as it is registered.
pub const REGISTRATION: Registration = Registration {
    name: "orbe-clock",
    capabilities: Capabilities {
        snapshot_reads: SnapshotReads::OneRound,
        write_transactions: false,
        causality: true,
        available: true,
    },
    promises: Promises {
        snapshots: true,
        recency: Recency::SingleReads,
        availability: Availability::Always,
        shows_late: true,
        ..Promises::CAUSAL_SINGLE_KEYS
    },
    make: |options| Box::new(OrbeClock::new(options)),
};

/// The protocol, with its intervals.
#[derive(Debug)]
struct OrbeClock {
    profile: Profile,
    options: Options,
}

impl OrbeClock {
    fn new(options: Options) -> OrbeClock {
        let needs = Needs {
            versions: true,
            snapshot_vectors: true,
            heartbeats: true,
            previous_versions: true,
            stabilization_ms: Some(pocc::FLOOR_INTERVALS * options.stabilization_ms),
            remembers_settled: !options.dependency_cleaning,
            second_rounds: true,
            ..Needs::default()
        };
        OrbeClock { profile: REGISTRATION.profile(needs), options }
    }

    /// A session's time, if its snapshots have to hold it.
    fn time_of(&self, context: &Causes) -> LogicalTime {
        match Rule::SnapshotsHoldTheSession.holds() {
            true => timed_matrix::time_of(context),
            false => LogicalTime::ZERO,
        }
    }

    /// The lowest time that any replica has told, and not after now: nothing more is expected of a dead one, at any
    /// time.
    fn reported_by_all(state: &StabilityState<'_>) -> LogicalTime {
        let told = state.others().map(|datacenter| state.applied.at(datacenter));
        told.fold(state.now, LogicalTime::min)
    }

    /// The time of a new snapshot: the other partitions have been told it, too, unless one of them has not heard of
    /// some replica for longer than a heartbeat interval.
    fn announced_to_all(&self, state: &StabilityState<'_>) -> LogicalTime {
        before(Self::reported_by_all(state), self.options.heartbeat_ms)
    }

    /// What is below this is folded, however long nothing has been told.
    fn oldest(&self, state: &StabilityState<'_>) -> LogicalTime {
        before(state.now, self.options.snapshot_age_ms)
    }
}

/// So many milliseconds earlier.
fn before(time: LogicalTime, ms: u64) -> LogicalTime {
    LogicalTime::from_ms(time.ms().saturating_sub(ms))
}

impl Protocol for OrbeClock {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    #[inline]
    fn family(&self) -> &dyn Family {
        &TimedMatrix
    }

    fn is_visible(&self, predicate: &VisibilityPredicate, source: &Source) -> bool {
        source.stamp.time <= predicate.times.at(source.stamp.datacenter)
    }

    fn snapshot_vector(&self, context: &Causes, state: &StabilityState<'_>) -> Option<TimeVector> {
        let time = self.announced_to_all(state).max(self.time_of(context));
        let is_served = time <= Self::reported_by_all(state) && time >= self.oldest(state);
        is_served.then(|| TimeVector::uniform(state.datacenters, time))
    }

    fn snapshot_timed_out(&self) -> Late {
        Late::TwoRounds
    }

    fn check_snapshot(&self, shares: &[Share<'_>]) -> SnapshotCheck {
        eiger::check_snapshot(shares)
    }

    fn floor(&self, state: &StabilityState<'_>) -> TimeVector {
        let newest = match Rule::FloorLeavesRoomForNewCuts.holds() {
            true => self.announced_to_all(state),
            false => state.now,
        };
        TimeVector::uniform(state.datacenters, newest.max(self.oldest(state)))
    }
}
