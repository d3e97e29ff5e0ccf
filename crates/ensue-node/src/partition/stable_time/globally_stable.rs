//! What every datacenter has had for as long as a read transaction may take: nobody need depend on it any more (COPS,
//! section 5.1).
//!
//! A datacenter has what it has durably applied. Each partition knows that of its own streams, from the
//! acknowledgements, and tells the others of its datacenter in the rounds in which they exchange times: the global
//! checkpoint. Only where read transactions go by what values depend on is it of any use; elsewhere nothing is told.
//!
//! Versions need not be everywhere: they are kept for a read transaction's time from when they came.

use crate::partition::cx::Cx;
use ensue_types::{DatacenterId, OperationId, PartitionId, Position};
use std::collections::{BTreeMap, VecDeque};

/// Up to where, in each stream, and what is too young to say so.
#[derive(Clone, Debug, Default)]
pub(crate) struct GloballyStable {
    streams: BTreeMap<(DatacenterId, PartitionId), Position>,
    young: VecDeque<(u64, Vec<(DatacenterId, Position)>)>,
}

impl GloballyStable {
    /// Every datacenter has applied the streams of this partition up to these positions now. It counts when that is
    /// `age_us` ago.
    pub(in crate::partition) fn note(
        &mut self,
        partition: PartitionId,
        positions: Vec<(DatacenterId, Position)>,
        now_us: u64,
        age_us: u64,
    ) {
        self.young.push_back((now_us, positions));
        while self.young.front().is_some_and(|(since_us, _)| since_us + age_us <= now_us) {
            let Some((_, positions)) = self.young.pop_front() else { break };
            // Who has written nothing is not named: another partition may not know that datacenter yet.
            for (datacenter, position) in positions.into_iter().filter(|(_, at)| *at > Position(0)) {
                self.raise(datacenter, partition, position);
            }
        }
    }

    fn raise(&mut self, datacenter: DatacenterId, partition: PartitionId, position: Position) {
        let known = self.streams.entry((datacenter, partition)).or_default();
        *known = position.max(*known);
    }

    pub(crate) fn contains(&self, operation: &OperationId) -> bool {
        let known = self.streams.get(&(operation.datacenter, operation.partition));
        known.is_some_and(|known| *known >= operation.position)
    }

    /// All streams of one partition, or all.
    fn list(&self, of: Option<PartitionId>) -> Vec<OperationId> {
        let wanted = |partition: PartitionId| of.is_none_or(|of| of == partition);
        let streams = self.streams.iter().filter(|((_, partition), _)| wanted(*partition));
        let name = |(&(datacenter, partition), &position): (&(DatacenterId, PartitionId), &Position)| {
            OperationId { datacenter, incarnation: position.incarnation(), partition, position }
        };
        streams.map(name).collect()
    }

    /// What this partition has to say of its own streams.
    pub(in crate::partition) fn own_partition(&self, cx: &Cx) -> Vec<OperationId> {
        self.list(Some(cx.id))
    }

    /// What all have said.
    pub(in crate::partition) fn all_partitions(&self) -> Vec<OperationId> {
        self.list(None)
    }

    pub(in crate::partition) fn learn(&mut self, told: &[OperationId]) {
        for operation in told {
            self.raise(operation.datacenter, operation.partition, operation.position);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ensue_types::Incarnation;

    fn operation(datacenter: u8, partition: u16, position: u64) -> OperationId {
        let (datacenter, partition) = (DatacenterId(datacenter), PartitionId(partition));
        OperationId { datacenter, incarnation: Incarnation(1), partition, position: Position(position) }
    }

    #[test]
    fn what_was_told_is_known_stream_by_stream_and_never_taken_back() {
        let mut known = GloballyStable::default();
        known.learn(&[operation(1, 0, 5), operation(1, 3, 2), operation(1, 0, 4)]);
        let has =
            |datacenter, partition, position| known.contains(&operation(datacenter, partition, position));
        assert!(has(1, 0, 4) && has(1, 0, 5) && has(1, 3, 2));
        assert!(!has(1, 0, 6) && !has(1, 3, 3) && !has(2, 0, 1));
        assert_eq!(known.list(Some(PartitionId(3))), [operation(1, 3, 2)]);
        assert_eq!(known.all_partitions(), [operation(1, 0, 5), operation(1, 3, 2)]);
    }
}
