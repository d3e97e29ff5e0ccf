//! What this partition has durably applied and received, and when the other datacenters are told.

use super::receiver::Receiver;
use ensue_types::{DatacenterId, Incarnation, LogicalTime, Position};
use std::collections::{BTreeMap, BTreeSet};

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Acknowledgements {
    /// Durably applied, of every stream.
    durable: BTreeMap<DatacenterId, (Incarnation, Position)>,
    /// Up to which stamp every view shows everything, also after a restart.
    shown: LogicalTime,
    /// To whom an acknowledgement is due at the end of the turn.
    pub(in crate::partition) now: BTreeSet<DatacenterId>,
    /// Everybody is to get one at the next interval.
    pub(in crate::partition) all: bool,
    pub(in crate::partition) next_us: u64,
}

impl Acknowledgements {
    /// What has been durably applied of every stream, the own one included.
    pub(in crate::partition) fn applied_durably(
        &self,
    ) -> impl Iterator<Item = (DatacenterId, Incarnation, Position)> {
        self.durable
            .iter()
            .map(|(datacenter, (incarnation, position))| (*datacenter, *incarnation, *position))
    }

    /// The stamp up to which every view shows everything, also after a restart.
    pub(in crate::partition) fn shown_durably(&self) -> LogicalTime {
        self.shown
    }

    /// Everybody hears of what was applied, at the next interval.
    pub(in crate::partition) fn acknowledge_all_soon(&mut self) {
        self.all = true;
    }

    pub(in crate::partition) fn acknowledge_soon(&mut self, datacenter: DatacenterId) {
        self.now.insert(datacenter);
    }

    pub(in crate::partition) fn note_applied(
        &mut self,
        datacenter: DatacenterId,
        mark: (Incarnation, Position),
    ) {
        let before = self.durable.insert(datacenter, mark);
        self.all |= before != Some(mark);
    }

    pub(in crate::partition) fn note_shown(&mut self, shown: LogicalTime) {
        self.all |= shown > self.shown;
        self.shown = self.shown.max(shown);
    }

    pub(in crate::partition) fn note_received(
        &mut self,
        datacenter: DatacenterId,
        receiver: &mut Receiver,
        position: Position,
    ) {
        if receiver.synced() < position {
            receiver.synced_at(position);
            self.now.insert(datacenter);
        }
    }
}
