//! From the files back to a serving partition.
//!
//! Checkpoint items and log records are merged in order; what they leave unfinished is taken up again: entries received
//! and not applied, transactions begun, voted or decided and not completed. Every part of that is idempotent.

use super::replay::take_lasting;
use crate::config::{AppendFsync, FirstStart};
use crate::partition::cx::Cx;
use crate::partition::cx::refusals::ADVICE;
use crate::partition::failover::is_given_up;
use crate::partition::journal::open::Open;
use crate::partition::others::Others;
use crate::partition::peering::Peering;
use crate::partition::peers::identity::Identity;
use crate::partition::replication::applied::AppliedSet;
use crate::trace::Trace;
use ensue_store::disk::DiskDone;
use ensue_store::image::PartitionImage;
use ensue_store::log::{LogOptions, Lsn};
use ensue_store::recovery::{Finish, Recovered, Recovery, RecoveryError, RecoveryOptions};
use ensue_store::superblock::{FORMAT, Superblock};
use ensue_store::{image, layout};
use ensue_types::{DirectoryId, HybridClock, Incarnation, LogicalTime, Position, Rule};

/// A recovery under way, and what the log has left open so far.
#[derive(Clone, Debug)]
pub struct Reading {
    recovery: Recovery,
    /// The log may end before what was promised; the datacenters of this mask need not be asked.
    tail_lost: Option<u16>,
    pub(in crate::partition::recovery) clock: LogicalTime,
    records: u64,
    pub(in crate::partition::recovery) open: Open,
}

/// What there is when everything was read.
pub(in crate::partition) enum LogRead {
    /// A directory that nobody has admitted yet.
    Unadmitted {
        records: u64,
        open: Open,
    },
    /// The log may have lost its tail; the datacenters of this mask need not be asked.
    Torn {
        without: u16,
        records: u64,
        open: Open,
    },
    Whole {
        records: u64,
        open: Open,
    },
}

impl Reading {
    pub(in crate::partition) fn new(cx: &Cx, others: &Others) -> Reading {
        let topology = &cx.config.topology;
        let expected = Superblock {
            format: FORMAT,
            cluster: cx.config.cluster,
            datacenter: cx.datacenter,
            partition: cx.id,
            partitions: topology.partitions,
            incarnation: Incarnation(1),
            boot_id: cx.config.boot_id,
            clean: true,
            fsync_always: cx.config.append_fsync == AppendFsync::Always,
            witnessed: false,
            synced: Lsn(0),
            checkpoint: 0,
            without: 0,
            directory: Identity::draw(cx.config.identity_seed, cx.datacenter, cx.id.0),
            not_admitted: !others.replication.is_alone() && cx.config.first_start == FirstStart::Ask,
            filling: false,
        };
        let log = LogOptions { segment_bytes: cx.config.tuning.segment_bytes };
        let recovery = Recovery::new(RecoveryOptions { log, expected });
        Reading { recovery, tail_lost: None, clock: LogicalTime::ZERO, records: 0, open: Open::default() }
    }

    /// The disk answered.
    pub(in crate::partition) fn on_disk(&mut self, done: DiskDone) -> Result<(), String> {
        self.recovery.on_done(done).map_err(|error| {
            let advice = if matches!(error, RecoveryError::Log(_)) { ADVICE } else { "" };
            format!("{error}{advice}")
        })
    }

    /// Takes what has been read, and asks for more; at the end, what there is.
    pub(in crate::partition) fn read_on(&mut self, p: &mut Peering<'_>) -> Result<Option<Finish>, String> {
        while let Some(item) = self.recovery.next_item() {
            if let Recovered::Finished(finish) = item {
                return Ok(Some(*finish));
            }
            self.take_item(p, item)?;
        }
        while let Some(op) = self.recovery.next_op() {
            p.cx.disk_ops.push_back(op);
        }
        Ok(None)
    }

    fn take_item(&mut self, p: &mut Peering<'_>, item: Recovered) -> Result<(), String> {
        match item {
            Recovered::Superblock(superblock) => {
                p.cx.incarnation = superblock.incarnation;
                if is_given_up(superblock.without, p.cx.datacenter) {
                    return Err(p.cx.word_of_death("the others, before it was started again"));
                }
                let directory = match superblock.directory {
                    // A directory of an earlier format gets its identity now.
                    DirectoryId::UNKNOWN => {
                        Identity::draw(p.cx.config.identity_seed, p.cx.datacenter, p.cx.id.0)
                    }
                    known => known,
                };
                let lost = !superblock.tail_complete(p.cx.config.boot_id);
                p.peers.identity.restore_own(directory, superblock.without, superblock.filling);
                p.others.note_filled(superblock.filling);
                self.tail_lost = lost.then_some(superblock.without);
                Ok(())
            }
            Recovered::Checkpoint(_) => Ok(()),
            Recovered::CheckpointItem { kind, bytes } => self.take_checkpoint_item(p, kind, &bytes),
            Recovered::Record(recovered) => {
                self.records += 1;
                self.take_record(p, recovered)
            }
            Recovered::Torn(torn) => {
                p.cx.trace(Trace::TornTail { partition: p.cx.id, bytes: torn.dropped_bytes });
                Ok(())
            }
            Recovered::Finished(_) => unreachable!("the caller has taken it"),
        }
    }

    fn take_checkpoint_item(
        &mut self,
        p: &mut Peering<'_>,
        kind: u8,
        bytes: &bytes::Bytes,
    ) -> Result<(), String> {
        let wrong = |error: layout::LayoutError| format!("checkpoint: {error}");
        match kind {
            image::PARTITION => {
                let image = PartitionImage::decode(bytes).map_err(wrong)?;
                p.cx.clock.observe(image.clock);
                p.cx.position = p.cx.position.max(image.position);
                self.open.own_floor = image.position;
                p.transactions.restore_begun(image.begun);
                for (rows, bounds) in p.keyspaces.each_mut().zip(image.bounds) {
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
                    p.others.replication.applied.restore(stream.datacenter, set);
                    if let Some(receiver) = p.others.replication.receiver_mut(stream.datacenter) {
                        receiver.restore(stream.received);
                    }
                }
                Ok(())
            }
            image::RECORD => take_lasting(p, layout::decode_record(bytes).map_err(wrong)?),
            image::BRANCH_STATES | image::BRANCH_KEY => p.keyspaces.branching.restore(kind, bytes),
            image::FLOOR => {
                let (keyspace, floor) = image::decode_floor(bytes).map_err(wrong)?;
                p.keyspaces.keyspace(keyspace).raise_floor(&floor);
                // Rows of the checkpoint are not whole below it: nothing is read there any more.
                p.others.stable_time.times.raise_floor(&floor);
                Ok(())
            }
            image::EFFECT | image::BARE_EFFECT | image::VERSION | image::FLUSH => {
                let image = image::decode_write(kind, bytes).map_err(wrong)?;
                p.cx.clock.observe(image.since);
                p.keyspaces.keyspace(image.keyspace).restore_image(kind, image);
                Ok(())
            }
            _ => Err(format!("checkpoint: an item of unknown kind {kind}")),
        }
    }

    /// Everything was read: goes on, or asks the others for what may be missing.
    pub(in crate::partition) fn finish(mut self, p: &mut Peering<'_>, finish: Finish) -> LogRead {
        let Finish { log, superblock, .. } = finish;
        let without = superblock.without;
        p.durability.restore(superblock, &log);
        p.cx.incarnation = p.cx.incarnation.max(log.incarnation());
        if p.cx.position < Position::before(p.cx.incarnation) {
            // A new incarnation was to begin, and the disk was full before its first entry was there. Entries at these
            // places would be others than those that were lost, by the same names.
            self.tail_lost = self.tail_lost.or(Some(without));
        }
        p.peers.identity.note_read_in(p.cx.incarnation);
        p.cx.journal.restore(log, p.cx.position);
        let mut floor = p.cx.clock.latest().max(self.clock);
        if Rule::ClockAheadOfRestart.holds() {
            floor = floor.max(p.cx.journal.bound());
            if self.tail_lost.is_some() {
                // The bound that was lost lay no further ahead of the wall than this.
                let ahead_ms = p.cx.now.wall_ms + p.cx.config.tuning.clock_persist_ahead_ms;
                floor = floor.max(LogicalTime::from_ms(ahead_ms));
            }
        }
        p.cx.clock = HybridClock::starting_at(floor);
        p.others.replication.own_entry_applied(p.cx);
        p.cx.release();
        let Reading { tail_lost, records, open, .. } = self;
        p.durability.plan_opening(p.cx);
        let not_admitted = p.durability.is_not_admitted();
        // An operator's word is about a directory in which there is nothing yet.
        let starts_alone = p.cx.config.first_start == FirstStart::Alone && records == 0;
        match tail_lost {
            _ if not_admitted && !starts_alone => LogRead::Unadmitted { records, open },
            Some(without) => LogRead::Torn { without, records, open },
            None => LogRead::Whole { records, open },
        }
    }
}
