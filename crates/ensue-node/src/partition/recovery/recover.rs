//! From the files back to a serving partition.
//!
//! Checkpoint items and log records are merged in order; what they leave unfinished is taken up again: entries received
//! and not applied, transactions begun, voted or decided and not completed. Every part of that is idempotent.

use super::closing::Closing;
use super::regain::is_given_up;
use super::replay::{Begun, Open};
use crate::config::{AppendFsync, FirstStart};
use crate::partition::Partition;
use crate::partition::cx::Cx;
use crate::partition::failover::dead::DECLARED_DEAD;
use crate::partition::keyspaces::Keyspaces;
use crate::partition::others::Others;
use crate::partition::peers::identity::Identity;
use crate::partition::replication::applied::AppliedSet;
use crate::partition::transactions::{Committing, Coordinated, Transactions, Voting, VotingKind};
use crate::partition::visibility::Visibility;
use crate::trace::Trace;
use ensue_store::disk::{DiskDone, DiskOp};
use ensue_store::entry::{Change, Entry};
use ensue_store::image::{self, PartitionImage};
use ensue_store::layout;
use ensue_store::log::{Log, LogOptions, Lsn};
use ensue_store::recovery::{Finish, Recovered, Recovery, RecoveryError, RecoveryOptions};
use ensue_store::superblock::{FORMAT, Superblock};
use ensue_types::{
    Context, DatacenterId, DirectoryId, HybridClock, Incarnation, KeyspaceId, LogicalTime, OperationId, Part,
    Reply, Rule,
};
use ensue_wire::{Decision, Envelope, Message};
use std::collections::{BTreeMap, VecDeque};

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

impl Cx {
    /// What an earlier process of this boot wrote may be in memory only, dropped by a sync that failed: a sync of today
    /// would not tell. It is written anew before anything rests on it (trap 55).
    pub(in crate::partition) fn opening(&self, superblock: &Superblock, log: &Log) -> VecDeque<DiskOp> {
        // After a loss the boot that the superblock names is the lost one until all has caught up, however many
        // processes of this boot have tried.
        let may_be_of_this_boot =
            superblock.boot_id == self.config.boot_id || !superblock.tail_complete(self.config.boot_id);
        if superblock.clean || !may_be_of_this_boot || !Rule::RewriteTheUnsyncedTail.holds() {
            return VecDeque::new();
        }
        let unsynced = log.segments().filter(|segment| segment.end > log.synced());
        unsynced.map(|segment| DiskOp::Rewrite { file: segment.file() }).collect()
    }

    /// Answers, instead of with what rested on records that are not durable, that the partition has stopped. Only
    /// sessions are told; partitions wait.
    pub(in crate::partition) fn disavow(&mut self, answer: Envelope) {
        let (Message::Executed { request, .. }
        | Message::ExecutedInPart { request, .. }
        | Message::GaveUp { request, .. }
        | Message::CutRead { request, .. }
        | Message::Transacted { request, .. }) = answer.message
        else {
            return;
        };
        let words =
            format!("STOPPED partition {} has stopped; it is not known whether a write was kept", self.id);
        self.send_refusal(answer.to, Message::Refused { request, reply: Reply::Error(words.into()) });
    }
}

impl Transactions {
    fn take_up_begun(
        &mut self,
        cx: &Cx,
        transaction: OperationId,
        begun: Begun,
        decision: Option<(LogicalTime, Option<Entry>)>,
    ) {
        let participants: Vec<_> = begun.parts.iter().map(|part| part.partition).collect();
        let keyspace = begun.keyspace;
        let state = match decision {
            Some((at, Some(entry))) => {
                let operation = OperationId {
                    incarnation: entry.position.incarnation(),
                    position: entry.position,
                    ..transaction
                };
                let decision = Decision { at, operation, stamp: entry.stamp };
                self.names.insert(operation, transaction);
                let announced = self.note_decision(cx, transaction, Some(entry.position));
                let committing = Committing::new(decision, keyspace, participants, begun.parts);
                Coordinated::Committing(Committing { announced, ..committing })
            }
            _ => {
                let context = Context { time: LogicalTime::ZERO, facts: begun.context };
                let kind = VotingKind::Local { parts: begun.parts, context, session: None };
                Coordinated::Voting(Voting { keyspace, participants, votes: BTreeMap::new(), kind })
            }
        };
        self.coordinated.insert(transaction, state);
    }

    fn take_up_decided(&mut self, cx: &Cx, transaction: OperationId, at: LogicalTime, entry: &Entry) {
        let Change::Transaction { keyspace, participants } = &entry.change else { return };
        let decision = Decision { at, operation: transaction, stamp: entry.stamp };
        let announced = self.note_decision(cx, transaction, None);
        let committing = Committing::new(decision, *keyspace, participants.clone(), Vec::new());
        let committing = Committing { announced, ..committing };
        self.coordinated.insert(transaction, Coordinated::Committing(committing));
    }
}

impl Transactions {
    /// What was voted for is undecided again, until the coordinator says more.
    pub(in crate::partition) fn take_up_prepared(
        &mut self,
        cx: &mut Cx,
        others: &Others,
        keyspaces: &mut Keyspaces,
        prepared: BTreeMap<OperationId, (KeyspaceId, LogicalTime, Part)>,
    ) {
        let remember = Rule::RememberTheVote.holds();
        for (transaction, (keyspace, at, part)) in prepared.into_iter().filter(|_| remember) {
            if transaction.datacenter == cx.datacenter {
                self.await_decision(cx, keyspaces, transaction, keyspace, part, at);
                cx.vote_again(transaction);
            } else if let Some(part) = self.replicated_parts.get(&transaction) {
                let (origin, position) = (part.origin, part.position);
                if part.work.is_none() {
                    self.await_replicated_decision(others, keyspaces, transaction, origin, position, at);
                }
                self.notify_again(cx, others, transaction);
            }
        }
    }
}

impl Visibility<'_> {
    fn take_up(&mut self, open: Open) {
        let Open { received, begun, mut decided, prepared, announced, .. } = open;
        let complete = Rule::CompleteAfterCrash.holds();
        for (transaction, begun) in begun {
            if complete {
                let decision = decided.remove(&transaction);
                self.transactions.take_up_begun(self.cx, transaction, begun, decision);
            }
        }
        for (transaction, (at, _)) in decided {
            if let (Some(entry), true) = (announced.get(&transaction), complete) {
                self.transactions.take_up_decided(self.cx, transaction, at, entry);
            }
        }
        for ((origin, position), (incarnation, entry)) in received {
            let waited = !self.others.replication.applied.contains(origin, position);
            if waited && Rule::TakeUpWhatWaited.holds() {
                debug_assert_eq!(entry.position, position);
                self.arrive(origin, incarnation, entry);
            }
        }
        self.transactions.take_up_prepared(self.cx, self.others, self.keyspaces, prepared);
        let asked: Vec<OperationId> = self.transactions.coordinated.keys().copied().collect();
        for transaction in asked {
            self.transactions.repeat_decision(transaction, &|_| true);
            self.transactions.ask_participants(self.cx, transaction, &|_| true);
        }
    }
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
            self.greet(datacenter);
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
