//! `ha-pocc`: `pocc` that falls back on stable reads when it would wait too long, and returns when the links have healed.
//!
//! Spirovska, Didona, Zwaenepoel, "Optimistic Causal Consistency for Geo-Replicated Key-Value Stores", section 7. The rules:
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
//! - A promoted session has the past of both its modes again (trap 41): what it had read and written before it fell back
//!   comes before what it does next.
//! - What a session gave up by falling back does not come back with the past that a name shares: it would fall back again.
//! - The rest as in `pocc` and `cure`.

use crate::vector::{Mode, Vector};
use crate::{
    Capabilities, Choice, Malformed, Needs, Options, Past, Protocol, Sight, SnapshotReads, Standing, Verdict,
    cure, pocc, vector,
};
use ensue_types::{LogicalTime, Opaque, OperationId, Reply, Rule, Rules, Source, TimeVector};

/// A datacenter counts as heard if its time is not older than this many thresholds.
const HEARD_THRESHOLDS: u64 = 4;

/// The protocol, with its intervals and its threshold.
#[derive(Debug)]
pub struct HaPocc {
    options: Options,
    rules: Rules,
}

impl HaPocc {
    pub fn new(options: Options, rules: Rules) -> HaPocc {
        HaPocc { options, rules }
    }

    /// A stable session becomes optimistic again when nothing that it had, or has, would make it wait.
    fn promote(&self, context: &mut Opaque, vector: &mut Vector, standing: &Standing<'_>) {
        let patience_ms = HEARD_THRESHOLDS * self.options.block_ms;
        let heard = |datacenter| standing.received.at(datacenter).ms() + patience_ms >= standing.now.ms();
        // At every partition, not only at this one: else the session would wait, and fall back, again at the next.
        let here = standing.stable.covers_but(standing.datacenter, &vector.times)
            && standing.stable.covers_but(standing.datacenter, &vector.abandoned);
        if !here || !standing.others().all(heard) {
            return;
        }
        let abandoned = std::mem::take(&mut vector.abandoned);
        if self.rules.hold(Rule::PromotionJoinsBothPasts) {
            vector.take_over(&Vector { times: abandoned, ..Vector::default() });
        }
        vector.mode = Mode::Plain;
        *context = vector.encode();
    }
}

impl Protocol for HaPocc {
    fn name(&self) -> &'static str {
        "ha-pocc"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            snapshot_reads: SnapshotReads::OneRound,
            write_transactions: false,
            causality: true,
            available: true,
        }
    }

    fn needs(&self) -> Needs {
        let stabilization_ms = Some(pocc::FLOOR_INTERVALS * self.options.stabilization_ms);
        Needs { versions: true, cuts: true, heartbeats: true, stabilization_ms, ..Needs::default() }
    }

    fn observe(&self, context: &mut Opaque, sources: &[Source]) {
        vector::observe(context, sources);
    }

    fn remembers_settled(&self) -> bool {
        true
    }

    fn wrote(&self, context: &mut Opaque, write: &Source) {
        vector::observe(context, std::slice::from_ref(write));
    }

    fn join(&self, context: &mut Opaque, other: &Opaque) -> Result<(), Malformed> {
        vector::join(context, other)
    }

    fn meet(&self, context: &mut Opaque, shared: &Opaque) -> Result<(), Malformed> {
        let shared = Vector::decode(shared)?;
        let mut vector = vector::known(context);
        // What it gave up by falling back does not come back under its name.
        let is_given_up = |datacenter, time| time <= vector.abandoned.at(datacenter);
        let times = shared.times.entries();
        let times =
            times.map(|(d, time)| if is_given_up(d, time) { LogicalTime::ZERO } else { time }).collect();
        vector.take_over(&Vector { times, ..shared });
        *context = vector.encode();
        Ok(())
    }

    fn past(&self, context: &Opaque) -> Result<Past, Malformed> {
        Ok(Past::Times(Vector::decode(context)?.times))
    }

    fn dependencies(&self, context: &Opaque, observed: &[Source]) -> Opaque {
        let mut dependencies = context.clone();
        vector::observe(&mut dependencies, observed);
        // The mode goes along: it says who wrote.
        Vector { abandoned: TimeVector::default(), ..vector::known(&dependencies) }.encode()
    }

    fn verdict(&self, _operation: OperationId, dependencies: &Opaque) -> Result<Verdict, Malformed> {
        Vector::decode(dependencies)?;
        Ok(Verdict::Now)
    }

    fn choose(&self, context: &mut Opaque, standing: &Standing<'_>) -> Choice {
        let mut vector = vector::known(context);
        if vector.mode == Mode::Stable {
            self.promote(context, &mut vector, standing);
        }
        match vector.mode {
            Mode::Plain => pocc::newest_choice(&vector.times, standing, self.rules),
            Mode::Stable => cure::stable_choice(&vector.times, standing, self.rules),
        }
    }

    fn partitions_are_snapshots(&self) -> bool {
        false
    }

    fn shows(&self, sight: &Sight, source: &Source) -> bool {
        let local = source.stamp.datacenter == sight.datacenter && !sight.whole;
        let trusted = || {
            let writer = source.dependencies.as_deref().map(|bytes| vector::known(bytes).mode);
            writer == Some(Mode::Stable) || !self.rules.hold(Rule::OptimisticWritesHideUntilStable)
        };
        (local && trusted()) || vector::is_within(source, &sight.times, self.rules)
    }

    fn proves_stable(&self, dependencies: &Opaque) -> TimeVector {
        let vector = vector::known(dependencies);
        if vector.mode == Mode::Stable { vector.times } else { TimeVector::default() }
    }

    fn patience_ms(&self) -> u64 {
        self.options.block_ms.min(vector::patience_ms(&self.options))
    }

    fn give_up(&self, context: &mut Opaque, missing: &str) -> Reply {
        let before = vector::known(context);
        let mut abandoned = before.abandoned;
        abandoned.join(&before.times);
        let times = if self.rules.hold(Rule::FallbackForgets) { TimeVector::default() } else { before.times };
        *context = Vector { mode: Mode::Stable, times, abandoned, doubted: before.doubted }.encode();
        let words = format!(
            "FALLBACK the session depends on updates that have not arrived: {missing}; it starts again with what \
             is stable here, and this command was not executed"
        );
        Reply::Error(words.into())
    }

    fn goes_by_times(&self) -> bool {
        true
    }

    fn cut(&self, context: &Opaque, standing: &Standing<'_>) -> TimeVector {
        let vector = vector::known(context);
        match vector.mode {
            Mode::Plain => pocc::received_cut(&vector.times, standing, self.rules),
            Mode::Stable => cure::stable_cut(&vector.times, standing, self.rules),
        }
    }

    fn serves(&self, cut: &TimeVector, standing: &Standing<'_>) -> bool {
        vector::is_received(cut, standing, self.rules)
    }

    fn keeps_old_versions(&self) -> bool {
        false
    }

    fn floor(&self, standing: &Standing<'_>) -> TimeVector {
        standing.with_present(standing.stable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ensue_types::{DatacenterId, Incarnation, OperationId, PartitionId, Position, Stamp};
    use std::sync::Arc;

    #[test]
    fn a_stable_read_of_one_partition_trusts_what_stable_sessions_wrote_here_and_no_other_does() {
        let protocol = HaPocc::new(Options::default(), Rules::default());
        let written = |datacenter, mode| {
            let carried = Vector { mode, ..Vector::default() }.encode();
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
        let sight = |whole| Sight { datacenter: DatacenterId(1), times: TimeVector::default(), whole };
        let shown = |whole, datacenter, mode| protocol.shows(&sight(whole), &written(datacenter, mode));
        assert!(shown(false, 1, Mode::Stable));
        assert!(!shown(false, 1, Mode::Plain), "it may depend on what has not come");
        assert!(!shown(false, 2, Mode::Stable), "written elsewhere");
        assert!(!shown(true, 1, Mode::Stable), "a cut through partitions goes by times alone");
    }

    #[test]
    fn what_was_given_up_does_not_come_back_under_a_name() {
        let protocol = HaPocc::new(Options::default(), Rules::default());
        let mut shared = Vector::default();
        shared.times.raise(DatacenterId(0), LogicalTime(5));
        let mut context = shared.encode();
        protocol.give_up(&mut context, "dc1");
        shared.times.raise(DatacenterId(2), LogicalTime(7));
        assert_eq!(protocol.meet(&mut context, &shared.encode()), Ok(()));
        let vector = vector::known(&context);
        assert_eq!(vector.mode, Mode::Stable);
        assert_eq!(vector.times.at(DatacenterId(0)), LogicalTime::ZERO, "given up");
        assert_eq!(vector.times.at(DatacenterId(2)), LogicalTime(7), "seen by another member since");
        assert_eq!(protocol.meet(&mut context, &Opaque(vec![9])), Err(Malformed));
    }
}
