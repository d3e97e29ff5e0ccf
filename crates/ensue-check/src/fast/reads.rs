//! Who read from whom: for every external read the write that it returned, or why there is none or more than one.

use crate::history::{History, Operation, Outcome, Transaction, Value};
use crate::report::{Pattern, Reason};
use crate::tables::Map;

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
    pub candidates: Vec<u32>,
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
                Operation::Add { .. } | Operation::Count { .. } => {}
            }
        }
    }

    fn external(&mut self, history: &History, writes: &Writes, asked: Asked) {
        let Asked { reader, key, value, .. } = asked;
        let found = writes.of(key, value);
        let mut candidates = Candidates::default();
        if value == Value::ABSENT {
            candidates.add(INITIAL);
        }
        if let Some(found) = found {
            writes.each_writer(key, value, found, |writer| {
                if writer != reader {
                    candidates.add(writer);
                }
            });
        }
        match (candidates.one, candidates.more) {
            (None, _) => self.unexplained(history, found, asked),
            (Some(writer), more) if more.is_empty() => {
                self.certain.push(Read { reader, key, writer });
                if let Some(wrong) =
                    found.and_then(|found| found.wrong).filter(|wrong| wrong.writer != reader)
                {
                    self.doubt(history, asked, wrong);
                }
            }
            (Some(writer), mut more) => {
                more.insert(0, writer);
                self.ambiguous.push(AmbiguousRead { reader, key, candidates: more });
            }
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

#[derive(Default)]
struct Candidates {
    one: Option<u32>,
    /// Nearly always empty, and then it costs nothing.
    more: Vec<u32>,
}

impl Candidates {
    fn add(&mut self, writer: u32) {
        match self.one {
            None => self.one = Some(writer),
            Some(_) => self.more.push(writer),
        }
    }
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
    repeated: Map<u64, Vec<u32>>,
}

impl Writes {
    fn find(history: &History) -> Writes {
        let mut writes = Writes { by_content: Map::default(), repeated: Map::default() };
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
                writes.add(index as u32, key.0, value, is_final, transaction.outcome);
            }
        }
        writes
    }

    fn add(&mut self, writer: u32, key: u32, value: Value, is_final: bool, outcome: Outcome) {
        let content = content(key, value);
        let written = self.by_content.entry(content).or_default();
        if outcome == Outcome::Failed {
            written.wrong.get_or_insert(Wrong { writer, pattern: Pattern::AbortedRead });
        } else if !is_final {
            written.wrong.get_or_insert(Wrong { writer, pattern: Pattern::IntermediateRead });
        } else if let Some(first) = written.finally {
            written.is_repeated = true;
            self.repeated.entry(content).or_insert_with(|| vec![first]).push(writer);
        } else {
            written.finally = Some(writer);
        }
    }

    fn of(&self, key: u32, value: Value) -> Option<&Written> {
        self.by_content.get(&content(key, value))
    }

    fn each_writer(&self, key: u32, value: Value, written: &Written, mut take: impl FnMut(u32)) {
        if written.is_repeated {
            self.repeated[&content(key, value)].iter().copied().for_each(take);
        } else if let Some(writer) = written.finally {
            take(writer);
        }
    }
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
