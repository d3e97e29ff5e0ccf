//! What a replica writes: the files of its partition and its journal, and which steps of that are durable.

use crate::config::Config;
use crate::contents::Contents;
use crate::disk::Purpose;
use crate::journal::{self, Record};
use crate::operation::Operation;
use crate::replica::Outputs;
use crate::starting::GIVEN_UP;
use bytes::Bytes;
use ensue_store::disk::{DiskOp, FileName};
use raft::eraftpb::Entry;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug)]
pub(crate) struct Writer {
    /// The number and the length of the journal, and its length when it began.
    journal: u64,
    length: u64,
    base_length: u64,
    /// Bytes appended to files since the journal began.
    appended: u64,
    /// The files as they are when everything emitted is carried out.
    now: Contents,
    unsynced: BTreeSet<FileName>,
    /// A file was deleted to be another replica's: a start before all of that is here has no directory.
    begins_anew: bool,
    /// How often bytes were taken away.
    taken_away: u64,
    /// Steps that are not durable, and how many answers each waits for.
    steps: BTreeMap<u64, u32>,
}

impl Writer {
    pub(crate) fn new(journal: u64, now: Contents) -> Writer {
        // A start knows nothing of the syncs before it.
        let unsynced = now.grown.keys().copied().collect();
        let (begins_anew, steps) = (false, BTreeMap::new());
        Writer {
            journal,
            length: 0,
            base_length: 0,
            appended: 0,
            now,
            unsynced,
            begins_anew,
            taken_away: 0,
            steps,
        }
    }

    pub(crate) fn contents(&self) -> &Contents {
        &self.now
    }

    pub(crate) fn is_long(&self, config: &Config) -> bool {
        self.length - self.base_length > config.tuning.journal_bytes
            || self.appended > config.tuning.appended_bytes
    }

    /// Appends records to the journal, and syncs it with all that was appended before if asked to. The purpose is told
    /// of each answer.
    pub(crate) fn write(&mut self, out: &mut Outputs, records: Vec<Record>, syncs: bool, purpose: Purpose) {
        let mut bytes = Vec::new();
        records.iter().for_each(|record| record.put(&mut bytes));
        let file = FileName::Journal(self.journal);
        let mut answers = 0;
        if !bytes.is_empty() {
            self.length += bytes.len() as u64;
            out.disk.emit(DiskOp::Append { file, bytes: Bytes::from(bytes) }, purpose.clone());
            answers += 1;
        }
        if syncs {
            answers += self.sync(out, &purpose);
        }
        if let Purpose::Step(number) = purpose {
            self.steps.insert(number, answers);
        }
    }

    /// What follows is carried out when all syncs before are over: as a truncation is, even of nothing.
    pub(crate) fn wait_for_syncs(&self, out: &mut Outputs) {
        let file = FileName::Journal(self.journal);
        out.disk.emit(DiskOp::Truncate { file, length: self.length }, Purpose::Nothing);
    }

    fn sync(&mut self, out: &mut Outputs, purpose: &Purpose) -> u32 {
        let mut answers = 1;
        for file in std::mem::take(&mut self.unsynced) {
            out.disk.emit(DiskOp::Sync { file }, purpose.clone());
            answers += 1;
        }
        out.disk.emit(DiskOp::Sync { file: FileName::Journal(self.journal) }, purpose.clone());
        answers
    }

    /// One answer of a step has come; says whether it was the last.
    pub(crate) fn on_done(&mut self, number: u64) -> bool {
        let Some(answers) = self.steps.get_mut(&number) else { return false };
        *answers = answers.saturating_sub(1);
        *answers == 0
    }

    /// Whether a step and all before it are durable.
    pub(crate) fn is_durable(&mut self, number: u64) -> bool {
        let is_durable = self.steps.range(..=number).all(|(_, answers)| *answers == 0);
        if is_durable {
            self.steps = self.steps.split_off(&(number + 1));
        }
        is_durable
    }

    /// Appends what an entry appends to its file; the record says where.
    pub(crate) fn append(
        &mut self,
        out: &mut Outputs,
        entry: &Entry,
        operation: Option<&Operation>,
    ) -> Record {
        let record = record_of(entry, operation, &self.now);
        if let Some(Operation::Append { file, bytes, .. }) = operation {
            self.append_bytes(out, *file, bytes);
        }
        record
    }

    /// Appends bytes of another replica's file.
    pub(crate) fn append_bytes(&mut self, out: &mut Outputs, file: FileName, bytes: &Bytes) {
        out.disk.emit(DiskOp::Append { file, bytes: bytes.clone() }, Purpose::Nothing);
        self.now.grown.entry(file).or_default().grow(bytes);
        self.appended += bytes.len() as u64;
        self.unsynced.insert(file);
    }

    /// A file is deleted, and becomes another replica's. What the journal says is not here any more until then.
    pub(crate) fn begin_anew(&mut self, out: &mut Outputs, file: FileName) {
        if !self.begins_anew {
            self.begins_anew = true;
            let bytes = Bytes::from_static(b"a file is replaced");
            out.disk.emit(DiskOp::Replace { file: GIVEN_UP, bytes }, Purpose::Nothing);
        }
        self.take_away(out, &Operation::Delete { file });
    }

    /// Whether files are missing that this replica is to have.
    pub(crate) fn begins_anew(&self) -> bool {
        self.begins_anew
    }

    pub(crate) fn taken_away(&self) -> u64 {
        self.taken_away
    }

    /// Carries out what takes bytes away.
    pub(crate) fn take_away(&mut self, out: &mut Outputs, operation: &Operation) {
        let op = match operation.clone() {
            Operation::Replace { file, bytes } => DiskOp::Replace { file, bytes },
            Operation::Truncate { file, length } => DiskOp::Truncate { file, length },
            Operation::Delete { file } => {
                self.unsynced.remove(&file);
                DiskOp::Delete { file }
            }
            _ => return,
        };
        self.taken_away += 1;
        self.now.apply(operation);
        out.disk.emit(op, Purpose::Nothing);
    }

    /// A file is not the partition's any more, but kept for another replica.
    pub(crate) fn forget(&mut self, file: FileName) {
        self.now.grown.remove(&file);
        self.unsynced.remove(&file);
    }

    /// Files lose what does not belong to these contents.
    pub(crate) fn cut(&mut self, out: &mut Outputs, contents: Contents) {
        self.taken_away += 1;
        for (&file, grown) in &self.now.grown {
            let wanted = contents.length(file);
            if !contents.grown.contains_key(&file) {
                out.disk.emit(DiskOp::Delete { file }, Purpose::Nothing);
                self.unsynced.remove(&file);
            } else if grown.length > wanted {
                out.disk.emit(DiskOp::Truncate { file, length: wanted }, Purpose::Nothing);
            }
        }
        self.now = contents;
    }

    /// A new journal begins with these records; the one before goes.
    pub(crate) fn begin_journal(&mut self, out: &mut Outputs, records: Vec<Record>) {
        self.switch(out, records, Purpose::Nothing);
    }

    fn switch(&mut self, out: &mut Outputs, records: Vec<Record>, purpose: Purpose) {
        let before = self.journal;
        // What the base says is in the files is durable before it is.
        for file in std::mem::take(&mut self.unsynced) {
            out.disk.emit(DiskOp::Sync { file }, Purpose::Nothing);
        }
        self.journal += 1;
        let mut bytes = Vec::new();
        records.iter().for_each(|record| record.put(&mut bytes));
        (self.length, self.base_length, self.appended) = (bytes.len() as u64, bytes.len() as u64, 0);
        if let Purpose::Step(number) = purpose {
            self.steps.insert(number, 1);
        }
        // A replacement waits for the syncs before it.
        let file = FileName::Journal(self.journal);
        out.disk.emit(DiskOp::Replace { file, bytes: Bytes::from(bytes) }, purpose);
        out.disk.emit(DiskOp::Delete { file: FileName::Journal(before) }, Purpose::Nothing);
    }

    /// The files are those of another replica from here on, all of which were appended to.
    pub(crate) fn take_over(
        &mut self,
        out: &mut Outputs,
        records: Vec<Record>,
        contents: &Contents,
        number: u64,
    ) {
        self.switch(out, records, Purpose::Step(number));
        self.taken_away += 1;
        if std::mem::take(&mut self.begins_anew) {
            out.disk.emit(DiskOp::Delete { file: GIVEN_UP }, Purpose::Nothing);
        }
        for &file in self.now.grown.keys().filter(|file| !contents.grown.contains_key(file)) {
            out.disk.emit(DiskOp::Delete { file }, Purpose::Nothing);
        }
        for &file in self.now.small.keys().filter(|file| !contents.small.contains_key(file)) {
            out.disk.emit(DiskOp::Delete { file }, Purpose::Nothing);
        }
        for (&file, bytes) in &contents.small {
            out.disk.emit(DiskOp::Replace { file, bytes: bytes.clone() }, Purpose::Nothing);
        }
        self.now = contents.clone();
    }

    /// Everything becomes durable, then the journal says so.
    pub(crate) fn close(&mut self, out: &mut Outputs) {
        for file in std::mem::take(&mut self.unsynced) {
            out.disk.emit(DiskOp::Sync { file }, Purpose::Nothing);
        }
        let mut bytes = Vec::new();
        Record::Clean.put(&mut bytes);
        let file = FileName::Journal(self.journal);
        out.disk.emit(DiskOp::Sync { file }, Purpose::Nothing);
        self.wait_for_syncs(out);
        self.length += bytes.len() as u64;
        out.disk.emit(DiskOp::Append { file, bytes: Bytes::from(bytes) }, Purpose::Nothing);
        out.disk.emit(DiskOp::Sync { file }, Purpose::Closing);
    }
}

/// What the journal has of an entry that is written now.
pub(crate) fn record_of(entry: &Entry, operation: Option<&Operation>, now: &Contents) -> Record {
    let body = match operation {
        Some(operation) => {
            let length = operation.file().map_or(0, |file| now.length(file));
            journal::body(operation, &entry.data, length)
        }
        None => journal::Body::Whole(entry.data.clone()),
    };
    Record::Entry { index: entry.index, term: entry.term, kind: entry.get_entry_type(), body }
}
