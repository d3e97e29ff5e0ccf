//! Keys whose conflicting values are folded by a handler: of those that are built in two a handler, named by its first
//! letter, and one of each Lua text. Their values tell who wrote them.

use super::values;
use crate::oracle::history::{Folded, OperationIndex};
use crate::random::Random;
use crate::resp::Answer;

/// Keys of `union`, `max`, `min` and `concat-sorted`. The registers of all protocols have `newest`.
#[cfg(not(feature = "scripts"))]
pub const KEYS: [&str; 8] = ["u0", "u1", "x0", "x1", "i0", "i1", "l0", "l1"];
/// And those of Lua texts.
#[cfg(feature = "scripts")]
pub const KEYS: [&str; 13] =
    ["u0", "u1", "x0", "x1", "i0", "i1", "l0", "l1", "jg0", "js0", "ju0", "jn0", "jo0"];

/// A number's last digits are its writer's.
const WRITERS: u64 = 10_000_000;

/// What is made of the values of a key, as the oracle knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maker {
    Union,
    Max,
    Min,
    Lines,
    Longest,
    Sum,
    /// The greatest if all are numbers; it fails on others, so that the last writer's is shown.
    NumbersOnly,
    /// All of them, in the order of their stamps.
    InOrder,
}

impl Maker {
    pub fn of(key: &str) -> Maker {
        match key.as_bytes() {
            [b'u', ..] | [b'j', b'u', ..] => Maker::Union,
            [b'x', ..] => Maker::Max,
            [b'i', ..] => Maker::Min,
            [b'j', b'g', ..] => Maker::Longest,
            [b'j', b's', ..] => Maker::Sum,
            [b'j', b'n', ..] => Maker::NumbersOnly,
            [b'j', b'o', ..] => Maker::InOrder,
            _ => Maker::Lines,
        }
    }

    fn is_of_numbers(self) -> bool {
        matches!(self, Maker::Max | Maker::Min | Maker::Sum | Maker::NumbersOnly)
    }

    /// What parts the values in one that is made of several; nothing if no value can be found in it.
    fn separator(self) -> Option<char> {
        match self {
            Maker::Sum => None,
            Maker::Union | Maker::InOrder => Some(','),
            _ => Some('\n'),
        }
    }
}

/// The handlers of every world: of these keys, and of some whose values the oracle does not understand, that must
/// become equal.
pub fn handlers() -> Vec<(String, String)> {
    let handlers = [
        ("u*", "union"),
        ("x*", "max"),
        ("i*", "min"),
        ("l*", "concat-sorted"),
        ("jg*", "lua-longest"),
        ("js*", "lua-sum"),
        ("ju*", "lua-union"),
        ("jn*", "lua-numbers-only"),
        ("jo*", "lua-in-order"),
        ("m1", "max"),
        ("md1", "min"),
        ("f1", "concat-sorted"),
        ("f2", "max"),
        ("f3", "lua-longest"),
        ("fh*", "union"),
        ("fc1", "max"),
        ("fc2", "min"),
        ("fc3", "lua-sum"),
        ("fz3", "lua-longest"),
        ("s1", "union"),
    ];
    handlers.map(|(pattern, name)| (pattern.to_owned(), name.to_owned())).to_vec()
}

/// A value that this operation alone writes there. A few of those that are to be numbers are none, and more where a
/// handler fails on them.
pub fn value_of(key: &str, index: OperationIndex, random: &mut Random) -> String {
    let maker = Maker::of(key);
    let is_none = if maker == Maker::NumbersOnly { 300 } else { 50 };
    if maker.is_of_numbers() && !random.chance(is_none) {
        return (random.between(1, 9) * WRITERS + index as u64).to_string();
    }
    match maker {
        Maker::Longest => values::value_of(index) + &LENGTHENS.to_string().repeat(random.index(4)),
        _ => values::value_of(index),
    }
}

/// What makes a value longer and no other.
const LENGTHENS: char = '-';

fn writer_of(text: &str) -> OperationIndex {
    let of_number = || Some((text.parse::<u64>().ok()? % WRITERS) as OperationIndex);
    values::writer_of(text.trim_end_matches(LENGTHENS)).or_else(of_number).unwrap_or(OperationIndex::MAX)
}

/// What a read of such a key says.
pub fn read(key: &'static str, answer: &Answer) -> Option<Folded> {
    let text = match answer {
        Answer::Nil => return Some(Folded { key, answer: None, values: Vec::new() }),
        _ => answer.text()?,
    };
    let parts = Maker::of(key).separator().map(|separator| text.split(separator));
    let values = parts.into_iter().flatten().map(|part| (part.to_owned(), writer_of(part))).collect();
    Some(Folded { key, answer: Some(text.to_owned()), values })
}

/// How a delete begins among values that stand beside each other.
pub const DELETED: &str = "deleted-by:";

/// The values in an answer to `CAUSAL CONFLICTS`, and who deleted, in the order of their stamps. Deletes alone may be
/// forgotten anywhere.
pub fn beside(answer: &Answer) -> Vec<String> {
    let Answer::Array(lines) = answer else { return vec![answer.to_string()] };
    let after = |line: &Answer, name: &str| {
        let (_, rest) = line.text()?.split_once(name)?;
        Some(rest.split('"').next()?.to_owned())
    };
    let value = |line: &Answer| after(line, "\"value\":\"");
    let delete = |line: &Answer| Some(format!("{DELETED}{}", after(line, "\"operation\":\"")?));
    let all: Vec<String> = lines.iter().filter_map(|line| value(line).or_else(|| delete(line))).collect();
    match all.iter().all(|one| one.starts_with(DELETED)) {
        true => Vec::new(),
        false => all,
    }
}
