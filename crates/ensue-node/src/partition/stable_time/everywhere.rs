//! What every datacenter has had for as long as a read transaction may take: nobody need depend on it any more (COPS, section 5.1).
//!
//! A datacenter has what it has durably applied. Each partition knows that of its own streams, from the acknowledgements, and tells the others
//! of its datacenter in the rounds in which they exchange times: the global checkpoint. Only where read transactions go by
//! what values depend on is it of any use; elsewhere nothing is told.
//!
//! Versions need not be everywhere: they are kept for a read transaction's time from when they came.

use crate::partition::cx::Cx;
use crate::partition::keyspaces::Keyspaces;
use crate::partition::others::Others;
use ensue_types::{DatacenterId, HereSince, LogicalTime, OperationId, PartitionId, Position, Rule};
use std::collections::{BTreeMap, VecDeque};

/// Versions folded, and slots looked at for what may be forgotten, in one go: a round must not hold up commands.
const FOLDED_AT_ONCE: usize = 1_000;
const CLEANED_AT_ONCE: usize = 10_000;

/// Up to where, in each stream, and what is too young to say so.
#[derive(Clone, Debug, Default)]
pub(crate) struct Everywhere {
    streams: BTreeMap<(DatacenterId, PartitionId), Position>,
    young: VecDeque<(u64, Vec<(DatacenterId, Position)>)>,
}

impl Everywhere {
    fn raise(&mut self, datacenter: DatacenterId, partition: PartitionId, position: Position) {
        let known = self.streams.entry((datacenter, partition)).or_default();
        *known = position.max(*known);
    }

    pub(crate) fn contains(&self, operation: &OperationId) -> bool {
        let known = self.streams.get(&(operation.datacenter, operation.partition));
        known.is_some_and(|known| *known >= operation.position)
    }

    /// All streams of one partition, or all.
    fn told(&self, of: Option<PartitionId>) -> Vec<OperationId> {
        let wanted = |partition: PartitionId| of.is_none_or(|of| of == partition);
        let streams = self.streams.iter().filter(|((_, partition), _)| wanted(*partition));
        let name = |(&(datacenter, partition), &position): (&(DatacenterId, PartitionId), &Position)| {
            OperationId { datacenter, incarnation: position.incarnation(), partition, position }
        };
        streams.map(name).collect()
    }
}

impl Everywhere {
    /// What this partition has to say of its own streams.
    pub(in crate::partition) fn everywhere_here(&self, cx: &Cx) -> Vec<OperationId> {
        self.told(Some(cx.id))
    }

    /// What all have said.
    pub(in crate::partition) fn everywhere_told(&self) -> Vec<OperationId> {
        self.told(None)
    }

    pub(in crate::partition) fn take_everywhere(&mut self, told: &[OperationId]) {
        for operation in told {
            self.raise(operation.datacenter, operation.partition, operation.position);
        }
    }
}

impl Keyspaces {
    /// Forgets what no read transaction may need any more.
    pub(in crate::partition) fn forget_after_reads(&mut self, cx: &mut Cx, others: &mut Others) {
        if !cx.protocols.iter().any(|protocol| protocol.needs().keeps_for_reads()) {
            return;
        }
        others.note_everywhere(cx);
        let kept_ms = cx.config.tuning.read_mark_ms;
        let settled = HereSince(LogicalTime::from_ms(cx.promise().ms().saturating_sub(kept_ms)));
        let everywhere = &others.stable_time.everywhere;
        let is_everywhere = |operation: &OperationId| everywhere.contains(operation);
        for (rows, protocol) in self.rows.iter_mut().zip(cx.protocols.iter()) {
            if protocol.needs().keeps_for_reads() {
                rows.settle(&settled, FOLDED_AT_ONCE);
                rows.forget_dependencies(&is_everywhere, CLEANED_AT_ONCE);
            }
        }
    }
}

impl Others {
    /// Notes what is everywhere now, to be sure of it when a read transaction that began without it is over. Twice its time, for
    /// clocks that differ.
    fn note_everywhere(&mut self, cx: &Cx) {
        let now_us = cx.now.monotonic_us;
        let mut age_us = 2_000 * cx.config.tuning.read_transaction_timeout_ms;
        if !Rule::ForgetAfterTheReads.holds() {
            age_us = 0;
        }
        self.stable_time.everywhere.young.push_back((now_us, self.applied_everywhere()));
        while self
            .stable_time
            .everywhere
            .young
            .front()
            .is_some_and(|(since_us, _)| since_us + age_us <= now_us)
        {
            let Some((_, positions)) = self.stable_time.everywhere.young.pop_front() else { break };
            for (datacenter, position) in positions {
                self.stable_time.everywhere.raise(datacenter, cx.id, position);
            }
        }
    }

    /// Up to where every datacenter, this one too, has durably applied each datacenter's stream of this partition.
    pub(in crate::partition) fn applied_everywhere(&self) -> Vec<(DatacenterId, Position)> {
        let here = self.replication.acknowledgements.applied_durably();
        let least = |(datacenter, _, here): (DatacenterId, _, Position)| {
            let elsewhere = self.living_senders().map(|sender| sender.applied(datacenter).1);
            let position = match Rule::DropWhatAllHave.holds() {
                true => elsewhere.fold(here, Position::min),
                false => elsewhere.fold(here, Position::max),
            };
            (datacenter, position)
        };
        here.map(least).collect()
    }
}
