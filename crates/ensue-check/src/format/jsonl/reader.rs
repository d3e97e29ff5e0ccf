//! Lines to a history.

use super::elements;
use super::line::{Line, Step, Text};
use super::removals::{self, Flush, Rename};
use super::rows::{self, RowRead};
use crate::builder::Builder;
use crate::format::ReadError;
use crate::history::{
    History, Key, LeftOut, Operation, Outcome, SessionIndex, Transaction, TransactionIndex, Value,
};
use crate::tables::Map;
use std::collections::BTreeSet;
use std::io::BufRead;

/// The version of the form that the event `history` may name.
pub(super) const VERSION: u64 = 1;

/// Reads all lines. Blank lines are passed over.
pub fn read(input: &mut dyn BufRead) -> Result<History, ReadError> {
    let mut reader = Reader::new();
    let mut bytes = Vec::new();
    while input.read_until(b'\n', &mut bytes)? > 0 {
        reader.line += 1;
        let is_whole = bytes.last() == Some(&b'\n');
        if !bytes.trim_ascii().is_empty() {
            match reader.take(&bytes) {
                // A recorder that died in the middle of a line leaves one that neither parses nor ends.
                Err(ReadError::Line { .. }) if !is_whole => reader.builder.truncated_at(reader.line),
                result => result?,
            }
        }
        bytes.clear();
    }
    reader.finish()
}

/// How a key's contents are named. Mixing both would compare what cannot be compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Naming {
    Values,
    Versions,
}

struct Reader {
    builder: Builder,
    line: u32,
    /// By the names that `transaction` gave them.
    named: Map<String, TransactionIndex>,
    /// By the tokens that were handed out after them.
    bearers: Map<String, TransactionIndex>,
    /// To be looked up when all names are known: a token may be shown on a line before the one that got it.
    merges: Vec<(TransactionIndex, String, u32)>,
    naming: Vec<Option<Naming>>,
    /// What they did is known when everything was read.
    renames: Vec<Rename>,
    flushes: Vec<Flush>,
    rows: Vec<RowRead>,
    /// The event `history` came, so the event `end` must.
    is_opened: bool,
    is_closed: bool,
}

impl Reader {
    fn new() -> Reader {
        Reader {
            builder: Builder::new(),
            line: 0,
            named: Map::default(),
            bearers: Map::default(),
            merges: Vec::new(),
            naming: Vec::new(),
            renames: Vec::new(),
            flushes: Vec::new(),
            rows: Vec::new(),
            is_opened: false,
            is_closed: false,
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), ReadError> {
        if self.is_closed {
            return Err(self.wrong("this line comes after the event `end`"));
        }
        let line: Line<'_> = serde_json::from_slice(bytes).map_err(|error| ReadError::Line {
            line: self.line,
            column: u32::try_from(error.column()).unwrap_or(u32::MAX),
            message: without_place(&error.to_string()),
        })?;
        match &line.event {
            Some(event) => self.event(event, &line),
            None => self.transaction(line),
        }
    }

    fn event(&mut self, event: &Text<'_>, line: &Line<'_>) -> Result<(), ReadError> {
        match &*event.0 {
            "session" => {
                let Some(name) = &line.session else {
                    return Err(self.wrong("the event `session` needs `session`, the name that ends"));
                };
                self.builder.end_session(&name.0);
            }
            "history" => {
                let version = line.version.unwrap_or(VERSION);
                if version != VERSION {
                    let message = format!("version {version} of the form is not known, only {VERSION}");
                    return Err(self.wrong(&message));
                }
                self.is_opened = true;
            }
            "end" => {
                self.is_closed = true;
                let found = self.builder.history().transactions.len() as u64;
                if let Some(expected) = line.transactions.filter(|&expected| expected != found) {
                    let message =
                        format!("the file says that it has {expected} transactions, but it has {found}");
                    return Err(self.wrong(&message));
                }
            }
            "left-out" => {
                let reason = line.reason.as_ref().map_or("the file gives no reason", |reason| &*reason.0);
                let key = line.key.as_ref().map(|key| key.0.to_string());
                self.builder.leave_out(LeftOut { key, reason: reason.into(), line: self.line });
            }
            other => {
                let message =
                    format!("unknown event `{other}`: expected `session`, `history`, `left-out` or `end`");
                return Err(self.wrong(&message));
            }
        }
        Ok(())
    }

    fn transaction(&mut self, line: Line<'_>) -> Result<(), ReadError> {
        let Some(session) = &line.session else {
            return Err(self.wrong("`session` is missing"));
        };
        let session = self.builder.session(&session.0);
        let outcome = self.outcome(&line)?;
        let earlier = line.transaction.as_ref().and_then(|name| self.named.get(&*name.0).copied());
        let index = match earlier {
            Some(index) => self.continue_transaction(index, session, outcome, &line)?,
            None => self.begin_transaction(session, outcome, &line),
        };
        let Transaction { start_us, end_us, .. } = *self.builder.history().transaction(index);
        if end_us != 0 && end_us < start_us {
            return Err(self.wrong("this transaction ends before it starts: `end` is less than `start`"));
        }
        for name in &line.merges {
            self.merges.push((index, name.0.to_string(), self.line));
        }
        for step in &line.operations {
            self.only_one_word(step)?;
            if step.rename.is_some() || step.flush.is_some() {
                self.removal(step, outcome, index)?;
            } else if let Some(row) = &step.row {
                let place = self.builder.history().transaction(index).operations.len();
                let read = RowRead { transaction: index, place, row: row.0.to_string() };
                self.rows.extend((outcome == Outcome::Committed).then_some(read));
            } else if let Some(operation) = self.operation(step, outcome)? {
                self.builder.transaction_mut(index).operations.push(operation);
            }
        }
        match line.token {
            Some(token) => self.hand_out(&token.0, index),
            None => Ok(()),
        }
    }

    /// Lines of different sessions are in no order: of two transactions with one token nothing says whose was shown.
    fn hand_out(&mut self, token: &str, index: TransactionIndex) -> Result<(), ReadError> {
        let bearer = *self.bearers.entry(token.into()).or_insert(index);
        if bearer == index {
            return Ok(());
        }
        let line = self.builder.history().transaction(bearer).line;
        let message = format!(
            "the token `{token}` is that of line {line}: what is handed out again needs another name each time"
        );
        Err(self.wrong(&message))
    }

    fn outcome(&self, line: &Line<'_>) -> Result<Outcome, ReadError> {
        let has_no_answer = line.end == Some(None);
        match line.status.as_ref().map(|status| &*status.0) {
            None if has_no_answer => Ok(Outcome::Unknown),
            Some("ok") if has_no_answer => {
                Err(self.wrong("`status` is `ok`, but `end` is null, which says that no answer came"))
            }
            None | Some("ok") => Ok(Outcome::Committed),
            Some("unknown") => Ok(Outcome::Unknown),
            Some("failed") => Ok(Outcome::Failed),
            Some(other) => {
                let message = format!("unknown status `{other}`: expected `ok`, `unknown` or `failed`");
                Err(self.wrong(&message))
            }
        }
    }

    fn begin_transaction(
        &mut self,
        session: SessionIndex,
        outcome: Outcome,
        line: &Line<'_>,
    ) -> TransactionIndex {
        let index = self.builder.add(Transaction {
            line: self.line,
            start_us: line.start.unwrap_or(0),
            end_us: end_of(line),
            outcome,
            is_final: line.is_final,
            operations: Vec::with_capacity(line.operations.len()),
            ..Transaction::committed(session)
        });
        if let Some(name) = &line.datacenter {
            let datacenter = self.builder.datacenter(&name.0);
            self.builder.transaction_mut(index).datacenter = Some(datacenter);
        }
        if let Some(name) = &line.transaction {
            self.named.insert(name.0.to_string(), index);
        }
        index
    }

    fn continue_transaction(
        &mut self,
        index: TransactionIndex,
        session: SessionIndex,
        outcome: Outcome,
        line: &Line<'_>,
    ) -> Result<TransactionIndex, ReadError> {
        let begun = self.builder.history().transaction(index);
        if begun.session != session {
            let message = format!("this transaction began in another session, on line {}", begun.line);
            return Err(self.wrong(&message));
        }
        if begun.outcome != outcome {
            let message = format!("this transaction ended otherwise on line {}", begun.line);
            return Err(self.wrong(&message));
        }
        let transaction = self.builder.transaction_mut(index);
        transaction.start_us = transaction.start_us.min(line.start.unwrap_or(transaction.start_us));
        transaction.end_us = transaction.end_us.max(end_of(line));
        transaction.is_final |= line.is_final;
        Ok(index)
    }

    fn only_one_word(&self, step: &Step<'_>) -> Result<(), ReadError> {
        let words = [&step.read, &step.write, &step.add, &step.count, &step.rename, &step.flush, &step.row];
        let words = words.into_iter().chain([&step.push, &step.pop, &step.hold]);
        match words.filter(|word| word.is_some()).count() {
            1 => Ok(()),
            _ => Err(self.wrong(
                "an operation has exactly one of `read`, `write`, `add`, `count`, `rename`, `flush`, `row`, `push`, \
                 `pop` and `hold`",
            )),
        }
    }

    /// A rename or a flush. What failed removed nothing.
    fn removal(
        &mut self,
        step: &Step<'_>,
        outcome: Outcome,
        transaction: TransactionIndex,
    ) -> Result<(), ReadError> {
        let is_done = outcome != Outcome::Failed;
        if let Some(word) = &step.flush {
            let keyspace = match (&*word.0, word.0.parse()) {
                ("all", _) => None,
                (_, Ok(number)) => Some(number),
                _ => return Err(self.wrong("a flush is of `all` keyspaces, or of the number of one")),
            };
            self.flushes.extend(is_done.then_some(Flush { transaction, keyspace }));
            return Ok(());
        }
        let (Some(from), Some(to)) = (&step.rename, &step.to) else {
            return Err(self.wrong("a rename has `to`, the new name"));
        };
        let (from, to) = (self.builder.key(&from.0), self.builder.key(&to.0));
        let place = self.builder.history().transaction(transaction).operations.len();
        let is_one = is_done && from != to;
        self.renames.extend(is_one.then_some(Rename { transaction, place, from, to }));
        Ok(())
    }

    /// Nothing for a read without an answer.
    fn operation(&mut self, step: &Step<'_>, outcome: Outcome) -> Result<Option<Operation>, ReadError> {
        let is_answered = outcome == Outcome::Committed;
        if let Some(name) = &step.read {
            let key = self.builder.key(&name.0);
            return match self.content(key, step)? {
                Some(value) => Ok(is_answered.then_some(Operation::Read { key, value })),
                None if is_answered => Err(self.wrong("a read has a `value` or a `version`")),
                None => Ok(None),
            };
        }
        if let Some(name) = &step.write {
            let key = self.builder.key(&name.0);
            return match self.content(key, step)? {
                Some(value) => Ok(Some(Operation::Write { key, value })),
                None => Err(self.wrong("a write has a `value` or a `version`")),
            };
        }
        if let Some(name) = &step.add {
            let Some(delta) = step.delta else { return Err(self.wrong("an add has a `delta`")) };
            return Ok(Some(Operation::Add { key: self.builder.key(&name.0), delta }));
        }
        if step.push.is_some() || step.pop.is_some() || step.hold.is_some() {
            return self.of_queue(step, outcome);
        }
        if !is_answered {
            return Ok(None);
        }
        let text = step.value.as_ref().and_then(Option::as_ref);
        let Some(value) = text.and_then(|text| text.0.parse().ok()) else {
            return Err(self.wrong("a count has a `value`, an integer of 64 bits"));
        };
        let name = step.count.as_ref().expect("exactly one word stands there, and it is none of the others");
        Ok(Some(Operation::Count { key: self.builder.key(&name.0), value }))
    }

    /// What was pushed to a queue, popped from it, or seen in it. Without an answer, what was popped is not known, and
    /// what was pushed need not be.
    fn of_queue(&mut self, step: &Step<'_>, outcome: Outcome) -> Result<Option<Operation>, ReadError> {
        let is_answered = outcome == Outcome::Committed;
        let value = match &step.value {
            Some(Some(text)) => Some(self.builder.value(&text.0)),
            Some(None) => Some(Value::ABSENT),
            None => None,
        };
        if is_answered && value.is_none() {
            return Err(self.wrong("a push, a pop or a hold has a `value`, the element"));
        }
        let element = value.unwrap_or(Value::ABSENT);
        if let Some(name) = &step.push {
            if is_answered && element == Value::ABSENT {
                return Err(self.wrong("what is pushed has a `value` that is not null"));
            }
            return Ok(Some(Operation::Push { key: self.builder.key(&name.0), element }));
        }
        if let Some(name) = &step.pop {
            let element = if is_answered { element } else { Value::ABSENT };
            return Ok(Some(Operation::Pop { key: self.builder.key(&name.0), element }));
        }
        let name = step.hold.as_ref().expect("exactly one word stands there, and it is none of the others");
        let key = self.builder.key(&name.0);
        Ok(is_answered.then_some(Operation::Hold { key, element }))
    }

    /// What a register held or got; the version, where both are given.
    fn content(&mut self, key: Key, step: &Step<'_>) -> Result<Option<Value>, ReadError> {
        let (content, naming) = match (&step.version, &step.value) {
            (Some(version), _) => (version, Naming::Versions),
            (None, Some(value)) => (value, Naming::Values),
            (None, None) => return Ok(None),
        };
        let Some(text) = content else { return Ok(Some(Value::ABSENT)) };
        let place = key.0 as usize;
        if self.naming.len() <= place {
            self.naming.resize(place + 1, None);
        }
        if *self.naming[place].get_or_insert(naming) != naming {
            return Err(self.wrong("this key has a `value` on one line and a `version` on another"));
        }
        Ok(Some(self.builder.value(&text.0)))
    }

    fn finish(mut self) -> Result<History, ReadError> {
        if self.is_opened && !self.is_closed {
            self.builder.truncated_at(self.line);
        }
        for (index, name, line) in std::mem::take(&mut self.merges) {
            let merged = self.merged(&name, index);
            let merged = merged.map_err(|message| ReadError::Line { line, column: 1, message })?;
            self.builder.transaction_mut(index).merges.extend(merged);
        }
        let mut history = self.builder.finish();
        removals::expand(&mut history, &self.renames, &self.flushes);
        // Where removals stand in the same transaction, places are not what they were.
        let removals = self.renames.iter().map(|one| one.transaction);
        let removals: BTreeSet<_> = removals.chain(self.flushes.iter().map(|one| one.transaction)).collect();
        self.rows.retain(|read| !removals.contains(&read.transaction));
        rows::expand(&mut history, &self.rows);
        elements::settle(&mut history);
        Ok(history)
    }

    /// Who is meant by a name that a transaction merges; nobody if that may stand in the missing part of the file.
    fn merged(&self, name: &str, by: TransactionIndex) -> Result<Option<TransactionIndex>, String> {
        match (self.named.get(name), self.bearers.get(name)) {
            (None, None) if self.builder.history().truncated_at_line.is_some() => Ok(None),
            (None, None) => {
                Err(format!("merges `{name}`, which is no transaction and no token of this file"))
            }
            (Some(named), Some(bearer)) if named != bearer => {
                Err(format!("merges `{name}`, which is one transaction and the token of another"))
            }
            (Some(&merged), _) | (None, Some(&merged)) if merged == by => {
                Err(format!("merges `{name}`, which is this transaction itself"))
            }
            (Some(&merged), _) | (None, Some(&merged)) => Ok(Some(merged)),
        }
    }

    fn wrong(&self, message: &str) -> ReadError {
        ReadError::Line { line: self.line, column: 1, message: message.into() }
    }
}

fn end_of(line: &Line<'_>) -> u64 {
    match line.end {
        None => 0,
        Some(None) => u64::MAX,
        Some(Some(end)) => end,
    }
}

/// The message without the place within the line, which is said in another form.
fn without_place(message: &str) -> String {
    message.split(" at line ").next().unwrap_or(message).into()
}
