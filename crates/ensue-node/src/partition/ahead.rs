//! Times that are too far ahead of a clock: what is not taken of another datacenter, and what others do not take of
//! this one.
//!
//! - On a message of another datacenter whose time is too far ahead of this machine's clock: the time is not adopted,
//!   and counts
//!   for nothing; entries and heartbeats are not taken at all. Its sender is told (`ClockAhead`), with the next
//!   acknowledgement,
//!   and again on each new link; and when its time is taken again.
//! - On being told so: it is counted. Which clock is wrong, the sender's or the receiver's, one of them cannot know.
//!   Each
//!   datacenter's clock has a voice, this machine's own one, too: if most of them say that the logical time here is
//!   ahead, it is, and
//!   local writes are refused, since nobody else will see them for as long. One datacenter whose clock is behind
//!   stops nobody.

use super::Partition;
use crate::trace::Trace;
use ensue_types::{DatacenterId, LogicalTime, Reply, Rule};
use ensue_wire::{Address, Envelope, Message};
use std::collections::BTreeMap;

/// Both sides of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ahead {
    /// By how many milliseconds the latest time of a datacenter was ahead of this machine's clock, until it was told
    /// that it is
    /// believed again.
    refused: BTreeMap<DatacenterId, u64>,
    /// By how many milliseconds each datacenter has said that this one is ahead. The latest word stands while a link
    /// is down.
    told: BTreeMap<DatacenterId, u64>,
}

impl Partition {
    /// Moves the clock past a time of another datacenter, unless it is absurdly far ahead (trap 31).
    pub(crate) fn observe_peer(&mut self, time: LogicalTime) -> bool {
        if self.is_too_far_ahead(time) {
            self.trace(Trace::Refused { what: "a time too far ahead of this machine's clock" });
            return false;
        }
        self.observe(time);
        true
    }

    fn is_too_far_ahead(&self, time: LogicalTime) -> bool {
        time.ms() > self.now.wall_ms + self.config.tuning.clock_ahead_ms_max
    }

    /// Moves the clock past the time of a message. The partitions of a datacenter share its time, right or wrong:
    /// what one
    /// of them has stamped the next one's clients see at once. Only other datacenters are kept at a distance.
    pub(crate) fn take_time(&mut self, envelope: &Envelope) -> bool {
        let origin = envelope.from.datacenter();
        if origin == self.datacenter {
            self.observe(envelope.time);
            return true;
        }
        let is_taken = self.observe_peer(envelope.time);
        if !is_taken {
            let ahead_ms = envelope.time.ms() - self.now.wall_ms;
            let is_new = self.ahead.refused.insert(origin, ahead_ms).is_none_or(|before| before == 0);
            if is_new {
                self.persistence.acknowledge_soon(origin);
            }
        } else if let Some(ahead_ms) = self.ahead.refused.get_mut(&origin).filter(|ahead_ms| **ahead_ms > 0) {
            *ahead_ms = 0;
            self.persistence.acknowledge_soon(origin);
        }
        is_taken
    }

    /// Tells a datacenter whether its time is refused, if there is anything to tell.
    pub(super) fn say_whether_ahead(&mut self, datacenter: DatacenterId) {
        let Some(&ahead_ms) = self.ahead.refused.get(&datacenter) else { return };
        if ahead_ms == 0 {
            self.ahead.refused.remove(&datacenter);
        }
        let to = Address::Partition { datacenter, partition: self.id };
        self.send(to, Message::ClockAhead { ahead_ms });
    }

    /// Another datacenter says whether it refuses this one's time.
    pub(super) fn on_clock_ahead(&mut self, by: DatacenterId, ahead_ms: u64) {
        let before = self.ahead.told.insert(by, ahead_ms).unwrap_or(0);
        if (before == 0) != (ahead_ms == 0) {
            self.trace(Trace::TimeRefused { partition: self.id, by, ahead_ms });
        }
    }

    /// The datacenters that refuse this one's time, as far as is known.
    pub(super) fn refused_by(&self) -> impl Iterator<Item = (DatacenterId, u64)> + '_ {
        let living = |datacenter: &DatacenterId| !self.dead.contains(*datacenter);
        self.ahead
            .told
            .iter()
            .map(|(&by, &ahead_ms)| (by, ahead_ms))
            .filter(move |(by, ahead_ms)| *ahead_ms > 0 && living(by))
    }

    /// The datacenters whose time is refused here.
    pub(super) fn refuses(&self) -> impl Iterator<Item = DatacenterId> + '_ {
        self.ahead.refused.iter().filter(|(_, ahead_ms)| **ahead_ms > 0).map(|(&datacenter, _)| datacenter)
    }

    /// Whether the logical time here is ahead by most clocks. Nobody's own clock is enough alone: one that was set
    /// back says
    /// so of every time that is right.
    pub(super) fn is_ahead_by_most(&self) -> bool {
        let refusing = self.refused_by().count();
        if !self.config.rules.hold(Rule::MostClocksDecide) {
            return refusing > 0;
        }
        let own = usize::from(self.is_too_far_ahead(self.clock.latest()));
        let clocks = 1 + self.living_senders().count();
        refusing > 0 && 2 * (refusing + own) > clocks
    }

    /// The answer to a local write while nobody else would take it.
    pub(super) fn ahead_refusal(&self) -> Option<Reply> {
        if !self.config.tuning.stop_writes_on_clock_ahead || !self.is_ahead_by_most() {
            return None;
        }
        let names: Vec<String> = self.refused_by().map(|(by, _)| self.name_of(by)).collect();
        let ahead_ms = self.refused_by().map(|(_, ahead_ms)| ahead_ms).max().unwrap_or(0);
        let words = format!(
            "CLOCKAHEAD this datacenter's time is {ahead_ms} milliseconds ahead of {}, which takes nothing of it until then: set the \
             clock right, then wait, or stop the nodes and see 'ensue recover --clock'; reads are answered",
            names.join(" and ")
        );
        Some(Reply::Error(words.into()))
    }
}
