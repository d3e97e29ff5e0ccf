//! The partition's side of its log: what is appended, when it is synced, and what rests on it.
//!
//! All records of a turn share one append, and under `appendfsync always` one sync. What another datacenter is told to
//! be synced or durably applied is a snapshot taken when a sync began, reported when it ended.

pub(in crate::partition) mod checkpoint;
mod copies;
pub(in crate::partition) mod copying;
pub(in crate::partition) mod space;

use crate::config::AppendFsync;
use crate::partition::cx::Cx;
use crate::partition::journal::Journal;
use crate::partition::others::Others;
use crate::partition::peers::Halt;
use crate::partition::transactions::Transactions;
use ensue_store::checkpoint::CheckpointWriter;
use ensue_store::disk::{DiskDone, DiskOp, FileName};
use ensue_store::log::{Log, Lsn};
use ensue_store::superblock::{Superblock, WITNESS_FORMAT};
use ensue_store::witness;
use ensue_types::{DatacenterId, DirectoryId, Incarnation, LogicalTime, Position, Rule};
use std::collections::VecDeque;
use std::fmt;

const EVERY_SECOND_US: u64 = 1_000_000;
/// How often time alone is given a chance to do something.
const TIMER_INTERVAL_US: u64 = 50_000;

/// What was true of the log when a sync began.
#[derive(Clone, Debug)]
struct SyncSnapshot {
    end: Lsn,
    applied: Vec<(DatacenterId, Incarnation, Position)>,
    received: Vec<(DatacenterId, Position)>,
    shown: LogicalTime,
}

/// The log and everything that follows it.
#[derive(Clone, Debug)]
pub(crate) struct Persistence {
    superblock: Option<Superblock>,
    writer: Option<(CheckpointWriter, crate::partition::persistence::checkpoint::Walk)>,
    /// Checkpoints that are sent to datacenters whose directory is empty.
    copies: copies::Copies,
    /// The checkpoint that another datacenter sends to this empty directory.
    copying: Option<copying::CopyWriter>,
    checkpointed_end: Lsn,
    snapshot: Option<SyncSnapshot>,
    next_sync_us: u64,
    next_timer_us: u64,
    /// What must be carried out before anything is appended or synced, one after the other.
    opening: VecDeque<DiskOp>,
    /// A checkpoint is on disk, and its name waits for another replacement of the superblock.
    checkpoint_synced: Option<DiskDone>,
    /// After a lost tail all has been caught up with: the superblock says so when the log has been written up to here.
    caught_up: Option<Lsn>,
    room: crate::partition::persistence::space::Room,
    /// There is a witness, which is written over after each sync of the log.
    has_witness: bool,
    counts: Counts,
}

/// What was done since the start.
#[derive(Clone, Copy, Default)]
struct Counts {
    syncs: u64,
    checkpoints: u64,
}

/// Nothing that happens later depends on it, so two nodes that differ in it alone are in the same state.
impl fmt::Debug for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Counts")
    }
}

impl Persistence {
    pub(crate) fn new() -> Persistence {
        Persistence {
            superblock: None,
            writer: None,
            copies: copies::Copies::default(),
            copying: None,
            checkpointed_end: Lsn(0),
            snapshot: None,
            next_sync_us: 0,
            next_timer_us: 0,
            opening: VecDeque::new(),
            checkpoint_synced: None,
            caught_up: None,
            room: Default::default(),
            has_witness: false,
            counts: Counts::default(),
        }
    }

    /// Panics if what is known of the log contradicts it.
    pub(in crate::partition) fn check_invariants(&self, cx: &Cx) {
        if !Rule::all_hold() {
            return;
        }
        let end = Lsn(cx.journal.log_end());
        assert!(self.checkpointed_end <= end, "a checkpoint up to {:?} of {end:?}", self.checkpointed_end);
        let is_there = |at: Option<Lsn>| at.is_none_or(|at| at <= end);
        assert!(is_there(self.snapshot.as_ref().map(|snapshot| snapshot.end)), "a sync beyond {end:?}");
        assert!(is_there(self.caught_up), "caught up at {:?} of {end:?}", self.caught_up);
        assert!(self.writer.is_none() || self.copying.is_none(), "a checkpoint of what is being copied here");
    }

    /// Syncs of the log that were begun, and checkpoints that are durable, since the start.
    pub(in crate::partition) fn counts(&self) -> (u64, u64) {
        (self.counts.syncs, self.counts.checkpoints)
    }

    /// What recovery has found.
    pub(in crate::partition) fn restore(&mut self, superblock: Superblock, log: &Log) {
        self.checkpointed_end = log.first();
        self.has_witness = superblock.witnessed;
        self.superblock = Some(superblock);
    }

    /// What must be carried out before anything is appended.
    pub(in crate::partition) fn plan_opening(&mut self, cx: &Cx) {
        if let (Some(superblock), Some(log)) = (&self.superblock, cx.journal.opened()) {
            self.opening = cx.opening(superblock, log);
        }
    }

    /// Whether nobody has admitted this directory yet.
    pub(in crate::partition) fn is_not_admitted(&self) -> bool {
        self.superblock.as_ref().is_some_and(|superblock| superblock.not_admitted)
    }

    /// Whether something must be on disk before the log goes on.
    pub(in crate::partition) fn is_opening(&self) -> bool {
        !self.opening.is_empty()
    }

    /// Begins with what must be on disk before the log goes on.
    pub(in crate::partition) fn begin_opening(&self, cx: &mut Cx) {
        cx.disk_ops.extend(self.opening.front().cloned());
    }

    /// The next of that is there, while the tail is recovered.
    pub(in crate::partition) fn on_opened_in_recovery(&mut self, cx: &mut Cx) {
        self.opening.pop_front();
        match self.opening.front() {
            Some(next) => cx.disk_ops.push_back(next.clone()),
            None => self.write_what_came_back(cx),
        }
    }

    /// The superblock is replaced before the log goes on.
    fn replace_superblock(&mut self, cx: &mut Cx, marked: DiskOp) {
        self.opening.push_back(marked.clone());
        if self.opening.len() == 1 && !self.is_naming() {
            cx.disk_ops.push_back(marked);
        }
    }

    /// Whether the superblock is being replaced to name a checkpoint. Nothing else replaces it meanwhile: an answer
    /// does not say which of two replacements it is about.
    fn is_naming(&self) -> bool {
        self.writer.as_ref().is_some_and(|(writer, _)| writer.is_being_named())
    }

    /// Whether an answer about a replaced or rewritten file is about what must be on disk before the log goes on.
    pub(in crate::partition) fn awaits_opening(&self) -> bool {
        !self.opening.is_empty() && !self.is_naming()
    }

    /// The own stream goes on in a new incarnation: the superblock says so before anything of it is appended.
    pub(in crate::partition) fn begin_incarnation(&mut self, cx: &mut Cx) {
        if let Some(superblock) = &mut self.superblock {
            superblock.incarnation = cx.incarnation;
            let marked = superblock.replace();
            self.replace_superblock(cx, marked);
        }
    }

    /// The directory is being filled again. Until it has caught up, another start must catch up, too; the log goes on
    /// when that is durable.
    pub(in crate::partition) fn mark_filling(&mut self, cx: &Cx, directory: DirectoryId) {
        if let Some(superblock) = &mut self.superblock {
            self.opening.push_back(superblock.mark_filling(directory, cx.config.boot_id));
        }
    }

    /// Everything is synced, up to here.
    pub(in crate::partition) fn mark_clean(&mut self, synced: Lsn) -> Option<DiskOp> {
        self.superblock.as_mut().map(|superblock| superblock.mark_clean(synced))
    }

    /// All that was missing is here, and will be in the log when it is written up to its end.
    pub(in crate::partition) fn note_caught_up(&mut self, cx: &mut Cx, others: &mut Others) {
        self.caught_up = Some(Lsn(cx.journal.log_end()));
        self.mark_caught_up(cx);
        if self.caught_up.is_some() {
            self.begin_sync(cx, others);
        }
    }

    pub(in crate::partition) fn is_checkpointing(&self) -> bool {
        self.writer.is_some()
    }

    /// Whether somebody is to be told when the log is synced up to where it was.
    pub(in crate::partition) fn awaits_sync(&self) -> bool {
        self.snapshot.is_some() || self.caught_up.is_some()
    }

    pub(in crate::partition) fn next_timer_us(&self) -> u64 {
        self.next_timer_us
    }

    /// Whether what time alone brings is due; if so, it is again after an interval.
    pub(in crate::partition) fn take_timer_due(&mut self, now_us: u64) -> bool {
        let is_due = now_us >= self.next_timer_us;
        if is_due {
            // A moment that inputs in between do not move: a busy partition needs its syncs most.
            self.next_timer_us = now_us + TIMER_INTERVAL_US;
        }
        is_due
    }

    /// Before the log goes on for the first time a witness is made.
    pub(super) fn make_witness(&mut self, journal: &Journal) {
        if let (Some(superblock), Some(log), false) = (&self.superblock, journal.opened(), self.has_witness) {
            self.opening.push_back(witness::make(superblock.seal(), log.synced()));
        }
    }

    /// What the log has been synced to is written into the witness, before anything leaves that rests on it.
    fn testimony(&self, journal: &Journal) -> Option<DiskOp> {
        let (superblock, log) = (self.superblock.as_ref()?, journal.opened()?);
        self.has_witness.then(|| witness::testify(superblock.seal(), log.synced()))
    }

    /// Emits the append that is due, if none is in flight; says whether it did.
    pub(super) fn write_log(&mut self, cx: &mut Cx) -> bool {
        if !self.opening.is_empty() {
            return false;
        }
        let op = cx.journal.open().take_append();
        let appended = op.is_some();
        cx.disk_ops.extend(op);
        appended
    }

    /// The log was synced: the witness says so.
    pub(super) fn testify(&mut self, cx: &mut Cx) {
        if Rule::TheWitnessFollowsTheLog.holds() {
            cx.disk_ops.extend(self.testimony(&cx.journal));
        }
    }

    pub(in crate::partition) fn needs_sync_now(
        &self,
        cx: &Cx,
        others: &Others,
        transactions: &Transactions,
    ) -> bool {
        let synced = Lsn(cx.journal.log_synced());
        let walked =
            self.writer.as_ref().is_some_and(|(_, walk)| walk.done && !walk.finished && synced < walk.end);
        walked
            || self.caught_up.is_some()
            || transactions.has_unsynced_decisions()
            || others.failover.failed.has_unreported()
            || cx.homes.logged() > synced.0
    }

    /// Begins a sync of everything appended, unless one is under way.
    pub(super) fn begin_sync(&mut self, cx: &mut Cx, others: &mut Others) {
        if !self.opening.is_empty() {
            return;
        }
        let log = cx.journal.open();
        let op = log.take_sync();
        let (end, synced) = (log.end(), log.synced());
        if op.is_none() && synced < end {
            return; // One is under way, or the append is yet to come.
        }
        if op.is_none() && self.snapshot.is_none() {
            let shown = others.stable_time.times.logged_shown(cx);
            return others.replication.all_is_durable(shown);
        }
        if self.snapshot.is_none() {
            let applied = others
                .replication
                .applied
                .sets()
                .map(|(d, set)| (d, set.watermark.incarnation(), set.watermark))
                .collect();
            let received =
                others.replication.datacenters().map(|d| (d, others.replication.received(d))).collect();
            let shown = others.stable_time.times.logged_shown(cx);
            self.snapshot = Some(SyncSnapshot { end, applied, received, shown });
        }
        match op {
            Some(op) => {
                self.counts.syncs += 1;
                cx.disk_ops.push_back(op);
            }
            None => self.take_snapshot(others, synced),
        }
    }

    /// What the snapshot holds is durable, if the log is synced up to its end.
    pub(in crate::partition) fn take_snapshot(&mut self, others: &mut Others, synced: Lsn) {
        let Some(snapshot) = self.snapshot.take_if(|snapshot| snapshot.end <= synced) else {
            return;
        };
        for (datacenter, incarnation, position) in snapshot.applied {
            others.replication.acknowledgements.note_applied(datacenter, (incarnation, position));
        }
        others.replication.acknowledgements.note_shown(snapshot.shown);
        for (datacenter, position) in snapshot.received {
            others.replication.note_received_durably(datacenter, position);
        }
    }

    /// The periodic sync of `everysec` and `no`.
    pub(in crate::partition) fn sync_in_time(&mut self, cx: &mut Cx, others: &mut Others) {
        let interval = match cx.config.append_fsync {
            AppendFsync::Always => return,
            AppendFsync::EverySecond => EVERY_SECOND_US,
            AppendFsync::No => cx.config.tuning.relaxed_sync_interval_ms * 1_000,
        };
        if cx.now.monotonic_us >= self.next_sync_us {
            self.next_sync_us = cx.now.monotonic_us + interval;
            self.begin_sync(cx, others);
        }
    }

    pub(in crate::partition) fn on_log_written(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        transactions: &Transactions,
        file: FileName,
    ) {
        let log = cx.journal.open();
        log.on_appended(file);
        let always = cx.config.append_fsync == AppendFsync::Always;
        let (append, sync) = (log.is_held_back(), log.is_sync_held_back());
        let appended = append && self.write_log(cx);
        if sync || appended && (always || self.needs_sync_now(cx, others, transactions)) {
            self.begin_sync(cx, others);
        }
        cx.release();
    }

    /// The next thing that had to be on disk before the log goes on is there.
    pub(in crate::partition) fn on_opened(&mut self, cx: &mut Cx, others: &mut Others) {
        let opened = self.opening.pop_front();
        self.has_witness |= matches!(opened, Some(DiskOp::Replace { file: FileName::Witness, .. }));
        match self.opening.front() {
            Some(next) => cx.disk_ops.push_back(next.clone()),
            None => {
                self.begin_sync(cx, others);
                self.make_reserve(cx);
                self.name_checkpoint(cx);
            }
        }
    }
}

impl Persistence {
    /// What the superblock says of why the partition cannot go on. Nobody may tell the next start again of a fork that
    /// is older. A checkpoint under way is named by it only if that is durable, and is left behind otherwise.
    pub(in crate::partition) fn mark_halted(&mut self, cx: &Cx, halt: &Halt) -> Option<DiskOp> {
        let superblock = self.superblock.as_mut()?;
        match halt {
            Halt::Stopped(_) => None,
            Halt::Short(_) => Some(superblock.mark_tail_lost(cx.config.boot_id)),
            Halt::Forked(_) => Some(superblock.mark_not_admitted()),
            Halt::Dead(_) => Some(superblock.mark_dead()),
        }
    }
}

impl Persistence {
    /// From now on a restart within this boot of the machine finds all that was shown, once what was caught up with is
    /// in the log: a process that is killed before must catch up again. Under `always` the mark is believed after a
    /// power loss, too.
    pub(in crate::partition) fn mark_caught_up(&mut self, cx: &mut Cx) {
        let always = cx.config.append_fsync == AppendFsync::Always;
        let boot_id = cx.config.boot_id;
        let Some(log) = cx.journal.opened() else { return };
        // What came beside a copy is committed in a directory that is filled, and in no other one: once it is durable.
        let is_filled = self.superblock.as_ref().is_some_and(|block| block.filling);
        let kept = if always || is_filled { log.synced() } else { log.written() };
        if self.caught_up.take_if(|end| *end <= kept).is_none() {
            return;
        }
        let Some(superblock) = &mut self.superblock else { return };
        let marked = superblock.mark_running(boot_id, always);
        self.replace_superblock(cx, marked);
    }

    /// Whether an earlier process of this boot found that others have more of the own stream.
    pub(in crate::partition) fn is_marked_short(&self, cx: &Cx) -> bool {
        self.superblock.as_ref().is_some_and(|block| block.is_marked_short(cx.config.boot_id))
    }

    /// One append is in flight at a time; when all are done, everything is synced.
    pub(in crate::partition) fn write_what_came_back(&mut self, cx: &mut Cx) {
        // What an earlier process wrote is not there until it has been written anew, for which there may be no room.
        if !self.opening.is_empty() {
            return;
        }
        if !self.write_log(cx) && !cx.journal.open().is_held_back() {
            let log = cx.journal.open();
            cx.disk_ops.extend(log.take_sync());
        }
    }

    /// The log goes on: what must be on disk before.
    pub(in crate::partition) fn open_log(
        &mut self,
        cx: &mut Cx,
        directory: DirectoryId,
        is_after_loss: bool,
    ) {
        let always = cx.config.append_fsync == AppendFsync::Always;
        let (boot_id, incarnation) = (cx.config.boot_id, cx.incarnation);
        self.make_witness(&cx.journal);
        // One that a power failure has torn says again what is known.
        self.testify(cx);
        if let Some(mut superblock) = self.superblock.take() {
            superblock.incarnation = incarnation;
            superblock.not_admitted = false;
            superblock.directory = directory;
            superblock.witnessed |= superblock.format >= WITNESS_FORMAT;
            // Until it has caught up, another start must catch up too.
            let marked = match is_after_loss {
                true => superblock.replace(),
                false => superblock.mark_running(boot_id, always),
            };
            self.opening.push_back(marked);
            cx.disk_ops.extend(self.opening.front().cloned());
            self.superblock = Some(superblock);
        }
    }
}
