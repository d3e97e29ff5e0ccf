//! Checkpoints: the rows written aside while writes go on, so that the log before them may go.
//!
//! A checkpoint walks the slots of every keyspace in slices. A row visited late may hold what the log has later;
//! merging the log on top does no harm. It begins its replay at the oldest record that anyone still needs: one that a
//! restart needs, or one that some datacenter has not synced. It counts only when the log is durable up to where it
//! stood at the end of the walk: a write that the log could still lose must not be in it.

use super::Persistence;
use crate::partition::cx::Cx;
use crate::partition::keyspaces::Keyspaces;
use crate::partition::others::Others;
use crate::partition::peers::Peers;
use crate::partition::transactions::Transactions;
use crate::trace::Trace;
use ensue_branch::Branches;
use ensue_store::checkpoint::{CheckpointWriter, Items};
use ensue_store::compact::RowRef;
use ensue_store::disk::{DiskDone, FileName};
use ensue_store::image;
use ensue_store::image::{PartitionImage, StreamImage};
use ensue_store::keyspace::Keyspace;
use ensue_store::log::Lsn;
use ensue_store::record::Record;
use ensue_types::{DatacenterId, KeyspaceId, Rule};

/// Rows of one slice, and bytes of them after which it ends with the row: a turn is held up no longer than this takes.
const SLICE_ROWS: usize = 512;
const SLICE_BYTES: usize = 1 << 20;
/// Bytes that may wait for the disk before the next slice.
const QUEUED_BYTES_MAX: usize = 1 << 20;

/// Where the walk over the rows stands.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Walk {
    keyspace: usize,
    slot: usize,
    /// Behind all rows: the keyspace and the hash of the key that comes next of those with branches.
    branch: Option<(u8, u32)>,
    pub(in crate::partition::persistence) done: bool,
    /// The end of the log when the last row was written: the checkpoint may hold whatever was logged before.
    pub(in crate::partition::persistence) end: Lsn,
    pub(in crate::partition::persistence) finished: bool,
    /// Where the log stood when the checkpoint before this one began.
    before: Lsn,
}

impl Walk {
    pub(in crate::partition) fn checkpointed_before(&self) -> Lsn {
        self.before
    }
}

impl Walk {
    /// At how many slots it has looked, and of how many.
    pub(in crate::partition::persistence) fn progress(&self, keyspaces: &Keyspaces) -> (u64, u64) {
        let slots = |rows: &Keyspace| rows.slots_count() as u64;
        let before: u64 = keyspaces.each().take(self.keyspace).map(slots).sum();
        (before + self.slot as u64, keyspaces.each().map(slots).sum())
    }

    /// Writes the next rows, of one or several keyspaces.
    pub(in crate::partition::persistence) fn write_slice(
        &mut self,
        keyspaces: &Keyspaces,
        items: &mut impl Items,
    ) {
        let (mut left, mut bytes) = (SLICE_ROWS, 0);
        let holds_dead = Rule::CheckpointHoldsTombstones.holds();
        while left > 0 && bytes < SLICE_BYTES {
            let keyspace = KeyspaceId(self.keyspace as u8);
            let Some(rows) = keyspaces.rows(keyspace) else {
                self.branch = keyspaces.branching.write_keys(items, self.branch.unwrap_or_default(), left);
                self.done = self.branch.is_none();
                return;
            };
            let (slice, next) = rows.rows_from(self.slot, 1);
            for row in slice.map(RowRef::whole) {
                for (column, cell) in row.all_cells().filter(|(_, cell)| holds_dead || cell.state().is_live())
                {
                    for (kind, item) in image::column_items(keyspace, row.key(), &column, &cell) {
                        bytes += item.len();
                        items.item(kind, &item);
                    }
                }
            }
            match next {
                Some(slot) => {
                    left -= 1;
                    self.slot = slot;
                }
                None => {
                    if !rows.floor().is_empty() {
                        items.item(image::FLOOR, &image::floor_item(keyspace, rows.floor()));
                    }
                    *self = Walk { keyspace: self.keyspace + 1, slot: 0, ..*self };
                }
            }
        }
    }
}

impl Persistence {
    fn image(cx: &Cx, others: &Others, keyspaces: &Keyspaces, transactions: &Transactions) -> PartitionImage {
        let datacenters = (0..cx.config.topology.datacenters.len() as u8).map(DatacenterId);
        let streams = datacenters.map(|datacenter| {
            let applied = others.replication.applied.set(datacenter).cloned().unwrap_or_default();
            let receiver = others.replication.receiver(datacenter);
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
            clock: cx.clock.latest(),
            position: cx.position,
            begun: transactions.begun(),
            streams: streams.filter(|_| Rule::CheckpointHoldsStreams.holds()).collect(),
            bounds: keyspaces.each().map(Keyspace::bounds).collect(),
        }
    }
}

impl Persistence {
    /// What stands before the rows.
    pub(in crate::partition::persistence) fn write_head(
        cx: &Cx,
        others: &Others,
        keyspaces: &mut Keyspaces,
        (transactions, peers): (&Transactions, &Peers),
        items: &mut impl Items,
    ) {
        items.item(image::PARTITION, &Persistence::image(cx, others, keyspaces, transactions).encode());
        for (number, rows) in keyspaces.each().enumerate() {
            for flush in rows.flushes().iter().chain(rows.last_flush()) {
                items.item(image::FLUSH, &image::flush_item(KeyspaceId(number as u8), flush));
            }
        }
        keyspaces.branching.write_states(items);
        let lasting = others.failover.failed.records().chain(peers.identity.records());
        let retiring = others.failover.retirement.is_begun();
        let retiring = retiring.then_some(Record::Retiring { datacenter: cx.datacenter });
        for record in
            lasting.chain(others.failover.discarded.records()).chain(retiring).chain(cx.homes.records())
        {
            items.item(image::RECORD, &image::record_item(&record));
        }
    }

    /// Goes on with what is written aside: a checkpoint, if the disk has kept up, and copies.
    pub(in crate::partition) fn write_aside(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        keyspaces: &mut Keyspaces,
    ) {
        self.continue_checkpoint(cx, others, keyspaces);
        self.continue_copies(cx, others, keyspaces);
    }

    fn continue_checkpoint(&mut self, cx: &mut Cx, others: &mut Others, keyspaces: &mut Keyspaces) {
        let Some((mut writer, mut walk)) = self.writer.take() else { return };
        if writer.queued_bytes() < QUEUED_BYTES_MAX && !walk.done {
            walk.write_slice(keyspaces, &mut writer);
            walk.end = Lsn(cx.journal.log_end());
        }
        let synced = Lsn(cx.journal.log_synced());
        if walk.done && !walk.finished {
            if synced >= walk.end {
                writer.finish(synced);
                walk.finished = true;
            } else {
                self.begin_sync(cx, others);
            }
        }
        while let Some(op) = writer.take_op() {
            cx.disk_ops.push_back(op);
        }
        self.writer = Some((writer, walk));
        cx.note_checkpointing(self.is_walking());
    }

    /// A disk answer that may be the checkpoint's.
    pub(in crate::partition) fn on_checkpoint_disk(
        &mut self,
        cx: &mut Cx,
        keyspaces: &mut Keyspaces,
        done: &DiskDone,
    ) {
        if let DiskDone::Deleted { file } = done {
            self.room.abandoned.take_if(|abandoned| abandoned == file);
        }
        if !self.opening.is_empty() && matches!(done, DiskDone::Synced { file: FileName::Checkpoint(_) }) {
            // The superblock is being replaced for another reason: an answer must say of which.
            self.checkpoint_synced = Some(done.clone());
            return;
        }
        let Some((writer, _)) = &mut self.writer else { return };
        let Some(superblock) = &mut self.superblock else { return };
        let durable = writer.on_done(done, superblock);
        while let Some(op) = writer.take_op() {
            cx.disk_ops.push_back(op);
        }
        if durable {
            let place = writer.place();
            self.writer = None;
            self.counts.checkpoints += 1;
            cx.saving.note_ended(cx.now);
            keyspaces.branching.each_mut().for_each(Branches::note_kept);
            cx.trace(Trace::Checkpointed { partition: cx.id, number: place.number });
            let deleted = cx.journal.on_checkpoint(place.log_start);
            cx.disk_ops.extend(deleted);
            cx.disk_ops.extend(self.opening.front().cloned());
        }
    }

    /// A checkpoint is on disk, and no other replacement of the superblock is under way: it is named.
    pub(in crate::partition::persistence) fn name_checkpoint(&mut self, cx: &mut Cx) {
        let Some(synced) = self.checkpoint_synced.take() else { return };
        let (Some((writer, _)), Some(superblock)) = (&mut self.writer, &mut self.superblock) else { return };
        writer.on_done(&synced, superblock);
        while let Some(op) = writer.take_op() {
            cx.disk_ops.push_back(op);
        }
    }
}

impl Persistence {
    /// Begins a checkpoint when the log has grown enough, or an operator wants one, and lets go of segments and copies
    /// that nobody needs.
    pub(in crate::partition) fn begin_checkpoint_in_time(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        keyspaces: &mut Keyspaces,
        transactions: &Transactions,
        peers: &Peers,
    ) {
        self.abandon_idle_copies(cx);
        let grown = cx.journal.log_end().saturating_sub(self.checkpointed_end.0);
        if self.writer.is_some()
            || others.is_catching_up()
            || grown < cx.config.tuning.checkpoint_bytes
                && !keyspaces.branching.wants_checkpoint()
                && !cx.saving.is_wanted()
        {
            return;
        }
        if cx.is_out_of_room()
            || !self.opening.is_empty()
            || self.caught_up.is_some()
            || self.room.abandoned.is_some()
            || cx.now.monotonic_us < self.room.next_checkpoint_us
        {
            return;
        }
        let Some(superblock) = &self.superblock else { return };
        let keeps_all = peers.identity.keeps_the_log(&others.failover.failed);
        let Some(start) = cx.journal.checkpoint_start(keeps_all) else { return };
        let mut writer = CheckpointWriter::begin(superblock, start, start);
        Persistence::write_head(cx, others, keyspaces, (transactions, peers), &mut writer);
        keyspaces.branching.want_no_checkpoint();
        cx.saving.note_begun();
        let before = std::mem::replace(&mut self.checkpointed_end, Lsn(cx.journal.log_end()));
        // The clock's bound and what is known of the others' time are not in the checkpoint, so they are logged again
        // behind its start: now, because the partition may stop before it logs anything else.
        cx.log_bound();
        others.stable_time.times.log_again(cx);
        self.writer = Some((writer, Walk { before, ..Walk::default() }));
        cx.note_checkpointing(self.is_walking());
    }
}
