//! One datacenter as this partition's stream sees it: what it was sent, and what it says it has.
//!
//! Arrives: resume points and acknowledgements. Promises: never more than a window unacknowledged, never an entry out
//! of order. It does not read the log: it says which position is wanted next, and is handed the entries.

use ensue_types::{DatacenterId, Incarnation, LogicalTime, Position};
use ensue_wire::StreamAcknowledge;
use std::collections::{BTreeMap, VecDeque};

/// The sending side of a stream, toward one datacenter.
#[derive(Clone, Debug, Default)]
pub struct Sender {
    /// The next position to send; nothing until the receiver has said where to go on.
    next: Option<Position>,
    in_flight: VecDeque<(Position, usize)>,
    in_flight_bytes: usize,
    received: Position,
    synced: Position,
    /// For every origin, the watermark that the datacenter has durably applied.
    applied: BTreeMap<DatacenterId, (Incarnation, Position)>,
    /// The end of the datacenter's own stream, and its clock, when it last spoke.
    end: Position,
    clock: LogicalTime,
    /// Up to which stamp its views show everything, in whatever it writes after that end.
    shown: LogicalTime,
    /// Where the receiver last said to go on.
    resumed: Position,
    /// It asked again for what it had been sent, which it cannot take yet: one entry goes, and no more until that one
    /// is taken.
    probes: bool,
    /// An old part of the log is being read for it.
    pub(super) reading: bool,
}

impl Sender {
    /// The receiver has everything up to `received`: go on with `next`.
    pub fn on_resume(&mut self, received: Position, next: Position) {
        self.probes = self.next.is_some() && received <= self.resumed;
        self.resumed = received;
        self.next = Some(next);
        self.in_flight.clear();
        self.in_flight_bytes = 0;
        self.received = self.received.max(received);
        self.reading = false;
    }

    /// The datacenter says on a new link how much it has. If that is less than it had said to be durable it was lost,
    /// and is kept for it from now on.
    pub fn on_introduced(&mut self, received: Position) {
        if received < self.synced {
            self.received = received;
            self.synced = received;
            self.applied.clear();
            self.shown = LogicalTime::ZERO;
        }
    }

    /// Whether the datacenter's own stream has nothing behind this place that is stamped up to a time.
    pub fn has_ended_by(&self, position: Position, time: LogicalTime) -> bool {
        self.end <= position && self.clock >= time
    }

    /// The stream goes on at `first`; the incarnation before ended where `lost` would have come next.
    pub fn on_incarnation(&mut self, lost: Position, first: Position) {
        if self.next == Some(lost) {
            self.next = Some(first);
        }
    }

    /// The link broke: nothing is sent until the receiver says where to go on.
    pub fn on_link_down(&mut self) {
        self.next = None;
        self.probes = false;
        self.in_flight.clear();
        self.in_flight_bytes = 0;
        self.reading = false;
    }

    /// Takes an acknowledgement. Positions never go back, but for the end of its own stream: what it had written and
    /// nobody had received may be lost with its process.
    pub fn on_acknowledge(&mut self, acknowledge: &StreamAcknowledge, clock: LogicalTime) {
        self.received = self.received.max(acknowledge.received);
        self.probes &= self.received <= self.resumed;
        self.synced = self.synced.max(acknowledge.synced);
        if acknowledge.end.incarnation() > self.end.incarnation() {
            // It lost its tail: parts that are given back to it may be older than the time that it had said.
            self.clock = LogicalTime::ZERO;
            self.shown = LogicalTime::ZERO;
        }
        // While it waits for lost parts it says no time: its end may have grown, and is not known to have gone back.
        let goes_back = acknowledge.end < self.end;
        let is_newer = clock >= self.clock && acknowledge.end.incarnation() >= self.end.incarnation();
        if !goes_back || is_newer {
            self.end = acknowledge.end;
        }
        self.clock = self.clock.max(clock);
        self.shown = self.shown.max(acknowledge.shown);
        for &(origin, incarnation, position) in &acknowledge.applied {
            let known = self.applied.entry(origin).or_default();
            *known = (*known).max((incarnation, position));
        }
        while self.in_flight.front().is_some_and(|(position, _)| *position <= self.received) {
            let (_, bytes) = self.in_flight.pop_front().expect("front was there");
            self.in_flight_bytes -= bytes;
        }
    }

    /// The next position to send, if the window has room and there is one up to `end`.
    pub fn wants(&self, end: Position, window_bytes: usize) -> Option<Position> {
        let next = self.next?;
        (self.has_room(window_bytes) && next <= end && !self.reading).then_some(next)
    }

    /// Whether another entry may go beside those in flight.
    pub fn has_room(&self, window_bytes: usize) -> bool {
        self.in_flight_bytes < if self.probes { 1 } else { window_bytes }
    }

    /// Whether so many bytes more may go, or nothing is in flight.
    pub fn has_room_for(&self, bytes: usize, window_bytes: usize) -> bool {
        self.in_flight.is_empty() || self.in_flight_bytes + bytes <= window_bytes
    }

    /// An entry was handed to the link.
    pub fn sent(&mut self, position: Position, next: Position, bytes: usize) {
        self.next = Some(next);
        self.in_flight.push_back((position, bytes));
        self.in_flight_bytes += bytes;
    }

    /// Panics if what is counted differs from what is there.
    pub(in crate::partition) fn check_invariants(&self) -> usize {
        let bytes: usize = self.in_flight.iter().map(|(_, bytes)| bytes).sum();
        assert_eq!(bytes, self.in_flight_bytes, "bytes in flight are counted wrong");
        let rises =
            self.in_flight.iter().zip(self.in_flight.iter().skip(1)).all(|(one, next)| one.0 < next.0);
        assert!(rises, "entries in flight are out of order");
        let (synced, received) = (self.synced, self.received);
        assert!(synced <= received, "{synced} is durable elsewhere and only {received} received");
        self.in_flight.len()
    }

    /// Whether the receiver has been heard on this link.
    pub fn is_resumed(&self) -> bool {
        self.next.is_some()
    }

    pub fn synced(&self) -> Position {
        self.synced
    }

    pub fn received(&self) -> Position {
        self.received
    }

    /// What the datacenter has durably applied of an origin's stream.
    pub fn applied(&self, origin: DatacenterId) -> (Incarnation, Position) {
        self.applied.get(&origin).copied().unwrap_or_default()
    }

    pub fn end(&self) -> Position {
        self.end
    }

    pub fn clock(&self) -> LogicalTime {
        self.clock
    }

    /// Whatever has a stamp up to this every view of its later writes shows.
    pub fn shown(&self) -> LogicalTime {
        self.shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW_BYTES: usize = 100;

    /// It has been sent two entries, and has received the first.
    fn sender() -> Sender {
        let mut sender = Sender::default();
        sender.on_resume(Position(0), Position(1));
        sender.sent(Position(1), Position(2), 40);
        sender.sent(Position(2), Position(3), 60);
        sender
    }

    fn acknowledge(received: u64) -> StreamAcknowledge {
        let (received, synced) = (Position(received), Position(0));
        let (incarnation, applied) = (Incarnation(1), Vec::new());
        let (end, shown) = (Position(0), LogicalTime::ZERO);
        StreamAcknowledge { incarnation, received, synced, applied, end, shown }
    }

    #[test]
    fn a_full_window_takes_nothing_until_something_is_acknowledged() {
        let mut sender = sender();
        assert_eq!(sender.wants(Position(9), WINDOW_BYTES), None);
        assert_eq!(sender.wants(Position(9), WINDOW_BYTES + 1), Some(Position(3)));
        assert_eq!(sender.wants(Position(2), WINDOW_BYTES + 1), None, "the stream ends here");
        sender.on_acknowledge(&acknowledge(1), LogicalTime::ZERO);
        assert_eq!(sender.received(), Position(1));
        assert_eq!(sender.wants(Position(9), WINDOW_BYTES), Some(Position(3)));
        sender.reading = true;
        assert_eq!(sender.wants(Position(9), WINDOW_BYTES), None, "older ones are being read for it");
    }

    #[test]
    fn over_a_broken_link_nothing_is_in_flight() {
        let mut sender = sender();
        sender.reading = true;
        assert!(sender.is_resumed());
        sender.on_link_down();
        assert!(!sender.is_resumed() && !sender.reading);
        assert_eq!(sender.check_invariants(), 0);
        assert_eq!(sender.wants(Position(9), WINDOW_BYTES), None, "it has not said yet where to go on");
        sender.on_resume(Position(1), Position(2));
        assert_eq!(sender.wants(Position(9), 1), Some(Position(2)), "the window is empty");
    }

    #[test]
    fn what_a_datacenter_lost_is_kept_for_it_again() {
        let (origin, mark) = (DatacenterId(2), (Incarnation(1), Position(7)));
        let said = |received| {
            let mut sender = sender();
            let acknowledge = StreamAcknowledge {
                synced: Position(2),
                applied: vec![(origin, mark.0, mark.1)],
                shown: LogicalTime(9),
                ..acknowledge(2)
            };
            sender.on_acknowledge(&acknowledge, LogicalTime::ZERO);
            sender.on_introduced(Position(received));
            sender.check_invariants();
            (sender.received().0, sender.synced().0, sender.applied(origin), sender.shown().0)
        };
        assert_eq!(said(1), (1, 1, Default::default(), 0));
        assert_eq!([2, 3].map(said), [(2, 2, mark, 9); 2], "nothing was lost");
    }

    #[test]
    fn who_has_all_of_an_incarnation_goes_on_with_the_next() {
        let first = Position::before(Incarnation(2)).next();
        let mut sender = sender();
        sender.on_incarnation(Position(4), first);
        assert_eq!(sender.next, Some(Position(3)), "it lacks the third, which was not lost");
        sender.on_incarnation(Position(3), first);
        assert_eq!(sender.next, Some(first));
    }
}
