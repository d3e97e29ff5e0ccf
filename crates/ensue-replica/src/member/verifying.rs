//! Whether the files of this node are what the group has written: they are read, and compared with the checksums that
//! every member knows.
//!
//! On a partition that stops: if what it refuses is what the group has written, it is so on every node, and nothing is
//! won by another owner. If a file is another one here, or cannot be read, this node's disk is the bad one: the replica
//! stops as soon as another one can take the lead at once, and until then goes on.

use super::Member;
use crate::config::Config;
use crate::contents::Grown;
use crate::disk::Purpose;
use crate::members;
use crate::replica::{End, Output, Outputs};
use ensue_store::disk::{DiskDone, DiskOp, FileName, failure_words};
use std::collections::VecDeque;

/// Files that are read one after the other.
#[derive(Debug, Default)]
pub(super) struct Verifying {
    waiting: VecDeque<FileName>,
    reads: Option<Reads>,
}

/// The file that is read: how much of it was, what it is to be, and how often bytes had been taken away when it began.
#[derive(Debug)]
struct Reads {
    file: FileName,
    has: Grown,
    wanted: Grown,
    taken_away: u64,
}

impl Member {
    /// The partition refuses what it has read, or cannot go on for another reason.
    pub(crate) fn verify_all(&mut self, config: &Config, out: &mut Outputs) {
        let contents = self.writer.contents();
        let files = contents.small.keys().chain(contents.grown.keys()).copied().collect();
        self.verify(config, out, files);
    }

    pub(super) fn verify(&mut self, config: &Config, out: &mut Outputs, files: VecDeque<FileName>) {
        if self.verifying.reads.is_none() && self.damage.is_none() {
            self.verifying.waiting = files;
            self.verify_next(config, out);
        }
    }

    fn verify_next(&mut self, config: &Config, out: &mut Outputs) {
        while let Some(file) = self.verifying.waiting.pop_front() {
            let contents = self.writer.contents();
            let small = contents.small.get(&file).map(|bytes| {
                let mut whole = Grown::default();
                whole.grow(bytes);
                whole
            });
            let wanted = small.or_else(|| contents.grown.get(&file).copied());
            // Of a file that was once cut nobody knows the checksum.
            let Some(wanted) = wanted.filter(|wanted| wanted.length > 0 && wanted.checksum.is_some()) else {
                continue;
            };
            let taken_away = self.writer.taken_away();
            self.verifying.reads = Some(Reads { file, has: Grown::default(), wanted, taken_away });
            return self.read_to_verify(config, out);
        }
    }

    fn read_to_verify(&self, config: &Config, out: &mut Outputs) {
        let Some(Reads { file, has, wanted, .. }) = self.verifying.reads else { return };
        let length = (wanted.length - has.length).min(u64::from(config.tuning.chunk_bytes)) as u32;
        out.disk.emit(DiskOp::Read { file, offset: has.length, length }, Purpose::Verifying);
    }

    pub(super) fn on_verified(&mut self, config: &Config, out: &mut Outputs, done: &DiskDone) {
        let Some(mut reads) = self.verifying.reads.take() else { return };
        // What was deleted or replaced meanwhile says nothing.
        if reads.taken_away == self.writer.taken_away() {
            let file = reads.file;
            match done {
                DiskDone::Read { bytes, .. } if !bytes.is_empty() => {
                    reads.has.grow(bytes);
                    if reads.has.length < reads.wanted.length {
                        self.verifying.reads = Some(reads);
                        return self.read_to_verify(config, out);
                    }
                    if reads.has != reads.wanted {
                        return self.note_damage(out, format!("{file} on this disk is not what was written"));
                    }
                }
                DiskDone::Failed { op, file, reason, .. } => {
                    return self.note_damage(out, failure_words(op, *file, reason));
                }
                _ => {
                    return self
                        .note_damage(out, format!("{file} on this disk is shorter than what was written"));
                }
            }
        }
        self.verify_next(config, out);
    }

    /// The disk of this node does not hold, or does not give back, what it is to hold.
    pub(super) fn note_damage(&mut self, out: &mut Outputs, reason: String) {
        if self.damage.is_none() {
            out.push(Output::Troubled(reason.clone()));
            self.damage = Some(reason);
        }
    }

    /// Who leads with a damaged disk leaves as soon as another one can take the lead at once.
    pub(super) fn leave_if_damaged(&self) -> Result<(), End> {
        let Some(reason) = &self.damage else { return Ok(()) };
        match self.leading.is_some() && members::another_may_lead(&self.raw, &self.trust) {
            true => Err(End::Failed(reason.clone())),
            false => Ok(()),
        }
    }
}
