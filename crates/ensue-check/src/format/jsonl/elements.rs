//! What can only be said of a key when the whole file is read.
//!
//! A recorder that follows commands does not know what a key is. Three things are settled here. A key that is added to
//! is a counter, so what was read there are counts. The elements of the row `x` are the keys `x[...]`; a row that is
//! also used as a whole, such as by a delete, is left out with its elements, since what happened to them is not said.
//! And the operations on keys that are left out are dropped.

use crate::history::{History, LeftOut, Operation, Outcome, Value};
use std::collections::BTreeSet;

/// What is known of a key.
#[derive(Clone, Copy, Default)]
struct Use {
    is_counter: bool,
    is_written: bool,
    /// Something was read there that is no number.
    is_text: bool,
    is_queue: bool,
    /// Something was read there as of a register.
    is_read: bool,
    is_left_out: bool,
}

pub(super) fn settle(history: &mut History) {
    let mut uses = uses(history);
    if history.left_out.iter().any(|known| known.key.is_none()) {
        uses.iter_mut().for_each(|found| found.is_left_out = true);
    } else {
        leave_out_rows(history, &mut uses);
    }
    for (place, found) in uses.iter_mut().enumerate() {
        let is_both_counter = found.is_counter && (found.is_written || found.is_text);
        let is_both_queue = found.is_queue && (found.is_counter || found.is_written || found.is_read);
        if (is_both_counter || is_both_queue) && !found.is_left_out {
            found.is_left_out = true;
            let kind = if is_both_queue { "queue" } else { "counter" };
            let reason = format!("it is both a {kind} and a value");
            history.left_out.push(LeftOut { key: Some(history.keys[place].clone()), reason, line: 0 });
        }
    }
    if !uses.iter().any(|found| found.is_counter || found.is_left_out) {
        return;
    }
    for transaction in &mut history.transactions {
        transaction.operations.retain(|operation| !uses[operation.key().0 as usize].is_left_out);
        for operation in &mut transaction.operations {
            if let Operation::Read { key, value } = *operation {
                if uses[key.0 as usize].is_counter {
                    let value =
                        number(&history.values, value).expect("a counter that held text was left out");
                    *operation = Operation::Count { key, value };
                }
            }
        }
    }
}

fn uses(history: &History) -> Vec<Use> {
    let mut uses = vec![Use::default(); history.keys.len()];
    let operations = history
        .transactions
        .iter()
        .flat_map(|one| one.operations.iter().map(|operation| (one.outcome, operation)));
    for (outcome, operation) in operations {
        let found = &mut uses[operation.key().0 as usize];
        match *operation {
            Operation::Add { .. } | Operation::Count { .. } => found.is_counter = true,
            Operation::Write { .. } => found.is_written = true,
            Operation::Read { value, .. } => {
                found.is_text |= number(&history.values, value).is_none();
                found.is_read |= value != Value::ABSENT;
            }
            // What failed may have been refused because the key is no queue.
            Operation::Push { .. } | Operation::Pop { .. } | Operation::Hold { .. } => {
                found.is_queue |= outcome != Outcome::Failed;
            }
        }
    }
    uses
}

/// Leaves out what the file says, and rows that are used in two ways; each with its elements.
fn leave_out_rows(history: &mut History, uses: &mut [Use]) {
    let mut rows: BTreeSet<&str> = history.left_out.iter().filter_map(|known| known.key.as_deref()).collect();
    let mut elements: Vec<&str> = history.keys.iter().filter_map(|key| row_of(key)).collect();
    elements.sort_unstable();
    let mut torn = Vec::new();
    for key in &history.keys {
        if elements.binary_search(&key.as_str()).is_ok() && !rows.contains(key.as_str()) {
            torn.push(key.clone());
        }
    }
    rows.extend(torn.iter().map(String::as_str));
    for (place, key) in history.keys.iter().enumerate() {
        let row = row_of(key);
        uses[place].is_left_out = rows.contains(key.as_str()) || row.is_some_and(|row| rows.contains(row));
    }
    for row in torn {
        let reason = "it is used as a whole and by elements".into();
        history.left_out.push(LeftOut { key: Some(row), reason, line: 0 });
    }
}

/// `x` of `x[y]`. The first bracket that is not escaped begins the element, but for those of a keyspace: `[3]x[y]`.
pub(super) fn row_of(key: &str) -> Option<&str> {
    let inner = key.strip_suffix(']')?;
    let bytes = inner.as_bytes();
    let mut place = match bytes.first() {
        Some(b'[') => inner.find(']')? + 1,
        _ => 0,
    };
    while place < bytes.len() {
        match bytes[place] {
            b'\\' => place += 2,
            b'[' => return Some(&key[..place]),
            _ => place += 1,
        }
    }
    None
}

/// What a counter reads as. One that nobody added to holds nothing.
fn number(values: &[String], value: Value) -> Option<i64> {
    if value == Value::ABSENT { Some(0) } else { values[value.0 as usize].parse().ok() }
}

#[cfg(test)]
mod tests;
