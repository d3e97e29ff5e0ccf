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
use ensue_protocol::{Choice, Protocol, StabilityState};
use ensue_store::record::Record;
use ensue_types::{
    Causes, DatacenterId, KeyspaceId, LogicalTime, OperationId, PartitionId, Position, Rule, TimeVector,
};
use ensue_wire::Message;
use std::collections::BTreeMap;

/// The partition that gathers what all have received.
pub(in crate::partition) const GATHERER: PartitionId = PartitionId(0);

/// A heartbeat that came before something that went before it.
#[derive(Clone, Copy, Debug)]
struct PendingTime {
    end: Position,
    time: LogicalTime,
}

/// One datacenter's heartbeats that do not count yet: the first, and the latest.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    first: Option<PendingTime>,
    latest: Option<PendingTime>,
}

impl Waiting {
    fn add(&mut self, pending: PendingTime) {
        if self.first.is_none() {
            self.first = Some(pending);
        } else {
            self.latest = Some(pending);
        }
    }

    /// The time of the latest heartbeat that counts when everything up to here is there.
    fn reached(&mut self, position: Position) -> Option<LogicalTime> {
        let mut time = None;
        while self.first.is_some_and(|pending| pending.end <= position) {
            time = self.first.map(|pending| pending.time);
            self.first = self.latest.take();
        }
        time
    }
}

/// The vectors, and when they are told next.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times {
    /// What any of the keyspaces wants: cuts, heartbeats, and rounds at the pace of the one that wants them most often.
    has_snapshot_vectors: bool,
    has_heartbeats: bool,
    round_ms: Option<u64>,
    received: TimeVector,
    applied: TimeVector,
    stable: TimeVector,
    floor: TimeVector,
    unreceived: BTreeMap<DatacenterId, Waiting>,
    unapplied: BTreeMap<DatacenterId, Waiting>,
    /// At partition 0: what each has said last.
    reports: BTreeMap<PartitionId, (TimeVector, TimeVector)>,
    /// What was stable when the log was read, until partition 0 has told all of it.
    proven: Option<TimeVector>,
    /// What the log knows of this, and the end of the log then.
    logged: Option<(TimeVector, TimeVector, u64)>,
    /// The end of the own stream when an entry of it was last seen in the log, and the latest stamp in the log.
    latest_logged: (Option<Position>, LogicalTime),
    next_heartbeat_us: u64,
    next_round_us: u64,
    heartbeats: u64,
    rounds: u64,
}

impl Times {
    pub(crate) fn new(protocols: &[Box<dyn Protocol>]) -> Times {
        let needs = || protocols.iter().map(|protocol| protocol.needs());
        Times {
            has_snapshot_vectors: needs().any(|needs| needs.snapshot_vectors),
            has_heartbeats: needs().any(|needs| needs.heartbeats),
            round_ms: needs().filter_map(|needs| needs.stabilization_ms).min(),
            ..Times::default()
        }
    }

    /// Whether some keyspace needs the time of partitions that write nothing.
    pub(in crate::partition) fn has_heartbeats(&self) -> bool {
        self.has_heartbeats
    }

    /// Whether some keyspace shows what is stable.
    pub(in crate::partition) fn has_snapshot_vectors(&self) -> bool {
        self.has_snapshot_vectors
    }

    /// What has been received of each datacenter.
    pub(in crate::partition) fn received(&self) -> &TimeVector {
        &self.received
    }

    /// What of that has been applied.
    pub(in crate::partition) fn applied(&self) -> &TimeVector {
        &self.applied
    }

    /// What every partition of this datacenter has received.
    pub(in crate::partition) fn stable(&self) -> &TimeVector {
        &self.stable
    }

    /// What the log, or an entry that rests on it, proves to have been stable.
    pub(in crate::partition) fn join_stable(&mut self, proven: &TimeVector) {
        self.stable.join(proven);
    }

    /// The lowest snapshot that any partition reads at or may read at.
    pub(in crate::partition) fn floor(&self) -> &TimeVector {
        &self.floor
    }

    pub(in crate::partition) fn raise_floor(&mut self, floor: &TimeVector) {
        self.floor.join(floor);
    }

    /// What a log from before this start says.
    pub(in crate::partition) fn restore(&mut self, received: &TimeVector, stable: &TimeVector) {
        self.received.join(received);
        self.stable.join(stable);
    }

    /// The log no longer holds what it knew of this, or not behind where it will be read from.
    pub(in crate::partition) fn log_again(&mut self, cx: &mut Cx) {
        self.logged = None;
        self.log_times(cx);
    }

    /// Whether silent datacenters are to be told the time now.
    pub(in crate::partition) fn are_heartbeats_due(&self, now_us: u64) -> bool {
        self.has_heartbeats && now_us >= self.next_heartbeat_us
    }

    pub(in crate::partition) fn next_heartbeats_at(&mut self, next_us: u64) {
        self.next_heartbeat_us = next_us;
    }

    pub(in crate::partition) fn count_heartbeat(&mut self) {
        self.heartbeats += 1;
    }

    /// Whether a round of stabilization begins now; the next one is due an interval later.
    pub(in crate::partition) fn begin_round(&mut self, now_us: u64) -> bool {
        let Some(interval_ms) = self.round_ms.filter(|_| now_us >= self.next_round_us) else { return false };
        self.next_round_us = now_us + 1_000 * interval_ms;
        self.rounds += 1;
        true
    }

    /// Heartbeats sent and rounds begun since the start.
    pub(in crate::partition) fn counts(&self) -> (u64, u64) {
        (self.heartbeats, self.rounds)
    }

    /// When time alone has something to do here.
    pub(in crate::partition) fn next_due(&self) -> Option<u64> {
        let heartbeat = self.has_heartbeats.then_some(self.next_heartbeat_us);
        let round = self.round_ms.map(|_| self.next_round_us);
        heartbeat.into_iter().chain(round).min()
    }

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
    pub(in crate::partition) fn report_proven(&mut self, cx: &mut Cx) {
        let known = self.stable_of_the_living(cx);
        let proven = self.proven.get_or_insert(known);
        if proven.is_zero() || !Rule::TellWhatTheLogProves.holds() {
            return;
        }
        let (received, floor) = (proven.clone(), TimeVector::default());
        cx.send_local(GATHERER, Message::Stable { received, floor, globally_stable: Vec::new() });
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
    /// must be shown after it (trap 32). Alone it is worth a write once the others may forget for it what the log
    /// holds.
    pub(in crate::partition) fn log_times(&mut self, cx: &mut Cx) {
        if !self.has_snapshot_vectors {
            return;
        }
        let end = cx.journal.log_end();
        if self.latest_logged.0 != Some(cx.position) {
            self.latest_logged = (Some(cx.position), cx.clock.latest());
        }
        let latest = self.latest_logged.1;
        let has_grown = self.logged.as_ref().is_none_or(|(_, _, logged_end)| *logged_end != end);
        if has_grown || (self.logged_shown(cx) < latest && least(cx, &self.stable) >= latest) {
            self.close_times(cx);
        }
    }

    /// The same at once: somebody is told that this is shown.
    pub(in crate::partition) fn close_times(&mut self, cx: &mut Cx) {
        if !self.has_snapshot_vectors {
            return;
        }
        let is_known = |logged: &&mut (TimeVector, TimeVector, u64)| {
            (&logged.0, &logged.1) == (&self.received, &self.stable)
        };
        if let Some(logged) = self.logged.as_mut().filter(is_known) {
            logged.2 = cx.journal.log_end();
            return;
        }
        let record = Record::Times { received: self.received.clone(), stable: self.stable.clone() };
        cx.journal.log(&record);
        if let Record::Times { received, stable } = record {
            self.logged = Some((received, stable, cx.journal.log_end()));
        }
    }

    /// An entry of another datacenter is in the log.
    pub(in crate::partition) fn note_logged(&mut self, time: LogicalTime) {
        self.latest_logged.1 = self.latest_logged.1.max(time);
    }

    /// The stamp up to which every new reader sees everything: what a write depends on has a lower stamp, and may be of
    /// the datacenter that is furthest behind.
    pub(in crate::partition) fn shown_to_all(&self, cx: &Cx) -> LogicalTime {
        least(cx, &self.stable)
    }

    /// The stamp up to which every view of a write shows everything, after a restart from this log, too: dependencies
    /// have lower stamps than what depends on them, so it is the lowest of the stable times.
    pub(in crate::partition) fn logged_shown(&self, cx: &Cx) -> LogicalTime {
        self.logged.as_ref().map_or(LogicalTime::ZERO, |(_, stable, _)| least(cx, stable))
    }
}

/// The lowest time of the other datacenters.
fn least(cx: &Cx, times: &TimeVector) -> LogicalTime {
    cx.config.topology.others().map(|datacenter| times.at(datacenter)).min().unwrap_or(LogicalTime::MAX)
}

impl StableTime {
    /// Everything that a datacenter wrote up to then has been received.
    pub(in crate::partition) fn raise_received(&mut self, datacenter: DatacenterId, time: LogicalTime) {
        self.times_rose |= self.times.received.raise(datacenter, time);
    }

    /// The same of what has been applied.
    pub(in crate::partition) fn raise_applied(&mut self, datacenter: DatacenterId, time: LogicalTime) {
        self.times_rose |= self.times.applied.raise(datacenter, time);
    }

    /// An entry with this stamp has been received, which is at this position of its stream.
    pub(in crate::partition) fn note_received(
        &mut self,
        origin: DatacenterId,
        position: Position,
        time: LogicalTime,
    ) {
        self.raise_received(origin, time);
        if let Some(time) =
            self.times.unreceived.get_mut(&origin).and_then(|waiting| waiting.reached(position))
        {
            self.raise_received(origin, time);
        }
    }

    /// An entry with this stamp has been applied. Above the watermark something is missing that may have a lower stamp.
    pub(in crate::partition) fn note_applied(
        &mut self,
        origin: DatacenterId,
        position: Position,
        watermark: Position,
        time: LogicalTime,
    ) {
        self.times.note_logged(time);
        if watermark == position {
            self.raise_applied(origin, time);
        }
        if let Some(time) =
            self.times.unapplied.get_mut(&origin).and_then(|waiting| waiting.reached(watermark))
        {
            self.raise_applied(origin, time);
        }
    }

    /// A datacenter has said the time when its stream ended at `end`. That counts when all before it is here.
    pub(in crate::partition) fn note_heartbeat(
        &mut self,
        origin: DatacenterId,
        (end, time): (Position, LogicalTime),
        received: Position,
        applied: Position,
    ) {
        let pending = PendingTime { end, time };
        match received >= end {
            true => self.raise_received(origin, time),
            false => self.times.unreceived.entry(origin).or_default().add(pending),
        }
        match applied >= end {
            true => self.raise_applied(origin, time),
            false => self.times.unapplied.entry(origin).or_default().add(pending),
        }
    }

    /// Nothing is waited for that was lost with a dead datacenter.
    pub(in crate::partition) fn note_lost(&mut self, datacenter: DatacenterId) {
        self.times.received.raise(datacenter, LogicalTime::MAX);
        self.times.stable.raise(datacenter, LogicalTime::MAX);
    }

    /// Those that wait for a time are to be looked at, whatever has risen.
    pub(in crate::partition) fn look_again(&mut self) {
        self.times_rose = true;
    }

    /// Whether a time has risen since those that wait for one were looked at.
    pub(in crate::partition) fn have_times_risen(&self) -> bool {
        self.times_rose
    }

    /// The same, as they are about to be looked at.
    pub(in crate::partition) fn take_times_risen(&mut self) -> bool {
        std::mem::take(&mut self.times_rose)
    }

    /// What every partition has received, and the floor of all, as partition 0 (`is_gathered`) or another one says it.
    /// A partition that lost the end of its log has all that only when it has caught up (`has_all`).
    pub(in crate::partition) fn on_stable(
        &mut self,
        is_gathered: bool,
        has_all: bool,
        received: &TimeVector,
        floor: &TimeVector,
        globally_stable: &[OperationId],
    ) {
        self.globally_stable.learn(globally_stable);
        if let Some(proven) = &mut self.times.proven {
            // What this partition has said itself proves nothing, at partition 0.
            if is_gathered && !floor.is_zero() && received.covers(proven) {
                *proven = TimeVector::default();
            }
        }
        // A stable session of `ha-pocc` may wait for it; another choice that it widens is made anew at each command.
        self.times_rose |= self.times.stable.join(received);
        // Whatever all have received this partition has, and it may have forgotten when it restarted.
        self.times_rose |= has_all && self.times.received.join(received);
        self.times.floor.join(floor);
    }

    pub(in crate::partition) fn on_stabilization_report(
        &mut self,
        from: PartitionId,
        received: TimeVector,
        floor: TimeVector,
        globally_stable: &[OperationId],
    ) {
        self.globally_stable.learn(globally_stable);
        self.times.reports.insert(from, (received, floor));
    }

    /// Partition 0 tells all what all have received.
    pub(in crate::partition) fn notify_stable(&mut self, cx: &mut Cx) {
        let partitions = cx.config.topology.partitions;
        if self.times.reports.len() < usize::from(partitions) {
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
        let mut reports = self.times.reports.values();
        let Some((mut received, mut floor)) = reports.next().cloned() else { return };
        for (also_received, also_floor) in reports {
            received = least(received, also_received);
            floor.meet(also_floor);
        }
        if Rule::TellWhatTheLogProves.holds() {
            received.join(&self.times.stable_of_the_living(cx));
        }
        let globally_stable = self.globally_stable.all_partitions();
        for partition in (0..partitions).map(PartitionId) {
            let (received, floor, globally_stable) =
                (received.clone(), floor.clone(), globally_stable.clone());
            cx.send_local(partition, Message::Stable { received, floor, globally_stable });
        }
    }
}

impl Times {
    /// What the next command of a session may see. The session's mode may change.
    pub(crate) fn select_version(
        &mut self,
        cx: &mut Cx,
        keyspace: KeyspaceId,
        causes: &mut Causes,
    ) -> Choice {
        if !cx.protocol(keyspace).needs().snapshot_vectors {
            return Choice::Newest;
        }
        let now = cx.promise();
        let choice = cx.protocol(keyspace).choose(causes, &self.stability(cx, now));
        if let Choice::Shown(predicate) = &choice {
            // What a session of `cure` depends on every partition has received: it may have learned so from another
            // one. From here on all see it, so that what this session writes here rests on what is shown here.
            self.stable.join(&predicate.times);
        }
        choice
    }

    /// What of a past is not here, in words.
    pub(crate) fn missing(&self, cx: &Cx, causes: &Causes, keyspace: KeyspaceId) -> String {
        let past = cx.protocol(keyspace).past(causes);
        let Ok(ensue_protocol::Past::Times(times)) = past else { return "updates".to_owned() };
        self.missing_times(cx, &times)
    }

    pub(in crate::partition) fn missing_times(&self, cx: &Cx, times: &TimeVector) -> String {
        let mut words = Vec::new();
        for (datacenter, time) in times.entries() {
            let here: LogicalTime = self.received.at(datacenter);
            if datacenter != cx.datacenter && here < time {
                let behind_ms = time.ms().saturating_sub(here.ms());
                let name = cx.name_of(datacenter);
                words.push(match here {
                    LogicalTime::ZERO => format!("{name} has not been heard yet at {}", cx.id),
                    _ => format!("{name} is {behind_ms} ms behind at {}", cx.id),
                });
            }
        }
        words.join(", ")
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
            let Times { has_snapshot_vectors, has_heartbeats, round_ms, .. } = Times::new(&protocols);
            (has_snapshot_vectors, has_heartbeats, round_ms)
        };
        for one in ensue_protocol::ALL_NAMES {
            let needs = protocol(one).needs();
            let own = (needs.snapshot_vectors, needs.heartbeats, needs.stabilization_ms);
            for names in [&[one][..], &["eventual", one], &[one, "eventual"]] {
                assert_eq!(wanted(names), own, "{names:?}");
            }
        }
        let (cure, pocc) = (wanted(&["cure"]).2, wanted(&["pocc"]).2);
        assert!(cure < pocc, "{cure:?}, {pocc:?}");
        assert_eq!((wanted(&["cure", "pocc"]).2, wanted(&["pocc", "cure"]).2), (cure, cure));
    }
}
