//! A partition with an empty directory takes a copy of what another datacenter holds.
//!
//! The donor's checkpoint is rewritten as this datacenter's own would be after a start that had lost its end:
//!
//! - Its own stream ends where every other datacenter has it; what only some have beyond is taken back as after any
//!   lost tail.
//! - The donor's stream was received up to where the donor had come, and each third one up to where the donor had
//!   applied all of it. What it had applied beyond is received once more, and merging it again does no harm.
//! - The others' directories are those that the donor knows, and its own. The time of the last entry of a stream is not
//!   known (`LogicalTime::ZERO`) until the next one comes.
//!
//! The items go to the disk as they come (`persistence::copying`), and are read when all have: a copy that breaks off
//! leaves nothing behind.

use super::joining::Joining;
use crate::partition::failover::is_given_up;
use crate::partition::peering::Peering;
use crate::partition::persistence::copying::Copied;
use crate::trace::Trace;
use bytes::Bytes;
use ensue_store::disk::DiskDone;
use ensue_store::image::{self, PartitionImage, StreamImage};
use ensue_store::layout;
use ensue_store::record::Record;
use ensue_types::{DatacenterId, DirectoryId, Incarnation, LogicalTime, Position};
use ensue_wire::{Address, Introduction, Message, PeerStage};
use std::collections::BTreeMap;

/// Without a part for so long, another donor is tried.
const PATIENCE_US: u64 = 10_000_000;

/// A copy under way.
#[derive(Clone, Debug)]
pub(in crate::partition) struct Copying {
    donor: DatacenterId,
    /// The donor's directory.
    donor_directory: DirectoryId,
    /// The directory that was lost.
    directory: DirectoryId,
    /// What is said if there can be no copy.
    otherwise: String,
    number: u64,
    /// The part that comes next.
    next: u64,
    is_complete: bool,
    /// The next part is not asked for before the disk has kept up.
    waits_for_disk: bool,
    /// Every datacenter has the own stream up to here.
    own: Position,
    /// The last incarnation of the own stream that anybody has met.
    incarnation: Incarnation,
    last_message_us: u64,
    done: u64,
    of: u64,
}

/// What came of an input while a copy is taken.
pub(in crate::partition) enum CopyStep {
    GoesOn,
    /// The directory holds the copy: it is read as after a start.
    ReadAnew,
    Failed(String),
}

impl Copying {
    /// How far it is, for who asks.
    pub(in crate::partition) fn words(&self, p: &Peering<'_>) -> String {
        let percent = (100 * self.done).checked_div(self.of).unwrap_or(0).min(100);
        format!(
            "LOADING partition {} lost its directory and takes a copy of {}'s: {percent} %",
            p.cx.id,
            p.cx.name_of(self.donor)
        )
    }

    fn fetch(&self, p: &mut Peering<'_>, again: bool) {
        let to = Address::Partition { datacenter: self.donor, partition: p.cx.id };
        p.cx.send(to, Message::CopyFetch { copy: self.number, part: self.next, again });
    }
}

impl Joining {
    /// Asks one of those that serve for a copy: who has most of the own stream, and has not failed to give one before.
    pub(in crate::partition) fn begin_copy(
        &mut self,
        p: &mut Peering<'_>,
        directory: DirectoryId,
        answers: &[(DatacenterId, Introduction)],
        otherwise: String,
    ) {
        let serving = answers.iter().filter(|(_, introduction)| introduction.stage == PeerStage::Serving);
        let failures = |datacenter: &DatacenterId| self.failed_copies.get(datacenter).copied().unwrap_or(0);
        let donor = serving.min_by_key(|(datacenter, introduction)| {
            (failures(datacenter), std::cmp::Reverse(introduction.received), *datacenter)
        });
        let Some((donor, introduction)) = donor else { return };
        if !self.are_all_filled(p) {
            return;
        }
        let received = answers.iter().map(|(_, introduction)| introduction.received);
        let own = received.clone().min().unwrap_or_default();
        let copying = Copying {
            donor: *donor,
            donor_directory: introduction.directory,
            directory,
            otherwise,
            number: p.cx.number(),
            next: 0,
            is_complete: false,
            waits_for_disk: false,
            own,
            incarnation: received.max().unwrap_or_default().incarnation(),
            last_message_us: p.cx.now.monotonic_us,
            done: 0,
            of: 0,
        };
        copying.fetch(p, false);
        self.copying = Some(copying);
    }

    /// A part of the copy came.
    pub(in crate::partition) fn on_copied(
        &mut self,
        p: &mut Peering<'_>,
        from: DatacenterId,
        (copy, part, is_last): (u64, u64, bool),
        (done, of): (u64, u64),
        items: &[Bytes],
    ) {
        let is_next =
            |c: &&mut Copying| c.donor == from && c.number == copy && c.next == part && !c.is_complete;
        let Some(copying) = self.copying.as_mut().filter(is_next) else { return };
        if part == 0 {
            p.durability.begin_copying();
        }
        for item in items {
            if let Err(reason) = copying.take_item(p, item) {
                p.cx.trace(Trace::Refused { what: reason });
                return self.abandon_copy(p);
            }
        }
        if part == 0 {
            self.refusal = None;
            p.cx.trace(Trace::CopyBegun { partition: p.cx.id, donor: copying.donor });
        }
        copying.next += 1;
        copying.last_message_us = p.cx.now.monotonic_us;
        (copying.done, copying.of) = (done, of);
        copying.is_complete = is_last;
        match is_last {
            true => {
                let record = Record::Peer {
                    datacenter: copying.donor,
                    directory: copying.donor_directory,
                    last: LogicalTime::ZERO,
                };
                p.durability.copy_item(p.cx, image::RECORD, &image::record_item(&record));
                p.durability.finish_copying(p.cx);
            }
            false if p.durability.keeps_up_with_the_copy() => copying.fetch(p, false),
            false => copying.waits_for_disk = true,
        }
    }

    /// The donor makes no such copy, or no longer. One that has come whole needs nothing more of it.
    pub(in crate::partition) fn on_copy_refused(
        &mut self,
        p: &mut Peering<'_>,
        from: DatacenterId,
        copy: u64,
        cannot: bool,
    ) {
        let is_of =
            |copying: &&Copying| copying.donor == from && copying.number == copy && !copying.is_complete;
        let Some(copying) = self.copying.as_ref().filter(is_of) else { return };
        if cannot {
            let reason = copying.otherwise.clone();
            self.note_refusal(p, reason);
        }
        self.abandon_copy(p);
    }

    /// The link to a datacenter is up again: what it had sent may be lost.
    pub(in crate::partition) fn on_link_up(&self, p: &mut Peering<'_>, datacenter: DatacenterId) {
        p.introduce(datacenter, true);
        let copying =
            self.copying.as_ref().filter(|copying| copying.donor == datacenter && !copying.is_complete);
        if let Some(copying) = copying {
            copying.fetch(p, true);
        }
    }

    /// Asks everybody again, and gives up a copy whose donor has been silent for too long, or is dead.
    pub(in crate::partition) fn on_timer(&mut self, p: &mut Peering<'_>) {
        let now_us = p.cx.now.monotonic_us;
        if now_us < p.peers.identity.next_request_us() {
            return;
        }
        let is_over = |copying: &Copying| {
            !copying.is_complete
                && !copying.waits_for_disk
                && (now_us.saturating_sub(copying.last_message_us) > PATIENCE_US
                    || is_given_up(self.without, copying.donor))
        };
        if self.copying.as_ref().is_some_and(is_over) {
            self.abandon_copy(p);
        }
        p.request_introductions();
        self.ask_siblings(p);
    }

    /// Asks for the part that waited for the disk, if that has kept up.
    fn fetch_when_written(&mut self, p: &mut Peering<'_>) {
        let has_room = p.durability.keeps_up_with_the_copy();
        if let Some(copying) = self.copying.as_mut().filter(|copying| copying.waits_for_disk && has_room) {
            copying.waits_for_disk = false;
            copying.last_message_us = p.cx.now.monotonic_us;
            copying.fetch(p, false);
        }
    }

    /// A copy is of one directory: if the donor serves another one since, that one's streams and counts are others.
    pub(in crate::partition::recovery) fn abandon_copy_of_another(
        &mut self,
        p: &mut Peering<'_>,
        from: DatacenterId,
        directory: DirectoryId,
    ) {
        let is_of_another = |copying: &Copying| {
            copying.donor == from && copying.donor_directory != directory && !copying.is_complete
        };
        if self.copying.as_ref().is_some_and(is_of_another) {
            self.abandon_copy(p);
        }
    }

    fn abandon_copy(&mut self, p: &mut Peering<'_>) {
        let Some(copying) = self.copying.take() else { return };
        *self.failed_copies.entry(copying.donor).or_default() += 1;
        p.durability.abandon_copying(p.cx);
        if copying.next > 0 {
            p.cx.trace(Trace::CopyGivenUp { partition: p.cx.id, donor: copying.donor });
        }
    }

    /// The disk answered.
    pub(in crate::partition) fn on_disk(&mut self, p: &mut Peering<'_>, done: &DiskDone) -> CopyStep {
        // What a copy that was given up has left to the disk may fail, too.
        let taking_over = self.copying.as_ref().map(|copying| (copying.directory, copying.incarnation));
        match p.durability.on_copy_disk(p.cx, done, taking_over.unwrap_or_default()) {
            Copied::GoesOn => {
                self.fetch_when_written(p);
                CopyStep::GoesOn
            }
            Copied::Durable => {
                let donor = self.copying.as_ref().map(|copying| copying.donor).unwrap_or_default();
                p.cx.trace(Trace::Copied { partition: p.cx.id, donor });
                CopyStep::ReadAnew
            }
            Copied::NoRoom => {
                self.abandon_copy(p);
                CopyStep::GoesOn
            }
            Copied::Failed(reason) => CopyStep::Failed(reason),
        }
    }
}

impl Copying {
    /// Writes an item as this datacenter's own.
    fn take_item(&self, p: &mut Peering<'_>, item: &Bytes) -> Result<(), &'static str> {
        let Some(&kind) = item.first() else { return Err("an item of a copy without a kind") };
        let bytes = item.slice(1..);
        let unreadable = |_| "an item of a copy that cannot be read";
        match kind {
            image::PARTITION => {
                let image = PartitionImage::decode(&bytes).map_err(unreadable)?;
                let image = self.as_own(image, p.cx.datacenter)?;
                p.durability.copy_item(p.cx, kind, &image.encode());
            }
            image::RECORD => match layout::decode_record(&bytes).map_err(unreadable)? {
                Record::Peer { datacenter, .. } if datacenter == p.cx.datacenter => {}
                Record::Peer { datacenter, directory, .. } => {
                    let record = Record::Peer { datacenter, directory, last: LogicalTime::ZERO };
                    p.durability.copy_item(p.cx, kind, &image::record_item(&record));
                }
                Record::HomeMoved { moved } => {
                    let record = Record::HomeMoved { moved: p.cx.homes.as_of_another(moved) };
                    p.durability.copy_item(p.cx, kind, &image::record_item(&record));
                }
                _ => p.durability.copy_item(p.cx, kind, &bytes),
            },
            _ => {
                image::check_item(kind, &bytes).map_err(unreadable)?;
                p.durability.copy_item(p.cx, kind, &bytes);
            }
        }
        Ok(())
    }

    /// The donor's image, as this datacenter's would be.
    fn as_own(&self, image: PartitionImage, own: DatacenterId) -> Result<PartitionImage, &'static str> {
        let streams: BTreeMap<DatacenterId, StreamImage> =
            image.streams.into_iter().map(|stream| (stream.datacenter, stream)).collect();
        let has_all = streams.get(&own).is_some_and(|stream| stream.watermark >= self.own);
        if !has_all || !streams.contains_key(&self.donor) {
            return Err("a copy of a datacenter that lacks what all have received");
        }
        let as_own = |stream: StreamImage| match stream.datacenter == own {
            true => StreamImage {
                datacenter: own,
                applied_incarnation: self.own.incarnation(),
                watermark: self.own,
                lost: stream.lost.into_iter().filter(|(_, through)| *through <= self.own).collect(),
                ..StreamImage::default()
            },
            false => StreamImage {
                above: Vec::new(),
                received_incarnation: stream.applied_incarnation,
                received: stream.watermark,
                ..stream
            },
        };
        let streams = streams.into_values().map(as_own).collect();
        Ok(PartitionImage { position: self.own, begun: 0, streams, ..image })
    }
}
