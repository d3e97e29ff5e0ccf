//! Who read from whom: for every external read the write that it returned, or why there is none or more than one.

use crate::history::{History, Operation, Outcome, Transaction, Value};
use crate::report::{Pattern, Reason};
use crate::tables::Map;
use std::rc::Rc;

/// In place of a writer: the initial transaction.
pub(super) const INITIAL: u32 = u32::MAX;

/// An external read and its writer, all by their places in the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Read {
    pub reader: u32,
    pub key: u32,
    pub writer: u32,
}

/// A read that may have seen one of several writes.
#[derive(Clone, Debug)]
pub(super) struct AmbiguousRead {
    pub reader: u32,
    pub key: u32,
    pub value: Value,
    pub candidates: Candidates,
}

/// Whose write a read may have seen, in the order of the history. All reads of one value share one list, because a lock
/// that is taken and released many times is read as *absent* as often as that was written.
#[derive(Clone, Debug)]
pub(super) struct Candidates {
    has_initial: bool,
    writers: Rc<[u32]>,
    /// The place in the list of the reader itself, which does not count.
    own: Option<usize>,
}

impl Candidates {
    fn new(has_initial: bool, writers: Rc<[u32]>, reader: u32) -> Candidates {
        let own = writers.binary_search(&reader).ok();
        Candidates { has_initial, writers, own }
    }

    pub fn count(&self) -> usize {
        usize::from(self.has_initial) + self.writers.len() - usize::from(self.own.is_some())
    }

    /// The candidate of this number, below their count. The initial transaction comes first.
    pub fn at(&self, number: usize) -> u32 {
        let Some(place) = number.checked_sub(usize::from(self.has_initial)) else { return INITIAL };
        let is_after_own = self.own.is_some_and(|own| own <= place);
        self.writers[place + usize::from(is_after_own)]
    }

    pub fn has_initial(&self) -> bool {
        self.has_initial
    }

    /// The list that reads of one value share, the reader itself included.
    pub fn shared(&self) -> &Rc<[u32]> {
        &self.writers
    }
}

/// A read that no write explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BrokenRead {
    pub pattern: Pattern,
    pub reader: u32,
    /// Among the operations of the reader.
    pub place: u32,
    /// Who wrote the value, where somebody did.
    pub writer: Option<u32>,
}

/// Every read of the committed transactions.
#[derive(Debug, Default)]
pub(super) struct Reads {
    /// In the order of the readers.
    pub certain: Vec<Read>,
    pub ambiguous: Vec<AmbiguousRead>,
    /// The first that no write explains.
    pub broken: Option<BrokenRead>,
    /// Why read integrity cannot be decided, though nothing is broken.
    pub unsure: Option<Reason>,
    /// A read whose value somebody else wrote too, in a way that nobody may see.
    pub doubtful: Option<Reason>,
    /// There was a read of a register at all, internal ones included.
    pub any: bool,
}

impl Reads {
    pub fn find(history: &History) -> Reads {
        let writes = Writes::find(history);
        let mut reads = Reads::default();
        let mut own = LatestWrite::new(history.keys.len());
        for (index, transaction) in history.transactions.iter().enumerate() {
            if transaction.outcome == Outcome::Committed {
                reads.take(history, &writes, &mut own, index as u32, transaction);
            }
        }
        reads
    }

    fn take(
        &mut self,
        history: &History,
        writes: &Writes,
        own: &mut LatestWrite,
        reader: u32,
        transaction: &Transaction,
    ) {
        own.begin();
        for (place, operation) in transaction.operations.iter().enumerate() {
            match *operation {
                Operation::Write { key, .. } => own.set(key.0, place as u32),
                Operation::Read { key, value } => {
                    self.any = true;
                    let place = place as u32;
                    match own.of(key.0) {
                        Some(written) => {
                            let expected = transaction.operations[written as usize];
                            if expected != (Operation::Write { key, value }) {
                                let pattern = Pattern::OwnWriteUnread;
                                self.break_with(BrokenRead { pattern, reader, place, writer: Some(reader) });
                            }
                        }
                        None => self.external(history, writes, Asked { reader, place, key: key.0, value }),
                    }
                }
                _ => {}
            }
        }
    }

    fn external(&mut self, history: &History, writes: &Writes, asked: Asked) {
        let Asked { reader, key, value, .. } = asked;
        let found = writes.of(key, value);
        let has_initial = value == Value::ABSENT;
        let candidates = match writes.writers(key, value) {
            Writers::Several(writers) => Candidates::new(has_initial, writers.clone(), reader),
            Writers::One(writer) if has_initial && writer != reader => {
                Candidates::new(true, Rc::new([writer]), reader)
            }
            Writers::One(writer) if writer != reader => return self.one(history, asked, writer, found),
            Writers::One(_) | Writers::Nobody if has_initial => {
                return self.one(history, asked, INITIAL, found);
            }
            Writers::One(_) | Writers::Nobody => return self.unexplained(history, found, asked),
        };
        match candidates.count() {
            0 => self.unexplained(history, found, asked),
            1 => self.one(history, asked, candidates.at(0), found),
            _ => self.ambiguous.push(AmbiguousRead { reader, key, value, candidates }),
        }
    }

    /// Only this write explains the read.
    fn one(&mut self, history: &History, asked: Asked, writer: u32, found: Option<&Written>) {
        let Asked { reader, key, .. } = asked;
        self.certain.push(Read { reader, key, writer });
        if let Some(wrong) = found.and_then(|found| found.wrong).filter(|wrong| wrong.writer != reader) {
            self.doubt(history, asked, wrong);
        }
    }

    fn unexplained(&mut self, history: &History, found: Option<&Written>, asked: Asked) {
        let Asked { reader, place, .. } = asked;
        let broken = |pattern, writer| BrokenRead { pattern, reader, place, writer };
        let Some(found) = found else {
            if let Some(line) = history.truncated_at_line {
                let text = "a value was read that nobody wrote, but the recording broke off".into();
                self.unsure.get_or_insert(Reason { text, line });
                return;
            }
            return self.break_with(broken(Pattern::ThinAirRead, None));
        };
        match found.wrong {
            Some(wrong) if wrong.writer != reader => {
                self.break_with(broken(wrong.pattern, Some(wrong.writer)))
            }
            _ => self.break_with(broken(Pattern::FutureRead, Some(reader))),
        }
    }

    fn doubt(&mut self, history: &History, asked: Asked, wrong: Wrong) {
        let line = history.transactions[asked.reader as usize].line;
        let what = match wrong.pattern {
            Pattern::AbortedRead => "a failed transaction",
            _ => "an intermediate write",
        };
        let text = format!(
            "a read of `{}` is taken to be of a proper write, but {what} had the same value",
            history.keys[asked.key as usize]
        );
        self.doubtful.get_or_insert(Reason { text, line });
    }

    fn break_with(&mut self, broken: BrokenRead) {
        self.broken.get_or_insert(broken);
    }
}

/// A read that looks for its writer.
#[derive(Clone, Copy)]
struct Asked {
    reader: u32,
    place: u32,
    key: u32,
    value: Value,
}

/// A write that nobody may see.
#[derive(Clone, Copy, Debug)]
struct Wrong {
    writer: u32,
    pattern: Pattern,
}

/// Who wrote one value to one key.
#[derive(Clone, Copy, Debug, Default)]
struct Written {
    finally: Option<u32>,
    /// More than one did; they are in [`Writes::repeated`].
    is_repeated: bool,
    wrong: Option<Wrong>,
}

/// Every write, by key and value.
struct Writes {
    by_content: Map<u64, Written>,
    repeated: Map<u64, Rc<[u32]>>,
}

impl Writes {
    fn find(history: &History) -> Writes {
        let mut writes = Writes { by_content: Map::default(), repeated: Map::default() };
        let mut repeated = Map::default();
        let mut latest = LatestWrite::new(history.keys.len());
        for (index, transaction) in history.transactions.iter().enumerate() {
            latest.begin();
            for (place, operation) in transaction.operations.iter().enumerate() {
                if let Operation::Write { key, .. } = *operation {
                    latest.set(key.0, place as u32);
                }
            }
            for (place, operation) in transaction.operations.iter().enumerate() {
                let Operation::Write { key, value } = *operation else { continue };
                let is_final = latest.of(key.0) == Some(place as u32);
                let content = content(key.0, value);
                let before = writes.add(index as u32, content, is_final, transaction.outcome);
                if let Some(first) = before {
                    repeated.entry(content).or_insert_with(|| vec![first]).push(index as u32);
                }
            }
        }
        writes.repeated = repeated.into_iter().map(|(content, writers)| (content, writers.into())).collect();
        writes
    }

    /// Answers who wrote the same first, if this is one of several that count.
    fn add(&mut self, writer: u32, content: u64, is_final: bool, outcome: Outcome) -> Option<u32> {
        let written = self.by_content.entry(content).or_default();
        if outcome == Outcome::Failed {
            written.wrong.get_or_insert(Wrong { writer, pattern: Pattern::AbortedRead });
        } else if !is_final {
            written.wrong.get_or_insert(Wrong { writer, pattern: Pattern::IntermediateRead });
        } else if let Some(first) = written.finally {
            written.is_repeated = true;
            return Some(first);
        } else {
            written.finally = Some(writer);
        }
        None
    }

    fn of(&self, key: u32, value: Value) -> Option<&Written> {
        self.by_content.get(&content(key, value))
    }

    fn writers(&self, key: u32, value: Value) -> Writers<'_> {
        match self.of(key, value) {
            Some(written) if written.is_repeated => Writers::Several(&self.repeated[&content(key, value)]),
            Some(Written { finally: Some(writer), .. }) => Writers::One(*writer),
            _ => Writers::Nobody,
        }
    }
}

/// Who wrote a value last in their transactions, and did not fail.
enum Writers<'a> {
    Nobody,
    One(u32),
    Several(&'a Rc<[u32]>),
}

fn content(key: u32, value: Value) -> u64 {
    u64::from(key) << 32 | u64::from(value.0)
}

/// The latest write of each key in the transaction at hand. It forgets all in one step.
pub(super) struct LatestWrite {
    now: u32,
    /// By key: when it was set, and where.
    set: Vec<(u32, u32)>,
}

impl LatestWrite {
    pub fn new(keys: usize) -> LatestWrite {
        LatestWrite { now: 0, set: vec![(0, 0); keys] }
    }

    pub fn begin(&mut self) {
        self.now += 1;
    }

    pub fn set(&mut self, key: u32, place: u32) {
        self.set[key as usize] = (self.now, place);
    }

    pub fn of(&self, key: u32) -> Option<u32> {
        let (when, place) = self.set[key as usize];
        (when == self.now).then_some(place)
    }
}
