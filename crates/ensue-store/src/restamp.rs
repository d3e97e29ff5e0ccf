//! The files of a partition with other times in them: a segment or a checkpoint arrives, and leaves with each of its
//! logical times
//! replaced by what it is told.
//!
//! Everything else stays what it is: positions, names of operations, values, and in the log every byte's place.
//! Nothing is decided
//! here about which time becomes which. Deadlines are values, and stay.

use crate::disk::FileName;
use crate::entry::{Change, Entry};
use crate::image::{self, PartitionImage};
use crate::layout::batch::{BATCH_HEADER_BYTES, BatchHeader, Seal};
use crate::layout::checkpoint::{
    BLOCK_HEADER_BYTES, BlockHeader, CHECKPOINT_HEADER_BYTES, CheckpointPlace, FOOTER_BYTES, Footer, chain,
};
use crate::layout::{self, LayoutError, decode_entry, decode_record, encode_record, u32_at};
use crate::log::Lsn;
use crate::record::Record;
use bytes::Bytes;
use ensue_types::{Causes, DatacenterId, Effect, LogicalTime, Previous, SeenSum, Stamp, TimeVector};

/// What becomes of each time.
pub trait Restamp {
    /// A time that a datacenter's clock has shown; nothing if it may be of any.
    fn time(&mut self, of: Option<DatacenterId>, time: LogicalTime) -> LogicalTime;

    /// The bytes of a protocol that a write of this datacenter carries.
    fn causes(&mut self, origin: DatacenterId, causes: &Causes) -> Result<Causes, RestampError>;
}

/// Why a file cannot be given other times.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestampError {
    #[error("{file} byte {at}: {error}")]
    Layout { file: FileName, at: u64, error: LayoutError },
    #[error(
        "{file} byte {at} is damaged or was written by an older version: start the node, and stop it cleanly, first"
    )]
    Length { file: FileName, at: u64 },
    #[error("what a write depends on cannot be read")]
    Causes,
}

/// The same file with other times. `own` is the datacenter whose data it is.
pub fn file(
    file: FileName,
    bytes: &Bytes,
    seal: Seal,
    own: DatacenterId,
    times: &mut dyn Restamp,
) -> Result<Vec<u8>, RestampError> {
    let mut rewriter = Rewriter { file, seal, own, times };
    match file {
        FileName::Segment(first) => rewriter.segment(bytes, Lsn(first)),
        FileName::Checkpoint(_) => rewriter.checkpoint(bytes),
        _ => Ok(bytes.to_vec()),
    }
}

struct Rewriter<'a> {
    file: FileName,
    seal: Seal,
    own: DatacenterId,
    times: &'a mut dyn Restamp,
}

impl Rewriter<'_> {
    fn wrong(&self, at: usize) -> impl Fn(LayoutError) -> RestampError + use<> {
        let file = self.file;
        move |error| RestampError::Layout { file, at: at as u64, error }
    }

    /// The part of a file from here on that is so long.
    fn part(&self, bytes: &Bytes, at: usize, length: usize) -> Result<Bytes, RestampError> {
        let end = at.checked_add(length).filter(|&end| end <= bytes.len());
        let end = end.ok_or(RestampError::Length { file: self.file, at: at as u64 })?;
        Ok(bytes.slice(at..end))
    }

    fn segment(&mut self, bytes: &Bytes, first: Lsn) -> Result<Vec<u8>, RestampError> {
        let mut out = Vec::with_capacity(bytes.len());
        while out.len() < bytes.len() {
            let at = out.len();
            let lsn = Lsn(first.0 + at as u64);
            let mut header = BatchHeader::decode(&bytes[at..], self.seal, lsn).map_err(self.wrong(at))?;
            let body = self.part(bytes, at + BATCH_HEADER_BYTES, header.body_bytes as usize)?;
            if self.seal.checksum(&body) != header.body_checksum {
                return Err(self.wrong(at)(LayoutError::Checksum { what: "batch" }));
            }
            let mut rewritten = Vec::with_capacity(body.len());
            let mut place = 0;
            while place < body.len() {
                let length = self.part(&body, place, 4).map(|bytes| u32_at(&bytes, 0) as usize)?;
                let record = self.part(&body, place + 4, length)?;
                let record = self.record(at, &record)?;
                if record.len() != length {
                    return Err(RestampError::Length { file: self.file, at: at as u64 });
                }
                rewritten.extend_from_slice(&(length as u32).to_le_bytes());
                rewritten.extend_from_slice(&record);
                place += 4 + length;
            }
            header.body_checksum = self.seal.checksum(&rewritten);
            out.extend_from_slice(&header.encode(self.seal));
            out.extend_from_slice(&rewritten);
        }
        Ok(out)
    }

    fn checkpoint(&mut self, bytes: &Bytes) -> Result<Vec<u8>, RestampError> {
        let place = CheckpointPlace::decode(bytes, self.seal).map_err(self.wrong(0))?;
        let mut out = Vec::with_capacity(bytes.len());
        out.extend_from_slice(&place.encode(self.seal));
        let (mut at, mut blocks_checksum) = (CHECKPOINT_HEADER_BYTES, 0);
        while !bytes[at..].starts_with(b"EnsF") {
            let header = BlockHeader::decode(&bytes[at..], self.seal).map_err(self.wrong(at))?;
            let body = self.part(bytes, at + BLOCK_HEADER_BYTES, header.body_bytes as usize)?;
            if self.seal.checksum(&body) != header.body_checksum {
                return Err(self.wrong(at)(LayoutError::Checksum { what: "checkpoint block" }));
            }
            let body = self.block(at, &body)?;
            let body_checksum = self.seal.checksum(&body);
            blocks_checksum = chain(blocks_checksum, body_checksum);
            at += BLOCK_HEADER_BYTES + header.body_bytes as usize;
            let header = BlockHeader { body_bytes: body.len() as u32, items: header.items, body_checksum };
            out.extend_from_slice(&header.encode(self.seal));
            out.extend_from_slice(&body);
        }
        let footer = Footer::decode(&bytes[at..], self.seal).map_err(self.wrong(at))?;
        if bytes.len() != at + FOOTER_BYTES {
            return Err(RestampError::Length { file: self.file, at: at as u64 });
        }
        out.extend_from_slice(&Footer { blocks_checksum, ..footer }.encode(self.seal));
        Ok(out)
    }

    /// The items of a block.
    fn block(&mut self, at: usize, body: &Bytes) -> Result<Vec<u8>, RestampError> {
        let mut out = Vec::with_capacity(body.len());
        let mut place = 0;
        while place < body.len() {
            let head = self.part(body, place, 5)?;
            let length = u32_at(&head, 0) as usize;
            let item = self.part(body, place + 5, length)?;
            let item = self.item(at, head[4], &item)?;
            out.extend_from_slice(&(item.len() as u32).to_le_bytes());
            out.push(head[4]);
            out.extend_from_slice(&item);
            place += 5 + length;
        }
        Ok(out)
    }

    fn item(&mut self, at: usize, kind: u8, bytes: &Bytes) -> Result<Vec<u8>, RestampError> {
        match kind {
            image::PARTITION => {
                let mut image = PartitionImage::decode(bytes).map_err(self.wrong(at))?;
                image.clock = self.own_time(image.clock);
                for bounds in &mut image.bounds {
                    for stamp in [&mut bounds.flushed, &mut bounds.collected, &mut bounds.forgotten] {
                        self.stamp(stamp);
                    }
                }
                Ok(image.encode())
            }
            image::RECORD => self.record(at, bytes),
            image::FLOOR => {
                let (keyspace, floor) = image::decode_floor(bytes).map_err(self.wrong(at))?;
                Ok(image::floor_item(keyspace, &self.vector(&floor)))
            }
            image::EFFECT | image::BARE_EFFECT | image::VERSION | image::FLUSH => {
                let since = self.part(bytes, 0, 8)?;
                let since = self.own_time(LogicalTime(layout::u64_at(&since, 0)));
                let mut out = since.0.to_le_bytes().to_vec();
                out.extend_from_slice(&self.entry(at, &bytes.slice(8..))?);
                Ok(out)
            }
            // States of branches have names without times.
            _ => Ok(bytes.to_vec()),
        }
    }

    fn record(&mut self, at: usize, bytes: &Bytes) -> Result<Vec<u8>, RestampError> {
        let mut record = decode_record(bytes).map_err(self.wrong(at))?;
        match &mut record {
            Record::Own { entry } | Record::Received { entry, .. } | Record::Discarded { entry, .. } => {
                *entry = self.entry(at, entry)?;
            }
            Record::Begun { context, .. } => *context = self.times.causes(self.own, context)?,
            Record::Prepared { at: time, .. } | Record::Applied { at: time, .. } => {
                *time = self.own_time(*time);
            }
            Record::Decided { at: time, entry, .. } => {
                *time = self.own_time(*time);
                if let Some(entry) = entry {
                    *entry = self.entry(at, entry)?;
                }
            }
            Record::Times { received, stable } => {
                *received = self.vector(received);
                *stable = self.vector(stable);
            }
            Record::Dead { datacenter, time }
            | Record::Ended { datacenter, whole: time, .. }
            | Record::Peer { datacenter, last: time, .. } => {
                *time = self.times.time(Some(*datacenter), *time);
            }
            Record::Lost { datacenter, whole, doubtful, .. } => {
                *whole = self.times.time(Some(*datacenter), *whole);
                *doubtful = self.times.time(Some(*datacenter), *doubtful);
            }
            Record::HomeMoved { moved } => moved.times = self.vector(&moved.times),
            Record::ClockBound { bound } => *bound = self.own_time(*bound),
            Record::Completed { .. } | Record::Rebuilt { .. } | Record::Retiring { .. } => {}
        }
        let mut out = Vec::with_capacity(bytes.len());
        encode_record(&record, &mut out);
        Ok(out)
    }

    fn entry(&mut self, at: usize, bytes: &Bytes) -> Result<Bytes, RestampError> {
        let mut entry: Entry = decode_entry(bytes).map_err(self.wrong(at))?;
        self.stamp(&mut entry.stamp);
        entry.dependencies = self.times.causes(entry.stamp.datacenter, &entry.dependencies)?;
        if let Change::Effects { effects, .. } | Change::Flush { effects, .. } = &mut entry.change {
            for effect in effects {
                match &mut effect.effect {
                    Effect::Put { seen, over, .. } => {
                        if let Some(over) = over {
                            **over = over.map(|stamp| self.restamped(stamp));
                        }
                        self.seen(seen);
                    }
                    Effect::Delete { seen } => self.seen(seen),
                    Effect::Remove { observed, seen } => {
                        *observed = observed.map(|stamp| self.restamped(stamp));
                        self.seen(seen);
                    }
                    Effect::Add { epoch_sum } => self.epoch(&mut epoch_sum.epoch),
                }
            }
        }
        for previous in &mut entry.previous {
            if let Previous::Nothing { forgotten } | Previous::Several { forgotten, .. } = previous {
                self.stamp(forgotten);
            }
        }
        Ok(layout::encode_entry(&entry))
    }

    fn seen(&mut self, seen: &mut [SeenSum]) {
        for seen_sum in seen {
            self.epoch(&mut seen_sum.epoch_sum.epoch);
            self.stamp(&mut seen_sum.stamp);
        }
    }

    fn stamp(&mut self, stamp: &mut Stamp) {
        *stamp = self.restamped(*stamp);
    }

    fn restamped(&mut self, stamp: Stamp) -> Stamp {
        Stamp { time: self.times.time(Some(stamp.datacenter), stamp.time), ..stamp }
    }

    /// A lane stands in the place of its datacenter.
    fn epoch(&mut self, epoch: &mut Stamp) {
        epoch.time = self.times.time(None, epoch.time);
    }

    fn own_time(&mut self, time: LogicalTime) -> LogicalTime {
        self.times.time(Some(self.own), time)
    }

    fn vector(&mut self, times: &TimeVector) -> TimeVector {
        times.entries().map(|(datacenter, time)| self.times.time(Some(datacenter), time)).collect()
    }
}

#[cfg(test)]
mod tests;
