//! Outputs of a partition, held until the log records that they rest on are durable enough.
//!
//! "Durable enough" is written to the operating system, or synced under `appendfsync always`. Order is kept: what was
//! said later leaves later, but for what is sent ahead, which rests on no record.

use ensue_wire::Envelope;
use std::collections::VecDeque;

/// Held and released messages.
#[derive(Clone, Debug, Default)]
pub struct Outbox {
    held: VecDeque<(u64, Envelope)>,
    released: VecDeque<Envelope>,
    durable: u64,
}

impl Outbox {
    /// Sends when the log is durable up to `rests_on`.
    pub fn send(&mut self, rests_on: u64, envelope: Envelope) {
        if self.held.is_empty() && rests_on <= self.durable {
            self.released.push_back(envelope);
        } else {
            self.held.push_back((rests_on, envelope));
        }
    }

    /// Sends at once.
    pub fn send_ahead(&mut self, envelope: Envelope) {
        self.released.push_back(envelope);
    }

    /// The log is durable up to here.
    pub fn release(&mut self, durable: u64) {
        self.durable = self.durable.max(durable);
        while self.held.front().is_some_and(|(rests_on, _)| *rests_on <= self.durable) {
            let (_, envelope) = self.held.pop_front().expect("front was there");
            self.released.push_back(envelope);
        }
    }

    /// The next message that may leave.
    pub fn next(&mut self) -> Option<Envelope> {
        self.released.pop_front()
    }

    /// Gives up everything that has not left: the partition has stopped.
    pub fn clear(&mut self) -> Vec<Envelope> {
        let held = std::mem::take(&mut self.held).into_iter().map(|(_, envelope)| envelope);
        std::mem::take(&mut self.released).into_iter().chain(held).collect()
    }
}
