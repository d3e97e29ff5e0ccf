//! A history to lines, one a transaction.

use super::reader::VERSION;
use crate::format::WriteError;
use crate::history::{History, Operation, Outcome, Transaction, Value};
use std::io::{self, Write};

/// Writes all transactions in the order of the history, between the events `history` and `end`.
pub fn write(history: &History, output: &mut dyn Write) -> Result<(), WriteError> {
    let mut names: Vec<&str> = history.sessions.iter().map(|session| session.name.as_str()).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        let message = format!("two sessions have the name `{}`", pair[0]);
        return Err(WriteError::NotExpressible(message));
    }
    let mut is_merged = vec![false; history.transactions.len()];
    for merged in history.transactions.iter().flat_map(|transaction| &transaction.merges) {
        is_merged[merged.0 as usize] = true;
    }
    writeln!(output, r#"{{"event":"history","version":{VERSION}}}"#)?;
    for (index, transaction) in history.transactions.iter().enumerate() {
        let name = is_merged[index].then_some(index);
        write_transaction(history, transaction, name, output)?;
    }
    for left_out in &history.left_out {
        let key = left_out.key.as_ref().map_or(String::new(), |key| format!(r#""key":{},"#, quoted(key)));
        writeln!(output, r#"{{"event":"left-out",{key}"reason":{}}}"#, quoted(&left_out.reason))?;
    }
    if history.truncated_at_line.is_none() {
        let count = history.transactions.len();
        writeln!(output, r#"{{"event":"end","transactions":{count}}}"#)?;
    }
    Ok(())
}

fn write_transaction(
    history: &History,
    transaction: &Transaction,
    name: Option<usize>,
    output: &mut dyn Write,
) -> io::Result<()> {
    write!(output, r#"{{"session":{}"#, quoted(history.session_name(transaction.session)))?;
    if let Some(name) = name {
        write!(output, r#","transaction":{name}"#)?;
    }
    if !transaction.merges.is_empty() {
        let merges: Vec<String> = transaction.merges.iter().map(|merged| merged.0.to_string()).collect();
        write!(output, r#","merges":[{}]"#, merges.join(","))?;
    }
    if let Some(datacenter) = transaction.datacenter {
        write!(output, r#","datacenter":{}"#, quoted(&history.datacenters[usize::from(datacenter)]))?;
    }
    if transaction.start_us != 0 || transaction.end_us != 0 {
        write!(output, r#","start":{}"#, transaction.start_us)?;
        match transaction.end_us {
            u64::MAX => write!(output, r#","end":null"#)?,
            end => write!(output, r#","end":{end}"#)?,
        }
    }
    match transaction.outcome {
        Outcome::Committed => {}
        Outcome::Unknown => write!(output, r#","status":"unknown""#)?,
        Outcome::Failed => write!(output, r#","status":"failed""#)?,
    }
    if transaction.is_final {
        write!(output, r#","final":true"#)?;
    }
    write!(output, r#","operations":["#)?;
    for (place, operation) in transaction.operations.iter().enumerate() {
        if place > 0 {
            write!(output, ",")?;
        }
        write_operation(history, *operation, transaction.outcome == Outcome::Committed, output)?;
    }
    writeln!(output, "]}}")
}

fn write_operation(
    history: &History,
    operation: Operation,
    is_answered: bool,
    output: &mut dyn Write,
) -> io::Result<()> {
    let key = quoted(history.key_name(operation.key()));
    let value_text = |value: Value| match value {
        Value::ABSENT => "null".to_string(),
        value => quoted(history.value_text(value)),
    };
    let (word, element) = match operation {
        Operation::Read { value, .. } => ("read", value),
        Operation::Write { value, .. } => ("write", value),
        Operation::Add { delta, .. } => return write!(output, r#"{{"add":{key},"delta":{delta}}}"#),
        Operation::Count { value, .. } => return write!(output, r#"{{"count":{key},"value":{value}}}"#),
        Operation::Push { element, .. } => ("push", element),
        Operation::Pop { element, .. } => ("pop", element),
        Operation::Hold { element, .. } => ("hold", element),
    };
    if element == Value::ABSENT && operation.is_of_queue() && !is_answered {
        return write!(output, r#"{{"{word}":{key}}}"#);
    }
    write!(output, r#"{{"{word}":{key},"value":{}}}"#, value_text(element))
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("text is always JSON")
}
