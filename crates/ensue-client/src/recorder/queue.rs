//! Commands on lists that are used as queues: what went in, what came out, and what is in them.
//!
//! A command on a list arrives and then its answer; steps of single elements leave. At which end is not said. Whatever
//! changes a list in another way (`LSET`, `LTRIM`) is no [`QueuePlan`], and leaves the list out of the check.

use super::effect::{self, Step, content, integer, items, text};
use super::name;
use bytes::Bytes;
use ensue_resp::Request;
use ensue_resp::request::{List, WaitingPop};
use ensue_types::Reply;

/// Elements that a command may have taken without an answer, of all its queues together; beyond it, they are left out.
const UNKNOWN_MAX: usize = 1000;

/// A command on queues, before its answer is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum QueuePlan {
    /// Answers how many elements there are then; not a positive number if nothing was put in.
    Push { queue: String, elements: Vec<String> },
    /// Takes up to so many from the first queue that has some.
    Pop { queues: Vec<String>, most: usize, answer: Popped, keyspace: u8 },
    /// Takes this element out, so often if it is there; answers how often it was. Zero is as often as it is there.
    Remove { queue: String, element: String, most: usize },
    /// Answers the element.
    Move { from: String, to: String },
    /// Answers all elements.
    Read { queue: String },
}

/// The form of the answer to a pop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Popped {
    Element,
    Elements,
    /// The queue, and one element of it.
    NamedElement,
    /// The queue, and elements of it.
    NamedElements,
}

impl QueuePlan {
    pub(super) fn of(request: &Request, keyspace: u8) -> Option<QueuePlan> {
        let queue = |bytes: &Bytes| name::key(keyspace, bytes);
        let pop = |keys: &[Bytes], most, answer| {
            let queues = keys.iter().map(queue).collect();
            QueuePlan::Pop { queues, most, answer, keyspace }
        };
        Some(match request {
            Request::Elements(list) => match list {
                List::Push { key, values, .. } => {
                    let elements = values.iter().map(|value| name::value(value)).collect();
                    QueuePlan::Push { queue: queue(key), elements }
                }
                List::Insert { key, value, .. } => {
                    QueuePlan::Push { queue: queue(key), elements: vec![name::value(value)] }
                }
                List::Pop { key, count: None, .. } => pop(std::slice::from_ref(key), 1, Popped::Element),
                List::Pop { key, count: Some(most), .. } => {
                    pop(std::slice::from_ref(key), *most, Popped::Elements)
                }
                List::PopFirst { keys, count, .. } => pop(keys, *count, Popped::NamedElements),
                List::Remove { key, count, value } => QueuePlan::Remove {
                    queue: queue(key),
                    element: name::value(value),
                    most: usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX),
                },
                List::Move { source, target, .. } => {
                    QueuePlan::Move { from: queue(source), to: queue(target) }
                }
                List::Range { key, start: 0, stop: -1 } => QueuePlan::Read { queue: queue(key) },
                _ => return None,
            },
            Request::Blocking(blocking) => match &blocking.pop {
                WaitingPop::Element { keys, .. } => pop(keys, 1, Popped::NamedElement),
                WaitingPop::Elements { keys, count, .. } => pop(keys, *count, Popped::NamedElements),
                WaitingPop::Move { source, target, .. } => {
                    QueuePlan::Move { from: queue(source), to: queue(target) }
                }
                _ => return None,
            },
            _ => return None,
        })
    }

    /// What was done, by the answer; nothing if that is not understood.
    pub(super) fn done(&self, reply: &Reply) -> Option<Vec<Step>> {
        Some(match self {
            QueuePlan::Push { queue, elements } => match integer(reply)? {
                ..=0 => Vec::new(),
                _ => elements.iter().map(|element| push(queue, Some(element))).collect(),
            },
            QueuePlan::Pop { queues, most, answer, keyspace } => {
                popped(queues, *most, *answer, *keyspace, reply)?
            }
            QueuePlan::Remove { queue, element, .. } => {
                let count = usize::try_from(integer(reply)?).ok()?;
                vec![pop(queue, Some(Some(element.clone()))); count]
            }
            QueuePlan::Move { from, to } => match content(reply)? {
                None => vec![pop(from, Some(None))],
                Some(element) => vec![pop(from, Some(Some(element.clone()))), push(to, Some(&element))],
            },
            QueuePlan::Read { queue } => {
                let hold = |element| Step::Hold { queue: queue.clone(), element };
                match items(reply)? {
                    [] => vec![hold(None)],
                    items => items.iter().map(|item| Some(hold(Some(text(item)?)))).collect::<Option<_>>()?,
                }
            }
        })
    }

    /// What may have been done; nothing if that is too much to say.
    pub(super) fn possible(&self) -> Option<Vec<Step>> {
        Some(match self {
            QueuePlan::Push { queue, elements } => {
                elements.iter().map(|element| push(queue, Some(element))).collect()
            }
            QueuePlan::Pop { queues, most, .. } => {
                most.checked_mul(queues.len()).filter(|all| *all <= UNKNOWN_MAX)?;
                queues.iter().flat_map(|queue| vec![pop(queue, None); *most]).collect()
            }
            QueuePlan::Remove { most: 0, .. } => return None,
            QueuePlan::Remove { queue, most, .. } => {
                vec![pop(queue, None); Some(*most).filter(|most| *most <= UNKNOWN_MAX)?]
            }
            QueuePlan::Move { from, to } => vec![pop(from, None), push(to, None)],
            QueuePlan::Read { .. } => Vec::new(),
        })
    }

    pub(super) fn names(&self) -> Vec<String> {
        match self {
            QueuePlan::Push { queue, .. } | QueuePlan::Remove { queue, .. } => vec![queue.clone()],
            QueuePlan::Read { queue } => vec![queue.clone()],
            QueuePlan::Pop { queues, .. } => queues.clone(),
            QueuePlan::Move { from, to } => vec![from.clone(), to.clone()],
        }
    }

    /// Roughly what it costs to remember.
    pub(super) fn bytes(&self) -> usize {
        let elements = match self {
            QueuePlan::Push { elements, .. } => elements.as_slice(),
            QueuePlan::Remove { element, .. } => std::slice::from_ref(element),
            _ => &[],
        };
        self.names().iter().chain(elements).map(|text| text.len() + 24).sum()
    }
}

/// What came out. An answer with fewer elements than were asked for says that nothing is left.
fn popped(queues: &[String], most: usize, answer: Popped, keyspace: u8, reply: &Reply) -> Option<Vec<Step>> {
    let nothing = |queue: &String| pop(queue, Some(None));
    if matches!(reply, Reply::Nil | Reply::NilArray) {
        return Some(queues.iter().map(nothing).collect());
    }
    let (queue, elements) = match answer {
        Popped::Element => (queues.first()?, std::slice::from_ref(reply)),
        Popped::Elements => (queues.first()?, items(reply)?),
        Popped::NamedElement | Popped::NamedElements => {
            let [of, elements] = items(reply)? else { return None };
            let of = name::key(keyspace, effect::bytes(of)?);
            let queue = queues.iter().find(|queue| **queue == of)?;
            match answer {
                Popped::NamedElement => (queue, std::slice::from_ref(elements)),
                _ => (queue, items(elements)?),
            }
        }
    };
    let taken = elements.iter().map(|element| Some(pop(queue, Some(Some(text(element)?)))));
    let mut steps = taken.collect::<Option<Vec<Step>>>()?;
    if elements.len() < most {
        steps.push(nothing(queue));
    }
    Some(steps)
}

fn push(queue: &str, element: Option<&String>) -> Step {
    Step::Push { queue: queue.into(), element: element.cloned() }
}

fn pop(queue: &str, element: Option<Option<String>>) -> Step {
    Step::Pop { queue: queue.into(), element }
}
