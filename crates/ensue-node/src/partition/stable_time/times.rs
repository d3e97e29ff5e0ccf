//! What this partition knows of the other datacenters' time: the mechanism that the vector protocols share.
//!
//! - `received`: everything that a datacenter wrote here up to then has been received. Its entries say so, and, when it
//!   writes nothing, its heartbeats. A heartbeat counts when everything that went before it is here.
//! - `applied`: the same of what has been applied.
//! - `stable`: what every partition of this datacenter has received. Partition 0 gathers it and tells all; so one round
//!   is two messages a partition.
//! - `floor`: the lowest cut that any partition reads at or may read at; versions below it are folded.
//!
//! Entry stamps may be taken as promises here although a write transaction's need not rise along a stream: a
//! partition's clock has passed the stamp of whatever it logs, and all that it stamps itself later lies above.

use super::StableTime;
use crate::partition::cx::Cx;
use crate::partition::keyspaces::Keyspaces;
use crate::partition::others::Others;
use crate::partition::reads::Reads;
use crate::view::Shown;
use ensue_protocol::{Protocol, StabilityState, VisibilityPredicate};
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
    pub(in crate::partition) received: TimeVector,
    pub(in crate::partition) applied: TimeVector,
    pub(in crate::partition) stable: TimeVector,
    pub(in crate::partition) floor: TimeVector,
    unreceived: BTreeMap<DatacenterId, Waiting>,
    unapplied: BTreeMap<DatacenterId, Waiting>,
    /// At partition 0: what each has said last.
    heard: BTreeMap<PartitionId, (TimeVector, TimeVector)>,
    /// What was stable when the log was read, until partition 0 has told all of it.
    proven: Option<TimeVector>,
    /// What the log knows of this, and the end of the log then.
    pub(in crate::partition) logged: Option<(TimeVector, TimeVector, u64)>,
    next_heartbeat_us: u64,
    next_round_us: u64,
    pub(in crate::partition) heartbeats: u64,
    pub(in crate::partition) rounds: u64,
}

impl Times {
    pub(crate) fn new(protocols: &[Box<dyn Protocol>]) -> Times {
        let needs = || protocols.iter().map(|protocol| protocol.needs());
        Times {
            has_cuts: needs().any(|needs| needs.cuts),
            has_heartbeats: needs().any(|needs| needs.heartbeats),
            round_ms: needs().filter_map(|needs| needs.stabilization_ms).min(),
            ..Times::default()
        }
    }

    /// Whether some keyspace shows what is stable.
    pub(in crate::partition) fn has_cuts(&self) -> bool {
        self.has_cuts
    }

    /// When time alone has something to do here.
    pub(in crate::partition) fn next_due(&self) -> Option<u64> {
        let heartbeat = self.has_heartbeats.then_some(self.next_heartbeat_us);
        let round = self.round_ms.map(|_| self.next_round_us);
        heartbeat.into_iter().chain(round).min()
    }
}

impl Times {
    /// What the protocols are told. The present is a promise.
    pub(in crate::partition) fn stability(&self, cx: &Cx, now: LogicalTime) -> StabilityState<'_> {
        StabilityState {
            datacenter: cx.datacenter,
            datacenters: cx.config.topology.datacenters.len(),
            now,
            received: &self.received,
            applied: &self.applied,
            stable: &self.stable,
        }
    }

    /// What a write rests on was stable when it was made, and its log says so. Another partition may have known that
    /// from heartbeats, which are not logged: it must know it again though nobody else can be reached. Said until
    /// partition 0 says the same.
    fn say_proven(&mut self, cx: &mut Cx) {
        let known = self.stable_of_the_living(cx);
        let proven = self.proven.get_or_insert(known);
        if proven.is_zero() || !Rule::TellWhatTheLogProves.holds() {
            return;
        }
        let (received, floor) = (proven.clone(), TimeVector::default());
        cx.send_local(GATHERER, Message::Stable { received, floor, everywhere: Vec::new() });
    }

    /// What every partition has received of the others. Of a dead one a partition may not know yet what was lost with
    /// it.
    fn stable_of_the_living(&self, cx: &Cx) -> TimeVector {
        let own = cx.datacenter;
        let is_told = |datacenter, time| datacenter != own && time < LogicalTime::MAX;
        let entries = self.stable.entries();
        entries.map(|(d, time)| if is_told(d, time) { time } else { LogicalTime::ZERO }).collect()
    }

    /// Notes what is known of the others' time beside whatever else goes to the log: what was shown before a restart
    /// must be shown after it (trap 32). Alone it is not worth a write.
    pub(in crate::partition) fn log_times(&mut self, cx: &mut Cx) {
        let end = cx.journal.log_end();
        let times = &self;
        if !times.has_cuts || times.logged.as_ref().is_some_and(|(_, _, logged_end)| *logged_end == end) {
            return;
        }
        let (received, stable) = (times.received.clone(), times.stable.clone());
        let known = times.logged.as_ref().is_some_and(|(r, s, _)| (r, s) == (&received, &stable));
        if !known {
            let (received, stable) = (received.clone(), stable.clone());
            cx.journal.log(&Record::Times { received, stable });
        }
        self.logged = Some((received, stable, cx.journal.log_end()));
    }
}

impl StableTime {
    pub(in crate::partition) fn on_heard(
        &mut self,
        from: PartitionId,
        received: TimeVector,
        floor: TimeVector,
        everywhere: &[OperationId],
    ) {
        self.everywhere.take_everywhere(everywhere);
        self.times.heard.insert(from, (received, floor));
    }

    /// Partition 0 tells all what all have received.
    fn tell_stable(&mut self, cx: &mut Cx) {
        let partitions = cx.config.topology.partitions;
        if self.times.heard.len() < usize::from(partitions) {
            return;
        }
        let least = |one: TimeVector, other: &TimeVector| {
            let mut both = one;
            match Rule::StableIsTheLeast.holds() {
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
        if Rule::TellWhatTheLogProves.holds() {
            received.join(&self.times.stable_of_the_living(cx));
        }
        let everywhere = self.everywhere.everywhere_told();
        for partition in (0..partitions).map(PartitionId) {
            let (received, floor, everywhere) = (received.clone(), floor.clone(), everywhere.clone());
            cx.send_local(partition, Message::Stable { received, floor, everywhere });
        }
    }
}

impl Others {
    /// An entry with this stamp has been received: nothing below it follows.
    pub(in crate::partition) fn note_received(&mut self, origin: DatacenterId, time: LogicalTime) {
        let position =
            self.replication.receivers.get(&origin).map(|receiver| receiver.received()).unwrap_or_default();
        self.replication.note_progress(origin, position, time);
        let mut rose = self.stable_time.times.received.raise(origin, time);
        let reached =
            self.stable_time.times.unreceived.get_mut(&origin).and_then(|waiting| waiting.reached(position));
        rose |= reached.is_some_and(|time| self.stable_time.times.received.raise(origin, time));
        self.stable_time.times_rose |= rose;
    }

    /// An entry with this stamp has been applied.
    pub(in crate::partition) fn note_applied(
        &mut self,
        origin: DatacenterId,
        position: Position,
        time: LogicalTime,
    ) {
        let watermark = self.replication.applied.set(origin).map(|set| set.watermark).unwrap_or_default();
        // Above the watermark something is missing that may have a lower stamp.
        let mut rose = watermark == position && self.stable_time.times.applied.raise(origin, time);
        let reached =
            self.stable_time.times.unapplied.get_mut(&origin).and_then(|waiting| waiting.reached(watermark));
        rose |= reached.is_some_and(|time| self.stable_time.times.applied.raise(origin, time));
        self.stable_time.times_rose |= rose;
        self.note_all_applied(origin);
    }

    /// Another datacenter has nothing to say but its time.
    pub(in crate::partition) fn on_heartbeat(
        &mut self,
        origin: DatacenterId,
        end: Position,
        time: LogicalTime,
    ) {
        let Some(receiver) = self.replication.receivers.get(&origin) else { return };
        let early = Early { end, time };
        let order = Rule::HeartbeatsFollowEntries.holds();
        let (received, applied) = match order {
            true => (
                receiver.received(),
                self.replication.applied.set(origin).map(|set| set.watermark).unwrap_or_default(),
            ),
            false => (end, end),
        };
        let times = &mut self.stable_time.times;
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
        self.stable_time.times_rose |= rose;
    }

    /// A promise: the clock has passed whatever is logged, and what is stamped later lies above.
    pub(in crate::partition) fn say_heartbeat(&mut self, cx: &mut Cx, datacenter: DatacenterId) {
        if self.replication.senders.contains_key(&datacenter) {
            cx.promise();
            self.stable_time.times.heartbeats += 1;
            let message = Message::Heartbeat { end: cx.position };
            cx.send(Address::Partition { datacenter, partition: cx.id }, message);
        }
    }
}

impl Reads {
    /// Tells the others the time, and partition 0 what has been received, if it is time to.
    pub(in crate::partition) fn say_times(
        &self,
        cx: &mut Cx,
        others: &mut Others,
        keyspaces: &mut Keyspaces,
    ) {
        let now_us = cx.now.monotonic_us;
        if others.stable_time.times.has_heartbeats && now_us >= others.stable_time.times.next_heartbeat_us {
            let interval_us = 1_000 * cx.config.tuning.heartbeat_interval_ms;
            others.stable_time.times.next_heartbeat_us = now_us + interval_us;
            self.say_heartbeats(cx, others, now_us, interval_us);
        }
        if let Some(interval_ms) = others.stable_time.times.round_ms {
            if now_us >= others.stable_time.times.next_round_us {
                others.stable_time.times.next_round_us = now_us + 1_000 * interval_ms;
                self.say_heard(cx, others, keyspaces);
            }
        }
    }

    fn say_heartbeats(&self, cx: &mut Cx, others: &mut Others, now_us: u64, interval_us: u64) {
        let silent = |datacenter: &DatacenterId| {
            others
                .replication
                .spoke_us
                .get(datacenter)
                .is_none_or(|spoke_us| spoke_us + interval_us <= now_us)
        };
        let listeners: Vec<DatacenterId> = others
            .replication
            .senders
            .iter()
            .filter(|(datacenter, sender)| sender.is_resumed() && silent(datacenter))
            .map(|(datacenter, _)| *datacenter)
            .collect();
        listeners.into_iter().for_each(|datacenter| others.say_heartbeat(cx, datacenter));
        self.ask_times(cx, others);
    }

    /// Asks the datacenters that reads here wait for to move past what is waited for: their clocks may be behind (trap
    /// 39).
    fn ask_times(&self, cx: &mut Cx, others: &Others) {
        let wanted = self.waits.wanted_times(cx);
        for (datacenter, time) in wanted.entries() {
            let behind = time > others.stable_time.times.received.at(datacenter)
                || time > others.stable_time.times.applied.at(datacenter);
            if behind
                && !others.failover.dead.contains(datacenter)
                && others.replication.senders.contains_key(&datacenter)
            {
                cx.send_at(time, Address::Partition { datacenter, partition: cx.id }, Message::AskTime);
            }
        }
    }

    /// What this partition has received, and what it may still read.
    fn say_heard(&self, cx: &mut Cx, others: &mut Others, keyspaces: &mut Keyspaces) {
        let now = cx.promise();
        let received = others.stable_time.times.received.clone();
        let floor = self.own_floor(cx, others, now);
        keyspaces.forget_after_reads(cx, others);
        let everywhere = others.stable_time.everywhere.everywhere_here(cx);
        others.stable_time.times.rounds += 1;
        cx.send_local(GATHERER, Message::Heard { received, floor, everywhere });
        others.stable_time.times.say_proven(cx);
        if cx.id == GATHERER {
            others.stable_time.tell_stable(cx);
        }
    }

    /// The lowest cut that is read at from here, or may be.
    pub(in crate::partition) fn own_floor(&self, cx: &Cx, others: &Others, now: LogicalTime) -> TimeVector {
        let stability = others.stable_time.times.stability(cx, now);
        let versioned = cx.protocols.iter().filter(|protocol| protocol.needs().cuts);
        let lowest = versioned.map(|protocol| protocol.floor(&stability)).reduce(|mut lowest, floor| {
            lowest.meet(&floor);
            lowest
        });
        let mut floor = lowest.unwrap_or_default();
        if Rule::FoldBelowEveryCut.holds() {
            self.cuts.cuts().for_each(|cut| floor.meet(cut));
        }
        floor
    }
}

impl Keyspaces {
    /// Folds versions that no cut tells apart any more.
    fn fold_versions(&mut self, cx: &Cx, others: &Others) {
        let predicate = VisibilityPredicate {
            datacenter: cx.datacenter,
            times: others.stable_time.times.floor.clone(),
            whole: true,
        };
        for number in 0..self.rows.len() {
            let protocol = cx.protocols[number].as_ref();
            if protocol.needs().cuts {
                self.rows[number].raise_floor(&predicate.times);
                self.rows[number].settle(&Shown { protocol, predicate: &predicate }, FOLDED_AT_ONCE);
            }
        }
    }
}

impl Keyspaces {
    pub(in crate::partition) fn on_stable(
        &mut self,
        cx: &Cx,
        others: &mut Others,
        from: Address,
        received: &TimeVector,
        floor: &TimeVector,
        everywhere: &[OperationId],
    ) {
        others.stable_time.everywhere.take_everywhere(everywhere);
        let is_from =
            |partition| matches!(from, Address::Partition { partition: other, .. } if other == partition);
        if let Some(proven) = &mut others.stable_time.times.proven {
            // What this partition has said itself proves nothing, at partition 0.
            if is_from(GATHERER) && !floor.is_zero() && received.covers(proven) {
                *proven = TimeVector::default();
            }
        }
        // Nobody waits for what is stable: a choice that it widens is made anew at each command.
        others.stable_time.times.stable.join(received);
        // Whatever all have received this partition has, and it may have forgotten when it restarted. If it lost the
        // end of its log it has that only when it has caught up.
        others.stable_time.times_rose |=
            others.catch_up.is_none() && others.stable_time.times.received.join(received);
        others.stable_time.times.floor.join(floor);
        self.fold_versions(cx, others);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_wants_what_any_of_its_keyspaces_does() {
        let protocol = |name: &str| ensue_protocol::by_name(name, Default::default()).expect("a protocol");
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
