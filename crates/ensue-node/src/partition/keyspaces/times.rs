//! Versions of rows, and what of them every datacenter has passed.

use super::Keyspaces;
use crate::partition::cx::Cx;
use crate::partition::others::Others;
use crate::partition::stable_time::times::GATHERER;
use crate::view::Shown;
use ensue_protocol::VisibilityPredicate;
use ensue_types::{HereSince, LogicalTime, OperationId, TimeVector};
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
        let times = others.stable_time.times.floor().clone();
        let predicate = VisibilityPredicate { datacenter: cx.datacenter, times, whole: true };
        let budget = budget.min(self.unfolded[number]);
        self.keyspaces[number].settle(&Shown { protocol, predicate: &predicate }, budget);
        self.unfolded[number] -= budget;
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
    }

    /// Forgets what no read transaction may need any more.
    pub(in crate::partition) fn forget_after_reads(&mut self, cx: &mut Cx, others: &mut Others) {
        if !cx.protocols.iter().any(|protocol| protocol.needs().keeps_for_reads()) {
            return;
        }
        others.note_globally_stable(cx);
        let kept_ms = cx.config.tuning.read_mark_ms;
        let settled = HereSince(LogicalTime::from_ms(cx.promise().ms().saturating_sub(kept_ms)));
        let globally_stable = &others.stable_time.globally_stable;
        let is_globally_stable = |operation: &OperationId| globally_stable.contains(operation);
        for (rows, protocol) in self.keyspaces.iter_mut().zip(cx.protocols.iter()) {
            if protocol.needs().keeps_for_reads() {
                rows.settle(&settled, FOLDED_AT_ONCE);
                rows.forget_dependencies(&is_globally_stable, CLEANED_AT_ONCE);
            }
        }
    }
}

/// Rows folded in one go: a round of a busy partition must not hold up its commands.
const FOLDED_AT_ONCE: usize = 1_000;
const FOLDED_A_TURN: usize = 16;

const CLEANED_AT_ONCE: usize = 10_000;
