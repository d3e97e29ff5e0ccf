//! What the leader of a group knows beside what every member knows: when the partition may live here, what it asked
//! for, and for how long nobody else can lead.

use crate::config::Config;
use crate::disk::Purpose;
use crate::held::Held;
use crate::moving::Moving;
use crate::operation::Operation;
use crate::question::Question;
use crate::replica::{Output, Outputs};
use ensue_store::disk::{DiskDone, DiskOp, FileName};
use ensue_types::Rule;
use raft::RawNode;
use std::collections::{BTreeMap, VecDeque};

/// A member that was not heard for so many ticks is silent.
const SILENT_TICKS: u32 = 24;

#[derive(Debug)]
pub(crate) struct Leading {
    term: u64,
    /// Everything of earlier leaders is carried out.
    is_current: bool,
    has_partition: bool,
    /// A new epoch must be committed first.
    needs_epoch: bool,
    /// The one that is proposed.
    awaits_epoch: Option<u64>,
    /// What the partition asked for and was not proposed yet.
    waiting: VecDeque<DiskOp>,
    /// Files of which bytes are taken away by what was proposed and is not committed.
    taking: Vec<FileName>,
    /// Another member was told to stand for election, whatever its promise.
    hands_over: bool,
    /// The last question of the partition that is not answered.
    asked: Option<u64>,
    /// When the engine was last asked whether this replica leads, if it has not answered.
    asked_at_us: Option<u64>,
    /// Until then nobody else is elected.
    lease_until_us: u64,
    /// Empty replicas that were admitted: the name that each node was given, and for which start.
    admitted: BTreeMap<u16, (u64, u64)>,
    /// The members that have said, in this life of theirs, where they are.
    lives: BTreeMap<u64, u32>,
    pub(crate) moving: Moving,
    /// For how many ticks each member was not heard.
    silent: BTreeMap<u64, u32>,
}

impl Leading {
    pub(crate) fn new(term: u64, needs_epoch: bool) -> Leading {
        Leading {
            term,
            is_current: false,
            has_partition: false,
            needs_epoch,
            awaits_epoch: None,
            waiting: VecDeque::new(),
            taking: Vec::new(),
            hands_over: false,
            asked: None,
            asked_at_us: None,
            lease_until_us: 0,
            admitted: BTreeMap::new(),
            lives: BTreeMap::new(),
            moving: Moving::default(),
            silent: BTreeMap::new(),
        }
    }

    pub(crate) fn term(&self) -> u64 {
        self.term
    }

    /// Whether everything of earlier leaders is carried out.
    pub(crate) fn is_current(&self) -> bool {
        self.is_current
    }

    pub(crate) fn has_partition(&self) -> bool {
        self.has_partition
    }

    /// Whether what was committed may be lost, and no new epoch says so yet.
    pub(crate) fn needs_epoch(&self) -> bool {
        self.needs_epoch
    }

    /// No epoch is needed after all, unless it is proposed already.
    pub(crate) fn spare_epoch(&mut self) {
        self.needs_epoch &= self.awaits_epoch.is_some();
    }

    /// An entry of this term is carried out: the first one is behind all of earlier leaders.
    pub(crate) fn note_applied(&mut self, term: u64) {
        self.is_current |= term == self.term;
    }

    /// The engine forgets every few ticks whom it has heard.
    pub(crate) fn on_tick(&mut self, raw: &RawNode<Held>) {
        self.moving.on_tick();
        let prs = raw.raft.prs();
        self.silent.retain(|id, _| prs.get(*id).is_some());
        for (id, progress) in prs.iter() {
            let ticks = self.silent.entry(*id).or_insert(SILENT_TICKS);
            *ticks = if progress.recent_active { 0 } else { ticks.saturating_add(1) };
        }
    }

    /// Whether a member was heard lately.
    pub(crate) fn is_heard(&self, raw: &RawNode<Held>, id: u64) -> bool {
        id == raw.raft.id || self.silent.get(&id).is_some_and(|ticks| *ticks < SILENT_TICKS)
    }

    /// Whether a member says for the first time that it is in this life.
    pub(crate) fn is_new_life(&mut self, id: u64, life: u32) -> bool {
        self.lives.insert(id, life) != Some(life)
    }

    /// The name that the start of an empty replica was given.
    pub(crate) fn admitted(&self, node: u16, nonce: u64) -> Option<u64> {
        self.admitted.get(&node).filter(|(_, of)| *of == nonce).map(|(id, _)| *id)
    }

    pub(crate) fn note_admitted(&mut self, node: u16, id: u64, nonce: u64) {
        self.admitted.insert(node, (id, nonce));
    }

    /// The partition starts when everything of earlier leaders is carried out.
    pub(crate) fn begin_partition(&mut self, raw: &mut RawNode<Held>, out: &mut Outputs) {
        let is_behind = !self.is_current && Rule::OwnersBeginWithEverything.holds();
        if is_behind || self.has_partition {
            return;
        }
        let epoch = raw.store().contents.epoch;
        if self.needs_epoch {
            if self.awaits_epoch.is_none() {
                let proposed = raw.propose(Vec::new(), Operation::Epoch(epoch + 1).encode());
                self.awaits_epoch = proposed.is_ok().then_some(epoch + 1);
            }
            return;
        }
        self.has_partition = true;
        out.push(Output::Lead { term: self.term, epoch });
    }

    /// The partition asks something of its directory.
    pub(crate) fn request(
        &mut self,
        config: &Config,
        raw: &mut RawNode<Held>,
        out: &mut Outputs,
        op: DiskOp,
    ) {
        self.waiting.push_back(op);
        self.propose_waiting(config, raw, out);
    }

    /// Proposes what the partition asked for, in its order, as far as that goes.
    pub(crate) fn propose_waiting(&mut self, config: &Config, raw: &mut RawNode<Held>, out: &mut Outputs) {
        let longest = config.tuning.message_bytes as usize;
        while let Some(op) = self.waiting.front_mut().filter(|_| self.has_partition) {
            let is_replicated = Operation::of(op).is_some();
            if let DiskOp::Append { file, bytes } = op {
                // An entry fits into a message; a partition may have much to say at once.
                while is_replicated && bytes.len() > longest && !self.taking.contains(file) {
                    let part = Operation::Append { file: *file, bytes: bytes.slice(..longest), more: true };
                    if raw.propose(Vec::new(), part.encode()).is_err() {
                        return;
                    }
                    *bytes = bytes.slice(longest..);
                }
            }
            if let Some(operation) = Operation::of(op) {
                let waits = operation.file().is_some_and(|file| self.taking.contains(&file));
                if waits || raw.propose(Vec::new(), operation.encode()).is_err() {
                    return;
                }
                self.taking.extend(operation.takes_away());
                self.waiting.pop_front();
                continue;
            }
            let reads = matches!(op, DiskOp::List | DiskOp::Read { .. });
            if reads && !raw.raft.raft_log.unstable_entries().is_empty() {
                // What was proposed before is written first.
                return;
            }
            let Some(op) = self.waiting.pop_front() else { return };
            match op {
                DiskOp::Rewrite { file } => out.push(Output::Done(DiskDone::Rewritten { file })),
                DiskOp::Append { file, .. } => out.push(Output::Done(DiskDone::Appended { file })),
                DiskOp::Delete { file } => out.push(Output::Done(DiskDone::Deleted { file })),
                op if reads => out.disk.emit(op, Purpose::Partition),
                // The witness of a synced log: the others are the witnesses here.
                _ => {}
            }
        }
    }

    /// An entry of this term is committed.
    pub(crate) fn on_committed(&mut self, out: &mut Outputs, term: u64, operation: &Operation) {
        if term != self.term {
            return;
        }
        if let Some(file) = operation.takes_away() {
            if let Some(at) = self.taking.iter().position(|taking| *taking == file) {
                self.taking.remove(at);
            }
        }
        if let Operation::Epoch(epoch) = operation {
            self.needs_epoch &= self.awaits_epoch != Some(*epoch);
        }
        if let (true, Some(done)) = (self.has_partition, operation.done()) {
            out.push(Output::Done(done));
        }
    }

    /// The partition asks whether it still leads. Answered at once under a lease, which is renewed by the questions in
    /// its second half.
    pub(crate) fn confirm(
        &mut self,
        config: &Config,
        raw: &mut RawNode<Held>,
        out: &mut Outputs,
        now_us: u64,
        number: u64,
    ) {
        if !Rule::OwnersAskTheOthers.holds() {
            return out.push(Output::Confirmed(number));
        }
        if config.lease && now_us < self.lease_until_us {
            out.push(Output::Confirmed(number));
            if now_us + config.lease_us() / 2 < self.lease_until_us {
                return;
            }
        }
        self.ask(raw, now_us, number);
    }

    fn ask(&mut self, raw: &mut RawNode<Held>, now_us: u64, number: u64) {
        self.asked = Some(number);
        self.asked_at_us = Some(now_us);
        raw.read_index(Question::Partition { number, asked_us: now_us }.encode());
    }

    /// Asks again what the engine may have dropped.
    pub(crate) fn ask_again(&mut self, config: &Config, raw: &mut RawNode<Held>, now_us: u64) {
        let patience_us = 4 * config.tuning.heartbeat_ticks as u64 * config.tuning.tick_us;
        if let Some(number) =
            self.asked.filter(|_| self.asked_at_us.is_some_and(|at| now_us > at + patience_us))
        {
            self.ask(raw, now_us, number);
        }
    }

    /// A majority has heard of this leader since a question was asked.
    pub(crate) fn on_confirmed(&mut self, config: &Config, out: &mut Outputs, number: u64, asked_us: u64) {
        if self.asked.take_if(|asked| *asked <= number).is_some() {
            self.asked_at_us = None;
        }
        if !self.hands_over {
            self.lease_until_us = self.lease_until_us.max(asked_us + config.lease_us());
        }
        out.push(Output::Confirmed(number));
    }

    /// A member takes the lead. From now on a lease promises nothing: others may be elected before it ends.
    pub(crate) fn transfer(&mut self, raw: &mut RawNode<Held>, to: u64) {
        (self.hands_over, self.lease_until_us) = (true, 0);
        raw.transfer_leader(to);
    }
}
