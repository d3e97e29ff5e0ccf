//! Directories that a leader sends to replicas that lack too much: what was promised stays for as long as it is asked
//! for.

use crate::contents::Contents;
use crate::disk::Purpose;
use crate::operation::Operation;
use crate::replica::Outputs;
use crate::writer::Writer;
use ensue_store::disk::{DiskOp, FileName};
use std::collections::BTreeMap;

/// A directory that nobody asked for in so many ticks is not kept.
const PATIENCE_TICKS: u32 = 150;

#[derive(Debug)]
struct Sent {
    id: u64,
    index: u64,
    lengths: BTreeMap<FileName, u64>,
    idle: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Serving {
    sent: BTreeMap<u16, Sent>,
    /// Files that the partition has deleted.
    kept: Vec<FileName>,
}

impl Serving {
    /// A node is told of the directory after an entry.
    pub(crate) fn begin(&mut self, node: u16, id: u64, index: u64, contents: &Contents) {
        let lengths = contents.grown.iter().map(|(file, grown)| (*file, grown.length)).collect();
        self.sent.insert(node, Sent { id, index, lengths, idle: 0 });
    }

    /// Reads what is asked for, if it is of that directory.
    pub(crate) fn on_fetch(
        &mut self,
        out: &mut Outputs,
        node: u16,
        index: u64,
        file: FileName,
        offset: u64,
        length: u32,
    ) -> bool {
        let Some(sent) = self.sent.get_mut(&node).filter(|sent| sent.index == index) else { return false };
        let Some(left) = sent.lengths.get(&file).and_then(|end| end.checked_sub(offset)) else {
            return false;
        };
        sent.idle = 0;
        let length = u64::from(length).min(left) as u32;
        let purpose = Purpose::Fetch { node, index, file, offset };
        out.disk.emit(DiskOp::Read { file, offset, length }, purpose);
        true
    }

    /// Whether a file that is deleted is still promised to somebody: it stays.
    pub(crate) fn keeps(&mut self, file: FileName) -> bool {
        let keeps = self.sent.values().any(|sent| sent.lengths.contains_key(&file));
        if keeps {
            self.kept.push(file);
        }
        keeps
    }

    /// A promised file that loses bytes is not what was promised.
    pub(crate) fn note_taken_away(&mut self, operation: &Operation) {
        if let Operation::Truncate { file, .. } = operation {
            self.sent.retain(|_, sent| !sent.lengths.contains_key(file));
        }
    }

    /// A file by the name of a kept one begins anew.
    pub(crate) fn let_go(&mut self, file: FileName, writer: &mut Writer, out: &mut Outputs) {
        if self.kept.contains(&file) {
            self.sent.retain(|_, sent| !sent.lengths.contains_key(&file));
            self.kept.retain(|kept| *kept != file);
            writer.take_away(out, &Operation::Delete { file });
        }
    }

    /// The members whose directories are given up.
    pub(crate) fn on_tick(&mut self, writer: &mut Writer, out: &mut Outputs) -> Vec<u64> {
        let mut given_up = Vec::new();
        self.sent.retain(|_, sent| {
            sent.idle += 1;
            let is_kept = sent.idle < PATIENCE_TICKS;
            given_up.extend((!is_kept).then_some(sent.id));
            is_kept
        });
        if self.sent.is_empty() {
            for file in std::mem::take(&mut self.kept) {
                writer.take_away(out, &Operation::Delete { file });
            }
        }
        given_up
    }
}
