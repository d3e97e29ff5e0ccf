//! From the files back to a serving partition.
//!
//! Checkpoint items and log records are merged in order; what they leave unfinished is taken up again: entries received
//! and not applied, transactions begun, voted or decided and not completed. Every part of that is idempotent.

use super::closing::Closing;
use super::regain::is_given_up;
use crate::config::{AppendFsync, FirstStart};
use crate::partition::Partition;
use crate::partition::cx::words::DECLARED_DEAD;
use crate::partition::journal::open::Open;
use crate::partition::peers::identity::Identity;
use crate::partition::replication::applied::AppliedSet;
use crate::trace::Trace;
use ensue_store::disk::DiskDone;
use ensue_store::image::PartitionImage;
use ensue_store::log::{LogOptions, Lsn};
use ensue_store::recovery::{Finish, Recovered, Recovery, RecoveryError, RecoveryOptions};
use ensue_store::superblock::{FORMAT, Superblock};
use ensue_store::{image, layout};
use ensue_types::{DatacenterId, DirectoryId, HybridClock, Incarnation, LogicalTime, Reply, Rule};
use ensue_wire::{Envelope, Message};

/// What a partition is doing.
#[derive(Clone, Debug)]
pub enum Stage {
    Reading(Option<Box<Reading>>),
    /// Its directory is new: the other datacenters are asked whether an earlier one was lost.
    Joining(Box<crate::partition::recovery::joining::Joining>),
    /// The log may have lost its tail: the other datacenters are asked for it.
    Regaining(Box<crate::partition::recovery::regain::Regaining>),
    Serving,
    /// It stops in good order.
    Closing(Closing),
    /// It cannot go on, and says why to everybody who asks.
    Stopped(String),
}

/// What to do about damage.
pub(in crate::partition) const ADVICE: &str = "; `ensue fsck` says what each partition holds";

/// A recovery under way, and what the log has left open so far.
#[derive(Clone, Debug)]
pub struct Reading {
    recovery: Recovery,
    /// The log may end before what was promised; the datacenters of this mask need not be asked.
    tail_lost: Option<u16>,
    pub(in crate::partition) clock: LogicalTime,
    records: u64,
    pub(in crate::partition) open: Open,
}

impl Partition {
    /// Begins to read the disk.
    pub fn start(&mut self) {
        let topology = &self.cx.config.topology;
        let expected = Superblock {
            format: FORMAT,
            cluster: self.cx.config.cluster,
            datacenter: self.cx.datacenter,
            partition: self.cx.id,
            partitions: topology.partitions,
            incarnation: Incarnation(1),
            boot_id: self.cx.config.boot_id,
            clean: true,
            fsync_always: self.cx.config.append_fsync == AppendFsync::Always,
            witnessed: false,
            synced: Lsn(0),
            checkpoint: 0,
            without: 0,
            directory: Identity::draw(self.cx.config.identity_seed, self.cx.datacenter, self.cx.id.0),
            not_admitted: !self.others.replication.receivers.is_empty()
                && self.cx.config.first_start == FirstStart::Ask,
        };
        let log = LogOptions { segment_bytes: self.cx.config.tuning.segment_bytes };
        let recovery = Recovery::new(RecoveryOptions { log, expected });
        let reading = Reading {
            recovery,
            tail_lost: None,
            clock: LogicalTime::ZERO,
            records: 0,
            open: Open::default(),
        };
        self.enter(Stage::Reading(Some(Box::new(reading))));
        self.read_on();
    }

    pub(in crate::partition) fn on_recovery_disk(&mut self, done: DiskDone) {
        let Stage::Reading(Some(reading)) = &mut self.stage else { return };
        if let Err(error) = reading.recovery.on_done(done) {
            let advice = if matches!(error, RecoveryError::Log(_)) { ADVICE } else { "" };
            return self.stop(format!("{error}{advice}"));
        }
        self.read_on();
    }

    fn read_on(&mut self) {
        loop {
            let Stage::Reading(Some(reading)) = &mut self.stage else { return };
            let Some(item) = reading.recovery.next_item() else { break };
            if let Err(reason) = self.take_item(item) {
                return self.stop(reason);
            }
        }
        let Stage::Reading(Some(reading)) = &mut self.stage else { return };
        while let Some(op) = reading.recovery.next_op() {
            self.cx.disk_ops.push_back(op);
        }
    }

    fn take_item(&mut self, item: Recovered) -> Result<(), String> {
        match item {
            Recovered::Superblock(superblock) => {
                self.cx.incarnation = superblock.incarnation;
                if is_given_up(superblock.without, self.cx.datacenter) {
                    return Err(self.cx.word_of_death("the others, before it was started again"));
                }
                self.peers.identity.own = match superblock.directory {
                    // A directory of an earlier format gets its identity now.
                    DirectoryId::UNKNOWN => {
                        Identity::draw(self.cx.config.identity_seed, self.cx.datacenter, self.cx.id.0)
                    }
                    known => known,
                };
                let lost = !superblock.tail_complete(self.cx.config.boot_id);
                if let Stage::Reading(Some(reading)) = &mut self.stage {
                    reading.tail_lost = lost.then_some(superblock.without);
                }
                Ok(())
            }
            Recovered::Checkpoint(_) => Ok(()),
            Recovered::CheckpointItem { kind, bytes } => self.take_checkpoint_item(kind, &bytes),
            Recovered::Record(recovered) => {
                let mut reading = self.take_reading();
                reading.records += 1;
                let result = self.peers.take_record(
                    &mut self.cx,
                    &mut self.others,
                    &mut self.keyspaces,
                    &mut self.transactions,
                    &mut reading,
                    recovered,
                );
                self.enter(Stage::Reading(Some(reading)));
                result
            }
            Recovered::Torn(torn) => {
                self.cx.trace(Trace::TornTail { partition: self.cx.id, bytes: torn.dropped_bytes });
                Ok(())
            }
            Recovered::Finished(finish) => {
                let reading = self.take_reading();
                self.on_log_read(*finish, *reading);
                Ok(())
            }
        }
    }

    fn take_reading(&mut self) -> Box<Reading> {
        match &mut self.stage {
            Stage::Reading(reading) => reading.take().expect("a recovery is under way"),
            _ => unreachable!("items come only while reading"),
        }
    }

    fn take_checkpoint_item(&mut self, kind: u8, bytes: &bytes::Bytes) -> Result<(), String> {
        let wrong = |error: layout::LayoutError| format!("checkpoint: {error}");
        match kind {
            image::PARTITION => {
                let image = PartitionImage::decode(bytes).map_err(wrong)?;
                self.cx.clock.observe(image.clock);
                self.cx.position = self.cx.position.max(image.position);
                if let Stage::Reading(Some(reading)) = &mut self.stage {
                    reading.open.own_floor = image.position;
                }
                self.transactions.begun = image.begun;
                for (rows, bounds) in self.keyspaces.rows.iter_mut().zip(image.bounds) {
                    rows.restore_bounds(bounds);
                }
                for stream in image.streams {
                    let above = stream.above.into_iter().collect();
                    let set = AppliedSet {
                        watermark: stream.watermark,
                        above,
                        lost: stream.lost,
                        ..AppliedSet::default()
                    };
                    self.others.replication.applied.restore(stream.datacenter, set);
                    if let Some(receiver) = self.others.replication.receivers.get_mut(&stream.datacenter) {
                        receiver.restore(stream.received);
                    }
                }
                Ok(())
            }
            image::RECORD => self.peers.take_lasting(
                &mut self.cx,
                &mut self.others,
                &mut self.keyspaces,
                layout::decode_record(bytes).map_err(wrong)?,
            ),
            image::BRANCH_STATES | image::BRANCH_KEY => self.keyspaces.branching.restore(kind, bytes),
            image::FLOOR => {
                let (keyspace, floor) = image::decode_floor(bytes).map_err(wrong)?;
                self.keyspaces.keyspace(keyspace).raise_floor(&floor);
                // Rows of the checkpoint are not whole below it: nothing is read there any more.
                self.others.stable_time.times.floor.join(&floor);
                Ok(())
            }
            image::EFFECT | image::VERSION | image::FLUSH => {
                let image = image::decode_write(kind, bytes).map_err(wrong)?;
                self.cx.clock.observe(image.since);
                self.keyspaces.keyspace(image.keyspace).restore_image(kind, image);
                Ok(())
            }
            _ => Err(format!("checkpoint: an item of unknown kind {kind}")),
        }
    }

    /// Everything was read: goes on, or asks the others for what may be missing.
    fn on_log_read(&mut self, finish: Finish, reading: Reading) {
        let Finish { log, superblock, .. } = finish;
        self.durability.checkpointed_end = log.first();
        self.cx.journal.stream_floor = log.first();
        let first = self.cx.journal.tail.index().first();
        self.cx.journal.kept_after =
            first.map_or(self.cx.position, |first| ensue_types::Position(first.0 - 1));
        self.durability.has_witness = superblock.witnessed;
        self.durability.superblock = Some(superblock);
        self.cx.incarnation = self.cx.incarnation.max(log.incarnation());
        self.peers.identity.read_in = self.cx.incarnation;
        self.cx.journal.log = Some(log);
        let mut floor = self.cx.clock.latest().max(reading.clock);
        if Rule::ClockAheadOfRestart.holds() {
            floor = floor.max(self.cx.journal.bound);
            if reading.tail_lost.is_some() {
                // The bound that was lost lay no further ahead of the wall than this.
                let ahead_ms = self.cx.now.wall_ms + self.cx.config.tuning.clock_persist_ahead_ms;
                floor = floor.max(LogicalTime::from_ms(ahead_ms));
            }
        }
        self.cx.clock = HybridClock::starting_at(floor);
        self.others.replication.own_entry_applied(&self.cx);
        self.cx.release();
        let Reading { tail_lost, records, open, .. } = reading;
        if let (Some(superblock), Some(log)) = (&self.durability.superblock, &self.cx.journal.log) {
            self.durability.opening = self.cx.opening(superblock, log);
        }
        let not_admitted =
            self.durability.superblock.as_ref().is_some_and(|superblock| superblock.not_admitted);
        // An operator's word is about a directory in which there is nothing yet.
        let is_vouched_for = self.cx.config.first_start == FirstStart::Alone && records == 0;
        match tail_lost {
            _ if not_admitted && !is_vouched_for => self.begin_to_join(records, open),
            Some(without) => self.begin_to_regain(without, records, open),
            None => self.serve(records, open, None),
        }
    }

    /// The log holds all that can be had: takes up what is open, and serves; after a loss, when it has caught up.
    pub(in crate::partition) fn serve(&mut self, records: u64, mut open: Open, after_loss: Option<u16>) {
        let always = self.cx.config.append_fsync == AppendFsync::Always;
        let (boot_id, incarnation) = (self.cx.config.boot_id, self.cx.incarnation);
        self.durability.make_witness(&self.cx.journal);
        // One that a power failure has torn says again what is known.
        self.durability.testify(&mut self.cx);
        if let Some(mut superblock) = self.durability.superblock.take() {
            superblock.incarnation = incarnation;
            superblock.not_admitted = false;
            superblock.directory = self.peers.identity.own;
            superblock.witnessed |= superblock.format == FORMAT;
            // Until it has caught up, another start must catch up too.
            let marked = match after_loss {
                Some(_) => superblock.replace(),
                None => superblock.mark_running(boot_id, always),
            };
            self.durability.opening.push_back(marked);
            self.cx.disk_ops.extend(self.durability.opening.front().cloned());
            self.durability.superblock = Some(superblock);
        }
        self.keyspaces.forget_past(&mut self.cx);
        self.keyspaces.branching.branches_live_on(&self.cx);
        self.cx.release();
        self.enter(Stage::Serving);
        self.peers.identity.opened_at = self.cx.position;
        // Nothing may be logged after what was read, so its end is what they wait for.
        let end = self.cx.journal.log_end();
        for (operation, name) in std::mem::take(&mut open.executed) {
            self.transactions.report_when_synced(operation, name, end);
        }
        if let Some(without) = after_loss {
            self.others.begin_to_catch_up(&mut self.cx, without, records, &mut open);
        } else {
            self.cx.trace(Trace::PartitionReady { partition: self.cx.id, records });
        }
        self.visibility().take_up(open);
        self.visibility().settle_again();
        let others: Vec<DatacenterId> = self.others.replication.receivers.keys().copied().collect();
        for datacenter in others {
            self.peering().greet(datacenter);
        }
        self.executor().settle();
        self.take_early();
        self.finish_catching_up();
    }

    /// Answers a question that a partition cannot serve now, or never, since it has stopped. Only sessions are
    /// answered; partitions wait.
    pub(crate) fn refuse(&mut self, envelope: &Envelope, reason: &str) {
        let refusal = |words: String| Reply::Error(words.into());
        let has_code =
            ["TAILLOST", "REJOIN", "LOADING", DECLARED_DEAD].iter().any(|code| reason.starts_with(code));
        let words = if has_code {
            reason.to_owned()
        } else {
            format!("STOPPED partition {} has stopped: {reason}", self.cx.id)
        };
        let request = match &envelope.message {
            Message::ReadSlice { read, .. } => {
                let message = Message::SliceRefused { read: *read, reply: refusal(words) };
                return self.cx.send_refusal(envelope.from, message);
            }
            Message::Execute { request, .. }
            | Message::ReadFirst { request, .. }
            | Message::ReadAt { request, .. }
            | Message::Transact { request, .. }
            | Message::ReadCut { request, .. }
            | Message::AwaitReplicas { request, .. }
            | Message::CountReplicas { request, .. }
            | Message::ContextFetch { request, .. }
            | Message::ContextMerge { request, .. } => *request,
            Message::Survey { request } => {
                let request = *request;
                let what = match reason.split(' ').next() {
                    Some("TAILLOST") => "catching_up",
                    Some("LOADING") if matches!(self.stage, Stage::Joining(_)) => "joining",
                    Some("LOADING") => "loading",
                    Some("REJOIN") => "rejoin",
                    Some(DECLARED_DEAD) => "declared_dead",
                    _ => "stopped",
                };
                let figures = vec![(what.to_owned(), 1)];
                return self.cx.send_refusal(envelope.from, Message::Surveyed { request, figures });
            }
            _ => return,
        };
        self.cx.send_refusal(envelope.from, Message::Refused { request, reply: refusal(words) });
    }
}
