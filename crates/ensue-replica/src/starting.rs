//! The start of a replica: its journal is read, and its files are brought to what the journal says.

use crate::beginning::FIRST;
use crate::codec::Malformed;
use crate::config::Config;
use crate::contents::Contents;
use crate::disk::Purpose;
use crate::held::{Held, operation_of};
use crate::journal::{self, Base, Body, Found, JOURNAL_BYTES_MAX, Record};
use crate::operation::Operation;
use crate::replica::{End, Outputs};
use crate::writer::record_of;
use bytes::Bytes;
use ensue_store::disk::{DiskDone, DiskOp, FileName};
use ensue_types::Rule;
use raft::eraftpb::{ConfState, Entry, EntryType, HardState};
use std::collections::{BTreeMap, VecDeque};

/// The number of the journal with which a member begins.
pub(crate) const FIRST_JOURNAL: u64 = 1;
/// A directory with this file is given up, or not complete.
pub(crate) const GIVEN_UP: FileName = FileName::Journal(u64::MAX);

/// What a member goes on with.
#[derive(Debug)]
pub(crate) struct Restart {
    pub(crate) base: Base,
    pub(crate) hard: HardState,
    pub(crate) entries: Vec<Entry>,
    pub(crate) life: u32,
    /// It holds what is committed.
    pub(crate) whole: bool,
    /// The last number of a journal that is taken.
    pub(crate) journal: u64,
}

impl Restart {
    /// The log that it goes on with.
    pub(crate) fn held(&self) -> Held {
        let mut held = Held::new(self.hard.clone(), &self.base);
        self.entries.iter().cloned().for_each(|entry| held.push(entry));
        held
    }
}

/// What a journal begins with.
pub(crate) fn opening(
    config: &Config,
    base: Base,
    (life, whole): (u32, bool),
    hard: HardState,
) -> Vec<Record> {
    let start = Record::Start { life, boot_id: config.boot_id, whole };
    vec![Record::Base(Box::new(base)), start, Record::Hard(hard)]
}

/// With the entries that are held after the last applied one, of which those up to `executed` are carried out.
pub(crate) fn with_entries(
    mut records: Vec<Record>,
    held: &Held,
    executed: u64,
) -> Result<Vec<Record>, Malformed> {
    let mut contents = held.contents.clone();
    for entry in held.from(held.applied.0 + 1) {
        let operation = operation_of(entry)?;
        records.push(record_of(entry, operation.as_ref(), &contents));
        if let Some(operation) = operation {
            contents.write(&operation, entry.index <= executed);
        }
    }
    Ok(records)
}

#[derive(Debug)]
pub(crate) enum Started {
    /// There is no directory.
    Empty,
    Member(Box<Restart>),
}

#[derive(Debug)]
pub(crate) struct Starting {
    step: Step,
    listed: BTreeMap<FileName, u64>,
    /// Journals, the newest first.
    journals: VecDeque<(u64, u64)>,
    /// The directory is not wanted.
    empties: bool,
}

#[derive(Debug)]
enum Step {
    Listing,
    Reading,
    /// Bytes of entries are read back.
    Checking(Box<Checking>),
    Emptying(usize),
}

impl Starting {
    pub(crate) fn new(out: &mut Outputs) -> Starting {
        out.disk.emit(DiskOp::List, Purpose::Starting);
        Starting { step: Step::Listing, listed: BTreeMap::new(), journals: VecDeque::new(), empties: false }
    }

    /// The same, of a replica that gives its directory up; the list has been asked for.
    pub(crate) fn emptying() -> Starting {
        Starting { step: Step::Listing, listed: BTreeMap::new(), journals: VecDeque::new(), empties: true }
    }

    pub(crate) fn on_disk(
        &mut self,
        config: &Config,
        out: &mut Outputs,
        done: DiskDone,
    ) -> Result<Option<Started>, End> {
        match (&mut self.step, done) {
            (Step::Listing, DiskDone::Listed { files }) => self.on_listed(out, files),
            (Step::Reading, DiskDone::Read { bytes, .. }) => self.on_journal(config, out, bytes),
            (Step::Checking(_), DiskDone::Read { bytes, .. }) => self.on_bytes(config, out, bytes),
            (Step::Emptying(left), DiskDone::Deleted { .. }) => {
                *left -= 1;
                Ok((*left == 0).then_some(Started::Empty))
            }
            // What an earlier stage asked for.
            _ => Ok(None),
        }
    }

    fn on_listed(&mut self, out: &mut Outputs, files: Vec<(FileName, u64)>) -> Result<Option<Started>, End> {
        self.listed = files.into_iter().collect();
        if self.empties || self.listed.contains_key(&GIVEN_UP) {
            return Ok(self.empty(out));
        }
        for (file, length) in &self.listed {
            if let FileName::Journal(number) = file {
                self.journals.push_front((*number, *length));
            }
        }
        if self.journals.is_empty() {
            let strangers = self.listed.keys().any(|file| *file != FileName::Reserve);
            return match strangers {
                true => Err(End::Failed("this directory was not written by a replica".into())),
                false => Ok(Some(Started::Empty)),
            };
        }
        self.read_newest(out)
    }

    /// A mark says so until all is gone, so that a directory that is half gone is not taken for another.
    fn empty(&mut self, out: &mut Outputs) -> Option<Started> {
        let bytes = Bytes::from_static(b"given up");
        out.disk.emit(DiskOp::Replace { file: GIVEN_UP, bytes }, Purpose::Nothing);
        for file in self.listed.keys().filter(|file| **file != GIVEN_UP).chain([&GIVEN_UP]) {
            out.disk.emit(DiskOp::Delete { file: *file }, Purpose::Starting);
        }
        self.listed.insert(GIVEN_UP, 0);
        self.step = Step::Emptying(self.listed.len());
        None
    }

    fn read_newest(&mut self, out: &mut Outputs) -> Result<Option<Started>, End> {
        let Some(&(number, length)) = self.journals.front() else {
            let journals = self.listed.keys().filter(|file| matches!(file, FileName::Journal(_)));
            // Its first journal was not durable yet, and before that it acknowledges nothing: it has no directory.
            if journals.eq([&FileName::Journal(FIRST_JOURNAL)]) {
                return Ok(self.empty(out));
            }
            return Err(End::Failed("no journal of this replica can be read".into()));
        };
        if length > JOURNAL_BYTES_MAX {
            return Err(End::Failed(format!("journal {number} is longer than any")));
        }
        self.step = Step::Reading;
        let file = FileName::Journal(number);
        out.disk.emit(DiskOp::Read { file, offset: 0, length: length as u32 }, Purpose::Starting);
        Ok(None)
    }

    fn on_journal(
        &mut self,
        config: &Config,
        out: &mut Outputs,
        bytes: Bytes,
    ) -> Result<Option<Started>, End> {
        let found = journal::read(bytes);
        let Some((number, _)) = self.journals.pop_front() else { return Ok(None) };
        let Some(checking) = Checking::new(config, found, number)? else {
            // It was begun and is not durable: the one before goes on.
            return self.read_newest(out);
        };
        self.step = Step::Checking(Box::new(checking));
        self.check_next(config, out)
    }

    fn check_next(&mut self, config: &Config, out: &mut Outputs) -> Result<Option<Started>, End> {
        let Step::Checking(checking) = &mut self.step else { return Ok(None) };
        if let Some((file, offset, length)) = checking.next_read() {
            if self.listed.get(&file).is_some_and(|has| *has >= offset + u64::from(length)) {
                out.disk.emit(DiskOp::Read { file, offset, length }, Purpose::Starting);
                return Ok(None);
            }
            checking.cut(config)?;
        }
        self.finish(out)
    }

    fn on_bytes(&mut self, config: &Config, out: &mut Outputs, bytes: Bytes) -> Result<Option<Started>, End> {
        let Step::Checking(checking) = &mut self.step else { return Ok(None) };
        checking.on_bytes(config, bytes)?;
        self.check_next(config, out)
    }

    /// Files become what the journal says.
    fn finish(&mut self, out: &mut Outputs) -> Result<Option<Started>, End> {
        let Step::Checking(checking) = std::mem::replace(&mut self.step, Step::Listing) else {
            return Ok(None);
        };
        let unreadable = |_| End::Failed("an entry of the journal cannot be read".into());
        let mut restart = checking.finish().map_err(unreadable)?;
        let mut contents = restart.base.contents.clone();
        for entry in &restart.entries {
            let Some(operation) = operation_of(entry).map_err(unreadable)? else { continue };
            contents.write(&operation, entry.index <= restart.hard.commit);
        }
        self.reconcile(out, &contents)?;
        let journals = self.listed.keys().filter_map(|file| match file {
            FileName::Journal(number) => Some(*number),
            _ => None,
        });
        restart.journal = journals.max().unwrap_or(restart.journal);
        Ok(Some(Started::Member(Box::new(restart))))
    }

    fn reconcile(&self, out: &mut Outputs, contents: &Contents) -> Result<(), End> {
        for (file, grown) in &contents.grown {
            let has = self.listed.get(file).copied().unwrap_or(0);
            if has < grown.length {
                let words = format!("{file} has {has} bytes, and had {}", grown.length);
                return Err(End::Failed(words));
            }
        }
        for (&file, &length) in &self.listed {
            let wanted = contents.length(file);
            if contents.grown.contains_key(&file) {
                if length > wanted {
                    out.disk.emit(DiskOp::Truncate { file, length: wanted }, Purpose::Nothing);
                }
            } else if !contents.small.contains_key(&file) && !matches!(file, FileName::Journal(_)) {
                out.disk.emit(DiskOp::Delete { file }, Purpose::Nothing);
            }
        }
        for (&file, bytes) in &contents.small {
            out.disk.emit(DiskOp::Replace { file, bytes: bytes.clone() }, Purpose::Nothing);
        }
        Ok(())
    }
}

/// An entry as the journal has it.
#[derive(Debug)]
struct Known {
    index: u64,
    term: u64,
    kind: EntryType,
    body: Body,
    /// Its bytes, read back.
    whole: Option<Bytes>,
}

/// What a journal says, while it is compared with the files.
#[derive(Debug)]
struct Checking {
    base: Base,
    hard: HardState,
    entries: Vec<Known>,
    /// The members after entries that changed them.
    members: Vec<(u64, ConfState)>,
    life: u32,
    whole: bool,
    /// The machine has booted since.
    rebooted: bool,
    journal: u64,
    /// The next entry that is looked at.
    next: usize,
}

impl Checking {
    /// Nothing if the journal does not begin with a base.
    fn new(config: &Config, found: Found, journal: u64) -> Result<Option<Checking>, End> {
        let behind = found.behind;
        let damage =
            || End::Failed(format!("journal {journal} is damaged: whole records follow one that is not"));
        let mut records = found.records.into_iter();
        let Some(Record::Base(base)) = records.next() else {
            return if is_damage(config, &behind, true, 0) { Err(damage()) } else { Ok(None) };
        };
        let mut hard = HardState::new();
        (hard.term, hard.commit) = (base.term, base.index);
        let (mut entries, mut members) = (Vec::<Known>::new(), Vec::new());
        let (mut life, mut boot, mut whole, mut clean) = (0, config.boot_id, true, false);
        for record in records {
            clean = matches!(record, Record::Clean);
            match record {
                Record::Base(_) => return Ok(None),
                Record::Entry { index, term, kind, body } => {
                    entries.retain(|known| known.index < index);
                    members.retain(|(at, _)| *at < index);
                    entries.push(Known { index, term, kind, body, whole: None });
                }
                Record::Members { index, members: now } => members.push((index, now)),
                Record::Hard(now) => hard = now,
                Record::Start { life: now, boot_id, whole: was_whole } => {
                    (life, boot, whole) = (now, boot_id, was_whole);
                }
                Record::Whole => whole = true,
                Record::Clean => {}
            }
        }
        let rebooted = boot != config.boot_id;
        let last = entries.last().map_or(base.index, |known| known.index);
        if is_damage(config, &behind, rebooted, last) {
            return Err(damage());
        }
        let is_safe = config.always || clean || !rebooted;
        whole &= is_safe || !Rule::ReplicasWithoutPowerAreSuspended.holds();
        let base = *base;
        Ok(Some(Checking { base, hard, entries, members, life, whole, rebooted, journal, next: 0 }))
    }

    fn last(&self) -> u64 {
        self.entries.last().map_or(self.base.index, |known| known.index)
    }

    fn commit(&self) -> u64 {
        self.hard.commit.clamp(self.base.index, self.last())
    }

    fn changes_members(&self, known: &Known) -> bool {
        known.kind != EntryType::EntryNormal && self.members.iter().all(|(index, _)| *index != known.index)
    }

    /// The base can move up to here: to what is committed, as far as the members are known there.
    fn foldable(&self) -> u64 {
        let unknown = self.entries.iter().find(|known| self.changes_members(known));
        self.commit().min(unknown.map_or(u64::MAX, |known| known.index - 1))
    }

    /// What must be read back before the replica goes on: what may be lost, and what others may still need.
    fn next_read(&mut self) -> Option<(FileName, u64, u32)> {
        let (commit, foldable) = (self.commit(), self.foldable());
        while let Some(known) = self.entries.get(self.next) {
            if let Body::Appended { file, offset, length, .. } = known.body {
                let wanted = self.rebooted || known.index > foldable;
                if wanted && !self.is_taken_away_later(self.next, file, commit) {
                    return Some((file, offset, length));
                }
            }
            self.next += 1;
        }
        None
    }

    fn is_taken_away_later(&self, at: usize, file: FileName, commit: u64) -> bool {
        let later = self.entries[at + 1..].iter().take_while(|known| known.index <= commit);
        later.filter_map(whole_operation).any(|operation| operation.takes_away() == Some(file))
    }

    fn on_bytes(&mut self, config: &Config, bytes: Bytes) -> Result<(), End> {
        let Some(known) = self.entries.get_mut(self.next) else { return Ok(()) };
        let Body::Appended { file, length, checksum, more, .. } = known.body else { return Ok(()) };
        if bytes.len() != length as usize || crc32fast::hash(&bytes) != checksum {
            return self.cut(config);
        }
        known.whole = Some(Bytes::from(Operation::Append { file, bytes, more }.encode()));
        self.next += 1;
        Ok(())
    }

    /// The next entry is not there: it and all after it are lost, if a power failure may have taken them.
    fn cut(&mut self, config: &Config) -> Result<(), End> {
        let commit = self.commit();
        let Some(known) = self.entries.get(self.next) else { return Ok(()) };
        if !self.rebooted || config.always && known.index <= commit {
            let words = format!("the bytes of entry {} are not those that were written", known.index);
            return Err(End::Failed(words));
        }
        let last = known.index - 1;
        self.entries.truncate(self.next);
        self.members.retain(|(index, _)| *index <= last);
        Ok(())
    }

    /// The base moves up.
    fn finish(mut self) -> Result<Restart, Malformed> {
        let (commit, foldable) = (self.commit(), self.foldable());
        let mut entries = Vec::new();
        for known in self.entries {
            if known.index <= foldable {
                apply(&mut self.base.contents, &known)?;
                (self.base.index, self.base.term) = (known.index, known.term);
                let here = self.members.iter().rfind(|(index, _)| *index == known.index);
                here.into_iter().for_each(|(_, members)| self.base.members = members.clone());
                continue;
            }
            let mut entry = Entry::new();
            (entry.index, entry.term) = (known.index, known.term);
            entry.set_entry_type(known.kind);
            entry.data = match (known.body, known.whole) {
                (Body::Whole(bytes), _) | (_, Some(bytes)) => bytes,
                _ => return Err(Malformed),
            };
            entries.push(entry);
        }
        self.hard.commit = commit;
        let Checking { base, hard, life, whole, journal, .. } = self;
        Ok(Restart { base, hard, entries, life, whole, journal })
    }
}

/// Whether records behind one that is not whole, after this entry, show that it was: in the same boot always, after a
/// power failure, which writes in any order, if they say that a later entry was durable.
fn is_damage(config: &Config, behind: &[Record], rebooted: bool, last: u64) -> bool {
    let same_boot =
        |record: &Record| matches!(record, Record::Start { boot_id, .. } if *boot_id == config.boot_id);
    let later = |record: &Record| matches!(record, Record::Hard(hard) if hard.commit > last.max(FIRST));
    !rebooted && !behind.is_empty()
        || behind.iter().any(same_boot)
        || config.always && behind.iter().any(later)
}

fn whole_operation(known: &Known) -> Option<Operation> {
    match &known.body {
        Body::Whole(bytes) if known.kind == EntryType::EntryNormal => Operation::decode(bytes.clone()).ok(),
        _ => None,
    }
}

fn apply(contents: &mut Contents, known: &Known) -> Result<(), Malformed> {
    match &known.body {
        Body::Appended { file, length, checksum, .. } => {
            contents.grown.entry(*file).or_default().grow_by(*checksum, u64::from(*length));
        }
        Body::Whole(bytes) if known.kind == EntryType::EntryNormal && !bytes.is_empty() => {
            contents.apply(&Operation::decode(bytes.clone())?);
        }
        Body::Whole(_) => {}
    }
    Ok(())
}
