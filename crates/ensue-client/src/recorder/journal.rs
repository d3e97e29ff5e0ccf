//! The lines of a history, in the order in which they happened to be known.

use super::effect::Step;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io::{self, BufWriter, Write};
use std::time::{Duration, Instant};

/// Tokens that are remembered; who shows an older one is taken to show none.
const TOKENS_MAX: usize = 1 << 16;
const FLUSH_INTERVAL: Duration = Duration::from_millis(200);

pub(super) struct Journal {
    output: BufWriter<Box<dyn Write + Send>>,
    /// Transactions written.
    transactions: u64,
    /// Names given to sessions, and to transactions that others name.
    sessions: u64,
    names: u64,
    /// By hash: the name under which a token was handed out last.
    tokens: BTreeMap<u128, u64>,
    tokens_by_age: VecDeque<u128>,
    flushed_at: Instant,
    /// The first error. Nothing is written after it.
    failure: Option<io::Error>,
    is_finished: bool,
}

/// A transaction to be written.
#[derive(Default)]
pub(super) struct Line<'a> {
    pub(super) session: &'a str,
    pub(super) datacenter: Option<&'a str>,
    pub(super) times: Option<(u64, u64)>,
    /// Nothing if it was answered and carried out.
    pub(super) status: Option<&'a str>,
    pub(super) token: Option<String>,
    pub(super) merges: Option<String>,
    pub(super) is_final: bool,
    pub(super) steps: &'a [Step],
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").field("transactions", &self.transactions).finish_non_exhaustive()
    }
}

impl Journal {
    pub(super) fn begin(output: Box<dyn Write + Send>) -> io::Result<Journal> {
        let mut journal = Journal {
            output: BufWriter::new(output),
            transactions: 0,
            sessions: 0,
            names: 0,
            tokens: BTreeMap::new(),
            tokens_by_age: VecDeque::new(),
            flushed_at: Instant::now(),
            failure: None,
            is_finished: false,
        };
        writeln!(journal.output, r#"{{"event":"history","version":1}}"#)?;
        journal.output.flush()?;
        Ok(journal)
    }

    pub(super) fn finish(&mut self) -> io::Result<()> {
        if !self.is_finished {
            let end = format!(r#"{{"event":"end","transactions":{}}}"#, self.transactions);
            self.write(&end);
            self.is_finished = true;
        }
        match self.failure.take() {
            Some(error) => Err(error),
            None => self.output.flush(),
        }
    }

    /// The name of a session that nobody else has.
    pub(super) fn new_session(&mut self) -> String {
        self.sessions += 1;
        format!("c{}", self.sessions)
    }

    /// A name for a transaction that nobody else has.
    pub(super) fn new_name(&mut self) -> String {
        self.names += 1;
        format!("t{}", self.names)
    }

    /// A token was handed out; the name of the transaction that stands for it.
    pub(super) fn remember_token(&mut self, hash: u128) -> String {
        let name = self.new_name();
        if self.tokens.insert(hash, self.names).is_none() {
            self.tokens_by_age.push_back(hash);
        }
        if self.tokens_by_age.len() > TOKENS_MAX {
            let oldest = self.tokens_by_age.pop_front().expect("there are more than the most");
            self.tokens.remove(&oldest);
        }
        name
    }

    /// The name of a token, if it is remembered.
    pub(super) fn token(&self, hash: u128) -> Option<String> {
        self.tokens.get(&hash).map(|number| format!("t{number}"))
    }

    pub(super) fn transaction(&mut self, line: &Line<'_>) {
        let mut text = format!(r#"{{"session":{}"#, quoted(line.session));
        for (field, value) in [("datacenter", line.datacenter), ("status", line.status)] {
            if let Some(value) = value {
                text.push_str(&format!(r#","{field}":{}"#, quoted(value)));
            }
        }
        if let Some((start, end)) = line.times {
            text.push_str(&format!(r#","start":{start},"end":"#));
            text.push_str(&if end == u64::MAX { "null".to_owned() } else { end.to_string() });
        }
        if let Some(name) = &line.token {
            text.push_str(&format!(r#","token":{}"#, quoted(name)));
        }
        if let Some(name) = &line.merges {
            text.push_str(&format!(r#","merges":[{}]"#, quoted(name)));
        }
        if line.is_final {
            text.push_str(r#","final":true"#);
        }
        let steps: Vec<String> = line.steps.iter().map(step).collect();
        text.push_str(&format!(r#","operations":[{}]}}"#, steps.join(",")));
        self.write(&text);
        self.transactions += 1;
    }

    pub(super) fn end_session(&mut self, session: &str) {
        self.write(&format!(r#"{{"event":"session","session":{}}}"#, quoted(session)));
    }

    /// These rows can no longer be followed; none: nothing can.
    pub(super) fn leave_out(&mut self, rows: &[String], reason: &str) {
        let reason = quoted(reason);
        if rows.is_empty() {
            self.write(&format!(r#"{{"event":"left-out","reason":{reason}}}"#));
        }
        for row in rows {
            self.write(&format!(r#"{{"event":"left-out","key":{},"reason":{reason}}}"#, quoted(row)));
        }
    }

    fn write(&mut self, line: &str) {
        if self.is_finished || self.failure.is_some() {
            return;
        }
        let result = writeln!(self.output, "{line}").and_then(|()| {
            if self.flushed_at.elapsed() >= FLUSH_INTERVAL {
                self.flushed_at = Instant::now();
                return self.output.flush();
            }
            Ok(())
        });
        self.failure = result.err();
    }
}

fn step(step: &Step) -> String {
    let value_text = |value: &Option<String>| value.as_ref().map_or("null".to_owned(), |text| quoted(text));
    match step {
        Step::Read { place, value } => {
            format!(r#"{{"read":{},"value":{}}}"#, quoted(place), value_text(value))
        }
        Step::Write { place, value } => {
            format!(r#"{{"write":{},"value":{}}}"#, quoted(place), value_text(value))
        }
        Step::Row { row } => format!(r#"{{"row":{}}}"#, quoted(row)),
        Step::Rename { from, to } => format!(r#"{{"rename":{},"to":{}}}"#, quoted(from), quoted(to)),
        Step::Flush { keyspace: Some(keyspace) } => format!(r#"{{"flush":{keyspace}}}"#),
        Step::Flush { keyspace: None } => r#"{"flush":"all"}"#.to_owned(),
        Step::Add { place, delta } => format!(r#"{{"add":{},"delta":{delta}}}"#, quoted(place)),
        Step::Count { place, value } => format!(r#"{{"count":{},"value":{value}}}"#, quoted(place)),
        Step::Push { queue, element: None } => format!(r#"{{"push":{}}}"#, quoted(queue)),
        Step::Push { queue, element } => {
            format!(r#"{{"push":{},"value":{}}}"#, quoted(queue), value_text(element))
        }
        Step::Pop { queue, element: None } => format!(r#"{{"pop":{}}}"#, quoted(queue)),
        Step::Pop { queue, element: Some(element) } => {
            format!(r#"{{"pop":{},"value":{}}}"#, quoted(queue), value_text(element))
        }
        Step::Hold { queue, element } => {
            format!(r#"{{"hold":{},"value":{}}}"#, quoted(queue), value_text(element))
        }
    }
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("text is always JSON")
}
