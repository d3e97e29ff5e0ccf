//! How a home moves: what the old home and the new one do, and what partitions tell each other of it (decision 56).
//!
//! - *Closing.* An operator says so at the old home. Every partition of it logs that, and executes no more commands on
//!   keys of the pattern. When all have, none can begin anything that another one takes part in.
//! - *Closed.* The transactions that were open then are over, and nothing on keys of the pattern waits for its turn.
//! - *Stopped.* When all are closed, each logs up to where it has applied every stream, its own included, and which
//!   times it shows. When that is durable it tells the same partition of every other datacenter.
//! - *Ready.* The same partition at the new home has applied all of that, and shows it.
//! - *Started.* When all partitions of the new home are ready, they execute commands.
//!
//! Partition 0 of a datacenter gathers how far its partitions are. Everything is said again until it has been answered:
//! somebody may have restarted. A partition whose log has lost something hears what all others know before it serves.

use super::Visibility;
use crate::partition::cx::homes::Known;
use crate::partition::failover::discarded::GATHERER;
use ensue_types::{CoreId, DatacenterId, HomeMove, HomeStep, OperationId, PartitionId, Rule, TimeVector};
use ensue_wire::{Address, Message};
use std::collections::BTreeSet;

impl Visibility<'_> {
    /// A partition says what it knows of moves.
    pub(in crate::partition) fn on_home_moves(&mut self, from: Address, asks: bool, moves: Vec<HomeMove>) {
        let Address::Partition { datacenter, partition } = from else { return };
        if datacenter == self.cx.datacenter {
            return self.hear_within(partition, asks, moves);
        }
        self.cx.homes.hear(datacenter, &moves);
        if asks {
            self.cx.homes.note_asked(datacenter);
        }
        moves.into_iter().for_each(|moved| self.learn(moved));
    }

    /// The same partition of another datacenter knows this of a move.
    fn learn(&mut self, mut moved: HomeMove) {
        let Some(line) = self.cx.homes.line_about(&moved) else { return };
        if moved.home == self.cx.datacenter {
            // What this one has done for it, it knows itself, or has to do again.
            moved.step = moved.step.min(HomeStep::Stopped);
        }
        let known = self.cx.homes.known(line);
        let contradicts = known.version == moved.version && known.home != moved.home;
        let is_new = match contradicts {
            true => self.is_before_ours(line, &moved),
            false => !known.has_come_to(moved.version, moved.step),
        };
        if is_new && moved.step >= HomeStep::Stopped {
            self.cx.note_moved(line, moved);
        }
    }

    /// Whether another move of the same number counts, and the one that is known here does not. A claim gives way to
    /// what the former home had begun, and to the claim of who is not dead, and comes first. Nobody starts whose claim
    /// gives way: it would have to hear its own from who keeps to the other one.
    fn is_before_ours(&self, line: usize, moved: &HomeMove) -> bool {
        let Some(known) = self.cx.homes.moved(line).filter(|known| known.is_claimed) else { return false };
        let serves = known.home == self.cx.datacenter && known.step == HomeStep::Started;
        let is_dead = |datacenter: DatacenterId| self.others.failover.failed.contains(datacenter);
        let rank = |one: &HomeMove| (is_dead(one.home), one.home);
        !serves && (!moved.is_claimed || rank(moved) < rank(known))
    }

    /// Another partition of this datacenter says how far it is, or, from partition 0, how far all are.
    fn hear_within(&mut self, from: PartitionId, asks: bool, moves: Vec<HomeMove>) {
        for moved in &moves {
            if let Some(line) = self.cx.homes.line_about(moved) {
                self.follow_within(line, moved);
            }
        }
        if self.cx.id != GATHERER {
            if from == GATHERER {
                for moved in &moves {
                    if let Some(line) = self.cx.homes.line_about(moved) {
                        let HomeMove { version, step, home, .. } = *moved;
                        self.cx.homes.note_all(line, Known { version, step, home });
                    }
                }
                if asks {
                    self.report_homes(true);
                }
            }
            return;
        }
        let known: Vec<(usize, Known)> = moves.iter().filter_map(|moved| self.known_of(moved)).collect();
        self.cx.homes.note_report(from, known, self.cx.partitions());
        let gathered = moves.into_iter().filter_map(|moved| self.gathered(moved)).collect::<Vec<_>>();
        if !gathered.is_empty() {
            self.cx.send_local(from, Message::HomeMoves { asks: false, moves: gathered });
        }
    }

    fn known_of(&self, moved: &HomeMove) -> Option<(usize, Known)> {
        let HomeMove { version, step, home, .. } = *moved;
        Some((self.cx.homes.line_about(moved)?, Known { version, step, home }))
    }

    /// The move with the step to which all partitions have come.
    fn gathered(&self, moved: HomeMove) -> Option<HomeMove> {
        let all = self.cx.homes.all(self.cx.homes.line_about(&moved)?);
        let step = if all.version == moved.version { all.step } else { HomeStep::Unknown };
        Some(HomeMove { step, applied: Vec::new(), times: TimeVector::default(), ..moved })
    }

    /// Whoever hears that this datacenter gives a home away, or claims one, does so, too. What a home that has died
    /// since had given to others of this datacenter is claimed here: it says no more what it had executed.
    fn follow_within(&mut self, line: usize, moved: &HomeMove) {
        let (own, known) = (self.cx.datacenter, self.cx.homes.known(line));
        let contradicts = known.version == moved.version && known.home != moved.home;
        let is_new = known.version < moved.version || contradicts && self.is_before_ours(line, moved);
        let is_given = moved.from == own && !moved.is_claimed;
        // Who lacks an earlier move lacks what its new home had to have, too.
        let before = self.cx.homes.moved(line);
        let from =
            before.filter(|_| contradicts).map_or(self.cx.homes.datacenter(line), |before| before.from);
        let is_dead = self.others.failover.failed.contains(moved.from);
        let is_taken = moved.home == own && from == moved.from && is_dead;
        if !is_new || !is_given && !is_taken {
            return;
        }
        let step = if is_given { HomeStep::Closing } else { HomeStep::Stopped };
        // Of what a dead one had applied nobody knows more than what it had to have when it started.
        let before = before.filter(|_| is_taken).map(|before| (before.applied.clone(), before.times.clone()));
        let (applied, times) = before.unwrap_or_default();
        self.cx.note_moved(line, HomeMove { step, is_claimed: is_taken, applied, times, ..moved.clone() });
    }

    /// Comes to the next steps of moves, if it can, and says what others lack.
    pub(in crate::partition) fn go_on_moving(&mut self) {
        if self.cx.homes.is_idle() {
            return;
        }
        let interval_us = 1_000 * self.cx.config.tuning.acknowledge_interval_ms;
        if !self.cx.homes.take_due(self.cx.now.monotonic_us, interval_us) {
            return;
        }
        let is_durable = self.cx.homes.logged() <= self.cx.journal.log_synced();
        if !is_durable {
            return; // What is not durable is neither said nor built on.
        }
        if !self.others.is_catching_up() {
            (0..self.cx.homes.len()).for_each(|line| self.advance_home(line));
        }
        // A step that was just made is said when it is durable.
        if self.cx.homes.logged() <= self.cx.journal.log_synced() {
            self.report_homes(false);
            self.tell_homes();
        }
    }

    fn advance_home(&mut self, line: usize) {
        let Some(moved) = self.cx.homes.moved(line).cloned() else { return };
        let (own, all) = (self.cx.datacenter, self.cx.homes.all(line));
        let all_are = |step: HomeStep| all.has_come_to(moved.version, step);
        match moved.step {
            HomeStep::Closing if moved.from == own => {
                if all_are(HomeStep::Closing) && self.is_drained(line) {
                    self.cx.homes.note_closed(line);
                }
                // All may have been closed before this one lost its log, and served again.
                let is_closed = self.cx.homes.known(line).step == HomeStep::Closed;
                if is_closed && all_are(HomeStep::Closed) {
                    let moved = self.as_stopped(moved);
                    self.cx.note_moved(line, moved);
                }
            }
            HomeStep::Stopped if moved.home == own && self.has_all_of(line, &moved) => {
                self.cx.note_moved(line, HomeMove { step: HomeStep::Ready, ..moved });
            }
            HomeStep::Ready if moved.home == own && all_are(HomeStep::Ready) => {
                self.cx.note_moved(line, HomeMove { step: HomeStep::Started, ..moved });
            }
            _ => {}
        }
    }

    /// Whether nothing that was begun before all partitions had closed may still change keys of the pattern.
    fn is_drained(&mut self, line: usize) -> bool {
        let own = self.cx.datacenter;
        let open: BTreeSet<OperationId> = self.transactions.open_of(own).collect();
        let drains = self.cx.homes.drains(line).get_or_insert_with(|| open.clone());
        if !drains.is_disjoint(&open) {
            return false;
        }
        let mut rows = self.keyspaces.order.rows();
        !rows.any(|(keyspace, key)| self.cx.homes.line_of(*keyspace, key) == Some(line))
    }

    /// What the new home must have: nothing follows it here.
    fn as_stopped(&mut self, moved: HomeMove) -> HomeMove {
        let own = self.cx.datacenter;
        let replication = &self.others.replication;
        let others = replication.datacenters().map(|other| (other, replication.applied_through(other)));
        let applied = others.chain([(own, self.cx.position)]).collect();
        let mut times = self.others.stable_time.times.stable().clone();
        times.raise(own, self.cx.clock.latest());
        HomeMove { step: HomeStep::Stopped, applied, times, ..moved }
    }

    /// Whether everything is here, and shown, that was executed at former homes.
    fn has_all_of(&self, line: usize, moved: &HomeMove) -> bool {
        if !Rule::MoveHomeAfterItsWrites.holds() {
            return true;
        }
        let (own, failed) = (self.cx.datacenter, &self.others.failover.failed);
        let replication = &self.others.replication;
        let has_ended = |origin: DatacenterId| {
            // Nothing follows what is here of it, once that is all that anybody has.
            let received = replication.received(origin);
            failed.is_settled(origin) && replication.applied_through(origin) >= received
        };
        let has = |&(origin, position): &_| {
            origin == own || replication.applied_through(origin) >= position || has_ended(origin)
        };
        let times = &self.others.stable_time.times;
        let shows =
            |(origin, time)| origin == own || times.stable().at(origin) >= time || failed.is_settled(origin);
        let shows_all = !times.has_snapshot_vectors() || moved.times.entries().all(shows);
        let is_claimed = |survivor| {
            let heard = self.cx.homes.heard(survivor, line);
            heard.version == moved.version && heard.home == own
        };
        let may_claim = !moved.is_claimed || has_ended(moved.from) && self.others.living().all(is_claimed);
        moved.applied.iter().all(has) && shows_all && may_claim
    }

    /// Says within the datacenter how far this partition is; partition 0, how far all are.
    fn report_homes(&mut self, is_asked: bool) {
        let own = self.cx.datacenter;
        let is_ours = |moved: &HomeMove| moved.from == own || moved.home == own;
        let is_underway = |moved: &HomeMove| match moved.step {
            HomeStep::Closing => moved.from == own,
            // A partition of the former home that loses its log hears of it from the others.
            HomeStep::Stopped => moved.home == own || moved.from == own,
            HomeStep::Ready => moved.home == own,
            _ => false,
        };
        let mut reports = Vec::new();
        for line in 0..self.cx.homes.len() {
            let Some(moved) = self.cx.homes.moved(line).filter(|moved| is_ours(moved)) else { continue };
            let step = self.cx.homes.known(line).step;
            let (applied, times) = (Vec::new(), TimeVector::default());
            let report = HomeMove { step, applied, times, ..moved.clone() };
            if self.cx.id == GATHERER || is_asked || is_underway(moved) {
                reports.push((is_underway(moved), report));
            }
        }
        if self.cx.id != GATHERER {
            if !reports.is_empty() {
                let moves = reports.into_iter().map(|(_, report)| report).collect();
                self.cx.send_local(GATHERER, Message::HomeMoves { asks: false, moves });
            }
            return;
        }
        let known: Vec<(usize, Known)> = reports.iter().filter_map(|(_, one)| self.known_of(one)).collect();
        self.cx.homes.note_report(GATHERER, known.iter().copied(), self.cx.partitions());
        let underway = reports.into_iter().filter(|(is_underway, _)| *is_underway);
        let moves: Vec<HomeMove> = underway.filter_map(|(_, report)| self.gathered(report)).collect();
        for partition in (1..self.cx.partitions()).map(PartitionId) {
            let lacks = |(line, known): &(usize, Known)| {
                !self.cx.homes.sibling_has_reported(partition, *line, known.version)
            };
            let asks = known.iter().any(lacks);
            if asks || !moves.is_empty() {
                self.cx.send_local(partition, Message::HomeMoves { asks, moves: moves.clone() });
            }
        }
    }

    /// Tells the other datacenters, and the cores of this one, what they do not know.
    fn tell_homes(&mut self) {
        let moves = self.cx.homes.told();
        for datacenter in self.others.living().collect::<Vec<_>>() {
            let has_reported = self.cx.homes.has_reported(datacenter);
            let asks = !has_reported || self.cx.homes.unheard().contains(&datacenter);
            let is_linked = self.others.failover.failed.is_linked(datacenter);
            if is_linked && (self.cx.homes.take_asked(datacenter) || asks) {
                let to = Address::Partition { datacenter, partition: self.cx.id };
                self.cx.send(to, Message::HomeMoves { asks, moves: moves.clone() });
            }
        }
        if self.cx.homes.take_tells_cores() {
            let datacenter = self.cx.datacenter;
            let cores = self.cx.config.topology.datacenters[usize::from(datacenter.0)].cores;
            for core in (0..cores).map(CoreId) {
                let to = Address::Core { datacenter, core };
                self.cx.send(to, Message::HomeMoves { asks: false, moves: moves.clone() });
            }
        }
    }

    /// Whether somebody has yet to say which homes have moved, before this partition executes anything.
    pub(in crate::partition) fn awaits_homes(&self) -> bool {
        let lives = |datacenter: &DatacenterId| !self.others.failover.failed.contains(*datacenter);
        self.cx.homes.unheard().iter().any(lives)
    }
}
