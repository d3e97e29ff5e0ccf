//! A violation in words: what was done, in the order of the file, and why that cannot be.

use crate::history::{History, Key, Operation, Outcome, TransactionIndex, Value};
use crate::report::{Pattern, Relation, RelationKind, Violation};
use std::fmt::Write;

/// The sentence that says what is wrong.
pub(crate) fn summary(history: &History, violation: &Violation) -> String {
    let mut demands = violation.relations.iter().filter_map(|relation| match relation.kind {
        RelationKind::OlderThan { key, by } if relation.on_cycle => Some((relation, key, by)),
        _ => None,
    });
    let older = demands.next();
    // One read alone can be called wrong; of several that contradict each other, none.
    let are_several = older.is_some_and(|(_, _, by)| demands.any(|(_, _, other)| other != by));
    match (violation.pattern, older) {
        (Pattern::CyclicCO, _) => {
            "session order and reads-from form a cycle: something was seen before its cause".into()
        }
        (Pattern::WriteCOInitRead, Some((relation, key, by))) => format!(
            "{} read `{}` as (absent), although {} was in its past",
            actor(history, by),
            history.key_name(key),
            written(history, relation.from, key)
        ),
        (Pattern::WriteCORead, Some((relation, key, by))) => format!(
            "{} read {}, although {}, which overwrites it, was in its past",
            actor(history, by),
            written(history, relation.to, key),
            written(history, relation.from, key)
        ),
        (Pattern::CyclicCF, Some((_, key, _))) => {
            format!("no order of the concurrent writes of `{}` explains all reads", history.key_name(key))
        }
        (_, Some(_)) if are_several => "no order of the writes explains all these reads".into(),
        (Pattern::FracturedRead, Some((relation, key, by))) => format!(
            "{} did not read of one moment: it read {}, although it had to know {}",
            actor(history, by),
            written(history, relation.to, key),
            written(history, relation.from, key)
        ),
        (_, Some((relation, key, by))) => format!(
            "{} read {}, although it had to know {}",
            actor(history, by),
            written(history, relation.to, key),
            written(history, relation.from, key)
        ),
        (_, None) => violation.pattern.to_string(),
    }
}

/// The whole violation, a line each: the operations, then what follows from them.
pub fn lines(history: &History, violation: &Violation) -> Vec<String> {
    let mut lines = Vec::new();
    let width = violation
        .transactions
        .iter()
        .map(|&of| history.session_name(history.transaction(of).session).chars().count())
        .max()
        .unwrap_or(0);
    for &transaction in &violation.transactions {
        lines.push(transaction_line(history, transaction, width));
    }
    let (cycle, rest): (Vec<&Relation>, Vec<&Relation>) =
        violation.relations.iter().partition(|relation| relation.on_cycle);
    if !cycle.is_empty() {
        lines.push(String::new());
    }
    for relation in cycle {
        lines.push(relation_line(history, relation, &rest));
    }
    lines
}

fn transaction_line(history: &History, index: TransactionIndex, width: usize) -> String {
    let transaction = history.transaction(index);
    let mut line = match transaction.line {
        0 => format!("#{:<6}", index.0),
        number => format!("line {number:<6}"),
    };
    let name = history.session_name(transaction.session);
    let _ = write!(line, " {name:width$}");
    if let Some(datacenter) = transaction.datacenter {
        let _ = write!(line, " @{}", history.datacenters[usize::from(datacenter)]);
    }
    let _ = write!(line, "  {}", operations(history, &transaction.operations));
    for merged in &transaction.merges {
        let _ = write!(line, " [shows the token of {}]", actor(history, *merged));
    }
    match transaction.outcome {
        Outcome::Committed => {}
        Outcome::Unknown => line.push_str(" [outcome unknown]"),
        Outcome::Failed => line.push_str(" [failed]"),
    }
    if transaction.is_final {
        line.push_str(" [final]");
    }
    line
}

/// Most operations of a transaction that are shown.
const SHOWN_MAX: usize = 12;

fn operations(history: &History, operations: &[Operation]) -> String {
    let shown: Vec<String> =
        operations.iter().take(SHOWN_MAX).map(|&operation| operation_text(history, operation)).collect();
    let mut text = shown.join(", ");
    if operations.len() > SHOWN_MAX {
        let _ = write!(text, ", and {} more", operations.len() - SHOWN_MAX);
    }
    text
}

/// An operation as people write it.
pub fn operation_text(history: &History, operation: Operation) -> String {
    match operation {
        Operation::Read { key, value } => {
            format!("read {}={}", history.key_name(key), value_text(history, value))
        }
        Operation::Write { key, value } => {
            format!("write {}={}", history.key_name(key), value_text(history, value))
        }
        Operation::Add { key, delta } => format!("add {delta} to {}", history.key_name(key)),
        Operation::Count { key, value } => format!("count {}={value}", history.key_name(key)),
        Operation::Push { key, element } => {
            format!("push {} to {}", value_text(history, element), history.key_name(key))
        }
        Operation::Pop { key, element } => {
            format!("pop {} from {}", value_text(history, element), history.key_name(key))
        }
        Operation::Hold { key, element } => {
            format!("see {} in {}", value_text(history, element), history.key_name(key))
        }
    }
}

fn relation_line(history: &History, relation: &Relation, rest: &[&Relation]) -> String {
    let (from, to) = (relation.from, relation.to);
    match relation.kind {
        RelationKind::Session => {
            format!("{} comes before {} in its session", place(history, from), place(history, to))
        }
        RelationKind::Merge => {
            format!(
                "{} comes before {}, to which its token was shown",
                place(history, from),
                place(history, to)
            )
        }
        RelationKind::RealTime => {
            let (ended_us, began_us) = (history.transaction(from).end_us, history.transaction(to).start_us);
            let (from, to) = (place(history, from), place(history, to));
            format!("{from} ended at {ended_us}, before {to} began at {began_us}")
        }
        RelationKind::ReadsFrom(key) => format!(
            "{} comes before {}, which read its `{}`",
            place(history, from),
            place(history, to),
            history.key_name(key)
        ),
        RelationKind::OlderThan { key, by } => {
            let newer = match to {
                TransactionIndex::INITIAL => {
                    format!("(absent), the initial state of `{}`", history.key_name(key))
                }
                to => written(history, to, key),
            };
            let mut line = format!(
                "{} must be older than {newer}: {} read that, and had the other in its past",
                written(history, from, key),
                place(history, by)
            );
            let chain = chain(history, from, by, rest);
            if !chain.is_empty() {
                let _ = write!(line, " ({chain})");
            }
            line
        }
    }
}

/// How `from` came into the past of `to`, by the relations that are not on the cycle.
fn chain(history: &History, from: TransactionIndex, to: TransactionIndex, rest: &[&Relation]) -> String {
    let mut words = vec![place(history, from)];
    let mut at = from;
    for _ in 0..rest.len() {
        let direct = rest.iter().find(|relation| relation.from == at && relation.to == to);
        let Some(next) = direct.or_else(|| rest.iter().find(|relation| relation.from == at)) else { break };
        let how = match next.kind {
            RelationKind::Session => "then",
            RelationKind::Merge => "token to",
            _ => "read by",
        };
        words.push(format!("{how} {}", place(history, next.to)));
        at = next.to;
        if at == to {
            break;
        }
    }
    if at == to && words.len() > 1 { words.join(", ") } else { String::new() }
}

/// A transaction by its session and line.
fn actor(history: &History, transaction: TransactionIndex) -> String {
    let of = history.transaction(transaction);
    format!("{} ({})", history.session_name(of.session), place(history, transaction))
}

/// A transaction by its line.
pub(crate) fn place(history: &History, transaction: TransactionIndex) -> String {
    match history.transaction(transaction).line {
        0 => format!("#{}", transaction.0),
        line => format!("line {line}"),
    }
}

/// `x=1 (line 3)`, what a transaction left at a key.
fn written(history: &History, transaction: TransactionIndex, key: Key) -> String {
    let operations = &history.transaction(transaction).operations;
    let value = operations.iter().rev().find_map(|operation| match *operation {
        Operation::Write { key: written, value } if written == key => Some(value),
        _ => None,
    });
    let value = value.map_or_else(String::new, |value| format!("={}", value_text(history, value)));
    format!("{}{value} ({})", history.key_name(key), place(history, transaction))
}

pub(crate) fn value_text(history: &History, value: Value) -> &str {
    match value {
        Value::ABSENT => "(absent)",
        value => history.value_text(value),
    }
}
