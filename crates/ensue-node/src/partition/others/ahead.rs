//! Times that are too far ahead of a clock: what is not taken of another datacenter, and what others do not take of
//! this one.
//!
//! - On a message of another datacenter whose time is too far ahead of this machine's clock: the time is not adopted,
//!   and counts for nothing; entries and heartbeats are not taken at all. Its sender is told (`ClockAhead`), with the
//!   next acknowledgement, and again on each new link; and when its time is taken again.
//! - On being told so: it is counted. Which clock is wrong, the sender's or the receiver's, one of them cannot know.
//!   Each datacenter's clock has a voice, this machine's own one, too: if most of them say that the logical time here
//!   is ahead, it is, and local writes are refused, since nobody else will see them for as long. One datacenter whose
//!   clock is behind stops nobody; nor does a time that another one gave and this one took, while its clock and theirs
//!   show nearly the same.

use super::Others;
use crate::partition::cx::Cx;
use crate::trace::Trace;
use ensue_types::{DatacenterId, LogicalTime, Reply, Rule};
use ensue_wire::{Address, Envelope, Message};
use std::collections::BTreeMap;

/// Both sides of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ahead {
    /// The latest time of a datacenter that was not taken; none as soon as one is, until its sender was told.
    refused: BTreeMap<DatacenterId, Option<LogicalTime>>,
    /// What each datacenter has said of the time here. The latest word stands while a link is down.
    told: BTreeMap<DatacenterId, Told>,
}

/// What a datacenter says of the time here.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    /// By how many milliseconds it is ahead of that datacenter's clock; 0 if it is taken.
    ahead_ms: u64,
    /// How much less, at least, that clock shows than this machine's.
    behind_ms: u64,
}

impl Ahead {
    /// Tells a datacenter whether its time is refused, if there is anything to tell.
    pub(in crate::partition) fn report_whether_ahead(&mut self, cx: &mut Cx, datacenter: DatacenterId) {
        let Some(&refused) = self.refused.get(&datacenter) else { return };
        if refused.is_none() {
            self.refused.remove(&datacenter);
        }
        // Nothing of it was taken yet, however long ago that was.
        let ahead_ms = refused.map_or(0, |time| time.ms().saturating_sub(cx.now.wall_ms).max(1));
        let to = Address::Partition { datacenter, partition: cx.id };
        cx.send(to, Message::ClockAhead { ahead_ms });
    }

    /// Another datacenter says whether it refuses this one's time.
    pub(in crate::partition) fn on_clock_ahead(&mut self, cx: &mut Cx, by: DatacenterId, ahead_ms: u64) {
        let told = Told { ahead_ms, behind_ms: ahead_ms.saturating_sub(cx.own_ahead_ms()) };
        let before = self.told.insert(by, told).unwrap_or_default();
        if (before.ahead_ms == 0) != (ahead_ms == 0) {
            cx.trace(Trace::TimeRefused { partition: cx.id, by, ahead_ms });
        }
    }

    /// The datacenters whose time is refused here.
    pub(crate) fn refuses(&self) -> impl Iterator<Item = DatacenterId> {
        self.refused.iter().filter(|(_, refused)| refused.is_some()).map(|(&datacenter, _)| datacenter)
    }
}

impl Others {
    /// Moves the clock past the time of a message. The partitions of a datacenter share its time, right or wrong: what
    /// one of them has stamped the next one's clients see at once. Only other datacenters are kept at a distance.
    pub(in crate::partition) fn take_time(&mut self, cx: &mut Cx, envelope: &Envelope) -> bool {
        let origin = envelope.from.datacenter();
        if origin == cx.datacenter {
            cx.advance_clock(envelope.time);
            return true;
        }
        self.replication.lateness.note_time(cx.now, origin, envelope.time);
        let is_taken = cx.advance_clock_to_peer(envelope.time);
        if !is_taken {
            let before = self.ahead.refused.insert(origin, Some(envelope.time));
            if before.flatten().is_none() {
                self.replication.acknowledgements.acknowledge_soon(origin);
            }
        } else if let Some(refused) = self.ahead.refused.get_mut(&origin).filter(|refused| refused.is_some())
        {
            *refused = None;
            self.replication.acknowledgements.acknowledge_soon(origin);
        }
        is_taken
    }

    /// The datacenters that refuse this one's time, as far as is known, and by how much it is ahead of their clocks.
    pub(in crate::partition) fn refused_by(&self) -> impl Iterator<Item = (DatacenterId, u64)> {
        self.refusing().map(|(by, told)| (by, told.ahead_ms))
    }

    fn refusing(&self) -> impl Iterator<Item = (DatacenterId, Told)> {
        let all = self.ahead.told.iter().map(|(&by, &told)| (by, told));
        all.filter(|(by, told)| told.ahead_ms > 0 && !self.failover.failed.contains(*by))
    }

    /// Whether the logical time here is ahead by most clocks. Nobody's own clock is enough alone: one that was set back
    /// says so of every time that is right. And whoever took a time of another that was just not too far ahead is
    /// refused by everyone whose clock shows a little less, for as long as the clocks differ: that is no reason to
    /// refuse writes.
    pub(in crate::partition) fn is_ahead_by_most(&self, cx: &Cx) -> bool {
        if self.refusing().next().is_none() {
            return false;
        }
        let most_ms = cx.config.tuning.clock_ahead_ms_max;
        let near_ms = if Rule::ClocksThatAgreeStopNobody.holds() { most_ms / 2 } else { 0 };
        let is_own = cx.own_ahead_ms() > most_ms + near_ms;
        let counts = |told: Told| is_own || told.behind_ms >= near_ms;
        let refusing = self.refusing().filter(|(_, told)| counts(*told)).count();
        if !Rule::MostClocksDecide.holds() {
            return refusing > 0;
        }
        let clocks = 1 + self.living_senders().count();
        refusing > 0 && 2 * (refusing + usize::from(is_own)) > clocks
    }

    /// The answer to a local write while nobody else would take it.
    pub(in crate::partition) fn ahead_refusal(&self, cx: &Cx) -> Option<Reply> {
        if !cx.config.tuning.stop_writes_on_clock_ahead || !self.is_ahead_by_most(cx) {
            return None;
        }
        let names: Vec<String> = self.refused_by().map(|(by, _)| cx.name_of(by)).collect();
        let ahead_ms = self.refused_by().map(|(_, ahead_ms)| ahead_ms).max().unwrap_or(0);
        let words = format!(
            "CLOCKAHEAD this datacenter's time is {ahead_ms} milliseconds ahead of {}, which takes nothing of it until then: set the \
             clock right, then wait, or stop the nodes and see 'ensue recover --clock'; reads are answered",
            names.join(" and ")
        );
        Some(Reply::Error(words.into()))
    }

    /// Whose time is refused by whom.
    pub(in crate::partition) fn add_clock_metrics(&self, cx: &Cx, add: &mut impl FnMut(&str, u64)) {
        add("clock_ahead", u64::from(self.is_ahead_by_most(cx)));
        for (by, ahead_ms) in self.refused_by() {
            let name = cx.name_of(by);
            add(&format!("refused_by_{name}_partitions"), 1);
            add(&format!("refused_by_{name}_ms"), ahead_ms);
        }
        for datacenter in self.ahead.refuses() {
            add(&format!("refuses_{}_partitions", cx.name_of(datacenter)), 1);
        }
    }
}
