//! The partition's side of its log: what is appended, when it is synced, and what rests on it.
//!
//! All records of a turn share one append, and under `appendfsync always` one sync. What another datacenter is told to be
//! synced or durably applied is a snapshot taken when a sync began, reported when it ended.

pub(in crate::partition) mod checkpoint;
pub(in crate::partition) mod space;

use crate::config::AppendFsync;
use crate::partition::Partition;
use crate::partition::cx::Cx;
use crate::partition::journal::Journal;
use crate::partition::others::Others;
use crate::partition::transactions::Transactions;
use crate::trace::Trace;
use ensue_store::checkpoint::CheckpointWriter;
use ensue_store::disk::{DiskDone, DiskOp, FileName};
use ensue_store::log::Lsn;
use ensue_store::superblock::Superblock;
use ensue_store::witness;
use ensue_types::{DatacenterId, Incarnation, Position, Rule};
use std::collections::VecDeque;

const EVERY_SECOND_US: u64 = 1_000_000;
/// How often time alone is given a chance to do something.
const TIMER_INTERVAL_US: u64 = 50_000;

/// What was true of the log when a sync began.
#[derive(Clone, Debug)]
struct SyncSnapshot {
    end: Lsn,
    applied: Vec<(DatacenterId, Incarnation, Position)>,
    received: Vec<(DatacenterId, Position)>,
}

/// Why a partition cannot go on.
#[derive(Clone, Debug)]
pub(in crate::partition) enum Halt {
    Stopped(String),
    /// The end of the own log was lost though it was taken for whole, as when a file system is mounted again after an
    /// error: the next start recovers it from the other datacenters.
    Short(String),
    /// The directory is not the datacenter's newest, and was written to: it must not be served by a next start either.
    Forked(String),
    /// The others go on without this datacenter: what it would write from here on nobody would take.
    Dead(String),
}

/// The log and everything that follows it.
#[derive(Clone, Debug)]
pub(crate) struct Persistence {
    pub(super) superblock: Option<Superblock>,
    pub(super) writer: Option<(CheckpointWriter, crate::partition::persistence::checkpoint::Walk)>,
    pub(super) checkpointed_end: Lsn,
    snapshot: Option<SyncSnapshot>,
    next_sync_us: u64,
    next_timer_us: u64,
    /// What must be carried out before anything is appended or synced, one after the other.
    pub(super) opening: VecDeque<DiskOp>,
    /// After a lost tail all has been caught up with: the superblock says so when the log has been written up to here.
    pub(super) caught_up: Option<Lsn>,
    pub(super) room: crate::partition::persistence::space::Room,
    /// There is a witness, which is written over after each sync of the log.
    pub(super) has_witness: bool,
}

impl Persistence {
    pub(crate) fn new() -> Persistence {
        Persistence {
            superblock: None,
            writer: None,
            checkpointed_end: Lsn(0),
            snapshot: None,
            next_sync_us: 0,
            next_timer_us: 0,
            opening: VecDeque::new(),
            caught_up: None,
            room: Default::default(),
            has_witness: false,
        }
    }

    /// Before the log goes on for the first time a witness is made.
    pub(super) fn make_witness(&mut self, journal: &Journal) {
        if let (Some(superblock), Some(log), false) = (&self.superblock, &journal.log, self.has_witness) {
            self.opening.push_back(witness::make(superblock.seal(), log.synced()));
        }
    }

    /// What the log has been synced to is written into the witness, before anything leaves that rests on it.
    fn testimony(&self, journal: &Journal) -> Option<DiskOp> {
        let (superblock, log) = (self.superblock.as_ref()?, journal.log.as_ref()?);
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

    fn needs_sync_now(&self, cx: &Cx, others: &Others, transactions: &Transactions) -> bool {
        let synced = cx.journal.log.as_ref().map_or(Lsn(0), |log| log.synced());
        let walked =
            self.writer.as_ref().is_some_and(|(_, walk)| walk.done && !walk.finished && synced < walk.end);
        walked || transactions.has_unsynced_decisions() || others.failover.dead.is_untold()
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
            return others.replication.all_is_durable();
        }
        if self.snapshot.is_none() {
            let applied = others
                .replication
                .applied
                .sets()
                .map(|(d, set)| (d, set.watermark.incarnation(), set.watermark))
                .collect();
            let received =
                others.replication.receivers.iter().map(|(d, receiver)| (*d, receiver.received())).collect();
            self.snapshot = Some(SyncSnapshot { end, applied, received });
        }
        match op {
            Some(op) => cx.disk_ops.push_back(op),
            None => self.take_snapshot(others, synced),
        }
    }

    /// What the snapshot holds is durable, if the log is synced up to its end.
    fn take_snapshot(&mut self, others: &mut Others, synced: Lsn) {
        let Some(snapshot) = self.snapshot.take_if(|snapshot| snapshot.end <= synced) else {
            return;
        };
        for (datacenter, incarnation, position) in snapshot.applied {
            others.replication.acknowledgements.note_applied(datacenter, (incarnation, position));
        }
        for (datacenter, position) in snapshot.received {
            let Some(receiver) = others.replication.receivers.get_mut(&datacenter) else { continue };
            others.replication.acknowledgements.note_received(datacenter, receiver, position);
        }
    }

    /// The periodic sync of `everysec` and `no`.
    fn sync_in_time(&mut self, cx: &mut Cx, others: &mut Others) {
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

    fn on_log_written(
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
    fn on_opened(&mut self, cx: &mut Cx, others: &mut Others) {
        let opened = self.opening.pop_front();
        self.has_witness |= matches!(opened, Some(DiskOp::Replace { file: FileName::Witness, .. }));
        match self.opening.front() {
            Some(next) => cx.disk_ops.push_back(next.clone()),
            None => {
                self.begin_sync(cx, others);
                self.make_reserve(cx);
            }
        }
    }
}

impl Persistence {
    /// What the superblock says of why the partition cannot go on. A checkpoint under way must not be named before it is
    /// whole; then the next stop marks it, or the next start is told again.
    pub(in crate::partition) fn mark_halted(&mut self, cx: &Cx, halt: &Halt) -> Option<DiskOp> {
        let (Some(superblock), None) = (&mut self.superblock, &self.writer) else { return None };
        match halt {
            Halt::Stopped(_) => None,
            Halt::Short(_) => Some(superblock.mark_tail_lost(cx.config.boot_id)),
            Halt::Forked(_) => Some(superblock.mark_not_admitted()),
            Halt::Dead(_) => Some(superblock.mark_dead()),
        }
    }
}

impl Partition {
    /// Ends a turn: streams and acknowledgements are said, everything logged goes to disk as one append.
    pub fn on_turn_end(&mut self) {
        if self.cx.journal.log.is_none()
            || !matches!(self.stage, crate::partition::recovery::recover::Stage::Serving)
        {
            return;
        }
        self.cx.bound_clock();
        self.visibility().replicate();
        self.keyspaces.say_acknowledgements(&mut self.cx, &mut self.others);
        self.reads.say_times(&mut self.cx, &mut self.others, &mut self.keyspaces);
        self.durability.continue_checkpoint(&mut self.cx, &mut self.others, &mut self.keyspaces);
        self.others.stable_time.times.log_times(&mut self.cx);
        let appended = self.durability.write_log(&mut self.cx);
        if self.cx.config.append_fsync == AppendFsync::Always
            || (appended && self.durability.needs_sync_now(&self.cx, &self.others, &self.transactions))
        {
            self.durability.begin_sync(&mut self.cx, &mut self.others);
        }
        self.others.replication.read_old_entries(&mut self.cx);
    }

    /// The disk answered.
    pub fn on_disk(&mut self, now: ensue_types::Now, done: DiskDone) {
        self.cx.now = now;
        match self.stage {
            crate::partition::recovery::recover::Stage::Reading(_) => return self.on_recovery_disk(done),
            crate::partition::recovery::recover::Stage::Closing(_) => return self.on_closing_disk(done),
            crate::partition::recovery::recover::Stage::Stopped(_) => return,
            crate::partition::recovery::recover::Stage::Joining(_) => return,
            crate::partition::recovery::recover::Stage::Regaining(_) => return self.on_disk_regaining(done),
            crate::partition::recovery::recover::Stage::Serving => {}
        }
        match done {
            DiskDone::Failed { file: Some(file), full: true, .. } => {
                self.durability.on_no_room(&mut self.cx, file)
            }
            DiskDone::Failed { op: "sync", file: Some(file @ FileName::Segment(_)), .. }
                if !Rule::StopAfterAFailedSync.holds() =>
            {
                self.on_log_synced(file);
            }
            DiskDone::Failed { op, file, reason, .. } => {
                let file = file.map(|file| file.to_string()).unwrap_or_default();
                return self.stop(format!("{op} of {file} failed: {reason}"));
            }
            DiskDone::Appended { file: file @ FileName::Segment(_) } => {
                self.durability.on_log_written(&mut self.cx, &mut self.others, &self.transactions, file)
            }
            DiskDone::Appended { file: FileName::Reserve } => self.durability.on_reserve_made(&mut self.cx),
            DiskDone::Deleted { file: FileName::Reserve } => self.cx.on_reserve_gone(),
            DiskDone::Synced { file: file @ FileName::Segment(_) } => self.on_log_synced(file),
            DiskDone::Read { .. } => {
                self.peering().on_old_entries(done);
                return self.halt_if_found();
            }
            DiskDone::Rewritten { .. } | DiskDone::Replaced { .. } if !self.durability.opening.is_empty() => {
                self.durability.on_opened(&mut self.cx, &mut self.others);
            }
            _ => self.durability.on_checkpoint_disk(&mut self.cx, &mut self.keyspaces, &done),
        }
        self.executor().settle();
        self.finish_catching_up();
        self.durability.mark_caught_up(&mut self.cx);
        self.peering().readmit();
    }

    fn on_log_synced(&mut self, file: FileName) {
        let synced = self.cx.journal.open().on_synced(file);
        self.durability.testify(&mut self.cx);
        self.durability.take_snapshot(&mut self.others, synced);
        self.executor().on_decisions_synced(synced.0);
        self.visibility().tell_of_the_dead();
        self.others.answer_replica_waits(&mut self.cx);
        self.cx.release();
        let always = self.cx.config.append_fsync == AppendFsync::Always;
        if always
            || self.durability.snapshot.is_some()
            || self.transactions.has_unsynced_decisions()
            || self.others.failover.dead.is_untold()
        {
            self.durability.begin_sync(&mut self.cx, &mut self.others);
        }
    }

    /// The partition cannot go on: it says why, and answers with an error from now on. Nothing that rested on
    /// unwritten records leaves (trap 55).
    pub(super) fn stop(&mut self, reason: String) {
        let held = self.cx.outbox.clear();
        self.cx.disk_ops.clear();
        self.cx.trace(Trace::PartitionStopped { partition: self.cx.id, reason: reason.clone() });
        self.enter(super::Stage::Stopped(reason));
        held.into_iter().for_each(|envelope| self.cx.disavow(envelope));
        self.take_early();
    }

    /// When time alone will have something to do.
    pub fn next_timer(&self) -> Option<u64> {
        if matches!(self.stage, crate::partition::recovery::recover::Stage::Joining(_)) {
            return Some(self.peers.identity.next_request_us);
        }
        if !matches!(
            self.stage,
            crate::partition::recovery::recover::Stage::Serving
                | crate::partition::recovery::recover::Stage::Regaining(_)
        ) {
            return None;
        }
        let waits = self.reads.waits.next_give_up(&self.cx);
        let first = waits.into_iter().fold(self.durability.next_timer_us, u64::min);
        if matches!(self.stage, crate::partition::recovery::recover::Stage::Regaining(_)) {
            return Some(first.min(self.peers.identity.next_request_us)); // Others are told nothing yet.
        }
        let acknowledge = self
            .others
            .replication
            .acknowledgements
            .all
            .then_some(self.others.replication.acknowledgements.next_us);
        Some(acknowledge.into_iter().chain(self.others.stable_time.times.next_due()).fold(first, u64::min))
    }

    /// What time alone brings.
    pub fn on_timer(&mut self, now: ensue_types::Now) {
        self.cx.now = now;
        if matches!(self.stage, crate::partition::recovery::recover::Stage::Joining(_))
            && now.monotonic_us >= self.peers.identity.next_request_us
        {
            return self.request_introductions();
        }
        self.ask_again_what_can_be_had();
        if !matches!(
            self.stage,
            crate::partition::recovery::recover::Stage::Serving
                | crate::partition::recovery::recover::Stage::Regaining(_)
        ) {
            return;
        }
        self.executor().give_up_waits();
        if now.monotonic_us < self.durability.next_timer_us {
            return; // The rest has its own, slower time.
        }
        // A moment that inputs in between do not move: a busy partition needs its syncs most.
        self.durability.next_timer_us = now.monotonic_us + TIMER_INTERVAL_US;
        self.durability.look_for_room(&mut self.cx);
        if matches!(self.stage, crate::partition::recovery::recover::Stage::Regaining(_)) {
            return;
        }
        self.durability.sync_in_time(&mut self.cx, &mut self.others);
        self.peering().ask_the_unsure();
        // What was synced before it began to wait for that is told of no other way.
        let synced = self.cx.journal.log.as_ref().map_or(Lsn(0), |log| log.synced());
        self.executor().on_decisions_synced(synced.0);
        self.visibility().tell_of_the_dead();
        self.maintenance.collect(&mut self.cx, &mut self.others, &mut self.keyspaces);
        self.visibility().look_after_branches();
        self.keyspaces.sweep_marks(&self.cx);
        self.keyspaces.contexts.forget_unused_contexts(&self.cx);
        self.reads.snapshots.forget_old_reads(&self.cx);
        self.reads.cuts.forget_old_cuts(&self.cx);
        self.visibility().resume_paused();
        self.begin_checkpoint_in_time();
    }
}
