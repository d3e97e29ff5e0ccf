//! One datacenter's stream as it arrives here: what has been received, and what of that is durable.
//!
//! Promises: every position once, in order; a gap is never accepted, a duplicate never passed on.

use ensue_types::{Position, Rule};

/// The receiving side of a stream, from one datacenter.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    received: Position,
    synced: Position,
}

/// What an arriving position is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    Next,
    Duplicate,
    /// Something before it is missing.
    Gap,
}

impl Receiver {
    /// Judges an arriving position without taking it.
    pub fn judge(&self, position: Position) -> Arrival {
        match position.cmp(&self.received.next()) {
            std::cmp::Ordering::Less => Arrival::Duplicate,
            std::cmp::Ordering::Equal => Arrival::Next,
            std::cmp::Ordering::Greater => Arrival::Gap,
        }
    }

    /// The position was logged. Panics if it is no later one: the same update would count twice.
    pub fn received_at(&mut self, position: Position) {
        let is_new = position > self.received || !Rule::ApplyOnce.holds();
        assert!(is_new, "{position} is logged after {}", self.received);
        self.received = self.received.max(position);
    }

    /// Everything up to here is durable.
    pub fn synced_at(&mut self, position: Position) {
        self.synced = self.synced.max(position);
    }

    /// What recovery found: all of it was read from the disk.
    pub fn restore(&mut self, received: Position) {
        self.received = self.received.max(received);
    }

    /// Panics if more is durable than was received.
    pub(in crate::partition) fn check_invariants(&self) {
        let (synced, received) = (self.synced, self.received);
        assert!(synced <= received, "{synced} is durable and only {received} received");
    }

    pub fn received(&self) -> Position {
        self.received
    }

    pub fn synced(&self) -> Position {
        self.synced
    }
}
