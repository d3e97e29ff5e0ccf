//! Checkpoints: the rows written aside while writes go on, so that the log before them may go.
//!
//! A checkpoint walks the slots of every keyspace in slices. A row visited late may hold what the log has later; merging
//! the log on top does no harm. It begins its replay at the oldest record that anyone still needs: one that a restart
//! needs, or one that some datacenter has not synced. It counts only when the log is durable up to where it stood at the end
//! of the walk: a write that the log could still lose must not be in it.

use super::Partition;
use crate::trace::Trace;
use ensue_branch::Branches;
use ensue_store::checkpoint::CheckpointWriter;
use ensue_store::disk::DiskDone;
use ensue_store::image::{self, PartitionImage, StreamImage};
use ensue_store::keyspace::Keyspace;
use ensue_store::log::Lsn;
use ensue_types::{DatacenterId, KeyspaceId, Rule};

/// Rows of one slice: a turn is held up no longer than this takes.
const SLICE_ROWS: usize = 512;
/// Bytes that may wait for the disk before the next slice.
const QUEUED_BYTES_MAX: usize = 1 << 20;

/// Where the walk over the rows stands.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Walk {
    keyspace: usize,
    slot: usize,
    /// Behind all rows: the keyspace and the hash of the key that comes next of those with branches.
    branch: Option<(u8, u32)>,
    pub(super) done: bool,
    /// The end of the log when the last row was written: the checkpoint may hold whatever was logged before.
    pub(super) end: Lsn,
    pub(super) finished: bool,
    /// Where the log stood when the checkpoint before this one began.
    before: Lsn,
}

impl Walk {
    pub(super) fn checkpointed_before(&self) -> Lsn {
        self.before
    }
}

impl Partition {
    /// Begins a checkpoint when the log has grown enough, and lets go of segments that nobody needs.
    pub(super) fn begin_checkpoint_in_time(&mut self) {
        self.move_stream_floor();
        let grown = self.persistence.log_end().saturating_sub(self.persistence.checkpointed_end.0);
        if self.persistence.writer.is_some()
            || self.is_catching_up()
            || grown < self.config.tuning.checkpoint_bytes && !self.branching.wants_checkpoint
        {
            return;
        }
        if self.is_out_of_room()
            || !self.persistence.opening.is_empty()
            || self.persistence.caught_up.is_some()
            || self.persistence.room.given_up.is_some()
            || self.now.monotonic_us < self.persistence.room.next_checkpoint_us
        {
            return;
        }
        let Some(superblock) = &self.persistence.superblock else { return };
        let Some(log) = &self.persistence.log else { return };
        let here = log.batch_start();
        let needed =
            self.persistence.oldest_needed().filter(|_| self.config.rules.hold(Rule::KeepNeededRecords));
        let mut start = needed.unwrap_or(here).min(self.persistence.stream_floor).min(here);
        if self.identity.keeps_the_log() {
            start = start.min(self.persistence.log.as_ref().map_or(start, |log| log.first()));
        }
        let mut writer = CheckpointWriter::begin(superblock, start, start);
        writer.item(image::PARTITION, &self.image().encode());
        for (number, rows) in self.rows.iter().enumerate() {
            for flush in rows.flushes() {
                writer.item(image::FLUSH, &image::flush_item(KeyspaceId(number as u8), flush));
            }
        }
        self.branching.write_states(&mut writer);
        self.branching.wants_checkpoint = false;
        for record in self.dead.records().chain(self.identity.records()).chain(self.discarded.records()) {
            writer.item(image::RECORD, &image::record_item(&record));
        }
        let before = std::mem::replace(&mut self.persistence.checkpointed_end, log.end());
        // The clock's bound and what is known of the others' time are not in the checkpoint, so they are logged again behind its
        // start: now, because the partition may stop before it logs anything else.
        self.log_bound();
        self.times.logged = None;
        self.log_times();
        self.persistence.writer = Some((writer, Walk { before, ..Walk::default() }));
    }

    /// Where the first own entry stands that some datacenter has not synced.
    fn move_stream_floor(&mut self) {
        let synced = self.synced_everywhere();
        let Some(log) = &self.persistence.log else { return };
        let floor = if synced >= self.position {
            log.batch_start()
        } else {
            self.persistence.tail.index().batch_before(synced.next()).unwrap_or(log.first())
        };
        self.persistence.stream_floor = self.persistence.stream_floor.max(floor);
    }

    fn image(&self) -> PartitionImage {
        let datacenters = (0..self.config.topology.datacenters.len() as u8).map(DatacenterId);
        let streams = datacenters.map(|datacenter| {
            let applied = self.applied.set(datacenter).cloned().unwrap_or_default();
            let receiver = self.receivers.get(&datacenter);
            StreamImage {
                datacenter,
                applied_incarnation: applied.watermark.incarnation(),
                watermark: applied.watermark,
                above: applied.above.into_iter().collect(),
                received_incarnation: receiver.map(|r| r.received().incarnation()).unwrap_or_default(),
                received: receiver.map(|r| r.received()).unwrap_or_default(),
                lost: applied.lost,
            }
        });
        PartitionImage {
            clock: self.clock.latest(),
            position: self.position,
            begun: self.transactions.begun,
            streams: streams.filter(|_| self.config.rules.hold(Rule::CheckpointHoldsStreams)).collect(),
            bounds: self.rows.iter().map(Keyspace::bounds).collect(),
        }
    }

    /// Writes the next slice, if the disk has kept up.
    pub(super) fn continue_checkpoint(&mut self) {
        let Some((mut writer, mut walk)) = self.persistence.writer.take() else { return };
        if writer.queued_bytes() < QUEUED_BYTES_MAX && !walk.done {
            self.write_slice(&mut writer, &mut walk);
            walk.end = self.persistence.log.as_ref().map_or(Lsn(0), |log| log.end());
        }
        let synced = self.persistence.log.as_ref().map_or(Lsn(0), |log| log.synced());
        if walk.done && !walk.finished {
            if synced >= walk.end {
                writer.finish(synced);
                walk.finished = true;
            } else {
                self.begin_sync();
            }
        }
        while let Some(op) = writer.take_op() {
            self.disk.push_back(op);
        }
        self.persistence.writer = Some((writer, walk));
    }

    /// Whether rows are still being written aside.
    pub(super) fn is_checkpointing(&self) -> bool {
        self.persistence.writer.as_ref().is_some_and(|(_, walk)| !walk.done)
    }

    /// Writes the next rows, of one or several keyspaces.
    fn write_slice(&mut self, writer: &mut CheckpointWriter, walk: &mut Walk) {
        let mut left = SLICE_ROWS;
        let rules = self.config.rules;
        let holds_dead = rules.hold(Rule::CheckpointHoldsTombstones);
        while left > 0 {
            let Some(rows) = self.rows.get(walk.keyspace) else {
                walk.branch = self.branching.write_keys(writer, walk.branch.unwrap_or_default(), left);
                walk.done = walk.branch.is_none();
                return;
            };
            let keyspace = KeyspaceId(walk.keyspace as u8);
            let (slice, next) = rows.rows_from(walk.slot, left);
            for row in slice {
                for (column, cell) in
                    row.all_cells().filter(|(_, cell)| holds_dead || cell.state().is_live(rules))
                {
                    for (kind, item) in image::column_items(keyspace, row.key(), column, cell, rules) {
                        writer.item(kind, &item);
                    }
                }
            }
            match next {
                Some(slot) => {
                    left -= (slot - walk.slot).min(left);
                    walk.slot = slot;
                }
                None => {
                    if !rows.floor().is_empty() {
                        writer.item(image::FLOOR, &image::floor_item(keyspace, rows.floor()));
                    }
                    *walk = Walk { keyspace: walk.keyspace + 1, slot: 0, ..*walk };
                }
            }
        }
    }

    /// A disk answer that may be the checkpoint's.
    pub(super) fn on_checkpoint_disk(&mut self, done: &DiskDone) {
        if let DiskDone::Deleted { file } = done {
            self.persistence.room.given_up.take_if(|given_up| given_up == file);
        }
        let Some((writer, _)) = &mut self.persistence.writer else { return };
        let Some(superblock) = &mut self.persistence.superblock else { return };
        let durable = writer.on_done(done, superblock);
        while let Some(op) = writer.take_op() {
            self.disk.push_back(op);
        }
        if durable {
            let place = writer.place();
            self.persistence.writer = None;
            self.branching.keyspaces.values_mut().for_each(Branches::note_kept);
            self.trace(Trace::Checkpointed { partition: self.id, number: place.number });
            let oldest_read = self.persistence.oldest_read().unwrap_or(place.log_start);
            if let Some(log) = &mut self.persistence.log {
                log.on_checkpoint(place.log_start);
                self.disk.extend(log.drop_before(place.log_start.min(oldest_read)));
                let first = log.first();
                self.persistence.tail.drop_before(first);
            }
        }
    }
}
