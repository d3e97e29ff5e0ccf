//! What clients of a keyspace with branches were answered, as it is recorded on real processes: sessions, commands and
//! answers with their times, in memory and as JSON lines (`docs/recording.md`), judged by the oracle that judges
//! simulated worlds.
//!
//! What the oracle uses beside the answers (`BranchOptions`) is known to whoever set the cluster up and harmed it.
//! A recording without an end was interrupted: what was lost in the end is not judged then.

use super::options::BranchOptions;
use super::oracle::{self, Known};
use super::rest;
use crate::oracle::history::{History, OperationIndex, Outcome, SessionIndex};
use crate::oracle::{Violation, property};
use crate::resp::Answer;
use ensue_types::{Args, DatacenterId};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};

/// The beginning of the first line of such a file.
pub const FIRST: &str = r#"{"event":"branches""#;

/// One keyspace of one run.
#[derive(Debug)]
pub struct Recording {
    pub history: History,
    pub options: BranchOptions,
}

impl Recording {
    pub fn new(options: BranchOptions) -> Recording {
        Recording { history: History::of(1), options }
    }

    /// Commands that are about to be sent together.
    pub fn asked(
        &mut self,
        session: SessionIndex,
        datacenter: DatacenterId,
        at_us: u64,
        commands: Vec<Args>,
    ) -> OperationIndex {
        self.history.invoke(session, datacenter, at_us, commands, Vec::new())
    }

    /// The next answer to these commands.
    pub fn answered(&mut self, operation: OperationIndex, at_us: u64, answer: Answer) {
        let said = self.history.said.entry(operation).or_default();
        said.push((at_us, answer));
        let told = &mut self.history.operations[operation];
        if said.len() == told.commands.len() {
            (told.answered_us, told.outcome) = (at_us, Outcome::Done);
        }
    }

    /// The first violation, or how much was judged.
    pub fn judge(&self) -> Result<Known, Violation> {
        let known = oracle::judge(&self.history, &self.options)?;
        self.differ_in_the_end().map_or(Ok(known), Err)
    }

    /// In the end every datacenter has the same leaves, and at each leaf the same values.
    fn differ_in_the_end(&self) -> Option<Violation> {
        let final_us = self.options.final_us?;
        let mut told: BTreeMap<DatacenterId, (Vec<Args>, Vec<Answer>)> = BTreeMap::new();
        for (index, operation) in self.history.operations.iter().enumerate() {
            if operation.invoked_us < final_us {
                continue;
            }
            let (commands, answers) = told.entry(operation.datacenter).or_default();
            let said = self.history.said.get(&index).into_iter().flatten();
            // Logs have flags of their own in each datacenter; the oracle compares the rest of them.
            let pairs = operation.commands.iter().zip(said).filter(|(command, _)| !is_log(command));
            for (command, (_, answer)) in pairs {
                commands.push(command.clone());
                answers.push(answer.clone());
            }
        }
        let all = (0..self.options.datacenters).map(DatacenterId);
        let silent = all.clone().find(|datacenter| !told.contains_key(datacenter));
        if let Some(datacenter) = silent {
            return Some(Violation::new(
                property::CONVERGENCE,
                format!("{datacenter} was not read in the end"),
            ));
        }
        let (first_commands, first) = told.values().next()?;
        told.iter().find_map(|(datacenter, (commands, answers))| {
            // What is asked names the leaves, so it is the same where the leaves are.
            let leaves = |answers: &[Answer]| answers.first().cloned();
            let why = if commands != first_commands {
                Some(format!("leaves {:?} here, {:?} elsewhere", leaves(answers), leaves(first)))
            } else {
                rest::difference(commands, answers, first)
            };
            why.map(|why| Violation::new(property::CONVERGENCE, format!("{datacenter}: {why}")))
        })
    }

    /// Writes it as JSON lines.
    pub fn write(&self, output: &mut dyn Write) -> io::Result<()> {
        let options = &self.options;
        let restarted: Vec<u8> = options.restarted.iter().map(|datacenter| datacenter.0).collect();
        let facts = json!({
            "version": 1,
            "datacenters": options.datacenters,
            "optimistic": options.optimistic,
            "places-ceilings": options.places_ceilings,
            "restarted": restarted,
            "final": options.final_us,
        });
        // The event comes first, so that a reader knows the file by its beginning.
        writeln!(output, "{FIRST},{}", &facts.to_string()[1..])?;
        // Sessions are numbered by what they said first; those that said nothing are left out.
        let mut numbers: BTreeMap<SessionIndex, usize> = BTreeMap::new();
        for (index, operation) in self.history.operations.iter().enumerate() {
            let next = numbers.len();
            let session = *numbers.entry(operation.session).or_insert(next);
            let commands: Vec<Value> = operation
                .commands
                .iter()
                .map(|command| command.iter().map(|word| text(word)).collect())
                .collect();
            let said = self.history.said.get(&index).into_iter().flatten();
            let answers: Vec<Value> = said.map(|(at_us, answer)| json!([at_us, value(answer)])).collect();
            let line = json!({
                "session": session,
                "datacenter": operation.datacenter.0,
                "asked": operation.invoked_us,
                "commands": commands,
                "answers": answers,
            });
            writeln!(output, "{line}")?;
        }
        writeln!(output, r#"{{"event":"end","operations":{}}}"#, self.history.operations.len())
    }

    /// Reads what was written.
    pub fn read(input: &mut dyn BufRead) -> io::Result<Recording> {
        let mut recording = Recording::new(BranchOptions::default());
        let mut is_over = false;
        for (at, line) in input.lines().enumerate() {
            let line: Value = serde_json::from_str(&line?)?;
            let event = line.get("event").and_then(Value::as_str);
            let done = match (at, event) {
                (0, Some("branches")) => recording.begin(&line),
                (0, _) => None,
                (_, Some("end")) => {
                    is_over = true;
                    let count = line.get("operations").and_then(Value::as_u64);
                    (count == Some(recording.history.operations.len() as u64)).then_some(())
                }
                _ => recording.take(&line),
            };
            if done.is_none() {
                return Err(io::Error::other(format!("line {} is none of such a history", at + 1)));
            }
        }
        if !is_over {
            recording.options.final_us = None;
        }
        Ok(recording)
    }

    fn begin(&mut self, line: &Value) -> Option<()> {
        let flag = |name: &str| line.get(name).and_then(Value::as_bool);
        let restarted = line.get("restarted")?.as_array()?.iter();
        self.options = BranchOptions {
            datacenters: u8::try_from(line.get("datacenters")?.as_u64()?).ok()?,
            optimistic: flag("optimistic")?,
            places_ceilings: flag("places-ceilings")?,
            restarted: restarted.map(datacenter).collect::<Option<_>>()?,
            final_us: line.get("final").and_then(Value::as_u64),
            ..BranchOptions::default()
        };
        (line.get("version")?.as_u64()? == 1).then_some(())
    }

    fn take(&mut self, line: &Value) -> Option<()> {
        let session = usize::try_from(line.get("session")?.as_u64()?).ok()?;
        // Sessions are numbered in the order in which they began.
        if session > self.history.sessions.len() {
            return None;
        }
        if session == self.history.sessions.len() {
            self.history.session();
        }
        let command =
            |words: &Value| words.as_array()?.iter().map(|word| Some(bytes(word)?.into())).collect();
        let commands = line.get("commands")?.as_array()?.iter().map(command).collect::<Option<_>>()?;
        let asked_us = line.get("asked")?.as_u64()?;
        let operation = self.asked(session, datacenter(line.get("datacenter")?)?, asked_us, commands);
        for told in line.get("answers")?.as_array()? {
            let [at_us, told] = told.as_array()?.as_slice() else { return None };
            self.answered(operation, at_us.as_u64()?, answer(told)?);
        }
        let told = self.history.said.get(&operation).map_or(0, Vec::len);
        (told <= self.history.operations[operation].commands.len()).then_some(())
    }
}

fn is_log(command: &Args) -> bool {
    command.get(1).is_some_and(|word| &word[..] == b"LOG")
}

fn datacenter(value: &Value) -> Option<DatacenterId> {
    u8::try_from(value.as_u64()?).ok().map(DatacenterId)
}

/// Bytes as text, or as numbers where they are none.
fn text(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => json!({ "bytes": bytes }),
    }
}

fn bytes(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => Some(text.clone().into_bytes()),
        Value::Object(map) => {
            let bytes = map.get("bytes")?.as_array()?.iter();
            bytes.map(|byte| u8::try_from(byte.as_u64()?).ok()).collect()
        }
        _ => None,
    }
}

fn value(answer: &Answer) -> Value {
    match answer {
        Answer::Status(words) => json!({ "status": words }),
        Answer::Error(words) => json!({ "error": words }),
        Answer::Integer(number) => json!(number),
        Answer::Bulk(bytes) => text(bytes),
        Answer::Nil => Value::Null,
        Answer::Array(items) => items.iter().map(value).collect(),
    }
}

fn answer(value: &Value) -> Option<Answer> {
    let words = |map: &Map<String, Value>, name: &str| map.get(name)?.as_str().map(str::to_owned);
    Some(match value {
        Value::Null => Answer::Nil,
        Value::Number(number) => Answer::Integer(number.as_i64()?),
        Value::Array(items) => Answer::Array(items.iter().map(answer).collect::<Option<_>>()?),
        Value::Object(map) if map.contains_key("status") => Answer::Status(words(map, "status")?),
        Value::Object(map) if map.contains_key("error") => Answer::Error(words(map, "error")?),
        other => Answer::Bulk(bytes(other)?),
    })
}

#[cfg(test)]
mod tests;
