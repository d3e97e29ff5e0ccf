//! Versions of rows, and what of them every datacenter has passed.

use super::Keyspaces;
use crate::partition::cx::Cx;
use crate::partition::others::Others;
use crate::partition::stable_time::times::GATHERER;
use crate::view::Shown;
use ensue_protocol::VisibilityPredicate;
use ensue_types::{Causes, HereSince, LogicalTime, OperationId, Stamp, TimeVector, Vector};
use ensue_wire::Address;

impl Keyspaces {
    /// Folds versions that no cut tells apart any more.
    fn fold_versions(&mut self, cx: &Cx, others: &Others) {
        for number in 0..self.keyspaces.len() {
            if cx.protocols[number].needs().snapshot_vectors {
                self.keyspaces[number].raise_floor(others.stable_time.times.floor());
                self.unfolded[number] = self.keyspaces[number].unsettled_locations();
                self.fold_some(cx, others, number, FOLDED_AT_ONCE);
            }
        }
    }

    /// Goes on where a round has left some: by more than has come since, so that folding keeps up with whatever is
    /// written.
    pub(in crate::partition) fn fold_more_versions(&mut self, cx: &Cx, others: &Others) {
        for number in 0..self.keyspaces.len() {
            if self.unfolded[number] > 0 {
                let come = self.keyspaces[number].take_versions_come();
                self.fold_some(cx, others, number, FOLDED_A_TURN.max(2 * come));
            }
        }
    }

    fn fold_some(&mut self, cx: &Cx, others: &Others, number: usize, budget: usize) {
        let protocol = cx.protocols[number].as_ref();
        let budget = budget.min(self.unfolded[number]);
        self.unfolded[number] -= budget;
        if protocol.needs().snapshot_vectors {
            let times = others.stable_time.times.floor().clone();
            let predicate = VisibilityPredicate { datacenter: cx.datacenter, times, whole: true };
            self.keyspaces[number].settle(&Shown { protocol, predicate: &predicate }, budget);
        } else {
            self.keyspaces[number].settle(&HereSince(self.read_since), budget);
        }
    }

    pub(in crate::partition) fn on_stable(
        &mut self,
        cx: &Cx,
        others: &mut Others,
        from: Address,
        received: &TimeVector,
        floor: &TimeVector,
        globally_stable: &[OperationId],
    ) {
        let is_gathered = matches!(from, Address::Partition { partition: GATHERER, .. });
        let has_all = !others.is_catching_up();
        others.stable_time.on_stable(is_gathered, has_all, received, floor, globally_stable);
        self.fold_versions(cx, others);
        self.forget_carried(cx, others);
    }

    /// Forgets what settled values depend on, once every reader of every datacenter sees that.
    ///
    /// Whatever a write depends on has a lower stamp than the write. A datacenter that shows every reader everything up
    /// to a stamp shows what writes up to that stamp depend on. Who reads such a write takes over its stamp as the time
    /// of every datacenter (`Others::with_bounds`), which nobody has to wait for. Where contexts name operations, a
    /// write that every datacenter has applied is itself not remembered.
    fn forget_carried(&mut self, cx: &Cx, others: &Others) {
        // A row that is written again and again would be made whole and compact in turn.
        let age_ms = CARRIED_FOR_INTERVALS * cx.config.tuning.collect_interval_ms;
        let aged_ms = cx.now.wall_ms.saturating_sub(age_ms);
        let shown = others.shown_by_all().min(LogicalTime::from_ms(aged_ms));
        for number in 0..self.keyspaces.len() {
            let protocol = cx.protocols[number].as_ref();
            let Some(round_ms) =
                protocol.needs().stabilization_ms.filter(|_| protocol.needs().snapshot_vectors)
            else {
                continue;
            };
            let pass = &mut self.forgetting[number];
            if !pass.is_under_way && shown <= pass.shown {
                continue;
            }
            if !pass.is_under_way {
                *pass = TrimPass { shown, is_under_way: true };
            }
            let budget = CLEANED_A_MILLISECOND * round_ms as usize;
            let goes_by_times = protocol.family().goes_by_times();
            let forgets = |operation: &OperationId, stamp: Stamp, carried: &Causes| {
                let is_bounded = || match goes_by_times {
                    true => carried.times().is_ok_and(|vector| is_below(vector, stamp)),
                    false => others.is_stable(cx, operation),
                };
                stamp.time <= shown && is_bounded()
            };
            pass.is_under_way = !self.keyspaces[number].forget_dependencies(&forgets, budget);
        }
    }

    /// Folds and forgets what no read transaction may need any more.
    pub(in crate::partition) fn forget_after_reads(&mut self, cx: &mut Cx, others: &mut Others) {
        if !cx.protocols.iter().any(|protocol| protocol.needs().keeps_for_reads()) {
            return;
        }
        others.note_globally_stable(cx);
        let kept_ms = cx.config.tuning.read_mark_ms;
        self.read_since = LogicalTime::from_ms(cx.promise().ms().saturating_sub(kept_ms));
        let globally_stable = &others.stable_time.globally_stable;
        let is_globally_stable =
            |operation: &OperationId, _: Stamp, _: &Causes| globally_stable.contains(operation);
        for number in 0..cx.protocols.len() {
            if cx.protocols[number].needs().keeps_for_reads() {
                self.unfolded[number] = self.keyspaces[number].unsettled_locations();
                self.fold_some(cx, others, number, FOLDED_AT_ONCE);
                self.keyspaces[number].forget_dependencies(&is_globally_stable, CLEANED_AT_ONCE);
            }
        }
    }
}

/// Whether a past has no time above a stamp.
fn is_below(past: &Vector, stamp: Stamp) -> bool {
    past.doubted.is_zero() && past.times.entries().all(|(_, time)| time <= stamp.time)
}

/// Rows folded in one go: a round of a busy partition must not hold up its commands.
const FOLDED_AT_ONCE: usize = 1_000;
const FOLDED_A_TURN: usize = 16;

const CLEANED_AT_ONCE: usize = 10_000;

/// What a write carries is kept for so many intervals of collection at least.
const CARRIED_FOR_INTERVALS: u64 = 5;

/// Rows and columns looked at to forget what they carry: five million in 100 s.
const CLEANED_A_MILLISECOND: usize = 50;

/// How far the rows of a keyspace have been looked through for what nobody need know any more.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TrimPass {
    /// Up to which stamp every datacenter showed everything when the last pass began.
    shown: LogicalTime,
    is_under_way: bool,
}
