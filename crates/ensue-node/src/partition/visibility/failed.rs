//! The survivors of a failed datacenter bring its stream to one end.

use super::Visibility;
use crate::partition::failover::failed::{Have, StreamEnd};
use crate::partition::failover::retirement::EVERYTHING;
use crate::trace::Trace;
use ensue_types::{DatacenterId, DatacenterSet, LogicalTime, Position, Rule};
use ensue_wire::{Address, Message};

impl Visibility<'_> {
    /// Says to the other survivors what is here, as soon as no power failure can take it away again.
    pub(in crate::partition) fn report_failed(&mut self) {
        let synced = self.cx.journal.log_synced();
        if !self.others.failover.failed.mark_reported(synced) {
            return;
        }
        // Itself first: it may be alive, and acknowledge what nobody takes.
        for dead in self.dead() {
            self.others.report_failed_to(self.cx, dead, dead);
        }
        for survivor in self.others.living().collect::<Vec<_>>() {
            self.others.report_all_failed_to(self.cx, survivor);
        }
        // Those who had to speak for the others' streams are fewer now.
        self.settle_streams();
    }

    /// A link is up: whatever was said or asked over an earlier one is said and asked again.
    pub(in crate::partition) fn report_failed_again(&mut self, survivor: DatacenterId) {
        self.others.report_all_failed_to(self.cx, survivor);
        self.settle_streams();
    }

    /// Takes what is said of datacenters that have ended; anything else is handed back.
    pub(in crate::partition) fn dispatch_failed(
        &mut self,
        from: Address,
        sent_at: LogicalTime,
        message: Message,
    ) -> Option<Message> {
        match message {
            Message::DatacenterFailed { datacenter, received, time, ended } => {
                let (from, said) = (from.datacenter(), Have { received, time, ended });
                match from == datacenter {
                    true => self.on_retired(datacenter, said, sent_at),
                    false => self.on_dead(from, datacenter, said),
                }
            }
            Message::PassOn { origin, after } => {
                self.others.on_pass_on(self.cx, from.datacenter(), origin, after)
            }
            Message::Retiring { step } => self.on_retiring(from, step),
            Message::HomeMoves { asks, moves } => self.on_home_moves(from, asks, moves),
            message => return Some(message),
        }
        None
    }

    /// Another survivor says how much it has.
    fn on_dead(&mut self, from: DatacenterId, datacenter: DatacenterId, said: Have) {
        self.keyspaces.declare_dead(self.cx, self.others, datacenter, said.time);
        if self.others.failover.failed.hear(from, datacenter, said) {
            self.settle_stream(datacenter);
        }
    }

    fn settle_streams(&mut self) {
        for dead in self.dead() {
            self.settle_stream(dead);
        }
    }

    fn dead(&self) -> Vec<DatacenterId> {
        self.others.failover.failed.datacenters().collect()
    }

    /// When all survivors have spoken, the longest is the end; asks for what is not here.
    pub(in crate::partition) fn settle_stream(&mut self, datacenter: DatacenterId) {
        let Some(own) = self.others.have_of(datacenter) else { return };
        let failed = &self.others.failover.failed;
        if !failed.is_reported(datacenter) {
            return;
        }
        if failed.is_settled(datacenter) {
            return self.note_end_at_all(datacenter);
        }
        let said = |other| failed.heard(datacenter, other).map(|have| (other, have));
        let heard: Option<Vec<(DatacenterId, Have)>> = self.others.living().map(said).collect();
        let Some(heard) = heard else { return };
        let longest = heard.iter().max_by_key(|(_, have)| have.received);
        match longest {
            Some(&(holder, have)) if have.received > own.received && Rule::PassOnTheLast.holds() => {
                self.others.failover.failed.ask(datacenter, holder);
                let message = Message::PassOn { origin: datacenter, after: own.received };
                self.cx.send(Address::Partition { datacenter: holder, partition: self.cx.id }, message);
            }
            _ => {
                let whole = heard.iter().fold(own.time, |time, (_, have)| time.max(have.time));
                // One that has found the end before this one has heard somebody who has failed since.
                let failed = heard
                    .iter()
                    .filter_map(|(_, have)| have.ended)
                    .fold(self.others.failover.failed.datacenters().collect(), DatacenterSet::intersection);
                let end = StreamEnd { whole, failed, everywhere: false };
                self.cx.journal.log(&end.record(datacenter));
                self.others.failover.failed.restore_end(datacenter, end);
                self.on_settled(datacenter, own.received, end);
                for survivor in self.others.living().collect::<Vec<_>>() {
                    self.others.report_failed_to(self.cx, survivor, datacenter);
                }
                self.note_end_at_all(datacenter);
            }
        }
    }

    /// When every survivor has settled a stream, what was lost with it can be decided.
    fn note_end_at_all(&mut self, datacenter: DatacenterId) {
        let failed = &self.others.failover.failed;
        let Some(end) = failed.end(datacenter).filter(|end| !end.everywhere) else { return };
        let has_ended = |other| failed.heard(datacenter, other).is_some_and(|have| have.ended.is_some());
        if !self.others.living().all(has_ended) && Rule::DecideWhenAllHaveTheEnd.holds() {
            return;
        }
        let end = StreamEnd { everywhere: true, ..end };
        self.cx.journal.log(&end.record(datacenter));
        self.others.failover.failed.restore_end(datacenter, end);
        self.others.failover.failed.report_ended(self.cx, datacenter);
    }

    /// What was settled before a restart is so without a word of the others: they may be out of reach.
    pub(in crate::partition) fn settle_again(&mut self) {
        for datacenter in self.dead() {
            if let (Some(end), Some(have)) =
                (self.others.failover.failed.end(datacenter), self.others.have_of(datacenter))
            {
                self.on_settled(datacenter, have.received, end);
            }
        }
    }

    /// Nothing of its stream will ever come beside what is here.
    fn on_settled(&mut self, datacenter: DatacenterId, last: Position, end: StreamEnd) {
        // Of one that was removed all times are here. That counts as known when every survivor has all of it.
        let whole = if end.whole == EVERYTHING { self.cx.clock.latest() } else { end.whole };
        self.cx.trace(Trace::StreamSettled { partition: self.cx.id, datacenter, end: last });
        self.others.stable_time.raise_received(datacenter, whole);
        self.others.note_end(self.cx, datacenter, last, whole);
        self.others.note_last(datacenter, last);
        self.end_stream(datacenter, last, end.failed);
        // What was lost with another one may have waited for the end of this one's stream.
        self.others.failover.failed.report_ended_again(self.cx);
    }
}
