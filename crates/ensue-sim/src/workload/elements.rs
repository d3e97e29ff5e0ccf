//! What clients ask of lists.
//!
//! In `q0` and `q1` each element is pushed once, so that each read tells what it read from, and in which
//! order. In `mq0` and `mq1` everything goes, and only convergence is checked.

use super::command::{Command, Expect};
use super::mix::{Draft, Drawer, Kind};
use super::model::bulk;
use crate::oracle::history::Written;
use crate::oracle::values::value_of;
use crate::resp::Answer;
use std::collections::VecDeque;

impl Drawer<'_> {
    pub(super) fn element(&mut self, draft: &mut Draft, kind: Kind) {
        let key = format!("q{}", self.random.index(2));
        let known = self.keys.members.entry(key.clone()).or_default();
        match kind {
            Kind::ElementPush => {
                let element = value_of(self.history.next());
                let location = self.history.location(&format!("{key}/{element}"));
                let pivot = known.last().map(|(pivot, ..)| pivot.clone());
                known.push((element.clone(), location, self.history.next()));
                // Within a transaction it must be certain that it is put.
                let pivot = pivot.filter(|_| !draft.multi);
                let (text, expect) = match (self.random.below(10), pivot) {
                    (0, Some(pivot)) => {
                        (format!("LINSERT {key} BEFORE {pivot} {element}"), Expect::Inserted(location))
                    }
                    (1, Some(pivot)) => {
                        (format!("LINSERT {key} AFTER {pivot} {element}"), Expect::Inserted(location))
                    }
                    (2..5, _) => (format!("LPUSH {key} {element}"), Expect::Integer),
                    _ => (format!("RPUSH {key} {element}"), Expect::Integer),
                };
                draft.commands.push(Command::new(&text, expect));
                draft.writes.push((location, Written::Value));
            }
            Kind::ElementDelete if !known.is_empty() => {
                // Recent elements are wanted: old ones are mostly gone.
                let recent = known.len() - known.len().min(6);
                let at = recent + self.random.index(known.len() - recent);
                let (element, location, _) = known[at].clone();
                let text = format!("LREM {key} 0 {element}");
                draft.commands.push(Command::new(&text, Expect::Deleted(location)));
                draft.writes.push((location, Written::Nothing));
            }
            // Which elements there can be is known when the answer comes.
            _ => {
                let text = format!("LRANGE {key} 0 -1");
                draft.commands.push(Command::new(&text, Expect::Elements(key, Vec::new())));
            }
        }
    }

    /// Pops that wait for a while, for what anybody pushes or adds.
    pub(super) fn wait(&mut self, draft: &mut Draft) {
        let number = self.random.index(2);
        let (ms, other) = (self.random.between(1, 40), self.random.index(2));
        let timeout = format!("0.{ms:03}");
        let text = match self.random.below(6) {
            0 | 1 => format!("BLPOP mq{number} {timeout}"),
            2 => format!("BRPOP mq{number} {timeout}"),
            3 if self.owners.of("mq0") == self.owners.of("mq1") => {
                format!("BLMOVE mq{number} mq{other} LEFT RIGHT {timeout}")
            }
            3 => format!("BLMOVE mq{number} mq{number} LEFT RIGHT {timeout}"),
            4 => format!("BLMPOP {timeout} 1 mq{number} RIGHT COUNT 2"),
            _ => format!("BZPOPMIN mz{number} {timeout}"),
        };
        draft.commands.push(Command::new(&text, Expect::Anything));
    }

    /// Pushes, pops, changes in the middle, moves and deadlines by everyone.
    pub(super) fn any_elements(&mut self, draft: &mut Draft) {
        let key = format!("mq{}", self.random.index(2));
        let (number, digit) = (self.random.below(100), self.random.below(10));
        let text = match self.random.below(14) {
            0..3 => format!("RPUSH {key} {number} {digit}"),
            3 | 4 => format!("LPUSH {key} {number} {digit}"),
            5 => format!("LPOP {key} 2"),
            6 => format!("RPOP {key}"),
            7 => format!("LINSERT {key} BEFORE {digit} {number}"),
            8 => format!("LINSERT {key} AFTER {digit} {number}"),
            9 => format!("RPUSHX {key} {number}"),
            10 => format!("LREM {key} 1 {digit}"),
            11 => format!("RPOPLPUSH {key} {key}"),
            12 => match digit {
                0 => format!("DEL {key}"),
                1 => format!("PEXPIRE {key} {}", 20 * number),
                _ => format!("LTRIM {key} 0 {number}"),
            },
            _ => format!("LRANGE {key} 0 -1"),
        };
        draft.commands.push(Command::new(&text, Expect::Anything));
    }
}

/// What Redis makes of a list, and its answer.
pub(super) fn in_model(
    elements: &mut VecDeque<String>,
    name: &str,
    key: &str,
    rest: &[String],
) -> Option<Answer> {
    let length = |elements: &VecDeque<String>| Answer::Integer(elements.len() as i64);
    let element = |element: Option<String>| element.map_or(Answer::Nil, |text| bulk(&text));
    Some(match name {
        "RPUSH" => {
            elements.extend(rest.iter().cloned());
            length(elements)
        }
        "LPUSH" => {
            rest.iter().for_each(|text| elements.push_front(text.clone()));
            length(elements)
        }
        "LPOP" => element(elements.pop_front()),
        "RPOP" => element(elements.pop_back()),
        "BLPOP" => match elements.pop_front() {
            Some(text) => Answer::Array(vec![bulk(key), bulk(&text)]),
            None => Answer::Nil,
        },
        "LLEN" => length(elements),
        "LINDEX" => element(elements.get(rest.first()?.parse::<usize>().ok()?).cloned()),
        "LRANGE" => Answer::Array(elements.iter().map(|text| bulk(text)).collect()),
        "LINSERT" if elements.is_empty() => Answer::Integer(0),
        "LINSERT" => match elements.iter().position(|text| *text == rest[1]) {
            Some(place) => {
                elements.insert(place, rest[2].clone());
                length(elements)
            }
            None => Answer::Integer(-1),
        },
        "LSET" => {
            *elements.get_mut(rest.first()?.parse::<usize>().ok()?)? = rest[1].clone();
            Answer::Status("OK".to_owned())
        }
        "LREM" => {
            let before = elements.len();
            elements.retain(|text| *text != rest[1]);
            Answer::Integer((before - elements.len()) as i64)
        }
        _ => return None,
    })
}
