//! `ha-pocc`: `pocc` that falls back on stable reads when it would wait too long, and returns when the links have
//! healed.
//!
//! Spirovska, Didona, Zwaenepoel, "Optimistic Causal Consistency for Geo-Replicated Key-Value Stores", section 7. The
//! rules:
//!
//! - A session is optimistic, and reads as in `pocc`, or stable, and reads as in `cure` (7.2).
//! - A read that has waited for the threshold closes its session: the blocked command gets one typed error, and the
//!   session starts again as a stable one, with an empty past (7.1).
//! - What a stable session wrote shows at once in its datacenter, as in `cure`. What an optimistic one wrote may depend
//!   on what is not here, and shows to stable sessions when it is stable (7.2; trap 36).
//! - Stabilization runs much less often than in `cure`.
//! - When every datacenter is heard again, and all that the session had seen is stable here, it is promoted.
//!
//! Where we differ from the paper:
//! - A promoted session has the past of both its modes again (trap 41): what it had read and written before it fell
//!   back comes before what it does next.
//! - What a session gave up by falling back does not come back with the past that a name shares: it would fall back
//!   again. What else comes with it a stable session waits for until it is stable, or falls back again.
//! - The rest as in `pocc` and `cure`.

use crate::vector::{self, Times};
use crate::{
    Availability, Capabilities, Choice, Family, Needs, Options, Profile, Promises, Protocol, Recency,
    Registration, SnapshotReads, StabilityState, VisibilityPredicate, cure, pocc,
};
use ensue_types::{Causes, Mode, Reply, Rule, Source, TimeVector, Vector};

/// The protocol, as it is registered.
pub const REGISTRATION: Registration = Registration {
    name: "ha-pocc",
    capabilities: Capabilities {
        snapshot_reads: SnapshotReads::OneRound,
        write_transactions: false,
        causality: true,
        available: true,
    },
    // A session that fell back reads what is stable, and what optimistic sessions wrote beside it may not be.
    promises: Promises {
        recency: Recency::OwnPast,
        availability: Availability::FallsBack,
        ..Promises::CAUSAL_BY_TIMES
    },
    make: |options| Box::new(HaPocc::new(options)),
};

/// A datacenter counts as heard if its time is not older than this many thresholds.
const HEARD_THRESHOLDS: u64 = 4;

/// The protocol, with its threshold.
#[derive(Debug)]
struct HaPocc {
    profile: Profile,
    options: Options,
}

impl HaPocc {
    fn new(options: Options) -> HaPocc {
        let needs = vector::needs(
            pocc::FLOOR_INTERVALS * options.stabilization_ms,
            options.block_ms.min(vector::patience_ms(&options)),
        );
        HaPocc {
            profile: REGISTRATION.profile(Needs {
                vectors_in_one_partition: true,
                hides_own_writes: true,
                ..needs
            }),
            options,
        }
    }

    /// A stable session becomes optimistic again when nothing that it had, or has, would make it wait.
    fn promote(&self, vector: &mut Vector, state: &StabilityState<'_>) {
        let patience_ms = HEARD_THRESHOLDS * self.options.block_ms;
        let heard = |datacenter| state.received.at(datacenter).ms() + patience_ms >= state.now.ms();
        // At every partition, not only at this one: else the session would wait, and fall back, again at the next.
        let here = state.stable.covers_but(state.datacenter, &vector.times)
            && state.stable.covers_but(state.datacenter, &vector.abandoned);
        if !here || !state.others().all(heard) {
            return;
        }
        let abandoned = std::mem::take(&mut vector.abandoned);
        if Rule::PromotionJoinsBothPasts.holds() {
            vector.take_over(&Vector { times: abandoned, ..Vector::default() });
        }
        vector.mode = Mode::Plain;
    }
}

/// Whether a stable session's past is stable. What it has read was; what came by a name may be of an optimistic
/// session, and then it waits, or falls back again.
fn is_stable(past: &TimeVector, state: &StabilityState<'_>) -> bool {
    state.stable.covers_but(state.datacenter, past) || !Rule::StableSessionsReadWhatIsStable.holds()
}

impl Protocol for HaPocc {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    #[inline]
    fn family(&self) -> &dyn Family {
        &Times
    }

    /// The mode goes along: it says who wrote. What the session gave up does not.
    fn dependencies(&self, context: &Causes, observed: &[Source]) -> Causes {
        let mut dependencies = Times.dependencies(context, observed).take_times();
        dependencies.abandoned = TimeVector::ZERO;
        dependencies.into()
    }

    fn choose(&self, context: &mut Causes, state: &StabilityState<'_>) -> Choice {
        if vector::known(context).mode == Mode::Stable {
            let mut vector = context.take_times();
            self.promote(&mut vector, state);
            *context = vector.into();
        }
        let vector = vector::known(context);
        match vector.mode {
            Mode::Plain => pocc::newest_choice(&vector.times, state),
            Mode::Stable if is_stable(&vector.times, state) => cure::stable_choice(&vector.times, state),
            Mode::Stable => Choice::Wait,
        }
    }

    fn is_visible(&self, predicate: &VisibilityPredicate, source: &Source) -> bool {
        let local = source.stamp.datacenter == predicate.datacenter && !predicate.whole;
        let trusted = || {
            vector::known(source.carried()).mode == Mode::Stable
                || !Rule::OptimisticWritesHideUntilStable.holds()
        };
        (local && trusted()) || vector::is_within(source, &predicate.times)
    }

    fn timed_out(&self, context: &mut Causes, missing: &str) -> Reply {
        let Vector { times, mut abandoned, doubted, .. } = *context.take_times();
        abandoned.join(&times);
        let times = if Rule::FallbackForgets.holds() { TimeVector::ZERO } else { times };
        *context = Vector { mode: Mode::Stable, times, abandoned, doubted }.into();
        let words = format!(
            "FALLBACK the session depends on updates that have not arrived: {missing}; it starts again with what \
             is stable here, and this command was not executed"
        );
        Reply::Error(words.into())
    }

    fn snapshot_vector(&self, context: &Causes, state: &StabilityState<'_>) -> Option<TimeVector> {
        let vector = vector::known(context);
        Some(match vector.mode {
            Mode::Plain => pocc::received_vector(&vector.times, state),
            Mode::Stable => cure::stable_vector(&vector.times, state),
        })
    }

    fn floor(&self, state: &StabilityState<'_>) -> TimeVector {
        state.with_present(state.stable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Malformed;
    use ensue_types::{
        Carried, DatacenterId, Incarnation, LogicalTime, Opaque, OperationId, PartitionId, Position, Stamp,
    };
    use std::sync::Arc;

    #[test]
    fn a_stable_read_of_one_partition_trusts_what_stable_sessions_wrote_here_and_no_other_does() {
        let protocol = HaPocc::new(Options::default());
        let written = |datacenter, mode| {
            let carried = Carried::new(Vector { mode, ..Vector::default() }.into());
            let stamp = Stamp { time: LogicalTime(9), datacenter: DatacenterId(datacenter), ..Stamp::ZERO };
            let operation = OperationId {
                datacenter: DatacenterId(datacenter),
                incarnation: Incarnation(1),
                partition: PartitionId(0),
                position: Position(1),
            };
            Source { operation, stamp, dependencies: Some(Arc::new(carried)) }
        };
        // Nothing of datacenter 1 is stable yet.
        let predicate =
            |whole| VisibilityPredicate { datacenter: DatacenterId(1), times: TimeVector::default(), whole };
        let shown =
            |whole, datacenter, mode| protocol.is_visible(&predicate(whole), &written(datacenter, mode));
        assert!(shown(false, 1, Mode::Stable));
        assert!(!shown(false, 1, Mode::Plain), "it may depend on what has not come");
        assert!(!shown(false, 2, Mode::Stable), "written elsewhere");
        assert!(!shown(true, 1, Mode::Stable), "a cut through partitions goes by times alone");
    }

    #[test]
    fn what_was_given_up_does_not_come_back_under_a_name() {
        let protocol = HaPocc::new(Options::default());
        let mut shared = Vector::default();
        shared.times.raise(DatacenterId(0), LogicalTime(5));
        let mut context = shared.clone().into();
        protocol.timed_out(&mut context, "dc1");
        shared.times.raise(DatacenterId(2), LogicalTime(7));
        assert_eq!(protocol.family().merge_shared(&mut context, &shared.into()), Ok(()));
        let vector = vector::known(&context);
        assert_eq!(vector.mode, Mode::Stable);
        assert_eq!(vector.times.at(DatacenterId(0)), LogicalTime::ZERO, "given up");
        assert_eq!(vector.times.at(DatacenterId(2)), LogicalTime(7), "seen by another member since");
        assert_eq!(
            protocol.family().merge_shared(&mut context, &Causes::Extension(Opaque(vec![200]))),
            Err(Malformed)
        );
    }
}
