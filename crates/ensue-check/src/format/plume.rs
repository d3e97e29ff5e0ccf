//! The text form of the checker Plume, which other checkers read too: `r(KEY,VALUE,SESSION,TRANSACTION)` or
//! `w(KEY,VALUE,SESSION,TRANSACTION)`, one operation a line, all of them unsigned integers.
//!
//! The order of the lines is the order within a session; the lines of a transaction stand together. Transaction -1
//! marks the write of a transaction that failed. Value 0 is the initial state. What the form cannot say is not written:
//! counters, tokens, outcomes that are unknown.

use super::{ReadError, WriteError};
use crate::builder::Builder;
use crate::history::{History, Key, Operation, Outcome, SessionIndex, Transaction, TransactionIndex, Value};
use crate::tables::Set;
use std::io::{BufRead, Write};

/// The transaction of a write that failed.
const FAILED: i64 = -1;

/// One line.
struct Line {
    is_read: bool,
    key: u64,
    value: u64,
    session: u64,
    transaction: i64,
}

pub fn read(input: &mut dyn BufRead) -> Result<History, ReadError> {
    let mut builder = Builder::new();
    let mut text = String::new();
    let mut number = 0;
    let mut open: Option<(i64, SessionIndex, TransactionIndex)> = None;
    let mut closed: Set<i64> = Set::default();
    while input.read_line(&mut text)? > 0 {
        number += 1;
        let is_whole = text.ends_with('\n');
        if !text.trim().is_empty() {
            let line = match parse(text.trim_end(), number) {
                Ok(line) => line,
                Err(_) if !is_whole => {
                    builder.truncated_at(number);
                    break;
                }
                Err(error) => return Err(error),
            };
            let session = builder.session(&line.session.to_string());
            let current = match open {
                Some((transaction, of, index)) if transaction == line.transaction && of == session => index,
                _ => {
                    if line.transaction != FAILED && !closed.insert(line.transaction) {
                        let message =
                            format!("the lines of transaction {} do not stand together", line.transaction);
                        return Err(wrong(number, 1, message));
                    }
                    let outcome =
                        if line.transaction == FAILED { Outcome::Failed } else { Outcome::Committed };
                    builder.add(Transaction { line: number, outcome, ..Transaction::committed(session) })
                }
            };
            open = (line.transaction != FAILED).then_some((line.transaction, session, current));
            let operation = operation(&mut builder, &line);
            builder.transaction_mut(current).operations.push(operation);
        }
        text.clear();
    }
    Ok(builder.finish())
}

fn operation(builder: &mut Builder, line: &Line) -> Operation {
    let key = line.key.to_string();
    let text = line.value.to_string();
    let value = (line.value != 0).then_some(text.as_str());
    if line.is_read { builder.read(&key, value) } else { builder.write(&key, value) }
}

fn parse(text: &str, number: u32) -> Result<Line, ReadError> {
    let column = |part: &str| (part.as_ptr() as usize - text.as_ptr() as usize) as u32 + 1;
    let is_read = match text.get(..2) {
        Some("r(") => true,
        Some("w(") => false,
        _ => return Err(wrong(number, 1, "expected `r(` or `w(`".into())),
    };
    let Some(inside) = text[2..].strip_suffix(')') else {
        return Err(wrong(number, text.len() as u32, "expected `)` at the end".into()));
    };
    let parts: Vec<&str> = inside.split(',').collect();
    let &[key, value, session, transaction] = parts.as_slice() else {
        let message = format!("expected key, value, session and transaction, found {} numbers", parts.len());
        return Err(wrong(number, 3, message));
    };
    let natural = |part: &str| {
        part.trim()
            .parse::<u64>()
            .map_err(|_| wrong(number, column(part), format!("`{part}` is no unsigned integer of 64 bits")))
    };
    let (key, value, session) = (natural(key)?, natural(value)?, natural(session)?);
    let transaction = match transaction.trim().parse::<i64>() {
        Ok(transaction) if transaction >= FAILED => transaction,
        _ => {
            let message =
                format!("`{transaction}` is no transaction: expected -1 or an unsigned integer below 2^63");
            return Err(wrong(number, column(transaction), message));
        }
    };
    Ok(Line { is_read, key, value, session, transaction })
}

fn wrong(line: u32, column: u32, message: String) -> ReadError {
    ReadError::Line { line, column, message }
}

/// Writes keys and values as their numbers. An unknown transaction is written as committed if somebody read it, else
/// left out, as the other checkers expect.
pub fn write(history: &History, output: &mut dyn Write) -> Result<(), WriteError> {
    let read = values_read(history);
    for (index, transaction) in history.transactions.iter().enumerate() {
        if !transaction.merges.is_empty() {
            return Err(not_expressible(transaction, "a token that was shown"));
        }
        let is_read = |operation: &Operation| match *operation {
            Operation::Write { key, value } => read.contains(&(key, value)),
            _ => false,
        };
        if transaction.outcome == Outcome::Unknown && !transaction.operations.iter().any(is_read) {
            continue;
        }
        let name = if transaction.outcome == Outcome::Failed { FAILED } else { index as i64 };
        for operation in &transaction.operations {
            let (letter, key, value) = match *operation {
                Operation::Read { key, value } => ('r', key, value),
                Operation::Write { value: Value::ABSENT, .. } => {
                    return Err(not_expressible(transaction, "a delete"));
                }
                Operation::Write { key, value } => ('w', key, value),
                Operation::Add { .. } | Operation::Count { .. } => {
                    return Err(not_expressible(transaction, "a counter"));
                }
                Operation::Push { .. } | Operation::Pop { .. } | Operation::Hold { .. } => {
                    return Err(not_expressible(transaction, "a queue"));
                }
            };
            writeln!(output, "{letter}({},{},{},{name})", key.0, value.0, transaction.session.0)?;
        }
    }
    Ok(())
}

fn values_read(history: &History) -> Set<(Key, Value)> {
    let committed = history.transactions.iter().filter(|of| of.outcome == Outcome::Committed);
    let operations = committed.flat_map(|transaction| &transaction.operations);
    let reads = operations.filter_map(|operation| match *operation {
        Operation::Read { key, value } => Some((key, value)),
        _ => None,
    });
    reads.collect()
}

fn not_expressible(transaction: &Transaction, what: &str) -> WriteError {
    let line = transaction.line;
    WriteError::NotExpressible(format!("line {line}: {what} cannot be said in this form"))
}

#[cfg(test)]
mod tests;
