//! Which datacenter is the home of which keys now, as the log of this partition says, and what others say of that
//! (decision 56).
//!
//! The configuration names the first home of each pattern; a move that was logged counts from then on. Every move has a
//! number, the higher one counts, and only the home itself begins one. A partition executes commands on keys with a
//! home only if its own record says that the home is here and has started. So sessions and cores may know less, or
//! later: what they send is refused then.

use super::Cx;
use crate::homes::{Home, home_at};
use ensue_store::record::Record;
use ensue_types::{DatacenterId, HomeMove, HomeStep, KeyspaceId, OperationId, PartitionId, Rule};
use std::collections::{BTreeMap, BTreeSet};

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Homes {
    own: DatacenterId,
    lines: Vec<Line>,
    /// The end of the log behind the latest record of a move.
    logged: u64,
    /// What the same partition of other datacenters has said.
    heard: BTreeMap<DatacenterId, Vec<Known>>,
    /// Who has asked, and has no answer yet.
    asked_by: BTreeSet<DatacenterId>,
    /// At partition 0: how far each partition of the datacenter is.
    reported: BTreeMap<PartitionId, Vec<Known>>,
    /// How far all partitions of the datacenter are.
    all: Vec<Known>,
    /// The log has lost its end, or all: what these know is awaited.
    unheard: BTreeSet<DatacenterId>,
    /// The cores of the datacenter have to be told.
    tells_cores: bool,
    /// Whoever waits here for what happens at another home has to be told.
    ends_waits: bool,
    next_us: u64,
}

/// A pattern of the configuration, and the latest move of its home.
#[derive(Clone, Debug)]
struct Line {
    home: Home,
    moved: Option<HomeMove>,
    /// The transactions that were open when every partition had closed: they may change keys of the pattern.
    drains: Option<BTreeSet<OperationId>>,
    is_closed: bool,
}

/// How far somebody is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::partition) struct Known {
    pub(in crate::partition) version: u64,
    pub(in crate::partition) step: HomeStep,
    pub(in crate::partition) home: DatacenterId,
}

impl Known {
    /// Whether this is at least so far with this move, or with a later one.
    pub(in crate::partition) fn has_come_to(self, version: u64, step: HomeStep) -> bool {
        (self.version, self.step) >= (version, step)
    }
}

impl Line {
    /// The home, which may not have started yet.
    fn datacenter(&self) -> DatacenterId {
        self.moved.as_ref().map_or(self.home.datacenter, |moved| moved.home)
    }

    fn has_started(&self) -> bool {
        self.moved.as_ref().is_none_or(|moved| moved.step == HomeStep::Started)
    }

    fn is_about(&self, moved: &HomeMove) -> bool {
        let Home { keyspace, pattern, datacenter } = &self.home;
        (*keyspace, pattern, *datacenter) == (moved.keyspace, &moved.pattern, moved.configured)
    }

    fn known(&self) -> Known {
        self.moved.as_ref().map_or_else(Known::default, |moved| Known {
            version: moved.version,
            step: if self.is_closed { HomeStep::Closed } else { moved.step },
            home: moved.home,
        })
    }
}

impl Homes {
    pub(super) fn new(own: DatacenterId, homes: &[Home]) -> Homes {
        let line = |home: &Home| Line { home: home.clone(), moved: None, drains: None, is_closed: false };
        let (lines, all) = (homes.iter().map(line).collect(), vec![Known::default(); homes.len()]);
        Homes { own, lines, all, ..Homes::default() }
    }

    pub(in crate::partition) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub(in crate::partition) fn len(&self) -> usize {
        self.lines.len()
    }

    /// The pattern of a key, by its place, if it has one.
    pub(in crate::partition) fn line_of(&self, keyspace: KeyspaceId, key: &[u8]) -> Option<usize> {
        home_at(self.lines.iter().map(|line| &line.home), keyspace, key)
    }

    /// The place of a pattern as it is configured; of several that are equal the first counts.
    pub(in crate::partition) fn line_named(&self, keyspace: KeyspaceId, pattern: &[u8]) -> Option<usize> {
        let is_it = |line: &Line| line.home.keyspace == keyspace && line.home.pattern == pattern;
        self.lines.iter().position(is_it)
    }

    pub(in crate::partition) fn home_of(&self, keyspace: KeyspaceId, key: &[u8]) -> Option<DatacenterId> {
        self.line_of(keyspace, key).map(|line| self.lines[line].datacenter())
    }

    /// Whether commands on keys of this pattern are executed here.
    pub(in crate::partition) fn is_open(&self, line: usize) -> bool {
        let line = &self.lines[line];
        let was_here = line.moved.as_ref().is_some_and(|moved| moved.from == self.own);
        line.datacenter() == self.own && line.has_started() || was_here && !Rule::TheFormerHomeStops.holds()
    }

    pub(in crate::partition) fn home(&self, line: usize) -> &Home {
        &self.lines[line].home
    }

    pub(in crate::partition) fn datacenter(&self, line: usize) -> DatacenterId {
        self.lines[line].datacenter()
    }

    pub(in crate::partition) fn moved(&self, line: usize) -> Option<&HomeMove> {
        self.lines[line].moved.as_ref()
    }

    pub(in crate::partition) fn known(&self, line: usize) -> Known {
        self.lines[line].known()
    }

    /// How far all partitions of the datacenter are.
    pub(in crate::partition) fn all(&self, line: usize) -> Known {
        self.all[line]
    }

    /// The pattern that a move is about.
    pub(in crate::partition) fn line_about(&self, moved: &HomeMove) -> Option<usize> {
        self.lines.iter().position(|line| line.is_about(moved))
    }

    /// The log, a checkpoint or a copy says so.
    pub(in crate::partition) fn restore(&mut self, moved: HomeMove) {
        let Some(line) = self.line_about(&moved) else { return };
        let known = self.known(line);
        if (moved.version, moved.step) > (known.version, known.step) {
            self.set(line, moved);
        }
    }

    /// A copy of another datacenter's partition says so: what this one had done for the move, it has to do again.
    pub(in crate::partition) fn as_of_another(&self, mut moved: HomeMove) -> HomeMove {
        if moved.home == self.own {
            moved.step = moved.step.min(HomeStep::Stopped);
        }
        moved
    }

    fn set(&mut self, line: usize, moved: HomeMove) {
        self.tells_cores |= moved.step >= HomeStep::Stopped;
        self.ends_waits |= moved.step == HomeStep::Started;
        let line = &mut self.lines[line];
        (line.drains, line.is_closed) = (None, false);
        line.moved = Some(moved);
    }

    /// Records that checkpoints hold.
    pub(in crate::partition) fn records(&self) -> impl Iterator<Item = Record> + '_ {
        self.moves().cloned().map(|moved| Record::HomeMoved { moved })
    }

    fn moves(&self) -> impl Iterator<Item = &HomeMove> {
        self.lines.iter().filter_map(|line| line.moved.as_ref())
    }

    /// What others are told: moves whose former home has stopped.
    pub(in crate::partition) fn told(&self) -> Vec<HomeMove> {
        self.moves().filter(|moved| moved.step >= HomeStep::Stopped).cloned().collect()
    }

    /// The end of the log behind the latest record of a move.
    pub(in crate::partition) fn logged(&self) -> u64 {
        self.logged
    }

    /// Whether a move or a question leaves something to do or to say.
    pub(in crate::partition) fn is_idle(&self) -> bool {
        self.moves().next().is_none() && self.unheard.is_empty() && self.asked_by.is_empty()
    }

    pub(in crate::partition) fn take_due(&mut self, now_us: u64, interval_us: u64) -> bool {
        let is_due = now_us >= self.next_us;
        if is_due {
            self.next_us = now_us + interval_us;
        }
        is_due
    }

    pub(in crate::partition) fn take_tells_cores(&mut self) -> bool {
        std::mem::take(&mut self.tells_cores)
    }

    pub(in crate::partition) fn take_ends_waits(&mut self) -> bool {
        std::mem::take(&mut self.ends_waits)
    }

    /// The transactions that may still change keys of a pattern that is closed.
    pub(in crate::partition) fn drains(&mut self, line: usize) -> &mut Option<BTreeSet<OperationId>> {
        &mut self.lines[line].drains
    }

    /// Nothing of what was begun on a pattern is open.
    pub(in crate::partition) fn note_closed(&mut self, line: usize) {
        self.lines[line].is_closed = true;
    }

    /// The same partition of another datacenter has said all that it knows.
    pub(in crate::partition) fn hear(&mut self, from: DatacenterId, moves: &[HomeMove]) {
        self.unheard.remove(&from);
        let mut known = vec![Known::default(); self.lines.len()];
        for moved in moves {
            let HomeMove { version, step, home, .. } = *moved;
            if let Some(line) = self.line_about(moved) {
                known[line] = Known { version, step, home };
            }
        }
        self.heard.insert(from, known);
    }

    /// What the same partition of another datacenter has said of a pattern.
    pub(in crate::partition) fn heard(&self, from: DatacenterId, line: usize) -> Known {
        self.heard.get(&from).and_then(|known| known.get(line)).copied().unwrap_or_default()
    }

    /// Whether it knows all that is known here and others are told.
    pub(in crate::partition) fn has_reported(&self, to: DatacenterId) -> bool {
        let is_told = |(line, one): (usize, &Line)| {
            one.moved.as_ref().is_none_or(|moved| {
                let heard = self.heard(to, line);
                let contradicts = heard.version == moved.version && heard.home != moved.home;
                moved.step < HomeStep::Stopped || !contradicts && heard.has_come_to(moved.version, moved.step)
            })
        };
        self.lines.iter().enumerate().all(is_told)
    }

    /// It may be another process, or not have taken what was said.
    pub(in crate::partition) fn on_link_down(&mut self, datacenter: DatacenterId) {
        self.heard.remove(&datacenter);
    }

    pub(in crate::partition) fn note_asked(&mut self, by: DatacenterId) {
        self.asked_by.insert(by);
    }

    pub(in crate::partition) fn take_asked(&mut self, by: DatacenterId) -> bool {
        self.asked_by.remove(&by)
    }

    /// The log may lack what these know.
    pub(in crate::partition) fn await_words(&mut self, of: impl Iterator<Item = DatacenterId>) {
        if !self.lines.is_empty() {
            self.unheard = of.collect();
        }
    }

    pub(in crate::partition) fn unheard(&self) -> &BTreeSet<DatacenterId> {
        &self.unheard
    }

    /// At partition 0: how far a partition of the datacenter is. It says nothing of the patterns that it does not name.
    pub(in crate::partition) fn note_report(
        &mut self,
        from: PartitionId,
        known: impl IntoIterator<Item = (usize, Known)>,
        partitions: u16,
    ) {
        let lines = self.lines.len();
        let before = self.reported.entry(from).or_insert_with(|| vec![Known::default(); lines]);
        for (line, known) in known {
            before[line] = before[line].max(known);
        }
        if self.reported.len() < usize::from(partitions) {
            return;
        }
        for line in 0..lines {
            let least = self.reported.values().map(|known| known[line]).min();
            self.note_all(line, least.unwrap_or_default());
        }
    }

    /// At partition 0: whether a partition has said how far it is with this move, or a later one.
    pub(in crate::partition) fn sibling_has_reported(
        &self,
        partition: PartitionId,
        line: usize,
        version: u64,
    ) -> bool {
        self.reported.get(&partition).is_some_and(|known| known[line].version >= version)
    }

    /// All partitions are so far. None goes back behind it.
    pub(in crate::partition) fn note_all(&mut self, line: usize, known: Known) {
        self.all[line] = self.all[line].max(known);
    }
}

impl Cx {
    /// A home moves, or has come to the next step.
    pub(in crate::partition) fn note_moved(&mut self, line: usize, moved: HomeMove) {
        self.journal.log(&Record::HomeMoved { moved: moved.clone() });
        self.homes.logged = self.journal.log_end();
        self.homes.set(line, moved);
    }
}
