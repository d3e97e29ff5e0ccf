//! From the files back to a serving partition.
//!
//! Checkpoint items and log records are merged in order; what they leave unfinished is taken up again: entries received
//! and not applied, transactions begun, voted or decided and not completed. Every part of that is idempotent.

use super::Partition;
use super::branching::note_of;
use super::closing::Closing;
use super::dead::DECLARED_DEAD;
use super::identity::Identity;
use super::persistence::Needed;
use super::regain::is_given_up;
use crate::applied::AppliedSet;
use crate::config::{AppendFsync, FirstStart, Tuning};
use crate::trace::Trace;
use crate::transaction::{Committing, Coordinated, Voting, VotingKind};
use ensue_protocol::Loss;
use ensue_store::cell::Write;
use ensue_store::disk::{DiskDone, DiskOp};
use ensue_store::entry::{Change, Entry};
use ensue_store::image::{self, PartitionImage};
use ensue_store::layout;
use ensue_store::log::{Log, LogOptions, Lsn};
use ensue_store::record::Record;
use ensue_store::recovery::{Finish, Recovered, RecoveredRecord, Recovery, RecoveryError, RecoveryOptions};
use ensue_store::superblock::{FORMAT, Superblock};
use ensue_types::{
    Context, DatacenterId, DirectoryId, HybridClock, Incarnation, KeyspaceId, LogicalTime, OperationId, Part,
    Position, Reply, Rule,
};
use ensue_wire::{Decision, Envelope, Message};
use std::collections::{BTreeMap, VecDeque};

/// What a partition is doing.
#[derive(Clone, Debug)]
pub enum Stage {
    Reading(Option<Box<Reading>>),
    /// Its directory is new: the other datacenters are asked whether an earlier one was lost.
    Joining(Box<super::joining::Joining>),
    /// The log may have lost its tail: the other datacenters are asked for it.
    Regaining(Box<super::regain::Regaining>),
    Serving,
    /// It stops in good order.
    Closing(Closing),
    /// It cannot go on, and says why to everybody who asks.
    Stopped(String),
}

/// What to do about damage.
pub(super) const ADVICE: &str = "; `ensue fsck` says what each partition holds";

impl Stage {
    pub(super) fn reading(_tuning: &Tuning) -> Stage {
        Stage::Reading(None)
    }
}

/// A recovery under way, and what the log has left open so far.
#[derive(Clone, Debug)]
pub struct Reading {
    recovery: Recovery,
    /// The log may end before what was promised; the datacenters of this mask need not be asked.
    tail_lost: Option<u16>,
    clock: LogicalTime,
    records: u64,
    open: Open,
}

/// What the log began and has not ended.
#[derive(Clone, Debug, Default)]
pub(super) struct Open {
    /// Own entries up to here are in the checkpoint. Merging them again could bring back what a tombstone deleted that
    /// has been collected since.
    own_floor: Position,
    received: BTreeMap<(DatacenterId, Position), (Incarnation, Entry)>,
    begun: BTreeMap<OperationId, Begun>,
    decided: BTreeMap<OperationId, (LogicalTime, Option<Entry>)>,
    pub(super) prepared: BTreeMap<OperationId, (KeyspaceId, LogicalTime, Part)>,
    /// Parts that were executed and may be asked for again, with the names of local transactions.
    executed: BTreeMap<OperationId, Option<OperationId>>,
    /// The entries of replicated transactions decided and not completed: the participants' names are in them.
    announced: BTreeMap<OperationId, Entry>,
}

#[derive(Clone, Debug)]
struct Begun {
    keyspace: KeyspaceId,
    context: ensue_types::Opaque,
    parts: Vec<Part>,
}

impl Partition {
    /// Begins to read the disk.
    pub fn start(&mut self) {
        let topology = &self.config.topology;
        let expected = Superblock {
            format: FORMAT,
            cluster: self.config.cluster,
            datacenter: self.datacenter,
            partition: self.id,
            partitions: topology.partitions,
            incarnation: Incarnation(1),
            boot_id: self.config.boot_id,
            clean: true,
            fsync_always: self.config.append_fsync == AppendFsync::Always,
            witnessed: false,
            synced: Lsn(0),
            checkpoint: 0,
            without: 0,
            directory: Identity::draw(self.config.identity_seed, self.datacenter, self.id.0),
            not_admitted: !self.receivers.is_empty() && self.config.first_start == FirstStart::Ask,
        };
        let log = LogOptions { segment_bytes: self.config.tuning.segment_bytes };
        let recovery = Recovery::new(RecoveryOptions { log, expected });
        let reading = Reading {
            recovery,
            tail_lost: None,
            clock: LogicalTime::ZERO,
            records: 0,
            open: Open::default(),
        };
        self.stage = Stage::Reading(Some(Box::new(reading)));
        self.read_on();
    }

    pub(super) fn on_recovery_disk(&mut self, done: DiskDone) {
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
            self.disk.push_back(op);
        }
    }

    fn take_item(&mut self, item: Recovered) -> Result<(), String> {
        match item {
            Recovered::Superblock(superblock) => {
                self.incarnation = superblock.incarnation;
                if is_given_up(superblock.without, self.datacenter) {
                    return Err(self.word_of_death("the others, before it was started again"));
                }
                self.identity.own = match superblock.directory {
                    // A directory of an earlier format gets its identity now.
                    DirectoryId::UNKNOWN => {
                        Identity::draw(self.config.identity_seed, self.datacenter, self.id.0)
                    }
                    known => known,
                };
                let lost = !superblock.tail_complete(self.config.boot_id);
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
                let result = self.take_record(&mut reading, recovered);
                self.stage = Stage::Reading(Some(reading));
                result
            }
            Recovered::Torn(torn) => {
                self.trace(Trace::TornTail { partition: self.id, bytes: torn.dropped_bytes });
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
                self.clock.observe(image.clock);
                self.position = self.position.max(image.position);
                if let Stage::Reading(Some(reading)) = &mut self.stage {
                    reading.open.own_floor = image.position;
                }
                self.transactions.begun = image.begun;
                for (rows, bounds) in self.rows.iter_mut().zip(image.bounds) {
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
                    self.applied.restore(stream.datacenter, set);
                    if let Some(receiver) = self.receivers.get_mut(&stream.datacenter) {
                        receiver.restore(stream.received);
                    }
                }
                Ok(())
            }
            image::RECORD => self.take_lasting(layout::decode_record(bytes).map_err(wrong)?),
            image::BRANCH_STATES | image::BRANCH_KEY => self.branching.restore(kind, bytes),
            image::FLOOR => {
                let (keyspace, floor) = image::decode_floor(bytes).map_err(wrong)?;
                self.keyspace(keyspace).raise_floor(&floor);
                // Rows of the checkpoint are not whole below it: nothing is read there any more.
                self.times.floor.join(&floor);
                Ok(())
            }
            image::EFFECT | image::VERSION | image::FLUSH => {
                let image = image::decode_write(kind, bytes).map_err(wrong)?;
                self.clock.observe(image.since);
                self.keyspace(image.keyspace).restore_image(kind, image);
                Ok(())
            }
            _ => Err(format!("checkpoint: an item of unknown kind {kind}")),
        }
    }

    fn take_record(&mut self, reading: &mut Reading, recovered: RecoveredRecord) -> Result<(), String> {
        let wrong = |error: layout::LayoutError| format!("log at {}: {error}", recovered.lsn_end);
        self.persistence.tail.replay(&recovered).map_err(wrong)?;
        let (batch, incarnation) = (recovered.batch, recovered.incarnation);
        self.incarnation = self.incarnation.max(incarnation);
        let open = &mut reading.open;
        match recovered.record {
            Record::Own { entry } => {
                let entry = layout::decode_entry(&entry).map_err(wrong)?;
                if let Change::Effects { transaction: Some(operation), .. } = entry.change {
                    // Its own record of the execution was lost, and the entry came back from another datacenter.
                    open.executed.insert(operation, None);
                    self.persistence.restore_needed(Needed::Executed(operation), batch);
                }
                self.replay_own(open, entry);
            }
            Record::Begun { number, keyspace, context, parts } => {
                self.transactions.begun = self.transactions.begun.max(number);
                let transaction = OperationId { incarnation, ..self.local_transaction(number) };
                open.begun.insert(transaction, Begun { keyspace, context, parts });
                self.persistence.restore_needed(Needed::Begun(transaction), batch);
            }
            Record::Prepared { transaction, keyspace, at, part } => {
                reading.clock = reading.clock.max(at);
                open.prepared.insert(transaction, (keyspace, at, part));
                self.persistence.restore_needed(Needed::Prepared(transaction), batch);
            }
            Record::Decided { transaction, at, entry } => {
                reading.clock = reading.clock.max(at);
                let entry = entry.map(|entry| layout::decode_entry(&entry)).transpose().map_err(wrong)?;
                if let Some(Change::Effects { transaction: Some(operation), .. }) =
                    entry.as_ref().map(|e| &e.change)
                {
                    open.executed.insert(*operation, Some(transaction));
                    self.persistence.restore_needed(Needed::Executed(*operation), batch);
                }
                self.replay_decided(open, transaction, at, entry);
            }
            Record::Completed { transaction } => {
                open.begun.remove(&transaction);
                open.decided.remove(&transaction);
                open.announced.remove(&transaction);
                self.persistence.no_longer_needed(Needed::Begun(transaction));
            }
            Record::Received { origin, incarnation, entry } => {
                let entry = layout::decode_entry(&entry).map_err(wrong)?;
                reading.clock = reading.clock.max(entry.stamp.time);
                self.replay_received(&mut reading.open, (origin, incarnation), entry, batch);
            }
            Record::Applied { origin, incarnation, position, at } => {
                reading.clock = reading.clock.max(at);
                self.replay_applied(open, origin, incarnation, position, at);
            }
            Record::Times { received, stable } => {
                if self.config.rules.hold(Rule::RememberStable) {
                    self.times.received.join(&received);
                    self.times.stable.join(&stable);
                }
            }
            Record::Rebuilt { keyspace, rebuilt } => self.replay_rebuilt(keyspace, rebuilt),
            Record::ClockBound { bound } => {
                self.persistence.bound = self.persistence.bound.max(bound);
            }
            lasting => self.take_lasting(lasting)?,
        }
        Ok(())
    }

    /// What checkpoints hold as it stood in the log.
    fn take_lasting(&mut self, record: Record) -> Result<(), String> {
        match record {
            Record::Dead { datacenter, time } => self.dead.restore(datacenter, time),
            Record::Ended { datacenter, whole } => self.dead.restore_end(datacenter, whole),
            Record::Lost { datacenter, whole, doubtful } => {
                self.take_loss(Loss { datacenter, whole, doubtful });
            }
            Record::Peer { datacenter, directory, last } => {
                self.identity.restore(datacenter, directory, last);
            }
            Record::Discarded { datacenter, entry } => {
                let wrong = |error: layout::LayoutError| format!("a discarded write: {error}");
                self.restore_discarded(datacenter, layout::decode_entry(&entry).map_err(wrong)?);
            }
            other => return Err(format!("checkpoint: a record that no checkpoint holds: {other:?}")),
        }
        Ok(())
    }

    fn replay_received(
        &mut self,
        open: &mut Open,
        (origin, incarnation): (DatacenterId, Incarnation),
        entry: Entry,
        batch: Lsn,
    ) {
        let position = entry.position;
        self.identity.note_received(origin, entry.stamp.time);
        self.persistence.retain(origin, position, batch);
        if let Some(receiver) = self.receivers.get_mut(&origin) {
            if self.config.rules.hold(Rule::RememberReceivedPosition) {
                receiver.restore(position);
            }
        }
        if !self.applied.contains(origin, position) || matches!(entry.change, Change::Transaction { .. }) {
            // In the order in which commits came: they wait for their parents once more, until they are told to be applied.
            if let Some((keyspace, note)) = note_of(&entry) {
                self.replay_on_branch(origin, keyspace, position, &note.clone());
            }
            open.received.insert((origin, position), (incarnation, entry));
            self.persistence.restore_needed(Needed::Received(origin, position), batch);
        } else if let Change::Effects { transaction: Some(operation), .. } = entry.change {
            if self.applied.is_discarded(origin, position) {
                return;
            }
            open.executed.insert(operation, None);
            self.persistence.restore_needed(Needed::Executed(operation), batch);
        }
    }

    fn replay_own(&mut self, open: &Open, entry: Entry) {
        if entry.position <= open.own_floor && self.config.rules.hold(Rule::CheckpointedIsNotReplayed) {
            return;
        }
        self.position = self.position.max(entry.position);
        self.clock.observe(entry.stamp.time);
        self.merge_own(entry);
    }

    /// Merges an entry of the own stream that is read from the log, or that came back from another datacenter.
    pub(super) fn merge_own(&mut self, entry: Entry) {
        let own = OperationId {
            datacenter: self.datacenter,
            incarnation: entry.position.incarnation(),
            partition: self.id,
            position: entry.position,
        };
        if self.config.rules.hold(Rule::RememberStable) {
            let proven = self.protocol(entry.keyspace()).proves_stable(&entry.dependencies);
            self.times.stable.join(&proven);
        }
        self.replay_change(entry, own, None);
    }

    fn replay_change(&mut self, entry: Entry, operation: OperationId, at: Option<LogicalTime>) {
        let at = at.unwrap_or(entry.stamp.time);
        if self.discards(operation, &entry) {
            return;
        }
        match entry.change {
            Change::Effects { keyspace, transaction, effects } => {
                let operation = transaction.unwrap_or(operation);
                let dependencies = self.keyspace(keyspace).carried(&entry.dependencies);
                let write = Write { stamp: entry.stamp, at, operation, dependencies };
                self.apply_effects(keyspace, &effects, &entry.previous, &write);
            }
            Change::Flush { keyspace, effects } => {
                let dependencies = self.keyspace(keyspace).carried(&entry.dependencies);
                let write = Write { stamp: entry.stamp, at, operation, dependencies };
                self.apply_flush(keyspace, &effects, &write);
            }
            Change::Lost { after } => {
                self.applied.lose(operation.datacenter, after, Position::before(operation.incarnation));
                self.replay_lost_branches(operation.datacenter, operation.incarnation);
            }
            Change::Branch { keyspace, note } => {
                self.replay_on_branch(operation.datacenter, keyspace, entry.position, &note);
            }
            Change::Transaction { .. } => {}
        }
    }

    fn replay_decided(
        &mut self,
        open: &mut Open,
        transaction: OperationId,
        at: LogicalTime,
        entry: Option<Entry>,
    ) {
        match entry {
            // A participant executed its part.
            Some(entry) if matches!(entry.change, Change::Effects { .. }) => {
                open.prepared.remove(&transaction);
                self.persistence.no_longer_needed(Needed::Prepared(transaction));
                self.replay_own(open, entry);
            }
            // A coordinator decided.
            entry => {
                if let Some(entry) = &entry {
                    self.position = self.position.max(entry.position);
                    self.clock.observe(entry.stamp.time);
                } else {
                    let place = (transaction.datacenter, transaction.position);
                    if let Some((_, announced)) = open.received.remove(&place) {
                        open.announced.insert(transaction, announced);
                    }
                    self.persistence
                        .needed_as(Needed::Received(place.0, place.1), Needed::Begun(transaction));
                    self.applied.insert(transaction.datacenter, transaction.position);
                }
                open.decided.insert(transaction, (at, entry));
            }
        }
    }

    fn replay_applied(
        &mut self,
        open: &mut Open,
        origin: DatacenterId,
        incarnation: Incarnation,
        position: Position,
        at: LogicalTime,
    ) {
        if self.config.rules.hold(Rule::RememberApplied) {
            self.applied.insert(origin, position);
        }
        let Some((_, entry)) = open.received.remove(&(origin, position)) else {
            return self.persistence.no_longer_needed(Needed::Received(origin, position));
        };
        if self.applied.is_discarded(origin, position) {
            if let Change::Effects { transaction: Some(transaction), .. } = &entry.change {
                open.prepared.remove(transaction);
                self.persistence.no_longer_needed(Needed::Prepared(*transaction));
            }
            return self.persistence.no_longer_needed(Needed::Received(origin, position));
        }
        if let Change::Effects { transaction: Some(transaction), .. } = &entry.change {
            let executed = Needed::Executed(*transaction);
            self.persistence.needed_as(Needed::Received(origin, position), executed);
            open.executed.insert(*transaction, None);
            open.prepared.remove(transaction);
            self.persistence.no_longer_needed(Needed::Prepared(*transaction));
        }
        self.persistence.no_longer_needed(Needed::Received(origin, position));
        let operation = OperationId { datacenter: origin, incarnation, partition: self.id, position };
        if matches!(entry.change, Change::Transaction { .. }) {
            open.announced.insert(operation, entry);
            return;
        }
        self.replay_change(entry, operation, Some(at));
    }

    /// Everything was read: goes on, or asks the others for what may be missing.
    fn on_log_read(&mut self, finish: Finish, reading: Reading) {
        let Finish { log, superblock, .. } = finish;
        self.persistence.checkpointed_end = log.first();
        self.persistence.stream_floor = log.first();
        self.persistence.has_witness = superblock.witnessed;
        self.persistence.superblock = Some(superblock);
        self.incarnation = self.incarnation.max(log.incarnation());
        self.persistence.log = Some(log);
        let mut floor = self.clock.latest().max(reading.clock);
        if self.config.rules.hold(Rule::ClockAheadOfRestart) {
            floor = floor.max(self.persistence.bound);
            if reading.tail_lost.is_some() {
                // The bound that was lost lay no further ahead of the wall than this.
                let ahead_ms = self.now.wall_ms + self.config.tuning.clock_persist_ahead_ms;
                floor = floor.max(LogicalTime::from_ms(ahead_ms));
            }
        }
        self.clock = HybridClock::starting_at(floor);
        self.own_entry_applied();
        self.release();
        let Reading { tail_lost, records, open, .. } = reading;
        if let (Some(superblock), Some(log)) = (&self.persistence.superblock, &self.persistence.log) {
            self.persistence.opening = self.opening(superblock, log);
        }
        let not_admitted =
            self.persistence.superblock.as_ref().is_some_and(|superblock| superblock.not_admitted);
        // An operator's word is about a directory in which there is nothing yet.
        let is_vouched_for = self.config.first_start == FirstStart::Alone && records == 0;
        match tail_lost {
            _ if not_admitted && !is_vouched_for => self.begin_to_join(records, open),
            Some(without) => self.begin_to_regain(without, records, open),
            None => self.serve(records, open, None),
        }
    }

    /// The log holds all that can be had: takes up what is open, and serves; after a loss, when it has caught up.
    pub(super) fn serve(&mut self, records: u64, mut open: Open, after_loss: Option<u16>) {
        let always = self.config.append_fsync == AppendFsync::Always;
        let (boot_id, incarnation) = (self.config.boot_id, self.incarnation);
        self.persistence.make_witness();
        // One that a power failure has torn says again what is known.
        self.testify();
        if let Some(mut superblock) = self.persistence.superblock.take() {
            superblock.incarnation = incarnation;
            superblock.not_admitted = false;
            superblock.directory = self.identity.own;
            superblock.witnessed |= superblock.format == FORMAT;
            // Until it has caught up, another start must catch up too.
            let marked = match after_loss {
                Some(_) => superblock.replace(),
                None => superblock.mark_running(boot_id, always),
            };
            self.persistence.opening.push_back(marked);
            self.disk.extend(self.persistence.opening.front().cloned());
            self.persistence.superblock = Some(superblock);
        }
        self.forget_past();
        self.branches_live_on();
        self.release();
        self.stage = Stage::Serving;
        self.identity.opened_at = self.position;
        // Nothing may be logged after what was read, so its end is what they wait for.
        let end = self.persistence.log_end();
        for (operation, name) in std::mem::take(&mut open.executed) {
            self.report_when_synced(operation, name, end);
        }
        if let Some(without) = after_loss {
            self.begin_to_catch_up(without, records, &mut open);
        } else {
            self.trace(Trace::PartitionReady { partition: self.id, records });
        }
        self.take_up(open);
        self.settle_again();
        let others: Vec<DatacenterId> = self.receivers.keys().copied().collect();
        for datacenter in others {
            self.greet(datacenter);
        }
        self.settle();
        self.take_early();
        self.finish_catching_up();
    }

    /// States of before are not known: nothing is read at a time before this one.
    pub(super) fn forget_past(&mut self) {
        let since = self.clock.read(self.now);
        for rows in &mut self.rows {
            rows.forget_past(since);
        }
    }

    /// What an earlier process of this boot wrote may be in memory only, dropped by a sync that failed: a sync of today
    /// would not tell. It is written anew before anything rests on it (trap 55).
    fn opening(&self, superblock: &Superblock, log: &Log) -> VecDeque<DiskOp> {
        // After a loss the boot that the superblock names is the lost one until all has caught up, however many processes
        // of this boot have tried.
        let may_be_of_this_boot =
            superblock.boot_id == self.config.boot_id || !superblock.tail_complete(self.config.boot_id);
        if superblock.clean || !may_be_of_this_boot || !self.config.rules.hold(Rule::RewriteTheUnsyncedTail) {
            return VecDeque::new();
        }
        let unsynced = log.segments().filter(|segment| segment.end > log.synced());
        unsynced.map(|segment| DiskOp::Rewrite { file: segment.file() }).collect()
    }

    fn take_up(&mut self, open: Open) {
        let Open { received, begun, mut decided, prepared, announced, .. } = open;
        let complete = self.config.rules.hold(Rule::CompleteAfterCrash);
        for (transaction, begun) in begun {
            if complete {
                let decision = decided.remove(&transaction);
                self.take_up_begun(transaction, begun, decision);
            }
        }
        for (transaction, (at, _)) in decided {
            if let (Some(entry), true) = (announced.get(&transaction), complete) {
                self.take_up_decided(transaction, at, entry);
            }
        }
        for ((origin, position), (incarnation, entry)) in received {
            let waited = !self.applied.contains(origin, position);
            if waited && self.config.rules.hold(Rule::TakeUpWhatWaited) {
                debug_assert_eq!(entry.position, position);
                self.arrive(origin, incarnation, entry);
            }
        }
        self.take_up_prepared(prepared);
        let asked: Vec<OperationId> = self.transactions.coordinated.keys().copied().collect();
        for transaction in asked {
            self.repeat_decision(transaction, &|_| true);
            self.ask_participants(transaction, &|_| true);
        }
    }

    /// What was voted for is undecided again, until the coordinator says more.
    pub(super) fn take_up_prepared(
        &mut self,
        prepared: BTreeMap<OperationId, (KeyspaceId, LogicalTime, Part)>,
    ) {
        let remember = self.config.rules.hold(Rule::RememberTheVote);
        for (transaction, (keyspace, at, part)) in prepared.into_iter().filter(|_| remember) {
            if transaction.datacenter == self.datacenter {
                self.await_decision(transaction, keyspace, part, at);
                self.vote_again(transaction);
            } else if let Some(part) = self.transactions.replicated_parts.get(&transaction) {
                let (origin, position) = (part.origin, part.position);
                if part.work.is_none() {
                    self.await_replicated_decision(transaction, origin, position, at);
                }
                self.notify_again(transaction);
            }
        }
    }

    fn take_up_begun(
        &mut self,
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
                self.transactions.names.insert(operation, transaction);
                let announced = self.note_decision(transaction, Some(entry.position));
                let committing = Committing::new(decision, keyspace, participants, begun.parts);
                Coordinated::Committing(Committing { announced, ..committing })
            }
            _ => {
                let context = Context { time: LogicalTime::ZERO, facts: begun.context };
                let kind = VotingKind::Local { parts: begun.parts, context, session: None };
                Coordinated::Voting(Voting { keyspace, participants, votes: BTreeMap::new(), kind })
            }
        };
        self.transactions.coordinated.insert(transaction, state);
    }

    fn take_up_decided(&mut self, transaction: OperationId, at: LogicalTime, entry: &Entry) {
        let Change::Transaction { keyspace, participants } = &entry.change else { return };
        let decision = Decision { at, operation: transaction, stamp: entry.stamp };
        let announced = self.note_decision(transaction, None);
        let committing = Committing::new(decision, *keyspace, participants.clone(), Vec::new());
        let committing = Committing { announced, ..committing };
        self.transactions.coordinated.insert(transaction, Coordinated::Committing(committing));
    }

    /// Answers, instead of with what rested on records that are not durable, that the partition has stopped. Only
    /// sessions are told; partitions wait.
    pub(super) fn disavow(&mut self, answer: Envelope) {
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

    /// Answers a question that a partition cannot serve now, or never, since it has stopped. Only sessions are answered; partitions wait.
    pub(super) fn refuse(&mut self, envelope: &Envelope, reason: &str) {
        let refusal = |words: String| Reply::Error(words.into());
        let has_code =
            ["TAILLOST", "REJOIN", "LOADING", DECLARED_DEAD].iter().any(|code| reason.starts_with(code));
        let words = if has_code {
            reason.to_owned()
        } else {
            format!("STOPPED partition {} has stopped: {reason}", self.id)
        };
        let request = match &envelope.message {
            Message::ReadSlice { read, .. } => {
                let message = Message::SliceRefused { read: *read, reply: refusal(words) };
                return self.send_refusal(envelope.from, message);
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
                return self.send_refusal(envelope.from, Message::Surveyed { request, figures });
            }
            _ => return,
        };
        self.send_refusal(envelope.from, Message::Refused { request, reply: refusal(words) });
    }
}
