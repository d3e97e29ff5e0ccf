//! Keys whose conflicting values are folded by a handler: two a handler, named by its first letter, and values that
//! tell who wrote them.

use super::values;
use crate::oracle::history::{Folded, OperationIndex};
use crate::random::Random;
use crate::resp::Answer;

/// Keys of `union`, `max`, `min` and `concat-sorted`. The registers of all protocols have `newest`.
pub const KEYS: [&str; 8] = ["u0", "u1", "x0", "x1", "i0", "i1", "l0", "l1"];

/// A number's last digits are its writer's.
const WRITERS: u64 = 10_000_000;

/// The handlers of every world: of these keys, and of some whose values the oracle does not understand, that must
/// become equal.
pub fn handlers() -> Vec<(String, String)> {
    let handlers = [
        ("u*", "union"),
        ("x*", "max"),
        ("i*", "min"),
        ("l*", "concat-sorted"),
        ("m1", "max"),
        ("md1", "min"),
        ("f1", "concat-sorted"),
        ("f2", "max"),
        ("fh*", "union"),
        ("fc1", "max"),
        ("fc2", "min"),
        ("s1", "union"),
    ];
    handlers.map(|(pattern, name)| (pattern.to_owned(), name.to_owned())).to_vec()
}

fn is_number(key: &str) -> bool {
    key.starts_with(['x', 'i'])
}

/// A value that this operation alone writes there. A few of those that are to be numbers are none.
pub fn value_of(key: &str, index: OperationIndex, random: &mut Random) -> String {
    if is_number(key) && !random.chance(50) {
        return (random.between(1, 9) * WRITERS + index as u64).to_string();
    }
    values::value_of(index)
}

fn writer_of(text: &str) -> OperationIndex {
    let of_number = || Some((text.parse::<u64>().ok()? % WRITERS) as OperationIndex);
    values::writer_of(text).or_else(of_number).unwrap_or(OperationIndex::MAX)
}

/// What a read of such a key says.
pub fn read(key: &'static str, answer: &Answer) -> Option<Folded> {
    let text = match answer {
        Answer::Nil => return Some(Folded { key, answer: None, values: Vec::new() }),
        _ => answer.text()?,
    };
    let separator = if key.starts_with('u') { ',' } else { '\n' };
    let values = text.split(separator).map(|part| (part.to_owned(), writer_of(part))).collect();
    Some(Folded { key, answer: Some(text.to_owned()), values })
}

/// How a delete begins among values that stand beside each other.
pub const DELETED: &str = "deleted-by:";

/// The values in an answer to `CAUSAL CONFLICTS`, and who deleted, sorted. Deletes alone may be forgotten anywhere.
pub fn beside(answer: &Answer) -> Vec<String> {
    let Answer::Array(lines) = answer else { return vec![answer.to_string()] };
    let after = |line: &Answer, name: &str| {
        let (_, rest) = line.text()?.split_once(name)?;
        Some(rest.split('"').next()?.to_owned())
    };
    let value = |line: &Answer| after(line, "\"value\":\"");
    let delete = |line: &Answer| Some(format!("{DELETED}{}", after(line, "\"operation\":\"")?));
    let mut all: Vec<String> = lines.iter().filter_map(|line| value(line).or_else(|| delete(line))).collect();
    all.sort();
    match all.iter().all(|one| one.starts_with(DELETED)) {
        true => Vec::new(),
        false => all,
    }
}
