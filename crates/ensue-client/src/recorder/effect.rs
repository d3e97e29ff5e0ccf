//! What a command did and saw, now that its answer is known; or may have done, if none came.

use super::name;
use super::plan::{MEMBER, Plan};
use ensue_resp::request::{Compared, Comparison, SetCondition};
use ensue_types::Reply;

/// One operation of a history, with names as text. A value of nothing is absence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Read {
        place: String,
        value: Option<String>,
    },
    Write {
        place: String,
        value: Option<String>,
    },
    Add {
        place: String,
        delta: i64,
    },
    Count {
        place: String,
        value: i64,
    },
    /// All of a row was read: what is not read beside this was not there.
    Row {
        row: String,
    },
    Rename {
        from: String,
        to: String,
    },
    /// Of one keyspace, or of all.
    Flush {
        keyspace: Option<u8>,
    },
    /// An element went into a queue; one that nobody knows is not named.
    Push {
        queue: String,
        element: Option<String>,
    },
    /// An element came out of a queue, or none did. Without an answer nothing is said of it.
    Pop {
        queue: String,
        element: Option<Option<String>>,
    },
    /// A queue was read, and this was in it, or nothing.
    Hold {
        queue: String,
        element: Option<String>,
    },
}

/// All that a command stands for in a history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Effect {
    pub(super) steps: Vec<Step>,
    /// Places that become empty by themselves, at a time that nobody records.
    pub(super) expiring: Vec<String>,
    /// Rows that can no longer be followed, and the command that is to blame. Without rows: all of them.
    pub(super) opaque: Option<(Vec<String>, String)>,
}

impl Effect {
    fn steps(steps: Vec<Step>) -> Effect {
        Effect { steps, ..Effect::default() }
    }

    fn opaque(rows: &[String], command: &str) -> Effect {
        Effect { opaque: Some((rows.to_vec(), command.into())), ..Effect::default() }
    }

    /// Of a command that was answered, and not with an error.
    pub(super) fn of(plan: &Plan, reply: &Reply) -> Effect {
        understood(plan, reply)
            .unwrap_or_else(|| Effect::opaque(&places(plan), "an answer that is not understood"))
    }

    /// Of a command that may have been carried out.
    pub(super) fn possible(plan: &Plan) -> Effect {
        match plan {
            Plan::Set { place, value, expires, .. } => Effect {
                expiring: expiring(place, *expires),
                ..Effect::steps(vec![write(place, Some(value))])
            },
            Plan::SetIfEmpty { place, value } => Effect::steps(vec![write(place, Some(value))]),
            Plan::SetMany { pairs } => {
                Effect::steps(pairs.iter().map(|(place, value)| write(place, Some(value))).collect())
            }
            Plan::Take { place } | Plan::Expire { place } => Effect::steps(vec![write(place, None)]),
            Plan::Read { places, expires: true } => {
                Effect::steps(places.iter().map(|place| write(place, None)).collect())
            }
            // A part of them may have been there.
            Plan::Remove { places } if places.len() == 1 => Effect::steps(vec![write(&places[0], None)]),
            Plan::Remove { places } => Effect::opaque(places, "a removal without an answer"),
            Plan::Insert { places } => {
                Effect::steps(places.iter().map(|place| write(place, Some(MEMBER))).collect())
            }
            Plan::Add { place, amount } => Effect::steps(vec![add(place, *amount)]),
            Plan::Rename { from, to, .. } => Effect::steps(vec![rename(from, to)]),
            Plan::Flush { keyspace } => Effect::steps(vec![Step::Flush { keyspace: *keyspace }]),
            Plan::Queue(queue) => queue.possible().map_or_else(
                || Effect::opaque(&queue.names(), "a removal of many elements without an answer"),
                Effect::steps,
            ),
            Plan::Opaque { rows, command } => Effect::opaque(rows, command),
            _ => Effect::default(),
        }
    }

    /// Of commands that were carried out together.
    pub(super) fn of_all(effects: impl Iterator<Item = Effect>) -> Effect {
        let mut all = Effect::default();
        effects.for_each(|effect| all.append(effect));
        all
    }

    /// Of a command that was answered with an error that comes instead of an effect. A command that cannot be followed
    /// may be a script, of which what it did before it failed stays done.
    pub(super) fn of_refused(plan: &Plan) -> Effect {
        match plan {
            Plan::Opaque { rows, command } => Effect::opaque(rows, command),
            _ => Effect::default(),
        }
    }

    fn append(&mut self, mut other: Effect) {
        self.steps.append(&mut other.steps);
        self.expiring.append(&mut other.expiring);
        if let Some((mut rows, command)) = other.opaque {
            match &mut self.opaque {
                Some((known, _)) if !known.is_empty() && !rows.is_empty() => known.append(&mut rows),
                Some((known, _)) => known.clear(),
                None => self.opaque = Some((rows, command)),
            }
        }
    }
}

fn understood(plan: &Plan, reply: &Reply) -> Option<Effect> {
    Some(Effect::steps(match plan {
        Plan::Nothing => Vec::new(),
        Plan::Read { places, expires } => {
            let expiring = places.iter().filter(|_| *expires).cloned().collect();
            return Some(Effect { expiring, ..Effect::steps(read_all(places, reply)?) });
        }
        Plan::ReadAll { row } => pairs(reply)?
            .into_iter()
            .map(|(field, value)| Some(read(&name::element(row, bytes(field)?), Some(&text(value)?))))
            .chain([Some(Step::Row { row: row.clone() })])
            .collect::<Option<_>>()?,
        Plan::Members { row } => items(reply)?
            .iter()
            .map(|member| Some(read(&name::element(row, bytes(member)?), Some(MEMBER))))
            .chain([Some(Step::Row { row: row.clone() })])
            .collect::<Option<_>>()?,
        Plan::Contains { places } => contains(places, reply)?,
        Plan::IsThere { place } => {
            if integer(reply)? == 0 {
                vec![read(place, None)]
            } else {
                Vec::new()
            }
        }
        Plan::Set { .. } => return set(plan, reply),
        Plan::SetIfEmpty { place, value } => match integer(reply)? {
            0 => Vec::new(),
            _ => vec![read(place, None), write(place, Some(value))],
        },
        Plan::SetMany { pairs } => set_many(pairs, reply),
        Plan::Take { place } => match content(reply)? {
            None => vec![read(place, None)],
            value => vec![read(place, value.as_deref()), write(place, None)],
        },
        Plan::Remove { places } => match usize::try_from(integer(reply)?).ok()? {
            0 => places.iter().map(|place| read(place, None)).collect(),
            count if count == places.len() => places.iter().map(|place| write(place, None)).collect(),
            _ => return Some(Effect::opaque(places, "a removal of which only a part was there")),
        },
        Plan::Insert { places } => insert(places, integer(reply)?),
        Plan::Add { place, amount } => {
            vec![add(place, *amount), Step::Count { place: place.clone(), value: integer(reply)? }]
        }
        Plan::Expire { place } => {
            let expiring = expiring(place, integer(reply)? == 1);
            return Some(Effect { expiring, ..Effect::default() });
        }
        Plan::Rename { from, to, if_absent: false } => vec![rename(from, to)],
        Plan::Rename { from, to, if_absent: true } => match integer(reply)? {
            0 => Vec::new(),
            _ => vec![read(to, None), rename(from, to)],
        },
        Plan::Flush { keyspace } => vec![Step::Flush { keyspace: *keyspace }],
        Plan::Queue(queue) => queue.done(reply)?,
        Plan::Opaque { rows, command } => return Some(Effect::opaque(rows, command)),
    }))
}

fn set(plan: &Plan, reply: &Reply) -> Option<Effect> {
    let Plan::Set { place, value, condition, expires, gets } = plan else { return None };
    let before = if *gets { Some(content(reply)?) } else { None };
    let is_empty = before.as_ref().map(|before| before.is_none());
    let was_done = match (condition, is_empty) {
        (SetCondition::Always, _) => true,
        (SetCondition::IfAbsent, Some(is_empty)) => is_empty,
        (SetCondition::IfPresent, Some(is_empty)) => !is_empty,
        // The answer does not say whether it was done.
        (SetCondition::If(_), Some(_)) => return None,
        (_, None) => *reply != Reply::Nil && *reply != Reply::NilArray,
    };
    let mut steps = match (before, condition, was_done) {
        (Some(before), ..) => vec![read(place, before.as_deref())],
        (None, SetCondition::IfAbsent, true) | (None, SetCondition::IfPresent, false) => {
            vec![read(place, None)]
        }
        (None, SetCondition::If(Comparison { with: Compared::Value(compared), is_same: true }), true) => {
            vec![read(place, Some(&name::value(compared)))]
        }
        _ => Vec::new(),
    };
    if was_done {
        steps.push(write(place, Some(value)));
    }
    Some(Effect { expiring: expiring(place, *expires && was_done), ..Effect::steps(steps) })
}

/// Places that were all empty before, as a number answered may say, were read as such.
fn set_many(pairs: &[(String, String)], reply: &Reply) -> Vec<Step> {
    let were_empty = integer(reply).is_some_and(|count| usize::try_from(count) == Ok(pairs.len()));
    let reads = pairs.iter().filter(|_| were_empty).map(|(place, _)| read(place, None));
    let writes = pairs.iter().map(|(place, value)| write(place, Some(value)));
    reads.chain(writes).collect()
}

/// Adding what is there counts as adding.
fn insert(places: &[String], added: i64) -> Vec<Step> {
    let before = match usize::try_from(added) {
        Ok(0) => Some(Some(MEMBER)),
        Ok(count) if count == places.len() => Some(None),
        _ => None,
    };
    let reads = before.into_iter().flat_map(|value| places.iter().map(move |place| read(place, value)));
    let writes = places.iter().map(|place| write(place, Some(MEMBER)));
    reads.chain(writes).collect()
}

fn read_all(places: &[String], reply: &Reply) -> Option<Vec<Step>> {
    each(places, reply, |place, answer| Some(read(place, content(answer)?.as_deref())))
}

fn contains(places: &[String], reply: &Reply) -> Option<Vec<Step>> {
    each(places, reply, |place, answer| Some(read(place, (integer(answer)? != 0).then_some(MEMBER))))
}

/// A step for each place from its answer; a reply that is no array answers the only one.
fn each(
    places: &[String],
    reply: &Reply,
    step: impl Fn(&String, &Reply) -> Option<Step>,
) -> Option<Vec<Step>> {
    let answers = match reply {
        Reply::Array(items) => items.as_slice(),
        single => std::slice::from_ref(single),
    };
    if answers.len() != places.len() {
        return None;
    }
    places.iter().zip(answers).map(|(place, answer)| step(place, answer)).collect()
}

/// The places and rows that a plan names.
fn places(plan: &Plan) -> Vec<String> {
    match plan {
        Plan::Nothing | Plan::Flush { .. } => Vec::new(),
        Plan::Rename { from, to, .. } => vec![from.clone(), to.clone()],
        Plan::Read { places, .. } | Plan::Contains { places } => places.clone(),
        Plan::Remove { places } | Plan::Insert { places } => places.clone(),
        Plan::ReadAll { row } | Plan::Members { row } => vec![row.clone()],
        Plan::IsThere { place } | Plan::Take { place } | Plan::Expire { place } => vec![place.clone()],
        Plan::Set { place, .. } | Plan::SetIfEmpty { place, .. } | Plan::Add { place, .. } => {
            vec![place.clone()]
        }
        Plan::SetMany { pairs } => pairs.iter().map(|(place, _)| place.clone()).collect(),
        Plan::Opaque { rows, .. } => rows.clone(),
        Plan::Queue(queue) => queue.names(),
    }
}

fn read(place: &str, value: Option<&str>) -> Step {
    Step::Read { place: place.into(), value: value.map(Into::into) }
}

fn write(place: &str, value: Option<&str>) -> Step {
    Step::Write { place: place.into(), value: value.map(Into::into) }
}

fn rename(from: &str, to: &str) -> Step {
    Step::Rename { from: from.into(), to: to.into() }
}

fn add(place: &str, delta: i64) -> Step {
    Step::Add { place: place.into(), delta }
}

fn expiring(place: &str, expires: bool) -> Vec<String> {
    if expires { vec![place.into()] } else { Vec::new() }
}

/// What a place held; nothing at all if the answer is no such thing.
pub(super) fn content(reply: &Reply) -> Option<Option<String>> {
    match reply {
        Reply::Nil | Reply::NilArray => Some(None),
        other => text(other).map(Some),
    }
}

pub(super) fn text(reply: &Reply) -> Option<String> {
    bytes(reply).map(name::value)
}

pub(super) fn bytes(reply: &Reply) -> Option<&[u8]> {
    match reply {
        Reply::Bulk(bytes) | Reply::Verbatim(bytes) | Reply::BigNumber(bytes) => Some(bytes),
        Reply::Status(words) => Some(words.as_bytes()),
        _ => None,
    }
}

pub(super) fn integer(reply: &Reply) -> Option<i64> {
    match reply {
        Reply::Integer(value) => Some(*value),
        Reply::Boolean(value) => Some(i64::from(*value)),
        _ => None,
    }
}

pub(super) fn items(reply: &Reply) -> Option<&[Reply]> {
    match reply {
        Reply::Array(items) | Reply::Set(items) => Some(items),
        _ => None,
    }
}

/// A map, or a flat array of names and values.
fn pairs(reply: &Reply) -> Option<Vec<(&Reply, &Reply)>> {
    match reply {
        Reply::Map(pairs) => Some(pairs.iter().map(|(name, value)| (name, value)).collect()),
        Reply::Array(items) if items.len() % 2 == 0 => {
            Some(items.chunks_exact(2).map(|pair| (&pair[0], &pair[1])).collect())
        }
        _ => None,
    }
}
