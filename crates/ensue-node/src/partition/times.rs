//! What this partition knows of the other datacenters' time: the mechanism that the vector protocols share.
//!
//! - `received`: everything that a datacenter wrote here up to then has been received. Its entries say so, and, when it
//!   writes nothing, its heartbeats. A heartbeat counts when everything that went before it is here.
//! - `applied`: the same of what has been applied.
//! - `stable`: what every partition of this datacenter has received. Partition 0 gathers it and tells all; so one round is
//!   two messages a partition.
//! - `floor`: the lowest cut that any partition reads at or may read at; versions below it are folded.
//!
//! Entry stamps may be taken as promises here although a write transaction's need not rise along a stream: a partition's clock
//! has passed the stamp of whatever it logs, and all that it stamps itself later lies above.

use super::Partition;
use super::progress::Progress;
use crate::view::Shown;
use ensue_protocol::{Protocol, Sight, Standing};
use ensue_store::record::Record;
use ensue_types::{DatacenterId, LogicalTime, OperationId, PartitionId, Position, Rule, TimeVector};
use ensue_wire::{Address, Message};
use std::collections::BTreeMap;

/// The partition that gathers what all have received.
const GATHERER: PartitionId = PartitionId(0);
/// Rows folded in one go: a round of a busy partition must not hold up its commands.
const FOLDED_AT_ONCE: usize = 1_000;

/// A heartbeat that came before something that went before it.
#[derive(Clone, Copy, Debug)]
struct Early {
    end: Position,
    time: LogicalTime,
}

/// One datacenter's heartbeats that do not count yet: the first, and the latest.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    first: Option<Early>,
    latest: Option<Early>,
}

impl Waiting {
    fn add(&mut self, early: Early) {
        if self.first.is_none() {
            self.first = Some(early);
        } else {
            self.latest = Some(early);
        }
    }

    /// The time of the latest heartbeat that counts when everything up to here is there.
    fn reached(&mut self, position: Position) -> Option<LogicalTime> {
        let mut time = None;
        while self.first.is_some_and(|early| early.end <= position) {
            time = self.first.map(|early| early.time);
            self.first = self.latest.take();
        }
        time
    }
}

/// The vectors, and when they are told next.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times {
    /// What any of the keyspaces wants: cuts, heartbeats, and rounds at the pace of the one that wants them most often.
    has_cuts: bool,
    has_heartbeats: bool,
    round_ms: Option<u64>,
    pub(super) received: TimeVector,
    pub(super) applied: TimeVector,
    pub(super) stable: TimeVector,
    pub(super) floor: TimeVector,
    /// Where each stream was at which time, the own one too.
    pub(super) progress: BTreeMap<DatacenterId, Progress>,
    unreceived: BTreeMap<DatacenterId, Waiting>,
    unapplied: BTreeMap<DatacenterId, Waiting>,
    /// At partition 0: what each has said last.
    heard: BTreeMap<PartitionId, (TimeVector, TimeVector)>,
    /// When something was last sent to each datacenter.
    spoke_us: BTreeMap<DatacenterId, u64>,
    /// What was stable when the log was read, until partition 0 has told all of it.
    proven: Option<TimeVector>,
    /// What the log knows of this, and the end of the log then.
    pub(super) logged: Option<(TimeVector, TimeVector, u64)>,
    next_heartbeat_us: u64,
    next_round_us: u64,
    pub(super) heartbeats: u64,
    pub(super) rounds: u64,
}

impl Times {
    pub(super) fn new(protocols: &[Box<dyn Protocol>]) -> Times {
        let needs = || protocols.iter().map(|protocol| protocol.needs());
        Times {
            has_cuts: needs().any(|needs| needs.cuts),
            has_heartbeats: needs().any(|needs| needs.heartbeats),
            round_ms: needs().filter_map(|needs| needs.stabilization_ms).min(),
            ..Times::default()
        }
    }

    /// Whether some keyspace shows what is stable.
    pub(super) fn has_cuts(&self) -> bool {
        self.has_cuts
    }

    /// When time alone has something to do here.
    pub(super) fn next_due(&self) -> Option<u64> {
        let heartbeat = self.has_heartbeats.then_some(self.next_heartbeat_us);
        let round = self.round_ms.map(|_| self.next_round_us);
        heartbeat.into_iter().chain(round).min()
    }

    /// Entries went to a datacenter: they carry the time as a heartbeat does.
    pub(super) fn spoke(&mut self, datacenter: DatacenterId, now_us: u64) {
        self.spoke_us.insert(datacenter, now_us);
    }
}

impl Partition {
    /// What the protocols are told. The present is a promise.
    pub(crate) fn standing(&self, now: LogicalTime) -> Standing<'_> {
        Standing {
            datacenter: self.datacenter,
            datacenters: self.config.topology.datacenters.len(),
            now,
            received: &self.times.received,
            applied: &self.times.applied,
            stable: &self.times.stable,
        }
    }

    /// An entry with this stamp has been received: nothing below it follows.
    pub(crate) fn note_received(&mut self, origin: DatacenterId, time: LogicalTime) {
        let position = self.receivers.get(&origin).map(|receiver| receiver.received()).unwrap_or_default();
        self.note_progress(origin, position, time);
        let mut rose = self.times.received.raise(origin, time);
        let reached = self.times.unreceived.get_mut(&origin).and_then(|waiting| waiting.reached(position));
        rose |= reached.is_some_and(|time| self.times.received.raise(origin, time));
        self.times_rose |= rose;
    }

    /// A stream has come to this place, with an entry of this time.
    pub(super) fn note_progress(&mut self, origin: DatacenterId, position: Position, time: LogicalTime) {
        if self.times.has_cuts {
            let before = || Progress::after(Position(position.0.saturating_sub(1)));
            self.times.progress.entry(origin).or_insert_with(before).come(position, time);
        }
    }

    /// An entry with this stamp has been applied.
    pub(crate) fn note_applied(&mut self, origin: DatacenterId, position: Position, time: LogicalTime) {
        let watermark = self.applied.set(origin).map(|set| set.watermark).unwrap_or_default();
        // Above the watermark something is missing that may have a lower stamp.
        let mut rose = watermark == position && self.times.applied.raise(origin, time);
        let reached = self.times.unapplied.get_mut(&origin).and_then(|waiting| waiting.reached(watermark));
        rose |= reached.is_some_and(|time| self.times.applied.raise(origin, time));
        self.times_rose |= rose;
        self.note_all_applied(origin);
    }

    /// Another datacenter has nothing to say but its time.
    pub(super) fn on_heartbeat(&mut self, origin: DatacenterId, end: Position, time: LogicalTime) {
        let Some(receiver) = self.receivers.get(&origin) else { return };
        let early = Early { end, time };
        let order = self.config.rules.hold(Rule::HeartbeatsFollowEntries);
        let (received, applied) = match order {
            true => {
                (receiver.received(), self.applied.set(origin).map(|set| set.watermark).unwrap_or_default())
            }
            false => (end, end),
        };
        let times = &mut self.times;
        let mut rose = false;
        for (here, vector, waiting) in [
            (received, &mut times.received, &mut times.unreceived),
            (applied, &mut times.applied, &mut times.unapplied),
        ] {
            if here >= end {
                rose |= vector.raise(origin, time);
            } else {
                waiting.entry(origin).or_default().add(early);
            }
        }
        self.times_rose |= rose;
    }

    /// Tells the others the time, and partition 0 what has been received, if it is time to.
    pub(super) fn say_times(&mut self) {
        let now_us = self.now.monotonic_us;
        if self.times.has_heartbeats && now_us >= self.times.next_heartbeat_us {
            let interval_us = 1_000 * self.config.tuning.heartbeat_interval_ms;
            self.times.next_heartbeat_us = now_us + interval_us;
            self.say_heartbeats(now_us, interval_us);
        }
        if let Some(interval_ms) = self.times.round_ms {
            if now_us >= self.times.next_round_us {
                self.times.next_round_us = now_us + 1_000 * interval_ms;
                self.say_heard();
            }
        }
    }

    fn say_heartbeats(&mut self, now_us: u64, interval_us: u64) {
        let silent = |datacenter: &DatacenterId| {
            self.times.spoke_us.get(datacenter).is_none_or(|spoke_us| spoke_us + interval_us <= now_us)
        };
        let listeners: Vec<DatacenterId> = self
            .senders
            .iter()
            .filter(|(datacenter, sender)| sender.is_resumed() && silent(datacenter))
            .map(|(datacenter, _)| *datacenter)
            .collect();
        listeners.into_iter().for_each(|datacenter| self.say_heartbeat(datacenter));
        self.ask_times();
    }

    /// A promise: the clock has passed whatever is logged, and what is stamped later lies above.
    pub(super) fn say_heartbeat(&mut self, datacenter: DatacenterId) {
        if self.senders.contains_key(&datacenter) {
            self.promise();
            self.times.heartbeats += 1;
            let message = Message::Heartbeat { end: self.position };
            self.send(Address::Partition { datacenter, partition: self.id }, message);
        }
    }

    /// Asks the datacenters that reads here wait for to move past what is waited for: their clocks may be behind (trap 39).
    fn ask_times(&mut self) {
        let wanted = self.wanted_times();
        for (datacenter, time) in wanted.entries() {
            let behind =
                time > self.times.received.at(datacenter) || time > self.times.applied.at(datacenter);
            if behind && !self.dead.contains(datacenter) && self.senders.contains_key(&datacenter) {
                self.send_at(time, Address::Partition { datacenter, partition: self.id }, Message::AskTime);
            }
        }
    }

    /// What this partition has received, and what it may still read.
    fn say_heard(&mut self) {
        let now = self.promise();
        let received = self.times.received.clone();
        let floor = self.own_floor(now);
        self.forget_after_reads();
        let everywhere = self.everywhere_here();
        self.times.rounds += 1;
        self.send_local(GATHERER, Message::Heard { received, floor, everywhere });
        self.say_proven();
        if self.id == GATHERER {
            self.tell_stable();
        }
    }

    /// What a write rests on was stable when it was made, and its log says so. Another partition may have known that
    /// from heartbeats, which
    /// are not logged: it must know it again though nobody else can be reached. Said until partition 0 says the same.
    fn say_proven(&mut self) {
        let known = self.stable_of_the_living();
        let proven = self.times.proven.get_or_insert(known);
        if proven.is_zero() || !self.config.rules.hold(Rule::TellWhatTheLogProves) {
            return;
        }
        let (received, floor) = (proven.clone(), TimeVector::default());
        self.send_local(GATHERER, Message::Stable { received, floor, everywhere: Vec::new() });
    }

    /// What every partition has received of the others. Of a dead one a partition may not know yet what was lost with
    /// it.
    fn stable_of_the_living(&self) -> TimeVector {
        let own = self.datacenter;
        let is_told = |datacenter, time| datacenter != own && time < LogicalTime::MAX;
        let entries = self.times.stable.entries();
        entries.map(|(d, time)| if is_told(d, time) { time } else { LogicalTime::ZERO }).collect()
    }

    /// The lowest cut that is read at from here, or may be.
    fn own_floor(&mut self, now: LogicalTime) -> TimeVector {
        let standing = self.standing(now);
        let versioned = self.protocols.iter().filter(|protocol| protocol.needs().cuts);
        let lowest = versioned.map(|protocol| protocol.floor(&standing)).reduce(|mut lowest, floor| {
            lowest.meet(&floor);
            lowest
        });
        let mut floor = lowest.unwrap_or_default();
        if self.config.rules.hold(Rule::FoldBelowEveryCut) {
            self.cuts.cuts().for_each(|cut| floor.meet(cut));
        }
        floor
    }

    pub(super) fn on_heard(
        &mut self,
        from: PartitionId,
        received: TimeVector,
        floor: TimeVector,
        everywhere: &[OperationId],
    ) {
        self.take_everywhere(everywhere);
        self.times.heard.insert(from, (received, floor));
    }

    /// Partition 0 tells all what all have received.
    fn tell_stable(&mut self) {
        let partitions = self.config.topology.partitions;
        if self.times.heard.len() < usize::from(partitions) {
            return;
        }
        let rules = self.config.rules;
        let least = |one: TimeVector, other: &TimeVector| {
            let mut both = one;
            match rules.hold(Rule::StableIsTheLeast) {
                true => both.meet(other),
                false => drop(both.join(other)),
            }
            both
        };
        let mut heard = self.times.heard.values();
        let Some((mut received, mut floor)) = heard.next().cloned() else { return };
        for (also_received, also_floor) in heard {
            received = least(received, also_received);
            floor.meet(also_floor);
        }
        if rules.hold(Rule::TellWhatTheLogProves) {
            received.join(&self.stable_of_the_living());
        }
        let everywhere = self.everywhere_told();
        for partition in (0..partitions).map(PartitionId) {
            let (received, floor, everywhere) = (received.clone(), floor.clone(), everywhere.clone());
            self.send_local(partition, Message::Stable { received, floor, everywhere });
        }
    }

    pub(super) fn on_stable(
        &mut self,
        from: Address,
        received: &TimeVector,
        floor: &TimeVector,
        everywhere: &[OperationId],
    ) {
        self.take_everywhere(everywhere);
        let is_from =
            |partition| matches!(from, Address::Partition { partition: other, .. } if other == partition);
        if let Some(proven) = &mut self.times.proven {
            // What this partition has said itself proves nothing, at partition 0.
            if is_from(GATHERER) && !floor.is_zero() && received.covers(proven) {
                *proven = TimeVector::default();
            }
        }
        // Nobody waits for what is stable: a choice that it widens is made anew at each command.
        self.times.stable.join(received);
        // Whatever all have received this partition has, and it may have forgotten when it restarted. If it lost the end of its log
        // it has that only when it has caught up.
        self.times_rose |= self.catch_up.is_none() && self.times.received.join(received);
        self.times.floor.join(floor);
        self.fold_versions();
    }

    /// Notes what is known of the others' time beside whatever else goes to the log: what was shown before a restart must be
    /// shown after it (trap 32). Alone it is not worth a write.
    pub(super) fn log_times(&mut self) {
        let end = self.persistence.log_end();
        let times = &self.times;
        if !times.has_cuts || times.logged.as_ref().is_some_and(|(_, _, logged_end)| *logged_end == end) {
            return;
        }
        let (received, stable) = (times.received.clone(), times.stable.clone());
        let known = times.logged.as_ref().is_some_and(|(r, s, _)| (r, s) == (&received, &stable));
        if !known {
            let (received, stable) = (received.clone(), stable.clone());
            self.persistence.log(&Record::Times { received, stable });
        }
        self.times.logged = Some((received, stable, self.persistence.log_end()));
    }

    /// Folds versions that no cut tells apart any more.
    fn fold_versions(&mut self) {
        let sight = Sight { datacenter: self.datacenter, times: self.times.floor.clone(), whole: true };
        for number in 0..self.rows.len() {
            let protocol = self.protocols[number].as_ref();
            if protocol.needs().cuts {
                self.rows[number].raise_floor(&sight.times);
                self.rows[number].settle(&Shown { protocol, sight: &sight }, FOLDED_AT_ONCE);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_wants_what_any_of_its_keyspaces_does() {
        let protocol = |name: &str| {
            let (options, rules) = Default::default();
            ensue_protocol::by_name(name, options, rules).expect("a protocol")
        };
        let wanted = |names: &[&str]| {
            let protocols: Vec<_> = names.iter().map(|name| protocol(name)).collect();
            let Times { has_cuts, has_heartbeats, round_ms, .. } = Times::new(&protocols);
            (has_cuts, has_heartbeats, round_ms)
        };
        for one in ensue_protocol::ALL_NAMES {
            let needs = protocol(one).needs();
            let own = (needs.cuts, needs.heartbeats, needs.stabilization_ms);
            for names in [&[one][..], &["eventual", one], &[one, "eventual"]] {
                assert_eq!(wanted(names), own, "{names:?}");
            }
        }
        let (cure, pocc) = (wanted(&["cure"]).2, wanted(&["pocc"]).2);
        assert!(cure < pocc, "{cure:?}, {pocc:?}");
        assert_eq!((wanted(&["cure", "pocc"]).2, wanted(&["pocc", "cure"]).2), (cure, cure));
    }
}
