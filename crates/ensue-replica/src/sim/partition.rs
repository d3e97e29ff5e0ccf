//! A partition as a replica sees one: it reads its directory when it starts, appends numbered records to segments,
//! writes checkpoints, names them in its superblock, and deletes what is older.

use crate::sim::random::Random;
use bytes::Bytes;
use ensue_store::disk::{DiskDone, DiskOp, FileName};
use std::collections::{BTreeMap, VecDeque};

const RECORD: usize = 16;

/// What was acknowledged: the term in which each record was written, by its number.
#[derive(Debug, Default)]
pub(crate) struct Acknowledged {
    pub(crate) records: Vec<u64>,
    pub(crate) epoch: u64,
}

/// The partition of one leader.
#[derive(Debug)]
pub(crate) struct Partition {
    term: u64,
    epoch: u64,
    always: bool,
    step: Step,
    /// The terms of all records that it knows, those that are not acknowledged, too.
    records: Vec<u64>,
    /// What was appended and not answered: how many records there are with it.
    appending: VecDeque<usize>,
    /// Records that are written, and those that a sync under way makes durable.
    written: usize,
    syncing: VecDeque<usize>,
    segment: u64,
    segment_bytes: u64,
    checkpoint: u64,
    /// The first segment that a start needs.
    first_segment: u64,
    checkpointing: Option<(u64, u64)>,
    files: BTreeMap<FileName, u64>,
    asked: u64,
    /// Questions that are not answered, and how much was acknowledged when they were asked.
    questions: VecDeque<(u64, usize)>,
}

#[derive(Debug)]
enum Step {
    Listing,
    Reading(VecDeque<FileName>, BTreeMap<FileName, Bytes>),
    Serving,
}

impl Partition {
    pub(crate) fn start(term: u64, epoch: u64, always: bool) -> (Partition, Vec<DiskOp>) {
        let partition = Partition {
            term,
            epoch,
            always,
            step: Step::Listing,
            records: Vec::new(),
            appending: VecDeque::new(),
            written: 0,
            syncing: VecDeque::new(),
            segment: 0,
            segment_bytes: 0,
            checkpoint: 0,
            first_segment: 0,
            checkpointing: None,
            files: BTreeMap::new(),
            asked: 0,
            questions: VecDeque::new(),
        };
        (partition, vec![DiskOp::List])
    }

    pub(crate) fn is_serving(&self) -> bool {
        matches!(self.step, Step::Serving)
    }

    /// Takes the answer to what it asked, and says what is wrong with it.
    pub(crate) fn on_done(
        &mut self,
        done: DiskDone,
        acknowledged: &mut Acknowledged,
    ) -> Result<Vec<DiskOp>, String> {
        match (&mut self.step, done) {
            (Step::Listing, DiskDone::Listed { files }) => {
                self.files = files.iter().copied().collect();
                let names: VecDeque<FileName> = files.iter().map(|(name, _)| *name).collect();
                let read = names.front().map(|file| self.read(*file));
                self.step = Step::Reading(names, BTreeMap::new());
                if read.is_none() {
                    self.begin(acknowledged)?;
                }
                Ok(read.into_iter().collect())
            }
            (Step::Reading(names, found), DiskDone::Read { file, bytes, .. }) => {
                found.insert(file, bytes);
                names.pop_front();
                let Some(next) = names.front().copied() else {
                    self.begin(acknowledged)?;
                    return Ok(self.cut_last_segment(acknowledged));
                };
                Ok(vec![self.read(next)])
            }
            (Step::Serving, DiskDone::Appended { file: FileName::Segment(_) }) => {
                self.written = self.appending.pop_front().ok_or("an append is answered twice")?;
                if !self.always {
                    self.acknowledge(self.written, acknowledged)?;
                }
                Ok(Vec::new())
            }
            (Step::Serving, DiskDone::Synced { file: FileName::Segment(_) }) => {
                let durable = self.syncing.pop_front().ok_or("a sync is answered twice")?;
                if self.always {
                    self.acknowledge(durable, acknowledged)?;
                }
                Ok(Vec::new())
            }
            (Step::Serving, DiskDone::Replaced { .. }) => {
                let Some((number, first)) = self.checkpointing.take() else { return Ok(Vec::new()) };
                (self.checkpoint, self.first_segment) = (number, first);
                let is_old = |file: &&FileName| match file {
                    FileName::Segment(segment) => *segment < first,
                    FileName::Checkpoint(checkpoint) => *checkpoint != number,
                    _ => false,
                };
                let old: Vec<FileName> = self.files.keys().filter(is_old).copied().collect();
                self.files.retain(|file, _| !old.contains(file));
                Ok(old.into_iter().map(|file| DiskOp::Delete { file }).collect())
            }
            (_, DiskDone::Failed { op, reason, .. }) => Err(format!("{op}: {reason}")),
            _ => Ok(Vec::new()),
        }
    }

    fn read(&self, file: FileName) -> DiskOp {
        let length = self.files.get(&file).copied().unwrap_or(0) as u32;
        DiskOp::Read { file, offset: 0, length }
    }

    /// Everything was read: is it what was acknowledged?
    fn begin(&mut self, acknowledged: &mut Acknowledged) -> Result<(), String> {
        let Step::Reading(_, found) = std::mem::replace(&mut self.step, Step::Serving) else { return Ok(()) };
        let number = |bytes: &[u8], at: usize| {
            let word: Option<[u8; 8]> = bytes.get(at..at + 8).and_then(|word| word.try_into().ok());
            word.map(u64::from_le_bytes).ok_or("a file is torn")
        };
        if let Some(superblock) = found.get(&FileName::Superblock) {
            (self.checkpoint, self.first_segment) = (number(superblock, 0)?, number(superblock, 8)?);
            let named = found.get(&FileName::Checkpoint(self.checkpoint));
            let named = named.ok_or("the checkpoint that the superblock names is not there")?;
            if named.len() as u64 != number(superblock, 16)? {
                return Err("the checkpoint has another length than the superblock says".into());
            }
            self.records = (0..named.len() / 8).map(|at| number(named, at * 8)).collect::<Result<_, _>>()?;
        }
        for (file, bytes) in &found {
            let FileName::Segment(segment) = file else { continue };
            self.segment = self.segment.max(*segment + 1);
            if *segment < self.first_segment {
                continue;
            }
            if bytes.len() % RECORD != 0 {
                return Err(format!("{file} ends within a record"));
            }
            for record in bytes.chunks(RECORD) {
                let (at, term) = (number(record, 0)? as usize, number(record, 8)?);
                if at > self.records.len() {
                    return Err(format!("record {} is missing", self.records.len()));
                }
                self.records.truncate(at);
                self.records.push(term);
            }
        }
        self.segment = self.segment.max(self.first_segment);
        self.written = self.records.len();
        if self.epoch > acknowledged.epoch {
            // It may be lost; what is there now is what there was.
            acknowledged.epoch = self.epoch;
            let kept = acknowledged.records.iter().zip(&self.records).take_while(|(a, b)| a == b).count();
            acknowledged.records.truncate(kept);
        }
        let last = acknowledged.records.len();
        if self.epoch == acknowledged.epoch && self.records.get(..last) != Some(&acknowledged.records[..]) {
            return Err(format!("{last} records were acknowledged, and {} are found", self.records.len()));
        }
        Ok(())
    }

    /// Every other owner gives up records at the end of the last segment that nobody was told of, and appends there.
    fn cut_last_segment(&mut self, acknowledged: &Acknowledged) -> Vec<DiskOp> {
        let newest = self.files.keys().rfind(|file| matches!(file, FileName::Segment(_)));
        let Some(&file @ FileName::Segment(segment)) = newest.filter(|_| self.term % 2 == 0) else {
            return Vec::new();
        };
        let length = self.files.get(&file).copied().unwrap_or(0);
        let there = length as usize / RECORD;
        let loose = self.records.len().saturating_sub(acknowledged.records.len()).min(there);
        if segment < self.first_segment || loose == 0 && self.term % 4 == 0 {
            return Vec::new();
        }
        self.records.truncate(self.records.len() - loose);
        self.written = self.records.len();
        let length = length - (loose * RECORD) as u64;
        (self.segment, self.segment_bytes) = (segment, length);
        vec![DiskOp::Truncate { file, length }]
    }

    fn acknowledge(&mut self, count: usize, acknowledged: &mut Acknowledged) -> Result<(), String> {
        if self.epoch < acknowledged.epoch {
            return Err("a leader of an earlier epoch acknowledges".into());
        }
        let known = acknowledged.records.len().min(count);
        if acknowledged.records[..known] != self.records[..known] {
            return Err(format!("record {known} or one before was acknowledged by two leaders"));
        }
        if count > known {
            acknowledged.records.extend_from_slice(&self.records[known..count]);
        }
        Ok(())
    }

    /// Does what a partition does in a turn.
    pub(crate) fn work(&mut self, random: &mut Random) -> Vec<DiskOp> {
        if !self.is_serving() {
            return Vec::new();
        }
        let mut ops = Vec::new();
        let mut bytes = Vec::new();
        for _ in 0..random.between(1, 3) {
            bytes.extend((self.records.len() as u64).to_le_bytes());
            bytes.extend(self.term.to_le_bytes());
            self.records.push(self.term);
        }
        let file = FileName::Segment(self.segment);
        self.segment_bytes += bytes.len() as u64;
        *self.files.entry(file).or_default() += bytes.len() as u64;
        self.appending.push_back(self.records.len());
        ops.push(DiskOp::Append { file, bytes: Bytes::from(bytes) });
        if self.always || random.permille(200) {
            self.syncing.push_back(self.records.len());
            ops.push(DiskOp::Sync { file });
        }
        if self.segment_bytes > 400 {
            self.segment += 1;
            self.segment_bytes = 0;
        }
        if self.checkpointing.is_none() && random.permille(30) {
            let (number, first) = (self.checkpoint + 1, self.segment + 1);
            // The name of a checkpoint that an earlier leader gave up may be taken.
            let file = FileName::Checkpoint(number);
            if self.files.insert(file, 0).is_some() {
                ops.push(DiskOp::Delete { file });
            }
            (self.segment, self.segment_bytes) = (first, 0);
            self.checkpointing = Some((number, first));
            let terms: Vec<u8> = self.records.iter().flat_map(|term| term.to_le_bytes()).collect();
            for chunk in terms.chunks(1_200) {
                ops.push(DiskOp::Append { file, bytes: Bytes::copy_from_slice(chunk) });
            }
            ops.push(DiskOp::Sync { file });
            let words = [number, first, terms.len() as u64];
            let superblock: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            ops.push(DiskOp::Replace { file: FileName::Superblock, bytes: Bytes::from(superblock) });
        }
        ops
    }

    /// Asks whether it still leads.
    pub(crate) fn ask(&mut self, acknowledged: &Acknowledged) -> u64 {
        self.asked += 1;
        self.questions.push_back((self.asked, acknowledged.records.len()));
        self.asked
    }

    /// Nobody else led when it asked: it has everything that was acknowledged before.
    pub(crate) fn on_confirmed(&mut self, number: u64, acknowledged: &Acknowledged) -> Result<(), String> {
        while let Some((_, known)) = self.questions.front().copied().filter(|(asked, _)| *asked <= number) {
            self.questions.pop_front();
            let has = self.records.get(..known);
            if self.epoch == acknowledged.epoch && has != acknowledged.records.get(..known) {
                return Err(format!(
                    "it reads {} records, and {known} were acknowledged",
                    self.records.len()
                ));
            }
        }
        Ok(())
    }
}
