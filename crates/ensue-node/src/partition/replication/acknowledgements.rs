//! What this partition has durably applied and received, and when the other datacenters are told.

use super::receiver::Receiver;
use ensue_types::{DatacenterId, Incarnation, LogicalTime, Position};
use std::collections::{BTreeMap, BTreeSet};

/// Without news, an acknowledgement still follows after this many intervals: it carries the clock, which tells others
/// that a deadline has passed here too.
const HEARTBEAT_INTERVALS: u64 = 20;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Acknowledgements {
    /// Durably applied, of every stream.
    durable: BTreeMap<DatacenterId, (Incarnation, Position)>,
    /// Up to which stamp every view shows everything, also after a restart.
    shown: LogicalTime,
    /// To whom an acknowledgement is due at the end of the turn.
    now: BTreeSet<DatacenterId>,
    /// Everybody is to get one at the next interval.
    all: bool,
    next_us: u64,
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

    /// When everybody is to get one, if somebody is.
    pub(in crate::partition) fn next_due(&self) -> Option<u64> {
        self.all.then_some(self.next_us)
    }

    /// To whom an acknowledgement is to go now. Without news, everybody gets one after some intervals, too.
    pub(in crate::partition) fn take_due(
        &mut self,
        now_us: u64,
        interval_us: u64,
        everyone: impl Iterator<Item = DatacenterId>,
    ) -> BTreeSet<DatacenterId> {
        let silent_too_long = now_us >= self.next_us + HEARTBEAT_INTERVALS * interval_us;
        if (self.all && now_us >= self.next_us) || silent_too_long {
            self.all = false;
            self.next_us = now_us + interval_us;
            self.now.extend(everyone);
        }
        std::mem::take(&mut self.now)
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

    pub(super) fn note_received(
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

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGIN: DatacenterId = DatacenterId(1);

    #[test]
    fn only_what_is_newly_durable_is_acknowledged() {
        let (mut acknowledgements, mut receiver) = (Acknowledgements::default(), Receiver::default());
        receiver.received_at(Position(1));
        receiver.received_at(Position(2));
        let mut note = |position| {
            acknowledgements.note_received(ORIGIN, &mut receiver, Position(position));
            (std::mem::take(&mut acknowledgements.now).len(), receiver.synced().0)
        };
        assert_eq!([note(1), note(1), note(2), note(1)], [(1, 1), (0, 1), (1, 2), (0, 2)]);
    }

    const INTERVAL_US: u64 = 50;

    fn is_due(acknowledgements: &mut Acknowledgements, now_us: u64) -> bool {
        !acknowledgements.take_due(now_us, INTERVAL_US, [ORIGIN].into_iter()).is_empty()
    }

    #[test]
    fn news_wait_for_an_interval_and_silence_for_many() {
        let (mut acknowledgements, many_us) =
            (Acknowledgements::default(), HEARTBEAT_INTERVALS * INTERVAL_US);
        let mut due = |now_us| is_due(&mut acknowledgements, now_us);
        assert!(!due(many_us - 1) && due(many_us));
        let next_us = many_us + INTERVAL_US;
        assert!(!due(next_us + many_us - 1) && due(next_us + many_us));
        let next_us = next_us + many_us + INTERVAL_US;
        acknowledgements.acknowledge_all_soon();
        assert_eq!(acknowledgements.next_due(), Some(next_us));
        let mut due = |now_us| is_due(&mut acknowledgements, now_us);
        assert!(!due(next_us - 1) && due(next_us) && !due(next_us));
    }

    #[test]
    fn all_hear_of_what_is_newly_applied_or_shown() {
        let mut acknowledgements = Acknowledgements::default();
        let mut note = |position, shown| {
            acknowledgements.note_applied(ORIGIN, (Incarnation(1), Position(position)));
            let applied = std::mem::take(&mut acknowledgements.all);
            acknowledgements.note_shown(LogicalTime(shown));
            let shown = std::mem::take(&mut acknowledgements.all);
            (applied, shown, acknowledgements.shown_durably().0)
        };
        assert_eq!(note(1, 5), (true, true, 5));
        assert_eq!(note(1, 5), (false, false, 5));
        assert_eq!(note(2, 4), (true, false, 5));
        assert_eq!(note(2, 6), (false, true, 6));
        acknowledgements.acknowledge_all_soon();
        assert!(acknowledgements.all);
    }
}
